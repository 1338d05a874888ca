package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// With --events the types of events are counted, by the object that they are bound to, and the program notices
// nothing; where the library has none, nothing comes of it. The program makes seven communicators and a window, and
// frees them.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			job := harness.Job{MPI: mpi, Program: "calls.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				Exec: []string{"--events"}}
			run := suite.Run(t, job)
			run.AtHold(t, "made")
			exporter.Await(t, "the events until now", all(up(run), func(s *harness.Scrape) error {
				if mpi.Name != "openmpi" || mpi.Major < 6 {
					if types := s.Values("mpit_event_total", nil, "event"); len(types) > 0 {
						return fmt.Errorf("events of a library that had none: %v", types)
					}
					return nil
				}
				return raised(s, run.Labels(0))
			}))
			got := run.Finish(t, "made")
			exporter.Await(t, "the end", all(ended(run, "finalize"), healthy))
			job.Bare = true
			job.Args = []string{"-"}
			assert.Equal(t, suite.Run(t, job).Wait(t), got)
		})
	}
}

// raised: Open MPI 6's events of the first half of calls.c. Communicators that the library makes for itself count, too,
// and are not the same in all ranks. What names a communicator happens under its old name.
func raised(s *harness.Scrape, rank harness.Labels) error {
	of := func(event string) harness.Labels { return rank.With("event", "ompi.mpi."+event) }
	atLeast := func(event string, times float64) error {
		series, err := s.One("mpit_event_total", of(event))
		if err == nil && series.Value < times {
			err = fmt.Errorf("%v is less than %v", series, times)
		}
		return err
	}
	return errors.Join(
		atLeast("communicator_created", 7), atLeast("communicator_freed", 5),
		s.Expect("mpit_event_total", of("communicator_name_set").With("comm", "unnamed"), 1),
		s.Expect("mpit_event_total", of("win_created"), 1), s.Expect("mpit_event_total", of("win_freed"), 0),
		s.Expect("mpit_event_total", of("errhandler_invoked"), 0), s.Expect("mpit_event_dropped_total", rank, 0),
	)
}
