package otlp

import (
	"context"
	"crypto/tls"
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
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Waits between the repetitions of one message, doubling, at random around these, within Config.Timeout. A receiver
// that says how long to wait is obeyed.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Second
)

// sender sends messages with one of the SDK's exporters, one at a time.
type sender struct {
	export  func(context.Context, *metricdata.ResourceMetrics) error
	close   func(context.Context) error
	prepare func() // before the first message of a push
}

// reply is what the receiver has said of a message, as far as it said anything. The SDK's exporters turn it into the
// text of an error, even where the message was accepted in part; so it is taken from what the transport carries.
type reply struct {
	http     int        // status of the last answer, 0: none
	grpc     codes.Code // the same; OK: accepted, or none
	rejected int64      // points that were not taken, of an accepted message
	message  string     // why; with none rejected, a warning
	failure  error      // of the last attempt that failed for another reason than that its time was over
}

type replyKey struct{}

// send returns the receiver's last word. A message accepted in part is no error. Where the time was over in the midst
// of a repetition, the error says what the attempt before had met.
func (s *sender) send(ctx context.Context, rm *metricdata.ResourceMetrics) (*reply, error) {
	r := &reply{}
	err := s.export(context.WithValue(ctx, replyKey{}, r), rm)
	if err != nil && r.failure != nil && !strings.Contains(err.Error(), r.failure.Error()) {
		err = fmt.Errorf("%w; before that: %w", err, r.failure)
	}
	r.message = bounded(r.message)
	if err != nil && len(err.Error()) > maxSaid {
		err = boundedError{err}
	}
	return r, err
}

// maxSaid is how much of what a receiver says is repeated, in bytes: it may answer with anything, such as pages of
// HTML.
const maxSaid = 2 << 10

func bounded(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + "…"
}

// boundedError has the beginning of an error's text.
type boundedError struct{ error }

func (e boundedError) Error() string { return bounded(e.error.Error()) }
func (e boundedError) Unwrap() error { return e.error }

// failed notes why an attempt has failed.
func (r *reply) failed(err error) {
	*r = reply{failure: r.failure}
	if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Canceled &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		r.failure = err
	}
}

// understood takes the receiver's word out of its response.
func (r *reply) understood(response *collector.ExportMetricsServiceResponse) {
	r.rejected, r.message = response.GetPartialSuccess().GetRejectedDataPoints(),
		response.GetPartialSuccess().GetErrorMessage()
	response.PartialSuccess = nil
}

// ofThisMessage says whether the receiver is there and only does not like this message, so that the next may fare
// better.
func (r *reply) ofThisMessage() bool {
	switch r.http {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError:
		return true
	}
	switch r.grpc {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Internal, codes.Unknown, codes.ResourceExhausted:
		return true
	}
	return false
}

// newSender does not connect yet. All that the SDK would take from the environment is given to it, so that it reads
// and, above all, reports nothing by itself: its errors go to a handler that is the whole process'.
func newSender(ctx context.Context, cfg Config, retry time.Duration) (*sender, error) {
	if cfg.Protocol == ProtocolGRPC {
		return newGRPC(ctx, cfg, retry)
	}
	return newHTTP(ctx, cfg, retry)
}

func newGRPC(ctx context.Context, cfg Config, retry time.Duration) (*sender, error) {
	opts := []grpc.DialOption{
		grpc.WithUserAgent(userAgent(cfg)),
		grpc.WithUnaryInterceptor(listen),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: retry, Multiplier: backoff.DefaultConfig.Multiplier,
				Jitter: backoff.DefaultConfig.Jitter, MaxDelay: lastRetry},
			MinConnectTimeout: cfg.Timeout,
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
	if cfg.done.tls != nil {
		opts = append(opts, grpc.WithTransportCredentials(credentials.NewTLS(cfg.done.tls)))
	}
	if cfg.Compression == CompressionGzip {
		opts = append(opts, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	conn, err := grpc.NewClient(cfg.done.endpoint.target, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.done.endpoint.name, err)
	}
	exporter, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithGRPCConn(conn),
		otlpmetricgrpc.WithHeaders(cfg.done.headers),
		otlpmetricgrpc.WithTimeout(cfg.Timeout), otlpmetricgrpc.WithMaxRequestSize(receiversLimit),
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: true, InitialInterval: retry,
			MaxInterval: lastRetry, MaxElapsedTime: cfg.Timeout}))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &sender{
		export: exporter.Export,
		close: func(ctx context.Context) error {
			return errors.Join(exporter.Shutdown(ctx), conn.Close())
		},
		prepare: conn.ResetConnectBackoff, // grown during an outage; pushes are seldom enough
	}, nil
}

