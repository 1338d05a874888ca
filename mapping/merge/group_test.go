package merge

import (
	"math"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

var groupStart = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

// like makes a series such as a Rank would make of a class, with a name made up; labels are alternately names and
// values.
func like(class mpit.Class, value float64, labels ...string) *mapping.Series {
	word := strings.ToLower(class.String())
	if class == mpit.ClassPercentage {
		word = "ratio"
	}
	s := &mapping.Series{
		Metric: &mapping.Metric{Name: strings.TrimSuffix("mpit_v_"+word, "_"),
			OTelName: strings.TrimSuffix("mpit.v."+word, "."), Help: "A " + word + "."},
		Value: value, Since: groupStart.UnixNano(), Valid: true,
		Together: mapping.NewTogether(mapping.RankNode, mapping.MergeSum),
	}
	switch class {
	case mpit.ClassCounter:
		s.Metric = &mapping.Metric{Name: "mpit_v_total", OTelName: "mpit.v.total", Kind: mapping.KindCounter,
			OTelKind: mapping.OTelSum, Help: "A counter."}
		s.Lasting = true
	case mpit.ClassTimer:
		s.Metric = &mapping.Metric{Name: "mpit_v_time_seconds", OTelName: "mpit.v.time", Unit: "s",
			Kind: mapping.KindHistogram, OTelKind: mapping.OTelHistogram}
		s.Lasting = true
		s.Histogram = &mapping.Histogram{Bounds: []float64{1, 2, 4}, Counts: make([]uint64, 4)}
	case mpit.ClassPercentage:
		s.Together = mapping.NewTogether(mapping.RankNode, mapping.MergeMax)
	case mpit.ClassHighWatermark:
		s.Together, s.Lasting = mapping.NewTogether(mapping.RankNode, mapping.MergeMax), true
	case mpit.ClassLowWatermark:
		s.Together, s.Lasting = mapping.NewTogether(mapping.RankNode, mapping.MergeMin), true
	case mpit.ClassGeneric:
		s.Together = mapping.NewTogether(mapping.RankNode, mapping.MergeEach)
	}
	for i := 0; i < len(labels); i += 2 {
		s.Labels = append(s.Labels, mapping.Label{Name: labels[i], Value: labels[i+1]})
	}
	return s
}

// observe makes n observations of x seconds, as a Rank would; the sum is not among them.
func observe(h *mapping.Histogram, x float64, n uint64) {
	h.Count += n
	h.Counts[sort.SearchFloat64s(h.Bounds, x)] += n
	if x <= mapping.NativeZeroThreshold {
		h.NativeZero += n
		return
	}
	h.AddNative(int32(math.Ceil(math.Log2(x)*math.Exp2(float64(h.Schema)))), n)
}

// rankOf is a member that answers.
func rankOf(number int, series ...*mapping.Series) Member {
	return Member{Key: mpit.RankID{byte(number), 1}, Figures: number, Structure: 1, Series: series, Live: true}
}

type m = map[string]float64

// show writes valid series: without the prefix, with their labels, histograms as their count and sum.
func show(list []*mapping.Series) m {
	out := m{}
	for _, s := range list {
		if !s.Valid {
			continue
		}
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, l.Name+"="+l.Value)
		}
		name := strings.TrimPrefix(s.Metric.Name, mapping.Prefix)
		if labels != nil {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		if _, twice := out[name]; twice {
			panic("two series of " + name)
		}
		if s.Histogram != nil {
			out[name+" count"], out[name+" sum"] = float64(s.Histogram.Count), s.Histogram.Sum
			continue
		}
		out[name] = s.Value
	}
	return out
}

// groupPage writes a Group's valid series.
func groupPage(g *Group) m { return show(g.Series()) }

