package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Prometheus is a running server with a port and a storage of its own.
type Prometheus struct {
	*Process
	address string
}

// Prometheus starts the installed Prometheus, which scrapes an exporter twice a second as job "mpit", and waits until
// it is ready.
func (s *Suite) Prometheus(tb testing.TB, exporter *Exporter) *Prometheus {
	tb.Helper()
	return s.PrometheusWith(tb, nil, exporter)
}

// PrometheusWith does the same with several exporters and with files of rules, which are evaluated every second.
func (s *Suite) PrometheusWith(tb testing.TB, rules []string, exporters ...*Exporter) *Prometheus {
	tb.Helper()
	binary := Tool(tb, "prometheus")
	dir := s.Dir(tb)
	config := filepath.Join(dir, "prometheus.yml")
	var addresses []string
	for _, exporter := range exporters {
		addresses = append(addresses, exporter.Address)
	}
	text := fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: mpit
    static_configs: [{targets: [%s]}]
`, quoted(rules), quoted(addresses))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		tb.Fatalf("writing Prometheus' configuration: %v", err)
	}
	p := &Prometheus{address: FreeAddress(tb)}
	p.Process = s.Start(tb, []string{
		binary,
		"--config.file=" + config,
		"--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + p.address,
		"--log.level=warn",
	}, nil)
	Await(tb, "a ready Prometheus", func(ctx context.Context) error {
		if p.Ended() {
			tb.Fatalf("Prometheus has ended: %+v", p.Wait(tb))
		}
		_, _, err := get(ctx, "http://"+p.address+"/-/ready", "")
		return err
	})
	return p
}

// quoted makes the elements of a YAML list.
func quoted(texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = strconv.Quote(text)
	}
	return strings.Join(list, ", ")
}

// Alert is an alert that fires or is about to.
type Alert struct {
	Labels      Labels
	Annotations map[string]string
	State       string // firing or pending
}

// Alerts are those of the present moment.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	body, _, err := get(ctx, "http://"+p.address+"/api/v1/alerts", "")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Alerts []Alert }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading Prometheus' alerts: %w", err)
	}
	return answer.Data.Alerts, nil
}

// Sample is one element of an instant vector.
type Sample struct {
	Labels Labels
	Value  float64
}

// Query asks for an instant vector.
func (p *Prometheus) Query(ctx context.Context, expression string) ([]Sample, error) {
	body, _, err := get(ctx, "http://"+p.address+"/api/v1/query?query="+url.QueryEscape(expression), "")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric Labels
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading Prometheus' answer to %s: %w", expression, err)
	}
	var samples []Sample
	for _, result := range answer.Data.Result {
		text, _ := result.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("reading Prometheus' answer to %s: %w", expression, err)
		}
		samples = append(samples, Sample{Labels: result.Metric, Value: value})
	}
	return samples, nil
}

// Await asks until an expression's answer passes check.
func (p *Prometheus) Await(tb testing.TB, expression string, check func([]Sample) error) {
	tb.Helper()
	Await(tb, "Prometheus' answer to "+expression, func(ctx context.Context) error {
		samples, err := p.Query(ctx, expression)
		if err != nil {
			return err
		}
		return check(samples)
	})
}
