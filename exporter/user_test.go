package exporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// claiming takes in a rank of another user that says it is rank 0 of job 1, with its own value of the counter.
func (n *node) claiming(uid uint32, calls uint64) *rank {
	g := n.lock()
	h := small("1", 0).Hello
	h.ID, h.InitTime = mpit.RankID{byte(uid), byte(uid >> 8)}, n.started.Add(time.Hour)
	r := g.add(h, mpit.Peer{UID: uid}, n.identify(&h, mpit.Peer{UID: uid}, n.users.Name(uid)))
	r.gone, r.state = n.now().AddDate(1, 0, 0), stateUp // not lost yet
	g.unlock()
	require.True(n.t, n.absorbed(r, &mpit.Sample{
		Variables: &mpit.Variables{ByID: []mpit.Variable{
			{Name: "calls", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8},
		}},
		Layout: &mpit.Layout{Handles: []mpit.Handle{{ID: 1, Count: 1, Created: testTime}}, Values: 1},
		Values: []uint64{calls}, Time: testTime, Monotonic: 1,
	}))
	return r
}

// calls are the series of the counter calls.
func (n *node) calls() map[string]float64 { return n.with("mpit_calls_total") }

// A claim to another user's job and rank, before, after or while it is there, has series of its own, and the others
// stay as they are.
func TestAnotherUserClaimsARank(t *testing.T) {
	const mallory = `mpit_calls_total{jobid="1",rank="0",user="666",world="0"}`
	alice := of("mpit_calls_total", "1", 0)
	connect := func(n *node) *mpittest.Rank {
		r := mpittest.New(small("1", 0))
		n.connect(r)
		return r
	}
	t.Run("first", func(t *testing.T) {
		n := startNode(t, Config{})
		n.claiming(666, 1e6)
		connect(n)
		assert.Equal(t, map[string]float64{alice: 10, mallory: 1e6}, n.calls())
		assert.Zero(t, n.scrape()["mpit_exporter_label_clashes_total"], "dup is for one user's own")
	})
	t.Run("afterwards", func(t *testing.T) {
		n := startNode(t, Config{})
		connect(n)
		n.claiming(666, 1e6)
		assert.Equal(t, map[string]float64{alice: 10, mallory: 1e6}, n.calls())
	})
	t.Run("while it is being restarted", func(t *testing.T) {
		n := startNode(t, Config{Retention: time.Hour})
		r := connect(n)
		n.scrape()
		n.finish(r, mpit.EndAbort)
		n.scrape()
		n.claiming(666, 1e6)
		connect(n)
		assert.Equal(t, map[string]float64{alice: 10, mallory: 1e6}, n.calls())
	})
	t.Run("in the API", func(t *testing.T) {
		n := startNode(t, Config{})
		n.claiming(666, 1e6)
		connect(n)
		n.scrape()
		list := valuesFrom(t, n, "?jobid=1&world=0&rank=0&user=alice")
		require.Len(t, list.Ranks, 1)
		assert.Equal(t, "alice", list.Ranks[0].Rank.User)
		assert.Equal(t, "10", list.Ranks[0].Variables[0].Series[0].Value)
		catalogues := fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue?user=alice&rank=0"))
		require.Len(t, catalogues.Catalogues, 1)
		assert.Equal(t, "alice", catalogues.Catalogues[0].Rank.User)
		assert.Equal(t, 404, get(n.API(), "/api/v1/catalogue?user=bob").Code)
		assert.Equal(t, 404, get(n.API(), "/api/v1/values?user=bob").Code)
	})
}

// No rank and no rule says whose a rank is.
func TestUserIsTheKernelsWord(t *testing.T) {
	_, err := New(Config{Mapper: newMapper(t), Identity: []rules.Relabel{{TargetLabel: "user",
		Replacement: text("root")}}})
	require.ErrorContains(t, err, "user")
	_, err = variables.New(variables.Config{Rules: []rules.Rule{{Match: rules.Match{Regexp: "(?P<user>.*)"}}}})
	require.ErrorContains(t, err, "user")

	n := startNode(t, Config{Identity: []rules.Relabel{
		{SourceLabels: []string{"user"}, Regex: "(.*)", TargetLabel: "world", Replacement: text("root")},
	}})
	cfg := small("1", 0)
	for _, name := range []string{"user", "USER", "SLURM_JOB_USER"} {
		cfg.Hello.Attributes[name] = "root"
	}
	n.connect(mpittest.New(cfg))
	assert.Equal(t, map[string]float64{`mpit_calls_total{jobid="1",rank="0",user="alice",world="root"}`: 10},
		n.calls())
}

// Two uids with one name are one user to whoever reads the page; their series are not.
func TestTwoUsersWithOneName(t *testing.T) {
	n := startNode(t, Config{UserName: func(uint32) string { return "toor" }})
	n.claiming(1, 7)
	n.claiming(2, 8)
	assert.Equal(t, map[string]float64{
		`mpit_calls_total{jobid="1",rank="0",user="toor",world="0"}`:         7,
		`mpit_calls_total{dup="1",jobid="1",rank="0",user="toor",world="0"}`: 8,
	}, n.calls())
}

// What describes ranks is bounded for all users together: each may have an equal part.
func TestUsersShareWhatDescribes(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.describingAll = 20 })
	flood := bound("1", 0, 40)
	n.connect(mpittest.New(flood))
	objects := func() int { return len(n.with("mpit_objects{")) }
	assert.Equal(t, 10, objects(), "two series each")
	n.claiming(666, 1)
	page := n.scrape()
	assert.Equal(t, 5, objects())
	assert.Len(t, n.with("mpit_pvar_info{"), 1, "of the other one")
	assert.Equal(t, 80, pvars(page, "1", 0), "what is described stands there all the same")
}

// What describes the variables of a world's ranks is there once, and counts once.
func TestWhatDescribesAWorldCountsOnce(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.describingAll = 5 })
	ranks := make([]*mpittest.Rank, 4)
	for i := range ranks {
		ranks[i] = mpittest.New(small("1", i))
	}
	n.connect(ranks...)
	page := n.scrape()
	assert.Len(t, n.with("mpit_pvar_info{"), 4)
	assert.Zero(t, page[`mpit_exporter_series_dropped_total{reason="series_over_bound"}`])
}
