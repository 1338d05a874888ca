package exporter

import (
	"cmp"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/exposition"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/board"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/bounds"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/self"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/spent"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// contents is what has been taken in of a rank. Its lock is held while a sample is taken in and while the page copies
// it, never that of another rank besides, and before any lock that ranks share.
type contents struct {
	*base
	rank *rank

	figures  figures       // nil: not made yet, or thrown away after a panic
	over     bool          // the rank has been forgotten: nothing more is taken in
	since    time.Time     // when figures were thrown away; zero: never
	anew     bool          // figures have news of the variables: they have just been made, or other rules
	selected bool          // the agent has been told what to read
	reselect bool          // the agent is to be told what to read even if figures think that it knows
	clock    time.Duration // of the newest sample that figures have taken
	spent    spent.Time

	facts   board.Facts    // what is known of the rank now, to be published
	comms   api.Comms      // told of so far
	parts   parts          // of the last sample, uncut
	left    map[string]int // left out, as counted in mpit_exporter_series_dropped_total
	trimmed bounds.Trimmed
	final   bool // its last sample has been taken in

	tell outbox // what came of the last sample, for the agent
}

// parts is what a plan is made of: snapshots, which never change.
type parts struct {
	variables *mpit.Variables
	layout    *mpit.Layout
	remains   *mpit.Remains
}

func partsOf(s *mpit.Sample) parts { return parts{s.Variables, s.Layout, s.Remains} }

// cells is what a sample makes necessary besides filling the plan, in cells: to compile all of it, if anything has
// changed of which it is made.
func (c *contents) cells(s *mpit.Sample) (n int) {
	now := partsOf(s)
	if now == c.parts || s.Status == mpit.SampleBusy {
		return 0
	}
	if v := now.variables; v != nil && v != c.parts.variables {
		n += variableWork * len(v.ByID)
	}
	if l := now.layout; l != nil {
		n += len(l.Objects) + len(l.Handles) + l.Values
	}
	if now.remains != nil {
		n += len(now.remains.List)
	}
	return n
}

// accept takes a sample in and returns what came of the question for it.
func (c *contents) accept(sample *mpit.Sample) (result string, state rankState) {
	switch {
	case sample.Status == mpit.SampleBusy:
		c.count(sample)
		return self.ResultBusy, stateBusy
	case c.final:
		return self.ResultFresh, stateEnded // older than the last sample
	case !c.absorb(sample):
		return self.ResultFailed, stateLate
	case sample.Status == mpit.SamplePassive:
		return self.ResultPassive, statePassive
	case sample.Status == mpit.SamplePaused:
		return self.ResultPaused, statePaused
	}
	return self.ResultFresh, stateUp
}

// count takes in what a sample has besides values. None of what counts falls, whatever an agent leaves out of an
// answer: busy ones and last ones don't say everything.
func (c *contents) count(sample *mpit.Sample) {
	c.facts.Sampled = true
	c.countCalls(sample)
	s := &sample.Stats
	level := c.facts.Stats.PcontrolLevel
	if s.PcontrolCalls > 0 && s.PcontrolCalls >= c.facts.Stats.PcontrolCalls {
		level = s.PcontrolLevel
	}
	c.facts.Stats = mpit.AgentStats{
		Samples:      max(c.facts.Stats.Samples, s.Samples),
		Busy:         max(c.facts.Stats.Busy, s.Busy),
		ReadErrors:   max(c.facts.Stats.ReadErrors, s.ReadErrors),
		GateWaits:    max(c.facts.Stats.GateWaits, s.GateWaits),
		GateWaitTime: max(c.facts.Stats.GateWaitTime, s.GateWaitTime),
		GateWaitMax:  max(c.facts.Stats.GateWaitMax, s.GateWaitMax),
		CPUTime:      max(c.facts.Stats.CPUTime, s.CPUTime),
		ObjectsAlive: s.ObjectsAlive,

		PcontrolLevel: level,
		PcontrolCalls: max(c.facts.Stats.PcontrolCalls, s.PcontrolCalls),
		PausedTime:    max(c.facts.Stats.PausedTime, s.PausedTime),
		CategoryStamp: cmp.Or(s.CategoryStamp, c.facts.Stats.CategoryStamp),
	}
}

// countCalls takes in what the call profile says, if there is one. A rank that has ended is in no call.
func (c *contents) countCalls(s *mpit.Sample) {
	if s.UnderWay == nil {
		return
	}
	c.spent.Add(s.UnderWay)
	var cpu *api.CPU
	if was := c.facts.Calls; was != nil {
		cpu = was.CPU
	}
	now := api.CallsOf(s, c.spent.Seconds(), cpu)
	if now.Phases = api.PhasesOf(s.UnderWay, c.rank.phases); now.Phases == nil && c.facts.Calls != nil {
		now.Phases = c.facts.Calls.Phases // of a connection before
	}
	told := *s
	if s.Status != mpit.SampleBusy && s.Monotonic < c.clock { // of an earlier connection: newer numbers stand
		told.Layout, told.Comms = nil, nil
	}
	c.comms.Take(&told, c.rank.ID.World, now)
	if s.Status == mpit.SampleFinal {
		now.Running, now.Long, now.Threads = 0, nil, nil
		if now.CPU != nil {
			now.CPU.In = ""
		}
	}
	c.facts.Calls = now // a new one each time: others have the one before
}

// absorb takes a sample with values into the rank's figures and reports whether that went well. It is to be published.
func (c *contents) absorb(s *mpit.Sample) bool {
	if c.over {
		return false
	}
	c.count(s)
	c.final = c.final || s.Status == mpit.SampleFinal
	return s.Monotonic < c.clock || c.takeIn(s) // else it is of an earlier connection
}

// takeIn is absorb for all that the sample has.
func (c *contents) takeIn(s *mpit.Sample) bool {
	c.facts.Size, c.parts = s.Size(), partsOf(s)
	c.trimmed.Cut(s, func(n int) { exposition.CountMore(c.drop, c.left, self.DroppedVariables, n) })
	return c.guard("mapping a sample", func() {
		rules := c.rules.Load()
		if c.figures == nil {
			c.makeFigures(rules)
		} else if rules.outdate(c, s) {
			c.figures.Reload(rules.mapper, c.now())
			c.facts.Rules, c.anew, c.reselect = rules.epoch, true, true
		}
		// They draw on the budgets for what is new.
		c.figures.SetVariableLimit(c.budgets.Limits().SeriesPerVariable)
		c.figures.Update(s)
		c.rank.account.Settle(c.figures.Weight())
		c.clock = max(c.clock, s.Monotonic)
		// Figures that are made after a panic leave out the same things, which have been counted already.
		for reason, n := range c.figures.Dropped() {
			exposition.CountMore(c.drop, c.left, reason, n)
		}
		f := &c.facts
		if s.Variables != nil && (c.anew || s.Variables != f.Variables || len(f.Infos) != len(s.Variables.ByID)) {
			f.Variables = s.Variables
			f.Infos, f.Alike = c.rank.world.shared.describe(c.figures.Infos())
			c.countVariables()
			c.anew = false
			c.logConflicts()
		} else if s.Layout == f.Layout && c.figures.Structure() == f.Structure {
			return // nothing new to select
		}
		f.Layout = s.Layout
		if def, ids, changed := c.figures.Select(); changed || c.reselect {
			c.tell.selected, c.tell.selection, c.tell.def, c.tell.ids = true, true, def, ids
			c.selected = true
		}
		c.reselect = false
		c.tell.open = c.figures.Requests()
	})
}

// logConflicts says which variables of a rank find their names taken, and by what.
func (c *contents) logConflicts() {
	for i := range c.facts.Infos {
		if info := &c.facts.Infos[i]; info.Why != "" {
			c.log.Debug("a variable is left out", append(c.rank.attrs(),
				"pvar", info.Name, "class", info.Class.String(), "reason", string(info.Reason), "why", info.Why)...)
		}
	}
}

// makeFigures makes a rank's figures by the rules that are in force.
func (c *contents) makeFigures(rules *ruling) {
	p := variables.Process{Library: c.rank.library, User: c.rank.UID, Older: c.rank.since}
	if !c.since.IsZero() {
		p.Older = c.since
	}
	c.figures, c.facts.Rules = c.newRank(rules.mapper, p), rules.epoch
	c.figures.SetRoom(c.rank.account)
	c.facts.Made++
	c.anew = true
	c.reselect = c.reselect || c.selected
}

func (c *contents) countVariables() {
	f := &c.facts
	f.ByState = [board.VariableStates]int{}
	for i := range f.Variables.ByID {
		if state := int(f.Variables.ByID[i].State); state < board.VariableStates {
			f.ByState[state]++
		}
	}
}

// snapshot returns what is known now, for all who don't have the rank's lock. It reports whether the figures, if there
// are some, are sound.
func (c *contents) snapshot() (f *board.Facts, sound bool) {
	now := &c.facts
	now.Figured, now.Structure, now.Series, sound = c.figures != nil, 0, 0, true
	if now.Figured {
		sound = c.guard("looking at its series", func() {
			now.Structure, now.Series = c.figures.Structure(), len(c.figures.Series())
		})
		now.Figured = sound
	}
	published := *now
	return &published, sound
}

// guard runs what may fail on the rank's account. A panic costs the rank its figures, which are made anew at its next
// answer and begin then, as far as they can't be had from its agent; and nobody else anything.
func (c *contents) guard(doing string, f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false
			c.panicked("panic on a rank's account", p, append(c.rank.attrs(), "doing", doing)...)
			c.discard()
			c.since = c.now()
		}
	}()
	f()
	return true
}

// discard throws the figures away.
func (c *contents) discard() {
	f := c.figures
	c.figures, c.parts = nil, parts{}
	c.rank.account.Settle(0)
	if f != nil {
		c.guard("closing its figures", f.Close)
	}
}

// close gives back what a rank has that has been forgotten. It does not wait.
func (r *rank) close() {
	if c := r.contents.TryLock(); c != nil {
		c.close()
		return
	}
	go func() { r.contents.Lock().close() }() // its sample is being taken in, which ends
}

// close ends taking in for good, and gives the rank's lock back.
func (c *contents) close() {
	defer c.rank.contents.Unlock()
	c.over = true
	c.discard()
}

// outdate says whether a rank's figures are to go over to these rules, with a sample that can fill them. A passive
// rank may answer with what it had before.
func (r *ruling) outdate(c *contents, s *mpit.Sample) bool {
	return c.facts.Rules != r.epoch && s.Monotonic >= c.clock &&
		s.Layout != nil && (s.Values != nil || s.Layout.Values == 0)
}
