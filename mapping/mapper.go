package mapping

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	defaultTimerInterval = 10 * time.Second
	defaultMaxFamilies   = 65536
	maxBuckets           = 64
)

// DefaultBuckets are the upper bounds of timers' histograms in seconds: 1 µs and each time four times more, up to
// about a minute. They are to hold both a single call's duration and the time gained in one interval.
func DefaultBuckets() []float64 {
	return []float64{
		0.000001, 0.000004, 0.000016, 0.000064, 0.000256, 0.001024, 0.004096, 0.016384, 0.065536, 0.262144, 1.048576,
		4.194304, 16.777216, 67.108864,
	}
}

// Config is what a Mapper is made with; the zero value will do.
type Config struct {
	Rules         []Rule        // nil: Defaults(). Rules of one's own stand before the defaults
	Rank          RankMode      // of variables for which no rule says it; "": RankKeep
	TimerInterval time.Duration // least time between two observations of a timer; 0: 10 s
	Buckets       []float64     // upper bounds in seconds, rising, at most 64; nil: DefaultBuckets()
	MaxFamilies   int           // maximum number of families, over all ranks; 0: 65,536. One user may have as many as are left for others
}

// Mapper holds the rules and all families of one exporter. It is safe for concurrent use.
type Mapper struct {
	rules      []*compiledRule
	rank       RankMode // of variables for which no rule says it
	interval   time.Duration
	buckets    []float64
	exact      []float64 // buckets of distributions
	max        int
	categories bool // some rule matches by category

	mu       sync.Mutex
	families map[string]*family // by FamilyName
	perUser  map[uint32]int     // families, by who had them first
	otel     map[string]*family // by Metric.OTelName
	sets     map[Library]*ruleSet
	specs    map[specKey]weak.Pointer[spec] // what variables of ranks become
}

// family is a Metric with the number of variables of live Ranks that it is made of. The last one takes it along: no
// rank can hold a name, or a place, beyond its own end.
type family struct {
	metric  *Metric
	measure string // as the first holder says that knows; "" none of them does
	holders int
	user    uint32 // the first user that had it: it counts for that one
}

// New checks the rules of cfg. An error names the rule, counted from 1.
func New(cfg Config) (*Mapper, error) {
	m := &Mapper{
		interval: cfg.TimerInterval, exact: distributionBounds(), max: cfg.MaxFamilies, sets: map[Library]*ruleSet{}, specs: map[specKey]weak.Pointer[spec]{},
		families: map[string]*family{}, perUser: map[uint32]int{}, otel: map[string]*family{},
	}
	if err := parseRank(cfg.Rank); err != nil {
		return nil, fmt.Errorf("rank of variables: %w", err)
	}
	if m.rank = cfg.Rank; m.rank == "" {
		m.rank = RankKeep
	}
	if m.interval < 0 {
		return nil, fmt.Errorf("timer interval %v is below zero", m.interval)
	}
	if m.interval == 0 {
		m.interval = defaultTimerInterval
	}
	if m.max <= 0 {
		m.max = defaultMaxFamilies
	}
	m.buckets = append([]float64(nil), cfg.Buckets...)
	if cfg.Buckets == nil {
		m.buckets = DefaultBuckets()
	}
	if err := checkBuckets(m.buckets); err != nil {
		return nil, fmt.Errorf("buckets of timers: %w", err)
	}
	rules := cfg.Rules
	if rules == nil {
		rules = Defaults()
	}
	for i, r := range rules {
		c, found := compileRule(r)
		if found != nil {
			return nil, fmt.Errorf("rule %d (name %q): %w", i+1, r.Match.Name, joined(found))
		}
		m.rules = append(m.rules, c)
		m.categories = m.categories || r.Match.Category != ""
	}
	return m, nil
}

func checkBuckets(b []float64) error {
	if len(b) == 0 || len(b) > maxBuckets {
		return fmt.Errorf("%d bounds; there must be 1 to %d", len(b), maxBuckets)
	}
	for i, x := range b {
		if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
			return fmt.Errorf("bound %v is not a number above zero", x)
		}
		if i > 0 && x <= b[i-1] {
			return errors.New("bounds must rise")
		}
	}
	return nil
}

