package page

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// standing starts an exporter and a job of Open MPI whose figures stand still.
func standing(t *testing.T) (*harness.Exporter, *harness.Run) {
	t.Helper()
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "unexpected.c", Args: []string{"7", harness.HoldDir},
		Socket: server.Socket, Exec: []string{"--monitoring"},
	})
	run.AtHold(t, "queued")
	server.Await(t, "the ranks", func(s *harness.Scrape) error {
		for rank := range 2 {
			if err := s.Expect("mpit_rank_up", run.Labels(rank), 1); err != nil {
				return err
			}
		}
		return nil
	})
	return server, run
}

// key names a series.
func key(metric string, labels map[string]string) string {
	return metric + fmt.Sprint(labels) // fmt sorts
}

// samePage waits until the page shows what /metrics shows of a rank: neither more nor less, and the same numbers.
func samePage(t *testing.T, u *tab, server *harness.Exporter, run *harness.Run, rank int) {
	t.Helper()
	harness.Await(t, fmt.Sprintf("rank %d on the page", rank), func(context.Context) error {
		want := map[string]float64{}
		scrape := server.Scrape(t)
		for _, name := range scrape.Names("mpit_") {
			if exporter.Reserved(name) {
				continue
			}
			for _, s := range scrape.Select(name, run.Labels(rank)) {
				labels := maps.Clone(s.Labels)
				for _, own := range []string{"jobid", "world", "user", "rank"} {
					delete(labels, own)
				}
				want[key(name, labels)] = s.Value
			}
		}
		if len(want) == 0 {
			return fmt.Errorf("nothing on /metrics")
		}
		got := map[string]float64{}
		for _, r := range u.rows() {
			if r.Value == "" {
				continue
			}
			number, err := strconv.ParseFloat(r.Value, 64)
			if err != nil {
				return err
			}
			got[key(r.Metric, r.Labels)] = number
		}
		if !maps.Equal(want, got) {
			return fmt.Errorf("/metrics has %v\nand the page %v; problems: %v", want, got, u.wrong())
		}
		return nil
	})
}

// Of a job of which one rank waits and the other is in no call the page says who is late and where the others wait, in
// words, in the bar, in the tables and in the strips.
func TestPageOfAJobThatWaits(t *testing.T) {
	t.Parallel()
	server := suite.Exporter(t)
	run := suite.Run(t, harness.Job{MPI: harness.OpenMPI(t), Program: "profile_stuck.c", Args: []string{harness.HoldDir},
		Socket: server.Socket, Exec: []string{"--calls"}})
	run.AtHold(t, "late", 1)
	u := startBrowser(t).open(t, server.URL("/"))
	u.await(`document.getElementById("verdict").textContent.includes("for rank 1 on ")`)
	// The whole run has the first second, too, in which the ranks started.
	u.await(`/^(4[5-9]|50) % useful, (4[5-9]|50) % waiting, [0-9] % communication$/.test(document.querySelector("#bar svg").getAttribute("aria-label"))`)
	u.await(`/^useful (4[5-9]|50) %waiting( for late ranks)? (4[5-9]|50) %communication [0-9] %/.test(document.getElementById("bar-legend").textContent)`)
	assert.Regexp(t, "^(late rank|waiting): job "+run.ID+" · profile_stuck", evaluate[string](u, "document.title"))
	assert.True(t, evaluate[bool](u, `document.getElementById("jobs").hidden`), "one job's sentence isn't there twice")
	u.await(`document.querySelector("#rank-table tbody").rows[0].textContent.startsWith("1")`)
	assert.Equal(t, []string{"MPI_Barrier on halo: 0", "(in no long call): 1"}, evaluate[[]string](u, `
		[...document.querySelectorAll("#under-way-table tbody tr")].map((row) => row.cells[1].innerText + ": " + row.cells[2].innerText)`))
	u.await(`/^MPI_Barrier on halo: (9[0-9]|100) % of the time of rank 0, 0 % of rank 1.$/.test(document.querySelector("#functions .caption").textContent)`)
	u.part("a rank that has been in a call for ten seconds is red, the late one blue", func(*testing.T) {
		u.await(`/^Now 1 rank has been in one call for more than 10 s; rank 1 is (9[0-9]|100) % useful.$/.test(document.querySelector("#over-time .caption").textContent)`)
		u.await(inStrip("over-time", 10, "--hung", high) + " && " + inStrip("over-time", 30, "--useful-ramp", high))
	})
	u.part("a cell is read out, by keyboard", func(*testing.T) {
		u.script(`document.querySelector("#over-time canvas").focus()`)
		u.key(kb.Home)
		u.key(kb.ArrowDown)
		u.await(`/^Rank 1 at ..:..:..: (9[0-9]|100) % useful$/.test(document.querySelector("#over-time .readout").textContent)`)
		u.key(kb.Escape)
		u.await(`document.querySelector("#over-time .readout").textContent === ""`)
	})
	u.part("as a table", func(t *testing.T) {
		u.script(`document.querySelectorAll("#over-time summary, #functions summary").forEach((s) => s.click())`)
		u.await(`document.querySelector("#over-time tbody").rows.length === 2`)
		assert.Regexp(t, `^MPI_Barrier on halo\|0\|(9[0-9]|100) %\nMPI_Barrier on halo\|1\|0 %$`, evaluate[string](u, `
			[...document.querySelectorAll("#functions tbody tr")].slice(0, 2).map((row) => [...row.cells].map((c) => c.textContent).join("|")).join("\n")`))
	})
	u.part("since the job began", func(*testing.T) {
		u.script(`document.getElementById("whole").click()`)
		u.await(`document.getElementById("bar-legend").textContent.endsWith("since the job began") && location.hash === "#whole=1"`)
		u.until(u.t, func() bool { return u.asked("window=0") > 0 })
	})
}

