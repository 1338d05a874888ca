package rules

import (
	"fmt"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// File is what one rule file says.
type File struct {
	Rank     mapping.RankMode `yaml:"rank,omitempty"` // of variables for which no rule says it
	Limits   Limits           `yaml:"limits,omitempty"`
	Identity []Relabel        `yaml:"identity,omitempty"`
	Rules    []Rule           `yaml:"rules,omitempty"`
}

// Limits bound the series that performance variables have on this node's page, as Prometheus counts them: a histogram
// is as many as it has lines. Zero stands for the default.
type Limits struct {
	Series            int `yaml:"series,omitempty"`              // of all ranks (default 500,000)
	SeriesPerJob      int `yaml:"series_per_job,omitempty"`      // default 200,000
	SeriesPerUser     int `yaml:"series_per_user,omitempty"`     // default 250,000
	SeriesPerRank     int `yaml:"series_per_rank,omitempty"`     // default 20,000
	SeriesPerVariable int `yaml:"series_per_variable,omitempty"` // of one variable in one rank (default 2,000)
}

// Defaults of Limits.
const (
	DefaultSeries            = 500_000
	DefaultSeriesPerJob      = 200_000
	DefaultSeriesPerUser     = 250_000
	DefaultSeriesPerRank     = 20_000
	DefaultSeriesPerVariable = 2_000
)

// Relabel changes what a rank is called, after the manner of Prometheus' relabel_configs: the values of SourceLabels,
// joined by Separator, are matched with Regex as a whole; TargetLabel becomes Replacement.
type Relabel struct {
	Source Source `yaml:"-"`

	// jobid, world, rank, user, host, executable, library, jobname, partition, source, cgroup_jobid, env_<NAME>
	SourceLabels []string `yaml:"source_labels,omitempty"`
	Separator    *string  `yaml:"separator,omitempty"`   // default ;
	Regex        string   `yaml:"regex,omitempty"`       // default (.*)
	TargetLabel  string   `yaml:"target_label"`          // jobid, world, jobname or partition
	Replacement  *string  `yaml:"replacement,omitempty"` // default $1
}

// Settings is what all files together say, and the shipped rules behind theirs.
type Settings struct {
	Rank     mapping.RankMode
	Limits   Limits // with defaults
	Identity []Relabel
	Rules    []Rule
}

// maxFile is how large a rule file may be, in bytes.
const maxFile = 1 << 20

// Parse reads one rule file; name is what errors and Source call it. The error is Problems: all that is wrong with
// the file.
func Parse(name string, text []byte) (*File, error) {
	p, problems := parseFile(name, text)
	if len(problems) == 0 {
		all := together{partly: true}
		problems = append(all.add(p), all.check()...)
	}
	if len(problems) > 0 {
		return nil, sorted(problems)
	}
	return &p.File, nil
}

// parsed is a File whose rules are compiled, and where everything stands in it.
type parsed struct {
	File
	name     string
	compiled []*compiledRule
	places   map[string]place // by path: "rules[0].match.name"
	broken   map[string]bool  // paths that could not be read
}

// at is where a path stands; where it doesn't, what it is part of.
func (p *parsed) at(path string) place {
	for {
		if at, ok := p.places[path]; ok {
			return at
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return place{1, 1}
		}
		path = path[:i]
	}
}

// parseFile checks each rule for itself. What rules have to do with one another is together's.
func parseFile(name string, text []byte) (*parsed, Problems) {
	p := &parsed{name: name}
	r := reader{file: name, places: map[string]place{}}
	r.read(text, &p.File)
	p.places, p.broken = r.places, r.broken
	note := func(path string, f finding) {
		if f.key != "" && path != "" {
			path += "."
		}
		r.problems = append(r.problems, f.problem(name, p.at(path+f.key)))
	}
	for _, f := range p.checkHead() {
		note("", f)
	}
	for i := range p.Identity {
		path := fmt.Sprintf("identity[%d]", i)
		p.Identity[i].Source = Source{name, p.at(path).line}
		for _, f := range checkRelabel(&p.Identity[i]) {
			if !r.broken[path] || f.key != "" && f.key != "replacement" {
				note(path, f)
			}
		}
	}
	if len(p.Rules) > maxRules {
		r.problem(p.at("rules"), fmt.Sprintf("%d rules; at most %d are read", len(p.Rules), maxRules),
			"write patterns that hold for many variables at once")
		p.Rules = nil
	}
	for i := range p.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		p.Rules[i].Source = Source{name, p.at(path).line}
		c, found := compileRule(p.Rules[i])
		if !r.broken[path] {
			found = append(found, checkRule(c)...)
		}
		for _, f := range found {
			if !r.broken[path] || f.key != "name" && f.key != "companion" { // whose groups may be what could not be read
				note(path, f)
			}
		}
		p.compiled = append(p.compiled, c)
	}
	return p, r.problems
}
