package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/movement"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/table"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/terminal"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/where"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// topCommand shows the ranks of a running exporter, and what moves most in them, again and again.
type topCommand struct {
	name string

	exporter client.HTTP
	interval time.Duration
	count    int
	order    string
}

func newTopCommand(app *kingpin.Application) *topCommand {
	c := &topCommand{name: "top"}
	cmd := app.Command(c.name, "Show the ranks that are connected to a running exporter and the variables that move "+
		"most, again and again. What counts is added up over the ranks of a job; of levels, watermarks and shares "+
		"the largest is shown. Of ranks with the call profile it shows the share of time inside MPI, and where "+
		"in your own programs calls were made that have taken longer than a second. In a terminal: q ends it, r, v "+
		"and n sort by rate, value and name, space looks again at once. Otherwise it writes one table after the "+
		"other.")
	c.exporter.AddFlags(cmd)
	cmd.Flag("interval", "Time between two looks.").Default("2s").DurationVar(&c.interval)
	cmd.Flag("count", "How many tables are shown; 0: until it is ended.").Short('n').Default("0").IntVar(&c.count)
	cmd.Flag("sort", "rate, value or name.").Default(movement.ByRate).
		EnumVar(&c.order, movement.ByRate, movement.ByValue, movement.ByName)
	return c
}

func (c *topCommand) run(ctx context.Context, std cli.Stdio) error {
	switch {
	case c.interval < 100*time.Millisecond:
		return cli.Usagef("top: --interval %s: must be at least 100ms", c.interval)
	case c.count < 0:
		return cli.Usagef("top: --count %d: must not be negative", c.count)
	}
	in, out := terminal.Of(std.In), terminal.Of(std.Out)
	if in == nil || out == nil {
		return c.write(ctx, std.Out)
	}
	s, err := terminal.Open(in, out)
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	defer s.Close()
	return c.show(ctx, s)
}

// look asks the exporter.
func (c *topCommand) look(ctx context.Context) (list api.ValueList, err error) {
	err = c.exporter.Get(ctx, c.name, "", "values", &list)
	return list, err
}

// write writes table after table, for a file or a pipe. The first comes after one interval, as there are no rates
// before.
func (c *topCommand) write(ctx context.Context, w io.Writer) error {
	m := movement.Movement{Place: placeOfOwn()}
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for shown := 0; c.count == 0 || shown < c.count; {
		list, err := c.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if m.Take(&list) {
			if _, err := fmt.Fprintln(w, strings.ReplaceAll(m.Table(c.order, movement.Unlimited, 0),
				terminal.Heading, "")); err != nil {
				return fmt.Errorf("top: writing: %w", err)
			}
			shown++
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// show is write for a terminal. An exporter that is away is waited for: it may be on its way back.
func (c *topCommand) show(ctx context.Context, s *terminal.Screen) error {
	m := movement.Movement{Place: placeOfOwn()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	looks := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.ask(ctx, looks, answers)
	}()
	defer func() { cancel(); <-done }()

	looks <- struct{}{}
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	order, shown := c.order, 0
	trouble := "asking " + table.Clean(c.exporter.URL) + " …"
	for {
		columns, lines := s.Size()
		s.Draw(m.Table(order, lines-1, columns), trouble)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			var exit *cli.Error
			switch {
			case errors.As(a.err, &exit):
				return a.err // it will not become better
			case a.err != nil:
				trouble = table.Clean(a.err.Error())
			default:
				trouble = ""
				if m.Take(&a.list) {
					if shown++; shown == c.count {
						s.Draw(m.Table(order, lines-1, columns), "")
						return nil
					}
				}
			}
		case <-s.Resized:
		case key, open := <-s.Keys:
			switch key {
			case 'r':
				order = movement.ByRate
			case 'v':
				order = movement.ByValue
			case 'n':
				order = movement.ByName
			case ' ':
				nudge(looks)
			case 'q', 'Q', terminal.KeyInterrupt, terminal.KeyEnd:
				return nil
			}
			if !open {
				return nil
			}
		case <-tick.C:
			nudge(looks)
		}
	}
}

// placeOfOwn returns what says where in a program a call was made, of the ranks of whoever runs this: of others no file
// is opened that they have named.
func placeOfOwn() func(r *api.RankStatus) string {
	var files where.Resolver
	return func(r *api.RankStatus) string {
		if int(r.UID) != os.Getuid() {
			return ""
		}
		return files.Caller(r.PID, r.Calls.Long.Module, r.Calls.Long.Offset)
	}
}

// nudge puts a value into a channel of capacity one, unless it is full.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// answer is what came of a look.
type answer struct {
	list api.ValueList
	err  error
}

// ask looks whenever it is told to, one look after the other: an exporter that is slow isn't asked twice at once.
func (c *topCommand) ask(ctx context.Context, looks <-chan struct{}, answers chan<- answer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks:
		}
		var a answer
		a.list, a.err = c.look(ctx)
		select {
		case <-ctx.Done():
			return
		case answers <- a:
		}
	}
}
