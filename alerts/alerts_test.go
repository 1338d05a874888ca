// Package alerts has rules for Prometheus, and tests that hold them together with their own tests, their pages and
// the names of metrics.
package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	maprules "github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	recordingFile = "alerts/recording.yaml"
	alertFile     = "alerts/alerts.yaml"
	testDir       = "alerts/tests"
	pageDir       = "docs/runbooks"
	tableFile     = "docs/alerts.md"
	metricsFile   = "docs/metrics.md"
	otlpFile      = "docs/otlp.md"

	runbooks = "https://github.com/mpit-exporter/mpit-exporter/blob/main/docs/runbooks/"
)

// headings are those of every page, in this order.
var headings = []string{"Meaning", "Impact", "How to look", "What to do", "How to tune or silence"}

// rule is one of a file of rules.
type rule struct {
	Record      string
	Alert       string
	Expr        string
	For         string
	KeepFiring  string `yaml:"keep_firing_for"`
	Labels      map[string]string
	Annotations map[string]string
	group       int // which it is in, counted from the first of the file
}

func rules(files fs.FS, name string) ([]rule, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	var file struct {
		Groups []struct {
			Name     string
			Interval string
			Rules    []rule
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var all []rule
	for i, group := range file.Groups {
		for _, r := range group.Rules {
			r.group = i
			all = append(all, r)
		}
	}
	return all, nil
}

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("MPIT_TEST_ALLOW_MISSING") == "1" {
			t.Skip("promtool is not installed")
		}
		t.Fatal("promtool is not installed: scripts/install-deps test (MPIT_TEST_ALLOW_MISSING=1 skips the tests " +
			"that need it)")
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
}

func TestRulesAreRight(t *testing.T) {
	promtool(t, "check", "rules", "recording.yaml", "alerts.yaml")
}

// Mimir's ruler takes 20 rules of a group, unless its limit is set.
func TestGroupsAreSmall(t *testing.T) {
	for _, file := range []string{recordingFile, alertFile} {
		list, err := rules(os.DirFS(".."), file)
		require.NoError(t, err)
		of := map[int]int{}
		for _, r := range list {
			of[r.group]++
			assert.LessOrEqual(t, of[r.group], 20, "%s: the group of %s%s", file, r.Record, r.Alert)
		}
	}
}

// What each alert says of made-up series: tests/<alert>.yaml.
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("promtool takes seconds for all of them")
	}
	// Read here as well, so that the result is not kept when one of them changes.
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		_, err := os.ReadFile(name)
		require.NoError(t, err)
	}
	tests, err := filepath.Glob("tests/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	for _, test := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(test), ".yaml"), func(t *testing.T) {
			t.Parallel()
			_, err := os.ReadFile(test)
			require.NoError(t, err)
			promtool(t, "test", "rules", test)
		})
	}
}

// What ranks call things is quoted without what chat programs take for markup, links or mentions. What names a job has
// none of that (TestName in exporter/internal/clean).
func TestAlertsQuotePlainText(t *testing.T) {
	alerts, err := rules(os.DirFS(".."), alertFile)
	require.NoError(t, err)
	action := regexp.MustCompile(`{{[^{}]*}}`)
	asks, names := regexp.MustCompile(`{{-? *(if|with) `), regexp.MustCompile(`\.Labels\.(comm|win|function|value)\b`)
	for _, alert := range alerts {
		for _, text := range alert.Annotations {
			named := false // by the last action, a with
			for _, a := range action.FindAllString(text, -1) {
				if !asks.MatchString(a) && (named || names.MatchString(a)) {
					assert.Contains(t, a, "| reReplaceAll `[^", alert.Alert)
				}
				named = asks.MatchString(a) && strings.Contains(a, "with ") && names.MatchString(a)
			}
		}
	}
}

// The queries on the pages can be parsed.
func TestQueriesOfPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pageDir), "*.md"))
	require.NoError(t, err)
	type recording struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var recordings []recording
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		found := queries(string(text))
		assert.NotEmpty(t, found, page)
		for i, query := range found {
			recordings = append(recordings, recording{fmt.Sprintf("%s:%d",
				strings.TrimSuffix(filepath.Base(page), ".md"), i), query})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "pages", "rules": recordings}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "queries.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", file)
}

