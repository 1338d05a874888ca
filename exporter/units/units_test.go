package units

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"48 %": Percent(0.481), "0.5 %": Percent(0.005), "0 %": Percent(0), "1 %": Percent(0.0095), "100 %": Percent(1),
		"0s": Duration(0), "51.8ms": Duration(0.0518), "999ns": Duration(9.99e-7), "1.50µs": Duration(1.5e-6),
		"99.9s": Duration(99.9), "1m40s": Duration(100), "2h0m0s": Duration(7200),
		"0": Number(0), "999": Number(999), "4.00k": Number(4000), "1.23M": Number(1234567), "0.50": Number(0.5),
		"-1.50k": Number(-1500), "-99.5": Number(-99.5), "1 rank": Count(1, "rank"), "0 ranks": Count(0, "rank"),
		"-1.50s": Value("s", -1.5), "5 B": Value("By", 5), "50 %": Value("1", 0.5), "7": Value("", 7),
		"7 messages": Value("{message}", 7), "1 message": Value("{message}", 1), "7 W": Value("W", 7),
		"12 B": Bytes(12), "2.00 KiB": Bytes(2048), "1.00 GiB": Bytes(1 << 30),
	} {
		assert.Equal(t, want, got)
	}
}
