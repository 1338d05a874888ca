package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// askToPush makes a request of the control socket as a user.
func (n *controlNode) askToPush(uid uint32, method string) (status int, answer PushAnswer) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), method, "http://control/api/v1/push", http.NoBody)
	require.NoError(n.t, err)
	response, err := as(uid, n.path).Do(req)
	require.NoError(n.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	if strings.HasPrefix(string(text), "{") {
		require.NoError(n.t, json.Unmarshal(text, &answer), string(text))
	}
	return response.StatusCode, answer
}

func TestPushWhenAsked(t *testing.T) {
	n := startControl(t)
	status, answer := n.askToPush(ownUID, http.MethodPost)
	assert.Equal(t, http.StatusNotImplemented, status)
	assert.Equal(t, Refused, answer.Result)
	assert.Contains(t, answer.Error, "start it with --otlp")

	for _, test := range []struct {
		name   string
		points int
		err    error
		status int
		want   PushAnswer
	}{
		{"all delivered", 12, nil, http.StatusOK, PushAnswer{Result: OK, Points: 12}},
		{"nothing to deliver", 0, nil, http.StatusOK, PushAnswer{Result: OK}},
		{"receiver away", 0, errors.New("refused by 10.0.0.1"), http.StatusBadGateway,
			PushAnswer{Result: Failed, Error: "refused by 10.0.0.1"}},
		{"partly", 7, errors.New("too large"), http.StatusBadGateway,
			PushAnswer{Result: Failed, Error: "too large", Points: 7}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.OnPush(func(ctx context.Context) (int, error) {
				_, bounded := ctx.Deadline()
				assert.True(t, bounded)
				return test.points, test.err
			})
			status, answer := n.askToPush(ownUID, http.MethodPost)
			assert.Equal(t, test.status, status)
			assert.Equal(t, test.want, answer)
		})
	}
	assert.Contains(t, n.log.String(), `level=INFO msg="Pushed when asked to"`)
	assert.Contains(t, n.log.String(), `level=WARN msg="Not pushed when asked to"`)

	status, _ = n.askToPush(ownUID, http.MethodGet)
	assert.Equal(t, http.StatusNotImplemented, status, "it is a question, and nothing is pushed")
	n.OnPush(nil)
	_, answer = n.askToPush(ownUID, http.MethodPost)
	assert.Equal(t, Refused, answer.Result)
}

// TestPushWhoMay: root and whoever runs the exporter, and nobody who can't be told apart.
func TestPushWhoMay(t *testing.T) {
	needRoot(t)
	const own = 4711
	for _, test := range []struct {
		name        string
		own, caller uint32
		allowed     bool
	}{
		{"root", own, 0, true},
		{"the exporter's user", own, own, true},
		{"another user", own, otherUID, false},
		{"another user, of root's exporter", 0, otherUID, false},
		{"users who all look alike", nobodyUID, nobodyUID, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startControl(t, func(s *Server) { s.own, s.nobody = test.own, nobodyUID })
			pushes := 0
			n.OnPush(func(context.Context) (int, error) { pushes++; return 1, nil })
			status, answer := n.askToPush(test.caller, http.MethodPost)
			if test.allowed {
				assert.Equal(t, http.StatusOK, status)
				assert.Equal(t, 1, pushes)
				return
			}
			assert.Equal(t, http.StatusForbidden, status)
			assert.Equal(t, Refused, answer.Result)
			assert.Contains(t, answer.Error, "only root and the exporter's own user")
			assert.Zero(t, pushes)
		})
	}
}
