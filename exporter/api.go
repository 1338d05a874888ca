package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/cvar"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/respond"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// maxReads bounds how many requests for catalogues, values or kept samples are served at once: a catalogue costs the rank's process
	// a little time, and either may be large.
	maxReads = 4
	// maxCatalogueBytes bounds one catalogue, about, as JSON. Some hundred times what a library has: a rank may name one long
	// name from very many places, each of which is a copy in the answer.
	maxCatalogueBytes = 32 << 20
	// maxCatalogueAnswer bounds all that are in one answer.
	maxCatalogueAnswer = 64 << 20
)

// RankList is the answer to GET /api/v1/ranks.
type RankList struct {
	Ranks []RankStatus `json:"ranks"` // sorted by jobid, world, user, rank
}

// RankStatus describes one rank. Nothing in it lets anybody pass for the rank: its agent's id is left out.
type RankStatus struct {
	JobID          string     `json:"jobid"`
	World          string     `json:"world"`
	Rank           int        `json:"rank"`
	Dup            int        `json:"dup,omitempty"`
	State          string     `json:"state"` // new, up, busy, passive, paused, late, ended
	EndReason      string     `json:"end_reason,omitempty"`
	PID            int        `json:"pid"` // the kernel's, where it can say; else the process's own
	UID            uint32     `json:"uid"`
	User           string     `json:"user"`
	Host           string     `json:"host"`
	Executable     string     `json:"executable"`
	Library        string     `json:"library"` // empty: not known
	LibraryVersion string     `json:"library_version"`
	WorldSize      int        `json:"world_size"`
	ThreadLevel    string     `json:"thread_level"`
	AgentVersion   string     `json:"agent_version"`
	JobIDSource    string     `json:"jobid_source"`           // who says the jobid: slurm, pbs … launcher
	CgroupJobID    string     `json:"cgroup_jobid,omitempty"` // the kernel's word on it; empty: none
	JobIDCheck     string     `json:"jobid_check"`            // verified, differs, unknown
	JobName        string     `json:"jobname,omitempty"`
	Partition      string     `json:"partition,omitempty"`
	Started        *time.Time `json:"started,omitempty"`
	Ended          *time.Time `json:"ended,omitempty"`
}

// CatalogueList is the answer to GET /api/v1/catalogue.
type CatalogueList struct {
	Catalogues []Catalogue `json:"catalogues"`
	Errors     []string    `json:"errors,omitempty"` // of ranks that could not be read
}

// Catalogue is all that MPI_T offers in one rank.
type Catalogue struct {
	Rank             RankStatus              `json:"rank"`
	Variables        []VariableStatus        `json:"variables"` // sorted by name and class
	ControlVariables []ControlVariableStatus `json:"control_variables"`
	Categories       []CategoryStatus        `json:"categories"`               // each behind its parents
	CategoryStamp    *uint64                 `json:"category_stamp,omitempty"` // MPI_T_category_changed's; nil: not known
	Objects          []ObjectStatus          `json:"objects"`                  // in the order of their making
	ObjectsMissing   uint64                  `json:"objects_missing,omitempty"`
}

// ObjectStatus is an MPI object of a rank.
type ObjectStatus struct {
	ID         uint32            `json:"id"`   // of the agent's, in this process
	Kind       string            `json:"kind"` // as the label of metrics: comm, win, file …
	Name       string            `json:"name"` // empty: it has none
	Predefined bool              `json:"predefined,omitempty"`
	Inter      bool              `json:"inter,omitempty"`
	Size       *int              `json:"size,omitempty"` // nil: the kind has none
	Rank       *int              `json:"rank,omitempty"` // its own in it
	Created    *time.Time        `json:"created,omitempty"`
	On         string            `json:"on,omitempty"`      // name of the communicator that it was made on
	OnID       uint32            `json:"on_id,omitempty"`   // and its id
	Details    map[string]string `json:"details,omitempty"` // see docs/protocol.md, Objects
	Freed      bool              `json:"freed,omitempty"`   // it was there earlier
}

