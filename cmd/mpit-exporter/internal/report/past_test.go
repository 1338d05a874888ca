package report

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/exporter/job"
	"github.com/mpit-exporter/mpit-exporter/exporter/job/jobtest"
)

// What Prometheus has of a job that is over, on two nodes: classic histograms, one native, and a rank that was killed.
func TestAsk(t *testing.T) {
	const rank = `"jobid":"17","world":"0","user":"ada","job":"mpi",`
	sample := func(labels, value string) string {
		return `{"metric":{` + rank + labels + `},"value":[0,"` + value + `"]}`
	}
	of0, of1 := `"rank":"0","instance":"node1:10093","__name__":`, `"rank":"1","instance":"node2:10093","__name__":`
	lasting := []string{
		sample(of0+`"mpit_process_info","host":"node1","executable":"/home/ada/solver","library":"mpich",`+
			`"library_version":"4.2","world_size":"2","jobname":"heat","uid":"0"`, "1"),
		sample(of1+`"mpit_process_info","host":"node2","executable":"/home/ada/solver","library":"mpich",`+
			`"library_version":"4.2","world_size":"2","jobname":"heat"`, "1"),
		sample(of0+`"mpit_rank_start_time_seconds"`, "1767323045.5"),
		sample(of0+`"mpit_rank_end_info","reason":"finalize"`, "1"),
		sample(of0+`"mpit_rank_up"`, "0"),
		sample(of0+`"mpit_rank_seconds_total","state":"outside"`, "8"),
		sample(of0+`"mpit_rank_seconds_total","state":"wait"`, "2"),
		sample(of0+`"mpit_rank_seconds_total","state":"new"`, "2"),
		sample(of0+`"mpit_call_time_seconds_sum","function":"MPI_Recv","comm":"halo"`, "2"),
		sample(of0+`"mpit_call_time_seconds_count","function":"MPI_Recv","comm":"halo"`, "50"),
		sample(of0+`"mpit_call_bytes_total","function":"MPI_Recv","comm":"halo","direction":"received"`, "5000"),
		sample(of1+`"mpit_unexpected_recvq_length"`, "7"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"16"`, "5"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"+Inf"`, "7"),
		sample(of0+`"mpit_call_size_bytes_bucket","function":"MPI_Send","comm":"halo","le":"4"`, "5"),
		`{"metric":{` + rank + of1 + `"mpit_call_size_bytes","function":"MPI_Send","comm":"halo"},` +
			`"histogram":[0,{"count":"3","sum":"30","buckets":[[0,"8","16","3"]]}]}`,
		sample(of0+`"mpit_call_peer_bytes_total","peer":"1"`, "100"),
		sample(of0+`"mpit_call_peer_messages_total","peer":"1"`, "10"),
		`{"metric":{` + rank + of1 + `"mpit_call_time_seconds","function":"MPI_Recv","comm":"halo"},` +
			`"histogram":[0,{"count":"10","sum":"1"}]}`,
	}
	current := []string{
		sample(of1+`"mpit_rank_up"`, "1"),
		sample(of1+`"mpit_call_running_seconds"`, "33"),
		sample(of1+`"mpit_call_running_info","function":"MPI_Recv","comm":"halo","module":"/home/ada/solver",`+
			`"offset":"0x10"`, "1"),
	}
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		query := req.FormValue("query")
		queries = append(queries, query)
		of := current
		switch {
		case strings.HasPrefix(query, "last_over_time"):
			of = lasting
		case strings.HasPrefix(query, "topk"):
			of = nil
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(of, ","))
	}))
	defer server.Close()
	at := jobtest.Began.Add(time.Hour)
	reports, err := AskPrometheus(t.Context(), server.URL, map[string]string{"jobid": "17", "user": `a"b`, "rank": "1"}, at,
		time.Hour)
	require.NoError(t, err)
	for _, query := range queries[:2] {
		assert.Contains(t, query, `jobid="17", rank="1", user="a\"b", rank!=""`)
	}
	assert.Contains(t, queries[2], `{jobid="17", user="a\"b", state!="unknown"}`)
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, "mpich 4.2", r.Job.Library)
	assert.Equal(t, 2, r.Job.Nodes)
	assert.Nil(t, r.Job.Ended, "rank 1 is there")
	assert.Equal(t, []job.Call{{Called: job.Called{Function: "MPI_Recv", Kind: "comm", Object: "halo"}, Calls: 61,
		Seconds: 36, Share: 3.6,
		Most: 1, MostSeconds: 34, Bytes: map[string]float64{"received": 5000}}}, r.WithRanks(0).Calls)
	assert.Equal(t, []job.Sizes{{Called: job.Called{Function: "MPI_Send", Kind: "comm", Object: "halo"}, Calls: 10,
		Buckets: []job.Bucket{{Bytes: 4, Calls: 5}, {Bytes: 16, Calls: 3}, {Bytes: job.LargestSize, Calls: 2}}}}, r.Sizes)
	assert.Equal(t, []job.Messages{{From: 0, To: "1", Messages: 10, Bytes: 100}}, r.Messages)
	assert.Equal(t, "mpit_unexpected_recvq_length", r.Levels[0].Metric)
	for i := range r.Ranks {
		if r.Ranks[i].Rank == 1 {
			assert.Equal(t, "up", r.Ranks[i].State)
			assert.EqualValues(t, nobody, r.Ranks[i].UID, "not known: not root's")
			assert.Equal(t, 33.0, r.Ranks[i].Running)
			assert.Equal(t, &api.LongCall{Function: "MPI_Recv", Kind: "comm", Object: "halo",
				Module: "/home/ada/solver", Offset: 16}, r.Ranks[i].Long)
		} else {
			assert.Equal(t, "ended", r.Ranks[i].State)
			assert.Zero(t, r.Ranks[i].UID)
			assert.InDelta(t, 0.8, r.Ranks[i].Busy(), 1e-9)
		}
	}

	// An exporter that could not be scraped for a moment: its rank hasn't ended.
	current = []string{`{"metric":{"__name__":"up","job":"mpi","instance":"node2:10093"},"value":[0,"0"]}`}
	reports, err = AskPrometheus(t.Context(), server.URL, nil, at, time.Hour)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	assert.Nil(t, reports[0].Job.Ended)

	server.Close()
	_, err = AskPrometheus(t.Context(), server.URL, nil, at, time.Hour)
	assert.ErrorContains(t, err, "nothing answers at "+server.URL)
}

