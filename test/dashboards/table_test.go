package dashboards

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tableRow is a row of a table as Grafana makes it of several queries: labels, and values by the query's letter.
type tableRow struct {
	labels map[string]string
	values map[string]float64
}

// rows does what the transformation "merge" does: rows of two queries are one if they agree in all labels that every
// query has, and contradict each other in no other one.
func (s site) rows(t *testing.T, p panel, values map[string]string) []tableRow {
	t.Helper()
	var frames [][]tableRow
	var common []string
	for _, q := range p.Targets {
		samples, err := s.ask(t.Context(), q, values)
		require.NoError(t, err, "%s %s", p.Title, q.RefID)
		if len(samples) == 0 {
			continue
		}
		columns := map[string]bool{}
		var frame []tableRow
		for _, x := range samples {
			for label := range x.Labels {
				columns[label] = true
			}
			frame = append(frame, tableRow{labels: maps.Clone(x.Labels), values: map[string]float64{q.RefID: x.Value}})
		}
		for label := range columns { // a column has something in each row
			for _, row := range frame {
				row.labels[label] += ""
			}
		}
		if frames == nil {
			common = slices.Collect(maps.Keys(columns))
		}
		common = slices.DeleteFunc(common, func(label string) bool { return !columns[label] })
		frames = append(frames, frame)
	}
	require.True(t, len(frames) < 2 || len(common) > 0, "%s: nothing joins its queries", p.Title)
	var merged []tableRow
	for _, frame := range frames {
		for _, row := range frame {
			found := false
			for i := range merged {
				if !mergeable(merged[i], row, common) {
					continue
				}
				found = true
				maps.Copy(merged[i].labels, row.labels)
				maps.Copy(merged[i].values, row.values)
			}
			if !found {
				merged = append(merged, tableRow{labels: maps.Clone(row.labels), values: maps.Clone(row.values)})
			}
		}
	}
	return merged
}

func mergeable(a, b tableRow, common []string) bool {
	for _, label := range common {
		if a.labels[label] != b.labels[label] {
			return false
		}
	}
	for label, value := range b.labels {
		if other, ok := a.labels[label]; ok && other != value {
			return false
		}
	}
	for letter, value := range b.values {
		if other, ok := a.values[letter]; ok && other != value {
			return false
		}
	}
	return true
}

// fits says whether a row is one of those that a sample speaks of.
func fits(row tableRow, labels map[string]string) bool {
	for label, value := range labels {
		if row.labels[label] != value {
			return false
		}
	}
	return true
}

// Every row of a table has what each of its queries says of the row's labels, and every label has its column.
func (s site) testTables(t *testing.T) {
	tables := 0
	for _, d := range read(t) {
		for _, values := range s.choices(t, d) {
			for _, p := range d.all() {
				if p.Type != "table" {
					continue
				}
				for _, q := range p.Targets {
					samples, err := s.ask(t.Context(), q, values)
					require.NoError(t, err)
					for _, sample := range samples {
						for label := range sample.Labels {
							_, placed := p.organize(t).IndexByName[label]
							assert.True(t, placed || p.organize(t).ExcludeByName[label],
								"%s %s has a label %s for which there is no column", p.Title, q.RefID, label)
						}
					}
				}
				if len(p.Targets) == 1 {
					continue
				}
				tables++
				rows := s.rows(t, p, values)
				for _, q := range p.Targets {
					samples, err := s.ask(t.Context(), q, values)
					require.NoError(t, err)
					for _, sample := range samples {
						fitting := 0
						for _, row := range rows {
							if fits(row, sample.Labels) {
								fitting++
								assert.Contains(t, row.values, q.RefID, "%s of %s: %v lacks %s", p.Title,
									values["jobid"], row, q.Expr)
							}
						}
						assert.Positive(t, fitting, "%s of %s: %v", p.Title, values["jobid"], sample)
					}
				}
			}
		}
	}
	assert.Greater(t, tables, 10)
}

// panelOf finds a panel by its title.
func panelOf(t *testing.T, uid, title string) panel {
	t.Helper()
	for _, d := range read(t) {
		for _, p := range d.all() {
			if d.UID == uid && p.Title == title {
				return p
			}
		}
	}
	require.Fail(t, "no panel", "%s on %s", title, uid)
	return panel{}
}

// letter is the query that fills a column.
func letter(t *testing.T, p panel, column string) string {
	t.Helper()
	for name, title := range p.organize(t).RenameByName {
		if title == column && strings.HasPrefix(name, "Value #") {
			return strings.TrimPrefix(name, "Value #")
		}
	}
	require.Fail(t, "no column", "%s of %s", column, p.Title)
	return ""
}

