package respond

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriter(t *testing.T) {
	var log bytes.Buffer
	to := Writer{slog.New(slog.NewTextHandler(&log, nil))}
	evil := map[string]string{"a": "\x1b\x7f\u009bü"} // ESC, DEL and CSI are obeyed by terminals
	for _, test := range []struct {
		name   string
		write  func(w http.ResponseWriter)
		status int
		want   string
	}{
		{"for people", func(w http.ResponseWriter) { to.JSON(w, http.StatusOK, evil) }, 200,
			"{\n  \"a\": \"\\u001b\\u007f\\u009bü\"\n}\n"},
		{"for programs", func(w http.ResponseWriter) { to.Compact(w, http.StatusOK, evil) }, 200,
			"{\"a\":\"\\u001b\\u007f\\u009bü\"}\n"},
		{"an error", func(w http.ResponseWriter) { to.Error(w, http.StatusNotFound, errors.New("no rank")) }, 404,
			"{\n  \"error\": \"no rank\"\n}\n"},
		{"nothing that JSON has", func(w http.ResponseWriter) { to.JSON(w, http.StatusOK, func() {}) }, 500,
			"encoding the answer failed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.write(w)
			assert.Equal(t, test.status, w.Code)
			assert.Equal(t, test.want, w.Body.String())
			if w.Code != http.StatusInternalServerError {
				assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			}
		})
	}
	assert.Contains(t, log.String(), "encoding an answer failed")
}

// What is written in pieces is what encoding/json writes as a whole.
func TestPieces(t *testing.T) {
	type element struct {
		Name string         `json:"name"`
		Map  map[string]int `json:"map,omitempty"`
		List []int          `json:"list"`
	}
	type answer struct {
		Time  string    `json:"time"`
		List  []element `json:"list"`
		Empty []element `json:"empty"`
		Nil   []element `json:"nil"`
		Left  []element `json:"left,omitempty"`
		More  int       `json:"more,omitempty"`
		At    *element  `json:"at"`
	}
	full := answer{Time: "now", List: []element{{"a", map[string]int{"x": 1}, []int{1, 2}}, {"b", nil, nil}},
		Empty: []element{}, Left: []element{{Name: "<&>"}}, More: 3, At: &element{}}
	for _, v := range []any{full, answer{}, struct{}{}, struct {
		More int `json:"more,omitempty"`
	}{}, struct {
		List []string `json:"list"`
	}{[]string{"x"}}} {
		for _, indent := range []string{"", "  "} {
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetIndent("", indent)
			require.NoError(t, encoder.Encode(v))
			w := httptest.NewRecorder()
			Writer{slog.New(slog.DiscardHandler)}.write(w, http.StatusOK, v, indent)
			assert.Equal(t, want.String(), w.Body.String())
		}
	}
}
