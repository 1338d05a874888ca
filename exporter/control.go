package exporter

import (
	"github.com/mpit-exporter/mpit-exporter/exporter/control"
)

// Control returns what serves the control socket: it writes to the Exporter's ranks.
func (e *Exporter) Control() *control.Server { return e.control }

// targets are the ranks that are connected.
func (e *Exporter) targets() []control.Target {
	g := e.lock()
	defer g.unlock()
	var list []control.Target
	for _, r := range g.table.connected() {
		hello := r.line.session.Hello()
		list = append(list, control.Target{
			Conn: r.line.session, ID: r.ID, UID: r.line.session.Peer().UID, Size: hello.Size,
			WriteAllowed: hello.WriteAllowed,
		})
	}
	return list
}

// written has the control variables of ranks read anew, so that mpit_cvar_ranks shows what they have, not what was
// asked for. It returns at once; the values are on the page soon, and only those that Config.ControlVariables names.
// Ranks that have gone are left out.
func (e *Exporter) written(ids ...Identity) {
	g := e.lock()
	defer g.unlock()
	for _, id := range ids {
		if i, found := g.table.find(id); found {
			g.table.ordered[i].controls.told = true
		}
	}
	g.inquire()
}
