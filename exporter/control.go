package exporter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of what the control socket takes on. Root is not counted among all, so that it gets through always.
const (
	maxControlConns     = 256 // of all users
	maxUserControlConns = 16
	maxControlCalls     = 32 // requests being served
	maxUserControlCalls = 4
	maxControlBody      = 256 << 10 // bytes
)

// controlPace is how long a request takes at least, root's excepted. Anybody may ask for the variables of anybody's ranks, which costs
// those a little time, and have a line written to the log: but not as often as he can.
const controlPace = 100 * time.Millisecond

// How long one who uses the control socket may take.
const (
	controlHeaderTimeout = 5 * time.Second
	controlReadTimeout   = 10 * time.Second
	// controlTimeout is for a request as a whole, without the putting back of old values.
	controlTimeout      = 60 * time.Second
	controlWriteTimeout = controlTimeout + restoreTimeout + 10*time.Second
	controlIdleTimeout  = 30 * time.Second
	// controlGrace is how long requests under way may go on at the end. Then they are broken off: what was written is put back.
	controlGrace = 5 * time.Second
)

// control serves the control socket. It is safe for concurrent use.
type control struct {
	log   *slog.Logger
	user  func(uid uint32) string
	count func(result string)
	ranks func() []cvarTarget
	// written is told whose control variables may have changed.
	written func(ranks ...Identity)
	answer  func(w http.ResponseWriter, status int, v any)
	nobody  uint32 // the uid that stands for users outside this user name-space
	own     uint32 // whose the exporter is
	grace   time.Duration
	pace    time.Duration

	calls limiter // requests

	mu     sync.Mutex
	worlds map[ownedWorld]*worldTurn
	push   PushFunc // nil: there is none
}

// worldTurn lets one request after the other write to a world.
type worldTurn struct {
	turn  chan struct{} // holds a token while somebody has it
	users int           // that have it or wait for it
}

func newControl(e *Exporter) *control {
	return &control{
		log:     e.log,
		user:    e.users.Name,
		count:   func(result string) { e.self.cvarWrites.WithLabelValues(result).Inc() },
		ranks:   e.cvarTargets,
		written: e.refreshControlVariables,
		answer:  e.writeJSON,
		nobody:  overflowUID(),
		own:     uint32(os.Geteuid()),
		grace:   controlGrace,
		pace:    controlPace,
		calls:   limiter{total: maxControlCalls, each: maxUserControlCalls},
		worlds:  map[ownedWorld]*worldTurn{},
	}
}

// overflowUID is what the kernel says where it can't say who it is.
func overflowUID() uint32 {
	const usual = 65534
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(uid)
}

// ServeControl serves requests to write to ranks until ctx ends. l's connections must be Unix ones: who asks is what the kernel says,
// so that any user may be let in. It returns nil when ctx has ended, requests under way have been answered and l is closed; else why it failed.
//
//	POST /api/v1/cvar   a CvarRequest; sets a control variable, by root or the ranks' owner
//	GET  /api/v1/cvar   reads one: parameters job, world, uid, rank (0,2-5), name, object (kind:name)
//	POST /api/v1/push   does what OnPush says, for root and the exporter's own user
//
// The answer is a CvarAnswer, of the last a PushAnswer.
func (e *Exporter) ServeControl(ctx context.Context, l net.Listener) error {
	return e.control.serve(ctx, l)
}

