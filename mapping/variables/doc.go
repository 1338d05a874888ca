// Package variables is what the variables of a process become: families with names that clash with no others, specs
// that ranks share, timers with the counters of their events, shares of sizes.
//
// A [Mapper] holds the rules and the families of one exporter; all ranks share it. A [Catalogue] is the variables of
// one process. [Catalogue.Update] takes in what the agent tells of them; begin there, then read become.go (what a
// variable becomes), families.go (which names it may have), reload.go (what other rules change).
//
// It sees no values. What those become is package series, which follows a Catalogue.
package variables
