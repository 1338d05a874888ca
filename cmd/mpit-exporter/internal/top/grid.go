package top

import (
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// column is one of a grid. Numbers are aligned at their right.
type column struct {
	name   string
	number bool
}

// grid is a table.
type grid struct {
	columns []column
	rows    [][]Piece // as many cells as columns
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
	heads := make([]Piece, len(g.columns))
	for i, c := range g.columns {
		heads[i] = Piece{Text: c.name, Tone: Heading}
	}
	all := append([][]Piece{heads}, shown...)
	widths := widthsOf(all)
	var lines []Line
	for _, row := range all {
		var line Line
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-table.Width(cell.Text))
			if g.columns[i].number {
				line = append(line, Piece{Text: space}, cell)
			} else if line = append(line, cell); i < len(row)-1 {
				line = append(line, Piece{Text: space})
			}
			if i < len(row)-1 {
				line = append(line, Piece{Text: "  "})
			}
		}
		lines = append(lines, line)
	}
	if more != "" {
		lines = append(lines, Line{{Text: more, Tone: Faint}})
	}
	return lines
}

func widthsOf(rows [][]Piece) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], table.Width(cell.Text))
		}
	}
	return widths
}

// width is how many columns of the screen the grid's lines take.
func (g *grid) width() int {
	heads := make([]Piece, len(g.columns))
	for i, c := range g.columns {
		heads[i].Text = c.name
	}
	all := 2 * (len(heads) - 1)
	for _, width := range widthsOf(append([][]Piece{heads}, g.rows...)) {
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
