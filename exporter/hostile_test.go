package exporter

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// What is on the wire is written here byte by byte, for the simulated ranks of mpittest are too polite.

// record and list are fields of a frame (docs/internals/protocol.md); others are strings, and numbers as int, uint64
// and float64.
type (
	record []any
	list   []record
)

func appendFields(b []byte, fields ...any) []byte {
	word := func(w uint64) { b = binary.LittleEndian.AppendUint64(b, w) }
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			word(uint64(int64(f)))
		case uint64:
			word(f)
		case float64:
			word(math.Float64bits(f))
		case string:
			word(uint64(len(f)))
			b = append(b, f...)
			b = append(b, make([]byte, (8-len(f)%8)%8)...)
		case record:
			at := len(b)
			word(0)
			b = appendFields(b, f...)
			binary.LittleEndian.PutUint64(b[at:], uint64((len(b)-at)/8-1))
		case list:
			word(uint64(len(f)))
			for _, r := range f {
				b = appendFields(b, r)
			}
		}
	}
	return b
}

const (
	wireHello     = 1
	wireVariables = 2
	wireLayout    = 4
	wireSample    = 6
)

// wireFrame is a frame with its header.
func wireFrame(typ uint16, seq uint32, fields ...any) []byte {
	b := append([]byte("MPIT"), 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint16(b[4:], typ)
	binary.LittleEndian.PutUint32(b[12:], seq)
	b = appendFields(b, fields...)
	binary.LittleEndian.PutUint32(b[8:], uint32((len(b)-16)/8))
	return b
}

// helloOf is the HELLO of a rank, as final as kind says.
func helloOf(id uint64, kind int) []byte {
	return wireFrame(wireHello, 0, kind, id, uint64(4242), 1, 0, 1, 3, 1, 0, 1_700_000_000_000_000_000,
		"1.0", "Open MPI v4.1.4", "node", "/bin/evil", list{{"SLURM_JOB_ID", fmt.Sprint("evil", id)}}, "")
}

// variableOf is a record of VARIABLES: an unbound one of 64 bits.
func variableOf(id, class, datatype int, name string) record {
	return record{id, id, class, 1, datatype, 8, 0, 0, 0, 0, 0, name, "from elsewhere"}
}

// sampleOf ends an answer.
func sampleOf(seq uint32, layout int, clock int, values ...any) []byte {
	fields := append([]any{layout, 0, 0, 1_700_000_000_000_000_000 + clock, clock, 10, list{}, len(values)}, values...)
	return wireFrame(wireSample, seq, append(fields, 0)...)
}

// attacker is another user's process.
type attacker struct {
	t    *testing.T
	path string
	next uint64
	stop chan struct{} // closed when it is enough
}

const attackersUID = 4242

// attack runs f as another user: its thread is, and ends with it. The function that it returns stops it and waits for
// it.
func attack(t *testing.T, path string, f func(a *attacker)) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	a := &attacker{t: t, path: path, stop: make(chan struct{})}
	var failed error
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: nobody else gets this thread
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), attackersUID,
			^uintptr(0)); errno != 0 {
			failed = errno
			return
		}
		f(a)
	}()
	return func() {
		close(a.stop)
		<-done
		require.NoError(t, failed)
	}
}

// stopped says whether it is enough, after a pause.
func (a *attacker) stopped() bool {
	select {
	case <-a.stop:
		return true
	case <-time.After(time.Millisecond):
		return false
	}
}

