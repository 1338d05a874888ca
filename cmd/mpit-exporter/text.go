// Package table writes tables of text for people: cells in columns, with nothing in them that a terminal would obey, as
// they come from ranks, and everybody may be a rank.
//
// It doesn't know what the cells are about. Begin with New.
package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// maxCell is how many characters of a long value a cell should show.
const maxCell = 40

// newTable returns a writer that aligns what rows there are in columns. Flush ends it.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// row writes a line of cells, "-" for an empty one.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = cmp.Or(clean(cell), "-")
	}
	line(w, cells...)
}

// line writes a line of cells that are clean. They end with tabs, except for the last: that one does not widen a column.
func line(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// clean makes one line of a text that came from a rank, with nothing in it that a terminal would obey.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

// shorten cuts a text after so many characters.
func shorten(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
