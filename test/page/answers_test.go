package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/test/page/answers"
)

// pretend starts an exporter whose page shows jobs that nobody runs.
func pretend(tb testing.TB, jobs ...answers.Job) (address string) {
	tb.Helper()
	server := suite.Exporter(tb)
	api := answers.New(jobs...)
	rest := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Address})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/api/") {
			api.ServeHTTP(w, req)
			return
		}
		rest.ServeHTTP(w, req)
	}))
	tb.Cleanup(front.Close)
	return front.URL + "/"
}

// several are jobs in the order in which the exporter puts them.
var several = []answers.Job{{ID: "4710", Kind: answers.Hung, Ranks: 8}, {ID: "4711", Kind: answers.Imbalanced,
	Ranks: 4},
	{ID: "4712", Kind: answers.Healthy, Ranks: 32}, {ID: "4713", Kind: answers.Unmeasured, Ranks: 2},
	{ID: "4700", Kind: answers.Broken, Ranks: 4}}

// Every job has its sentence and its bar. The page opens on the first, and its address leads to any of them, with the
// order of its calls.
func TestSeveralJobs(t *testing.T) {
	t.Parallel()
	address := pretend(t, several...)
	u := startBrowser(t).open(t, address)
	u.await(`document.querySelectorAll("#jobs li").length === 5`)
	assert.Equal(t, []string{"100 % deadlock", "47 % useful, 45 % waiting for late ranks, 8 % communication"},
		evaluate[[]string](u,
			`[...document.querySelectorAll("#jobs .bar")].slice(0, 2).map((bar) => bar.getAttribute("aria-label").replace(/4[5-9] % useful, 4[3-7]/, "47 % useful, 45"))`))
	assert.Equal(t, "not measured", evaluate[string](u,
		`document.querySelectorAll("#jobs .bar")[3].getAttribute("aria-label")`))
	assert.Equal(t, "4710 · stencil", evaluate[string](u, `document.querySelector("#jobs [aria-current]").textContent`))
	u.await(`document.getElementById("job-title").textContent === "Job 4710 · stencil"`)
	u.await(`document.querySelector("#under-way-table tbody").rows[0].innerText.replace(/\s+/g, " ") === "6m52s MPI_Allreduce on residual 0–4, 6–7 7 ranks stencil+0x12ab"`)

	// It is looked at as long as it has run: a few seconds.
	u.await(`document.querySelector("#over-time .caption").textContent.startsWith("Now all ranks have been in one call")`)
	u.part("another one", func(t *testing.T) {
		u.script(`[...document.querySelectorAll("#jobs a")][1].click()`)
		u.await(`document.getElementById("verdict").textContent.includes("for rank 2 on node7") && document.getElementById("under-way").hidden`)
		u.await(`document.querySelector("#rank-table tbody a").textContent === "2"`)
		assert.Contains(t, evaluate[string](u, "location.hash"), "jobid=4711")
	})
	u.part("sorted", func(t *testing.T) {
		functions := func() []string {
			return evaluate[[]string](u, `[...document.querySelectorAll("#call-table tbody .name")].map((n) => n.textContent)`)
		}
		u.await(`document.querySelectorAll("#call-table tbody tr").length === 6`)
		assert.Equal(t, "MPI_Allreduce", functions()[0], "by share of time")
		u.script(`document.querySelector("#call-table button").click()`)
		u.script(`document.querySelector("#call-table button").click()`)
		assert.True(t, slices.IsSorted(functions()))
		assert.Equal(t, "ascending", evaluate[string](u,
			`document.querySelector("#call-table th").getAttribute("aria-sort")`))
		u.script(`location.reload()`)
		u.await(`document.querySelectorAll("#call-table tbody tr").length === 6`)
		assert.True(t, slices.IsSorted(functions()), "the address says so")
		u.await(`document.getElementById("job-title").textContent === "Job 4711 · stencil" && document.getElementById("bar-legend").textContent.endsWith("in the last 5 s")`)
	})
	u.part("searched", func(*testing.T) {
		u.script(`document.getElementById("variables-shown").open = true; document.getElementById("filter").focus()`)
		u.key("no such variable")
		u.await(`location.hash.includes("filter=no+such+variable")`)
		u.script(`location.reload()`)
		u.await(`document.getElementById("filter").value === "no such variable" && document.getElementById("count").textContent === "0 of 1"`)
	})
	u.part("one that has ended", func(*testing.T) {
		u.navigate(address + "#jobid=4700&world=1&user=ada")
		u.await(`document.getElementById("verdict").textContent.includes("without MPI_Finalize") && document.getElementById("over-time").hidden && document.getElementById("bar-legend").textContent.endsWith("since the job began")`)
	})
	u.part("one that nobody knows", func(*testing.T) {
		u.navigate(address + "#jobid=1&world=1&user=ada")
		u.await(`document.getElementById("problem").textContent === "Job 1 is not here, or is here no more."`)
		u.forgive("Failed to load resource")
	})
}