// Metric says what a variable of a library becomes, as far as that depends on the variable alone: in a rank it can
// still have the state of one that couldn't be opened, and its family another holder. ok is false where it is left
// out, for the reason given. It only looks: no family comes to be by it. No rule matches by a category.
func (m *Mapper) Metric(lib Library, v mpit.Variable) (metric *Metric, drop Reason, ok bool) {
	s, want, reason, _ := m.resolve(m.rulesFor(lib), &v, nil, true)
	if reason != "" {
		return nil, reason, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have, conflict := m.find(&want.Metric)
	switch {
	case conflict != "":
		return nil, ReasonTypeConflict, false
	case have != nil:
		return have.metric, "", true
	}
	if s.companion != "" && !lib.hasCompanions() {
		s.companion = ""
	}
	want.Help = m.help(&v, &s, &want)
	return &want.Metric, "", true
}

// hasCompanions says whether timers of lib have a COUNTER of the same name, for want of knowing the rank's variables.
func (l Library) hasCompanions() bool {
	return l.Name == MPICH || l.Name == MVAPICH
}

// mode is how a variable's values are treated.
type mode uint8

const (
	modeGauge     mode = iota // present values
	modeWatermark             // present values, of freed objects as well
	modeCount                 // what only grows
	modeState
)

// spec is what one variable becomes. Those of ranks are shared (shared.go).
type spec struct {
	plain
	labels  []Label // that rules give, sorted by name
	buckets []float64
	items   []item // of a STATE
}

// plain is what of a spec can be compared as it stands.
type plain struct {
	metric *Metric // nil: left out
	mode   mode
	real   mpit.Class
	number number
	bits   uint
	scale  float64
	structure
	objects   Merge
	elements  Merge
	nonzero   bool // of the elements, those alone that are or have been something else than 0
	ranks     RankMode
	across    Merge // of ranks
	offset    bool
	open      bool   // to be opened, where that needs a request
	exact     bool   // a distribution
	companion string // of a timer that is a histogram: name of the COUNTER, "" none
	unit      string // UCUM, merely counted things as well
}

// structure says which values have a cell of their own. A timer and its companion have the same.
type structure struct {
	separate bool   // objects that share a name are not merged
	each     string // label of an element's number, "" where elements are merged
	numbered bool   // it has that label because of its class: one element alone needs none
	label    string // label of the object's name; "" not bound, or all objects in one
}

// wanted is the family that a variable asks for, without its HELP yet, and what HELP is made of.
type wanted struct {
	Metric
	set  settings
	note string
}

// resolve finds out what v becomes, all but its metric; companion is what a timer asks for, whether it is there or
// not. With a reason it becomes none; the rest still holds for ReasonRule, since a counter that isn't shown can be a
// timer's companion. undecided: its categories, which are not known, could make a difference.
func (m *Mapper) resolve(rules *ruleSet, v *mpit.Variable, categories []string, known bool) (_ spec, _ wanted, _ Reason, undecided bool) {
	var scratch [32]*compiledRule
	set, undecided := settingsOf(rules.candidates(v, scratch[:0]), v, categories, known)
	s, want, reason := m.become(set, v)
	return s, want, reason, undecided
}

// become is resolve with what the rules say of v.
func (m *Mapper) become(set settings, v *mpit.Variable) (spec, wanted, Reason) {
	s := spec{labels: set.labels, buckets: set.buckets, plain: plain{
		real: set.class, number: numberOf(v.Datatype), bits: 64, scale: set.unit.scale * set.scale,
		ranks: set.rank, open: set.open, unit: set.unit.base, objects: MergeSum, elements: MergeSum,
	}}
	if v.DatatypeBytes > 0 && v.DatatypeBytes < 8 {
		s.bits = uint(8 * v.DatatypeBytes)
	}
	switch {
	case s.buckets != nil:
	case v.Distribution:
		s.buckets = m.exact
	default:
		s.buckets = m.buckets
	}
	s.offset = set.offset || v.OnRequest // of these, too, nobody knows what there was before the handle
	if s.ranks == "" {
		s.ranks = m.rank
	}
	if set.object {
		s.label = BindLabel(v.Bind)
	}
	sh, note := s.ofClass(set, v)
	s.merge(set)
	switch {
	case set.drop:
		return s, wanted{}, ReasonRule
	case v.Distribution && checkDistribution(v) != "":
		return s, wanted{}, checkDistribution(v)
	case s.number == notNumber && v.Datatype == mpit.DatatypeChar && v.Class == mpit.ClassGeneric:
		return s, wanted{}, ReasonGenericString
	case s.number == notNumber:
		return s, wanted{}, ReasonDatatype
	}
	var n familyNames
	if set.name != "" {
		n = sh.named(set.name, v.Name, v.Class)
	} else {
		n = sh.names(v.Name, v.Class)
	}
	return s, wanted{
		Metric: Metric{
			Name: n.prometheus, OTelName: n.otel, Unit: sh.unit, Kind: sh.kind, OTelKind: sh.otel, Monotonic: s.mode == modeCount,
			measure: s.measure(),
		},
		set:  set,
		note: note,
	}, ""
}

// ofClass is what the class says: how the values count, merge and are shown, and what is to be noted in HELP. This is
// the table of docs/mapping.md, Kind and name.
func (s *spec) ofClass(set settings, v *mpit.Variable) (sh shape, note string) {
	sh = shape{otel: OTelGauge, unit: set.unit.base}
	if int(set.class) < len(classWords) {
		sh.word = classWords[set.class]
	}
	switch set.class {
	case mpit.ClassState:
		s.mode, s.separate, s.numbered, sh.otel, sh.unit = modeState, true, true, OTelSum, ""
	case mpit.ClassLevel, mpit.ClassSize:
		sh.otel = OTelSum
	case mpit.ClassPercentage:
		s.objects, s.elements, sh.unit = MergeMax, MergeMax, "1"
	case mpit.ClassHighWatermark:
		s.mode, s.objects, s.elements = modeWatermark, MergeMax, MergeMax
	case mpit.ClassLowWatermark:
		s.mode, s.objects, s.elements = modeWatermark, MergeMin, MergeMin
	case mpit.ClassCounter:
		s.mode, sh.kind, sh.otel = modeCount, KindCounter, OTelSum
		if unitWords[sh.unit] != "" {
			sh.unit = "" // never in a counter's name; HELP has it
		}
	case mpit.ClassAggregate:
		s.mode, sh.kind, sh.otel = modeCount, KindCounter, OTelSum
	case mpit.ClassTimer:
		if s.mode, s.exact = modeCount, v.Distribution; s.exact {
			s.bits = 64
		}
		switch {
		case sh.unit == "s" || sh.unit == "" && s.number == floating:
			sh.kind, sh.otel, sh.unit = KindHistogram, OTelHistogram, "s"
			s.unit = "s"
			if s.companion = set.companion; s.companion == "" {
				s.companion = v.Name
			}
			if s.companion == NoCompanion {
				s.companion = ""
			}
		default:
			sh.kind, sh.otel = KindCounter, OTelSum
			if sh.unit == "" {
				note = "The unit of this time is not known."
			}
		}
	default:
		s.objects, s.numbered, sh.kind, sh.word = MergeEach, true, KindUntyped, classWords[mpit.ClassGeneric]
	}
	return sh, note
}

// merge applies what rules say of objects, elements and ranks to what the class says of itself.
func (s *spec) merge(set settings) {
	switch set.merge {
	case MergeEach:
		s.objects = MergeEach
	case MergeSum, MergeMax, MergeMin, MergeMean:
		if s.mode != modeCount && s.mode != modeState { // what counts has no other merge than its sum
			s.objects = set.merge
		}
	}
	s.across = s.objects // of a STATE the sum: the number of ranks that are in it
	s.separate = s.separate || s.objects == MergeEach
	switch set.elements {
	case ElementsPeer, ElementsIndex:
		s.each, s.numbered = string(set.elements), false
	case ElementsSum, ElementsMax, ElementsMin, ElementsMean:
		if s.mode != modeCount {
			s.elements = Merge(set.elements)
		}
		s.numbered = s.numbered && s.mode == modeState
	}
	if s.numbered {
		s.each = string(ElementsIndex)
	}
	if s.mode != modeState && s.label == "" {
		s.separate = false // not bound, or a rule says that all objects become one
	}
	if s.across == MergeEach {
		s.ranks = RankKeep
	}
	s.nonzero = set.nonzero && s.each != "" && !s.numbered && s.mode != modeState
}

// observations says in words what the observations of a timer's histogram are.
func (m *Mapper) observations(companion string) string {
	if companion != "" {
		return fmt.Sprintf("The sum is exact, the count that of the events (COUNTER %s); the events of an interval of %v or more stand at their mean duration.",
			fold(companion, 100), m.interval)
	}
	return fmt.Sprintf("The sum is exact; an observation is the time gained in an interval of %v or more, so the count is of intervals in which the timer moved.", m.interval)
}

// help is HELP of a variable whose companion has been found, or is not asked for any more.
func (m *Mapper) help(v *mpit.Variable, s *spec, want *wanted) string {
	note := want.note
	switch {
	case s.exact:
		note = exactNote
	case want.Kind == KindHistogram:
		note = m.observations(s.companion)
	}
	return helpText(v, want.set, s.unit, note)
}

// onRequestNote is what HELP says of a variable that is opened on request only.
const onRequestNote = "Opened on request: counting begins with exec --monitoring or when a rule asks (open: true)."

// helpText is HELP: what the library says, then what the variable is called there.
func helpText(v *mpit.Variable, set settings, unit, note string) string {
	parts := make([]string, 0, 6)
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if !strings.ContainsAny(s[len(s)-1:], ".!?") && !strings.HasSuffix(s, "…") {
			s += "."
		}
		parts = append(parts, s)
	}
	add(fold(v.Description, maxDescription))
	what := "MPI_T variable " + fold(v.Name, 200) + ", class " + strings.ToUpper(nameOf(v.Class))
	if set.class != v.Class {
		what += " (really " + strings.ToUpper(nameOf(set.class)) + ")"
	}
	if unit != "" {
		what += ", unit " + unit
	}
	add(what)
	add(note)
	if v.OnRequest {
		add(onRequestNote)
	}
	add(fold(set.help, maxDescription))
	return strings.Join(parts, " ")
}

