package job

import (
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

// where names a call under way.
func where(c *api.CallUnderWay) string {
	function := c.Function
	if c.Of != "" {
		function += " of " + c.Of
	}
	return Called{Function: function, Object: c.Object}.where()
}

func plural(count int, one, several string) string {
	if count == 1 {
		return one
	}
	return several
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Truncate(time.Second).String()
}

// ranksOf names ranks: "rank 3", "ranks 0-2,5".
func ranksOf(ranks []*Rank) string {
	numbers := make([]int, len(ranks))
	for i := range ranks {
		numbers[i] = ranks[i].Rank
	}
	slices.Sort(numbers)
	return plural(len(numbers), "rank ", "ranks ") + clean.Cut(units.Ranks(slices.Compact(numbers)), 60)
}