// At first sight each kind of job has its state, and where and in which rank, also in the narrowest window.
func TestFirstGlance(t *testing.T) {
	t.Parallel()
	waiting := "6 of 8 ranks have waited in MPI_Barrier on MPI_COMM_WORLD for 3m for rank 3 on node7, which reads from pipe"
	jobs := append(several[:len(several):len(several)],
		answers.Job{ID: "4714", Kind: job.Waits, Ranks: 8, Text: waiting},
		answers.Job{ID: "4715", Kind: job.NoCore, Ranks: 4, Text: "rank 2 on node7 waits for a core 48 % of the time"},
		answers.Job{ID: "4716", Kind: job.Cancelled, Ranks: 4, Text: "4 of 4 ranks ended by SIGTERM on node7"})
	u := startBrowser(t).open(t, pretend(t, jobs...), chromedp.EmulateViewport(390, 900))
	for id, want := range map[string][]string{
		"4714": {"waiting", "MPI_Barrier on MPI_COMM_WORLD", "for rank 3 on node7"},
		"4715": {"no core", "rank 2 on node7"}, "4716": {"cancelled", "4 of 4 ranks", "on node7"},
		"4710": {"deadlock", "rank 5 is one collective behind on residual"},
		"4711": {"late rank", "MPI_Allreduce on residual", "for rank 2 on node7"},
		"4712": {"healthy", "% useful"}, "4713": {"unknown", "no MPI call has been measured"},
		"4700": {"crashed", "rank 0 on node7"},
	} {
		u.await(`document.querySelectorAll("#jobs li").length === 8`)
		u.script(`[...document.querySelectorAll("#jobs a")].find((a) => a.textContent.startsWith("` + id + `")).click()`)
		u.await(`document.getElementById("job-title").textContent.startsWith("Job ` + id + `")`)
		glance := evaluate[string](u, `document.getElementById("job").textContent.replace(/\s+/g, " ").slice(0, 200)`)
		for _, part := range want {
			assert.Contains(t, glance, part)
		}
		assert.LessOrEqual(t, evaluate[int](u, `document.documentElement.scrollWidth`), 390, id)
	}
}

// Of sixty jobs the page says how many need attention, finds one, and shows what has been clicked; a name may be long.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a-long-name-of-a-job", 7)
	jobs := []answers.Job{{ID: "4000", Kind: answers.Hung, Ranks: 2}, {ID: long, Kind: answers.Imbalanced, Ranks: 4}}
	for i := range 58 {
		jobs = append(jobs, answers.Job{ID: fmt.Sprint(5000 + i), Kind: answers.Healthy, Ranks: 2})
	}
	u := startBrowser(t).open(t, pretend(t, jobs...))
	u.await(`document.getElementById("attention").textContent === "2 of 60 jobs need attention"`)
	assert.Less(t, evaluate[int](u, `Math.round(document.getElementById("job").getBoundingClientRect().top)`), 900,
		"the job that is looked at begins on the first screen")
	assert.LessOrEqual(t, evaluate[int](u, `document.querySelectorAll("#jobs a")[1].textContent.length`), 50)
	u.script(`document.getElementById("find").focus()`)
	u.key("healthy 5042")
	u.await(`[...document.querySelectorAll("#jobs li")].filter((item) => !item.hidden).length === 1`)
	u.script(`document.querySelector("#jobs li:not([hidden]) a").click()`)
	u.await(`document.getElementById("job-title").textContent === "Job 5042 · stencil"`)
}

