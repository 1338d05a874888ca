package mpit_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Each takes all that he can get, one at a time.
func TestShares(t *testing.T) {
	s := mpit.NewShares(100, 0)
	greedy := func(uid uint32) (n int) {
		for s.Take(uid, 1) {
			n++
		}
		return n
	}
	assert.Equal(t, 50, greedy(1), "half")
	assert.Equal(t, 25, greedy(2), "half of the rest")
	assert.Equal(t, 12, greedy(3))
	s.Give(1, 50)
	assert.Equal(t, 19, greedy(2), "it is free again")
}

// However many users have taken all that they can get, the next one finds some.
func TestSharesOfManyUsers(t *testing.T) {
	const limit = 1 << 20
	s := mpit.NewShares(limit, 0)
	most := func(uid uint32) (n int) {
		for step := limit; step > 0; step /= 2 {
			for s.Take(uid, step) {
				n += step
			}
		}
		return n
	}
	assert.Equal(t, limit/2, most(0))
	for uid := range uint32(50) {
		most(uid + 1)
	}
	assert.Greater(t, most(99), limit/2048)
}

// Whatever users do, there is never more than the limit, and never nothing for somebody who has nothing.
func TestSharesAlwaysLeaveSome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1<<12, 1<<20).Draw(t, "limit")
		s := mpit.NewShares(limit, 0)
		has, all := map[uint32]int{}, 0
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			uid, n := uint32(rapid.IntRange(0, 3).Draw(t, "uid")), rapid.IntRange(1, limit).Draw(t, "n")
			if rapid.Bool().Draw(t, "give") && has[uid] > 0 {
				n = min(n, has[uid])
				s.Give(uid, n)
				n = -n
			} else if !s.Take(uid, n) {
				continue
			}
			has[uid] += n
			if all += n; all > limit {
				t.Fatalf("%d of %d", all, limit)
			}
		}
		if !s.Take(9, 1) {
			t.Fatalf("nothing left of %d: %v", limit, has)
		}
	})
}

// users is who connects, one after the other.
type users struct{ now atomic.Uint32 }

func (u *users) option() mpit.ListenOption {
	return mpit.WithPeers(func(*net.UnixConn) (mpit.Peer, error) { return mpit.Peer{UID: u.now.Load()}, nil })
}

// One user has as many connections as he can get; another one's ranks come in all the same.
func TestConnectionsOfOneUser(t *testing.T) {
	var u users
	l := listen(t, u.option(), mpit.WithLimits(mpit.Limits{Connections: 16}))
	sessions, failures, _ := serve(t, l)
	connect := func() (*mpit.Session, *mpittest.Rank) {
		r := mpittest.New(small())
		t.Cleanup(r.Kill)
		// fails where the listener is quicker to close it than the rank to say HELLO
		_ = r.Connect(testContext(t), l.Path())
		select {
		case s := <-sessions:
			return s, r
		case f := <-failures:
			assertReason(t, mpit.ReasonConnections, f.err)
			return nil, nil
		}
	}
	var hog []*mpit.Session
	for {
		s, _ := connect()
		if s == nil {
			break
		}
		hog = append(hog, s)
	}
	assert.Len(t, hog, 8)
	u.now.Store(1000)
	for range 3 {
		s, _ := connect()
		require.NotNil(t, s, "another user")
		_, err := s.Read(testContext(t))
		require.NoError(t, err)
		hog = append(hog, s)
	}
	for _, s := range hog {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool { n, bytes := l.Held(); return n == 0 && bytes == 0 }, 2*time.Minute,
		time.Millisecond)
}

// manyVariables is a rank with a large catalogue.
func manyVariables(n int) mpittest.Config {
	cfg := small()
	for i := range n {
		cfg.Variables = append(cfg.Variables, mpit.Variable{
			Name: fmt.Sprintf("variable %d", i), Description: strings.Repeat("x", 100), Class: mpit.ClassCounter,
			Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8,
		})
	}
	return cfg
}

// What one user's ranks have sent is bounded, whatever each of them may send; another one's are not hurt, and what
// was held is given back.
func TestMemoryOfOneUser(t *testing.T) {
	var u users
	l := listen(t, u.option(), mpit.WithLimits(mpit.Limits{Memory: 4 << 20}))
	read := func(cfg mpittest.Config) error {
		s := connect(t, l, mpittest.New(cfg))
		_, err := s.Read(testContext(t))
		if err == nil {
			_, err = s.Read(testContext(t)) // nothing new: it needs nothing more
		}
		return err
	}
	held := 0
	for {
		err := read(manyVariables(500))
		if err != nil {
			assertReason(t, mpit.ReasonMemory, err)
			break
		}
		held++
	}
	assert.Greater(t, held, 2)
	_, bytes := l.Held()
	assert.LessOrEqual(t, bytes, 2<<20, "half of it")
	u.now.Store(1000)
	require.NoError(t, read(manyVariables(100)))
}