func (c *control) serve(ctx context.Context, l net.Listener) error {
	// Clients that go away, and the end itself, don't break off what is being written: only the grace's end does.
	work, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	var calls callGate
	defer calls.end()
	defer breakOff()
	server := &http.Server{
		Handler:           c.handler(work, &calls),
		ConnContext:       withCaller,
		ReadHeaderTimeout: controlHeaderTimeout,
		ReadTimeout:       controlReadTimeout,
		WriteTimeout:      controlWriteTimeout,
		IdleTimeout:       controlIdleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(&controlListener{Listener: l, conns: limiter{total: maxControlConns, each: maxUserControlConns}})
	}()
	select {
	case err := <-served:
		_ = server.Close()
		return fmt.Errorf("exporter: serving the control socket %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(work, c.grace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		breakOff()
		// The answers say what was put back; those who wait for them get them.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		defer cancel()
		_ = server.Shutdown(last)
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("exporter: serving the control socket %s: %w", l.Addr(), err)
	}
	return nil
}

// controlListener lets only so many connections in, and knows whose they are.
type controlListener struct {
	net.Listener
	conns limiter
}

// controlConn is a connection of a caller whom the kernel has named.
type controlConn struct {
	*net.UnixConn
	caller mpit.Peer
	leave  func()
}

// Accept returns a *controlConn.
func (l *controlListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix, ok := conn.(*net.UnixConn)
		if !ok {
			_ = conn.Close()
			return nil, fmt.Errorf("a connection over %s, of which nobody says whose it is", conn.LocalAddr().Network())
		}
		caller, err := mpit.PeerOf(unix)
		if err != nil || !l.conns.enter(caller.UID) {
			_ = conn.Close()
			continue
		}
		return &controlConn{unix, caller, sync.OnceFunc(func() { l.conns.leave(caller.UID) })}, nil
	}
}

// Close makes room for another one.
func (c *controlConn) Close() error {
	c.leave()
	return c.UnixConn.Close()
}

// limiter bounds what all users, and each of them, have at once.
type limiter struct {
	total, each int

	mu    sync.Mutex
	all   int // without root's
	users map[uint32]int
}

func (l *limiter) enter(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[uid] >= l.each || uid != 0 && l.all >= l.total {
		return false
	}
	if l.users == nil {
		l.users = map[uint32]int{}
	}
	l.users[uid]++
	if uid != 0 {
		l.all++
	}
	return true
}

func (l *limiter) leave(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[uid]--; l.users[uid] == 0 {
		delete(l.users, uid)
	}
	if uid != 0 {
		l.all--
	}
}

// callGate lets requests in until the end, which waits for them.
type callGate struct {
	mu    sync.RWMutex // held shared by each request
	ended bool
}

func (g *callGate) enter() bool {
	g.mu.RLock()
	if g.ended {
		g.mu.RUnlock()
		return false
	}
	return true
}

func (g *callGate) leave() { g.mu.RUnlock() }

func (g *callGate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

type callerKey struct{}

func withCaller(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*controlConn); ok {
		return context.WithValue(ctx, callerKey{}, c.caller)
	}
	return ctx
}

// handler serves what came over the control socket. work's end breaks off what is under way; calls counts it.
func (c *control) handler(work context.Context, calls *callGate) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(context.Context, mpit.Peer, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !calls.enter() {
				c.answer(w, http.StatusServiceUnavailable, CvarAnswer{Result: CvarRefused, Error: "the exporter is ending", Ranks: []CvarRank{}})
				return
			}
			defer calls.leave()
			caller, ok := r.Context().Value(callerKey{}).(mpit.Peer)
			if !ok { // nobody but a mistake of ours comes here
				c.answer(w, http.StatusForbidden, CvarAnswer{Result: CvarRefused, Error: "it is not known who asks", Ranks: []CvarRank{}})
				return
			}
			if !c.calls.enter(caller.UID) {
				c.answer(w, http.StatusServiceUnavailable, CvarAnswer{Result: CvarRefused, Error: "too many requests at once", Ranks: []CvarRank{}})
				return
			}
			defer c.calls.leave(caller.UID)
			if caller.UID != 0 {
				pace := time.NewTimer(c.pace)
				defer func() {
					defer pace.Stop()
					select {
					case <-pace.C:
					case <-work.Done():
					}
				}()
			}
			ctx, cancel := context.WithTimeout(work, controlTimeout)
			defer cancel()
			f(ctx, caller, w, r)
		})
	}
	handle("POST /api/v1/cvar", c.servePost)
	handle("GET /api/v1/cvar", c.serveGet)
	handle("POST /api/v1/push", c.servePush)
	return mux
}