// dial connects; nil: refused for now.
func (a *attacker) dial() net.Conn {
	conn, err := net.Dial("unix", a.path)
	if err != nil {
		return nil
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// send connects and sends what there is to send.
func (a *attacker) send(frames ...[]byte) net.Conn {
	conn := a.dial()
	if conn == nil {
		return nil
	}
	for _, f := range frames {
		_, _ = conn.Write(f)
	}
	return conn
}

// rank connects a rank of its own kind.
func (a *attacker) rank() net.Conn {
	a.next++
	return a.send(helloOf(a.next, 0))
}

// answers has a rank answer each request for a sample, in the background, until its connection ends.
func (a *attacker) answers(conn net.Conn, answer func(seq uint32, n int) []byte) {
	go func() {
		header := make([]byte, 16)
		for n := 0; ; {
			if _, err := io.ReadFull(conn, header); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, conn, 8*int64(binary.LittleEndian.Uint32(header[8:]))); err != nil {
				return
			}
			if binary.LittleEndian.Uint16(header[4:]) != 64 { // SAMPLE
				continue
			}
			if _, err := conn.Write(answer(binary.LittleEndian.Uint32(header[12:]), n)); err != nil {
				return
			}
			n++
		}
	}()
}

func protocolErrors(reason string) string {
	return `mpit_exporter_protocol_errors_total{reason="` + reason + `"}`
}

func refused(reason string) string {
	return `mpit_exporter_connections_refused_total{reason="` + reason + `"}`
}

// manyRecords are VARIABLES from one number on, in frames that are not too large.
func manyRecords(seq uint32, from, n int) []byte {
	var b []byte
	for n > 0 {
		var l list
		for range min(n, 10_000) {
			l = append(l, variableOf(from, 6, 11, fmt.Sprintf("v%d", from)))
			from++
			n--
		}
		b = append(b, wireFrame(wireVariables, seq, 1, l)...)
	}
	return b
}

// manyObjects is a layout with communicators, other ones each time, and a handle on each.
func manyObjects(seq uint32, generation, n int) (layout []byte, values []any) {
	var objects, handles list
	for i := range n {
		id := generation*n + i + 1
		objects = append(objects, record{id, 1, 0, 1, 0, 0, fmt.Sprintf("comm %d", id)})
		handles = append(handles, record{id, 0, id, 1, 0, 4})
		values = append(values, 1)
	}
	return wireFrame(wireLayout, seq, generation+1, 0, 0, objects, handles), values
}

// distributionOf is a record of VARIABLES that says it is a distribution.
func distributionOf(id int, class mpit.Class, datatype mpit.Datatype, name string) record {
	r := variableOf(id, int(class), int(datatype), name)
	r[7] = 8 // flags
	return r
}

// distributions are those of a rank that calls so many functions, each with a handle of so many elements, and their
// values.
func distributions(seq uint32, name string, elements ...int) (frames []byte, values []any) {
	var handles list
	for at := 0; at < len(elements); {
		var l list
		for ; at < len(elements) && len(l) < 10_000; at++ {
			l = append(l, distributionOf(at, mpit.ClassTimer, mpit.DatatypeUint64, name+fmt.Sprint(at)))
			handles = append(handles, record{at + 1, at, 0, elements[at], 0, 4})
			values = append(values, make([]any, elements[at])...)
		}
		frames = append(frames, wireFrame(wireVariables, seq, 1, l)...)
	}
	return append(frames, wireFrame(wireLayout, seq, 1, 0, 0, list{}, handles)...), values
}

// many is how many connections are tried, far more than are let in.
func many() int {
	if testing.Short() {
		return 10_000 / 4
	}
	return 10_000
}

var hostilities = []struct {
	name    string
	attack  func(a *attacker)
	counted string // and how often at least
	atLeast float64
}{
	{"bytes of another protocol", func(a *attacker) { a.send([]byte("GET /metrics HTTP/1.1\r\n\r\n")) },
		protocolErrors("bad_magic"), 1},
	{"a frame that is too large", func(a *attacker) {
		a.send(append([]byte("MPIT\x01\x00\x01\x00\xff\xff\xff\xff"), 0, 0, 0, 0))
	}, protocolErrors("too_large"), 1},
	{"a frame cut short", func(a *attacker) {
		if conn := a.send(helloOf(1, 0)[:50]); conn != nil {
			_ = conn.Close()
		}
	}, protocolErrors("truncated"), 1},
	{"a version that is not known", func(a *attacker) {
		h := helloOf(1, 0)
		h[6] = 99
		a.send(h)
	}, protocolErrors("version"), 1},
	{"a length that is a lie", func(a *attacker) {
		h := helloOf(1, 0)
		h[16+80] = 0xff // of the agent's version
		a.send(h)
	}, protocolErrors("malformed"), 1},
	{"HELLO byte by byte", func(a *attacker) {
		if conn := a.dial(); conn != nil {
			go func() {
				for _, b := range helloOf(1, 0) {
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
		}
	}, protocolErrors("handshake_timeout"), 1},
	{"HELLO twice", func(a *attacker) { a.send(helloOf(1, 0), helloOf(1, 0)) }, protocolErrors("malformed"), 1},
	{"silence after HELLO", func(a *attacker) { a.rank() }, `mpit_exporter_samples_total{result="late"}`, 1},
	{"an answer byte by byte", func(a *attacker) {
		conn := a.rank()
		a.answers(conn, func(seq uint32, _ int) []byte { return sampleOf(seq, 0, 1)[:20] })
	}, `mpit_exporter_samples_total{result="late"}`, 1},
	{"answers that nobody asked for", func(a *attacker) { a.send(helloOf(1, 0), sampleOf(7, 0, 1)) },
		protocolErrors("malformed"), 1},
	{"frames that mean nothing, without end", func(a *attacker) {
		conn := a.rank()
		f := wireFrame(999, 0, 1)
		for range 2000 {
			if _, err := conn.Write(f); err != nil {
				return
			}
		}
	}, protocolErrors("too_large"), 1},
	{"an answer that never ends", func(a *attacker) {
		conn := a.rank()
		go func() {
			_, _ = io.ReadFull(conn, make([]byte, 16))
			f := manyRecords(1, 0, 10_000)
			for range 100 {
				if _, err := conn.Write(f); err != nil {
					return
				}
			}
		}()
	}, protocolErrors("malformed"), 1},
	{"thousands of connections without a word", func(a *attacker) {
		for n := 0; n < many(); {
			if a.dial() != nil {
				n++
			} else if a.stopped() { // a socket that is full refuses some uncounted
				return
			}
		}
	}, protocolErrors("too_many"), 1000},
	{"connections with HELLO, more than his share", func(a *attacker) {
		for range 50 {
			a.rank()
		}
		for n := 0; n < many() && !a.stopped(); { // a socket that is full refuses some uncounted
			if a.dial() != nil {
				n++
			}
		}
	}, protocolErrors("too_many_connections"), 50},
	{"more ranks than one user may have", func(a *attacker) {
		for range 100 {
			a.rank()
		}
	}, refused("too_many_ranks"), 1},
	{"another user's rank", func(a *attacker) {
		victim := mpit.RankID{1}
		a.send(helloOf(binary.LittleEndian.Uint64(victim[:8]), 0)) // the second half differs
		a.send(wireFrame(wireHello, 0, 0, uint64(1), uint64(0), 1, 0, 1, 3, 1, 0, 0, "", "", "", "", list{}, ""))
	}, refused("other_uid"), 1},
	{"last samples that don't come", func(a *attacker) {
		for !a.stopped() { // one after the other: those that wait to be let in are few
			a.next++
			a.send(helloOf(a.next, 1))
		}
	}, refused("too_many_finals"), 1},
	{"one HELLO after the other", func(a *attacker) {
		for !a.stopped() {
			if conn := a.rank(); conn != nil {
				_ = conn.Close()
			}
		}
	}, "mpit_exporter_ranks_evicted_total", 100},
	{"one rank twice", func(a *attacker) { a.send(helloOf(1, 0)); a.send(helloOf(1, 0)); a.send(helloOf(1, 0)) },
		`mpit_exporter_connections_accepted_total{user="4242"}`, 3},
	{"a million variables", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, _ int) []byte {
			return append(manyRecords(seq, 0, 100_000),
				sampleOf(seq, 0, 1)...)
		})
	}, protocolErrors("too_large"), 1},
	{"as many variables as the protocol allows", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			if n > 0 {
				return sampleOf(seq, 0, n)
			}
			return append(manyRecords(seq, 0, 65_536), sampleOf(seq, 0, 0)...)
		})
	}, `mpit_exporter_series_dropped_total{reason="variables_over_bound"}`, 60_000},
	{"objects that are others at each sample", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			layout, values := manyObjects(seq, n, 20_000)
			b := append(manyRecords(seq, 0, 1), layout...)
			return append(b, sampleOf(seq, n+1, n, values...)...)
		})
	}, `mpit_exporter_series_dropped_total{reason="objects_over_bound"}`, 3000},
	{"numbers that are none", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			variables := list{
				variableOf(0, 8, 7, "time"), variableOf(1, 3, 7, "share"), variableOf(2, 6, 11, "count"),
				variableOf(3, 1, 7, "level"),
			}
			b := wireFrame(wireVariables, seq, 1, variables)
			b = append(b, wireFrame(wireLayout, seq, 1, 0, 0, list{}, list{
				{1, 0, 0, 1, 0, 4}, {2, 1, 0, 1, 0, 4}, {3, 2, 0, 1, 0, 4}, {4, 3, 0, 1, 0, 4},
			})...)
			return append(b, sampleOf(seq, 1, n, math.Inf(1), math.NaN(), uint64(math.MaxUint64), math.Inf(-1))...)
		})
	}, `mpit_exporter_series_dropped_total{reason="not_a_number"}`, 3},
	{"distributions that can't be any", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			variables := list{
				distributionOf(0, mpit.ClassCounter, mpit.DatatypeUint64, "counter"),
				distributionOf(1, mpit.ClassState, mpit.DatatypeUint64, "state"),
				distributionOf(2, mpit.ClassTimer, mpit.DatatypeDouble, "double"),
				distributionOf(3, mpit.ClassTimer, mpit.DatatypeChar, "char"),
				distributionOf(4, mpit.ClassGeneric, mpit.DatatypeUint64, "generic"),
				distributionOf(5, 99, mpit.DatatypeUint64, "unknown"),
			}
			b := append(wireFrame(wireVariables, seq, 1, variables),
				wireFrame(wireLayout, seq, 1, 0, 0, list{}, list{})...)
			return append(b, sampleOf(seq, 1, n)...)
		})
	}, `mpit_exporter_series_dropped_total{reason="distribution"}`, 6},
	{"distributions of as many elements as they like, with counts beyond all measure that fall and rise",
		func(a *attacker) {
			a.answers(a.rank(), func(seq uint32, n int) []byte {
				b, values := distributions(seq, "v", 1, 2, 45, 128, 129, 200_000)
				for i := range values {
					values[i] = []uint64{math.MaxUint64, 0, 1 << 63, math.MaxInt64}[(i+n)%4]
				}
				return append(b, sampleOf(seq, 1, n, values...)...)
			})
		}, `mpit_exporter_series_dropped_total{reason="distribution"}`, 3},
	{"distributions that are none any more", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			r := distributionOf(0, mpit.ClassTimer, mpit.DatatypeUint64, "v")
			r[7] = 8 * (n % 2)
			return append(wireFrame(wireVariables, seq, n+1, list{r}), sampleOf(seq, 0, n)...)
		})
	}, protocolErrors("malformed"), 1},
	{"more functions than any program calls", func(a *attacker) {
		elements := slices.Repeat([]int{45, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 4000)
		a.answers(a.rank(), func(seq uint32, n int) []byte {
			b, values := distributions(seq, "mpit_call_time_MPI_\"\n{}", elements...)
			for i := range values {
				values[i] = n
			}
			if n > 0 {
				b = nil
			}
			return append(b, sampleOf(seq, 1, n, values...)...)
		})
	}, `mpit_exporter_series_dropped_total{reason="rank_over_limit"}`, 1000},
	{"a time that is none", func(a *attacker) {
		a.answers(a.rank(), func(seq uint32, _ int) []byte { return sampleOf(seq, 0, math.MinInt64) })
	}, protocolErrors("malformed"), 1},
}

