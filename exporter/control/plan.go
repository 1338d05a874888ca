package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// checkTimeout is how long all ranks together may take to describe a variable and send its value.
	checkTimeout = 15 * time.Second
	// writeTimeout is how long one rank may take to write a variable, and then to read it.
	writeTimeout = 5 * time.Second
	// restoreTimeout is how long restoring the old values of all ranks may take.
	restoreTimeout = 10 * time.Second
	// maxChecks is how many ranks are asked at once: each is sent its whole list of control variables.
	maxChecks = 8
	// A rank that is making or freeing objects is asked for them again.
	busyRetries = 100
	busyPause   = 20 * time.Millisecond
)

// plan is what is to be done in one rank.
type plan struct {
	target   Target
	variable mpit.ControlVariable
	object   uint32
	old, new mpit.CvarValue
}

func (p *plan) format(v mpit.CvarValue) *string {
	return new(cvar.Format(p.variable.Datatype, p.variable.Enum, v))
}

func (p *plan) read(ctx context.Context) (mpit.CvarValue, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.target.Conn.ReadCvar(ctx, p.variable.Index, p.object)
}

func (p *plan) write(ctx context.Context, v mpit.CvarValue) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.target.Conn.WriteCvar(ctx, p.variable.Index, p.object, v)
}

// describe asks all ranks for the variable and its present value.
func (w *world) describe(ctx context.Context, req *Request) ([]plan, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	plans := make([]plan, len(w.ranks))
	failed := make([]error, len(w.ranks))
	var asking errgroup.Group
	asking.SetLimit(maxChecks)
	for i, t := range w.ranks {
		asking.Go(func() error {
			plans[i].target = t
			if err := plans[i].describe(ctx, req); err != nil {
				failed[i] = inRank(t.ID.Rank, err)
			}
			return nil
		})
	}
	_ = asking.Wait()
	return plans, cmp.Or(failed...)
}

// inRank prefixes an error with the rank that it happened in.
func inRank(rank int, err error) error {
	if r, is := errors.AsType[*refusal](err); is {
		return refusef(r.status, "rank %d: %w", rank, r.err)
	}
	return refusef(http.StatusBadGateway, "rank %d: %w", rank, err)
}

func (p *plan) describe(ctx context.Context, req *Request) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel() // the list counts as the rank's user's until then
	all, err := p.target.Conn.ControlVariables(reading)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(v mpit.ControlVariable) bool { return v.Name == req.Name })
	if at < 0 {
		return notFound("its MPI library has no control variable %q; mpit-exporter list --cvars shows all", req.Name)
	}
	p.variable = all[at] // keeps nothing else of the list
	if p.object, err = p.findObject(ctx, req.Object); err != nil {
		return err
	}
	if p.old, err = p.read(ctx); err != nil {
		return fmt.Errorf("its present value can't be read: %w", err)
	}
	return nil
}

// findObject returns the id of the object that the variable is to be bound to, 0 if it isn't bound.
func (p *plan) findObject(ctx context.Context, wanted *Object) (uint32, error) {
	v := &p.variable
	bind := cmp.Or(v.Bind.Label(), "unknown")
	switch {
	case v.Bind == mpit.BindNone && wanted == nil:
		return 0, nil
	case v.Bind == mpit.BindNone:
		return 0, badRequest("%s is not bound to an object; leave the object out", v.Name)
	case wanted == nil:
		return 0, badRequest("%s is bound to an object of kind %s: say to which one (--object)", v.Name, bind)
	}
	kind, err := parseKind(wanted.Kind)
	if err != nil {
		return 0, badRequest("%w", err)
	}
	if kind != v.Bind {
		return 0, badRequest("%s is bound to objects of kind %s, not %s", v.Name, bind, kind.Label())
	}
	layout, err := p.layout(ctx)
	if err != nil {
		return 0, err
	}
	var found []uint32
	if layout != nil {
		for i := range layout.Objects {
			if o := &layout.Objects[i]; o.Kind == kind && o.Name == wanted.Name {
				found = append(found, o.ID)
			}
		}
	}
	switch len(found) {
	case 0:
		return 0, notFound("it has no %s %q", kind.Label(), wanted.Name)
	case 1:
		return found[0], nil
	}
	return 0, conflict("it has %d objects of kind %s with the name %q; give each a name of its own",
		len(found), kind.Label(), wanted.Name)
}

