package exporter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// everyTime makes each answer of an Exporter one for which the ranks are asked.
func everyTime(e *Exporter) { e.recent = 0 }

// flat makes of an answer what scrape makes of the page.
func flat(t *testing.T, l *api.ValueList) map[string]float64 {
	t.Helper()
	flat := map[string]float64{}
	put := func(variables []api.VariableValues, shared map[string]string) {
		for _, v := range variables {
			for _, s := range v.Series {
				labels := maps.Clone(shared)
				maps.Copy(labels, s.Labels)
				var texts []string
				for _, name := range slices.Sorted(maps.Keys(labels)) {
					texts = append(texts, fmt.Sprintf("%s=%q", name, labels[name]))
				}
				for suffix, text := range map[string]string{"": s.Value, "_count": s.Count, "_sum": s.Sum} {
					if text == "" {
						continue
					}
					number, err := strconv.ParseFloat(text, 64)
					require.NoError(t, err)
					key := v.Metric + suffix + "{" + strings.Join(texts, ",") + "}"
					assert.NotContains(t, flat, key, "twice")
					flat[key] = number
				}
			}
		}
	}
	for _, r := range l.Ranks {
		labels := map[string]string{"jobid": r.Rank.JobID, "world": r.Rank.World, "user": r.Rank.User,
			"rank": strconv.Itoa(r.Rank.Rank)}
		if r.Rank.Dup > 0 {
			labels["dup"] = strconv.Itoa(r.Rank.Dup)
		}
		put(r.Variables, labels)
	}
	return flat
}

// ofVariables leaves of a page what is no variable's out.
func ofVariables(page map[string]float64) map[string]float64 {
	own := map[string]bool{}
	for _, f := range Families() {
		own[f.Name] = true
	}
	maps.DeleteFunc(page, func(key string, _ float64) bool {
		name, _, _ := strings.Cut(key, "{")
		return own[name] || strings.HasPrefix(name, "mpit_exporter_")
	})
	return page
}

// requireSame compares number by number, for NaN is no other NaN.
func requireSame(t *testing.T, want, got map[string]float64) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for key := range want {
		if math.IsNaN(want[key]) && math.IsNaN(got[key]) {
			continue
		}
		require.Equal(t, math.Float64bits(want[key]+0), math.Float64bits(got[key]+0), key)
	}
}

// What is answered is what stands on the page, neither more nor less, whatever becomes of a rank.
func TestValuesAreThoseOfThePage(t *testing.T) {
	var none map[string]float64
	n := startNode(t, Config{}, everyTime)
	requireSame(t, none, flat(t, valuesFrom(t, n, "")))

	everything := mpittest.Everything()
	odd := mpit.Variable{Name: "odd", Class: mpit.ClassLevel, Datatype: mpit.DatatypeDouble, DatatypeBytes: 8}
	first := small("1", 0)
	first.Variables = append(first.Variables, odd)
	first.Values = append(first.Values, mpittest.Value{Name: "odd", Class: mpit.ClassLevel, Values: []any{math.NaN()}})
	second := small("1", 1)
	second.Variables = append(second.Variables, odd)
	second.Values = append(second.Values, mpittest.Value{Name: "odd", Class: mpit.ClassLevel,
		Values: []any{math.Inf(-1)}})
	a, b := mpittest.New(first), mpittest.New(second)
	n.connect(mpittest.New(everything), a, b)
	n.scrape()
	n.settle()
	same := func() {
		t.Helper()
		page := ofVariables(n.scrape())
		assert.NotEmpty(t, page)
		requireSame(t, page, flat(t, valuesFrom(t, n, "")))
	}
	same()
	list := valuesFrom(t, n, "?jobid=1")
	require.Len(t, list.Ranks, 2)
	n.kill(a) // it is late
	same()
	n.finish(b, mpit.EndFinalize)
	same()
}

func metricsOf(variables []api.VariableValues) (names []string) {
	for _, v := range variables {
		names = append(names, v.Metric)
	}
	return names
}

func valuesFrom(t *testing.T, n *node, query string) *api.ValueList {
	t.Helper()
	w := get(n.API(), "/api/v1/values"+query)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	list := fromJSON[api.ValueList](t, w)
	return &list
}

