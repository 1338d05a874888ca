package listing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A line for each variable: on which object, or how many; what counts is added up, of other values it is the largest.
func TestValues(t *testing.T) {
	on := func(comm, value string) api.SeriesValue {
		return api.SeriesValue{Labels: map[string]string{"comm": comm}, Value: value}
	}
	rank := func(job string, n int, variables ...api.VariableValues) api.RankValues {
		return api.RankValues{Rank: api.RankStatus{JobID: job, World: "1", User: "ada", Rank: n, Library: "openmpi",
			LibraryVersion: "4.1.4", Executable: "/home/ada/app"}, Variables: variables}
	}
	sent := func(series ...api.SeriesValue) api.VariableValues {
		return api.VariableValues{Name: "sent", Metric: "mpit_sent_bytes_total", Kind: "counter", Unit: "By", Series: series}
	}
	queue := func(series ...api.SeriesValue) api.VariableValues {
		return api.VariableValues{Name: "queue", Metric: "mpit_queue_level", Kind: "gauge", Unit: "{message}", Series: series}
	}
	list := &api.ValueList{
		Ranks: []api.RankValues{
			rank("17", 0, sent(on("halo", "1024"), on("rows", "1024")), queue(on("halo", "3")),
				api.VariableValues{Name: "time", Kind: "histogram", Unit: "s",
					Series: []api.SeriesValue{{Count: "10", Sum: "0.5"}}},
				api.VariableValues{Name: "sends", Kind: "histogram", Unit: "s", Distribution: true,
					Series: []api.SeriesValue{{Count: "10", Sum: "0.5"}}}),
			rank("17", 1, sent(on("halo", "2048")), queue(on("halo", "5")), api.VariableValues{Name: "files\x1b", Kind: "gauge",
				Series: []api.SeriesValue{{Labels: map[string]string{"file": "/a"}, Value: "1"},
					{Labels: map[string]string{"win": "w"}, Value: "2"}}}),
			rank("18", 0, queue(on("halo", "NaN"))),
		},
	}
	list.Ranks[1].Cut = 3
	var out strings.Builder
	WriteValues(&out, list)
	assert.Equal(t, `openmpi 4.1.4, 2 ranks of job 17, world 1, user ada: /home/ada/app
NAME   ON         VALUE               OF
files  2 objects  2                   rank 1
queue  halo       5 messages          rank 1
sends  -          500ms in 10 calls   all ranks
sent   2 comms    4.00 KiB            all ranks
time   -          500ms in 10 events  all ranks
3 series had no room in the answer; choose with --rank

openmpi 4.1.4, 1 rank of job 18, world 1, user ada: /home/ada/app
No variable has a value: this library has none, or rules leave them out. exec --calls brings those of MPI calls.

`, out.String())
}

// A line for each control variable, but not for those that nothing changes.
func TestControlVariables(t *testing.T) {
	value := "4096"
	c := &api.Catalogue{ControlVariables: []api.ControlVariableStatus{
		{Name: "version", Value: &value, Scope: mpit.ScopeConstant},
		{Name: "eager_limit", Value: &value, Scope: mpit.ScopeAllEq, Description: "Largest message\nsent at once",
			Objects: []api.ObjectValueStatus{{ID: 1, Name: "halo", Value: &value}}},
	}}
	var out strings.Builder
	Write(&out, c, Selection{ControlVariables: true})
	assert.Contains(t, out.String(), `
NAME         VALUE  SCOPE   DESCRIPTION
eager_limit  4096   ALL_EQ  Largest message sent at once
└ halo       4096   -       -
1 constant left out (--all)
`)
}