func (c *control) servePost(ctx context.Context, caller mpit.Peer, w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err == nil && req.Value == nil {
		err = errors.New("value is missing")
	}
	if err == nil && req.Name == "" {
		err = errors.New("name is missing")
	}
	var answer CvarAnswer
	if err != nil {
		err = refusef(http.StatusBadRequest, "the request can't be understood: %w", err)
		answer.Ranks = []CvarRank{}
	} else {
		answer, err = c.set(ctx, caller, req)
	}
	status := answer.conclude(err)
	c.count(answer.Result)
	c.record(caller, req, &answer)
	c.answer(w, status, answer)
}

// readRequest reads a request's body, and nothing behind it.
func readRequest(body io.Reader) (*CvarRequest, error) {
	req := &CvarRequest{}
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(req); err != nil {
		return req, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return req, errors.New("something follows the request")
	}
	return req, nil
}

// conclude writes into the answer what came of a request, and returns its HTTP status.
func (a *CvarAnswer) conclude(err error) (status int) {
	if err == nil {
		a.Result = CvarOK
		return http.StatusOK
	}
	a.Result, a.Error, status = CvarFailed, err.Error(), http.StatusBadGateway
	var refused *refusal
	if !errors.As(err, &refused) {
		return status
	}
	changed := slices.ContainsFunc(a.Ranks, func(r CvarRank) bool { return r.State != CvarUnchanged || r.Error != "" })
	if !changed && refused.status < http.StatusInternalServerError {
		a.Result = CvarRefused
	}
	return refused.status
}

func (c *control) serveGet(ctx context.Context, caller mpit.Peer, w http.ResponseWriter, r *http.Request) {
	req, err := queryRequest(r)
	answer := CvarAnswer{Ranks: []CvarRank{}}
	if err != nil {
		err = refusef(http.StatusBadRequest, "%w", err)
	} else {
		answer, err = c.get(ctx, caller, req)
	}
	status := answer.conclude(err)
	c.answer(w, status, answer)
}

// queryRequest makes a request of a URL's parameters.
func queryRequest(r *http.Request) (*CvarRequest, error) {
	query := r.URL.Query()
	req := &CvarRequest{JobID: query.Get("jobid"), World: query.Get("world"), Name: query.Get("name")}
	if req.Name == "" {
		return nil, errors.New("parameter name is missing")
	}
	var err error
	if req.Ranks, err = ParseRanks(query.Get("rank")); err != nil {
		return nil, fmt.Errorf("parameter rank: %w", err)
	}
	if text := query.Get("uid"); text != "" {
		uid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("parameter uid: %q is no number of a user", text)
		}
		id := uint32(uid)
		req.UID = &id
	}
	if text := query.Get("object"); text != "" {
		if req.Object, err = ParseCvarObject(text); err != nil {
			return nil, fmt.Errorf("parameter object: %w", err)
		}
	}
	return req, nil
}

// ParseCvarObject reads kind:name, for example comm:MPI_COMM_WORLD. The name may have colons in it.
func ParseCvarObject(text string) (*CvarObject, error) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf("%q is no object such as comm:MPI_COMM_WORLD", text)
	}
	if _, err := parseKind(kind); err != nil {
		return nil, err
	}
	return &CvarObject{Kind: kind, Name: name}, nil
}

// get reads a variable. Anybody may: the catalogue on the HTTP port has it as well.
func (c *control) get(ctx context.Context, caller mpit.Peer, req *CvarRequest) (CvarAnswer, error) {
	answer := CvarAnswer{JobID: req.JobID, World: req.World, Name: req.Name, Object: req.Object, Ranks: []CvarRank{}}
	world, err := chooseWorld(c.ranks(), caller, req)
	if err != nil {
		return answer, err
	}
	answer.JobID, answer.World = world.key.job, world.key.world
	plans, err := world.describe(ctx, req)
	if err != nil {
		return answer, err
	}
	answer.describe(plans)
	answer.Ranks = readPlans(plans)
	return answer, nil
}

// describe says what kind of variable it is.
func (a *CvarAnswer) describe(plans []cvarPlan) {
	v := &plans[0].variable
	a.Scope, a.Datatype, a.Enum = &v.Scope, &v.Datatype, enumStatus(v.Enum)
}

