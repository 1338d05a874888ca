package cluster

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Jobs are as wide and as long as the model's authors say, and bring the load that is asked for.
func TestWorkload(t *testing.T) {
	const jobs = 50_000
	w := newWorkload(1, 128, 0.7)
	var alone, powers, short, work, time float64
	for range jobs {
		width, length := w.job()
		require.True(t, width >= 1 && width <= 128, width)
		switch {
		case width == 1:
			alone++
		case bits.OnesCount(uint(width)) == 1:
			powers++
		}
		if length.Hours() < 1 {
			short++
		}
		work += float64(width) * length.Seconds()
		time += w.pause().Seconds()
	}
	assert.InDelta(t, 0.244, alone/jobs, 0.01)
	assert.InDelta(t, 0.62, powers/jobs, 0.03, "some others happen to be powers of two")
	assert.InDelta(t, 0.72, short/jobs, 0.03)
	assert.InDelta(t, 0.7, work/time/128, 0.07)
}

// A job has its nodes from its beginning to its end, no other job has them, and its ranks are shown for a while after
// it.
func TestMachine(t *testing.T) {
	m := newMachine(newWorkload(1, 16, 0.9))
	ends := map[*job]time.Duration{}
	var busy, looks int
	for now := time.Duration(0); now < 10*24*time.Hour; now += 5 * time.Minute {
		m.advance(now)
		busy += m.busy()
		looks += 16
		nodes := map[*job]int{}
		for i := range m.nodes {
			places, at := m.shown(i)
			require.Equal(t, now, at)
			running := 0
			for _, p := range places {
				if p.job.end > now {
					running++
					nodes[p.job]++
					require.LessOrEqual(t, p.job.start, now)
				} else {
					require.LessOrEqual(t, now-p.job.end, retention)
					ends[p.job] = p.job.end
				}
			}
			require.LessOrEqual(t, running, 1)
		}
		for j, n := range nodes {
			require.Equal(t, j.width, n)
			require.Equal(t, j.length, j.end-j.start)
		}
	}
	assert.Greater(t, len(ends), 5)
	assert.InDelta(t, 0.9, float64(busy)/float64(looks), 0.25)
}

const (
	firstPage = `# TYPE mpit_call_time_seconds histogram
mpit_call_time_seconds_sum{comm="grid",jobid="t",rank="0",user="ada",world="t"} 0.25
mpit_call_time_seconds_count{comm="grid",jobid="t",rank="0",user="ada",world="t"} 10
mpit_call_time_seconds_sum{comm="grid",jobid="t",rank="1",user="ada",world="t"} 2.5
mpit_call_time_seconds_count{comm="grid",jobid="t",rank="1",user="ada",world="t"} 10
# TYPE mpit_exporter_ranks gauge
mpit_exporter_ranks{state="up"} 2
# TYPE mpit_rank_up gauge
mpit_rank_up{jobid="t",rank="0",user="ada",world="t"} 1
mpit_rank_up{jobid="t",rank="1",user="ada",world="t"} 1
`
	secondPage = `mpit_call_time_seconds_sum{comm="grid",jobid="t",rank="0",user="ada",world="t"} 0.5
mpit_call_time_seconds_count{comm="grid",jobid="t",rank="0",user="ada",world="t"} 20
mpit_call_time_seconds_sum{comm="grid",jobid="t",rank="1",user="ada",world="t"} 5
mpit_call_time_seconds_count{comm="grid",jobid="t",rank="1",user="ada",world="t"} 10
`
)

// Ranks count on as those of the template did between its two scrapes, until their job ends.
func TestPage(t *testing.T) {
	template, err := newTemplate([]byte(firstPage), []byte(secondPage), 10*time.Second)
	require.NoError(t, err)
	perRank, perNode := template.series()
	assert.Equal(t, 3., perRank)
	assert.Equal(t, 1, perNode)

	e := exporters{template: template, ranks: 4}
	j := &job{number: 7, start: time.Minute, end: 3 * time.Minute}
	page := func(now time.Duration) *harness.Scrape {
		text := e.page([]place{{job: j, index: 1}}, now)
		scrape, err := harness.ParseText(text)
		require.NoError(t, err, "%s", text)
		return scrape
	}
	of := func(rank string) harness.Labels {
		return harness.Labels{"jobid": "7", "world": "7.0", "user": "user7", "rank": rank}
	}
	const calls = "mpit_call_time_seconds"
	running := page(2*time.Minute + 500*time.Millisecond)
	assert.Equal(t, []string{"4", "5", "6", "7"}, running.Values("mpit_rank_up", nil, "rank"))
	assert.NoError(t, running.Expect("mpit_rank_up", of("4"), 1))
	series, err := running.One(calls, of("4"))
	require.NoError(t, err)
	assert.Equal(t, 2.5+0.25*60.5, series.Value, "rank 4 is like rank 1")
	assert.Equal(t, uint64(10), series.Metric.GetHistogram().GetSampleCount(), "what didn't change")
	assert.NoError(t, running.Expect("mpit_exporter_ranks", nil, 2))
	assert.Empty(t, running.Select("mpit_rank_end_info", nil))

	ended := page(4 * time.Minute)
	assert.NoError(t, ended.Expect("mpit_rank_up", of("5"), 0))
	assert.NoError(t, ended.Expect("mpit_rank_end_info", of("5"), 1))
	assert.NoError(t, ended.Expect(calls, of("5"), 2.5+0.25*120))

	j.number, e.ranks = 8, 2
	j.end = time.Hour
	series, err = page(2*time.Minute+500*time.Millisecond).One(calls, harness.Labels{"rank": "2"})
	require.NoError(t, err)
	assert.Equal(t, "8", series.Labels["jobid"])
	assert.Equal(t, 35., template.families[0].ofRank[0][1].at("histogram", 25.9), "rank 0 counts whole calls")
}