// Ends of a ramp of colours: its first two, or its last two.
const (
	low  = "0, 2"
	high = "-2"
)

// inStrip is an expression: a heat strip has, so many pixels from its top, one of the two colours at an end of a ramp,
// or one between.
func inStrip(figure string, y float64, ramp, end string) string {
	return fmt.Sprintf(`(() => {
		const canvas = document.querySelector("#%s canvas");
		const colours = getComputedStyle(canvas).getPropertyValue("%s").split(",").slice(%s).map((c) => [1, 3, 5].map((i) => parseInt(c.trim().slice(i, i + 2), 16)));
		const width = canvas.width;
		const copy = new OffscreenCanvas(width, canvas.height).getContext("2d", {willReadFrequently: true});
		copy.drawImage(canvas, 0, 0);
		const pixels = copy.getImageData(0, Math.floor(%f * devicePixelRatio), width, 1).data;
		for (let x = 0; x < width; x++) {
			const is = pixels.slice(4 * x, 4 * x + 3);
			if (is.every((c, i) => Math.min(...colours.map((k) => k[i])) <= c && c <= Math.max(...colours.map((k) => k[i]))) && pixels[4 * x + 3] === 255) return true;
		}
		return false;
	})()`, figure, ramp, end, y)
}

// The page shows what /metrics shows, of the rank that is chosen.
func TestPageOfARealJob(t *testing.T) {
	t.Parallel()
	server, run := standing(t)
	u := startBrowser(t).open(t, server.URL("/"))
	samePage(t, u, server, run, 0)
	assert.Equal(t, "unknown: job "+run.ID+" · unexpected-c.openmpi – MPI_T exporter", evaluate[string](u,
		"document.title"))
	about := evaluate[string](u, `document.getElementById("job-about").innerText`)
	assert.Contains(t, about, "2 of 2 ranks")
	assert.Contains(t, about, "openmpi "+harness.OpenMPI(t).Version)

	u.part("variables are described", func(t *testing.T) {
		u.await(`document.body.innerText.includes("Number of messages exchanged as all-to-all operations")`)
		var found row
		for _, r := range u.rows() {
			if r.Name == "pml_ob1_unexpected_msgq_length" {
				found = r
			}
		}
		assert.Equal(t, "SIZE", found.Class)
		assert.Contains(t, evaluate[string](u, `document.getElementById("values").innerText`), "TUNER_BASIC")
		denied := 0
		for _, r := range u.rows() {
			if strings.Contains(r.Text, "denied") {
				denied++
			}
		}
		assert.NotZero(t, denied, "why a variable has no value stands there")
	})
	u.part("filter", func(t *testing.T) {
		all := len(u.rows())
		u.script(`document.getElementById("filter").focus()`)
		u.key("unexpected backlog")
		u.await(`document.querySelectorAll("#values tbody").length === 1`)
		rows := u.rows()
		require.Len(t, rows, 1, "one variable, of one communicator")
		assert.Equal(t, "mpit_pml_ob1_unexpected_msgq_length", strings.TrimSuffix(rows[0].Metric, "_level"))
		assert.Equal(t, map[string]string{"comm": "backlog"}, rows[0].Labels)
		u.await(`/Rank 0 of job .*: 1 of \d+ variables shown/.test(document.getElementById("said").textContent)`)
		for range len("unexpected backlog") {
			u.key(kb.Backspace)
		}
		u.await(fmt.Sprintf(`document.querySelectorAll("#values tr.series").length === %d`, all))
	})
	u.part("another rank, by keyboard", func(t *testing.T) {
		u.script(`document.getElementById("ranks").focus()`)
		u.key(kb.ArrowDown)
		u.await(`location.hash.includes("rank=1")`)
		samePage(t, u, server, run, 1)
		u.script(`location.reload()`)
		u.await(`document.getElementById("ranks").value === "1/0"`) // its address leads to it
		samePage(t, u, server, run, 1)
	})
	u.part("counted while it is looked at", func(t *testing.T) {
		u.chooseInterval("1")
		u.await(`[...document.querySelectorAll("svg.curve path")].some((p) => p.getAttribute("d")?.includes("L"))`)
		run.Release(t, "queued")
		run.AtHold(t, "drained")
		u.await(`[...document.querySelectorAll("#values tbody")].every((b) => !b.innerText.includes("unexpected_msgq") || [...b.querySelectorAll("data.value")].every((v) => v.value === "0"))`)
		samePage(t, u, server, run, 1)
	})
	u.part("its end", func(t *testing.T) {
		run.Finish(t, "drained")
		u.await(`document.getElementById("about").innerText.includes("ended (finalize)")`)
		samePage(t, u, server, run, 1)
	})
}

