// Command scrape reads a page again and again, as a Prometheus server would: for make bench and make soak.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
)

func main() {
	app := kingpin.New("scrape", "Reads a page at an interval until it is told to end, then says how often it did.")
	url := app.Flag("url", "Page to read.").Required().String()
	interval := app.Flag("interval", "Time between two readings.").Default("1s").Duration()
	kingpin.MustParse(app.Parse(os.Args[1:]))
	if *interval <= 0 {
		app.Fatalf("--interval %s: must be more than nothing", *interval)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	n, err := scrape(ctx, *url, *interval)
	fmt.Printf("%d scrapes\n", n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scrape:", err)
		stop()
		os.Exit(1)
	}
}

// scrape reads url until ctx ends, and returns how often it did. It gives up at the first answer that is not a page.
func scrape(ctx context.Context, url string, interval time.Duration) (n int, err error) {
	client := &http.Client{Timeout: 10 * time.Second}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := read(ctx, client, url)
		switch {
		case ctx.Err() != nil:
			return n, nil
		case err != nil:
			return n, err
		}
		n++
		select {
		case <-ctx.Done():
			return n, nil
		case <-ticker.C:
		}
	}
}

func read(ctx context.Context, client *http.Client, url string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	// What Prometheus asks for.
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3")
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	return nil
}
