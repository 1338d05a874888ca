package exposition

import (
	"cmp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Owner is whom series belong to.
type Owner interface {
	Compare(other Owner) int  // the order of owners on the page
	Labels() []*dto.LabelPair // of all its series, sorted by name
	Begun() time.Time         // zero: not known
}

// labels are the labels of an entry, with those of its owner, as each format has them. The entries of an owner that
// are labelled alike, which are many, share them. What only some readers need is made when one comes, and kept.
type labels struct {
	text   string        // what stands between a name and a value
	fields string        // of a metric's message; "": not made yet
	set    attribute.Set // an attribute is called as the label is on the page, and all are text
	hasSet bool          // else it is not made yet
}

// labelMaker makes the labels of one owner's entries, once for each set of labels.
type labelMaker struct {
	shared []*dto.LabelPair // sorted by name
	made   map[string]*labels
	room   []byte
}

func newLabelMaker(o Owner) *labelMaker {
	return &labelMaker{shared: labelsOf(o), made: map[string]*labels{}}
}

// labelsOf is what all series of an owner have; nil is nobody.
func labelsOf(o Owner) []*dto.LabelPair {
	if o == nil {
		return nil
	}
	return o.Labels()
}

// of returns these labels, which are sorted by name, with the owner's.
func (m *labelMaker) of(own []mapping.Label) *labels {
	b := m.room[:0]
	eachLabel(m.shared, own, func(name, value string) {
		separator := byte(',')
		if len(b) == 0 {
			separator = '{'
		}
		b = append(append(append(b, separator), name...), `="`...)
		b = append(appendEscaped(b, value, true), '"')
	})
	if len(b) > 0 {
		b = append(b, '}')
	}
	b = append(b, ' ')
	m.room = b
	l, ok := m.made[string(b)]
	if !ok {
		l = &labels{text: string(b)}
		m.made[l.text] = l
	}
	return l
}

// eachLabel calls do for the labels of both lists, which are sorted by name, in the order of names.
func eachLabel(shared []*dto.LabelPair, own []mapping.Label, do func(name, value string)) {
	for _, l := range own {
		for len(shared) > 0 && shared[0].GetName() < l.Name {
			do(shared[0].GetName(), shared[0].GetValue())
			shared = shared[1:]
		}
		do(l.Name, l.Value)
	}
	for _, l := range shared {
		do(l.GetName(), l.GetValue())
	}
}

// makeSet makes the set of the labels, which are an owner's and these.
func (l *labels) makeSet(o Owner, own []mapping.Label) {
	var list []attribute.KeyValue
	eachLabel(labelsOf(o), own, func(name, value string) { list = append(list, attribute.String(name, value)) })
	l.set, l.hasSet = attribute.NewSet(list...), true
}

// LabelPairs are labels and shared ones together; both are sorted by name, and so is the result.
func LabelPairs(shared []*dto.LabelPair, own []mapping.Label) []*dto.LabelPair {
	if len(own) == 0 {
		return shared
	}
	pairs := make([]*dto.LabelPair, 0, len(own)+len(shared))
	for _, l := range own { // a copy, not to hold on to what the caller may change
		pairs = append(pairs, &dto.LabelPair{Name: &l.Name, Value: &l.Value})
	}
	pairs = append(pairs, shared...)
	slices.SortStableFunc(pairs, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return pairs
}

func compareLabels(a, b []mapping.Label) int {
	return slices.CompareFunc(a, b, func(a, b mapping.Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
}

// appendEscaped escapes backslashes, new lines and, where asked to, quotes.
func appendEscaped(b []byte, s string, quotes bool) []byte {
	for {
		i := strings.IndexAny(s, "\\\n\"")
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		switch c := s[i]; {
		case c == '\n':
			b = append(b, `\n`...)
		case c == '"' && !quotes:
			b = append(b, c)
		default:
			b = append(b, '\\', c)
		}
		s = s[i+1:]
	}
}
