package mapping

import (
	"math"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// ClassName is a class as rules write it: "state", "level", "size", "percentage", "highwatermark", "lowwatermark",
// "counter", "aggregate", "timer", "generic".
type ClassName string

var classNames = [...]ClassName{
	mpit.ClassState: "state", mpit.ClassLevel: "level", mpit.ClassSize: "size", mpit.ClassPercentage: "percentage",
	mpit.ClassHighWatermark: "highwatermark", mpit.ClassLowWatermark: "lowwatermark", mpit.ClassCounter: "counter",
	mpit.ClassAggregate: "aggregate", mpit.ClassTimer: "timer", mpit.ClassGeneric: "generic",
}

func classOf(n ClassName) (mpit.Class, bool) {
	for c, name := range classNames {
		if name == n {
			return mpit.Class(c), true
		}
	}
	return mpit.ClassUnknown, false
}

func nameOf(c mpit.Class) string {
	if int(c) < len(classNames) {
		return string(classNames[c])
	}
	return "unknown"
}

// bindLabels are the labels that carry the name of a bound object. They double as the names of binds in rules.
var bindLabels = [...]string{
	mpit.BindNone: "", mpit.BindComm: "comm", mpit.BindDatatype: "datatype", mpit.BindErrhandler: "errhandler",
	mpit.BindFile: "file", mpit.BindGroup: "group", mpit.BindOp: "op", mpit.BindRequest: "request", mpit.BindWin: "win",
	mpit.BindMessage: "message", mpit.BindInfo: "info", mpit.BindSession: "session",
}

// BindLabel is the label that names an object of kind b: "comm", "win" …; "" for BindNone, "bound" for a kind that
// isn't known.
func BindLabel(b mpit.Bind) string {
	if int(b) < len(bindLabels) {
		return bindLabels[b]
	}
	return "bound"
}

// number says how the 64 bits of a value are read.
type number uint8

const (
	notNumber number = iota
	signed
	unsigned
	floating
)

func numberOf(d mpit.Datatype) number {
	switch d {
	case mpit.DatatypeInt, mpit.DatatypeCount, mpit.DatatypeInt32, mpit.DatatypeInt64, mpit.DatatypeLong, mpit.DatatypeLongLong:
		return signed
	case mpit.DatatypeUnsigned, mpit.DatatypeUnsignedLong, mpit.DatatypeUnsignedLongLong, mpit.DatatypeUint32, mpit.DatatypeUint64, mpit.DatatypeBool:
		return unsigned
	case mpit.DatatypeDouble, mpit.DatatypeFloat:
		return floating
	}
	return notNumber
}

// float is the value of a word of a sample.
func (n number) float(w uint64) float64 {
	switch n {
	case signed:
		return float64(int64(w))
	case unsigned:
		return float64(w)
	}
	return math.Float64frombits(w)
}

// less compares two words of a sample.
func (n number) less(a, b uint64) bool {
	switch n {
	case signed:
		return int64(a) < int64(b)
	case unsigned:
		return a < b
	}
	return math.Float64frombits(a) < math.Float64frombits(b)
}

// minus is a-b: exact for integers as far as the difference itself fits a float64.
func (n number) minus(a, b uint64) float64 {
	switch n {
	case signed:
		return float64(int64(a - b))
	case unsigned:
		if a >= b {
			return float64(a - b)
		}
		return -float64(b - a)
	}
	return math.Float64frombits(a) - math.Float64frombits(b)
}

// quarter says in which quarter of its datatype's range an integer of that many bits stands, 0 the lowest; 4 for one
// that lies outside. Of signed types, zero is the start of the third.
func (n number) quarter(w uint64, bits uint) uint8 {
	if n == signed {
		w += 1 << (bits - 1)
	}
	return uint8(min(w>>(bits-2), 4))
}

// bottom is the lowest value of a quarter, the reverse of quarter.
func (n number) bottom(q uint8, bits uint) uint64 {
	w := uint64(q) << (bits - 2)
	if n == signed {
		w -= 1 << (bits - 1)
	}
	return w
}
