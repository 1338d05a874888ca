package exporter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// maxCatalogueReads bounds how many catalogues are read from ranks at once: each costs the rank's process a little time.
const maxCatalogueReads = 4

// RankList is the answer to GET /api/v1/ranks.
type RankList struct {
	Ranks []RankStatus `json:"ranks"` // sorted by jobid, world, rank
}

// RankStatus describes one rank. Nothing in it lets anybody pass for the rank: its agent's id is left out.
type RankStatus struct {
	JobID          string     `json:"jobid"`
	World          string     `json:"world"`
	Rank           int        `json:"rank"`
	Dup            int        `json:"dup,omitempty"`
	State          string     `json:"state"` // new, up, busy, passive, late, ended
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
	Categories       []CategoryStatus        `json:"categories"`
}

// VariableStatus is a performance variable and what becomes of it.
type VariableStatus struct {
	Name        string             `json:"name"`
	Class       mpit.Class         `json:"class"`
	Description string             `json:"description"`
	Verbosity   mpit.Verbosity     `json:"verbosity"`
	Bind        mpit.Bind          `json:"bind"`
	Datatype    mpit.Datatype      `json:"datatype"`
	ReadOnly    bool               `json:"readonly"`
	Continuous  bool               `json:"continuous"`
	Atomic      bool               `json:"atomic"`
	Enum        []EnumItemStatus   `json:"enum,omitempty"`
	State       mpit.VariableState `json:"state"`          // open, or what was in the way
	Code        string             `json:"code,omitempty"` // MPI_T's, where it was MPI_T that was in the way
	Metric      string             `json:"metric,omitempty"`
	Kind        string             `json:"kind,omitempty"`    // of the metric
	Unit        string             `json:"unit,omitempty"`    // of the metric, in UCUM
	Dropped     string             `json:"dropped,omitempty"` // why it has no metric
}

// EnumItemStatus is one value of an enumeration.
type EnumItemStatus struct {
	Value int64  `json:"value"`
	Name  string `json:"name"`
}

// ControlVariableStatus is a control variable with its value.
type ControlVariableStatus struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Scope       mpit.Scope     `json:"scope"`
	Verbosity   mpit.Verbosity `json:"verbosity"`
	Datatype    mpit.Datatype  `json:"datatype"`
	Bind        mpit.Bind      `json:"bind"`
	Value       *string        `json:"value,omitempty"` // as text, elements separated by commas; nil: not read
	Code        string         `json:"code,omitempty"`  // why not
}

// CategoryStatus is a category, with the names of what is in it.
type CategoryStatus struct {
	Name             string   `json:"name"`
	Description      string   `json:"description"`
	Variables        []string `json:"variables"`
	ControlVariables []string `json:"control_variables"`
	Subcategories    []string `json:"subcategories"`
}

// Ranks returns all ranks that are connected or kept, sorted by jobid, world and rank.
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
func describe(h *mpit.Hello, peer mpit.Peer) RankStatus {
	id := identify(h)
	env := environment(h.Attributes)
	library := mapping.ParseLibrary(h.LibraryVersion)
	s := RankStatus{
		JobID:          id.JobID,
		World:          id.World,
		Rank:           id.Rank,
		State:          stateUp.String(),
		PID:            cmp.Or(int(max(peer.PID, 0)), h.PID),
		UID:            peer.UID,
		User:           strconv.FormatUint(uint64(peer.UID), 10),
		Host:           cleanValue(h.Host),
		Executable:     clean(h.Executable, maxExecutable),
		Library:        cleanValue(library.Name),
		LibraryVersion: cleanValue(library.Version),
		WorldSize:      h.Size,
		ThreadLevel:    threadLevel(h.ThreadLevel),
		AgentVersion:   cleanValue(h.AgentVersion),
		JobName:        cleanValue(env.jobName()),
		Partition:      cleanValue(env.partition()),
	}
	if !h.InitTime.IsZero() {
		started := h.InitTime // nothing else of h is held
		s.Started = &started
	}
	return s
}

