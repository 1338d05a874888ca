package e2e

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// What scripts/test-bullseye and scripts/test-arm64 name: the root directory of a Debian.
const (
	bullseyeRoot = "MPIT_TEST_BULLSEYE"
	arm64Root    = "MPIT_TEST_ARM64"
)

// Whatever they are built on, both libraries load into every glibc from 2.17 on. They ask for the libraries that
// functions were in before glibc 2.34 and for no other, and for no version of a symbol, nor another feature, that
// came later: mpit/agent/portable.h.
func TestLibrariesNeedAnOldGlibc(t *testing.T) { builtHere().assertNeedAnOldGlibc(t) }

func (p pair) assertNeedAnOldGlibc(t *testing.T) {
	t.Helper()
	for _, path := range []string{p.agent, p.calls} {
		assertNeedsAnOldGlibc(t, path)
	}
}

func assertNeedsAnOldGlibc(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()

	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	assert.Equal(t, []string{"libpthread.so.0", "libdl.so.2", "libc.so.6"}, libraries)

	needs, err := file.DynamicVersionNeeds()
	require.NoError(t, err)
	symbols, err := file.DynamicSymbols()
	require.NoError(t, err)
	require.NotEmpty(t, needs)
	for _, need := range needs {
		for _, version := range need.Needs {
			if glibc2(version.Dep) <= 17 {
				continue
			}
			// Also if the symbols are weak ones: not every linker says so where the dynamic linker reads it.
			for _, symbol := range symbols {
				if symbol.Version == version.Dep {
					t.Errorf("%s needs %s for %s", path, version.Dep, symbol.Name)
				}
			}
			t.Errorf("%s needs %s of %s", path, version.Dep, need.Name)
		}
	}
	for _, symbol := range symbols {
		if symbol.Section == elf.SHN_UNDEF && symbol.Version == "" {
			assert.Equal(t, elf.STB_WEAK, elf.ST_BIND(symbol.Info), "%s is not the C library's", symbol.Name)
			// What every shared object asks for, and does without; musl's; the thread sanitizer's.
			assert.Regexp(t, `^(_ITM_(de)?registerTMCloneTable|__gmon_start__|pthread_atfork|__tsan_ignore_thread_(begin|end))$`, symbol.Name)
		}
	}
}

// glibc2 is the second number of a version such as GLIBC_2.2.5; very large if it is no such version.
func glibc2(version string) int {
	found := regexp.MustCompile(`^GLIBC_2\.([0-9]+)(\.[0-9]+)?$`).FindStringSubmatch(version)
	if found == nil {
		return 1 << 30
	}
	minor, err := strconv.Atoi(found[1])
	if err != nil {
		return 1 << 30
	}
	return minor
}

// Programs of musl find whatever the libraries need, and run as they do without them.
func TestProgramsOfMusl(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"plain.c", "plain_threads.c"} {
		program := suite.Compile(t, source, "musl", "musl-gcc", "-O1", "-g",
			filepath.Join(suite.Root(), "test", "programs", source))
		builtHere().assertRunsAsBare(t, 7, nil, program)
	}
}

// Nor do the flags matter with which distributions compile what they package (these are Fedora's and others'), though
// they ask for newer features and for functions that musl lacks.
func TestLibrariesCompiledAsPackages(t *testing.T) {
	harness.LeftToCI(t)
	t.Parallel()
	made := pair{filepath.Join(t.TempDir(), "libmpit-agent.so"), suite.Calls()}
	command := []string{
		"make", "-C", filepath.Join(suite.Root(), "mpit", "agent"), "BUILD=" + filepath.Dir(made.agent),
		"OPTIMISATION=-O1", made.agent,
	}
	result := suite.Start(t, command, []string{
		"CFLAGS=-Wp,-D_FORTIFY_SOURCE=3 -D_FILE_OFFSET_BITS=64 -flto=auto -fstack-protector-strong",
		"LDFLAGS=-Wl,-z,pack-relative-relocs",
	}).Wait(t)
	require.Zero(t, result.Status, "%+v", result)
	assertNeedsAnOldGlibc(t, made.agent)
	source := filepath.Join(suite.Root(), "test", "programs", "plain.c")
	made.assertRunsAsBare(t, 7, nil, suite.Compile(t, "plain.c", "musl", "musl-gcc", "-O1", "-g", source))
}

// pair are the two libraries of one build.
type pair struct{ agent, calls string }

func builtHere() pair { return pair{suite.Agent(), suite.Calls()} }

func builtIn(dir ...string) pair {
	path := filepath.Join(append([]string{suite.Root()}, dir...)...)
	return pair{filepath.Join(path, "libmpit-agent.so"), filepath.Join(path, "libmpit-calls.so")}
}

