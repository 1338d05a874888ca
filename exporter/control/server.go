// Package control serves the control socket: it sets control variables of ranks, and asks the exporter to push. The
// kernel says who the caller is. A variable is set in all the ranks that a request names; if one rank fails, the
// others get their old values back.
//
// It isn't the JSON API for reading, which is package api. It keeps no ranks: it gets them from the exporter
// (Config.Targets).
//
// Begin reading at Server.set. request.go has requests and answers, world.go chooses ranks and applies MPI's rules,
// plan.go writes and restores, listener.go bounds connections.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/respond"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/turns"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// Bounds of connections and requests. Root's places are its own, so that it always gets through.
const (
	maxConns     = 256 // of all users
	maxUserConns = 16
	maxCalls     = 32 // requests being served
	maxUserCalls = 4
	maxBody      = 256 << 10 // bytes
)

// minDuration is how long a request takes at least, except root's. Anybody may read the variables of anybody's ranks,
// which costs those ranks a little time, and each request to set one writes a line to the log. This bounds how often.
const minDuration = 100 * time.Millisecond

// How long clients and requests may take.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	// requestTimeout is for a whole request, except restoring old values.
	requestTimeout = 60 * time.Second
	answerTimeout  = requestTimeout + restoreTimeout + 10*time.Second
	idleTimeout    = 30 * time.Second
	// endGrace is how long running requests may go on when the exporter ends. Then they are canceled, and old values
	// are restored.
	endGrace = 5 * time.Second
)

// Config is what a Server needs.
type Config struct {
	Targets func() []Target                // returns all living ranks of the node, sorted by Identity
	Written func(ids ...identity.Identity) // is told whose control variables may have changed
	Log     *slog.Logger
	User    func(uid uint32) string // names a user, for the log
	Count   func(result string)     // counts requests to set a variable: OK, Refused or Failed
	// SeesAll says which users see the ranks of all, by uid and groups; nil: every one does. Root always does, and
	// others see their own ranks, as if there were no others.
	SeesAll func(uid uint32, groups []uint32) bool
}

// Server serves control sockets. It is safe for concurrent use.
type Server struct {
	cfg    Config
	answer respond.Writer
	nobody uint32 // the uid that stands for users outside this user name-space
	own    uint32 // whose the exporter is
	grace  time.Duration
	pace   time.Duration

	calls places                   // requests
	turns turns.Turns[worldKey]    // for those who write to a world
	push  atomic.Pointer[PushFunc] // nil: there is none
	read  atomic.Pointer[http.Handler]
}

// New returns a Server.
func New(cfg Config) *Server {
	return &Server{
		cfg:    cfg,
		answer: respond.Writer{Log: cfg.Log},
		nobody: overflowUID(),
		own:    uint32(os.Geteuid()),
		grace:  endGrace,
		pace:   minDuration,
		calls:  newPlaces(maxCalls, maxUserCalls),
	}
}

// Serve serves requests until ctx ends. Connections of l must be Unix connections: the kernel says who the caller is,
// so any user may connect. It returns nil when ctx has ended, running requests have been answered and l is closed.
//
//	POST /api/v1/cvar   a Request; sets a control variable, by root or the ranks' owner
//	GET  /api/v1/cvar   reads one: parameters jobid, world, uid, rank (0,2-5), name, object (kind:name)
//	POST /api/v1/push   does what OnPush says, for root and the exporter's own user
//	GET  /api/v1/…      what OnRead says
//
// The answer is an Answer; to a push, a PushAnswer.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	// Neither a client that goes away nor the end of ctx cancels a write: only the end of the grace does.
	work, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	var calls sync.RWMutex
	defer calls.Lock() // waits for them, and lets in no more
	defer breakOff()
	server := &http.Server{
		Handler:           s.handler(work, &calls),
		ConnContext:       s.withCaller,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(&listener{Listener: l, conns: newPlaces(maxConns, maxUserConns)})
	}()
	select {
	case err := <-served:
		_ = server.Close()
		return fmt.Errorf("exporter: serving the control socket %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(work, s.grace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		breakOff()
		// Clients that still wait learn what was restored.
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

// handler serves requests. The end of work cancels those that are running. Each holds calls shared; when it is held for
// good, there are no more.
func (s *Server) handler(work context.Context, calls *sync.RWMutex) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(context.Context, mpit.Peer, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			refuse := func(status int, why string) {
				s.answer.JSON(w, status, Answer{Result: Refused, Error: why, Ranks: []RankAnswer{}})
			}
			if !calls.TryRLock() {
				refuse(http.StatusServiceUnavailable, "the exporter is ending")
				return
			}
			defer calls.RUnlock()
			caller, ok := r.Context().Value(callerKey{}).(mpit.Peer)
			if !ok { // only by a bug
				refuse(http.StatusForbidden, "it is not known who asks")
				return
			}
			if !s.calls.of(caller.UID).Take(caller.UID, 1) {
				refuse(http.StatusServiceUnavailable, "too many requests at once")
				return
			}
			defer s.calls.of(caller.UID).Give(caller.UID, 1)
			if caller.UID != 0 {
				pace := time.NewTimer(s.pace)
				defer func() {
					defer pace.Stop()
					select {
					case <-pace.C:
					case <-work.Done():
					}
				}()
			}
			ctx, cancel := context.WithTimeout(work, requestTimeout)
			defer cancel()
			if uid := api.Viewer(r.Context()); uid != nil { //nolint:contextcheck // it says who asks, and ctx how long
				ctx = api.WithViewer(ctx, *uid)
			}
			f(ctx, caller, w, r)
		})
	}
	handle("POST /api/v1/cvar", s.servePost)
	handle("GET /api/v1/cvar", s.serveGet)
	handle("POST /api/v1/push", s.servePush)
	mux.HandleFunc("GET /api/v1/", s.serveRead)
	return mux
}

