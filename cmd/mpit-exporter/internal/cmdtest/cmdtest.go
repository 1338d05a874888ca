// Package cmdtest is what the tests of the command and of its packages share. Nothing of it is in the program.
package cmdtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lowlevel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/stretchr/testify/require"
)

// Patience bounds failures on a loaded machine; no test measures time.
const Patience = 2 * time.Minute

// ShortDir makes a directory whose name leaves room for a socket's path.
func ShortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpit-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Compile makes a program, and skips the test where the compiler can't.
func Compile(t *testing.T, dir, name, text string, command ...string) string {
	t.Helper()
	source, path := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	args := append(command[1:], "-o", path, source)
	out, err := exec.CommandContext(t.Context(), command[0], args...).CombinedOutput() //nolint:gosec // G204: of tests
	if err != nil {
		t.Skipf("%v can't make a program here: %v\n%s", command, err, out)
	}
	return path
}

// NeedLandlock skips a test where the kernel has none.
func NeedLandlock(t *testing.T) {
	t.Helper()
	if _, err := lowlevel.LandlockGetABIVersion(); err != nil {
		t.Skipf("this kernel has no Landlock: %v", err)
	}
}

// Request is a handler's answer; header are names and values in turn.
func Request(handler http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	return answer
}

// WithoutOTLP clears what the environment says of OTLP.
func WithoutOTLP(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}
