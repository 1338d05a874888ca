package variables

import (
	"fmt"
	"sync"

	"github.com/mpit-exporter/mpit-exporter/mapping"
)

// families is all families of one exporter. No two stand for one name, in any format.
type families struct {
	max int // maximum number of families

	mu      sync.Mutex
	byName  map[string]*family // by FamilyName
	owned   map[string]*family // by each of mapping.OwnedNames
	byOTel  map[string]*family // by Metric.OTelName
	perUser map[uint32]int     // number of families, by the user that had them first
}

func newFamilies(limit int) *families {
	return &families{
		max: limit, byName: map[string]*family{}, owned: map[string]*family{}, byOTel: map[string]*family{},
		perUser: map[uint32]int{},
	}
}

// family is a Metric with the number of variables of live Ranks that it is made of. The last one takes it along: no
// rank can hold a name, or a place, beyond its own end.
type family struct {
	metric  *mapping.Metric
	measure string // as the first holder says that knows; "" none of them does
	holders int
	user    uint32 // the first user that had it: it counts for that one
}

// find looks for the family of want's name, as OpenMetrics has it. nil without a conflict: there is none yet. A
// conflict says in words why want can't be shown beside what there is. The caller holds mu.
func (f *families) find(want *mapping.Metric) (have *family, conflict string) {
	have = f.byName[mapping.FamilyName(want.Name, want.Kind)]
	if have != nil {
		return have, have.conflict(want)
	}
	for _, name := range mapping.OwnedNames(want.Name, want.Kind) {
		if other := f.owned[name]; other != nil {
			return nil, fmt.Sprintf("%s would stand for the %s %s and for the %s %s", name, want.Kind, want.Name,
				other.metric.Kind, other.metric.Name)
		}
	}
	if other := f.byOTel[want.OTelName]; other != nil {
		return nil, fmt.Sprintf("in OpenTelemetry, %s and %s would both be %s", want.Name, other.metric.Name, want.OTelName)
	}
	return nil, ""
}

// conflict says why want can't be one with the family; "": it can. Who knows no unit may share the family of who
// does, for one library's rule may know what another's says nothing of.
func (f *family) conflict(want *mapping.Metric) string {
	have := f.metric
	switch {
	case have.Kind != want.Kind || have.Name != want.Name:
		return fmt.Sprintf("in OpenMetrics, the %s %s and the %s %s would be one family", want.Kind, want.Name,
			have.Kind, have.Name)
	case have.OTelKind != want.OTelKind:
		return fmt.Sprintf("%s is already made of what is another kind in OpenTelemetry: a level can't be one with "+
			"a watermark or a share", have.Name)
	case (have.Measure == "states") != (want.Measure == "states"):
		return fmt.Sprintf("%s would be of states and of numbers", have.Name)
	case f.measure != "" && want.Measure != "" && f.measure != want.Measure:
		return fmt.Sprintf("%s is already of %s, and can't be of %s as well", have.Name, f.measure, want.Measure)
	}
	return ""
}

// held is how many families there are, and how many variables of ranks they are made of.
func (f *families) held() (families, variables int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.byName {
		variables += one.holders
	}
	return len(f.byName), variables
}

// look is find for who only asks: no family comes to be by it.
func (f *families) look(want *mapping.Metric) (have *mapping.Metric, conflict string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	family, conflict := f.find(want)
	if family == nil {
		return nil, conflict
	}
	return family.metric, conflict
}

// acquire returns the family of want's name: the one that exists, if it is of the same kind, or a new one. Who gets
// it holds it until release. A user that has as many as are left for all others gets no new one: so there is always
// room for the next user.
func (f *families) acquire(want mapping.Metric, user uint32, help func() string) (_ *mapping.Metric, _ mapping.Reason,
	conflict string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, conflict := f.find(&want)
	switch {
	case conflict != "":
		return nil, mapping.ReasonTypeConflict, conflict
	case have != nil:
		have.holders++
		if have.measure == "" {
			have.measure = want.Measure
		}
		return have.metric, "", ""
	case f.perUser[user] >= f.max-len(f.byName):
		return nil, mapping.ReasonFamiliesOverMax, ""
	}
	want.Help = help()
	made := &family{metric: &want, measure: want.Measure, holders: 1, user: user}
	f.perUser[user]++
	f.byName[mapping.FamilyName(want.Name, want.Kind)], f.byOTel[want.OTelName] = made, made
	for _, name := range mapping.OwnedNames(want.Name, want.Kind) {
		f.owned[name] = made
	}
	return made.metric, "", ""
}

// release gives back what acquire returned.
func (f *families) release(metric *mapping.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := mapping.FamilyName(metric.Name, metric.Kind)
	had := f.byName[name]
	if had == nil || had.metric != metric {
		return
	}
	had.holders--
	if had.holders > 0 {
		return
	}
	if f.perUser[had.user]--; f.perUser[had.user] == 0 {
		delete(f.perUser, had.user)
	}
	delete(f.byName, name)
	delete(f.byOTel, metric.OTelName)
	for _, name := range mapping.OwnedNames(metric.Name, metric.Kind) {
		delete(f.owned, name)
	}
}
