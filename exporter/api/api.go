// Package api serves what the exporter knows as JSON, read-only: ranks, what MPI_T offers in them, and the values of
// their variables. Its types are the answers, for servers and clients.
//
// It isn't the control socket, which writes to ranks (package control), or the page for scrapers (package
// exposition). It has no state: it gets everything from the exporter (Source).
//
// Begin reading at Handler. catalogue.go has the types of a catalogue, read.go reads one from a rank, ask.go chooses
// the ranks to ask; values.go has the values, status.go the ranks; sites.go asks for call sites, of which profile.go
// makes a profile.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/respond"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/turns"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// timeout is how long ranks may take to answer.
const timeout = 10 * time.Second

// Source is the exporter's ranks. It is safe for concurrent use.
type Source interface {
	// Ranks returns the ranks that are connected or kept, in the order of their identities.
	Ranks(which Selector) []RankStatus
	// Connected returns those that can be asked, in the same order.
	Connected(which Selector) []Connected
	// Mapper returns the rules in force.
	Mapper() *variables.Mapper
	// Refresh brings what stands on the page for such ranks up to date; Values returns it.
	Refresh(ctx context.Context, which Selector) error
	Values(which Selector) ValueList
}

// Handler serves:
//
//	GET /api/v1/ranks       a RankList
//	GET /api/v1/catalogue   a CatalogueList: one for each MPI_COMM_WORLD, read from a connected rank of it; with
//	                        parameters jobid, world or rank one for each rank that has these labels (at most 16);
//	                        user chooses, too
//	GET /api/v1/values      a ValueList: what the variables of ranks are now; the same parameters
//	GET /api/v1/sites       a SiteList: the places in the program where the ranks of one MPI_COMM_WORLD have waited most
//	GET /api/v1/pprof       what has been counted by call site in one MPI_COMM_WORLD, as pprof's profile.proto; likewise
//
// Errors are {"error": "…"}. Answers are made in turns. Requests with a viewer (WithViewer) get that user's ranks.
func Handler(of Source, turns *Turns, log *slog.Logger) http.Handler {
	h := &handler{Source: of, answer: respond.Writer{Log: log}, turns: turns, held: mpit.NewShares(maxAskedBytes, 0)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ranks", func(w http.ResponseWriter, req *http.Request) {
		which := Selector{UID: Viewer(req.Context())}
		h.inTurn(w, req, func() { h.answer.JSON(w, http.StatusOK, RankList{Ranks: h.Ranks(which)}) })
	})
	mux.HandleFunc("GET /api/v1/catalogue", h.of(h.serveCatalogue))
	mux.HandleFunc("GET /api/v1/values", h.of(h.serveValues))
	mux.HandleFunc("GET /api/v1/sites", h.of(h.serveSites))
	mux.HandleFunc("GET /api/v1/pprof", h.of(h.servePprof))
	return mux
}

type handler struct {
	Source
	answer respond.Writer
	turns  *Turns              // whose answers are made
	users  turns.Turns[uint32] // whose ranks are asked
	held   *mpit.Shares        // in bytes, by catalogues
}

// inTurn makes an answer when there are not too many that are being made.
func (h *handler) inTurn(w http.ResponseWriter, req *http.Request, answer func()) {
	leave, err := h.turns.Take(req)
	if err != nil {
		h.answer.Error(w, http.StatusServiceUnavailable, err)
		return
	}
	defer leave()
	answer()
}

// of reads which ranks a request names.
func (h *handler) of(serve func(http.ResponseWriter, *http.Request, Selector)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		which, err := selectorOf(req)
		if err != nil {
			h.answer.Error(w, http.StatusBadRequest, err)
			return
		}
		serve(w, req, which)
	}
}

func (h *handler) serveValues(w http.ResponseWriter, req *http.Request, which Selector) {
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	if err := h.Refresh(ctx, which); err != nil {
		h.answer.Error(w, http.StatusInternalServerError, err)
		return
	}
	h.inTurn(w, req, func() {
		if list := h.Values(which); len(list.Ranks) > 0 || len(list.LeftOut) > 0 || which.All() {
			h.answer.Compact(w, http.StatusOK, list)
			return
		}
		h.answer.Error(w, http.StatusNotFound, errors.New("no rank of this node has these labels"))
	})
}
