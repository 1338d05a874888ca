package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The page that exec --report leaves says who is late, asks no other host for anything, and keeps nobody out: names,
// roles, headings, landmarks, contrast, in both themes, narrow and wide. -update makes its picture.
func TestReportPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(suite.Dir(t), "report.html")
	program := suite.Compile(t, "stencil", "report", "mpicc.openmpi", "-O2",
		filepath.Join(suite.Root(), "examples", "calls", "stencil.c"), "-lm")
	command := append([]string{"mpirun.openmpi", "-n", "4"}, suite.ExecCommand("--report="+file,
		"--own.dir="+suite.Dir(t), "--calls=sizes,peers")...)
	result := suite.Start(t, append(command, program, "--steps=25", "--cells=64", "--pause=20", "--slow=2", "--factor=10"),
		append(harness.OpenMPI(t).Env(), "MPIT_JOB_ID=1045")).Wait(t)
	require.Zero(t, result.Status, result.Stderr)
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	t.Cleanup(server.Close)
	u := startBrowser(t).open(t, server.URL+"/report.html")
	u.await(`document.querySelector(".verdict")?.textContent.includes("for rank 2 on ")`)
	assert.Equal(t, 4, evaluate[int](u, `document.querySelector("table.matrix").rows.length`))
	assert.Empty(t, evaluate[[]string](u, `performance.getEntriesByType("resource").map((e) => e.name)`))
	u.do(chromedp.EmulateViewport(1000, 900))
	assert.Empty(t, evaluate[[]string](u, `[...document.querySelectorAll(".scroll")].filter((e) =>
		e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel + ": " + e.scrollWidth + " px")`), "tables that are cut")
	u.script(axe(t))
	for _, c := range []struct {
		theme string
		width int64
	}{{"light", 1100}, {"dark", 1100}, {"light", 400}} {
		t.Run(fmt.Sprintf("%s, %d pixels", c.theme, c.width), func(t *testing.T) {
			require.NoError(t, chromedp.Do(u.ctx, theme(c.theme), chromedp.EmulateViewport(c.width, 900)))
			u.keepsNobodyOut(t, c.width)
		})
	}
	if !*update {
		return
	}
	u.do(theme("light"), chromedp.EmulateViewport(1000, 1180))
	save(t, "report", u.shot(t))
}
