package control

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestControlSet(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
	for _, test := range []struct {
		name  string
		body  string
		ranks []int
		old   string
		now   string
	}{
		{"a local variable in one rank", `{"jobid":"7","world":"7.0","ranks":[1],"name":"local","value":"9"}`,
			[]int{1}, "8", "9"},
		{"in two of them, named twice", `{"jobid":"7","ranks":[2,0,2],"name":"local","value":"16"}`, []int{0, 2},
			"8", "16"},
		{"the only job is meant", `{"name":"limits","value":"4,5,6"}`, []int{0, 1, 2}, "1,2,3", "4,5,6"},
		{"all ranks are", `{"name":"all","value":"1"}`, []int{0, 1, 2}, "8", "1"},
		{"and may be named", `{"name":"all_eq","ranks":[0,1,2],"value":"-1"}`, []int{0, 1, 2}, "8", "-1"},
		{"a group is named", `{"name":"group_eq","ranks":[0,2],"value":"2"}`, []int{0, 2}, "8", "2"},
		{"or is all", `{"name":"group","value":"2"}`, []int{0, 1, 2}, "8", "2"},
		{"an item of an enumeration", `{"name":"phase","ranks":[0],"value":"none"}`, []int{0}, "red", "none"},
		{"a text that is empty now", `{"name":"text","ranks":[0],"value":""}`, []int{0}, "old", ""},
		{"on an object", `{"name":"bound","object":{"kind":"comm","name":"MPI_COMM_WORLD"},"ranks":[1],"value":"5"}`,
			[]int{1}, "1", "5"},
		{"whose user is said", fmt.Sprintf(`{"name":"phase","uid":%d,"ranks":[2],"value":"-1"}`, ownUID), []int{2},
			"red", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, answer := n.set(ownUID, test.body)
			require.Equal(t, http.StatusOK, status, answer.Error)
			assert.Equal(t, OK, answer.Result)
			assert.Equal(t, "7", answer.JobID)
			assert.Equal(t, "7.0", answer.World)
			var want []RankAnswer
			for _, rank := range test.ranks {
				want = append(want, RankAnswer{Rank: rank, State: Written, Old: text(test.old), Value: text(test.now)})
			}
			assert.Equal(t, want, answer.Ranks)
		})
	}
	assert.Equal(t, "16", fakes[0].has("local"))
	assert.Equal(t, "9", fakes[1].has("local"))
	assert.Equal(t, "8", fakes[1].has("group_eq"), "it is not of the group")
	assert.Equal(t, mpit.CvarValue{Values: []uint64{2}}, fakes[1].values[cvarKey{len(fakes[1].list) - 1, 2}],
		"another object")

	assert.Equal(t, map[string]int{OK: 11}, n.counts)
	assert.Equal(t, []identity.Identity{n.ranks[1].ID, n.ranks[0].ID, n.ranks[2].ID}, n.written[:3],
		"what is shown is to be read again")
	log := n.log.String()
	assert.Contains(t, log,
		fmt.Sprintf(`msg="Control variable set" uid=%d user=alice pid=%d jobid=7 world=7.0 ranks=1 name=local object="" value=9 old=8 now=9 result=ok`,
			ownUID, os.Getpid()))
	assert.Contains(t, log, `ranks=0,2 name=local`)
	assert.Contains(t, log, `object=comm:MPI_COMM_WORLD`)
}

