package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// File is what one rule file says.
type File struct {
	Rank     RankMode  `yaml:"rank,omitempty"` // of variables for which no rule says it
	Limits   Limits    `yaml:"limits,omitempty"`
	Identity []Relabel `yaml:"identity,omitempty"`
	Rules    []Rule    `yaml:"rules,omitempty"`
}

// Limits bound the series that performance variables have on this node's page, as Prometheus counts them: a histogram is as
// many as it has lines. Zero stands for the default.
type Limits struct {
	Series            int `yaml:"series,omitempty"`              // of all ranks (default 500,000)
	SeriesPerJob      int `yaml:"series_per_job,omitempty"`      // default 200,000
	SeriesPerUser     int `yaml:"series_per_user,omitempty"`     // default 250,000
	SeriesPerRank     int `yaml:"series_per_rank,omitempty"`     // default 20,000
	SeriesPerVariable int `yaml:"series_per_variable,omitempty"` // of one variable in one rank (default 2,000)
}

// Relabel changes what a rank is called, after the manner of Prometheus' relabel_configs: the values of SourceLabels, joined by
// Separator, are matched with Regex as a whole; TargetLabel becomes Replacement.
type Relabel struct {
	Source Source `yaml:"-"`

	SourceLabels []string `yaml:"source_labels,omitempty"` // jobid, world, rank, user, host, executable, library, jobname, partition, source, cgroup_jobid, env_<NAME>
	Separator    *string  `yaml:"separator,omitempty"`     // default ;
	Regex        string   `yaml:"regex,omitempty"`         // default (.*)
	TargetLabel  string   `yaml:"target_label"`            // jobid, world, jobname or partition
	Replacement  *string  `yaml:"replacement,omitempty"`   // default $1
}

// Settings is what all files together say, and the shipped rules behind theirs.
type Settings struct {
	Rank     RankMode
	Limits   Limits // with defaults
	Identity []Relabel
	Rules    []Rule
}

// Parse reads one rule file; name is what errors and Source call it.
func Parse(name string, text []byte) (*File, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	f := &File{}
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	for i := range f.Rules {
		f.Rules[i].Source.File = name
	}
	return f, nil
}

// Load reads rule files, and of directories all files that end in .yaml or .yml, in the order of their names. Without paths it
// is the defaults.
func Load(paths []string) (*Settings, error) {
	if len(paths) > 0 {
		return nil, errors.New("not there yet")
	}
	return &Settings{Rank: RankKeep, Rules: Defaults()}, nil
}

// UnmarshalYAML takes one word or a list of them.
func (l *List) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*l = List{node.Value}
		return nil
	}
	var words []string
	if err := node.Decode(&words); err != nil {
		return err
	}
	*l = words
	return nil
}
