package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// maker gathers what goes into one report.
type maker struct {
	report    *Report
	place     func(r *api.RankStatus) string // nil: not known
	running   bool
	nodes     map[string]bool
	programs  map[string]int
	libraries map[string]int
	calls     map[string]*Call  // by function and object
	sizes     map[string]*sizes // the same
	messages  map[pair]*Messages
	levels    map[string]*levels // by metric and labels
}

// sizes are those of calls, and how many there were by the bound that they are at most.
type sizes struct {
	Sizes
	bounds map[float64]float64
}

// pair is who sends to whom.
type pair struct {
	from int
	to   string
}

// levels are the values of one series in the ranks.
type levels struct {
	Level
	all []float64
}

func newMaker(of *api.RankStatus, place func(r *api.RankStatus) string) *maker {
	return &maker{
		place:  place,
		report: &Report{Format: Format, Job: Job{ID: of.JobID, World: of.World, User: of.User, Name: of.JobName}},
		nodes:  map[string]bool{}, programs: map[string]int{}, libraries: map[string]int{},
		calls: map[string]*Call{}, levels: map[string]*levels{}, sizes: map[string]*sizes{},
		messages: map[pair]*Messages{},
	}
}

func (m *maker) add(of *api.RankValues, answer *api.ValueList) {
	r, s := m.report, &of.Rank
	if answer.Time.After(r.Time) {
		r.Time = answer.Time
	}
	r.LeftOut += of.Cut
	r.Job.Observed++
	r.Job.WorldSize = max(r.Job.WorldSize, s.WorldSize)
	m.nodes[s.Host] = true
	m.programs[s.Executable]++
	m.libraries[strings.TrimSpace(s.Library+" "+s.LibraryVersion)]++
	if s.Started != nil && (r.Job.Started == nil || s.Started.Before(*r.Job.Started)) {
		r.Job.Started = s.Started
	}
	if s.Ended == nil {
		m.running = true
	} else if r.Job.Ended == nil || s.Ended.After(*r.Job.Ended) {
		r.Job.Ended = s.Ended
	}
	rank := Rank{Rank: s.Rank, Dup: s.Dup, Node: s.Host, State: s.State, End: s.EndReason}
	if c := s.Calls; c != nil {
		rank.Observed, rank.Inside, rank.Kind = c.Observed, c.Inside, c.Kind
		if s.Ended == nil {
			rank.Running, rank.Long = c.Running, c.Long
			if c.Long != nil && m.place != nil {
				rank.Place = m.place(s)
			}
		}
	}
	r.Ranks = append(r.Ranks, rank)
	for i := range of.Variables {
		v := &of.Variables[i]
		for _, series := range v.Series {
			m.addSeries(s.Rank, v, series)
		}
	}
}

func (m *maker) addSeries(rank int, v *api.VariableValues, s api.SeriesValue) {
	switch {
	case v.Metric == "mpit_call_time_seconds":
		c := m.call(s.Labels)
		seconds, _ := number(s.Sum)
		calls, _ := number(s.Count)
		c.Calls += calls
		c.Seconds += seconds
		if seconds > c.MostSeconds {
			c.Most, c.MostSeconds = rank, seconds
		}
	case v.Metric == "mpit_call_bytes_total":
		if bytes, known := number(s.Value); known && bytes > 0 {
			c := m.call(s.Labels)
			if c.Bytes == nil {
				c.Bytes = map[string]float64{}
			}
			c.Bytes[s.Labels["direction"]] += bytes
		}
	case v.Metric == "mpit_call_size_bytes":
		m.addSizes(s)
	case v.Metric == "mpit_call_peer_messages_total", v.Metric == "mpit_call_peer_bytes_total":
		at := pair{rank, s.Labels["peer"]}
		if m.messages[at] == nil {
			m.messages[at] = &Messages{From: rank, To: at.to}
		}
		n, _ := number(s.Value)
		if v.Metric == "mpit_call_peer_bytes_total" {
			m.messages[at].Bytes += n
		} else {
			m.messages[at].Messages += n
		}
	case isLevel(v):
		value, known := number(s.Value)
		if !known {
			return
		}
		key := v.Metric + labelText(s.Labels)
		l := m.levels[key]
		if l == nil {
			l = &levels{Level: Level{Metric: v.Metric, Labels: s.Labels, Unit: v.Unit, Most: value, Rank: rank}}
			m.levels[key] = l
		}
		l.all = append(l.all, value)
		if value > l.Most {
			l.Most, l.Rank = value, rank
		}
	}
}

