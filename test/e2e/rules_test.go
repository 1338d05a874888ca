package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// ruleFile writes a rule file and returns the flag that names it.
func ruleFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return "--config.file=" + path
}

// Over the limit the newest communicators stand together in one series, and nothing of what is counted is lost, be
// they alive, be they freed. What has been folded is counted.
func TestLimitFoldsNewestObjects(t *testing.T) {
	t.Parallel()
	const communicators, limit = 120, 20
	exporter := suite.Exporter(t, ruleFile(t, fmt.Sprintf("limits: {series_per_variable: %d}\n", limit)))
	run := suite.Run(t, harness.Job{
		MPI: harness.OpenMPI(t), Program: "many.c", Args: []string{fmt.Sprint(communicators), harness.HoldDir},
		Exec: []string{"--monitoring"}, Socket: exporter.Socket,
	})
	// barriers: in each rank the sum over all communicators, in at most so many series, and each old one by itself.
	barriers := func(n float64) check {
		return func(s *harness.Scrape) error {
			for rank := range run.Ranks {
				sum := 0.0
				series := s.Select(allToAllCalls, run.Labels(rank))
				for _, one := range series {
					if name := one.Labels["comm"]; name == "other" || len(name) > 4 && name[:4] == "grid" {
						sum += one.Value
					}
				}
				if sum != n || len(series) > limit {
					return fmt.Errorf("%v barriers in %d series of rank %d, not %v in at most %d: %v", sum,
						len(series), rank, n, limit, series)
				}
				if err := s.Expect(allToAllCalls, run.Labels(rank).With("comm", "grid 0003"), 1); err != nil {
					return err
				}
			}
			return nil
		}
	}
	folded := func(s *harness.Scrape) error {
		dropped, err := s.One("mpit_exporter_series_dropped_total", harness.Labels{"reason": "variable_over_limit"})
		if err == nil && dropped.Value < communicators-limit {
			err = fmt.Errorf("not counted: %v", dropped)
		}
		return err
	}
	run.AtHold(t, "half")
	exporter.Await(t, "the first half", all(up(run), barriers(communicators/2+1)))
	run.Release(t, "half")
	run.AtHold(t, "made")
	exporter.Await(t, "all communicators", all(up(run), barriers(communicators), folded))
	run.Release(t, "made")
	run.AtHold(t, "freed")
	exporter.Await(t, "what freed communicators have counted", all(up(run), barriers(communicators), folded))
	run.Finish(t, "freed")
	exporter.Await(t, "the ended job", all(ended(run, "finalize"), barriers(communicators), healthy))
}
