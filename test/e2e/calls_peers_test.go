package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// The families of exec --calls=peers.
const (
	peerMessages = "mpit_call_peer_messages_total"
	peerBytes    = "mpit_call_peer_bytes_total"
)

// traffic is what a rank has sent to each peer.
type traffic map[string]sentTo

type sentTo struct{ messages, bytes float64 }

// readTraffic reads what each rank of a job has left in the file POINT.peers.RANK.
func readTraffic(tb testing.TB, run *harness.Run, point string) []traffic {
	tb.Helper()
	all := make([]traffic, run.Ranks)
	for rank := range all {
		all[rank] = traffic{}
		file, err := os.Open(run.File(fmt.Sprintf("%s.peers.%d", point, rank)))
		require.NoError(tb, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var to sentTo
			var peer string
			_, err := fmt.Sscan(lines.Text(), &peer, &to.messages, &to.bytes)
			require.NoError(tb, err)
			all[rank][peer] = to
		}
		require.NoError(tb, file.Close())
		require.NotEmpty(tb, all[rank])
	}
	return all
}

// sentByPeer: the page shows of each rank what it has sent to whom, nothing less and nothing more.
func sentByPeer(run *harness.Run, all []traffic) check {
	return func(s *harness.Scrape) error {
		var failed []error
		for rank, want := range all {
			got := traffic{}
			for _, series := range s.Select(peerMessages, run.Labels(rank)) {
				got[series.Labels["peer"]] = sentTo{messages: series.Value}
			}
			for _, series := range s.Select(peerBytes, run.Labels(rank)) {
				to := got[series.Labels["peer"]]
				to.bytes = series.Value
				got[series.Labels["peer"]] = to
			}
			if !maps.Equal(got, want) {
				failed = append(failed, fmt.Errorf("rank %d has sent %v, and the page shows %v", rank, want, got))
			}
		}
		return errors.Join(failed...)
	}
}

// Messages on communicators and windows in which everybody has another rank: the page has them by the rank in
// MPI_COMM_WORLD, as the programs' books have.
func TestPeers(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			exporter := suite.Exporter(t)
			run := suite.Run(t, harness.Job{
				MPI: mpi, Ranks: 5, Program: "profile_peers.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
				Exec: []string{"--calls=peers"}, Env: []string{"MPIT_AGENT_FINAL_WAIT=60000"},
			})
			run.AtHold(t, "half")
			half := readTraffic(t, run, "half")
			exporter.Await(t, "the messages so far", all(up(run), sentByPeer(run, half)))
			exporter.Kill(t)
			exporter.Restart(t)
			exporter.Await(t, "the messages so far, by another exporter", all(up(run), sentByPeer(run, half)))
			run.Release(t, "half")
			run.AtHold(t, "done")
			exporter.Await(t, "all messages", all(up(run), sentByPeer(run, readTraffic(t, run, "done"))))
			run.Finish(t, "done")
			exporter.Await(t, "the messages of the ended job",
				all(ended(run, "finalize"), sentByPeer(run, readTraffic(t, run, "end")), healthy))
		})
	}
}

// Nobody has asked for them.
func TestNoPeers(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	run := suite.Run(t, harness.Job{
		MPI: harness.MPICH(t), Program: "profile_peers.c", Args: []string{harness.HoldDir}, Socket: exporter.Socket,
		Exec: []string{"--calls"},
	})
	run.AtHold(t, "half")
	scrape := exporter.Await(t, "the call profile", all(up(run), expect(callUncounted, run.Labels(0), 0)))
	assert.Empty(t, scrape.Select(peerMessages, nil))
	assert.Empty(t, scrape.Select(peerBytes, nil))
	run.Finish(t, "half", "done")
}

// What Open MPI's own monitoring component writes at the end of the same program, which does the same each time. (Where
// somebody uses MPI_T, as the agent does, it writes nothing.) It knows nothing of persistent sends.
func TestPeersAndMonitoring(t *testing.T) {
	t.Parallel()
	exporter := suite.Exporter(t)
	mpi := harness.OpenMPI(t)
	if mpi.Major >= 6 {
		t.Skip("Open MPI 6.0.0rc2 ends in MPI_Init with it")
	}
	written := t.TempDir()
	alone := suite.Run(t, harness.Job{
		MPI: mpi, Ranks: 4, Program: "profile_peers.c", Args: []string{"-", "messages"}, Bare: true, Env: []string{
			"OMPI_MCA_pml_monitoring_enable=2", "OMPI_MCA_pml_monitoring_enable_output=3",
			"OMPI_MCA_pml_monitoring_filename=" + written + "/run"},
	})
	alone.Finish(t)
	monitored := make([]traffic, alone.Ranks)
	for rank := range monitored {
		monitored[rank] = readMonitored(t, fmt.Sprintf("%s/run.%d.prof", written, rank))
	}
	run := suite.Run(t, harness.Job{
		MPI: mpi, Ranks: alone.Ranks, Program: "profile_peers.c", Args: []string{"-", "messages"}, Socket: exporter.Socket,
		Exec: []string{"--calls=peers"}, Env: []string{"MPIT_AGENT_FINAL_WAIT=60000"},
	})
	run.Finish(t)
	exporter.Await(t, "the messages of the ended job", all(ended(run, "finalize"), sentByPeer(run, monitored)))
}

// readMonitored reads what a rank's file says of messages that the program has sent: lines of E, the rank, the peer,
// bytes and messages.
func readMonitored(tb testing.TB, path string) traffic {
	tb.Helper()
	text, err := os.ReadFile(path)
	require.NoError(tb, err)
	found := traffic{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[0] != "E" {
			continue
		}
		bytes, err := strconv.ParseFloat(fields[3], 64)
		require.NoError(tb, err, line)
		messages, err := strconv.ParseFloat(fields[5], 64)
		require.NoError(tb, err, line)
		found[fields[2]] = sentTo{messages: messages, bytes: bytes}
	}
	require.NotEmpty(tb, found)
	return found
}