func TestGroupMergesByClass(t *testing.T) {
	merged := func(s *mapping.Series, merge mapping.Merge) *mapping.Series {
		s.Together = mapping.NewTogether(mapping.RankNode, merge)
		return s
	}
	for _, c := range []struct {
		name string
		a, b []*mapping.Series // of rank 3 and of rank 4
		want m
		left m // after rank 4 has ended
	}{
		{
			"counters are summed; what has been counted stays",
			[]*mapping.Series{like(mpit.ClassCounter, 5)}, []*mapping.Series{like(mpit.ClassCounter, 7)},
			m{"v_total": 12}, m{"v_total": 12},
		},
		{
			"levels are summed, of those who are there",
			[]*mapping.Series{like(mpit.ClassLevel, 5)}, []*mapping.Series{like(mpit.ClassLevel, -7)},
			m{"v_level": -2}, m{"v_level": 5},
		},
		{
			"shares: the largest of those who are there",
			[]*mapping.Series{like(mpit.ClassPercentage, 0.25)}, []*mapping.Series{like(mpit.ClassPercentage, 0.5)},
			m{"v_ratio": 0.5}, m{"v_ratio": 0.25},
		},
		{
			"high watermarks: the highest",
			[]*mapping.Series{like(mpit.ClassHighWatermark, 5)}, []*mapping.Series{like(mpit.ClassHighWatermark, 7)},
			m{"v_highwatermark": 7},
			m{"v_highwatermark": 7},
		},
		{
			"low watermarks: the lowest",
			[]*mapping.Series{like(mpit.ClassLowWatermark, 5)}, []*mapping.Series{like(mpit.ClassLowWatermark, -7)},
			m{"v_lowwatermark": -7},
			m{"v_lowwatermark": -7},
		},
		{
			"watermarks that are summed are those of who is there",
			[]*mapping.Series{merged(like(mpit.ClassHighWatermark, 5), mapping.MergeSum)},
			[]*mapping.Series{merged(like(mpit.ClassHighWatermark, 7), mapping.MergeSum)},
			m{"v_highwatermark": 12}, m{"v_highwatermark": 5},
		},
		{
			"a least level",
			[]*mapping.Series{merged(like(mpit.ClassLevel, 5), mapping.MergeMin)},
			[]*mapping.Series{merged(like(mpit.ClassLevel, 8), mapping.MergeMin)}, m{"v_level": 5}, m{"v_level": 5},
		},
		{
			"states: how many ranks are in each",
			[]*mapping.Series{like(mpit.ClassState, 1, "state", "busy"), like(mpit.ClassState, 0, "state", "idle")},
			[]*mapping.Series{like(mpit.ClassState, 1, "state", "busy"), like(mpit.ClassState, 0, "state", "idle"),
				like(mpit.ClassState, 1, "state", "7")},
			m{"v_state{state=busy}": 2, "v_state{state=idle}": 0, "v_state{state=7}": 1},
			m{"v_state{state=busy}": 1, "v_state{state=idle}": 0},
		},
		{
			"what is never merged is not here",
			[]*mapping.Series{like(mpit.ClassGeneric, 5), merged(like(mpit.ClassCounter, 1), mapping.MergeEach)},
			[]*mapping.Series{like(mpit.ClassGeneric, 7)}, m{}, m{},
		},
		{
			"labels tell series apart",
			[]*mapping.Series{like(mpit.ClassCounter, 5, "comm", "a"), like(mpit.ClassCounter, 2, "comm", "b")},
			[]*mapping.Series{like(mpit.ClassCounter, 7, "comm", "b")},
			m{"v_total{comm=a}": 5, "v_total{comm=b}": 9}, m{"v_total{comm=a}": 5, "v_total{comm=b}": 9},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGroup()
			g.Update([]Member{rankOf(3, c.a...), rankOf(4, c.b...)}, groupStart)
			assert.Equal(t, c.want, groupPage(g))
			structure := g.Structure()
			g.Update([]Member{rankOf(3, c.a...), rankOf(4, c.b...)}, groupStart)
			assert.Equal(t, c.want, groupPage(g))
			assert.Equal(t, structure, g.Structure())
			g.Update([]Member{rankOf(3, c.a...)}, groupStart)
			assert.Equal(t, c.left, groupPage(g))
		})
	}
}

func TestGroupTakesPresentValuesOfLiveMembersOnly(t *testing.T) {
	g := NewGroup()
	level, peak, calls := like(mpit.ClassLevel, 5), like(mpit.ClassHighWatermark, 9), like(mpit.ClassCounter, 3)
	late := rankOf(1, level, peak, calls)
	late.Live = false
	other := like(mpit.ClassLevel, 2)
	g.Update([]Member{late, rankOf(2, other)}, groupStart)
	lasting := m{"v_highwatermark": 9, "v_total": 3}
	with := func(level float64) m {
		all := m{"v_level": level}
		for k, v := range lasting {
			all[k] = v
		}
		return all
	}
	assert.Equal(t, with(2), groupPage(g), "levels of who answers")
	late.Live = true
	g.Update([]Member{late, rankOf(2, other)}, groupStart)
	assert.Equal(t, with(7), groupPage(g), "it was late")
	level.Valid, peak.Valid, calls.Valid = false, false, false
	g.Update([]Member{late, rankOf(2, other)}, groupStart)
	assert.Equal(t, with(2), groupPage(g), "what could not be read: a level is left out, the others are what they "+
		"were")
	other.Valid = false
	g.Update([]Member{late, rankOf(2, other)}, groupStart)
	assert.Equal(t, lasting, groupPage(g))
}

