package exporter

import (
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// who is all that is known of whose a rank is: its own word as the rules have it, and the kernel's.
type who struct {
	claim  // its id has the User
	kernel cgroup
	check  string // a check… of cgroup.go
}

// identify finds out who connects. It reads files, so it is called once for each connection, and not by anybody who holds mu.
func (e *Exporter) identify(h *mpit.Hello, peer mpit.Peer, user string) who {
	kernel, err := cgroupOf(e.proc, peer)
	if err != nil {
		e.log.Debug("the kernel does not say which job a process belongs to", "pid", peer.PID, "user", user, "err", err)
	}
	w := who{claim: claimOf(h, kernel), kernel: kernel}
	w.check = kernel.check(&w.claim) // before any rule: the kernel knows the scheduler's numbers
	e.relabel.Load().apply(&w.claim, func(source string) string {
		switch source {
		case "rank":
			return strconv.Itoa(h.Rank)
		case "user":
			return user
		case "host":
			return cleanValue(h.Host)
		case "executable":
			return clean(h.Executable, maxExecutable)
		case "library":
			return cleanValue(mapping.ParseLibrary(h.LibraryVersion).Name)
		case "source":
			return w.source
		case "cgroup_jobid":
			return kernel.jobID
		}
		name, _ := strings.CutPrefix(source, envSource)
		return cleanValue(environment(h.Attributes).get(name))
	})
	w.id.User = user // not by any rule
	return w
}
