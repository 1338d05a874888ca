package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
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

// remedy is what to do about a failed message.
func remedy(cfg Config, r *reply, err error) string {
	text := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	hangsUp := []string{"broken pipe", "connection reset by peer", "EOF"}
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, errNotOTLP):
		return "another program answers there: check host, port and path, and whether a proxy wants a login"
	case r.http == http.StatusUnauthorized || r.http == http.StatusForbidden || r.grpc == codes.Unauthenticated ||
		r.grpc == codes.PermissionDenied:
		return "the receiver wants other credentials: set them as a header, " + general + "HEADERS"
	case r.http == http.StatusNotFound || r.http == http.StatusMethodNotAllowed:
		return "the receiver does not take metrics at this path: most do at " + metricsPath
	case r.grpc == codes.Unimplemented:
		return "the receiver takes no metrics over gRPC: try the protocol " + ProtocolHTTP
	case r.http/100 == 3:
		return "write the address that the receiver points to; it is not followed, as headers may be passwords"
	case r.http == http.StatusRequestEntityTooLarge || has("larger than max"):
		return "let the receiver take messages of 4 MiB, measured before compression"
	case errors.As(err, &authority) || has("certificate signed by unknown authority"):
		return "name the authority that has signed the receiver's certificate in " + general + "CERTIFICATE"
	case has("certificate is valid for", "doesn't contain any IP SANs"):
		return "write the endpoint with a name that the receiver's certificate is for"
	case has("certificate required", "bad certificate"):
		return "the receiver wants a client's certificate: set " + general + "CLIENT_CERTIFICATE and " + general +
			"CLIENT_KEY"
	case has("client sent an HTTP request to an HTTPS server", "HTTP request to an HTTPS",
		"plain HTTP request was sent to HTTPS port", `malformed HTTP response "\x15\x03`): // the last: an alert of TLS
		return "the receiver wants TLS: write https:// instead of http://"
	case cfg.done.tls == nil && has(hangsUp...):
		return "the receiver hangs up on what is not encrypted: if it wants TLS, write https:// instead of http://"
	case cfg.done.tls != nil && cfg.ClientCert == "" && has(hangsUp...):
		return "the receiver hangs up: if it wants a client's certificate, set " + general + "CLIENT_CERTIFICATE and " +
			general + "CLIENT_KEY"
	case has("server gave HTTP response to HTTPS client", "first record does not look like a TLS handshake"):
		return "the receiver does without TLS: write http:// instead of https://"
	case cfg.Protocol == ProtocolGRPC && has("error reading server preface", "unexpected HTTP status code",
		"unexpected content-type"):
		return "this is no gRPC, perhaps the port of HTTP (usually 4318; gRPC's is 4317): set the protocol to " +
			ProtocolHTTP
	// The second is what net/http says if the answer comes before the request has been sent.
	case cfg.Protocol == ProtocolHTTP && has("malformed HTTP response", "readLoopPeekFailLocked"):
		return "this is no HTTP/1.1, perhaps the port of gRPC (usually 4317; HTTP's is 4318): set the protocol to " +
			ProtocolGRPC
	case has("connection refused"):
		return "nobody listens there: is the receiver running, and is this its port?"
	case has("no such host", "name resolver error", "produced zero addresses"):
		return "the host's name is not known here: check the endpoint"
	case r.http == http.StatusBadRequest || r.grpc == codes.InvalidArgument:
		return "the receiver understands but refuses the data: see its log"
	}
	return "nothing is lost if the receiver comes back: totals are sent again with the next push"
}
