package exporter

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
)

// catalogues are what MPI libraries have, as far as it is known.
func catalogues(t *testing.T) []*catalogue.Catalogue {
	t.Helper()
	list, err := catalogue.Read(filepath.Join("..", "mapping", "testdata", "catalogues"))
	require.NoError(t, err)
	return list
}

// timersBegin is where MPICH's timers begin from 4.0 on: about minus the time of day.
const timersBegin = -1.8e9

// libraryRank is a rank that has all variables of a catalogue, a communicator of its own and a window. It is the same
// at each call. Where the library is one whose timers begin far below zero, these do.
func libraryRank(c *catalogue.Catalogue, clock *testClock) mpittest.Config {
	lib := mapping.ParseLibrary(c.Version)
	cfg := mpittest.Config{
		Hello: mpit.Hello{
			ID: mpit.RankID{1}, PID: 4242, Rank: 1, Size: 4, ThreadLevel: 3, InitTime: testTime, AgentVersion: "1.0",
			LibraryVersion: c.Version, Host: "node7", Executable: "/usr/bin/app",
			Attributes: map[string]string{"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "ppid": "99"},
		},
		Variables:  c.MPIT(),
		Elements:   c.Elements(mpittest.PerPeer),
		Categories: c.Categories(),
		Objects: []mpit.Object{
			{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: 4, Rank: 1, Created: testTime},
			{Kind: mpit.BindComm, Name: "halo", Size: 2, Rank: 1, Created: testTime},
			{Kind: mpit.BindWin, Name: "ghosts", Size: 4, Rank: 1, Created: testTime},
			{Kind: mpit.BindFile, Name: "out.dat", Size: 4, Rank: 1, Created: testTime},
		},
		Initial: map[string]float64{},
		Clock:   clock.Now,
	}
	begins := 0.0
	if lib.Name != mapping.OpenMPI && (strings.HasPrefix(lib.Version, "4.") || c.Like != "") {
		begins = timersBegin
	}
	for i := range cfg.Variables {
		v := &cfg.Variables[i]
		if v.Class == mpit.ClassGeneric {
			continue
		}
		values := []any{10 + i}
		switch {
		case v.Class == mpit.ClassState:
			values[0] = 1
		case v.Distribution:
			values = mpittest.Distribution(time.Duration(i)*time.Microsecond, time.Duration(i)*time.Millisecond)
		case v.Class == mpit.ClassTimer:
			cfg.Initial[v.Name+"/TIMER"] = begins
			values[0] = begins + float64(i)/8
		}
		if v.Bind == mpit.BindNone {
			cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class, Values: values})
		}
		for id, o := range cfg.Objects {
			if o.Kind == v.Bind {
				cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class, Object: uint32(id + 1),
					Values: values})
			}
		}
	}
	return cfg
}

// startLibrary starts a node with a rank that has all variables of a catalogue, and whose timers have closed an
// interval.
func startLibrary(t *testing.T, c *catalogue.Catalogue) (*node, *mpittest.Rank) {
	t.Helper()
	clock := newTestClock()
	n := startNode(t, Config{UserName: func(uint32) string { return "alice" }})
	r := mpittest.New(libraryRank(c, clock))
	n.connect(r)
	n.scrape()
	n.settle()
	clock.advance(10 * time.Second)
	for _, v := range c.MPIT() {
		switch {
		case v.Bind != mpit.BindNone || v.Distribution:
		case v.Class == mpit.ClassTimer:
			require.NoError(t, r.Add(v.Name, v.Class, 0, 0.5))
		case v.Class == mpit.ClassCounter, v.Class == mpit.ClassAggregate, v.Class == mpit.ClassTimer:
			require.NoError(t, r.Add(v.Name, v.Class, 0, 4))
		}
	}
	return n, r
}

