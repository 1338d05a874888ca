package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
)

// pageCommand serves the live page on a port of the user's own. It asks the control socket of this node's exporter,
// which tells it what this user may see.
type pageCommand struct {
	control client.Control
	listen  string
}

func newPageCommand(app *kingpin.Application, do commands) {
	c := &pageCommand{}
	do["page"] = c.run
	cmd := app.Command("page", "Serve the live page of this node's exporter on a port of your own, until Ctrl-C: of your "+
		"jobs where it is private. The address that it prints has a secret in it, as other users of the node can connect "+
		"to the port, too.")
	cmd.HelpLong("mpit-exporter page\nmpit-exporter page --listen=127.0.0.1:8080    # and ssh -L 8080:127.0.0.1:8080 NODE")
	cmd.Flag("listen", "Address to listen on; port 0 is a free one.").Default("127.0.0.1:0").StringVar(&c.listen)
	cmd.Flag("control.socket", client.SocketHelp).PlaceHolder("PATH").StringVar(&c.control.Socket)
}

// run serves until ctx ends.
func (c *pageCommand) run(ctx context.Context, std cli.Stdio) error {
	if err := c.control.Ask(ctx, http.MethodGet, "/api/v1/ranks", nil, func(text []byte) bool {
		return bytes.Contains(text, []byte(`"ranks":`))
	}); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	secret := rand.Text()
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("page: --listen: %w", err)
	}
	server := &http.Server{Handler: c.handler(secret), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(std.Out, "http://%s/%s/\n", listener.Addr(), secret)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// handler serves the page below a path that only its user knows. The exporter takes every request for this user's, and
// any user of the node may connect to the port: so may other sites through the user's browser.
func (c *pageCommand) handler(secret string) http.Handler {
	mux := http.NewServeMux()
	page.Serve(mux, version.Info(), cli.ProgramName+" exec --calls --", page.API())
	mux.Handle("GET /api/v1/", &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "control"}) },
		Transport: c.control.Transport(),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
		},
	})
	below := http.StripPrefix("/"+secret, mux)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		given, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 0 {
			http.Error(w, "open the whole address that mpit-exporter page has printed", http.StatusForbidden)
			return
		}
		below.ServeHTTP(w, req)
	})
}
