package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const catalogue = "../../../../mapping/testdata/catalogues/calls.yaml"

// The catalogue that the shipped rules and docs/metrics.md are tested with is of this table; -update makes it anew.
func TestCatalogue(t *testing.T) {
	content, err := os.ReadFile(catalogue)
	require.NoError(t, err)
	head, variables, found := strings.Cut(string(content), "\nvariables:\n")
	require.True(t, found, "%s has no variables", catalogue)
	want := catalogued(shipped(t))
	if *update {
		require.NoError(t, os.WriteFile(catalogue, []byte(head+"\nvariables:\n"+want), 0o600))
		return
	}
	assert.Equal(t, want, variables, "go test ./mpit/agent/calls/generate -update")
}

// catalogued is what source.c offers once each function has been called.
func catalogued(functions []function) string {
	binds := map[binding]string{bindComm: "bind: comm, ", bindWin: "bind: win, ", bindFile: "bind: file, "}
	var b strings.Builder
	add := func(name, class, bind, more, description string) {
		fmt.Fprintf(&b, "  - {name: %s, class: %s, datatype: uint64, %sverbosity: user_basic, %scategory: mpit_calls, description: %q}\n",
			name, class, bind, more, description)
	}
	for _, f := range functions {
		bind := binds[f.bind]
		add("mpit_call_time_"+f.name, "timer", bind, "count: 45, distribution: true, ",
			"Time in calls of this function from outside MPI, and how many took how long")
		if out := f.movement.out; out != noDirection {
			add(fmt.Sprintf("mpit_call_bytes_%s_%s", out, f.name), "aggregate", bind, "",
				"Bytes that calls of this function from outside MPI were given to send or write")
		}
		if in := f.movement.in; in != noDirection {
			add(fmt.Sprintf("mpit_call_bytes_%s_%s", in, f.name), "aggregate", bind, "",
				"Bytes that calls of this function from outside MPI were given, or had given room for")
		}
	}
	add("mpit_call_uncounted", "counter", "", "", "Calls that could not be counted: no memory for a thread's block, or their object was freed meanwhile")
	return b.String()
}
