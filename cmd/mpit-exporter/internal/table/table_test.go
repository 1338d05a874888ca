package table

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		" two\n\tlines\r\n":    "two lines",
		"\x1b]0;title\x07bell": "]0;title bell",
		"r\xffd":               "r\uFFFDd",
		"zwei Wörter":          "zwei Wörter",
		"right\u202eleft":      "right left",
	} {
		assert.Equal(t, want, mapping.OneLine(text), "%q", text)
	}
}

func TestShorten(t *testing.T) {
	assert.Equal(t, "äöü", Shorten("äöü", 3))
	assert.Equal(t, "äö…", Shorten("äöüß", 3))
	assert.Equal(t, "作业", Shorten("作业", 4), "each takes two columns")
	assert.Equal(t, "作…", Shorten("作业流体", 4))
	assert.Equal(t, 1, Width("u\u0308"), "and a mark none")
}

func TestWrap(t *testing.T) {
	assert.Equal(t, []string{"流体", "力学 a"}, Wrap("流体 力学 a", 8, 2))
	assert.Equal(t, []string{"no bound"}, Wrap("no bound", 0, 0))
}

// Numbers end below one another; on a small screen the longest texts are shortened, and numbers never.
func TestAligned(t *testing.T) {
	rows := func() [][]string {
		return [][]string{{"7", "MPI_Reduce_scatter_block", "a communicator", "1.00 KiB"}, {"1234", "MPI_Send", "", "9 B"},
			{"… and more"}}
	}
	heads := []string{">CALLS", "FUNCTION", "ON", ">BYTES"}
	assert.Equal(t, []string{
		"CALLS  FUNCTION                  ON                 BYTES",
		"    7  MPI_Reduce_scatter_block  a communicator  1.00 KiB",
		" 1234  MPI_Send                  -                    9 B",
		"… and more"}, Aligned(heads, rows(), 0))
	assert.Equal(t, []string{
		"CALLS  FUNCTION      ON               BYTES",
		"    7  MPI_Reduce_…  a communica…  1.00 KiB",
		" 1234  MPI_Send      -                  9 B",
		"… and more"}, Aligned(heads, rows(), 43))
	assert.Equal(t, []string{"a     b", "long  -"}, Aligned([]string{"", ""}, [][]string{{"a", "b"}, {"long", ""}}, 0))
	for _, line := range Aligned(heads, rows(), 20) {
		assert.LessOrEqual(t, Width(line), 20)
	}
}
