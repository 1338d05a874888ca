package httpserver

import (
	"fmt"
	"net/http"
	_ "net/http/pprof" //nolint:gosec // G108: it adds itself to the default mux, of which nothing else is served
	"net/url"
	pathpkg "path"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
)

// pages are what the server shows.
type pages struct {
	Config    // Names are all by which browsers may know this node, besides its addresses
	admission *admission
	ready     func() bool
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
func (p pages) mux() http.Handler {
	links := slices.Concat([]page.Link{{Address: p.TelemetryPath, Text: "Metrics"}}, page.API(),
		[]page.Link{{Address: "/-/healthy", Text: "Health"}, {Address: "/-/ready", Text: "Readiness"}})
	if p.Pprof {
		links = append(links, page.Link{Address: "/debug/pprof/", Text: "Profiles"})
	}

	mux := http.NewServeMux()
	page.Serve(mux, version.Info(), p.Command, links)
	mux.Handle("/api/v1/", p.api())
	mux.HandleFunc("/-/reload", p.serveReload)
	if p.Pprof {
		mux.Handle("/debug/pprof/", http.DefaultServeMux)
	}
	// Who asks whether the exporter is well is answered whatever others do: those answers hold nothing.
	all := http.NewServeMux()
	if p.Private == nil {
		all.Handle("/", p.admission.of(other, mux))
		all.Handle(p.TelemetryPath, p.admission.of(scrape, p.Metrics))
	} else {
		all.HandleFunc("/", p.refusePrivate)
		all.Handle(p.TelemetryPath, p.only(p.Private.Scrapers, p.admission.of(scrape, p.Metrics)))
		all.Handle(judged, p.only(p.Private.Judges, p.admission.of(other, made(p.Live))))
	}
	all.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "healthy") })
	all.HandleFunc("/-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if p.ready() {
			say(w, http.StatusOK, "ready")
			return
		}
		say(w, http.StatusServiceUnavailable, "not ready")
	})
	known := knownHosts(all, p.TelemetryPath, p.Names, p.admission.refused.WithLabelValues(refusedHost).Inc)
	return refuseOtherSites(known)
}

// judged is what the judge asks for.
const judged = "/api/v1/report"

// api is everything under /api/v1/.
func (p pages) api() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", made(p.API))
	mux.Handle("/api/v1/jobs", made(p.Live))
	mux.Handle(judged, made(p.Live))
	return mux
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
	case p.Reload == nil:
		say(w, http.StatusForbidden, "reloading over HTTP is not enabled; start the exporter with "+
			"--web.enable-lifecycle, or send it SIGHUP")
		return
	}
	if err := p.Reload(req.Context()); err != nil {
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
