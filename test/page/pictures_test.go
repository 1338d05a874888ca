package page

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// maxPicture bounds a picture in the documentation.
const maxPicture = 150_000 // bytes

// TestPictures makes the pictures of the README with -update: each is of a real job that runs meanwhile.
func TestPictures(t *testing.T) {
	dir := filepath.Join(suite.Root(), "docs", "img")
	if *update {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		server := suite.Exporter(t)
		program := suite.Compile(t, "halo", "demo", "mpicc.openmpi", "-O2",
			filepath.Join(suite.Root(), "examples", "demo", "halo.c"))
		run := suite.Start(t, append(append([]string{"mpirun.openmpi", "-n", "4"},
			suite.ExecCommand("--monitoring")...), program),
			append(harness.OpenMPI(t).Env(), "MPIT_SOCKET="+server.Socket, "MPIT_JOB_ID=4711"))
		u := startBrowser(t).open(t, server.URL("/"), theme("light"), chromedp.EmulateViewport(1280, 720))
		u.chooseInterval("1")
		u.await(`document.querySelector("#jobs tbody")?.rows[0]?.cells[2].textContent === "4 up"`)
		u.script(`(() => {
			const filter = document.getElementById("filter");
			filter.value = "MPI_COMM_WORLD";
			filter.dispatchEvent(new Event("input"));
		})()`)
		u.await(`[...document.querySelectorAll("svg.curve path")].filter((p) => (p.getAttribute("d") ?? "").split("L").length > 30).length > 3`)
		for _, name := range []string{"light", "dark"} {
			u.do(theme(name))
			shot, err := chromedp.Run(u.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			picture, err := png.Decode(bytes.NewReader(shot))
			require.NoError(t, err)
			var small bytes.Buffer
			require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small,
				fewColours(picture)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "page-"+name+".png"), small.Bytes(), 0o644))
		}
		run.Signal(t, syscall.SIGUSR1) // which mpirun hands on, and halo ends at
		run.Wait(t)
	}
	for _, name := range []string{"page-light.png", "page-dark.png"} {
		at, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err, "go test ./page -run TestPictures -update")
		assert.Less(t, at.Size(), int64(maxPicture), name)
	}
}

// fewColours makes do with the 256 colours that are used most, which takes half the bytes.
func fewColours(picture image.Image) image.Image {
	bounds := picture.Bounds()
	uses := map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			uses[picture.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(uses), func(a, b color.Color) int { return uses[b] - uses[a] })
	small := image.NewPaletted(bounds, colours[:min(len(colours), 256)])
	draw.Draw(small, bounds, picture, bounds.Min, draw.Src)
	return small
}
