package mpit_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Ranks with the same catalogue have one list of variables. Who says anything else has his own, and changes nobody's.
func TestRanksShareTheirCatalogue(t *testing.T) {
	l := listen(t)
	read := func(change func(v *mpit.Variable)) (*mpit.Session, []mpit.Variable) {
		cfg := small()
		cfg.Variables = slices.Clone(cfg.Variables)
		change(&cfg.Variables[len(cfg.Variables)-1])
		s := connect(t, l, mpittest.New(cfg))
		sample, err := s.Read(testContext(t))
		require.NoError(t, err)
		return s, sample.Variables.ByID
	}
	same := func(*mpit.Variable) {}
	first, mine := read(same)
	was := slices.Clone(mine)
	for _, test := range []struct {
		name   string
		change func(v *mpit.Variable)
	}{
		{"name", func(v *mpit.Variable) { v.Name += "s" }},
		{"description", func(v *mpit.Variable) { v.Description += "!" }},
		{"verbosity", func(v *mpit.Variable) { v.Verbosity++ }},
		{"atomic", func(v *mpit.Variable) { v.Atomic = !v.Atomic }},
		{"distribution", func(v *mpit.Variable) { v.Distribution = !v.Distribution }},
		{"on request", func(v *mpit.Variable) { v.OnRequest = !v.OnRequest }},
		{"enumeration", func(v *mpit.Variable) {
			v.Enum = &mpit.Enum{ID: 77, Name: "e", Items: []mpit.EnumItem{{Value: 1, Name: "one"}}}
		}},
		{"item of an enumeration", func(v *mpit.Variable) {
			v.Enum = &mpit.Enum{ID: 77, Name: "e", Items: []mpit.EnumItem{{Value: 1, Name: "two"}}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, theirs := read(test.change)
			assert.NotSame(t, &mine[0], &theirs[0])
			last := theirs[len(theirs)-1]
			want := was[len(was)-1]
			test.change(&want)
			want.State, want.Code = last.State, last.Code
			assert.Equal(t, want, last)
			_, again := read(test.change)
			assert.Same(t, &theirs[0], &again[0], "but others like it share that")
		})
	}
	_, again := read(same)
	assert.Same(t, &mine[0], &again[0])
	assert.Equal(t, was, again)

	// A catalogue that grows leaves what is shared, and goes on by itself.
	sample, err := first.Read(testContext(t))
	require.NoError(t, err)
	assert.Same(t, &mine[0], &sample.Variables.ByID[0])
}

func TestSharedCataloguesAreFreed(t *testing.T) {
	l := listen(t)
	for range 3 {
		s := connect(t, l, mpittest.New(small()))
		_, err := s.Read(testContext(t))
		require.NoError(t, err)
		assert.Equal(t, 1, l.Alike())
		require.NoError(t, s.Close())
		assert.Eventually(t, func() bool { runtime.GC(); return l.Alike() == 0 }, 2*time.Minute, time.Millisecond)
	}
}
