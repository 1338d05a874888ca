package listing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func saved(t *testing.T, change func(c *api.Catalogue)) *Saved {
	t.Helper()
	c := &api.Catalogue{
		Rank: api.RankStatus{Library: "openmpi", LibraryVersion: "5.0.8"},
		Variables: []api.VariableStatus{
			{Name: "queue", Class: mpit.ClassLevel, Bind: mpit.BindComm, Datatype: mpit.DatatypeInt,
				Description: "Messages", Unit: "{message}", Categories: []string{"traffic"}},
			{Name: "sent", Class: mpit.ClassCounter, Datatype: mpit.DatatypeUint64, Description: "Bytes sent",
				Continuous: true},
			{Name: "sent", Class: mpit.ClassHighWatermark, Datatype: mpit.DatatypeUint64},
		},
		ControlVariables: []api.ControlVariableStatus{{Name: "eager", Scope: mpit.ScopeLocal,
			Enum: []mpit.EnumItem{{Value: 0, Name: "off"}}}},
		Categories: []api.CategoryStatus{{Name: "all", Subcategories: []string{"traffic"}},
			{Name: "traffic", Parents: []string{"all"}, Description: "What moves"}},
	}
	if change != nil {
		change(c)
	}
	s, err := NewSaved(c)
	require.NoError(t, err)
	return s
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *api.Catalogue)
		want   string // lines with their cells apart by two blanks; the last one's counts
	}{
		{"nothing", nil, "0 came, 0 went, 0 changed, 6 are equal"},
		{"not compared", func(c *api.Catalogue) {
			value := "7"
			c.Rank.PID, c.ControlVariables[0].Value = 17, &value
			c.Variables[0].State, c.Variables[0].Metric = mpit.VariableReadFailed, "mpit_queue"
			c.Objects = []api.ObjectStatus{{ID: 1}}
			slices.Reverse(c.Variables)
			slices.Reverse(c.Categories)
		}, "0 came, 0 went, 0 changed, 6 are equal"},
		{"came and went", func(c *api.Catalogue) {
			c.Variables[0].Name, c.Variables[0].Description = "length", "Messages\x1b\nthat wait"
			c.ControlVariables[0].Name = "limit"
			c.Categories[0].Name = "every"
		}, `CHANGE  KIND  NAME  CLASS  DETAILS
came  pvar  length  LEVEL  Messages that wait
came  cvar  limit  -  -
came  category  every  -  -
went  pvar  queue  LEVEL  Messages
went  cvar  eager  -  -
went  category  all  -  -
3 came, 3 went, 0 changed, 3 are equal`},
		{"changed", func(c *api.Catalogue) {
			c.Variables[0].Bind, c.Variables[0].Unit = mpit.BindNone, ""
			c.Variables[1].ReadOnly, c.Variables[1].Continuous = true, false
			c.Variables[2].Datatype, c.Variables[2].Verbosity = mpit.DatatypeInt, mpit.VerbosityUserBasic
			c.Variables[2].Atomic, c.Variables[2].Categories = true, []string{"traffic", "all"}
			c.ControlVariables[0].Enum = nil
			c.ControlVariables[0].Scope = mpit.ScopeAll
			c.Categories[1].Description = "What\nmoves"
		}, `CHANGE  KIND  NAME  CLASS  DETAILS
changed  pvar  queue  LEVEL  bind "MPI_COMM" → "NO_OBJECT"; unit "{message}" → none
changed  pvar  sent  COUNTER  continuous true → false; readonly false → true
changed  pvar  sent  HIGHWATERMARK  atomic false → true; categories none → ["all","traffic"]; ` +
			`datatype "MPI_UINT64_T" → "MPI_INT"; verbosity "UNKNOWN" → "USER_BASIC"
changed  cvar  eager  -  enum [{"name":"off","value":0}] → none; scope "LOCAL" → "ALL"
changed  category  traffic  -  description "What moves" → "What\nmoves"
0 came, 0 went, 5 changed, 1 are equal`},
		{"another class", func(c *api.Catalogue) { c.Variables[0].Class = mpit.ClassSize },
			`CHANGE  KIND  NAME  CLASS  DETAILS
changed  pvar  queue  SIZE  class "LEVEL" → "SIZE"
0 came, 0 went, 1 changed, 5 are equal`},
		{"another class of one name's", func(c *api.Catalogue) { c.Variables[1].Class = mpit.ClassAggregate },
			`CHANGE  KIND  NAME  CLASS  DETAILS
changed  pvar  sent  AGGREGATE  class "COUNTER" → "AGGREGATE"
0 came, 0 went, 1 changed, 5 are equal`},
		{"one of two of a name", func(c *api.Catalogue) { c.Variables = c.Variables[:2] },
			`CHANGE  KIND  NAME  CLASS  DETAILS
went  pvar  sent  HIGHWATERMARK  -
0 came, 1 went, 0 changed, 5 are equal`},
		{"twice", func(c *api.Catalogue) { c.Variables = append(c.Variables, c.Variables[0]) },
			`CHANGE  KIND  NAME  CLASS  DETAILS
came  pvar  queue  LEVEL  Messages
1 came, 0 went, 0 changed, 6 are equal`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			equal, err := Compare(&out, "old.json", saved(t, nil), saved(t, test.change))
			require.NoError(t, err)
			var got []string
			for line := range strings.Lines(out.String()) {
				cells := strings.FieldsFunc(strings.ReplaceAll(strings.TrimSpace(line), "  ", "\t"),
					func(r rune) bool { return r == '\t' })
				for i := range cells {
					cells[i] = strings.TrimSpace(cells[i])
				}
				got = append(got, strings.Join(cells, "  "))
			}
			assert.Equal(t, test.want+": openmpi 5.0.8 in old.json, openmpi 5.0.8 now", strings.Join(got, "\n"))
			assert.Equal(t, strings.HasPrefix(test.want, "0 came, 0 went, 0 changed"), equal)
		})
	}
}

// Two processes with the same library have the same file, and what is read is what was written.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one.json"), filepath.Join(dir, "other.json")
	require.NoError(t, saved(t, nil).Save(one))
	require.NoError(t, os.WriteFile(other, []byte("replaced"), 0o600))
	require.NoError(t, saved(t, func(c *api.Catalogue) {
		value := "7"
		c.Rank.PID, c.ControlVariables[0].Value = 17, &value
		c.Objects = []api.ObjectStatus{{ID: 1}}
		slices.Reverse(c.Variables[1:])
		slices.Reverse(c.Categories)
	}).Save(other))
	text, err := os.ReadFile(one)
	require.NoError(t, err)
	again, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))

	read, err := Load(one)
	require.NoError(t, err)
	assert.Equal(t, saved(t, nil), read)

	link := filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink(os.DevNull, link))
	assert.EqualError(t, saved(t, nil).Save(link), "this is not a regular file")
}

func TestLoad(t *testing.T) {
	const other = "this is not a file that list --save has written"
	path := filepath.Join(t.TempDir(), "saved.json")
	for text, want := range map[string]string{
		"":                   other + "\nunexpected end of JSON input",
		"text":               other + "\ninvalid character 'e' in literal true (expecting 'r')",
		`{"catalogues": []}`: other,
		`{"format": 1}`:      other, // a report
		`{"catalogue_format": 2, "variables": [{"class": "NEW"}]}`: "this is a file of format 2; this version reads 1",
		`{"catalogue_format": 1, "variables": ["NEW"]}`: "json: cannot unmarshal string into Go struct field " +
			"Saved.variables of type listing.entry",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Load(path)
		assert.EqualError(t, err, want, text)
	}
	_, err := Load(path + ".none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
