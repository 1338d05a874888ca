package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	defaultTimerInterval = 10 * time.Second
	maxBuckets           = 64
)

// Basis is what holds for every variable of which no rule says otherwise.
type Basis struct {
	Interval time.Duration // least time between two observations of a timer whose durations are estimated
	Buckets  []float64     // of such timers' histograms, upper bounds in seconds
	Exact    []float64     // the same of distributions of time
	Sizes    []float64     // the same of distributions of sizes, in bytes
}

// NewBasis fills in defaults: an interval of 0 is 10 s.
func NewBasis(interval time.Duration) (*Basis, error) {
	b := &Basis{Interval: cmp.Or(interval, defaultTimerInterval),
		Buckets: DefaultBuckets(), Exact: powers(-20, 4), Sizes: powers(0, 26)}
	if b.Interval < 0 {
		return nil, fmt.Errorf("timer interval %v is below zero", b.Interval)
	}
	return b, nil
}

// CheckBuckets says what is wrong with upper bounds of a histogram: there are 1 to 64, above zero, and they rise.
func CheckBuckets(b []float64) error {
	if len(b) == 0 || len(b) > maxBuckets {
		return fmt.Errorf("%d bounds; there must be 1 to %d", len(b), maxBuckets)
	}
	for i, x := range b {
		if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
			return fmt.Errorf("bound %v is not a number above zero", x)
		}
		if i > 0 && x <= b[i-1] {
			return errors.New("bounds must rise")
		}
	}
	return nil
}

// DefaultBuckets are the upper bounds of timers' histograms in seconds: 1 µs and each time four times more, up to
// about a minute. They are to hold both a single call's duration and the time gained in one interval.
func DefaultBuckets() []float64 {
	return []float64{
		0.000001, 0.000004, 0.000016, 0.000064, 0.000256, 0.001024, 0.004096, 0.016384, 0.065536, 0.262144, 1.048576,
		4.194304, 16.777216, 67.108864,
	}
}

// powers are the upper bounds of distributions' histograms, if no rule says otherwise: every second power of two, of
// durations from about a microsecond to 16 s, of sizes from a byte, which has messages without data too, to 64 MiB.
func powers(from, to int) []float64 {
	var bounds []float64
	for exponent := from; exponent <= to; exponent += 2 {
		bounds = append(bounds, math.Ldexp(1, exponent))
	}
	return bounds
}
