package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxRankList is how many ranks a list may have: a short text can mean very many, and anybody may write it. A node has
// fewer, whatever their numbers are.
const maxRankList = 1 << 16

// ParseRanks reads a list of ranks such as "0,2-5", of at most 65,536. It returns them sorted, each once; an empty
// text is an empty list.
func ParseRanks(text string) ([]int, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var ranks []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("%q is no list of ranks such as 0,2-5", text)
		}
		if uint64(len(ranks))+to-from >= maxRankList {
			return nil, fmt.Errorf("%q names more than %d ranks; no node has so many", text, maxRankList)
		}
		for r := from; r <= to; r++ {
			ranks = append(ranks, int(r))
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}
