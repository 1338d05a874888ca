package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// checkTimeout is how long all ranks together may take to describe a variable and to say its value.
	checkTimeout = 15 * time.Second
	// writeTimeout is how long one rank may take to write a variable, and again to read it.
	writeTimeout = 5 * time.Second
	// restoreTimeout is how long all ranks together may take to get their old values back.
	restoreTimeout = 10 * time.Second
	// maxChecks is how many ranks are asked at once: each is sent its whole list of control variables.
	maxChecks = 8
	// A rank that is making or freeing objects is asked for them again.
	busyRetries = 100
	busyPause   = 20 * time.Millisecond
)

// CvarRequest is the body of POST /api/v1/cvar on the control socket, and what the parameters of GET say.
type CvarRequest struct {
	JobID  string      `json:"jobid,omitempty"` // label jobid; empty: the caller's only job
	World  string      `json:"world,omitempty"` // label world; empty: the job's only one
	UID    *uint32     `json:"uid,omitempty"`   // whose job it is; nil: the caller's, or whoever's it is where he has none
	Ranks  []int       `json:"ranks,omitempty"` // none: all of the world that are on this node
	Name   string      `json:"name"`
	Object *CvarObject `json:"object,omitempty"` // for variables that are bound to one
	Value  *string     `json:"value,omitempty"`  // to be set: elements with commas between them, names of enumeration items or numbers
}

// CvarObject names an MPI object of a rank.
type CvarObject struct {
	Kind string `json:"kind"` // as the label kind of metrics: comm, win, file …
	Name string `json:"name"` // unique among the rank's objects of that kind
}

func (o *CvarObject) String() string {
	if o == nil {
		return ""
	}
	return o.Kind + ":" + o.Name
}

// Results of setting a control variable.
const (
	CvarOK      = "ok"
	CvarRefused = "refused" // nothing was written
	CvarFailed  = "failed"  // something went wrong between the first rank and the last: CvarAnswer.Ranks says where
)

// CvarAnswer is the answer to a CvarRequest.
type CvarAnswer struct {
	Result   string           `json:"result"`
	Error    string           `json:"error,omitempty"` // why not
	JobID    string           `json:"jobid,omitempty"`
	World    string           `json:"world,omitempty"`
	Name     string           `json:"name,omitempty"`
	Object   *CvarObject      `json:"object,omitempty"`
	Scope    *mpit.Scope      `json:"scope,omitempty"`
	Datatype *mpit.Datatype   `json:"datatype,omitempty"`
	Enum     []EnumItemStatus `json:"enum,omitempty"`
	Ranks    []CvarRank       `json:"ranks"`
}

// States of a rank in a CvarAnswer.
const (
	CvarRead       = "read"       // only read
	CvarUnchanged  = "unchanged"  // has its old value
	CvarWritten    = "written"    // has the new value, as reading it back says
	CvarRestored   = "restored"   // had the new value, and has the old one again
	CvarUnrestored = "unrestored" // has not got its old value back
	CvarUnknown    = "unknown"    // does not say what it has
)

// CvarRank is what became of a control variable in one rank.
type CvarRank struct {
	Rank  int     `json:"rank"`
	State string  `json:"state"`
	Old   *string `json:"old,omitempty"`   // before; nil: not read
	Value *string `json:"value,omitempty"` // now; nil: not known
	Error string  `json:"error,omitempty"`
}

// cvarConn is what is needed of a rank's mpit.Session.
type cvarConn interface {
	ControlVariables(ctx context.Context) ([]mpit.ControlVariable, error)
	Read(ctx context.Context) (mpit.Sample, error)
	ReadCvar(ctx context.Context, index int, object uint32) (mpit.CvarValue, error)
	WriteCvar(ctx context.Context, index int, object uint32, v mpit.CvarValue) error
}

// cvarTarget is a living rank that can be asked.
type cvarTarget struct {
	conn    cvarConn
	id      Identity
	size    int // of its world, as it says itself
	uid     uint32
	user    string
	allowed bool // by its job's environment
}

