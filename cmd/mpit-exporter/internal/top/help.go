package top

import (
	"strings"
)

const help = `Keys
  Down Up j k Tab  the next job, or the one before
  Esc              the job that needs attention most
  space            refresh now
  q Ctrl-C         end

What is shown
  Figures cover the time between two refreshes, or the time since the job began.
  SHARE          share of all ranks' time
  MOST IN RANKS  the ranks that spend most of their time in it, and how much
  RANKS          from late to early: the others wait for the first
  █ USEFUL       outside MPI
  ▒ SEND, FILE   in MPI, but not to wait for other ranks
  ░ WAIT, COLLECTIVE, POLL   where a rank may wait for others

Any key goes back.`

// Help says what the keys do, and what the columns are.
func Help() (lines []Line) {
	for text := range strings.SplitSeq(help, "\n") {
		tone := Usual
		if text != "" && text[0] != ' ' {
			tone = Heading
		}
		lines = append(lines, Line{{Text: text, Tone: tone}})
	}
	return lines
}
