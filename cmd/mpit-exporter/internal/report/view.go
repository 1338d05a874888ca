// Package report is what is written of jobs for people: reports and comparisons (package job), as text for a terminal
// and as pages of HTML that need nothing else.
//
// view.go makes tables of a report, which text.go and html.go write. file.go is a report's file, which the exporters of
// a job's nodes write together while it runs. past.go asks a Prometheus what it has of jobs.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// How much of each list a page for people has; JSON has all of it.
const (
	shownCalls  = 15
	shownLate   = 20 // ranks, from the late end
	shownEarly  = 5  // and from the early one
	shownLevels = 15
	shownPairs  = 10

	shownFunctions = 3 // of each rank
)

// section is a table of the report, as text and as HTML. Heads of columns that are aligned at their right begin with
// ">".
type section struct {
	Title string
	Heads []string
	Rows  []row
	Notes []string
}

// add adds a row without a bar.
func (s *section) add(cells ...string) { s.Rows = append(s.Rows, row{Cells: cells}) }

// row is a line of a section; parts are those of a bar, nil: there is none.
type row struct {
	Cells []string
	Parts []job.Part
}

// view is a report in words.
type view struct {
	Title, About string
	State, Why   string // the word of the state, and what follows it in the sentence
	report       *job.Report
}

func viewOf(r *job.Report) *view {
	r = r.Written()
	j := &r.Job
	title := "Job " + mapping.OneLine(j.ID)
	if j.Name != "" {
		title += " (" + mapping.OneLine(j.Name) + ")"
	}
	if j.Program != "" {
		title += ": " + mapping.OneLine(path.Base(j.Program))
	}
	about := []string{"user " + cmp.Or(mapping.OneLine(j.User), "unknown"), "world " + mapping.OneLine(j.World),
		fmt.Sprintf("%d of %s", j.Observed, units.Count(j.WorldSize, "rank")), units.Count(j.Nodes, "node")}
	if j.Library != "" {
		about = append(about, mapping.OneLine(j.Library))
	}
	if j.Started != nil {
		about = append(about, "began "+j.Started.Local().Format(time.DateTime))
		if lasted := units.Duration(r.Lasted()); j.Ended != nil {
			about = append(about, "ended after "+lasted)
		} else { // what comes later isn't in it
			about = append(about, "runs for "+lasted, "as of "+r.Time.Local().Format(time.DateTime))
		}
	}
	v := &view{Title: title, About: strings.Join(about, ", "), State: r.Verdict.State, report: r}
	v.Why = strings.TrimPrefix(mapping.OneLine(r.Verdict.Sentence()), v.State)
	return v
}

func (v *view) sections() (all []section) {
	for _, s := range []section{v.efficiency(), v.phases(), v.underWay(), v.sites(), v.calls(), v.ranks(), v.standOut(),
		v.sizes(), v.messages(), v.levels()} {
		for _, row := range s.Rows {
			for i, cell := range row.Cells {
				row.Cells[i] = mapping.OneLine(cell)
			}
		}
		if len(s.Rows) > 0 {
			all = append(all, s)
		}
	}
	if v.report.LeftOut > 0 {
		all = append(all, section{Title: "Left out", Notes: []string{fmt.Sprintf(
			"%d ranks or series had no room in an exporter's answer", v.report.LeftOut)}})
	}
	return all
}

func (v *view) calls() section {
	s := section{Title: "Time in MPI, of all ranks", Heads: []string{">SHARE", ">TIME", ">CALLS", ">MEAN", "FUNCTION",
		"ON", "MOST IN RANK", "BYTES A CALL"}}
	list := v.report.Calls
	for i := range list[:min(len(list), shownCalls)] {
		c := &list[i]
		mean := ""
		if c.Calls > 0 {
			mean = units.Duration(c.Seconds / c.Calls)
		}
		s.Rows = append(s.Rows, row{Cells: []string{units.Percent(c.Share), units.Duration(c.Seconds),
			units.Number(c.Calls), mean,
			c.Function, c.Object, fmt.Sprintf("%d: %s", c.Most, units.Duration(c.MostSeconds)), bytesACall(c)},
			Parts: []job.Part{{Colour: "mpi", Share: min(c.Share, 1)}}})
	}
	if spent := v.report.Spent(); secondsOf(list) > 1.05*spent.Inside() {
		s.Notes = append(s.Notes, "Other threads than those that initialised MPI call it, too; shares are of these "+
			"threads' time.")
	}
	return s.andMore(len(list)-shownCalls, ", with "+units.Duration(secondsOf(list[min(len(list), shownCalls):])))
}