// variablesOnly leaves out what the exporter says of itself and of the rank.
func variablesOnly(page string) string {
	said := map[string]bool{}
	for _, f := range Families() {
		of := strings.TrimSuffix(f.Name, "_total")
		said[f.Name], said[of], said[of+"_created"] = true, true, true
	}
	var b strings.Builder
	for line := range strings.Lines(page) {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "# UNIT ")
		name = name[:strings.IndexAny(name+" ", " {\n")]
		if !said[name] && !strings.HasPrefix(name, board.Prefix) && !strings.HasPrefix(name, "# ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// The page of each MPI library, as far as its variables are known.
func TestGoldenLibraries(t *testing.T) {
	for _, c := range catalogues(t) {
		name := c.Library
		switch c.Name {
		case "openmpi-4.1", "mpich-4.0", "intelmpi-2021":
		case "mvapich2-2.3":
			c = few(c)
		case "calls":
			name, c = c.Name, few(c)
		default:
			continue // the others differ little
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it computes while others wait
			n, _ := startLibrary(t, c)
			text := get(n.Handler(), "/metrics")
			require.Equal(t, http.StatusOK, text.Code)
			golden(t, "golden/"+name+".txt", variablesOnly(text.Body.String()))

			problems, err := promlint.New(strings.NewReader(someSeries(text.Body.String()))).Lint()
			require.NoError(t, err)
			assert.Empty(t, problems)
			parser := expfmt.NewTextParser(model.LegacyValidation)
			_, err = parser.TextToMetricFamilies(bytes.NewReader(text.Body.Bytes()))
			require.NoError(t, err)

			open := get(n.Handler(), "/metrics", "Accept", acceptOpenMetrics).Body.String()
			assert.True(t, strings.HasSuffix(open, "\n# EOF\n"))
			golden(t, "golden/"+name+".openmetrics.txt", variablesOnly(open))
			_, err = parser.TextToMetricFamilies(strings.NewReader(withoutComments(open)))
			require.NoError(t, err)
		})
	}
}

// few is what a program has that calls a few functions, and broadcasts.
func few(c *catalogue.Catalogue) *catalogue.Catalogue {
	some := *c
	some.Variables = slices.DeleteFunc(slices.Clone(c.Variables), func(v catalogue.Variable) bool {
		_, function, _ := strings.Cut(v.Name, "_MPI_")
		return !slices.Contains([]string{"Sendrecv", "Wait", "Put", "File_iread", ""}, function) ||
			strings.HasPrefix(v.Name, "mv2_coll") && !strings.Contains(v.Name, "bcast")
	})
	return &some
}

// someSeries leaves a few lines of each name: promlint, which is about names and words, compares each series of a
// family with each other. That none stands twice test/exposition sees.
func someSeries(page string) string {
	var b strings.Builder
	lines := map[string]int{}
	for line := range strings.Lines(page) {
		name := line[:strings.IndexAny(line+" ", " {\n")]
		if lines[name]++; strings.HasPrefix(line, "#") || lines[name] <= 20 {
			b.WriteString(line)
		}
	}
	return b.String()
}

// withoutComments is what the parser of the old format understands of OpenMetrics.
func withoutComments(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Whatever the timers and counters of MPICH do, what the histograms' sums and counts say is what the library says, to
// the last bit: with timers that begin at zero (3.4) and with such that begin far below it (4.0), in text and as
// native histograms.
func TestTimersOfMPICHAreExact(t *testing.T) {
	for _, c := range catalogues(t) {
		timers := slices.ContainsFunc(c.Variables, func(v catalogue.Variable) bool { return v.Class == "timer" })
		if c.Library != mapping.MPICH || !timers {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			clock := newTestClock()
			cfg := libraryRank(c, clock)
			mapper := newMapper(t)
			n := startNode(t, Config{Mapper: mapper})
			r := mpittest.New(cfg)
			n.connect(r)

			type source struct {
				family       string // of the timer
				first, total float64
				events       uint64
			}
			sources := map[string]*source{} // by the variable's name
			for i, v := range cfg.Variables {
				switch v.Class {
				case mpit.ClassTimer:
					metric, reason, ok := mapper.Metric(mapping.ParseLibrary(c.Version), v)
					require.True(t, ok, "%s: %s", v.Name, reason)
					begins := cfg.Initial[v.Name+"/TIMER"]
					sources[v.Name] = &source{family: metric.Name, first: begins, total: begins + float64(i)/8}
				case mpit.ClassCounter:
					if s := sources[v.Name]; s != nil { // stands behind its timer
						s.events = uint64(10 + i)
					}
				}
			}
			require.NotEmpty(t, sources)
			// Each timer and its counter move by steps of their own, some of them not at all in some intervals.
			for step := range 5 {
				clock.advance(10 * time.Second)
				i := 0
				for _, v := range cfg.Variables {
					s := sources[v.Name]
					if s == nil || v.Class != mpit.ClassTimer || (i+step)%4 == 0 {
						i++
						continue
					}
					i++
					s.total += 0.001*float64(i) + 0.1*float64(step)
					s.events += uint64(i*step + 1)
					require.NoError(t, r.Set(v.Name, mpit.ClassTimer, 0, s.total))
					require.NoError(t, r.Set(v.Name, mpit.ClassCounter, 0, s.events))
				}
				n.scrape()
			}
			clock.advance(10 * time.Second)

			parser := expfmt.NewTextParser(model.LegacyValidation)
			text, err := parser.TextToMetricFamilies(get(n.Handler(), "/metrics").Body)
			require.NoError(t, err)
			protobuf := map[string]*dto.MetricFamily{}
			for _, f := range decoded(t, n.Handler()) {
				protobuf[f.GetName()] = f
			}
			for format, page := range map[string]map[string]*dto.MetricFamily{"text": text, "protobuf": protobuf} {
				found := 0
				for name, f := range page {
					if f.GetType() != dto.MetricType_HISTOGRAM || strings.HasPrefix(name, board.Prefix) {
						continue
					}
					for _, m := range f.Metric {
						found++
						checkBuckets(t, fmt.Sprint(format, " ", name, m.Label), m.Histogram, format == "protobuf")
					}
				}
				assert.Equal(t, len(sources), found, "%s: a histogram for each timer", format)
				for name, s := range sources {
					want := [2]any{s.total - s.first, s.events}
					var got [][2]any
					for _, m := range page[s.family].GetMetric() {
						got = append(got, [2]any{m.Histogram.GetSampleSum(), m.Histogram.GetSampleCount()})
					}
					assert.Contains(t, got, want, "%s: sum and count of %s in %s", format, name, s.family)
				}
			}
		})
	}
}

// checkBuckets checks that a histogram's buckets hold its count, the native ones too.
func checkBuckets(t *testing.T, what string, h *dto.Histogram, native bool) {
	t.Helper()
	last := uint64(0)
	for _, b := range h.Bucket {
		assert.GreaterOrEqual(t, b.GetCumulativeCount(), last, what)
		last = b.GetCumulativeCount()
	}
	assert.LessOrEqual(t, last, h.GetSampleCount(), what)
	if !native {
		return
	}
	total, count := h.GetZeroCount(), int64(0)
	for _, delta := range h.PositiveDelta {
		count += delta
		total += uint64(count)
	}
	assert.Equal(t, h.GetSampleCount(), total, what)
	assert.EqualValues(t, mapping.NativeSchema, h.GetSchema(), what)
}
