package deploy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// output is what a command says in a directory, with LC_ALL=C and variables of the environment besides.
func output(t *testing.T, dir string, environ []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "LC_ALL=C"), environ...)
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		require.NoError(t, err, "%q: %s", command, exit.Stderr)
	}
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// tree is a repository with no more than what scripts/version reads.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) tree {
	t.Helper()
	r := tree{t, t.TempDir()}
	r.write("scripts/version", string(read(t, "scripts/version")))
	r.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-11-23\n\n- Old.\n\n## 0.0.9\n")
	return r
}

func (r tree) write(path, text string) {
	r.t.Helper()
	path = filepath.Join(r.dir, path)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o755))
}

// git runs git as somebody whose commits are all of one second.
func (r tree) git(words ...string) string {
	r.t.Helper()
	return output(r.t, r.dir, []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b.c", "GIT_COMMITTER_DATE=1795415041 +0100", "GIT_AUTHOR_DATE=1795415041 +0100",
		"GIT_CONFIG_GLOBAL=/dev/null"}, append([]string{"git"}, words...)...)
}

func (r tree) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "change")
	return r.version()
}

func (r tree) version() string {
	r.t.Helper()
	return output(r.t, r.dir, nil, "scripts/version")
}

// The version is the newest release, and behind it what has come since.
func TestVersion(t *testing.T) {
	r := newTree(t)
	assert.Equal(t, "0.1.0", r.version(), "a tarball of the sources")
	r.git("init", "-q", "-b", "main")
	assert.Equal(t, "0.1.0+0", r.version(), "git knows no commit")
	assert.Regexp(t, `^0\.1\.0\+1\.g[0-9a-f]{10}$`, r.commit())
	r.git("tag", "v0.1.0")
	assert.Equal(t, "0.1.0", r.version())
	r.write("CHANGELOG.md", "# Changelog\n\n## 0.2.0\n")
	assert.Regexp(t, `^0\.2\.0\+1\.g[0-9a-f]{10}\.dirty$`, r.version())
	assert.Regexp(t, `^0\.2\.0\+2\.g[0-9a-f]{10}$`, r.commit())

	shallow := tree{t, filepath.Join(t.TempDir(), "shallow")}
	r.git("clone", "-q", "--depth=1", "file://"+r.dir, shallow.dir)
	assert.Regexp(t, `^0\.2\.0\+0\.1795415041\.g[0-9a-f]{10}$`, shallow.version())
}

// Whoever installs the packages of one commit after the other never goes back, for dpkg and for rpm: from the release
// on, through merges, to the next one. A shallow clone's packages are between.
func TestVersionsSort(t *testing.T) {
	r := newTree(t)
	versions := []string{r.version(), "0.1.0+0", "0.1.0+0.1795415041.gffffffffff", "0.1.0+0.1795415042.g0000000000"}
	r.git("init", "-q", "-b", "main")
	for i := range 14 {
		versions = append(versions, r.commit())
		if i%5 == 4 {
			r.git("checkout", "-q", "-b", fmt.Sprint("side", i), "HEAD~3")
			r.write("side", fmt.Sprint(i))
			r.commit()
			r.git("checkout", "-q", "main")
			r.git("merge", "-q", "--no-ff", "-m", "merge", fmt.Sprint("side", i))
			versions = append(versions, r.version())
		}
	}
	versions = append(versions, versions[len(versions)-1]+".dirty", "0.1.1", "0.2.0", "0.10.0")

	t.Run("dpkg", func(t *testing.T) {
		needs(t, "dpkg")
		for i, later := range versions[1:] {
			assert.NoError(t, exec.CommandContext(t.Context(), "dpkg", "--compare-versions", versions[i], "lt", later).Run(),
				"%s is not before %s", versions[i], later)
		}
	})
	t.Run("rpm", func(t *testing.T) {
		needs(t, "rpm")
		var lua strings.Builder
		for i, later := range versions[1:] {
			fmt.Fprintf(&lua, "if rpm.vercmp('%s', '%s') >= 0 then print('%[1]s is not before %[2]s') end ", versions[i], later)
		}
		assert.Empty(t, output(t, "", nil, "rpm", "--eval", "%{lua: "+lua.String()+"}"))
	})
}

// The manual page has every command and flag that the program's help has, every variable of docs/agent.md, and nothing
// that mandoc would warn of.
func TestManualPage(t *testing.T) {
	program, err := filepath.Abs(filepath.Join(root, "bin", "mpit-exporter"))
	require.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("nothing is built (make build)")
	}
	page := output(t, root, []string{"SOURCE_DATE_EPOCH=1795415041"}, "scripts/man-page", program)
	plain := strings.ReplaceAll(page, `\-`, "-")
	help := output(t, "", nil, program, "--help-man")
	flags := regexp.MustCompile(`(?m)^\\fB-.*$`).FindAllString(help, -1)
	require.Greater(t, len(flags), 100)
	for _, flag := range flags {
		assert.Equal(t, strings.Count("\n"+help, "\n"+flag+"\n"), strings.Count(plain, "\n"+flag+"\n"), flag)
	}
	for _, command := range regexp.MustCompile(`(?m)^\.SS\n\\fB([a-z ]+)`).FindAllStringSubmatch(help, -1) {
		if name := strings.TrimSpace(command[1]); name != "help" {
			assert.Regexp(t, `(?m)^\.SS `+name+`( |$)`, plain)
			assert.Regexp(t, `(?m)^\\fBmpit-exporter\\fR `+name+`( |$)`, plain)
		}
	}
	variables := regexp.MustCompile("(?m)^\\| `(MPIT_[A-Z_]+)`")
	for _, row := range variables.FindAllStringSubmatch(string(read(t, "docs/agent.md")), -1) {
		assert.Contains(t, plain, "\\fB"+row[1])
	}
	assert.NotContains(t, page, "`MPIT_")
	needs(t, "mandoc")
	cmd := exec.CommandContext(t.Context(), "mandoc", "-Tlint", "-Wwarning")
	cmd.Stdin = strings.NewReader(page + "\n")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err)
	assert.Empty(t, string(out))
}

// Spack's package is Python, of the newest release, and installs as make install does.
func TestSpackPackage(t *testing.T) {
	needs(t, "python3")
	// All that it takes from Spack, to be looked at.
	const stub = `
import sys, types
builds, package = types.ModuleType("makefile"), types.ModuleType("spack.package")
builds.MakefilePackage = object
said = []
for word in "license", "version", "depends_on":
    setattr(package, word, lambda *words, word=word, **more: said.append((word,) + words))
for name in "spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems":
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack_repo.builtin.build_systems.makefile"], sys.modules["spack.package"] = builds, package
names = {}
exec(compile(sys.stdin.read(), "package.py", "exec"), names)
made = names["MpitExporter"]()
made.prefix = "/opt/it"
print(*said, made.build_targets, made.install_targets)
`
	cmd := exec.CommandContext(t.Context(), "python3", "-c", stub)
	cmd.Stdin = strings.NewReader(string(read(t, "examples/spack/package.py")))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	release := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindStringSubmatch(string(read(t, "CHANGELOG.md")))
	require.NotNil(t, release)
	goes := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(string(read(t, "go.mod")))
	for _, said := range []string{"('version', '" + release[1] + "')", "('depends_on', 'go@" + goes[1] + ":')",
		"['build'] ['install', 'PREFIX=/opt/it']"} {
		assert.Contains(t, string(out), said)
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed (scripts/install-deps test)", program)
	}
}