// VariableStatus is a performance variable and what becomes of it.
type VariableStatus struct {
	Name         string             `json:"name"`
	Class        mpit.Class         `json:"class"`
	Description  string             `json:"description"`
	Verbosity    mpit.Verbosity     `json:"verbosity"`
	Bind         mpit.Bind          `json:"bind"`
	Datatype     mpit.Datatype      `json:"datatype"`
	ReadOnly     bool               `json:"readonly"`
	Continuous   bool               `json:"continuous"`
	Atomic       bool               `json:"atomic"`
	Distribution bool               `json:"distribution,omitempty"` // each duration has been counted by itself: see mpit.Variable
	Enum         []mpit.EnumItem    `json:"enum,omitempty"`
	OnRequest    bool               `json:"on_request,omitempty"` // it costs the program something once it is open: see mpit.Variable
	State        mpit.VariableState `json:"state"`                // open, or what was in the way
	Code         string             `json:"code,omitempty"`       // MPI_T's, where it was MPI_T that was in the way
	Metric       string             `json:"metric,omitempty"`
	Kind         string             `json:"kind,omitempty"`    // of the metric
	Unit         string             `json:"unit,omitempty"`    // of the metric, in UCUM
	Dropped      string             `json:"dropped,omitempty"` // why it has no metric
	Categories   []string           `json:"categories,omitempty"`

	index int // MPI_T's, or the agent's of a variable of its own; no two have the same
}

// ControlVariableStatus is a control variable with its value.
type ControlVariableStatus struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Scope       mpit.Scope          `json:"scope"`
	Verbosity   mpit.Verbosity      `json:"verbosity"`
	Datatype    mpit.Datatype       `json:"datatype"`
	Bind        mpit.Bind           `json:"bind"`
	Enum        []mpit.EnumItem     `json:"enum,omitempty"`
	Value       *string             `json:"value,omitempty"`   // as text, elements separated by commas; nil: not read
	Code        string              `json:"code,omitempty"`    // why not
	Objects     []ObjectValueStatus `json:"objects,omitempty"` // of a bound variable: its values on some of the objects
	Categories  []string            `json:"categories,omitempty"`

	index int // MPI_T's
}

// ObjectValueStatus is the value of a bound control variable on one object.
type ObjectValueStatus struct {
	ID    uint32  `json:"id"`             // ObjectStatus.ID
	Name  string  `json:"name,omitempty"` // the object's
	Value *string `json:"value,omitempty"`
	Code  string  `json:"code,omitempty"`
}

// CategoryStatus is a category, with the names of what is in it.
type CategoryStatus struct {
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Depth            int      `json:"depth"` // 0: no category has it
	Parents          []string `json:"parents"`
	Variables        []string `json:"variables"`
	ControlVariables []string `json:"control_variables"`
	Subcategories    []string `json:"subcategories"`

	variables, controls []int // MPI_T's indices
}

// Ranks returns all ranks that are connected or kept, sorted by jobid, world, user and rank.
func (e *Exporter) Ranks() []RankStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]RankStatus, len(e.table.ordered))
	for i, r := range e.table.ordered {
		list[i] = r.status()
	}
	return list
}

func (r *rank) status() RankStatus {
	s := r.about
	s.State = r.state.String()
	if r.end != mpit.EndNone {
		ended := r.ended
		s.EndReason, s.Ended = r.end.String(), &ended
	}
	return s
}

// describe is what HELLO and the kernel say of a rank.
func describe(h *mpit.Hello, peer mpit.Peer, w identity.Process) RankStatus {
	library := mapping.ParseLibrary(h.LibraryVersion)
	s := RankStatus{
		JobID:          w.ID.JobID,
		World:          w.ID.World,
		Rank:           w.ID.Rank,
		Dup:            w.ID.Dup,
		State:          stateUp.String(),
		PID:            cmp.Or(int(max(peer.PID, 0)), h.PID),
		UID:            peer.UID,
		User:           cmp.Or(w.ID.User, strconv.FormatUint(uint64(peer.UID), 10)),
		Host:           clean.Label(h.Host),
		Executable:     clean.Path(h.Executable),
		Library:        clean.Label(library.Name),
		LibraryVersion: clean.Label(library.Version),
		WorldSize:      h.Size,
		ThreadLevel:    threadLevel(h.ThreadLevel),
		AgentVersion:   clean.Label(h.AgentVersion),
		JobIDSource:    w.Source,
		CgroupJobID:    w.CgroupJobID,
		JobIDCheck:     cmp.Or(w.Check, identity.Unknown),
		JobName:        w.JobName,
		Partition:      w.Partition,
	}
	if !h.InitTime.IsZero() {
		started := h.InitTime // nothing else of h is held
		s.Started = &started
	}
	return s
}

