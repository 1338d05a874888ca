package otlp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// metricsPath is where receivers take metrics over HTTP.
const metricsPath = "/v1/metrics"

// The specification's defaults.
const (
	defaultGRPC = "http://localhost:4317"
	defaultHTTP = "http://localhost:4318" + metricsPath
)

// httpEndpoint follows the specification's rules of paths: the general variable is a base to which /v1/metrics is
// added, that of metrics is taken as it is. A field is taken as it is, too, but no path means /v1/metrics there.
func httpEndpoint(v setting) (endpoint, error) {
	if v.text == "" {
		v.text, v.field = defaultHTTP, true
	}
	u, err := parseURL(v, "http://collector:4318")
	if err != nil {
		return endpoint{}, err
	}
	switch {
	case v.all && !v.field:
		if u.Path == "" {
			u.Path = "/" // what is joined to nothing is a relative path
		}
		u = u.JoinPath(metricsPath)
	case v.field && (u.Path == "" || u.Path == "/"):
		u.Path = metricsPath
	case u.Path == "":
		u.Path = "/"
	}
	e := endpoint{url: u, plain: u.Scheme == "http", user: u.User, name: v.name}
	u.User = nil
	e.shown = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	return e, nil
}

// grpcEndpoint takes a URL, or whatever gRPC takes as a target, for which insecure says whether there is TLS.
func grpcEndpoint(v setting, insecure bool) (endpoint, error) {
	if v.text == "" {
		v.text = defaultGRPC
	}
	scheme, rest, hasScheme := strings.Cut(v.text, ":")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "http" || scheme == "https":
		u, err := parseURL(v, "http://collector:4317")
		switch {
		case err != nil:
			return endpoint{}, err
		case u.Path != "" && u.Path != "/" || u.RawQuery != "":
			return endpoint{}, fmt.Errorf("%s: gRPC has no paths: write %s://%s, or set the protocol to %s", v.name,
				u.Scheme, u.Host, ProtocolHTTP)
		}
		host := u.Host
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		return endpoint{target: "dns:///" + host, plain: u.Scheme == "http", user: u.User,
			shown: u.Scheme + "://" + host, name: v.name}, nil
	case hasScheme && (scheme == "unix" || scheme == "unix-abstract"):
		return endpoint{target: v.text, plain: true, shown: v.text, name: v.name}, nil
	case strings.Contains(v.text, "@"):
		return endpoint{}, fmt.Errorf("%s has a user in what is no URL: write http://user:password@collector:4317, "+
			"or https:// with TLS", v.name)
	case hasScheme && strings.HasPrefix(rest, "//") && resolver.Get(scheme) != nil:
		return endpoint{target: v.text, plain: insecure, shown: v.text, name: v.name}, nil
	}
	host, port, err := net.SplitHostPort(v.text)
	if err != nil || host == "" || !validPort(port) {
		return endpoint{}, v.wrong("is neither a URL nor host:port: write http://collector:4317, or https:// with TLS")
	}
	return endpoint{target: "dns:///" + v.text, plain: insecure, shown: v.text, name: v.name}, nil
}

// parseURL takes http and https. Errors do not repeat what may hold a password.
func parseURL(v setting, example string) (*url.URL, error) {
	u, err := url.Parse(v.text)
	switch {
	case err != nil:
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err
		}
		// What is quoted may be of a password: with a / in it, it is taken for a port.
		why, _, _ := strings.Cut(err.Error(), `"`)
		return nil, fmt.Errorf("%s is no URL (%s): write one like %s, with %%2F, %%23, %%3F and %%25 for /, #, ? "+
			"and %% in a password", v.name, strings.TrimSpace(why), example)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s is no URL that begins with http:// or https://: write one like %s", v.name, example)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host: write a URL like %s", v.name, example)
	case u.Port() != "" && !validPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return nil, fmt.Errorf("%s has no port from 1 to 65535 after the colon: write a URL like %s", v.name, example)
	case u.Fragment != "":
		return nil, fmt.Errorf("%s has a # in it, which no server sees: write %%23, or leave it out", v.name)
	}
	return u, nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func basic(user *url.Userinfo) string {
	password, _ := user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
}
