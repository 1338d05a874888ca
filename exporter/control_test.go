package exporter

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// Real ranks are asked for what the kernel and their environment say.
func TestControlOfRealRanks(t *testing.T) {
	n := startNode(t, Config{})
	first := small("1", 0)
	n.connect(mpittest.New(first), mpittest.New(small("1", 1)))
	ended := mpittest.New(small("2", 0))
	n.connect(ended)
	n.finish(ended, mpit.EndFinalize)
	targets := n.targets()
	require.Len(t, targets, 2, "an ended one is not asked")
	assert.Equal(t, Identity{JobID: "1", World: "0", User: "alice", Rank: 1}, targets[1].ID)
	assert.Equal(t, ownUID, targets[1].UID)
	assert.Equal(t, 4, targets[1].Size)
	assert.False(t, targets[1].WriteAllowed)

	path := socketPath(t)
	l, err := mpit.ListenUnix(path, 0o666)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- n.Control().Serve(ctx, l) }()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	response, err := client.Post("http://control/api/v1/cvar", "application/json",
		strings.NewReader(`{"jobid":"1","name":"limit","value":"1"}`))
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	client.CloseIdleConnections()
	stop()
	require.NoError(t, <-served)
	assert.Contains(t, string(answer), "does not allow control variables to be written")
	assert.Equal(t, 1.0, n.scrape()[`mpit_exporter_cvar_writes_total{result="refused"}`])
	assert.Equal(t, http.StatusNotFound, post(n.API(), "/api/v1/cvar").Code, "nothing is written over the HTTP port")
}

func post(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
	return w
}
