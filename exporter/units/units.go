// Package units writes numbers with their units for people, in few digits: "51.8ms", "4.00k", "2.00 KiB", "48 %".
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes how many there are of something: 1 rank, 2 ranks.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Percent writes a share, from 0 to 1, in whole percents, or in tenths if it is below one.
func Percent(share float64) string {
	if share > 0 && share < 0.0095 {
		return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

// Duration writes seconds with three digits; what is not above 0 as 0s.
func Duration(seconds float64) string {
	switch {
	case seconds <= 0:
		return "0s"
	case seconds < 1e-6:
		return three(seconds*1e9) + "ns"
	case seconds < 1e-3:
		return three(seconds*1e6) + "µs"
	case seconds < 1:
		return three(seconds*1e3) + "ms"
	case seconds < 100:
		return three(seconds) + "s"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// three writes a number below 1000 with three digits.
func three(x float64) string {
	switch size := math.Abs(x); {
	case size < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case size < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// Number writes a number with three digits: 1.23k, 4.50M.
func Number(x float64) string { return scaled(x, 1000, "", "k", "M", "G", "T", "P") }

// Bytes writes bytes with three digits: 2.00 KiB.
func Bytes(x float64) string { return scaled(x, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB") }

// Value writes a number in a unit of UCUM.
func Value(unit string, x float64) string {
	sign := ""
	if x < 0 {
		sign, x = "-", -x
	}
	switch unit {
	case "s":
		return sign + Duration(x)
	case "By":
		return sign + Bytes(x)
	case "1":
		return sign + Percent(x)
	case "":
		return sign + Number(x)
	}
	if what, counted := strings.CutPrefix(unit, "{"); counted {
		if unit = strings.TrimSuffix(what, "}"); x != 1 && !strings.HasSuffix(unit, "s") {
			unit += "s"
		}
	}
	return sign + Number(x) + " " + unit
}

func scaled(x, step float64, units ...string) string {
	i := 0
	for math.Abs(x) >= step && i < len(units)-1 {
		x /= step
		i++
	}
	if i == 0 && x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64) + units[i]
	}
	return three(x) + units[i]
}

// Ranks writes a sorted list of ranks: 0-2,5.
func Ranks(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		switch j {
		case i:
			parts = append(parts, strconv.Itoa(ranks[i]))
		case i + 1:
			parts = append(parts, strconv.Itoa(ranks[i]), strconv.Itoa(ranks[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