// measure is what values of the variable are of: its unit, or that they are states.
func (s *spec) measure() string {
	if s.mode == modeState {
		return "states"
	}
	return s.unit
}

// find looks for the family of want's name, as OpenMetrics has it. nil without a conflict: there is none yet. A
// conflict says in words why want can't be shown beside what there is. The caller holds mu.
func (m *Mapper) find(want *Metric) (have *family, conflict string) {
	have = m.families[FamilyName(want.Name, want.Kind)]
	if have != nil {
		return have, have.conflict(want)
	}
	if name, other := m.rival(want); other != nil {
		return nil, fmt.Sprintf("%s would stand for the %s %s and for the %s %s", name, want.Kind, want.Name, other.metric.Kind, other.metric.Name)
	}
	if other := m.otel[want.OTelName]; other != nil {
		return nil, fmt.Sprintf("in OpenTelemetry, %s and %s would both be %s", want.Name, other.metric.Name, want.OTelName)
	}
	return nil, ""
}

// rival looks for a family that owns one of the names that want would own, of which want's family is none: it is
// called by one of them, or want's family by one of its. The caller holds mu.
func (m *Mapper) rival(want *Metric) (name string, _ *family) {
	owned := OwnedNames(want.Name, want.Kind)
	for _, name := range owned[1:] {
		if f := m.families[name]; f != nil {
			return name, f
		}
	}
	for _, part := range familyParts {
		if base, ok := strings.CutSuffix(owned[0], part); ok {
			if f := m.families[base]; f != nil && slices.Contains(OwnedNames(f.metric.Name, f.metric.Kind), owned[0]) {
				return owned[0], f
			}
		}
	}
	return "", nil
}

