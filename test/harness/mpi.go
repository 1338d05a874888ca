package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// MPI is an installed MPI library with its compilers and its launcher.
type MPI struct {
	Name    string // as in the metrics' label: "openmpi", "mpich"
	Version string // of the launcher: "5.0.7"
	Major   int    // of the version
	ABI5    bool   // programs in C are compiled for MPI-5's own ABI
	suffix  string // Debian's names: mpicc.openmpi, mpirun.mpich …
	env     []string
	chroot  string   // the root directory of the system that it is in; empty: this one
	cross   []string // another architecture's compiler and its arguments; for programs in C
	at      string   // tells its executables from those of this system's library
}

// OpenMPI is Debian's Open MPI. It refuses to run as root and to put more ranks than cores on a machine unless told
// otherwise; its transports are chosen so that they work in a container and do what the tests count: ob1 keeps the
// unexpected queue. scripts/mpi-env says the same to scripts.
func OpenMPI(tb testing.TB) *MPI {
	tb.Helper()
	mpi := find(tb, &MPI{Name: "openmpi", suffix: "openmpi", env: []string{
		"OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_mpi_yield_when_idle=1",
		"OMPI_MCA_osc=^ucx",
	}})
	if mpi.Major < 5 {
		mpi.env = append(mpi.env, "OMPI_MCA_rmaps_base_oversubscribe=1",
			"OMPI_MCA_btl_vader_single_copy_mechanism=none",
			"OMPI_MCA_pml=^ucx", // not "ob1": that would shut monitoring out
			"OMPI_MCA_btl=self,vader,tcp")
		return mpi
	}
	// in 6.0.0rc2 monitoring of messages crashes MPI_Init
	mapping, pml := "PRTE_MCA_mapby", "OMPI_MCA_pml=^ucx,cm,monitoring"
	if mpi.Major == 5 {
		mapping, pml = "PRTE_MCA_rmaps_default_mapping_policy", "OMPI_MCA_pml=^ucx,cm"
	}
	mpi.env = append(mpi.env, mapping+"=:oversubscribe", "OMPI_MCA_smsc=^cma", pml, "OMPI_MCA_btl=^openib,ofi,uct",
		"OMPI_MCA_btl_tcp_if_include=lo") // it warns where there is no other one
	return mpi
}

// MPICH is Debian's MPICH. Its ranks spin while they wait: keep them few, or Modest.
func MPICH(tb testing.TB) *MPI {
	tb.Helper()
	return find(tb, &MPI{Name: "mpich", suffix: "mpich", env: []string{
		"UCX_TLS=self,sm,tcp",
		"UCX_WARN_UNUSED_ENV_VARS=n",
	}})
}

// Modest is a command in front of the ranks of a crowd: those that spin without yielding leave the cores to what
// observes them and to other tests.
func (m *MPI) Modest() []string {
	if m.Name != "mpich" {
		return nil
	}
	return []string{"nice", "-n", "10"}
}

// Both returns Open MPI and MPICH.
func Both(tb testing.TB) []*MPI {
	tb.Helper()
	return []*MPI{OpenMPI(tb), MPICH(tb)}
}

func find(tb testing.TB, mpi *MPI) *MPI {
	tb.Helper()
	Tool(tb, mpi.launcher()[0])
	Tool(tb, "mpicc."+mpi.suffix)
	mpi.Version = launcherVersion(tb, mpi.launcher()[0])
	mpi.Major, _ = strconv.Atoi(strings.Split(mpi.Version, ".")[0])
	if standardABI != "" {
		mpi.ABI5 = true
		mpi.env = append(mpi.env, "LD_LIBRARY_PATH="+filepath.Join(standardABI, mpi.Name))
	}
	return mpi
}

// standardABI is the directory that MPIT_TEST_STANDARD_ABI names, if it does: programs in C are then compiled for
// MPI-5's own ABI. In include is an mpi.h of it, whosever, and in openmpi and mpich their libmpi_abi.so.1.
var standardABI = os.Getenv("MPIT_TEST_STANDARD_ABI")

