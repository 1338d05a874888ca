package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Communicators and windows come and go as fast as they can while several scrapers read as fast as they can: no wrong
// result, no crash, no failed scrape, no counter that falls. MPIT_SOAK_SECONDS makes each job longer than the 1.5
// seconds that suffice daily.
func TestChurn(t *testing.T) {
	t.Parallel()
	seconds := cmp.Or(soaks(t), 1.5)
	for _, mpi := range harness.Both(t) {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d threads", mpi.Name, threads), func(t *testing.T) {
				exporter := suite.Exporter(t)
				run := suite.Run(t, harness.Job{
					MPI: mpi, Program: "churn.c", Args: []string{fmt.Sprint(seconds), strconv.Itoa(threads),
						harness.HoldDir},
					Socket: exporter.Socket, Exec: monitoring(mpi),
				})
				exporter.Await(t, "the ranks", up(run))
				scraped, stop := scrapeUntilStopped(t, exporter, run, 2)
				harness.Await(t, "scrapes", func(context.Context) error {
					if n := scraped(); n <= 10 && !run.Ended() {
						return fmt.Errorf("%d", n)
					}
					return nil
				})
				run.Release(t, "stop")
				result := run.WaitLong(t, time.Duration(seconds*float64(time.Second)))
				stop()
				require.Zero(t, result.Status, "%+v", result)
				assert.Equal(t, "churn: wrong results 0\n", result.Stdout)
				assert.Empty(t, result.Stderr)

				last := exporter.Await(t, "the end", all(ended(run, "finalize"), healthy))
				fresh, err := last.One("mpit_exporter_samples_total", harness.Labels{"result": "fresh"})
				require.NoError(t, err)
				assert.Positive(t, fresh.Value, "not one sample was taken while communicators came and went")
				for _, dropped := range last.Select("mpit_exporter_series_dropped_total", nil) {
					if reason := dropped.Labels["reason"]; !slices.Contains([]string{"denied", "read_failed",
						"generic_string"}, reason) {
						assert.Zero(t, dropped.Value, dropped)
					}
				}
				t.Logf("%d scrapes, %v fresh samples", scraped(), fresh.Value)
			})
		}
	}
}

// scrapeUntilStopped lets several scrapers read without a pause, until stop is called; scraped is how often they have
// read. A failed scrape or a counter of the job that has fallen between two scrapes of one reader fails the test.
func scrapeUntilStopped(t *testing.T, exporter *harness.Exporter, run *harness.Run, scrapers int) (
	scraped func() int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var count atomic.Int64
	for range scrapers {
		group.Go(func() {
			before := map[string]float64{}
			for ctx.Err() == nil {
				scrape, err := exporter.ScrapeContext(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if !assert.NoError(t, err) || !assert.NoError(t, noneFell(before, run)(scrape)) {
					return
				}
				before = counters(scrape, run)
				count.Add(1)
			}
		})
	}
	return count.Load, func() {
		cancel()
		group.Wait()
	}
}
