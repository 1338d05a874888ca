package main

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

const (
	// ownDescriptors are those that are neither scrapers' nor ranks': standard streams, listeners, files of /proc, getent's pipes.
	ownDescriptors = 32
	// rankConnections is how many connections a user may have for each rank: its own, one that has not said HELLO, one with a last
	// sample. And one more, for not all ranks are one user's.
	rankConnections = 4
)

// shares is how the descriptors that a process may have are divided, so that neither scrapers nor the ranks of one user can use up what
// others need.
type shares struct {
	connections int // of scrapers
	ranks       int // of one user
}

// share divides a number of descriptors. A quarter at most is for scrapers, and never more than they may have.
func share(descriptors uint64, connections int) shares {
	left := 0
	if descriptors > ownDescriptors {
		left = int(min(descriptors-ownDescriptors, 1<<30))
	}
	s := shares{connections: max(1, min(connections, left/4))}
	s.ranks = max(1, min(exporter.DefaultMaxRanks, (left-s.connections)/rankConnections))
	return s
}

// shareDescriptors divides what this process may have, and says so where that is less than it should be.
func shareDescriptors(logger *slog.Logger, connections int) shares {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return shares{connections, exporter.DefaultMaxRanks}
	}
	s := share(limit.Cur, connections)
	if s.connections < connections || s.ranks < exporter.DefaultMaxRanks {
		logger.Warn("Few files may be open, so that fewer connections are taken; raise the limit (LimitNOFILE=, ulimit -n) to 20000",
			"limit", limit.Cur, "connections_of_scrapers", s.connections, "ranks_of_one_user", s.ranks)
	}
	return s
}