// cvarTargets are all living ranks, sorted by Identity.
func (e *Exporter) cvarTargets() []cvarTarget {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []cvarTarget
	for _, r := range e.table.ordered {
		if r.session == nil || r.end != mpit.EndNone {
			continue
		}
		hello := r.session.Hello()
		list = append(list, cvarTarget{
			conn: r.session, id: r.id, size: hello.Size, uid: r.session.Peer().UID, user: r.about.User, allowed: hello.WriteAllowed,
		})
	}
	return list
}

// refusal is why a request is not served, with its HTTP status.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refusef(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

// cvarWorld is one MPI_COMM_WORLD and the ranks of it that a request names.
type cvarWorld struct {
	key   ownedWorld
	here  []cvarTarget // all that live on this node, by rank
	named bool         // the request names ranks
	ranks []cvarTarget // that it names
}

type ownedWorld struct {
	uid        uint32
	job, world string
}

// whole says whether all ranks of the world are here, and are meant.
func (w *cvarWorld) whole() bool { return len(w.here) == w.here[0].size && len(w.ranks) == len(w.here) }

// chooseWorld finds the ranks that a caller means. Another user's ranks that carry the same labels are out of the way of the
// caller's own.
func chooseWorld(all []cvarTarget, caller mpit.Peer, req *CvarRequest) (*cvarWorld, error) {
	var match []cvarTarget
	own := false
	for _, t := range all {
		if req.JobID != "" && t.id.JobID != req.JobID || req.World != "" && t.id.World != req.World || req.UID != nil && t.uid != *req.UID {
			continue
		}
		match = append(match, t)
		own = own || t.uid == caller.UID
	}
	if caller.UID != 0 && req.UID == nil && (own || req.JobID == "") {
		match = slices.DeleteFunc(match, func(t cvarTarget) bool { return t.uid != caller.UID })
	}
	if len(match) == 0 {
		switch {
		case req.JobID == "" && caller.UID != 0:
			return nil, refusef(http.StatusNotFound, "no rank of user %d is connected here; name the job (--jobid) if it is another user's", caller.UID)
		case req.JobID == "":
			return nil, refusef(http.StatusNotFound, "no rank of that world or user is connected here; /api/v1/ranks shows all that are")
		}
		return nil, refusef(http.StatusNotFound, "no rank of job %q%s is connected here; /api/v1/ranks shows all that are", req.JobID, ofWorld(req.World))
	}
	if err := ambiguous(match); err != nil {
		return nil, err
	}
	first := match[0]
	w := &cvarWorld{
		key:   ownedWorld{first.uid, first.id.JobID, first.id.World},
		here:  match,
		named: len(req.Ranks) > 0,
		ranks: match,
	}
	for i := 1; i < len(match); i++ {
		if match[i].id.Rank == match[i-1].id.Rank {
			return nil, refusef(http.StatusConflict, "two processes claim to be rank %d of job %q, world %q; give jobs that run at the same time different ids (exec --job-id)",
				match[i].id.Rank, first.id.JobID, first.id.World)
		}
	}
	if !w.named {
		return w, nil
	}
	w.ranks = nil
	wanted := slices.Clone(req.Ranks)
	slices.Sort(wanted)
	var missing []int
	for _, rank := range slices.Compact(wanted) {
		// match is of one world, so sorted by rank; what is wanted may be much more than there is.
		if at, found := slices.BinarySearchFunc(match, rank, func(t cvarTarget, rank int) int { return cmp.Compare(t.id.Rank, rank) }); found {
			w.ranks = append(w.ranks, match[at])
		} else {
			missing = append(missing, rank)
		}
	}
	if len(missing) > 0 {
		return nil, refusef(http.StatusNotFound, "rank %s of job %q%s is not connected here; those that are: %s",
			clean.Cut(FormatRanks(missing), clean.MaxLabel), first.id.JobID, ofWorld(first.id.World), clean.Cut(FormatRanks(ranksOf(match)), clean.MaxLabel))
	}
	return w, nil
}

func ofWorld(world string) string {
	if world == "" {
		return ""
	}
	return fmt.Sprintf(", world %q", world)
}

