// Package explain is config explain: what a performance variable becomes, and which rules decide it, as text and as
// JSON.
//
// The answers are mapping's (Mapper.Explain). Here are the question, as flags put it (Flags), and how the answers for
// several classes and libraries are told: Flags.Run is the way through.
package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/configuration"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Explained is what becomes of the variable as one class in one library.
type Explained struct {
	Library   string   `json:"library,omitempty"` // none: any that is not named
	Version   string   `json:"version,omitempty"`
	Class     string   `json:"class"`
	Datatype  string   `json:"datatype"`
	Metric    *Metric  `json:"metric,omitempty"`
	Dropped   string   `json:"dropped,omitempty"` // why there is no metric
	named     bool     // a rule has decided something that matches by name
	Series    []string `json:"series"`
	Decisions []Reason `json:"decisions"`
	Unsure    []string `json:"unsure,omitempty"` // rules, by file and line
}

// Metric is the metric that a variable becomes.
type Metric struct {
	Name          string `json:"name"`
	Type          string `json:"type"`
	Unit          string `json:"unit,omitempty"`
	Help          string `json:"help"`
	OpenTelemetry string `json:"opentelemetry"`
}

// Reason is one property and who set it.
type Reason struct {
	Property string `json:"property"`
	Value    string `json:"value"`
	Rule     string `json:"rule,omitempty"`  // file and line; none: the default
	Agent    bool   `json:"agent,omitempty"` // whatever rules say: it is what the agent measures
}

// Run answers the question that the flags put.
func (x *Flags) Run(std cli.Stdio) error {
	q, err := x.question()
	if err != nil {
		return err
	}
	rules, _, err := configuration.Load(x.files, 0)
	if err != nil {
		return err
	}
	list, others := q.answer(rules.Mapper)
	if x.output == "json" {
		encoder := json.NewEncoder(std.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(struct {
			Name         string      `json:"name"`
			Bind         string      `json:"bind"`
			Explanations []Explained `json:"explanations"`
		}{x.name, bindWords[q.variable.Bind], list})
	} else {
		err = writeExplained(std.Out, x.name, list, others)
	}
	if err != nil {
		return fmt.Errorf("config explain: writing: %w", err)
	}
	return nil
}

// answer explains the variable for each library and class that is asked about. If several libraries are, it leaves
// out those whose explanation is the same as that for any library; if several classes are, those that no rule
// mentions, provided that some rule mentions another. If rules know the variable by name, only these explanations are
// left; others is how many were left out for that reason.
func (q *question) answer(m *variables.Mapper) (list []Explained, others int) {
	one := func(lib mapping.Library, class mpit.Class) Explained {
		v := q.variable
		v.Class = class
		switch {
		case q.datatype:
		case ownDistribution(v.Name, class):
			v.Datatype, v.Distribution = mpit.DatatypeUint64, true
		default:
			v.Datatype = usualDatatype(class)
		}
		v.DatatypeBytes = datatypeBytes(v.Datatype)
		return newExplained(lib, &v, m.Explain(lib, v))
	}
	for _, lib := range q.libraries {
		var own []Explained
		for _, class := range q.classes {
			e := one(lib, class)
			if len(q.libraries) > 1 && lib.Name != "" {
				if general := one(mapping.Library{}, class); slices.Equal(e.Decisions, general.Decisions) {
					continue
				}
			}
			own = append(own, e)
		}
		if len(q.classes) > 1 && slices.ContainsFunc(own, Explained.ruled) {
			own = slices.DeleteFunc(own, func(e Explained) bool { return !e.ruled() })
		}
		list = append(list, own...)
	}
	if len(q.classes) > 1 {
		known := slices.DeleteFunc(slices.Clone(list), func(e Explained) bool { return !e.named })
		if len(known) > 0 {
			return known, len(list) - len(known)
		}
	}
	return list, 0
}

// ruled says whether a rule has decided anything, or would if more were known.
func (e Explained) ruled() bool {
	return len(e.Unsure) > 0 && e.Library != "" || slices.ContainsFunc(e.Decisions,
		func(d Reason) bool { return d.Rule != "" })
}

func newExplained(lib mapping.Library, v *mpit.Variable, from rules.Explanation) Explained {
	e := Explained{
		Library: lib.Name, Version: lib.Version, Class: classWords[v.Class], Datatype: v.Datatype.String(),
		Dropped: string(from.Drop), Series: append([]string{}, from.Series...), Decisions: []Reason{},
	}
	if metric := from.Metric; metric != nil {
		e.Metric = &Metric{metric.Name, metric.Kind.String(), metric.Unit, metric.Help, metric.OTelName}
	}
	for _, d := range from.Decisions {
		reason := Reason{Property: d.Property, Value: d.Value, Agent: d.Agent}
		if d.Rule != nil {
			reason.Rule = cmp.Or(sourceText(d.Rule.Source), "a rule")
			e.named = e.named || d.Rule.Match.Name != "" || d.Rule.Match.Regexp != ""
		}
		e.Decisions = append(e.Decisions, reason)
	}
	for _, source := range from.Unsure {
		e.Unsure = append(e.Unsure, sourceText(source))
	}
	return e
}

func sourceText(s rules.Source) string {
	if s.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}