// threadLevel names a thread level of MPI (MPI-4.1 §11.2.1).
func threadLevel(level int) string {
	switch level {
	case 0:
		return "single"
	case 1:
		return "funneled"
	case 2:
		return "serialized"
	case 3:
		return "multiple"
	}
	return strconv.Itoa(level)
}

// CatalogueOfSample is what a sample alone tells of what MPI_T offers in a rank, which for a rank that has ended is all there
// is: the performance variables. mapper says what they become.
func CatalogueOfSample(s *mpit.Session, sample *mpit.Sample, mapper *mapping.Mapper) Catalogue {
	hello := s.Hello()
	library := mapping.ParseLibrary(hello.LibraryVersion)
	c := Catalogue{
		Rank:             describe(&hello, s.Peer(), identity.FromHello(&hello)),
		Variables:        []VariableStatus{},
		ControlVariables: []ControlVariableStatus{},
		Categories:       []CategoryStatus{},
		Objects:          []ObjectStatus{},
	}
	if stamp := sample.Stats.CategoryStamp; stamp > 0 {
		stamp-- // as MPI_T numbers them
		c.CategoryStamp = &stamp
	}
	if sample.Layout != nil {
		c.Objects = objectStatus(sample.Layout.Objects)
		c.ObjectsMissing = sample.Layout.ObjectsOverflow
	}
	if sample.Variables == nil {
		return c
	}
	for i := range sample.Variables.ByID {
		c.Variables = append(c.Variables, variableStatus(library, &sample.Variables.ByID[i], mapper))
	}
	slices.SortStableFunc(c.Variables, func(a, b VariableStatus) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Class, b.Class))
	})
	return c
}

// CatalogueOf asks a rank for everything that MPI_T offers in it. mapper says what the variables become.
func CatalogueOf(ctx context.Context, s *mpit.Session, mapper *mapping.Mapper) (Catalogue, error) {
	rank := s.Hello().Rank
	sample, err := s.Read(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the variables of rank %d: %w", rank, err)
	}
	controls, err := s.ControlVariables(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the control variables of rank %d: %w", rank, err)
	}
	categories, err := s.Categories(ctx)
	if err != nil {
		return Catalogue{}, fmt.Errorf("exporter: reading the categories of rank %d: %w", rank, err)
	}
	c := CatalogueOfSample(s, &sample, mapper)
	variableNames := map[int]string{}
	if sample.Variables != nil {
		for i := range sample.Variables.ByID {
			variableNames[sample.Variables.ByID[i].Index] = sample.Variables.ByID[i].Name
		}
	}
	objectNames := make(map[uint32]string, len(c.Objects))
	for i := range c.Objects {
		objectNames[c.Objects[i].ID] = c.Objects[i].Name
	}
	controlNames := map[int]string{}
	var size byteCount
	for i := range controls {
		controlNames[controls[i].Index] = controls[i].Name
		s := controlVariableStatus(&controls[i], objectNames)
		if size.controlVariable(&s); size > maxCatalogueBytes {
			return Catalogue{}, tooLarge(rank)
		}
		c.ControlVariables = append(c.ControlVariables, s)
	}
	categoryNames := map[int]string{}
	for i := range categories {
		categoryNames[categories[i].Index] = categories[i].Name
	}
	graph := mpit.NewCategoryGraph(categories)
	depths := map[int]int{}
	for _, g := range graph.Topological() {
		parents := []string{}
		for _, parent := range graph.Parents(g.Index) {
			parents = append(parents, parent.Name)
			depths[g.Index] = max(depths[g.Index], depths[parent.Index]+1)
		}
		c.Categories = append(c.Categories, CategoryStatus{
			Name:             g.Name,
			Description:      g.Description,
			Depth:            depths[g.Index],
			Parents:          parents,
			Variables:        namesOf(g.Variables, variableNames),
			ControlVariables: namesOf(g.ControlVariables, controlNames),
			Subcategories:    namesOf(g.Subcategories, categoryNames),
			variables:        g.Variables,
			controls:         g.ControlVariables,
		})
	}
	c.categorize()
	if c.bytes() > maxCatalogueBytes {
		return Catalogue{}, tooLarge(rank)
	}
	return c, nil
}

