package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestTables(t *testing.T) {
	value, long := "1", strings.Repeat("long ", 20)
	size, rank, stamp := 4, 2, uint64(3)
	c := &api.Catalogue{
		Rank: api.RankStatus{Library: "openmpi", LibraryVersion: "4.1.4", JobID: "17", World: "17.0", Rank: 2,
			WorldSize: 4, Executable: "/bin/app"},
		Variables: []api.VariableStatus{
			{Name: "messages", Class: mpit.ClassCounter, Verbosity: mpit.VerbosityUserBasic, Bind: mpit.BindComm,
				Datatype:    mpit.DatatypeUnsigned,
				Description: "Messages,\n  all of them", Metric: "mpit_messages_total",
				Categories: []string{"traffic", "all"}},
			{Name: "word", Class: mpit.ClassGeneric, Verbosity: mpit.VerbosityTunerAll, Datatype: mpit.DatatypeChar,
				State: mpit.VariableAllocFailed,
				Code:  "MPI_T_ERR_INVALID", Dropped: "generic_string"},
			{Name: "mpit_call_time_MPI_Send", Class: mpit.ClassTimer, Distribution: true,
				Verbosity: mpit.VerbosityUserBasic, Bind: mpit.BindComm, Datatype: mpit.DatatypeUint64,
				Metric: "mpit_call_time_seconds"},
			{Name: "spc_a", Class: mpit.ClassSize, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt,
				OnRequest: true},
			{Name: "spc_b", Class: mpit.ClassSize, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt,
				OnRequest: true, State: mpit.VariableOnRequest},
		},
		ControlVariables: []api.ControlVariableStatus{
			{Name: "eager", Scope: mpit.ScopeAllEq, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt,
				Value: &value, Description: "Eager\x1b[31m limit",
				Enum:       []mpit.EnumItem{{Value: 0, Name: "off"}, {Value: 1, Name: "on"}},
				Categories: []string{"all"}},
			{Name: "tuned", Scope: mpit.ScopeLocal, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt,
				Bind: mpit.BindComm,
				Objects: []api.ObjectValueStatus{{ID: 1, Name: "halo\nx", Value: &value},
					{ID: 7, Code: "MPI_T_ERR_INVALID"}}},
			{Name: "path", Scope: mpit.ScopeLocal, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeChar,
				Value: &long},
			{Name: "secret", Scope: mpit.ScopeReadOnly, Verbosity: mpit.VerbosityUserBasic,
				Datatype: mpit.DatatypeInt, Code: "MPI_T_ERR_INVALID"},
		},
	}
	c.Categories = []api.CategoryStatus{{Name: "all", Description: "Everything",
		Variables: []string{"messages"}, ControlVariables: []string{"eager"}}}
	c.CategoryStamp = &stamp
	c.Objects = []api.ObjectStatus{
		{ID: 1, Kind: "comm", Name: "halo\nx", Size: &size, Rank: &rank,
			Details: map[string]string{"topology": "cart", "dims": "2,2"}},
		{ID: 2, Kind: "comm", Inter: true},
		{ID: 3, Kind: "win", Name: "ghosts", Size: &size, Rank: &rank, On: "halo", OnID: 1},
		{ID: 4, Kind: "file", Name: "/restart", OnID: 9},
	}
	c.ObjectsMissing = 12
	var out strings.Builder
	Write(&out, c, Selection{All: true})
	assert.Equal(t, `openmpi 4.1.4, as in rank 2 of 4 of job 17, world 17.0: /bin/app

PERFORMANCE VARIABLES (5)
NAME                     CLASS                 VERBOSITY   BIND       DATATYPE      STATE                             METRIC                  CATEGORIES    DESCRIPTION
messages                 COUNTER               USER_BASIC  MPI_COMM   MPI_UNSIGNED  open                              mpit_messages_total     traffic, all  Messages, all of them
word                     GENERIC               TUNER_ALL   NO_OBJECT  MPI_CHAR      alloc_failed (MPI_T_ERR_INVALID)  none (generic_string)   -             -
mpit_call_time_MPI_Send  TIMER (distribution)  USER_BASIC  MPI_COMM   MPI_UINT64_T  open                              mpit_call_time_seconds  -             -
spc_a                    SIZE                  USER_BASIC  NO_OBJECT  MPI_INT       open, on request                  none                    -             -
spc_b                    SIZE                  USER_BASIC  NO_OBJECT  MPI_INT       on request                        none                    -             -
on request: opened by exec --monitoring or a rule with open: true; counts from then on, and each message costs more

CONTROL VARIABLES (4)
NAME        VALUE                                     SCOPE     VERBOSITY   BIND       DATATYPE  ENUMERATION  CATEGORIES  DESCRIPTION
eager       1                                         ALL_EQ    USER_BASIC  NO_OBJECT  MPI_INT   0=off, 1=on  all         Eager [31m limit
tuned       -                                         LOCAL     USER_BASIC  MPI_COMM   MPI_INT   -            -           -
└ halo x    1                                         -         -           -          -         -            -           -
└ object 7  (MPI_T_ERR_INVALID)                       -         -           -          -         -            -           -
path        long long long long long long long long…  LOCAL     USER_BASIC  NO_OBJECT  MPI_CHAR  -            -           -
secret      (MPI_T_ERR_INVALID)                       READONLY  USER_BASIC  NO_OBJECT  MPI_INT   -            -           -

CATEGORIES (1), stamp 3
NAME  VARIABLES  CVARS  SUBCATEGORIES  DESCRIPTION
all   1          1      0              Everything

OBJECTS (4)
KIND  NAME      SIZE  RANK  ON        DETAILS
comm  halo x    4     2     -         dims=2,2 topology=cart
comm  -         -     -     -         intercommunicator
file  /restart  -     -     object 9  -
win   ghosts    4     2     halo      -
12 more were not tracked: MPIT_AGENT_MAX_OBJECTS lived at the time

`, out.String())
}

