package rules

import "github.com/mpit-exporter/mpit-exporter/mapping"

// List is one word or several: YAML may write either. Empty: any.
type List []string

// Match chooses variables. What is empty matches everything; all that is there must match. Name and Regexp exclude
// each other.
type Match struct {
	Library   List   `yaml:"library,omitempty"`   // openmpi, mpich, mvapich, intelmpi, craympich
	Version   string `yaml:"version,omitempty"`   // of the library: ">=4.0 <5.1"
	Name      string `yaml:"name,omitempty"`      // * stands for any characters, ? for one
	Regexp    string `yaml:"regexp,omitempty"`    // RE2, for the whole name
	Class     List   `yaml:"class,omitempty"`     // as the library declares it
	Bind      List   `yaml:"bind,omitempty"`      // comm, win, file …, none
	Verbosity List   `yaml:"verbosity,omitempty"` // user_basic … mpidev_all
}

// Source says where a rule stands. A rule made in Go has none.
type Source struct {
	File string // as it was given; for shipped rules "defaults/openmpi.yaml" and so on
	Line int    // of the rule's first line, from 1
}

// Rule says what the variables it matches really are. For each property the first rule that matches and sets it wins.
//
// Groups of Match.Regexp that have a name become labels of the series, except those that Name uses; all of them are one
// property: the first matching rule that has any decides.
type Rule struct {
	Source Source `yaml:"-"`

	Match Match `yaml:"match"`

	Drop  *bool    `yaml:"drop,omitempty"`
	Class string   `yaml:"class,omitempty"` // what it really is, where the library declares it otherwise
	Unit  string   `yaml:"unit,omitempty"`  // of the values as read: By, KiBy, s, us, {message}, … or none
	Scale *float64 `yaml:"scale,omitempty"` // factor besides the unit's own

	// Name is the metric's name without mpit_, unit and _total; the class word is not added to it. $1 is what the first *
	// of Match.Name stood for, or the first group of Match.Regexp, $2 the second; ${function} is the group of that name.
	Name string `yaml:"name,omitempty"`
	Help string `yaml:"help,omitempty"` // a sentence for HELP

	Merge    mapping.Merge `yaml:"merge,omitempty"`    // of objects that share a name
	Elements mapping.Merge `yaml:"elements,omitempty"` // of an array
	// a series only once it is not 0; with elements peer or index, for each element
	Nonzero *bool `yaml:"nonzero,omitempty"`
	// false: no label for the object's name, all objects become one
	Object *bool `yaml:"object,omitempty"`
	// of a timer: the COUNTER of its events, where it is not the one of the same name
	Companion string    `yaml:"companion,omitempty"`
	Buckets   []float64 `yaml:"buckets,omitempty"` // of a histogram: upper bounds in seconds, or in bytes
	// the source starts anywhere: count from the value at handle allocation
	Offset *bool `yaml:"offset,omitempty"`
	// true: opened where agents open it on request only (mpit.Variable.OnRequest)
	Open *bool `yaml:"open,omitempty"`
}
