package judge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// barrier is a job of so many ranks of which all but the last have been in MPI_Barrier for a minute.
func barrier(id, user string, ranks, observed int) (list []api.RankValues) {
	for i := range observed {
		moved := 60.0
		r := api.RankStatus{JobID: id, User: user, World: "0", Rank: i, State: "up", WorldSize: ranks,
			Host: fmt.Sprintf("n%d", i/2)}
		thread := api.Thread{Main: true, Moved: moved, Call: &api.CallUnderWay{Function: "MPI_Barrier", Seconds: moved,
			Kind: "comm", Object: "world", Comm: "0123456789abcdef", Number: 2}}
		number := uint64(2)
		c := &api.Calls{State: api.StateSeconds{api.Outside: 10, api.Collective: moved}, Running: moved}
		if i == ranks-1 {
			thread.Call, number, c.Running = nil, 1, 0
			c.State = api.StateSeconds{api.Outside: 70}
		}
		c.Threads = []api.Thread{thread}
		c.Comms = []api.Comm{{ID: "0123456789abcdef", Name: "world", Size: ranks, Number: &number}}
		r.Calls = c
		list = append(list, api.RankValues{Rank: r})
	}
	return list
}

func text(t *testing.T, n prometheus.Gatherer) string {
	t.Helper()
	families, err := n.Gather()
	require.NoError(t, err)
	var b bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&b, f)
		require.NoError(t, err)
	}
	return b.String()
}

func TestNode(t *testing.T) {
	const waits = `mpit_job_verdict_info{jobid="%s",node="n1",rank="3",state="waiting",user="ann",world="0"} 1` + "\n"
	many := []api.RankValues{}
	for i := range maxWorlds + 1 {
		r := api.RankStatus{JobID: fmt.Sprint(i), World: "0", User: "ann", State: "up", WorldSize: 1}
		many = append(many, api.RankValues{Rank: r})
	}
	attackers := []api.RankValues{}
	for i := range maxWorlds + 1 {
		attackers = append(attackers, barrier(fmt.Sprint("x", i), "eve", 2, 2)...)
	}
	for name, c := range map[string]struct {
		ranks []api.RankValues
		want  string // lines without comments; empty: none
		lines int    // 0: those of want
	}{
		"no job":                  {},
		"all ranks":               {ranks: barrier("7", "ann", 4, 4), want: fmt.Sprintf(waits, "7")},
		"a part of a job":         {ranks: barrier("7", "ann", 4, 3)},
		"two users' jobs":         {ranks: append(barrier("7", "ann", 4, 4), barrier("7", "bob", 4, 4)...), lines: 2},
		"two worlds":              {ranks: append(barrier("7", "ann", 4, 4), worldOf("1", 2)...), want: fmt.Sprintf(waits, "7"), lines: 2},
		"a part of another world": {ranks: append(barrier("7", "ann", 4, 4), worldOf("1", 2)[0]), want: fmt.Sprintf(waits, "7")},
		"a world of unknown size": {ranks: barrier("7", "ann", 0, 4)},
		"another user's job beside more": {ranks: append(attackers, many[0]), lines: maxWorlds,
			want: `mpit_job_verdict_info{jobid="0",node="",rank="",state="unknown",user="ann",world="0"} 1` + "\n"},
		"more than served": {ranks: append(many, barrier("x", "ann", 4, 4)...), want: fmt.Sprintf(waits, "x"), lines: maxWorlds},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNode(func() api.ValueList {
				return api.ValueList{Time: time.Now(), Ranks: c.ranks}
			})
			got := text(t, n)
			assert.Contains(t, got, c.want)
			if c.lines == 0 {
				c.lines = strings.Count(c.want, "\n")
			}
			assert.Equal(t, c.lines, strings.Count(got, "} 1\n"), got)
		})
	}
}

// A page is judged once.
func TestNodeJudgesOnce(t *testing.T) {
	n := NewNode(func() api.ValueList {
		return api.ValueList{Time: time.Now(), Ranks: barrier("7", "ann", 4, 4)}
	})
	first := text(t, n)
	assert.NotEmpty(t, first)
	n.values = func() api.ValueList { panic("it was looked at a moment ago") }
	assert.Equal(t, first, text(t, n))
}
