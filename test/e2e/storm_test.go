package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// soaks is how many seconds a storm lasts in make soak; 0: this is make test.
func soaks(t *testing.T) (seconds float64) {
	t.Helper()
	text := os.Getenv("MPIT_SOAK_SECONDS")
	if text == "" {
		return 0
	}
	seconds, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, "MPIT_SOAK_SECONDS")
	return seconds
}

// onlyInSoak skips a test that costs much, and whose comment says what has the same in make test.
func onlyInSoak(t *testing.T) {
	t.Helper()
	if soaks(t) == 0 {
		t.Skip("in make soak")
	}
}

// oneLibrary is Open MPI, and in make soak MPICH, too: for what doesn't depend on the library.
func oneLibrary(t *testing.T) []*harness.MPI {
	t.Helper()
	if soaks(t) == 0 {
		return []*harness.MPI{harness.OpenMPI(t)}
	}
	return harness.Both(t)
}

// Objects of every kind come and go, in one thread or several, while each rank is read a thousand times a second: the
// program's results are those that it has without the agent. MPIT_SOAK_SECONDS makes it longer than the second that
// suffices daily, and at every thread level.
func TestStorm(t *testing.T) {
	t.Parallel()
	seconds := cmp.Or(soaks(t), 1)
	type storm struct {
		level   string
		threads int
		soak    bool // in make soak alone
	}
	storms := []storm{
		{level: "single", threads: 1},
		{level: "funneled", threads: 1, soak: true},
		{level: "serialized", threads: 3, soak: true},
		{level: "multiple", threads: 3},
	}
	if soaks(t) == 0 {
		storms = slices.DeleteFunc(storms, func(s storm) bool { return s.soak })
	}
	for _, mpi := range harness.Both(t) {
		for _, storm := range storms {
			t.Run(mpi.Name+"/"+storm.level, func(t *testing.T) {
				if storm.level == "multiple" {
					skipHangs(t, mpi)
				}
				// What it prints doesn't depend on how long it runs.
				job := stormJob(mpi, 0.1, storm.threads, storm.level)
				job.Bare = true
				bare := suite.Run(t, job).Wait(t)
				require.Zero(t, bare.Status, "%+v", bare)

				sampler := startSampler(t, time.Millisecond)
				job = stormJob(mpi, seconds, storm.threads, storm.level)
				job.Socket = sampler.socket
				observed := suite.Run(t, job).WaitLong(t, time.Duration(seconds*float64(time.Second)))
				assert.Equal(t, bare, observed)
				sampler.stop(t, 2)
			})
		}
	}
}

// skipHangs skips a storm of two ranks with several threads each where the library hangs by itself.
func skipHangs(t *testing.T, mpi *harness.MPI) {
	t.Helper()
	if mpi.Name == "openmpi" && mpi.Version == "6.0.0rc2" {
		t.Skip("Open MPI 6.0.0rc2 hangs at MPI_THREAD_MULTIPLE without the agent, in 2 of 20 storms of a second: in " +
			"each rank a thread waits in MPI_Comm_create for the next context, and another one in MPI_Waitall.")
	}
}

// Memcheck has nothing to say of the agent in a storm, on either library. make test has TestStorm, TestMemcheck and
// mpit/agent's own tests under valgrind.
func TestStormUnderMemcheck(t *testing.T) {
	onlyInSoak(t)
	t.Parallel()
	valgrind := harness.Tool(t, "valgrind")
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			memcheck := func(bare bool) (harness.Result, []memcheckError) {
				sampler := startSampler(t, time.Millisecond)
				dir := suite.Dir(t)
				job := stormJob(mpi, 0, 2, "multiple") // one period of every thread
				job.Ranks, job.Bare, job.Socket = 1, bare, sampler.socket
				job.Wrap = memcheckCommand(valgrind, dir)
				result := suite.Run(t, job).Wait(t)
				if bare {
					sampler.stop(t, 0)
				} else {
					sampler.stop(t, 1)
				}
				return result, readMemcheck(t, dir, 1)
			}
			bare, known := memcheck(true)
			observed, found := memcheck(false)
			assert.Equal(t, bare.Status, observed.Status)
			assert.Equal(t, bare.Stdout, observed.Stdout)
			assert.Equal(t, withoutNumbers(bare.Stderr), withoutNumbers(observed.Stderr)) // valgrind names processes
			assertAgentClean(t, known, found)
		})
	}
}

