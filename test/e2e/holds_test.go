package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// No rank leaves a collective that is said to hold all before the last one has begun it; some leave others.
func TestCollectivesThatHold(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "holds.c", Ranks: 4})
			early := map[string]int{}
			for line := range strings.Lines(run.Finish(t).Stdout) {
				at := strings.LastIndex(line, " ")
				var ranks int
				if _, err := fmt.Sscan(line[at+1:], &ranks); err == nil {
					early[line[:at]] = ranks
				}
			}
			for _, function := range api.Holding() {
				assert.Contains(t, early, function)
				assert.Zero(t, early[function], function)
			}
		})
	}
}
