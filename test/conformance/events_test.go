package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// 15.3.8: Open MPI 6 alone has any: of the lives of objects and of MPI, which the agent sees by itself.
func events() section {
	return section{"15.3.8 Events", []feature{{"event types, sources, callbacks",
		func(t *testing.T, s *subject) outcome {
			count := s.Do(t, "tool-events")
			if count == "none" {
				return notOffered
			}
			if s.mpi != nil && s.mpi.Name == "openmpi" && s.mpi.Major >= 6 {
				return notSupported("Events are delivered by callbacks in the middle of the program's calls, where " +
					"an observer has no business. Nothing is lost: the library has them for objects and the end of " +
					"MPI, which the agent sees by itself.")
			}
			assert.Equal(t, "0", count, "the library has events: time to look at them")
			return notSupported("Events are delivered by callbacks in the middle of the program's calls, where an " +
				"observer has no business. Nothing is lost: MPI_T_event_get_num says that the library has none.")
		}}}}
}
