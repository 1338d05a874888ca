package otlp

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
)

// The words of Config, which are those of the environment's variables.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"

	CompressionNone = "none"
	CompressionGzip = "gzip"
)

// Defaults where neither Config nor the environment says anything: those of the specification.
const (
	DefaultInterval    = time.Minute
	DefaultPushTimeout = 30 * time.Second
	DefaultTimeout     = 10 * time.Second
)

// Config is what can be told by flags; what is zero is taken from the environment as OpenTelemetry's specification
// says, else its defaults. See docs/otlp.md.
type Config struct {
	Protocol string // grpc or http/protobuf
	// URL; for HTTP with the path to which metrics are posted, /v1/metrics if it has none
	Endpoint    string
	Headers     map[string]string // besides the environment's
	Compression string            // none or gzip
	Certificate string            // file: authorities that sign the receiver's certificate
	ClientCert  string            // file
	ClientKey   string            // file
	Insecure    bool              // gRPC without TLS where the endpoint is no URL with a scheme
	// of one message with its repetitions; what Run takes at most after its context has ended
	Timeout     time.Duration
	PushTimeout time.Duration // of one push: reading, and all messages
	Interval    time.Duration // between two
	Final       bool          // push ranks' last values when they end
	Version     string        // service.version
	// what tells it from other exporters of the node, the same after a restart; "": nothing, as it is the node's
	Instance string

	Environ func(name string) string // default: os.Getenv
	Prefix  string                   // before the names of fields in errors, as in "--otlp."
	Logger  *slog.Logger             // default: says nothing

	done *settings // by Complete
}

// settings are a complete Config, understood.
type settings struct {
	endpoint endpoint
	tls      *tls.Config // nil: without
	headers  map[string]string
	resource *resource.Resource
}

// Target is the receiver as it may be logged: without a user's name, password and query.
func (cfg Config) Target() string {
	if cfg.done != nil {
		return cfg.done.endpoint.shown
	}
	return ""
}

// Complete fills in from the environment what cfg leaves open and checks all of it, reading the files with
// certificates. An error names the variable or field, what is wrong and what to write; never a header's value.
func (cfg Config) Complete() (Config, error) {
	if cfg.Environ == nil {
		cfg.Environ = os.Getenv
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e, done := environ{cfg.Environ, cfg.Prefix}, &settings{}
	for _, step := range []func(*Config, environ, *settings) error{
		(*Config).completeProtocol, (*Config).completeHeaders, (*Config).completeEndpoint, (*Config).completeTLS,
		(*Config).completeTimes,
		(*Config).checkPreferences, (*Config).completeResource,
	} {
		if err := step(&cfg, e, done); err != nil {
			return Config{}, err
		}
	}
	cfg.done = done
	return cfg, nil
}

func (cfg *Config) completeProtocol(e environ, _ *settings) error {
	v := e.pick(cfg.Protocol, "protocol", "PROTOCOL")
	if v.text == "http/json" {
		return v.wrong("is not supported: write %s, which every receiver of OTLP over HTTP takes", ProtocolHTTP)
	}
	var err error
	if cfg.Protocol, err = v.oneOf("protocol of OTLP", ProtocolHTTP, ProtocolGRPC, ProtocolHTTP); err != nil {
		return err
	}
	cfg.Compression, err = e.pick(cfg.Compression, "compression", "COMPRESSION").
		oneOf("compression of OTLP", CompressionNone, CompressionGzip, CompressionNone)
	return err
}

func (cfg *Config) completeHeaders(e environ, done *settings) error {
	done.headers = map[string]string{}
	if v := e.pick("", "", "HEADERS"); v.text != "" {
		headers, err := parsePairs(v.text)
		if err != nil {
			return fmt.Errorf("%s: %w; write it as key=value,key=value with %%2C for a comma within a value", v.name,
				err)
		}
		for _, h := range headers {
			if err := addHeader(done.headers, h.key, h.value, cfg.Protocol); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	for key, value := range cfg.Headers {
		if err := addHeader(done.headers, key, value, cfg.Protocol); err != nil {
			return fmt.Errorf("%sheader: %w", cfg.Prefix, err)
		}
	}
	cfg.Headers = maps.Clone(done.headers)
	return nil
}

func (cfg *Config) completeEndpoint(e environ, done *settings) error {
	v := e.pick(cfg.Endpoint, "endpoint", "ENDPOINT")
	insecure := cfg.Insecure
	if !insecure {
		var err error
		if insecure, err = e.pick("", "", "INSECURE").bool(); err != nil {
			return err
		}
	}
	var err error
	if cfg.Protocol == ProtocolGRPC {
		done.endpoint, err = grpcEndpoint(v, insecure)
	} else {
		done.endpoint, err = httpEndpoint(v)
	}
	if err != nil {
		return err
	}
	if user := done.endpoint.user; user != nil && done.headers["authorization"] == "" {
		done.headers["authorization"] = basic(user)
		cfg.Headers["authorization"] = done.headers["authorization"]
	}
	cfg.Endpoint, cfg.Insecure = done.endpoint.shown, done.endpoint.plain
	return nil
}

func (cfg *Config) completeTimes(e environ, _ *settings) error {
	times := []struct {
		value *time.Duration
		field string
		from  setting
		init  time.Duration
	}{
		{&cfg.Timeout, "timeout", e.pick("", "", "TIMEOUT"), DefaultTimeout},
		{&cfg.PushTimeout, "push-timeout", e.get("OTEL_METRIC_EXPORT_TIMEOUT"), DefaultPushTimeout},
		{&cfg.Interval, "interval", e.get("OTEL_METRIC_EXPORT_INTERVAL"), DefaultInterval},
	}
	for _, t := range times {
		switch {
		case *t.value < 0:
			return fmt.Errorf("%s%s: %v is no time to wait: write 10s, or another time above 0", cfg.Prefix, t.field,
				*t.value)
		case *t.value > 0:
		case t.from.text == "":
			*t.value = t.init
		default:
			var err error
			if *t.value, err = t.from.milliseconds(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPreferences refuses what the environment asks of all exporters and this one doesn't do.
func (cfg *Config) checkPreferences(e environ, _ *settings) error {
	v := e.pick("", "", "TEMPORALITY_PREFERENCE")
	if v.text != "" && !strings.EqualFold(v.text, "cumulative") {
		return v.wrong("is not supported: write cumulative, of which a collector makes deltas (cumulativetodelta)")
	}
	v = e.pick("", "", "DEFAULT_HISTOGRAM_AGGREGATION")
	if v.text != "" && !strings.EqualFold(v.text, "explicit_bucket_histogram") {
		return v.wrong("is not supported: write explicit_bucket_histogram; /metrics has native histograms")
	}
	return nil
}

// maxMilliseconds is what a time.Duration can hold.
const maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

func (v setting) milliseconds() (time.Duration, error) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || n <= 0 || n > maxMilliseconds {
		return 0, v.wrong("is no number of milliseconds above 0: write 10000 for ten seconds")
	}
	return time.Duration(n) * time.Millisecond, nil
}

func (v setting) bool() (bool, error) {
	switch strings.ToLower(v.text) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, v.wrong("is neither true nor false")
}

// endpoint is where to push to.
type endpoint struct {
	url    *url.URL // of HTTP, as given but for the user
	target string   // of gRPC
	plain  bool     // without TLS
	user   *url.Userinfo
	shown  string // may be logged
	name   string // of the variable or field it comes from
}
