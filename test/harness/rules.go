package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// RulesInSeconds are copies of the rules of alerts/ whose times are short enough for a test: a second for each minute
// and a minute for each hour, wherever a time stands: for, keep_firing_for, interval, offset and ranges, and the 300
// seconds of a long call; and 100 messages a second are many, for a slow machine has no more.
// Nothing else is changed.
func (s *Suite) RulesInSeconds(tb testing.TB) []string {
	tb.Helper()
	dir := s.Dir(tb)
	var files []string
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(s.Root(), "alerts", name))
		if err != nil {
			tb.Fatalf("reading the rules: %v", err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(inSeconds(string(text))), 0o600); err != nil {
			tb.Fatalf("writing the rules: %v", err)
		}
		files = append(files, file)
	}
	return files
}

var duration = regexp.MustCompile(`(for: |interval: |offset\s+|\[)([0-9]+)([mh])\b`)

func inSeconds(rules string) string {
	rules = strings.Replace(rules, "mpit_call_running_seconds > 300", "mpit_call_running_seconds > 5", 1)
	rules = strings.Replace(rules, "mpit_job:ranks:profiled > 10000", "mpit_job:ranks:profiled > 100", 1)
	return duration.ReplaceAllStringFunc(rules, func(found string) string {
		unit := map[byte]string{'m': "s", 'h': "m"}[found[len(found)-1]]
		return found[:len(found)-1] + unit
	})
}
