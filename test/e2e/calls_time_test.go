package e2e

import (
	"bytes"
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Durations agree with those that the program has measured by its own clock around the same calls: sums within 5 %,
// where calls are long enough that what lies between the two pairs of clock reads is nothing beside them; and the one
// long call stands in its bucket.
func TestCallDurations(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{
				MPI: mpi, Program: "profile_time.c", Args: []string{"100", harness.HoldDir}, Socket: exporter.Socket,
				Exec: []string{"--calls"},
			})
			run.AtHold(t, "done")
			done := readBooks(t, run, "done")
			scrape := exporter.Await(t, "all calls", all(up(run), profiled(run, done)))
			assertDurations(t, scrape, run, done)
			native := scrapeNative(t, exporter)

			compared := 0
			for rank, own := range done {
				profile, err := profileOf(scrape, run, rank)
				require.NoError(t, err)
				for key, want := range own {
					// A thread's and a function's first call is longer, for what is made ready in it. One that is long
					// by the program's clock alone has waited for a core before it.
					got := profile.there(key).seconds
					if want.calls >= 10 && min(want.seconds, got)/float64(want.calls) > 200e-6 {
						assert.InEpsilon(t, want.seconds, got, 0.05, "rank %d: %v", rank, key)
						compared++
					}
				}
				expectNative(t, native, run, rank, profile)
			}
			assert.GreaterOrEqual(t, compared, 5, "functions whose calls wait")

			// The one call that has waited for most of a second: its bucket holds what lies between nine tenths of
			// what the program has measured, and that.
			slow := callers{"MPI_Allreduce", "comm:slow"}
			took := done[0][slow].longest
			require.Greater(t, took, 0.5)
			h := nativeOf(t, native, run, 0, slow)
			require.Len(t, h.GetPositiveDelta(), 1, "one call, one bucket: %v", h)
			upper := math.Exp2(float64(h.GetPositiveSpan()[0].GetOffset()))
			assert.Less(t, upper/2, took)
			assert.GreaterOrEqual(t, upper, 0.9*took)
			run.Finish(t, "done")
		})
	}
}

// scrapeNative reads the page in the format that has native histograms.
func scrapeNative(t *testing.T, exporter *harness.Exporter) *harness.Scrape {
	t.Helper()
	body, _ := exporter.Get(t, "/metrics", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	scrape := &harness.Scrape{Families: map[string]*dto.MetricFamily{}}
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		family := &dto.MetricFamily{}
		if decoder.Decode(family) != nil {
			return scrape
		}
		scrape.Families[family.GetName()] = family
	}
}

// nativeOf finds the histogram of a rank's calls.
func nativeOf(t *testing.T, s *harness.Scrape, run *harness.Run, rank int, key callers) *dto.Histogram {
	t.Helper()
	for _, series := range s.Select(callTimes, run.Labels(rank)) {
		if callersOf(series.Labels) == key {
			return series.Metric.GetHistogram()
		}
	}
	require.Fail(t, "no histogram", "%v", key)
	return nil
}

// expectNative: each native histogram has the count of the classic one, in buckets of powers of two that add up to it.
func expectNative(t *testing.T, s *harness.Scrape, run *harness.Run, rank int, classic books) {
	t.Helper()
	for key, want := range classic {
		h := nativeOf(t, s, run, rank, key)
		assert.Zero(t, h.GetSchema(), "%v", key)
		assert.Equal(t, want.calls, h.GetSampleCount(), "%v", key)
		sum, bucket := int64(h.GetZeroCount()), int64(0)
		for _, delta := range h.GetPositiveDelta() {
			bucket += delta
			sum += bucket
		}
		assert.Equal(t, int64(want.calls), sum, "%v: %v", key, h)
	}
}