func TestGroupOfHistograms(t *testing.T) {
	g := NewGroup()
	a, b := like(mpit.ClassTimer, 0), like(mpit.ClassTimer, 0)
	// The same observations with other bounds.
	b.Histogram.Bounds, b.Histogram.Counts = []float64{0.5, 3}, make([]uint64, 3)
	add := func(s *mapping.Series, seconds ...float64) {
		for _, x := range seconds {
			observe(s.Histogram, x, 1)
			s.Histogram.Sum += x
		}
	}
	add(a, 0.5, 1.5, 1.5, 9)
	add(b, 0.25, 2.5, 5)
	update := func() *mapping.Histogram {
		g.Update([]Member{rankOf(0, a), rankOf(1, b)}, groupStart)
		require.Len(t, g.Series(), 1)
		return g.Series()[0].Histogram
	}
	h := update()
	assert.Equal(t, []float64{1, 2, 4}, h.Bounds)
	assert.Equal(t, []uint64{2, 2, 1, 2}, h.Counts, "0.25 is at most 1, 2.5 is at most 4")
	assert.Equal(t, uint64(7), h.Count)
	assert.InDelta(t, 20.25, h.Sum, 1e-9)
	native := func() (total uint64) {
		total = h.NativeZero
		for i, b := range h.Native {
			assert.True(t, i == 0 || h.Native[i-1].Index < b.Index)
			total += b.Count
		}
		return total
	}
	assert.Equal(t, uint64(7), native())
	add(a, 1.5, 100, 0)
	assert.Same(t, h, update())
	assert.Equal(t, []uint64{3, 3, 1, 3}, h.Counts)
	assert.Equal(t, uint64(10), native())
	assert.Equal(t, uint64(1), h.NativeZero)

	// It begins anew: what was there stays, and what was counted until now is left out of the sum and of the buckets
	// that have less.
	*a.Histogram = mapping.Histogram{Bounds: a.Histogram.Bounds, Counts: make([]uint64, 4)}
	a.Since = groupStart.Add(time.Minute).UnixNano()
	sum := h.Sum
	update()
	assert.Equal(t, []uint64{3, 3, 1, 3}, h.Counts)
	add(a, 3, 3, 1.5)
	update()
	assert.Equal(t, []uint64{3, 4, 3, 3}, h.Counts)
	assert.Equal(t, uint64(13), h.Count)
	assert.Equal(t, uint64(13), native())
	assert.InDelta(t, sum+7.5, h.Sum, 1e-9)
	assert.Equal(t, groupStart.UnixNano(), g.Series()[0].Since)
}

func TestGroupGoesOnAtAReset(t *testing.T) {
	g := NewGroup()
	a, b := like(mpit.ClassCounter, 100), like(mpit.ClassCounter, 1)
	update := func() float64 {
		g.Update([]Member{rankOf(0, a), rankOf(1, b)}, groupStart)
		return groupPage(g)["v_total"]
	}
	require.Equal(t, 101.0, update())
	a.Value, a.Since = 3, groupStart.Add(time.Second).UnixNano()
	assert.Equal(t, 101.0, update(), "nobody knows what came before the reset, and what after")
	a.Value, a.Since = 50, groupStart.Add(2*time.Second).UnixNano()
	assert.Equal(t, 148.0, update())
	a.Value = 40
	assert.Equal(t, 148.0, update(), "a fall")
	a.Value = 51
	assert.Equal(t, 159.0, update())
	assert.Equal(t, groupStart.UnixNano(), g.Series()[0].Since, "the earliest")
	b.Since = groupStart.Add(-time.Second).UnixNano()
	update()
	assert.Equal(t, groupStart.UnixNano(), g.Series()[0].Since,
		"it has been seen: a beginning that moves would be a reset")

	g = NewGroup()
	a.Since = groupStart.UnixNano()
	update()
	assert.Equal(t, b.Since, g.Series()[0].Since, "the earliest of those who begin together")
}

