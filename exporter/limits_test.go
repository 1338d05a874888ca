package exporter

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// bound is a rank with so many communicators, a counter and a level, both bound to communicators.
func bound(job string, number, comms int) mpittest.Config {
	cfg := small(job, number)
	cfg.Variables, cfg.Values = nil, nil
	for _, v := range []mpit.Variable{
		{Name: "sent", Class: mpit.ClassCounter, Verbosity: mpit.VerbosityUserBasic},
		{Name: "queue", Class: mpit.ClassLevel, Verbosity: mpit.VerbosityMPIDevAll},
	} {
		v.Datatype, v.DatatypeBytes, v.Bind = mpit.DatatypeUnsignedLongLong, 8, mpit.BindComm
		cfg.Variables = append(cfg.Variables, v)
	}
	for i := range comms {
		cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Name: fmt.Sprintf("comm%03d", i), Size: 1,
			Created: testTime})
		for _, v := range cfg.Variables {
			cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class, Object: uint32(i + 1),
				Values: []any{1}})
		}
	}
	return cfg
}

// pvars counts the series of performance variables on a page, of one job and rank, or with "" of all.
func pvars(page map[string]float64, job string, number int) (n int) {
	for key := range page {
		if (strings.HasPrefix(key, "mpit_sent_total") || strings.HasPrefix(key, "mpit_queue")) &&
			(job == "" || strings.Contains(key, `jobid="`+job+`"`) &&
				strings.Contains(key, `rank="`+strconv.Itoa(number)+`"`)) {
			n++
		}
	}
	return n
}

func dropped(reason mapping.Reason) string {
	return `mpit_exporter_series_dropped_total{reason="` + string(reason) + `"}`
}

// Each rank would have 20 series. Who came first keeps his. They are all of one user, who may have half of what there
// is.
func TestLimits(t *testing.T) {
	type place struct {
		job    string
		number int
	}
	for _, test := range []struct {
		name   string
		limits rules.Limits
		want   []int // series of three ranks: two of job 1, one of job 2
		reason mapping.Reason
		lost   float64
	}{
		{"none", rules.Limits{}, []int{20, 20, 20}, "", 0},
		{"of a rank", rules.Limits{SeriesPerRank: 10}, []int{10, 10, 10}, mapping.ReasonRankOverLimit, 36},
		{"of a variable", rules.Limits{SeriesPerVariable: 5}, []int{10, 10, 10}, mapping.ReasonVariableOverLimit, 36},
		{"of a job", rules.Limits{SeriesPerJob: 30}, []int{20, 10, 20}, mapping.ReasonJobOverLimit, 12},
		{"of a user", rules.Limits{SeriesPerUser: 45}, []int{20, 20, 5}, mapping.ReasonUserOverLimit, 17},
		{"of all", rules.Limits{Series: 90}, []int{20, 20, 5}, mapping.ReasonSeriesOverLimit, 17},
		{"no room for objects", rules.Limits{Series: 84}, []int{20, 20, 2}, mapping.ReasonSeriesOverLimit, 20},
		{"no room for all variables", rules.Limits{Series: 82}, []int{20, 20, 1}, mapping.ReasonSeriesOverLimit, 21},
		{"no room at all", rules.Limits{Series: 80}, []int{20, 20, 0}, mapping.ReasonSeriesOverLimit, 22},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startNode(t, Config{Limits: test.limits})
			places := []place{{"1", 0}, {"1", 1}, {"2", 0}}
			for _, p := range places {
				n.connect(mpittest.New(bound(p.job, p.number, 10)))
				n.scrape()
			}
			page := n.scrape()
			for i, p := range places {
				assert.Equal(t, test.want[i], pvars(page, p.job, p.number), "job %s rank %d", p.job, p.number)
				assert.Equal(t, 1.0, page[of("mpit_rank_up", p.job, p.number)])
			}
			for _, reason := range []mapping.Reason{
				mapping.ReasonSeriesOverLimit, mapping.ReasonJobOverLimit, mapping.ReasonUserOverLimit,
				mapping.ReasonRankOverLimit,
				mapping.ReasonVariableOverLimit,
			} {
				want := 0.0
				if reason == test.reason {
					want = test.lost
				}
				assert.Equal(t, want, page[dropped(reason)], reason)
			}
			l := test.limits.WithDefaults()
			for scope, want := range map[string]int{
				"all": l.Series, "job": l.SeriesPerJob, "user": l.SeriesPerUser, "rank": l.SeriesPerRank,
				"variable": l.SeriesPerVariable,
			} {
				assert.Equal(t, float64(want), page[`mpit_exporter_series_limit{scope="`+scope+`"}`], scope)
			}
			w := test.want
			for scope, want := range map[string]int{
				"all": w[0] + w[1] + w[2], "job": max(w[0]+w[1], w[2]), "user": w[0] + w[1] + w[2],
				"rank": max(w[0], w[1], w[2]),
			} {
				assert.Equal(t, float64(want), page[`mpit_exporter_series_used{scope="`+scope+`"}`], scope)
			}
			assert.Equal(t, http.StatusOK, get(n.Handler(), "/metrics").Code)
		})
	}
}