func tooLarge(rank int) error {
	return fmt.Errorf("exporter: what rank %d says of MPI_T would be more than %d MiB", rank, maxCatalogueBytes>>20)
}

// byteCount is about how long things are as JSON. It stops counting beyond maxCatalogueBytes.
type byteCount int

// recordBytes is the names of a record's fields and all that is short.
const recordBytes = 256

func (n *byteCount) texts(list ...string) {
	for _, s := range list {
		*n += byteCount(len(s)) + 16
		if *n > maxCatalogueBytes {
			return
		}
	}
}

func (n *byteCount) items(list []mpit.EnumItem) {
	for i := range list {
		if n.texts(list[i].Name); *n > maxCatalogueBytes {
			return
		}
		*n += 64
	}
}

func (n *byteCount) controlVariable(v *ControlVariableStatus) {
	*n += recordBytes
	n.texts(v.Name, v.Description)
	n.texts(v.Categories...)
	if v.Value != nil {
		n.texts(*v.Value)
	}
	n.items(v.Enum)
	for i := range v.Objects {
		*n += recordBytes / 4
		n.texts(v.Objects[i].Name)
		if v.Objects[i].Value != nil {
			n.texts(*v.Objects[i].Value)
		}
	}
}

// bytes is about how long the catalogue is as JSON.
func (c *Catalogue) bytes() byteCount {
	var n byteCount
	for i := range c.Variables {
		v := &c.Variables[i]
		n += recordBytes
		n.texts(v.Name, v.Description, v.Metric)
		n.texts(v.Categories...)
		n.items(v.Enum)
	}
	for i := range c.ControlVariables {
		n.controlVariable(&c.ControlVariables[i])
	}
	for i := range c.Categories {
		g := &c.Categories[i]
		n += recordBytes
		n.texts(g.Name, g.Description)
		for _, list := range [][]string{g.Parents, g.Variables, g.ControlVariables, g.Subcategories} {
			n.texts(list...)
		}
	}
	for i := range c.Objects {
		o := &c.Objects[i]
		n += recordBytes
		n.texts(o.Name, o.On)
		for key, value := range o.Details {
			n.texts(key, value)
		}
	}
	return n
}

// Update takes over what a later sample of the same rank says: its variables, and its objects. Those that are gone stay, marked
// as freed, as long as there are not too many. Copies of c that were made before stay as they are.
func (c *Catalogue) Update(later *Catalogue) {
	c.Variables, c.ObjectsMissing = slices.Clone(later.Variables), later.ObjectsMissing
	c.ControlVariables = slices.Clone(c.ControlVariables)
	if later.CategoryStamp != nil {
		c.CategoryStamp = later.CategoryStamp
	}
	alive := make(map[uint32]bool, len(later.Objects))
	for i := range later.Objects {
		alive[later.Objects[i].ID] = true
	}
	objects := []ObjectStatus{}
	for _, o := range c.Objects {
		if !alive[o.ID] && len(objects) < maxFreed {
			o.Freed = true
			objects = append(objects, o)
		}
	}
	c.Objects = append(objects, later.Objects...)
	slices.SortStableFunc(c.Objects, func(a, b ObjectStatus) int { return cmp.Compare(a.ID, b.ID) })
	c.categorize()
}

// maxFreed bounds the objects that Update keeps.
const maxFreed = 4096

// categorize writes at the variables in which categories they are. By index, for several variables may have one name.
func (c *Catalogue) categorize() {
	variables, controls := map[int][]string{}, map[int][]string{}
	note := func(of map[int][]string, indices []int, name string) {
		for _, index := range indices {
			if had := of[index]; len(had) == 0 || had[len(had)-1] != name {
				of[index] = append(had, name)
			}
		}
	}
	for i := range c.Categories {
		g := &c.Categories[i]
		note(variables, g.variables, g.Name)
		note(controls, g.controls, g.Name)
	}
	for i := range c.Variables {
		c.Variables[i].Categories = variables[c.Variables[i].index]
	}
	for i := range c.ControlVariables {
		c.ControlVariables[i].Categories = controls[c.ControlVariables[i].index]
	}
}

