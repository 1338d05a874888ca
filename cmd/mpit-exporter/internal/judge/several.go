package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

const (
	// Instance stands in an exporter's address for its label instance.
	Instance = "{instance}"
	// Longest is the longest interval between looks: exporters soon forget what was before.
	Longest = 15 * time.Second

	atOnce   = 32               // questions to exporters
	deadline = 10 * time.Second // of each, and of the one to Prometheus
	room     = 32 << 20         // for each answer (client.Fetch)
)

// conspicuous finds the nodes of jobs that run on several and that something may be said of: a rank has been in a call
// for long, doesn't answer or has ended, or little of their time is useful. Of the many on one node, whose exporter
// judges, the answer would be large. %[1]s is a selector.
var conspicuous = fmt.Sprintf(`count by (instance, jobid, world, user) (mpit_rank_up{%%[1]s})
and on (jobid, world, user) (mpit_call_running_seconds{%%[1]s} > %v or mpit_rank_up{%%[1]s} == 0
  or avg by (jobid, world, user) (irate(mpit_rank_seconds_total{state="outside", %%[1]s}[2m])) < %v)
and on (jobid, world, user)
  count by (jobid, world, user) (count by (instance, jobid, world, user) (mpit_rank_up{%%[1]s})) > 1`,
	job.Waiting.Seconds(), job.Efficient)

// whose names a world of a job, which may have several.
type whose struct{ jobID, world, user string }

// Several judges the conspicuous jobs on several nodes. It is a prometheus.Gatherer of verdicts, safe for concurrent
// use; Look is for one goroutine.
type Several struct {
	prometheus *url.URL
	exporter   string // address with Instance in it
	query      string

	jobs, ended prometheus.Gauge
	unanswered  *prometheus.CounterVec

	mu   sync.Mutex
	said []*dto.MetricFamily
}

// NewSeveral returns a Several that asks the Prometheus at an address, and exporters at another, in which Instance
// stands for what Prometheus calls them; match are label matchers of the ranks that are meant, empty for all.
func NewSeveral(server, exporter, match string) (*Several, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return nil, cli.Usagef("judge: --prometheus %q: an address such as http://prometheus:9090 is needed", server)
	}
	if u, err := url.Parse(strings.ReplaceAll(exporter, Instance, "node7")); err != nil || u.Host == "" {
		return nil, cli.Usagef("judge: --exporter %q: an address such as http://%s is needed", exporter, Instance)
	}
	s := &Several{
		prometheus: base.JoinPath("api", "v1", "query"), exporter: exporter, query: fmt.Sprintf(conspicuous, match),
		jobs: prometheus.NewGauge(prometheus.GaugeOpts{Name: "mpit_judge_jobs",
			Help: "Jobs that the last look judged: conspicuous ones on several nodes."}),
		ended: prometheus.NewGauge(prometheus.GaugeOpts{Name: "mpit_judge_last_look_timestamp_seconds",
			Help: "When the last look ended that Prometheus answered."}),
		unanswered: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mpit_judge_unanswered_total",
			Help: "Questions without a good answer: to Prometheus, or to an exporter; jobs that are too many. What " +
				"they are about isn't judged."}, []string{"reason"}),
	}
	for _, reason := range []string{byPrometheus, byExporter, byMany} {
		s.unanswered.WithLabelValues(reason)
	}
	return s, nil
}

// Reasons for which there is no answer.
const (
	byPrometheus = "prometheus"
	byExporter   = "exporter"
	byMany       = "jobs" // there are more than maxWorlds: of the rest no exporter is asked
)

// Collectors are metrics of how it goes.
func (s *Several) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.jobs, s.ended, s.unanswered}
}

// Gather implements prometheus.Gatherer: what the last look found.
func (s *Several) Gather() ([]*dto.MetricFamily, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said, nil
}

// Look judges anew. If it fails, or ctx ends before exporters have answered, what was said before isn't said any more.
func (s *Several) Look(ctx context.Context) error {
	var reports []*job.Report
	nodes, err := s.nodes(ctx)
	if err != nil {
		s.unanswered.WithLabelValues(byPrometheus).Inc()
	} else {
		reports = s.reports(ctx, nodes)
		s.ended.SetToCurrentTime()
	}
	said := families(reports)
	judged := 0
	if len(said) > 0 {
		judged = len(said[0].GetMetric())
	}
	s.jobs.Set(float64(judged))
	s.mu.Lock()
	s.said = said
	s.mu.Unlock()
	return err
}

