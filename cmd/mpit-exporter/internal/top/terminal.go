package top

import (
	"fmt"
	"io"
	"strings"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"
)

// Tone is how a piece of a line is meant. Where there are no colours (NO_COLOR, a VT100), words have to say it, too.
type Tone int

// The tones.
const (
	Usual   Tone = iota
	Heading      // of a table
	Faint        // of little interest
	Good
	Poor
	Bad
	Picked // of several, what is shown
)

// Piece is a part of a line.
type Piece struct {
	Text string
	Tone Tone
}

// Line is a line of text, without control characters.
type Line []Piece

// Text is a line without its tones.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Plain writes lines to what isn't a terminal.
func Plain(w io.Writer, lines []Line) error {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text() + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// OpenScreen takes the process's terminal over, until Fini.
func OpenScreen() (tcell.Screen, error) {
	// In a locale of few characters, such as ISO-8859-1, what has none of its own is shown in ASCII: the terminal may or
	// may not be one of UTF-8.
	tcell.SetEncodingFallback(tcell.EncodingFallbackASCII)
	// A terminal that is asked what it can do may answer late, over a slow line into the user's shell: nothing is used
	// that the VT220 hasn't.
	s, err := tcell.NewScreen(tcell.OptNegotiation(false), tcell.OptSanitizeContent(true))
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return nil, fmt.Errorf("taking over the terminal: %w", err)
	}
	for of, plain := range map[rune]string{'░': ".", '…': "~", 'µ': "u"} {
		s.RegisterRuneFallback(of, plain)
	}
	return s, nil
}

// Draw shows lines from the top of a terminal on, and in the last one what is wrong.
func Draw(s tcell.Screen, lines []Line, trouble string) {
	s.Clear()
	columns, height := s.Size()
	s.PutStrStyled(0, height-1, trouble, style(Bad))
	for y, line := range lines[:min(len(lines), max(height-1, 0))] {
		x := 0
		for _, p := range line {
			for text, width := p.Text, 0; text != "" && x < columns; x += width {
				if text, width = s.Put(x, y, text, style(p.Tone)); width == 0 {
					break // nothing to be seen; or the terminal has become smaller, which is an event
				}
			}
		}
	}
	s.Show()
}

func style(t Tone) tcell.Style {
	// The first eight colours are those of the user's theme.
	colour := func(n int) tcell.Style { return tcell.StyleDefault.Foreground(color.PaletteColor(n)).Bold(true) }
	switch t {
	case Heading:
		return tcell.StyleDefault.Bold(true)
	case Faint:
		return tcell.StyleDefault.Dim(true)
	case Good:
		return colour(2)
	case Poor: // yellow letters can't be read on white
		return colour(0).Background(color.PaletteColor(3))
	case Bad:
		return colour(1)
	case Picked:
		return tcell.StyleDefault.Reverse(true)
	}
	return tcell.StyleDefault
}

// Key is the key that was pressed: a letter, or a name such as Up and Ctrl-C; "" if it was something else.
func Key(e tcell.Event) string {
	key, is := e.(*tcell.EventKey)
	switch {
	case !is:
		return ""
	case key.Key() == tcell.KeyRune:
		return key.Str()
	}
	return tcell.KeyNames[key.Key()]
}

// Gone says whether an event is that there is no terminal any more: the channel is closed then, or has a failure.
func Gone(e tcell.Event) bool {
	_, failed := e.(*tcell.EventError)
	return e == nil || failed
}
