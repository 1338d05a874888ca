package otlp

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// The protocols, in the words of the environment's variable.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// Config is what can be told by flags; what is zero is taken from the environment as OpenTelemetry's specification
// says, else its defaults. All else is the environment's alone. See docs/otlp.md.
type Config struct {
	Protocol string // ProtocolHTTP or ProtocolGRPC
	// URL; for HTTP with the path to which metrics are posted, /v1/metrics if it has none
	Endpoint string
	Interval time.Duration // between two pushes; below zero it is the environment's, too
	Final    bool          // push ranks' last values when they end
	Version  string        // service.version
	// what tells it from other exporters of the node, the same after a restart; "": nothing, as it is the node's
	Instance string

	Environ func(name string) string // default: os.Getenv
	Prefix  string                   // before the names of fields in errors, as in "--otlp."
	Logger  *slog.Logger             // default: says nothing
}

// settings are a Config and the environment, checked: no field of Config is zero that has a default.
type settings struct {
	Config
	url      *url.URL // of HTTP, without the user
	target   string   // of gRPC
	plain    bool     // without TLS
	shown    string   // the receiver as it may be logged
	tls      *tls.Config
	files    []string // with certificates; some are empty
	headers  map[string]string
	gzip     bool
	resource *resource.Resource

	timeout     time.Duration // of one message with its repetitions
	pushTimeout time.Duration
}

// settings fills in from the environment what cfg leaves open and checks all of it, reading the files with
// certificates. An error names the variable or field, what is wrong and what to write; never a header's value, nor
// what may hold a password.
func (cfg Config) settings() (*settings, error) {
	s := &settings{Config: cfg}
	if s.Environ == nil {
		s.Environ = os.Getenv
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	e := environ{s.Environ, s.Prefix}
	for _, step := range []func(environ) error{s.readWords, s.readTimes, s.readHeaders, s.readEndpoint, s.readTLS} {
		if err := step(e); err != nil {
			return nil, err
		}
	}
	return s, s.readResource(e)
}

// readWords reads what is one of a few words; some only to refuse what the environment asks of all exporters and this
// one doesn't do.
func (s *settings) readWords(e environ) error {
	var compression, insecure, ignored string
	for _, w := range []struct {
		to      *string
		from    setting
		allowed []string
	}{
		{&s.Protocol, e.pick(s.Protocol, "protocol", "PROTOCOL"), []string{ProtocolHTTP, ProtocolGRPC}},
		{&compression, e.pick("", "", "COMPRESSION"), []string{"none", "gzip"}},
		{&insecure, e.pick("", "", "INSECURE"), []string{"false", "true"}},
		{&ignored, e.pick("", "", "TEMPORALITY_PREFERENCE"), []string{"cumulative"}},
		{&ignored, e.pick("", "", "DEFAULT_HISTOGRAM_AGGREGATION"), []string{"explicit_bucket_histogram"}},
	} {
		var err error
		if *w.to, err = w.from.oneOf(w.allowed...); err != nil {
			return err
		}
	}
	s.gzip, s.plain = compression == "gzip", insecure == "true"
	return nil
}

func (s *settings) readTimes(e environ) error {
	for _, t := range []struct {
		to      *time.Duration
		from    setting
		initial time.Duration // the specification's
	}{
		{&s.timeout, e.pick("", "", "TIMEOUT"), 10 * time.Second},
		{&s.pushTimeout, e.get("OTEL_METRIC_EXPORT_TIMEOUT"), 30 * time.Second},
		{&s.Interval, e.get("OTEL_METRIC_EXPORT_INTERVAL"), time.Minute},
	} {
		if *t.to > 0 {
			continue
		}
		var err error
		if *t.to, err = t.from.milliseconds(t.initial); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) readHeaders(e environ) error {
	s.headers = map[string]string{}
	v := e.pick("", "", "HEADERS")
	headers, err := v.pairs()
	if err != nil {
		return err
	}
	for _, h := range headers {
		if err := h.checkHeader(); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		s.headers[strings.ToLower(h.key)] = h.value
	}
	return nil
}

func (s *settings) readEndpoint(e environ) error {
	v := e.pick(s.Endpoint, "endpoint", "ENDPOINT")
	read := s.readURL
	if s.Protocol == ProtocolGRPC {
		read = s.readTarget
	}
	user, err := read(v)
	if err == nil && user != nil && s.headers["authorization"] == "" {
		password, _ := user.Password()
		s.headers["authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
	}
	return err
}

// readTLS reads the files. Client certificates are read again at each handshake, as they are often renewed under the
// same name.
func (s *settings) readTLS(e environ) error {
	var names []string
	for _, key := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		v := e.pick("", "", key)
		s.files = append(s.files, v.text)
		if v.text != "" {
			names = append(names, v.name)
		}
	}
	if s.plain {
		if len(names) > 0 {
			return fmt.Errorf("%s is set, but %s is not encrypted: write https://, or leave the file out", names[0],
				s.shown)
		}
		return nil
	}
	if (s.files[1] == "") != (s.files[2] == "") {
		return fmt.Errorf("%s: a client's certificate needs its key, and a key its certificate: set both variables",
			names[len(names)-1])
	}
	var err error
	s.tls, err = config.NewTLSConfig(&config.TLSConfig{CAFile: s.files[0], CertFile: s.files[1], KeyFile: s.files[2]})
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
	}
	return nil
}

const serviceName = "mpit-exporter"

// readResource says who pushes. The environment's attributes win, OTEL_SERVICE_NAME over all. Nothing changes when
// the exporter is restarted, as process.pid would: receivers that make labels of attributes would begin each series
// anew.
//
// The SDK's resource.WithFromEnv is not used, as it reads the process' environment only and drops what it can't read.
func (s *settings) readResource(e environ) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host's name for host.name: %w", err)
	}
	attrs := map[string]string{
		"service.name": serviceName, "service.instance.id": host, "host.name": host,
		"process.executable.name": filepath.Base(os.Args[0]),
	}
	if s.Instance != "" {
		attrs["service.instance.id"] = host + ":" + s.Instance
	}
	if s.Version != "" {
		attrs["service.version"] = s.Version
	}
	pairs, err := e.get("OTEL_RESOURCE_ATTRIBUTES").pairs()
	if err != nil {
		return err
	}
	for _, p := range pairs {
		attrs[strings.ToValidUTF8(p.key, "\uFFFD")] = strings.ToValidUTF8(p.value, "\uFFFD")
	}
	if v := e.get("OTEL_SERVICE_NAME"); v.text != "" {
		attrs["service.name"] = strings.ToValidUTF8(v.text, "\uFFFD")
	}
	set := make([]attribute.KeyValue, 0, len(attrs))
	for key, value := range attrs {
		set = append(set, attribute.String(key, value))
	}
	s.resource = resource.NewSchemaless(set...)
	return nil
}
