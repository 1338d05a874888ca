package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// File is what one rule file says.
type File struct {
	Limits   Limits    `yaml:"limits,omitempty"`
	Identity []Relabel `yaml:"identity,omitempty"`
	Rules    []Rule    `yaml:"rules,omitempty"`
}

// Settings is what all files together say, and the shipped rules behind theirs.
type Settings struct {
	Files    []string // that were read
	Limits   Limits   // with defaults
	Identity []Relabel
	Rules    []Rule
}

const (
	maxFile = 1 << 20 // bytes of a rule file

	// maxRules is how many rules all files may have that are given together: each variable of each rank is matched with
	// them.
	maxRules = 2000
)

// Parse reads one rule file; name is what errors and Source call it. The error is Problems: all that is wrong with
// the file.
func Parse(name string, text []byte) (*File, error) {
	p, problems := parseFile(name, text)
	if len(problems) > 0 {
		return nil, problems
	}
	return &p.File, nil
}

// parsed is a File, and where everything stands in it.
type parsed struct {
	File
	name   string
	places map[string]Problem // by path: "rules[0].match.name"; where it stands, nothing else
}

// at is where a path stands; where it doesn't, what it is part of.
func (p *parsed) at(path string) Problem {
	for {
		if at, ok := p.places[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return Problem{File: p.name, Line: 1, Column: 1}
		}
		path = path[:i]
	}
}

// parseFile checks each rule for itself.
func parseFile(name string, text []byte) (*parsed, Problems) {
	p := &parsed{name: name, places: map[string]Problem{}}
	problems := p.read(text)
	if len(problems) > 0 {
		return p, problems
	}
	note := func(path string, f finding) {
		if f.key != "" && path != "" {
			path += "."
		}
		at := p.at(path + f.key)
		at.What = f.err.Error()
		problems = append(problems, at)
	}
	for _, f := range p.checkLimits() {
		note("", f)
	}
	for i := range p.Identity {
		path := fmt.Sprintf("identity[%d]", i)
		p.Identity[i].Source = Source{name, p.at(path).Line}
		_, found := p.Identity[i].compile()
		for _, f := range found {
			note(path, f)
		}
	}
	if len(p.Rules) > maxRules {
		note("", finding{"rules", complain("write patterns that hold for many variables at once",
			"%d rules; at most %d are read", len(p.Rules), maxRules)})
		p.Rules = nil
	}
	for i := range p.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		p.Rules[i].Source = Source{name, p.at(path).Line}
		c, found := compileRule(p.Rules[i])
		if len(found) == 0 {
			found = checkRule(c)
		}
		for _, f := range found {
			note(path, f)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p, problems
}
