package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
)

const (
	askTimeout = time.Minute // for all answers
	room       = 2 << 30     // for each (client.Fetch): about 800,000 samples
	maxRanks   = 1 << 17     // each takes some KiB, however few samples it has
	remedy     = "; choose with --jobid, --user, --world or --rank, or look less far back with --since"
)

// selector is what chooses series by these labels and one matcher more.
func selector(which map[string]string, more string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(which)) {
		all = append(all, name+"="+strconv.Quote(which[name]))
	}
	return strings.Join(append(all, more), ", ")
}

// What of a job a report needs: what the call profile and the exporter say, and queues and watermarks.
const (
	lasting = `{__name__=~"mpit_(call_(time_seconds(_sum|_count)?|size_bytes(_bucket)?|bytes_total|` +
		`peer_(bytes|messages)_total)|rank_(seconds_total|up|end_info|start_time_seconds)|process_info)|` + levelNames +
		`", %s}`
	levelNames = `mpit_.+_(msgq_length|recvq_length|unexpected_in_queue|level|highwatermark(_bytes|_seconds)?)`
	// With exporters that could not be scraped for a moment.
	current = `{__name__=~"mpit_call_running_(seconds|info)|mpit_rank_up", %s} or ` +
		`(up == 0 and max_over_time(up[5m]) > 0)`
	// The verdict on each job: the one of this moment, or else the one that was said most.
	said = `topk by (cluster, jobid, world, user) (1, sum by (cluster, jobid, world, user, state, rank, node) (
		1e9 * ` + api.VerdictName + `{%[1]s} or count_over_time(` + api.VerdictName + `{%[1]s}[%[2]ds])))`
)

// sizes is the metric of calls by their size.
const sizes = "mpit_call_size_bytes"

var isLevelName = regexp.MustCompile(`^(` + levelNames + `)$`)

// AskPrometheus asks the Prometheus at an address what it has of jobs whose ranks have these labels, up to a moment and
// since so long before it: nodes may be many, and jobs may have ended.
func AskPrometheus(
	ctx context.Context, address string, which map[string]string, at time.Time, since time.Duration,
) ([]*job.Report, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("--prometheus %q: an address such as http://prometheus:9090 is needed", address)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout,
		fmt.Errorf("no whole answer within %s%s", askTimeout, remedy))
	defer cancel()
	v := newVector(at)
	ranks, jobs := selector(which, `rank!=""`), maps.Clone(which)
	delete(jobs, "rank") // which is the late one's in a verdict
	for _, query := range []struct {
		text string
		take func(s *model.Sample)
	}{
		{fmt.Sprintf("last_over_time("+lasting+"[%ds])", ranks, int(since.Seconds())), v.takeLasting},
		{fmt.Sprintf(current, ranks), v.takeCurrent},
		{fmt.Sprintf(said, selector(jobs, `state!="unknown"`), int(since.Seconds())), v.takeVerdict},
	} {
		u := base.JoinPath("api", "v1", "query")
		u.RawQuery = url.Values{"query": {query.text}, "time": {model.TimeFromUnixNano(at.UnixNano()).String()}}.Encode()
		err := client.Fetch(ctx, http.DefaultClient, u, "Prometheus", room, func(r io.Reader) error {
			return v.read(json.NewDecoder(r), query.take)
		})
		if errors.Is(err, client.ErrTooLarge) {
			err = fmt.Errorf("%w%s", err, remedy)
		}
		if err != nil {
			return nil, err
		}
	}
	return v.reports(), nil
}

// reports have the verdicts that are known: of several worlds it isn't whose one of an older exporter is,
// which has no world.
func (v *vector) reports() []*job.Report {
	reports := job.Of(v.answers(), nil)
	worlds := map[[2]string]int{}
	for _, r := range reports {
		worlds[[2]string{r.Job.ID, r.Job.User}]++
	}
	for _, r := range reports {
		said := v.said[[3]string{r.Job.ID, r.Job.World, r.Job.User}]
		if said == nil && worlds[[2]string{r.Job.ID, r.Job.User}] == 1 {
			said = v.said[[3]string{r.Job.ID, "", r.Job.User}]
		}
		r.Believe(said)
	}
	return reports
}

