package client

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Any user may listen on the port where an exporter is expected: what it answers is bounded, by what would become of
// it.
func TestAnswersAreBounded(t *testing.T) {
	for text, room := range map[string]int{
		`"` + strings.Repeat("x", 1000) + `"`:           1000 * perByte,
		"[" + strings.Repeat("{},", 1000) + "{}]":       1000 * perObject,
		"[" + strings.Repeat(`"",`, 1000) + `""]`:       1000 * 2 * perQuote,
		"[" + strings.Repeat(" ", 1000*perByte) + "{}]": 1000 * perByte,
	} {
		var value any
		b := &bounded{from: strings.NewReader(text), room: room, left: room}
		require.ErrorIs(t, json.NewDecoder(b).Decode(&value), ErrTooLarge)
		require.ErrorIs(t, b.err, ErrTooLarge)
		b = &bounded{from: strings.NewReader(text), room: room, left: 40 * room}
		require.NoError(t, json.NewDecoder(b).Decode(&value))
		assert.NoError(t, b.err)
	}
}

func TestEndlessAnswer(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ranks":[{}`)
		for err := error(nil); err == nil && sent.Load() < 256<<20; {
			var wrote int
			wrote, err = io.WriteString(w, strings.Repeat(",{}", 10_000))
			sent.Add(int64(wrote))
		}
	}))
	defer server.Close()
	var list api.ValueList
	err := (&HTTP{URL: server.URL}).Get(t.Context(), "list", "", "values", &list)
	require.ErrorContains(t, err, "list: reading the answer of "+server.URL+"/api/v1/values: the answer is too "+
		"large: it would "+
		"take more than 1024 MiB of memory; choose a job with --jobid and --user")
	assert.Empty(t, list.Ranks)
	assert.Less(t, sent.Load(), int64(64<<20))
}