func stormJob(mpi *harness.MPI, seconds float64, threads int, level string) harness.Job {
	job := harness.Job{
		MPI: mpi, Program: "storm.c", Args: []string{fmt.Sprint(seconds), strconv.Itoa(threads), level,
			harness.HoldDir},
		Exec: monitoring(mpi),
	}
	if mpi.Name == "mpich" { // Open MPI 4.1 has no windows at MPI_THREAD_MULTIPLE
		job.Env = []string{"STORM_WINDOWS=1"}
	}
	return job
}

// sampler is an exporter reduced to reading: every rank that connects is asked at a fixed rate, and now and then for
// its lists.
type sampler struct {
	socket string
	cancel context.CancelFunc
	served chan error

	mu       sync.Mutex
	fresh    int
	failures []error
	ends     []mpit.EndReason
}

func startSampler(t *testing.T, every time.Duration) *sampler {
	t.Helper()
	listener, err := mpit.Listen(filepath.Join(suite.Dir(t), "sampler.sock"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s := &sampler{socket: listener.Path(), cancel: cancel, served: make(chan error, 1)}
	go func() {
		defer close(s.served)
		s.served <- listener.Serve(ctx, func(ctx context.Context,
			session *mpit.Session) {
			s.rank(ctx, session, every)
		},
			func(_ mpit.Peer, err error) { s.note(nil, err) })
	}()
	t.Cleanup(func() {
		cancel()
		for err := range s.served { // nothing, after stop
			assert.NoError(t, err)
		}
		assert.NoError(t, listener.Close())
	})
	return s
}

// rank reads one rank until its connection ends, and takes its last sample from whichever connection brings it.
func (s *sampler) rank(ctx context.Context, session *mpit.Session, every time.Duration) {
	defer session.Close()
	if session.Hello().Final {
		<-session.Done()
		if _, ok := session.Final(); !ok {
			s.note(nil, fmt.Errorf("rank %d: no last sample: %w", session.Hello().Rank, session.Err()))
			return
		}
	} else {
		s.follow(ctx, session, every)
	}
	if final, ok := session.Final(); ok {
		s.note(&final, nil)
	}
}

// follow reads a rank as long as it lives.
func (s *sampler) follow(ctx context.Context, session *mpit.Session, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		sample, err := session.Read(ctx)
		if err == nil && n%256 == 0 {
			_, err = session.ControlVariables(ctx)
		}
		var breach *mpit.ProtocolError
		switch {
		case errors.As(err, &breach):
			s.note(nil, err)
			return
		case err != nil: // the end of the rank, or ours
			return
		}
		s.note(&sample, nil)
		select {
		case <-tick.C:
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *sampler) note(sample *mpit.Sample, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.failures = append(s.failures, err)
	case sample.Status == mpit.SampleFinal:
		s.ends = append(s.ends, sample.End)
	case sample.Status == mpit.SampleFresh:
		s.fresh++
	}
}

// stop waits until so many ranks have said that they have come to MPI_Finalize, and fails the test if anything went
// wrong or nothing was read.
func (s *sampler) stop(t *testing.T, ranks int) {
	t.Helper()
	harness.Await(t, "the ranks' last samples", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.ends) != ranks {
			return fmt.Errorf("%d ranks have ended: %v", len(s.ends), s.ends)
		}
		return nil
	})
	s.cancel()
	require.NoError(t, <-s.served)
	assert.Empty(t, s.failures)
	for _, end := range s.ends {
		assert.Equal(t, mpit.EndFinalize, end)
	}
	if ranks > 0 {
		assert.Positive(t, s.fresh, "not one sample was taken while objects came and went")
	}
	t.Logf("%d fresh samples", s.fresh)
}
