package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

//go:embed axe/axe.min.js.gz
var axePacked []byte

// axe is the checker's source, if it is the one that axe/README.md names.
func axe(t *testing.T) string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(axePacked))
	require.NoError(t, err)
	source, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	readme, err := os.ReadFile("axe/README.md")
	require.NoError(t, err)
	sum := sha256.Sum256(source)
	require.Contains(t, string(readme), hex.EncodeToString(sum[:]))
	version, _, _ := strings.Cut(strings.TrimPrefix(string(source), "/*! axe v"), "\n")
	require.Contains(t, string(readme), "| version | "+version+",")
	return string(source)
}

// In both themes, narrow and wide, axe finds nothing that keeps people out: names, roles, headings, landmarks,
// contrast.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	r := mpittest.NewJob(2).Ranks[1]
	require.NoError(t, r.Connect(t.Context(), server.Socket))
	t.Cleanup(r.Kill)
	// The checker is no part of the page, whose policy lets nothing else in.
	u := startBrowser(t).open(t, server.URL("/"), command(cdppage.SetBypassCSP,
		cdppage.SetBypassCSPParams{Enabled: true}))
	u.await(`document.querySelectorAll("#values tbody data.value").length > 10 && !document.getElementById("categories").hidden`)
	u.script(axe(t))
	grounds := map[string]bool{}
	for _, c := range []struct {
		theme string
		width int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 400}} {
		t.Run(fmt.Sprintf("%s, %d pixels", c.theme, c.width), func(t *testing.T) {
			require.NoError(t, chromedp.Do(u.ctx, theme(c.theme), chromedp.EmulateViewport(c.width, 900)))
			grounds[evaluate[string](u, `getComputedStyle(document.body).backgroundColor`)] = true
			u.keepsNobodyOut(t, c.width)
		})
	}
	assert.Len(t, grounds, 2, "the two themes differ")
}

// keepsNobodyOut asks axe, which has been loaded, in a window of that width.
func (u *tab) keepsNobodyOut(t *testing.T, width int64) {
	t.Helper()
	found := evaluate[[]string](u, `axe.run(document, {resultTypes: ["violations", "incomplete"]}).then((r) =>
		[...r.violations, ...r.incomplete.filter((i) => i.id !== "color-contrast")].map((v) => v.id + ": " + v.help + " " +
			v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join(" | ")))`)
	assert.Empty(t, found)
	assert.LessOrEqual(t, evaluate[int64](u, `document.documentElement.scrollWidth`), width,
		"the page is as wide as its window; tables scroll by themselves")
}
