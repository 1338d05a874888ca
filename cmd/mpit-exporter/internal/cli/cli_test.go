package cli

import (
	"bytes"
	"context"
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
		{"a status alone", Errorf(Differs, ""), Differs, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			assert.Equal(t, test.status, Report(&out, test.err))
			assert.Equal(t, test.want, out.String())
		})
	}
}

// Whatever goes on for long, who is interrupted doesn't wait for it.
func TestAwait(t *testing.T) {
	assert.NoError(t, Await(t.Context(), func() error { return nil }))
	ctx, cancel := context.WithCancel(t.Context())
	end, ended := make(chan struct{}), make(chan struct{})
	assert.ErrorIs(t, Await(ctx, func() error {
		defer close(ended)
		cancel()
		<-end
		return nil
	}), context.Canceled)
	close(end)
	<-ended
}
