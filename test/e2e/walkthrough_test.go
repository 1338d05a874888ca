package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// What pages say to newcomers is run as it stands there, in bash, on a machine of its own as far as namespaces make
// one, and prints what the page shows. "make build" alone is left out: it has been run.
func TestWalkthroughs(t *testing.T) {
	harness.LeftToCI(t)
	t.Parallel()
	cases := []struct {
		page, section string
		// shorter has what takes its time, and what takes less of it. Rules are made shorter as harness.RulesInSeconds does.
		shorter []string
	}{
		{page: "docs/why-slow.md", section: "## A case, from symptom to cause"},
		{page: "docs/deploy.md", section: "## An alert in 15 minutes",
			shorter: []string{"scrape_interval: 15s, evaluation_interval: 15s",
				"scrape_interval: 500ms, evaluation_interval: 1s"}},
	}
	for _, c := range cases {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			harness.OpenMPI(t)
			for _, tool := range []string{"prometheus", "promtool", "curl"} {
				harness.Tool(t, tool)
			}
			text, err := os.ReadFile(filepath.Join(suite.Root(), c.page))
			require.NoError(t, err)
			steps := stepsOf(t, sectionOf(t, string(text), c.section))
			script := "set -e\n"
			for i, step := range steps {
				script += fmt.Sprintf("echo; echo %s%d\n%s\n", stepMark, i, strings.Replace(step.commands, "make build\n", "", 1))
			}
			for i := 0; i < len(c.shorter); i += 2 {
				require.Contains(t, script, c.shorter[i])
				script = strings.ReplaceAll(script, c.shorter[i], c.shorter[i+1])
			}
			checkout := checkoutOf(t)
			writeFile(t, filepath.Join(checkout, "walkthrough"), script)
			node := "node" + strconv.Itoa(os.Getpid())
			result := suite.Start(t, machine(t, node, "cd "+checkout+" && exec bash walkthrough"), nil).Wait(t)
			said := strings.Split(result.Stdout, "\n"+stepMark)
			ours := strings.NewReplacer("node7", node, "user ada", "user root", `user="ada"`, `user="root"`, "(ada)", "(root)")
			for i, step := range steps {
				require.Greater(t, len(said), i+1, "not reached: %s\n%s\n%s", step.commands, result.Stdout, result.Stderr)
				if strings.Contains(said[i+1], "got a core for") {
					continue // other tests have left it none, and the exporter says so
				}
				if strings.Contains(said[i+1], "different calls") {
					continue // the rank was stopped in the few moments in which it has messages for the others
				}
				assert.NoError(t, shows(ours.Replace(step.output), strings.TrimPrefix(said[i+1], strconv.Itoa(i)+"\n")),
					step.commands)
			}
			require.Zero(t, result.Status, "%s\n%s", result.Stdout, result.Stderr)
		})
	}
}

const stepMark = "--- step "

// step is a block of commands, and what the page says that it prints, if it says so.
type step struct{ commands, output string }

func sectionOf(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, found, "no section %q", heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// stepsOf takes the blocks of sh for commands, and one without a language for what those before it print.
func stepsOf(t *testing.T, section string) (steps []step) {
	t.Helper()
	for _, block := range fenced.FindAllStringSubmatch(section, -1) {
		switch block[1] {
		case "sh":
			steps = append(steps, step{commands: block[2]})
		case "":
			require.NotEmpty(t, steps, "whose output is this?\n%s", block[2])
			require.Empty(t, steps[len(steps)-1].output, "commands have two outputs:\n%s", block[2])
			steps[len(steps)-1].output = block[2]
		}
	}
	require.NotEmpty(t, steps)
	return steps
}

// checkoutOf is a directory with what is in the repository, in which files can be made, and with rules whose times are
// short enough for a test.
func checkoutOf(t *testing.T) string {
	t.Helper()
	dir := suite.Dir(t)
	entries, err := os.ReadDir(suite.Root())
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "try" && e.Name() != "alerts" {
			require.NoError(t, os.Symlink(filepath.Join(suite.Root(), e.Name()), filepath.Join(dir, e.Name())))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "alerts"), 0o755))
	for _, file := range suite.RulesInSeconds(t) {
		require.NoError(t, os.Symlink(file, filepath.Join(dir, "alerts", filepath.Base(file))))
	}
	return dir
}