// layout asks for the rank's objects.
func (p *plan) layout(ctx context.Context) (*mpit.Layout, error) {
	for try := 0; ; try++ {
		sample, err := p.target.Conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking for its objects: %w", err)
		}
		if sample.Status != mpit.SampleBusy || try >= busyRetries {
			return sample.Layout, nil
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting until it has made its objects: %w", ctx.Err())
		}
	}
}

// parsePlans parses the new value for each rank: their variables may differ in size.
func parsePlans(plans []plan, text string) error {
	for i := range plans {
		p := &plans[i]
		var err error
		if p.new, err = cvar.Parse(&p.variable, p.old, text); err != nil {
			return badRequest("%s, rank %d: %w", p.variable.Name, p.target.ID.Rank, err)
		}
	}
	return nil
}

// perform writes to one rank after the other and reads each value back. If a rank fails, or ctx ends, those written
// before get their old values back.
func perform(ctx context.Context, plans []plan) ([]RankAnswer, error) {
	list := make([]RankAnswer, len(plans))
	for i := range plans {
		old := plans[i].format(plans[i].old)
		list[i] = RankAnswer{Rank: plans[i].target.ID.Rank, State: Unchanged, Old: old, Value: old}
	}
	for i := range plans {
		err := ctx.Err()
		if err == nil {
			err = plans[i].set(ctx, &list[i])
		}
		if err != nil {
			list[i].Error = err.Error()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
			defer cancel()
			return list, fmt.Errorf("rank %d: %w%s", list[i].Rank, err, restore(ctx, plans[:i+1], list[:i+1]))
		}
	}
	return list, nil
}

// set writes to one rank, reads the value back and notes it.
func (p *plan) set(ctx context.Context, r *RankAnswer) error {
	wrong := p.write(ctx, p.new)
	if wrong != nil {
		wrong = fmt.Errorf("writing: %w", wrong)
	}
	// Even where writing failed, the value may have changed.
	now, err := p.read(context.WithoutCancel(ctx))
	if err != nil {
		r.State, r.Value = Unknown, nil
		if wrong == nil {
			wrong = fmt.Errorf("reading back: %w", err)
		}
		return wrong
	}
	r.Value = p.format(now)
	switch {
	case wrong != nil && cvar.Same(now, p.old): // even if the new value equals it
		r.State = Unchanged
	case cvar.Same(now, p.new):
		r.State = Written
	case cvar.Same(now, p.old):
		r.State = Unchanged
	default:
		r.State = Unknown // neither the old one nor the new one
	}
	if wrong == nil && r.State != Written {
		wrong = fmt.Errorf("%s was written, and %s is read back", *p.format(p.new), *r.Value)
	}
	return wrong
}

// restore restores the old values, last rank first, and returns a text that says how that went.
func restore(ctx context.Context, plans []plan, list []RankAnswer) string {
	var restored, lost []int
	for i := len(plans) - 1; i >= 0; i-- {
		p, r := &plans[i], &list[i]
		if r.State == Unchanged {
			continue
		}
		err := p.write(ctx, p.old)
		now, readErr := p.read(ctx)
		switch {
		case readErr != nil:
			// A rank that hasn't answered may still write.
			r.State, r.Value = Unknown, nil
			r.Error = joinTexts(r.Error, "restoring: "+cmp.Or(err, readErr).Error())
		case cvar.Same(now, p.old):
			r.State, r.Value = Restored, p.format(now)
		default:
			r.State, r.Value = Unrestored, p.format(now)
			if err != nil {
				r.Error = joinTexts(r.Error, "restoring: "+err.Error())
			}
		}
		if r.State == Restored {
			restored = append(restored, r.Rank)
		} else {
			lost = append(lost, r.Rank)
		}
	}
	slices.Sort(restored)
	slices.Sort(lost)
	var text string
	switch {
	case len(restored) == 0 && len(lost) == 0:
		return "; no rank has been changed"
	case len(restored) > 0:
		text = "; rank " + units.Ranks(restored) + " has its old value again"
	}
	if len(lost) > 0 {
		text += "; rank " + units.Ranks(lost) + " could not be given its old value back"
	}
	return text
}

func joinTexts(a, b string) string { return strings.TrimPrefix(a+"; "+b, "; ") }
