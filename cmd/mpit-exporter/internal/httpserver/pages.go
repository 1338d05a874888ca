package httpserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof" // also adds itself to the default mux, which is not served
	"net/url"
	pathpkg "path"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
)

// pages are what the server shows.
type pages struct {
	telemetryPath string
	names         []string // by which browsers may know this node, besides its addresses
	admission     *admission
	metrics       http.Handler
	api           http.Handler
	live          http.Handler
	ready         func() bool
	pprof         bool
	command       string                      // that starts programs whose ranks come here
	reload        func(context.Context) error // reads the rules anew; nil: nobody may ask for that
}

// CheckTelemetryPath refuses a path that cannot be served, or that something else stands under.
func CheckTelemetryPath(path string) error {
	u, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(path, "/") || u.Path != path || strings.ContainsAny(path, "{} \t") ||
		path != "/" && pathpkg.Clean(path) != strings.TrimSuffix(path, "/") {
		return cli.Usagef("--web.telemetry-path %q: a path such as /metrics is needed", path)
	}
	for _, taken := range []string{"/", "/-/", "/api/", "/debug/"} {
		if path == taken || (taken != "/" && strings.HasPrefix(path+"/", taken)) {
			return cli.Usagef("--web.telemetry-path %q: something else is served there; choose another path, such "+
				"as /metrics", path)
		}
	}
	return nil
}

// mux puts all pages together.
func (p pages) mux() (http.Handler, error) {
	links := []page.Link{
		{Address: p.telemetryPath, Text: "Metrics"},
		{Address: "/api/v1/jobs", Text: "Jobs", Description: "what is to be said of each job now, as JSON"},
		{Address: "/api/v1/report", Text: "Report", Description: "where their time goes, as JSON"},
		{Address: "/api/v1/ranks", Text: "Ranks", Description: "the MPI processes of this node, as JSON"},
		{Address: "/api/v1/catalogue", Text: "Catalogue",
			Description: "performance and control variables and categories of their MPI libraries, and their MPI " +
				"objects, as JSON"},
		{Address: "/api/v1/values", Text: "Values", Description: "what their performance variables are now, as JSON"},
		{Address: "/-/healthy", Text: "Health"},
		{Address: "/-/ready", Text: "Readiness"},
	}
	if p.pprof {
		links = append(links, page.Link{Address: "/debug/pprof/", Text: "Profiles"})
	}

	mux := http.NewServeMux()
	if err := page.Serve(mux, version.Info(), p.command, links); err != nil {
		return nil, err
	}
	mux.Handle("/api/v1/", made(p.api))
	mux.Handle("/api/v1/jobs", made(p.live))
	mux.Handle("/api/v1/report", made(p.live))
	mux.HandleFunc("/-/reload", p.serveReload)
	if p.pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	// Who asks whether the exporter is well is answered whatever others do: those answers hold nothing.
	all := http.NewServeMux()
	all.Handle("/", p.admission.of(other, mux))
	all.Handle(p.telemetryPath, p.admission.of(scrape, p.metrics))
	all.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "healthy") })
	all.HandleFunc("/-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if p.ready() {
			say(w, http.StatusOK, "ready")
			return
		}
		say(w, http.StatusServiceUnavailable, "not ready")
	})
	known := knownHosts(all, p.telemetryPath, p.names, p.admission.refused.WithLabelValues(refusedHost).Inc)
	return refuseOtherSites(known), nil
}

// refuseOtherSites keeps the pages of other sites from changing anything through somebody's browser, which may reach
// this port and know the password where they can't. Only browsers say where a request comes from: others are let
// through.
func refuseOtherSites(handler http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusForbidden, "a page of another site may not change anything here; use curl -X POST, or "+
			"send the exporter SIGHUP to reload")
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
	case p.reload == nil:
		say(w, http.StatusForbidden, "reloading over HTTP is not enabled; start the exporter with "+
			"--web.enable-lifecycle, or send it SIGHUP")
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
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintln(w, text) //nolint:gosec // G705: no browser takes it for a page (nosniff)
}
