package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUserName(t *testing.T) {
	assert.Equal(t, "root", UserName(0))
	assert.Empty(t, UserName(4_000_000_001), "nobody has this number")
}

func TestField(t *testing.T) {
	for line, want := range map[string][2]string{
		"alice:*:1001:1001:Alice:/home/alice:/bin/sh": {"alice", "1001"},
		"adm:x:4:": {"adm", "4"},
		"alice:*":  {"alice", ""},
		"":         {"", ""},
		"nonsense": {"", ""},
	} {
		assert.Equal(t, want, [2]string{field(line, 0), field(line, 2)}, "%q", line)
	}
}

// Operators are users by name or number, and groups; one that isn't there is a mistake.
func TestOperators(t *testing.T) {
	is, err := Operators(t.Context(), []string{"daemon", "2", "@adm"})
	require.NoError(t, err)
	assert.True(t, is(1, nil), "daemon")
	assert.True(t, is(2, nil), "a number")
	assert.True(t, is(1234, []uint32{100, 4}), "in adm")
	assert.False(t, is(4, []uint32{1, 2}), "numbers of users are not those of groups")
	for _, wrong := range []string{"no-such-user", "@no-such-group", "", "@", "@daemon:x"} {
		_, err := Operators(t.Context(), []string{wrong})
		assert.ErrorContains(t, err, "--operator "+wrong+": ", "%q", wrong)
	}
}
