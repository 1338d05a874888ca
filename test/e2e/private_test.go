package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// privately is how an exporter is started whose port has the metrics for the user prometheus and reports for the user
// judge, both with the password "right", and lets daemon and the group adm see all jobs.
func privately(t *testing.T) harness.ExporterConfig {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	require.NoError(t, err)
	config := filepath.Join(suite.Dir(t), "web.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "basic_auth_users: {prometheus: %[1]s, judge: %[1]s}\n", hash),
		0o600))
	return harness.ExporterConfig{Login: "prometheus:right", Flags: []string{"--web.private", "--web.config.file=" + config,
		"--web.scraper=prometheus", "--web.judge=judge", "--operator=daemon", "--operator=@adm"}}
}

// Of two users' real jobs on a private exporter each sees the own one, and of the other's not that there is one: with
// list, report, top, cvar and on a page of their own. Root and operators see both.
func TestPrivate(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can be other users")
	}
	harness.Tool(t, "setpriv")
	const ada, eve, daemon, adm = 12345, 12346, 1, 4
	for _, mpi := range oneLibrary(t) {
		t.Run(mpi.Name, func(t *testing.T) {
			server := suite.ExporterWith(t, privately(t))
			bin := suite.Dir(t) // the checkout may be out of others' reach
			for _, path := range []string{suite.Binary(), suite.Agent(), suite.Calls()} {
				program, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(bin, filepath.Base(path)), program, 0o755))
			}
			binary := filepath.Join(bin, filepath.Base(suite.Binary()))
			require.NoError(t, os.Chmod(filepath.Dir(bin), 0o711))
			var runs []*harness.Run
			for id, uid := range map[string]uint32{"job-of-ada": ada, "job-of-eve": eve} {
				run := suite.Run(t, harness.Job{MPI: mpi, Program: "tour.c", Args: []string{harness.HoldDir}, ID: id, As: uid,
					Socket: server.Socket, Binary: binary, Exec: []string{"--calls"}})
				run.AtHold(t, "made")
				server.Await(t, "the ranks", up(run))
				runs = append(runs, run)
			}
			env := []string{"MPIT_SOCKET=" + server.Socket}
			variable := controlVariables[mpi.Name].local
			for _, viewer := range []struct {
				name     string
				uid, gid uint32
				ada, eve bool
			}{
				{"ada", ada, ada, true, false}, {"eve", eve, eve, false, true}, {"a third user", 12347, 12347, false, false},
				{"an operator", daemon, daemon, true, true}, {"of the operators' group", 12347, adm, true, true},
				{"root", 0, 0, true, true},
			} {
				for _, args := range []string{"list", "list --cvars", "list -o json", "report --line", "top --count=1 --interval=100ms"} {
					result := suite.Start(t, append(append(harness.As(viewer.uid, viewer.gid), binary), strings.Fields(args)...),
						env).Wait(t)
					said := result.Stdout + result.Stderr
					assert.Equal(t, viewer.ada, strings.Contains(said, "job-of-ada"), "%s of %s: %s", args, viewer.name, said)
					assert.Equal(t, viewer.eve, strings.Contains(said, "job-of-eve"), "%s of %s: %s", args, viewer.name, said)
				}
				for id, sees := range map[string]bool{"job-of-ada": viewer.ada, "job-of-eve": viewer.eve} {
					result := suite.Start(t, append(harness.As(viewer.uid, viewer.gid), binary, "cvar", "get", "--jobid="+id,
						variable), env).Wait(t)
					if sees {
						assert.Zero(t, result.Status, result.Stderr)
					} else {
						assert.Contains(t, result.Stderr, fmt.Sprintf("no rank of job %q is connected here", id))
					}
				}
			}

			reads, writes := io.Pipe()
			suite.StartTalking(t, append(harness.As(ada, ada), binary, "page", "--control.socket="+
				filepath.Join(filepath.Dir(server.Socket), "control.sock")), env, writes)
			line, err := bufio.NewReader(reads).ReadString('\n')
			require.NoError(t, err)
			page := strings.TrimSpace(line)
			for _, path := range []string{"ranks", "jobs", "report", "values", "catalogue", "report?jobid=job-of-eve",
				"values?jobid=job-of-eve", "catalogue?jobid=job-of-eve"} {
				response, err := http.Get(page + "api/v1/" + path)
				require.NoError(t, err)
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				assert.NotContains(t, string(text), "job-of-eve", path)
				if strings.Contains(path, "?") {
					assert.Equal(t, http.StatusNotFound, response.StatusCode, path)
				} else {
					assert.Contains(t, string(text), "job-of-ada", path)
				}
			}
			for _, run := range runs {
				run.Finish(t, "made", "freed")
			}
		})
	}
}
