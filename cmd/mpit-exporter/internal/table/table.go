// Package table writes tables of text for people, and makes what stands in them harmless: it comes from ranks, and
// anybody's program may be a rank.
//
// It doesn't know what a table is about. Begin with New and Row.
package table

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// MaxCell is how many columns of a long value a cell should show.
const MaxCell = 40

// New returns a writer that aligns what rows there are in columns. Flush ends it.
func New(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Row writes a line of cells, "-" for an empty one.
func Row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(mapping.OneLine(cell), "-")
	}
	Line(w, cells...)
}

// Line writes a line of cells that are clean. They end with tabs, except for the last: that one does not widen a
// column.
func Line(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// Width is how many columns of a terminal a text takes: some characters take two, others none.
func Width(s string) int { return displaywidth.String(s) }

// Shorten cuts a text after so many columns.
func Shorten(s string, columns int) string { return displaywidth.TruncateString(s, columns, "…") }

// Numbers writes numbers, of ranks, shortly and in their order: 0-2,7.
func Numbers(all []int) string {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	var parts []string
	for i := 0; i < len(all); {
		end := i
		for end+1 < len(all) && all[end+1] == all[end]+1 {
			end++
		}
		part := strconv.Itoa(all[i])
		if end > i {
			part += "-" + strconv.Itoa(all[end])
		}
		parts = append(parts, part)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// IsTerminal says whether a stream is a terminal.
func IsTerminal(stream any) bool { return Columns(stream) > 0 }

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
