package dashboards

import (
	"maps"
	"slices"
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
			frame = append(frame, tableRow{labels: x.Labels, values: map[string]float64{q.RefID: x.Value}})
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

	jobs := panelOf(t, "mpit-jobs", "Jobs")
	found := map[string]tableRow{}
	programs := 0 // rows of the job that runs two programs
	for _, row := range s.rows(t, jobs, byUID["mpit-jobs"][0]) {
		found[row.labels["jobid"]] = row
		if row.labels["jobid"] != split {
			continue
		}
		programs++
		for _, column := range []string{"State", "Nodes", "Started", "Ran for", "Messages"} {
			assert.Contains(t, row.values, letter(t, jobs, column), "%s: %s", row.labels["executable"], column)
		}
	}
	assert.Equal(t, 2, programs)
	require.Len(t, found, len(order))
	for _, want := range []struct {
		job, column string
		value       float64
	}{
		{early, "State", 0}, {killed, "State", 0}, {aborted, "State", 0}, {lost, "State", 0}, {split, "State", 1},
		{queued, "State", 1}, {mpich, "State", 1},
		{early, "Ranks", 2}, {split, "Ranks", 1}, {lost, "Ranks", 1}, {mpich, "Ranks", 2},
		{early, "Nodes", 1}, {split, "Nodes", 2}, {queued, "Nodes", 1},
		{queued, "Longest queue", 41},
	} {
		assert.Equal(t, want.value, found[want.job].values[letter(t, jobs, want.column)], "%s of %s", want.column,
			want.job)
	}
	assert.Equal(t, "openmpi", found[early].labels["library"])
	assert.Equal(t, "mpich", found[mpich].labels["library"])
	assert.Contains(t, found[early].labels["executable"], "traffic")
	assert.NotEmpty(t, found[early].labels["user"])
	// It went through all its rounds, the other one through half of them.
	messages, bytes := letter(t, jobs, "Messages"), letter(t, jobs, "Bytes")
	for _, column := range []string{messages, bytes} {
		whole, half := found[early].values[column], found[split].values[column]
		assert.Greater(t, whole, half)
		assert.Greater(t, half, float64(rounds))
	}
	assert.GreaterOrEqual(t, found[early].values[bytes], 2*2*rounds*1000.0,
		"a put of 1000 bytes in each round of each rank")
	ran := found[early].values[letter(t, jobs, "Ran for")]
	assert.True(t, ran > 0 && ran <= s.to.Sub(s.from).Seconds()+5, "ran for %v s", ran)
	assert.NotContains(t, found[mpich].values, messages, "MPICH counts nothing")

	// The job that has ended is there rank by rank, its end and all.
	ranks := panelOf(t, "mpit-ranks", "Ranks")
	rows := s.rows(t, ranks, of("mpit-ranks", early))
	require.Len(t, rows, 2)
	for _, row := range rows {
		assert.Equal(t, "finalize", row.labels["reason"])
		assert.Equal(t, 0.0, row.values[letter(t, ranks, "State")])
	}
	balance := panelOf(t, "mpit-job", "Rank by rank")
	waiting := letter(t, balance, "Longest queue")
	for _, row := range s.rows(t, balance, of("mpit-job", queued)) {
		assert.Equal(t, map[string]float64{"0": 0, "1": 41}[row.labels["rank"]], row.values[waiting], "rank %s",
			row.labels["rank"])
	}
	comms := panelOf(t, "mpit-job", "Communicators")
	at := map[string]tableRow{}
	for _, row := range s.rows(t, comms, of("mpit-job", early)) {
		at[row.labels["comm"]] = row
	}
	assert.Equal(t, "2", at["ring"].labels["size"])
	assert.Contains(t, at, "sums")
	// On "ring" a broadcast and a reduction of each round, in the root alone; on "sums" an allreduce, in both ranks.
	assert.Equal(t, 2.0*2*rounds, at["ring"].values[letter(t, comms, "Collectives")])
	assert.Equal(t, 2.0*2*rounds, at["sums"].values[letter(t, comms, "Collectives")])
	assert.Equal(t, 2.0*2*rounds*1000, at["ring"].values[letter(t, comms, "Bytes of collectives")])

	// A rank that was killed, and ranks that aborted.
	lost := panelOf(t, "mpit-jobs", "Ranks that were lost or aborted")
	reasons := map[string][]string{}
	for _, row := range s.rows(t, lost, byUID["mpit-jobs"][0]) {
		reasons[row.labels["jobid"]] = append(reasons[row.labels["jobid"]], row.labels["reason"])
	}
	assert.Contains(t, reasons[killed], "lost")
	assert.Contains(t, reasons[aborted], "abort")
}
