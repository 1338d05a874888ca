package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The families of the call profile.
const (
	callTimes     = "mpit_call_time_seconds"
	callBytes     = "mpit_call_bytes_total"
	callSizes     = "mpit_call_size_bytes"
	callUncounted = "mpit_call_uncounted_total"
)

// callers is a function and the object that it was called on: "comm:NAME", "win:NAME", "file:NAME", or "-".
type callers struct{ function, object string }

// account is what a program has written down of them (test/programs/books.h), or what /metrics shows.
type account struct {
	calls   uint64
	bytes   map[string]float64 // by direction; none of them zero
	seconds float64            // in all calls, as the program's own clock says; zero where it has none
	longest float64
	buckets []*dto.Bucket // of /metrics
	sizes   sizes
}

// sizes is how large calls were: their sum, and how many were at most a power of two, and above the one below it.
type sizes struct {
	sum    float64
	powers map[int]uint64
}

// upTo is how many sizes are at most so many bytes, a power of two.
func (s sizes) upTo(bytes float64) (n uint64) {
	for power, calls := range s.powers {
		if math.Ldexp(1, power) <= bytes {
			n += calls
		}
	}
	return n
}

type books map[callers]*account

func (b books) account(key callers) *account {
	if b[key] == nil {
		b[key] = &account{bytes: map[string]float64{}, sizes: sizes{powers: map[int]uint64{}}}
	}
	return b[key]
}

// readBooks reads what each rank of a job has left at a point.
func readBooks(tb testing.TB, run *harness.Run, point string) []books {
	tb.Helper()
	all := make([]books, run.Ranks)
	for rank := range all {
		all[rank] = readRankBooks(tb, run, point, rank)
	}
	return all
}

// readRankBooks reads what one rank of a job has left at a point.
func readRankBooks(tb testing.TB, run *harness.Run, point string, rank int) books {
	tb.Helper()
	all := books{}
	file, err := os.Open(run.File(fmt.Sprintf("%s.books.%d", point, rank)))
	require.NoError(tb, err)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		field := strings.SplitN(lines.Text(), " ", 4)
		require.Len(tb, field, 4, "a line of the books: %q", lines.Text())
		value, err := strconv.ParseFloat(field[2], 64)
		require.NoError(tb, err, "a line of the books: %q", lines.Text())
		a := all.account(callers{field[0], field[3]})
		switch field[1] {
		case "calls":
			a.calls = uint64(value)
		case "nanoseconds":
			a.seconds = value / 1e9
		case "longest":
			a.longest = value / 1e9
		case "size":
			a.sizes.sum = value
		default:
			if power, ok := strings.CutPrefix(field[1], "size:"); ok {
				exponent, err := strconv.Atoi(power)
				require.NoError(tb, err, "a line of the books: %q", lines.Text())
				a.sizes.powers[exponent] = uint64(value)
			} else {
				a.bytes[field[1]] = value
			}
		}
	}
	require.NoError(tb, lines.Err())
	require.NoError(tb, file.Close())
	require.NotEmpty(tb, all)
	return all
}

// profileOf is what a scrape shows of a rank's calls.
func profileOf(s *harness.Scrape, run *harness.Run, rank int) (books, error) {
	profile := books{}
	times := map[callers]bool{}
	for _, series := range s.Select(callTimes, run.Labels(rank)) {
		key := callersOf(series.Labels)
		if times[key] {
			return nil, fmt.Errorf("%v has two series of %s", key, callTimes)
		}
		times[key] = true
		h, a := series.Metric.GetHistogram(), profile.account(key)
		a.calls, a.seconds, a.buckets = h.GetSampleCount(), h.GetSampleSum(), h.GetBucket()
		if last := a.buckets; len(last) == 0 || last[len(last)-1].GetCumulativeCount() != a.calls ||
			!math.IsInf(last[len(last)-1].GetUpperBound(), 1) {
			return nil, fmt.Errorf("%v: the buckets don't add up to the count: %v", key, h)
		}
	}
	for _, series := range s.Select(callBytes, run.Labels(rank)) {
		if series.Value != 0 {
			profile.account(callersOf(series.Labels)).bytes[series.Labels["direction"]] = series.Value
		}
	}
	return profile, nil
}

func callersOf(labels harness.Labels) callers {
	key := callers{labels["function"], "-"}
	for _, kind := range []string{"comm", "win", "file"} {
		if name, ok := labels[kind]; ok {
			if key.object != "-" {
				kind = key.object + " and " + kind
			}
			key.object = kind + ":" + name
		}
	}
	return key
}

