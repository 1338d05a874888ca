package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/client"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// ask asks a Prometheus that begins every answer as one does, and goes on as it likes.
func ask(ctx context.Context, t *testing.T, answer func(w io.Writer)) ([]*job.Report, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`)
		answer(w)
	}))
	defer server.Close()
	return AskPrometheus(ctx, server.URL, nil, jobtest.Began, time.Hour)
}

// What a rank has costs as much as it is: with the square of these series the test would run into its time limit.
func TestManySeriesOfOneRank(t *testing.T) {
	if testing.Short() {
		t.Skip("fewer wouldn't show it")
	}
	const many = 100_000
	v := newVector(jobtest.Began)
	for n := range many {
		v.takeLasting(&model.Sample{Value: 1, Metric: model.Metric{"__name__": "mpit_call_time_seconds_sum", "rank": "0",
			"function": "MPI_Send", "comm": model.LabelValue(strconv.Itoa(n))}})
	}
	reports := job.Of(v.answers(), nil)
	require.Len(t, reports, 1)
	assert.Len(t, reports[0].Calls, many)
}

// An answer without end ends where there is no more room.
func TestEndlessAnswer(t *testing.T) {
	sent := 0
	_, err := ask(t.Context(), t, func(w io.Writer) {
		_, _ = io.WriteString(w, `],"more":[{}`)
		for err := error(nil); err == nil && sent < 256<<20; {
			var wrote int
			wrote, err = io.WriteString(w, strings.Repeat(",{}", 10_000))
			sent += wrote
		}
	})
	require.ErrorContains(t, err, "the answer is too large: it would take more than 2048 MiB of memory; choose with "+
		"--jobid")
	assert.Less(t, sent, 64<<20)
}

func TestTooManyRanks(t *testing.T) {
	v := newVector(jobtest.Began)
	read := func(from, to int) error {
		text := `{"data":{"result":[`
		for n := from; n < to; n++ {
			text += fmt.Sprintf(`{"metric":{"__name__":"mpit_rank_up","jobid":"%d"},"value":[0,"1"]},`, n)
		}
		text = strings.TrimSuffix(text, ",") + "]}}"
		return v.read(json.NewDecoder(strings.NewReader(text)), v.takeCurrent)
	}
	for n := range maxRanks - 1 {
		v.takeCurrent(&model.Sample{Metric: model.Metric{"__name__": "mpit_rank_up",
			"jobid": model.LabelValue(strconv.Itoa(n))}})
	}
	require.NoError(t, read(maxRanks-1, maxRanks))
	require.ErrorIs(t, read(maxRanks, maxRanks+1), client.ErrTooLarge)
}

func TestGarbage(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"data":7}`, `{"data":{"result":{}}}`,
		`{"data":{"result":[{"metric":7}]}}`,
		`{"data":{"result":[]}`, "<html>"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text)
		}))
		_, err := AskPrometheus(t.Context(), server.URL, nil, jobtest.Began, time.Hour)
		assert.ErrorContains(t, err, "like Prometheus", text)
		server.Close()
	}
	_, err := AskPrometheus(t.Context(), "prometheus:9090", nil, jobtest.Began, time.Hour)
	assert.ErrorContains(t, err, "--prometheus \"prometheus:9090\": an address such as")
}

// Whoever asks is not held up by what comes, or doesn't.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := ask(ctx, t, func(w io.Writer) {
		cancel()
		for err := error(nil); err == nil; { // until it hangs up
			_, err = io.WriteString(w, strings.Repeat(" ", 1<<10))
		}
	})
	assert.ErrorIs(t, err, context.Canceled)
}

func FuzzSamples(f *testing.F) {
	f.Add(`{"data":{"result":[{"metric":{"__name__":"mpit_call_size_bytes_bucket","le":"4","rank":"0"},"value":[0,"1"]},` +
		`{"metric":{"__name__":"mpit_call_time_seconds"},"histogram":[0,{"count":"3","sum":"30","buckets":[[0,"8","16","3"]]}]},` +
		`{"metric":{"__name__":"mpit_call_running_info","offset":"0x10"},"value":[0,"1"]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v := newVector(jobtest.Began)
		err := v.read(json.NewDecoder(strings.NewReader(text)), func(s *model.Sample) {
			v.takeLasting(s)
			v.takeCurrent(s)
		})
		for _, r := range job.Of(v.answers(), nil) {
			if err := JSON(r, io.Discard); err != nil {
				t.Error(err)
			}
		}
		_ = err
	})
}
