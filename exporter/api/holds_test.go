package api

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The row of docs/calls.md names the same functions.
func TestHoldingIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/calls.md")
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| all wait for all \|(.*)\|$`).FindSubmatch(page)
	require.NotNil(t, row)
	var documented []string
	for name := range strings.SplitSeq(string(row[1]), ",") {
		documented = append(documented, "MPI_"+strings.TrimSpace(name))
	}
	assert.Equal(t, Holding(), documented)
	assert.True(t, Holds("MPI_Allreduce_c"))
	assert.False(t, Holds("MPI_Bcast"))
}
