// Package judge serves what is said of jobs to Prometheus: mpit_job_verdict_info, one series for each
// MPI_COMM_WORLD of a job.
//
// Begin with family.go, the family. node.go makes it of the jobs whose ranks are all on one node, several.go of those
// on several nodes that Prometheus finds conspicuous.
package judge

import (
	"cmp"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

// maxWorlds bounds the series, one for each world, and the worlds that one look asks about.
const maxWorlds = 256

// families are the verdicts of worlds that have not ended, if any. Where there are too many, users take turns, each
// with the one that needs attention most, so that one user can't take all places.
func families(reports []*job.Report) []*dto.MetricFamily {
	jobs := slices.DeleteFunc(job.ByNeed(reports), func(r *job.Report) bool { return r.Job.Ended != nil })
	if len(jobs) == 0 {
		return nil
	}
	jobs = inTurns(jobs, func(r *job.Report) string { return r.Job.User })
	f := &dto.MetricFamily{Name: new(api.VerdictName), Help: new(api.VerdictHelp), Type: dto.MetricType_GAUGE.Enum()}
	for _, r := range jobs[:min(len(jobs), maxWorlds)] {
		f.Metric = append(f.Metric, series(r))
	}
	return []*dto.MetricFamily{f}
}

// inTurns puts the first of each user's before the second of any, and so on.
func inTurns[T any](list []T, user func(T) string) []T {
	had, turns := map[string]int{}, [][]T{}
	for _, of := range list {
		n := had[user(of)]
		if had[user(of)]++; n == len(turns) {
			turns = append(turns, nil)
		}
		turns[n] = append(turns[n], of)
	}
	return slices.Concat(turns...)
}

// series is a job's: rank and node are of the one that the others wait for, empty where none is named.
func series(r *job.Report) *dto.Metric {
	rank, node := "", ""
	if late := r.Verdict.Late; late != nil && r.Verdict.State != job.Healthy {
		rank, node = strconv.Itoa(late.Rank), late.Node
	}
	m := &dto.Metric{Gauge: &dto.Gauge{Value: new(1.0)}}
	for i, value := range []string{r.Job.ID, r.Job.World, r.Job.User, r.Verdict.State, rank, node} {
		m.Label = append(m.Label, &dto.LabelPair{Name: &api.VerdictLabels[i], Value: &value})
	}
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return m
}