// CFlags are the C compiler's. Its warnings are errors where the environment says so, as for the libraries:
// WERROR=-Werror.
func CFlags() []string {
	return append([]string{"-O1", "-g", "-Wall", "-Wextra", "-pthread"}, strings.Fields(os.Getenv("WERROR"))...)
}

// c returns the command that compiles C.
func (m *MPI) c() []string {
	flags := CFlags()
	if standardABI == "" {
		return append([]string{"mpicc." + m.suffix}, flags...)
	}
	library := filepath.Join(standardABI, m.Name, "libmpi_abi.so.1")
	return append([]string{"cc", "-I" + filepath.Join(standardABI, "include"), "-Wl,--no-as-needed", library},
		flags...)
}

var versions sync.Map // of launchers, by name

// launcherVersion asks a launcher for its version, once.
func launcherVersion(tb testing.TB, launcher string) string {
	tb.Helper()
	if known, ok := versions.Load(launcher); ok {
		return known.(string)
	}
	out, err := exec.Command(launcher, "--version").CombinedOutput()
	found := versionSaid.FindSubmatch(out)
	if err != nil || found == nil {
		tb.Fatalf("%s --version says no version: %v\n%s", launcher, err, out)
	}
	versions.Store(launcher, string(found[1]))
	return string(found[1])
}

// "mpirun.openmpi (OpenRTE) 4.1.4", "mpirun (Open MPI) 6.0.0rc2", "    Version:                                 4.0.2".
var versionSaid = regexp.MustCompile(`(?:\(Open(?: MPI|RTE)\)|Version:)\s+([0-9][^\s]*)`)

// In returns the library of the same name in another Debian, whose root directory is given. It must see the suite's
// directory and the repository under the names that they have here.
func (m *MPI) In(root string) *MPI {
	other := *m
	other.chroot, other.at = root, ".in-"+filepath.Base(root)
	return &other
}

// ARM64 returns the MPICH of a Debian for arm64, whose files are in the root directory given. This machine's launcher
// starts its ranks, with Emulate in front of each.
func ARM64(tb testing.TB, root string) *MPI {
	tb.Helper()
	mpi := MPICH(tb)
	lib := filepath.Join(root, "usr", "lib", "aarch64-linux-gnu", "libmpich.so.12")
	mpi.cross = []string{Tool(tb, "aarch64-linux-gnu-gcc"), "-Wl,--no-as-needed,--allow-shlib-undefined", lib,
		"-isystem", filepath.Join(root, "usr", "include", "aarch64-linux-gnu", "mpich")}
	mpi.at = ".arm64"
	// With tcp beside shared memory a rank that comes to MPI_Finalize a millisecond after the other one hangs in UCX,
	// under qemu alone.
	mpi.env = append(mpi.env, "UCX_TLS=self,posix")
	return mpi
}

// Emulate is the command in front of a program for arm64, with libraries preloaded into it.
func Emulate(tb testing.TB, root string, preload ...string) []string {
	tb.Helper()
	return []string{Tool(tb, "qemu-aarch64-static"), "-L", root, "-E", "LD_PRELOAD=" + strings.Join(preload, ":")}
}

func (m *MPI) launcher() []string { return m.inside("mpirun." + m.suffix) }

// inside is a command in the system that the library is in.
func (m *MPI) inside(command ...string) []string {
	if m.chroot == "" {
		return command
	}
	return append([]string{"chroot", m.chroot}, command...)
}

