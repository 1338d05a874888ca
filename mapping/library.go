package mapping

import (
	"regexp"
	"strings"
)

// Names of the MPI libraries that ParseLibrary knows, as rules write them.
const (
	OpenMPI   = "openmpi"
	MPICH     = "mpich"
	MVAPICH   = "mvapich" // MVAPICH2 as well
	IntelMPI  = "intelmpi"
	CrayMPICH = "craympich"
)

// Library is an MPI library, as rules choose by it. Both fields are empty where it isn't known.
type Library struct {
	Name    string // one of the constants above
	Version string // as the library writes it: "4.1.4", "6.0.0rc2"
}

// libraryPrefixes is searched in order: the derivatives of MPICH come before MPICH itself.
var libraryPrefixes = []struct{ prefix, name string }{
	{"open mpi", OpenMPI},
	{"intel(r) mpi library", IntelMPI},
	{"cray mpich", CrayMPICH},
	{"mpi version    : cray mpich", CrayMPICH}, // as MPI_Get_library_version has it
	{"mvapich", MVAPICH},
	{"mpich", MPICH},
}

// ParseLibrary reads what MPI_Get_library_version answers (MPI-4.1 §9.1.1); its first line is enough. A text that it
// does not know gives the zero Library.
func ParseLibrary(answer string) Library {
	line, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	if len(line) > 512 {
		line = line[:512]
	}
	lower := strings.ToLower(line)
	for _, p := range libraryPrefixes {
		if strings.HasPrefix(lower, p.prefix) {
			version := ""
			if found := libraryVersion.FindStringSubmatch(lower[len(p.prefix):]); found != nil {
				version = strings.TrimRight(found[1][:min(len(found[1]), 32)], ".")
			}
			return Library{p.name, version}
		}
	}
	return Library{}
}

// libraryVersion is the first word that starts with a digit, or with a v and a digit. A digit that belongs to the name,
// as in MVAPICH2, stands right behind it.
var libraryVersion = regexp.MustCompile(`[ \t,:(]v?([0-9][0-9a-z.]*)`)

// HasCompanions says whether timers of the library have a COUNTER of the same name, where a rank's variables aren't
// known.
func (l Library) HasCompanions() bool { return l.Name == MPICH || l.Name == MVAPICH }
