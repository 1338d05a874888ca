package httpserver

import (
	"net/http"
	"slices"
)

// Private is which clients get anything on a port that keeps jobs private, by names that they have proven: a user of
// basic_auth_users, or the common name or a DNS name of a certificate. Where no names are said, every one is good.
type Private struct {
	Scrapers, Judges []string
	Users            func() []string // those of the web configuration now, whose passwords have been checked
}

// names are those that a client has proven. Without users in the configuration passwords mean nothing.
func (p *Private) names(req *http.Request) (names []string) {
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		of := req.TLS.VerifiedChains[0][0]
		names = append(slices.Clone(of.DNSNames), of.Subject.CommonName)
	}
	if user, _, ok := req.BasicAuth(); ok && slices.Contains(p.Users(), user) {
		names = append(names, user)
	}
	return names
}

// only serves clients with one of these names; none: with any.
func (p pages) only(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if slices.ContainsFunc(p.Private.names(req), func(name string) bool {
			return len(names) == 0 || slices.Contains(names, name)
		}) {
			next.ServeHTTP(w, req)
			return
		}
		p.refusePrivate(w, req)
	})
}

// refusePrivate says what to do instead.
func (p pages) refusePrivate(w http.ResponseWriter, _ *http.Request) {
	p.admission.refused.WithLabelValues(refusedClient).Inc()
	say(w, http.StatusForbidden, "this exporter is private: for your own jobs run mpit-exporter top, list, report or "+
		"page on its node; scrapers and judges need a name that --web.config.file and --web.scraper or --web.judge have")
}