// An exporter throws a rank's figures away after a panic, and after new rules, and makes them anew.
func TestFiguresMadeAnewCountOnce(t *testing.T) {
	g := NewGroup()
	a := rankOf(0, like(mpit.ClassCounter, 100), like(mpit.ClassLevel, 5), like(mpit.ClassHighWatermark, 9))
	update := func(series ...*mapping.Series) m {
		a.Figures, a.Series = len(series)+a.Figures.(int)+1, series
		g.Update([]Member{a, rankOf(1, like(mpit.ClassCounter, 1))}, groupStart)
		return groupPage(g)
	}
	g.Update([]Member{a, rankOf(1, like(mpit.ClassCounter, 1))}, groupStart)
	peak := m{"v_total": 101, "v_highwatermark": 9}
	assert.Equal(t, peak, update(), "for now it has none")
	assert.Equal(t, m{"v_total": 103, "v_highwatermark": 8},
		update(like(mpit.ClassCounter, 102), like(mpit.ClassHighWatermark, 8)))

	assert.Equal(t, 103.0, update(like(mpit.ClassCounter, 4))["v_total"], "they begin at less")
	assert.Equal(t, 106.0, update(like(mpit.ClassCounter, 7))["v_total"])
}

func TestOldMemberThatComesLate(t *testing.T) {
	old := func(number int, series ...*mapping.Series) Member {
		m := rankOf(number, series...)
		m.Old = true
		return m
	}
	a, b, c := like(mpit.ClassCounter, 100), like(mpit.ClassCounter, 200), like(mpit.ClassCounter, 400)
	g := NewGroup()
	g.Update([]Member{old(0, a)}, groupStart)
	assert.Equal(t, m{"v_total": 0}, groupPage(g), "an earlier exporter has shown the rest")
	assert.Equal(t, groupStart.UnixNano(), g.Series()[0].Since, "it begins now")
	g.Update([]Member{old(0, a), old(1, b)}, groupStart)
	assert.Equal(t, m{"v_total": 0}, groupPage(g))
	g.Update([]Member{old(0, a), old(1, b), rankOf(2, c)}, groupStart)
	assert.Equal(t, m{"v_total": 400}, groupPage(g), "new")
	b.Value++
	x := like(mpit.ClassCounter, 7, "comm", "x")
	late := old(1, b, x)
	late.Structure++
	g.Update([]Member{old(0, a), late, rankOf(2, c)}, groupStart)
	assert.Equal(t, m{"v_total": 401, "v_total{comm=x}": 7}, groupPage(g), "an object of later is all new")

	// It has ended, and comes back.
	g.Update([]Member{old(0, a), late}, groupStart)
	g.Update([]Member{old(0, a), late, rankOf(2, c)}, groupStart)
	assert.Equal(t, 401.0, groupPage(g)["v_total"])
	c.Value += 5
	g.Update([]Member{old(0, a), late, rankOf(2, c)}, groupStart)
	assert.Equal(t, 406.0, groupPage(g)["v_total"])
}

func TestOldMemberWithHistogramThatComesLate(t *testing.T) {
	g := NewGroup()
	g.Update(nil, groupStart)
	s := like(mpit.ClassTimer, 0)
	observe(s.Histogram, 1.5, 3)
	s.Histogram.Sum = 4.5
	late := rankOf(0, s)
	late.Old = true
	g.Update([]Member{late}, groupStart)
	h := g.Series()[0].Histogram
	assert.Zero(t, h.Count)
	assert.Zero(t, h.Sum)
	observe(s.Histogram, 3, 1)
	s.Histogram.Sum += 3
	g.Update([]Member{late}, groupStart)
	assert.Equal(t, []uint64{0, 0, 1, 0}, h.Counts)
	assert.Equal(t, 3.0, h.Sum)
	assert.Len(t, h.Native, 1)
}

