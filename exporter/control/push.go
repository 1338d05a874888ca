package control

import (
	"context"
	"net/http"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// PushAnswer is what the control socket says to a request to push.
type PushAnswer struct {
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
	Points int    `json:"points"` // that the receiver has accepted
}

// PushFunc sends what the exporter has now, in time before ctx ends, and returns how many points the receiver has
// accepted. It is called from several goroutines.
type PushFunc func(ctx context.Context) (points int, err error)

// OnPush says what POST /api/v1/push on the control socket does; before it is called, and with nil, such requests are
// refused.
func (s *Server) OnPush(push PushFunc) { s.push.Store(&push) }

// servePush lets root, and whoever runs the exporter, have its figures sent now. Others are refused: what is sent
// costs all ranks an answer and goes to a place that is not theirs.
func (s *Server) servePush(ctx context.Context, caller mpit.Peer, w http.ResponseWriter, _ *http.Request) {
	push := s.push.Load()
	points, err := 0, error(nil)
	switch {
	case caller.UID != 0 && (caller.UID != s.own || caller.UID == s.nobody):
		err = forbidden("only root and the exporter's own user (uid %d) may ask it to push, and the caller is uid %d",
			s.own, caller.UID)
	case push == nil || *push == nil:
		err = refusef(http.StatusNotImplemented,
			"this exporter does not push: start it with --otlp, or with OTEL_EXPORTER_OTLP_ENDPOINT in its environment")
	default:
		points, err = (*push)(ctx)
	}
	answer := PushAnswer{Points: points}
	var status int
	answer.Result, answer.Error, status = conclude(err)
	attrs := []any{
		"uid", caller.UID, "user", s.cfg.User(caller.UID), "pid", caller.PID, "points", points, "result",
		answer.Result,
	}
	if err == nil {
		s.cfg.Log.Info("Pushed when asked to", attrs...)
	} else {
		s.cfg.Log.Warn("Not pushed when asked to", append(attrs, "err", clean.Text(answer.Error, 1024))...)
	}
	s.answer.JSON(w, status, answer)
}