// Every variable of the simulated rank that has everything is named as its catalogue names it.
func TestValuesNameTheirVariables(t *testing.T) {
	n := startNode(t, Config{}, everyTime)
	n.connect(mpittest.New(mpittest.Everything()))
	c := fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue?jobid=everything")).Catalogues[0]
	known := map[string]api.VariableStatus{}
	for _, v := range c.Variables {
		known[v.Name+" "+v.Class.String()] = v
	}
	list := valuesFrom(t, n, "?jobid=everything")
	require.Len(t, list.Ranks, 1)
	require.NotEmpty(t, list.Ranks[0].Variables)
	for _, v := range list.Ranks[0].Variables {
		of, ok := known[v.Name+" "+v.Class]
		if assert.True(t, ok, "%+v", v) {
			if v.Kind == "gauge" && v.Unit == "1" && of.Unit != "1" {
				continue // its share in the SIZE of the same name
			}
			assert.Equal(t, of.Metric, v.Metric)
			assert.Equal(t, of.Kind, v.Kind)
			assert.Equal(t, of.Unit, v.Unit)
		}
	}
}

// Variables that rules make one family of are told apart by the labels that these give.
func TestValuesOfAFamilyOfSeveralVariables(t *testing.T) {
	cfg := small("1", 0)
	cfg.Variables, cfg.Values = nil, nil
	for i, name := range []string{"calls_send", "calls_recv"} {
		cfg.Variables = append(cfg.Variables, mpit.Variable{Name: name, Class: mpit.ClassCounter,
			Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8})
		cfg.Values = append(cfg.Values, mpittest.Value{Name: name, Class: mpit.ClassCounter, Values: []any{i + 1}})
	}
	n := startNode(t, Config{Mapper: withRules(t,
		rules.Rule{Match: rules.Match{Regexp: "calls_(?P<function>[a-z]+)"}, Name: "calls"}).Mapper}, everyTime)
	n.connect(mpittest.New(cfg))
	n.scrape()
	list := valuesFrom(t, n, "")
	got := map[string]string{}
	for _, v := range list.Ranks[0].Variables {
		assert.Equal(t, "mpit_calls_total", v.Metric)
		require.Len(t, v.Series, 1)
		got[v.Name] = v.Series[0].Labels["function"] + " " + v.Series[0].Value
	}
	assert.Equal(t, map[string]string{"calls_send": "send 1", "calls_recv": "recv 2"}, got)
}

func TestValuesGolden(t *testing.T) {
	n := startNode(t, Config{UserName: func(uint32) string { return "alice" }}, everyTime)
	hostile := small("1", 1)
	hostile.Variables[1].Name = "<img src=x onerror=\"alert(1)\">\n'\u202egnp"
	hostile.Values[1].Name = hostile.Variables[1].Name
	n.connect(mpittest.New(small("1", 0)), mpittest.New(hostile))
	body := get(n.API(), "/api/v1/values?jobid=1&world=0").Body.String()
	body = regexp.MustCompile(`"time":"[^"]*"`).ReplaceAllString(body, `"time":"then"`)
	body = regexp.MustCompile(`"(uid|pid)":\d+`).ReplaceAllString(body, `"$1":1`)
	var v any
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	pretty, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	golden(t, "values.golden", string(pretty)+"\n")
}

// However many look on, the ranks are asked once a second, and a scrape will do.
func TestValuesAreShared(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.recent = time.Hour })
	r := mpittest.New(small("1", 0))
	n.connect(r)
	samples := func() (samples uint64) {
		n.contentsOf(r, func(c *contents) { samples = c.facts.Stats.Samples })
		return samples
	}
	first := valuesFrom(t, n, "")
	require.Len(t, first.Ranks, 1, "whom nobody has asked yet is asked")
	asked := samples()
	assert.NotZero(t, asked)
	second := valuesFrom(t, n, "")
	assert.Equal(t, asked, samples())
	assert.Equal(t, first.Time, second.Time)

	n.scrape()
	third := valuesFrom(t, n, "")
	assert.Equal(t, asked+1, samples(), "the scrape's")
	assert.True(t, third.Time.After(first.Time))

	n.connect(mpittest.New(small("1", 1)))
	assert.Len(t, valuesFrom(t, n, "").Ranks, 2)
	assert.Equal(t, asked+2, samples())
	n.recent = 0
	valuesFrom(t, n, "")
	assert.Equal(t, asked+3, samples())
}

