package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"nothing", nil, 0, ""},
		{"an error", errors.New("broken"), Failure, "mpit-exporter: broken\n"},
		{"several in one line", errors.Join(errors.New("one"), errors.New("two")), Failure,
			"mpit-exporter: one; two\n"},
		{"a status of its own", fmt.Errorf("wrapped: %w", &Error{NotFound, errors.New("gone")}), NotFound,
			"mpit-exporter: wrapped: gone\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			assert.Equal(t, test.status, Report(&out, test.err))
			assert.Equal(t, test.want, out.String())
		})
	}
}
