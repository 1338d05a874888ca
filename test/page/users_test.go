package page

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// connectAs connects a rank as another user: its thread is, and ends with the connecting.
func connectAs(t *testing.T, uid int, r *mpittest.Rank, socket string) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: nobody else gets this thread
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid),
			^uintptr(0)); errno != 0 {
			failed <- errno
			return
		}
		failed <- r.Connect(t.Context(), socket)
	}()
	require.NoError(t, <-failed)
	t.Cleanup(r.Kill)
}

// Two users claim one job and rank: each is a job of its own on the page, with its own figures.
func TestTwoUsersClaimOneRank(t *testing.T) {
	t.Parallel()
	if syscall.Geteuid() != 0 {
		t.Skip("not tested: only root can be another user")
	}
	server := suite.Exporter(t)
	for _, dir := range []string{filepath.Dir(server.Socket), filepath.Dir(filepath.Dir(server.Socket))} {
		require.NoError(t, os.Chmod(dir, 0o711))
	}
	rank := func(steps int) *mpittest.Rank {
		return mpittest.New(mpittest.Config{
			Hello: mpit.Hello{
				PID: 1, Size: 1, InitTime: time.Now(), AgentVersion: "1", LibraryVersion: "Open MPI v4.1.4",
				Host: "node7", Executable: "app",
				Attributes: map[string]string{"MPIT_JOB_ID": "17", "ppid": "1"},
			},
			Variables: []mpit.Variable{{Name: "steps", Class: mpit.ClassCounter,
				Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8, Continuous: true}},
			Values: []mpittest.Value{{Name: "steps", Class: mpit.ClassCounter, Values: []any{steps}}},
		})
	}
	connectAs(t, 12345, rank(666), server.Socket) // first, and first in the order of names
	connectAs(t, 0, rank(42), server.Socket)

	u := startBrowser(t).open(t, server.URL("/"))
	value := func() string {
		for _, r := range u.rows() {
			if strings.HasPrefix(r.Metric, "mpit_steps") {
				return r.Value
			}
		}
		return ""
	}
	for user, want := range map[string]string{"12345": "666", "root": "42"} {
		// also after the page has been loaded again
		u.await(`document.querySelectorAll("#jobs li").length === 2`)
		u.script(`[...document.querySelectorAll("#jobs li")].find((item) => item.querySelector(".faint").textContent.startsWith("` + user + `,")).querySelector("a").click()`)
		u.until(t, func() bool { return value() == want })
		u.await(`document.getElementById("job-about").textContent.startsWith("user ` + user + ` ")`)
		assert.Contains(t, evaluate[string](u, "location.hash"), "user="+user)
		assert.Equal(t, 1, evaluate[int](u, `document.getElementById("ranks").options.length`),
			"the other one is no rank of this job")
		u.script(`location.reload()`)
		u.until(t, func() bool { return value() == want })
	}
}
