package rules

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

const exampleRules = "../../examples/rules"

// Every example can be used as it is, alone and with all others.
func TestExampleFiles(t *testing.T) {
	files, err := filepath.Glob(exampleRules + "/*.yaml")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(files), 4)
	for _, path := range append(files, exampleRules) {
		s, err := Load([]string{path})
		require.NoError(t, err)
		_, err = Compile(s.Rules)
		assert.NoError(t, err)
	}
}

var cString = regexp.MustCompile(`"([A-Za-z_][A-Za-z0-9_]*)"`)

// The documentation says what the agent sends of a rank's environment, which rules of identity may read.
func TestEnvironmentIsDocumented(t *testing.T) {
	source, err := os.ReadFile("../../mpit/agent/identity.c")
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(source), "variables[] = {")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "};")
	var sent []string
	for _, m := range cString.FindAllStringSubmatch(list, -1) {
		sent = append(sent, m[1])
	}
	assert.NotEmpty(t, sent)
	text, err := os.ReadFile("../../docs/labels.md")
	require.NoError(t, err)
	for _, name := range sent {
		assert.Contains(t, string(text), "`"+name+"`")
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// What stands in the documentation can be copied out of it, and there is nothing of which it says nothing.
func TestDocumentedRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	require.NoError(t, err)
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	assert.GreaterOrEqual(t, len(blocks), 6)
	for _, b := range blocks {
		_, err := Parse("docs/rules.md", []byte(b[1]))
		assert.NoError(t, err, b[1])
	}
	for _, of := range []reflect.Type{reflect.TypeFor[File](), reflect.TypeFor[Match](), reflect.TypeFor[Rule](),
		reflect.TypeFor[Limits](), reflect.TypeFor[Relabel]()} {
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
			assert.True(t, key == "-" || strings.Contains(string(text), "`"+key+"`"),
				"docs/rules.md says nothing of `%s`, a key of %v", key, of)
		}
	}
	words := slices.Concat(sourceLabels, targetLabels, reservedLabels, classWords(), bindWords(), verbosityWords(),
		[]string{mapping.OpenMPI, mapping.MPICH, mapping.MVAPICH, mapping.IntelMPI, mapping.CrayMPICH})
	words = append(words, strings.Split(unitList, ", ")...)
	for _, w := range words {
		assert.True(t, strings.Contains(string(text), "`"+w+"`"), "docs/rules.md says nothing of `%s`", w)
	}
}
