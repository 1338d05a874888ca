// Package deploy holds the files with which the exporter is put into service to what they promise: that what they
// name is there, and that the programs they are for can read them.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return text
}

// documents returns the documents of a YAML file.
func documents(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, path)))
	for {
		var d map[string]any
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err, path)
		list = append(list, d)
	}
}

type service struct {
	Build   struct{ Context, Target string } `yaml:"build"`
	Image   string                           `yaml:"image"`
	Volumes []string                         `yaml:"volumes"`
	Tmpfs   []string                         `yaml:"tmpfs"`
	Environ map[string]string                `yaml:"environment"`

	HealthCheck map[string]any `yaml:"healthcheck"`
	DependsOn   map[string]any `yaml:"depends_on"`
}

type composition struct {
	Services map[string]service
	Volumes  map[string]any
}

func compose(t *testing.T) (c composition) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal(read(t, "docker-compose.yml"), &c))
	return c
}

// Every file and directory that docker-compose.yml mounts is there, and what stands in it is found where the programs
// look.
func TestComposeMountsWhatIsThere(t *testing.T) {
	c := compose(t)
	require.Len(t, c.Services, 4)
	dockerfile := string(read(t, "Dockerfile"))
	mounted := map[string]string{} // path in the container, of all services: path here
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, rest, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, ".") {
				assert.Contains(t, c.Volumes, from, name)
				continue
			}
			to, mode, _ := strings.Cut(rest, ":")
			assert.Equal(t, "ro", mode, v)
			_, err := os.Stat(filepath.Join(root, from))
			require.NoError(t, err)
			mounted[to] = from
		}
		switch s.Build.Target {
		case "":
			assert.Regexp(t, `:v?\d+\.\d+\.\d+$`, s.Image, "an image of somebody else's has a version")
			assert.NotEmpty(t, s.HealthCheck, "%s has no health check", name)
		default:
			assert.Empty(t, s.Image, "%s is built here: compose would ask a registry for an image by that name first", name)
			stage := regexp.MustCompile(`(?ms)^FROM [^\n]* AS ` + s.Build.Target +
				`$(.*?)(?:^FROM |\z)`).FindStringSubmatch(dockerfile)
			require.NotNil(t, stage, "Dockerfile has no stage %s", s.Build.Target)
			assert.Contains(t, stage[1], "\nHEALTHCHECK ", s.Build.Target)
			assert.Regexp(t, `(?m)^USER \d+:\d+$`, stage[1], s.Build.Target)
		}
	}
	here := func(path string) string {
		for to, from := range mounted {
			if rest, ok := strings.CutPrefix(path, to); ok {
				return filepath.Join(from, rest)
			}
		}
		t.Fatalf("nothing is mounted at %s", path)
		return ""
	}
	var prometheus struct {
		RuleFiles []string `yaml:"rule_files"`
	}
	require.NoError(t, yaml.Unmarshal(read(t, here("/etc/prometheus/prometheus.yml")), &prometheus))
	for _, pattern := range prometheus.RuleFiles {
		files, err := filepath.Glob(filepath.Join(root, here(pattern)))
		require.NoError(t, err)
		assert.NotEmpty(t, files, "no rules at %s", pattern)
	}
	_, err := os.Stat(filepath.Join(root, here(c.Services["grafana"].Environ["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])))
	assert.NoError(t, err)

	provisioning := here("/etc/grafana/provisioning")
	for _, d := range documents(t, filepath.Join(provisioning, "dashboards", "mpi.yaml")) {
		for _, p := range d["providers"].([]any) {
			path := p.(map[string]any)["options"].(map[string]any)["path"].(string)
			var hidden []string
			for _, d := range c.Services["grafana"].Tmpfs {
				hidden = append(hidden, filepath.Join(root, here(d)))
			}
			assert.NotEmpty(t, dashboardsIn(t, filepath.Join(root, here(path)), hidden), "no dashboards at %s", path)
		}
	}
	for _, d := range documents(t, filepath.Join(provisioning, "datasources", "prometheus.yaml")) {
		for _, s := range d["datasources"].([]any) {
			assert.Equal(t, "http://prometheus:9090", s.(map[string]any)["url"])
		}
	}
}

// dashboardsIn are all that Grafana finds in a directory and below: each JSON file there must be one.
func dashboardsIn(t *testing.T, dir string, hidden []string) (titles []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(hidden, path):
			return fs.SkipDir
		case filepath.Ext(path) != ".json":
			return nil
		}
		var board struct{ UID, Title string }
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		require.NoError(t, json.Unmarshal(text, &board), path)
		assert.NotEmpty(t, board.Title, path)
		assert.NotEmpty(t, board.UID, path)
		titles = append(titles, board.Title)
		return nil
	}))
	return titles
}

