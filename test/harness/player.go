package harness

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Player is a process of the test's own program that plays ranks: it does what a line on its stdin says, and answers
// with a line.
type Player struct {
	stdin *os.File
	said  chan string
}

// said collects a player's answers.
type said chan string

func (s said) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		s <- strings.TrimSpace(line)
	}
	return len(p), nil
}

// StartPlayer starts the test's own program again, with one more variable in its environment, which says what it is to
// be.
func (s *Suite) StartPlayer(tb testing.TB, variable string, arguments ...string) *Player {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	p := &Player{said: make(chan string, 64)}
	_, p.stdin = s.StartTalking(tb, append([]string{self}, arguments...), []string{variable}, said(p.said))
	return p
}

// Do tells it to do something, and waits until it answers that.
func (p *Player) Do(tb testing.TB, answer string, what ...any) {
	tb.Helper()
	_, err := fmt.Fprintln(p.stdin, what...)
	require.NoError(tb, err)
	p.Await(tb, answer)
}

// Await waits for its answer.
func (p *Player) Await(tb testing.TB, answer string) {
	tb.Helper()
	Await(tb, "the player's answer", func(ctx context.Context) error {
		select {
		case line := <-p.said:
			require.Equal(tb, answer, line)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