func objectStatus(objects []mpit.Object) []ObjectStatus {
	list := make([]ObjectStatus, len(objects))
	names := make(map[uint32]string, len(objects))
	for i := range objects {
		names[objects[i].ID] = objects[i].Name
	}
	for i := range objects {
		o := &objects[i]
		s := ObjectStatus{
			ID: o.ID, Kind: cmp.Or(o.Kind.Label(), "unknown"), Name: o.Name, Predefined: o.Predefined, Inter: o.Inter,
			On: names[o.On], OnID: o.On,
		}
		if o.Size >= 0 {
			s.Size = &o.Size
		}
		if o.Rank >= 0 {
			s.Rank = &o.Rank
		}
		if !o.Created.IsZero() {
			s.Created = &o.Created
		}
		for _, d := range o.Details {
			if s.Details == nil {
				s.Details = make(map[string]string, len(o.Details))
			}
			s.Details[d.Key] = d.Value
		}
		list[i] = s
	}
	return list
}

func variableStatus(library mapping.Library, v *mpit.Variable, mapper *mapping.Mapper) VariableStatus {
	s := VariableStatus{
		Name:         v.Name,
		Class:        v.Class,
		Description:  v.Description,
		Verbosity:    v.Verbosity,
		Bind:         v.Bind,
		Datatype:     v.Datatype,
		ReadOnly:     v.ReadOnly,
		Continuous:   v.Continuous,
		Atomic:       v.Atomic,
		Distribution: v.Distribution,
		OnRequest:    v.OnRequest,
		State:        v.State,
		index:        v.Index,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	s.Enum = items(v.Enum)
	if metric, reason, ok := mapper.Metric(library, *v); ok {
		s.Metric, s.Kind, s.Unit = metric.Name, metric.Kind.String(), metric.Unit
	} else {
		s.Dropped = string(reason)
	}
	return s
}

func controlVariableStatus(v *mpit.ControlVariable, objects map[uint32]string) ControlVariableStatus {
	s := ControlVariableStatus{
		Name:        v.Name,
		Description: v.Description,
		Scope:       v.Scope,
		Verbosity:   v.Verbosity,
		Datatype:    v.Datatype,
		Bind:        v.Bind,
		Enum:        items(v.Enum),
		index:       v.Index,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	if v.HasValue {
		value := cvar.Text(v)
		s.Value = &value
	}
	for i := range v.Objects {
		on := &v.Objects[i]
		o := ObjectValueStatus{ID: on.Object, Name: objects[on.Object]}
		if on.Code != mpit.Success {
			o.Code = on.Code.String()
		}
		if on.HasValue {
			value := cvar.Format(v.Datatype, v.Enum, mpit.CvarValue{Values: on.Values, Text: on.Text, IsText: v.Datatype == mpit.DatatypeChar})
			o.Value = &value
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

// items are those of an enumeration, if there is one.
func items(e *mpit.Enum) []mpit.EnumItem {
	if e == nil {
		return nil
	}
	return e.Items
}

// namesOf turns MPI_T's indices into names; what has none (a variable that can't be described) is left out.
func namesOf(indices []int, names map[int]string) []string {
	list := make([]string, 0, len(indices))
	for _, i := range indices {
		if name := names[i]; name != "" {
			list = append(list, name)
		}
	}
	return list
}

// API serves what the exporter knows as JSON, for reading only:
//
//	GET /api/v1/ranks       a RankList
//	GET /api/v1/catalogue   a CatalogueList: one for each MPI library and version that is there, read from a connected rank of it;
//	                        with parameters jobid, world, user or rank one for each rank that has these labels (at most 16)
//	GET /api/v1/values      a ValueList: what the variables of ranks are now; the same parameters
//	GET /api/v1/kept        a KeptList: what ranks kept at their last MPI_Pcontrol(2); the same parameters
//
// Errors are {"error": "…"}.
func (e *Exporter) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ranks", func(w http.ResponseWriter, _ *http.Request) {
		e.writeJSON(w, http.StatusOK, RankList{Ranks: e.Ranks()})
	})
	mux.HandleFunc("GET /api/v1/catalogue", e.admit(e.serveCatalogue))
	mux.HandleFunc("GET /api/v1/kept", e.admit(e.serveKept))
	mux.HandleFunc("GET /api/v1/values", e.admit(e.serveValues))
	return mux
}

// admit lets so many requests through at once as may be large.
func (e *Exporter) admit(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case e.reads <- struct{}{}:
			defer func() { <-e.reads }()
			serve(w, req)
		default:
			e.writeError(w, http.StatusServiceUnavailable, fmt.Errorf("%d catalogues, values or kept samples are being read already; try again soon", cap(e.reads)))
		}
	}
}

