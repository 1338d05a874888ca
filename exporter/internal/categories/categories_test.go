package categories

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// variablesNamed is a catalogue of counters whose MPI_T indices are their places.
func variablesNamed(names ...string) *mpit.Variables {
	v := &mpit.Variables{}
	for i, name := range names {
		v.ByID = append(v.ByID, mpit.Variable{ID: uint32(i), Index: i, Name: name, Class: mpit.ClassCounter})
	}
	return v
}

func TestRowsAreBounded(t *testing.T) {
	vars, infos := variablesNamed("a"), []variables.Info{{Name: "a", Class: mpit.ClassCounter}}
	var list []mpit.Category
	for i := range MaxRows + 5 {
		list = append(list, mpit.Category{Index: i, Name: fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)),
			Variables: []int{0}})
	}
	rows, over := Rows(list, vars, infos)
	assert.Len(t, rows, MaxRows)
	assert.Equal(t, 5, over)
	assert.Len(t, rows[0].Category, clean.MaxLabel)

	rows, over = Rows([]mpit.Category{{Name: "all", Variables: make([]int, maxEntries+3)}}, vars, infos)
	assert.Len(t, rows, 1)
	assert.Equal(t, 3, over, "the same again and again")
}
