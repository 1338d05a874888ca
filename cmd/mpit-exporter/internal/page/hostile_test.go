package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// lookBytes is what docs/reliability.md has for what jobs do now, and for two answers on it that are being made.
const lookBytes = (76 + 2*8) << 20

// measuring is a client who measures before it takes the first byte.
type measuring struct {
	http.ResponseWriter
	measure func()
}

func (m *measuring) Write(p []byte) (int, error) {
	if m.measure != nil {
		m.measure()
		m.measure = nil
	}
	return m.ResponseWriter.Write(p)
}

// Jobs and reports take no more memory than the table in docs/reliability.md says while a real exporter is asked for
// them, some of whose ranks have more levels, with long names, than an answer has room for.
func TestHostileMemory(t *testing.T) {
	mapper, err := variables.New(variables.Config{TimerInterval: time.Second, Rules: rules.Defaults()})
	require.NoError(t, err)
	e, err := exporter.New(exporter.Config{Mapper: mapper})
	require.NoError(t, err)
	l, err := mpit.Listen(filepath.Join(mpittest.ShortDir(t), "s"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	defer func() {
		cancel()
		assert.NoError(t, <-served)
		_ = l.Close()
	}()
	for i := range 3 {
		of := mpittest.Config{Hello: mpit.Hello{Rank: i, Size: 3, LibraryVersion: "Open MPI v4.1.4",
			Attributes: map[string]string{"MPIT_JOB_ID": "17"}},
			UnderWay: &mpit.UnderWay{Observed: time.Hour}}
		for v := range 20 {
			of.Variables = append(of.Variables, mpit.Variable{Name: fmt.Sprintf("level_%d", v), Class: mpit.ClassLevel,
				Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8, Bind: mpit.BindComm, Continuous: true})
		}
		for o := range 900 {
			of.Objects = append(of.Objects, mpit.Object{Kind: mpit.BindComm, Size: 3, Rank: i,
				Name: fmt.Sprint(strings.Repeat("x", 60), i, o)})
		}
		r := mpittest.New(of)
		require.NoError(t, r.Connect(ctx, l.Path()))
		defer r.Kill()
	}
	require.Eventually(t, func() bool {
		list, err := e.Values(ctx, api.Selector{}, true)
		return err == nil && len(list.Ranks) == 3 && len(list.Ranks[2].Variables) == 20
	}, 2*time.Minute, 100*time.Millisecond)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := int64(heap()), int64(0)
	measure := func() { most = max(most, int64(heap())-before) }
	h := NewLive(func(ctx context.Context) (api.ValueList, error) {
		list, err := e.Window(ctx)
		measure()
		return list, err
	}, nil).Handler(api.NewTurns(), slog.New(slog.DiscardHandler))
	for _, path := range []string{"jobs", "report", "report?window=1s", "report?jobid=17", "jobs?window=0"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(&measuring{w, measure}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, nil))
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	}
	t.Logf("%d MiB", most>>20)
	assert.Less(t, most, int64(lookBytes))
	assert.Greater(t, most, int64(1<<20), "it has been measured")
}
