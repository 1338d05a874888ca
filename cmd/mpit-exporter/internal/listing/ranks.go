package listing

import (
	"context"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// catalogueTimeout is how long a rank may take to say everything.
	catalogueTimeout = 10 * time.Second
	// lastWordsTimeout is how long after the program's end its last samples are waited for: they have been sent by
	// then.
	lastWordsTimeout = time.Second
)

// listedRanks gathers what the ranks of the program say. One of them is enough, but which one lives long enough is
// not known beforehand.
type listedRanks struct {
	mapper *variables.Mapper
	last   chan struct{} // gets a token when a last sample has come that is worth it

	mu    sync.Mutex     // held while a rank is read: one after the other
	id    mpit.RankID    // of the rank that is listed
	whole *api.Catalogue // nil: it has not been read
	final *api.Catalogue // of its last sample, or of the first that came where none has been read
}

func newListedRanks(mapper *variables.Mapper) *listedRanks {
	return &listedRanks{mapper: mapper, last: make(chan struct{}, 1)}
}

// handle serves one connection; it is mpit.Listener.Serve's.
func (l *listedRanks) handle(ctx context.Context, s *mpit.Session) {
	defer func() { _ = s.Close() }()
	if !s.Hello().Final {
		l.read(ctx, s)
	}
	// A closed connection would be made anew, again and again.
	select {
	case <-s.Done():
	case <-ctx.Done():
	}
	if sample, ok := s.Final(); ok {
		l.takeFinal(s, &sample)
	}
}

// read reads the rank's catalogue, unless another rank's has been read.
func (l *listedRanks) read(ctx context.Context, s *mpit.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catalogueTimeout)
	defer cancel()
	c, err := api.CatalogueOf(ctx, s, l.mapper)
	if err != nil {
		return // it has ended too early, or hangs: another rank, or the last sample, will do
	}
	if id := s.Hello().ID; l.id != id {
		l.id, l.final = id, nil
	}
	l.whole = &c
}

// takeFinal keeps the last sample of the rank that was read, or of the first one that brings one.
func (l *listedRanks) takeFinal(s *mpit.Session, sample *mpit.Sample) {
	id, c := s.Hello().ID, api.CatalogueOfSample(s, sample, l.mapper)
	c.Rank.State = "ended"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole == nil && l.final == nil || l.whole != nil && l.id == id {
		l.id, l.final = id, &c
		select {
		case l.last <- struct{}{}:
		default:
		}
	}
}

// awaitLastWords waits for the last sample that takeFinal would keep.
func (l *listedRanks) awaitLastWords(ctx context.Context) {
	select {
	case <-l.last:
	case <-time.After(lastWordsTimeout):
	case <-ctx.Done():
	}
}

// catalogue puts together what was said, and says what is missing. The last sample knows more variables than an
// earlier one: some libraries make them when they are first needed.
func (l *listedRanks) catalogue() (c api.Catalogue, missing string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.whole != nil:
		c = *l.whole
		if l.final != nil {
			c.Update(l.final)
		}
		return c, "", true
	case l.final != nil:
		return *l.final, "the program ended before its control variables and categories could be asked " +
			"for; only the performance variables, which came with its last sample, are shown", true
	}
	return c, "", false
}
