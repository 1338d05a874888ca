package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// targets are instances and their states.
type targets map[string]string

// Schedulers' nodes become targets by the scripts of examples/, from what the schedulers' commands print: slurm.txt is
// what sinfo of Slurm 22.05 said of a small cluster with a reservation, and nodes that are down, drained and in the
// cloud.
func TestTargetsOfSchedulers(t *testing.T) {
	for _, c := range []struct {
		name, script, command, says, state string
		want                               targets
	}{
		{"Slurm", "slurm", "sinfo", "slurm.txt", "__meta_slurm_state", targets{
			"gpu1:10093": "down", "gpu2:10093": "unknown", "node01:10093": "mixed", "node02:10093": "drained",
			"node03:10093": "maint"}},
		{"OpenPBS", "pbs", "pbsnodes", "pbs.txt", "__meta_pbs_state", targets{
			"n001.cluster:10093": "free", "n002.cluster:10093": "down,offline", "uv.cluster:10093": "job-exclusive"}},
		{"Torque", "pbs", "pbsnodes", "torque.txt", "__meta_pbs_state", targets{
			"c01:10093": "job-exclusive", "c02:10093": "down"}},
		{"Slurm without nodes", "slurm", "sinfo", "none.txt", "__meta_slurm_state", targets{}},
		{"PBS without nodes", "pbs", "pbsnodes", "none.txt", "__meta_pbs_state", targets{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScheduler(t, c.script, c.command)
			says, err := os.ReadFile(filepath.Join("testdata", c.says))
			require.NoError(t, err)
			require.NoError(t, s.renew(t, string(says)))
			text, err := os.ReadFile(s.file)
			require.NoError(t, err)
			var list []struct {
				Targets []string
				Labels  map[string]string
			}
			require.NoError(t, json.Unmarshal(text, &list), "%s", text)
			have := targets{}
			for _, entry := range list {
				require.Len(t, entry.Targets, 1)
				have[entry.Targets[0]] = entry.Labels[c.state]
				if entry.Targets[0] == "node03:10093" {
					assert.Equal(t, ",batch,gpu,", entry.Labels["__meta_slurm_partitions"])
				}
			}
			assert.Equal(t, c.want, have)

			require.Error(t, s.renew(t, ""), "the scheduler doesn't answer")
			same, err := os.ReadFile(s.file)
			require.NoError(t, err)
			assert.Equal(t, string(text), string(same))
		})
	}
}

// A real Prometheus, for one of two partitions, follows the file: nodes that are switched on come, those switched off
// or taken out go, and jobs change nothing.
func TestNodesOfSlurm(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, "slurm", "sinfo")
	require.NoError(t, s.renew(t,
		"node1 idle batch\nnode2 idle batch\nnode2 idle long\nnode3 idle gpu\ncloud1 idle~ batch\n"))
	nodes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "mpit_exporter_build_info{host=%q} 1\n", r.URL.Hostname())
	}))
	t.Cleanup(nodes.Close)
	prometheus := suite.PrometheusWith(t, harness.PrometheusConfig{Discovery: s.file,
		Scrape: ofScrape("proxy_url: " + nodes.URL + "\n" + blockOf(t, "deploy.md", "nodes that Slurm has taken out") +
			strings.TrimPrefix(block(t, "the server of partition batch"), "relabel_configs:\n"))})
	for _, step := range []struct{ sinfo, up string }{
		{"", "node1 node2"},
		{"node1 allocated batch\nnode2 down* batch\nnode3 mixed gpu\ncloud1 mixed- batch\n", "cloud1 node1"},
		{"node1 completing batch\nnode2 idle* batch\ncloud1 idle% batch\n", "node1 node2"},
	} {
		if step.sinfo != "" {
			require.NoError(t, s.renew(t, step.sinfo))
		}
		prometheus.Await(t, `mpit_exporter_build_info and on (instance) up == 1`, func(samples []harness.Sample) error {
			var have []string
			for _, s := range samples {
				have = append(have, s.Labels["host"])
			}
			slices.Sort(have)
			if up := strings.Join(have, " "); up != step.up {
				return fmt.Errorf("%s, not %s", up, step.up)
			}
			return nil
		})
	}
}

// scheduler stands for a command that lists nodes, and has a script that makes targets of them.
type scheduler struct {
	script, bin, says, file string
}

func newScheduler(t *testing.T, script, command string) scheduler {
	t.Helper()
	dir := suite.Dir(t)
	s := scheduler{script: filepath.Join(suite.Root(), "examples", script, "targets.sh"), bin: dir,
		says: filepath.Join(dir, "says"), file: filepath.Join(dir, "nodes.json")}
	require.NoError(t, os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\nexec cat "+s.says+"\n"), 0o755))
	return s
}

// renew runs the script when the command prints something; with nothing the command fails.
func (s scheduler) renew(t *testing.T, says string) error {
	t.Helper()
	require.NoError(t, os.RemoveAll(s.says))
	if says != "" {
		require.NoError(t, os.WriteFile(s.says, []byte(says), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), s.script, s.file)
	cmd.Env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"))
	return cmd.Run()
}
