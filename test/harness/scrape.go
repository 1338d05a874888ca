package harness

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Labels are a series' labels, or those that a series must have.
type Labels map[string]string

// With returns a copy with one label more.
func (l Labels) With(name, value string) Labels {
	c := maps.Clone(l)
	if c == nil {
		c = Labels{}
	}
	c[name] = value
	return c
}

// Series is one series of a scrape. Value is a histogram's sum.
type Series struct {
	Name   string
	Labels Labels
	Value  float64
	Metric *dto.Metric
}

func (s Series) String() string {
	return fmt.Sprintf("%s%v %v", s.Name, map[string]string(s.Labels), s.Value)
}

// Scrape is the parsed answer of /metrics.
type Scrape struct {
	Body     []byte
	Families map[string]*dto.MetricFamily
}

// ParseText reads an exposition in Prometheus' text format.
func ParseText(body []byte) (*Scrape, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("parsing the exposition: %w", err)
	}
	return &Scrape{Body: body, Families: families}, nil
}

// Select returns the series of a family that have all the given labels.
func (s *Scrape) Select(name string, match Labels) []Series {
	var found []Series
	for _, metric := range s.Families[name].GetMetric() {
		series := Series{Name: name, Labels: Labels{}, Value: value(metric), Metric: metric}
		for _, pair := range metric.GetLabel() {
			series.Labels[pair.GetName()] = pair.GetValue()
		}
		matches := true
		for label, want := range match {
			matches = matches && series.Labels[label] == want
		}
		if matches {
			found = append(found, series)
		}
	}
	return found
}

// One returns the only series that has the given labels.
func (s *Scrape) One(name string, match Labels) (Series, error) {
	found := s.Select(name, match)
	if len(found) != 1 {
		return Series{}, fmt.Errorf("%d series, not one, of %s with %v; the family: %v", len(found), name, match,
			s.Select(name, nil))
	}
	return found[0], nil
}

// Expect returns nil if the only series that has the given labels has the given value.
func (s *Scrape) Expect(name string, match Labels, want float64) error {
	got, err := s.One(name, match)
	if err != nil {
		return err
	}
	if got.Value != want {
		return fmt.Errorf("%s with %v is %v, not %v", name, match, got.Value, want)
	}
	return nil
}

// Values returns the sorted, distinct values that a label has in a family's series with the given labels.
func (s *Scrape) Values(name string, match Labels, label string) []string {
	values := []string{}
	for _, series := range s.Select(name, match) {
		values = append(values, series.Labels[label])
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// Names returns the sorted names of the families whose name begins with prefix.
func (s *Scrape) Names(prefix string) []string {
	names := []string{}
	for name := range s.Families {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Histogram != nil:
		return m.Histogram.GetSampleSum()
	case m.Summary != nil:
		return m.Summary.GetSampleSum()
	default:
		return m.Untyped.GetValue()
	}
}

// excerpt is what a reader of a failed test may want to see: the series, without comments and zeros, and not endless.
func (s *Scrape) excerpt() string {
	const limit = 12000
	var b strings.Builder
	for line := range strings.SplitSeq(string(s.Body), "\n") {
		if strings.HasPrefix(line, "mpit_") && !strings.HasSuffix(line, " 0") &&
			!strings.HasPrefix(line, "mpit_pvar_info") {
			fmt.Fprintln(&b, line)
		}
		if b.Len() > limit {
			return b.String() + "…"
		}
	}
	return b.String()
}
