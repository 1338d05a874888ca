package mapping

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
	// library or its version (""), the class (mpit.ClassUnknown), the verbosity (mpit.VerbosityUnknown) or the
	// categories (nil).
	Unsure []Source
	Metric *Metric  // nil: left out, for Drop
	Drop   Reason   // "": it is shown
	Series []string // examples, as they stand on the page, without values
}

// Explain says what a variable of a library becomes, as Metric does, and which rules decided it. categories are all
// that the variable stands in, directly or through others; nil: not known. It only looks: no family comes to be by
// it.
func (m *Mapper) Explain(lib Library, v mpit.Variable, categories []string) Explanation {
	rules := forLibrary(m.rules, lib)
	set, _ := settingsOf(rules, &v, categories, categories != nil)
	named := set.by[propCompanion] != nil // by a rule, which knows the library better than a guess does
	s, want, reason := m.become(set, &v)
	if !named && !lib.hasCompanions() {
		s.companion = ""
	}
	e := Explanation{Decisions: m.decisions(&v, &s, &set), Unsure: m.unsure(lib, &v, categories, &set), Drop: reason}
	if reason != "" {
		return e
	}
	m.mu.Lock()
	have, conflict := m.find(&want.Metric)
	m.mu.Unlock()
	switch {
	case conflict != "":
		e.Drop = ReasonTypeConflict
		return e
	case have != nil:
		e.Metric = have.metric
	default:
		want.Help = m.help(&v, &s, &want)
		e.Metric = &want.Metric
	}
	e.Series = m.examples(e.Metric, &v, &s, &set)
	return e
}

// unsure finds the rules that could match and would change something.
func (m *Mapper) unsure(lib Library, v *mpit.Variable, categories []string, set *settings) []Source {
	var out []Source
	for i, r := range m.rules {
		could, whole := *r, true
		library := len(r.Match.Library) == 0 || slices.Contains(r.Match.Library, lib.Name)
		if !library && lib.Name == "" {
			library, whole = true, false
		}
		version := r.versions.holds(lib.Version)
		if !version && lib.Version == "" {
			version, whole = true, false
		}
		category := r.inCategory(categories)
		if !category && categories == nil {
			category, whole = true, false
		}
		if len(r.classes) > 0 && v.Class == mpit.ClassUnknown {
			could.classes, whole = nil, false
		}
		if r.Match.Verbosity != "" && v.Verbosity == mpit.VerbosityUnknown {
			could.verbosity, whole = verbosityRange{}, false
		}
		if _, ok := could.matches(v); whole || !ok || !library || !version || !category {
			continue
		}
		for p := range properties {
			if r.sets[p] && (!v.Distribution || !fixedByAgent(p)) && !slices.Contains(m.rules[:i], set.by[p]) {
				out = append(out, r.Source)
				break
			}
		}
	}
	return out
}

// decisions is all properties with who set them.
func (m *Mapper) decisions(v *mpit.Variable, s *spec, set *settings) []Decision {
	out := make([]Decision, properties)
	for p := range properties {
		d := Decision{Property: propertyNames[p], Value: m.decided(p, v, s, set)}
		if r := set.by[p]; r != nil {
			d.Rule = &r.Rule
		}
		d.Agent = v.Distribution && fixedByAgent(p)
		out[p] = d
	}
	return out
}

