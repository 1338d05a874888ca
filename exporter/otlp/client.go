package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Waits between the repetitions of one message, doubling, at random around these, within its timeout. A receiver that
// says how long to wait is obeyed.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Second
)

// newGRPC and newHTTP return one of the SDK's exporters, which does not connect yet. All that it would take from the
// environment is given to it, so that it reads and, above all, reports nothing by itself: its errors go to a handler
// that is the whole process'.
func newGRPC(ctx context.Context, s *settings, retry time.Duration) (sdk.Exporter, error) {
	credential, compressor := insecure.NewCredentials(), encoding.Identity
	if s.tls != nil {
		credential = credentials.NewTLS(s.tls)
	}
	if s.gzip {
		compressor = gzip.Name
	}
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = retry, lastRetry
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(s.target), otlpmetricgrpc.WithHeaders(s.headers),
		otlpmetricgrpc.WithDialOption(grpc.WithUserAgent(s.userAgent()), grpc.WithUnaryInterceptor(listen),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: s.timeout}),
			grpc.WithTransportCredentials(credential), grpc.WithDefaultCallOptions(grpc.UseCompressor(compressor))),
		otlpmetricgrpc.WithTimeout(s.timeout), otlpmetricgrpc.WithMaxRequestSize(receiversLimit),
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: retry,
			MaxInterval: lastRetry, MaxElapsedTime: s.timeout}))
}

// listen is an interceptor of gRPC calls that has them connect at once, and notes what the receiver says.
func listen(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	// It has grown during an outage. How often a message is tried the SDK bounds.
	conn.ResetConnectBackoff()
	err := call(ctx, method, request, response, conn, opts...)
	if said, ok := response.(*collector.ExportMetricsServiceResponse); ok && err == nil {
		note(ctx, said)
	}
	return err
}

// partial is what a receiver has said of a message that it has accepted in part. The SDK's exporters turn it into the
// text of an error; so it is taken from what the transport carries.
type partial = collector.ExportMetricsPartialSuccess

type partialKey struct{}

// note moves what the receiver has said from its response to the message's context.
func note(ctx context.Context, response *collector.ExportMetricsServiceResponse) {
	if to, ok := ctx.Value(partialKey{}).(*partial); ok && response.PartialSuccess != nil {
		proto.Merge(to, response.PartialSuccess)
	}
	response.PartialSuccess = nil
}

type httpExporter struct {
	*otlpmetrichttp.Exporter
	client *http.Client
}

// Shutdown also closes the connections, which the SDK does not.
func (e *httpExporter) Shutdown(ctx context.Context) error {
	e.client.CloseIdleConnections()
	return e.Exporter.Shutdown(ctx)
}

func newHTTP(ctx context.Context, s *settings, retry time.Duration) (sdk.Exporter, error) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: s.timeout}).DialContext,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: s.timeout,
		TLSClientConfig:     s.tls,
	}
	client := &http.Client{
		Transport: &listener{transport, s.url, s.userAgent()},
		// headers may be passwords
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	compression := otlpmetrichttp.NoCompression
	if s.gzip {
		compression = otlpmetrichttp.GzipCompression
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithHTTPClient(client),
		otlpmetrichttp.WithTLSClientConfig(nil), otlpmetrichttp.WithEndpointURL(s.url.String()),
		otlpmetrichttp.WithHeaders(s.headers), otlpmetrichttp.WithMaxRequestSize(receiversLimit),
		otlpmetrichttp.WithCompression(compression),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: retry,
			MaxInterval: lastRetry, MaxElapsedTime: s.timeout}))
	return &httpExporter{exporter, client}, err
}

// listener sends to exactly the URL that was asked for, which the SDK does not take whole, and notes what the
// receiver says.
type listener struct {
	*http.Transport
	url  *url.URL
	name string
}

// maxResponse is more than a receiver has to say.
const maxResponse = 1 << 20

// RoundTrip makes failures of the connection worth repeating, as they are over gRPC.
func (l *listener) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := request.Clone(request.Context())
	sent.URL = l.url
	sent.Header.Set("User-Agent", l.name)
	response, err := l.Transport.RoundTrip(sent)
	if err != nil {
		return nil, unreachable{err}
	}
	if response.StatusCode/100 != 2 {
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	_ = response.Body.Close() // it has been read
	if err != nil {
		return nil, unreachable{err}
	}
	response.Body, response.ContentLength = http.NoBody, 0
	said, err := parse(response.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %s, but %w", errNotOTLP, response.Status, err)
	}
	note(request.Context(), said)
	return response, nil
}

// errNotOTLP is that what has answered is no receiver: a page for logging in has status 200, too.
var errNotOTLP = errors.New("this is no answer of a receiver of OTLP")

// parse reads the body of an answer that says success: that of the protocol, as protobuf or JSON, or nothing at all.
func parse(kind string, body []byte) (*collector.ExportMetricsServiceResponse, error) {
	said := &collector.ExportMetricsServiceResponse{}
	media, _, err := mime.ParseMediaType(kind)
	switch {
	case len(body) == 0:
		return said, nil
	case err == nil && media == "application/x-protobuf":
		err = proto.Unmarshal(body, said)
	case err == nil && media == "application/json":
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, said)
	default:
		return nil, fmt.Errorf("of type %.100q", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	return said, nil
}

// unreachable is an error that the SDK repeats.
type unreachable struct{ error }

// Temporary is asked for by net/url.Error.
func (u unreachable) Temporary() bool { return true }
func (u unreachable) Unwrap() error   { return u.error }

func (s *settings) userAgent() string { return strings.TrimSuffix(serviceName+"/"+s.Version, "/") }

// maxSaid is how much of what a receiver says is repeated, in bytes: it may answer with anything, such as pages of
// HTML.
const maxSaid = 2 << 10

func bounded(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + "…"
}
