package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/gdamore/tcell/v3"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/top"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// topCommand shows the jobs of a running exporter, and where the time of one of them goes, again and again.
type topCommand struct {
	exporter   client.HTTP
	prometheus string
	interval   time.Duration
	count      int

	// sites are those of the caller's own jobs, as they were asked for last. callers names them.
	sites   map[jobKey]askedSites
	callers client.Callers
}

// askedSites are those of a job at a time.
type askedSites struct {
	at    time.Time
	sites []job.Site
}

// apart is how far looks at Prometheus are apart at least: it has nothing new sooner.
const apart = 15 * time.Second

// sitesApart is how old the places may be where a job's ranks wait: all of them are asked.
const sitesApart = 10 * time.Second

// stale is how old what Prometheus has of a job may be: it takes series for gone then.
const stale = 5 * time.Minute

func newTopCommand(app *kingpin.Application, do commands) {
	c := &topCommand{sites: map[jobKey]askedSites{}}
	do["top"] = c.run
	cmd := app.Command("top", "Show each job's state, and in which MPI calls and ranks the time of one of them goes, "+
		"again and again. In a terminal, ? shows the keys; otherwise it writes all of every job, one text after the "+
		"other.")
	cmd.HelpLong("mpit-exporter top\nmpit-exporter top --url=http://node7:10093 --jobid=4711")
	c.exporter.AddFlags(cmd)
	cmd.Flag("prometheus", "Address of a Prometheus that scrapes the exporters of all nodes, to be asked instead, every "+
		apart.String()+". Figures are of whole jobs.").PlaceHolder("URL").StringVar(&c.prometheus)
	cmd.Flag("interval", "Time between two refreshes, and what figures cover.").Default("2s").DurationVar(&c.interval)
	cmd.Flag("count", "How many looks are shown; 0: until it is ended.").Short('n').Default("0").IntVar(&c.count)
}

func (c *topCommand) run(ctx context.Context, std cli.Stdio) error {
	switch {
	case c.interval < 100*time.Millisecond, c.interval > page.Kept: // the exporter keeps no older moments
		return cli.Usagef("top: --interval %s: must be from 100ms to %s", c.interval, page.Kept)
	case c.count < 0:
		return cli.Usagef("top: --count %d: must not be negative", c.count)
	}
	if c.prometheus != "" {
		c.interval = max(c.interval, apart)
	}
	if table.Columns(std.Out) == 0 { // no terminal
		return c.write(ctx, std.Out)
	}
	s, err := top.OpenScreen()
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	defer s.Fini()
	return c.show(ctx, s)
}

// jobKey names a job.
type jobKey struct{ jobID, world, user string }

// uidOf is whose job a report is of.
func uidOf(r **job.Report) uint32 {
	if len((*r).Ranks) == 0 {
		return 0
	}
	return (*r).Ranks[0].UID
}

func keyOf(r *job.Report) jobKey { return jobKey{r.Job.ID, r.Job.World, r.Job.User} }

// look asks for reports, the caller's own first.
func (c *topCommand) look(ctx context.Context) ([]*job.Report, error) {
	var list page.ReportList
	if c.prometheus != "" {
		reports, err := report.AskPrometheus(ctx, c.prometheus, c.exporter.Labels(), time.Now(), stale)
		if err != nil {
			return nil, fmt.Errorf("top: %w", err)
		}
		return ownFirst(reports), nil
	}
	// Figures are of the time since the newest moment that is as long ago: the last look, though it may have come late.
	c.exporter.Window = min(c.interval*3/4, page.Kept)
	if err := c.exporter.Get(ctx, "top", "", "report", &list); err != nil {
		return nil, err
	}
	for _, r := range list.Reports {
		if client.Own(uidOf(&r)) { // others' files aren't looked into
			c.askSites(ctx, r)
		}
	}
	return ownFirst(list.Reports), nil
}

