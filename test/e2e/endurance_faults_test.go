package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// enduranceFault is what may happen at any time. For the second half of the time the exporter lives on, so that it has
// time to grow.
type enduranceFault struct {
	name  string
	fatal bool // to the exporter
	make  func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand)
}

var enduranceFaults = []enduranceFault{
	{"exporter: SIGTERM", true, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.endExporter(ctx, t, draw, func() {
			e.exporter.Signal(t, syscall.SIGTERM)
			assert.Zero(t, e.exporter.Wait(t).Status, "the exporter's status after SIGTERM")
		})
	}},
	{"exporter: SIGKILL", true, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.endExporter(ctx, t, draw, func() { e.exporter.Kill(t) })
	}},
	{"exporter: out of memory", true, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.endExporter(ctx, t, draw, func() { e.killForMemory(t) })
	}},
	{"exporter: stopped", false, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.exporter.Signal(t, syscall.SIGSTOP)
		sleep(ctx, between(draw, time.Second, 10*time.Second))
		e.exporter.Signal(t, syscall.SIGCONT)
	}},
	{"exporter: rules", false, (*endurance).reload},
	{"Prometheus: SIGTERM", false, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.endPrometheus(ctx, t, draw, syscall.SIGTERM)
	}},
	{"Prometheus: SIGKILL", false, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		e.endPrometheus(ctx, t, draw, syscall.SIGKILL)
	}},
	{"Prometheus: disk full", false, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		back := e.journal.gone(prometheusGone)
		defer back()
		free := e.storage.fill(t)
		sleep(ctx, between(draw, time.Second, 20*time.Second))
		// What it would write behind what it could not write, it would throw away at its next start.
		e.prometheus.Signal(t, syscall.SIGKILL)
		e.prometheus.Wait(t)
		free()
		e.prometheus.Restart(t)
	}},
	{"reports: disk full", false, func(e *endurance, ctx context.Context, t *testing.T, draw *rand.Rand) {
		back := e.full.gone("no room")
		defer back()
		free := e.reports.fill(t)
		sleep(ctx, between(draw, time.Second, 20*time.Second))
		free()
	}},
	{"clock", false, func(e *endurance, _ context.Context, t *testing.T, draw *rand.Rand) {
		jumps := []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -400 * 24 * time.Hour, -time.Second}
		jump := jumps[draw.IntN(len(jumps))]
		t.Logf("the clock is %v off", jump)
		e.clock.set(t, jump)
	}},
}

// makeFaults makes one fault after the other.
func (e *endurance) makeFaults(ctx context.Context, t *testing.T, draw *rand.Rand) {
	t.Helper()
	for sleep(ctx, between(draw, 5*time.Second, 40*time.Second)) {
		fault := enduranceFaults[draw.IntN(len(enduranceFaults))]
		if fault.fatal && time.Since(e.began) > e.ends.Sub(e.began)/2 {
			continue
		}
		began := time.Now()
		fault.make(e, ctx, t, draw)
		e.tally.add(1, "fault: %s", fault.name)
		t.Logf("%v: %s, %v", began.Sub(e.began).Round(time.Second), fault.name, time.Since(began).Round(time.Second/10))
	}
}

func (e *endurance) endExporter(ctx context.Context, t *testing.T, draw *rand.Rand, end func()) {
	t.Helper()
	back := e.journal.gone("no exporter")
	end()
	e.expectCalmLog(t)
	if draw.IntN(2) == 0 {
		sleep(ctx, between(draw, 0, 10*time.Second))
	}
	e.exporter.Restart(t)
	back()
	e.tellAddress(t)
}

// expectCalmLog: the exporter has not crashed.
func (e *endurance) expectCalmLog(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(e.exporter.Log()) {
		if strings.Contains(line, "panic") || strings.Contains(line, "goroutine ") {
			t.Errorf("the exporter's log: %s", clip(e.exporter.Log()))
			return
		}
	}
}

