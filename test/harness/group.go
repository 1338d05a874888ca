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
	return s.group(tb, "memory", "memory.limit_in_bytes", strconv.Itoa(limit), "memory.max", strconv.Itoa(limit))
}

// CPUGroup is one in which processes together have so much of a core.
func (s *Suite) CPUGroup(tb testing.TB, cores float64) string {
	tb.Helper()
	quota := strconv.Itoa(int(cores * 100000)) // of 100 ms, in us: both versions' own period
	return s.group(tb, "cpu", "cpu.cfs_quota_us", quota, "cpu.max", quota+" 100000")
}

// group takes a controller, and the file for its limit with the text for it, of version 1 and of version 2.
func (s *Suite) group(tb testing.TB, controller, file1, text1, file2, text2 string) string {
	tb.Helper()
	name := filepath.Base(s.dir) + "-" + strconv.FormatInt(s.next.Add(1), 10)
	for _, limit := range []struct{ file, text string }{
		{filepath.Join("/sys/fs/cgroup", controller, name, file1), text1}, {filepath.Join("/sys/fs/cgroup", name, file2), text2},
	} {
		dir := filepath.Dir(limit.file)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		tb.Cleanup(func() {
			if err := syscall.Rmdir(dir); err != nil {
				tb.Errorf("removing the control group %s: %v", dir, err)
			}
		})
		if _, err := os.Stat(limit.file); err == nil { // or it is a directory like any other
			if err := os.WriteFile(limit.file, []byte(limit.text), 0o600); err != nil {
				tb.Fatalf("limiting a control group: %v", err)
			}
			return dir
		}
	}
	return ""
}