// queries are the indented lines of a page but for commands. A line that is indented further goes on with the one
// before.
func queries(page string) []string {
	var found []string
	for line := range strings.Lines(page) {
		query, ok := strings.CutPrefix(line, "    ")
		switch {
		case !ok || strings.HasPrefix(query, "mpit-exporter "):
		case strings.HasPrefix(query, " ") && found != nil:
			found[len(found)-1] += query
		default:
			found = append(found, query)
		}
	}
	return found
}

// Alerts, their tests, their pages, the tables of docs/alerts.md and the names of metrics fit together.
func TestAlertsAreWhole(t *testing.T) {
	found, err := problems(os.DirFS(".."), documented(t))
	require.NoError(t, err)
	assert.Empty(t, found)
}

// What TestAlertsAreWhole is there for is found.
func TestProblemsAreFound(t *testing.T) {
	alert := func(text string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			files[alertFile].Data = append(files[alertFile].Data, "\n  - name: more\n    rules:\n      - "+text...)
		}
	}
	replace := func(file, old, with string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			text := string(files[file].Data)
			if !strings.Contains(text, old) {
				panic(file + " has no " + old)
			}
			files[file].Data = []byte(strings.ReplaceAll(text, old, with))
		}
	}
	const stuck = "MPIRankStuck"
	cases := map[string]struct {
		change func(fstest.MapFS)
		want   string
	}{
		"an alert without tests": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			"MPINew has no alerts/tests/MPINew.yaml"},
		"an alert without a page": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			"MPINew has no docs/runbooks/MPINew.md"},
		"an alert without texts": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			"MPINew has no summary"},
		"an alert of no severity": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			`MPINew has severity ""`},
		"an alert for nobody": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			`MPINew has audience ""`},
		"an alert that is not in the table": {alert("{alert: MPINew, expr: mpit_rank_up == 0}"),
			"docs/alerts.md: MPINew"},
		"an alert twice": {alert("{alert: MPIRankStuck, expr: mpit_rank_up == 0}"),
			"MPIRankStuck stands twice"},
		"a name that no metric has": {alert("{alert: MPINew, expr: mpit_rank_down == 0}"),
			"MPINew: there is no mpit_rank_down"},
		"a name in a text": {replace(alertFile, "mpit_rank:late{", "mpit_rank:later{"),
			"MPIRanksLate: there is no mpit_rank:later"},
		"an alternative that matches none": {replace(recordingFile, "|mpit_unexpected_recvq_length|",
			"|mpit_unexpected_length|"), "no metric matches mpit_unexpected_length"},
		"a rule that nothing uses": {replace(tableFile, "`mpit_job:sent_bytes:rate5m`", ""),
			"docs/alerts.md: mpit_job:sent_bytes:rate5m"},
		"a rule that reads its own group": {replace(recordingFile, "expr: count by (cluster, jobid, world, user) (mpit_rank_up",
			"expr: count by (cluster, jobid, world, user) (mpit_job:info"),
			"mpit_job:ranks:live reads mpit_job:info, which no group above has written"},
		"a rule that reads a group below": {replace(recordingFile, "expr: mpit_rank_up == 0", "expr: mpit_rank:stuck == 0"),
			"mpit_rank:late reads mpit_rank:stuck, which no group above has written"},
		"a rule that nothing reads": {replace("dashboards/mpi-jobs.json", "mpit_job:sent_bytes:rate5m", "up"),
			"nothing reads mpit_job:sent_bytes:rate5m"},
		"tests that expect no alert": {replace(testDir+"/"+stuck+".yaml", "exp_alerts", "unused"),
			"MPIRankStuck.yaml never expects the alert"},
		"tests that expect it always": {replace(testDir+"/"+stuck+".yaml", "m, alertname: MPIRankStuck}",
			"m, alertname: MPIOther}"), "MPIRankStuck.yaml never expects that there is no alert"},
		"tests of no alert":  {func(files fstest.MapFS) { files[testDir+"/MPIOld.yaml"] = files[testDir+"/"+stuck+".yaml"] }, "alerts/tests/MPIOld.yaml: there is no such alert"},
		"a page of no alert": {func(files fstest.MapFS) { files[pageDir+"/MPIOld.md"] = files[pageDir+"/"+stuck+".md"] }, "docs/runbooks/MPIOld.md: there is no such alert"},
		"a page without a heading": {replace(pageDir+"/"+stuck+".md", "## Impact", "## Effect"),
			"MPIRankStuck.md has no ## Impact"},
		"a page with a name that is none": {replace(pageDir+"/"+stuck+".md", "mpit_rank:stuck", "mpit_rank:still"),
			"MPIRankStuck.md: there is no mpit_rank:still"},
		"a link to another page": {replace(alertFile, stuck+".md", "MPIRankGone.md"),
			"MPIRankStuck has runbook_url"},
		"a time that the table has not": {replace(alertFile, "for: 2m", "for: 4m"),
			"docs/alerts.md: MPIRankStuck"},
	}
	names := documented(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for _, dir := range []string{"alerts", testDir, "docs", pageDir, "dashboards"} {
				entries, err := os.ReadDir(filepath.Join("..", dir))
				require.NoError(t, err)
				for _, entry := range entries {
					if entry.IsDir() || filepath.Ext(entry.Name()) == ".go" {
						continue
					}
					data, err := os.ReadFile(filepath.Join("..", dir, entry.Name()))
					require.NoError(t, err)
					files[dir+"/"+entry.Name()] = &fstest.MapFile{Data: data}
				}
			}
			c.change(files)
			found, err := problems(files, names)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(found, "\n"), c.want)
		})
	}
}

