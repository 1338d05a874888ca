package variables

import "github.com/mpit-exporter/mpit-exporter/mapping"

// holdings is the families that a rank holds, each with the variables it is made of. Most are made of one.
type holdings struct {
	first map[*mapping.Metric]*Variable
	parts map[*mapping.Metric]map[string]*Variable // all of them by labelKey, of those that have had several
}

func newHoldings() holdings {
	return holdings{map[*mapping.Metric]*Variable{}, map[*mapping.Metric]map[string]*Variable{}}
}

// part is the variable of a family whose series have these labels, by labelKey; nil: none.
func (h holdings) part(metric *mapping.Metric, labels string) *Variable {
	if parts, several := h.parts[metric]; several {
		return parts[labels]
	}
	if first := h.first[metric]; first != nil && first.labelKey() == labels {
		return first
	}
	return nil
}

// hold notes that v is a part of its family.
func (h holdings) hold(v *Variable, labels string) {
	first := h.first[v.Metric]
	switch parts := h.parts[v.Metric]; {
	case first == nil:
		h.first[v.Metric] = v
	case parts == nil:
		h.parts[v.Metric] = map[string]*Variable{first.labelKey(): first, labels: v}
	default:
		parts[labels] = v
	}
}

// release forgets that v is a part of its family; false: it isn't.
func (h holdings) release(v *Variable) bool {
	labels := v.labelKey()
	if h.part(v.Metric, labels) != v {
		return false
	}
	parts := h.parts[v.Metric]
	delete(parts, labels)
	if len(parts) == 0 {
		delete(h.first, v.Metric)
		delete(h.parts, v.Metric)
	}
	return true
}
