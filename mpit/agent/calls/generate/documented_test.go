package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

const (
	page       = "../../../../docs/calls-reference.md"
	tableBegin = "go test ./mpit/agent/calls/generate -update -->\n"
	tableEnd   = "<!-- the end of the table -->\n"

	catalogueFile  = "../../../../mapping/testdata/catalogues/calls.yaml"
	variablesBegin = "variables:\n"
)

// The table of docs/calls-reference.md is this table; -update makes it anew.
func TestDocumentedTable(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), tableBegin)
	require.True(t, found, "docs/calls-reference.md has no %q", tableBegin)
	table, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "docs/calls-reference.md has no %q", tableEnd)
	want := documentation(shipped(t))
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o600))
		return
	}
	uptodate.Check(t, page, table, want, updating)
}

// documentation is a row for all functions of a section that have the same object, directions and kind.
func documentation(functions []function) string {
	objects := map[binding]string{bindComm: "communicator", bindWin: "window", bindFile: "file", bindNone: "none"}
	kinds := map[activity]string{sending: "send", waiting: "wait", inCollective: "collective", inFile: "file",
		polling: "poll"}
	names := map[string][]string{}
	var rows []string
	for _, f := range functions {
		row := fmt.Sprintf("| %s | %s | %s | %s |", f.section, kinds[f.activity()], objects[f.bind], directions(f.movement))
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], strings.TrimPrefix(f.name, "MPI_"))
	}
	var b strings.Builder
	b.WriteString("\n| family | kind | object | bytes | functions, without `MPI_` |\n|---|---|---|---|---|\n")
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

// The catalogue that the shipped rules are tried on, and docs/metrics.md is made from, has the variables of this
// table with the descriptions that the library gives them; -update makes them anew.
func TestDeclaredVariables(t *testing.T) {
	content, err := os.ReadFile(catalogueFile)
	require.NoError(t, err)
	head, variables, found := strings.Cut(string(content), variablesBegin)
	require.True(t, found, "%s has no %q", catalogueFile, variablesBegin)
	want := catalogue(shipped(t), descriptions(t))
	if *update {
		require.NoError(t, os.WriteFile(catalogueFile, []byte(head+variablesBegin+want), 0o600))
		return
	}
	uptodate.Check(t, catalogueFile, variables, want, updating)
}

// descriptions are source.c's, by kind of variable.
func descriptions(t *testing.T) map[string]string {
	source, err := os.ReadFile("../source.c")
	require.NoError(t, err)
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`\[([A-Z]+)\] = \{\s+[A-Z]+, (?:true|false),\s+"(.*)"\s+\}`).FindAllStringSubmatch(string(source), -1) {
		all[m[1]] = m[2]
	}
	require.Len(t, all, 7, "kinds of variables in source.c")
	return all
}

// catalogue has what source.c declares: of each function its time, what goes out and what comes in, and
// the sizes of its calls; and what is sent to rank 0, and to all others.
func catalogue(functions []function, descriptions map[string]string) string {
	binds := map[binding]string{bindComm: " bind: comm,", bindWin: " bind: win,", bindFile: " bind: file,",
		bindNone: ""}
	var b strings.Builder
	variable := func(name, properties, description string) {
		fmt.Fprintf(&b, "  - {name: %s, %s category: mpit_calls, description: %q}\n", name, properties, description)
	}
	for _, f := range functions {
		variable("mpit_call_time_"+f.name, "class: timer, datatype: uint64,"+binds[f.bind]+" verbosity: user_basic, "+
			"count: 45, distribution: true,",
			descriptions["TIME"])
		bytes := func(d direction, description string) {
			if d != noDirection {
				variable("mpit_call_bytes_"+string(d)+"_"+f.name,
					"class: aggregate, datatype: uint64,"+binds[f.bind]+" verbosity: user_basic,", description)
			}
		}
		bytes(f.movement.out, descriptions["OUT"])
		bytes(f.movement.in, descriptions["IN"])
		if f.movement.out != noDirection || f.movement.in != noDirection {
			variable("mpit_call_size_"+f.name, "class: aggregate, datatype: uint64,"+binds[f.bind]+" verbosity: user_basic, "+
				"count: 45, distribution: true,", descriptions["SIZE"])
		}
	}
	variable("mpit_call_uncounted", "class: counter, datatype: uint64, verbosity: user_basic,",
		descriptions["UNCOUNTED"])
	for _, peer := range []string{"0", "other"} {
		variable("mpit_call_peer_messages_"+peer, "class: counter, datatype: uint64, verbosity: user_basic,",
			descriptions["MESSAGES"])
		variable("mpit_call_peer_bytes_"+peer, "class: aggregate, datatype: uint64, verbosity: user_basic,",
			descriptions["BYTES"])
	}
	return b.String()
}
