package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// ranks listens in the exporter's place: what the agents say, before anybody makes metrics of it. It is safe for
// concurrent use.
type ranks struct {
	socket string

	mutex  sync.Mutex
	living map[int]*mpit.Session // by rank, the last one that came
	final  map[int]*mpit.Session // the connections with a last sample
	broken []error
}

// listen takes every rank that connects, until the test ends.
func listen(t *testing.T) *ranks {
	t.Helper()
	r := &ranks{
		socket: filepath.Join(suite.Dir(t), "ranks.sock"),
		living: map[int]*mpit.Session{},
		final:  map[int]*mpit.Session{},
	}
	listener, err := mpit.Listen(r.socket)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Serve(ctx, r.take, r.complain) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range r.broken {
			t.Error(err)
		}
	})
	return r
}

func (r *ranks) take(ctx context.Context, s *mpit.Session) {
	r.mutex.Lock()
	if s.Hello().Final {
		r.final[s.Hello().Rank] = s
	} else {
		r.living[s.Hello().Rank] = s
	}
	r.mutex.Unlock()
	select {
	case <-s.Done():
	case <-ctx.Done():
		_ = s.Close()
	}
	if _, ok := s.Final(); ok {
		r.mutex.Lock()
		r.final[s.Hello().Rank] = s
		r.mutex.Unlock()
	}
}

func (r *ranks) complain(_ mpit.Peer, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = append(r.broken, err)
}

func (r *ranks) session(connections map[int]*mpit.Session, rank int) (*mpit.Session, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if s := connections[rank]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("rank %d has not connected", rank)
}

// await reads a rank until its sample passes check, and returns that sample.
func (r *ranks) await(t *testing.T, rank int, what string, check func(mpit.Sample) error) (hello mpit.Hello,
	sample mpit.Sample) {
	t.Helper()
	harness.Await(t, what, func(ctx context.Context) error {
		s, err := r.session(r.living, rank)
		if err != nil {
			return err
		}
		hello = s.Hello()
		if sample, err = s.Read(ctx); err != nil {
			return err
		}
		if sample.Layout == nil {
			return errors.New("no layout yet")
		}
		return check(sample)
	})
	return hello, sample
}

// last waits for a rank's last sample.
func (r *ranks) last(t *testing.T, rank int) (hello mpit.Hello, sample mpit.Sample) {
	t.Helper()
	harness.Await(t, "the last sample", func(context.Context) error {
		s, err := r.session(r.final, rank)
		if err != nil {
			return err
		}
		hello = s.Hello()
		var ok bool
		if sample, ok = s.Final(); !ok {
			return errors.New("no last sample")
		}
		return nil
	})
	return hello, sample
}

// described is an object in one line, without what differs from run to run: its numbers and times. A communicator
// that others were made on stands there by its name.
func described(layout *mpit.Layout, o mpit.Object) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", o.Kind.Label(), o.Name)
	if o.Predefined {
		b.WriteString(" predefined")
	}
	if o.Inter {
		b.WriteString(" inter")
	}
	if o.Size >= 0 {
		fmt.Fprintf(&b, " %d/%d", o.Rank, o.Size)
	}
	if o.On != 0 {
		name := "?"
		for _, other := range layout.Objects {
			if other.ID == o.On {
				name = other.Name
			}
		}
		fmt.Fprintf(&b, " on=%s", name)
	}
	for _, d := range o.Details {
		if d.Key == "base" { // an address
			continue
		}
		fmt.Fprintf(&b, " %s=%s", d.Key, d.Value)
	}
	return b.String()
}

// inventory describes all objects, sorted.
func inventory(s mpit.Sample) []string {
	list := []string{}
	for _, o := range s.Layout.Objects {
		list = append(list, described(s.Layout, o))
	}
	slices.Sort(list)
	return list
}
