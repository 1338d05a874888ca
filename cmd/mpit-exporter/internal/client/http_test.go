package client

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// The control socket of this node's exporter is asked where no address is named, and no other; without a socket the
// default port is.
func TestOver(t *testing.T) {
	dir := mpittest.ShortDir(t)
	t.Setenv(sockets.EnvSocket, filepath.Join(dir, sockets.AgentFile))
	l, err := net.Listen("unix", filepath.Join(dir, sockets.ControlFile))
	require.NoError(t, err)
	asked := ""
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = req.URL.String()
		_, _ = w.Write([]byte(`{"ranks": []}`))
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	get := func(args ...string) error {
		var c HTTP
		app := kingpin.New("test", "")
		c.AddFlags(app.Command("list", ""))
		_, err := app.Parse(append([]string{"list"}, args...))
		require.NoError(t, err)
		var answer map[string]any
		return c.Get(t.Context(), "list", "", "values", &answer)
	}
	require.NoError(t, get("--jobid=7"))
	assert.Equal(t, "/api/v1/values?jobid=7", asked)
	require.ErrorContains(t, get("--url=http://127.0.0.1:1"), "no exporter answers at http://127.0.0.1:1")
	require.NoError(t, server.Close())
	if err := get(); err != nil { // an exporter may run here
		assert.ErrorContains(t, err, "list: no exporter answers at "+defaultURL)
	}
}
