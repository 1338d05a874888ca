package zoo

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

var (
	measure = flag.Bool("zoo", false, "run the programs, and print the table")
	seeds   = flag.Uint64("zoo.seeds", 1, "run each so often, with seeds from 1 on")
	profile = flag.String("zoo.calls", "peers", "what exec --calls is given; empty: nothing")
	record  = flag.Bool("zoo.record", false, "write testdata/recordings anew")
	settle  = flag.Duration("zoo.settle", 0, "an answer that hasn't changed for so long counts as the last one; 0: "+
		"none does")
	alerts = flag.Bool("zoo.alerts", true, "ask a third of them for alerts, too")
)

// recordings is where the ranks are whose verdict TestRecordings asks for.
const recordings = "testdata/recordings"

// suite is set before the first test; tests only read it.
var suite *harness.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(harness.Main(m, func(s *harness.Suite) { suite = s }))
}

// row is what came of one run of a kind.
type row struct {
	kind    Kind
	library string
	seed    uint64
	scores  map[string]Score // by screen
}

var screens = []string{"page", "top", "report", "judge", "alerts"}

// The measurement. go test's -run chooses kinds: TestZoo/mpich/collectives-late.
func TestZoo(t *testing.T) {
	if !*measure && !*record {
		t.Skip("a measurement of hours: make zoo")
	}
	kinds, err := Kinds()
	require.NoError(t, err)
	var rows []row
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			for i, k := range kinds {
				if len(k.Libraries) > 0 && !slices.Contains(k.Libraries, mpi.Name) {
					continue
				}
				t.Run(k.ID(), func(t *testing.T) {
					for seed := uint64(1); seed <= *seeds; seed++ {
						d := k.DrawFor(seed, mpi.Name)
						r := row{k, mpi.Name, seed, map[string]Score{}}
						k.onOneNode(t, mpi, d, r.scores)
						// A third of them, on two nodes; a rank alone has no other one.
						if i%3 == 0 && k.Ranks > 1 && *alerts {
							k.onTwoNodes(t, mpi, d, r.scores)
						}
						rows = append(rows, r)
						t.Log(r.String())
					}
				})
			}
		})
	}
	if len(rows) > 0 {
		fmt.Print(Table(rows))
	}
}

// start runs the program. far is the socket of the upper half of its ranks, if that is another one.
func (k *Kind) start(t *testing.T, mpi *harness.MPI, d Draw, near, far string) *harness.Run {
	t.Helper()
	calls := "--calls"
	if *profile != "" {
		calls += "=" + *profile
	}
	run := k.Job(t, mpi, d, near, far, suite.Dir(t), calls)
	if k.Command != nil {
		for name, text := range k.input(t) {
			require.NoError(t, os.WriteFile(filepath.Join(run.Dir, name), text, 0o600))
		}
	}
	return suite.Run(t, run)
}

// input are the files that an installed program reads.
func (k *Kind) input(t *testing.T) map[string][]byte {
	t.Helper()
	if k.Kind != "hpcc" {
		text, err := os.ReadFile("programs/melt.lammps")
		require.NoError(t, err)
		return map[string][]byte{"melt.lammps": text}
	}
	// The package's example, for two ranks, and large enough to take a minute.
	text, err := os.ReadFile("/usr/share/doc/hpcc/examples/_hpccinf.txt")
	require.NoError(t, err)
	for from, to := range map[string]string{"2            Ps": "1            Ps", "1000         Ns": "4000         Ns"} {
		require.Contains(t, string(text), from)
		text = []byte(strings.Replace(string(text), from, to, 1))
	}
	return map[string][]byte{"hpccinf.txt": text}
}

// jobs is what is of interest in the answer to /api/v1/jobs and in a report.
type jobs struct {
	Jobs []struct {
		Job struct {
			ID    string `json:"jobid"`
			World string `json:"world"`
		} `json:"job"`
		Verdict verdict `json:"verdict"`
	} `json:"jobs"`
}

type verdict struct {
	State string `json:"state"`
	Text  string `json:"text"`
	Late  *late  `json:"late"`
}

type late struct {
	Rank int `json:"rank"`
}

func (v verdict) said(second float64) Said {
	s := Said{Second: second, State: v.State, Text: v.Text, Ranks: NamedIn(v.Text)}
	if v.Late != nil && !slices.Contains(s.Ranks, v.Late.Rank) {
		s.Ranks = append(s.Ranks, v.Late.Rank)
	}
	return s
}

// extra is how long a run is looked at after the time at which the answer is due.
const extra = 5

