package page

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
	"github.com/mpit-exporter/mpit-exporter/test/page/answers"
	"github.com/mpit-exporter/mpit-exporter/test/zoo"
)

// maxPicture bounds a picture in the documentation.
const maxPicture = 150_000 // bytes

// pictures are those of the documentation; those of the live page are of real jobs that run meanwhile,
// but for the last.
var pictures = []string{"page-light", "page-dark", "page-narrow", "page-healthy", "page-killed", "page-hung",
	"page-128"}

// TestPictures makes them with -update.
func TestPictures(t *testing.T) {
	if *update {
		t.Run("many ranks", pictureOfManyRanks)
		t.Run("jobs", picturesOfJobs)
		t.Run("page of a healthy job", pictureOfAHealthyJob)
		t.Run("page of a hung job", pictureOfAHungJob)
	}
	all := pictures
	for _, s := range job.States() {
		t.Run(s.Word, func(t *testing.T) {
			if *update {
				pictureOfAState(t, s.Word)
			}
		})
		all = append(all, stateName(s.Word))
	}
	for _, name := range all {
		at, err := os.Stat(filepath.Join(suite.Root(), "docs", "img", name+".png"))
		require.NoError(t, err, "go test ./page -run TestPictures -update")
		assert.Less(t, at.Size(), int64(maxPicture), name)
	}
}

// measured starts a job of Open MPI with everything that is measured of calls.
func measured(t *testing.T, server *harness.Exporter, id, ranks string, program []string) {
	t.Helper()
	command := append([]string{"mpirun.openmpi", "-n", ranks, "--mca", "mpi_yield_when_idle", "1"},
		suite.ExecCommand("--calls=sizes,peers")...)
	suite.Start(t, append(command, program...),
		append(harness.OpenMPI(t).Env(), "MPIT_SOCKET="+server.Socket, "MPIT_JOB_ID="+id))
}

// stencil is the example under its own name.
func stencil(t *testing.T, flags ...string) []string {
	t.Helper()
	program, err := os.ReadFile(suite.Compile(t, "stencil", "pictures", "mpicc.openmpi", "-O2",
		filepath.Join(suite.Root(), "examples", "calls", "stencil.c"), "-lm"))
	require.NoError(t, err)
	path := filepath.Join(suite.Dir(t), "stencil")
	require.NoError(t, os.WriteFile(path, program, 0o755))
	return append([]string{path, "--seconds=0", "--cells=64"}, flags...)
}

// picturesOfJobs are of a job whose ranks wait for one of them, beside one that sleeps, as waiting ranks keep the cores
// busy; then a rank is killed.
func picturesOfJobs(t *testing.T) {
	server := suite.Exporter(t)
	measured(t, server, "4711", "4", stencil(t, "--work=5", "--slow=2", "--factor=20"))
	measured(t, server, "4710", "4", stencil(t, "--pause=400"))
	u := startBrowser(t).open(t, server.URL("/"))
	u.await(`document.querySelectorAll("#jobs li").length === 2`)
	u.script(`[...document.querySelectorAll("#jobs a")].find((a) => a.textContent.startsWith("4711")).click()`)
	u.watch(t, `document.title.startsWith("late rank: job 4711")`)
	u.take(t, "page-light", "light", 1280, 1040)
	u.take(t, "page-dark", "dark", 1280, 1040)
	u.take(t, "page-narrow", "light", 400, 1040)
	var list struct {
		Reports []struct {
			Ranks []struct{ Rank, PID int }
		}
	}
	server.GetJSON(t, "/api/v1/report?jobid=4711", &list)
	for _, r := range list.Reports[0].Ranks {
		if r.Rank == 1 {
			require.NoError(t, syscall.Kill(r.PID, syscall.SIGKILL))
		}
	}
	u.await(`document.title.startsWith("crashed: job 4711")`)
	u.take(t, "page-killed", "light", 1280, 1040)
}

// pictureOfAHealthyJob needs a core for each of its ranks.
func pictureOfAHealthyJob(t *testing.T) {
	server := suite.Exporter(t)
	measured(t, server, "4714", "2", stencil(t, "--work=50"))
	u := startBrowser(t).open(t, server.URL("/"))
	u.watch(t, `document.title.startsWith("healthy: job 4714")`)
	u.take(t, "page-healthy", "light", 1280, 1040)
}

// pictureOfManyRanks is of one late rank of 128, which nobody runs: waiting ranks keep a core busy each.
func pictureOfManyRanks(t *testing.T) {
	u := startBrowser(t).open(t, pretend(t, answers.Job{ID: "4713", Kind: answers.Imbalanced, Ranks: 128}))
	u.watch(t, `document.title.startsWith("late rank: job 4713")`)
	u.take(t, "page-128", "light", 1280, 1040)
}

// pictureOfAHungJob is of one in which a rank is in another barrier than the others.
func pictureOfAHungJob(t *testing.T) {
	server := suite.Exporter(t)
	measured(t, server, "4712", "4", []string{suite.Program(t, harness.OpenMPI(t), "stuck.c"), "mismatch", suite.Dir(t)})
	u := startBrowser(t).open(t, server.URL("/"))
	u.watch(t, `/^(deadlock|waiting)/.test(document.title)`)
	u.take(t, "page-hung", "light", 1280, 720)
}

// watch waits until something is so, and then until the page has seen it for a while.
func (u *tab) watch(t *testing.T, expression string) {
	t.Helper()
	u.chooseInterval("1")
	for !evaluate[bool](u, expression) && t.Context().Err() == nil {
		tick(t, u, 1)
	}
	for range 30 {
		tick(t, u, 1)
	}
}

