package conformance

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// suite is set before the first test; tests only read it.
var suite *harness.Suite

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := harness.New(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	suite = s
	return m.Run()
}
