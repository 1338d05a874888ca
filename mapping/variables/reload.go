package variables

import (
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
}

// reload finds out anew what all variables become.
func (c *Catalogue) reload() {
	at := c.reloading.at
	had := make(map[*Variable]uint32, len(c.all)) // what they meant before
	holders := map[string]*Variable{}             // by family and labels
	for _, v := range c.all {
		had[v] = v.Meaning
		if v.Metric != nil {
			holders[v.Metric.Name+v.labelKey()] = v
		}
	}
	c.Close()
	c.mapper, c.rules, c.reloading = c.reloading.mapper, c.reloading.mapper.rules.ForLibrary(c.process.Library), nil
	c.parts = map[part]*Variable{}
	known := c.known()
	for _, v := range known {
		if v.left != nil {
			c.dropped[v.left.reason]-- // or it would be counted twice
			v.left = nil
		}
		v.adopted, v.With = false, nil
	}
	c.resolve(c.all, known)
	for _, v := range known {
		was := had[v]
		if v.Meaning == was {
			continue
		}
		v.Since = 0
		if other := v.Metric != nil && holders[v.Metric.Name+v.labelKey()] != nil; was != 0 || other || v.doubtful() {
			v.Since = at
		}
	}
}
