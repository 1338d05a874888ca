package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// check looks at one scrape; several are joined with all.
type check func(*harness.Scrape) error

func all(checks ...check) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for _, c := range checks {
			failed = append(failed, c(s))
		}
		return errors.Join(failed...)
	}
}

// expect: the one series with these labels has this value.
func expect(name string, labels harness.Labels, want float64) check {
	return func(s *harness.Scrape) error { return s.Expect(name, labels, want) }
}

// absent: no series has these labels.
func absent(name string, labels harness.Labels) check {
	return func(s *harness.Scrape) error {
		if found := s.Select(name, labels); len(found) > 0 {
			return fmt.Errorf("unexpected series: %v", found)
		}
		return nil
	}
}

// up: all ranks of the job, and no others of its name, answered.
func up(run *harness.Run) check {
	return func(s *harness.Scrape) error {
		found := s.Select("mpit_rank_up", harness.Labels{"jobid": run.ID})
		if len(found) != run.Ranks {
			return fmt.Errorf("%d ranks of %s on the page, not %d", len(found), run.ID, run.Ranks)
		}
		for rank := range run.Ranks {
			if err := s.Expect("mpit_rank_up", run.Labels(rank), 1); err != nil {
				return err
			}
		}
		return nil
	}
}

// ended: these ranks of the job, all if none is given, have ended in this way.
func ended(run *harness.Run, reason string, ranks ...int) check {
	if ranks == nil {
		for rank := range run.Ranks {
			ranks = append(ranks, rank)
		}
	}
	return func(s *harness.Scrape) error {
		for _, rank := range ranks {
			end, err := s.One("mpit_rank_end_info", run.Labels(rank))
			if err != nil {
				return err
			}
			if got := end.Labels["reason"]; got != reason {
				return fmt.Errorf("rank %d of %s ended by %q, not %q", rank, run.ID, got, reason)
			}
			if err := s.Expect("mpit_rank_up", run.Labels(rank), 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// objects: so many live objects of a kind and name in each rank; none at all if want is 0.
func objects(run *harness.Run, kind, name string, want float64) check {
	return func(s *harness.Scrape) error {
		for rank := range run.Ranks {
			labels := run.Labels(rank).With("kind", kind).With("name", name)
			if want == 0 {
				if err := absent("mpit_objects", labels)(s); err != nil {
					return err
				}
			} else if err := s.Expect("mpit_objects", labels, want); err != nil {
				return err
			}
		}
		return nil
	}
}

// healthy: nothing was lost or broken on the way, whatever the jobs did. On a machine that is too busy a rank may not
// answer in time when it connects; it tries again, and what is awaited of it shows whether it got through.
func healthy(s *harness.Scrape) error {
	var failed []error
	for _, name := range []string{
		"mpit_exporter_protocol_errors_total",
		"mpit_exporter_connections_refused_total",
		"mpit_exporter_rank_panics_total",
		"mpit_exporter_label_clashes_total",
	} {
		for _, series := range s.Select(name, nil) {
			if series.Value != 0 && series.Labels["reason"] != "handshake_timeout" {
				failed = append(failed, fmt.Errorf("not healthy: %v", series))
			}
		}
	}
	return errors.Join(failed...)
}

// counters returns the values of all series of a job that must never fall.
func counters(s *harness.Scrape, run *harness.Run) map[string]float64 {
	values := map[string]float64{}
	for _, name := range s.Names("mpit_") {
		for _, series := range s.Select(name, harness.Labels{"jobid": run.ID}) {
			if series.Metric.Counter != nil || series.Metric.Histogram != nil {
				values[name+fmt.Sprint(map[string]string(series.Labels))] = series.Value
			}
		}
	}
	return values
}

// noneFell: every counter of before is still there and is not smaller. One that has never counted anything may go
// with its object.
func noneFell(before map[string]float64, run *harness.Run) check {
	return func(s *harness.Scrape) error {
		after := counters(s, run)
		var failed []error
		for series, value := range before {
			now, ok := after[series]
			if (!ok && value > 0) || now < value {
				failed = append(failed, fmt.Errorf("%s was %v, is %v (there: %v)", series, value, now, ok))
			}
		}
		slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return errors.Join(failed...)
	}
}

// busyOr is a pattern of a verdict, or of what is said instead where other tests leave the job's ranks no core.
func busyOr(verdict string) string { return `(` + verdict + `|NO CORE|no core|got a core for)` }
