package node

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

// fileTree is a file system of these files.
func fileTree(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for path, text := range files {
		tree[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestTuneCollector(t *testing.T) {
	const was, wasLimit = 77, 77 << 30
	defer debug.SetGCPercent(debug.SetGCPercent(was))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(wasLimit))
	percent := func() int {
		now := debug.SetGCPercent(was)
		debug.SetGCPercent(now)
		return now
	}
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	limited := fileTree(map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "1000000\n"})
	for _, test := range []struct {
		gogc, gomemlimit string
		root             fstest.MapFS
		percent          int
		limit            int64
	}{
		{"", "", nil, gcPercent, wasLimit},
		{"77", "", nil, was, wasLimit},
		{"off", "", limited, was, 900_000},
		{"", "", limited, gcPercent, 900_000},
		{"", "77GiB", limited, gcPercent, wasLimit},
	} {
		restore := tuneCollector(func(name string) string {
			return map[string]string{"GOGC": test.gogc, "GOMEMLIMIT": test.gomemlimit}[name]
		}, test.root)
		assert.Equal(t, test.percent, percent(), test)
		assert.Equal(t, test.limit, limit(), test)
		restore()
		assert.Equal(t, was, percent())
		assert.Equal(t, int64(wasLimit), limit())
	}
}

func TestMemoryLimit(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, math.MaxInt64},
		"not limited": {map[string]string{
			"proc/self/cgroup":         "0::/system.slice/e.service\n",
			"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/system.slice/e.service/memory.max": "max\n",
		}, math.MaxInt64},
		"its own": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/e.service\n",
			"sys/fs/cgroup/system.slice/e.service/memory.max": "1000\n",
		}, 1000},
		"one that it is in": {map[string]string{
			"proc/self/cgroup":                                "0::/system.slice/e.service\n",
			"sys/fs/cgroup/system.slice/memory.high":          "500\n",
			"sys/fs/cgroup/system.slice/e.service/memory.max": "1000\n",
		}, 500},
		"a container's": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/b\n5:memory:/a\n0::/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":        "1000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
			"sys/fs/cgroup/cpu,cpuacct/b/memory.limit_in_bytes":   "1\n",
			"sys/fs/cgroup/memory/a/elsewhere/limit_in_bytes.max": "1\n",
		}, 1000},
		"version 1 in a container": {map[string]string{
			"proc/self/cgroup": "5:memory:/docker/0123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
		}, 1000},
		"nonsense": {map[string]string{"proc/self/cgroup": "\n::\n0::\n0::/../..\n",
			"sys/fs/cgroup/memory.max": "-1\n"}, math.MaxInt64},
	} {
		assert.Equal(t, test.want, memoryLimit(fileTree(test.files)), name)
	}
}
