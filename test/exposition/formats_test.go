// Package exposition reads what the exporter serves with the parser that Prometheus reads it with.
package exposition

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter"
	"github.com/mpit-exporter/mpit-exporter/mapping/variables"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
)

// page is what Prometheus understands of an answer.
type page struct {
	values  map[string]float64 // by the series' labels; classic histograms as their parts
	natives map[string]string  // native histograms
	created map[string]int64   // milliseconds
	meta    map[string]string  // types, units and help, by family
}

// read parses an answer as Prometheus does.
func read(t *testing.T, body []byte, contentType string) page {
	t.Helper()
	p := page{map[string]float64{}, map[string]string{}, map[string]int64{}, map[string]string{}}
	parser, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{
		KeepClassicOnClassicAndNativeHistograms: true, OpenMetricsSkipSTSeries: true,
	})
	require.NoError(t, err)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return p
		}
		require.NoError(t, err)
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			p.meta["type "+string(name)] = string(kind)
		case textparse.EntryHelp:
			name, help := parser.Help()
			p.meta["help "+string(name)] = string(help)
		case textparse.EntryUnit:
			name, unit := parser.Unit()
			p.meta["unit "+string(name)] = string(unit)
		case textparse.EntrySeries:
			var l labels.Labels
			parser.Labels(&l)
			_, at, value := parser.Series()
			require.Nil(t, at, "no series has a time")
			if _, twice := p.values[l.String()]; twice {
				require.Fail(t, "a series stands twice", l.String())
			}
			p.values[l.String()] = value
			if created := parser.StartTimestamp(); created != 0 {
				p.created[l.String()] = created
			}
		case textparse.EntryHistogram:
			var l labels.Labels
			parser.Labels(&l)
			_, _, h, _ := parser.Histogram()
			require.NoError(t, h.Validate(), l.String())
			p.natives[l.String()] = h.String()
		default:
			require.Fail(t, "unexpected entry", "%v", entry)
		}
	}
}

// counting says whether a series counts scrapes, so that no two of them agree.
func counting(series string) bool {
	for _, name := range []string{"mpit_exporter_", "mpit_rank_agent_"} {
		if strings.HasPrefix(series, `{__name__="`+name) {
			return true
		}
	}
	return false
}

// agree compares what both say; created times may differ by what a float64 of seconds can't hold.
func agree(t *testing.T, want, got page) {
	t.Helper()
	assert.Equal(t, want.meta, got.meta)
	assert.Equal(t, want.natives, got.natives)
	sameValues(t, want, got)
	assert.Len(t, got.created, len(want.created))
	for series, at := range want.created {
		if !counting(series) {
			assert.InDelta(t, at, got.created[series], 1, series)
		}
	}
}

func sameValues(t *testing.T, want, got page) {
	t.Helper()
	assert.Len(t, got.values, len(want.values))
	for series, value := range want.values {
		switch is, ok := got.values[series]; {
		case !ok:
			assert.Fail(t, "missing", series)
		case value != is && !counting(series) && !(math.IsNaN(value) && math.IsNaN(is)):
			assert.Equal(t, value, is, series)
		}
	}
}

// get scrapes a handler and undoes the coding.
func get(t *testing.T, h http.Handler, accept, coding string) (body []byte, contentType string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", coding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var from io.Reader = w.Body
	switch coding {
	case "identity":
		coding = ""
	case "gzip":
		z, err := gzip.NewReader(from)
		require.NoError(t, err)
		from = z
	}
	require.Equal(t, coding, w.Header().Get("Content-Encoding"))
	body, err := io.ReadAll(from)
	require.NoError(t, err)
	return body, w.Header().Get("Content-Type")
}

// gather makes client_golang's messages of what a handler serves as protobuf.
func gather(t *testing.T, h http.Handler, accept string) (families []*dto.MetricFamily, err error) {
	t.Helper()
	body, contentType := get(t, h, accept, "identity")
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.Format(contentType))
	for {
		f := &dto.MetricFamily{}
		switch err := decoder.Decode(f); {
		case errors.Is(err, io.EOF):
			return families, nil
		case err != nil:
			return nil, err
		}
		families = append(families, f)
	}
}