// decided is the value of one property, by default or by a rule.
func (m *Mapper) decided(p property, v *mpit.Variable, s *spec, set *settings) string {
	switch p {
	case propDrop:
		return strconv.FormatBool(set.drop)
	case propClass:
		return nameOf(set.class)
	case propUnit:
		if r := set.by[propUnit]; r != nil {
			return r.Unit
		}
		return cmp.Or(s.unit, NoUnit)
	case propScale:
		return number64(set.scale)
	case propName:
		return cmp.Or(set.name, CleanText(v.Name, 256))
	case propHelp:
		return set.help
	case propLabels:
		return strings.Join(labelTexts(set.labels), ",")
	case propMerge:
		if s.separate || set.merge == MergeEach {
			return string(MergeEach)
		}
		return string(s.objects)
	case propElements:
		return cmp.Or(s.each, string(s.elements))
	case propNonzero:
		return strconv.FormatBool(set.nonzero)
	case propObject:
		return strconv.FormatBool(set.object)
	case propCompanion:
		return cmp.Or(s.companion, NoCompanion)
	case propBuckets:
		bounds := s.buckets
		texts := make([]string, len(bounds))
		for i, b := range bounds {
			texts[i] = number64(b)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case propOffset:
		return strconv.FormatBool(set.offset)
	case propRank:
		return string(cmp.Or(set.rank, m.rank))
	case propOpen:
		return strconv.FormatBool(set.open)
	}
	return ""
}

func number64(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// exampleObjects are names that an object of each kind may have; others are unnamed.
var exampleObjects = map[mpit.Bind]string{
	mpit.BindComm: "MPI_COMM_WORLD", mpit.BindDatatype: "MPI_DOUBLE", mpit.BindErrhandler: "MPI_ERRORS_ARE_FATAL", mpit.BindFile: "output.dat",
	mpit.BindGroup: "MPI_GROUP_EMPTY", mpit.BindOp: "MPI_SUM", mpit.BindInfo: "MPI_INFO_ENV",
}

// examples is series as they would stand on the page.
func (m *Mapper) examples(metric *Metric, v *mpit.Variable, s *spec, set *settings) []string {
	own := slices.Clone(set.labels)
	if s.label != "" && set.object {
		own = append(own, Label{s.label, cmp.Or(exampleObjects[v.Bind], Unnamed)})
	}
	if set.merge == MergeEach && v.Bind != mpit.BindNone {
		own = append(own, Label{"object", "1"})
	}
	if s.each != "" && !s.separate {
		own = append(own, Label{s.each, "0"})
	}
	byName := func(a, b Label) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(own, byName)
	all := []Label{{"jobid", "…"}, {"world", "…"}, {"user", "…"}}
	rank := append(slices.Clone(all), Label{"rank", "0"})

	mode := cmp.Or(set.rank, m.rank)
	if s.separate || set.merge == MergeEach {
		mode = RankKeep // there is nothing to merge by
	}
	node, lines := metric.Name, []string(nil)
	if mode == RankBoth {
		node = NodeName(metric.Name)
	}
	if mode != RankNode {
		lines = append(lines, m.lines(metric.Name, metric.Kind, s, v, set, append(rank, own...))...)
	}
	if mode != RankKeep {
		lines = append(lines, m.lines(node, metric.Kind, s, v, set, append(slices.Clone(all), own...))...)
		if s.mode == modeWatermark {
			lines = append(lines, line(ExtremeName, append(append(slices.Clone(all), Label{"metric", node}), own...)))
		}
	}
	return lines
}

// lines is the lines that one series has in the text format.
func (m *Mapper) lines(name string, kind Kind, s *spec, v *mpit.Variable, set *settings, labels []Label) []string {
	with := func(extra Label) []Label { return append(slices.Clone(labels), extra) }
	switch {
	case kind == KindHistogram:
		bounds := s.buckets
		return []string{
			line(name+"_bucket", with(Label{"le", number64(bounds[0])})), line(name+"_bucket", with(Label{"le", "+Inf"})),
			line(name+"_sum", labels), line(name+"_count", labels),
		}
	case s.mode == modeState:
		items := itemsOf(v.Enum)
		if items == nil {
			return []string{line(name, with(Label{"state", stateName(0)}))}
		}
		var out []string
		for _, it := range items[:min(len(items), maxExampleStates)] {
			out = append(out, line(name, with(Label{"state", it.name})))
		}
		return out
	}
	return []string{line(name, labels)}
}

// line is a series in the text format, without its value.
func line(name string, labels []Label) string {
	return name + "{" + strings.Join(labelTexts(labels), ",") + "}"
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labelTexts(labels []Label) []string {
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.Name + `="` + labelEscapes.Replace(l.Value) + `"`
	}
	return texts
}
