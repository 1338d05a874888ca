package variables

import (
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// reloading is rules that come into force with the next plan.
type reloading struct {
	mapper *Mapper
	at     int64 // Unix nanoseconds
}

// Reload puts the rules of another Mapper into force, at a time of the exporter's clock, with the next Update. A
// variable whose meaning they change counts from then on.
func (c *Catalogue) Reload(m *Mapper, at time.Time) {
	c.reloading = &reloading{m, mapping.UnixNano(at)}
	c.categorised = !m.rules.ByCategory() || c.answered
}

// before is what a variable was until rules changed.
type before struct {
	meaning uint32
	held    bool
}

// reload finds out anew what all variables become.
func (c *Catalogue) reload() {
	at := c.reloading.at
	had := make(map[*Variable]before, len(c.all))
	holders := map[string]*Variable{} // by family and labels
	for _, v := range c.all {
		had[v] = before{v.Meaning, v.Held}
		if v.Metric != nil {
			holders[v.Metric.Name+v.labelKey()] = v
		}
	}
	c.Close()
	c.mapper, c.rules, c.reloading = c.reloading.mapper, c.reloading.mapper.rules.ForLibrary(c.process.Library), nil
	c.families, c.former, c.ratios = newHoldings(), c.ratios, map[variableKey]*Variable{}
	c.all = slices.DeleteFunc(c.all, func(v *Variable) bool { return v.IsRatio() })
	for _, reason := range c.refused {
		c.dropped[reason]-- // or it would be counted twice
	}
	c.refused = nil
	c.held = len(c.byKey)
	for _, v := range c.byKey {
		if v.left != nil {
			c.dropped[v.left.reason]-- // or it would be counted twice
			v.left = nil
		}
		v.Held, v.Wanted, v.adopted, v.With = true, true, false, nil
		v.Spec = mapping.Unknown(v.Info.Class) // what it was is not to be found by others that are resolved
	}
	c.resolve()
	c.former = nil
	for _, v := range c.byKey {
		was := had[v]
		if !v.Held && v.Meaning == was.meaning {
			continue
		}
		if v.Held {
			v.Spec, v.Meaning = mapping.Unknown(v.Info.Class), 0
		}
		other := v.Metric != nil && holders[v.Metric.Name+v.labelKey()] != nil
		switch {
		case was.held && v.Held: // nothing has been decided
		case v.Held || was.meaning != 0 || other || v.doubtful():
			v.Since = at
		case !was.held: // else it may have been shown before that
			v.Since = 0
		}
	}
}
