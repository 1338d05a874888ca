package node

import (
	"context"
	"fmt"
	"os/exec"
	"os/user"
	"slices"
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
	return field(entry(context.Background(), "passwd", id), 0)
}

// entry returns the line that the node's directory services have for a name or a number in a database of getent(1); ""
// without one.
func entry(ctx context.Context, database, key string) string {
	ctx, cancel := context.WithTimeout(ctx, userTimeout)
	defer cancel()
	//nolint:gosec // G204: only a number of the kernel's, or the operator's own word
	out, err := exec.CommandContext(ctx, "getent", database, key).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// field returns a field of a line of passwd(5) or group(5); "" for what is no such line.
func field(line string, n int) string {
	if fields := strings.Split(line, ":"); len(fields) > max(n, 1) {
		return fields[n]
	}
	return ""
}

// Operators returns who sees all jobs: users, by name or number, and members of groups, with @ in front.
func Operators(ctx context.Context, names []string) (func(uid uint32, groups []uint32) bool, error) {
	users, groups := map[uint32]bool{}, map[uint32]bool{}
	for _, name := range names {
		database, key, of := "passwd", name, users
		if group, is := strings.CutPrefix(name, "@"); is {
			database, key, of = "group", group, groups
		}
		id, err := strconv.ParseUint(field(entry(ctx, database, key), 2), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("--operator %s: getent %s finds no %q on this node", name, database, key)
		}
		of[uint32(id)] = true
	}
	return func(uid uint32, of []uint32) bool {
		return users[uid] || slices.ContainsFunc(of, func(gid uint32) bool { return groups[gid] })
	}, nil
}
