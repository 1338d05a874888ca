package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxExampleStates is how many items of an enumeration stand among the examples.
const maxExampleStates = 8

// Decision is one property of a variable, and who set it.
type Decision struct {
	Property string // as rules call it: class, unit, name …; labels are those of named groups
	Value    string // as a rule would write it
	Rule     *Rule  // nil: the default
	Agent    bool   // whatever rules say: it is what the agent measures
}

// Explanation says what a variable becomes, and why.
type Explanation struct {
	Decisions []Decision // of all properties, in a fixed order
	// Unsure is the rules that could match, and would change something, if something were known that is not: the
	// library or its version (""), the class (mpit.ClassUnknown) or the verbosity (mpit.VerbosityUnknown).
	Unsure []Source
	Metric *mapping.Metric // nil: left out, for Drop
	Drop   mapping.Reason  // "": it is shown
	Series []string        // examples, as they stand on the page, without values
}

// Explain says what a variable of a library becomes, and which rules decided it.
func (c *Compiled) Explain(basis *mapping.Basis, lib mapping.Library, v mpit.Variable) Explanation {
	set := decide(forLibrary(c.rules, lib), &v)
	// by a rule, which knows the library better than a guess does
	named := set.by[slices.IndexFunc(properties[:], func(p property) bool { return p.name == "companion" })] != nil
	s, want, reason := basis.Become(set.Properties, &v)
	if !named && !lib.HasCompanions() {
		s.Companion = ""
	}
	e := Explanation{Decisions: decisions(basis, &v, &s, &set), Unsure: c.unsure(lib, &v, &set), Drop: reason}
	if reason != "" {
		return e
	}
	want.Help = basis.Help(&v, &s, &want)
	e.Metric = &want.Metric
	e.Series = examples(basis, e.Metric, &v, &s, &set)
	return e
}

// unsure finds the rules that could match and would change something.
func (c *Compiled) unsure(lib mapping.Library, v *mpit.Variable, set *decided) []Source {
	var out []Source
	for i, r := range c.rules {
		could, whole := *r, true
		library := len(r.Match.Library) == 0 || slices.Contains(r.Match.Library, lib.Name)
		if !library && lib.Name == "" {
			library, whole = true, false
		}
		version := r.versions.holds(lib.Version)
		if !version && lib.Version == "" {
			version, whole = true, false
		}
		if len(r.classes) > 0 && v.Class == mpit.ClassUnknown {
			could.classes, whole = nil, false
		}
		if r.Match.Verbosity != "" && v.Verbosity == mpit.VerbosityUnknown {
			could.verbosity, whole = verbosityRange{}, false
		}
		if _, ok := could.matches(v); whole || !ok || !library || !version {
			continue
		}
		for p := range properties {
			if r.sets[p] && (!v.Distribution || !properties[p].agent) && !slices.Contains(c.rules[:i], set.by[p]) {
				out = append(out, r.Source)
				break
			}
		}
	}
	return out
}

// decisions is all properties with who set them.
func decisions(basis *mapping.Basis, v *mpit.Variable, s *mapping.Spec, set *decided) []Decision {
	out := make([]Decision, propertyCount)
	for p := range properties {
		of := &properties[p]
		d := Decision{Property: of.name, Agent: v.Distribution && of.agent}
		d.Value = of.show(s, set, &explaining{basis, v, set.by[p]})
		if r := set.by[p]; r != nil {
			d.Rule = &r.Rule
		}
		out[p] = d
	}
	return out
}

// exampleObjects are names that an object of each kind may have; others are unnamed.
var exampleObjects = map[mpit.Bind]string{
	mpit.BindComm: "MPI_COMM_WORLD", mpit.BindDatatype: "MPI_DOUBLE", mpit.BindErrhandler: "MPI_ERRORS_ARE_FATAL",
	mpit.BindFile:  "output.dat",
	mpit.BindGroup: "MPI_GROUP_EMPTY", mpit.BindOp: "MPI_SUM", mpit.BindInfo: "MPI_INFO_ENV",
}

// examples is series as they would stand on the page.
func examples(basis *mapping.Basis, metric *mapping.Metric, v *mpit.Variable, s *mapping.Spec,
	set *decided) []string {
	own := slices.Clone(set.Labels)
	if s.Label != "" && set.Object {
		own = append(own, mapping.Label{Name: s.Label, Value: cmp.Or(exampleObjects[v.Bind], mapping.Unnamed)})
	}
	if set.Merge == mapping.MergeEach && v.Bind != mpit.BindNone {
		own = append(own, mapping.Label{Name: "object", Value: "1"})
	}
	if s.Each != "" && !s.Separate {
		own = append(own, mapping.Label{Name: s.Each, Value: "0"})
	}
	byName := func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(own, byName)
	all := []mapping.Label{{Name: "jobid", Value: "…"}, {Name: "world", Value: "…"}, {Name: "user", Value: "…"}}
	rank := append(slices.Clone(all), mapping.Label{Name: "rank", Value: "0"})

	mode := cmp.Or(set.Rank, basis.Ranks)
	if s.Separate || set.Merge == mapping.MergeEach {
		mode = mapping.RankKeep // there is nothing to merge by
	}
	node, lines := metric.Name, []string(nil)
	if mode == mapping.RankBoth {
		node = mapping.NodeName(metric.Name)
	}
	if mode != mapping.RankNode {
		lines = append(lines, seriesLines(metric.Name, metric.Kind, s, v, set, append(rank, own...))...)
	}
	if mode != mapping.RankKeep {
		lines = append(lines, seriesLines(node, metric.Kind, s, v, set, append(slices.Clone(all), own...))...)
		if s.Mode == mapping.ModeWatermark {
			lines = append(lines, line(mapping.ExtremeName,
				append(append(slices.Clone(all), mapping.Label{Name: "metric", Value: node}), own...)))
		}
	}
	return lines
}

// seriesLines is the lines that one series has in the text format.
func seriesLines(name string, kind mapping.Kind, s *mapping.Spec, v *mpit.Variable, set *decided,
	labels []mapping.Label) []string {
	with := func(extra mapping.Label) []mapping.Label { return append(slices.Clone(labels), extra) }
	switch {
	case kind == mapping.KindHistogram:
		bounds := s.Buckets
		return []string{
			line(name+"_bucket", with(mapping.Label{Name: "le", Value: number64(bounds[0])})),
			line(name+"_bucket", with(mapping.Label{Name: "le", Value: "+Inf"})),
			line(name+"_sum", labels), line(name+"_count", labels),
		}
	case s.Mode == mapping.ModeState:
		items := mapping.ItemsOf(v.Enum)
		if items == nil {
			return []string{line(name, with(mapping.Label{Name: "state", Value: mapping.StateName(0)}))}
		}
		var out []string
		for _, it := range items[:min(len(items), maxExampleStates)] {
			out = append(out, line(name, with(mapping.Label{Name: "state", Value: it.Name})))
		}
		return out
	}
	return []string{line(name, labels)}
}

// line is a series in the text format, without its value.
func line(name string, labels []mapping.Label) string {
	return name + "{" + strings.Join(labelTexts(labels), ",") + "}"
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labelTexts(labels []mapping.Label) []string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.Name + `="` + labelEscapes.Replace(l.Value) + `"`
	}
	return texts
}
