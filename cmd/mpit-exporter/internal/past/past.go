// Package past asks a Prometheus what it has of jobs, and says it as exporters would have answered: nodes may be many,
// and jobs may have ended.
package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// askTimeout is how long Prometheus may take.
const askTimeout = time.Minute

// Which says which ranks are meant; "" stands for any.
type Which struct{ JobID, World, User, Rank string }

func (w Which) selector() string {
	var all []string
	for _, l := range []struct{ name, value string }{{"jobid", w.JobID}, {"world", w.World}, {"user", w.User},
		{"rank", w.Rank}} {
		if l.value != "" {
			all = append(all, l.name+"="+strconv.Quote(l.value))
		}
	}
	return strings.Join(append(all, `rank!=""`), ", ")
}

// What of a job a report needs: what the call profile and the exporter say, and queues and watermarks.
const (
	lasting = `{__name__=~"mpit_(call_(time_seconds(_sum|_count)?|size_bytes(_bucket)?|bytes_total|peer_(bytes|messages)_total|(inside|observed|kind)_seconds_total)|` +
		`rank_(up|end_info|start_time_seconds)|process_info)|` + levelNames + `", %s}`
	levelNames = `mpit_.+_(msgq_length|recvq_length|unexpected_in_queue|level|highwatermark(_bytes|_seconds)?)`
	current    = `{__name__=~"mpit_call_running_(seconds|info)|mpit_rank_up", %s}`
)

var isLevelName = regexp.MustCompile(`^(` + levelNames + `)$`)

// Ask asks the Prometheus at url what it has of jobs, up to a moment and since so long before it. It returns what
// report.Of takes.
func Ask(ctx context.Context, url string, which Which, at time.Time, since time.Duration) (
	[]api.ValueList, error) {
	client, err := promapi.NewClient(promapi.Config{Address: url})
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v := &vector{at: at, ranks: map[rankID]*api.RankValues{}, buckets: map[histogram]*buckets{}}
	for _, query := range []struct {
		text string
		take func(s *model.Sample)
	}{
		{fmt.Sprintf("last_over_time("+lasting+"[%ds])", which.selector(), int(since.Seconds())), v.takeLasting},
		{fmt.Sprintf(current, which.selector()), v.takeCurrent},
	} {
		value, _, _, err := v1.NewAPI(client).Query(ctx, query.text, at)
		if err != nil {
			return nil, fmt.Errorf("asking Prometheus at %s: %w", url, err)
		}
		samples, is := value.(model.Vector)
		if !is {
			return nil, errors.New("asking Prometheus: the answer is no vector")
		}
		for _, s := range samples {
			query.take(s)
		}
	}
	return v.answers(), nil
}

// rankID names a rank and the node that it is on.
type rankID struct{ jobID, world, user, rank, dup, instance string }

// vector makes of the samples in Prometheus' answers what exporters would have answered.
type vector struct {
	at      time.Time
	ranks   map[rankID]*api.RankValues
	buckets map[histogram]*buckets
}

func (v *vector) rank(m model.Metric) *api.RankValues {
	id := rankID{string(m["jobid"]), string(m["world"]), string(m["user"]), string(m["rank"]), string(m["dup"]),
		string(m["instance"])}
	if cluster := string(m["cluster"]); cluster != "" {
		id.world += " of " + cluster
	}
	if v.ranks[id] == nil {
		number, _ := strconv.Atoi(id.rank)
		dup, _ := strconv.Atoi(id.dup)
		v.ranks[id] = &api.RankValues{Rank: api.RankStatus{JobID: id.jobID, World: id.world, User: id.user, Rank: number,
			Dup: dup, Host: id.instance, State: report.StateGone}}
	}
	return v.ranks[id]
}

func calls(r *api.RankValues) *api.Calls {
	if r.Rank.Calls == nil {
		r.Rank.Calls = &api.Calls{}
	}
	return r.Rank.Calls
}

// takeLasting takes a series' last value, whenever that was.
func (v *vector) takeLasting(s *model.Sample) {
	r := v.rank(s.Metric)
	name, value := string(s.Metric[model.MetricNameLabel]), float64(s.Value)
	switch {
	case name == "mpit_process_info":
		r.Rank.Executable, r.Rank.JobName = string(s.Metric["executable"]), string(s.Metric["jobname"])
		r.Rank.Library, r.Rank.LibraryVersion = string(s.Metric["library"]), string(s.Metric["library_version"])
		r.Rank.Host = cmp.Or(string(s.Metric["host"]), r.Rank.Host)
		r.Rank.WorldSize, _ = strconv.Atoi(string(s.Metric["world_size"]))
	case name == "mpit_rank_start_time_seconds":
		started := time.UnixMilli(int64(1000 * value))
		r.Rank.Started = &started
	case name == "mpit_rank_end_info":
		r.Rank.EndReason, r.Rank.State = string(s.Metric["reason"]), "ended"
	case name == "mpit_call_inside_seconds_total":
		calls(r).Inside = value
	case name == "mpit_call_observed_seconds_total":
		calls(r).Observed = value
	case name == "mpit_call_kind_seconds_total":
		k := &calls(r).Kind
		if seconds := (map[string]*float64{"send": &k.Send, "wait": &k.Wait, "collective": &k.Collective,
			"file": &k.File})[string(s.Metric["kind"])]; seconds != nil {
			*seconds = value
		}
	case strings.HasPrefix(name, "mpit_call_time_seconds"):
		addTime(r, s)
	case strings.HasPrefix(name, "mpit_call_size_bytes"):
		v.addSize(r, s)
	case name == "mpit_call_bytes_total", strings.HasPrefix(name, "mpit_call_peer_"):
		add(r, api.VariableValues{Metric: name, Kind: "counter"}, api.SeriesValue{Labels: labelsOf(s.Metric),
			Value: s.Value.String()})
	case isLevelName.MatchString(name):
		add(r, api.VariableValues{Metric: name, Kind: "gauge", Class: "LEVEL"}, api.SeriesValue{
			Labels: labelsOf(s.Metric), Value: s.Value.String()})
	}
}

