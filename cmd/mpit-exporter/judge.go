package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/httpserver"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/judge"
)

// judgeCommand serves what is said of jobs on several nodes, of which no exporter has all ranks.
type judgeCommand struct {
	web                         *web.FlagConfig
	addressFile                 string
	prometheus, exporter, match string
	interval                    time.Duration
}

func newJudgeCommand(app *kingpin.Application, do commands) {
	c := &judgeCommand{}
	do["judge"] = c.run
	cmd := app.Command("judge", "Judge the jobs that run on several nodes, as each exporter does those that run on its "+
		"node alone, and serve mpit_job_verdict_info for them. It asks Prometheus which of them are conspicuous, and "+
		"their exporters what their ranks do. Run one beside Prometheus, which scrapes it, or one for each partition.")
	cmd.HelpLong("mpit-exporter judge --prometheus=http://localhost:9090\n" +
		`mpit-exporter judge --prometheus=http://localhost:9090 --match='partition="gpu"' --exporter=https://{instance}`)
	cmd.Flag("prometheus", "Address of a Prometheus that scrapes the exporters of all nodes; with user and password, if "+
		"it wants them.").Required().PlaceHolder("URL").StringVar(&c.prometheus)
	cmd.Flag("exporter", "Address of an exporter, where {instance} is its label in Prometheus; with user and password, "+
		"if it wants them.").Default("http://" + judge.Instance).StringVar(&c.exporter)
	cmd.Flag("match", "Matchers of labels, separated by commas: only ranks whose series have them.").
		PlaceHolder("MATCHERS").StringVar(&c.match)
	cmd.Flag("interval", "Time from one look to the next, from 1s to 15s.").Default(judge.Longest.String()).
		DurationVar(&c.interval)
	c.web = kingpinflag.AddFlags(cmd, ":10094")
	cmd.Flag("web.address-file", "File to write the addresses to that are listened on, one in a line.").
		PlaceHolder("FILE").StringVar(&c.addressFile)
}

// run looks and serves until ctx ends.
func (c *judgeCommand) run(ctx context.Context, std cli.Stdio) error {
	if c.interval < time.Second || c.interval > judge.Longest {
		return cli.Usagef("judge: --interval %s: must be from 1s to %s", c.interval, judge.Longest)
	}
	jobs, err := judge.NewSeveral(c.prometheus, c.exporter, c.match)
	if err != nil {
		return err
	}
	if err := web.Validate(*c.web.WebConfigFile); err != nil {
		return fmt.Errorf("--web.config.file %s: %w", *c.web.WebConfigFile, err)
	}
	listeners, err := httpserver.Listen(c.web)
	if err != nil {
		return err
	}
	defer httpserver.CloseAll(listeners)
	if c.addressFile != "" {
		if err := httpserver.WriteAddresses(c.addressFile, listeners); err != nil {
			return err
		}
		defer os.Remove(c.addressFile)
	}
	log := slog.New(slog.NewTextHandler(std.Err, nil))
	pages, err := judgePages(jobs)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: pages, ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		c.look(ctx, jobs, log)
	}()
	err = web.ServeMultiple(listeners, server, c.web, log)
	cancel()
	<-looked
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// judgePages are its metrics, whether it lives, and a page that leads to both.
func judgePages(jobs *judge.Several) (http.Handler, error) {
	own := prometheus.NewRegistry()
	own.MustRegister(append(jobs.Collectors(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), versioncollector.NewCollector("mpit_judge"))...)
	front, err := web.NewLandingPage(web.LandingConfig{
		Name: cli.ProgramName + " judge", Version: version.Info(), Profiling: "false",
		Links: []web.LandingLinks{{Address: "/metrics", Text: "Metrics"}, {Address: "/-/healthy", Text: "Health"}},
	})
	if err != nil {
		return nil, fmt.Errorf("the judge's page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", front)
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{own, jobs},
		promhttp.HandlerOpts{MaxRequestsInFlight: 10}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	return mux, nil
}

// look looks again and again. One look is over before the next one begins.
func (c *judgeCommand) look(ctx context.Context, jobs *judge.Several, log *slog.Logger) {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, c.interval)
		if err := jobs.Look(one); err != nil && ctx.Err() == nil {
			log.Warn("the jobs are not judged", "err", err)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
