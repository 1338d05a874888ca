package client

import (
	"cmp"
	"context"
	"os"
	"slices"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Own says whether what belongs to a user is the caller's own. Anybody's ranks may claim any job; whose they are is the
// kernel's word, so one's own come first wherever there is a choice.
func Own(uid uint32) bool { return int(uid) == os.Getuid() }

// OwnFirst moves the caller's own to the front, and keeps the order otherwise.
func OwnFirst[T any](all []T, uid func(*T) uint32) {
	rank := func(of *T) int {
		if Own(uid(of)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(rank(&a), rank(&b)) })
}

// Values asks for the values of ranks, the caller's own first. The exporter shares the room in an answer between users.
func (c *HTTP) Values(ctx context.Context, command, remedy string) (list api.ValueList, err error) {
	err = c.Get(ctx, command, remedy, "values", &list)
	OwnFirst(list.Ranks, func(r *api.RankValues) uint32 { return r.Rank.UID })
	return list, err
}

// Catalogues asks for catalogues, in the same order.
func (c *HTTP) Catalogues(ctx context.Context, command, remedy string) (list api.CatalogueList, err error) {
	err = c.Get(ctx, command, remedy, "catalogue", &list)
	OwnFirst(list.Catalogues, func(r *api.Catalogue) uint32 { return r.Rank.UID })
	return list, err
}
