// Package table writes tables of text for people, and makes what stands in them harmless: it comes from ranks, and
// anybody's program may be a rank.
//
// It doesn't know what a table is about. Begin with Clean and Write.
package table

import (
	"cmp"
	"io"
	"os"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// MaxCell is how many columns of a long value a cell should show.
const MaxCell = 40

// Clean makes a row of cells.
func Clean(cells ...string) []string {
	for i, cell := range cells {
		cells[i] = mapping.OneLine(cell)
	}
	return cells
}

// Write writes the lines of a table (Aligned), however long they are; nothing if there are no rows.
func Write(w io.Writer, heads []string, rows [][]string) (err error) {
	if len(rows) > 0 {
		_, err = io.WriteString(w, strings.Join(Aligned(heads, rows, 0), "\n")+"\n")
	}
	return err
}

// Width is how many columns of a terminal a text takes: some characters take two, others none.
func Width(s string) int { return displaywidth.String(s) }

// Shorten cuts a text after so many columns.
func Shorten(s string, columns int) string { return displaywidth.TruncateString(s, columns, "…") }

// Middle leaves the middle of a text out so that it takes so many columns.
func Middle(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	begin := displaywidth.TruncateString(s, columns/2+1, "…")
	runes := []rune(s)
	end := len(runes)
	for room := columns - Width(begin); end > 0 && Width(string(runes[end-1:])) <= room; {
		end--
	}
	return begin + string(runes[end:])
}

// Wrap breaks a text into lines of so many columns, the first of which has less room; 0: there is no bound.
func Wrap(text string, columns, first int) (lines []string) {
	if columns <= 0 {
		return []string{text}
	}
	line, room := "", columns-first
	for _, word := range strings.Fields(text) {
		if line != "" && Width(line)+1+Width(word) > room {
			lines, line, room = append(lines, line), "", columns
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// narrow is how many columns a text keeps that is shortened for a small screen.
const narrow = 12

// Aligned are the lines of a table, the heading first if there is one. Cells are clean, "-" stands for an empty one,
// and a row may have fewer than there are heads. Heads that begin with ">" are those of columns that are aligned at
// their right. What is wider than so many columns of the screen is shortened, the longest texts first; 0: there is no
// bound.
func Aligned(heads []string, rows [][]string, columns int) (lines []string) {
	names, right, widths := make([]string, len(heads)), make([]bool, len(heads)), make([]int, len(heads))
	for i, head := range heads {
		names[i], right[i] = strings.CutPrefix(head, ">")
	}
	all := rows
	if strings.Join(names, "") != "" {
		all = append([][]string{names}, rows...)
	}
	for _, row := range all {
		for i := range row {
			row[i] = cmp.Or(row[i], "-")
			if len(row) > 1 {
				widths[i] = max(widths[i], Width(row[i]))
			}
		}
	}
	for columns > 0 {
		over, widest := 2*(len(widths)-1)-columns, -1
		for i, width := range widths {
			if over += width; !right[i] && width > narrow && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		if over <= 0 || widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			if len(row) > 1 {
				cell = Shorten(cell, widths[i])
			}
			space := strings.Repeat(" ", max(widths[i]-Width(cell), 0))
			if right[i] {
				cell, space = space+cell, ""
			}
			b.WriteString(cell + space + "  ")
		}
		line := strings.TrimRight(b.String(), " ")
		if columns > 0 {
			line = Shorten(line, columns)
		}
		lines = append(lines, line)
	}
	return lines
}

// Columns is how wide the terminal is that a stream is; 0: it is none.
func Columns(stream any) int {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 80
}