// zooOf has a job of the zoo for each state; the one without a state isn't measured.
var zooOf = map[string]string{
	job.Crashed: "endings-killed", job.Cancelled: "endings-cancelled", job.WrongProgram: "collectives-two-functions",
	job.Deadlock: "collectives-barrier-skipped", job.Waits: "collectives-never-comes", job.NoCore: "starved-no-core",
	job.LateRanks: "collectives-late", job.LateInTurn: "collectives-in-turn", job.Communication: "collectives-alltoall",
	job.Idle: "polling-futures-idle-python", job.Healthy: "healthy-balanced", job.Unknown: "healthy-balanced",
}

func stateName(word string) string { return "state-" + strings.ReplaceAll(word, " ", "-") }

// pictureOfAState has the beginnings of the live page, of the report and of top below one another, of one job.
func pictureOfAState(t *testing.T, state string) {
	kinds, err := zoo.Kinds()
	require.NoError(t, err)
	at := slices.IndexFunc(kinds, func(k zoo.Kind) bool { return k.ID() == zooOf[state] })
	require.GreaterOrEqual(t, at, 0, zooOf[state])
	k, mpi, server := &kinds[at], harness.OpenMPI(t), suite.Exporter(t)
	calls := []string{"--calls=peers"}
	if state == job.Unknown {
		calls = nil
	}
	run := suite.Run(t, k.Job(t, mpi, k.DrawFor(1, mpi.Name), server.Socket, "", suite.Dir(t), calls...))

	const width = 1000
	u := startBrowser(t).open(t, server.URL("/"), chromedp.EmulateViewport(width, 420))
	u.await(`document.querySelectorAll("#jobs li").length === 1`)
	if k.Cancel > 0 {
		run.Signal(t, syscall.SIGTERM)
	}
	u.watch(t, `document.title.startsWith("`+state+`: ")`)
	parts := []image.Image{u.shot(t)}

	report := suite.Start(t, []string{suite.Binary(), "report", "--output=html", "--url=" + server.URL("")}, nil).Wait(t)
	require.Zero(t, report.Status, report.Stderr)
	screen := suite.Terminal(t, []string{suite.Binary(), "top", "--url=" + server.URL("")}, nil, 118, 18)
	screen.Await(t, state+" in top", func(text string) bool { return strings.Contains(text, strings.ToUpper(state)) })
	texts := http.NewServeMux()
	texts.HandleFunc("/report", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(report.Stdout)) })
	texts.HandleFunc("/top", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><meta charset="utf-8"><title>top</title><link rel="icon" href="data:,">
			<body style="margin:0;background:#000"><pre style="margin:8px;font:13px/1.25 monospace">%s</pre>`, screen.HTML())
	})
	front := httptest.NewServer(texts)
	t.Cleanup(front.Close)
	for _, part := range []struct {
		path   string
		height int64
	}{{"/report", 300}, {"/top", 306}} {
		tab := startBrowser(t).open(t, front.URL+part.path, chromedp.EmulateViewport(width, part.height))
		parts = append(parts, tab.shot(t))
	}

	height := 0
	for _, part := range parts {
		height += part.Bounds().Dy()
	}
	whole, y := image.NewRGBA(image.Rect(0, 0, width, height)), 0
	for _, part := range parts {
		draw.Draw(whole, image.Rect(0, y, width, y+part.Bounds().Dy()), part, part.Bounds().Min, draw.Src)
		y += part.Bounds().Dy()
	}
	save(t, stateName(state), whole)
}

// take makes a picture in docs/img.
func (u *tab) take(t *testing.T, name, in string, width, height int64) {
	t.Helper()
	u.do(theme(in), chromedp.EmulateViewport(width, height))
	tick(t, u, 2) // drawn anew
	save(t, name, u.shot(t))
	u.do(theme("light"), chromedp.EmulateViewport(1280, 900))
}

// shot is what is to be seen.
func (u *tab) shot(t *testing.T) image.Image {
	t.Helper()
	shot, err := chromedp.Run(u.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	return picture
}

// save writes a picture to docs/img.
func save(t *testing.T, name string, picture image.Image) {
	t.Helper()
	var small bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(picture)))
	require.NoError(t, os.WriteFile(filepath.Join(suite.Root(), "docs", "img", name+".png"), small.Bytes(), 0o644))
}

// fewColours makes do with 256 colours, which takes half the bytes: those that are used most, but none that looks like
// another.
func fewColours(picture image.Image) image.Image {
	bounds := picture.Bounds()
	uses := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			uses[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	var colours color.Palette
	for _, c := range slices.SortedFunc(maps.Keys(uses), func(a, b color.RGBA) int { return uses[b] - uses[a] }) {
		if !slices.ContainsFunc(colours, func(k color.Color) bool { return alike(c, k.(color.RGBA)) }) {
			colours = append(colours, c)
		}
		if len(colours) == 256 {
			break
		}
	}
	small := image.NewPaletted(bounds, colours)
	draw.Draw(small, bounds, picture, bounds.Min, draw.Src)
	return small
}

// alike says whether nobody can tell two colours apart in a picture.
func alike(a, b color.RGBA) bool {
	near := func(x, y uint8) bool { return max(x, y)-min(x, y) < 8 }
	return near(a.R, b.R) && near(a.G, b.G) && near(a.B, b.B)
}
