package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/page"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/top"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// topCommand shows the jobs of a running exporter, and where the time of one of them goes, again and again.
type topCommand struct {
	name string

	exporter client.HTTP
	interval time.Duration
	count    int
	order    string
	raw      bool
}

func newTopCommand(app *kingpin.Application) *topCommand {
	c := &topCommand{name: "top"}
	cmd := app.Command(c.name, "Show what is to be said of the jobs of a running exporter, and of one of them in which "+
		"calls of MPI and in which ranks its time goes, again and again. Of a job without a call profile it shows the "+
		"variables that move. In a terminal, ? shows the keys; otherwise it writes all of every job, one text after "+
		"the other.")
	cmd.HelpLong("mpit-exporter top\nmpit-exporter top --url=http://node7:10093 --jobid=4711")
	c.exporter.AddFlags(cmd)
	cmd.Flag("interval", "Time between two refreshes, and what figures cover.").Default("2s").DurationVar(&c.interval)
	cmd.Flag("count", "How many looks are shown; 0: until it is ended.").Short('n').Default("0").IntVar(&c.count)
	orders := top.Orders()
	cmd.Flag("sort", "Column by which tables that have it are sorted: "+strings.Join(orders, ", ")+".").
		Default(orders[0]).EnumVar(&c.order, orders...)
	cmd.Flag("variables", "Show the variables that move, also of jobs with a call profile.").BoolVar(&c.raw)
	return c
}

