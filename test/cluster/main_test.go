package cluster

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
