package movement

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// valuesOf is one look at two ranks, at a second, with these values of a counter in each and a timer in the first.
func valuesOf(second int, zero, one, waited string) *api.ValueList {
	counter := func(value string) api.VariableValues {
		return api.VariableValues{Metric: "mpit_calls_total", Kind: "counter",
			Series: []api.SeriesValue{{Labels: map[string]string{"comm": "a\"b", "state": "x"}, Value: value}}}
	}
	rank := func(n int, state string) api.RankStatus {
		return api.RankStatus{JobID: "17", World: "0", Rank: n, State: state, User: "ada", Host: "node1",
			PID: 100 + n, Library: "openmpi", LibraryVersion: "4.1.4", Executable: "app"}
	}
	return &api.ValueList{
		Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC),
		Ranks: []api.RankValues{
			{Rank: rank(0, "up"), Variables: []api.VariableValues{
				counter(zero),
				{Metric: "mpit_wait_time_seconds", Kind: "histogram",
					Series: []api.SeriesValue{{Count: zero, Sum: waited}}},
			}},
			{Rank: rank(1, "late"), Variables: []api.VariableValues{counter(one)}},
		},
		Together: []api.WorldValues{{JobID: "17", World: "0", User: "ada", Variables: []api.VariableValues{
			{Metric: "mpit_node_depth", Kind: "gauge", Series: []api.SeriesValue{{Value: "NaN"}}},
			{Metric: "mpit_node_peak", Kind: "gauge", Series: []api.SeriesValue{{Value: "12345678"}}},
		}}},
	}
}

func TestTopTable(t *testing.T) {
	var m Movement
	assert.Empty(t, m.Table(ByRate, Unlimited, 0))
	assert.False(t, m.Take(valuesOf(0, "10", "5", "0.5")), "there are no rates of one look")
	assert.False(t, m.Take(valuesOf(0, "10", "5", "0.5")), "nothing new")
	require.True(t, m.Take(valuesOf(2, "30", "1005", "1.5")))

	table := m.Table(ByRate, Unlimited, 0)
	lines := strings.Split(table, "\n")
	assert.Regexp(t, `^\d\d:\d\d:02  2 ranks, 1 up, 1 late\x01$`, lines[0])
	fields := func(i int) []string { return strings.Fields(lines[i]) }
	assert.Equal(t, []string{"JOBID", "WORLD", "RANK", "STATE", "USER", "HOST", "PID", "LIBRARY",
		"PROGRAM" + terminal.Heading}, fields(1))
	assert.Equal(t, []string{"17", "0", "0", "up", "ada", "node1", "100", "openmpi", "4.1.4", "app"}, fields(2))
	assert.Equal(t, []string{"17", "0", "1", "late", "ada", "node1", "101", "openmpi", "4.1.4", "app"}, fields(3))
	assert.Equal(t, []string{"RATE/s", "MOST/s", "OF", "RANK", "VALUE", "COUNT/s", "MEAN", "RANKS", "JOBID", "USER",
		"SERIES" + terminal.Heading}, fields(5))
	assert.Equal(t, []string{"510", "500", "1", "1035", "-", "-", "2", "17", "ada",
		`mpit_calls_total{comm="a\"b",state="x"}`}, fields(6))
	assert.Equal(t, []string{"0.5", "0.5", "0", "1.5", "10", "0.05", "1", "17", "ada", "mpit_wait_time_seconds_sum"},
		fields(7), "20 in 2 s that took 1 s")
	assert.Equal(t, []string{"0", "0", "-", "12.35M", "-", "-", "1", "17", "ada", "mpit_node_peak"}, fields(8))

	first := func(order string) string {
		return strings.Fields(strings.Split(m.Table(order, Unlimited, 0), "\n")[6])[9]
	}
	assert.Equal(t, "mpit_node_peak", first(ByValue))
	assert.Contains(t, first(ByName), "mpit_calls_total")

	small := m.Table(ByRate, 7, 20)
	assert.Equal(t, 7, strings.Count(small, "\n"))
	assert.Contains(t, small, "… and 1 more\n", "a third is for ranks")
	for line := range strings.Lines(small) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), terminal.Heading))), 20,
			line)
	}
}

