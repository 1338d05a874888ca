package node

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTuneCollector(t *testing.T) {
	const was = 77
	defer debug.SetGCPercent(debug.SetGCPercent(was))
	percent := func() int {
		now := debug.SetGCPercent(was)
		debug.SetGCPercent(now)
		return now
	}
	for _, test := range []struct {
		environment string
		want        int
	}{{"", gcPercent}, {"77", was}, {"off", was}} {
		restore := tuneCollector(test.environment)
		assert.Equal(t, test.want, percent(), "GOGC=%s", test.environment)
		restore()
		assert.Equal(t, was, percent())
	}
}
