package variables

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Whatever changes values or labels changes what a series means: a reload that changed neither would let it go on.
func TestMeaning(t *testing.T) {
	// These change no value and no label. Unit changes HELP.
	free := []string{"Metric", "Open", "Unit"}
	kind := func(name string) *Variable {
		metric := &mapping.Metric{Name: name}
		return &Variable{Spec: &mapping.Spec{Plain: mapping.Plain{Metric: metric}}}
	}
	before := kind("x").means()
	require.NotEqual(t, before, kind("y").means())
	var check func(index []int, of reflect.Type)
	check = func(index []int, of reflect.Type) {
		for i := range of.NumField() {
			field, at := of.Field(i), append(slices.Clone(index), i)
			if field.Anonymous {
				check(at, field.Type)
				continue
			}
			if slices.Contains(free, field.Name) {
				continue
			}
			v := kind("x")
			switch to := reflect.ValueOf(&v.Plain).Elem().FieldByIndex(at); to.Kind() {
			case reflect.Bool:
				to.SetBool(true)
			case reflect.String:
				to.SetString("other")
			case reflect.Float64:
				to.SetFloat(2)
			default:
				to.Set(reflect.ValueOf(3).Convert(to.Type()))
			}
			require.NotEqual(t, before, v.means(), "Spec.%s changes nothing in Variable.means, nor is it in the list of "+
				"this test", field.Name)
		}
	}
	check(nil, reflect.TypeFor[mapping.Plain]())
}