// sites are the places in the program at which ranks have waited most.
func (v *view) sites() section {
	s := section{Title: "Places where ranks wait", Heads: []string{">WAITED", ">CALLS", "FUNCTION", "ON", "FROM"}}
	for _, at := range v.report.Sites {
		s.add(units.Duration(at.Waited), units.Number(at.Calls), at.Function, at.Object, at.From)
	}
	return s
}

func secondsOf(calls []job.Call) (seconds float64) {
	for i := range calls {
		seconds += calls[i].Seconds
	}
	return seconds
}

// bytesACall is how many bytes a call has had on average, by direction.
func bytesACall(c *job.Call) string {
	var parts []string
	for _, direction := range slices.Sorted(maps.Keys(c.Bytes)) {
		if c.Calls > 0 {
			parts = append(parts, units.Bytes(c.Bytes[direction]/c.Calls)+" "+direction)
		}
	}
	return strings.Join(parts, ", ")
}

func (v *view) ranks() section {
	s := section{Title: "Ranks, from late to early", Heads: []string{">RANK", "NODE", "STATE"}}
	list := v.report.Ranks
	shown := shownParts(list, &s)
	s.Heads = append(s.Heads, "IN MPI MOSTLY")
	for i := range list {
		if len(list) > shownLate+shownEarly && i >= shownLate && i < len(list)-shownEarly {
			if i == shownLate {
				s.add(fmt.Sprintf("… %d more", len(list)-shownLate-shownEarly))
			}
			continue
		}
		r := &list[i]
		name := strconv.Itoa(r.Rank)
		if r.Dup > 0 {
			name += fmt.Sprintf(" (dup %d)", r.Dup)
		}
		parts := partsOf(r)
		cells := []string{name, r.Node, cmp.Or(r.End, r.State)}
		for _, at := range shown {
			share := units.Percent(parts[at].Share)
			if r.Time.Sum() <= 0 { // its calls are not measured
				share = ""
			}
			cells = append(cells, share)
		}
		var functions []string
		for _, f := range r.Functions[:min(len(r.Functions), shownFunctions)] {
			functions = append(functions, f.Function+" "+units.Duration(f.Seconds))
		}
		cells = append(cells, strings.Join(functions, ", "))
		s.Rows = append(s.Rows, row{Cells: cells, Parts: parts})
	}
	return s
}

func (v *view) sizes() section {
	s := section{Title: "Sizes of calls", Heads: []string{">CALLS", ">MEDIAN UP TO", ">90 % UP TO", ">ALL UP TO",
		"FUNCTION", "ON"}}
	list := v.report.Sizes
	for i := range list[:min(len(list), shownCalls)] {
		of := &list[i]
		s.add(units.Number(of.Calls), upTo(of.AtMost(0.5)), upTo(of.AtMost(0.9)), upTo(of.AtMost(1)), of.Function, of.Object)
	}
	return s.andMore(len(list)-shownCalls, "")
}

// andMore notes how many rows there are besides.
func (s section) andMore(more int, of string) section {
	if more > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("… and %d more%s", more, of))
	}
	return s
}

func upTo(size float64) string {
	if size == job.LargestSize {
		return "more"
	}
	return units.Bytes(size)
}

func (v *view) messages() section {
	s := section{Title: "Messages, by sender and receiver", Heads: []string{">BYTES", ">MESSAGES", ">MEAN", ">FROM",
		">TO"}}
	list := v.report.Messages
	for i := range list[:min(len(list), shownPairs)] {
		m := &list[i]
		s.Rows = append(s.Rows, row{Cells: []string{units.Bytes(m.Bytes), units.Number(m.Messages),
			units.Bytes(m.Bytes / m.Messages), strconv.Itoa(m.From), m.To},
			Parts: []job.Part{{Colour: "send", Share: m.Bytes / max(list[0].Bytes, 1)}}})
	}
	return s.andMore(len(list)-shownPairs, " pairs")
}