// Whatever is refused is refused with its reason, before any rank is changed.
func TestControlRefuses(t *testing.T) {
	const local = `"name":"local","value":"9"`
	whole := func(n *controlNode) { n.add("7", "7.0", 2, ownUID, 0, 1) }
	for _, test := range []struct {
		name   string
		ranks  func(n *controlNode)
		caller uint32
		body   string
		status int
		want   string
	}{
		{"no JSON", whole, ownUID, `name=local`, http.StatusBadRequest,
			"the request can't be understood: invalid character"},
		{"an unknown field", whole, ownUID, `{"rank":3,` + local + `}`, http.StatusBadRequest, `unknown field "rank"`},
		{"two requests", whole, ownUID, `{` + local + `}{}`, http.StatusBadRequest, "something follows the request"},
		{"no value", whole, ownUID, `{"name":"local"}`, http.StatusBadRequest, "value is missing"},
		{"no name", whole, ownUID, `{"value":"1"}`, http.StatusBadRequest, "name is missing"},
		{"too much", whole, ownUID, `{"name":"text","value":"` + strings.Repeat("x", maxBody) + `"}`,
			http.StatusBadRequest, "request body too large"},

		{"another user's rank", whole, otherUID, `{"jobid":"7",` + local + `}`, http.StatusForbidden,
			fmt.Sprintf("rank 0 belongs to user user%d (uid %d); only that user and root may set its control "+
				"variables, and the caller is uid 12345", ownUID, ownUID)},
		{"another user's only job is not meant by him", whole, otherUID, `{` + local + `}`, http.StatusNotFound,
			"no rank of user 12345 is connected here; name the job (--jobid) if it is another user's"},
		{"another user's job by his number", whole, otherUID, fmt.Sprintf(`{"uid":%d,%s}`, ownUID, local),
			http.StatusForbidden, "belongs to user"},
		{"nobody is nobody in particular", func(n *controlNode) { n.add("7", "7.0", 1, nobodyUID, 0) }, nobodyUID,
			`{"jobid":"7",` + local + `}`, http.StatusForbidden,
			"uid 65534 may be anybody whom the exporter's user name-space doesn't know"},
		{"a job that does not allow it", func(n *controlNode) {
			whole(n)
			n.ranks[1].WriteAllowed = false
		}, ownUID, `{` + local + `}`, http.StatusForbidden,
			"rank 1: its job does not allow control variables to be written; start it with mpit-exporter exec " +
				"--allow-write, or with MPIT_AGENT_ALLOW_WRITE=1 in its environment"},

		{"no rank at all", func(*controlNode) {}, ownUID, `{"jobid":"7",` + local + `}`, http.StatusNotFound,
			`no rank of job "7" is connected here; /api/v1/ranks shows all that are`},
		{"no such job", whole, ownUID, `{"jobid":"8",` + local + `}`, http.StatusNotFound,
			`no rank of job "8" is connected here; /api/v1/ranks shows all that are`},
		{"no such world", whole, ownUID, `{"jobid":"7","world":"7.1",` + local + `}`, http.StatusNotFound,
			`no rank of job "7", world "7.1" is connected here; /api/v1/ranks shows all that are`},
		{"no such rank", whole, ownUID, `{"jobid":"7","ranks":[1,2,3],` + local + `}`, http.StatusNotFound,
			`rank 2,3 of job "7", world "7.0" is not connected here; those that are: 0,1`},
		{"which job?", func(n *controlNode) {
			whole(n)
			n.add("9", "9.0", 1, ownUID, 0)
		}, ownUID, `{` + local + `}`, http.StatusConflict, "there are 2 jobs; name one of them (--jobid): 7, 9"},
		{"which world?", func(n *controlNode) {
			whole(n)
			n.add("7", "7.1", 1, ownUID, 0)
		}, ownUID, `{` + local + `}`, http.StatusConflict,
			`job "7" has 2 worlds; name one of them (--world): 7.0, 7.1`},
		{"which of two processes?", func(n *controlNode) {
			whole(n)
			n.add("7", "7.0", 2, ownUID, 1)
		}, ownUID, `{"ranks":[0],` + local + `}`, http.StatusConflict,
			`two processes claim to be rank 1 of job "7", world "7.0"`},

		{"no such variable", whole, ownUID, `{"name":"nothing","value":"1"}`, http.StatusNotFound,
			`rank 0: its MPI library has no control variable "nothing"; mpit-exporter list --cvars shows all`},
		{"constant", whole, ownUID, `{"name":"constant","value":"1"}`, http.StatusConflict,
			"constant has the scope CONSTANT: it never changes"},
		{"read-only", whole, ownUID, `{"name":"readonly","value":"1"}`, http.StatusConflict,
			"readonly has the scope READONLY: it can't be set from outside the MPI library"},
		{"an unknown scope", whole, ownUID, `{"name":"strange","value":"1"}`, http.StatusConflict,
			"strange has a scope that is not known"},
		{"a part of all", whole, ownUID, `{"name":"all","ranks":[1],"value":"1"}`, http.StatusConflict,
			"all has the scope ALL: all 2 ranks of its world must be set alike (MPI-4.1 §15.3.6), not 1 alone; " +
				"leave the ranks out"},
		{"a part of all that must be equal", whole, ownUID, `{"name":"all_eq","ranks":[0],"value":"1"}`,
			http.StatusConflict, "all_eq has the scope ALL_EQ"},
		{"some are on another node", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID,
			`{"name":"all_eq","value":"1"}`, http.StatusConflict,
			"only 2 of 4 are on this node; set it in the job's environment instead"},
		{"a group that nobody names", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID,
			`{"name":"group","value":"1"}`, http.StatusConflict,
			"group has the scope GROUP: a group of ranks must be set alike (MPI-4.1 §15.3.6), and only the MPI " +
				"library's documentation says which; name the ranks"},
		{"a group of equals that nobody names", func(n *controlNode) { n.add("7", "7.0", 4, ownUID, 0, 1) }, ownUID,
			`{"name":"group_eq","value":"1"}`, http.StatusConflict, "name the ranks"},
		{"two MPI libraries", func(n *controlNode) {
			whole(n)
			n.fakes[1].list[int(mpit.ScopeLocal)].Scope = mpit.ScopeAll
		}, ownUID, `{` + local + `}`, http.StatusConflict,
			"local is LOCAL MPI_INT in rank 0 and ALL MPI_INT in rank 1: they have different MPI libraries"},

		{"an object for an unbound variable", whole, ownUID,
			`{"object":{"kind":"comm","name":"MPI_COMM_WORLD"},` + local + `}`, http.StatusBadRequest,
			"rank 0: local is not bound to an object; leave the object out"},
		{"no object for a bound one", whole, ownUID, `{"name":"bound","value":"1"}`, http.StatusBadRequest,
			"bound is bound to an object of kind comm: say to which one (--object)"},
		{"an object of another kind", whole, ownUID,
			`{"name":"bound","object":{"kind":"win","name":"MPI_COMM_WORLD"},"value":"1"}`, http.StatusBadRequest,
			"bound is bound to objects of kind comm, not win"},
		{"no kind of object", whole, ownUID, `{"name":"bound","object":{"kind":"planet","name":"x"},"value":"1"}`,
			http.StatusBadRequest, `"planet" is no kind of object; there are comm, datatype`},
		{"no such object", whole, ownUID, `{"name":"bound","object":{"kind":"comm","name":"x"},"value":"1"}`,
			http.StatusNotFound, `rank 0: it has no comm "x"`},
		{"two such objects", whole, ownUID, `{"name":"bound","object":{"kind":"comm","name":"twin"},"value":"1"}`,
			http.StatusConflict,
			`it has 2 objects of kind comm with the name "twin"`},
		{"no number", whole, ownUID, `{"name":"local","value":"many"}`, http.StatusBadRequest,
			`local, rank 0: "many" is not a number of datatype MPI_INT`},
		{"a number too large, in the last rank alone", func(n *controlNode) {
			whole(n)
			n.fakes[1].list[int(mpit.ScopeLocal)].Enum = colours
		}, ownUID, `{` + local + `}`, http.StatusBadRequest, `local, rank 1: "9" is no item of the enumeration`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.caller != ownUID {
				needRoot(t)
			}
			n := startControl(t)
			test.ranks(n)
			status, answer := n.set(test.caller, test.body)
			assert.Equal(t, test.status, status)
			assert.Equal(t, Refused, answer.Result)
			assert.Contains(t, answer.Error, test.want)
			assert.Empty(t, answer.Ranks)
			for _, f := range n.fakes {
				assert.Empty(t, f.writes)
			}
			assert.Equal(t, map[string]int{Refused: 1}, n.counts)
			assert.Contains(t, n.log.String(), fmt.Sprintf(`level=WARN msg="Control variable not set" uid=%d user=alice`,
				test.caller))
		})
	}
}