func (c *topCommand) run(ctx context.Context, std cli.Stdio) error {
	switch {
	case c.interval < 100*time.Millisecond, c.interval > page.Kept: // what was before that nobody knows any more
		return cli.Usagef("top: --interval %s: must be from 100ms to %s", c.interval, page.Kept)
	case c.count < 0:
		return cli.Usagef("top: --count %d: must not be negative", c.count)
	}
	if !table.IsTerminal(std.Out) {
		return c.write(ctx, std.Out)
	}
	s, err := top.OpenScreen()
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	defer s.Close()
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

// answer is what came of a look.
type answer struct {
	reports []*job.Report
	values  map[jobKey]*api.ValueList // of the jobs of which variables are shown
	err     error
}

// look asks the exporter. Of the picked job, or of all in a plain text, it asks for the variables if they are shown.
func (c *topCommand) look(ctx context.Context, q *topState) (a answer) {
	var list page.ReportList
	// Figures are of the time since the newest moment that is as long ago: the last look, though it may have come late.
	window := min(c.interval*3/4, page.Kept)
	if a.err = c.exporter.With("window", window.String()).Get(ctx, c.name, "", "report", &list); a.err != nil {
		return a
	}
	a.reports = job.ByNeed(list.Reports)
	client.OwnFirst(a.reports, uidOf)
	a.values = map[jobKey]*api.ValueList{}
	view := top.View{Reports: a.reports, Raw: q.raw}
	for i, r := range a.reports {
		if !view.NeedsVariables(r) || !q.plain && i != q.at(a.reports) {
			continue
		}
		of := keyOf(r)
		values := &api.ValueList{}
		which := c.exporter.With("jobid", of.jobID).With("world", of.world).With("user", of.user)
		if a.err = which.Get(ctx, c.name, "", "values", values); a.err != nil {
			return a
		}
		values.Ranks = slices.DeleteFunc(values.Ranks, func(v api.RankValues) bool {
			return jobKey{v.Rank.JobID, v.Rank.World, v.Rank.User} != of // a label that is empty stands for any
		})
		a.values[of] = values
	}
	return a
}

// topState is what is shown, and how.
type topState struct {
	plain  bool
	picked jobKey // none: the first
	raw    bool

	reports []*job.Report
	moved   map[jobKey]*top.Movement
	callers client.Callers
}

func (c *topCommand) state(plain bool) *topState {
	return &topState{plain: plain, raw: c.raw, moved: map[jobKey]*top.Movement{}}
}

// at is the place of the picked job.
func (s *topState) at(reports []*job.Report) int {
	return max(slices.IndexFunc(reports, func(r *job.Report) bool { return keyOf(r) == s.picked }), 0)
}

// take takes in an answer.
func (s *topState) take(a *answer) {
	s.reports = a.reports
	before := s.moved
	s.moved = map[jobKey]*top.Movement{}
	for of, values := range a.values {
		if s.moved[of] = before[of]; s.moved[of] == nil {
			s.moved[of] = &top.Movement{}
		}
		s.moved[of].Take(values)
	}
	for _, r := range s.reports {
		for i := range r.Ranks {
			of := &r.Ranks[i]
			of.Place = s.callers.Of(of.PID, of.UID, of.Long)
		}
	}
}

// view is what is to be drawn.
func (s *topState) view(order string) *top.View {
	v := &top.View{Reports: s.reports, Picked: s.at(s.reports), Order: order, Raw: s.raw,
		Variables: map[*job.Report]*top.Movement{}}
	for _, r := range s.reports {
		v.Variables[r] = s.moved[keyOf(r)]
	}
	return v
}

// write writes text after text, for a file or a pipe. The first comes after one interval, as before there are only
// figures of whole jobs.
func (c *topCommand) write(ctx context.Context, w io.Writer) error {
	s := c.state(true)
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	var before time.Time
	for shown := -1; c.count == 0 || shown < c.count; {
		a := c.look(ctx, s)
		switch {
		case ctx.Err() != nil:
			return nil
		case a.err != nil:
			return a.err
		}
		s.take(&a)
		if at := lastOf(a.reports); at.After(before) || len(a.reports) == 0 {
			before = at
			if shown++; shown > 0 {
				if err := top.Plain(w, s.view(c.order).Plain()); err != nil {
					return fmt.Errorf("top: %w", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// lastOf is when the last report was made.
func lastOf(reports []*job.Report) (at time.Time) {
	for _, r := range reports {
		if r.Time.After(at) {
			at = r.Time
		}
	}
	return at
}

// show is write for a terminal. An exporter that is away is waited for: it may be on its way back. One that is slow
// isn't asked twice at once.
func (c *topCommand) show(ctx context.Context, screen *top.Screen) error {
	s := c.state(false)
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer)
	asking, again := false, false
	ask := func() {
		if again = asking; again {
			return
		}
		asking = true
		q := *s
		go func() { answers <- c.look(ctx, &q) }()
	}
	defer func() {
		cancel()
		if asking {
			<-answers
		}
	}()
	ask()
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	shown, help := 0, false
	trouble := "asking " + mapping.OneLine(c.exporter.URL) + " …"
	for {
		columns, lines := screen.Size()
		drawn := s.view(c.order).Screen(columns, lines-1)
		if help {
			drawn = top.Help()
		}
		screen.Draw(drawn, trouble)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			asking = false
			var exit *cli.Error
			switch {
			case errors.As(a.err, &exit):
				return a.err // it will not become better
			case a.err != nil:
				trouble = a.err.Error()
			default:
				trouble = ""
				s.take(&a)
				if shown++; shown == c.count {
					return nil
				}
			}
			if again {
				ask()
			}
		case e := <-screen.Events():
			key := top.Key(e)
			switch {
			case top.Gone(e), slices.Contains([]string{"q", "Q", "Ctrl-C", "Ctrl-D"}, key):
				return nil
			case help && key != "":
				help = false
			case key == "?", key == "h":
				help = true
			case c.obey(s, key):
				ask()
			}
		case <-tick.C:
			ask()
		}
	}
}

// obey does what a key says. It returns true if the exporter has to be asked at once.
func (c *topCommand) obey(s *topState, key string) bool {
	step := 0
	switch key {
	case " ":
	case "v":
		s.raw = !s.raw
	case "s":
		c.order = s.view(c.order).NextOrder()
		return false
	case "Esc":
		s.picked = jobKey{}
	case "Down", "Tab", "j":
		step = 1
	case "Up", "k":
		step = -1
	default:
		return false
	}
	if n := len(s.reports); step != 0 && n > 0 {
		s.picked = keyOf(s.reports[(s.at(s.reports)+step+n)%n])
	}
	return true
}
