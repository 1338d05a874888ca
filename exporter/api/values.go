package api

import (
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// ValueList is the answer to GET /api/v1/values: what stands on the page of metrics for the performance variables of
// some ranks.
type ValueList struct {
	Time     time.Time     `json:"time"`               // when the page was brought up to date
	Ranks    []RankValues  `json:"ranks"`              // sorted by jobid, world, user, rank
	Together []WorldValues `json:"together,omitempty"` // where rules merge the ranks of a world: its series
	More     int           `json:"more,omitempty"`     // ranks left out to bound the answer: ask for them by name
}

// RankValues is what stands on the page for one rank's variables.
type RankValues struct {
	Rank      RankStatus       `json:"rank"`
	Variables []VariableValues `json:"variables"`     // sorted by metric
	Cut       int              `json:"cut,omitempty"` // series left out to bound the answer
}

// WorldValues is what stands on the page for the ranks of one MPI_COMM_WORLD together.
type WorldValues struct {
	JobID     string           `json:"jobid"`
	World     string           `json:"world"`
	User      string           `json:"user"`
	Dup       int              `json:"dup,omitempty"`
	Variables []VariableValues `json:"variables"`
	Cut       int              `json:"cut,omitempty"`
}

// VariableValues is the series of one variable in one family.
type VariableValues struct {
	Name         string        `json:"name"`            // as in a catalogue; empty, as Class: not known any more
	Class        string        `json:"class,omitempty"` // the same
	Metric       string        `json:"metric"`
	Distribution bool          `json:"distribution,omitempty"` // see mpit.Variable: Count is of calls, Sum their time or bytes
	Kind         string        `json:"kind"`                   // counter, gauge, histogram, untyped
	Unit         string        `json:"unit,omitempty"`         // of the values, in UCUM
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
	list ValueList
	room room
}

// room is the room that is left in an answer.
type room struct{ series, bytes int }

// NewValues begins a list with room for so many series, and about so many bytes. at is when the page was brought up
// to date.
func NewValues(at time.Time, series, bytes int) *Values {
	return &Values{list: ValueList{Time: at, Ranks: []RankValues{}}, room: room{series, bytes}}
}

// List returns what has been added.
func (v *Values) List() ValueList { return v.list }

// AddRank adds what is shown of a rank, and returns the rank's variables. Without room for all of it, it adds nothing
// and returns nil, unless the rank is the first one.
func (v *Values) AddRank(s RankStatus, c *mpit.Variables, infos []variables.Info,
	shown []exposition.Shown) *Variables {
	if len(v.list.Ranks) > 0 && !v.room.fits(shown) {
		v.list.More++
		return nil
	}
	variables := newVariables(c, infos)
	r := RankValues{Rank: s}
	r.Variables, r.Cut = variables.values(shown, &v.room)
	v.list.Ranks = append(v.list.Ranks, r)
	return variables
}

// AddWorld adds what is shown of the ranks of a world together. variables are those of one of them.
func (v *Values) AddWorld(id identity.Identity, variables *Variables, shown []exposition.Shown) {
	w := WorldValues{JobID: id.JobID, World: id.World, User: id.User, Dup: id.Dup}
	w.Variables, w.Cut = variables.values(shown, &v.room)
	v.list.Together = append(v.list.Together, w)
}

// fits estimates whether there is room for these series.
func (r *room) fits(all []exposition.Shown) bool {
	n := 0
	for i := range all {
		n += all[i].Len()
	}
	return n <= r.series && r.bytes > 0
}

// take takes the room for one more series; false: there is none.
func (r *room) take(v *SeriesValue) bool {
	if r.series == 0 || r.bytes <= 0 {
		return false
	}
	r.series--
	r.bytes -= 64
	for name, value := range v.Labels {
		r.bytes -= len(name) + len(value) + 16
	}
	r.bytes -= 24 * len(v.Buckets)
	return true
}

// Variables is the variables of a rank, by the metrics that they become.
type Variables struct {
	infos    []variables.Info
	raw      []mpit.Variable // of infos
	byMetric map[string][]int
}

// newVariables indexes the variables of a rank, as far as they are known.
func newVariables(catalogue *mpit.Variables, infos []variables.Info) *Variables {
	x := &Variables{infos: infos, byMetric: map[string][]int{}}
	if catalogue != nil {
		x.raw = catalogue.ByID
	}
	for i := range x.infos {
		for _, m := range []*mapping.Metric{x.infos[i].Metric, x.infos[i].Ratio} {
			if m != nil {
				x.byMetric[m.Name] = append(x.byMetric[m.Name], i)
			}
		}
	}
	return x
}

// find returns the place of the variable that a series is of, -1 if the rank has no such variable: a merged series
// may be of another rank.
func (x *Variables) find(s *mapping.Series) int {
	list, ok := x.byMetric[s.Metric.Name]
	if !ok {
		list = x.byMetric[mapping.RankName(s.Metric.Name)]
	}
	best, fit := -1, 0
	for _, i := range list {
		if n := x.infos[i].Owns(s); n > fit {
			best, fit = i, n
		}
	}
	return best
}

// values lists series, variable by variable. cut is how many found no room.
func (x *Variables) values(all []exposition.Shown, room *room) (list []VariableValues, cut int) {
	list = []VariableValues{}
	for _, of := range all {
		begun := map[int]int{} // where in list each variable of the family is
		for place := range of.Len() {
			v := seriesValue(&of, place)
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
func (x *Variables) variable(i int, m *mapping.Metric) VariableValues {
	v := VariableValues{Metric: m.Name, Kind: m.Kind.String(), Unit: m.Unit}
	if i >= 0 {
		v.Name, v.Class = x.infos[i].Name, x.infos[i].Class.String()
	}
	if i >= 0 && i < len(x.raw) {
		v.Name, v.Distribution = x.raw[i].Name, x.raw[i].Distribution
	}
	return v
}

func seriesValue(of *exposition.Shown, i int) SeriesValue {
	var v SeriesValue
	if own := of.Series(i).Labels; len(own) > 0 {
		v.Labels = make(map[string]string, len(own))
		for _, l := range own {
			v.Labels[l.Name] = l.Value
		}
	}
	if h := of.Histogram(i); h != nil {
		var sum uint64
		bucket := func(bound string, n uint64) {
			if n == 0 {
				return
			}
			if v.Buckets == nil {
				v.Buckets = map[string]string{}
			}
			v.Buckets[bound] = strconv.FormatUint(n, 10)
		}
		for i, n := range h.Counts[:len(h.Bounds)] {
			sum += n
			bucket(string(exposition.AppendNumber(nil, h.Bounds[i])), n)
		}
		bucket("+Inf", exposition.CountOfAll(h, sum)-sum)
		v.Count, v.Sum = strconv.FormatUint(exposition.CountOfAll(h, sum), 10),
			string(exposition.AppendNumber(nil, h.Sum))
		return v
	}
	v.Value = string(exposition.AppendNumber(nil, of.Value(i)))
	return v
}
