package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/node"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// TestServeBehindLandlock with the real program: rules are read anew and the sockets removed at the end, but a link
// out of the rules' directory that somebody has made since leads nowhere. Without Landlock it does.
func TestServeBehindLandlock(t *testing.T) {
	needLandlock(t)
	for _, test := range []struct {
		flag, log, metric string
		result            string
	}{
		{"--landlock", `msg="Landlock is in force" abi=`, "\nmpit_exporter_landlock_abi ", "failure"},
		{"--no-landlock", `msg="Landlock is switched off"`, "\nmpit_exporter_landlock_abi 0\n", "success"},
	} {
		t.Run(test.flag, func(t *testing.T) {
			dir := mpittest.ShortDir(t)
			path, outside := filepath.Join(dir, "rules", "rules.yaml"), filepath.Join(dir, "outside.yaml")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(goodRules), 0o600))
			e := startExporter(t, filepath.Join(dir, "run", "agent.sock"), test.flag, "--config.file="+path)
			r := connect(t, e)
			page := awaitPage(t, e, "\n"+counters+"{", test.metric)
			assert.Equal(t, test.flag == "--no-landlock", strings.Contains(page, "\nmpit_exporter_landlock_abi 0\n"))
			assert.Contains(t, page, `user="`+node.UserName(uint32(os.Getuid()))+`"`)
			assert.Equal(t, 1, strings.Count(e.log(t), "Landlock"))
			assert.Contains(t, e.log(t), test.log)

			renames := "rules:\n- match: {name: each_aggregate_unsigned_long}\n  name: renamed\n"
			require.NoError(t, os.WriteFile(path+".new", []byte(renames), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
			require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
			awaitPage(t, e, "\n"+renamed+"{", `mpit_exporter_config_reloads_total{result="success"} 1`)

			require.NoError(t, os.WriteFile(outside, []byte(goodRules), 0o600))
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(outside, path))
			require.NoError(t, e.cmd.Process.Signal(syscall.SIGHUP))
			reloads := map[string]string{"failure": "1", "success": "2"}[test.result]
			awaitPage(t, e, `mpit_exporter_config_reloads_total{result="`+test.result+`"} `+reloads)
			if test.result == "failure" {
				assert.Contains(t, e.log(t), path+": open: permission denied")
			}
			require.NoError(t, r.Close())
			assert.Zero(t, e.end(t, syscall.SIGTERM))
			left, err := os.ReadDir(filepath.Join(dir, "run"))
			require.NoError(t, err)
			assert.Empty(t, left)
			assert.NoFileExists(t, e.addressFile)
		})
	}
}

// TestServeWithoutLandlock: a kernel that has none, or a container that doesn't let it through, keeps nobody from
// serving; the log and the metric say so.
func TestServeWithoutLandlock(t *testing.T) {
	for number, reason := range map[syscall.Errno]string{
		unix.ENOSYS: "not supported by this kernel: Linux 5.13 has it, where it is built in",
		unix.EOPNOTSUPP: "not supported by this kernel as it was started: landlock is missing in lsm= on its " +
			"command line",
		unix.EPERM: "the kernel refuses it, as containers' filters of system calls do: operation not permitted",
	} {
		t.Run(number.Error(), func(t *testing.T) {
			cmd := filtered(t, os.Args[0], binary(t), []unix.SockFilter{
				loadCall,
				{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
				refuseWith(number),
				allowCall,
			})
			e := startCommand(t, cmd, filepath.Join(mpittest.ShortDir(t), "agent.sock"))
			connect(t, e)
			awaitPage(t, e, "\nmpit_rank_up{", "\nmpit_exporter_landlock_abi 0\n")
			assert.Contains(t, e.log(t), `level=WARN `)
			assert.Contains(t, e.log(t), `msg="Going on without Landlock" reason="`+reason+`"`)
		})
	}
}