// What the Dockerfile copies from this directory is here and not left out by .dockerignore.
func TestDockerfileCopiesWhatIsThere(t *testing.T) {
	ignored := strings.Fields(string(read(t, ".dockerignore")))
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-\n].*) \S+$`).FindAllStringSubmatch(string(read(t,
		"Dockerfile")), -1) {
		for _, file := range strings.Fields(m[1]) {
			_, err := os.Stat(filepath.Join(root, file))
			assert.NoError(t, err)
			assert.NotContains(t, ignored, file)
		}
	}
}

// docker-compose itself understands the file.
func TestComposeConfig(t *testing.T) {
	program, err := exec.LookPath("docker-compose")
	if err != nil {
		t.Skip("docker-compose is not installed (scripts/install-deps test)")
	}
	cmd := exec.CommandContext(t.Context(), program, "--file", "docker-compose.yml", "config", "--quiet")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Prometheus understands its files.
func TestPrometheusConfig(t *testing.T) {
	for _, file := range []string{"examples/prometheus/prometheus.yml", "examples/compose/prometheus.yml"} {
		out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", "--syntax-only",
			filepath.Join(root, file)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// The manifests are YAML, of kinds that are meant, say how their images are built, and their exporter runs as the
// image's user.
func TestKubernetesManifests(t *testing.T) {
	kinds := map[string]bool{}
	image := regexp.MustCompile(`(?m)^ *image: (\S+)$`)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "examples", "kubernetes"),
		func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, path)
			text := string(read(t, rel))
			for _, m := range image.FindAllStringSubmatch(text, -1) {
				assert.Regexp(t, `(?m)^# .*docker build .*-t `+regexp.QuoteMeta(m[1])+` \. &&\s(?:#\s+)?docker push `+
					regexp.QuoteMeta(m[1])+`$`, text, "nobody publishes the image: %s says how to build it", rel)
			}
			for _, d := range documents(t, rel) {
				kinds[d["kind"].(string)] = true
				assert.NotEmpty(t, d["apiVersion"], path)
				assert.NotEmpty(t, d["metadata"].(map[string]any)["name"], path)
			}
			return err
		}))
	assert.Equal(t, map[string]bool{"DaemonSet": true, "PodMonitor": true, "MPIJob": true}, kinds)

	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindSubmatch(read(t, "Dockerfile"))
	require.NotNil(t, user)
	daemonset := string(read(t, "examples/kubernetes/daemonset.yaml"))
	assert.Contains(t, daemonset, "runAsUser: "+string(user[1])+"\n")
	assert.Contains(t, daemonset, `"`+string(user[1])+":"+string(user[2])+`"`)
}

