package exporter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxValueSeries bounds the series in one answer: everybody waits while they are copied.
	maxValueSeries = 10_000
	// maxValueBytes bounds one answer, about.
	maxValueBytes = 16 << 20
	// recent is how old the page may be that values are read from without asking the ranks again. However many people look,
	// they cost the ranks no more than a scraper that comes so often.
	recent = time.Second
)

// ValueList is the answer to GET /api/v1/values: what stands on the page of metrics for the performance variables of some ranks.
type ValueList struct {
	Time     time.Time     `json:"time"`               // when the page was brought up to date
	Ranks    []RankValues  `json:"ranks"`              // sorted by jobid, world, user, rank
	Together []WorldValues `json:"together,omitempty"` // where rules merge the ranks of a world: its series
	More     int           `json:"more,omitempty"`     // ranks that are left out, for the answer would become too large: ask for them by name
}

// RankValues is what stands on the page for one rank's variables.
type RankValues struct {
	Rank      RankStatus       `json:"rank"`
	Variables []VariableValues `json:"variables"`     // sorted by metric
	Cut       int              `json:"cut,omitempty"` // series that are left out, for the answer would become too large
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
	Name         string        `json:"name"`            // as in a catalogue; empty, as Class: of merged series, nobody knows any more
	Class        string        `json:"class,omitempty"` // the same
	Metric       string        `json:"metric"`
	Distribution bool          `json:"distribution,omitempty"` // each duration has been counted by itself: Count is of calls, Sum their time
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
}

// Values returns what stands on the page for the variables of the ranks that are meant, and of their worlds. It asks all
// ranks as a scrape does, together with scrapes that begin at that time, unless they have been asked within the last second;
// the deadline of ctx (10 s where it has none) is theirs. It does not count as a scrape: ended ranks stay for who has not seen
// them. The only errors are a canceled ctx and bugs.
func (e *Exporter) Values(ctx context.Context, which Selector) (ValueList, error) {
	such := func(r *rank) bool { return which.selects(r.id) }
	if !e.upToDate(such) {
		l, err := e.gather(ctx, asValues)
		if err != nil {
			return ValueList{}, err
		}
		l.release()
	}
	type chosen struct {
		rank   *rank
		status RankStatus
	}
	var ranks []chosen
	func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, r := range e.table.ordered {
			if such(r) && r.visible() {
				ranks = append(ranks, chosen{r, r.status()})
			}
		}
	}()
	p, unlock := e.pages.lock()
	defer unlock()
	list := ValueList{Time: e.pages.committed(), Ranks: []RankValues{}}
	room := &valueRoom{series: maxValueSeries, bytes: maxValueBytes}
	seen := map[*group]bool{}
	for _, c := range ranks {
		var own []exposition.Shown
		is := p.ranks[c.rank]
		if is == nil {
			is = &portrait{rank: c.rank} // it has just come
		} else if is.series != nil {
			own = is.series.Shown()
		}
		if len(list.Ranks) > 0 && !room.fits(own) {
			list.More++
			continue
		}
		variables := variablesOf(is)
		v := RankValues{Rank: c.status}
		v.Variables, v.Cut = variables.values(own, room)
		list.Ranks = append(list.Ranks, v)
		if g := p.groups[c.rank.world]; g != nil && g.sheet != nil && !seen[g] {
			seen[g] = true
			w := WorldValues{JobID: g.id.JobID, World: g.id.World, User: g.id.User, Dup: g.id.Dup}
			w.Variables, w.Cut = variables.values(shownOfGroup(g), room)
			list.Together = append(list.Together, w)
		}
	}
	return list, nil
}

// upToDate says whether what the page has of such ranks need not be asked for.
func (e *Exporter) upToDate(such func(*rank) bool) bool {
	at := e.pages.committed()
	e.mu.Lock()
	defer e.mu.Unlock()
	return !at.IsZero() && time.Since(at) < e.recent &&
		!slices.ContainsFunc(e.table.ordered, func(r *rank) bool { return such(r) && !r.visible() })
}

// valueRoom is what an answer has still room for.
type valueRoom struct {
	series int
	bytes  byteCount
}

// fits says whether there is room for so many series, as far as can be said before they are written.
func (room *valueRoom) fits(all []exposition.Shown) bool {
	n := 0
	for i := range all {
		n += all[i].Len()
	}
	return n <= room.series && room.bytes > 0
}

// take says whether there is room for one more, and takes it.
func (room *valueRoom) take(v *SeriesValue) bool {
	if room.series == 0 || room.bytes <= 0 {
		return false
	}
	room.series--
	room.bytes -= 64
	for name, value := range v.Labels {
		room.bytes -= byteCount(len(name) + len(value) + 16)
	}
	return true
}

// variableIndex finds the variable that a series is of.
type variableIndex struct {
	infos    []mapping.Info
	raw      []mpit.Variable // of infos
	byMetric map[string][]int
}

// variablesOf indexes the variables of a rank.
func variablesOf(r *portrait) *variableIndex {
	x := &variableIndex{infos: r.infos, byMetric: map[string][]int{}}
	if r.variables != nil {
		x.raw = r.variables.ByID
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

// find returns the variable's place, -1 where the rank has none such: a merged series may be of another rank's.
func (x *variableIndex) find(s *mapping.Series) int {
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

// values writes series down, variable by variable. cut is how many found no room.
func (x *variableIndex) values(all []exposition.Shown, room *valueRoom) (list []VariableValues, cut int) {
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
				room.bytes -= recordBytes + byteCount(len(list[at].Name))
			}
			list[at].Series = append(list[at].Series, v)
		}
	}
	return list, cut
}

// variable describes a variable, without series.
func (x *variableIndex) variable(i int, m *mapping.Metric) VariableValues {
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
		for _, n := range h.Counts[:len(h.Bounds)] {
			sum += n
		}
		v.Count, v.Sum = strconv.FormatUint(exposition.CountOfAll(h, sum), 10), string(exposition.AppendNumber(nil, h.Sum))
		return v
	}
	v.Value = string(exposition.AppendNumber(nil, of.Value(i)))
	return v
}

// shownOfGroup is what is shown of the ranks of a world together, but the family that says whose a value is.
func shownOfGroup(g *group) []exposition.Shown {
	return slices.DeleteFunc(g.sheet.Shown(), func(of exposition.Shown) bool { return of.Name() == mapping.ExtremeName })
}

// errNoSuchRank is for who asks for the values of a rank that is not on the page.
var errNoSuchRank = errors.New("no rank of this node has these labels")

// serveValues answers GET /api/v1/values with a ValueList, of the ranks that the parameters jobid, world, user and rank name.
func (e *Exporter) serveValues(w http.ResponseWriter, req *http.Request) {
	which, err := selectorOf(req.URL.Query())
	if err != nil {
		e.writeError(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), defaultTimeout)
	defer cancel()
	list, err := e.Values(ctx, which)
	switch {
	case err != nil:
		e.writeError(w, http.StatusInternalServerError, err)
	case len(list.Ranks) == 0 && !which.any():
		e.writeError(w, http.StatusNotFound, errNoSuchRank)
	default:
		e.writeCompact(w, http.StatusOK, list)
	}
}