// The figures of jobs whose figures are known: one that has ended, one on two nodes, one whose rank 1 has 41 messages
// waiting.
func (s site) testTruth(t *testing.T) {
	byUID := map[string][]map[string]string{}
	for _, d := range read(t) {
		byUID[d.UID] = s.choices(t, d)
	}
	of := func(uid, job string) map[string]string {
		at := slices.IndexFunc(byUID[uid], func(values map[string]string) bool { return values["jobid"] == job })
		require.GreaterOrEqual(t, at, 0)
		return byUID[uid][at]
	}

	// Each job has one row, also one that runs two programs, and the one that needs attention most comes first.
	jobs := panelOf(t, "mpit-jobs", "Jobs")
	found := map[string]tableRow{}
	for _, row := range s.rows(t, jobs, byUID["mpit-jobs"][0]) {
		assert.Empty(t, found[row.labels["jobid"]].labels, "two rows of %s", row.labels["jobid"])
		found[row.labels["jobid"]] = row
	}
	require.Len(t, found, len(order))
	for _, want := range []struct{ job, label, value string }{
		{stuck, "state", "waiting"}, {killed, "state", "crashed"}, {aborted, "state", "crashed"},
		{left, "state", "crashed"}, {split, "state", "unknown"},
		{early, "world_size", "2"}, {split, "world_size", "2"}, {mpich, "world_size", "2"},
	} {
		// In front of a state is its place in the order.
		assert.Regexp(t, `^(\d\d )?`+want.value+`$`, found[want.job].labels[want.label], "%s of %s", want.label, want.job)
	}
	assert.Regexp(t, `^traffic`, found[early].labels["program"])
	assert.NotEmpty(t, found[early].labels["user"])
	assert.Equal(t, "MPIJobWaitsForRank", found[stuck].labels["alertname"])
	assert.Equal(t, "1", found[stuck].labels["rank"], "the late rank")
	ran := found[early].values[letter(t, jobs, "Ran for")]
	assert.True(t, ran > 0 && ran <= s.to.Sub(s.from).Seconds()+5, "ran for %v s", ran)

	for _, job := range s.profiled {
		s.testShares(t, job, byUID["mpit-jobs"][0], of("mpit-job", job.id))
	}

	// The job that has ended is there rank by rank, its end and all.
	ranks := panelOf(t, "mpit-variables", "Ranks")
	rows := s.rows(t, ranks, of("mpit-variables", early))
	require.Len(t, rows, 2)
	for _, row := range rows {
		assert.Equal(t, "finalize", row.labels["reason"])
	}
	// Of the job that waits the late rank comes first, and where the ranks are is known.
	late := panelOf(t, "mpit-job", "Ranks, from late to early")
	waits := map[string]float64{}
	for _, row := range s.rows(t, late, of("mpit-job", stuck)) {
		waits[row.labels["rank"]] = row.values[letter(t, late, "Waiting")]
	}
	assert.Less(t, waits["1"], waits["0"])
	queue := letter(t, late, "Longest queue")
	for _, row := range s.rows(t, late, of("mpit-job", queued)) {
		assert.Equal(t, map[string]float64{"0": 0, "1": 41}[row.labels["rank"]], row.values[queue], "rank %s",
			row.labels["rank"])
	}
	now := panelOf(t, "mpit-job", "Where are the ranks now?")
	places := map[string]string{}
	for _, row := range s.rows(t, now, of("mpit-job", stuck)) {
		places[row.labels["function"]+" "+row.labels["comm"]] = row.labels["rank"]
		assert.Equal(t, 1.0, row.values[letter(t, now, "Ranks")])
	}
	assert.Equal(t, map[string]string{"MPI_Barrier halo": "0", "(in no long call) ": "1"}, places)
}

// testShares holds the shares of a job's time to what its ranks say: no time is both useful and waited for, however
// busy the machine is.
func (s site) testShares(t *testing.T, job profiled, ofAll, ofJob map[string]string) {
	ranks := panelOf(t, "mpit-job", "Ranks, from late to early")
	observed, err := s.ask(t.Context(), target{Instant: true, Expr: `sum by (rank) (last_over_time(` +
		`mpit_rank_seconds_total{jobid="$jobid"}[$__range]))`}, ofJob)
	require.NoError(t, err)
	seconds := map[string]float64{}
	for _, sample := range observed {
		seconds[sample.Labels["rank"]] = sample.Value
	}
	rows := s.rows(t, ranks, ofJob)
	assert.Len(t, rows, len(job.spent))
	for _, row := range rows {
		rank, err := strconv.Atoi(row.labels["rank"])
		require.NoError(t, err)
		inside := 0.0
		for _, spent := range job.spent[rank] {
			inside += spent
		}
		all, useful := seconds[row.labels["rank"]], row.values[letter(t, ranks, "Useful")]
		// Shares are means of windows of five seconds, and not all of these are scraped when a rule looks.
		const margin = 0.3
		assert.GreaterOrEqual(t, useful+margin, 0.9*(job.took-inside)/all, "useful time of rank %d of %s", rank, job.id)
		assert.GreaterOrEqual(t, 1-useful+margin, 0.9*inside/all, "MPI's time in rank %d of %s", rank, job.id)
		waiting := row.values[letter(t, ranks, "Waiting")]
		assert.GreaterOrEqual(t, waiting+margin, 0.9*job.spent[rank]["MPI_Allreduce"]/all, "rank %d of %s waits", rank,
			job.id)
		assert.LessOrEqual(t, useful+waiting, 1.05, "rank %d of %s", rank, job.id)
	}

	// When it ends the last window may be one rank's alone.
	s.to = job.half
	jobs := panelOf(t, "mpit-jobs", "Jobs")
	for _, row := range s.rows(t, jobs, ofAll) {
		if row.labels["jobid"] != job.id {
			continue
		}
		useful := row.values[letter(t, jobs, "Useful")]
		assert.True(t, useful > 0 && useful < 1, "%s: %v", job.id, useful)
		return
	}
	assert.Fail(t, "no row", job.id)
}
