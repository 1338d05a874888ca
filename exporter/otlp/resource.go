package otlp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

const serviceName = "mpit-exporter"

// completeResource says who pushes. The environment's attributes win, OTEL_SERVICE_NAME over all. Nothing changes when
// the exporter is restarted, as process.pid would: receivers that make labels of attributes would begin each series
// anew.
//
// The SDK's resource.WithFromEnv is not used, as it reads the process' environment only and drops what it can't read.
func (cfg *Config) completeResource(e environ, done *settings) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host's name for host.name: %w", err)
	}
	attrs := map[string]string{
		"service.name": serviceName, "service.instance.id": host, "host.name": host,
		"process.executable.name": filepath.Base(os.Args[0]),
	}
	if cfg.Instance != "" {
		attrs["service.instance.id"] = host + ":" + cfg.Instance
	}
	if cfg.Version != "" {
		attrs["service.version"] = cfg.Version
	}
	pairs, err := e.get(attributes).pairs()
	if err != nil {
		return err
	}
	for _, p := range pairs {
		attrs[strings.ToValidUTF8(p.key, "\uFFFD")] = strings.ToValidUTF8(p.value, "\uFFFD")
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