// What no rule makes any longer leaves, once all members have gone over to the new rules.
func TestGroupFollowsNewRules(t *testing.T) {
	g := NewGroup()
	gone, stays := like(mpit.ClassCounter, 1, "comm", "x"), like(mpit.ClassHighWatermark, 5)
	a, b := rankOf(0, gone, stays), rankOf(1, gone, stays)
	g.Update([]Member{a, b, rankOf(2, stays)}, groupStart)
	g.Update([]Member{a, b}, groupStart)
	lowest := like(mpit.ClassHighWatermark, 3)
	lowest.Together, lowest.Metric.Help = mapping.NewTogether(mapping.RankNode, mapping.MergeSum), "Another."
	a.Structure, a.Rules, a.Series = 2, 1, []*mapping.Series{lowest}
	structure := g.Structure()
	g.Update([]Member{a, b}, groupStart)
	assert.Equal(t, m{"v_total{comm=x}": 2, "v_highwatermark": 8}, groupPage(g), "a member has not answered since")
	assert.Equal(t, "Another.", g.Series()[0].Metric.Help)
	assert.NotEqual(t, structure, g.Structure())
	b.Structure, b.Rules, b.Series = 2, 1, []*mapping.Series{lowest}
	g.Update([]Member{a, b}, groupStart)
	assert.Equal(t, m{"v_highwatermark": 6}, groupPage(g))
	assert.Equal(t, 1, g.Weight())
}

func TestGroupIsBounded(t *testing.T) {
	g := NewGroup()
	const limit = 16
	g.SetLimit(limit, "too_much")
	a := rankOf(0)
	peers := func() m {
		a.Structure++
		g.Update([]Member{a}, groupStart)
		assert.LessOrEqual(t, g.Weight(), limit)
		return groupPage(g)
	}
	for i := range 14 {
		a.Series = append(a.Series, like(mpit.ClassCounter, float64(i), "comm", strconv.Itoa(i)))
	}
	assert.Len(t, peers(), 14)
	assert.Nil(t, g.Dropped())
	for i := 14; i < 20; i++ {
		a.Series = append(a.Series, like(mpit.ClassCounter, 10, "comm", strconv.Itoa(i)))
	}
	assert.Len(t, peers(), limit)
	assert.Equal(t, map[mapping.Reason]uint64{"too_much": 4}, g.Dropped())
	peers()
	assert.Equal(t, map[mapping.Reason]uint64{"too_much": 4}, g.Dropped(), "counted once")
	assert.Equal(t, limit, g.Weight())

	// An object that could not stand for itself, and finds room later, doesn't bring what it had counted before.
	g = NewGroup()
	g.SetLimit(0, "too_much")
	s := like(mpit.ClassCounter, 10)
	a = rankOf(0, s)
	assert.Empty(t, peersOf(g, &a))
	g.SetLimit(-1, "")
	assert.Equal(t, m{"v_total": 0}, peersOf(g, &a))
	s.Value = 12
	assert.Equal(t, m{"v_total": 2}, peersOf(g, &a))
}

func peersOf(g *Group, a *Member) m {
	a.Structure++
	g.Update([]Member{*a}, groupStart)
	return groupPage(g)
}

func TestWhereASeriesStands(t *testing.T) {
	for _, c := range []struct {
		ranks   mapping.RankMode
		merge   mapping.Merge
		grouped bool
	}{
		{"", "", false}, {mapping.RankKeep, mapping.MergeSum, false}, {mapping.RankNode, mapping.MergeSum, true},
		{mapping.RankNode, mapping.MergeEach, false},
	} {
		s := &mapping.Series{Together: mapping.NewTogether(c.ranks, c.merge)}
		assert.Equal(t, c.grouped, s.Grouped, c)
	}
	assert.Equal(t, 1, like(mpit.ClassCounter, 1).Weight())
	assert.Equal(t, 6, like(mpit.ClassTimer, 1).Weight(), "three buckets and that of the rest, sum, count")
}

// A program that makes objects with new names all the time, and members that come and go, cost no more than the bound.
func TestGroupForgetsWhatIsTooMuch(t *testing.T) {
	g := NewGroup()
	a := rankOf(0)
	const at, more = 1000, 5
	number := 0
	series := func() (all []*mapping.Series) {
		for range at {
			number++
			all = append(all, like(mpit.ClassCounter, 1, "comm", strconv.Itoa(number)))
		}
		return all
	}
	for i := range maxGone/at + more {
		a.Series = series()
		a.Key = mpit.RankID{byte(i)}
		g.Update([]Member{a}, groupStart)
	}
	assert.Len(t, g.Series(), maxGone+at)
	assert.Equal(t, maxGone+at, g.Weight())
	assert.Equal(t, uint64(number-maxGone-at), g.Dropped()[mapping.ReasonRemainsLost])
	assert.Len(t, g.members, 1)
	assert.Len(t, g.wasHere, maxGone/at+more-1)
	for range maxGone/at + more {
		a.Structure++
		a.Series = series()
		g.Update([]Member{a}, groupStart)
		assert.LessOrEqual(t, len(g.members[a.Key].parts), maxGone+at)
	}
	for i := range 2 * maxDeparted {
		g.Update([]Member{rankOf(i%200, a.Series[0]), {Key: mpit.RankID{byte(i), byte(i >> 8), 1},
			Series: a.Series[:1]}}, groupStart)
	}
	assert.Len(t, g.wasHere, maxDeparted)
	assert.Len(t, g.departed, maxDeparted)
}

