package listing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// valued is a variable with its values in all ranks of a world, and on all objects.
type valued struct {
	name, unit string
	counts     bool // its values have a sum; of others the largest is shown
	sum, most  float64
	counted    float64         // of histograms: how many there were, of what
	what       string          // unit of counted; empty: it is no histogram
	rank       int             // in which it is largest
	objects    map[string]bool // "comm halo"
}

// world is the ranks of one MPI_COMM_WORLD.
type world struct {
	first     *api.RankStatus
	ranks     int
	cut       int
	variables map[string]*valued
}

// WriteValues writes the variables of each MPI_COMM_WORLD with their values, a line for each.
func WriteValues(t *strings.Builder, list *api.ValueList) {
	type key struct{ jobID, world, user string }
	worlds := map[key]*world{}
	var order []*world
	for i := range list.Ranks {
		r := &list.Ranks[i]
		of := key{r.Rank.JobID, r.Rank.World, r.Rank.User}
		if worlds[of] == nil {
			worlds[of] = &world{first: &r.Rank, variables: map[string]*valued{}}
			order = append(order, worlds[of])
		}
		to := worlds[of]
		to.ranks++
		to.cut += r.Cut
		to.add(r.Rank.Rank, r.Variables)
	}
	for _, one := range order {
		one.write(t)
	}
}

func (w *world) add(rank int, variables []api.VariableValues) {
	for i := range variables {
		v := &variables[i]
		name := cmp.Or(v.Name, v.Metric)
		to := w.variables[name]
		if to == nil {
			to = &valued{name: name, unit: v.Unit, counts: v.Kind == "counter" || v.Kind == "histogram",
				what: countedBy(v), most: math.Inf(-1), objects: map[string]bool{}}
			w.variables[name] = to
		}
		for _, s := range v.Series {
			value, err := strconv.ParseFloat(cmp.Or(s.Value, s.Sum), 64)
			if err != nil || math.IsNaN(value) {
				continue
			}
			counted, _ := strconv.ParseFloat(cmp.Or(s.Count, "0"), 64)
			to.sum += value
			to.counted += counted
			if value > to.most {
				to.most, to.rank = value, rank
			}
			if object := objectOf(s.Labels); object != "" {
				to.objects[object] = true
			}
		}
	}
}

// countedBy is the unit of what a histogram counts; empty: it is none.
func countedBy(v *api.VariableValues) string {
	switch {
	case v.Kind != "histogram":
		return ""
	case v.Distribution:
		return "{call}"
	}
	return "{event}"
}

// objectOf is the object that a series is of; "": none.
func objectOf(labels map[string]string) string {
	for bind := mpit.BindNone + 1; bind <= mpit.BindLast; bind++ {
		if name, is := labels[mapping.BindLabel(bind)]; is {
			return mapping.BindLabel(bind) + " " + name
		}
	}
	return ""
}

func (w *world) write(t *strings.Builder) {
	fmt.Fprintf(t, "%s\n", mapping.OneLine(title(w.first, units.Count(w.ranks, "rank"))))
	var list []*valued
	for _, v := range w.variables {
		if !math.IsInf(v.most, -1) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b *valued) int { return strings.Compare(a.name, b.name) })
	if len(list) == 0 {
		fmt.Fprintln(t, "No variable has a value: this library has none, or rules leave them out. exec --calls brings those "+
			"of MPI calls.")
	}
	var rows [][]string
	for _, v := range list {
		rows = append(rows, table.Clean(v.name, v.on(), v.value(), v.of()))
	}
	_ = table.Write(t, []string{"NAME", "ON", "VALUE", "OF"}, rows)
	if w.cut > 0 {
		fmt.Fprintf(t, "%d series had no room in the answer; choose with --rank\n", w.cut)
	}
	fmt.Fprintln(t)
}

// on is the object that a variable is of, or how many there are.
func (v *valued) on() string {
	kinds := map[string]int{}
	name, kind := "", ""
	for object := range v.objects {
		kind, name, _ = strings.Cut(object, " ")
		kinds[kind]++
	}
	switch {
	case len(v.objects) < 2:
		return table.Shorten(name, table.MaxCell)
	case len(kinds) > 1:
		return units.Count(len(v.objects), "object")
	}
	return units.Count(len(v.objects), kind)
}

// value is of all ranks and objects together, or the largest.
func (v *valued) value() string {
	switch {
	case v.what != "":
		return units.Value(v.unit, v.sum) + " in " + units.Value(v.what, v.counted)
	case v.counts:
		return units.Value(v.unit, v.sum)
	}
	return units.Value(v.unit, v.most)
}

// of is whose the value is.
func (v *valued) of() string {
	switch {
	case v.counts:
		return "all ranks"
	case v.most == 0:
		return "each rank"
	}
	return "rank " + strconv.Itoa(v.rank)
}
