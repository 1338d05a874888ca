package exposition

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// Owner is whom series belong to; the zero Owner is nobody.
type Owner struct {
	Place  string          // owners stand on the page in this order
	Labels []mapping.Label // of all its series
	Begun  time.Time       // zero: not known
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
	owner *Owner
	made  map[string]*labels
	room  []byte
	all   []mapping.Label
}

func newLabelMaker(o *Owner) *labelMaker { return &labelMaker{owner: o, made: map[string]*labels{}} }

// withOwner appends these labels and the owner's, sorted by name, to none.
func withOwner(none []mapping.Label, o *Owner, own []mapping.Label) []mapping.Label {
	all := append(append(none, own...), o.Labels...)
	SortLabels(all)
	return all
}

// SortLabels sorts labels by name.
func SortLabels(all []mapping.Label) {
	slices.SortStableFunc(all, func(a, b mapping.Label) int { return strings.Compare(a.Name, b.Name) })
}

// of returns these labels, which are sorted by name, with the owner's.
func (m *labelMaker) of(own []mapping.Label) *labels {
	b := m.room[:0]
	m.all = withOwner(m.all[:0], m.owner, own)
	for _, l := range m.all {
		separator := byte(',')
		if len(b) == 0 {
			separator = '{'
		}
		b = append(append(append(b, separator), l.Name...), `="`...)
		b = append(appendEscaped(b, l.Value, true), '"')
	}
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