// Whatever a rank of one user does, it is counted with a reason, and another user's ranks are fresh in every round
// meanwhile.
func TestHostileRanks(t *testing.T) {
	needRoot(t)
	for _, test := range hostilities {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(test.name, "connections") { // of which a process has only so many
				t.Parallel() // most of the others wait for a time to pass
			}
			handshake := longest // so that connections without a word stay, however slowly they come
			if test.counted == protocolErrors("handshake_timeout") {
				handshake = time.Second
			}
			n := startNodeWith(t, openSocketPath(t), []mpit.ListenOption{
				mpit.WithLimits(mpit.Limits{HandshakeTimeout: handshake, Connections: 180, Handshakes: 60}),
			}, Config{MaxRanks: 50, MaxEnded: 50}, impatient, func(e *Exporter) { e.grace = 10 * time.Millisecond })
			cfg := small("1", 0)
			cfg.Hello.ID = mpit.RankID{1}
			honest := []*mpittest.Rank{mpittest.New(cfg), mpittest.New(small("1", 1)), mpittest.New(small("1", 2))}
			n.connect(honest...)
			require.Eventually(t, func() bool { return n.scrape()[`mpit_exporter_ranks{state="up"}`] == 3 }, longest,
				time.Millisecond)
			fresh := func(value int) map[string]float64 {
				for _, r := range honest {
					require.NoError(t, r.Set("depth", mpit.ClassLevel, 0, value))
				}
				page := n.scrapeFor(honest...)
				for i := range honest {
					require.Equal(t, float64(value), page[of("mpit_depth_level", "1", i)], "rank %d in round %d", i,
						value)
					require.Equal(t, 1.0, page[of("mpit_rank_up", "1", i)])
				}
				return page
			}
			fresh(1)
			stop := attack(t, n.path, test.attack)
			value := 1
			require.Eventually(t, func() bool {
				value++
				return fresh(value)[test.counted] >= test.atLeast
			}, longest, 20*time.Millisecond, test.counted)
			stop()
			fresh(value + 1)
			parsesAsText(t, n)
		})
	}
}