// isLevel says whether a variable tells how much there is of something, or was at most.
func isLevel(v *api.VariableValues) bool {
	return v.Kind == "gauge" && (v.Class == "LEVEL" || v.Class == "HIGHWATERMARK")
}

// objectLabels are the labels that name a call's object.
var objectLabels = [...]string{"comm", "win", "file"}

// call is the row of a function and an object.
func (m *maker) call(labels map[string]string) *Call {
	function, kind, object := callOf(labels)
	key := function + "\x00" + kind + "\x00" + object
	if m.calls[key] == nil {
		m.calls[key] = &Call{Function: function, Kind: kind, Object: object}
	}
	return m.calls[key]
}

func callOf(labels map[string]string) (function, kind, object string) {
	for _, label := range objectLabels {
		if name, is := labels[label]; is {
			kind, object = label, name
		}
	}
	return labels["function"], kind, object
}

func (m *maker) addSizes(s api.SeriesValue) {
	function, kind, object := callOf(s.Labels)
	key := function + "\x00" + kind + "\x00" + object
	of := m.sizes[key]
	if of == nil {
		of = &sizes{Sizes: Sizes{Function: function, Kind: kind, Object: object}, bounds: map[float64]float64{}}
		m.sizes[key] = of
	}
	for text, count := range s.Buckets {
		bound, _ := number(text)
		calls, _ := number(count)
		of.bounds[min(bound, LargestSize)] += calls
		of.Calls += calls
	}
}

// addSizesTo adds sizes and messages to the report, those that are most first.
func (m *maker) addSizesTo(r *Report) {
	for _, of := range m.sizes {
		for _, bound := range slices.Sorted(maps.Keys(of.bounds)) {
			of.Buckets = append(of.Buckets, Bucket{bound, of.bounds[bound]})
		}
		if of.Calls > 0 {
			r.Sizes = append(r.Sizes, of.Sizes)
		}
	}
	slices.SortFunc(r.Sizes, func(a, b Sizes) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Function, b.Function),
			strings.Compare(a.Object, b.Object))
	})
	for _, of := range m.messages {
		if of.Messages > 0 {
			r.Messages = append(r.Messages, *of)
		}
	}
	slices.SortFunc(r.Messages, func(a, b Messages) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.From, b.From),
			strings.Compare(a.To, b.To))
	})
}

// done completes the report.
func (m *maker) done() *Report {
	r := m.report
	r.Job.Nodes = len(m.nodes)
	r.Job.Program, r.Job.Library = mostOf(m.programs), mostOf(m.libraries)
	if m.running {
		r.Job.Ended = nil
	}
	observed := 0.0
	for i := range r.Ranks {
		observed += r.Ranks[i].Observed
	}
	for _, c := range m.calls {
		if observed > 0 {
			c.Share = c.Seconds / observed
		}
		r.Calls = append(r.Calls, *c)
	}
	slices.SortFunc(r.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Function, b.Function),
			strings.Compare(a.Object, b.Object))
	})
	slices.SortFunc(r.Ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(b.Busy(), a.Busy()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Dup, b.Dup))
	})
	for _, key := range slices.Sorted(maps.Keys(m.levels)) {
		l := m.levels[key]
		if l.Most == 0 {
			continue // nothing was ever there
		}
		slices.Sort(l.all)
		l.Median = l.all[(len(l.all)-1)/2]
		r.Levels = append(r.Levels, l.Level)
	}
	m.addSizesTo(r)
	r.Verdict = r.judge()
	return r
}

// mostOf is what most say; of as many the first by name.
func mostOf(counts map[string]int) (most string) {
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if most == "" || counts[what] > counts[most] {
			most = what
		}
	}
	return most
}

// labelText is labels in the order of their names.
func labelText(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(" " + name + " " + labels[name])
	}
	return b.String()
}
