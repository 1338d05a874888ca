package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestTables(t *testing.T) {
	value, long := "1", strings.Repeat("long ", 20)
	c := &exporter.Catalogue{
		Rank: exporter.RankStatus{Library: "openmpi", LibraryVersion: "4.1.4", JobID: "17", World: "17.0", Rank: 2, WorldSize: 4, Executable: "/bin/app"},
		Variables: []exporter.VariableStatus{
			{Name: "messages", Class: mpit.ClassCounter, Verbosity: mpit.VerbosityUserBasic, Bind: mpit.BindComm, Datatype: mpit.DatatypeUnsigned,
				Description: "Messages,\n  all of them", Metric: "mpit_messages_total"},
			{Name: "word", Class: mpit.ClassGeneric, Verbosity: mpit.VerbosityTunerAll, Datatype: mpit.DatatypeChar, State: mpit.VariableAllocFailed,
				Code: "MPI_T_ERR_INVALID", Dropped: "generic_string"},
		},
		ControlVariables: []exporter.ControlVariableStatus{
			{Name: "eager", Scope: mpit.ScopeAllEq, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt, Value: &value, Description: "Eager\x1b[31m limit"},
			{Name: "path", Scope: mpit.ScopeLocal, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeChar, Value: &long},
			{Name: "secret", Scope: mpit.ScopeReadOnly, Verbosity: mpit.VerbosityUserBasic, Datatype: mpit.DatatypeInt, Code: "MPI_T_ERR_INVALID"},
		},
	}
	var out strings.Builder
	require.NoError(t, writeTables(&out, c, func(string) bool { return true }))
	assert.Equal(t, `openmpi 4.1.4, as in rank 2 of 4 of job 17, world 17.0: /bin/app

PERFORMANCE VARIABLES (2)
NAME      CLASS    VERBOSITY   BIND       DATATYPE      STATE                             METRIC                 DESCRIPTION
messages  COUNTER  USER_BASIC  MPI_COMM   MPI_UNSIGNED  open                              mpit_messages_total    Messages, all of them
word      GENERIC  TUNER_ALL   NO_OBJECT  MPI_CHAR      alloc_failed (MPI_T_ERR_INVALID)  none (generic_string)  -

CONTROL VARIABLES (3)
NAME    VALUE                                     SCOPE     VERBOSITY   BIND       DATATYPE  DESCRIPTION
eager   1                                         ALL_EQ    USER_BASIC  NO_OBJECT  MPI_INT   Eager [31m limit
path    long long long long long long long long…  LOCAL     USER_BASIC  NO_OBJECT  MPI_CHAR  -
secret  (MPI_T_ERR_INVALID)                       READONLY  USER_BASIC  NO_OBJECT  MPI_INT   -

CATEGORIES (0)

`, out.String())
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		" two\n\tlines\r\n":    "two lines",
		"\x1b]0;title\x07bell": "]0;title bell",
		"r\xffd":               "r\uFFFDd",
		"zwei Wörter":          "zwei Wörter",
		"right\u202eleft":      "right left",
	} {
		assert.Equal(t, want, clean(text), "%q", text)
	}
}

func TestShorten(t *testing.T) {
	assert.Equal(t, "äöü", shorten("äöü", 3))
	assert.Equal(t, "äö…", shorten("äöüß", 3))
}
