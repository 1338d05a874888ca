package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// Config is what an Exporter can be told. Only Mapper is needed; zero values stand for the defaults. Mapper, Limits
// and Identity are what it begins with: Reload changes them.
type Config struct {
	Mapper *variables.Mapper // may be shared
	Logger *slog.Logger      // default: says nothing

	// Retention is how long an ended rank stays on the page at least (default 2 minutes), unless others need its room
	// (Limits). It stays longer if nobody has scraped since its end.
	Retention time.Duration
	MaxEnded  int // ended ranks that are kept, of all users (default 4096)
	MaxRanks  int // living ranks of one user (default 4096); more are refused

	// Limits bound the series of performance variables. Over one of them, objects fold into one called other, then
	// variables are left out; what is lost is counted.
	Limits rules.Limits

	Identity []rules.Relabel // changes what ranks are called, in this order

	// ControlVariables are patterns (* and ?) for the names of control variables that stand on mpit_cvar_ranks.
	// Default: none. They are read after a rank's first answer, and again after that long (default 5 minutes), when
	// somebody scrapes.
	ControlVariables        []string
	ControlVariableInterval time.Duration

	// FinalTaken is called when a rank's last sample stands on the page, and its connection is held open until it
	// returns, for agents that wait for that in MPI_Finalize (mpit.WithHeldFinals). It is called concurrently, and must
	// return in time by itself. nil: nobody is to wait.
	FinalTaken func(ctx context.Context)

	// UserName names a user of the node; "" where it has no name. It may block. Default: the number is the name.
	UserName func(uid uint32) string

	// SeesAll says which users see all ranks on the control socket, by uid and groups: see control.Config.
	SeesAll func(uid uint32, groups []uint32) bool
}

// Defaults of Config.
const (
	DefaultRetention = 2 * time.Minute
	DefaultMaxEnded  = 4096
	DefaultMaxRanks  = 4096

	DefaultControlVariableInterval = 5 * time.Minute
)

const (
	// defaultTimeout is how long a round may take where the reader sets no deadline: Prometheus' own default.
	defaultTimeout = 10 * time.Second
	// maxFinals bounds the last samples in flight of one user, beyond one for each living rank: those may all end
	// at the same moment.
	maxFinals = 64
	// finalTimeout bounds the connection that brings a last sample; an agent gives up after 20 ms itself.
	finalTimeout = 5 * time.Second
	// pushTimeout bounds the sending of a selection.
	pushTimeout = 5 * time.Second
)

// maxTaking is how many ranks of one user are taken in at the same time. Others' ranks don't wait.
const maxTaking = 4

// What a user can have done besides filling plans, which what comes and changes makes necessary: so many cells at once,
// and so many a second. A cell takes about a microsecond to compile.
const (
	maxWork      = 4 << 20
	workRate     = 200_000
	arrivalWork  = 2000 // of a connection: who it is, and its place on the page
	variableWork = 4    // of a variable
)

// maxControlRows bounds the series of control variables of one user, of all ranks together.
const maxControlRows = 8192

// complete returns what is to be done for what was said: defaults stand for zero values.
func (c Config) complete() (Config, error) {
	if err := errors.Join(orDefault("MaxEnded", &c.MaxEnded, DefaultMaxEnded),
		orDefault("MaxRanks", &c.MaxRanks, DefaultMaxRanks), orDefault("Retention", &c.Retention, DefaultRetention),
		orDefault("ControlVariableInterval", &c.ControlVariableInterval, DefaultControlVariableInterval)); err != nil {
		return c, err
	}
	if slices.Contains(c.ControlVariables, "") {
		return c, errors.New("Config.ControlVariables: a pattern is empty")
	}
	c.ControlVariables = slices.Clone(c.ControlVariables)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// orDefault puts a default in the place of zero.
func orDefault[T int | time.Duration](name string, value *T, def T) error {
	if *value < 0 {
		return fmt.Errorf("exporter: Config.%s is negative: %v", name, *value)
	}
	*value = cmp.Or(*value, def)
	return nil
}

// tuning is what nobody but a test changes.
type tuning struct {
	// grace is how long after the end of its connection a rank may bring its last sample, or connect again, before it
	// counts as lost.
	grace time.Duration
	// patience is how long a round waits for ranks that have owed an answer for longer than overdue. Without it, one
	// stopped process would make every scrape take until its deadline.
	patience time.Duration
	// welcome is how long a round waits for ranks that have never answered, from its beginning, or from when it last
	// has seen some of them answer.
	welcome time.Duration
	// overdue is long enough that no scraper in a hurry can make others give up on a rank that is only slow.
	overdue time.Duration
	// shareable is how old a round may be that another reader joins: its answers are as old.
	shareable time.Duration
	// recent is how old the page may be that values are read from without asking the ranks again. However many people
	// look, they cost the ranks no more than a scraper that comes so often.
	recent time.Duration
	// describing is how many series may describe one rank's objects and variables, describingAll those of all ranks.
	// Each user with ranks may have an equal part of these. What describes the variables of a world counts once.
	describing, describingAll int
	// endedBytes bounds, about, what ranks without a connection keep of what they have sent, in bytes.
	endedBytes int
	// lent bounds the pages that scrapers are being sent, in bytes. Whoever has been reading longest when there are
	// more is let go: a scraper that means to read its page has done so by then.
	lent int
}

func usual() tuning {
	const glance = 250 * time.Millisecond
	return tuning{
		grace: 2 * time.Second, patience: glance, welcome: glance, overdue: time.Second, shareable: glance,
		recent: time.Second, describing: 8192, describingAll: 50_000, endedBytes: 48 << 20, lent: 32 << 20,
	}
}