// Of many objects the first of each kind are shown.
func TestManyObjects(t *testing.T) {
	c := &api.Catalogue{}
	for i := range maxObjects + 3 {
		c.Objects = append(c.Objects, api.ObjectStatus{ID: uint32(i + 1), Kind: "comm",
			Name: fmt.Sprintf("c%d", i)})
	}
	c.Objects = append(c.Objects, api.ObjectStatus{ID: 99, Kind: "win", Name: "w"})
	var out strings.Builder
	Write(&out, c, Selection{Objects: true})
	assert.Contains(t, out.String(), "OBJECTS (54)\n")
	assert.Equal(t, maxObjects, strings.Count(out.String(), "\ncomm  c"))
	assert.Contains(t, out.String(), "\ncomm  and 3 more  -  ")
}

// A category with two parents stands under each, with what is in it under the first alone; what can't be a tree is
// shown all the same.
func TestTree(t *testing.T) {
	category := func(name string, parents, children []string) api.CategoryStatus {
		return api.CategoryStatus{Name: name, Parents: parents, Subcategories: children}
	}
	rows := treeOf([]api.CategoryStatus{
		category("mpi", nil, []string{"p2p", "coll"}),
		category("other", nil, []string{"coll", "unknown"}),
		category("p2p", []string{"mpi"}, []string{"eager"}),
		category("coll", []string{"mpi", "other"}, []string{"bcast", "reduce"}),
		category("bcast", []string{"coll"}, nil),
		category("reduce\x1b", []string{"coll"}, nil),
		category("reduce", []string{"coll"}, nil),
		category("eager", []string{"p2p"}, nil),
		category("egg", []string{"hen"}, []string{"hen"}),
		category("hen", []string{"egg"}, []string{"egg"}),
	})
	var names []string
	for _, row := range rows {
		names = append(names, row[0])
	}
	assert.Equal(t, []string{
		"mpi",
		"├ p2p",
		"│ └ eager",
		"└ coll (also under other)",
		"  ├ bcast",
		"  └ reduce",
		"other",
		"└ coll (see above)",
		"reduce (under coll)",
		"egg (under hen)",
		"└ hen",
		"  └ egg (see above)",
	}, names)
}

// However deep and wide it is, a tree ends.
func TestTreeIsBounded(t *testing.T) {
	var deep, wide []api.CategoryStatus
	for i := range 500 {
		c := api.CategoryStatus{Name: fmt.Sprint(i), Subcategories: []string{fmt.Sprint(i + 1)}}
		if i > 0 {
			c.Parents = []string{fmt.Sprint(i - 1)}
		}
		deep = append(deep, c)
		var all []string
		for j := range 500 {
			all = append(all, fmt.Sprint(j))
		}
		wide = append(wide, api.CategoryStatus{Name: fmt.Sprint(i), Subcategories: all, Parents: all})
	}
	rows := treeOf(deep)
	assert.True(t, slices.ContainsFunc(rows, func(row []string) bool { return strings.HasSuffix(row[0], "└ …") }))
	for _, row := range rows {
		assert.Less(t, len(row[0]), 500)
	}
	rows = treeOf(wide)
	assert.LessOrEqual(t, len(rows), maxTreeRows+2*len(wide))
	assert.Contains(t, rows[len(rows)-1][0], " more lines")
}
