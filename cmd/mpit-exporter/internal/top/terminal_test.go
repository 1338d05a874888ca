package top

import (
	"testing"

	"github.com/gdamore/tcell/v3"
	"github.com/stretchr/testify/require"
)

// shrunk is a terminal that has become smaller since it was asked for its size: what is beyond it takes no text.
type shrunk struct {
	tcell.Screen
	t    *testing.T
	puts int
}

func (s *shrunk) Clear()                                         {}
func (s *shrunk) Show()                                          {}
func (s *shrunk) Size() (columns, lines int)                     { return 80, 25 }
func (s *shrunk) PutStrStyled(_, _ int, _ string, _ tcell.Style) {}

func (s *shrunk) Put(x, y int, text string, _ tcell.Style) (rest string, width int) {
	s.puts++
	require.Less(s.t, s.puts, 1000, "drawing comes to an end")
	if x >= 2 || y >= 1 {
		return text, 0
	}
	return text[1:], 1
}

func TestTerminalShrinksWhileItIsDrawn(t *testing.T) {
	s := &shrunk{t: t}
	Draw(s, []Line{{{Text: "job 17"}, {Text: "healthy"}}, {{Text: "98 % useful"}}}, "")
}
