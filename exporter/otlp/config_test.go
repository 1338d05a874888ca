package otlp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/otlp/otlptest"
)

func env(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

func TestAsked(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  func(string) string
		want bool
	}{
		{"nothing", env(), false},
		{"an endpoint", env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), true},
		{"an endpoint of metrics", env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c"), true},
		{"an endpoint of traces only", env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c"), false},
		{"by name", env("OTEL_METRICS_EXPORTER", "otlp"), true},
		{"among others", env("OTEL_METRICS_EXPORTER", "prometheus, otlp"), true},
		{"another", env("OTEL_METRICS_EXPORTER", "prometheus", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), false},
		{"none", env("OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), false},
		{"disabled", env("OTEL_METRICS_EXPORTER", "otlp", "OTEL_SDK_DISABLED", "True"), false},
		{"not disabled", env("OTEL_METRICS_EXPORTER", "otlp", "OTEL_SDK_DISABLED", "false"), true},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, Asked(tt.env)) })
	}
}

// Field before the variable of metrics before the general one before the specification's default.
func TestPrecedence(t *testing.T) {
	none, err := Config{Environ: env()}.settings()
	require.NoError(t, err)
	assert.Equal(t, ProtocolHTTP, none.Protocol)
	assert.Equal(t, "http://localhost:4318/v1/metrics", none.shown)
	assert.False(t, none.gzip)
	assert.Equal(t, []time.Duration{10 * time.Second, 30 * time.Second, time.Minute},
		[]time.Duration{none.timeout, none.pushTimeout, none.Interval})
	assert.Empty(t, none.headers)

	every := []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:1",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
		"OTEL_EXPORTER_OTLP_TIMEOUT", "1000", "OTEL_EXPORTER_OTLP_HEADERS", "A=general,b=general",
		"OTEL_METRIC_EXPORT_INTERVAL", "2000", "OTEL_METRIC_EXPORT_TIMEOUT", "3000",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "Explicit_bucket_histogram",
	}
	all, err := Config{Environ: env(every...)}.settings()
	require.NoError(t, err)
	assert.Equal(t, ProtocolGRPC, all.Protocol)
	assert.Equal(t, "http://general:1", all.shown)
	assert.True(t, all.gzip)
	assert.Equal(t, []time.Duration{time.Second, 3 * time.Second, 2 * time.Second},
		[]time.Duration{all.timeout, all.pushTimeout, all.Interval})
	assert.Equal(t, map[string]string{"a": "general", "b": "general"}, all.headers)

	every = append(every, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://metrics:2/x",
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "4000",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "b=metrics")
	metrics, err := Config{Environ: env(every...)}.settings()
	require.NoError(t, err)
	assert.Equal(t, ProtocolHTTP, metrics.Protocol)
	assert.Equal(t, "https://metrics:2/x", metrics.shown)
	assert.False(t, metrics.gzip)
	assert.Equal(t, 4*time.Second, metrics.timeout)
	assert.Equal(t, map[string]string{"b": "metrics"}, metrics.headers)

	fields, err := Config{
		Environ: env(every...), Protocol: ProtocolGRPC, Endpoint: "http://field:3", Interval: 3 * time.Hour,
	}.settings()
	require.NoError(t, err)
	assert.Equal(t, ProtocolGRPC, fields.Protocol)
	assert.Equal(t, "http://field:3", fields.shown)
	assert.Equal(t, 3*time.Hour, fields.Interval)
}

