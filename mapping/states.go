package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxItems is how many items of an enumeration become series each; of larger ones only the present value does.
const maxItems = 128

// ItemsOf is the items of an enumeration, with names that differ.
func ItemsOf(e *mpit.Enum) []Item {
	if e == nil || len(e.Items) > maxItems {
		return nil
	}
	var items []Item
	names, values := map[string]bool{}, map[int64]bool{}
	for _, it := range e.Items {
		if values[it.Value] {
			continue
		}
		name := CleanText(it.Name, maxStateName)
		if name == "" || names[name] {
			name = strings.TrimSpace(fmt.Sprintf("%s (%d)", name, it.Value))
		}
		if names[name] {
			continue
		}
		names[name], values[it.Value] = true, true
		items = append(items, Item{it.Value, name})
	}
	return items
}

// OutsideName names a value that has no series of its own: its number, or in an enumeration of more than maxItems its
// item. An item that is called by another one's number has been there first.
func (s *Spec) OutsideName(e *mpit.Enum, value int64) string {
	if s.Items == nil && e != nil {
		for _, it := range e.Items {
			if name := CleanText(it.Name, maxStateName); it.Value == value && name != "" {
				return name
			}
		}
	}
	name := strconv.FormatInt(value, 10)
	for slices.ContainsFunc(s.Items, func(it Item) bool { return it.Name == name }) {
		name = "(" + name + ")"
	}
	return name
}
