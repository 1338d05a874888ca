package api

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// ValueList is the answer to GET /api/v1/values: what stands on the page of metrics for the performance variables of
// some ranks.
type ValueList struct {
	Time    time.Time    `json:"time"`               // when the page was brought up to date
	Ranks   []RankValues `json:"ranks"`              // sorted by jobid, world, user, rank
	More    int          `json:"more,omitempty"`     // ranks left out to bound the answer: ask for them by name
	LeftOut []LeftOut    `json:"left_out,omitempty"` // whose they are
}

// LeftOut is ranks of a user's that were left out of an answer.
type LeftOut struct {
	UID   uint32 `json:"-"`
	User  string `json:"user"`
	JobID string `json:"jobid,omitempty"` // empty: of more jobs than are named
	Ranks int    `json:"ranks"`
}

// maxNamed is how many of a user's jobs are named of which ranks were left out.
const maxNamed = 8

// RankValues is what stands on the page for one rank's variables.
type RankValues struct {
	Rank      RankStatus       `json:"rank"`
	Variables []VariableValues `json:"variables"`     // sorted by metric
	Cut       int              `json:"cut,omitempty"` // series left out to bound the answer
}

// VariableValues is the series of one variable in one family.
type VariableValues struct {
	Name   string `json:"name"`            // as in a catalogue; empty, as Class: not known any more
	Class  string `json:"class,omitempty"` // the same
	Metric string `json:"metric"`
	// see mpit.Variable: Count is of calls, Sum their time or bytes
	Distribution bool          `json:"distribution,omitempty"`
	Kind         string        `json:"kind"`           // counter, gauge, histogram, untyped
	Unit         string        `json:"unit,omitempty"` // of the values, in UCUM
	Series       []SeriesValue `json:"series"`
}

// SeriesValue is one series. Numbers are texts, as on the page of metrics, for JSON has neither NaN nor infinities.
type SeriesValue struct {
	Labels map[string]string `json:"labels,omitempty"` // besides jobid, world, user, rank and dup
	Value  string            `json:"value,omitempty"`  // empty: it is a histogram
	Count  string            `json:"count,omitempty"`  // of a histogram
	Sum    string            `json:"sum,omitempty"`    // of a histogram, in Unit
	// Buckets are a histogram's that have observations: how many, by the bound that they are at most.
	Buckets map[string]string `json:"buckets,omitempty"`
}

// Values builds a ValueList of what is on the page, as far as there is room.
type Values struct {
	list  ValueList
	of    Bounds
	rooms map[uint32]*room // by user
}

// Bounds are those of a ValueList.
type Bounds struct {
	Series, Bytes int                             // about, for all users; a rank counts as a series
	Of            func(of *exposition.Shown) bool // chooses families; nil: all
	Bare          bool                            // histograms come without buckets
}

// room is the room that is left in an answer for a user's ranks.
type room struct {
	series, bytes int
	begun         bool // there is a rank of this user in the list
}

// rankBytes is about what a rank takes in an answer, without its series.
const rankBytes = 512

// NewValues begins a list. at is when the page was brought up to date, wanted how many series there are, and ranks, by
// user: nobody gets more than an equal part before all others have what they want.
func NewValues(at time.Time, of Bounds, wanted map[uint32]int) *Values {
	v := &Values{list: ValueList{Time: at, Ranks: []RankValues{}}, of: of, rooms: map[uint32]*room{}}
	users := slices.SortedFunc(maps.Keys(wanted), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(wanted[a], wanted[b]), cmp.Compare(a, b))
	})
	left, all := of.Series, 0
	for i, uid := range users {
		series := min(wanted[uid], left/(len(users)-i))
		v.rooms[uid] = &room{series: series}
		left -= series
		all += series
	}
	for _, r := range v.rooms {
		r.bytes = int(float64(of.Bytes) * (float64(r.series) / float64(max(all, 1))))
	}
	return v
}

// List returns what has been added.
func (v *Values) List() ValueList { return v.list }

// Shown is what stands on the page for a rank's variables.
type Shown struct {
	Rank      RankStatus
	Variables *mpit.Variables
	Infos     []variables.Info
	Series    []exposition.Shown
}

// Count is how many series of a rank are wanted, and the rank.
func (b *Bounds) Count(s *Shown) int {
	n := 1
	for i := range s.Series {
		if b.Of == nil || b.Of(&s.Series[i]) {
			n += s.Series[i].Len()
		}
	}
	return n
}

