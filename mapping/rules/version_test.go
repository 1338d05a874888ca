package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionRanges(t *testing.T) {
	for _, c := range []struct {
		bounds, version string
		want            bool
	}{
		{"", "", true},
		{"", "4.0", true},
		{">=4.0 <5.1", "4.0.2", true},
		{">=4.0 <5.1", "5.0.1", true},
		{">=4.0 <5.1", "5.1", false},
		{">=4.0 <5.1", "3.4", false},
		{">=4.0 <5.1", "", false},
		{"<6", "6.0.0rc2", false},
		{"=4.1", "4.1.0", true},
		{">4.1", "4.1.1", true},
		{"<=4.1", "4.1.1", false},
	} {
		r, err := parseRange(c.bounds)
		require.NoError(t, err)
		assert.Equal(t, c.want, r.holds(c.version), "%q %q", c.bounds, c.version)
	}
	for _, bad := range []string{"4.0", ">=", "=>4", ">=x"} {
		_, err := parseRange(bad)
		assert.Error(t, err, bad)
	}
}
