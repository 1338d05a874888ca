package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/preload"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/sockets"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// envPlay makes the test's own program play the rank that list starts: it says how.
const envPlay = "MPIT_CMD_TEST_PLAY"

// playRank is a program whose rank is too short-lived to be asked anything: only its last sample arrives.
func playRank() (status int) {
	fmt.Println("the program's own output")
	rank := mpittest.New(mpittest.Everything())
	if err := rank.Finish(context.Background(), os.Getenv(sockets.EnvSocket), mpit.EndFinalize); err != nil {
		fmt.Fprintln(os.Stderr, "playing a rank:", err)
		return 1
	}
	return 3
}

func TestListOfAnExporter(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	everything := mpittest.Everything()

	short := runBinary(t, nil, "list", "--url="+e.url)
	require.Zero(t, short.status, short.stderr)
	assert.Empty(t, short.stderr)
	assert.Regexp(t, `(?m)^NAME +ON +VALUE +OF$`, short.stdout)
	assert.LessOrEqual(t, strings.Count(short.stdout, "\n"), len(everything.Variables)+3, "a line each")
	assert.NotContains(t, short.stdout, "CONTROL VARIABLES")

	table := runBinary(t, nil, "list", "--url="+e.url, "--all")
	require.Zero(t, table.status, table.stderr)
	assert.Empty(t, table.stderr)
	assert.Contains(t, table.stdout, fmt.Sprintf("PERFORMANCE VARIABLES (%d)\n", len(everything.Variables)))
	assert.Contains(t, table.stdout, fmt.Sprintf("CONTROL VARIABLES (%d)\n", len(everything.ControlVariables)))
	assert.Contains(t, table.stdout, fmt.Sprintf("CATEGORIES (%d)", len(everything.Categories)))
	for _, v := range everything.Variables {
		assert.Contains(t, table.stdout, v.Name)
	}

	answer := runBinary(t, nil, "list", "--url="+e.url, "--output=json", "--rank="+fmt.Sprint(everything.Hello.Rank))
	require.Zero(t, answer.status, answer.stderr)
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal([]byte(answer.stdout), &list))
	require.Len(t, list.Catalogues, 1)
	assert.Len(t, list.Catalogues[0].Variables, len(everything.Variables))
	assert.Len(t, list.Catalogues[0].ControlVariables, len(everything.ControlVariables))
	assert.Len(t, list.Catalogues[0].Categories, len(everything.Categories))
}

// What an answer lacks is said; of worlds with the same labels each is shown.
func TestListOfManyWorlds(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.FormValue("user") != "" {
			http.NotFound(w, req) // whoever runs this has no ranks
			return
		}
		_, _ = w.Write([]byte(`{"more": 3, "errors": ["rank 7 didn't answer"], "catalogues": [
			{"rank": {"jobid": "17"}}, {"rank": {"jobid": "17"}}, {"rank": {"jobid": "17", "dup": 1}}]}`))
	}))
	defer exporter.Close()
	got := runBinary(t, nil, "list", "--url="+exporter.URL, "--cvars")
	assert.Zero(t, got.status)
	assert.Equal(t, "mpit-exporter: rank 7 didn't answer\n"+
		"mpit-exporter: 3 MPI_COMM_WORLDs left out; choose with --jobid or --user\n", got.stderr)
	assert.Equal(t, 2, strings.Count(got.stdout, "of job 17"), got.stdout)
	got = runBinary(t, nil, "list", "--url="+exporter.URL, "--cvars", "-o", "json")
	assert.Contains(t, got.stdout, `"more": 3`)
	got = runBinary(t, nil, "list", "--url="+exporter.URL, "--save="+filepath.Join(t.TempDir(), "saved.json"))
	assert.Equal(t, outcome{stderr: "mpit-exporter: list: --save and --compare are about one MPI_COMM_WORLD, and the " +
		"exporter at " + exporter.URL + " has 6; choose with --jobid, --world or --user\n", status: cli.Failure}, got)
}

func TestListSections(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	sections := map[string]string{"--cvars": "NAME +VALUE +SCOPE +DESCRIPTION\n", "--categories": `CATEGORIES \(`,
		"--objects": `OBJECTS \(`}
	for what := range sections {
		got := runBinary(t, nil, "list", "--url="+e.url, what)
		require.Zero(t, got.status, got.stderr)
		for other, title := range sections {
			assert.Equal(t, other == what, regexp.MustCompile(title).MatchString(got.stdout), "%s: %s", what, title)
		}
	}
	got := runBinary(t, nil, "list", "--url="+e.url, "--cvars", "-o", "json")
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
	assert.Empty(t, list.Catalogues[0].Variables)
	assert.NotEmpty(t, list.Catalogues[0].ControlVariables)
}