func parsesAsText(t *testing.T, n *node) {
	t.Helper()
	body := get(n.Handler(), "/metrics").Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	_, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	assert.NotContains(t, body, "\x00")
}

// Names of all kinds become a page that a scraper can read.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"", "\"", "\\", "\n", "a\nb{} 1", "\x00", "\xff\xfe", "é", "# HELP x", strings.Repeat("x", 30_000),
		"__name__", "mpit_rank_up", "a\u2028b", "\r", "\x1b[2J\u009b",
	} {
		cfg := small("1\n"+name, 0)
		cfg.Hello.Host, cfg.Hello.Executable, cfg.Hello.LibraryVersion, cfg.Hello.AgentVersion = name, name, name, name
		cfg.Hello.Attributes["SLURM_JOB_NAME"] = name
		cfg.Variables[0].Name, cfg.Variables[0].Description = name, name
		cfg.Variables[1].Bind = mpit.BindComm
		cfg.Objects = []mpit.Object{{Kind: mpit.BindComm, Name: name, Size: 1, Created: testTime,
			Details: []mpit.Detail{{Key: "topology", Value: "\"\n"}}}}
		cfg.Values = nil
		n := startNode(t, Config{})
		n.connect(mpittest.New(cfg))
		page := n.scrape()
		assert.Equal(t, 1.0, page[`mpit_exporter_ranks{state="up"}`], "%.20q", name)
		parsesAsText(t, n)
		n.stop()
	}
}