// compiler returns the command that compiles a source file, by the file's ending; the file's name comes last.
func (m *MPI) compiler(source string) []string {
	switch {
	case m.cross != nil:
		return append([]string{m.cross[0], "-O1", "-g", "-pthread"}, m.cross[1:]...)
	case m.chroot != "":
		return m.inside("mpicc."+m.suffix, "-O1", "-g", "-pthread")
	}
	switch filepath.Ext(source) {
	case ".c":
		if strings.HasPrefix(filepath.Base(source), "profile_") { // hundreds of calls in a row, slow to optimise
			return append(m.c(), "-O0")
		}
		return m.c()
	case ".cpp":
		return []string{"mpicxx." + m.suffix, "-O1", "-g", "-Wall", "-Wno-cast-function-type", "-pthread"}
	default:
		command := []string{"mpifort." + m.suffix, "-O1", "-g", "-Wall"}
		if filepath.Base(filepath.Dir(filepath.Dir(source))) != "zoo" {
			command = append(command, filepath.Join(filepath.Dir(source), "hold.f90"))
		}
		if strings.HasPrefix(filepath.Base(source), "profile_") {
			command = append(command, filepath.Join(filepath.Dir(source), "books.f90"))
		}
		return command
	}
}

// compilation is one program compiled once, whoever asks.
type compilation struct {
	once sync.Once
	path string
	out  []byte
	err  error
}

// source is the file of a program: one of test/programs, or with its folder one of examples or of the zoo.
func (s *Suite) source(program string) string {
	switch folder, file := filepath.Split(program); {
	case strings.HasPrefix(program, "examples/"):
		return filepath.Join(s.root, program)
	case folder == "zoo/":
		return filepath.Join(s.root, "test", "zoo", "programs", file)
	}
	return filepath.Join(s.root, "test", "programs", program)
}

// Program compiles test/programs/source, or examples/…, for an MPI library, when it is first asked for, and returns
// the executable's path.
func (s *Suite) Program(tb testing.TB, mpi *MPI, source string) string {
	tb.Helper()
	path := s.source(source)
	return s.compile(tb, source, mpi.Name+mpi.at, append(mpi.compiler(path), path)...)
}

// Library compiles test/programs/source, in C, for an MPI library as a shared library of its own.
func (s *Suite) Library(tb testing.TB, mpi *MPI, source string) string {
	tb.Helper()
	path := filepath.Join(s.root, "test", "programs", source)
	return s.compile(tb, source, mpi.Name+"-library", append(mpi.compiler(path), path, "-shared", "-fPIC")...)
}

// Linked is Program with libraries of Library linked in front of MPI's.
func (s *Suite) Linked(tb testing.TB, mpi *MPI, source string, libraries ...string) string {
	tb.Helper()
	path := filepath.Join(s.root, "test", "programs", source)
	command := append(append(mpi.compiler(path), path), libraries...)
	return s.compile(tb, source, mpi.Name+"-linked", command...)
}

// PlainProgram compiles test/programs/source with the C compiler alone; flags come after the file's name.
func (s *Suite) PlainProgram(tb testing.TB, source, variant string, flags ...string) string {
	tb.Helper()
	command := append(append([]string{"cc"}, CFlags()...), filepath.Join(s.root, "test", "programs", source))
	command = append(command, flags...)
	return s.compile(tb, source, variant, command...)
}

// Compile runs a compiler's command with "-o" and the path that it returns, once for each name and variant.
func (s *Suite) Compile(tb testing.TB, name, variant string, command ...string) string {
	tb.Helper()
	return s.compile(tb, name, variant, command...)
}

func (s *Suite) compile(tb testing.TB, source, variant string, command ...string) string {
	tb.Helper()
	Tool(tb, command[0])
	name := strings.NewReplacer(".", "-", "/", "-").Replace(source) + "." + variant
	s.mutex.Lock()
	c, ok := s.programs[name]
	if !ok {
		c = &compilation{path: filepath.Join(s.dir, name)}
		s.programs[name] = c
	}
	s.mutex.Unlock()
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		cmd := exec.CommandContext(ctx, command[0], append(command[1:], "-o", c.path)...)
		cmd.Dir = s.dir // Fortran's module files
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		c.out, c.err = cmd.CombinedOutput()
	})
	if c.err != nil {
		tb.Fatalf("compiling %s for %s: %v\n%s", source, variant, c.err, c.out)
	}
	return c.path
}

// Env is what the library needs in the environment, on this machine and as any user.
func (m *MPI) Env() []string { return slices.Clone(m.env) }