// assertRunsAsBare runs a command that ends with a status, with before in front of it: without the libraries, and
// with them in every way that they can be preloaded. Output and status are the same.
func (p pair) assertRunsAsBare(t *testing.T, status int, before []string, command ...string) {
	t.Helper()
	bare := suite.Start(t, append(slices.Clone(before), command...), nil).Wait(t)
	require.Equal(t, status, bare.Status, "%+v", bare)
	for _, libraries := range [][]string{{p.agent}, {p.calls}, {p.agent, p.calls}, {p.calls, p.agent}} {
		for _, now := range []string{"", "1"} {
			env := []string{"LD_PRELOAD=" + strings.Join(libraries, ":"), "LD_BIND_NOW=" + now}
			preloaded := append(append(slices.Clone(before), "/usr/bin/env"), append(env, command...)...)
			assert.Equal(t, bare, suite.Start(t, preloaded, nil).Wait(t), "%v", preloaded)
		}
	}
}

// A Debian 11 (glibc 2.31, Open MPI 4.1.0, MPICH 3.4) with the libraries as they are built here: programs run as
// without them, and the page shows what MPI jobs do. And the libraries that its compiler and headers make.
func TestBullseye(t *testing.T) {
	root := otherRoot(t, bullseyeRoot)
	inside := []string{"chroot", root}
	t.Run("programs", func(t *testing.T) {
		builtHere().assertRunsAsBare(t, 0, inside, "/bin/ls", "/etc/debian_version")
		builtHere().assertRunsAsBare(t, 9, inside, "/bin/sh", "-c", "/bin/true | /bin/cat; exit 9")
		program := suite.Compile(t, "plain_threads.c", "bullseye", append(inside, "cc", "-O1", "-g", "-pthread",
			filepath.Join(suite.Root(), "test", "programs", "plain_threads.c"))...)
		builtHere().assertRunsAsBare(t, 7, inside, program)
	})
	t.Run("built there", func(t *testing.T) {
		there := builtIn("mpit", "agent", "build", "bullseye")
		there.assertNeedAnOldGlibc(t)
		there.assertRunsAsBare(t, 7, nil, suite.PlainProgram(t, "plain_threads.c", "here", "-pthread"))
	})
	// Its libfabric aborts a process that forks, unless Open MPI has unloaded it in MPI_Init, as it does.
	for _, program := range []string{"forks.c", "forks.py"} {
		t.Run("openmpi/"+program, func(t *testing.T) {
			job := harness.Job{MPI: harness.OpenMPI(t).In(root), Program: program, Args: []string{"-"}, Bare: true}
			bare := suite.Run(t, job).Wait(t)
			require.Zero(t, bare.Status, "%+v", bare)
			exporter := suite.Exporter(t)
			job.Socket = exporter.Socket
			preload := []string{"env", "LD_PRELOAD=" + suite.Agent()}
			alone := job
			alone.Alone, alone.Before = true, inside
			for _, how := range []struct {
				name string
				wrap []string // nil: by exec
				job  harness.Job
			}{
				{"exec", nil, job}, {"LD_PRELOAD", preload, job},
				{"exec alone", nil, alone}, {"LD_PRELOAD alone", preload, alone},
			} {
				how.job.Bare, how.job.Wrap = how.wrap != nil, how.wrap
				run := suite.Run(t, how.job)
				assert.Equal(t, bare, run.Wait(t), how.name)
				exporter.Await(t, "the end with "+how.name, ended(run, "finalize"))
			}
		})
	}
	for _, mpi := range harness.Both(t) {
		for _, p := range profilePrograms {
			if mpi.Name == "mpich" && p.name == "collectives" {
				// Not in_place: 3.4 looks at arguments of MPI_Iscatterv that count at the root alone.
				p.families = []string{"simple", "vectors", "neighbours", "inter", "constructors", "large"}
			}
			t.Run(mpi.Name+"/"+p.name, func(t *testing.T) {
				exporter := suite.Exporter(t)
				p.run(t, exporter, harness.Job{MPI: mpi.In(root), Exec: []string{"--calls"}})
			})
		}
	}
}

// Ranks on arm64, under qemu: calls and bytes come out exact. The libraries are those of make build ARCH=arm64.
func TestARM64(t *testing.T) {
	root := otherRoot(t, arm64Root)
	built := builtIn("bin", "arm64")
	built.assertNeedAnOldGlibc(t)
	t.Run("exporter", func(t *testing.T) {
		exporter := filepath.Join(suite.Root(), "bin", "arm64", "mpit-exporter")
		result := suite.Start(t, []string{harness.Tool(t, "qemu-aarch64-static"), exporter, "--version"}, nil).Wait(t)
		assert.Zero(t, result.Status, "%+v", result)
		assert.Contains(t, result.Stdout, "linux/arm64")
	})
	mpi := harness.ARM64(t, root)
	for _, p := range profilePrograms {
		t.Run(p.name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			p.run(t, exporter, harness.Job{MPI: mpi, Bare: true,
				Wrap: harness.Emulate(t, root, built.calls, built.agent)})
		})
	}
}

func otherRoot(t *testing.T, variable string) string {
	t.Helper()
	root := os.Getenv(variable)
	if root == "" {
		t.Skipf("%s names no root directory; make test-distributions does", variable)
	}
	return root
}
