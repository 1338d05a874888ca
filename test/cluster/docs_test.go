package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// ofScrape is a block as part of a job of scrape_configs.
func ofScrape(block string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n    ") + "\n"
}
