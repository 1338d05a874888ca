package otlp

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"google.golang.org/grpc/resolver"
)

// metricsPath is where receivers take metrics over HTTP.
const metricsPath = "/v1/metrics"

// readURL follows the specification's rules of paths over HTTP: the general variable is a base to which /v1/metrics is
// added, that of metrics is taken as it is. A field is taken as it is, too, but no path means /v1/metrics there.
func (s *settings) readURL(v setting) (*url.Userinfo, error) {
	v.text = cmp.Or(v.text, "http://localhost:4318")
	u, err := parseURL(v, "http://collector:4318")
	if err != nil {
		return nil, err
	}
	user := u.User
	u.User, u.Path = nil, cmp.Or(u.Path, "/") // what is joined to nothing is a relative path
	switch {
	case v.all:
		u = u.JoinPath(metricsPath)
	case v.field && u.Path == "/":
		u.Path = metricsPath
	}
	shown := *u
	shown.RawQuery = ""
	s.url, s.shown, s.plain = u, shown.String(), u.Scheme == "http"
	return user, nil
}

// readTarget takes a URL, or whatever gRPC takes as a target, for which s.plain says whether there is TLS.
func (s *settings) readTarget(v setting) (*url.Userinfo, error) {
	v.text = cmp.Or(v.text, "http://localhost:4317")
	scheme, rest, _ := strings.Cut(strings.ToLower(v.text), ":")
	if scheme == "http" || scheme == "https" {
		u, err := parseURL(v, "http://collector:4317")
		switch {
		case err != nil:
			return nil, err
		case u.Path != "" && u.Path != "/" || u.RawQuery != "":
			return nil, fmt.Errorf("%s: gRPC has no paths: write %s://%s, or set the protocol to %s", v.name, u.Scheme,
				u.Host, ProtocolHTTP)
		case u.Port() == "":
			u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		s.target, s.shown, s.plain = "dns:///"+u.Host, u.Scheme+"://"+u.Host, u.Scheme == "http"
		return u.User, nil
	}
	withUser := strings.Contains(v.text, "@")
	_, port, err := net.SplitHostPort(v.text)
	s.target, s.shown = v.text, v.text
	switch {
	case scheme == "unix", scheme == "unix-abstract":
		s.plain = true
	case !withUser && strings.HasPrefix(rest, "//") && resolver.Get(scheme) != nil:
	case !withUser && err == nil && port != "":
		s.target = "dns:///" + v.text
	default:
		return nil, fmt.Errorf("%s is neither a URL nor host:port: write one like http://collector:4317, or https:// "+
			"with TLS", v.name)
	}
	return nil, nil
}

// parseURL takes http and https. The error does not repeat what may hold a password.
func parseURL(v setting, example string) (*url.URL, error) {
	u, err := url.Parse(v.text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s is no URL that begins with http:// or https:// and a host: write one like %s, with "+
			"%%2F, %%23, %%3F and %%25 for /, #, ? and %% in a password", v.name, example)
	}
	return u, nil
}
