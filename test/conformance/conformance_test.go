package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

var update = flag.Bool("update", false, "write the table in docs/internals/conformance.md anew")

// check looks at a feature of a library, in a subtest of its own. What it returns it has asserted.
type check func(t *testing.T, s *subject) outcome

// feature is a row.
type feature struct {
	name  string
	check check
}

// section is a section of the standard, or a kind of object, with its rows.
type section struct {
	name     string
	features []feature
}

// sections are all of them, in the order of the document.
func sections() []section {
	return []section{
		verbosities(),
		binds(),
		stringsOf(),
		initialisation(),
		datatypes(),
		controlVariables(),
		classes(),
		performanceVariables(),
		awkwardVariables(),
		tools(),
		events(),
		categories(),
		returnCodes(),
		pcontrol(),
		sessionsModel(),
		communicators(),
		windows(),
		files(),
		datatypeObjects(),
		otherObjects(),
	}
}

// TestConformance checks every feature against every library. A check that fails fails the test; one that doesn't run
// leaves "not tested".
func TestConformance(t *testing.T) {
	libraries := []struct {
		name string
		mpi  func(testing.TB) *harness.MPI
	}{{"Fixture", nil}, {"Open MPI", harness.OpenMPI}, {"MPICH", harness.MPICH}}
	all := sections()
	results := newTable("Fixture", "Open MPI", "MPICH")
	rows := make([][]int, len(all))
	for i, s := range all {
		for _, f := range s.features {
			rows[i] = append(rows[i], results.add(s.name, f.name))
		}
	}
	t.Run("of", func(t *testing.T) {
		for column, library := range libraries {
			t.Run(library.name, func(t *testing.T) {
				t.Parallel()
				var s *subject
				if library.mpi == nil {
					s = newFixture(t)
				} else {
					s = newReal(t, library.mpi(t))
				}
				results.columns[column] = heading(s)
				for i, sec := range all {
					t.Run(sec.name, func(t *testing.T) {
						for k, f := range sec.features {
							t.Run(f.name, func(t *testing.T) {
								found := f.check(t, s)
								if !t.Failed() {
									*results.cell(sec.name, rows[i][k], column) = found
								}
							})
						}
					})
				}
				s.finish(t)
			})
		}
	})
	if t.Failed() {
		return // what has failed says more
	}
	compare(t, results)
}

// heading is the library's name and version.
func heading(s *subject) string {
	if s.fixture() {
		return s.name
	}
	version := s.session.Hello().LibraryVersion
	for _, field := range strings.FieldsFunc(version, func(r rune) bool {
		return r == ' ' || r == ',' || r == ':' ||
			r == '\t'
	}) {
		if strings.Contains(field, ".") {
			return s.name + " " + strings.TrimPrefix(field, "v")
		}
	}
	return s.name + " " + version
}

const (
	begin = "<!-- begin: written by `go test ./conformance -update` in test/ -->\n"
	end   = "<!-- end -->\n"
)

// compare looks whether the document says what the checks have found, or writes it.
func compare(t *testing.T, results *table) {
	t.Helper()
	path := filepath.Join(suite.Root(), "docs", "internals", "conformance.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "no begin mark in %s", path)
	table, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "no end mark in %s", path)
	want := results.markdown()
	switch {
	case *update:
		require.NoError(t, os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644))
	case !strings.Contains(table, "| | "+strings.Join(results.columns, " | ")+" |"):
		t.Logf("not compared with docs/internals/conformance.md, which is about other versions than %s",
			strings.Join(results.columns, ", "))
	case !results.complete():
		t.Log("not compared with docs/internals/conformance.md: not all checks have run")
	default:
		assert.Equal(t, want, table, "docs/internals/conformance.md is out of date: go test ./conformance -update")
	}
}

// everything is the fixture's library.
func everything() *fixture.Library { return fixture.Everything() }

// each makes a row for each item of a list.
func each[T any](items []T, name func(T) string, checks func(T) check) []feature {
	features := make([]feature, len(items))
	for i, item := range items {
		features[i] = feature{name(item), checks(item)}
	}
	return features
}

// code makes a word look like code in the document.
func code(x any) string { return fmt.Sprintf("`%v`", x) }
