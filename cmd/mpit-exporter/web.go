package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" // also adds itself to the default mux, which is not served
	"net/url"
	"os"
	pathpkg "path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
)

// How long a client may take. A scrape's own deadline is shorter; the write timeout bounds a client that does not read.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 2 * time.Minute
	idleTimeout       = 3 * time.Minute // longer than usual scrape intervals, so that connections are kept
	maxHeaderBytes    = 16 << 10
)

// newServer returns a server whose every wait ends, and that has only so many connections.
func newServer(handler http.Handler, conns *connections, logger *slog.Logger) *http.Server {
	return &http.Server{
		ConnState:         conns.state,
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog: log.New(&repeats{
			to:    slog.NewLogLogger(logger.Handler(), slog.LevelWarn).Writer(),
			now:   time.Now,
			kinds: map[string]*repeated{},
		}, "", 0),
	}
}

// listenWeb opens all addresses, or takes what systemd hands over. The addresses are opened here and not by the toolkit,
// because who asks for port 0 wants to know which one it became.
func listenWeb(flags *web.FlagConfig) (listeners []net.Listener, err error) {
	if *flags.WebSystemdSocket {
		listeners, err = activation.Listeners()
		if err == nil && len(listeners) == 0 {
			err = errors.New("systemd has handed over no socket; start from a .socket unit or leave --web.systemd-socket out")
		}
		return listeners, err
	}
	defer func() {
		if err != nil {
			closeAll(listeners)
			listeners = nil
		}
	}()
	for _, address := range *flags.WebListenAddresses {
		l, err := listenAddress(address)
		if err != nil {
			return listeners, listenError(address, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func listenAddress(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "vsock://") {
		return net.Listen("tcp", address)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(u.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", address, err)
	}
	return vsock.Listen(uint32(port), nil)
}

// listenError says which address could not be opened, why, and what to do.
func listenError(address string, err error) error {
	const remedy = "choose another address with --web.listen-address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the address is in use; stop what holds it or %s", address, remedy)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: permission denied; %s", address, remedy)
	}
	return fmt.Errorf("cannot listen on %s: %w; %s", address, err, remedy)
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// writeAddresses writes the addresses of the listeners into a file, one in a line, so that a reader never sees half of it.
func writeAddresses(path string, listeners []net.Listener) error {
	var b strings.Builder
	for _, l := range listeners {
		fmt.Fprintln(&b, l.Addr())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".mpit-exporter-*")
	if err != nil {
		return fmt.Errorf("--web.address-file: %w", err)
	}
	_, err = f.WriteString(b.String())
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("--web.address-file: %w", err)
	}
	return nil
}

// pages are what the server shows.
type pages struct {
	telemetryPath string
	metrics       http.Handler
	api           http.Handler
	ready         func() bool
	pprof         bool

	reload    func(context.Context) error // reads the rules anew, where lifecycle allows it
	lifecycle bool
}

// checkTelemetryPath refuses a path that cannot be served, or that something else stands under.
func checkTelemetryPath(path string) error {
	if u, err := url.Parse(path); err != nil || !strings.HasPrefix(path, "/") || u.Path != path || path != "/" && pathpkg.Clean(path) != strings.TrimSuffix(path, "/") || strings.ContainsAny(path, "{} \t") {
		return usageErrorf("--web.telemetry-path %q: a path such as /metrics is needed", path)
	}
	for _, taken := range []string{"/", "/-/", "/api/", "/debug/"} {
		if path == taken || (taken != "/" && strings.HasPrefix(path+"/", taken)) {
			return usageErrorf("--web.telemetry-path %q: something else is served there; choose another path, such as /metrics", path)
		}
	}
	return nil
}

// mux puts all pages together.
func (p pages) mux() (http.Handler, error) {
	links := []pageLink{
		{Address: p.telemetryPath, Text: "Metrics"},
		{Address: "/api/v1/ranks", Text: "Ranks", Description: "the MPI processes of this node, as JSON"},
		{Address: "/api/v1/catalogue", Text: "Catalogue", Description: "performance and control variables and categories of their MPI libraries, and their MPI objects, as JSON"},
		{Address: "/api/v1/kept", Text: "Kept", Description: "what the processes kept at their last MPI_Pcontrol(2), as JSON"},
		{Address: "/api/v1/values", Text: "Values", Description: "what their performance variables are now, as JSON"},
		{Address: "/-/healthy", Text: "Health"},
		{Address: "/-/ready", Text: "Readiness"},
	}
	if p.pprof {
		links = append(links, pageLink{Address: "/debug/pprof/", Text: "Profiles"})
	}

	mux := http.NewServeMux()
	if err := servePage(mux, version.Info(), links); err != nil {
		return nil, err
	}
	mux.Handle(p.telemetryPath, p.metrics)
	mux.Handle("/api/v1/", p.api)
	mux.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "healthy") })
	mux.HandleFunc("/-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if p.ready() {
			say(w, http.StatusOK, "ready")
			return
		}
		say(w, http.StatusServiceUnavailable, "not ready")
	})
	mux.HandleFunc("/-/reload", p.serveReload)
	if p.pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return refuseOtherSites(mux), nil
}

// refuseOtherSites keeps the pages of other sites from changing anything through somebody's browser, which may reach this
// port and know the password where they can't. Only browsers say where a request comes from: others are let through.
func refuseOtherSites(handler http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusForbidden, "a page of another site may not change anything here; "+
			"use curl -X POST, or send the exporter SIGHUP to reload")
	}))
	return protection.Handler(handler)
}

// serveReload answers when the new rules are in force, or says what is wrong with them.
func (p pages) serveReload(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		say(w, http.StatusMethodNotAllowed, "only POST reads the rules anew")
		return
	case !p.lifecycle:
		say(w, http.StatusForbidden, "reloading over HTTP is not enabled; start the exporter with --web.enable-lifecycle, or send it SIGHUP")
		return
	}
	if err := p.reload(req.Context()); err != nil {
		say(w, http.StatusInternalServerError, "the old rules stay in force:\n"+err.Error())
		return
	}
	say(w, http.StatusOK, "the new rules are in force")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
