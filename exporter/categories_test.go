package exporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

func TestTopological(t *testing.T) {
	type place struct {
		index   int
		parents []int // indices
		depth   int
	}
	category := func(index int, children ...int) mpit.Category {
		return mpit.Category{Index: index, Subcategories: children}
	}
	for _, test := range []struct {
		name string
		list []mpit.Category
		want []place
	}{
		{"none", nil, nil},
		{"as they are", []mpit.Category{category(3), category(1)}, []place{{3, nil, 0}, {1, nil, 0}}},
		{"parents first", []mpit.Category{category(0), category(1, 0), category(2, 1)}, []place{{2, nil, 0}, {1, []int{2}, 1}, {0, []int{1}, 2}}},
		{"two parents of different depth", []mpit.Category{category(0, 1, 2), category(1, 2), category(2)},
			[]place{{0, nil, 0}, {1, []int{0}, 1}, {2, []int{0, 1}, 2}}},
		{"named twice, unknown, itself", []mpit.Category{category(0, 1, 1, 9, 0), category(1)}, []place{{0, nil, 0}, {1, []int{0}, 1}}},
		{"a cycle comes last", []mpit.Category{category(0, 1), category(1, 0), category(2)}, []place{{2, nil, 0}, {0, []int{1}, 0}, {1, []int{0}, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []place
			for _, p := range topological(test.list) {
				entry := place{index: test.list[p.at].Index, depth: p.depth}
				for _, at := range p.parents {
					entry.parents = append(entry.parents, test.list[at].Index)
				}
				got = append(got, entry)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Whatever is said, each category comes once; without cycles each behind its parents and deeper than they are.
func TestTopologicalOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		acyclic := rapid.Bool().Draw(t, "acyclic")
		list := make([]mpit.Category, n)
		for i := range list {
			list[i].Index = i
			for _, child := range rapid.SliceOfN(rapid.IntRange(0, 14), 0, 5).Draw(t, "children") {
				if !acyclic || child < i {
					list[i].Subcategories = append(list[i].Subcategories, child)
				}
			}
		}
		order := topological(list)
		position := map[int]int{}
		for i, p := range order {
			position[p.at] = i
		}
		require.Len(t, position, n)
		for i, p := range order {
			for _, parent := range p.parents {
				if acyclic {
					assert.Less(t, position[parent], i)
					assert.Greater(t, p.depth, order[position[parent]].depth)
				}
			}
		}
	})
}