// set writes a variable: all ranks are asked and every rule is checked before the first of them is changed.
func (c *control) set(ctx context.Context, caller mpit.Peer, req *CvarRequest) (CvarAnswer, error) {
	answer := CvarAnswer{JobID: req.JobID, World: req.World, Name: req.Name, Object: req.Object, Ranks: []CvarRank{}}
	world, err := chooseWorld(c.ranks(), caller, req)
	if err != nil {
		return answer, err
	}
	answer.JobID, answer.World = world.key.job, world.key.world
	if err := world.permit(caller, c.nobody); err != nil {
		return answer, err
	}
	leave, err := c.takeTurn(ctx, world.key)
	if err != nil {
		return answer, err
	}
	defer leave()
	plans, err := world.describe(ctx, req)
	if err != nil {
		return answer, err
	}
	answer.describe(plans)
	err = world.check(plans)
	if err == nil {
		err = parsePlans(plans, *req.Value)
	}
	if err != nil {
		return answer, err
	}
	answer.Ranks, err = perform(ctx, plans)
	ids := make([]Identity, len(plans))
	for i := range plans {
		ids[i] = plans[i].target.id
	}
	c.written(ids...)
	return answer, err
}

// takeTurn waits until nobody else writes to the world.
func (c *control) takeTurn(ctx context.Context, key ownedWorld) (leave func(), err error) {
	c.mu.Lock()
	w := c.worlds[key]
	if w == nil {
		w = &worldTurn{turn: make(chan struct{}, 1)}
		c.worlds[key] = w
	}
	w.users++
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(c.worlds, key)
		}
	}
	select {
	case w.turn <- struct{}{}:
		return func() {
			<-w.turn
			forget()
		}, nil
	case <-ctx.Done():
		forget()
		return nil, refusef(http.StatusServiceUnavailable, "another request is setting control variables of this world: %w", ctx.Err())
	}
}

// record writes one line about a request to set a variable, whatever became of it.
func (c *control) record(caller mpit.Peer, req *CvarRequest, answer *CvarAnswer) {
	wanted := ""
	if req.Value != nil {
		wanted = *req.Value
	}
	ranks := req.Ranks
	if len(answer.Ranks) > 0 {
		ranks = nil
		for _, r := range answer.Ranks {
			ranks = append(ranks, r.Rank)
		}
	}
	slices.Sort(ranks)
	attrs := []any{
		"uid", caller.UID, "user", c.user(caller.UID), "pid", caller.PID,
		"jobid", clean.Label(answer.JobID), "world", clean.Label(answer.World),
		"ranks", clean.Cut(cmp.Or(FormatRanks(ranks), "all"), clean.MaxLabel),
		"name", clean.Label(req.Name), "object", clean.Label(req.Object.String()), "value", clean.Label(wanted),
		"old", clean.Cut(logValues(answer.Ranks, func(r *CvarRank) *string { return r.Old }), clean.MaxLabel),
		"now", clean.Cut(logValues(answer.Ranks, func(r *CvarRank) *string { return r.Value }), clean.MaxLabel),
		"result", answer.Result,
	}
	if answer.Result == CvarOK {
		c.log.Info("Control variable set", attrs...)
		return
	}
	c.log.Warn("Control variable not set", append(attrs, "err", clean.Text(answer.Error, 1024))...)
}

// logValues lists the ranks' values, ranks of the same value together.
func logValues(ranks []CvarRank, of func(*CvarRank) *string) string {
	with := map[string][]int{}
	var order []string
	for i := range ranks {
		text := "?"
		if v := of(&ranks[i]); v != nil {
			text = clean.Label(*v)
		}
		if with[text] == nil {
			order = append(order, text)
		}
		with[text] = append(with[text], ranks[i].Rank)
	}
	if len(order) == 1 {
		return order[0]
	}
	var parts []string
	for _, text := range order {
		parts = append(parts, text+" (rank "+FormatRanks(with[text])+")")
	}
	return strings.Join(parts, ", ")
}
