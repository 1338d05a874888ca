package top

import (
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
)

const help = `Keys
  Down Up j k Tab  the next job, or the one before
  Esc              the job that needs somebody most, whichever it is
  s                sort by the next column; the one that counts is marked
  v                variables of MPI_T that move, not calls and ranks; and back
  space            look at once
  q Ctrl-C         end

What is shown
  Figures are of the time between two looks, or since the job began.
  SHARE          of all ranks' time
  MOST IN RANKS  in which ranks it is largest, and their own share
  RANKS          from late to early: the others wait for the first
  █ USEFUL       outside MPI
  ▒ SEND, FILE   in MPI, but not to wait for other ranks
  ░ WAIT, COLLECTIVE   where a rank waits for others, if it does

Any key goes back.`

// Help says what the keys do, and what the columns are.
func Help() (lines []terminal.Line) {
	for text := range strings.SplitSeq(help, "\n") {
		tone := terminal.Usual
		if text != "" && text[0] != ' ' {
			tone = terminal.Heading
		}
		lines = append(lines, terminal.Line{{Text: text, Tone: tone}})
	}
	return lines
}
