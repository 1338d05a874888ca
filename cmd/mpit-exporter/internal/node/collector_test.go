package node

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTuneCollector(t *testing.T) {
	const was = 77
	defer debug.SetGCPercent(debug.SetGCPercent(was))
	for gogc, want := range map[string]int{"": gcPercent, "77": was, "off": was} {
		restore := tuneCollector(func(string) string { return gogc })
		now := debug.SetGCPercent(was)
		debug.SetGCPercent(now)
		assert.Equal(t, want, now, gogc)
		restore()
		assert.Equal(t, was, debug.SetGCPercent(was))
	}
}
