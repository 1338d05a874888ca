// Package api serves what the exporter knows as JSON, read-only: ranks, what MPI_T offers in them, the values of their
// variables, and the samples that they kept at MPI_Pcontrol(2). Its types are the answers, for servers and clients.
//
// It isn't the control socket, which writes to ranks (package control), or the page for scrapers (package
// exposition). It has no state: it gets everything from the exporter (Source).
//
// Begin reading at Handler. catalogue.go has the types of a catalogue, read.go reads one from a rank, ask.go chooses
// the ranks to ask; values.go and kept.go have the values, status.go the ranks.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/respond"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
)

// maxReads bounds the requests for catalogues, values and kept samples that are served at once: their answers may be
// large, and a catalogue costs the rank's process a little time.
const maxReads = 4

// timeout is how long ranks may take to answer.
const timeout = 10 * time.Second

// Source is the exporter's ranks. It is safe for concurrent use.
type Source interface {
	// Ranks returns all ranks that are connected or kept, in the order of their identities.
	Ranks() []RankStatus
	// Connected returns those that can be asked, in the same order.
	Connected(which Selector) []Connected
	// Mapper returns the rules in force.
	Mapper() *variables.Mapper
	// Values returns what is on the page, which it brings up to date first.
	Values(ctx context.Context, which Selector) (ValueList, error)
	// Kept returns what ranks kept at their last MPI_Pcontrol(2).
	Kept(which Selector) KeptList
}

// Handler serves:
//
//	GET /api/v1/ranks       a RankList
//	GET /api/v1/catalogue   a CatalogueList: one for each MPI_COMM_WORLD, read from a connected rank of it; with parameters
//	                        jobid, world, user or rank one for each rank that has these labels (at most 16)
//	GET /api/v1/values      a ValueList: what the variables of ranks are now; the same parameters
//	GET /api/v1/kept        a KeptList: what ranks kept at their last MPI_Pcontrol(2); the same parameters
//
// Errors are {"error": "…"}.
func Handler(of Source, log *slog.Logger) http.Handler {
	h := &handler{Source: of, answer: respond.Writer{Log: log}, reads: make(chan struct{}, maxReads)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ranks", func(w http.ResponseWriter, _ *http.Request) {
		h.answer.JSON(w, http.StatusOK, RankList{Ranks: h.Ranks()})
	})
	mux.HandleFunc("GET /api/v1/catalogue", h.read(h.serveCatalogue))
	mux.HandleFunc("GET /api/v1/kept", h.read(h.serveKept))
	mux.HandleFunc("GET /api/v1/values", h.read(h.serveValues))
	return mux
}

type handler struct {
	Source
	answer respond.Writer
	reads  chan struct{} // one token for each request that may be large
}

// read bounds requests with large answers, and reads which ranks they name.
func (h *handler) read(serve func(http.ResponseWriter, *http.Request, Selector)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case h.reads <- struct{}{}:
			defer func() { <-h.reads }()
		default:
			h.answer.Error(w, http.StatusServiceUnavailable,
				fmt.Errorf("%d catalogues, values or kept samples are being read already; try again soon",
					cap(h.reads)))
			return
		}
		which, err := selectorOf(req.URL.Query())
		if err != nil {
			h.answer.Error(w, http.StatusBadRequest, err)
			return
		}
		serve(w, req, which)
	}
}

func (h *handler) serveKept(w http.ResponseWriter, _ *http.Request, which Selector) {
	h.answer.JSON(w, http.StatusOK, h.Kept(which))
}

func (h *handler) serveValues(w http.ResponseWriter, req *http.Request, which Selector) {
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	list, err := h.Values(ctx, which)
	switch {
	case err != nil:
		h.answer.Error(w, http.StatusInternalServerError, err)
	case len(list.Ranks) == 0 && !which.All():
		h.answer.Error(w, http.StatusNotFound, errors.New("no rank of this node has these labels"))
	default:
		h.answer.Compact(w, http.StatusOK, list)
	}
}
