package api

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Comms is what a rank has told of its communicators so far. The zero value has been told nothing. It is not safe for
// concurrent use.
type Comms struct {
	Most int // how many are known at most: those that changed last

	known  []mpit.Comm // what changed last stands last
	layout *mpit.Layout
	told   []Comm // of those that somebody else is in, too
}

// Take takes in what a sample of a rank in that world says of communicators, and adds it to what it says of calls.
func (cs *Comms) Take(s *mpit.Sample, world string, calls *Calls) {
	if len(s.Comms) > 0 || s.Layout != nil && s.Layout != cs.layout {
		cs.update(s, world)
	}
	if calls == nil {
		return
	}
	calls.Comms = cs.told
	for i := range calls.Threads {
		call := calls.Threads[i].Call
		if call == nil {
			continue
		}
		t := &s.UnderWay.Threads[i]
		call.Number = t.Number
		if id, known := cs.on(t.Bind, t.Object); known {
			call.Comm = commID(id, world)
		}
	}
}

func (cs *Comms) update(s *mpit.Sample, world string) {
	// The first sample has all of them, the oldest first: the world is one of those that are kept.
	for _, c := range s.Comms[:min(len(s.Comms), cs.Most)] {
		cs.known = slices.DeleteFunc(cs.known, func(k mpit.Comm) bool { return k.Object == c.Object })
		if c.Identity != 0 {
			cs.known = append(cs.known, c)
		}
	}
	cs.known = slices.Delete(cs.known, 0, max(0, len(cs.known)-cs.Most))
	if s.Layout != nil {
		cs.layout = s.Layout
	}
	objects := make(map[uint32]*mpit.Object, len(cs.known))
	for _, k := range cs.known {
		objects[k.Object] = nil
	}
	if cs.layout != nil {
		for i := range cs.layout.Objects {
			o := &cs.layout.Objects[i]
			if _, wanted := objects[o.ID]; wanted && o.Kind == mpit.BindComm {
				objects[o.ID] = o
			}
		}
	}
	gone := func(k mpit.Comm) bool { return objects[k.Object] == nil }
	cs.known = slices.DeleteFunc(cs.known, gone)
	cs.told = nil // others have the one before
	for _, k := range cs.known {
		o := objects[k.Object]
		if o.Size <= 1 && !o.Inter {
			continue
		}
		c := Comm{ID: commID(k.Identity, world), Name: strings.Clone(mapping.CleanName(o.Name)), Size: o.Size,
			Inter: o.Inter, object: o.ID}
		if k.Counted {
			c.Number = new(k.Begun)
		}
		cs.told = append(cs.told, c)
	}
}

// on is the identity of the communicator that a call names, or on which the window or file that it names was made.
func (cs *Comms) on(bind mpit.Bind, object uint32) (identity uint64, known bool) {
	if bind != mpit.BindComm && cs.layout != nil {
		i := slices.IndexFunc(cs.layout.Objects, func(o mpit.Object) bool { return o.ID == object && o.Kind == bind })
		if i < 0 {
			return 0, false
		}
		object = cs.layout.Objects[i].On
	}
	for _, k := range cs.known {
		if k.Object == object {
			return k.Identity, true
		}
	}
	return 0, false
}

// commID is an identity as the JSON API has it: ranks know their own world's communicators only, and a job may have
// several worlds.
func commID(identity uint64, world string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(world))
	return fmt.Sprintf("%016x", identity^h.Sum64())
}
