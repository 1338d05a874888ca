package series

import (
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// fuzzRules are ways to show the same variables.
var fuzzRules = [][]rules.Rule{
	nil,
	{{Merge: mapping.MergeEach, Elements: mapping.MergePeer, Nonzero: &yes}},
	{{Nonzero: &yes}},
	{{Object: &no, Elements: mapping.MergeMin, Merge: mapping.MergeMax, Buckets: []float64{1, 2}}},
	{{Drop: &yes}},
	{{Match: rules.Match{Class: rules.List{"counter", "timer", "size"}}, Class: "level"}},
	{{Match: rules.Match{Regexp: "(?P<letter>.).*"}, Name: "x"}},
}

func FuzzRuleGlob(f *testing.F) {
	f.Add("a*b?", "axxby")
	f.Fuzz(func(t *testing.T, glob, name string) {
		m, err := variables.New(variables.Config{Rules: []rules.Rule{{Match: rules.Match{Name: glob}, Name: "x"}}})
		if err == nil {
			if got, _, ok := m.Metric(mapping.Library{}, mpit.Variable{Name: name, Datatype: tInt}); ok {
				checkMetric(t, got)
			}
		}
	})
}

// FuzzUpdate gives a rank catalogues, layouts and values that no agent would send.
func FuzzUpdate(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08 some bytes to make a catalogue of, and then some more values"))
	// Compiling rules takes longer than all that is done by them.
	mapper, mappers := newMapper(f, rules.Defaults()...), make([]*variables.Mapper, len(fuzzRules))
	for i, list := range fuzzRules {
		mappers[i] = newMapper(f, list...)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewRank(mapper, variables.Process{Library: mapping.Library{Name: mapping.OpenMPI, Version: "5.0"}})
		others := make([]*Rank, len(fuzzRules))
		for i, m := range mappers {
			others[i] = NewRank(m, variables.Process{})
		}
		defer func() {
			for _, o := range append(others, r) {
				o.Close()
			}
		}()
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
				v := mpit.Variable{ID: uint32(i), Name: string(rune('a' + next()%4)), Class: mpit.Class(next() % 12),
					Datatype:      mpit.Datatype(next() % 17),
					DatatypeBytes: next() % 20, Bind: mpit.Bind(next() % 14), State: mpit.VariableState(next() % 8)}
				if next()%4 == 0 {
					v.Class, v.Datatype, v.Distribution = mpit.ClassTimer, mpit.DatatypeUint64, true
				}
				if next()%2 == 0 {
					v.Enum = &mpit.Enum{Items: []mpit.EnumItem{{Value: int64(next()), Name: "x"},
						{Value: 1, Name: "x"}}}
				}
				vars.ByID = append(vars.ByID, v)
			}
			layout := &mpit.Layout{}
			for range next() % 4 {
				layout.Objects = append(layout.Objects,
					mpit.Object{ID: uint32(next() % 4), Kind: mpit.BindComm, Name: string([]byte{byte(next())})})
			}
			for range next() % 10 {
				h := mpit.Handle{ID: uint32(next() % 8), Variable: uint32(next() % 9), Object: uint32(next() % 4),
					Count: next()%6 - 1, Offset: next()%12 - 1}
				h.Earlier = &mpit.Earlier{}
				if next()%2 == 0 {
					h.Earlier.First = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Earlier.Origin = make([]uint64, next()%6)
				}
				if next()%2 == 0 {
					h.Earlier.Excluded = make([]uint64, next()%6)
					for i := range h.Earlier.Excluded {
						h.Earlier.Excluded[i] = uint64(int64(int8(next()))) << (next() % 64)
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
				remains.List = append(remains.List, mpit.Remain{Variable: uint32(next() % 9),
					Name: string([]byte{byte(next())}), Gained: words(), First: words(), Max: words(), Min: words()})
			}
			for range 3 {
				clock += time.Duration(next()) * time.Second / 8
				s := &mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock,
					Time: time.Unix(int64(next()), 0)}
				s.Status = []mpit.SampleStatus{mpit.SampleFresh, mpit.SamplePaused}[next()%2]
				s.Stats.PcontrolCalls = uint64(next() % 3)
				for range next() % 24 {
					s.Values = append(s.Values, uint64(next())<<(next()%64))
				}
				s.Failed = []mpit.FailedHandle{{Handle: uint32(next() % 8)}}
				r.Update(s)
				for i, o := range others {
					o.Update(s)
					o.Reload(mappers[(next()+i)%len(mappers)], s.Time)
					o.Update(s)
					show(others[i]) // panics where two series are the same
				}
				for _, series := range r.Series() {
					if series.Valid && (series.Metric.Kind == mapping.KindCounter && series.Value < 0 || math.IsNaN(series.Value)) {
						t.Fatalf("%s is %v", series.Metric.Name, series.Value)
					}
					for _, l := range series.Labels {
						if !utf8.ValidString(l.Value) {
							t.Fatalf("label %q", l.Value)
						}
					}
				}
			}
			again := NewRank(mapper, variables.Process{Library: mapping.Library{Name: mapping.OpenMPI,
				Version: "5.0"}, Older: time.Unix(100, 0)})
			again.Update(&mpit.Sample{Variables: vars, Layout: layout, Remains: remains, Monotonic: clock})
			r.Infos()
			r.Objects()
			r.Select()
			r.Dropped()
		}
	})
}