// Add adds a rank. Without room for all of it, it adds nothing, unless the rank is the first one of its user.
func (v *Values) Add(s *Shown) {
	room := v.rooms[s.Rank.UID]
	if room == nil || room.begun && (v.of.Count(s) > room.series || room.bytes <= 0) {
		v.list.More++
		v.list.LeftOut = leaveOut(v.list.LeftOut, &s.Rank)
		return
	}
	room.begun = true
	room.series--
	room.bytes -= rankBytes
	variables := &rankVariables{infos: s.Infos}
	if s.Variables != nil {
		variables.raw = s.Variables.ByID
	}
	r := RankValues{Rank: s.Rank}
	r.Variables, r.Cut = variables.values(s.Series, &v.of, room)
	v.list.Ranks = append(v.list.Ranks, r)
}

// leaveOut adds a rank for which there is no room to those that there are none for.
func leaveOut(list []LeftOut, s *RankStatus) []LeftOut {
	named, more := 0, -1
	for i := range list {
		switch l := &list[i]; {
		case l.UID != s.UID:
		case l.JobID == s.JobID:
			l.Ranks++
			return list
		case l.JobID == "":
			more = i
		default:
			named++
		}
	}
	switch {
	case more >= 0:
		list[more].Ranks++
	case named >= maxNamed:
		list = append(list, LeftOut{UID: s.UID, User: s.User, Ranks: 1})
	default:
		list = append(list, LeftOut{UID: s.UID, User: s.User, JobID: s.JobID, Ranks: 1})
	}
	return list
}

// take takes the room for one more series; false: there is none.
func (r *room) take(v *SeriesValue) bool {
	if r.series <= 0 || r.bytes <= 0 {
		return false
	}
	r.series--
	r.bytes -= 64
	for name, value := range v.Labels {
		r.bytes -= len(name) + len(value) + 16
	}
	r.bytes -= 64 * len(v.Buckets)
	return true
}

// rankVariables is the variables of a rank, by the metrics that they become.
type rankVariables struct {
	infos    []variables.Info
	raw      []mpit.Variable // of infos
	byMetric map[string][]int
}

// find returns the place of the variable that a series is of, -1 if the rank has no such variable: a merged series
// may be of another rank.
func (x *rankVariables) find(s *mapping.Series) int {
	if x.byMetric == nil { // made late, as what a scrape asks of most ranks is empty
		x.byMetric = map[string][]int{}
		for i := range x.infos {
			if m := x.infos[i].Metric; m != nil {
				x.byMetric[m.Name] = append(x.byMetric[m.Name], i)
			}
		}
	}
	best, fit := -1, 0
	for _, i := range x.byMetric[s.Metric.Name] {
		if n := x.infos[i].Owns(s); n > fit {
			best, fit = i, n
		}
	}
	return best
}

// values lists series, variable by variable. cut is how many found no room.
func (x *rankVariables) values(all []exposition.Shown, which *Bounds, room *room) (list []VariableValues, cut int) {
	list = []VariableValues{}
	for _, of := range all {
		if which.Of != nil && !which.Of(&of) {
			continue
		}
		begun := map[int]int{} // where in list each variable of the family is
		for place := range of.Len() {
			v := seriesValue(&of, place, which.Bare)
			if !room.take(&v) {
				cut++
				continue
			}
			series := of.Series(place)
			i := x.find(series)
			at, known := begun[i]
			if !known {
				at = len(list)
				begun[i] = at
				list = append(list, x.variable(i, series.Metric))
				room.bytes -= 256 + len(list[at].Name)
			}
			list[at].Series = append(list[at].Series, v)
		}
	}
	return list, cut
}

// variable describes a variable, without series.
func (x *rankVariables) variable(i int, m *mapping.Metric) VariableValues {
	v := VariableValues{Metric: m.Name, Kind: m.Kind.String(), Unit: m.Unit}
	if i >= 0 {
		v.Name, v.Class = x.infos[i].Name, x.infos[i].Class.String()
	}
	if i >= 0 && i < len(x.raw) {
		v.Name, v.Distribution = x.raw[i].Name, x.raw[i].Distribution
	}
	return v
}

func seriesValue(of *exposition.Shown, i int, bare bool) SeriesValue {
	var v SeriesValue
	if own := of.Series(i).Labels; len(own) > 0 {
		v.Labels = make(map[string]string, len(own))
		for _, l := range own {
			v.Labels[l.Name] = l.Value
		}
	}
	if h := of.Histogram(i); h != nil {
		count := exposition.CountOfAll(h)
		rest := count
		bucket := func(bound string, n uint64) {
			if n == 0 || bare {
				return
			}
			if v.Buckets == nil {
				v.Buckets = map[string]string{}
			}
			v.Buckets[bound] = strconv.FormatUint(n, 10)
		}
		for i, n := range h.Counts[:len(h.Bounds)] {
			rest -= n
			bucket(string(exposition.AppendNumber(nil, h.Bounds[i])), n)
		}
		bucket("+Inf", rest)
		v.Count, v.Sum = strconv.FormatUint(count, 10), string(exposition.AppendNumber(nil, h.Sum))
		return v
	}
	v.Value = string(exposition.AppendNumber(nil, of.Value(i)))
	return v
}
