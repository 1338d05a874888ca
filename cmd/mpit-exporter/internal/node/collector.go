package node

import "runtime/debug"

// gcPercent is $GOGC by default. With Go's own default of 100, garbage would be more than half of the exporter's
// memory; a scrape makes little garbage, so that collecting more often costs little (docs/performance.md).
const gcPercent = 40

// tuneCollector sets it, unless the environment does. restore sets what was there before.
func tuneCollector(environment string) (restore func()) {
	if environment != "" {
		return func() {}
	}
	old := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(old) }
}