// askSites adds sites to a report: those of the last ten seconds, or it asks for new ones.
func (c *topCommand) askSites(ctx context.Context, r *job.Report) {
	was, known := c.sites[keyOf(r)]
	if !known || r.Time.Sub(was.at) >= sitesApart {
		c.callers.AskSites(ctx, &c.exporter, r)
		was = askedSites{r.Time, r.Sites}
		c.sites[keyOf(r)] = was
	}
	r.Sites = was.sites
}

func ownFirst(reports []*job.Report) []*job.Report {
	reports = job.ByNeed(reports)
	client.OwnFirst(reports, uidOf)
	return reports
}

// topState is what is shown.
type topState struct {
	picked  jobKey // none: the first
	reports []*job.Report
	callers client.Callers
}

// at is the place of the picked job.
func (s *topState) at() int {
	return max(slices.IndexFunc(s.reports, func(r *job.Report) bool { return keyOf(r) == s.picked }), 0)
}

// take takes in what a look has found.
func (s *topState) take(reports []*job.Report) {
	s.reports = reports
	for _, r := range reports {
		for i := range r.Ranks {
			of := &r.Ranks[i]
			of.Place = s.callers.Of(of.PID, of.UID, of.Long)
		}
		r.Locate()
	}
}

// view is what is to be drawn.
func (s *topState) view() *top.View { return &top.View{Reports: s.reports, Picked: s.at()} }

// write writes text after text, for a file or a pipe. The first comes after one interval, as before there are only
// figures of whole jobs.
func (c *topCommand) write(ctx context.Context, w io.Writer) error {
	var s topState
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	var before time.Time
	shown := -1
	if c.prometheus != "" {
		shown = 0
	}
	for {
		reports, err := c.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		s.take(reports)
		at := time.Time{} // when the last report was made
		for _, r := range reports {
			if r.Time.After(at) {
				at = r.Time
			}
		}
		if at.After(before) || len(reports) == 0 {
			before = at
			if shown++; shown > 0 {
				if err := top.Plain(w, s.view().Plain()); err != nil {
					return fmt.Errorf("top: %w", err)
				}
			}
			if shown == c.count && shown > 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// show is write for a terminal. An exporter that is away is waited for: it may be on its way back.
func (c *topCommand) show(ctx context.Context, screen tcell.Screen) error {
	type answer struct {
		reports []*job.Report
		err     error
	}
	answers, now := make(chan answer), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() { // one question after the other
		tick := time.NewTicker(c.interval)
		defer tick.Stop()
		for ctx.Err() == nil {
			reports, err := c.look(ctx)
			select {
			case answers <- answer{reports, err}:
			case <-ctx.Done():
			}
			select {
			case <-tick.C:
			case <-now:
			case <-ctx.Done():
			}
		}
	})
	var s topState
	shown, help := 0, false
	trouble := "asking " + mapping.OneLine(cmp.Or(c.prometheus, c.exporter.URL)) + " …"
	for {
		columns, lines := screen.Size()
		drawn := s.view().Screen(columns, lines-1)
		if help {
			drawn = top.Help()
		}
		top.Draw(screen, drawn, trouble)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			var exit *cli.Error
			switch {
			case errors.As(a.err, &exit):
				return a.err // it will not become better
			case a.err != nil:
				trouble = a.err.Error()
			default:
				trouble = ""
				s.take(a.reports)
				if shown++; shown == c.count {
					return nil
				}
			}
		case e := <-screen.EventQ():
			key := top.Key(e)
			switch {
			case top.Gone(e), slices.Contains([]string{"q", "Q", "Ctrl-C", "Ctrl-D"}, key):
				return nil
			case help && key != "":
				help = false
			case key == "?", key == "h":
				help = true
			case key == " ":
				select {
				case now <- struct{}{}:
				default: // it is asked already
				}
			default:
				s.obey(key)
			}
		}
	}
}

// obey picks the job that a key means.
func (s *topState) obey(key string) {
	step := 0
	switch key {
	case "Esc":
		s.picked = jobKey{}
	case "Down", "Tab", "j":
		step = 1
	case "Up", "k":
		step = -1
	}
	if n := len(s.reports); step != 0 && n > 0 {
		s.picked = keyOf(s.reports[(s.at()+step+n)%n])
	}
}