// read reads Prometheus' answer, with a bound on ranks.
func (v *vector) read(d *json.Decoder, take func(s *model.Sample)) error {
	var answer struct {
		Data struct {
			Result []model.Sample `json:"result"`
		} `json:"data"`
	}
	err := d.Decode(&answer)
	if err == nil && answer.Data.Result == nil {
		err = errors.New("there is no result")
	}
	for i := range answer.Data.Result {
		if take(&answer.Data.Result[i]); len(v.ranks) > maxRanks {
			return fmt.Errorf("%w: it has more than %d ranks", client.ErrTooLarge, maxRanks)
		}
	}
	return err
}

// rankID names a rank and the node that it is on.
type rankID struct{ jobID, world, user, rank, dup, instance string }

// vector makes of the samples in Prometheus' answers what exporters would have answered.
type vector struct {
	at    time.Time
	ranks map[rankID]*rank
	said  map[[3]string]*job.Verdict // by a job's id, world and user
	away  map[string]bool            // instances that could not be scraped for a moment
}

func newVector(at time.Time) *vector {
	return &vector{at, map[rankID]*rank{}, map[[3]string]*job.Verdict{}, map[string]bool{}}
}

// nobody is the uid of ranks of which Prometheus doesn't know it: no user has that, not even root.
const nobody = math.MaxUint32

// rank is a rank, with the places of its series in Variables.
type rank struct {
	api.RankValues
	variables map[string]int // by metric
	series    map[string]int // by metric and labels, in the variable
}

// worldOf is the label world, with the cluster: jobs of several may have the same names.
func worldOf(m model.Metric) string {
	if cluster := string(m["cluster"]); cluster != "" {
		return string(m["world"]) + " of " + cluster
	}
	return string(m["world"])
}

func (v *vector) rank(m model.Metric) *rank {
	id := rankID{string(m["jobid"]), worldOf(m), string(m["user"]), string(m["rank"]), string(m["dup"]),
		string(m["instance"])}
	if v.ranks[id] == nil {
		number, _ := strconv.Atoi(id.rank)
		dup, _ := strconv.Atoi(id.dup)
		v.ranks[id] = &rank{variables: map[string]int{}, series: map[string]int{}, RankValues: api.RankValues{
			Rank: api.RankStatus{JobID: id.jobID, World: id.world, User: id.user, Rank: number, Dup: dup, Host: id.instance,
				State: job.StateGone, UID: nobody}}}
	}
	return v.ranks[id]
}

func calls(r *rank) *api.Calls {
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
		if uid, err := strconv.ParseUint(string(s.Metric["uid"]), 10, 32); err == nil {
			r.Rank.UID = uint32(uid)
		}
	case name == "mpit_rank_start_time_seconds":
		started := time.UnixMilli(int64(1000 * value))
		r.Rank.Started = &started
	case name == "mpit_rank_end_info":
		r.Rank.EndReason, r.Rank.State = string(s.Metric["reason"]), "ended"
	case name == "mpit_rank_seconds_total":
		state := slices.Index(api.TimeStateNames[:], string(s.Metric["state"]))
		if c := calls(r); state >= 0 {
			c.State[state] = value
		}
	case strings.HasPrefix(name, "mpit_call_time_seconds"):
		addTime(r, s)
	case strings.HasPrefix(name, sizes):
		addSize(r, s)
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
	if s.Metric[model.MetricNameLabel] == "up" {
		v.away[string(s.Metric["instance"])] = true
		return
	}
	r := v.rank(s.Metric)
	switch string(s.Metric[model.MetricNameLabel]) {
	case "mpit_rank_up":
		if r.Rank.State == job.StateGone {
			r.Rank.State = map[bool]string{true: "up", false: "late"}[s.Value == 1]
		}
	case "mpit_call_running_seconds":
		calls(r).Running = float64(s.Value)
	case "mpit_call_running_info":
		long := &api.LongCall{Function: string(s.Metric["function"]), Module: string(s.Metric["module"])}
		for _, kind := range job.ObjectLabels {
			if name, is := s.Metric[model.LabelName(kind)]; is {
				long.Kind, long.Object = kind, string(name)
			}
		}
		long.Offset, _ = strconv.ParseUint(string(s.Metric["offset"]), 0, 64)
		calls(r).Long = long
	}
}

