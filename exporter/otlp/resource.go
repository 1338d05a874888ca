package otlp

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

const serviceName = "mpit-exporter"

// instanceSpace is the namespace that the semantic conventions give for a service.instance.id made from what is
// unique already.
var instanceSpace = uuid.MustParse("4d63009a-8d0f-11ee-aad7-4c796ed8e320")

// completeResource says who pushes. The environment's attributes win, OTEL_SERVICE_NAME over all.
//
// The SDK's resource.WithFromEnv is not used, as it reads the process' environment only and drops what it can't read.
func (cfg *Config) completeResource(e environ, done *settings) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host's name for host.name: %w", err)
	}
	attrs := map[string]string{
		"service.name": serviceName, "service.instance.id": instanceID(machineID(), host, cfg.Instance),
		"host.name": host,
	}
	if cfg.Version != "" {
		attrs["service.version"] = cfg.Version
	}
	if v := e.get(attributes); v.text != "" {
		pairs, err := parsePairs(v.text)
		if err != nil {
			return fmt.Errorf("%s: %w; write it as key=value,key=value with %%2C for a comma within a value", v.name,
				err)
		}
		for i, p := range pairs {
			key, err := url.PathUnescape(p.key)
			if err != nil {
				return fmt.Errorf("%s: entry %d, %q: a %% must be followed by two hexadecimal digits; %%25 is a %%",
					v.name, i+1, p.key)
			}
			attrs[strings.ToValidUTF8(key, "\uFFFD")] = strings.ToValidUTF8(p.value, "\uFFFD")
		}
	}
	if v := e.get(service); v.text != "" {
		attrs["service.name"] = strings.ToValidUTF8(v.text, "\uFFFD")
	}
	set := make([]attribute.KeyValue, 0, len(attrs))
	for key, value := range attrs {
		set = append(set, attribute.String(key, value))
	}
	done.resource = resource.NewSchemaless(set...)
	return nil
}

// instanceID is the same after a restart. The host's name is in it, for nodes that boot from one image share a
// machine id.
func instanceID(machine, host, instance string) string {
	return uuid.NewSHA1(instanceSpace, []byte(strings.Join([]string{machine, host, instance}, "\x00"))).String()
}

// machineID is empty where there is none, as in most containers.
func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(id))
		}
	}
	return ""
}
