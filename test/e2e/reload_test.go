package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// Rules may change while a job runs: what is renamed goes on counting under its new name, what is dropped is not
// read, and is exact again when it is back. Bad rules change nothing.
func TestRulesChangeWhileAJobRuns(t *testing.T) {
	t.Parallel()
	const (
		ranks  = 2
		rounds = 20
		bytes  = 1000

		renamedCalls = "mpit_collectives_of_all_total"
		reloadOK     = "mpit_exporter_config_last_reload_successful"
		reloads      = "mpit_exporter_config_reloads_total"
	)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		plain = "limits: {series: 500000}\n"
		other = `rules:
  - match: {library: openmpi, name: coll_monitoring_o2a_*}
    drop: true
  - match: {library: openmpi, name: coll_monitoring_a2a_count}
    name: collectives_of_all
`
		bad = "rules:\n  - match: {libary: openmpi}\n    drop: true\n" //nolint:misspell // on purpose
	)
	write(plain)
	exporter := suite.Exporter(t, "--config.file="+rules)
	mpi := harness.OpenMPI(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Ranks: ranks, Program: "traffic.c", Args: []string{"20", "1000", harness.HoldDir},
		Exec: []string{"--monitoring"}, Socket: exporter.Socket,
	})
	reload := func(text, result string, times float64) check {
		t.Helper()
		write(text)
		exporter.Signal(t, syscall.SIGHUP)
		return expect(reloads, harness.Labels{"result": result}, times)
	}
	gone := func(name string) check { return absent(name, harness.Labels{"jobid": run.ID}) }
	never := func(n float64) check { // what no rule touches
		return all(up(run), counted(run, allToOneBytes, "ring", atRoot(n*bytes*(ranks-1))),
			countedForPeers(mpi, counted(run, putBytes, "MPI_COMM_WORLD", always(n*bytes))))
	}

	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	exporter.Await(t, "the names that libraries give", all(never(rounds),
		counted(run, oneToAllCalls, "ring", atRoot(rounds)), counted(run, allToAllCalls, "sums", always(rounds)),
		counted(run, allToAllCalls, "brief", always(2*rounds)), gone(renamedCalls)))

	exporter.Await(t, "other rules: what they leave alone goes on, the new name begins at zero",
		all(reload(other, "success", 1), never(rounds),
			gone(oneToAllCalls), gone(oneToAllBytes), gone(allToAllCalls),
			counted(run, renamedCalls, "sums", always(0)), counted(run, renamedCalls, "brief", always(0))))
	run.Release(t, "half")
	run.AtHold(t, "done")
	exporter.Await(t, "exact counts under the new name", all(never(2*rounds), gone(oneToAllCalls),
		counted(run, renamedCalls, "sums", always(rounds)), counted(run, renamedCalls, "brief", always(0))))

	exporter.Await(t, "the rules before bad ones", all(reload(bad, "failure", 1), expect(reloadOK, nil, 0),
		never(2*rounds),
		gone(oneToAllCalls), counted(run, renamedCalls, "sums", always(rounds))))

	back := all(gone(renamedCalls),
		counted(run, oneToAllCalls, "ring", atRoot(2*rounds)),
		counted(run, oneToAllBytes, "ring", atRoot(2*rounds*bytes*(ranks-1))),
		counted(run, allToAllCalls, "sums", always(0)))
	exporter.Await(t, "the first rules again, and what was counted meanwhile",
		all(reload(plain, "success", 2), expect(reloadOK, nil, 1), never(2*rounds), back))
	run.Finish(t, "done")
	exporter.Await(t, "exact counts of the ended job", all(ended(run, "finalize"), back, healthy))
}

// What each message pays for is opened when a rule asks for it, and counts from then on. A rule that no longer asks
// closes nothing.
func TestRulesOpenWhileAJobRuns(t *testing.T) {
	t.Parallel()
	const (
		ranks  = 2
		rounds = 20
		bytes  = 1000

		reloads   = "mpit_exporter_config_reloads_total"
		variables = "mpit_exporter_variables"
	)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		plain = "limits: {series: 500000}\n"
		open  = `rules:
  - match: {library: openmpi, name: coll_monitoring_*}
    open: true
  - match: {library: openmpi, name: osc_monitoring_messages_sent_size}
    open: true
`
	)
	write(plain)
	exporter := suite.Exporter(t, "--config.file="+rules)
	mpi := harness.OpenMPI(t)
	run := suite.Run(t, harness.Job{
		MPI: mpi, Ranks: ranks, Program: "traffic.c", Args: []string{"20", "1000", harness.HoldDir},
		Socket: exporter.Socket,
		// Open MPI counts, but nobody has asked the agent for it.
		Env: []string{"OMPI_MCA_pml_monitoring_enable=2", "MPIT_AGENT_OPEN="},
	})
	reload := func(text string, times float64) check {
		t.Helper()
		write(text)
		exporter.Signal(t, syscall.SIGHUP)
		return expect(reloads, harness.Labels{"result": "success"}, times)
	}
	waiting := 12.0 // variables of monitoring, of which the rule asks for nine
	switch mpi.Major {
	case 5:
		waiting = 14 // and two of messages, which the harness leaves out in 6
	case 6:
		waiting = 21 // and nine types of events
	}
	onRequest := func(n float64) check { return expect(variables, harness.Labels{"state": "on_request"}, n*ranks) }
	counts := func(n float64) check {
		return all(counted(run, oneToAllCalls, "ring", atRoot(n)), counted(run, allToAllCalls, "sums", always(n)),
			countedForPeers(mpi, counted(run, putBytes, "MPI_COMM_WORLD", always(n*bytes))),
			absent(putMessages, harness.Labels{"jobid": run.ID}), onRequest(waiting-9))
	}

	run.AtHold(t, "ready")
	run.Release(t, "ready")
	run.AtHold(t, "half")
	exporter.Await(t, "nothing that nobody has asked for", all(up(run), onRequest(waiting),
		absent(allToAllCalls, harness.Labels{"jobid": run.ID}), absent(putBytes, harness.Labels{"jobid": run.ID})))

	exporter.Await(t, "what a rule asks for, from now on", all(reload(open, 1), counts(0)))
	run.Release(t, "half")
	run.AtHold(t, "done")
	exporter.Await(t, "exact counts of the second half", counts(rounds))

	exporter.Await(t, "the same without the rule", all(reload(plain, 2), counts(rounds)))
	run.Finish(t, "done")
	exporter.Await(t, "exact counts of the ended job",
		all(ended(run, "finalize"), counted(run, allToAllCalls, "sums", always(rounds)),
			countedForPeers(mpi, counted(run, putBytes, "MPI_COMM_WORLD", always(rounds*bytes))), healthy))
}
