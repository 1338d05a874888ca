// Package identity finds out who a rank is: which job, which MPI_COMM_WORLD of it, which rank, and which user's. It
// has three sources: the environment that the rank's agent sends, which any process can make up; the process's
// control group, which the kernel vouches for; and the site's rules, which rename.
//
// It isn't a registry: two processes may claim the same Identity. The exporter's table of ranks gives the second one
// a Dup.
//
// Begin reading at Rules.Identify. environment.go has what schedulers and launchers set, cgroup.go what the kernel
// says, rules.go the renaming, users.go the names of users.
package identity

import (
	"cmp"
	"io/fs"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Identity is what tells the series of one rank from those of all others on the node: four labels, and a fifth where
// two processes of a user claim the same. Another user's processes can claim anything but the user. All values are
// valid UTF-8 and at most 256 bytes long.
type Identity struct {
	JobID string // the scheduler's job, else the launcher's
	World string // which MPI_COMM_WORLD of that job
	User  string // whose process it is, by the kernel's word: a name, or the uid's digits
	Rank  int    // in that MPI_COMM_WORLD
	Dup   int    // 0: the first with these labels; else its number, label `dup`
}

// Compare orders ranks on the page: by job, world, user, rank, dup.
func (id Identity) Compare(other Identity) int {
	return cmp.Or(strings.Compare(id.JobID, other.JobID), strings.Compare(id.World, other.World),
		strings.Compare(id.User, other.User), cmp.Compare(id.Rank, other.Rank), cmp.Compare(id.Dup, other.Dup))
}

// Process is what is known of the process behind a connection.
type Process struct {
	ID          Identity // without Dup
	Source      string   // where ID.JobID comes from: slurm, pbs … launcher
	JobName     string
	Partition   string
	Account     string // Slurm's, as is QOS; empty: none
	QOS         string
	CgroupJobID string // the job of its control group, as the scheduler numbers jobs; empty: none
	Check       string // one of Verified, Differs and Unknown
	Here        int    // ranks of its world on this node, by its launcher; 0: not known
}

// Results of comparing the job that a process claims with the one that its control group says.
const (
	Verified = "verified"
	Differs  = "differs"
	Unknown  = "unknown" // the kernel says nothing that could be compared
)

// FromHello identifies a process by its HELLO alone, before any rule and without a user. It looks at host, rank and
// attributes.
func FromHello(h *mpit.Hello) Process { return claimOf(h, cgroup{}).Process }

// Identify identifies a process that has connected. It reads files of proc, which is /proc, so it may block. An error
// says why the control group isn't known; the result is valid all the same.
func (r *Rules) Identify(proc fs.FS, h *mpit.Hello, peer mpit.Peer, user string) (Process, error) {
	kernel, err := cgroupOf(proc, peer)
	c := claimOf(h, kernel)
	c.CgroupJobID = kernel.jobID
	c.Check = kernel.check(&c) // before any rule: the kernel knows the scheduler's numbers
	r.apply(&c.Process, func(source string) string {
		switch source {
		case "rank":
			return strconv.Itoa(h.Rank)
		case "user":
			return user
		case "host":
			return clean.Label(h.Host)
		case "executable":
			return clean.Path(h.Executable)
		case "library":
			return clean.Label(mapping.ParseLibrary(h.LibraryVersion).Name)
		case "source":
			return c.Source
		case "cgroup_jobid":
			return c.CgroupJobID
		}
		name, _ := strings.CutPrefix(source, "env_")
		return clean.Label(environment(h.Attributes).get(name))
	})
	c.ID.User = user // not by any rule
	return c.Process, err
}
