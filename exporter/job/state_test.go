package job

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// The files that say the same as the table, in other languages.
const (
	alertRules     = "alerts/alerts.yaml"
	recordingRules = "alerts/recording.yaml"
	jobsBoard      = "dashboards/mpi-jobs.json"
	jobBoard       = "dashboards/one-job.json"
	pageStyle      = "cmd/mpit-exporter/internal/page/style.css"
	pageScripts    = "cmd/mpit-exporter/internal/page"
)

// agreement is a number or word of the table that a file repeats: all that the pattern's group finds must be it.
type agreement struct {
	file, what, pattern, want string
}

func agreements() []agreement {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	list := []agreement{
		{alertRules, "Efficient", `parallel_efficiency:ratio5m < ([\d.]+)`, number(Efficient)},
		{recordingRules, "Hung", `mpit_call_running_seconds > (\d+)`, number(Hung.Seconds())},
		{recordingRules, "few", `mpit_job:ranks:waiting >= ([\d.]+) \*\s+mpit_job:ranks:live`, number(1 - few)},
	}
	for _, s := range States() {
		if s.Alert != "" {
			list = append(list, agreement{alertRules, "alert of " + s.Word,
				`- alert: (` + s.Alert + `)\n(?:.*\n)*?\s+runbook_url: \S*/` + s.Alert + `\.md\n`, s.Alert})
		}
		list = append(list, agreement{jobsBoard, "the word " + s.Word, `"text": "(` + s.Word + `)"`, s.Word},
			agreement{jobBoard, "the word " + s.Word, `"options": "(` + s.Word + `)"`, s.Word})
		if s.Colour != "" {
			list = append(list, agreement{pageStyle, "colour of " + s.Word,
				`\.is-` + strings.ReplaceAll(s.Word, " ", "-") + `\b[^{]*\{ border-color: var\(--([a-z]+)\)`, s.Colour})
		}
	}
	return list
}

// verdictState finds the states that an expression asks for.
var verdictState = regexp.MustCompile(api.VerdictName + `\{[^}]*state(?:=~|!=|=)\\?"([^"\\]+)`)

// wordInScript finds what may be a state's word in JavaScript.
var wordInScript = regexp.MustCompile("[\"'`]([a-z ]+)[\"'`]")

// differences are what the files say otherwise than the table, or not at all.
func differences(files fs.FS) (found []string) {
	for _, a := range agreements() {
		text, err := fs.ReadFile(files, a.file)
		if err != nil {
			return append(found, err.Error())
		}
		all := regexp.MustCompile(a.pattern).FindAllSubmatch(text, -1)
		if len(all) == 0 {
			found = append(found, fmt.Sprintf("%s doesn't have %s", a.file, a.what))
		}
		for _, m := range all {
			if string(m[1]) != a.want {
				found = append(found, fmt.Sprintf("%s: %s is %s, and %s in the table", a.file, a.what, m[1], a.want))
			}
		}
	}
	for _, file := range []string{alertRules, recordingRules} {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return append(found, err.Error())
		}
		for _, m := range verdictState.FindAllSubmatch(text, -1) {
			for word := range strings.SplitSeq(string(m[1]), "|") {
				if needs(word) < 0 {
					found = append(found, fmt.Sprintf("%s: there is no state %s", file, word))
				}
			}
		}
	}
	scripts, err := fs.Glob(files, pageScripts+"/*.js")
	if err != nil || len(scripts) == 0 {
		return append(found, "no scripts: ", fmt.Sprint(err))
	}
	for _, file := range scripts {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return append(found, err.Error())
		}
		for _, m := range wordInScript.FindAllSubmatch(text, -1) {
			if s := StateOf(string(m[1])); s.NeedsAttention() {
				found = append(found, fmt.Sprintf("%s knows the state %s: what is to be done about it is said in Go", file, s.Word))
			}
		}
	}
	text, err := fs.ReadFile(files, pageStyle)
	if err != nil {
		return append(found, err.Error())
	}
	for _, m := range regexp.MustCompile(`\.is-([a-z-]+)`).FindAllSubmatch(text, -1) {
		if !slices.ContainsFunc(States(), func(s State) bool {
			return strings.ReplaceAll(s.Word, " ",
				"-") == string(m[1])
		}) {
			found = append(found, fmt.Sprintf("%s: there is no state %s", pageStyle, m[1]))
		}
	}
	return found
}

// repository has the files as they are.
func repository(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := filepath.Glob("../../" + pageScripts + "/*.js")
	require.NoError(t, err)
	for _, a := range agreements() {
		names = append(names, "../../"+a.file)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		files[strings.TrimPrefix(name, "../../")] = &fstest.MapFile{Data: text}
	}
	return files
}

// Alerts, recording rules, boards and the page have the thresholds, words and colours of the table.
func TestOneTable(t *testing.T) {
	assert.Empty(t, differences(repository(t)))
	for _, s := range States() {
		if s.Alert != "" {
			assert.FileExists(t, "../../docs/runbooks/"+s.Alert+".md")
		}
	}
}

// A file that says something else is found: each of them, and each place.
func TestDifferencesAreFound(t *testing.T) {
	for name, change := range map[string]struct{ file, from, to string }{
		"threshold of an alert": {alertRules, "mpit_job:parallel_efficiency:ratio5m < 0.7",
			"mpit_job:parallel_efficiency:ratio5m < 0.6"},
		"state of an alert":   {alertRules, `{state="late rank"}`, `{state="late"}`},
		"name of an alert":    {alertRules, "- alert: MPIJobHung", "- alert: MPIJobHangs"},
		"runbook of an alert": {alertRules, "/MPIRankGone.md", "/MPIJobHung.md"},
		"threshold of a recording rule": {recordingRules, "mpit_call_running_seconds > 300",
			"mpit_call_running_seconds > 60"},
		"a state that no job has":        {recordingRules, "deadlock|wrong program", "deadlocked|wrong program"},
		"part in a recording rule":       {recordingRules, ">= 0.9 *", ">= 0.8 *"},
		"word on a board":                {jobsBoard, `"text": "waiting"`, `"text": "waits"`},
		"word of another board":          {jobBoard, `"options": "no core"`, `"options": "cores"`},
		"colour on the page":             {pageStyle, "border-color: var(--useful)", "border-color: var(--file)"},
		"a state that only the page has": {pageStyle, ".is-deadlock", ".is-stuck"},
		"word in the page's script":      {pageScripts + "/bar.js", `"not measured"`, `"deadlock"`},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(repository(t))
			text := string(files[change.file].Data)
			require.Contains(t, text, change.from)
			files[change.file] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, change.from, change.to))}
			assert.NotEmpty(t, differences(files))
		})
	}
}
