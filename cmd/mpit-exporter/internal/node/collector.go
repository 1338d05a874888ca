package node

import "runtime/debug"

// gcPercent is how much garbage there may be, in percent of what is in use, before it is looked for. Go's 100 would
// be more than half of what the exporter takes of a node; a scrape makes little garbage, so that looking more often
// costs little (docs/performance.md).
const gcPercent = 40

// tuneCollector sets it, unless the environment says what it should be ($GOGC). restore sets what was there.
func tuneCollector(getenv func(string) string) (restore func()) {
	if getenv("GOGC") != "" {
		return func() {}
	}
	old := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(old) }
}
