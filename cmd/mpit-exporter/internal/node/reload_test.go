package node

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHangupDuringStart: it neither ends the process nor is it lost.
func TestHangupDuringStart(t *testing.T) {
	hangups, stop := notifyHangups()
	defer stop()
	for range 3 {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	}
	select {
	case <-hangups:
	case <-time.After(patience):
		t.Fatal("lost")
	}
}