func TestListOneCategory(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	everything := mpittest.Everything()
	some := runBinary(t, nil, "list", "--url="+e.url, "--category=some")
	require.Zero(t, some.status, some.stderr)
	assert.Contains(t, some.stdout, fmt.Sprintf("PERFORMANCE VARIABLES (%d)\n",
		len(everything.Categories[1].Variables)))
	assert.Contains(t, some.stdout, "CONTROL VARIABLES (0)\n")
	assert.Contains(t, some.stdout, "CATEGORIES (1)")
	assert.Contains(t, some.stdout, "\nsome (under everything) ")
	assert.NotContains(t, some.stdout, "OBJECTS")
	all := runBinary(t, nil, "list", "--url="+e.url, "--category=everything", "--categories")
	assert.Contains(t, all.stdout, "\neverything ")
	assert.Contains(t, all.stdout, "\n└ none ")
	none := runBinary(t, nil, "list", "--url="+e.url, "--category=other")
	assert.Equal(t, outcome{stderr: "mpit-exporter: list: there is no category \"other\"; --categories shows " +
		"all\n", status: cli.Failure}, none)
}

func TestListObjects(t *testing.T) {
	e := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	connect(t, e)
	awaitPage(t, e, "\nmpit_rank_up{")
	got := runBinary(t, nil, "list", "--url="+e.url, "--objects")
	require.Zero(t, got.status, got.stderr)
	assert.Contains(t, got.stdout, fmt.Sprintf("OBJECTS (%d)\n", len(mpittest.Everything().Objects)))
	assert.Regexp(t, `\ncomm +halo exchange +4 +2 +- +\S`, got.stdout)
	assert.NotContains(t, got.stdout, "VARIABLES")
	answer := runBinary(t, nil, "list", "--url="+e.url, "--objects", "-o", "json")
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal([]byte(answer.stdout), &list))
	assert.Len(t, list.Catalogues[0].Objects, len(mpittest.Everything().Objects))
	assert.Empty(t, list.Catalogues[0].Variables)
}

// What was saved of one rank is compared with another one's, and the file may be renewed at the same time.
func TestListCompares(t *testing.T) {
	dir := mpittest.ShortDir(t)
	before := startExporter(t, filepath.Join(dir, "agent.sock"))
	connect(t, before)
	awaitPage(t, before, "\nmpit_rank_up{")
	now := startExporter(t, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
	rank := mpittest.New(mpittest.Everything())
	rank.AddVariable(mpit.Variable{Name: "brand_new", Class: mpit.ClassCounter, Datatype: mpit.DatatypeInt,
		Description: "Not there before"}, 1)
	require.NoError(t, rank.Connect(t.Context(), now.socket))
	t.Cleanup(func() { _ = rank.Close() })
	awaitPage(t, now, "\nmpit_rank_up{")

	file := filepath.Join(dir, "saved.json")
	assert.Equal(t, outcome{}, runBinary(t, nil, "list", "--url="+before.url, "--save="+file))
	same := runBinary(t, nil, "list", "--url="+before.url, "--compare="+file)
	assert.Zero(t, same.status, same.stderr)
	assert.Regexp(t, `^0 came, 0 went, 0 changed, \d+ are equal: `, same.stdout)

	differs := runBinary(t, nil, "list", "--url="+now.url, "--compare="+file, "--save="+file)
	assert.Equal(t, cli.Differs, differs.status)
	assert.Empty(t, differs.stderr)
	assert.Regexp(t, `(?m)^came +pvar +brand_new +COUNTER +Not there before\n1 came, 0 went, 0 changed, `, differs.stdout)
	assert.Zero(t, runBinary(t, nil, "list", "--url="+now.url, "--compare="+file).status)
}

// TestListOfAShortProgram: what came with the last sample is shown, what is missing is said, and the program's output
// does not get into the list.
func TestListOfAShortProgram(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	dir := mpittest.ShortDir(t)
	got := runBinary(t, []string{envPlay + "=short", "TMPDIR=" + dir}, "list", "--output=json", "--", program)
	assert.Zero(t, got.status)
	assert.Contains(t, got.stderr, "the program's own output\n")
	assert.Contains(t, got.stderr, "mpit-exporter: "+program+": exit status 3\n")
	assert.Contains(t, got.stderr, "ended before its control variables and categories could be asked for")
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list), got.stdout)
	require.Len(t, list.Catalogues, 1)
	c := list.Catalogues[0]
	assert.Len(t, c.Variables, len(mpittest.Everything().Variables))
	assert.Empty(t, c.ControlVariables)

	file := filepath.Join(dir, "saved.json")
	got = runBinary(t, []string{envPlay + "=short", "TMPDIR=" + dir}, "list", "--save="+file, "--", program)
	assert.Equal(t, cli.Failure, got.status)
	assert.Contains(t, got.stderr, "mpit-exporter: list: nothing is saved or compared, as the program ended too early\n")

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "the socket's directory")
}

func TestListInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Setenv(preload.EnvLibrary, os.Args[0]) // some file: it is interrupted before anything is preloaded
	var out strings.Builder
	err := run(ctx, []string{"list", "--", "sleep", "1000"},
		cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
	assert.EqualError(t, err, "list: interrupted")
	assert.Empty(t, out.String())
}