func (v *view) levels() section {
	s := section{Title: "Queues and watermarks of the library", Heads: []string{">MOST", ">IN RANK", "OF"}}
	list := v.report.Levels
	for i := range list[:min(len(list), shownLevels)] {
		l := &list[i]
		s.add(units.Number(l.Most), strconv.Itoa(l.Rank), l.Metric+job.LabelText(l.Labels))
	}
	return s.andMore(len(list)-shownLevels, "")
}

func (v *view) efficiency() section {
	e := v.report.Verdict.Efficiency
	if e == nil {
		return section{}
	}
	s := section{Title: "Efficiency", Heads: []string{"", ">", ""}}
	for _, of := range []struct {
		name  string
		value float64
		is    string
	}{
		{"parallel", e.Parallel, "useful time of the mean rank: load balance x communication"},
		{"load balance", e.LoadBalance, "between nodes x within nodes"},
		{"  between nodes", e.BetweenNodes, "mean rank / mean rank of the node with most useful time"},
		{"  within nodes", e.WithinNodes, "that one / rank with most useful time"},
		{"communication", e.Communication, "useful time of the rank that has most"},
	} {
		s.Rows = append(s.Rows, row{Cells: []string{of.name, units.Percent(of.value), of.is},
			Parts: []job.Part{{Colour: "useful", Share: of.value}}})
	}
	if size := v.report.Job.WorldSize; e.Ranks < size {
		s.Notes = append(s.Notes, fmt.Sprintf("Of %d of %d ranks: of the others not enough was observed.", e.Ranks, size))
	}
	return s
}

// phases are those that the program has begun with MPI_Pcontrol.
func (v *view) phases() section {
	s := section{Title: "Phases", Heads: []string{"PHASE", ">TIME", ">LOAD BALANCE", ">COMMUNICATION"}}
	list := v.report.Phases
	all := &job.Rank{}
	for i := range list {
		all.Time = all.Time.Plus(list[i].State)
	}
	shown := shownParts([]job.Rank{*all}, &s)
	s.Heads = append(s.Heads, "THE OTHERS WAIT FOR")
	for i := range list {
		p := &list[i]
		parts := partsOf(&job.Rank{Time: p.State})
		cells := []string{p.Name, units.Duration(p.State.Sum() / float64(p.Efficiency.Ranks)),
			units.Percent(p.Efficiency.LoadBalance), units.Percent(p.Efficiency.Communication)}
		for _, at := range shown {
			cells = append(cells, units.Percent(parts[at].Share))
		}
		late := ""
		if p.Late != nil {
			late = fmt.Sprintf("rank %d on %s, %s of the time", p.Late.Rank, p.Late.Node, units.Percent(p.Late.Share))
		}
		if p.Late != nil && p.Efficiency.Ranks > 2 { // it has most useful time, which is a hint
			late = "probably " + late
		}
		s.Rows = append(s.Rows, row{Cells: append(cells, late), Parts: parts})
	}
	if note := v.report.HiddenBy(list); note != "" {
		s.Notes = append(s.Notes, note)
	}
	return s
}

// shownParts adds heads for states of time to a section: useful, and those that any of some ranks is in.
func shownParts(ranks []job.Rank, s *section) (shown []int) {
	for at, p := range partsOf(&job.Rank{}) {
		if at == 0 || slices.ContainsFunc(ranks, func(r job.Rank) bool { return partsOf(&r)[at].Share >= 0.005 }) {
			shown = append(shown, at)
			s.Heads = append(s.Heads, ">"+strings.ToUpper(p.Name))
		}
	}
	return shown
}

// underWay is where ranks are if one of them has been in a call for longer than a second.
func (v *view) underWay() section {
	s := section{Title: "Calls under way", Heads: []string{">FOR", "CALL", "ON", "RANKS", "FROM"}}
	for _, p := range v.report.Places() {
		took := ""
		if p.Seconds > 0 {
			took = units.Duration(p.Seconds)
		}
		s.add(took, p.Call, p.Object, table.Shorten(units.Ranks(p.Ranks), table.MaxCell), p.From)
	}
	return s
}
