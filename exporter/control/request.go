package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Request is the body of POST /api/v1/cvar, or the parameters of GET.
type Request struct {
	JobID  string  `json:"jobid,omitempty"` // label jobid; empty: the caller's only job
	World  string  `json:"world,omitempty"` // label world; empty: the job's only one
	UID    *uint32 `json:"uid,omitempty"`   // whose job it is; nil: the caller's; if there is none, anybody's
	Ranks  []int   `json:"ranks,omitempty"` // none: all of the world that are on this node
	Name   string  `json:"name"`
	Object *Object `json:"object,omitempty"` // for variables that are bound to one
	// Value is the new value: elements separated by commas, each a number or the name of an enumeration item.
	Value *string `json:"value,omitempty"`
}

// Object names an MPI object of a rank.
type Object struct {
	Kind string `json:"kind"` // as the label kind of metrics: comm, win, file …
	Name string `json:"name"` // unique among the rank's objects of that kind
}

func (o *Object) String() string {
	if o == nil {
		return ""
	}
	return o.Kind + ":" + o.Name
}

// Results of a request.
const (
	OK      = "ok"
	Refused = "refused" // nothing was done
	Failed  = "failed"  // something went wrong on the way; Error, and Answer.Ranks, say what
)

// Answer is the answer to a Request.
type Answer struct {
	Result   string          `json:"result"`
	Error    string          `json:"error,omitempty"` // why not
	JobID    string          `json:"jobid,omitempty"`
	World    string          `json:"world,omitempty"`
	Name     string          `json:"name,omitempty"`
	Object   *Object         `json:"object,omitempty"`
	Scope    *mpit.Scope     `json:"scope,omitempty"`
	Datatype *mpit.Datatype  `json:"datatype,omitempty"`
	Enum     []mpit.EnumItem `json:"enum,omitempty"`
	Ranks    []RankAnswer    `json:"ranks"`
}

// States of a rank in an Answer.
const (
	Read       = "read"       // only read
	Unchanged  = "unchanged"  // has its old value
	Written    = "written"    // has the new value, as reading it back says
	Restored   = "restored"   // had the new value, and has the old one again
	Unrestored = "unrestored" // did not get its old value back
	Unknown    = "unknown"    // does not say what it has
)

// RankAnswer is what became of a control variable in one rank.
type RankAnswer struct {
	Rank  int     `json:"rank"`
	State string  `json:"state"`
	Old   *string `json:"old,omitempty"`   // before; nil: not read
	Value *string `json:"value,omitempty"` // now; nil: not known
	Error string  `json:"error,omitempty"`
}

// refusal is why a request is not served, with its HTTP status.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refusef(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return refusef(http.StatusBadRequest, format, args...)
}
func forbidden(format string, args ...any) error {
	return refusef(http.StatusForbidden, format, args...)
}
func notFound(format string, args ...any) error { return refusef(http.StatusNotFound, format, args...) }
func conflict(format string, args ...any) error { return refusef(http.StatusConflict, format, args...) }

// readRequest reads the body of a request to set a variable. With an error it returns what it could read, for the log.
func readRequest(body io.Reader) (*Request, error) {
	req := &Request{}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(req); err != nil {
		return req, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return req, errors.New("something follows the request")
	}
	if req.Value == nil {
		return req, errors.New("value is missing")
	}
	if req.Name == "" {
		return req, errors.New("name is missing")
	}
	return req, nil
}

// describe says what kind of variable it is.
func (a *Answer) describe(plans []plan) {
	v := &plans[0].variable
	a.Scope, a.Datatype = &v.Scope, &v.Datatype
	if v.Enum != nil {
		a.Enum = v.Enum.Items
	}
}

// conclude is the result of a request, why it isn't OK, and its HTTP status.
func conclude(err error) (result, why string, status int) {
	if err == nil {
		return OK, "", http.StatusOK
	}
	if refused, is := errors.AsType[*refusal](err); is {
		return Refused, err.Error(), refused.status
	}
	return Failed, err.Error(), http.StatusBadGateway
}

// conclude writes the result of a request into the answer, and returns its HTTP status.
func (a *Answer) conclude(err error) (status int) {
	a.Result, a.Error, status = conclude(err)
	changed := slices.ContainsFunc(a.Ranks, func(r RankAnswer) bool { return r.State != Unchanged || r.Error != "" })
	if a.Result == Refused && (changed || status >= http.StatusInternalServerError) {
		a.Result = Failed
	}
	return status
}

// RequestOf makes a request to read of a URL's parameters: see Server.Serve. Errors begin with a parameter's name.
func RequestOf(query url.Values) (*Request, error) {
	req := &Request{JobID: query.Get("jobid"), World: query.Get("world"), Name: query.Get("name")}
	if req.Name == "" {
		return nil, errors.New("name is missing")
	}
	var err error
	if req.Ranks, err = parseRanks(query.Get("rank")); err != nil {
		return nil, fmt.Errorf("rank: %w", err)
	}
	if text := query.Get("uid"); text != "" {
		uid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("uid: %q is no number of a user", text)
		}
		req.UID = new(uint32(uid))
	}
	if text := query.Get("object"); text != "" {
		if req.Object, err = parseObject(text); err != nil {
			return nil, fmt.Errorf("object: %w", err)
		}
	}
	return req, nil
}

// maxRankList is how many ranks a list may have: a short text can mean very many, and anybody may write it. A node has
// fewer, whatever their numbers are.
const maxRankList = 1 << 16

// parseRanks reads a list of ranks such as "0,2-5", of at most 65,536. It returns them sorted, each once; an empty
// text is an empty list.
func parseRanks(text string) ([]int, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var ranks []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("%q is no list of ranks such as 0,2-5", text)
		}
		if uint64(len(ranks))+to-from >= maxRankList {
			return nil, fmt.Errorf("%q names more than %d ranks; no node has so many", text, maxRankList)
		}
		for r := from; r <= to; r++ {
			ranks = append(ranks, int(r))
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}

// parseObject reads kind:name, for example comm:MPI_COMM_WORLD. The name may have colons in it.
func parseObject(text string) (*Object, error) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf("%q is no object such as comm:MPI_COMM_WORLD", text)
	}
	if _, err := parseKind(kind); err != nil {
		return nil, err
	}
	return &Object{Kind: kind, Name: name}, nil
}

// parseKind reads a kind of object, as the label says it ("comm") or as MPI does ("MPI_COMM").
func parseKind(text string) (mpit.Bind, error) {
	if kind, ok := mpit.BindOfLabel(strings.TrimPrefix(strings.ToLower(text), "mpi_")); ok {
		return kind, nil
	}
	var kinds []string
	for kind := mpit.BindComm; kind <= mpit.BindLast; kind++ {
		kinds = append(kinds, kind.Label())
	}
	return mpit.BindUnknown, fmt.Errorf("%q is no kind of object; there are %s", text, strings.Join(kinds, ", "))
}