func TestNegativeLimitsAreRefused(t *testing.T) {
	_, err := New(Config{Mapper: newMapper(t), Limits: rules.Limits{SeriesPerUser: -1}})
	assert.EqualError(t, err, "exporter: making an exporter: limit series_per_user is below zero: -1")
}

// A rank that has ended holds its room until it has left the page. Then those that come have it.
func TestEndedRanksCount(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Limits: rules.Limits{Series: 50}}, withClock(clock))
	first := mpittest.New(bound("1", 0, 10))
	n.connect(first)
	n.scrape()
	n.finish(first, mpit.EndFinalize)
	n.connect(mpittest.New(bound("1", 1, 10)))
	assert.Equal(t, 5, pvars(n.scrape(), "1", 1))
	clock.advance(DefaultRetention)
	n.scrape()
	assert.False(t, n.known(first))
	assert.Equal(t, 5, pvars(n.scrape(), "1", 1), "what has found no room stays without")
	n.connect(mpittest.New(bound("1", 2, 10)))
	assert.Equal(t, 20, pvars(n.scrape(), "1", 2))
}

// Where there is no room for one more like it, a rank that has ended leaves once everybody has got its last values:
// else jobs that run one after the other would find none.
func TestEndedRanksMakeRoom(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Limits: rules.Limits{Series: 50}}, withClock(clock))
	for i := range 4 {
		r := mpittest.New(bound("1", i, 10))
		n.connect(r)
		assert.Equal(t, 20, pvars(n.scrape(), "1", i), "rank %d", i)
		n.finish(r, mpit.EndFinalize)
		assert.Equal(t, 10, pvars(n.scrape(), "1", i), "of rank %d, what lasts", i)
		clock.advance(time.Second)
	}
	assert.Zero(t, n.scrape()[dropped(mapping.ReasonSeriesOverLimit)])
}

// The agent is told what it need not read.
func TestWhatIsLeftOutIsNotRead(t *testing.T) {
	n := startNode(t, Config{Limits: rules.Limits{Series: 2}})
	r := mpittest.New(bound("1", 0, 1))
	n.connect(r)
	assert.Equal(t, 1, pvars(n.scrape(), "1", 0))
	selected := func(want bool) {
		t.Helper()
		n.wait(r, func(r *rank) bool {
			return !r.send.selection && r.send.selected && r.send.ids[1] == want && r.send.ids[0]
		})
	}
	selected(false)
}

func (n *node) changeLimits(l rules.Limits) {
	n.t.Helper()
	require.NoError(n.t, n.budgets.SetLimits(l))
	n.self.ShowLimits(n.budgets.Limits())
}

// Limits are for what comes: lower ones take nothing, higher ones give nothing to what is there.
func TestLimitsChange(t *testing.T) {
	n := startNode(t, Config{})
	for i := range 3 {
		n.connect(mpittest.New(bound("1", 2-i, 10)))
	}
	want := func(series ...int) {
		t.Helper()
		page := n.scrape()
		for i, w := range series {
			assert.Equal(t, w, pvars(page, "1", 2-i), "rank %d", 2-i)
		}
	}
	want(20, 20, 20)
	n.changeLimits(rules.Limits{SeriesPerJob: 65})
	assert.Equal(t, 65.0, n.scrape()[`mpit_exporter_series_limit{scope="job"}`])
	n.connect(mpittest.New(bound("1", 3, 10)))
	n.scrape()
	assert.Equal(t, 5, pvars(n.scrape(), "1", 3))
	n.changeLimits(rules.Limits{Series: 10})
	want(20, 20, 20)
	n.changeLimits(rules.Limits{})
	want(20, 20, 20)
	assert.Equal(t, 5, pvars(n.scrape(), "1", 3))

	require.EqualError(t, n.budgets.SetLimits(rules.Limits{Series: -1}), "limit series is below zero: -1")
	assert.Equal(t, rules.Limits{}.WithDefaults(), n.budgets.Limits(), "the old ones stay")
}

// floodSample is a sample with so many counters on so many communicators, each with a name of its own.
func floodSample(variables, comms int) *mpit.Sample {
	vs := &mpit.Variables{Generation: 1}
	layout := &mpit.Layout{Generation: 1}
	for i := range comms {
		layout.Objects = append(layout.Objects, mpit.Object{ID: uint32(i + 1), Kind: mpit.BindComm,
			Name: fmt.Sprintf("comm %d", i)})
	}
	for v := range variables {
		vs.ByID = append(vs.ByID, mpit.Variable{
			ID: uint32(v), Name: fmt.Sprintf("variable_%d", v), Class: mpit.ClassCounter,
			Datatype: mpit.DatatypeUint64, DatatypeBytes: 8, Bind: mpit.BindComm,
		})
		for i := range comms {
			layout.Handles = append(layout.Handles, mpit.Handle{
				ID: uint32(len(layout.Handles) + 1), Variable: uint32(v), Object: uint32(i + 1), Count: 1,
				Created: testTime, Offset: layout.Values,
			})
			layout.Values++
		}
	}
	return &mpit.Sample{Variables: vs, Layout: layout, Values: make([]uint64, layout.Values)}
}

