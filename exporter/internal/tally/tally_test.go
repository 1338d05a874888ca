package tally

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTally(t *testing.T) {
	tally := New[string](3)
	sums := func() map[string]int {
		sums, _ := tally.Since(0)
		return sums
	}
	a, over := tally.Replace(1, nil, []string{"x", "y"})
	assert.Zero(t, over)
	b, over := tally.Replace(1, nil, []string{"y", "z", "w"})
	assert.Equal(t, 1, over, "three of one user")
	c, over := tally.Replace(2, nil, []string{"y", "w"})
	assert.Zero(t, over, "another user has room of their own")
	assert.Equal(t, map[string]int{"x": 1, "y": 3, "z": 1, "w": 1}, sums())
	_, generation := tally.Since(0)
	a, _ = tally.Replace(1, a, []string{"x", "y"})
	news, now := tally.Since(generation)
	assert.Nil(t, news, "nothing has changed")
	assert.Equal(t, generation, now)
	a, over = tally.Replace(1, a, []string{"v"})
	assert.Zero(t, over, "in the place of what was given back")
	news, now = tally.Since(generation)
	assert.Equal(t, map[string]int{"v": 1, "y": 2, "z": 1, "w": 1}, news)
	assert.NotEqual(t, generation, now)
	tally.Replace(1, a, nil)
	tally.Replace(1, b, nil)
	tally.Replace(2, c, nil)
	assert.NotNil(t, sums(), "that there is nothing is news")
	assert.Empty(t, sums())
	assert.Empty(t, tally.used)
}
