package job

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// maker gathers what goes into one report: of ranks, or of reports on parts of them.
type maker struct {
	report    *Report
	place     func(r *api.RankStatus) string // nil: not known
	running   bool
	programs  map[string]int // how many ranks say so
	libraries map[string]int
	calls     map[Called]*Call
	sizes     map[Called]map[float64]float64 // calls by the size that they have at most
	messages  map[pair]*Messages
	levels    map[string]*Level // by metric and labels
}

// pair is who sends to whom.
type pair struct {
	from int
	to   string
}

func newMaker(j Job, place func(r *api.RankStatus) string) *maker {
	return &maker{
		place:    place,
		report:   &Report{Format: Format, Job: Job{ID: j.ID, World: j.World, User: j.User, Name: j.Name}},
		programs: map[string]int{}, libraries: map[string]int{},
		calls: map[Called]*Call{}, sizes: map[Called]map[float64]float64{}, messages: map[pair]*Messages{},
		levels: map[string]*Level{},
	}
}

// addRank adds a rank and what is known of its variables.
func (m *maker) addRank(of *api.RankValues) {
	s := &of.Rank
	j := Job{WorldSize: s.WorldSize, Program: s.Executable, Observed: 1,
		Library: strings.TrimSpace(s.Library + " " + s.LibraryVersion), Started: s.Started, Ended: s.Ended}
	m.addJob(&j, s.State != "ended" && s.State != StateGone)
	m.report.LeftOut += of.Cut
	rank := Rank{Rank: s.Rank, Dup: s.Dup, Node: s.Host, PID: s.PID, UID: s.UID, State: s.State,
		End: s.EndReason, Exit: s.ExitStatus, ThreadLevel: s.ThreadLevel}
	by := who{s.Rank, s.Dup}
	if s.Ended != nil {
		rank.EndedAt = *s.Ended
	}
	if c := s.Calls; c != nil {
		rank.Time, rank.Comms, rank.CPU, rank.Phases = c.State, c.Comms, c.CPU, c.Phases
		rank.young = rank.Time.Sum() < Waiting.Seconds()
		switch finalize := c.State[api.Finalize]; {
		case s.EndReason != endsWell:
			rank.Threads = c.Threads
		case finalize > 0 && c.State[api.Ended] == 0: // it is still there, as far as the exporter knows
			rank.Threads = []api.Thread{{Main: true, Call: &api.CallUnderWay{Function: finalizes, Seconds: finalize}}}
		}
		if c.Long != nil && s.EndReason != endsWell {
			rank.Running, rank.Long = c.Running, c.Long
			if m.place != nil {
				rank.Place = m.place(s)
			}
			// The histograms have it when it returns.
			underWay := m.callOf(Called{c.Long.Function, c.Long.Kind, c.Long.Object})
			underWay.Calls++
			underWay.add(by, c.Running)
		}
	}
	m.report.Ranks = append(m.report.Ranks, rank)
	for i := range of.Variables {
		v := &of.Variables[i]
		for _, series := range v.Series {
			m.addSeries(by, &m.report.Ranks[len(m.report.Ranks)-1], v, series)
		}
	}
}

// addJob adds what ranks say of their job.
func (m *maker) addJob(j *Job, running bool) {
	to := &m.report.Job
	to.Observed += j.Observed
	to.WorldSize = max(to.WorldSize, j.WorldSize)
	m.programs[j.Program] += j.Observed
	m.libraries[j.Library] += j.Observed
	m.running = m.running || running
	if j.Started != nil && (to.Started == nil || j.Started.Before(*to.Started)) {
		to.Started = j.Started
	}
	if j.Ended != nil && (to.Ended == nil || j.Ended.After(*to.Ended)) {
		to.Ended = j.Ended
	}
}

// addReport adds a report on a part of the job's ranks.
func (m *maker) addReport(r *Report) {
	m.addJob(&r.Job, r.Job.Ended == nil)
	m.report.LeftOut += r.LeftOut
	if r.Time.After(m.report.Time) {
		m.report.Time = r.Time
	}
	m.report.Step = max(m.report.Step, r.Step)
	for _, of := range r.Ranks { // JSON hasn't all of it
		of.step, of.young = r.Step, r.Whole && of.Time.Sum() < Waiting.Seconds()
		if !r.Whole && of.CPU != nil && of.CPU.Seconds != nil {
			of.cores = *of.CPU.Seconds / max(of.Time.Sum(), r.Seconds)
		}
		m.report.Ranks = append(m.report.Ranks, of)
	}
	for i := range r.Calls {
		from := &r.Calls[i]
		c := m.callOf(from.Called)
		c.Calls += from.Calls
		if len(from.ByRank) != len(r.Ranks) {
			c.Seconds += from.Seconds
		} else {
			for at, seconds := range from.ByRank {
				if seconds > 0 {
					c.add(r.Ranks[at].who(), seconds)
				}
			}
		}
		if from.MostSeconds > c.MostSeconds {
			c.Most, c.MostSeconds = from.Most, from.MostSeconds
		}
		for direction, bytes := range from.Bytes {
			c.addBytes(direction, bytes)
		}
	}
	for i := range r.Sizes {
		for _, b := range r.Sizes[i].Buckets {
			m.addSize(r.Sizes[i].Called, b.Bytes, b.Calls)
		}
	}
	for _, messages := range r.Messages {
		m.messages[pair{messages.From, messages.To}] = &messages
	}
	for _, l := range r.Levels {
		m.addLevel(l)
	}
}

