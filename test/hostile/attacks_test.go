package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// unitMemory is the unit's MemoryMax.
const unitMemory = 1536 << 20

// mostOfOne is as many ranks as one user is sure to have connections for: half of 6,144, about.
const mostOfOne = 3000

// honest is who comes first, and wants to see their own job. They ask from another address than attackers.
var honest = crowd{uid: 1000, ranks: 64, levels: 10, objects: 10, name: 10}

// attack is what is done to an exporter beside an honest job.
type attack struct {
	name    string
	crowds  []crowd
	clients []client
	few     bool // clients: who asks from their own address, the machine's, gets all answers, too
	most    int  // that the exporter may have had, in MiB: a third more than it has
}

// client is somebody who asks again and again, at an address of this machine.
type client struct {
	path  string
	from  string
	n     int
	reads bool // what is answered; else not a byte of it
}

// Each has ended an exporter, or kept others out.
var attacks = []attack{
	{"reports of four users at their limits", users(4, crowd{ranks: 13, levels: 60, objects: 330, name: 200}), []client{
		{"/api/v1/jobs", "127.0.0.1", 1, true}, {"/api/v1/report", "127.0.0.1", 6, false}}, true, 1024},
	{"ranks of 4,096 idle ones", users(1, crowd{ranks: 4096}), []client{
		{"/api/v1/ranks", "127.0.0.1", 220, false}, {"/api/v1/ranks", "127.0.0.2", 220, false}}, false, 256},
	{"communicators and threads of 4,096 idle ranks", users(1, crowd{ranks: 4096, objects: 70, name: 120, threads: 8}),
		[]client{{"/api/v1/ranks", "127.0.0.1", 220, false}, {"/api/v1/jobs", "127.0.0.1", 2, true},
			{"/api/v1/report", "127.0.0.2", 6, false}}, false, 600},
	{"a large page that is not read", users(4, crowd{ranks: 13, levels: 60, objects: 330, name: 40}), []client{
		{"/metrics", "127.0.0.1", 20, false}, {"/metrics", "127.0.0.2", 20, false}}, false, 1024},
	{"catalogues of a silent rank", users(1, crowd{ranks: 1, silent: true}), []client{
		{"/api/v1/catalogue?jobid=of2000", "127.0.0.1", 4, true}}, true, 64},
}

// users is the same crowd of several users.
func users(n int, c crowd) (all []crowd) {
	for i := range n {
		c.uid = 2000 + i
		all = append(all, c)
	}
	return all
}

// Whatever is done to it, the exporter lives within the unit's memory, an honest job keeps all its series, and whoever
// asks for it from another address gets all answers. MPIT_SOAK_ATTACK is for how long each attack lasts: it is make
// soak's. MPIT_SOAK_BINARY is another exporter than this one.
func TestAttacks(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("MPIT_SOAK_ATTACK"))
	if err != nil {
		t.Skip("it takes minutes: make soak")
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { a.run(t, lasts) })
	}
}