// Where a push goes.
func TestEndpoints(t *testing.T) {
	tests := []struct {
		name  string
		cfg   Config
		url   string // over HTTP
		to    string // over gRPC
		plain bool
	}{
		{"general: a base", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")},
			"http://c:4318/v1/metrics", "", true},
		{"general: with a path", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/")},
			"https://c/otlp/v1/metrics", "", false},
		{"general: with a query", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp?key=1")},
			"https://c/otlp/v1/metrics?key=1", "", false},
		{"metrics: as it is", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c:4318/in/")},
			"http://c:4318/in/", "", true},
		{"metrics: without a path", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c:4318")},
			"http://c:4318/", "", true},
		{"field: as it is", Config{Environ: env(), Endpoint: "http://c:4318/in"}, "http://c:4318/in", "", true},
		{"field: without a path", Config{Environ: env(), Endpoint: "http://c:4318"}, "http://c:4318/v1/metrics", "",
			true},
		{"field: IPv6", Config{Environ: env(), Endpoint: "HTTP://[::1]:4318/"}, "http://[::1]:4318/v1/metrics", "",
			true},
		{"gRPC: default", Config{Environ: env(), Protocol: ProtocolGRPC}, "", "dns:///localhost:4317", true},
		{"gRPC: URL", Config{Environ: env(), Protocol: ProtocolGRPC, Endpoint: "https://c:4317/"}, "",
			"dns:///c:4317", false},
		{"gRPC: the scheme says whether there is TLS", Config{Environ: env("OTEL_EXPORTER_OTLP_INSECURE", "true"),
			Protocol: ProtocolGRPC, Endpoint: "https://c"}, "", "dns:///c:443", false},
		{"gRPC: URL without a port", Config{Environ: env(), Protocol: ProtocolGRPC, Endpoint: "http://c"}, "",
			"dns:///c:80", true},
		{"gRPC: host and port", Config{Environ: env(), Protocol: ProtocolGRPC, Endpoint: "c:4317"}, "",
			"dns:///c:4317", false},
		{"gRPC: host and port without TLS", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_INSECURE", "TRUE"),
			Protocol: ProtocolGRPC, Endpoint: "c:4317"}, "", "dns:///c:4317", true},
		{"gRPC: metrics say otherwise", Config{Environ: env("OTEL_EXPORTER_OTLP_INSECURE", "true",
			"OTEL_EXPORTER_OTLP_METRICS_INSECURE", "false"), Protocol: ProtocolGRPC, Endpoint: "c:4317"}, "",
			"dns:///c:4317", false},
		{"gRPC: a socket", Config{Environ: env(), Protocol: ProtocolGRPC, Endpoint: "unix:///run/otel.sock"}, "",
			"unix:///run/otel.sock", true},
		{"gRPC: a resolver", Config{Environ: env("OTEL_EXPORTER_OTLP_INSECURE", "true"), Protocol: ProtocolGRPC,
			Endpoint: "dns:///c:4317"}, "", "dns:///c:4317", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := tt.cfg.settings()
			require.NoError(t, err)
			if tt.url != "" {
				assert.Equal(t, tt.url, set.url.String())
			}
			assert.Equal(t, tt.to, set.target)
			assert.Equal(t, tt.plain, set.plain)
			assert.Equal(t, tt.plain, set.tls == nil)
		})
	}
}

// A user and password in a URL become a header, and stand nowhere else.
func TestUserInEndpoint(t *testing.T) {
	for _, protocol := range protocols {
		set, err := Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:s%40cret@c:4318"),
			Protocol: protocol}.settings()
		require.NoError(t, err)
		assert.Equal(t, "Basic bWU6c0BjcmV0", set.headers["authorization"])
		assert.NotContains(t, set.shown+set.target, "cret")
		set, err = Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:secret@c:4318",
			"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer x"), Protocol: protocol}.settings()
		require.NoError(t, err)
		assert.Equal(t, "Bearer x", set.headers["authorization"], "a header that was asked for stands")
	}
}