// Of what one user's ranks send, no more stays in memory than his share, whatever it becomes; and nothing when they
// are gone.
func TestHostileMemory(t *testing.T) {
	needRoot(t)
	limit, each := 128<<20, 20_000 // half of the default, and variables that fill it
	if testing.Short() {
		limit, each = limit/8, each/8
	}
	n := startNodeWith(t, openSocketPath(t), []mpit.ListenOption{mpit.WithLimits(mpit.Limits{Memory: limit})},
		Config{Retention: time.Millisecond}, func(e *Exporter) {
			e.endedBytes, e.grace = limit/2, 0
		})
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	n.scrape()
	before := heap()
	var conns []net.Conn
	stop := attack(t, n.path, func(a *attacker) {
		for i := range 49 {
			conn := a.rank()
			conns = append(conns, conn)
			variables := manyRecords(0, 0, each)
			// else they would be held once
			copy(variables[bytes.Index(variables, []byte("v0")):], fmt.Sprintf("%02d", i))
			a.answers(conn, func(seq uint32, n int) []byte {
				if n > 0 {
					return sampleOf(seq, 0, n)
				}
				b := append([]byte(nil), variables...)
				for at := 0; at < len(b); at += 16 + 8*int(binary.LittleEndian.Uint32(b[at+8:])) {
					binary.LittleEndian.PutUint32(b[at+12:], seq)
				}
				return append(b, sampleOf(seq, 0, n)...)
			})
		}
	})
	require.Eventually(t, func() bool { return n.scrapeWithin(time.Second)[protocolErrors("memory")] > 0 }, longest,
		100*time.Millisecond)
	stop()
	most := heap() - before
	for range 5 { // and what was late
		n.scrapeWithin(time.Second)
		most = max(most, heap()-before)
	}
	// What else is asked for meanwhile is measured while it is sent. No rank answers the catalogue, however long that
	// waits.
	for path, wait := range map[string]time.Duration{"ranks": longest, "values": longest,
		"catalogue?jobid=evil1": 100 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		w := &measuring{ResponseWriter: httptest.NewRecorder(), measure: func() { most = max(most, heap()-before) }}
		n.API().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, nil))
		assert.Nil(t, w.measure, path)
		cancel()
	}
	window, err := n.Window(t.Context())
	require.NoError(t, err)
	most = max(most, heap()-before)
	assert.LessOrEqual(t, seriesOf(&window)+len(window.Ranks), maxWindowSeries)
	t.Logf("%d MiB with a limit of %d MiB", most>>20, limit>>20)
	assert.Less(t, most, uint64(2*limit))
	for _, conn := range conns {
		_ = conn.Close()
	}
	require.Eventually(t, func() bool {
		n.scrapeWithin(time.Second)
		return len(n.Ranks()) == 0
	}, longest, 100*time.Millisecond)
	left := int64(heap()) - int64(before)
	t.Logf("%d MiB when they are gone", left>>20)
	assert.Less(t, left, int64(limit/4))
}

