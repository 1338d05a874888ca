package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Conn is what is needed of a rank's mpit.Session.
type Conn interface {
	ControlVariables(ctx context.Context) ([]mpit.ControlVariable, error)
	Read(ctx context.Context) (mpit.Sample, error)
	ReadCvar(ctx context.Context, index int, object uint32) (mpit.CvarValue, error)
	WriteCvar(ctx context.Context, index int, object uint32, v mpit.CvarValue) error
}

// Target is a living rank that can be asked.
type Target struct {
	Conn         Conn
	ID           identity.Identity
	UID          uint32 // whose process it is
	Size         int    // of its world, as it says itself
	WriteAllowed bool   // by its job's environment
}

// world is one MPI_COMM_WORLD and the ranks of it that a request names.
type world struct {
	key   worldKey
	here  []Target // all that live on this node, by rank
	named bool     // the request names ranks
	ranks []Target // that it names
}

type worldKey struct {
	uid        uint32
	job, world string
}

// whole says whether all ranks of the world are here, and are meant.
func (w *world) whole() bool { return len(w.here) == w.here[0].Size && len(w.ranks) == len(w.here) }

// means reports whether a rank is of the world that a request names, as far as it names one.
func (r *Request) means(t *Target) bool {
	return (r.JobID == "" || r.JobID == t.ID.JobID) && (r.World == "" || r.World == t.ID.World) &&
		(r.UID == nil || *r.UID == t.UID)
}

// chooseWorld finds the ranks that a caller means. Another user's ranks that carry the same labels are out of the way
// of the caller's own.
func chooseWorld(all []Target, caller mpit.Peer, req *Request) (*world, error) {
	var match []Target
	own := false
	for _, t := range all {
		if req.means(&t) {
			match = append(match, t)
			own = own || t.UID == caller.UID
		}
	}
	if caller.UID != 0 && req.UID == nil && (own || req.JobID == "") {
		match = slices.DeleteFunc(match, func(t Target) bool { return t.UID != caller.UID })
	}
	if len(match) == 0 {
		switch {
		case req.JobID == "" && caller.UID != 0:
			return nil, notFound("no rank of user %d is connected here; name the job (--jobid) if it is another user's",
				caller.UID)
		case req.JobID == "":
			return nil, notFound("no rank of that world or user is connected here; /api/v1/ranks shows all that are")
		}
		return nil, notFound("no rank of job %q%s is connected here; /api/v1/ranks shows all that are",
			req.JobID, ofWorld(req.World))
	}
	if err := ambiguous(match); err != nil {
		return nil, err
	}
	id := match[0].ID
	for i := 1; i < len(match); i++ {
		if match[i].ID.Rank == match[i-1].ID.Rank {
			return nil, conflict("two processes claim to be rank %d of job %q, world %q; give jobs that run at the "+
				"same time different ids (exec --job-id)", match[i].ID.Rank, id.JobID, id.World)
		}
	}
	w := &world{
		key:   worldKey{match[0].UID, id.JobID, id.World},
		here:  match,
		named: len(req.Ranks) > 0,
		ranks: match,
	}
	if w.named {
		return w, w.pick(req.Ranks)
	}
	return w, nil
}

// pick chooses ranks of the world by their numbers.
func (w *world) pick(numbers []int) error {
	w.ranks = nil
	var missing []int
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		// here is sorted by rank; what is wanted may be much more than there is.
		at, found := slices.BinarySearchFunc(w.here, n, func(t Target, n int) int { return cmp.Compare(t.ID.Rank, n) })
		if found {
			w.ranks = append(w.ranks, w.here[at])
		} else {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return notFound("rank %s of job %q%s is not connected here; those that are: %s",
			clean.Cut(units.Ranks(missing), clean.MaxLabel), w.key.job, ofWorld(w.key.world),
			clean.Cut(units.Ranks(ranksOf(w.here)), clean.MaxLabel))
	}
	return nil
}

func ofWorld(world string) string {
	if world == "" {
		return ""
	}
	return fmt.Sprintf(", world %q", world)
}

