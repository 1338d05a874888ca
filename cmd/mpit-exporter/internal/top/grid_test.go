package top

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Columns stand below each other whatever a job calls itself and its communicators.
func TestWideCharacters(t *testing.T) {
	g := grid{heads: []string{"JOB", ">CALLS", "ON"}, rows: [][]Piece{
		cells(Usual, "流体", "7", "halo"),
		cells(Usual, "solver", "12", "作业"),
	}}
	var lines []string
	for _, line := range g.lines(10) {
		lines = append(lines, line.Text())
	}
	assert.Equal(t, []string{
		"JOB     CALLS  ON",
		"流体        7  halo",
		"solver     12  作业",
	}, lines)
	assert.Equal(t, 19, g.width())

	assert.Equal(t, "job 流…", fit(Line{{Text: "job "}, {Text: "流体力学"}}, 8).Text())
}
