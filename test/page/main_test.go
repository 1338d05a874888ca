// Package page looks at the exporter's live page with a browser: Debian's chromium, without a window.
package page

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// suite and browsers are set before the first test; tests only read them.
var (
	suite    *harness.Suite
	browsers func() (*browser, error) // starts one when it is first asked for, which all tests share
)

var update = flag.Bool("update", false, "make the pictures in docs/img anew")

func TestMain(m *testing.M) {
	ctx, cancel := context.WithCancel(context.Background())
	profile, err := os.MkdirTemp("", "mpit-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	browsers = sync.OnceValues(func() (*browser, error) { return newBrowser(ctx, profile) })
	status := harness.Main(m, func(s *harness.Suite) { suite = s })
	cancel()
	if b, err := browsers(); err == nil {
		b.wait()
	}
	os.RemoveAll(profile)
	os.Exit(status)
}