// CatalogueOfSample is what a sample alone tells of what MPI_T offers in a rank, which for a rank that has ended is all there
// is: the performance variables. mapper says what they become.
func CatalogueOfSample(s *mpit.Session, sample *mpit.Sample, mapper *mapping.Mapper) Catalogue {
	hello := s.Hello()
	library := mapping.ParseLibrary(hello.LibraryVersion)
	c := Catalogue{
		Rank:             describe(&hello, s.Peer()),
		Variables:        []VariableStatus{},
		ControlVariables: []ControlVariableStatus{},
		Categories:       []CategoryStatus{},
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
	controlNames := map[int]string{}
	for i := range controls {
		controlNames[controls[i].Index] = controls[i].Name
		c.ControlVariables = append(c.ControlVariables, controlVariableStatus(&controls[i]))
	}
	categoryNames := map[int]string{}
	for i := range categories {
		categoryNames[categories[i].Index] = categories[i].Name
	}
	for i := range categories {
		g := &categories[i]
		c.Categories = append(c.Categories, CategoryStatus{
			Name:             g.Name,
			Description:      g.Description,
			Variables:        namesOf(g.Variables, variableNames),
			ControlVariables: namesOf(g.ControlVariables, controlNames),
			Subcategories:    namesOf(g.Subcategories, categoryNames),
		})
	}
	return c, nil
}

func variableStatus(library mapping.Library, v *mpit.Variable, mapper *mapping.Mapper) VariableStatus {
	s := VariableStatus{
		Name:        v.Name,
		Class:       v.Class,
		Description: v.Description,
		Verbosity:   v.Verbosity,
		Bind:        v.Bind,
		Datatype:    v.Datatype,
		ReadOnly:    v.ReadOnly,
		Continuous:  v.Continuous,
		Atomic:      v.Atomic,
		State:       v.State,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	if v.Enum != nil {
		for _, item := range v.Enum.Items {
			s.Enum = append(s.Enum, EnumItemStatus(item))
		}
	}
	if metric, reason, ok := mapper.Metric(library, *v); ok {
		s.Metric, s.Kind, s.Unit = metric.Name, metric.Kind.String(), metric.Unit
	} else {
		s.Dropped = string(reason)
	}
	return s
}

func controlVariableStatus(v *mpit.ControlVariable) ControlVariableStatus {
	s := ControlVariableStatus{
		Name:        v.Name,
		Description: v.Description,
		Scope:       v.Scope,
		Verbosity:   v.Verbosity,
		Datatype:    v.Datatype,
		Bind:        v.Bind,
	}
	if v.Code != mpit.Success {
		s.Code = v.Code.String()
	}
	if v.HasValue {
		value := controlValue(v)
		s.Value = &value
	}
	return s
}

// controlValue is a control variable's value as text: the name of an enumeration's item where it has one.
func controlValue(v *mpit.ControlVariable) string {
	if v.Datatype == mpit.DatatypeChar {
		return v.Text
	}
	words := make([]string, len(v.Values))
	for i, w := range v.Values {
		switch {
		case v.Datatype.Floating():
			words[i] = strconv.FormatFloat(v.Datatype.Float64(w), 'g', -1, 64)
		case v.Datatype.Signed():
			words[i] = strconv.FormatInt(int64(w), 10)
		default:
			words[i] = strconv.FormatUint(w, 10)
		}
		if v.Enum != nil {
			if at := slices.IndexFunc(v.Enum.Items, func(item mpit.EnumItem) bool { return item.Value == int64(w) }); at >= 0 {
				words[i] = v.Enum.Items[at].Name
			}
		}
	}
	return strings.Join(words, ",")
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
//	                        with parameters jobid, world or rank one for each rank that has these labels (at most 16)
//
// Errors are {"error": "…"}.
func (e *Exporter) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ranks", func(w http.ResponseWriter, _ *http.Request) {
		e.writeJSON(w, http.StatusOK, RankList{Ranks: e.Ranks()})
	})
	mux.HandleFunc("GET /api/v1/catalogue", e.serveCatalogue)
	return mux
}

const (
	maxCatalogues = 16 // in one answer
	maxCandidates = 3  // ranks that are tried for one catalogue
)

func (e *Exporter) serveCatalogue(w http.ResponseWriter, req *http.Request) {
	select {
	case e.reads <- struct{}{}:
		defer func() { <-e.reads }()
	default:
		e.writeError(w, http.StatusServiceUnavailable, fmt.Errorf("%d catalogues are being read already", cap(e.reads)))
		return
	}
	query := req.URL.Query()
	chosen, err := e.choose(query.Get("jobid"), query.Get("world"), query.Get("rank"))
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
	for i, c := range read {
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
			return CatalogueOf(ctx, r.session, e.cfg.Mapper)
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
func (e *Exporter) choose(jobID, world, number string) ([][]candidate, error) {
	named := jobID != "" || world != "" || number != ""
	wanted := -1
	if number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("parameter rank is no rank: %q", number)
		}
		wanted = n
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var lists [][]candidate
	byLibrary := map[string]int{}
	for _, r := range e.table.ordered {
		if r.session == nil || r.end != mpit.EndNone || jobID != "" && jobID != r.id.JobID || world != "" && world != r.id.World ||
			wanted >= 0 && wanted != r.id.Rank {
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
	e.writeJSON(w, status, struct {
		Error string `json:"error"`
	}{err.Error()})
}

func (e *Exporter) writeJSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		e.log.Error("encoding an answer failed", "err", err)
		http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(body.Bytes()); err != nil {
		e.log.Debug("sending an answer failed", "err", err)
	}
}