// conflict says why want can't be one with the family; "": it can. Who knows no unit may share the family of who
// does, for one library's rule may know what another's says nothing of.
func (f *family) conflict(want *Metric) string {
	have := f.metric
	states := func(measure string) bool { return measure == "states" }
	switch {
	case have.Kind != want.Kind || have.Name != want.Name:
		return fmt.Sprintf("in OpenMetrics, the %s %s and the %s %s would be one family", want.Kind, want.Name, have.Kind, have.Name)
	case have.OTelKind != want.OTelKind || have.Monotonic != want.Monotonic:
		return fmt.Sprintf("%s is already made of what is another kind in OpenTelemetry: a level can't be one with a watermark or a share", have.Name)
	case states(have.measure) != states(want.measure):
		return fmt.Sprintf("%s would be of states and of numbers", have.Name)
	case f.measure != "" && want.measure != "" && f.measure != want.measure:
		return fmt.Sprintf("%s is already of %s, and can't be of %s as well", have.Name, f.measure, want.measure)
	}
	return ""
}

// conflict says in words why there can be no family for want now.
func (m *Mapper) conflict(want *Metric) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, conflict := m.find(want)
	return conflict
}

// acquire returns the family of want's name: the one that exists, if it is of the same kind, or a new one. Who gets
// it holds it until release. A user that has as many as are left for all others gets no new one: so there is always
// room for the next user.
func (m *Mapper) acquire(want Metric, user uint32, help func() string) (*Metric, Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, conflict := m.find(&want)
	switch {
	case conflict != "":
		return nil, ReasonTypeConflict
	case have != nil:
		have.holders++
		if have.measure == "" {
			have.measure = want.measure
		}
		return have.metric, ""
	case m.perUser[user] >= m.max-len(m.families):
		return nil, ReasonFamiliesOverMax
	}
	want.Help = help()
	f := &family{metric: &want, measure: want.measure, holders: 1, user: user}
	m.perUser[user]++
	m.families[FamilyName(want.Name, want.Kind)], m.otel[want.OTelName] = f, f
	return f.metric, ""
}

// release gives back what acquire returned.
func (m *Mapper) release(metric *Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := FamilyName(metric.Name, metric.Kind)
	f := m.families[name]
	if f == nil || f.metric != metric {
		return
	}
	f.holders--
	if f.holders > 0 {
		return
	}
	if m.perUser[f.user]--; m.perUser[f.user] == 0 {
		delete(m.perUser, f.user)
	}
	delete(m.families, name)
	delete(m.otel, metric.OTelName)
}