// How often and how long, of all ranks together: of what was observed between two looks, of one look of all.
func TestTopOfTimers(t *testing.T) {
	look := func(second int, counts, sums [2]string) *api.ValueList {
		l := &api.ValueList{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
		for i := range counts {
			l.Ranks = append(l.Ranks, api.RankValues{
				Rank: api.RankStatus{JobID: "1", World: "0", User: "ada", Rank: i},
				Variables: []api.VariableValues{{Metric: "mpit_call_time_seconds", Kind: "histogram",
					Distribution: true, Series: []api.SeriesValue{
						{Labels: map[string]string{"function": "MPI_Send"}, Count: counts[i], Sum: sums[i]},
					}}},
			})
		}
		return l
	}
	var m Movement
	cells := func() []string { return strings.Fields(strings.Split(m.Table(ByRate, Unlimited, 0), "\n")[6]) }
	series := `mpit_call_time_seconds_sum{function="MPI_Send"}`
	m.Take(look(0, [2]string{"10", "30"}, [2]string{"1", "3"}))
	assert.Equal(t, []string{"-", "-", "-", "4", "-", "0.1", "2", "1", "ada", series}, cells())
	require.True(t, m.Take(look(2, [2]string{"10", "130"}, [2]string{"1", "4"})))
	assert.Equal(t, []string{"0.5", "0.5", "1", "5", "50", "0.01", "2", "1", "ada", series}, cells())
	require.True(t, m.Take(look(4, [2]string{"10", "130"}, [2]string{"1", "4"})))
	assert.Equal(t, []string{"0", "0", "-", "5", "0", "-", "2", "1", "ada", series}, cells(),
		"nothing was observed, so that nothing has a mean")
	require.True(t, m.Take(look(5, [2]string{"5", "130"}, [2]string{"0.5", "4"})))
	assert.Equal(t, "-", cells()[5], "it has been reset")
}

// A watermark or a share of several ranks has no sum, and what two jobs or two users have none either.
func TestTopAddsUpWhatCountsOnly(t *testing.T) {
	look := func(second int, values ...string) *api.ValueList {
		l := &api.ValueList{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
		for i, v := range values {
			l.Ranks = append(l.Ranks, api.RankValues{
				Rank: api.RankStatus{JobID: "1", World: "0", User: []string{"ada", "ada", "bob"}[i], Rank: i},
				Variables: []api.VariableValues{
					{Metric: "mpit_full_ratio", Kind: "gauge", Series: []api.SeriesValue{{Value: "0." + v}}},
					{Metric: "mpit_sent_total", Kind: "counter", Series: []api.SeriesValue{{Value: v}}},
				},
			})
		}
		return l
	}
	var m Movement
	m.Take(look(0, "3", "4", "5"))
	require.True(t, m.Take(look(1, "5", "5", "9")))
	var got [][]string
	for _, l := range strings.Split(m.Table(ByName, Unlimited, 0), "\n")[7:11] {
		got = append(got, strings.Fields(l))
	}
	assert.Equal(t, [][]string{
		{"0.2", "0.2", "0", "0.5", "2", "1", "ada", "mpit_full_ratio"},
		{"0.4", "0.4", "2", "0.9", "1", "1", "bob", "mpit_full_ratio"},
		{"3", "2", "0", "10", "2", "1", "ada", "mpit_sent_total"},
		{"4", "4", "2", "9", "1", "1", "bob", "mpit_sent_total"},
	}, got)
}

// Debian's MPICH has no performance variables: that is said.
func TestTopOfNothing(t *testing.T) {
	l := valuesOf(1, "1", "1", "1")
	l.Together = nil
	for i := range l.Ranks {
		l.Ranks[i].Variables = nil
	}
	var m Movement
	m.Take(l)
	assert.Contains(t, m.Table(ByRate, Unlimited, 0), "no performance variables")
	m = Movement{}
	m.Take(valuesOf(1, "1", "1", "1"))
	assert.NotContains(t, m.Table(ByRate, Unlimited, 0), "no performance variables")
}

// What has been reset has moved, and is not passed off as growth.
func TestTopOfAReset(t *testing.T) {
	var m Movement
	m.Take(valuesOf(0, "1000", "5", "0"))
	require.True(t, m.Take(valuesOf(1, "0", "5", "0")))
	assert.Contains(t, m.Table(ByRate, Unlimited, 0), "-1000")
}

func TestNumberText(t *testing.T) {
	for v, text := range map[float64]string{
		0: "0", 1: "1", -1: "-1", 0.0001234: "0.0001234", 9999: "9999", 9999.9: "10k", 12345: "12.35k",
		999999: "1000k", 1234567: "1.235M", 5e9: "5G", -2e12: "-2T", 3e15: "3P",
	} {
		assert.Equal(t, text, numberText(v))
	}
}
