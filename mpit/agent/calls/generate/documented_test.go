package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	page       = "../../../../docs/calls.md"
	tableBegin = "go test ./mpit/agent/calls/generate -update -->\n"
	tableEnd   = "<!-- the end of the table -->\n"
)

// The table of docs/calls.md is this table; -update makes it anew.
func TestDocumentedTable(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), tableBegin)
	require.True(t, found, "docs/calls.md has no %q", tableBegin)
	table, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "docs/calls.md has no %q", tableEnd)
	want := documentation(shipped(t))
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o600))
		return
	}
	assert.Equal(t, want, table, "go test ./mpit/agent/calls/generate -update")
}

// documentation is a row for all functions of a section that have the same object and directions.
func documentation(functions []function) string {
	objects := map[binding]string{bindComm: "communicator", bindWin: "window", bindFile: "file", bindNone: "none"}
	names := map[string][]string{}
	var rows []string
	for _, f := range functions {
		row := fmt.Sprintf("| %s | %s | %s |", f.section, objects[f.bind], directions(f.movement))
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], strings.TrimPrefix(f.name, "MPI_"))
	}
	var b strings.Builder
	b.WriteString("\n| family | object | bytes | functions, without `MPI_` |\n|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "%s %s |\n", row, strings.Join(names[row], ", "))
	}
	b.WriteString("\n")
	return b.String()
}

func directions(m movement) string {
	var all []string
	for _, d := range []direction{m.out, m.in} {
		if d != noDirection {
			all = append(all, "`"+string(d)+"`")
		}
	}
	return strings.Join(all, ", ")
}