// Everything can be reached with Tab, in the order in which it is read; what is a choice of many is one stop.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	server, _ := standing(t)
	u := startBrowser(t).open(t, server.URL("/"))
	u.await(`!document.getElementById("categories").hidden`)
	const where = `(() => {
		const a = document.activeElement;
		const ring = getComputedStyle(a).outlineStyle;
		return (a.id || a.getAttribute("role") || a.closest("[id]")?.id || a.tagName) + (ring === "none" ? ", and nobody sees it" : "");
	})()`
	var stops []string
	for range 14 {
		u.key(kb.Tab)
		stops = append(stops, evaluate[string](u, where))
	}
	assert.Equal(t, []string{"A", "A", "whole", "interval", "pause", "region", "rank-table", "rank-table",
		"region", "variables-shown", "ranks", "filter", "treeitem", "region"},
		stops)

	u.part("skip to the variables", func(t *testing.T) {
		u.script(`document.querySelectorAll(".skip")[1].focus()`)
		u.key(kb.Enter)
		u.await(`document.activeElement.id === "variables"`)
		u.key(kb.Tab)
		assert.Equal(t, "variables-shown", evaluate[string](u, where))
	})
	u.part("pause", func(t *testing.T) {
		u.script(`document.getElementById("pause").focus()`)
		u.key(" ")
		u.await(`document.getElementById("pause").getAttribute("aria-pressed") === "true" && document.getElementById("at").textContent.endsWith("paused")`)
		u.key(kb.Enter)
		u.await(`document.getElementById("pause").getAttribute("aria-pressed") === "false"`)
	})
	u.part("categories", func(t *testing.T) {
		u.script(`document.querySelector("[role=treeitem][tabindex='0']").focus()`)
		all := len(u.rows())
		u.key(kb.ArrowDown)
		assert.Equal(t, "treeitem", evaluate[string](u, where))
		u.key(kb.Enter)
		u.await(fmt.Sprintf(`document.activeElement.getAttribute("aria-selected") === "true" && document.querySelectorAll("#values tr.series").length < %d`, all))
		chosen := len(u.rows())
		assert.NotZero(t, chosen)
		u.key(kb.End)
		last := evaluate[string](u, `document.activeElement.textContent`)
		u.key(kb.Home)
		assert.Contains(t, evaluate[string](u, `document.activeElement.textContent`), "All")
		assert.NotContains(t, last, "All")
		u.key(" ")
		u.await(fmt.Sprintf(`document.querySelectorAll("#values tr.series").length === %d`, all))
		assert.Equal(t, 1, evaluate[int](u, `document.querySelectorAll("[role=treeitem][tabindex='0']").length`),
			"one stop of Tab")
	})
	u.part("a rank", func(t *testing.T) {
		u.script(`[...document.querySelectorAll("#rank-table a")].find((a) => a.textContent === "1").focus()`)
		u.key(kb.Enter)
		u.await(`location.hash.includes("rank=1") && document.getElementById("ranks").value === "1/0"`)
	})
}
