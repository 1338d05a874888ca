package self

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A metric that nobody makes crashes the exporter when it counts for the first time.
func TestEveryMetricIsMade(t *testing.T) {
	metrics := reflect.ValueOf(New()).Elem()
	for i := range metrics.NumField() {
		if f := metrics.Type().Field(i); !f.Anonymous {
			assert.False(t, metrics.Field(i).IsNil(), "Metrics.%s has no entry in New", f.Name)
		}
	}
}
