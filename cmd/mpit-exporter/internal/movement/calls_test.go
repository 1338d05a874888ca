package movement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// callsAt is a look at six ranks of a job that waits, and one of a job that doesn't.
func callsAt(second float64) *api.ValueList {
	l := &api.ValueList{Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))}
	add := func(job string, rank int, state string, calls *api.Calls) {
		l.Ranks = append(l.Ranks, api.RankValues{Rank: api.RankStatus{JobID: job, World: "0", User: "ada", Rank: rank,
			State: state, Calls: calls, Host: "vm", WorldSize: 8}})
	}
	waiting := func(since float64, object string) *api.Calls {
		return &api.Calls{Inside: second, Observed: second, Running: second - since, Long: &api.LongCall{
			Function: "MPI_Barrier", Kind: "comm", Object: object, Module: "/opt/solver", Offset: 0x12ab}}
	}
	add("17", 0, "up", waiting(5, "halo"))
	add("17", 1, "passive", waiting(2, "halo"))
	add("17", 2, "up", waiting(3, "halo"))
	add("17", 3, "up", &api.Calls{Inside: second / 4, Observed: second})
	add("17", 4, "late", waiting(0, "halo"))
	add("17", 5, "up", waiting(3, "rows"))
	add("17", 6, "ended", &api.Calls{Inside: 1, Observed: 2})
	add("18", 0, "up", &api.Calls{Inside: second / 2, Observed: second})
	add("19", 0, "up", nil)
	return l
}

func TestWhereRanksAre(t *testing.T) {
	m := Movement{Place: func(r *api.RankStatus) string {
		if r.Calls.Long.Object == "rows" {
			return ""
		}
		return "exchange (solver.c:12)"
	}}
	m.Take(callsAt(10))
	require.True(t, m.Take(callsAt(12)))
	lines := strings.Split(m.Table(ByRate, Unlimited, 0), "\n")
	shares := map[string]string{}
	words := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	assert.Equal(t, []string{
		"JOBID WORLD USER RANKS HERE PARALLEL BALANCE COMMUNICATION" + terminal.Heading,
		"17 0 ada 5 of 8 15 % 20 % 75 %",
		"18 0 ada 1 of 8 50 % 100 % 50 %",
		"17: 15 % useful; 60 % of the time ranks wait for rank 3 on vm, which computes more, or does I/O of its own",
		"18: 50 % useful; 50 % of the time is communication, and nobody is late",
		"",
	}, []string{words(lines[1]), words(lines[2]), words(lines[3]), lines[4], lines[5], lines[6]})
	assert.Contains(t, m.Table(ByRate, Unlimited, 80), "\n17: 15 % useful; 60 % of the time ranks wait for rank 3 on vm, which",
		"in a narrow terminal, too")
	lines = lines[6:]
	for _, l := range lines[2:11] {
		f := strings.Fields(l)
		shares[f[0]+"/"+f[2]] = strings.Join(f[4:6], " ")
	}
	assert.Equal(t, map[string]string{"17/0": "100 %", "17/1": "100 %", "17/2": "100 %", "17/3": "25 %", "17/4": "- ada",
		"17/5": "100 %", "17/6": "- ada", "18/0": "50 %", "19/0": "- ada"}, shares)

	var got []string
	for _, l := range lines[12:17] {
		got = append(got, words(l))
	}
	assert.Equal(t, []string{
		"FOR CALL ON RANKS JOBID WORLD USER FROM" + terminal.Heading,
		"10s MPI_Barrier halo 0-2 17 0 ada exchange (solver.c:12)",
		"9s MPI_Barrier rows 5 17 0 ada /opt/solver+0x12ab",
		"- (in no long call) - 3 17 0 ada -",
		"- (doesn't answer) - 4 17 0 ada -",
	}, got)
	assert.Contains(t, m.Table(ByRate, 15, 0), "… and 1 more\n", "a screen has room for something else, too")

	m.Place = nil
	assert.Contains(t, m.Table(ByRate, Unlimited, 0), "/opt/solver+0x12ab")
}

// Of a job of which no rank answers any more that is said; not of one that has ended in order, nor of one without a
// call profile. Where there is no room for all, it is said how many there are besides.
func TestJobsThatAreGone(t *testing.T) {
	look := func(second float64, gone bool) *api.ValueList {
		l := callsAt(second)
		l.Ranks = nil
		for job, end := range map[string]string{"1": "", "2": "lost", "3": "finalize", "4": "lost"} {
			r := api.RankStatus{JobID: job, World: "0", User: "ada", State: "up", Host: "vm", WorldSize: 1}
			if job != "4" {
				r.Calls = &api.Calls{Inside: 1, Observed: 10}
			}
			if gone {
				r.State, r.EndReason = "late", end
			}
			if gone && end != "" {
				r.State = "ended"
			}
			l.Ranks = append(l.Ranks, api.RankValues{Rank: r})
		}
		slices.SortFunc(l.Ranks, func(a, b api.RankValues) int { return strings.Compare(a.Rank.JobID, b.Rank.JobID) })
		return l
	}
	var m Movement
	m.Take(look(10, false))
	require.True(t, m.Take(look(12, true)))
	var got []string
	for _, line := range strings.Split(m.Table(ByRate, Unlimited, 0), "\n")[2:7] {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	assert.Equal(t, []string{
		"1 0 ada 0 of 1 - - -",
		"2 0 ada 0 of 1 - - -",
		"1: no rank answers, as if all were stopped",
		"2: rank 0 on vm ended without MPI_Finalize (lost)",
		"",
	}, got)
	assert.Contains(t, m.Table(ByRate, 10, 0), "as if all were stopped\n… and 1 more\n")
}

// Nobody is in a long call, or nobody has a call profile: nothing is said of either.
func TestNobodyIsInALongCall(t *testing.T) {
	l := callsAt(10)
	l.Ranks = l.Ranks[7:]
	var m Movement
	m.Take(l)
	assert.NotContains(t, m.Table(ByRate, Unlimited, 0), "FROM")
	assert.Contains(t, m.Table(ByRate, Unlimited, 0), "IN MPI")
	l.Ranks = l.Ranks[1:]
	l.Time = l.Time.Add(time.Second)
	m.Take(l)
	assert.NotContains(t, m.Table(ByRate, Unlimited, 0), "IN MPI")
}
