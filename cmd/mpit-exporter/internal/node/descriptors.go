package node

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/exporter"
)

const (
	// reserved are kept back for what is neither a scraper's nor a rank's: standard streams, listeners, files
	// of /proc, getent's pipes.
	reserved = 32
	// rankDescriptors is how many there are for each rank of a user: its connection, its process, a connection that has
	// not said HELLO or brings a last sample, and one more, because not all ranks are one user's.
	rankDescriptors = 4
)

// Budget is how the descriptors that a process may have are divided, so that neither scrapers nor the ranks of one
// user can use up what others need.
type Budget struct {
	Connections int // of scrapers
	Ranks       int // of one user
}

// Divide divides a number of descriptors. Scrapers get at most a quarter, and no more than they may have.
func Divide(descriptors uint64, connections int) Budget {
	left := 0
	if descriptors > reserved {
		left = int(min(descriptors-reserved, 1<<30))
	}
	s := Budget{Connections: max(1, min(connections, left/4))}
	s.Ranks = max(1, min(exporter.DefaultMaxRanks, (left-s.Connections)/rankDescriptors))
	return s
}

// budgetOfProcess divides what this process may have, and warns where that is less than it should be.
func budgetOfProcess(logger *slog.Logger, connections int) Budget {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Budget{connections, exporter.DefaultMaxRanks}
	}
	s := Divide(limit.Cur, connections)
	if s.Connections < connections || s.Ranks < exporter.DefaultMaxRanks {
		logger.Warn("Few files may be open, so that fewer connections are taken; raise the limit (LimitNOFILE=, "+
			"ulimit -n) to 20000",
			"limit", limit.Cur, "connections_of_scrapers", s.Connections, "ranks_of_one_user", s.Ranks)
	}
	return s
}