func ranksOf(targets []cvarTarget) []int {
	ranks := make([]int, len(targets))
	for i := range targets {
		ranks[i] = targets[i].id.Rank
	}
	return ranks
}

// ambiguous refuses ranks that are not all of one world.
func ambiguous(targets []cvarTarget) error {
	const most = 10
	jobs, worlds, users := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, t := range targets {
		jobs[t.id.JobID] = true
		worlds[t.id.World] = true
		users[fmt.Sprintf("%d (%s)", t.uid, t.user)] = true
	}
	list := func(set map[string]bool) string {
		var names []string
		for name := range set {
			names = append(names, name)
		}
		slices.Sort(names)
		if more := len(names) - most; more > 0 {
			names = append(names[:most], fmt.Sprintf("and %d more", more))
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(jobs) > 1:
		return refusef(http.StatusConflict, "there are %d jobs; name one of them (--jobid): %s", len(jobs), list(jobs))
	case len(users) > 1:
		return refusef(http.StatusConflict, "several users have a job %q; say whose uid is meant (--uid): %s", targets[0].id.JobID, list(users))
	case len(worlds) > 1:
		return refusef(http.StatusConflict, "job %q has %d worlds; name one of them (--world): %s", targets[0].id.JobID, len(worlds), list(worlds))
	}
	return nil
}

// permit says whether the caller may write to all ranks that he names. nobody is the uid that the kernel gives for users whom this
// user name-space doesn't know: two of them need not be the same one.
func (w *cvarWorld) permit(caller mpit.Peer, nobody uint32) error {
	for _, t := range w.ranks {
		switch {
		case caller.UID == 0:
		case t.uid != caller.UID:
			return refusef(http.StatusForbidden, "rank %d belongs to user %s (uid %d); only that user and root may set its control variables, and the caller is uid %d",
				t.id.Rank, t.user, t.uid, caller.UID)
		case caller.UID == nobody:
			return refusef(http.StatusForbidden, "uid %d may be anybody whom the exporter's user name-space doesn't know; only root may set control variables of such ranks", nobody)
		}
	}
	for _, t := range w.ranks {
		if !t.allowed {
			return refusef(http.StatusForbidden, "rank %d: its job does not allow control variables to be written; start it with mpit-exporter exec --allow-write, or with %s=1 in its environment",
				t.id.Rank, envAllowWrite)
		}
	}
	return nil
}

// envAllowWrite is what the agent reads.
const envAllowWrite = "MPIT_AGENT_ALLOW_WRITE"

// cvarPlan is what is to be done in one rank.
type cvarPlan struct {
	target   cvarTarget
	variable mpit.ControlVariable
	object   uint32
	old, new mpit.CvarValue
}

func (p *cvarPlan) format(v mpit.CvarValue) *string {
	text := formatCvar(p.variable.Datatype, p.variable.Enum, v)
	return &text
}

func (p *cvarPlan) read(ctx context.Context) (mpit.CvarValue, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.target.conn.ReadCvar(ctx, p.variable.Index, p.object)
}

func (p *cvarPlan) write(ctx context.Context, v mpit.CvarValue) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.target.conn.WriteCvar(ctx, p.variable.Index, p.object, v)
}

// describe asks all ranks for the variable and its present value.
func (w *cvarWorld) describe(ctx context.Context, req *CvarRequest) ([]cvarPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	plans := make([]cvarPlan, len(w.ranks))
	failed := make([]error, len(w.ranks))
	places := make(chan struct{}, maxChecks)
	var wg sync.WaitGroup
	for i, t := range w.ranks {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			plans[i].target = t
			if failed[i] = plans[i].describe(ctx, req); failed[i] != nil {
				failed[i] = inRank(t.id.Rank, failed[i])
			}
		})
	}
	wg.Wait()
	if at := slices.IndexFunc(failed, func(err error) bool { return err != nil }); at >= 0 {
		return nil, failed[at]
	}
	return plans, nil
}

