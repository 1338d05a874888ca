package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUserName(t *testing.T) {
	assert.Equal(t, "root", UserName(0))
	assert.Empty(t, UserName(4_000_000_001), "nobody has this number")
}

func TestPasswdName(t *testing.T) {
	for line, want := range map[string]string{
		"alice:*:1001:1001:Alice:/home/alice:/bin/sh\n": "alice",
		"alice:*:1001\nbob:*:1002\n":                    "alice",
		"":                                              "",
		"nonsense\n":                                    "",
	} {
		assert.Equal(t, want, passwdName([]byte(line)), "%q", line)
	}
}