// arrivals is an exporter, and what lets a rank of a user's job come and takes a sample of it in.
func arrivals(t *testing.T, limits rules.Limits) (
	e *Exporter, come func(uid uint32, job string, s *mpit.Sample) *rank) {
	t.Helper()
	e, err := New(Config{Mapper: newMapper(t), Limits: limits})
	require.NoError(t, err)
	id := uint16(0)
	come = func(uid uint32, job string, s *mpit.Sample) *rank {
		id++
		h := mpit.Hello{ID: mpit.RankID{byte(id), byte(id >> 8)}, Rank: int(id),
			Attributes: map[string]string{"SLURM_JOB_ID": job, "SLURM_STEP_ID": "0"}}
		g := e.lock()
		r := g.add(h, mpit.Peer{UID: uid}, processOf(&h, fmt.Sprint(uid)))
		r.state = stateUp
		g.unlock()
		require.True(t, e.absorbed(r, s))
		return r
	}
	return e, come
}

// One user floods the node: ranks with 3,000 communicators, ranks with thousands of variables. Another one's ranks
// have all their series nevertheless, with the default limits.
func TestOneUsersFloodTakesNobodysRoom(t *testing.T) {
	t.Parallel() // it computes while others wait
	e, come := arrivals(t, rules.Limits{})
	objects, variables := floodSample(10, 3000), floodSample(4000, 5)
	for i := range 9 {
		come(1000, strconv.Itoa(i/4), objects)
		come(1000, strconv.Itoa(i/4), variables)
	}
	a := e.budgets.Used(nil).All
	assert.LessOrEqual(t, a, standard().SeriesPerUser)
	assert.Greater(t, a, standard().SeriesPerUser*9/10, "he is at his limit")
	ordinary := floodSample(60, 20)
	for range 100 {
		b := come(2000, "b", ordinary)
		assert.Equal(t, 60*20, b.facts.Load().Series)
	}
	all := e.budgets.Used(nil).All
	assert.Equal(t, a+100*60*20, all)
	assert.LessOrEqual(t, all, standard().Series)
}

func standard() rules.Limits { return rules.Limits{}.WithDefaults() }

// Fifty users come, each with twenty ranks that want all they may have: a job that was there before keeps all its
// series, there are no more of them than there may be, and a job that comes then gets some.
func TestManyUsersAtTheirLimits(t *testing.T) {
	t.Parallel()
	// A tenth of the defaults, so that there is less to compute.
	limits := rules.Limits{Series: 50_000, SeriesPerJob: 20_000, SeriesPerUser: 25_000, SeriesPerRank: 2_000,
		SeriesPerVariable: 200}
	e, come := arrivals(t, limits)
	ordinary, flood := floodSample(10, 1), floodSample(5, 40)
	honest := make([]*rank, 64)
	for i := range honest {
		honest[i] = come(1000, "honest", ordinary)
	}
	for user := range uint32(50) {
		for rank := range 20 {
			come(2000+user, strconv.Itoa(rank/8), flood)
		}
	}
	for _, r := range honest {
		require.True(t, e.absorbed(r, ordinary))
		assert.Equal(t, 10, r.facts.Load().Series)
	}
	used := e.budgets.Used(nil)
	assert.LessOrEqual(t, used.All, limits.Series)
	assert.Greater(t, used.All, limits.Series*9/10, "they are at their limits")
	series := 0
	for range 64 {
		series += come(1001, "newcomer", ordinary).facts.Load().Series
	}
	t.Logf("a job that comes now has %d series", series)
	assert.Greater(t, series, 40)
}

// meanwhile lets something happen after a rank has been told what it may have, and before it takes any of that.
type meanwhile struct {
	figures
	do func()
}

func (m meanwhile) Update(s *mpit.Sample) {
	m.do()
	m.figures.Update(s)
}

// Ranks of two users that are taken in at the same time have no more than there is, together.
func TestLimitsHoldForRanksAtTheSameTime(t *testing.T) {
	e, err := New(Config{Mapper: newMapper(t), Limits: rules.Limits{Series: 80}})
	require.NoError(t, err)
	sample := floodSample(4, 10)
	add := func(uid uint32) *rank {
		g := e.lock()
		defer g.unlock()
		return g.add(mpit.Hello{ID: mpit.RankID{byte(uid)}}, mpit.Peer{UID: uid},
			identity.Process{ID: Identity{User: fmt.Sprint(uid)}})
	}
	first, second := add(1), add(2)
	newRank, once := e.newRank, false
	e.newRank = func(m *variables.Mapper, p variables.Process) figures {
		return meanwhile{newRank(m, p), func() {
			if !once {
				once = true
				e.absorbed(second, sample)
			}
		}}
	}
	e.absorbed(first, sample)
	assert.Equal(t, 40, second.facts.Load().Series)
	assert.Equal(t, 20, first.facts.Load().Series, "half of what is left")
	assert.Equal(t, 60, e.budgets.Used(nil).All)
}
