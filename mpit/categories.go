package mpit

import (
	"context"

	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
)

// maxCategoryRounds is how often the categories are asked for anew because they changed between two answers.
const maxCategoryRounds = 4

// CategoryIndex is MPI_T_category_get_index (MPI-4.1 §15.3.9). A name that the library doesn't know is ErrInvalidName.
func (s *Session) CategoryIndex(ctx context.Context, name string) (int, error) {
	return s.index(ctx, wire.ToolRequest{Operation: wire.ToolCategoryIndex, Name: name})
}

// Categories asks for all categories, which come in the order of their indices, and for their stamp
// (MPI_T_category_changed, MPI-4.1 §15.3.9): as long as AgentStats.CategoryStamp is the same, and not 0, they are too.
// It waits until the context ends.
//
// It asks until all answers have one stamp. Where that never happens the stamp is that of the first answer, so that a
// later look at the rank's own sees that something has changed.
func (s *Session) Categories(ctx context.Context) (list []Category, stamp uint64, err error) {
	size := func(c *Category) int {
		lists := len(c.Variables) + len(c.ControlVariables) + len(c.Subcategories)
		return 160 + len(c.Name) + len(c.Description) + 8*lists
	}
	for round := 1; ; round++ {
		list, stamp, same, err := pages(ctx, s, "categories", wire.TypeAskCategories, wire.TypeCategories,
			s.categorySlot, decodeCategory, size)
		if err != nil || same || round == maxCategoryRounds {
			return list, stamp, err
		}
	}
}
