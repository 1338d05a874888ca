package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// variables are a table for each unit: bytes aren't compared with seconds.
func (v *View) variables(m *Movement) (grids []grid) {
	still := 0
	for _, unit := range []struct{ title, is string }{{"Time", "s"}, {"Bytes", "By"}, {"Messages", "{message}"},
		{"Others", ""}} {
		var list []Series
		for _, s := range m.Series {
			of := s.Unit
			if of != "s" && of != "By" && of != "{message}" {
				of = ""
			}
			switch {
			case of != unit.is:
			case s.Moves() || m.Seconds == 0:
				list = append(list, s)
			default:
				still++
			}
		}
		if len(list) > 0 {
			grids = append(grids, v.group(unit.title, list, m.Seconds > 0))
		}
	}
	if len(grids) > 0 && still > 0 {
		last := &grids[len(grids)-1]
		last.notes = append(last.notes, fmt.Sprintf("Not moving: %d (mpit-exporter list)", still))
	}
	return grids
}

// group is the variables of one unit.
func (v *View) group(title string, list []Series, rates bool) grid {
	order := orderOf(v.Order, variableOrders)
	slices.SortStableFunc(list, func(a, b Series) int {
		switch order {
		case "rate":
			return cmp.Or(cmp.Compare(math.Abs(b.Rate), math.Abs(a.Rate)), cmp.Compare(b.Value, a.Value))
		case "value":
			return cmp.Compare(b.Value, a.Value)
		}
		return 0 // they are sorted by name
	})
	g := grid{title: title, order: order, columns: []column{{"RATE", true, "rate"}, {"MOST IN", true, ""},
		{"VALUE", true, "value"}, {"EVENTS", true, ""}, {"MEAN", true, ""}, {"VARIABLE", false, "name"}}}
	histograms := slices.ContainsFunc(list, func(s Series) bool { return s.Histogram })
	for i := range list {
		s := &list[i]
		unit := strings.TrimSuffix(s.Unit, "{message}") // the title says it
		rate, who, events, mean := "", "", "", ""
		if rates {
			rate = units.Value(unit, s.Rate) + "/s"
		}
		switch {
		case s.MostRate == 0:
		case s.Most == Together:
			who = "all ranks"
		default:
			who = "rank " + strconv.Itoa(s.Most)
		}
		if s.Histogram && rates {
			events = units.Number(s.Events) + "/s"
		}
		if s.Mean > 0 {
			mean = units.Value(unit, s.Mean)
		}
		g.rows = append(g.rows, cells(Usual, rate, who, units.Value(unit, s.Value), events, mean,
			s.Metric+s.Labels))
	}
	if !histograms {
		g.columns = slices.Delete(g.columns, 3, 5)
		for i := range g.rows {
			g.rows[i] = slices.Delete(g.rows[i], 3, 5)
		}
	}
	return g
}