// Heat strips and their tables keep nobody out.
func TestAccessibilityOfStrips(t *testing.T) {
	t.Parallel()
	u := startBrowser(t).open(t, pretend(t, several...), command(cdppage.SetBypassCSP,
		cdppage.SetBypassCSPParams{Enabled: true}))
	u.script(axe(t))
	for i, job := range several {
		u.script(fmt.Sprintf(`[...document.querySelectorAll("#jobs a")][%d]?.click()`, i))
		u.await(fmt.Sprintf(`document.getElementById("job-title").textContent === "Job %s · stencil"`, job.ID))
		u.await(`document.getElementById("at").textContent !== ""`)
		u.script(`document.querySelectorAll("#live figure:not([hidden]) details:not([open]) summary").forEach((s) => s.click())`)
		looks := []struct {
			theme string
			width int64
		}{{"light", 400}, {"dark", 800}, {"light", 1280}}
		if i > 1 {
			looks = looks[:1] // the checker takes seconds
		}
		for _, c := range looks {
			t.Run(fmt.Sprintf("%s, %s, %d pixels", job.Kind, c.theme, c.width), func(t *testing.T) {
				require.NoError(t, chromedp.Do(u.ctx, theme(c.theme), chromedp.EmulateViewport(c.width, 900)))
				u.keepsNobodyOut(t, c.width)
				assert.Empty(t, evaluate[[]string](u,
					`[...document.querySelectorAll("#live .wide")].filter((w) => w.scrollWidth > w.clientWidth).map((w) => w.getAttribute("aria-label"))`),
					"not even a table is wider than the window")
			})
		}
	}
}

// One late rank of a thousand is seen, though a pixel has several ranks, and the page has no element for each of them.
func TestThousandRanks(t *testing.T) {
	t.Parallel()
	u := startBrowser(t).open(t, pretend(t, answers.Job{ID: "4711", Kind: answers.Imbalanced, Ranks: 1000}))
	u.await(`/^Now rank 625 is 9\d % useful, the others 3\d % to 3\d %\.$/.test(document.querySelector("#over-time .caption").textContent)`)
	u.await(inStrip("over-time", 225.2, "--useful-ramp", high))
	assert.False(t, evaluate[bool](u, inStrip("over-time", 200, "--useful-ramp", high)), "the others are pale")
	u.await(inStrip("functions", 10, "--calls-ramp", high) + " && " + inStrip("functions", 10, "--calls-ramp", low))
	assert.Equal(t, []string{"625late", "0–624, 626–999999 ranks"},
		evaluate[[]string](u, `[...document.querySelectorAll("#rank-table tbody th")].map((h) => h.textContent)`))
	assert.Less(t, evaluate[int](u, `document.querySelectorAll("*:not(option)").length`), 1000)
}

// BenchmarkFrames is how long frames take while a page of a thousand ranks is scrolled and comes up to date each
// second, beside those of the same page when it is paused: a busy machine shows in both. On any machine, an answer
// costs the page's thread so much processor time more.
func BenchmarkFrames(b *testing.B) {
	u := startBrowser(b).open(b, pretend(b, answers.Job{ID: "4711", Kind: answers.Imbalanced, Ranks: 1000}))
	u.chooseInterval("1")
	u.await(`document.querySelector("#over-time .caption")?.textContent.startsWith("Now")`)
	u.do(command(performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"}))
	const frames = `new Promise((done) => {
		const gaps = [];
		let last = performance.now();
		const end = last + 20000;
		const step = (now) => {
			gaps.push(now - last);
			last = now;
			scrollTo(0, (now / 3) % (document.documentElement.scrollHeight - innerHeight));
			if (now < end) requestAnimationFrame(step);
			else done(gaps.slice(1).sort((a, b) => a - b));
		};
		requestAnimationFrame(step);
	})`
	for b.Loop() {
		used := map[string]float64{}
		for _, how := range []string{"live", "paused"} {
			asked := u.asked("/api/v1/report")
			before := u.processor()
			gaps := evaluate[[]float64](u, frames)
			used[how] = u.processor() - before
			b.ReportMetric(gaps[len(gaps)/2], "ms-median-"+how)
			b.ReportMetric(gaps[len(gaps)*99/100], "ms-p99-"+how)
			b.ReportMetric(gaps[len(gaps)-1], "ms-most-"+how)
			if answers := u.asked("/api/v1/report") - asked; how == "live" {
				defer func() {
					b.ReportMetric(float64(answers), "answers")
					b.ReportMetric(1000*(used["live"]-used["paused"])/float64(answers), "ms-processor/answer")
				}()
			}
			u.script(`document.getElementById("pause").click()`)
		}
	}
}

// processor is how many seconds the page's thread has been busy.
func (u *tab) processor() float64 {
	u.t.Helper()
	metrics, err := chromedp.Run(u.ctx, func(ctx context.Context, t *chromedp.Target) (performance.GetMetricsResult,
		error) {
		return cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
	})
	require.NoError(u.t, err)
	for _, m := range metrics.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	return 0
}