// An error names the place, what is wrong and what to write; a header's value or a password it does not repeat.
func TestWrongConfig(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	authority, err := otlptest.NewAuthority()
	require.NoError(t, err)
	ca, cert, key, err := authority.WriteFiles(dir, "node1")
	require.NoError(t, err)
	tests := []struct {
		name string
		cfg  Config
		want []string
	}{
		{"protocol", Config{Environ: env("OTEL_EXPORTER_OTLP_PROTOCOL", "http")},
			[]string{`OTEL_EXPORTER_OTLP_PROTOCOL: "http" is not supported`, "write http/protobuf or grpc"}},
		{"JSON", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json")},
			[]string{`OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json" is not supported`, "write http/protobuf"}},
		{"a field", Config{Environ: env(), Protocol: "tcp", Prefix: "--otlp."}, []string{`--otlp.protocol: "tcp"`}},
		{"compression", Config{Environ: env("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")},
			[]string{`OTEL_EXPORTER_OTLP_COMPRESSION: "zstd" is not supported`, "write none or gzip"}},
		{"endpoint without a scheme", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")},
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT is no URL that begins with http://", "http://collector:4318"}},
		{"endpoint without a host", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http:///v1/metrics")},
			[]string{"is no URL"}},
		{"port that is no number", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@c:x")},
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT is no URL"}},
		{"a slash in a password", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret/x@c:4318")},
			[]string{"is no URL", "%2F"}},
		{"a number sign in a password, gRPC", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT",
			"https://me:secret#x@c:4317"), Protocol: ProtocolGRPC}, []string{"is no URL", "%23"}},
		{"a percent in a password", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT",
			"http://me:secret%zz@c:4318")}, []string{"is no URL", "%25"}},
		{"gRPC with a user but no scheme", Config{Environ: env(), Endpoint: "me:secret@c:4317",
			Protocol: ProtocolGRPC}, []string{"endpoint is neither a URL nor host:port"}},
		{"gRPC with a scheme that is mistyped", Config{Environ: env(), Endpoint: "htps://c:4317",
			Protocol: ProtocolGRPC}, []string{"neither a URL nor host:port"}},
		{"gRPC with a user and a scheme that is mistyped", Config{Environ: env(),
			Endpoint: "htps://me:secret@c:4317", Protocol: ProtocolGRPC},
			[]string{"endpoint is neither a URL nor host:port"}},
		{"gRPC with a user for a resolver", Config{Environ: env(), Endpoint: "dns://me:secret@1.1.1.1/c:4317",
			Protocol: ProtocolGRPC}, []string{"endpoint is neither a URL nor host:port"}},
		{"fragment", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/#x")}, []string{"is no URL", "%23"}},
		{"gRPC with a path", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@c:4318/v1/metrics",
			"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")}, []string{"gRPC has no paths", "http://c:4318", "http/protobuf"}},
		{"gRPC without a port", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "collector"),
			Protocol: ProtocolGRPC}, []string{"neither a URL nor host:port", "http://collector:4317"}},
		{"insecure", Config{Environ: env("OTEL_EXPORTER_OTLP_INSECURE", "yes")},
			[]string{`OTEL_EXPORTER_OTLP_INSECURE: "yes" is not supported: write false or true`}},
		{"timeout", Config{Environ: env("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")},
			[]string{`OTEL_EXPORTER_OTLP_TIMEOUT: "10s" is no number of milliseconds`, "10000"}},
		{"no time", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "0")},
			[]string{"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT"}},
		{"too long a time", Config{Environ: env("OTEL_METRIC_EXPORT_TIMEOUT", "9223372036854775807")},
			[]string{"OTEL_METRIC_EXPORT_TIMEOUT"}},
		{"interval", Config{Environ: env("OTEL_METRIC_EXPORT_INTERVAL", "-1")},
			[]string{"OTEL_METRIC_EXPORT_INTERVAL"}},
		{"temporality", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")},
			[]string{"TEMPORALITY_PREFERENCE", "write cumulative"}},
		{"histogram", Config{Environ: env("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
			"base2_exponential_bucket_histogram")},
			[]string{"DEFAULT_HISTOGRAM_AGGREGATION", "write explicit_bucket_histogram"}},
		{"headers", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a=b,secret")},
			[]string{"OTEL_EXPORTER_OTLP_HEADERS: entry 2 has no =", "key=value,key=value"}},
		{"a header without a name", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "=secret")},
			[]string{"entry 1 has no =, or nothing before it"}},
		{"a header's percent", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%zz")},
			[]string{`entry 1, "a"`, "%25"}},
		{"a header's name", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret")},
			[]string{`OTEL_EXPORTER_OTLP_HEADERS: "a b" is no name of a header`}},
		{"a header of the protocol", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "Content-Encoding=secret")},
			[]string{`"Content-Encoding" is the protocol's own`}},
		{"a header's value", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0d%0ab:c")},
			[]string{`the value of "a" has characters other than printable ASCII`}},
		{"a header's name that gRPC can't carry", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a!=secret"),
			Protocol: ProtocolGRPC}, []string{`OTEL_EXPORTER_OTLP_HEADERS: "a!" is no name of a header`}},
		{"a header that gRPC can't carry", Config{Environ: env("OTEL_EXPORTER_OTLP_HEADERS", "a=secr%C3%A9t"),
			Protocol: ProtocolGRPC}, []string{"printable ASCII"}},
		{"no file", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE",
			"/nowhere.pem")}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "no such file"}},
		{"no certificate", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c",
			"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", empty)},
			[]string{"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "CA cert", empty}},
		{"no key", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c",
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", cert)},
			[]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: a client's certificate needs its key"}},
		{"a key alone", Config{Environ: env("OTEL_EXPORTER_OTLP_CLIENT_KEY", key), Endpoint: "https://c"},
			[]string{"OTEL_EXPORTER_OTLP_CLIENT_KEY: ", "a key its certificate"}},
		{"another's key", Config{Environ: env("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", ca,
			"OTEL_EXPORTER_OTLP_CLIENT_KEY", key), Endpoint: "https://c"},
			[]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY", "does not match"}},
		{"a certificate without TLS", Config{Environ: env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c",
			"OTEL_EXPORTER_OTLP_CERTIFICATE", ca)}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE is set",
			"is not encrypted", "https://"}},
		{"attributes", Config{Environ: env("OTEL_RESOURCE_ATTRIBUTES", "a")},
			[]string{"OTEL_RESOURCE_ATTRIBUTES: entry 1 has no ="}},
		{"an attribute's name", Config{Environ: env("OTEL_RESOURCE_ATTRIBUTES", "a%=b")},
			[]string{"OTEL_RESOURCE_ATTRIBUTES: entry 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.cfg.settings()
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestResource(t *testing.T) {
	get := func(t *testing.T, cfg Config) map[string]string {
		t.Helper()
		set, err := cfg.settings()
		require.NoError(t, err)
		attrs := map[string]string{}
		for _, kv := range set.resource.Attributes() {
			attrs[string(kv.Key)] = kv.Value.AsString()
		}
		return attrs
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	cfg := Config{Environ: env(), Version: "1.2.3"}
	assert.Equal(t, map[string]string{"service.name": "mpit-exporter", "service.version": "1.2.3", "host.name": host,
		"service.instance.id": host, "process.executable.name": filepath.Base(os.Args[0])}, get(t, cfg))
	cfg.Instance = "/run/user/1000/mpit.sock"
	assert.Equal(t, host+":/run/user/1000/mpit.sock", get(t, cfg)["service.instance.id"], "another exporter on this host")

	cfg.Environ = env("OTEL_RESOURCE_ATTRIBUTES", " deployment.environment = prod%2Ctest "+
		",host.name=h,service.name=attributes,a%3Db=,", "OTEL_SERVICE_NAME", "named")
	got := get(t, cfg)
	assert.Equal(t, "prod,test", got["deployment.environment"])
	assert.Equal(t, "h", got["host.name"])
	assert.Equal(t, "named", got["service.name"])
	assert.Equal(t, "", got["a=b"])
	cfg.Environ = env("OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes")
	assert.Equal(t, "attributes", get(t, cfg)["service.name"])
}

func FuzzPairs(f *testing.F) {
	for _, seed := range []string{"", "a=b", "a=b,c=d", " a = b , c=%2C,", "=", "a=%", "%3D=x", "a==b", "\x00=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := setting{text: text}.pairs()
		if err != nil {
			return
		}
		for _, p := range pairs {
			if p.key == "" {
				t.Fatal("a pair without a key")
			}
			_ = p.checkHeader() // whatever it is, no panic
		}
		if _, err := (Config{Environ: env("OTEL_RESOURCE_ATTRIBUTES", text, "OTEL_EXPORTER_OTLP_HEADERS",
			text)}).settings(); err != nil && err.Error() == "" {
			t.Fatal("an empty error")
		}
	})
}