// measuring is a client who measures before it takes the first byte.
type measuring struct {
	http.ResponseWriter
	measure func()
}

func (m *measuring) Write(p []byte) (int, error) {
	if m.measure != nil {
		m.measure()
		m.measure = nil
	}
	return m.ResponseWriter.Write(p)
}

func seriesOf(list *api.ValueList) (n int) {
	for _, r := range list.Ranks {
		for _, v := range r.Variables {
			n += len(v.Series)
		}
	}
	return n
}

// An answer on all ranks has no more series than it may, in one user's share as in all; what jobs do now is made of
// call profiles and levels alone.
func TestWindowIsBounded(t *testing.T) {
	n := startNode(t, Config{}, everyTime)
	for i := range 3 {
		n.connect(mpittest.New(bound(strconv.Itoa(i), 0, 1000)))
	}
	n.scrape()
	all := source{n.Exporter}.values(api.Selector{}, api.Bounds{Series: 1 << 30, Bytes: 1 << 30})
	window, err := n.Window(t.Context())
	require.NoError(t, err)
	assert.Less(t, seriesOf(&window), seriesOf(&all))
	for _, r := range window.Ranks {
		for _, v := range r.Variables {
			assert.Equal(t, "gauge", v.Kind, v.Metric)
		}
	}
	tight := source{n.Exporter}.values(api.Selector{}, api.Bounds{Series: 1500, Bytes: 1 << 30})
	assert.LessOrEqual(t, seriesOf(&tight)+len(tight.Ranks), 1500)
	assert.Equal(t, []api.LeftOut{{UID: ownUID, User: "alice", JobID: "1", Ranks: 1},
		{UID: ownUID, User: "alice", JobID: "2", Ranks: 1}},
		tight.LeftOut)
	bytes := source{n.Exporter}.values(api.Selector{}, api.Bounds{Series: 1 << 30, Bytes: 100_000})
	assert.Less(t, seriesOf(&bytes), 100_000/64)
}

// Ranks without a connection hold no more than so much, and it is those of who holds most that go first.
func TestEndedRanksAreBoundedInBytes(t *testing.T) {
	table := newTable()
	for i := range byte(4) {
		r := table.add(nil, mpit.Hello{ID: mpit.RankID{i + 1}}, mpit.Peer{UID: uint32(min(i, 1))},
			identity.Process{ID: Identity{Rank: int(i)}})
		r.facts.Store(&board.Facts{Size: 100})
		r.finish(mpit.EndExit, testTime.Add(time.Duration(i)))
		table.enter(r)
	}
	require.Nil(t, table.surplus(100, 400))
	assert.Equal(t, 1, table.surplus(100, 399).ID.Rank, "the oldest of who holds most")
	back := table.byID[mpit.RankID{2}]
	back.end, back.gone = mpit.EndNone, testTime.Add(time.Hour)
	table.enter(back)
	assert.Equal(t, 2, table.surplus(100, 399).ID.Rank, "it has lost its connection now")
}
