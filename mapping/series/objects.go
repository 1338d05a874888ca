package series

import (
	"cmp"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// ObjectInfo is the objects of one kind that share a name.
type ObjectInfo struct {
	Kind   mpit.Bind
	Name   string      // cleaned
	Number int         // of such objects alive
	Object mpit.Object // the object itself where Number is 1, otherwise zero
	On     string      // name of the communicator that this object was made on, cleaned; "" none, or not known
}

// Objects is the objects that are alive, by kind and name. The slice belongs to the Rank and changes with its layout.
func (r *Rank) Objects() []ObjectInfo {
	if r.objects != nil || r.layout == nil {
		return r.objects
	}
	type place struct {
		kind mpit.Bind
		name string
	}
	comms := map[uint32]string{}
	for i := range r.layout.Objects {
		if o := &r.layout.Objects[i]; o.Kind == mpit.BindComm {
			comms[o.ID] = mapping.CleanName(o.Name)
		}
	}
	index := map[place]int{}
	r.objects = []ObjectInfo{}
	for i := range r.layout.Objects {
		o := &r.layout.Objects[i]
		p := place{o.Kind, mapping.CleanName(o.Name)}
		k, ok := index[p]
		if !ok {
			index[p] = len(r.objects)
			r.objects = append(r.objects, ObjectInfo{Kind: p.kind, Name: p.name, Number: 1, Object: *o, On: comms[o.On]})
			continue
		}
		r.objects[k].Number++
		r.objects[k].Object, r.objects[k].On = mpit.Object{}, ""
	}
	slices.SortFunc(r.objects, func(a, b ObjectInfo) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return r.objects
}
