// Package e2e runs the real exporter and real MPI jobs, and compares what /metrics shows with what the programs are
// known to have done.
package e2e

import (
	"os"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// suite is set before the first test; tests only read it.
var suite *harness.Suite

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, func(s *harness.Suite) { suite = s }))
}
