package board

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
	for i := range MaxCategoryRows + 5 {
		list = append(list, mpit.Category{Index: i, Name: fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)),
			Variables: []int{0}})
	}
	rows, over := CategoryRows(list, vars, infos)
	assert.Len(t, rows, MaxCategoryRows)
	assert.Equal(t, 5, over)
	assert.Len(t, rows[0].Category, clean.MaxLabel)

	rows, over = CategoryRows([]mpit.Category{{Name: "all", Variables: make([]int, maxEntries+3)}}, vars, infos)
	assert.Len(t, rows, 1)
	assert.Equal(t, 3, over, "the same again and again")
}

func TestControlRows(t *testing.T) {
	world := WorldName{JobID: "7", Name: "0", User: "ada"}
	phase := &mpit.Enum{Items: []mpit.EnumItem{{Value: 1, Name: "ea\rer"}, {Value: 2, Name: "rendezvous"}}}
	rows, unreadable, over := ControlRows(world, []mpit.ControlVariable{
		{Name: "mode", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{1, 2, 3}, Enum: phase},
		{Name: "mode", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{2}}, // the same name again
		{Name: "negative", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{1<<64 - 5}},
		{Name: "bound", Datatype: mpit.DatatypeInt, Bind: mpit.BindComm,
			Objects: []mpit.ObjectValue{{Object: 1, HasValue: true, Values: []uint64{1}}}},
		{Name: "text\x7f", Datatype: mpit.DatatypeChar, HasValue: true, Text: strings.Repeat("é", 100)},
		{Name: "other", Datatype: mpit.DatatypeInt, HasValue: true, Values: []uint64{1}},
	}, []string{"m?de", "neg*", "bound", "text*"})
	assert.Equal(t, []ControlRow{
		{world, "mode", "ea\uFFFDer,rendezvous,3"}, {world, "negative", "-5"}, {world, "text\uFFFD", strings.Repeat("é", 64)},
	}, rows)
	assert.Equal(t, 1, unreadable)
	assert.Zero(t, over)
}
