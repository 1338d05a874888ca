package mapping

import (
	"bytes"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// seedBlob is a blob with records of all kinds.
func seedBlob(t fataler) (*agent, []byte) {
	a := newAgent(on("v", mpit.ClassCounter, tUint), on("t", mpit.ClassTimer, tDouble), on("q", mpit.ClassSize, tInt), on("q", mpit.ClassHighWatermark, tInt))
	r := newRank(t, nil)
	x, y := a.object("c", 2), a.object("d", 2)
	a.set("v", x, uint64(1<<32-1), 5)
	a.set("v", y, 500, 5)
	a.set("t", x, 0.1, 0.2)
	for _, h := range a.handles {
		if h.Object == x && a.vars[h.Variable].Name == "q" {
			h.values[0] = 4
		}
	}
	r.Update(a.sample())
	a.set("v", x, 1, 5)
	a.set("v", y, 3, 5)
	r.Update(a.after(time.Minute).sample())
	a.free(x)
	r.Update(a.after(time.Minute).sample())
	blob, _ := r.Blob()
	return a, blob
}

func FuzzBlob(f *testing.F) {
	a, blob := seedBlob(f)
	f.Add(blob)
	f.Add([]byte{})
	f.Add([]byte{blobVersion, recordTimer})
	f.Add([]byte{blobVersion, recordVariable, 6, 1, 'v', recordObject, 1, 'c', recordExcluding, 0, 0, 1, 5, 1, 0, 1, 3, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := newMapper(t).NewRank(Library{}, b)
		if r == nil {
			t.Fatal("a Rank must be usable whatever its blob is")
		}
		if err != nil && r.restored != nil {
			t.Fatal("a damaged blob must be left alone")
		}
		for range 2 {
			r.Update(a.sample())
		}
		for _, s := range r.Series() {
			if s.Valid && s.Metric.Monotonic && !(s.Value >= 0) {
				t.Fatalf("%s is %v", s.Metric.Name, s.Value)
			}
		}
		r.dirty = true
		out, _ := r.Blob()
		if len(out) > MaxBlob {
			t.Fatalf("%d bytes", len(out))
		}
		if _, err := newMapper(t).NewRank(Library{}, out); err != nil {
			t.Fatalf("its own blob: %v", err)
		}
	})
}

func TestDamagedBlob(t *testing.T) {
	a, blob := seedBlob(t)
	for _, bad := range [][]byte{{99}, {blobVersion, 77}, blob[:len(blob)-3], bytes.Repeat([]byte{1}, MaxBlob+1)} {
		r, err := newMapper(t).NewRank(Library{}, bad)
		require.Error(t, err)
		r.Update(a.sample())
		assert.NotEmpty(t, show(r))
	}
}

// A blob holds as much as it can, the wraps first; the rest is counted.
func TestFullBlob(t *testing.T) {
	a := newAgent(on("v", mpit.ClassCounter, tUint), on("t", mpit.ClassTimer, tDouble))
	r := newRank(t, nil)
	for i := range 1500 {
		x := a.object(string(rune('a'+i%26))+time.Duration(i).String(), 1)
		a.set("v", x, uint64(1<<32-1))
		a.set("t", x, float64(i+1))
	}
	r.Update(a.sample())
	for _, h := range a.handles {
		if a.vars[h.Variable].Name == "v" {
			h.values[0] = 1
		} else {
			h.values[0] = word(h.values[0] + 1)
		}
	}
	r.Update(a.after(time.Minute).sample())
	blob, _ := r.Blob()
	assert.LessOrEqual(t, len(blob), MaxBlob)
	assert.Positive(t, r.Dropped()[ReasonBlobFull])
	again := newRank(t, blob)
	again.Update(a.sample())
	for _, s := range again.Series() {
		if s.Metric.Kind == KindCounter {
			require.Equal(t, float64(1<<32+1), s.Value)
		}
	}
}

// FuzzUpdate gives a rank catalogues, layouts and values that no agent would send.
func FuzzUpdate(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08 some bytes to make a catalogue of, and then some more values"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mapper := newMapper(t, Defaults()...)
		r, _ := mapper.NewRank(Library{OpenMPI, "5.0"}, nil)
		next := func() int {
			if len(b) == 0 {
				return 0
			}
			x := b[0]
			b = b[1:]
			return int(x)
		}
		var clock time.Duration
		for range 4 {
			vars := &mpit.Variables{}
			for i := range next() % 8 {
				v := mpit.Variable{ID: uint32(i), Name: string(rune('a' + next()%4)), Class: mpit.Class(next() % 12), Datatype: mpit.Datatype(next() % 17),
					DatatypeBytes: next() % 20, Bind: mpit.Bind(next() % 14), State: mpit.VariableState(next() % 8)}
				if next()%2 == 0 {
					v.Enum = &mpit.Enum{Items: []mpit.EnumItem{{Value: int64(next()), Name: "x"}, {Value: 1, Name: "x"}}}
				}
				vars.ByID = append(vars.ByID, v)
			}
			layout := &mpit.Layout{}
			for range next() % 4 {
				layout.Objects = append(layout.Objects, mpit.Object{ID: uint32(next() % 4), Kind: mpit.BindComm, Name: string([]byte{byte(next())})})
			}
			for range next() % 10 {
				h := mpit.Handle{ID: uint32(next() % 8), Variable: uint32(next() % 9), Object: uint32(next() % 4), Count: next()%6 - 1, Offset: next()%12 - 1}
				if next()%2 == 0 {
					h.First = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Origin = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Excluded = make([]uint64, next()%6)
					for i := range h.Excluded {
						h.Excluded[i] = uint64(int64(int8(next()))) << (next() % 64)
					}
				}
				layout.Handles = append(layout.Handles, h)
			}
			remains := &mpit.Remains{}
			for range next() % 4 {
				words := func() []uint64 {
					w := make([]uint64, next()%5)
					for i := range w {
						w[i] = uint64(next()) << (next() % 64)
					}
					return w
				}
				remains.List = append(remains.List, mpit.Remain{Variable: uint32(next() % 9), Name: string([]byte{byte(next())}), Gained: words(), First: words(), Max: words(), Min: words()})
			}
			for range 3 {
				clock += time.Duration(next()) * time.Second / 8
				s := &mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock, Time: time.Unix(int64(next()), 0)}
				s.Status = []mpit.SampleStatus{mpit.SampleFresh, mpit.SamplePaused}[next()%2]
				s.Stats.PcontrolCalls = uint64(next() % 3)
				for range next() % 24 {
					s.Values = append(s.Values, uint64(next())<<(next()%64))
				}
				s.Failed = []mpit.FailedHandle{{Handle: uint32(next() % 8)}}
				r.Update(s)
				for _, series := range r.Series() {
					if series.Valid && (series.Metric.Monotonic && series.Value < 0 || math.IsNaN(series.Value)) {
						t.Fatalf("%s is %v", series.Metric.Name, series.Value)
					}
					for _, l := range series.Labels {
						if !utf8.ValidString(l.Value) {
							t.Fatalf("label %q", l.Value)
						}
					}
				}
			}
			blob, _ := r.Blob()
			again, err := mapper.NewRank(Library{OpenMPI, "5.0"}, blob)
			if err != nil {
				t.Fatal(err)
			}
			again.Update(&mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock})
			r.Infos()
			r.Objects()
			r.Select()
			r.Dropped()
		}
	})
}

func FuzzCleanName(f *testing.F) {
	f.Add("é\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		n := CleanName(s)
		if n == "" || len(n) > maxObjectName || !utf8.ValidString(n) || bytes.IndexByte([]byte(n), 0) >= 0 {
			t.Errorf("%q becomes %q", s, n)
		}
		if CleanName(n) != n {
			t.Errorf("%q isn't clean", n)
		}
	})
}

func FuzzRuleGlob(f *testing.F) {
	f.Add("a*b?", "axxby")
	f.Fuzz(func(t *testing.T, glob, name string) {
		m, err := New(Config{Rules: []Rule{{Match: Match{Name: glob}, Name: "x"}}})
		if err == nil {
			if got, _, ok := m.Metric(Library{}, mpit.Variable{Name: name, Datatype: tInt}); ok {
				checkMetric(t, got)
			}
		}
	})
}
