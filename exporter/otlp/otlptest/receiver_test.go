package otlptest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"
)

// The SDK's own exporters understand what the receiver says: sizes, headers, TLS, refusals, going away and coming back.
func TestReceiver(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, protocol := range []string{GRPC, HTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // it waits before it tries again
			authority, err := NewAuthority()
			require.NoError(t, err)
			serverTLS, err := authority.ServerTLS(true)
			require.NoError(t, err)
			r, err := Start(Options{Protocol: protocol, TLS: serverTLS, Headers: map[string]string{"Tenant": "a b"}})
			require.NoError(t, err)
			defer r.Close()

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			export := client(ctx, t, r, authority, map[string]string{"tenant": "a b"})
			require.NoError(t, export(ctx))
			first := r.Requests()[0]
			assert.Equal(t, 2, first.Points)
			assert.Equal(t, "gzip", first.Encoding)
			assert.Positive(t, first.Bytes)
			assert.Positive(t, first.WireBytes)
			assert.NotEqual(t, first.Bytes, first.WireBytes)
			assert.Equal(t, "node1", first.Client)
			assert.Equal(t, []string{"a b"}, first.Header["tenant"])

			require.Error(t, client(ctx, t, r, authority, nil)(ctx), "without the header")
			r.Answer(func(*Request) Answer { return Refuse("no such thing") })
			require.ErrorContains(t, export(ctx), "no such thing")
			r.Answer(func(*Request) Answer { return Partial(1, "too old") })
			require.ErrorContains(t, export(ctx), "too old")
			tries := 0
			r.Answer(func(*Request) Answer {
				if tries++; tries == 1 {
					return Busy(0)
				}
				return Accept()
			})
			require.NoError(t, export(ctx))
			assert.Equal(t, 2, tries)
			assert.Len(t, r.Requests(), 3)
			assert.Len(t, r.All(), 6)

			r.Answer(nil)
			r.Stop()
			away, give := context.WithTimeout(ctx, 100*time.Millisecond)
			require.Error(t, export(away))
			give()
			require.NoError(t, r.Restart())
			require.NoError(t, export(ctx))
			require.NoError(t, r.AwaitRequests(ctx, 4))

			r.Answer(func(*Request) Answer { return Accept().When(nil) })
			require.NoError(t, export(ctx), "a nil channel does not wait")
			r.Answer(func(*Request) Answer { return Accept().When(make(chan struct{})) })
			slow, hurry := context.WithTimeout(ctx, 100*time.Millisecond)
			require.Error(t, export(slow))
			hurry()
		})
	}
}

// A message behind the bound is refused, and that is not worth trying again.
func TestReceiverBound(t *testing.T) {
	for _, protocol := range []string{GRPC, HTTP} {
		t.Run(protocol, func(t *testing.T) {
			r, err := Start(Options{Protocol: protocol, MaxBytes: 64})
			require.NoError(t, err)
			defer r.Close()
			require.Error(t, client(t.Context(), t, r, nil, nil)(t.Context()))
			assert.Empty(t, r.All())
		})
	}
}

func client(ctx context.Context, t *testing.T, r *Receiver, authority *Authority,
	headers map[string]string) func(context.Context) error {
	t.Helper()
	var cfg *tls.Config
	if authority != nil {
		ca, cert, key, err := authority.WriteFiles(t.TempDir(), "node1")
		require.NoError(t, err)
		pair, err := tls.LoadX509KeyPair(cert, key)
		require.NoError(t, err)
		pem, err := os.ReadFile(ca)
		require.NoError(t, err)
		cfg = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool()}
		require.True(t, cfg.RootCAs.AppendCertsFromPEM(pem))
	}
	var exporter metric.Exporter
	var err error
	if r.opts.Protocol == HTTP {
		opts := []otlpmetrichttp.Option{
			otlpmetrichttp.WithEndpointURL(r.URL() + "/v1/metrics"), otlpmetrichttp.WithHeaders(headers),
			otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression),
			otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond,
				MaxInterval: time.Millisecond}),
		}
		if cfg != nil {
			opts = append(opts, otlpmetrichttp.WithTLSClientConfig(cfg))
		}
		exporter, err = otlpmetrichttp.New(ctx, opts...)
	} else {
		opts := []otlpmetricgrpc.Option{
			otlpmetricgrpc.WithEndpoint(r.Addr()), otlpmetricgrpc.WithHeaders(headers),
			otlpmetricgrpc.WithCompressor("gzip"),
			otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: time.Millisecond,
				MaxInterval: time.Millisecond}),
		}
		if cfg != nil {
			opts = append(opts, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(cfg)))
		} else {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		exporter, err = otlpmetricgrpc.New(ctx, opts...)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = exporter.Shutdown(context.WithoutCancel(ctx)) })
	return func(ctx context.Context) error {
		return exporter.Export(ctx,
			&metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{
				{Name: "mpit.calls", Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality,
					IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{{Value: 1}, {Value: 2}}}},
				{Name: "a long name of a metric that does not stand in the way of a bound of 64 bytes",
					Data: metricdata.Gauge[float64]{}},
			}}}})
	}
}