func (m *maker) addSeries(by who, rank *Rank, v *api.VariableValues, s api.SeriesValue) {
	switch {
	case v.Metric == "mpit_call_time_seconds":
		c := m.callOf(calledBy(s.Labels))
		seconds, _ := number(s.Sum)
		calls, _ := number(s.Count)
		c.Calls += calls
		c.add(by, seconds)
		rank.Ahead = rank.Ahead || calls > 0 && isRequest(c.Function)
	case v.Metric == "mpit_call_bytes_total":
		if bytes, known := number(s.Value); known && bytes > 0 {
			m.callOf(calledBy(s.Labels)).addBytes(s.Labels["direction"], bytes)
			if rank.Bytes == nil {
				rank.Bytes = map[string]float64{}
			}
			rank.Bytes[s.Labels["direction"]] += bytes
		}
	case v.Metric == "mpit_call_size_bytes":
		for text, count := range s.Buckets {
			calls, _ := number(count)
			m.addSize(calledBy(s.Labels), bound(text), calls)
		}
	case v.Metric == "mpit_call_peer_messages_total", v.Metric == "mpit_call_peer_bytes_total":
		m.addMessages(pair{by.rank, s.Labels["peer"]}, v.Metric == "mpit_call_peer_bytes_total", s.Value)
	case isLevel(v):
		if value, known := number(s.Value); known {
			m.addLevel(Level{Metric: v.Metric, Labels: s.Labels, Unit: v.Unit, Most: value, Rank: by.rank})
		}
	}
}

// isLevel says whether a variable tells how much there is of something, or was at most. Open MPI's queues of messages
// have class SIZE.
func isLevel(v *api.VariableValues) bool {
	return v.Kind == "gauge" && (v.Class == "LEVEL" || v.Class == "HIGHWATERMARK" ||
		v.Class == "SIZE" && v.Unit == "{message}")
}

// ObjectLabels are the labels that name a call's object.
var ObjectLabels = [...]string{"comm", "win", "file"}

func calledBy(labels map[string]string) Called {
	c := Called{Function: labels["function"]}
	for _, kind := range ObjectLabels {
		if name, is := labels[kind]; is {
			c.Kind, c.Object = kind, name
		}
	}
	return c
}

func (m *maker) callOf(c Called) *Call {
	if m.calls[c] == nil {
		m.calls[c] = &Call{Called: c}
	}
	return m.calls[c]
}

func (m *maker) addSize(c Called, bound, calls float64) {
	if m.sizes[c] == nil {
		m.sizes[c] = map[float64]float64{}
	}
	m.sizes[c][bound] += calls
}

func (m *maker) addMessages(who pair, bytes bool, value string) {
	if m.messages[who] == nil {
		m.messages[who] = &Messages{From: who.from, To: who.to}
	}
	n, _ := number(value)
	if bytes {
		m.messages[who].Bytes += n
	} else {
		m.messages[who].Messages += n
	}
}

func (m *maker) addLevel(l Level) {
	key := l.Metric + LabelText(l.Labels)
	if known := m.levels[key]; known == nil || l.Most > known.Most {
		m.levels[key] = &l
	}
}

// done completes the report.
func (m *maker) done() *Report {
	r, nodes := m.report, map[string]bool{}
	for i := range r.Ranks {
		of := &r.Ranks[i]
		nodes[of.Node] = true
		if !m.running && of.End == endsWell {
			of.Threads = nil // all have been in MPI_Finalize, and it is over
		}
	}
	r.Job.Nodes = len(nodes)
	r.Job.Program, r.Job.Library = mostOf(m.programs), mostOf(m.libraries)
	if m.running {
		r.Job.Ended = nil
	}
	for _, c := range m.calls {
		r.Calls = append(r.Calls, *c)
	}
	r.sortCalls()
	m.listSizes()
	m.listMessages()
	for _, key := range slices.Sorted(maps.Keys(m.levels)) {
		if m.levels[key].Most != 0 { // something was there
			r.Levels = append(r.Levels, *m.levels[key])
		}
	}
	slices.SortFunc(r.Ranks, func(a, b Rank) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Dup, b.Dup)) })
	r.Seconds, r.Whole = r.Lasted(), true
	r.Verdict = r.verdict()
	r.sortRanks()
	return r
}