// A catalogue that several ranks of a user have counts once, until the last of them has gone. Another user's counts
// for himself.
func TestMemoryOfACatalogueThatRanksShare(t *testing.T) {
	var u users
	l := listen(t, u.option())
	held := func() int { _, bytes := l.Held(); return bytes }
	come := func(cfg mpittest.Config) (s *mpit.Session, more int) {
		before := held()
		s = connect(t, l, mpittest.New(cfg))
		for range 2 {
			_, err := s.Read(testContext(t))
			require.NoError(t, err)
		}
		return s, held() - before
	}
	cfg := manyVariables(500)
	const catalogue = 500 * 200 // at least
	first, whole := come(cfg)
	second, more := come(cfg)
	assert.Less(t, more, whole-catalogue)
	other := cfg
	other.Variables = append(slices.Clone(cfg.Variables), mpit.Variable{Name: "one more", Class: mpit.ClassCounter,
		Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8})
	third, more := come(other)
	assert.Greater(t, more, whole-catalogue/10)
	u.now.Store(1000)
	fourth, more := come(cfg)
	assert.InDelta(t, whole, more, catalogue/10)

	before := held()
	require.NoError(t, first.Close())
	assert.Less(t, before-held(), whole-catalogue, "the second one has it still")
	for _, s := range []*mpit.Session{second, third, fourth} {
		require.NoError(t, s.Close())
	}
	require.Eventually(t, func() bool { return held() == 0 }, 2*time.Minute, time.Millisecond)
}

// What a rank has sent counts until Close, though its connection may have ended: it may not have been taken in. A list
// of control variables counts until its asker's context ends.
func TestMemoryOfWhatIsBeingTakenIn(t *testing.T) {
	l := listen(t)
	held := func() int { _, bytes := l.Held(); return bytes }
	cfg := manyVariables(100)
	for i := range 1000 {
		cfg.ControlVariables = append(cfg.ControlVariables, mpit.ControlVariable{Index: i, Name: fmt.Sprint("cvar", i),
			Datatype: mpit.DatatypeInt, Scope: mpit.ScopeConstant})
	}
	r := mpittest.New(cfg)
	s := connect(t, l, r)
	_, err := s.Read(testContext(t))
	require.NoError(t, err)
	before := held()
	asking, cancel := context.WithCancel(testContext(t))
	list, err := s.ControlVariables(asking)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(list), 1000)
	asked := held()
	assert.Greater(t, asked, before+100*1000)
	cancel()
	require.Eventually(t, func() bool { return held() <= asked-100*1000 }, 2*time.Minute, time.Millisecond)
	r.Kill()
	await(t, "its end", s.Done())
	assert.Greater(t, held(), 100*100)
	require.NoError(t, s.Close())
	assert.Zero(t, held())
}

// A frame that never comes whole holds its part of the memory, and no more than has arrived.
func TestMemoryOfHalfAFrame(t *testing.T) {
	l := listen(t, mpit.WithLimits(mpit.Limits{Memory: 1 << 20}))
	sessions, _, _ := serve(t, l)
	conn := dial(t, l.Path())
	r := dialed(t, mpittest.New(small()))
	_, err := conn.Write(encoded(r.hello))
	require.NoError(t, err)
	s := <-sessions
	p := s.Ask()
	var e wire.Encoder
	e.Begin(wire.TypeLayout, 1)
	e.Words(make([]uint64, wire.MaxAgentPayload/wire.WordBytes))
	e.Finish()
	_, err = conn.Write(e.Bytes()[:100<<10])
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, bytes := l.Held(); return bytes > 100<<10 }, 2*time.Minute,
		time.Millisecond)
	_, bytes := l.Held()
	assert.Less(t, bytes, 300<<10)
	_, _ = conn.Write(e.Bytes()[100<<10:])
	_, err = p.Sample()
	assertReason(t, mpit.ReasonMemory, err)
	require.NoError(t, s.Close())
}

// Requests that a rank does not read wait in its user's share of memory.
func TestMemoryOfARankThatDoesNotRead(t *testing.T) {
	l := listen(t, mpit.WithLimits(mpit.Limits{Memory: 300 << 10}))
	sessions, _, _ := serve(t, l)
	conn := dial(t, l.Path())
	_, err := conn.Write(encoded(dialed(t, mpittest.New(small())).hello))
	require.NoError(t, err)
	s := <-sessions
	for err == nil {
		err = selectOne(t, s, 0)
		_, bytes := l.Held()
		require.LessOrEqual(t, bytes, 150<<10)
	}
	require.ErrorIs(t, err, mpit.ErrCongested)
	_, bytes := l.Held()
	assert.Greater(t, bytes, 64<<10, "what waits is counted")
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { _, bytes := l.Held(); return bytes == 0 }, 2*time.Minute, time.Millisecond)
}

func TestHelloIsBounded(t *testing.T) {
	l := listen(t)
	_, failures, _ := serve(t, l)
	var e wire.Encoder
	e.Begin(wire.TypeHello, 0)
	e.Words(make([]uint64, wire.MaxHello/wire.WordBytes+1))
	e.Finish()
	_, err := dial(t, l.Path()).Write(e.Bytes()[:wire.HeaderBytes])
	require.NoError(t, err)
	assertReason(t, mpit.ReasonTooLarge, (<-failures).err)
}
