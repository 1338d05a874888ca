package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// MemoryGroup makes a control group with a limit on memory, and returns its directory; "" if none can be made here.
func (s *Suite) MemoryGroup(tb testing.TB, limit int) string {
	tb.Helper()
	name := filepath.Base(s.dir) + "-" + strconv.FormatInt(s.next.Add(1), 10)
	for _, file := range []string{ // of version 1 and of version 2
		filepath.Join("/sys/fs/cgroup/memory", name, "memory.limit_in_bytes"),
		filepath.Join("/sys/fs/cgroup", name, "memory.max"),
	} {
		dir := filepath.Dir(file)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		tb.Cleanup(func() {
			if err := syscall.Rmdir(dir); err != nil {
				tb.Errorf("removing the control group %s: %v", dir, err)
			}
		})
		if _, err := os.Stat(file); err == nil { // or it is a directory like any other
			if err := os.WriteFile(file, []byte(strconv.Itoa(limit)), 0o600); err != nil {
				tb.Fatalf("limiting a control group: %v", err)
			}
			return dir
		}
	}
	return ""
}
