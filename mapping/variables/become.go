package variables

import (
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// resolve finds out what these variables become, but for those that are left out already. known is all that there are.
func (c *Catalogue) resolve(list []*Variable, known map[variableKey]*Variable) {
	var fresh, changed []*Variable // changed have a spec that is not shared yet
	asks := map[*Variable]*mapping.Wanted{}
	for _, v := range list {
		if v.left != nil {
			continue
		}
		s, want, reason := c.mapper.basis.Become(c.rules.Decide(v.Info), v.Info)
		v.Spec, v.Wanted = &s, reason == ""
		changed = append(changed, v)
		if reason != "" {
			c.drop(v, reason, "")
			continue
		}
		asks[v] = &want
		fresh = append(fresh, v)
	}
	for _, v := range fresh {
		if v.Companion == "" {
			continue
		}
		v.findCompanion(known[variableKey{v.Companion, mpit.ClassCounter}])
		if v.With != nil {
			changed = append(changed, v.With)
		}
	}
	for _, v := range fresh {
		if reason, why := c.join(v, asks[v]); reason != "" {
			v.Wanted, v.With = false, nil
			c.drop(v, reason, why)
		}
	}
	for _, v := range changed {
		var enum *mpit.Enum
		if v.Mode == mapping.ModeState && v.Metric != nil {
			enum = v.Info.Enum
		}
		v.Meaning = v.means()
		v.Spec = c.mapper.specs.share(*v.Spec, enum)
	}
	for _, v := range fresh {
		if v.With != nil {
			v.With.Wanted = true
		}
		if v.doubtful() {
			v.Since = max(v.Since, mapping.UnixNano(c.process.Older))
		}
	}
}

// doubtful says whether nobody can vouch for what the variable had counted before this exporter met its process: it
// may have wrapped, or it is not known in which intervals a timer's observations came.
func (v *Variable) doubtful() bool {
	return v.Mode == mapping.ModeCount && v.Metric != nil && !v.Exact &&
		(v.Bits < 64 && v.Number != mapping.Floating || v.Metric.Kind == mapping.KindHistogram)
}

// findCompanion takes the counter of a timer's events, nil where there is none. It must be bound to the same, and be
// merged in the same way: then each cell of the timer has the counter's handles of the same objects. Without a
// companion, or with one that can't be it, the timer has none.
func (v *Variable) findCompanion(with *Variable) {
	switch {
	case with == nil, with.Mode != mapping.ModeCount, with.Number == mapping.NotNumber, with.Info.Bind != v.Info.Bind:
		v.Companion = ""
	case with.Structure == v.Structure:
		v.With = with
	case with.left != nil && with.left.reason == mapping.ReasonRule && !with.adopted:
		follows := *with.Spec
		follows.Structure, follows.Nonzero = v.Structure, v.Nonzero
		with.Spec, v.With = &follows, with
	default:
		v.Companion = ""
	}
	if v.With != nil {
		with.adopted = true
	}
}

// join makes v a holder of its family, in this rank and in all. Its spec is not shared yet.
func (c *Catalogue) join(v *Variable, want *mapping.Wanted) (_ mapping.Reason, why string) {
	metric, reason, conflict := c.mapper.families.acquire(want.Metric, c.process.User,
		func() string { return c.mapper.basis.Help(v.Info, v.Spec, want) })
	if reason != "" {
		return reason, conflict
	}
	key := part{metric, v.labelKey()}
	if other := c.parts[key]; other != nil {
		c.mapper.families.release(metric)
		return mapping.ReasonLabelConflict, fmt.Sprintf("%s is already made of %s, class %s, with the same labels",
			want.Name, mapping.Fold(other.Info.Name, 200), mapping.NameOf(other.Info.Class))
	}
	if len(c.parts) >= maxParts {
		c.mapper.families.release(metric)
		return mapping.ReasonFamiliesOverMax, ""
	}
	v.Metric = metric
	c.parts[key] = v
	return "", ""
}

// meanings is one for all Mappers: what means the same in two of them has the same number.
var meanings = maphash.MakeSeed()

// means stands for what the values of the variable's series are, but for HELP: 0 is nothing.
func (v *Variable) means() uint32 {
	if v.Metric == nil {
		return 0
	}
	what := v.Plain
	what.Metric, what.Open, what.Unit = nil, false, ""
	with := 0.0
	if v.With != nil {
		with = v.With.Scale
	}
	var hash maphash.Hash
	hash.SetSeed(meanings)
	maphash.WriteComparable(&hash, what)
	maphash.WriteComparable(&hash, with)
	maphash.WriteComparable(&hash, mapping.Metric{Name: v.Metric.Name, Kind: v.Metric.Kind, OTelKind: v.Metric.OTelKind})
	maphash.WriteComparable(&hash, labelText(v.Labels))
	if v.Metric.Kind == mapping.KindHistogram {
		for _, b := range v.Buckets {
			maphash.WriteComparable(&hash, b)
		}
	}
	sum := hash.Sum64()
	return max(1, uint32(sum^sum>>32))
}

// labelKey is what tells the series of two variables of one family apart: what they are bound to, and the labels that
// rules give. Elements and numbers of objects do not, for one variable can have series with such a label and without.
func (v *Variable) labelKey() string { return v.Label + labelText(v.Labels) }

// labelText tells labels from any others.
func labelText(labels []mapping.Label) string {
	if len(labels) == 0 {
		return ""
	}
	var b []byte
	for _, l := range labels {
		b = strconv.AppendQuote(strconv.AppendQuote(b, l.Name), l.Value)
	}
	return string(b)
}
