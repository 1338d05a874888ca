package top

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// look is an answer at a second, with the variables of rank 0, rank 1 …
func look(second int, ranks ...[]api.VariableValues) *api.ValueList {
	l := &api.ValueList{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
	for i, variables := range ranks {
		l.Ranks = append(l.Ranks, api.RankValues{Rank: api.RankStatus{Rank: i}, Variables: variables})
	}
	return l
}

func counter(value string) api.VariableValues {
	return api.VariableValues{Metric: "mpit_sent_total", Kind: "counter", Unit: "{message}",
		Series: []api.SeriesValue{{Labels: map[string]string{"comm": `a"b`, "state": "x"}, Value: value}}}
}

func level(value string) api.VariableValues {
	return api.VariableValues{Metric: "mpit_queue_level", Kind: "gauge", Series: []api.SeriesValue{{Value: value}}}
}

func timer(count, sum string) api.VariableValues {
	return api.VariableValues{Metric: "mpit_wait_time_seconds", Kind: "histogram", Unit: "s",
		Series: []api.SeriesValue{{Count: count, Sum: sum}}}
}

type variables = []api.VariableValues

func TestMovement(t *testing.T) {
	sent := Series{Metric: "mpit_sent_total", Labels: `{comm="a\"b",state="x"}`, Unit: "{message}", Counts: true}
	queue := Series{Metric: "mpit_queue_level"}
	waited := Series{Metric: "mpit_wait_time_seconds", Unit: "s", Counts: true, Histogram: true}
	with := func(s Series, change func(s *Series)) Series { change(&s); return s }
	for _, test := range []struct {
		name          string
		before, after *api.ValueList
		want          []Series
		moves         bool
	}{
		{"counters are added up", look(0, variables{counter("10")}, variables{counter("5")}),
			look(2, variables{counter("30")}, variables{counter("1005")}),
			[]Series{with(sent, func(s *Series) { s.Value, s.Rate, s.MostRate, s.Most = 1035, 510, 500, 1 })}, true},
		{"of levels it is the largest", look(0, variables{level("7")}, variables{level("3")}),
			look(1, variables{level("5")}, variables{level("4")}),
			[]Series{with(queue, func(s *Series) { s.Value, s.Rate, s.MostRate = 5, -2, -2 })}, true},
		{"a level that stays is there", look(0, variables{level("7")}), look(1, variables{level("7")}),
			[]Series{with(queue, func(s *Series) { s.Value = 7 })}, true},
		{"a level of zero isn't", look(0, variables{level("0")}), look(1, variables{level("0")}), []Series{queue}, false},
		{"a counter that stands still doesn't move", look(0, variables{counter("7")}), look(1, variables{counter("7")}),
			[]Series{with(sent, func(s *Series) { s.Value = 7 })}, false},
		{"a reset is not passed off as growth", look(0, variables{counter("1000")}), look(1, variables{counter("0")}),
			[]Series{with(sent, func(s *Series) { s.Rate, s.MostRate = -1000, -1000 })}, true},
		{"20 in 2 s that took 1 s", look(0, variables{timer("10", "0.5")}), look(2, variables{timer("30", "1.5")}),
			[]Series{with(waited, func(s *Series) {
				s.Value, s.Rate, s.MostRate, s.Events, s.Mean = 1.5, 0.5, 0.5, 10, 0.05
			})}, true},
		{"a timer that was reset has no mean", look(0, variables{timer("10", "5")}), look(1, variables{timer("11", "1")}),
			[]Series{with(waited, func(s *Series) { s.Value, s.Rate, s.MostRate, s.Events = 1, -4, -4, 1 })}, true},
		{"NaN is no value", look(0, variables{level("NaN")}), look(1, variables{level("NaN")}), nil, false},
		{"what has come since has no rate", look(0, nil), look(1, variables{counter("7")}),
			[]Series{with(sent, func(s *Series) { s.Value = 7 })}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Movement
			require.True(t, m.Take(test.before))
			assert.Zero(t, m.Seconds, "there are no rates of one look")
			assert.False(t, m.Take(test.before), "nothing new")
			require.True(t, m.Take(test.after))
			assert.Equal(t, test.want, m.Series)
			if len(m.Series) > 0 {
				assert.Equal(t, test.moves, m.Series[0].Moves())
			}
		})
	}
}

// Series of all ranks of a world have no rank.
func TestTogether(t *testing.T) {
	at := func(second int, value string) *api.ValueList {
		l := look(second)
		l.Together = []api.WorldValues{{Variables: variables{counter(value)}}}
		return l
	}
	var m Movement
	m.Take(at(0, "1"))
	require.True(t, m.Take(at(1, "3")))
	assert.Equal(t, Together, m.Series[0].Most)
	assert.Equal(t, 2.0, m.Series[0].Rate)
}
