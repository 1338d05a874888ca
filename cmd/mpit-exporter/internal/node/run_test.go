package node

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestService: one that ends by itself ends the exporter, whatever it says; one that is stopped doesn't.
func TestService(t *testing.T) {
	broken := errors.New("broken")
	untilStopped := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return err }
	}
	for _, test := range []struct {
		name string
		run  func(context.Context) error
		told string // empty: it is stopped
		err  error  // of its end
	}{
		{"it fails", func(context.Context) error { return broken }, "serving ended: broken", nil},
		{"it returns", func(context.Context) error { return nil }, "serving ended: no reason given", nil},
		{"it is stopped", untilStopped(nil), "", nil},
		{"it says that it was stopped", untilStopped(fmt.Errorf("serving: %w", context.Canceled)), "", nil},
		{"it can't end well", untilStopped(broken), "", broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			failed := make(chan error, 1)
			s := begin(t.Context(), "serving", failed, test.run)
			if test.told != "" {
				require.EqualError(t, <-failed, test.told)
			}
			assert.Equal(t, test.err, s.end())
			assert.Empty(t, failed)
		})
	}
}
