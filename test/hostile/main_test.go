// Package hostile attacks the real program, in a control group with the memory that the unit allows it: ranks of
// several users, in a process of their own, and clients that mean no good.
package hostile

import (
	"fmt"
	"os"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// suite is set before the first test; tests only read it.
var suite *harness.Suite

// part says in the environment that this process plays the ranks.
const part = "MPIT_HOSTILE_PART"

func TestMain(m *testing.M) {
	if os.Getenv(part) != "" {
		if err := playRanks(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Main(m, func(s *harness.Suite) { suite = s }))
}