// The kernel says who asks: the owner of a job may, whoever runs the exporter, and root may.
func TestControlOwner(t *testing.T) {
	needRoot(t)
	n := startControl(t)
	mine := n.add("7", "7.0", 1, otherUID, 0)[0]
	status, answer := n.set(otherUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusOK, status, answer.Error)
	assert.Equal(t, "9", mine.has("local"))
	assert.Contains(t, n.log.String(), "uid=12345")

	// Somebody else's rank with the same labels is in nobody's way but root's, who can say whom he means.
	theirs := n.add("7", "7.0", 1, 54321, 0)[0]
	status, _ = n.set(otherUID, `{"jobid":"7","name":"all_eq","value":"3"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "3", mine.has("all_eq"))
	assert.Equal(t, "8", theirs.has("all_eq"))
	status, answer = n.set(0, `{"jobid":"7","name":"all_eq","value":"4"}`)
	assert.Equal(t, http.StatusConflict, status)
	assert.Contains(t, answer.Error,
		`several users have a job "7"; say whose uid is meant (--uid): 12345 (user12345), 54321 (user54321)`)
	status, _ = n.set(0, `{"jobid":"7","uid":54321,"name":"all_eq","value":"4"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "4", theirs.has("all_eq"))
	status, _ = n.set(otherUID, `{"jobid":"7","uid":54321,"name":"all_eq","value":"5"}`)
	assert.Equal(t, http.StatusForbidden, status)

	// Reading is for everybody.
	status, answer = n.call(otherUID, http.MethodGet, "?jobid=7&uid=54321&name=all_eq", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, []RankAnswer{{Rank: 0, State: Read, Value: text("4")}}, answer.Ranks)
}

// A rank that fails on the way: what has been written is put back, and the answer says what each rank has.
func TestControlFails(t *testing.T) {
	old, now := text("8"), text("9")
	unchanged := func(rank int) RankAnswer { return RankAnswer{Rank: rank, State: Unchanged, Old: old, Value: old} }
	restored := func(rank int) RankAnswer { return RankAnswer{Rank: rank, State: Restored, Old: old, Value: old} }
	isNew := func(v mpit.CvarValue) bool { return v.Values[0] == 9 }
	notNow := &mpit.RefusedError{Operation: "cvar write", Code: mpit.ErrCvarSetNotNow}
	for _, test := range []struct {
		name   string
		change func(f []*cvarFake)
		want   []RankAnswer
		err    string
	}{
		{"the first rank refuses", func(f []*cvarFake) {
			f[0].before = func(context.Context, mpit.CvarValue) error { return notNow }
		}, []RankAnswer{{Rank: 0, State: Unchanged, Old: old, Value: old,
			Error: "writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}, unchanged(1), unchanged(2)},
			"rank 0: writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW; no rank has been changed"},
		{"a later one refuses", func(f []*cvarFake) {
			f[2].before = func(context.Context, mpit.CvarValue) error { return notNow }
		}, []RankAnswer{restored(0), restored(1), {Rank: 2, State: Unchanged, Old: old, Value: old,
			Error: "writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}},
			"rank 2: writing: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW; rank 0,1 has its old value again"},
		{"one says that it failed, and has written", func(f []*cvarFake) {
			f[1].after = func(v mpit.CvarValue) error {
				if isNew(v) {
					return mpit.ErrOther
				}
				return nil
			}
		}, []RankAnswer{restored(0), {Rank: 1, State: Restored, Old: old, Value: old,
			Error: "writing: MPI_ERR_OTHER"}, unchanged(2)},
			"rank 1: writing: MPI_ERR_OTHER; rank 0,1 has its old value again"},
		{"one makes something else of it", func(f []*cvarFake) {
			f[1].store = func(v mpit.CvarValue) mpit.CvarValue {
				if isNew(v) {
					return mpit.CvarValue{Values: []uint64{7}}
				}
				return v
			}
		}, []RankAnswer{restored(0), {Rank: 1, State: Restored, Old: old, Value: old,
			Error: "9 was written, and 7 is read back"}, unchanged(2)},
			"rank 1: 9 was written, and 7 is read back; rank 0,1 has its old value again"},
		{"one takes nothing", func(f []*cvarFake) {
			f[1].store = func(mpit.CvarValue) mpit.CvarValue { return mpit.CvarValue{Values: []uint64{8}} }
		}, []RankAnswer{restored(0), {Rank: 1, State: Unchanged, Old: old, Value: old,
			Error: "9 was written, and 8 is read back"}, unchanged(2)},
			"rank 1: 9 was written, and 8 is read back; rank 0 has its old value again"},
		{"one can't be given its old value back", func(f []*cvarFake) {
			f[0].before = func(_ context.Context, v mpit.CvarValue) error {
				if !isNew(v) {
					return notNow
				}
				return nil
			}
			f[2].before = func(context.Context, mpit.CvarValue) error { return mpit.ErrMemory }
		}, []RankAnswer{{Rank: 0, State: Unrestored, Old: old, Value: now,
			Error: "restoring: mpit: cvar write: MPI_T_ERR_CVAR_SET_NOT_NOW"}, restored(1),
			{Rank: 2, State: Unchanged, Old: old, Value: old, Error: "writing: MPI_T_ERR_MEMORY"}},
			"rank 2: writing: MPI_T_ERR_MEMORY; rank 1 has its old value again; rank 0 could not be given its old " +
				"value back"},
		{"one ends", func(f []*cvarFake) {
			f[1].before = func(context.Context, mpit.CvarValue) error {
				f[1].mu.Lock()
				defer f[1].mu.Unlock()
				f[1].reading = func() error { return io.EOF }
				return io.EOF
			}
		}, []RankAnswer{restored(0), {Rank: 1, State: Unknown, Old: old, Error: "writing: EOF; restoring: EOF"},
			unchanged(2)},
			"rank 1: writing: EOF; rank 0 has its old value again; rank 1 could not be given its old value back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startControl(t)
			fakes := n.add("7", "7.0", 3, ownUID, 0, 1, 2)
			test.change(fakes)
			status, answer := n.set(ownUID, `{"name":"all_eq","value":"9"}`)
			assert.Equal(t, http.StatusBadGateway, status)
			assert.Equal(t, Failed, answer.Result)
			assert.Equal(t, test.err, answer.Error)
			assert.Equal(t, test.want, answer.Ranks)
			for i, r := range test.want {
				if r.Value != nil {
					assert.Equal(t, *r.Value, fakes[i].has("all_eq"), "what the answer says of rank %d", i)
				}
			}
			assert.Equal(t, map[string]int{Failed: 1}, n.counts)
			assert.Contains(t, n.log.String(), "result=failed")
		})
	}
}

// A rank that refuses the value that it has already has not been changed.
func TestControlRefusesWhatIs(t *testing.T) {
	n := startControl(t)
	n.add("7", "7.0", 1, ownUID, 0)[0].before = func(context.Context,
		mpit.CvarValue) error {
		return mpit.ErrCvarSetNotNow
	}
	_, answer := n.set(ownUID, `{"name":"local","value":"8"}`)
	assert.Equal(t, Failed, answer.Result)
	assert.Equal(t, Unchanged, answer.Ranks[0].State)
	assert.Contains(t, answer.Error, "no rank has been changed")
}

// A rank that can't say its present value is not written to: there would be nothing to put back.
func TestControlNeedsTheOldValue(t *testing.T) {
	n := startControl(t)
	fakes := n.add("7", "7.0", 2, ownUID, 0, 1)
	fakes[1].reading = func() error { return mpit.ErrNotAccessible }
	status, answer := n.set(ownUID, `{"name":"local","value":"9"}`)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Equal(t, Failed, answer.Result)
	assert.Equal(t, "rank 1: its present value can't be read: MPI_T_ERR_NOT_ACCESSIBLE", answer.Error)
	assert.Empty(t, fakes[0].writes)
}
