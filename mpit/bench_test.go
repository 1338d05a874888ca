package mpit_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/internal/wire"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// BenchmarkDecodeSample decodes what a rank answers when nothing has changed.
func BenchmarkDecodeSample(b *testing.B) {
	for name, cfg := range map[string]mpittest.Config{"small": small(), "everything": mpittest.Everything()} {
		b.Run(name, func(b *testing.B) {
			a := dialed(b, mpittest.New(cfg))
			answers := new(mpit.Answers)
			s, err := feed(answers, a.answer(wire.SampleRequest{})...)
			require.NoError(b, err)
			again := a.answer(wire.SampleRequest{
				Variables: s.Variables.Generation, Layout: s.Layout.Generation, Remains: s.Remains.Generation,
			})
			require.Len(b, again, 1)
			b.SetBytes(int64(len(again[0].Payload)))
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if _, whole, err := answers.Frame(again[0]); err != nil || !whole {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRound asks 256 ranks of 60 values at once and waits for all. The ranks are in the same process and share
// its processors.
func BenchmarkRound(b *testing.B) {
	const n = 256
	l := listen(b)
	sessions := make([]*mpit.Session, n)
	for i := range sessions {
		cfg := mpittest.Config{Hello: mpit.Hello{Rank: i, Size: n}}
		for v := range 60 {
			cfg.Variables = append(cfg.Variables, mpit.Variable{
				Name: fmt.Sprint("variable ", v), Class: mpit.ClassCounter, Datatype: mpit.DatatypeUnsignedLong,
				DatatypeBytes: 8,
			})
		}
		sessions[i] = connect(b, l, mpittest.New(cfg))
		read(b, sessions[i])
	}
	pending := make([]*mpit.Pending, n)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		for i, s := range sessions {
			pending[i] = s.Ask()
		}
		for _, p := range pending {
			if _, err := p.Sample(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
