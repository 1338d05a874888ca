package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Judged is a Prometheus with a judge, which it scrapes. login is how the judge asks exporters, "user:password@"; empty:
// as anyone.
func (s *Suite) Judged(tb testing.TB, c PrometheusConfig, login string) *Prometheus {
	tb.Helper()
	dir := s.Dir(tb)
	c.Discovery = filepath.Join(dir, "*.json")
	prometheus, address := s.PrometheusWith(tb, c), filepath.Join(dir, "address")
	s.Start(tb, []string{s.Binary(), "judge", "--prometheus=" + prometheus.URL(), "--interval=2s",
		"--exporter=http://" + login + "{instance}", `--match=job="mpit"`, "--web.listen-address=127.0.0.1:0",
		"--web.address-file=" + address}, nil)
	Await(tb, "the judge's address", func(context.Context) error {
		text, err := os.ReadFile(address)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "judge.json"),
			fmt.Appendf(nil, `[{"targets": [%q]}]`, strings.TrimSpace(string(text))), 0o600)
	})
	return prometheus
}
