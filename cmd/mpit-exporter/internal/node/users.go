package node

import (
	"bytes"
	"context"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// userTimeout is how long a directory service may take to name a user.
const userTimeout = 2 * time.Second

// UserName returns the name of a user of this node, "" if it has none. It may block for as long as a directory service
// takes. Go's own lookup reads /etc/passwd only in a static build, and on clusters users mostly live in LDAP:
// getent(1) asks whatever the node is set up to ask.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	ctx, cancel := context.WithTimeout(context.Background(), userTimeout)
	defer cancel()
	//nolint:gosec // G204: the argument is a number
	out, err := exec.CommandContext(ctx, "getent", "passwd", id).Output()
	if err != nil {
		return ""
	}
	return passwdName(out)
}

// passwdName returns the name in a line of passwd(5).
func passwdName(line []byte) string {
	first, _, _ := bytes.Cut(line, []byte("\n"))
	name, _, ok := strings.Cut(string(first), ":")
	if !ok {
		return ""
	}
	return name
}