// sortCalls sorts calls by their time, and says which share of all time that is.
func (r *Report) sortCalls() {
	spent := r.Spent()
	observed := spent.Sum()
	for i := range r.Calls {
		r.Calls[i].Share = 0
		if observed > 0 {
			r.Calls[i].Share = r.Calls[i].Seconds / observed
		}
	}
	slices.SortFunc(r.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), a.compare(b.Called))
	})
}

func (m *maker) listSizes() {
	for called, bounds := range m.sizes {
		of := Sizes{Called: called}
		for _, b := range slices.Sorted(maps.Keys(bounds)) {
			of.Calls += bounds[b]
			of.Buckets = append(of.Buckets, Bucket{b, bounds[b]})
		}
		if of.Calls > 0 {
			m.report.Sizes = append(m.report.Sizes, of)
		}
	}
	slices.SortFunc(m.report.Sizes, func(a, b Sizes) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), a.compare(b.Called))
	})
}

func (m *maker) listMessages() {
	for _, of := range m.messages {
		if of.Messages > 0 {
			m.report.Messages = append(m.report.Messages, *of)
		}
	}
	slices.SortFunc(m.report.Messages, func(a, b Messages) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.From, b.From),
			strings.Compare(a.To, b.To))
	})
}

// sortRanks sorts ranks from late to early, by what the verdict goes by: the late one is the first.
func (r *Report) sortRanks() {
	late := (*Rank).Busy
	if l := r.Verdict.Late; l != nil && l.Useful {
		late = (*Rank).Useful
	}
	r.Ranks = slices.Clone(r.Ranks)
	slices.SortStableFunc(r.Ranks, func(a, b Rank) int { return cmp.Compare(late(&b), late(&a)) })
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

// LabelText is labels in the order of their names.
func LabelText(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(" " + name + " " + labels[name])
	}
	return b.String()
}

// makers are the reports that are being made.
type makers map[[3]string]*maker

// of is the maker of the report on a world.
func (all makers) of(j Job, place func(r *api.RankStatus) string) *maker {
	key := j.key()
	if all[key] == nil {
		all[key] = newMaker(j, place)
	}
	return all[key]
}

// done are the reports, in the order of their labels.
func (all makers) done() (reports []*Report) {
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		reports = append(reports, all[key].done())
	}
	return reports
}

// Of makes a report of each MPI_COMM_WORLD that there is in the answers of exporters, in the order of their labels.
// place says where in its program a rank's long call was made; nil: nobody knows.
func Of(answers []api.ValueList, place func(r *api.RankStatus) string) []*Report {
	all := makers{}
	for _, answer := range answers {
		var m *maker
		for _, of := range answer.Ranks {
			m = all.of(Job{ID: of.Rank.JobID, World: of.Rank.World, User: of.Rank.User, Name: of.Rank.JobName}, place)
			m.addRank(&of)
			if answer.Time.After(m.report.Time) {
				m.report.Time = answer.Time
			}
		}
		all.leaveOut(m, &answer)
	}
	return all.done()
}

// leaveOut notes in reports on a user's job which of its ranks were left out of an answer; last has those of which an
// older exporter doesn't say whose they are.
func (all makers) leaveOut(last *maker, answer *api.ValueList) {
	if last != nil && len(answer.LeftOut) == 0 {
		last.report.LeftOut += answer.More
	}
	for _, left := range answer.LeftOut {
		for _, m := range all {
			if m.report.Job.User == left.User && m.report.Job.ID == left.JobID {
				m.report.LeftOut += left.Ranks
				break
			}
		}
	}
}

// Merge makes one report of those on parts of the same MPI_COMM_WORLD, such as its nodes, for each of them. What
// threads are in is known of those made within Waiting of the newest: what they say together is of one moment.
func Merge(parts []*Report) []*Report {
	newest := map[[3]string]time.Time{}
	for _, r := range parts {
		if key := r.Job.key(); r.Time.After(newest[key]) {
			newest[key] = r.Time
		}
	}
	all := makers{}
	for _, r := range parts {
		if newest[r.Job.key()].Sub(r.Time) >= Waiting {
			old := *r
			old.Ranks = slices.Clone(r.Ranks)
			for i := range old.Ranks {
				old.Ranks[i].Threads = nil
			}
			r = &old
		}
		all.of(r.Job, nil).addReport(r)
	}
	return all.done()
}

// beyond is what no value is as large as: any number of smaller ones has a finite sum, and JSON has no infinity.
const beyond = 1e100

// number reads a value as it stands in an answer; what is none, or beyond measure, is false.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) >= beyond {
		return 0, false
	}
	return v, true
}

// bound reads a bucket's.
func bound(text string) float64 {
	v, known := number(text)
	if !known {
		return LargestSize
	}
	return v
}
