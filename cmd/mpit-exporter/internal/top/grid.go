package top

import (
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// grid is a table. Heads of columns that are aligned at their right begin with ">".
type grid struct {
	heads []string
	rows  [][]Piece // as many cells as heads
}

// cells are those of a row, clean.
func cells(tone Tone, texts ...string) []Piece {
	row := make([]Piece, len(texts))
	for i, text := range texts {
		row[i] = Piece{Text: mapping.OneLine(text), Tone: tone}
		if row[i].Text == "" {
			row[i] = Piece{Text: "-", Tone: Faint}
		}
	}
	return row
}

// lines are those of a grid with so many rows.
func (g *grid) lines(rows int) []Line {
	if len(g.rows) == 0 || rows <= 0 {
		return nil
	}
	shown, more := g.rows, ""
	if left := len(g.rows) - rows; left > 0 {
		if shown = g.rows[:max(rows-1, 1)]; rows > 1 { // the last line says how many there are besides
			more = "… and " + strconv.Itoa(left+1) + " more"
		}
	}
	all, widths := g.withHeads(shown)
	var lines []Line
	for _, row := range all {
		var line Line
		gap := ""
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-table.Width(cell.Text))
			if strings.HasPrefix(g.heads[i], ">") {
				gap, space = gap+space, ""
			}
			line = append(line, Piece{Text: gap}, cell)
			gap = space + "  "
		}
		lines = append(lines, line)
	}
	if more != "" {
		lines = append(lines, Line{{Text: more, Tone: Faint}})
	}
	return lines
}

// withHeads are rows below the heads, and how wide the columns are then.
func (g *grid) withHeads(rows [][]Piece) (all [][]Piece, widths []int) {
	heads := make([]Piece, len(g.heads))
	for i, head := range g.heads {
		heads[i] = Piece{Text: strings.TrimPrefix(head, ">"), Tone: Heading}
	}
	all, widths = append([][]Piece{heads}, rows...), make([]int, len(heads))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], table.Width(cell.Text))
		}
	}
	return all, widths
}

// width is how many columns of the screen the grid's lines take.
func (g *grid) width() int {
	_, widths := g.withHeads(g.rows)
	all := 2 * (len(widths) - 1)
	for _, width := range widths {
		all += width
	}
	return all
}

// fit cuts a line to so many columns.
func fit(line Line, columns int) Line {
	for i := range line {
		width := table.Width(line[i].Text)
		if width > columns {
			line = append(Line{}, line[:i+1]...)
			if columns <= 0 {
				return line[:i]
			}
			line[i].Text = table.Shorten(line[i].Text, columns)
			return line
		}
		columns -= width
	}
	return line
}