// nodes are the exporters of each job that is to be judged.
func (s *Several) nodes(ctx context.Context) (map[whose][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	u := *s.prometheus
	u.RawQuery = url.Values{"query": {s.query}}.Encode()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := client.Fetch(ctx, http.DefaultClient, &u, "Prometheus", room, client.JSON(&answer)); err != nil {
		return nil, err
	}
	nodes := map[whose][]string{}
	for _, r := range answer.Data.Result {
		of := whose{r.Metric["jobid"], r.Metric["world"], r.Metric["user"]}
		nodes[of] = append(nodes[of], r.Metric["instance"])
	}
	return nodes, nil
}

// inquiry is about a job: the parts that its exporters have told, and how many have yet to.
type inquiry struct {
	parts   []*job.Report
	left    int
	missing bool // one has not answered
}

// reports asks the exporters, a few at once and one job after another, so that of few jobs all parts are held. Users
// take turns, in an order that changes. Of a job that an exporter doesn't answer for there is none: what isn't seen
// isn't judged.
func (s *Several) reports(ctx context.Context, nodes map[whose][]string) (reports []*job.Report) {
	var mu sync.Mutex // guards inquiries and reports
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	jobs := inTurns(slices.Collect(maps.Keys(nodes)), func(of whose) string { return of.user })
	s.unanswered.WithLabelValues(byMany).Add(float64(max(len(jobs)-maxWorlds, 0)))
	for _, of := range jobs[:min(len(jobs), maxWorlds)] {
		about := &inquiry{left: len(nodes[of])}
		for _, node := range nodes[of] {
			asking.Go(func() error {
				parts, err := s.ask(ctx, of, node)
				mu.Lock()
				defer mu.Unlock()
				about.parts, about.left = append(about.parts, parts...), about.left-1
				about.missing = about.missing || err != nil
				if about.left == 0 && !about.missing {
					reports = append(reports, merge(about.parts)...)
				}
				return nil // it is counted
			})
		}
	}
	_ = asking.Wait()
	return reports
}

// merge makes reports of parts. Where these are not of about the same time, some of whole jobs and others of the last
// seconds, what ranks are in is told, but not where their time goes.
func merge(parts []*job.Report) []*job.Report {
	reports := whole(job.Merge(parts))
	if !slices.ContainsFunc(parts, func(r *job.Report) bool {
		return r.Whole != parts[0].Whole || !r.Whole && r.Seconds > 2*parts[0].Seconds
	}) {
		return reports
	}
	return slices.DeleteFunc(reports, func(r *job.Report) bool {
		return !slices.Contains([]string{job.Crashed, job.WrongProgram, job.Deadlock, job.Waits}, r.Verdict.State)
	})
}

// ask asks an exporter what its ranks of a job do.
func (s *Several) ask(ctx context.Context, of whose, instance string) ([]*job.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	u, err := url.Parse(strings.ReplaceAll(s.exporter, Instance, instance))
	if err != nil {
		s.unanswered.WithLabelValues(byExporter).Inc()
		return nil, fmt.Errorf("address of %s: %w", instance, err)
	}
	u = u.JoinPath("api", "v1", "report")
	u.RawQuery = url.Values{"jobid": {of.jobID}, "world": {of.world}, "user": {of.user},
		"window": {window.String()}}.Encode()
	var list page.ReportList
	err = client.Fetch(ctx, http.DefaultClient, u, "an "+cli.ProgramName, room, client.JSON(&list))
	var status *client.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil, nil // its ranks have ended
	}
	if err != nil {
		s.unanswered.WithLabelValues(byExporter).Inc()
		return nil, err
	}
	parts := slices.DeleteFunc(list.Reports, func(r *job.Report) bool {
		// An empty label stands for any.
		return r == nil || whose{r.Job.ID, r.Job.World, r.Job.User} != of
	})
	now := time.Now() // all parts are of this look, whatever their nodes' clocks say
	for _, r := range parts {
		r.Time, r.Levels, r.Sizes, r.Messages = now, nil, nil, nil
	}
	return parts, nil
}
