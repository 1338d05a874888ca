package exposition

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// ScopeName is the instrumentation scope of all that is here.
const ScopeName = "github.com/mpit-exporter/mpit-exporter"

// Family describes one metric family of the exporter's own: everything on the page that is not a performance variable.
type Family struct {
	Name string
	Help string
	Type mapping.Kind
	// what its values count, as OpenTelemetry annotates a unit: {rank}; "": nothing, or the name has its unit
	Counts string
	Labels []string // besides the scraper's, and besides `dup` on what stands once per rank or world
}

// otelFamily is what a family is in OpenTelemetry, besides what Prometheus says of it too.
type otelFamily struct {
	name string
	unit string // UCUM; "": none is known
	adds bool   // a gauge of Prometheus' whose values may be summed up: there it is a sum that is not monotonic
}

// otelSpaces are the first words of the names of the exporter's own families; dots stand behind them. Longer ones
// come first.
var otelSpaces = []string{
	"mpit_rank_agent_", "mpit_rank_", "mpit_exporter_", "mpit_pcontrol_", "mpit_pvar_",
	"mpit_process_", "mpit_object_", "mpit_category_", "mpit_cvar_", "mpit_",
}

// OTel is what the family is called in OpenTelemetry, and its unit there. The usual translation gives its name on
// /metrics again: the unit and _total are not in the name, as that adds them.
func (f *Family) OTel() (name, unit string) {
	name, unit = f.Name, f.Counts
	if f.Type == mapping.KindCounter {
		name = strings.TrimSuffix(name, "_total")
	}
	if base, timed := strings.CutSuffix(name, "_seconds"); timed {
		name, unit = base, "s"
	}
	for _, space := range otelSpaces {
		if rest, found := strings.CutPrefix(name, space); found {
			name = strings.ReplaceAll(space, "_", ".") + rest
			break
		}
	}
	if base, info := strings.CutSuffix(name, "_info"); info {
		name = base + ".info"
	}
	return name, unit
}
