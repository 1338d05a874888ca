package exporter

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/time/rate"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/work"
	"github.com/mpit-exporter/mpit-exporter/mapping/series"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// New returns an Exporter without ranks.
func New(cfg Config) (*Exporter, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	names, err := identity.Compile(cfg.Identity)
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	budgets, err := budget.New(cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("exporter: making an exporter: %w", err)
	}
	b := &base{
		cfg:     cfg,
		log:     cfg.Logger,
		self:    self.New(),
		users:   identity.NewUsers(cfg.UserName),
		budgets: budgets,
		started: time.Now(),
		now:     time.Now,
		newRank: func(m *variables.Mapper, p variables.Process) figures { return series.NewRank(m, p) },
		proc:    os.DirFS("/proc"),
		tuning:  usual(),
	}
	b.rules.Store(&ruling{mapper: cfg.Mapper, identity: names})
	b.work = work.New(maxWork, workRate, func() time.Time { return b.now() }) // which tests change
	rs := newRanks(b)
	e := &Exporter{ranks: rs, pages: newPages(rs), door: newDoor(),
		logging: rate.Sometimes{Interval: acceptLogInterval}}
	e.rounds.ranks, e.rounds.pages = rs, e.pages
	e.control = newControl(e)
	e.api = api.Handler(source{e}, api.NewTurns(), e.log)
	e.self.ReloadSucceeded(e.now())
	e.self.ShowLimits(budgets.Limits())
	return e, nil
}