const (
	maxCatalogues = 16 // in one answer
	maxCandidates = 3  // ranks that are tried for one catalogue
)

func (e *Exporter) serveCatalogue(w http.ResponseWriter, req *http.Request) {
	which, err := selectorOf(req.URL.Query())
	var chosen [][]candidate
	if err == nil {
		chosen, err = e.choose(&which)
	}
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, errNoRank) {
			status = http.StatusNotFound
		}
		e.writeError(w, status, err)
		return
	}
	// Each on its own: a rank that does not answer holds up nobody else's catalogue.
	ctx, cancel := context.WithTimeout(req.Context(), defaultTimeout)
	defer cancel()
	read := make([]Catalogue, len(chosen))
	failed := make([]error, len(chosen))
	var wg sync.WaitGroup
	for i, candidates := range chosen {
		wg.Go(func() { read[i], failed[i] = e.readOne(ctx, candidates) })
	}
	wg.Wait()
	list := CatalogueList{Catalogues: []Catalogue{}}
	var size byteCount
	for i, c := range read {
		if failed[i] == nil {
			if n := c.bytes(); size+n <= maxCatalogueAnswer {
				size += n
			} else {
				failed[i] = fmt.Errorf("exporter: the catalogue of rank %d of job %q, world %q, user %q, is left out, for the answer would become too large; ask for it alone",
					c.Rank.Rank, c.Rank.JobID, c.Rank.World, c.Rank.User)
			}
		}
		if failed[i] != nil {
			list.Errors = append(list.Errors, failed[i].Error())
			continue
		}
		list.Catalogues = append(list.Catalogues, c)
	}
	if len(chosen) > 0 && len(list.Catalogues) == 0 {
		e.writeError(w, http.StatusGatewayTimeout, errors.Join(failed...))
		return
	}
	e.writeJSON(w, http.StatusOK, list)
}

// readOne reads the catalogue of the first candidate that answers.
func (e *Exporter) readOne(ctx context.Context, candidates []candidate) (Catalogue, error) {
	var errs []error
	for _, r := range candidates {
		c, err := func() (Catalogue, error) {
			ctx, cancel := context.WithTimeout(ctx, defaultTimeout/maxCandidates)
			defer cancel()
			return CatalogueOf(ctx, r.session, e.mapper())
		}()
		if err == nil {
			c.Rank = r.status
			return c, nil
		}
		errs = append(errs, err)
	}
	return Catalogue{}, errors.Join(errs...)
}

var errNoRank = errors.New("no connected rank has these labels")

// candidate is a rank that a catalogue can be read from.
type candidate struct {
	session *mpit.Session
	status  RankStatus
}

// choose returns the ranks to ask: lists of such as answer the same, in the order in which to try them.
func (e *Exporter) choose(which *Selector) ([][]candidate, error) {
	named := !which.any()
	e.mu.Lock()
	defer e.mu.Unlock()
	var lists [][]candidate
	byLibrary := map[string]int{}
	for _, r := range e.table.ordered {
		if r.session == nil || r.end != mpit.EndNone || !which.selects(r.id) {
			continue
		}
		c := candidate{r.session, r.status()}
		at, known := byLibrary[r.version]
		switch {
		case !named && known && r.state != stateLate && lists[at][0].status.State == stateLate.String():
			lists[at] = slices.Insert(lists[at], 0, c)[:min(len(lists[at])+1, maxCandidates)]
		case !named && known && len(lists[at]) < maxCandidates:
			lists[at] = append(lists[at], c)
		case !named && known:
		case len(lists) < maxCatalogues:
			byLibrary[r.version] = len(lists)
			lists = append(lists, []candidate{c})
		}
	}
	if named && len(lists) == 0 {
		return nil, errNoRank
	}
	return lists, nil
}

func (e *Exporter) writeError(w http.ResponseWriter, status int, err error) {
	respond.Writer{Log: e.log}.Error(w, status, err)
}

func (e *Exporter) writeJSON(w http.ResponseWriter, status int, v any) {
	respond.Writer{Log: e.log}.JSON(w, status, v)
}

func (e *Exporter) writeCompact(w http.ResponseWriter, status int, v any) {
	respond.Writer{Log: e.log}.Compact(w, status, v)
}