// machine is a command that runs a line of sh with ports, processes, a name and a /run of its own.
func machine(t *testing.T, name, line string) []string {
	t.Helper()
	apart := func(line string) []string {
		return []string{"unshare", "--map-root-user", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child",
			"--mount-proc",
			"sh", "-c", "mount -t tmpfs tmpfs /run && hostname " + name + " && ip link set lo up && " + line}
	}
	if tried := suite.Start(t, apart("true"), nil).Wait(t); tried.Status != 0 {
		t.Skip("a machine of its own can't be made here: ", tried.Stderr)
	}
	return apart(line)
}

// shows compares what was printed with what a page shows of it. A line with nothing but … stands for any lines, and …
// in a line for anything. Figures may be others, if they have a unit, a point or more than two digits: small whole
// numbers, such as ranks, are what they are.
func shows(page, printed string) error {
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	anywhere := false
	for _, want := range strings.Split(strings.TrimSpace(page), "\n") {
		if strings.TrimSpace(want) == "…" || page == "" {
			anywhere = true
			continue
		}
		pattern := linePattern(want)
		at := 0
		for anywhere && at < len(lines) && !pattern.MatchString(lines[at]) {
			at++
		}
		if at >= len(lines) || !pattern.MatchString(lines[at]) {
			return fmt.Errorf("the page shows\n%s\nand what was printed is, after what was found already,\n%s", want,
				strings.Join(lines, "\n"))
		}
		lines, anywhere = lines[at+1:], false
	}
	if len(lines) > 0 && !anywhere {
		return fmt.Errorf("printed, and not shown:\n%s", strings.Join(lines, "\n"))
	}
	return nil
}

var (
	figure = regexp.MustCompile(`[0-9][0-9.,]*(?: %| [KMG]?i?B\b|[a-zµ]+[0-9a-z]*)?`)
	plain  = regexp.MustCompile(`^[0-9]{1,2}$`)
	job    = regexp.MustCompile(`^[0-9]{9,}$`) // which some libraries call by more than a number
)

func linePattern(line string) *regexp.Regexp {
	const space = `\s+`
	var pattern strings.Builder
	literal := func(text string) {
		text = regexp.QuoteMeta(text)
		text = strings.ReplaceAll(text, "…", ".*")
		pattern.WriteString(regexp.MustCompile(` +`).ReplaceAllString(text, space))
	}
	from := 0
	for _, at := range figure.FindAllStringIndex(line, -1) {
		number := line[at[0]:at[1]]
		literal(line[from:at[0]])
		from = at[1]
		switch {
		case plain.MatchString(number):
			literal(number)
		case job.MatchString(number):
			pattern.WriteString(`[^\s",:]+`)
		case strings.HasSuffix(number, " %"):
			pattern.WriteString(`[0-9.]+ %`)
		case strings.HasSuffix(number, "B"):
			pattern.WriteString(`[0-9.]+ [KMG]?i?B`)
		default:
			pattern.WriteString(`[0-9][0-9.,a-zµ]*`)
		}
	}
	literal(line[from:])
	return regexp.MustCompile(`^\s*` + pattern.String() + `\s*$`)
}

// What a page shows must be what is printed, but for figures.
func TestShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, page, printed string
		same                bool
	}{
		{"the same", "a\nb", "a\nb\n", true},
		{"a line less", "a", "a\nb", false},
		{"a line more", "a\nb", "a", false},
		{"any lines", "a\n…\nd", "a\nb\nc\nd", true},
		{"any lines at the end", "a\n…", "a\nb\nc", true},
		{"in another order", "a\n…\nb", "a\nc\nd", false},
		{"a share", "48 % useful", "51.3 % useful", true},
		{"no share", "48 % useful", "many % useful", false},
		{"times and sizes", "7.77s  988  556µs  16 B", "1m2.5s 12 1.2ms 16.2 KiB", true},
		{"a rank", "for rank 2 on", "for rank 3 on", false},
		{"ranks", "4 of 4 ranks", "3 of 4 ranks", false},
		{"a gain", "-4.92s", "+4.92s", false},
		{"another library's job", "Job 1956249601: stencil", "Job prterun-node7-1786@1: stencil", true},
		{"anything", "job … ended", "job 17 has ended", true},
		{"nothing is said of it", "", "a\nb", true},
	} {
		err := shows(c.page, c.printed)
		assert.Equal(t, c.same, err == nil, "%s: %v", c.name, err)
	}
}
