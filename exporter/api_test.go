package exporter

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

func fromJSON[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v), w.Body)
	return v
}

func TestAPIRanks(t *testing.T) {
	n := startNode(t, Config{UserName: func(uint32) string { return "alice" }})
	assert.JSONEq(t, `{"ranks": []}`, get(n.API(), "/api/v1/ranks").Body.String())
	first, second := mpittest.New(small("1", 0)), mpittest.New(small("1", 1))
	n.connect(first, second)
	n.scrape()
	n.finish(second, mpit.EndAbort)

	w := get(n.API(), "/api/v1/ranks")
	list := fromJSON[api.RankList](t, w)
	require.Len(t, list.Ranks, 2)
	assert.Equal(t, n.Ranks()[0].Library, list.Ranks[0].Library)
	up := list.Ranks[0]
	assert.Equal(t, "up", up.State)
	assert.Equal(t, "1", up.JobID)
	assert.Equal(t, "0", up.World)
	assert.Equal(t, "alice", up.User)
	assert.Equal(t, "openmpi", up.Library)
	assert.Equal(t, "4.1.4", up.LibraryVersion)
	assert.Equal(t, "multiple", up.ThreadLevel)
	assert.Equal(t, testTime, *up.Started)
	assert.Nil(t, up.Ended)
	gone := list.Ranks[1]
	assert.Equal(t, "ended", gone.State)
	assert.Equal(t, "abort", gone.EndReason)
	assert.NotNil(t, gone.Ended)
	assert.NotContains(t, w.Body.String(), first.Hello().ID.String(), "who knows it could pass for the rank")
}

func TestAPICatalogue(t *testing.T) {
	n := startNode(t, Config{})
	assert.JSONEq(t, `{"catalogues": []}`, get(n.API(), "/api/v1/catalogue").Body.String())
	other := small("2", 0)
	other.Hello.LibraryVersion = "MPICH Version: 4.0.2"
	all := mpittest.New(mpittest.Everything())
	alike := small("3", 0)
	alike.Hello.LibraryVersion = other.Hello.LibraryVersion
	n.connect(mpittest.New(small("1", 0)), mpittest.New(small("1", 1)), mpittest.New(other), mpittest.New(alike), all)

	list := fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue"))
	var of []string
	for _, c := range list.Catalogues {
		of = append(of, strings.TrimSpace(c.Rank.JobID+" "+c.Rank.Library+" "+c.Rank.LibraryVersion))
	}
	assert.Equal(t, []string{"1 openmpi 4.1.4", "2 mpich 4.0.2", "3 mpich 4.0.2", "everything"}, of, "each world once")
	assert.Empty(t, list.Errors)
	variables := list.Catalogues[0].Variables
	require.Len(t, variables, 4)
	assert.Equal(t, api.VariableStatus{
		Name: "calls", Class: mpit.ClassCounter, Description: "a counter", Verbosity: mpit.VerbosityUserBasic,
		Datatype:   mpit.DatatypeUnsignedLongLong,
		Continuous: true, State: mpit.VariableOpen, Metric: "mpit_calls_total", Kind: "counter",
	}, variables[0])

	list = fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue?jobid=1"))
	assert.Len(t, list.Catalogues, 2, "each rank that is named")
	list = fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue?jobid=1&world=0&rank=1"))
	require.Len(t, list.Catalogues, 1)
	assert.Equal(t, 1, list.Catalogues[0].Rank.Rank)

	config := mpittest.Everything()
	list = fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue?jobid=everything"))
	require.Len(t, list.Catalogues, 1)
	c := list.Catalogues[0]
	assert.Len(t, c.Variables, len(config.Variables))
	require.Len(t, c.ControlVariables, len(config.ControlVariables))
	assert.Equal(t, config.ControlVariables[0].Name, c.ControlVariables[0].Name)
	require.Len(t, c.Categories, len(config.Categories))
	assert.Equal(t, config.Categories[0].Name, c.Categories[0].Name)
	assert.Len(t, c.Categories[0].Variables, len(config.Categories[0].Variables), "by name")

	// Everything is in the first category, of which the two others are.
	assert.Empty(t, c.Categories[0].Parents)
	assert.Equal(t, []string{"everything"}, c.Categories[1].Parents)
	assert.Equal(t, 1, c.Categories[1].Depth)
	assert.Equal(t, []string{"everything"}, c.ControlVariables[0].Categories)
	both := 0
	for i := range c.Variables {
		if len(c.Variables[i].Categories) == 2 {
			assert.Equal(t, []string{"everything", "some"}, c.Variables[i].Categories)
			both++
		}
	}
	assert.Equal(t, len(config.Categories[1].Variables), both)
	enum := slices.IndexFunc(c.ControlVariables, func(v api.ControlVariableStatus) bool { return v.Name == "algorithm" })
	assert.Equal(t, mpit.EnumItem{Value: 1, Name: "eager"}, c.ControlVariables[enum].Enum[1])
	require.Len(t, c.Objects, len(config.Objects))
	assert.Equal(t, "comm", c.Objects[2].Kind)
	assert.Equal(t, "halo exchange", c.Objects[2].Name)
	assert.Equal(t, 4, *c.Objects[2].Size)
	assert.Equal(t, 2, *c.Objects[2].Rank)
}

