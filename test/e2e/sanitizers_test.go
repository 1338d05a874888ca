package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The sanitizers have nothing to say of the agent in a storm of two threads, on either library, while it is read a thousand times a second; that of
// threads has nothing to say of the call profile beside it. (Its wrappers take a minute to compile with the other one: what is behind
// them is tested with it by mpit/agent's own tests.)
func TestStormUnderSanitizers(t *testing.T) {
	for _, sanitizer := range harness.Sanitizers(suite.Root()) {
		calls := sanitizer.Name == "threads"
		agent := suite.SanitizedAgent(t, sanitizer, calls)
		for _, mpi := range harness.Both(t) {
			t.Run(sanitizer.Name+"/"+mpi.Name, func(t *testing.T) {
				job := stormJob(mpi, 0.1, 2, "multiple")
				job.Flags, job.Bare = sanitizer.Flags, true
				job.Env = append(job.Env, agent...)
				job.Env = append(job.Env, "PMIX_MCA_gds=hash") // its other store wants addresses that TSan has taken
				bare := suite.Run(t, job).Wait(t)
				require.Zero(t, bare.Status, "%+v", bare)

				sampler := startSampler(t, time.Millisecond)
				job = stormJob(mpi, 1, 2, "multiple")
				job.Flags, job.Socket = sanitizer.Flags, sampler.socket
				if calls {
					job.Exec = []string{"--calls"}
				}
				job.Env = append(job.Env, agent...)
				job.Env = append(job.Env, "PMIX_MCA_gds=hash")
				observed := suite.Run(t, job).Wait(t)
				assert.Equal(t, bare, observed)
				sampler.stop(t, 2)
			})
		}
	}
}
