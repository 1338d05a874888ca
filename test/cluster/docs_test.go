package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// block is the YAML of docs/capacity.md whose first line is a comment, without that line.
func block(t *testing.T, comment string) string {
	t.Helper()
	return blockOf(t, "capacity.md", comment)
}

func blockOf(t *testing.T, document, comment string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(suite.Root(), "docs", document))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "```yaml\n# "+comment+"\n")
	require.True(t, found, "%s has no %q", document, comment)
	yaml, _, _ := strings.Cut(after, "```")
	return yaml
}

// agentFlag is what docs/engines.md has a server be an agent with: one from 3.0 on, another one before.
func agentFlag(tb testing.TB, server harness.PrometheusServer) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "engines.md"))
	require.NoError(tb, err)
	since := "# 3.0 or later"
	if server.Major < 3 {
		since = "# before"
	}
	for line := range strings.Lines(string(text)) {
		if flag, ok := strings.CutPrefix(line, "prometheus "); ok && strings.Contains(line, since) {
			return strings.Fields(flag)[0]
		}
	}
	tb.Fatalf("docs/engines.md has no agent %s", since)
	return ""
}

// ofScrape is a block as part of a job of scrape_configs.
func ofScrape(block string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n    ") + "\n"
}