func (a attack) run(t *testing.T, lasts time.Duration) {
	group := group(suite.MemoryGroup(t, unitMemory))
	if group == "" {
		t.Skip("no control group can be made")
	}
	e := startIn(t, group)
	r := suite.StartPlayer(t, part+"=ranks", e.Socket)
	honest.come(t, r)
	from := elsewhere(t)
	ups := fmt.Sprintf("\nmpit_rank_up{jobid=%q", honest.job())
	harness.Await(t, "the honest job", func(ctx context.Context) error {
		_, page, err := ask(ctx, from, e.URL("/metrics"))
		if up := strings.Count(page, ups); err == nil && up != honest.ranks {
			err = fmt.Errorf("%d ranks are up", up)
		}
		return err
	})
	want := honest.ranks
	for _, c := range a.crowds {
		c.come(t, r)
		want += min(c.ranks, mostOfOne)
	}
	harness.Await(t, "the others", func(ctx context.Context) error {
		_, page, err := ask(ctx, from, e.URL("/metrics"))
		if there := strings.Count(page, "\nmpit_rank_up{"); err == nil && there < want {
			err = fmt.Errorf("%d of %d ranks are there", there, want)
		}
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	answered := tally{counts: map[string]int{}}
	for _, c := range a.clients {
		for range c.n {
			all.Go(func() { c.loop(ctx, e.Address, &answered) })
		}
	}
	paths := []string{"/metrics"}
	for _, what := range []string{"report", "values", "catalogue"} {
		paths = append(paths, "/api/v1/"+what+"?jobid="+honest.job())
	}
	paths = append(paths, "/api/v1/jobs", "/api/v1/ranks", "/-/healthy")
	took, series, froms := map[string][]time.Duration{}, 0, []string{from}
	if a.few {
		froms = append(froms, "127.0.0.3")
	}
	for turn := 0; ctx.Err() == nil && !e.Ended(); turn++ {
		for _, path := range paths {
			began := time.Now()
			status, body, err := ask(t.Context(), froms[turn%len(froms)], e.URL(path))
			took[path] = append(took[path], time.Since(began))
			if !assert.NoError(t, err, path) || !assert.Equal(t, http.StatusOK, status, "%s: %.500s", path, body) {
				continue
			}
			if path == "/metrics" {
				assert.Equal(t, honest.ranks, strings.Count(body, ups), "of the honest job")
				own, all := levels(body)
				assert.Equal(t, honest.ranks*honest.levels*honest.objects, own, "of the honest job")
				series = max(series, all)
			}
		}
	}
	all.Wait()
	require.False(t, e.Ended(), "it has been killed")
	for _, path := range paths {
		slices.Sort(took[path])
		n := len(took[path])
		t.Logf("%4d × %-35s p50 %6d ms, p90 %6d ms, most %6d ms", n, path, took[path][n/2].Milliseconds(),
			took[path][n*9/10].Milliseconds(), took[path][n-1].Milliseconds())
	}
	t.Logf("attackers: %v; %d series on a page", answered.counts, series)
	mebibytes := highest(t, e.PID()) >> 10
	t.Logf("VmHWM %d MiB, the group's peak %d MiB of %d MiB", mebibytes, group.peak(t)>>20, unitMemory>>20)
	assert.LessOrEqual(t, mebibytes, a.most)
}

// levels is how many series of levels are on a page, and those of the honest job.
func levels(page string) (own, all int) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "mpit_level_") {
			all++
			if strings.Contains(line, fmt.Sprintf("jobid=%q", honest.job())) {
				own++
			}
		}
	}
	return own, all
}

// tally counts answers. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// loop asks until ctx ends.
func (c client) loop(ctx context.Context, address string, answered *tally) {
	for ctx.Err() == nil {
		if c.reads {
			status, _, err := ask(ctx, c.from, "http://"+address+c.path)
			if err == nil {
				answered.add(strconv.Itoa(status))
			}
			continue
		}
		if conn, err := dialer(c.from).DialContext(ctx, "tcp", address); err == nil {
			_ = conn.(*net.TCPConn).SetReadBuffer(4096)
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", c.path)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			status := make([]byte, len("HTTP/1.1 200"))
			if _, err := io.ReadFull(conn, status); err != nil {
				status = []byte("nothing")
			}
			_ = conn.Close()
			answered.add("not read: " + string(status))
		}
	}
}

func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// ask reads an answer over a connection of its own.
func ask(ctx context.Context, from, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer(from).DialContext}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// elsewhere is an address that is none of this machine's interfaces', and that connections can come from all the same.
func elsewhere(t *testing.T) string {
	t.Helper()
	address := fmt.Sprintf("198.51.100.%d", 1+os.Getpid()%254)
	if out, err := exec.Command("ip", "route", "replace", "local", address, "dev", "lo").CombinedOutput(); err != nil {
		t.Skipf("no connection can come from another address than this machine's: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "route", "del", "local", address, "dev", "lo").Run() })
	return address
}

// group is the directory of a control group.
type group string

// peak is the most memory that it has had.
func (g group) peak(t *testing.T) int {
	t.Helper()
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if text, err := os.ReadFile(filepath.Join(string(g), name)); err == nil {
			bytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
			require.NoError(t, err)
			return bytes
		}
	}
	return 0
}

// highest is the most memory that a process has had, in KiB.
func highest(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return kilobytes
}

// startIn starts an exporter in a control group, on a socket that all users reach.
func startIn(t *testing.T, g group) *harness.Exporter {
	t.Helper()
	binary := suite.Binary()
	if other := os.Getenv("MPIT_SOAK_BINARY"); other != "" {
		binary = other
	}
	dir, err := os.MkdirTemp("", "mpit-h-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	wrapper := filepath.Join(dir, "exporter")
	require.NoError(t, os.WriteFile(wrapper, fmt.Appendf(nil, "#!/bin/sh\necho $$ >'%s/cgroup.procs' && exec '%s' \"$@\"\n",
		g, binary), 0o755))
	return suite.ExporterWith(t, harness.ExporterConfig{Binary: wrapper, Socket: filepath.Join(dir, "agent.sock"),
		Env: []string{"GOMEMLIMIT=1382MiB"}}) // as in the unit
}
