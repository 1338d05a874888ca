package mpit

import (
	"context"
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// ControlVariables asks for all control variables with their present values. It waits until the context ends. Until
// then what it returns counts as the rank's user's (Limits.Memory).
func (s *Session) ControlVariables(ctx context.Context) ([]ControlVariable, error) {
	size := func(c *ControlVariable) int {
		size := 160 + len(c.Name) + len(c.Description) + len(c.Text) + 8*len(c.Values)
		for i := range c.Objects {
			size += 64 + len(c.Objects[i].Text) + 8*len(c.Objects[i].Values)
		}
		return size
	}
	list, _, _, err := pages(ctx, s, "control variables", wire.TypeAskCvars, wire.TypeCvars, s.cvarSlot,
		decodeControlVariable, size)
	return list, err
}

// ReadCvar is MPI_T_cvar_read (MPI-4.1 §15.3.6), on a handle that is made for it and freed again, of the variable
// with MPI_T's index (ControlVariable.Index); object is an Object.ID, 0 for an unbound variable. For the errors see
// PvarSession.
func (s *Session) ReadCvar(ctx context.Context, index int, object uint32) (CvarValue, error) {
	a, err := s.tool(ctx, wire.ToolRequest{Operation: wire.ToolCvarRead, Index: index, Object: object}, 0)
	return a.value, err
}

// WriteCvar is MPI_T_cvar_write, for a variable and an object as ReadCvar takes them. It needs Hello.WriteAllowed.
// What its scope asks for, the same value in other ranks, is the caller's to do. The value has as many elements as
// ReadCvar returns; a text has at most 64 KiB, and 16,000 elements fit in one request.
func (s *Session) WriteCvar(ctx context.Context, index int, object uint32, v CvarValue) error {
	r := wire.ToolRequest{Operation: wire.ToolCvarWrite, Index: index, Object: object}
	if v.IsText {
		if err := checkText("the value", v.Text); err != nil {
			return err
		}
		r.Value = wire.Value{Kind: wire.ValueText, Text: v.Text}
	} else {
		if err := checkWords(len(v.Values)); err != nil {
			return err
		}
		r.Value = wire.Value{Kind: wire.ValueWords, Words: v.Values}
	}
	return s.do(ctx, r)
}

// CvarIndex is MPI_T_cvar_get_index (MPI-4.1 §15.3.6). A name that the library doesn't know is ErrInvalidName.
func (s *Session) CvarIndex(ctx context.Context, name string) (int, error) {
	return s.index(ctx, wire.ToolRequest{Operation: wire.ToolCvarIndex, Name: name})
}

// index asks for the index that belongs to a name.
func (s *Session) index(ctx context.Context, r wire.ToolRequest) (int, error) {
	if err := checkText("the name", r.Name); err != nil {
		return 0, err
	}
	a, err := s.tool(ctx, r, 0)
	return a.index, err
}

// checkText refuses what the protocol has no room for.
func checkText(what, text string) error {
	if len(text) > wire.MaxString {
		return fmt.Errorf("mpit: %s has %d bytes, the limit is %d", what, len(text), wire.MaxString)
	}
	return nil
}

// maxWrite is how many elements fit in a request, with room for its other fields.
const maxWrite = 16000

func checkWords(n int) error {
	if n > maxWrite {
		return fmt.Errorf("mpit: writing %d elements, the limit is %d", n, maxWrite)
	}
	return nil
}