// profiled: the page shows of each rank's calls what the rank has in its books, to the byte: nothing less and nothing
// more.
func profiled(run *harness.Run, all []books) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for rank, want := range all {
			got, err := profileOf(s, run, rank)
			if err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
			for _, difference := range want.differences(got) {
				failed = append(failed, fmt.Errorf("rank %d: %s", rank, difference))
			}
			failed = append(failed, s.Expect(callUncounted, run.Labels(rank), 0))
		}
		return errors.Join(failed...)
	}
}

// sized: the page shows how large each rank's calls were, as its books say, of those functions that have bytes; of none
// if nobody has asked for it.
func sized(run *harness.Run, all []books, asked bool, haveBytes map[string]bool) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for rank, own := range all {
			shown := map[callers]bool{}
			for _, series := range s.Select(callSizes, run.Labels(rank)) {
				key := callersOf(series.Labels)
				if shown[key] {
					return fmt.Errorf("rank %d: %v has two series of %s", rank, key, callSizes)
				}
				shown[key] = true
				want, h := own.there(key).sizes, series.Metric.GetHistogram()
				if h.GetSampleSum() != want.sum {
					failed = append(failed, fmt.Errorf("rank %d: %v: sizes of %v bytes in all, %v in the books", rank, key,
						h.GetSampleSum(), want.sum))
				}
				for _, b := range h.GetBucket() {
					if n := want.upTo(b.GetUpperBound()); b.GetCumulativeCount() != n {
						failed = append(failed, fmt.Errorf("rank %d: %v: %d calls of at most %v bytes, %d in the books", rank,
							key, b.GetCumulativeCount(), b.GetUpperBound(), n))
					}
				}
			}
			for key := range own {
				if want := asked && haveBytes[key.function]; want != shown[key] {
					failed = append(failed, fmt.Errorf("rank %d: %v has sizes: %t, and should: %t", rank, key, shown[key], want))
				}
			}
		}
		return errors.Join(failed...)
	}
}

// functionsWithBytes are those of which the library says that it can count sizes.
func functionsWithBytes(tb testing.TB) map[string]bool {
	tb.Helper()
	declared, err := os.ReadFile("../../mapping/testdata/catalogues/calls.yaml")
	require.NoError(tb, err)
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`mpit_call_size_(MPI_\w+)`).FindAllSubmatch(declared, -1) {
		all[string(m[1])] = true
	}
	require.NotEmpty(tb, all)
	return all
}

// differences says in which calls and bytes the two differ.
func (b books) differences(got books) []string {
	var found []string
	keys := maps.Clone(b)
	maps.Copy(keys, got)
	for key := range keys {
		want, got := b.there(key), got.there(key)
		if want.calls != got.calls {
			found = append(found, fmt.Sprintf("%v: %d calls on the page, %d made", key, got.calls, want.calls))
		}
		if !maps.Equal(want.bytes, got.bytes) {
			found = append(found, fmt.Sprintf("%v: bytes on the page %v, moved %v", key, got.bytes, want.bytes))
		}
	}
	slices.Sort(found)
	return found
}

// there returns the account of key, an empty one if there is none.
func (b books) there(key callers) account {
	if a := b[key]; a != nil {
		return *a
	}
	return account{}
}

// assertDurations compares a scrape's durations with those that the programs have measured around the same calls:
// what the library has measured lies inside of that, however busy the machine is. A thousandth is left for the
// clocks' rates.
func assertDurations(t *testing.T, s *harness.Scrape, run *harness.Run, all []books) {
	t.Helper()
	const rate = 1.001
	for rank, own := range all {
		profile, err := profileOf(s, run, rank)
		require.NoError(t, err)
		for key, want := range own {
			if want.seconds == 0 {
				continue // a program without a clock
			}
			got := profile.there(key)
			if want.seconds > 1 { // not what it has waited for a core, between its clock and the call
				assert.Positive(t, got.seconds, "rank %d: %v", rank, key)
			}
			assert.LessOrEqual(t, got.seconds, want.seconds*rate,
				"rank %d: %v has taken longer than the program has waited", rank, key)
			if longest := highest(got.buckets); longest >= 0 {
				assert.LessOrEqual(t, longest, want.longest*rate,
					"rank %d: a call of %v stands above its bucket: %v", rank, key, got.buckets)
			}
		}
	}
}

// highest is the lower bound of the highest bucket that holds something.
func highest(buckets []*dto.Bucket) float64 {
	bound := -1.0
	var before uint64
	for i, b := range buckets {
		if b.GetCumulativeCount() > before {
			bound = 0
			if i > 0 {
				bound = buckets[i-1].GetUpperBound()
			}
		}
		before = b.GetCumulativeCount()
	}
	return bound
}
