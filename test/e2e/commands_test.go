package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/api"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// What can't work ends with one line that says why, and a status that says so.
func TestClearErrors(t *testing.T) {
	t.Parallel()
	living := suite.Exporter(t)
	nowhere := filepath.Join(suite.Dir(t), "missing", "agent.sock")
	cases := []struct {
		name    string
		command []string
		env     []string
		status  int
		says    string
	}{
		{"an unknown flag", []string{"--no-such-flag"}, nil, 2, "no-such-flag"},
		{"an unknown command", []string{"no-such-command"}, nil, 2, "no-such-command"},
		{"a socket in use", []string{"--agent.socket=" + living.Socket, "--web.listen-address=127.0.0.1:0"}, nil, 1,
			living.Socket},
		{"a port in use", []string{"--agent.socket=" + filepath.Join(suite.Dir(t), "a.sock"),
			"--web.listen-address=" + living.Address},
			nil, 1, living.Address},
		{"a socket that can't be made", []string{"--agent.socket=" + nowhere, "--web.listen-address=127.0.0.1:0"},
			nil, 1, nowhere},
		{"exec of nothing", []string{"exec"}, nil, 2, "program"},
		{"exec of what isn't there", []string{"exec", "--", "/no/such/program"}, nil, 127, "/no/such/program"},
		{"exec of a directory", []string{"exec", "--", "/tmp"}, nil, 126, "/tmp"},
		{"exec without an agent", []string{"exec", "--", "true"}, []string{"MPIT_AGENT_LIBRARY=/no/such/library.so"},
			125, "/no/such/library.so"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := suite.Start(t, append([]string{suite.Binary()}, c.command...), c.env).Wait(t)
			assert.Equal(t, c.status, result.Status, result.Stderr)
			assert.Equal(t, 1, strings.Count(result.Stderr, "\n"), "not one line: %q", result.Stderr)
			assert.Contains(t, result.Stderr, c.says)
			assert.Empty(t, result.Stdout)
		})
	}
	// The living one hasn't noticed.
	living.Scrape(t)
}

// SIGTERM ends the exporter with status 0 and removes its socket; what a killed one left behind is taken over.
func TestSocketFile(t *testing.T) {
	t.Parallel()
	e := suite.Exporter(t)
	e.Kill(t)
	require.FileExists(t, e.Socket)
	e.Restart(t)
	require.FileExists(t, e.Socket)
	e.Signal(t, syscall.SIGTERM)
	result := e.Wait(t)
	assert.Zero(t, result.Status, result.Stderr)
	_, err := os.Stat(e.Socket)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// "list" shows the same catalogue from an exporter's ranks and from a program that it runs itself.
func TestList(t *testing.T) {
	t.Parallel()
	for _, mpi := range harness.Both(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			server := suite.Exporter(t)
			run := suite.Run(t, harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir},
				Socket: server.Socket})
			run.AtHold(t, "made")
			server.Await(t, "the ranks", up(run))
			list := func(args ...string) string {
				result := suite.Start(t, append([]string{suite.Binary(), "list"}, args...), mpi.Env()).Wait(t)
				require.Zero(t, result.Status, result.Stderr)
				return result.Stdout
			}

			table := list("--url="+server.URL(""), "--all")
			if mpi.Name == "openmpi" {
				assert.Contains(t, table, "pml_ob1_unexpected_msgq_length")
				assert.Contains(t, table, unexpectedQueue)
			} else {
				assert.Contains(t, table, "MPIR_CVAR_BCAST_MIN_PROCS")
			}
			connected := catalogueOf(t, list("--output=json", "--url="+server.URL("")))
			assert.Equal(t, mpi.Name, connected.Rank.Library)
			assert.Equal(t, run.ID, connected.Rank.JobID)

			// It lives long enough to be asked for everything.
			program := suite.Program(t, mpi, "churn.c")
			alone := catalogueOf(t, list("--output=json", "--", program, "2", "1"))
			assert.Equal(t, mpi.Name, alone.Rank.Library)
			assert.NotEmpty(t, alone.ControlVariables)
			assert.NotEmpty(t, connected.ControlVariables)
			run.Finish(t, "made", "freed")
		})
	}
}

func catalogueOf(t *testing.T, text string) api.Catalogue {
	t.Helper()
	var list api.CatalogueList
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	require.Len(t, list.Catalogues, 1, fmt.Sprint(list.Errors))
	return list.Catalogues[0]
}
