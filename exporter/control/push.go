package control

import (
	"context"
	"errors"
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
	var (
		points int
		err    error
	)
	switch {
	case caller.UID != 0 && (caller.UID != s.own || caller.UID == s.nobody):
		err = forbidden("only root and the exporter's own user (uid %d) may ask it to push, and the caller is uid %d",
			s.own, caller.UID)
	case push == nil || *push == nil:
		err = refusef(http.StatusNotImplemented,
			"this exporter does not push: start it with --otlp, or with OTEL_EXPORTER_OTLP_ENDPOINT in its "+
				"environment")
	default:
		points, err = (*push)(ctx)
	}
	answer, status := concludePush(points, err)
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

// concludePush is the answer to a request, and its HTTP status.
func concludePush(points int, err error) (answer PushAnswer, status int) {
	if err == nil {
		return PushAnswer{Result: OK, Points: points}, http.StatusOK
	}
	answer = PushAnswer{Result: Failed, Error: err.Error(), Points: points}
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		answer.Result = Refused
		return answer, refused.status
	}
	return answer, http.StatusBadGateway
}
