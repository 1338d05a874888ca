package harness

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Prometheus is a running server with a port and a storage of its own.
type Prometheus struct {
	*Process
	Data    string // the directory of its storage
	address string
	suite   *Suite
	command []string
}

// PrometheusConfig is what a Prometheus is to do.
type PrometheusConfig struct {
	Server    PrometheusServer // none: the installed one, with classic histograms
	Rules     []string         // files
	Exporters []*Exporter      // scraped as job "mpit"
	Discovery string           // pattern of files with more targets of that job; none if empty
	Interval  time.Duration    // of scrapes and evaluations, instead of a second
	Data      string           // directory of the storage, instead of one of its own
	Agent     string           // the flag with which it only scrapes and sends; empty: it is a server
	Flags     []string         // of its command line, beside the usual ones
	Labels    string           // YAML, of its external labels
	Scrape    string           // YAML, of the scrape's configuration
	More      string           // YAML, at the end of the configuration
}

// PrometheusServer is a program, and how it stores histograms.
type PrometheusServer struct {
	Name   string
	Major  int  // of its version
	Native bool // as native ones; otherwise as series that end in _sum, _count and _bucket
	// LastNative says that last_over_time knows native histograms.
	LastNative bool

	binary string
	flags  []string
	scrape string // of the scrape's configuration
}

// PrometheusServers are those that all rules and dashboards are for: the installed one with each kind of histograms,
// and with native ones those that $MPIT_TEST_PROMETHEUS names, separated by colons.
func PrometheusServers(tb testing.TB) []PrometheusServer {
	tb.Helper()
	installed := Tool(tb, "prometheus")
	major, _ := version(tb, installed)
	list := []PrometheusServer{{Name: "classic", Major: major, binary: installed}}
	for _, binary := range append([]string{installed}, filepath.SplitList(os.Getenv("MPIT_TEST_PROMETHEUS"))...) {
		major, minor := version(tb, binary)
		server := PrometheusServer{Name: fmt.Sprintf("native in %d.%d", major, minor), Major: major, Native: true,
			binary: binary}
		server.LastNative = major > 2 || minor >= 44
		if major > 3 || major == 3 && minor >= 8 {
			server.scrape = "    scrape_native_histograms: true\n"
		} else {
			server.flags = []string{"--enable-feature=native-histograms"}
		}
		list = append(list, server)
	}
	return list
}

// version asks a Prometheus for it. One that go build has made of the module doesn't know, but Go does: 3.9 is v0.309.
func version(tb testing.TB, binary string) (major, minor int) {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), binary, "--version").CombinedOutput()
	if err != nil {
		tb.Fatalf("asking %s for its version: %v\n%s", binary, err, out)
	}
	if _, err := fmt.Sscanf(string(out), "prometheus, version %d.%d", &major, &minor); err == nil {
		return major, minor
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		tb.Fatalf("reading what %s was built of: %v", binary, err)
	}
	if _, err := fmt.Sscanf(info.Main.Version, "v0.%d", &minor); err != nil {
		tb.Fatalf("%s doesn't know its version, nor is it built as CONTRIBUTING.md says", binary)
	}
	return minor / 100, minor % 100
}

// Prometheus starts one that scrapes an exporter as job "mpit", and waits until it is ready.
func (s *Suite) Prometheus(tb testing.TB, exporter *Exporter) *Prometheus {
	tb.Helper()
	return s.PrometheusWith(tb, PrometheusConfig{Exporters: []*Exporter{exporter}})
}

// PrometheusAt is a server that is asked as a Prometheus is, at an address with a path. It is not ours to restart.
func PrometheusAt(address string) *Prometheus { return &Prometheus{address: address} }

// URL is where it answers.
func (p *Prometheus) URL() string { return "http://" + p.address }

// PrometheusWith starts a Prometheus, and waits until it is ready.
func (s *Suite) PrometheusWith(tb testing.TB, c PrometheusConfig) *Prometheus {
	tb.Helper()
	if c.Server.binary == "" {
		c.Server.binary = Tool(tb, "prometheus")
	}
	dir := s.Dir(tb)
	if c.Data == "" {
		c.Data = filepath.Join(dir, "data")
	}
	config := filepath.Join(dir, "prometheus.yml")
	var addresses []string
	for _, exporter := range c.Exporters {
		addresses = append(addresses, exporter.Address)
	}
	text := fmt.Sprintf(`global: {scrape_interval: %[3]dms, scrape_timeout: %[3]dms, evaluation_interval: %[3]dms, `+
		`external_labels: {%[4]s}}
scrape_configs:
  - job_name: mpit
%[1]s    static_configs: [{targets: [%[2]s]}]
`, c.Server.scrape, quoted(addresses), cmp.Or(c.Interval, time.Second).Milliseconds(), c.Labels)
	if c.Discovery != "" {
		text += fmt.Sprintf("    file_sd_configs: [{files: [%s]}]\n", quoted([]string{c.Discovery}))
	}
	text += c.Scrape
	if len(c.Rules) > 0 { // an agent takes no rules, not even none
		text += fmt.Sprintf("rule_files: [%s]\n", quoted(c.Rules))
	}
	text += c.More
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		tb.Fatalf("writing Prometheus' configuration: %v", err)
	}
	p := &Prometheus{address: FreeAddress(tb), Data: c.Data, suite: s}
	storage := []string{"--storage.tsdb.path=" + p.Data}
	if c.Agent != "" {
		storage = []string{c.Agent, "--storage.agent.path=" + p.Data}
	}
	p.command = slices.Concat([]string{
		c.Server.binary,
		"--config.file=" + config,
		"--web.listen-address=" + p.address,
		"--log.level=warn",
	}, storage, c.Server.flags, c.Flags)
	p.Restart(tb)
	return p
}

// Restart starts it again, on the same storage and address, after its end.
func (p *Prometheus) Restart(tb testing.TB) {
	tb.Helper()
	p.Process = p.suite.Start(tb, p.command, nil)
	Await(tb, "a ready Prometheus", func(ctx context.Context) error {
		if p.Ended() {
			tb.Fatalf("Prometheus has ended: %+v", p.Wait(tb))
		}
		_, _, err := get(ctx, "http://"+p.address+"/-/ready", "")
		return err
	})
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

// RuleGroup is a group of rules with how long, in seconds, its last evaluation took.
type RuleGroup struct {
	Name           string
	Interval       float64
	EvaluationTime float64
	LastEvaluation time.Time
	Rules          []struct {
		Name, Health, LastError string
		EvaluationTime          float64
		LastEvaluation          time.Time
	}
}

// Rules are the groups of rules that it evaluates.
func (p *Prometheus) Rules(ctx context.Context) ([]RuleGroup, error) {
	body, _, err := get(ctx, "http://"+p.address+"/api/v1/rules", "")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Groups []RuleGroup }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading Prometheus' rules: %w", err)
	}
	return answer.Data.Groups, nil
}

// Sample is one element of an instant vector, or one of a series' values.
type Sample struct {
	Labels Labels
	Value  float64
	At     float64 // seconds since 1970; 0: not known
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