// listen is an interceptor of gRPC calls that notes what the receiver says.
func listen(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	err := call(ctx, method, request, response, conn, opts...)
	if r, ok := ctx.Value(replyKey{}).(*reply); ok {
		if err != nil {
			r.failed(err)
		}
		r.grpc = status.Code(err)
		if said, ok := response.(*collector.ExportMetricsServiceResponse); ok && err == nil {
			r.understood(said)
		}
	}
	return err
}

func newHTTP(ctx context.Context, cfg Config, retry time.Duration) (*sender, error) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: cfg.Timeout, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        2,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: cfg.Timeout,
		TLSClientConfig:     cfg.done.tls,
	}
	at := cfg.done.endpoint.url
	client := &http.Client{
		Transport: &listener{transport, at, userAgent(cfg)},
		Timeout:   cfg.Timeout,
		// headers may be passwords
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	opts := []otlpmetrichttp.Option{
		otlpmetrichttp.WithHTTPClient(client), otlpmetrichttp.WithTLSClientConfig(nil),
		otlpmetrichttp.WithEndpoint(at.Host),
		otlpmetrichttp.WithURLPath(at.Path), otlpmetrichttp.WithHeaders(cfg.done.headers),
		otlpmetrichttp.WithTimeout(cfg.Timeout),
		otlpmetrichttp.WithMaxRequestSize(receiversLimit),
		otlpmetrichttp.WithCompression(otlpmetrichttp.NoCompression),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: retry,
			MaxInterval: lastRetry, MaxElapsedTime: cfg.Timeout}),
	}
	if cfg.Compression == CompressionGzip {
		opts = append(opts, otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	}
	if cfg.done.endpoint.plain {
		opts = append(opts, otlpmetrichttp.WithInsecure())
	}
	exporter, err := otlpmetrichttp.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return &sender{
		export: exporter.Export,
		close: func(ctx context.Context) error {
			transport.CloseIdleConnections()
			return exporter.Shutdown(ctx)
		},
		prepare: func() {},
	}, nil
}

// listener sends to exactly the URL that was asked for, which the SDK does not take whole, and notes what the
// receiver says.
type listener struct {
	base http.RoundTripper
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
	response, err := l.base.RoundTrip(sent)
	r, ok := request.Context().Value(replyKey{}).(*reply)
	switch {
	case err != nil:
		if ok {
			r.failed(err)
		}
		return nil, unreachable{err}
	case !ok:
		return response, nil
	}
	*r = reply{http: response.StatusCode, failure: r.failure}
	if response.StatusCode/100 != 2 {
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	_ = response.Body.Close() // it has been read
	if err != nil {
		return nil, unreachable{err}
	}
	response.Body, response.ContentLength = http.NoBody, 0
	said, err := parse(response.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %s, but %w", errNotOTLP, response.Status, err)
	}
	r.understood(said)
	return response, nil
}

// errNotOTLP is that what has answered is no receiver: a page for logging in has status 200, too.
var errNotOTLP = errors.New("this is no answer of a receiver of OTLP")

// parse reads the body of an answer that says success: that of the protocol, as protobuf or JSON, or nothing at all.
func parse(kind string, body []byte) (*collector.ExportMetricsServiceResponse, error) {
	said := &collector.ExportMetricsServiceResponse{}
	media, _, err := mime.ParseMediaType(kind)
	switch {
	case len(body) > maxResponse:
		return nil, fmt.Errorf("with more than %d MiB", maxResponse>>20)
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
func (u unreachable) Temporary() bool { return !permanent(u.error) }
func (u unreachable) Unwrap() error   { return u.error }

// permanent says whether waiting won't help against a failure of the connection.
func permanent(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &verification) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "remote error: tls: ") || errors.Is(err, context.Canceled)
}

func userAgent(cfg Config) string {
	if cfg.Version == "" {
		return serviceName
	}
	return serviceName + "/" + cfg.Version
}