// ranks are those of the exporter's golden pages: one that has everything, and one of each library.
func ranks(t *testing.T) map[string]mpittest.Config {
	all := map[string]mpittest.Config{"everything": mpittest.Everything()}
	list, err := catalogue.Read(filepath.Join("..", "..", "mapping", "testdata", "catalogues"))
	require.NoError(t, err)
	began := time.Date(2025, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for _, c := range list {
		all[c.Version] = mpittest.Config{
			Hello: mpit.Hello{
				ID: mpit.RankID{1}, PID: 4242, Rank: 1, Size: 4, ThreadLevel: 3, InitTime: began, AgentVersion: "1.0",
				LibraryVersion: c.Version, Host: `quoted " and \`, Executable: "/usr/bin/app",
			},
			Variables:  c.MPIT(),
			Elements:   c.Elements(mpittest.PerPeer),
			Categories: c.Categories(),
			Objects: []mpit.Object{
				{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: 4, Rank: 1, Created: began},
				{Kind: mpit.BindComm, Name: "two\nlines", Size: 2, Rank: 1, Created: began},
				{Kind: mpit.BindWin, Name: "ghosts", Size: 4, Rank: 1, Created: began},
			},
		}
	}
	all["distributions"] = distributions(began)
	require.Greater(t, len(all), 3)
	return all
}

// distributions is a rank with what the call profile measures: nothing, the shortest, the longest, all kinds, and as
// many as a lie can have.
func distributions(began time.Time) mpittest.Config {
	cfg := mpittest.Config{Hello: mpit.Hello{ID: mpit.RankID{1}, PID: 4242, Size: 1, ThreadLevel: 3, InitTime: began,
		AgentVersion: "1.0"}}
	every := make([]time.Duration, 44)
	for k := range every {
		every[k] = time.Duration(math.Ldexp(1e9, k-30))
	}
	lies := slices.Repeat([]any{uint64(math.MaxUint64)}, mpittest.DistributionElements)
	for i, values := range [][]any{
		mpittest.Distribution(), mpittest.Distribution(0), mpittest.Distribution(5000 * time.Second),
		mpittest.Distribution(every...), lies,
		mpittest.Distribution(time.Nanosecond, time.Second, time.Second), mpittest.Distribution(2, 2, 3),
	} {
		v := mpittest.DistributionVariable(fmt.Sprint("mpit_call_time_MPI_", i), mpit.BindNone)
		cfg.Variables = append(cfg.Variables, v)
		cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class, Values: values})
	}
	for i, values := range [][]any{mpittest.Sizes(0, 1, 2, 8, 1024, 1<<42, 1<<43), lies} {
		v := mpittest.SizesVariable(fmt.Sprint("mpit_call_size_MPI_", i), mpit.BindNone)
		cfg.Variables = append(cfg.Variables, v)
		cfg.Values = append(cfg.Values, mpittest.Value{Name: v.Name, Class: v.Class, Values: values})
	}
	return cfg
}

// serve is an exporter that knows the rank and has asked it.
func serve(t *testing.T, cfg mpittest.Config) *exporter.Exporter {
	t.Helper()
	mapper, err := variables.New(variables.Config{TimerInterval: time.Hour})
	require.NoError(t, err)
	e, err := exporter.New(exporter.Config{Mapper: mapper})
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "mpit") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := mpit.Listen(filepath.Join(dir, "s"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	r := mpittest.New(cfg)
	require.NoError(t, r.Connect(ctx, l.Path()))
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-served)
		r.Kill()
		_ = l.Close()
	})
	// Until what the rank is asked for has come: values first, then what describes them.
	last, same := 0, 0
	require.Eventually(t, func() bool {
		body, contentType := get(t, e.Handler(), "", "identity")
		n := len(read(t, body, contentType).values)
		if n == last && strings.Contains(string(body), "\nmpit_rank_up{") {
			same++
		} else {
			same = 0
		}
		last = n
		return same >= 5
	}, 2*time.Minute, 10*time.Millisecond)
	return e
}

// Every format in every coding is to Prometheus what promhttp makes of the families in protobuf, and all formats say the same.
func TestFormatsAreWhatPromhttpServes(t *testing.T) {
	formats := map[string]string{
		"text":        "text/plain;version=0.0.4",
		"OpenMetrics": "application/openmetrics-text;version=1.0.0",
		"protobuf":    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	}
	for name, cfg := range ranks(t) {
		t.Run(name, func(t *testing.T) {
			e := serve(t, cfg)
			gathered := func() ([]*dto.MetricFamily, error) { return gather(t, e.Handler(), formats["protobuf"]) }
			reference := promhttp.HandlerFor(prometheus.GathererFunc(gathered), promhttp.HandlerOpts{
				EnableOpenMetrics: true,
			})
			pages := map[string]page{}
			for format, accept := range formats {
				body, contentType := get(t, reference, accept, "identity")
				want := read(t, body, contentType)
				require.NotEmpty(t, want.values)
				for _, coding := range []string{"identity", "gzip"} {
					t.Run(fmt.Sprint(format, ", ", coding), func(t *testing.T) {
						body, contentType := get(t, e.Handler(), accept, coding)
						pages[format] = read(t, body, contentType)
						agree(t, want, pages[format])
					})
				}
			}
			if name == "distributions" {
				natives, empty := 0, 0
				for series, h := range pages["protobuf"].natives {
					if strings.Contains(series, "mpit_call_time_seconds") || strings.Contains(series, "mpit_call_size_bytes") {
						natives++
						empty += strings.Count(h, "{count:0, sum:0}")
					}
				}
				assert.Equal(t, len(cfg.Variables), natives)
				assert.Equal(t, 1, empty, "all but the first have counted")
			}
			sameValues(t, pages["text"], pages["OpenMetrics"])
			sameValues(t, pages["text"], pages["protobuf"])
			assert.Empty(t, pages["text"].created)
			assert.Empty(t, pages["OpenMetrics"].created)
			assert.NotEmpty(t, pages["protobuf"].created)
		})
	}
}
