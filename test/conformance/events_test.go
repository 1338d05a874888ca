package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// 15.3.8: no library here has any.
func events() section {
	return section{"15.3.8 Events", []feature{{"event types, sources, callbacks", func(t *testing.T, s *subject) outcome {
		count := s.Do(t, "tool-events")
		if count == "none" {
			return notOffered
		}
		assert.Equal(t, "0", count, "the library has events: time to look at them")
		return notSupported("Events are delivered by callbacks in the middle of the program's calls, where an observer has no business. " +
			"Nothing is lost: MPI_T_event_get_num says that the library has none.")
	}}}}
}
