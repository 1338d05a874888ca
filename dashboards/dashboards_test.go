package dashboards

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/uptodate"
)

// The files beside this package are what its code writes, and there are no others.
func TestFilesAreUpToDate(t *testing.T) {
	written := files()
	there, err := filepath.Glob("*.json")
	require.NoError(t, err)
	assert.Len(t, there, len(written), "files that no code writes, or code whose file is not there")
	for name, d := range written {
		want, err := encode(d)
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		uptodate.Check(t, name, string(got), string(want), "go generate ./dashboards")
	}
}
