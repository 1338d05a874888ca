package exporter

import (
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/work"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// seekers is a /proc that has nothing, and counts whose control groups are looked for.
type seekers struct{ asked *atomic.Int64 }

func (c seekers) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "/cgroup") {
		c.asked.Add(1)
	}
	return nil, fs.ErrNotExist
}

// Newcomers don't queue up at the registry's lock, where a round would have to wait behind them, but before they are
// identified: of each user one goes ahead, and another user's rank is not behind them.
func TestNewcomersWaitOutsideTheLock(t *testing.T) {
	needRoot(t)
	var asked atomic.Int64
	n := startNodeAt(t, openSocketPath(t), Config{}, func(e *Exporter) { e.proc = seekers{&asked} })
	const crowd = 200
	unlock := sync.OnceFunc(n.lock().unlock)
	defer unlock()
	var conns []net.Conn
	stop := attack(t, n.path, func(a *attacker) {
		for range crowd {
			conns = append(conns, a.rank())
		}
	})
	waiting := func(uid uint32, want int) {
		require.Eventually(t, func() bool { return n.door.users.Users(uid) == want }, longest, time.Millisecond)
	}
	waiting(attackersUID, crowd)
	honest := mpittest.New(small("1", 0))
	require.NoError(t, honest.Connect(t.Context(), n.path))
	t.Cleanup(honest.Kill)
	waiting(ownUID, 1)
	require.Eventually(t, func() bool { return asked.Load() == 2 }, longest, time.Millisecond, "one of each user")
	unlock()
	n.wait(honest, func(r *rank) bool { return r.line != nil })
	require.Eventually(t, func() bool { return n.door.users.Users(attackersUID) == 0 }, longest, time.Millisecond)
	assert.EqualValues(t, crowd+1, asked.Load())
	for _, conn := range conns {
		_ = conn.Close()
	}
	stop()
}

// withWork has the users of an exporter have so much done, and nothing of it forgotten.
func withWork(most int) func(*Exporter) {
	return func(e *Exporter) { e.work = work.New(most, 1, func() time.Time { return testTime }) }
}

// Of a user who connects without end, so many are let in; the others wait in places that are bounded, also when their
// process has gone, and what is more is refused.
func TestFloodOfConnectionsIsBounded(t *testing.T) {
	needRoot(t)
	const places, most = 30, 20
	n := startNodeWith(t, openSocketPath(t), []mpit.ListenOption{mpit.WithLimits(mpit.Limits{Handshakes: places})}, Config{},
		withWork(most*arrivalWork), impatient)
	stop := attack(t, n.path, func(a *attacker) {
		for !a.stopped() {
			if conn := a.rank(); conn != nil {
				_ = conn.Close()
			}
		}
	})
	require.Eventually(t, func() bool { return n.scrape()[protocolErrors("too_many")] > 200 }, longest,
		time.Millisecond)
	assert.LessOrEqual(t, n.door.users.Users(attackersUID), places)
	honest := mpittest.New(small("1", 0))
	n.connect(honest)
	page := n.scrape()
	assert.Equal(t, 1.0, page[of("mpit_rank_up", "1", 0)])
	assert.EqualValues(t, most, page[`mpit_exporter_connections_accepted_total{user="4242"}`])
	stop()
}

// Whose ranks make the exporter compile more than their share waits; the pages don't, nor others' ranks, and nor does
// a rank of the same user of which nothing changes.
func TestCompilingIsChargedToItsUser(t *testing.T) {
	needRoot(t)
	const objects, ranks, more = 100, 20, 5
	const layout = 3 * objects // cells: an object, a handle and a value each
	n := startNodeWith(t, openSocketPath(t), nil, Config{}, impatient,
		withWork((ranks+1)*(arrivalWork+variableWork)+(ranks+more)*layout))
	var samples atomic.Int64
	stop := attack(t, n.path, func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			if n > 0 {
				return sampleOf(seq, 0, n)
			}
			return append(manyRecords(seq, 0, 1), sampleOf(seq, 0, n)...)
		})
		for range ranks {
			a.answers(a.rank(), func(seq uint32, n int) []byte {
				samples.Add(1)
				layout, values := manyObjects(seq, n, objects)
				var b []byte
				if n == 0 {
					b = manyRecords(seq, 0, 1)
				}
				return append(append(b, layout...), sampleOf(seq, n+1, n, values...)...)
			})
		}
	})
	honest := mpittest.New(small("1", 0))
	n.connect(honest)
	require.Eventually(t, func() bool {
		return n.scrape()[`mpit_exporter_ranks{state="up"}`] == 2 && samples.Load() > ranks
	}, longest, time.Millisecond)
	assert.LessOrEqual(t, samples.Load(), int64(ranks+more+1+ranks), "those taken in, and those that wait")
	before := samples.Load()
	for i := range 20 {
		require.NoError(t, honest.Set("depth", mpit.ClassLevel, 0, i))
		page := n.scrapeWithin(time.Hour)
		assert.Equal(t, float64(i), page[of("mpit_depth_level", "1", 0)], "nobody waits for those that do")
		assert.Equal(t, 2.0, page[`mpit_exporter_ranks{state="up"}`])
	}
	assert.Equal(t, before, samples.Load(), "they aren't asked meanwhile")
	stop()
}

// Beside two floods of connections scrapes go on: nine of ten take half a second at the most, and have all honest
// ranks. It measures time, so it is make soak's.
func TestScrapesBesideFloods(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("MPIT_SOAK_FLOOD"))
	if err != nil {
		t.Skip("it measures time: make soak")
	}
	needRoot(t)
	n := startNodeAt(t, openSocketPath(t), Config{})
	const ranks = 64
	for i := range ranks {
		of := small("1", i)
		of.Hello.Size = ranks
		n.connect(mpittest.New(of))
	}
	var sent atomic.Int64
	for range 2 {
		defer attack(t, n.path, func(a *attacker) {
			hello := helloOf(1, 0)
			for {
				select {
				case <-a.stop:
					return
				default:
				}
				conn, err := net.Dial("unix", a.path)
				if err != nil {
					continue
				}
				_, _ = conn.Write(hello)
				_ = conn.Close()
				sent.Add(1)
			}
		})()
	}
	var took []time.Duration
	for begun := time.Now(); time.Since(begun) < lasts; time.Sleep(100 * time.Millisecond) {
		at := time.Now()
		page := n.scrape()
		took = append(took, time.Since(at))
		up := 0.0
		for i := range ranks {
			up += page[of("mpit_rank_up", "1", i)]
		}
		assert.EqualValues(t, ranks, up)
	}
	slices.Sort(took)
	p90 := took[len(took)*9/10]
	t.Logf("%d connections in %s; %d scrapes, p50 %s, p90 %s", sent.Load(), lasts, len(took), took[len(took)/2], p90)
	assert.LessOrEqual(t, p90, 500*time.Millisecond)
}