// What is asked for in this process is never older than the question, however many have just been told.
func TestValuesOfNow(t *testing.T) {
	n := startNode(t, Config{}, func(e *Exporter) { e.recent = time.Hour })
	r := mpittest.New(small("1", 0))
	require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 1))
	n.connect(r)
	n.scrape()
	for value := 2; value < 5; value++ {
		require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, value))
		list, err := n.Values(t.Context(), api.Selector{}, true)
		require.NoError(t, err)
		require.Len(t, list.Ranks, 1)
		var got []string
		for _, v := range list.Ranks[0].Variables {
			for _, s := range v.Series {
				if v.Metric == "mpit_calls_total" {
					got = append(got, s.Value)
				}
			}
		}
		assert.Equal(t, []string{strconv.Itoa(value)}, got)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.Values(canceled, api.Selector{}, true)
	require.ErrorIs(t, err, context.Canceled)
}

// Who looks on has not scraped: what an ended rank has left stays for a scraper.
func TestValuesAreNoScrape(t *testing.T) {
	clock := newTestClock()
	n := startNode(t, Config{Retention: time.Minute}, everyTime, withClock(clock))
	r := mpittest.New(small("1", 0))
	n.connect(r)
	n.finish(r, mpit.EndFinalize)
	clock.advance(time.Hour)
	list := valuesFrom(t, n, "?rank=0")
	assert.Equal(t, "ended", list.Ranks[0].Rank.State)
	assert.Equal(t, []string{"mpit_calls_total", "mpit_peak_highwatermark", "mpit_waiting_time_seconds"},
		metricsOf(list.Ranks[0].Variables))
	clock.advance(time.Hour)
	valuesFrom(t, n, "?rank=0")
	assert.True(t, n.known(r))
	n.scrape()
	n.scrape()
	assert.False(t, n.known(r))
	assert.Equal(t, http.StatusNotFound, get(n.API(), "/api/v1/values?rank=0").Code)
}

func TestValuesErrors(t *testing.T) {
	n := startNode(t, Config{}, everyTime)
	n.connect(mpittest.New(small("1", 0)))
	for query, code := range map[string]int{
		"": http.StatusOK, "?jobid=1&world=0&rank=0": http.StatusOK,
		"?jobid=2": http.StatusNotFound, "?world=x": http.StatusNotFound, "?rank=1": http.StatusNotFound,
		"?rank=x": http.StatusBadRequest, "?rank=-1": http.StatusBadRequest,
	} {
		w := get(n.API(), "/api/v1/values"+query)
		assert.Equal(t, code, w.Code, query)
		if code != http.StatusOK {
			assert.NotEmpty(t, fromJSON[struct{ Error string }](t, w).Error, query)
		}
	}
}

// An answer is bounded: by whole ranks, and of one that is too large alone by its series.
func TestValuesAreBounded(t *testing.T) {
	n := startNode(t, Config{}, everyTime)
	const ranks = 6
	for i := range ranks {
		n.connect(mpittest.New(bound(strconv.Itoa(i), 0, maxValueSeries/10)))
	}
	page := n.scrape()
	all := pvars(page, "0", 0)
	require.Greater(t, ranks*all, maxValueSeries)
	require.Less(t, all, maxValueSeries)
	list := valuesFrom(t, n, "")
	assert.Equal(t, ranks, len(list.Ranks)+list.More)
	assert.Len(t, list.Ranks, maxValueSeries/(all+1))
	assert.Zero(t, list.Ranks[0].Cut)

	g := n.lock()
	shown := api.Shown{}
	shown.Variables, shown.Infos, shown.Series = n.page().board.Of(&g.table.ordered[0].Rank)
	g.unlock()
	one := map[uint32]int{0: maxValueSeries}
	tight := api.NewValues(testTime, api.Bounds{Series: 2 + 1, Bytes: maxValueBytes}, one)
	tight.Add(&shown)
	assert.Equal(t, all-2, tight.List().Ranks[0].Cut)
	assert.NotEmpty(t, tight.List().Ranks[0].Variables)
	tight.Add(&shown)
	assert.Equal(t, 1, tight.List().More)
	tight = api.NewValues(testTime, api.Bounds{Series: maxValueSeries, Bytes: 513}, one)
	tight.Add(&shown)
	assert.Equal(t, all-1, tight.List().Ranks[0].Cut)
}
