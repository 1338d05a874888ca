package mapping

import (
	"math"
	"math/bits"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// NameOf is what rules call a class: "state", "level" …; "unknown" for one that MPI_T doesn't have.
func NameOf(c mpit.Class) string { return strings.ToLower(c.String()) }

// BindLabel is the label that names an object of kind b: "comm", "win" …; "" for BindNone, "bound" for a kind that
// isn't known.
func BindLabel(b mpit.Bind) string {
	if b > mpit.BindLast {
		return "bound"
	}
	return b.Label()
}

// Number says how the 64 bits of a value are read.
type Number uint8

// The ways to read a word of a sample.
const (
	NotNumber Number = iota
	Signed
	Unsigned
	Floating
)

// NumberOf says how values of a datatype are read; NotNumber: they are none that a metric can have.
func NumberOf(d mpit.Datatype) Number {
	switch {
	case d == mpit.DatatypeOther || d == mpit.DatatypeChar || d > mpit.DatatypeBool:
		return NotNumber
	case d.Floating():
		return Floating
	case d.Signed():
		return Signed
	}
	return Unsigned
}

// Float is the value of a word of a sample.
func (n Number) Float(w uint64) float64 {
	switch n {
	case Signed:
		return float64(int64(w))
	case Unsigned:
		return float64(w)
	}
	return math.Float64frombits(w)
}

// Grown is last-base-excluded, where excluded is signed for all integers, and what so many wraps of that size in bits
// stand for: of integers exact as far as the result fits a float64, however large its parts are.
func (n Number) Grown(last, base, excluded uint64, wraps uint32, size uint) float64 {
	if n == Floating {
		return math.Float64frombits(last) - math.Float64frombits(base) - math.Float64frombits(excluded)
	}
	extend := func(w uint64) uint64 { // the upper 64 bits of 128
		if n == Unsigned {
			return 0
		}
		return uint64(int64(w) >> 63)
	}
	low, borrow := bits.Sub64(last, base, 0)
	high, _ := bits.Sub64(extend(last), extend(base), borrow)
	low, borrow = bits.Sub64(low, excluded, 0)
	high, _ = bits.Sub64(high, uint64(int64(excluded)>>63), borrow)
	low, carry := bits.Add64(low, uint64(wraps)<<size, 0)
	high += uint64(wraps)>>(64-size) + carry
	sign := 1.0
	if int64(high) < 0 {
		sign = -1
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	return sign * (math.Ldexp(float64(high), 64) + float64(low))
}

// Quarter says in which quarter of its datatype's range an integer of that many bits stands, 0 the lowest; 4 for one
// that lies outside. Of signed types, zero is the start of the third.
func (n Number) Quarter(w uint64, bits uint) uint8 {
	if n == Signed {
		w += 1 << (bits - 1)
	}
	return uint8(min(w>>(bits-2), 4))
}
