package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

const (
	noMessages = "A message exists between MPI_Mprobe and MPI_Mrecv. Finding it would mean intercepting message calls."
	deniedWins = "The only such variables, `osc_rdma_*_retry_count`, take any window's module for their own and " +
		"crash; the agent denies them."
)

// 15.3.2: variables of each kind are listed, and read on an object that the program makes.
func binds() section {
	return section{"15.3.2 Binding", each(fixture.Binds, func(b mpit.Bind) string { return code(b) }, bound)}
}

// create makes an object of a kind by a name of the test's.
func create(t *testing.T, p *fixture.Program, kind mpit.Bind, name string) {
	t.Helper()
	switch kind {
	case mpit.BindComm:
		p.Make(t, name, 0, "comm-dup world %s", name)
	case mpit.BindDatatype:
		p.Make(t, name, 0, "type-contiguous %s 3", name)
		p.Do(t, "type-commit %s", name)
	case mpit.BindErrhandler:
		p.Make(t, name, 0, "errhandler-create comm %s", name)
	case mpit.BindFile:
		p.Make(t, name, 0, "file-open world %s %s rdwr,create", name,
			fixture.Quote(filepath.Join(suite.Dir(t), "file")))
	case mpit.BindGroup:
		p.Make(t, "world's", 0, "comm-group world world's") // which may be predefined
		p.Make(t, name, 0, "group-union world's world's %s", name)
		p.Free(t, "world's")
	case mpit.BindOp:
		p.Make(t, name, 0, "op-create %s 1", name)
	case mpit.BindRequest:
		p.Make(t, name, 0, "request-init send self %s", name)
	case mpit.BindWin:
		p.Make(t, name, 0, "win-allocate world %s 64 8", name)
	case mpit.BindMessage:
		p.Make(t, name, 0, "mprobe world %s", name)
	case mpit.BindInfo:
		p.Make(t, name, 0, "info-create %s", name)
	case mpit.BindSession:
		p.Make(t, name, 0, "session-init %s", name)
	default:
		require.Fail(t, "no such kind", "%v", kind)
	}
}

// made makes an object in the embedded rank and returns what the agent says of it, and a function that frees it.
func (s *subject) made(t *testing.T, kind mpit.Bind) (name string, o mpit.Object, free func()) {
	t.Helper()
	if kind == mpit.BindNone {
		return "-", mpit.Object{}, func() {}
	}
	s.count++
	name = fmt.Sprintf("object%d", s.count)
	create(t, s.Program, kind, name)
	return name, s.newest(t, kind), func() { s.Free(t, name) }
}

func bound(bind mpit.Bind) check {
	return func(t *testing.T, s *subject) outcome {
		if found := listed(func(v trueVariable) bool { return v.Bind == bind },
			func(p pair) bool { return p.agent.Bind == bind })(t, s); found != works {
			return found
		}
		if bind == mpit.BindMessage {
			create(t, s.Program, bind, "message")
			assertNoHandle(t, s, bind)
			s.Free(t, "message")
			return notSupported(noMessages)
		}
		open := s.open(bind)
		if len(open) == 0 && s.offers(func(v trueVariable) bool { return v.Bind == bind }) {
			assertDenied(t, s, bind)
			return notSupported(deniedWins)
		}
		name, o, free := s.made(t, bind)
		if s.fixture() {
			v := fixture.Bound(mpit.ClassLevel, bind)
			s.Set(t, v, name, 4321)
			assert.Equal(t, []float64{4321}, values(t, s.sample(t), s.variable(t, v.Name, v.Class), o.ID))
		}
		sample, count := s.sample(t), 0
		for _, v := range open {
			if v.Bind == bind && has(sample, v.ID, o.ID) { // Open MPI counts some on MPI_COMM_WORLD alone
				assert.NotNil(t, values(t, sample, v, o.ID), "%s", v.Name)
				count++
			}
		}
		assert.True(t, count > 0 || len(open) == 0, "no handle on an object of the kind")
		free()
		if bind != mpit.BindNone {
			assertGone(t, s, o)
		}
		return works
	}
}

// open are the library's variables of a kind that could be opened.
func (s *subject) open(bind mpit.Bind) []mpit.Variable {
	var open []mpit.Variable
	for _, v := range s.variables {
		if v.Bind == bind && v.State == mpit.VariableOpen && !s.awkward(v.Name) {
			open = append(open, v)
		}
	}
	return open
}

// has says whether the agent has a handle of a variable on an object.
func has(sample mpit.Sample, variable, object uint32) bool {
	return slices.ContainsFunc(sample.Layout.Handles, func(h mpit.Handle) bool {
		return h.Variable == variable &&
			h.Object == object
	})
}

// awkward says whether a variable has no values to read, or answers as the script says.
func (s *subject) awkward(name string) bool {
	for _, v := range s.library.Variables {
		if v.Name == name && (v.Fails != nil || v.Dead != "" || v.Empty || v.Overrun > 0) {
			return true
		}
	}
	return false
}

func assertNoHandle(t *testing.T, s *subject, bind mpit.Bind) {
	t.Helper()
	sample := s.sample(t)
	for _, h := range sample.Layout.Handles {
		assert.NotEqual(t, bind, sample.Variables.ByID[h.Variable].Bind, "%+v", sample.Variables.ByID[h.Variable])
	}
}

func assertDenied(t *testing.T, s *subject, bind mpit.Bind) {
	t.Helper()
	for _, v := range s.variables {
		if v.Bind == bind {
			assert.Equal(t, mpit.VariableDenied, v.State, v.Name)
		}
	}
}

// assertGone: neither the object nor a handle on it is there any more.
func assertGone(t *testing.T, s *subject, o mpit.Object) {
	t.Helper()
	layout := s.sample(t).Layout
	for _, other := range layout.Objects {
		assert.NotEqual(t, o.ID, other.ID, "%+v was freed", o)
	}
	for _, h := range layout.Handles {
		assert.NotEqual(t, o.ID, h.Object, "%+v was freed", o)
	}
}
