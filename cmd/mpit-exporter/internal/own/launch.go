package own

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// launchers are the processes whose children are ranks. Wrapper scripts may stand between the two.
var launchers = []string{
	"hydra_pmi_proxy", "hydra_bstrap_pr", "mpirun", "mpiexec", "orted", "orterun", "palsd", "prted", "prterun",
	"pmi_proxy", "pbs_tmrsh",
	"slurmstepd", "aprun", "jsrun", "flux-shell",
}

// maxAncestors bounds the walk to the launcher.
const maxAncestors = 32

// launchOf names the launch that a process belongs to, in 16 hexadecimal digits. The processes that one launcher has
// started on this node share an exporter. It is known by the scheduler's or launcher's own words where these name a
// launch, and by the launcher's process where they don't. pid is of the process, proc is /proc.
func launchOf(env preload.Environment, host string, pid int, proc string) (key string) {
	parent := StatOf(proc, pid).PPID
	attributes := map[string]string{
		"ppid": strconv.Itoa(parent), "ppid_started": strconv.FormatUint(StatOf(proc, parent).Starttime, 10),
	}
	hello := &mpit.Hello{Host: host, Attributes: attributes}
	local := identity.FromHello(hello).ID.World // before anything else is known
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			if _, twice := attributes[name]; !twice {
				attributes[name] = value
			}
		}
	}
	id := identity.FromHello(hello).ID

	// The host, because /tmp may be shared by nodes.
	parts := []string{host, id.JobID, id.World}
	if id.World == local {
		// The parent's number stands for a launcher without a name, but may be a wrapper's, of this rank alone.
		if id.JobID == local {
			parts[1] = ""
		}
		parts[2] = launcherOf(proc, pid)
	}
	// Open MPI's name-spaces are numbers of 16 bits made from a process id: the server that they are known to is told
	// as well.
	var servers []string
	for name, value := range attributes {
		if strings.HasPrefix(name, "PMIX_SERVER_URI") {
			servers = append(servers, name+"="+value)
		}
	}
	slices.Sort(servers)
	sum := sha256.Sum256([]byte(strings.Join(append(parts, servers...), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// launcherOf names the nearest ancestor of a process that is a launcher; its parent where none is. Ids are used
// again, times of start aren't.
func launcherOf(proc string, pid int) string {
	at := StatOf(proc, pid)
	parent := at.PPID
	for range maxAncestors {
		if at.PPID <= 1 {
			break
		}
		number := at.PPID
		at = StatOf(proc, number)
		if slices.ContainsFunc(launchers, func(name string) bool { return strings.HasPrefix(at.Comm, name) }) {
			return fmt.Sprintf("%d@%d", number, at.Starttime)
		}
	}
	return fmt.Sprintf("%d@%d", parent, StatOf(proc, parent).Starttime)
}

// StatOf is what a /proc says of a process; zero where it can't be read.
func StatOf(proc string, pid int) (s procfs.ProcStat) {
	if all, err := procfs.NewFS(proc); err == nil {
		if one, err := all.Proc(pid); err == nil {
			s, _ = one.Stat()
		}
	}
	return s
}

// isKey says whether a directory's name is a launch's.
func isKey(name string) bool {
	return len(name) == 16 && strings.Trim(name, "0123456789abcdef") == ""
}
