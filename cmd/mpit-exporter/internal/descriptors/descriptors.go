// Package descriptors divides the files that the process may have open between scrapers and ranks.
package descriptors

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

const (
	// ownDescriptors are those that are neither scrapers' nor ranks': standard streams, listeners, files of /proc,
	// getent's pipes.
	ownDescriptors = 32
	// rankConnections is how many connections a user may have for each rank: its own, one that has not said HELLO,
	// one with a last sample. And one more, for not all ranks are one user's.
	rankConnections = 4
)

// Shares is how the descriptors that a process may have are divided, so that neither scrapers nor the ranks of one
// user can use up what others need.
type Shares struct {
	Connections int // of scrapers
	Ranks       int // of one user
}

// Share divides a number of descriptors. A quarter at most is for scrapers, and never more than they may have.
func Share(descriptors uint64, connections int) Shares {
	left := 0
	if descriptors > ownDescriptors {
		left = int(min(descriptors-ownDescriptors, 1<<30))
	}
	s := Shares{Connections: max(1, min(connections, left/4))}
	s.Ranks = max(1, min(exporter.DefaultMaxRanks, (left-s.Connections)/rankConnections))
	return s
}

// Divide divides what this process may have, and says so where that is less than it should be.
func Divide(logger *slog.Logger, connections int) Shares {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Shares{connections, exporter.DefaultMaxRanks}
	}
	s := Share(limit.Cur, connections)
	if s.Connections < connections || s.Ranks < exporter.DefaultMaxRanks {
		logger.Warn("Few files may be open, so that fewer connections are taken; raise the limit (LimitNOFILE=, "+
			"ulimit -n) to 20000",
			"limit", limit.Cur, "connections_of_scrapers", s.Connections, "ranks_of_one_user", s.Ranks)
	}
	return s
}