// Shell scripts can be read, and TaskProlog's words are those that Slurm takes.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	library, calls := filepath.Join(dir, "libmpit-agent.so"), filepath.Join(dir, "libmpit-calls.so")
	require.NoError(t, os.WriteFile(library, nil, 0o600))
	prolog := func(environ ...string) string {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "examples/slurm/task_prolog.sh"))
		cmd.Env = environ
		out, err := cmd.Output() // the dynamic linker complains of libraries that are none
		require.NoError(t, err)
		return string(out)
	}
	named := "MPIT_AGENT_LIBRARY=" + library
	const options = "export ASAN_OPTIONS=verify_asan_link_order=0\n"
	assert.Equal(t, "export LD_PRELOAD="+library+"\n"+options, prolog(named))
	assert.Equal(t, "export LD_PRELOAD="+library+":/a.so\n"+options, prolog(named, "LD_PRELOAD=/a.so"))
	assert.Equal(t, options, prolog(named, "LD_PRELOAD=/a.so:"+library), "it stands there already")
	assert.Empty(t, prolog("MPIT_AGENT_LIBRARY=/not/there"), "the dynamic linker would complain in every program")
	assert.Equal(t, "export LD_PRELOAD="+library+"\n"+options, prolog(named, "MPIT_CALLS=1"),
		"there is no call profile")
	require.NoError(t, os.WriteFile(calls, nil, 0o600))
	assert.Equal(t, "export LD_PRELOAD="+library+"\n"+options, prolog(named), "nobody asks for it")
	assert.Equal(t, "export LD_PRELOAD="+library+"\n"+options, prolog(named, "MPIT_CALLS=0"))
	assert.Equal(t, "export LD_PRELOAD="+calls+":"+library+":/a.so\n"+options,
		prolog(named, "MPIT_CALLS=1", "LD_PRELOAD=/a.so"))
	assert.Equal(t, "export LD_PRELOAD="+calls+":"+library+"\n"+options,
		prolog(named, "MPIT_CALLS=1", "LD_PRELOAD="+library), "the agent stands there already")
	assert.Equal(t, options, prolog(named, "MPIT_CALLS=1", "LD_PRELOAD="+library+":"+calls),
		"both stand there, in the other order")
	present := []string{named, "LD_PRELOAD=" + library}
	assert.Equal(t, "export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0\n",
		prolog(append(present, "ASAN_OPTIONS=detect_leaks=0")...))
	assert.Empty(t, prolog(append(present, "ASAN_OPTIONS=verify_asan_link_order=1")...), "the user's word")
	assert.Empty(t, prolog(named, "MPIT_AGENT_DISABLE=1"), "the user's way out")
	assert.NotEmpty(t, prolog(named, "MPIT_AGENT_DISABLE=0"))
	for _, script := range []string{"examples/slurm/job.sh", "examples/pbs/job.sh", "examples/debian/postinst",
		"examples/debian/prerm", "examples/debian/postrm"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(root, script)).CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
}

// The module files set what is wanted where the library is, and nothing where it isn't: a Tcl interpreter reads those
// of Environment Modules.
func TestModuleFiles(t *testing.T) {
	tclsh, err := exec.LookPath("tclsh")
	if err != nil {
		t.Skip("tclsh is not installed")
	}
	dir := t.TempDir()
	module := func(name string) string {
		text := strings.ReplaceAll(string(read(t, "examples/modulefiles/"+name+".tcl")), "/usr/lib/mpit-exporter", dir)
		words := "foreach word {module-whatis prereq} { proc $word args {} }\nforeach word {prepend-path " +
			"append-path setenv} { proc $word {name value} \"puts \\\"$word \\$name \\$value\\\"\" }\n"
		cmd := exec.CommandContext(t.Context(), tclsh)
		cmd.Stdin = strings.NewReader(words + text)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	library, calls := filepath.Join(dir, "libmpit-agent.so"), filepath.Join(dir, "libmpit-calls.so")
	for _, name := range []string{"mpit-exporter", "mpit-calls"} {
		assert.Empty(t, module(name), "the library isn't there")
	}
	for _, path := range []string{library, calls} {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	assert.Equal(t, "prepend-path LD_PRELOAD "+library+"\nappend-path ASAN_OPTIONS verify_asan_link_order=0\nsetenv "+
		"MPIT_AGENT_LIBRARY "+library+"\n", module("mpit-exporter"))
	assert.Equal(t, "prepend-path LD_PRELOAD "+calls+"\nsetenv MPIT_CALLS_LIBRARY "+calls+"\n",
		module("mpit-calls"))
}
