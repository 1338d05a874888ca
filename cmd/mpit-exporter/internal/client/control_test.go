package client

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
)

// TestCvarFindsTheExporter: the two default places, in their order.
func TestCvarFindsTheExporter(t *testing.T) {
	t.Setenv(sockets.EnvSocket, "")
	t.Setenv("XDG_RUNTIME_DIR", "/user")
	c := &Control{}
	assert.Equal(t, []string{"/run/mpit-exporter/control.sock", "/user/mpit-exporter/control.sock"}, c.places())
	t.Setenv("XDG_RUNTIME_DIR", "")
	assert.Equal(t, []string{"/run/mpit-exporter/control.sock"}, c.places())
	t.Setenv(sockets.EnvSocket, "/tmp/x/agent.sock")
	assert.Equal(t, []string{"/tmp/x/control.sock"}, c.places())
	c.Socket = "/here"
	assert.Equal(t, []string{"/here"}, c.places())
}
