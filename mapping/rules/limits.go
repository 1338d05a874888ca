package rules

import (
	"cmp"
	"fmt"
)

// Limits bound the series that performance variables have on this node's page, as Prometheus counts them: a histogram
// is as many as it has lines. Zero stands for the default.
type Limits struct {
	Series            int `yaml:"series,omitempty"`              // of all ranks (default 500,000)
	SeriesPerJob      int `yaml:"series_per_job,omitempty"`      // default 200,000
	SeriesPerUser     int `yaml:"series_per_user,omitempty"`     // default 250,000
	SeriesPerRank     int `yaml:"series_per_rank,omitempty"`     // default 20,000
	SeriesPerVariable int `yaml:"series_per_variable,omitempty"` // of one variable in one rank (default 2,000)
}

// maxSeries is the highest limit.
const maxSeries = 1_000_000_000

var defaultLimits = Limits{500_000, 200_000, 250_000, 20_000, 2_000}

// limit is one of Limits.
type limit struct {
	key   string
	value *int
}

func (l *Limits) list() []limit {
	return []limit{
		{"series", &l.Series}, {"series_per_user", &l.SeriesPerUser}, {"series_per_job", &l.SeriesPerJob},
		{"series_per_rank", &l.SeriesPerRank}, {"series_per_variable", &l.SeriesPerVariable},
	}
}

// Check finds a limit below zero, which is none.
func (l Limits) Check() error {
	for _, one := range l.list() {
		if *one.value < 0 {
			return fmt.Errorf("limit %s is below zero: %d", one.key, *one.value)
		}
	}
	return nil
}

// WithDefaults is the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits { return l.or(defaultLimits) }

// or is the limits with others in place of zeros.
func (l Limits) or(others Limits) Limits {
	list := others.list()
	for i, one := range l.list() {
		*one.value = cmp.Or(*one.value, *list[i].value)
	}
	return l
}

// checkLimits finds what is wrong with limits.
func (p *parsed) checkLimits() (found findings) {
	defaults := defaultLimits
	list := defaults.list()
	for i, l := range p.Limits.list() {
		if _, there := p.places["limits."+l.key]; there && (*l.value < 1 || *l.value > maxSeries) {
			found.note("limits."+l.key, complain(fmt.Sprintf("write a number from 1 to %d, or leave it out for the "+
				"default of %d", maxSeries, *list[i].value), "the limit is %d", *l.value))
		}
	}
	return found
}