// watch calls look every second until the kind's time is over, and due once the answer is due; it ends the launcher
// when that is asked for. look returns what was said, without its figures.
func (k *Kind) watch(t *testing.T, run *harness.Run, look func(second float64) string, due func()) {
	t.Helper()
	begin, since := time.Now(), time.Now()
	cancelled, isDue, said := false, false, ""
	for tick := time.Tick(time.Second); ; <-tick {
		second := time.Since(begin).Seconds()
		if !k.Ends && run.Ended() {
			t.Errorf("%s has ended: %+v", k.ID(), run.Wait(t))
			return
		}
		if k.Cancel > 0 && !cancelled && second >= float64(k.Cancel) {
			cancelled = true
			run.Signal(t, 15)
		}
		if now := look(second); now != said || k.Ends {
			since, said = time.Now(), now
		}
		settled := *settle > 0 && time.Since(since) > *settle
		if !isDue && (second > float64(k.Within) || settled) {
			isDue = true
			due()
		}
		if second > float64(k.Within+extra) || settled {
			return
		}
	}
}

// onOneNode asks page, top and report.
func (k *Kind) onOneNode(t *testing.T, mpi *harness.MPI, d Draw, scores map[string]Score) {
	t.Helper()
	exporter := suite.Exporter(t)
	run := k.start(t, mpi, d, exporter.Socket, "")
	harness.Await(t, "the job", func(ctx context.Context) error {
		if v, err := firstOf(ctx, exporter, run.ID); err != nil || v == nil {
			return fmt.Errorf("no job: %w", err)
		}
		return nil
	})
	ask := func(arguments ...string) string {
		command := append(append([]string{suite.Binary()}, arguments...), "--url="+exporter.URL(""))
		return suite.Start(t, command, nil).Wait(t).Stdout
	}
	var page []Said
	var asked sync.WaitGroup
	k.watch(t, run, func(second float64) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		v, err := firstOf(ctx, exporter, run.ID)
		if err != nil || v == nil {
			v = &verdict{Text: fmt.Sprint("no answer: ", err)}
		}
		page = append(page, v.said(second))
		return v.State + figures.ReplaceAllString(v.Text, "#")
	}, func() {
		at := page[len(page)-1].Second
		asked.Go(func() {
			scores["top"] = k.ScoreOf(d, []Said{topSaid(ask("top", "--count=1", "--interval=5s"), at)})
			var report verdict
			_ = json.Unmarshal([]byte(ask("report", "--output=json")), &struct {
				Verdict *verdict `json:"verdict"`
			}{&report})
			scores["report"] = k.ScoreOf(d, []Said{report.said(at)})
		})
	})
	asked.Wait()
	scores["page"] = k.ScoreOf(d, page)
	if *record {
		body, _ := exporter.Get(t, "/api/v1/values", "")
		k.writeRecording(t, mpi.Name, d, body)
	}
}

// figures are what changes in a sentence while it says the same.
var figures = regexp.MustCompile(`[0-9][0-9.]*(m[0-9]+)?`)

// firstOf is the verdict on the worst world of a job; nil: it isn't there.
func firstOf(ctx context.Context, exporter *harness.Exporter, id string) (*verdict, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, exporter.URL("/api/v1/jobs?window=5s"), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer jobs
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	for _, j := range answer.Jobs {
		if strings.HasPrefix(j.Job.ID, id) {
			return &j.Verdict, nil
		}
	}
	return nil, nil
}

var topLine = regexp.MustCompile(`(?m)^([A-Z][A-Z ]+[A-Z])  (.*)$`)

// topSaid is the first job's line that begins with its state, and all that comes before the table.
func topSaid(text string, second float64) Said {
	m := topLine.FindStringSubmatch(text)
	if m == nil {
		return Said{Second: second}
	}
	return Said{Second: second, State: strings.ToLower(m[1]), Text: m[2], Ranks: NamedIn(m[2])}
}

// ofAlert is the state that an alert stands for.
var ofAlert = map[string]string{"MPIJobHung": "cannot go on", "MPIJobWaitsForRank": "waiting",
	"MPIRankStuck": "waits for a rank",
	"MPIRanksLate": "waits for a rank", "MPIRankGone": "crashed", "MPIRanksWaitForOne": "late rank",
	"MPIJobMostlyInMPI": "communication"}

// alertsLater is how many seconds an alert may come later than what it is about: for so long it has to be true, and
// rates look back.
const alertsLater = 30

// onTwoNodes asks Prometheus for the judge's verdict and the alerts on the job, with each half of its ranks on another
// exporter, and rules whose minutes are seconds.
func (k *Kind) onTwoNodes(t *testing.T, mpi *harness.MPI, d Draw, scores map[string]Score) {
	t.Helper()
	later := *k
	later.Within += alertsLater
	k = &later
	near, far := suite.Exporter(t), suite.Exporter(t)
	prometheus := suite.Judged(t, harness.PrometheusConfig{
		Rules: suite.RulesInSeconds(t), Exporters: []*harness.Exporter{near, far},
	}, "")
	run := k.start(t, mpi, d, near.Socket, far.Socket)
	var said, judged []Said
	k.watch(t, run, func(second float64) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if verdicts, err := prometheus.Query(ctx, api.VerdictName); err == nil {
			judged = append(judged, verdictSaid(k, verdicts, run.ID, second))
		}
		if firing, err := prometheus.Alerts(ctx); err == nil {
			said = append(said, alertSaid(k, firing, run.ID, second))
		}
		return fmt.Sprint(second) // an alert comes late
	}, func() {})
	wordless := later
	wordless.Says = nil // a series has no sentence
	scores["judge"] = wordless.ScoreOf(d, judged)
	scores["alerts"] = k.ScoreOf(d, said)
}

