package uptodate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDifference(t *testing.T) {
	for _, test := range []struct{ says, should, want string }{
		{"a\nb\nc\n", "a\nx\ny\n", "It says\n\tb\nwhere it should say\n\tx"},
		{"a\n", "a\nb\n", "It says\n\t\nwhere it should say\n\tb"},
		{"a\nb", "a", "It says\n\tb\nwhere it should say\n\t(the end)"},
		{"", "a", "It says\n\t\nwhere it should say\n\ta"},
	} {
		assert.Equal(t, test.want, difference(test.says, test.should))
	}
}