func TestGroupAllocatesNothing(t *testing.T) {
	members, touch := benchGroup(8, 50)
	g := NewGroup()
	g.Update(members, groupStart)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		touch()
		g.Update(members, groupStart)
	}))
}

// New rules reach one member after the other. Where a series means something else by them, the Group's begins at zero
// with the first that has them, and waits for the others.
func TestGroupBeginsAnewWhereTheMeaningChanges(t *testing.T) {
	g := NewGroup()
	a, b := rankOf(0, like(mpit.ClassCounter, 100), like(mpit.ClassTimer, 0)),
		rankOf(1, like(mpit.ClassCounter, 1000), like(mpit.ClassTimer, 0))
	for _, m := range []*Member{&a, &b} {
		observe(m.Series[1].Histogram, 1.5, 2)
		m.Series[1].Histogram.Sum = 3
	}
	look := func() m { g.Update([]Member{a, b}, groupStart.Add(time.Hour)); return groupPage(g) }
	assert.Equal(t, m{"v_total": 1100, "v_time_seconds count": 4, "v_time_seconds sum": 6}, look())
	anew := func(m *Member, n float64) {
		m.Structure, m.Rules = 2, 1
		m.Series = []*mapping.Series{like(mpit.ClassCounter, n), like(mpit.ClassTimer, 0)}
		for _, s := range m.Series {
			s.Meaning, s.Since = 7, groupStart.Add(time.Minute).UnixNano()
		}
	}
	anew(&a, 0)
	b.Series[0].Value += 50
	observe(b.Series[1].Histogram, 1.5, 1)
	assert.Equal(t, m{"v_total": 0, "v_time_seconds count": 0, "v_time_seconds sum": 0}, look())
	assert.Equal(t, groupStart.Add(time.Minute).UnixNano(), g.Series()[0].Since)
	anew(&b, 5)
	a.Series[0].Value = 3
	assert.Equal(t, 8.0, look()["v_total"])
	a.Series[0].Value++
	assert.Equal(t, 9.0, look()["v_total"])
}

// Ranks' doubles that are finite, and together are not.
func TestGroupStaysFinite(t *testing.T) {
	g := NewGroup()
	g.Update([]Member{rankOf(0, like(mpit.ClassCounter, 1e308), like(mpit.ClassLevel, 1e308)),
		rankOf(1, like(mpit.ClassCounter, 1e308), like(mpit.ClassLevel, 1e308))}, groupStart)
	assert.Equal(t, m{"v_total": 0}, groupPage(g))
}

// A member may have no series for a while. However many it had, they come back.
func TestGroupCountsNothingTwiceThatComesBack(t *testing.T) {
	g := NewGroup()
	var a, b []*mapping.Series
	for i := range maxGone + 1 {
		a = append(a, like(mpit.ClassCounter, 100, "comm", strconv.Itoa(i)))
		b = append(b, like(mpit.ClassCounter, 1, "comm", strconv.Itoa(i)))
	}
	first, second := rankOf(1, a...), rankOf(2, b...)
	none := Member{Key: first.Key}
	for _, member := range []Member{first, none, first} {
		g.Update([]Member{member, second}, groupStart)
		for _, s := range g.Series() {
			require.Equal(t, 101.0, s.Value)
		}
	}
}

// What a rank has by older rules waits, also where it comes to a series that newer ones have made.
func TestGroupKeepsOlderMeaningsApart(t *testing.T) {
	newer, older := like(mpit.ClassCounter, 5), like(mpit.ClassCounter, 1000)
	newer.Meaning, older.Meaning = 2, 1
	a, b := rankOf(1, newer), rankOf(2, older)
	a.Rules, b.Rules = 2, 1
	for _, members := range [][]Member{{a, b}, {b, a}} {
		g := NewGroup()
		g.Update(members, groupStart)
		assert.Equal(t, m{"v_total": 5}, groupPage(g))
	}
}
