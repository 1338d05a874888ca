package node

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent is how much garbage there may be, in percent of what is in use, before it is looked for. Go's 100 would
// be more than half of what the exporter takes of a node; a scrape makes little garbage, so that looking more often
// costs little (docs/performance.md).
const gcPercent = 40

// memoryPercent is how much of what its control group may have the process tries to do with: the rest is for what the
// collector doesn't see, and for the moment that it needs.
const memoryPercent = 90

// tuneCollector sets both, unless the environment says what they should be ($GOGC, $GOMEMLIMIT). root is /. restore
// sets what was there.
func tuneCollector(getenv func(string) string, root fs.FS) (restore func()) {
	restore = func() {}
	if getenv("GOGC") == "" {
		old := debug.SetGCPercent(gcPercent)
		restore = func() { debug.SetGCPercent(old) }
	}
	if limit := memoryLimit(root); limit < math.MaxInt64 && getenv("GOMEMLIMIT") == "" {
		old, before := debug.SetMemoryLimit(limit/100*memoryPercent), restore
		restore = func() { debug.SetMemoryLimit(old); before() }
	}
	return restore
}

// memoryLimit is the most memory that the process' control group may have, or one that this one is in: MaxInt64 where
// none is limited.
func memoryLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range bytes.Lines(groups) {
		number, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		dir, files := "sys/fs/cgroup", []string{"memory.max", "memory.high"}
		switch {
		case controllers == "memory": // version 1
			dir, files = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		case number != "0" || controllers != "":
			continue
		}
		// In a container the path may be the host's, of which nothing is there: its own group is the root then.
		for group = path.Join("/", group); ; group = path.Dir(group) {
			for _, file := range files {
				text, _ := fs.ReadFile(root, path.Join(dir, group, file))
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}
