package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Whatever way a rank ends: the job's status and output are what they are without the agent, and the page says how it ended.
func TestEnds(t *testing.T) {
	ends := []struct {
		how    string
		reason string
		mpi    string // the only one; "": both
	}{
		{"finalize", "finalize", ""},
		{"pthread_exit", "finalize", ""},
		{"exit", "exit", ""},
		{"handler", "exit", "openmpi"}, // MPICH's own exit handlers allocate, and hang without the agent as well
		{"abort", "abort", ""},
		{"_exit", "lost", ""},
		{"kill", "lost", ""},
		{"segv", "lost", ""},
	}
	for _, mpi := range harness.Both(t) {
		exporter := suite.Exporter(t)
		for _, end := range ends {
			if end.mpi != "" && end.mpi != mpi.Name {
				continue
			}
			t.Run(mpi.Name+"/"+end.how, func(t *testing.T) {
				job := harness.Job{MPI: mpi, Program: "ends.c", Args: []string{end.how, harness.HoldDir}, Socket: exporter.Socket}
				run := suite.Run(t, job)
				run.AtHold(t, "up")
				exporter.Await(t, "the ranks", up(run))
				run.Release(t, "up")
				observed := run.Wait(t)
				// Rank 0 alone ends by itself; launchers end the other one as they like.
				exporter.Await(t, "the end", all(ended(run, end.reason, 0), healthy))

				job.Bare = true
				run = suite.Run(t, job)
				run.AtHold(t, "up")
				run.Release(t, "up")
				bare := run.Wait(t)
				assert.Equal(t, bare.Status, observed.Status)
				assert.Equal(t, withoutNumbers(bare.Stdout), withoutNumbers(observed.Stdout))
			})
		}
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// withoutNumbers makes launchers' reports comparable, which name process ids.
func withoutNumbers(s string) string {
	return strings.TrimSpace(digits.ReplaceAllString(s, "#"))
}
