package exporter

import (
	"fmt"
	"os"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/budget"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/categories"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/tally"
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
	e := &Exporter{
		cfg:      cfg,
		log:      cfg.Logger,
		self:     newSelfMetrics(),
		users:    identity.NewUsers(cfg.UserName),
		scrapes:  make(chan struct{}, cfg.MaxScrapes),
		now:      time.Now,
		proc:     os.DirFS("/proc"),
		tuning:   usual(),
		registry: newRegistry(),
		started:  time.Now(),
		budgets:  budgets,

		categories: tally.New[categories.Row](categories.MaxRows),
		controls:   tally.New[controlRow](maxControlRows),
	}
	e.newRank = func(m *variables.Mapper, p variables.Process) figures { return series.NewRank(m, p) }
	e.rules.Store(&ruling{mapper: cfg.Mapper, identity: names})
	e.grouped = func() bool { return e.mapper().NeedsCategories() }
	e.control = newControl(e)
	e.api = api.Handler(source{e}, e.log)
	e.pages.board = e.newBoard()
	e.self.reloadSucceeded(e.now())
	e.showLimits(budgets.Limits())
	return e, nil
}
