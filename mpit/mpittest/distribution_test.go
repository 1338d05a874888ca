package mpittest

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Each duration stands in the bucket of docs/internals/protocol.md, Distributions.
func TestDistribution(t *testing.T) {
	for _, c := range []struct {
		duration time.Duration
		units    uint64
		bucket   int
	}{
		{-1, 0, 0},
		{0, 0, 0},
		{1, 1, 0}, // 1.07 units of 2^-30 s
		{2, 2, 1},
		{3, 3, 2},
		{4, 4, 2},
		{5, 5, 3},
		{time.Microsecond, 1074, 11},
		{time.Second, 1 << 30, 30},
		{time.Second + 1, 1<<30 + 1, 31},
		{4096 * time.Second, 1 << 42, 42},
		{4097 * time.Second, 4097 << 30, 43},
		{math.MaxInt64, 9903520314283042198, 43},
	} {
		words := Distribution(c.duration)
		require.Len(t, words, DistributionElements)
		for i, w := range words {
			want := uint64(0)
			switch i {
			case 0:
				want = c.units
			case c.bucket + 1:
				want = 1
			}
			assert.Equal(t, want, w, "%v: element %d", c.duration, i)
		}
	}
	assert.Equal(t, uint64(3), Distribution(1, 1, 2)[1].(uint64)+Distribution(1, 1, 2)[2].(uint64))
}

// Each size stands in the bucket of docs/internals/protocol.md, Distributions.
func TestSizes(t *testing.T) {
	for size, bucket := range map[uint64]int{
		0: 0, 1: 0, 2: 1, 3: 2, 4: 2, 1024: 10, 1025: 11, 1 << 42: 42, 1<<42 + 1: 43, math.MaxUint64: 43,
	} {
		words := Sizes(size)
		require.Len(t, words, DistributionElements)
		assert.Equal(t, size, words[0])
		assert.Equal(t, uint64(1), words[1+bucket], size)
	}
	assert.Equal(t, uint64(3), Sizes(1, 1, 2)[1].(uint64)+Sizes(1, 1, 2)[2].(uint64))
	assert.Equal(t, mpit.ClassAggregate, SizesVariable("v", mpit.BindComm).Class)
}

// A rank has the elements that its distribution needs, and sends them as they are.
func TestRankWithADistribution(t *testing.T) {
	r := New(Config{
		Variables: []mpit.Variable{DistributionVariable("calls", mpit.BindComm)},
		Objects:   []mpit.Object{{Kind: mpit.BindComm, Name: "halo", Size: 2}},
		Values:    []Value{{Name: "calls", Class: mpit.ClassTimer, Object: 1, Values: Distribution(time.Second)}},
	})
	require.NoError(t, r.Add("calls", mpit.ClassTimer, 1, Distribution(time.Second, 3*time.Second)...))
	l, err := mpit.Listen(filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	served := make(chan error, 1)
	sampled := make(chan mpit.Sample, 1)
	go func() {
		served <- l.Serve(ctx, func(ctx context.Context, s *mpit.Session) {
			if sample, err := s.Read(ctx); err == nil {
				sampled <- sample
			}
		}, func(mpit.Peer, error) {})
	}()
	require.NoError(t, r.Connect(ctx, l.Path()))
	defer r.Kill()
	sample := <-sampled
	assert.True(t, sample.Variables.ByID[0].Distribution)
	want := make([]uint64, DistributionElements)
	want[0], want[31], want[33] = 5<<30, 2, 1
	assert.Equal(t, want, sample.Values)
	cancel()
	assert.NoError(t, <-served)
}