// killForMemory has the kernel kill the exporter, where control groups can be made: another process of its group takes
// all memory, and the exporter is what the kernel shall kill first.
func (e *endurance) killForMemory(t *testing.T) {
	t.Helper()
	if e.memory == "" {
		e.exporter.Kill(t)
		return
	}
	pid := strconv.Itoa(e.exporter.PID())
	require.NoError(t, os.WriteFile("/proc/"+pid+"/oom_score_adj", []byte("1000"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(e.memory, "cgroup.procs"), []byte(pid), 0o600))
	glutton := suite.Start(t, []string{"sh", "-c",
		`ulimit -v 4194304 && echo $$ >"$0/cgroup.procs" && exec tail /dev/zero`, e.memory}, nil)
	status := e.exporter.Wait(t).Status
	assert.Equal(t, 128+int(syscall.SIGKILL), status, "the exporter's status when memory was short")
	assert.Equal(t, 128+int(syscall.SIGKILL), glutton.Wait(t).Status, "the status of what took the memory")
}

func (e *endurance) endPrometheus(ctx context.Context, t *testing.T, draw *rand.Rand, signal syscall.Signal) {
	t.Helper()
	back := e.journal.gone(prometheusGone)
	defer back()
	e.prometheus.Signal(t, signal)
	e.prometheus.Wait(t)
	if draw.IntN(3) == 0 { // longer than ranks are kept that have been scraped
		sleep(ctx, between(draw, enduranceRetention, 3*enduranceRetention/2))
	}
	e.prometheus.Restart(t)
}

// Rule files, of which none changes what is compared with books. The last one is wrong.
var enduranceRules = []string{
	"limits: {series: 500000}\n",
	"rules:\n  - match: {library: openmpi, name: coll_monitoring_o2a_*}\n    drop: true\n",
	"rules:\n  - match: {library: openmpi, name: coll_monitoring_o2a_count}\n    name: given_to_all\n",
	"rules:\n  - match: {name: \"*recvq*\"}\n    drop: true\n",
	"rules:\n  - match: {libary: openmpi}\n    drop: true\n", //nolint:misspell // on purpose
}

// reload gives the exporter other rules, by a signal or by its lifecycle page.
func (e *endurance) reload(_ context.Context, t *testing.T, draw *rand.Rand) {
	i := draw.IntN(len(enduranceRules))
	wrong := i == len(enduranceRules)-1
	require.NoError(t, os.WriteFile(e.rules, []byte(enduranceRules[i]), 0o600))
	if draw.IntN(2) == 0 && !wrong { // which must not lie there when the next exporter starts
		e.exporter.Signal(t, syscall.SIGHUP)
		return
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.exporter.URL("/-/reload"), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, wrong, response.StatusCode != http.StatusOK, "%s: %s", response.Status, body)
	if wrong {
		require.NoError(t, os.WriteFile(e.rules, []byte(enduranceRules[0]), 0o600))
	}
}

// disk is a small file system.
type disk struct {
	dir     string
	fillers []byte // what files have that make it full; nil: it never gets full
}

// newDisk mounts one, as root; for others it is a directory.
func newDisk(t *testing.T, options string, fillers []byte) disk {
	t.Helper()
	dir := suite.Dir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Logf("no disk will be full: mounting a small one: %v", err)
		return disk{dir: dir}
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return disk{dir, fillers}
}

// fill leaves no room, and returns what makes some.
func (d disk) fill(t *testing.T) (free func()) {
	t.Helper()
	made := 0
	for err := error(nil); d.fillers != nil && err == nil; made++ {
		err = os.WriteFile(filepath.Join(d.dir, fmt.Sprint("filler", made)), d.fillers, 0o600)
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
	}
	return func() {
		for i := range made {
			_ = os.Remove(filepath.Join(d.dir, fmt.Sprint("filler", i)))
		}
	}
}

// clock is a wall clock that jumps. Processes with its variable in their environment are on it, if they are an exporter
// of exporterOnClock or have preloaded libclock.c.
type clock struct{ path, library string }

func newClock(t *testing.T) clock {
	t.Helper()
	c := clock{
		path:    filepath.Join(suite.Dir(t), "clock"),
		library: suite.PlainProgram(t, "libclock.c", "library", "-shared", "-fPIC"),
	}
	c.set(t, 0)
	return c
}

func (c clock) variable() string { return "MPIT_TEST_CLOCK=" + c.path }

func (c clock) set(t *testing.T, jump time.Duration) {
	t.Helper()
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600) // not os.WriteFile: it is mapped
	require.NoError(t, err)
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(jump/time.Second)))
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// exporterOnClock builds the exporter with a time.Now that adds to the wall clock what stands in a clock's file. Go
// asks the kernel itself, so that no library can stand between them.
func exporterOnClock(t *testing.T) string {
	t.Helper()
	dir := suite.Dir(t)
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	now := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(now)
	require.NoError(t, err)
	const reads = "sec, nsec, mono := runtimeNow()\n"
	patched := strings.Replace(string(text), reads, reads+"\tsec += *Jump\n", 1) + "\nvar Jump = new(int64)\n"
	require.Contains(t, patched, "sec += *Jump", "Go's time.Now is another one: %s", now)
	const mapping = `package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

func init() {
	file, err := os.Open(os.Getenv("MPIT_TEST_CLOCK"))
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	time.Jump = (*int64)(unsafe.Pointer(&page[0]))
	_ = file.Close()
}
`
	jumpy, jump := filepath.Join(dir, "time.go"), filepath.Join(dir, "jump.go")
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mpit-exporter")
	added := filepath.Join(suite.Root(), "cmd", "mpit-exporter", "jump.go")
	for path, text := range map[string]string{
		jumpy: patched, jump: mapping,
		overlay: fmt.Sprintf(`{"Replace": {%q: %q, %q: %q}}`, now, jumpy, added, jump),
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-C", suite.Root(), "-trimpath", "-overlay", overlay,
		"-o", binary, "./cmd/mpit-exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}