// verdictSaid is what the judge says of a job, of its worlds the worst. Of one that isn't conspicuous it says nothing, which is right for a
// healthy one.
func verdictSaid(k *Kind, verdicts []harness.Sample, id string, second float64) Said {
	said := alertSaid(k, nil, id, second)
	worst := len(states)
	for _, v := range verdicts {
		at := slices.Index(states, meanings(v.Labels["state"])[0])
		if strings.HasPrefix(v.Labels["jobid"], id) && at < worst {
			worst, said.Ranks = at, nil
			said.State, said.Text = v.Labels["state"], fmt.Sprint(v.Labels)
			if rank, err := strconv.Atoi(v.Labels["rank"]); err == nil {
				said.Ranks = []int{rank}
			}
		}
	}
	return said
}

// alertSaid is what the firing alerts on a job say, of which the one with the worst state counts. Without one nothing
// is said, which is right for a healthy job.
func alertSaid(k *Kind, alerts []harness.Alert, id string, second float64) Said {
	said := Said{Second: second, State: "unknown"}
	if k.Healthy() {
		said.State = "healthy"
	}
	worst := len(states)
	for _, a := range alerts {
		if a.State != "firing" || !strings.HasPrefix(a.Labels["jobid"], id) {
			continue
		}
		state, ok := ofAlert[a.Labels["alertname"]]
		if !ok {
			state = a.Labels["alertname"]
		}
		if at := slices.Index(states, meanings(state)[0]); at < worst {
			text := a.Annotations["summary"] + " " + a.Annotations["description"]
			worst, said = at, Said{Second: second, State: state, Text: text, Ranks: NamedIn(text)}
			if state == "crashed" && len(said.Ranks) > 1 {
				said.Ranks = nil // that they have ended blames none of them
			}
		}
	}
	return said
}

// ---- recordings ----

// recording is what an exporter knew of a job's ranks.
type recording struct {
	Draw   Draw            `json:"draw"`
	Values json.RawMessage `json:"values"` // its answer to GET /api/v1/values
}

func (k *Kind) recorded(library string) string {
	return filepath.Join(recordings, k.ID()+"."+library+".json")
}

// writeRecording keeps of the values those that the verdict is made of.
func (k *Kind) writeRecording(t *testing.T, library string, d Draw, values []byte) {
	t.Helper()
	var list api.ValueList
	require.NoError(t, json.Unmarshal(values, &list))
	for i := range list.Ranks {
		of := &list.Ranks[i]
		of.Variables = slices.DeleteFunc(of.Variables, func(v api.VariableValues) bool {
			return v.Metric != "mpit_call_time_seconds"
		})
		for _, v := range of.Variables {
			for s := range v.Series {
				v.Series[s].Buckets = nil
			}
		}
	}
	trimmed, err := json.Marshal(list)
	require.NoError(t, err)
	text, err := json.Marshal(recording{d, trimmed})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(recordings, 0o755))
	require.NoError(t, os.WriteFile(k.recorded(library), append(text, '\n'), 0o600))
}

// What the program says of recorded ranks is what testdata/verdicts.txt has: a change of the verdict shows there, with
// whether it is better. -zoo.record writes it anew, and so does deleting it.
func TestRecordings(t *testing.T) {
	kinds, err := Kinds()
	require.NoError(t, err)
	var said strings.Builder
	for _, k := range kinds {
		for _, library := range []string{"openmpi", "mpich"} {
			text, err := os.ReadFile(k.recorded(library))
			if err != nil {
				continue
			}
			var r recording
			require.NoError(t, json.Unmarshal(text, &r))
			v := judgeAgain(t, r.Values)
			j := k.Judge(r.Draw, v.said(0))
			fmt.Fprintf(&said, "%s %s: %s %s\n\t%s: %s\n", k.ID(), library, j.Outcome, j.Why, v.State, v.Text)
		}
	}
	const golden = "testdata/verdicts.txt"
	want, err := os.ReadFile(golden)
	if *record || errors.Is(err, os.ErrNotExist) && said.Len() > 0 {
		require.NoError(t, os.WriteFile(golden, []byte(said.String()), 0o600))
		return
	}
	require.NoError(t, err)
	assert.Equal(t, string(want), said.String(), "%s, delete it to have it made anew", golden)
}

// judgeAgain is the verdict on the job that needs attention first, of those in an exporter's answer.
func judgeAgain(t *testing.T, values json.RawMessage) verdict {
	t.Helper()
	var list api.ValueList
	require.NoError(t, json.Unmarshal(values, &list))
	reports := job.Of([]api.ValueList{list}, nil)
	require.NotEmpty(t, reports)
	of := job.ByNeed(reports)[0].Verdict
	v := verdict{State: of.State, Text: of.Text}
	if of.Late != nil {
		v.Late = &late{of.Late.Rank}
	}
	return v
}
