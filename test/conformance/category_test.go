package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/fixture"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// 15.3.9: categories form a directed acyclic graph.
func categories() section {
	return section{"15.3.9 Variable categorisation", []feature{
		{"listed, with name and description", categoriesListed},
		{"members: performance variables", members(func(c trueCategory) []int { return c.Pvars },
			func(c mpit.Category) []int { return c.Variables })},
		{"members: control variables", members(func(c trueCategory) []int { return c.Cvars },
			func(c mpit.Category) []int { return c.ControlVariables })},
		{"members: categories", members(func(c trueCategory) []int { return c.Categories },
			func(c mpit.Category) []int { return c.Subcategories })},
		{"a category with several parents", severalParents},
		{"index of a name", categoryIndex},
		{"the change stamp", stamp},
		{"appear later", laterCategory},
		{"`mpit_pvar_category_info` on `/metrics`", categoryInfo},
	}}
}

func categoriesListed(t *testing.T, s *subject) outcome {
	require.Len(t, s.categories, len(s.truth.Categories))
	found := notOffered
	for i, c := range s.truth.Categories {
		found = works
		assert.Equal(t, c.Index, s.categories[i].Index)
		assert.Equal(t, string(c.Name), s.categories[i].Name)
		assert.True(t, string(c.Description) == s.categories[i].Description, "%s", c.Name)
	}
	return found
}

func members(truth func(trueCategory) []int, agent func(mpit.Category) []int) check {
	return func(t *testing.T, s *subject) outcome {
		found := notOffered
		for i, c := range s.truth.Categories {
			if len(truth(c)) > 0 {
				found = works
			}
			assert.ElementsMatch(t, truth(c), agent(s.categories[i]), c.Name)
		}
		return found
	}
}

func severalParents(t *testing.T, s *subject) outcome {
	found := notOffered
	for _, c := range s.truth.Categories {
		var want, have []string
		for _, parent := range s.truth.Categories {
			if slices.Contains(parent.Categories, c.Index) {
				want = append(want, string(parent.Name))
			}
		}
		for _, parent := range s.categories {
			if slices.Contains(parent.Subcategories, c.Index) {
				have = append(have, parent.Name)
			}
		}
		assert.ElementsMatch(t, want, have, c.Name)
		if len(want) > 1 {
			found = works
		}
	}
	return found
}

func categoryIndex(t *testing.T, s *subject) outcome {
	_, err := s.session.CategoryIndex(within(t), "no such category")
	require.ErrorIs(t, err, mpit.ErrInvalidName)
	found := notOffered
	for _, c := range s.truth.Categories {
		index, err := s.session.CategoryIndex(within(t), string(c.Name))
		require.NoError(t, err, c.Name)
		assert.Equal(t, c.Index, index, c.Name)
		found = works
	}
	return found
}

func stamp(t *testing.T, s *subject) outcome {
	_, first, err := s.session.Categories(within(t))
	require.NoError(t, err)
	assert.NotZero(t, first)
	assert.Equal(t, first, s.sample(t).Stats.CategoryStamp)
	_, again, err := s.session.Categories(within(t))
	require.NoError(t, err)
	assert.Equal(t, first, again, "nothing has changed")
	if !s.fixture() {
		return works
	}
	r := s.start(t, s.library, fixture.Options{})
	before := r.sample(t).Stats.CategoryStamp
	r.Do(t, "appear category category_later")
	assert.NotEqual(t, before, r.sample(t).Stats.CategoryStamp)
	s.end(t, r.Program)
	return works
}

func laterCategory(t *testing.T, s *subject) outcome {
	if !s.fixture() {
		return cannotTest(neverLater)
	}
	r := s.start(t, s.library, fixture.Options{})
	_, err := r.session.CategoryIndex(within(t), "category_later")
	require.ErrorIs(t, err, mpit.ErrInvalidName)
	r.Do(t, "appear category category_later")
	index, err := r.session.CategoryIndex(within(t), "category_later")
	require.NoError(t, err)
	all, _, err := r.session.Categories(within(t))
	require.NoError(t, err)
	at := slices.IndexFunc(all, func(c mpit.Category) bool { return c.Index == index })
	require.GreaterOrEqual(t, at, 0)
	c := all[at]
	assert.Equal(t, "Not there at first.", c.Description)
	var parents []string
	for _, p := range all {
		if slices.Contains(p.Subcategories, index) {
			parents = append(parents, p.Name)
		}
	}
	assert.Equal(t, []string{"top"}, parents)
	assert.Len(t, c.Variables, 2)
	s.end(t, r.Program)
	return works
}

func categoryInfo(t *testing.T, s *subject) outcome {
	type row struct{ name, class, category string }
	var want []row
	for _, c := range s.truth.Categories {
		for _, index := range c.Pvars {
			for _, v := range s.truth.Pvars {
				if v.Index == index {
					want = append(want, row{string(v.Name), v.Class.String(), string(c.Name)})
				}
			}
		}
	}
	if want == nil {
		return notOffered
	}
	s.page.exporter.Await(t, "the categories of variables", func(p *harness.Scrape) error {
		for _, w := range want {
			if _, err := p.One("mpit_pvar_category_info",
				harness.Labels{"name": w.name, "category": w.category, "class": w.class}); err != nil {
				return err
			}
		}
		found := slices.DeleteFunc(p.Select("mpit_pvar_category_info", nil), func(s harness.Series) bool {
			return s.Labels["category"] == eventCategory
		})
		if len(found) != len(want) {
			return fmt.Errorf("%d series, not %d", len(found), len(want))
		}
		return nil
	})
	return works
}
