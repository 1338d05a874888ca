// Package node measures what a node with many ranks costs the exporter: the real program behind real sockets, with
// simulated ranks in a process of their own, beside client_golang's ordinary way with the same series.
package node

import (
	"fmt"
	"os"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// suite is set before the first test; tests only read it.
var suite *harness.Suite

// part says in the environment which part of a benchmark this process plays; none: it is the one that measures.
const part = "MPIT_BENCH_PART"

func TestMain(m *testing.M) {
	parts := map[string]func() error{"ranks": playRanks, "ordinary": playOrdinary}
	if play := parts[os.Getenv(part)]; play != nil {
		if err := play(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Main(m, func(s *harness.Suite) { suite = s }))
}
