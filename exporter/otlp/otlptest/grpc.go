package otlptest

import (
	"context"
	"net"
	"strings"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // lets clients compress
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

type grpcServer struct {
	collector.UnimplementedMetricsServiceServer

	receiver *Receiver
	end      <-chan struct{}
	server   *grpc.Server
	served   chan struct{}
}

func serveGRPC(r *Receiver, listener net.Listener, end <-chan struct{}) server {
	opts := []grpc.ServerOption{grpc.MaxRecvMsgSize(r.opts.MaxBytes), grpc.StatsHandler(measurer{}),
		grpc.WaitForHandlers(true)}
	if r.opts.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(r.opts.TLS)))
	}
	s := &grpcServer{receiver: r, end: end, server: grpc.NewServer(opts...), served: make(chan struct{})}
	collector.RegisterMetricsServiceServer(s.server, s)
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // ends with stop
	}()
	return s
}

func (s *grpcServer) shut() {
	timer := time.AfterFunc(grace, s.server.Stop)
	defer timer.Stop()
	s.server.GracefulStop()
	<-s.served
}

func (s *grpcServer) kill() {
	s.server.Stop()
	<-s.served
}

// Export is the service.
func (s *grpcServer) Export(ctx context.Context,
	message *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	request := &Request{Message: message, Header: map[string][]string{}}
	if header, ok := metadata.FromIncomingContext(ctx); ok {
		request.Header = header
	}
	if m, ok := ctx.Value(measureKey{}).(*measure); ok {
		request.Bytes, request.WireBytes, request.Encoding = m.bytes, m.wire, m.encoding
	}
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			request.Client = info.State.PeerCertificates[0].Subject.CommonName
		}
	}
	answer := s.receiver.take(ctx, s.end, request)
	switch {
	case answer.unauthenticated:
		return nil, status.Error(codes.Unauthenticated, answer.message)
	case answer.refused && answer.retry:
		code := codes.ResourceExhausted
		if answer.unavailable {
			code = codes.Unavailable
		}
		st, err := status.New(code,
			answer.message).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(answer.after)})
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		return nil, st.Err()
	case answer.refused:
		return nil, status.Error(codes.InvalidArgument, answer.message)
	}
	return response(answer), nil
}

// response is what is said of an accepted request.
func response(answer Answer) *collector.ExportMetricsServiceResponse {
	if answer.rejected == 0 && answer.message == "" {
		return &collector.ExportMetricsServiceResponse{}
	}
	return &collector.ExportMetricsServiceResponse{PartialSuccess: &collector.ExportMetricsPartialSuccess{
		RejectedDataPoints: answer.rejected, ErrorMessage: answer.message,
	}}
}

// measurer notes the size of each message.
type measurer struct{}

type measureKey struct{}

type measure struct {
	bytes, wire int
	encoding    string
}

// TagRPC gives a call a place to write to.
func (measurer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, measureKey{}, &measure{})
}

// HandleRPC is called in the call's goroutine, before the service.
func (measurer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	m, ok := ctx.Value(measureKey{}).(*measure)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.InHeader:
		m.encoding = strings.TrimPrefix(s.Compression, "identity")
	case *stats.InPayload:
		m.bytes, m.wire = s.Length, s.CompressedLength
	}
}

// TagConn tags nothing.
func (measurer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn ignores connections.
func (measurer) HandleConn(context.Context, stats.ConnStats) {}
