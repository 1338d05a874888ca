package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
)

// permanent says whether waiting won't help against a failure of the connection.
func permanent(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &verification) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "remote error: tls: ") || errors.Is(err, context.Canceled)
}

// advice is what to do about a failed message that has one of these statuses, or an error with one of these texts.
type advice struct {
	http  []int
	grpc  []codes.Code
	texts []string
	only  func(cfg *Config) bool // nil: whatever the settings
	do    string
}

func (a *advice) fits(cfg *Config, r *reply, text string) bool {
	has := func(part string) bool { return strings.Contains(text, part) }
	return (slices.Contains(a.http, r.http) || slices.Contains(a.grpc, r.grpc) || slices.ContainsFunc(a.texts, has)) &&
		(a.only == nil || a.only(cfg))
}

func plain(cfg *Config) bool     { return cfg.done.tls == nil }
func anonymous(cfg *Config) bool { return cfg.done.tls != nil && cfg.ClientCert == "" }
func overGRPC(cfg *Config) bool  { return cfg.Protocol == ProtocolGRPC }
func overHTTP(cfg *Config) bool  { return cfg.Protocol == ProtocolHTTP }

const clientCertificate = general + "CLIENT_CERTIFICATE and " + general + "CLIENT_KEY"

var hangsUp = []string{"broken pipe", "connection reset by peer", "EOF"}

// advices are in order: the first that fits is given.
var advices = []advice{
	{texts: []string{errNotOTLP.Error()},
		do: "another program answers there: check host, port and path, and whether a proxy wants a login"},
	{http: []int{http.StatusUnauthorized, http.StatusForbidden},
		grpc: []codes.Code{codes.Unauthenticated, codes.PermissionDenied},
		do:   "the receiver wants other credentials: set them as a header, " + general + "HEADERS"},
	{http: []int{http.StatusNotFound, http.StatusMethodNotAllowed},
		do: "the receiver does not take metrics at this path: most do at " + metricsPath},
	{grpc: []codes.Code{codes.Unimplemented},
		do: "the receiver takes no metrics over gRPC: try the protocol " + ProtocolHTTP},
	{http: []int{300, 301, 302, 303, 304, 305, 306, 307, 308},
		do: "write the address that the receiver points to; it is not followed, as headers may be passwords"},
	{http: []int{http.StatusRequestEntityTooLarge}, texts: []string{"larger than max"},
		do: "let the receiver take messages of 4 MiB, measured before compression"},
	{texts: []string{"certificate signed by unknown authority"},
		do: "name the authority that has signed the receiver's certificate in " + general + "CERTIFICATE"},
	{texts: []string{"certificate is valid for", "doesn't contain any IP SANs"},
		do: "write the endpoint with a name that the receiver's certificate is for"},
	{texts: []string{"certificate required", "bad certificate"},
		do: "the receiver wants a client's certificate: set " + clientCertificate},
	{texts: []string{"HTTP request to an HTTPS", "plain HTTP request was sent to HTTPS port",
		`malformed HTTP response "\x15\x03`}, // the last: an alert of TLS
		do: "the receiver wants TLS: write https:// instead of http://"},
	{texts: hangsUp, only: plain,
		do: "the receiver hangs up on what is not encrypted: if it wants TLS, write https:// instead of http://"},
	{texts: hangsUp, only: anonymous,
		do: "the receiver hangs up: if it wants a client's certificate, set " + clientCertificate},
	{texts: []string{"server gave HTTP response to HTTPS client", "first record does not look like a TLS handshake"},
		do: "the receiver does without TLS: write http:// instead of https://"},
	{texts: []string{"error reading server preface", "unexpected HTTP status code", "unexpected content-type"},
		only: overGRPC,
		do: "this is no gRPC, perhaps the port of HTTP (usually 4318; gRPC's is 4317): set the protocol to " +
			ProtocolHTTP},
	// The second is what net/http says if the answer comes before the request has been sent.
	{texts: []string{"malformed HTTP response", "readLoopPeekFailLocked"}, only: overHTTP,
		do: "this is no HTTP/1.1, perhaps the port of gRPC (usually 4317; HTTP's is 4318): set the protocol to " +
			ProtocolGRPC},
	{texts: []string{"connection refused"},
		do: "nobody listens there: is the receiver running, and is this its port?"},
	{texts: []string{"no such host", "name resolver error", "produced zero addresses"},
		do: "the host's name is not known here: check the endpoint"},
	{http: []int{http.StatusBadRequest}, grpc: []codes.Code{codes.InvalidArgument},
		do: "the receiver understands but refuses the data: see its log"},
}

// remedy is what to do about a failed message.
func remedy(cfg *Config, r *reply, err error) string {
	text := err.Error()
	for i := range advices {
		if a := &advices[i]; a.fits(cfg, r, text) {
			return a.do
		}
	}
	return "nothing is lost if the receiver comes back: totals are sent again with the next push"
}