// takeVerdict takes what was said of a job.
func (v *vector) takeVerdict(s *model.Sample) {
	said := &job.Verdict{State: string(s.Metric["state"])}
	if rank, err := strconv.Atoi(string(s.Metric["rank"])); err == nil {
		said.Late = &job.LateRank{Rank: rank, Node: string(s.Metric["node"])}
	}
	of := [3]string{string(s.Metric["jobid"]), "", string(s.Metric["user"])}
	if s.Metric["world"] != "" {
		of[1] = worldOf(s.Metric)
	}
	v.said[of] = said
}

// addTime adds a histogram's count or sum, or a native histogram's both.
func addTime(r *rank, s *model.Sample) {
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

// addSize adds what counts calls up to a size: a bucket, or a native histogram with all of its.
func addSize(r *rank, s *model.Sample) {
	labels, upTo := labelsOf(s.Metric), map[string]string{}
	if le, is := labels["le"]; is {
		delete(labels, "le")
		upTo[le] = s.Value.String()
	}
	if s.Histogram != nil {
		sum := model.FloatString(0)
		for _, b := range s.Histogram.Buckets {
			sum += b.Count
			upTo[b.Upper.String()] = sum.String()
		}
	}
	add(r, api.VariableValues{Metric: sizes, Kind: "histogram"}, api.SeriesValue{Labels: labels, Buckets: upTo})
}

// apart makes of buckets that count calls up to a size those that count these alone, once all are known.
func apart(buckets map[string]string) {
	value := func(text string) float64 { v, _ := strconv.ParseFloat(text, 64); return v }
	below := 0.0
	for _, at := range slices.SortedFunc(maps.Keys(buckets), func(a, b string) int {
		return cmp.Compare(value(a), value(b))
	}) {
		upTo := value(buckets[at])
		if buckets[at] = model.SampleValue(upTo - below).String(); upTo <= below {
			delete(buckets, at)
		}
		below = max(below, upTo)
	}
}

// add adds a series to its variable.
func add(r *rank, v api.VariableValues, s api.SeriesValue) {
	i, known := r.variables[v.Metric]
	if !known {
		i = len(r.Variables)
		r.variables[v.Metric] = i
		r.Variables = append(r.Variables, v)
	}
	all := &r.Variables[i].Series
	key := v.Metric + keyOf(s.Labels)
	if j, known := r.series[key]; known { // a histogram's other half, or what another job scrapes, too
		of := &(*all)[j]
		of.Value, of.Count, of.Sum = cmp.Or(s.Value, of.Value), cmp.Or(s.Count, of.Count), cmp.Or(s.Sum, of.Sum)
		maps.Copy(of.Buckets, s.Buckets)
		return
	}
	r.series[key] = len(*all)
	*all = append(*all, s)
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

// keyOf is the same for the same labels only.
func keyOf(labels map[string]string) string { return fmt.Sprintf("%q", labels) }

// answers is one answer, as if one exporter had all ranks.
func (v *vector) answers() []api.ValueList {
	list := api.ValueList{Time: v.at}
	for _, id := range slices.SortedFunc(maps.Keys(v.ranks), func(a, b rankID) int {
		return cmp.Or(strings.Compare(a.jobID, b.jobID), strings.Compare(a.world, b.world),
			strings.Compare(a.user, b.user))
	}) {
		r := v.ranks[id]
		s := &r.Rank
		if s.State == job.StateGone && v.away[id.instance] {
			s.State = "late"
		}
		if at, known := r.variables[sizes]; known {
			for _, of := range r.Variables[at].Series {
				apart(of.Buckets)
			}
		}
		// When a rank has ended Prometheus doesn't know: it was observed from its beginning to its end.
		if (s.State == "ended" || s.State == job.StateGone) && s.Started != nil && s.Calls != nil {
			ended := s.Started.Add(time.Duration((s.Calls.State[api.Outside] + s.Calls.State.Inside()) *
				float64(time.Second)))
			s.Ended = &ended
		}
		list.Ranks = append(list.Ranks, r.RankValues)
	}
	return []api.ValueList{list}
}