// OnRead says what answers other requests to read, which have a viewer (api.WithViewer) unless their user sees all. Its
// RemoteAddr is "uid N". Before it is called such requests are refused.
func (s *Server) OnRead(read http.Handler) { s.read.Store(&read) }

func (s *Server) serveRead(w http.ResponseWriter, r *http.Request) {
	caller, known := r.Context().Value(callerKey{}).(mpit.Peer)
	read := s.read.Load()
	if read == nil || !known {
		s.answer.Error(w, http.StatusNotImplemented, errors.New("this exporter only pushes: nothing can be read here"))
		return
	}
	r = r.WithContext(r.Context()) // a copy
	r.RemoteAddr = fmt.Sprintf("uid %d", caller.UID)
	(*read).ServeHTTP(w, r)
}

func (s *Server) servePost(ctx context.Context, caller mpit.Peer, w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(http.MaxBytesReader(w, r.Body, maxBody))
	answer := Answer{Ranks: []RankAnswer{}}
	if err != nil {
		err = badRequest("the request can't be understood: %w", err)
	} else {
		answer, err = s.set(ctx, caller, req)
	}
	status := answer.conclude(err)
	s.cfg.Count(answer.Result)
	s.record(caller, req, &answer)
	s.answer.JSON(w, status, answer)
}

func (s *Server) serveGet(ctx context.Context, caller mpit.Peer, w http.ResponseWriter, r *http.Request) {
	req, err := RequestOf(r.URL.Query())
	answer := Answer{Ranks: []RankAnswer{}}
	if err != nil {
		err = badRequest("parameter %w", err)
	} else {
		answer, err = s.get(ctx, caller, req)
	}
	s.answer.JSON(w, answer.conclude(err), answer)
}

// get reads a variable of a rank that the caller may see.
func (s *Server) get(ctx context.Context, caller mpit.Peer, req *Request) (Answer, error) {
	world, answer, err := s.choose(ctx, caller, req)
	if err != nil {
		return answer, err
	}
	plans, err := world.describe(ctx, req)
	if err != nil {
		return answer, err
	}
	answer.describe(plans)
	for _, p := range plans {
		answer.Ranks = append(answer.Ranks, RankAnswer{Rank: p.target.ID.Rank, State: Read, Value: p.format(p.old)})
	}
	return answer, nil
}

// choose begins an answer with the world that a request means, of those that ctx lets it see.
func (s *Server) choose(ctx context.Context, caller mpit.Peer, req *Request) (*world, Answer, error) {
	answer := Answer{JobID: req.JobID, World: req.World, Name: req.Name, Object: req.Object, Ranks: []RankAnswer{}}
	ranks := s.cfg.Targets()
	if uid := api.Viewer(ctx); uid != nil {
		ranks = slices.DeleteFunc(ranks, func(t Target) bool { return t.UID != *uid })
	}
	w, err := chooseWorld(ranks, caller, req)
	if err == nil {
		answer.JobID, answer.World = w.key.job, w.key.world
	}
	return w, answer, err
}

// set writes a variable. All ranks are asked, and all rules checked, before the first rank is changed.
func (s *Server) set(ctx context.Context, caller mpit.Peer, req *Request) (Answer, error) {
	world, answer, err := s.choose(ctx, caller, req)
	if err != nil {
		return answer, err
	}
	if err := world.permit(caller, s.nobody); err != nil {
		return answer, err
	}
	leave, err := s.turns.Take(ctx, world.key)
	if err != nil {
		return answer, refusef(http.StatusServiceUnavailable,
			"another request is setting control variables of this world: %w", err)
	}
	defer leave()
	plans, err := world.describe(ctx, req)
	if err != nil {
		return answer, err
	}
	answer.describe(plans)
	if err := world.check(plans); err != nil {
		return answer, err
	}
	if err := parsePlans(plans, *req.Value); err != nil {
		return answer, err
	}
	answer.Ranks, err = perform(ctx, plans)
	ids := make([]identity.Identity, len(plans))
	for i := range plans {
		ids[i] = plans[i].target.ID
	}
	s.cfg.Written(ids...)
	return answer, err
}
