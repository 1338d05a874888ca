package catalogue

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestRead(t *testing.T) {
	list, err := Read(filepath.Join("..", "..", "..", "mapping", "testdata", "catalogues"))
	require.NoError(t, err)
	byName := map[string]*Catalogue{}
	for _, c := range list {
		byName[c.Name] = c
		assert.NotEmpty(t, c.Source, c.Name)
		assert.NotEmpty(t, c.Variables, c.Name)
		assert.NotContains(t, c.Version, "\n", "its first line")
	}

	c := byName["openmpi-5.0"]
	require.NotNil(t, c)
	variables, elements := c.MPIT(), c.Elements(4)
	require.Len(t, variables, len(c.Variables))
	for i, v := range variables {
		assert.Equal(t, c.Variables[i].Name, v.Name)
		assert.Equal(t, i, v.Index)
	}
	assert.Equal(t, mpit.Variable{
		Name: "pml_ob1_unexpected_msgq_length", Description: "Messages of each peer that nobody has received yet",
		Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4, Bind: mpit.BindComm,
		Verbosity: mpit.VerbosityTunerBasic, ReadOnly: true, Continuous: true,
	}, variables[0])
	assert.Equal(t, 4, elements["pml_ob1_unexpected_msgq_length"])
	assert.Equal(t, 2, elements["btl_usnic_devices"])
	assert.NotContains(t, elements, "mpool_hugepage_bytes_allocated")
	assert.Equal(t, mpit.Category{Name: "ompi_pml_ob1", Variables: []int{0, 1}}, c.Categories()[0])

	assert.Equal(t, byName["mpich-3.4"].Variables, byName["intelmpi-2021"].Variables,
		"nothing is public of the one, so the other stands for it")
}

func TestReadRefuses(t *testing.T) {
	const head = "library: mpich\nversion: MPICH\nsource: made up\n"
	for _, test := range []struct{ name, text, want string }{
		{"an unknown key", head + "colour: red\n", "colour"},
		{"an unknown class", head + "variables: [{name: a, class: meter, datatype: int, verbosity: user_all}]\n",
			`"a"`},
		{"an unknown verbosity", head + "variables: [{name: a, class: level, datatype: int, verbosity: user}]\n",
			`"a"`},
		{"an unknown datatype", head + "variables: [{name: a, class: level, datatype: word, verbosity: user_all}]\n",
			`no datatype "word"`},
		{"an unknown bind", head + "variables: [{name: a, class: level, datatype: int, verbosity: user_all, bind: " +
			"tree}]\n", `no bind "tree"`},
		{"a variable twice", head + "variables: [{name: a, class: level, datatype: int, verbosity: user_all}, " +
			"{name: a, class: level, datatype: unsigned, verbosity: user_all}]\n", "twice"},
		{"a stranger's likeness", head + "like: lam\n", `"lam"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(test.text), 0o644))
			_, err := Read(dir)
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "c.yaml")
		})
	}
	_, err := Read(t.TempDir())
	assert.ErrorContains(t, err, "no catalogues")
}