// takeCurrent takes what is so at this moment.
func (v *vector) takeCurrent(s *model.Sample) {
	r := v.rank(s.Metric)
	switch string(s.Metric[model.MetricNameLabel]) {
	case "mpit_rank_up":
		if r.Rank.State == report.StateGone {
			r.Rank.State = map[bool]string{true: "up", false: "late"}[s.Value == 1]
		}
	case "mpit_call_running_seconds":
		calls(r).Running = float64(s.Value)
	case "mpit_call_running_info":
		long := &api.LongCall{Function: string(s.Metric["function"]), Module: string(s.Metric["module"])}
		for _, kind := range report.ObjectLabels {
			if name, is := s.Metric[model.LabelName(kind)]; is {
				long.Kind, long.Object = kind, string(name)
			}
		}
		long.Offset, _ = strconv.ParseUint(string(s.Metric["offset"]), 0, 64)
		calls(r).Long = long
	}
}

// addTime adds a histogram's count or sum, or a native histogram's both.
func addTime(r *api.RankValues, s *model.Sample) {
	series := api.SeriesValue{Labels: labelsOf(s.Metric)}
	switch {
	case s.Histogram != nil:
		series.Count, series.Sum = s.Histogram.Count.String(), s.Histogram.Sum.String()
	case strings.HasSuffix(string(s.Metric[model.MetricNameLabel]), "_sum"):
		series.Sum = s.Value.String()
	default:
		series.Count = s.Value.String()
	}
	add(r, api.VariableValues{Metric: "mpit_call_time_seconds", Kind: "histogram"}, series)
}

// addSize adds a native histogram's buckets, or keeps a cumulative one until all of them are known.
func (v *vector) addSize(r *api.RankValues, s *model.Sample) {
	labels := labelsOf(s.Metric)
	if s.Histogram == nil {
		le, _ := strconv.ParseFloat(labels["le"], 64)
		delete(labels, "le")
		key := histogram{r, report.LabelText(labels)}
		if v.buckets[key] == nil {
			v.buckets[key] = &buckets{labels, map[float64]float64{}}
		}
		v.buckets[key].upTo[le] = float64(s.Value)
		return
	}
	all := map[string]string{}
	for _, b := range s.Histogram.Buckets {
		all[b.Upper.String()] = b.Count.String()
	}
	addSizes(r, labels, all)
}

func addSizes(r *api.RankValues, labels, buckets map[string]string) {
	add(r, api.VariableValues{Metric: "mpit_call_size_bytes", Kind: "histogram"}, api.SeriesValue{Labels: labels,
		Buckets: buckets})
}

// histogram names one of a rank's; buckets are its: how many observations are no larger than each bound.
type histogram struct {
	of     *api.RankValues
	labels string
}
type buckets struct {
	labels map[string]string
	upTo   map[float64]float64
}

// addBuckets adds the histograms whose buckets are all known now.
func (v *vector) addBuckets() {
	for h, b := range v.buckets {
		all, below := map[string]string{}, 0.0
		for _, at := range slices.Sorted(maps.Keys(b.upTo)) {
			if n := b.upTo[at] - below; n > 0 {
				all[model.SampleValue(at).String()] = model.SampleValue(n).String()
			}
			below = max(below, b.upTo[at])
		}
		addSizes(h.of, b.labels, all)
	}
}

// add adds a series to its variable.
func add(r *api.RankValues, v api.VariableValues, s api.SeriesValue) {
	i := slices.IndexFunc(r.Variables, func(other api.VariableValues) bool { return other.Metric == v.Metric })
	if i < 0 {
		i = len(r.Variables)
		r.Variables = append(r.Variables, v)
	}
	for j := range r.Variables[i].Series { // a histogram's other half, or what another job scrapes, too
		if of := &r.Variables[i].Series[j]; maps.Equal(of.Labels, s.Labels) {
			of.Value, of.Count, of.Sum = cmp.Or(s.Value, of.Value), cmp.Or(s.Count, of.Count), cmp.Or(s.Sum, of.Sum)
			of.Buckets = s.Buckets
			return
		}
	}
	r.Variables[i].Series = append(r.Variables[i].Series, s)
}

// notOwn are the labels of a series that aren't its own: the rank's, and Prometheus'.
var notOwn = []string{model.MetricNameLabel, "jobid", "world", "user", "rank", "dup", "job", "instance", "cluster"}

func labelsOf(m model.Metric) map[string]string {
	labels := map[string]string{}
	for name, value := range m {
		if !slices.Contains(notOwn, string(name)) {
			labels[string(name)] = string(value)
		}
	}
	return labels
}

// answers is one answer, as if one exporter had all ranks.
func (v *vector) answers() []api.ValueList {
	v.addBuckets()
	list := api.ValueList{Time: v.at}
	for _, id := range slices.SortedFunc(maps.Keys(v.ranks), func(a, b rankID) int {
		return cmp.Or(strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world),
			strings.Compare(a.user, b.user))
	}) {
		r := v.ranks[id]
		s := &r.Rank
		// When a rank has ended Prometheus doesn't know: it was observed from its beginning to its end.
		if (s.State == "ended" || s.State == report.StateGone) && s.Started != nil && s.Calls != nil {
			ended := s.Started.Add(time.Duration(s.Calls.Observed * float64(time.Second)))
			s.Ended = &ended
		}
		list.Ranks = append(list.Ranks, *r)
	}
	return []api.ValueList{list}
}
