package control

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/units"
)

func TestRankLists(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, " ": nil, "0": {0}, "0,2-5": {0, 2, 3, 4, 5}, "5,1,1": {1, 5}, "3-4, 4-5": {3, 4, 5},
		"2000000": {2000000},
	} {
		got, err := parseRanks(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"x", "-1", "1-", "5-2", "1,,2", "0-", "99999999999", "0-65536", "0-65535,0",
		"0-60000,0-60000"} {
		_, err := parseRanks(text)
		assert.Error(t, err, text)
	}
	for text, ranks := range map[string][]int{"": nil, "3": {3}, "0,1": {0, 1}, "0-2,7": {0, 1, 2, 7}} {
		assert.Equal(t, text, units.Ranks(ranks))
	}
}

func FuzzParseRanks(f *testing.F) {
	f.Add("0,2-5")
	f.Fuzz(func(t *testing.T, text string) {
		ranks, err := parseRanks(text)
		if err != nil {
			return
		}
		again, err := parseRanks(units.Ranks(ranks))
		if err != nil {
			t.Fatal(err)
		}
		assert.Equal(t, ranks, again)
	})
}
