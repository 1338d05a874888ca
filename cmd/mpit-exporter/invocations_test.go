package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestInvocations runs what test/invocations.txt has: first mistakes, each of which ends with a status and with a line
// that says what to do.
func TestInvocations(t *testing.T) {
	t.Parallel()
	dir := mpittest.ShortDir(t)
	busy := startExporter(t, filepath.Join(dir, "s"))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html>\n<title>A board</title>"))
	}))
	t.Cleanup(web.Close)
	env := []string{sockets.EnvSocket + "=" + dir + "/none/s"}
	for name, text := range map[string]string{"text": "no rule\n", "empty": "", "page.html": "<html></html>"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	replace := strings.NewReplacer("DIR", dir, "EXPORTER", busy.url, "WEB", web.URL)

	file, err := os.Open("../../test/invocations.txt")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	n := 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		command, is := strings.CutPrefix(lines.Text(), "$ mpit-exporter")
		if !is {
			continue
		}
		n++
		require.True(t, lines.Scan())
		status, want, _ := strings.Cut(lines.Text(), " ")
		t.Run(strings.TrimSpace(command), func(t *testing.T) {
			got := runBinary(t, env, strings.Fields(replace.Replace(command))...)
			assert.Equal(t, outcome{status: got.status, stderr: replace.Replace(want) + "\n"}, got)
			assert.Equal(t, status, strconv.Itoa(got.status))
		})
	}
	require.NoError(t, lines.Err())
	assert.GreaterOrEqual(t, n, 60)
}