// What the agent measures by itself is marked, and the others are not.
func TestAPIMarksDistributions(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(withDistribution(small("1", 0), time.Microsecond, 2*time.Microsecond, time.Hour)))
	values := fromJSON[api.ValueList](t, get(n.API(), "/api/v1/values"))
	for _, v := range values.Ranks[0].Variables {
		assert.Equal(t, v.Name == callTime, v.Distribution, v.Name)
		if v.Distribution {
			require.Len(t, v.Series, 1)
			assert.Equal(t, map[string]string{"comm": "halo", "function": "MPI_Send"}, v.Series[0].Labels)
			assert.Equal(t, "3", v.Series[0].Count)
			sum, err := strconv.ParseFloat(v.Series[0].Sum, 64)
			require.NoError(t, err)
			assert.InDelta(t, 3600.000003, sum, 3*mpit.DistributionUnit)
		}
	}
	text := get(n.API(), "/api/v1/catalogue").Body.Bytes()
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal(text, &list), string(text))
	marked := map[string]bool{}
	for _, v := range list.Catalogues[0].Variables {
		marked[v.Name] = v.Distribution
	}
	assert.Equal(t, map[string]bool{"calls": false, "depth": false, "peak": false, "waiting": false, callTime: true},
		marked)
	assert.Equal(t, 1, strings.Count(string(text), `"distribution": true`))
	assert.NotContains(t, string(text), `"distribution": false`)
}

// The answer is bounded, and says what it lacks. Worlds with the same labels are several.
func TestAPICatalogueOfManyWorlds(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)), mpittest.New(small("1", 0)))
	list := fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue"))
	require.Len(t, list.Catalogues, 2)
	assert.Equal(t, 1, list.Catalogues[1].Rank.Dup)
	assert.Zero(t, list.More)
	for job := range 17 {
		n.connect(mpittest.New(small(strconv.Itoa(2+job), 0)))
	}
	list = fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue"))
	assert.Len(t, list.Catalogues, 16)
	assert.Equal(t, 3, list.More)
}

func TestCatalogueHasTheStamp(t *testing.T) {
	n := startNode(t, Config{})
	r := mpittest.New(small("1", 0))
	n.connect(r)
	var session *mpit.Session
	n.wait(r, func(r *rank) bool {
		session = r.line.session
		return true
	})
	for stamp, want := range map[uint64]*uint64{0: nil, 1: new(uint64)} {
		c := api.CatalogueOfSample(session, &mpit.Sample{Stats: mpit.AgentStats{CategoryStamp: stamp}}, n.cfg.Mapper)
		assert.Equal(t, want, c.CategoryStamp, "one more than MPI_T says, for 0 is: not known")
	}
}

func TestAPIErrors(t *testing.T) {
	n := startNode(t, Config{})
	n.connect(mpittest.New(small("1", 0)))
	h := n.API()
	for path, code := range map[string]int{
		"/api/v1/catalogue?jobid=2": http.StatusNotFound,
		"/api/v1/catalogue?rank=x":  http.StatusBadRequest,
		"/api/v1/catalogue?rank=-1": http.StatusBadRequest,
	} {
		w := get(h, path)
		assert.Equal(t, code, w.Code, path)
		assert.NotEmpty(t, fromJSON[struct{ Error string }](t, w).Error)
	}
	assert.Equal(t, http.StatusNotFound, get(h, "/api/v1/nothing").Code)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/ranks", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code, "for reading only")
}

