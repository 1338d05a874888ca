package mpit

import (
	"context"
	"fmt"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// tool asks for an operation of TOOL and waits for its answer. count is how many elements a handle has that is read.
// The error is a *RefusedError, or what else was in the way.
func (s *Session) tool(ctx context.Context, r wire.ToolRequest, count int) (toolAnswer, error) {
	answer := new(toolAnswer) // the reader's for as long as it may still come
	q := toolQuestion(s.toolSlots, r, count, answer)
	// What is made for somebody who has gone would fill the rank until the connection ends.
	q.undo = func() *question {
		free := wire.ToolRequest{Operation: wire.ToolSessionFree, Session: answer.session}
		switch {
		case answer.refused != nil:
			return nil
		case r.Operation == wire.ToolHandleAlloc:
			free = wire.ToolRequest{Operation: wire.ToolHandleFree, Session: r.Session, Handle: answer.handle}
		case r.Operation != wire.ToolSessionCreate:
			return nil
		}
		return toolQuestion(s.toolSlots, free, 0, new(toolAnswer))
	}
	if err := s.ask(ctx, q); err != nil {
		return toolAnswer{}, fmt.Errorf("mpit: asking rank %d for %v: %w", s.hello.Rank, r.Operation, err)
	}
	if answer.refused != nil {
		return toolAnswer{}, answer.refused
	}
	return *answer, nil
}

// do is tool for an operation that returns nothing.
func (s *Session) do(ctx context.Context, r wire.ToolRequest) error {
	_, err := s.tool(ctx, r, 0)
	return err
}

// toolQuestion is an operation of TOOL; its answer goes to answer.
func toolQuestion(slots chan struct{}, r wire.ToolRequest, count int, answer *toolAnswer) *question {
	return &question{
		slot:   slots,
		typ:    wire.TypeTool,
		encode: r.Append,
		decode: func(payload []byte, _ map[uint32]*Enum) (err error) {
			*answer, err = decodeTool(payload, r.Operation, count)
			return err
		},
	}
}
