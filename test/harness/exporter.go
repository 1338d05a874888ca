package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Exporter is a running "mpit-exporter" with a port and a socket of its own.
type Exporter struct {
	*Process
	Socket  string
	Address string // host:port; another one after Restart
	suite   *Suite
	config  ExporterConfig
}

// ExporterConfig is how an exporter is started.
type ExporterConfig struct {
	Binary string   // none: Suite.Binary
	Socket string   // none: one in a directory of its own
	Env    []string // beside this process's
	Flags  []string
	Login  string // user:password, where the port wants them
}

// Exporter starts an exporter and waits until it is ready.
func (s *Suite) Exporter(tb testing.TB, flags ...string) *Exporter {
	tb.Helper()
	return s.ExporterWith(tb, ExporterConfig{Flags: flags})
}

// ExporterIn is Exporter with env added to the environment.
func (s *Suite) ExporterIn(tb testing.TB, env []string, flags ...string) *Exporter {
	tb.Helper()
	return s.ExporterWith(tb, ExporterConfig{Env: env, Flags: flags})
}

// ExporterWith starts an exporter and waits until it is ready.
func (s *Suite) ExporterWith(tb testing.TB, c ExporterConfig) *Exporter {
	tb.Helper()
	if c.Binary == "" {
		c.Binary = s.Binary()
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(s.Dir(tb), "agent.sock")
	}
	e := &Exporter{Socket: c.Socket, suite: s, config: c}
	e.start(tb)
	return e
}

func (e *Exporter) start(tb testing.TB) {
	tb.Helper()
	address := filepath.Join(e.suite.Dir(tb), "address")
	command := []string{
		e.config.Binary,
		"--agent.socket=" + e.Socket,
		"--web.listen-address=127.0.0.1:0",
		"--web.address-file=" + address,
	}
	if !slices.ContainsFunc(e.config.Flags, func(f string) bool { return strings.HasPrefix(f, "--retention") }) {
		command = append(command, "--retention=1h") // ends are there whenever a test looks for them
	}
	e.Process = e.suite.Start(tb, append(command, e.config.Flags...), e.config.Env)
	Await(tb, "a ready exporter", func(ctx context.Context) error {
		if e.Ended() {
			tb.Fatalf("the exporter has ended:\n%s", e.Wait(tb).Stderr)
		}
		line, err := os.ReadFile(address)
		if err != nil {
			return err
		}
		e.Address = strings.TrimSpace(string(line))
		_, _, err = get(ctx, e.URL("/-/ready"), "")
		return err
	})
}

// Kill ends the exporter with SIGKILL: it can clean up nothing.
func (e *Exporter) Kill(tb testing.TB) {
	tb.Helper()
	e.Signal(tb, syscall.SIGKILL)
	e.Wait(tb)
}

// Restart starts the exporter again, on the same socket, after its end.
func (e *Exporter) Restart(tb testing.TB) {
	tb.Helper()
	e.start(tb)
}

// Log is what the exporter has logged so far.
func (e *Exporter) Log() string { return e.stderr.String() }

// URL returns the address of a path on the exporter.
func (e *Exporter) URL(path string) string {
	if e.config.Login != "" {
		return "http://" + e.config.Login + "@" + e.Address + path
	}
	return "http://" + e.Address + path
}

// Scrape reads /metrics once.
func (e *Exporter) Scrape(tb testing.TB) *Scrape {
	tb.Helper()
	ctx, cancel := Patient(tb)
	defer cancel()
	scrape, err := e.ScrapeContext(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return scrape
}

// Await scrapes until check returns nil and returns that scrape.
func (e *Exporter) Await(tb testing.TB, what string, check func(*Scrape) error) *Scrape {
	tb.Helper()
	var last *Scrape
	defer func() {
		if tb.Failed() && last != nil {
			tb.Logf("last scrape:\n%s\nexporter's log:\n%s", last.excerpt(), e.Log())
		}
	}()
	Await(tb, what, func(ctx context.Context) error {
		scrape, err := e.ScrapeContext(ctx)
		if err != nil {
			return err
		}
		last = scrape
		return check(scrape)
	})
	return last
}

// ScrapeContext reads /metrics once, from whatever goroutine.
func (e *Exporter) ScrapeContext(ctx context.Context) (*Scrape, error) {
	body, _, err := get(ctx, e.URL("/metrics"), "text/plain;version=0.0.4")
	if err != nil {
		return nil, err
	}
	return ParseText(body)
}

// Get reads a path with an Accept header and returns the body and its content type.
func (e *Exporter) Get(tb testing.TB, path, accept string) (body []byte, contentType string) {
	tb.Helper()
	ctx, cancel := Patient(tb)
	defer cancel()
	body, contentType, err := get(ctx, e.URL(path), accept)
	if err != nil {
		tb.Fatal(err)
	}
	return body, contentType
}

// GetJSON reads a path of the exporter's API into v.
func (e *Exporter) GetJSON(tb testing.TB, path string, v any) {
	tb.Helper()
	body, _ := e.Get(tb, path, "application/json")
	if err := json.Unmarshal(body, v); err != nil {
		tb.Fatalf("reading the answer of %s: %v\n%s", path, err, body)
	}
}

func get(ctx context.Context, url, accept string) (body []byte, contentType string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", fmt.Errorf("asking %s: %w", url, err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", fmt.Errorf("asking: %w", err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return nil, "", fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return body, response.Header.Get("Content-Type"), nil
}

// FreeAddress returns an address on this machine on which nobody listens. Its port is not one that the kernel gives to
// whoever listens at any, as MPI libraries do.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 16384+rand.IntN(16384))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	tb.Fatal("looking for a free port: a hundred are taken")
	return ""
}
