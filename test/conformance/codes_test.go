package conformance

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
)

func codeIn(err error, codes ...mpit.ReturnCode) bool {
	return slices.ContainsFunc(codes, func(c mpit.ReturnCode) bool { return errors.Is(err, c) })
}

// 15.3.10: errors.Is finds each code in what the Go API answers.
func returnCodes() section {
	var codes []mpit.ReturnCode
	for c := mpit.ErrMemory; c <= mpit.ErrNotAccessible; c++ {
		codes = append(codes, c)
	}
	return section{"15.3.10 Return codes", append(each(codes, func(c mpit.ReturnCode) string { return code(c) },
		passedOn),
		feature{"any other code", func(t *testing.T, s *subject) outcome {
			if !s.fixture() {
				return cannotTest(onDemandAlone)
			}
			_, err := s.failed(t, "12345")
			require.ErrorIs(t, err, mpit.ErrOther)
			return works
		}},
	)}
}

// failed asks for a control variable that the library refuses to read, once, with a code.
func (s *subject) failed(t *testing.T, word string) (mpit.CvarValue, error) {
	t.Helper()
	c := s.control(t, "scope_local")
	s.Do(t, "fail MPI_T_cvar_read %s scope_local 1", word)
	return s.session.ReadCvar(within(t), c.Index, 0)
}

func passedOn(want mpit.ReturnCode) check {
	return func(t *testing.T, s *subject) outcome {
		if s.fixture() && slices.Contains(fixture.ToolCodes, want.String()) {
			_, err := s.failed(t, want.String())
			require.ErrorIs(t, err, want)
			var refused *mpit.RefusedError
			require.ErrorAs(t, err, &refused)
			assert.Empty(t, refused.Why, "it was the library")
			assert.Contains(t, err.Error(), want.String())
			for other := mpit.ErrMemory; other <= mpit.ErrNotAccessible; other++ {
				assert.Equal(t, other == want, errors.Is(err, other), "%v", other)
			}
			return works
		}
		err, reason := s.provoke(t, want)
		if reason != "" {
			return cannotTest(reason)
		}
		require.ErrorIs(t, err, want)
		return works
	}
}

// provoke makes the library or the agent answer with a code; or says why that can't be.
//
//nolint:revive,staticcheck // the error is the result
func (s *subject) provoke(t *testing.T, want mpit.ReturnCode) (err error, reason string) {
	t.Helper()
	ctx := within(t)
	switch want {
	case mpit.ErrInvalidName:
		_, err = s.session.CvarIndex(ctx, "no such variable")
	case mpit.ErrInvalidIndex:
		_, err = s.session.ReadCvar(ctx, 1<<20, 0)
	case mpit.ErrInvalidSession:
		ps, free := s.opened(t)
		free()
		err = ps.StartAll(ctx)
	case mpit.ErrOutOfSessions:
		var all []*mpit.PvarSession
		for range 17 {
			ps, e := s.session.CreatePvarSession(ctx)
			if e != nil {
				err = e
				break
			}
			all = append(all, ps)
		}
		for _, ps := range all {
			require.NoError(t, ps.Free(ctx))
		}
	case mpit.ErrCvarSetNever:
		for _, c := range s.controls {
			if c.Scope == mpit.ScopeReadOnly && c.Code == mpit.Success && c.Datatype == mpit.DatatypeInt {
				return s.session.WriteCvar(ctx, c.Index, 0, mpit.CvarValue{Values: c.Values}), ""
			}
		}
		return nil, onDemandAlone
	case mpit.ErrCvarSetNotNow:
		if s.mpi.Name != "openmpi" {
			return nil, onDemandAlone
		}
		c := s.control(t, "mpool_base_default_priority")
		err = s.session.WriteCvar(ctx, c.Index, 0, mpit.CvarValue{Values: c.Values})
	case mpit.ErrNotAccessible: // MPI-4.1's, which no library here knows: the agent's own
		r := s.start(t, s.library, fixture.Options{})
		for _, c := range r.cvars(t) {
			if c.Scope >= mpit.ScopeLocal && c.Datatype == mpit.DatatypeInt && len(c.Values) == 1 {
				err = r.session.WriteCvar(ctx, c.Index, 0, mpit.CvarValue{Values: c.Values})
				break
			}
		}
		s.end(t, r.Program)
	case mpit.ErrInvalidHandle, mpit.ErrPvarNoStartStop, mpit.ErrPvarNoWrite, mpit.ErrPvarNoAtomic:
		return s.provokeHandle(t, want)
	default:
		return nil, onDemandAlone
	}
	return err, ""
}

//nolint:revive,staticcheck // as above
func (s *subject) provokeHandle(t *testing.T, want mpit.ReturnCode) (err error, reason string) {
	t.Helper()
	ctx := within(t)
	_, h, free := s.first(t, func(v mpit.Variable) bool { return v.Continuous })
	if h == nil {
		return nil, noVariables
	}
	defer free()
	switch want {
	case mpit.ErrPvarNoStartStop:
		return h.Start(ctx), ""
	case mpit.ErrPvarNoWrite:
		return h.Reset(ctx), ""
	case mpit.ErrPvarNoAtomic:
		return nil, "Its variables are readonly, and that error comes first."
	default:
		require.NoError(t, h.Free(ctx))
		return h.Free(ctx), ""
	}
}