// The verdict is the recorded one, if it is known whose; otherwise no rank is named, whatever their times suggest.
func TestRecordedVerdict(t *testing.T) {
	sample := func(labels string, value float64) string {
		return fmt.Sprintf(`{"metric":{"jobid":"17","user":"ada",%s},"value":[0,"%g"]}`, labels, value)
	}
	// Each of four ranks but rank 1 waits for half of its time; reason is how rank 0 has ended, if it has.
	ranks := func(world, reason string) (all []string) {
		for rank := range 4 {
			of := fmt.Sprintf(`"world":%q,"rank":"%d","instance":"n1","__name__":`, world, rank)
			outside := 40.0
			if rank == 1 {
				outside = 100
			}
			all = append(all, sample(of+`"mpit_rank_start_time_seconds"`, float64(jobtest.Began.Unix()+int64(rank))),
				sample(of+`"mpit_rank_seconds_total","state":"outside"`, outside),
				sample(of+`"mpit_rank_seconds_total","state":"collective"`, 100-outside),
				sample(of+`"mpit_call_time_seconds_sum","function":"MPI_Allreduce","comm":"residual"`, 100-outside))
			if reason != "" {
				all = append(all, sample(of+`"mpit_rank_end_info","reason":"`+reason+`"`, 1))
			}
		}
		return all
	}
	const useful, mostly = "55 % useful", "; 45 % of the time is spent in MPI, mostly in MPI_Allreduce on residual"
	for name, c := range map[string]struct {
		ranks []string
		said  string // labels
		want  string
		late  int    // -1: none
		world string // of which this is so; empty: all
	}{
		"none":                               {ranks("0", "finalize"), "", "communication: " + useful + mostly, -1, ""},
		"another rank":                       {ranks("0", "finalize"), `"state":"late rank","rank":"3","node":"n2"`, "late rank: " + useful + "; the others wait for rank 3 on n2", 3, ""},
		"no rank":                            {ranks("0", "finalize"), `"state":"healthy"`, "healthy: " + useful, -1, ""},
		"communication":                      {ranks("0", "finalize"), `"state":"communication"`, "communication: " + useful + mostly, -1, ""},
		"another job's":                      {ranks("0", "finalize"), `"jobid":"18","state":"late rank","rank":"3","node":"n2"`, "communication: " + useful + mostly, -1, ""},
		"an older exporter's, of two worlds": {append(ranks("0", "finalize"), ranks("1", "finalize")...), `"state":"late rank","rank":"3"`, "communication: " + useful + mostly, -1, ""},
		"another world's":                    {ranks("0", "finalize"), `"world":"1","state":"late rank","rank":"3","node":"n2"`, "communication: " + useful + mostly, -1, ""},
		"the world's":                        {ranks("0", "finalize"), `"world":"0","state":"late rank","rank":"3","node":"n2"`, "late rank: " + useful + "; the others wait for rank 3 on n2", 3, ""},
		"the world's, of two":                {append(ranks("0", "finalize"), ranks("1", "finalize")...), `"world":"0","state":"late rank","rank":"3","node":"n2"`, "late rank: " + useful + "; the others wait for rank 3 on n2", 3, "0"},
		"another's, of two":                  {append(ranks("0", "finalize"), ranks("1", "finalize")...), `"world":"0","state":"late rank","rank":"3","node":"n2"`, "communication: " + useful + mostly, -1, "1"},
		"it has crashed":                     {ranks("0", "lost"), `"state":"late rank","rank":"3","node":"n2"`, "crashed: 4 of 4 ranks ended without MPI_Finalize (lost); which was the first isn't known", -1, ""},
		"the same rank":                      {ranks("0", "finalize"), `"state":"late rank","rank":"1","node":"n1"`, "late rank: " + useful + "; 45 % of the time ranks wait in MPI_Allreduce on residual probably for rank 1 on n1", 1, ""},
		"nothing is told":                    {ranks("0", "finalize")[:1], "", "unknown: nothing is known of its time", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				of := []string{}
				switch query := req.FormValue("query"); {
				case strings.HasPrefix(query, "last_over_time"):
					of = c.ranks
				case strings.HasPrefix(query, "topk") && c.said != "":
					of = append(of, sample(c.said, 1))
				}
				fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(of, ","))
			}))
			defer server.Close()
			reports, err := AskPrometheus(t.Context(), server.URL, nil, jobtest.Began.Add(time.Hour), time.Hour)
			require.NoError(t, err)
			for _, r := range reports {
				if c.world != "" && c.world != r.Job.World {
					continue
				}
				assert.Contains(t, r.Verdict.Sentence(), c.want)
				require.Equal(t, c.late >= 0, r.Verdict.Late != nil)
				if c.late >= 0 {
					assert.Equal(t, c.late, r.Verdict.Late.Rank)
				} else if !strings.Contains(c.want, "crashed") {
					assert.NotContains(t, r.Verdict.Text, "rank")
				}
			}
		})
	}
}
