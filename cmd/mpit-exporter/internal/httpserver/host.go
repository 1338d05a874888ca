package httpserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"
)

// lookupTime is how long the node's full name is looked for when the exporter starts.
const lookupTime = time.Second

// ownNames are those by which a node is known: the short and the full one. It may ask the name service.
func ownNames(ctx context.Context) []string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return nil
	}
	short, _, full := strings.Cut(name, ".")
	names := []string{name, short}
	if !full {
		ctx, cancel := context.WithTimeout(ctx, lookupTime)
		defer cancel()
		if name, err := net.DefaultResolver.LookupCNAME(ctx, name); err == nil &&
			strings.HasPrefix(plainName(name), plainName(short)+".") {
			names = append(names, name)
		}
	}
	return names
}

// plainName is a name as it is compared.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// knownHosts serves requests for hosts of these names, of localhost and of any address. A page of another site could
// ask for anything else by having its own name resolve to this node, and a browser would take the exporter for that
// site then. except is the path that is served whatever the name: there is nothing there that a site could misuse, and
// scrapers may come by any.
func knownHosts(next http.Handler, except string, names []string, refuse func()) http.Handler {
	known := map[string]bool{"localhost": true}
	for _, name := range names {
		known[plainName(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		// No browser leaves the host out, but a check of health in HTTP/1.0 may.
		if err == nil || host == "" || known[plainName(host)] || req.URL.Path == except {
			next.ServeHTTP(w, req)
			return
		}
		refuse()
		say(w, http.StatusMisdirectedRequest, fmt.Sprintf("%q is no name of this node that the exporter knows; use the "+
			"node's address or host name, or start the exporter with --web.allowed-host for this name", host))
	})
}