func TestAPIPprof(t *testing.T) {
	n := startNode(t, Config{})
	site := mpit.Site{Function: "MPI_Send", Module: "/bin/app", Offset: 9, Calls: 3}
	with := func(job string, rank int, sites []mpit.Site) {
		cfg := small(job, rank)
		cfg.Sites = sites
		n.connect(mpittest.New(cfg))
	}
	with("1", 0, []mpit.Site{site})
	with("1", 1, nil)
	with("2", 0, []mpit.Site{})
	with("3", 0, nil)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"":         {http.StatusBadRequest, "several MPI_COMM_WORLDs"},
		"?jobid=2": {http.StatusNotFound, "--calls=sites"},
		"?jobid=3": {http.StatusNotFound, "older"},
		"?jobid=4": {http.StatusNotFound, "no connected rank"},
	} {
		w := get(n.API(), "/api/v1/pprof"+path)
		assert.Equal(t, want.code, w.Code, path)
		assert.Contains(t, fromJSON[struct{ Error string }](t, w).Error, want.text)
	}
	for path, want := range map[string]int{"": http.StatusBadRequest, "?jobid=2": http.StatusOK, "?jobid=3": http.StatusOK,
		"?jobid=4": http.StatusNotFound} {
		assert.Equal(t, want, get(n.API(), "/api/v1/sites"+path).Code, path)
	}
	older := fromJSON[api.SiteList](t, get(n.API(), "/api/v1/sites?jobid=3"))
	assert.Empty(t, older.Sites)
	require.Len(t, older.Errors, 1)
	assert.Contains(t, older.Errors[0], "older")

	w := get(n.API(), "/api/v1/pprof?jobid=1")
	require.Equal(t, http.StatusOK, w.Code)
	p, err := profile.Parse(w.Body)
	require.NoError(t, err)
	require.Len(t, p.Sample, 1)
	assert.Equal(t, []int64{3, 0, 0, 0}, p.Sample[0].Value)
	assert.Contains(t, p.Comments[1], "rank 1", "what is missing")
}

// A rank that does not answer hides only itself.
func TestAPICatalogueOfALateRank(t *testing.T) {
	t.Parallel() // it waits
	n := startNode(t, Config{})
	stuck, good := mpittest.New(small("1", 0)), small("2", 0)
	good.Hello.LibraryVersion = "MPICH Version: 4.0.2"
	n.connect(stuck, mpittest.New(good))
	stuck.Stall(true)
	defer stuck.Stall(false)

	req := httptest.NewRequest(http.MethodGet, "/api/v1/catalogue", nil)
	w := httptest.NewRecorder()
	n.API().ServeHTTP(w, req)
	list := fromJSON[api.CatalogueList](t, w)
	require.Len(t, list.Catalogues, 1)
	assert.Equal(t, "mpich", list.Catalogues[0].Rank.Library)
	assert.Len(t, list.Errors, 1)
}

// A few frames can mean gigabytes: very many things may name the same long name. Such a rank hides only itself, too.
func TestAPICatalogueOfAVastRank(t *testing.T) {
	n := startNode(t, Config{})
	vast, good := small("1", 0), small("2", 0)
	good.Hello.LibraryVersion = "MPICH Version: 4.0.2"
	vast.Categories = []mpit.Category{
		{Index: 0, Name: "all", Subcategories: slices.Repeat([]int{1}, 64<<20/60_000)},
		{Index: 1, Name: strings.Repeat("x", 60_000)},
	}
	n.connect(mpittest.New(vast), mpittest.New(good))
	list := fromJSON[api.CatalogueList](t, get(n.API(), "/api/v1/catalogue"))
	require.Len(t, list.Catalogues, 1)
	assert.Equal(t, "mpich", list.Catalogues[0].Rank.Library)
	require.Len(t, list.Errors, 1)
	assert.Contains(t, list.Errors[0], "more than 8 MiB")
}

// A request with a viewer is answered as if there were no ranks but this user's.
func TestAPIViewer(t *testing.T) {
	needRoot(t)
	n := startNodeAt(t, openSocketPath(t), Config{})
	n.connect(mpittest.New(small("mine", 0)))
	other := mpittest.New(small("theirs", 0))
	failed := make(chan error, 1)
	defer attack(t, n.path, func(*attacker) { failed <- other.Connect(t.Context(), n.path) })()
	require.NoError(t, <-failed)
	t.Cleanup(other.Kill)
	n.wait(other, func(r *rank) bool { return r.line != nil })
	n.scrape()
	ask := func(uid uint32, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		n.API().ServeHTTP(w, httptest.NewRequestWithContext(api.WithViewer(t.Context(), uid), http.MethodGet, path, nil))
		return w
	}
	for _, path := range []string{"/api/v1/ranks", "/api/v1/catalogue", "/api/v1/values"} {
		all := get(n.API(), path).Body.String()
		assert.Contains(t, all, `"mine"`, path)
		assert.Contains(t, all, `"theirs"`, path)
		mine, theirs := ask(ownUID, path), ask(attackersUID, path)
		assert.Contains(t, mine.Body.String(), `"mine"`, path)
		assert.NotContains(t, mine.Body.String(), "theirs", path)
		assert.Contains(t, theirs.Body.String(), `"theirs"`, path)
		assert.NotContains(t, theirs.Body.String(), "mine", path)
		none := ask(otherUID, path)
		assert.Equal(t, http.StatusOK, none.Code, path)
		assert.NotContains(t, none.Body.String(), "mine", path)
	}
	for _, path := range []string{"/api/v1/catalogue?jobid=", "/api/v1/values?jobid="} {
		missing, hidden := ask(attackersUID, path+"none"), ask(attackersUID, path+"mine")
		assert.Equal(t, http.StatusNotFound, hidden.Code)
		assert.Equal(t, missing.Body.String(), hidden.Body.String())
	}
}
