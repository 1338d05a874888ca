package own

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFileSD(t *testing.T) {
	dir := t.TempDir()
	path := sdPath(dir, "node/7 ", "0123456789abcdef")
	assert.Equal(t, filepath.Join(dir, "mpit-exporter-node_7_-"+"0123456789abcdef"+".json"), path)
	order := &order{JobID: "17", World: "0", Host: "node7"}
	require.NoError(t, writeSD(path, target{[]string{"node7:4000"}, sdLabels(order, "https", "/metrics")}))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var targets []target
	require.NoError(t, json.Unmarshal(text, &targets))
	require.Len(t, targets, 1)
	assert.Equal(t, []string{"node7:4000"}, targets[0].Targets)
	delete(targets[0].Labels, "__meta_mpit_user")
	assert.Equal(t, map[string]string{
		"__meta_mpit_jobid": "17", "__meta_mpit_world": "0", "__meta_mpit_host": "node7",
		"__meta_mpit_uid": strconv.Itoa(os.Geteuid()),
		"__scheme__":      "https", "__metrics_path__": "/metrics",
	}, targets[0].Labels)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode(), "Prometheus is another user")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "of what was written first")

	assert.ErrorContains(t, writeSD(filepath.Join(dir, "missing", "x.json"), target{}),
		"make the directory or name another")
}

// Whoever can write there can have Prometheus scrape anything, and name it as they like.
func TestOthersCanWriteTargets(t *testing.T) {
	dir := t.TempDir()
	for mode, warned := range map[os.FileMode]int{0o755: 0, 0o700: 0, 0o775: 1, 0o777: 1, 0o777 | os.ModeSticky: 1} {
		require.NoError(t, os.Chmod(dir, mode))
		assert.Len(t, writable(dir), warned, mode)
	}
	require.NoError(t, os.Chmod(dir, 0o777))
	assert.Equal(t, []string{"--own.sd-dir: others can write in " + dir +
		" (mode 0777), and Prometheus scrapes what they " +
		"put there; chmod go-w unless you trust them"}, writable(dir))
	assert.Empty(t, writable(filepath.Join(dir, "missing")))
}

// TestAddresses: what all interfaces are called is this host's name.
func TestAddresses(t *testing.T) {
	var listeners []net.Listener
	var ports []string
	for _, address := range []string{":0", "127.0.0.1:0"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		listeners = append(listeners, l)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		ports = append(ports, port)
	}
	assert.Equal(t, []string{"node7:" + ports[0], "127.0.0.1:" + ports[1]}, addresses(listeners, "node7"))
	assert.Empty(t, addresses(nil, "node7"))
}