// inRank says in front of an error in which rank it happened.
func inRank(rank int, err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return refusef(r.status, "rank %d: %w", rank, r.err)
	}
	return refusef(http.StatusBadGateway, "rank %d: %w", rank, err)
}

func (p *cvarPlan) describe(ctx context.Context, req *CvarRequest) error {
	all, err := p.target.conn.ControlVariables(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(v mpit.ControlVariable) bool { return v.Name == req.Name })
	if at < 0 {
		return refusef(http.StatusNotFound, "its MPI library has no control variable %q; mpit-exporter list --what=cvars shows all", req.Name)
	}
	p.variable = all[at] // the rest of the list is let go
	if p.object, err = p.findObject(ctx, req.Object); err != nil {
		return err
	}
	if p.old, err = p.read(ctx); err != nil {
		return fmt.Errorf("its present value can't be read: %w", err)
	}
	return nil
}

// findObject returns the number of the object that the variable is to be bound to, 0 where it is not bound.
func (p *cvarPlan) findObject(ctx context.Context, wanted *CvarObject) (uint32, error) {
	v := &p.variable
	switch {
	case v.Bind == mpit.BindNone && wanted == nil:
		return 0, nil
	case v.Bind == mpit.BindNone:
		return 0, refusef(http.StatusBadRequest, "%s is not bound to an object; leave the object out", v.Name)
	case wanted == nil:
		return 0, refusef(http.StatusBadRequest, "%s is bound to an object of kind %s: say to which one (--object)", v.Name, cmp.Or(v.Bind.Label(), "unknown"))
	}
	kind, err := parseKind(wanted.Kind)
	if err != nil {
		return 0, refusef(http.StatusBadRequest, "%w", err)
	}
	if kind != v.Bind {
		return 0, refusef(http.StatusBadRequest, "%s is bound to objects of kind %s, not %s", v.Name, cmp.Or(v.Bind.Label(), "unknown"), kind.Label())
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
		return 0, refusef(http.StatusNotFound, "it has no %s %q", kind.Label(), wanted.Name)
	case 1:
		return found[0], nil
	}
	return 0, refusef(http.StatusConflict, "it has %d objects of kind %s with the name %q; give each a name of its own", len(found), kind.Label(), wanted.Name)
}