// documented are the names of all families: the exporter's own, and what docs/metrics.md says that variables become.
// foo stands there for the name of a variable that nobody knows.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true, "ALERTS": true}
	for _, file := range []string{metricsFile, otlpFile} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(mpit_[a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
			names[name[1]] = true
		}
	}
	for _, f := range exporter.Families() {
		names[f.Name] = true
	}
	return names
}

var (
	nameSelector = regexp.MustCompile(`__name__(=~|!~)\\?"([^"\\]*)\\?"`)
	metricName   = regexp.MustCompile(`\bmpit_[a-zA-Z0-9_:]+`)
	tableRow     = regexp.MustCompile(`(?m)^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| (\w+) \| (\w+) \| ([^|]*) \|`)
	recordedRow  = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+:[a-z0-9_:]+)` \\|")
)

// problems are sentences on what does not fit together in a repository.
func problems(files fs.FS, documented map[string]bool) ([]string, error) {
	recorded, err := rules(files, recordingFile)
	if err != nil {
		return nil, err
	}
	alerts, err := rules(files, alertFile)
	if err != nil {
		return nil, err
	}
	table, err := fs.ReadFile(files, tableFile)
	if err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	p := &linter{files: files, names: map[string]bool{}}
	for name := range documented {
		p.names[name] = true
	}
	for _, r := range recorded {
		p.names[r.Record] = true
	}
	rows := map[string]bool{}
	for _, row := range recordedRow.FindAllStringSubmatch(string(table), -1) {
		rows[row[1]] = true
	}
	unused := maps.Clone(rows)
	for _, r := range recorded {
		p.expression(r.Record, r.Expr)
		if !rows[r.Record] {
			p.add("docs/alerts.md: %s is not in the table of recording rules", r.Record)
		}
		delete(unused, r.Record)
	}
	for name := range unused {
		p.add("docs/alerts.md: there is no recording rule %s", name)
	}
	if err := p.reading(recorded); err != nil {
		return nil, err
	}

	entries := map[string]string{}
	for _, row := range tableRow.FindAllStringSubmatch(string(table), -1) {
		if row[1] != row[2] {
			p.add("docs/alerts.md: %s has the page of %s", row[1], row[2])
		}
		entries[row[1]] = strings.TrimSpace(row[3] + " " + row[4] + " " + strings.TrimSpace(row[5]))
	}
	known := map[string]bool{}
	for _, r := range alerts {
		if known[r.Alert] {
			p.add("%s stands twice", r.Alert)
		}
		known[r.Alert] = true
		p.alert(r)
		want := strings.TrimSpace(r.Labels["severity"] + " " + r.Labels["audience"] + " " + r.For)
		if row, ok := entries[r.Alert]; !ok || row != want {
			p.add("docs/alerts.md: %s is %q there, not %q", r.Alert, row, want)
		}
		delete(entries, r.Alert)
	}
	for name := range entries {
		p.add("docs/alerts.md: there is no alert %s", name)
	}
	p.namesIn("docs/alerts.md", string(table))
	for _, dir := range []string{testDir, pageDir} {
		found, err := fs.ReadDir(files, dir)
		if err != nil {
			return nil, fmt.Errorf("looking for files of alerts: %w", err)
		}
		for _, entry := range found {
			if !known[strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))] {
				p.add("%s/%s: there is no such alert", dir, entry.Name())
			}
		}
	}
	slices.Sort(p.found)
	return p.found, nil
}

type linter struct {
	files fs.FS
	names map[string]bool // of families and of recorded series
	found []string
}

func (p *linter) add(format string, args ...any) {
	p.found = append(p.found, fmt.Sprintf(format, args...))
}

// reading looks at which rule reads which: those of groups above its own, for others it may see an interval later, and
// each is read by something.
func (p *linter) reading(recorded []rule) error {
	var readers strings.Builder
	for _, pattern := range []string{alertFile, "dashboards/*.json", pageDir + "/*.md", "docs/calls.md"} {
		found, err := fs.Glob(p.files, pattern)
		if err != nil {
			return fmt.Errorf("looking for readers of rules: %w", err)
		}
		for _, name := range found {
			text, err := fs.ReadFile(p.files, name)
			if err != nil {
				return fmt.Errorf("looking for readers of rules: %w", err)
			}
			readers.Write(text)
		}
	}
	group := map[string]int{}
	for _, r := range recorded {
		group[r.Record] = r.group
	}
	for _, r := range recorded {
		for _, name := range metricName.FindAllString(r.Expr, -1) {
			if from, is := group[name]; is && from >= r.group && name != r.Record {
				p.add("%s reads %s, which no group above has written", r.Record, name)
			}
			if name != r.Record {
				readers.WriteString(name + "\n")
			}
		}
	}
	read := metricName.FindAllString(readers.String(), -1)
	for _, r := range recorded {
		if !slices.Contains(read, r.Record) {
			p.add("nothing reads %s", r.Record)
		}
	}
	return nil
}

// alert looks at what belongs to one.
func (p *linter) alert(r rule) {
	p.expression(r.Alert, r.Expr)
	for _, name := range []string{"summary", "description"} {
		if r.Annotations[name] == "" {
			p.add("%s has no %s", r.Alert, name)
		}
		p.expression(r.Alert, r.Annotations[name])
	}
	if r.Annotations["runbook_url"] != runbooks+r.Alert+".md" {
		p.add("%s has runbook_url %q", r.Alert, r.Annotations["runbook_url"])
	}
	if severity := r.Labels["severity"]; severity != "warning" && severity != "info" {
		p.add("%s has severity %q", r.Alert, severity)
	}
	if audience := r.Labels["audience"]; audience != "operator" && audience != "owner" {
		p.add("%s has audience %q", r.Alert, audience)
	}
	p.page(r.Alert)
	p.tests(r.Alert)
}

// expression looks for names that no metric has, also in those alternatives of a pattern that are to be found.
func (p *linter) expression(of, text string) {
	for _, selector := range nameSelector.FindAllStringSubmatch(text, -1) {
		if selector[1] == "!~" || selector[2] == "%q" {
			continue
		}
		for alternative := range strings.SplitSeq(selector[2], "|") {
			pattern, err := regexp.Compile("^(?:" + alternative + ")$")
			if err != nil {
				p.add("%s: %v", of, err)
				continue
			}
			if !p.matched(pattern) {
				p.add("%s: no metric matches %s", of, alternative)
			}
		}
	}
	p.namesIn(of, nameSelector.ReplaceAllString(text, ""))
}

// matched tries a pattern with all names, and with what MPI_T's classes make of variables that nobody knows.
func (p *linter) matched(pattern *regexp.Regexp) bool {
	for name := range p.names {
		if pattern.MatchString(name) || pattern.MatchString(strings.Replace(name, "mpit_foo",
			"mpit_my_unexpected_things", 1)) {
			return true
		}
	}
	return pattern.MatchString("mpit_foo_lowwatermark_bytes") || pattern.MatchString("mpit_foo_highwatermark_ratio")
}

// namesIn looks at all names in a text. Those with foo in them are examples; beginnings of names are none.
func (p *linter) namesIn(of, text string) {
	for _, name := range metricName.FindAllString(text, -1) {
		family := name
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			family = strings.TrimSuffix(family, ending)
		}
		if !p.names[name] && !p.names[family] && !strings.Contains(name, "_foo_") && !strings.HasSuffix(name, ":") &&
			!strings.HasSuffix(name, "_") {
			p.add("%s: there is no %s", of, name)
		}
	}
}

// read returns a file that an alert must have.
func (p *linter) read(alert, name string) (text []byte, ok bool) {
	text, err := fs.ReadFile(p.files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.add("%s has no %s", alert, name)
	case err != nil:
		p.add("%v", err)
	}
	return text, err == nil
}

func (p *linter) page(alert string) {
	name := pageDir + "/" + alert + ".md"
	text, ok := p.read(alert, name)
	if !ok {
		return
	}
	if !strings.HasPrefix(string(text), "# "+alert+"\n") {
		p.add("%s does not begin with # %s", name, alert)
	}
	rest := string(text)
	for _, heading := range headings {
		_, after, ok := strings.Cut(rest, "\n## "+heading+"\n")
		if !ok {
			p.add("%s has no ## %s, or not in its place", name, heading)
			continue
		}
		rest = after
	}
	p.namesIn(name, string(text))
}

// tests looks that an alert's own fire it, and that there are cases in which it must not fire.
func (p *linter) tests(alert string) {
	name := testDir + "/" + alert + ".yaml"
	text, ok := p.read(alert, name)
	if !ok {
		return
	}
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert    string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		p.add("%s: %v", name, err)
		return
	}
	fires, silent := false, false
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if c.Alert == alert {
				fires = fires || len(c.Expected) > 0
				silent = silent || len(c.Expected) == 0
			}
		}
	}
	if !fires {
		p.add("%s never expects the alert", name)
	}
	if !silent {
		p.add("%s never expects that there is no alert", name)
	}
}

// What a rule chooses by the end of a name is what variables of that class are called.
func TestRulesFindWhatTheyAreFor(t *testing.T) {
	mapper, err := variables.New(variables.Config{})
	require.NoError(t, err)
	share, _, ok := mapper.Metric(mapping.Library{}, mpit.Variable{
		Name: "buffers", Class: mpit.ClassPercentage, Datatype: mpit.DatatypeDouble,
	})
	require.True(t, ok)
	mapper, err = variables.New(variables.Config{Rules: []maprules.Rule{{Unit: "%"}}})
	require.NoError(t, err)
	highest, _, ok := mapper.Metric(mapping.Library{}, mpit.Variable{
		Name: "buffers", Class: mpit.ClassHighWatermark, Datatype: mpit.DatatypeDouble,
	})
	require.True(t, ok)
	for name, record := range map[string]string{
		share.Name:   "mpit_job:resource_ratio:max",
		highest.Name: "mpit_job:resource_highwatermark_ratio:max",
	} {
		text, err := fs.ReadFile(os.DirFS(".."), recordingFile)
		require.NoError(t, err)
		_, expression, found := strings.Cut(string(text), "- record: "+record+"\n")
		require.True(t, found)
		m := regexp.MustCompile(`__name__=~"([^"]*)"`).FindStringSubmatch(expression)
		require.NotNil(t, m)
		assert.Regexp(t, "^(?:"+m[1]+")$", name, "%s does not find what a variable becomes by default", record)
	}
}