func ranksOf(targets []Target) []int {
	ranks := make([]int, len(targets))
	for i := range targets {
		ranks[i] = targets[i].ID.Rank
	}
	return ranks
}

// ambiguous refuses ranks that are not all of one world.
func ambiguous(targets []Target) error {
	const most = 10
	jobs, worlds, users := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, t := range targets {
		jobs[t.ID.JobID] = true
		worlds[t.ID.World] = true
		users[fmt.Sprintf("%d (%s)", t.UID, t.ID.User)] = true
	}
	list := func(set map[string]bool) string {
		names := slices.Sorted(maps.Keys(set))
		if more := len(names) - most; more > 0 {
			names = append(names[:most], fmt.Sprintf("and %d more", more))
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(jobs) > 1:
		return conflict("there are %d jobs; name one of them (--jobid): %s", len(jobs), list(jobs))
	case len(users) > 1:
		return conflict("several users have a job %q; say whose uid is meant (--uid): %s", targets[0].ID.JobID, list(users))
	case len(worlds) > 1:
		return conflict("job %q has %d worlds; name one of them (--world): %s",
			targets[0].ID.JobID, len(worlds), list(worlds))
	}
	return nil
}

// permit says whether the caller may write to all ranks that the request names. nobody is the uid that the kernel
// gives for users whom this user name-space doesn't know: two of them need not be the same one.
func (w *world) permit(caller mpit.Peer, nobody uint32) error {
	for _, t := range w.ranks {
		switch {
		case caller.UID == 0:
		case t.UID != caller.UID:
			return forbidden("rank %d belongs to user %s (uid %d); only that user and root may set its control "+
				"variables, and the caller is uid %d", t.ID.Rank, t.ID.User, t.UID, caller.UID)
		case caller.UID == nobody:
			return forbidden("uid %d may be anybody whom the exporter's user name-space doesn't know; only root may "+
				"set control variables of such ranks", nobody)
		}
		if !t.WriteAllowed {
			return forbidden("rank %d: its job does not allow control variables to be written; start it with "+
				"mpit-exporter exec --allow-write, or with MPIT_AGENT_ALLOW_WRITE=1 in its environment", t.ID.Rank)
		}
	}
	return nil
}

// check applies the rules of MPI-4.1 §15.3.6: what may be written at all, and which ranks must have the same.
func (w *world) check(plans []plan) error {
	for i := range plans {
		v := &plans[i].variable
		rank := plans[i].target.ID.Rank
		if first := &plans[0].variable; v.Scope != first.Scope || v.Datatype != first.Datatype || v.Bind != first.Bind {
			return conflict("%s is %s %s in rank %d and %s %s in rank %d: they have different MPI libraries",
				v.Name, first.Scope, first.Datatype, plans[0].target.ID.Rank, v.Scope, v.Datatype, rank)
		}
		refuse := func(why string, args ...any) error {
			return conflict("%s has the scope %s: %s", v.Name, v.Scope, fmt.Sprintf(why, args...))
		}
		switch v.Scope {
		case mpit.ScopeConstant:
			return refuse("it never changes")
		case mpit.ScopeReadOnly:
			return refuse("it can't be set from outside the MPI library")
		case mpit.ScopeLocal:
		case mpit.ScopeAll, mpit.ScopeAllEq:
			if here, all := len(w.here), w.here[0].Size; here != all {
				return refuse("all ranks of its world must be set alike (MPI-4.1 §15.3.6), and only %d of %d are on this "+
					"node; set it in the job's environment instead", here, all)
			}
			if !w.whole() {
				return refuse("all %d ranks of its world must be set alike (MPI-4.1 §15.3.6), not %s alone; leave the "+
					"ranks out", len(w.here), units.Ranks(ranksOf(w.ranks)))
			}
		case mpit.ScopeGroup, mpit.ScopeGroupEq:
			if !w.named && !w.whole() {
				return refuse("a group of ranks must be set alike (MPI-4.1 §15.3.6), and only the MPI library's " +
					"documentation says which; name the ranks")
			}
		default:
			return conflict("%s has a scope that is not known: nothing says that it may be set", v.Name)
		}
	}
	return nil
}
