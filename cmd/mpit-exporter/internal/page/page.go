// Package page is the live page that an exporter has at /: plain files that a browser reads as they stand here,
// without a build step (docs/page.md), and how they are served.
//
// What the page shows it asks the exporter's API for; what jobs do now Live answers: the exporter's values are totals,
// and it is better that one server remembers what they were some seconds ago than that every viewer does. Begin with
// main.js; in Go, with Serve and Live.Handler.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	pathpkg "path"
	"strings"
	"time"
)

//go:embed *.html *.css *.js *.svg
var pageFiles embed.FS

// Palette is the style sheet with the colours of what ranks do with their time.
//
//go:embed palette.css
var Palette string

const (
	// pagePath is where its files are served, under what no --web.telemetry-path can be.
	pagePath = "/-/page/"
	// pagePolicy lets the page load its own files and ask this server, and nothing else: names come from everybody's
	// programs. Trusted types make the browser refuse to read any text as HTML.
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
		"trusted-types 'none'"
)

// mediaTypes are files' by the ends of their names. They are named here because systems differ in what they know.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Link leads to another page of the exporter's. The address is relative, for there may be a proxy with a path of its
// own.
type Link struct {
	Address, Text, Description string
}

// API leads to what the page itself asks for, for who has no scripts.
func API() []Link {
	return []Link{
		{Address: "/api/v1/jobs", Text: "Jobs", Description: "what is to be said of each job now, as JSON"},
		{Address: "/api/v1/report", Text: "Report", Description: "where their time goes, as JSON"},
		{Address: "/api/v1/ranks", Text: "Ranks", Description: "the MPI processes of this node, as JSON"},
		{Address: "/api/v1/catalogue", Text: "Catalogue",
			Description: "performance and control variables and categories of their MPI libraries, and their MPI " +
				"objects, as JSON"},
		{Address: "/api/v1/values", Text: "Values", Description: "what their performance variables are now, as JSON"},
	}
}

// Serve serves the live page at / and its files. What of it is the same for all is made here, once. A page without jobs
// shows the command that starts programs whose ranks come to this exporter. The files are in the program: reading them
// can't fail.
func Serve(mux *http.ServeMux, version, command string, links []Link) {
	for i := range links {
		links[i].Address = strings.TrimPrefix(links[i].Address, "/")
	}
	var index bytes.Buffer
	if err := template.Must(template.ParseFS(pageFiles, "index.html")).Execute(&index, struct {
		Version, Command string
		Links            []Link
	}{version, command, links}); err != nil {
		panic(err) // a mistake in index.html, not anything that a user does
	}
	mux.Handle("/{$}", pageFile("index.html", index.Bytes()))
	files, _ := pageFiles.ReadDir(".")
	for _, f := range files {
		if f.Name() != "index.html" {
			content, _ := pageFiles.ReadFile(f.Name())
			mux.Handle(pagePath+f.Name(), pageFile(f.Name(), content))
		}
	}
}

// pageFile serves one file. A browser asks each time whether it has changed, for the exporter may.
func pageFile(name string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Type", mediaTypes[pathpkg.Ext(name)])
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, req, name, time.Time{}, bytes.NewReader(content))
	})
}