// layout asks for the rank's objects.
func (p *cvarPlan) layout(ctx context.Context) (*mpit.Layout, error) {
	for try := 0; ; try++ {
		sample, err := p.target.conn.Read(ctx)
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

// check applies the rules of MPI-4.1 §15.3.6: what may be written at all, and which ranks must have the same.
func (w *cvarWorld) check(plans []cvarPlan) error {
	for i := range plans {
		v := &plans[i].variable
		rank := plans[i].target.id.Rank
		if first := &plans[0].variable; v.Scope != first.Scope || v.Datatype != first.Datatype || v.Bind != first.Bind {
			return refusef(http.StatusConflict, "%s is %s %s in rank %d and %s %s in rank %d: they have different MPI libraries",
				v.Name, first.Scope, first.Datatype, plans[0].target.id.Rank, v.Scope, v.Datatype, rank)
		}
		switch v.Scope {
		case mpit.ScopeConstant:
			return refusef(http.StatusConflict, "%s has the scope CONSTANT: it never changes", v.Name)
		case mpit.ScopeReadOnly:
			return refusef(http.StatusConflict, "%s has the scope READONLY: it can't be set from outside the MPI library", v.Name)
		case mpit.ScopeLocal:
		case mpit.ScopeAll, mpit.ScopeAllEq:
			if len(w.here) != w.here[0].size {
				return refusef(http.StatusConflict, "%s has the scope %s: all ranks of its world must be set alike (MPI-4.1 §15.3.6), and only %d of %d are on this node; set it in the job's environment instead",
					v.Name, v.Scope, len(w.here), w.here[0].size)
			}
			if !w.whole() {
				return refusef(http.StatusConflict, "%s has the scope %s: all %d ranks of its world must be set alike (MPI-4.1 §15.3.6), not %s alone; leave the ranks out",
					v.Name, v.Scope, len(w.here), FormatRanks(ranksOf(w.ranks)))
			}
		case mpit.ScopeGroup, mpit.ScopeGroupEq:
			if !w.named && !w.whole() {
				return refusef(http.StatusConflict, "%s has the scope %s: a group of ranks must be set alike (MPI-4.1 §15.3.6), and only the MPI library's documentation says which; name the ranks",
					v.Name, v.Scope)
			}
		default:
			return refusef(http.StatusConflict, "%s has a scope that is not known: nothing says that it may be set", v.Name)
		}
	}
	return nil
}

// parse reads the new value for each rank.
func parsePlans(plans []cvarPlan, text string) error {
	for i := range plans {
		p := &plans[i]
		var err error
		if p.new, err = parseCvar(&p.variable, p.old, text); err != nil {
			return refusef(http.StatusBadRequest, "%s, rank %d: %w", p.variable.Name, p.target.id.Rank, err)
		}
	}
	return nil
}

// perform writes to one rank after the other and reads each back. When one fails, those that were written get their old
// values again. ctx's end is a failure; what must be put back is put back all the same.
func perform(ctx context.Context, plans []cvarPlan) ([]CvarRank, error) {
	list := make([]CvarRank, len(plans))
	for i := range plans {
		old := plans[i].format(plans[i].old)
		list[i] = CvarRank{Rank: plans[i].target.id.Rank, State: CvarUnchanged, Old: old, Value: old}
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

// set writes to one rank, reads back and notes what the rank has then.
func (p *cvarPlan) set(ctx context.Context, r *CvarRank) error {
	wrong := p.write(ctx, p.new)
	if wrong != nil {
		wrong = fmt.Errorf("writing: %w", wrong)
	}
	// A rank that has failed to write may have written.
	now, err := p.read(context.WithoutCancel(ctx))
	if err != nil {
		r.State, r.Value = CvarUnknown, nil
		if wrong == nil {
			wrong = fmt.Errorf("reading back: %w", err)
		}
		return wrong
	}
	r.Value = p.format(now)
	switch {
	case wrong != nil && sameCvar(now, p.old): // also where the new one would have been the same
		r.State = CvarUnchanged
	case sameCvar(now, p.new):
		r.State = CvarWritten
	case sameCvar(now, p.old):
		r.State = CvarUnchanged
	default:
		r.State = CvarUnknown // neither the old one nor the new one
	}
	if wrong == nil && r.State != CvarWritten {
		wrong = fmt.Errorf("%s was written, and %s is read back", *p.format(p.new), *r.Value)
	}
	return wrong
}

// restore puts the old values back, the last one first, and says in words how that went.
func restore(ctx context.Context, plans []cvarPlan, list []CvarRank) string {
	var restored, lost []int
	for i := len(plans) - 1; i >= 0; i-- {
		p, r := &plans[i], &list[i]
		if r.State == CvarUnchanged {
			continue
		}
		err := p.write(ctx, p.old)
		now, readErr := p.read(ctx)
		switch {
		case readErr != nil:
			// A rank that has not answered may yet do what it was asked for.
			r.State, r.Value = CvarUnknown, nil
			r.Error = joinTexts(r.Error, "restoring: "+cmp.Or(err, readErr).Error())
		case sameCvar(now, p.old):
			r.State, r.Value = CvarRestored, p.format(now)
		default:
			r.State, r.Value = CvarUnrestored, p.format(now)
			if err != nil {
				r.Error = joinTexts(r.Error, "restoring: "+err.Error())
			}
		}
		if r.State == CvarRestored {
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
		text = "; rank " + FormatRanks(restored) + " has its old value again"
	}
	if len(lost) > 0 {
		text += "; rank " + FormatRanks(lost) + " could not be given its old value back"
	}
	return text
}

func joinTexts(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// readPlans is what the ranks have.
func readPlans(plans []cvarPlan) []CvarRank {
	list := make([]CvarRank, len(plans))
	for i := range plans {
		list[i] = CvarRank{Rank: plans[i].target.id.Rank, State: CvarRead, Value: plans[i].format(plans[i].old)}
	}
	return list
}
