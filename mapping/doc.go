// Package mapping says what each MPI_T performance variable becomes: a metric's name, kind, unit and labels, how the
// objects and elements of a variable become one series, and what is done about values that fall, wrap, or are not
// what they are declared to be.
//
// A [Mapper] holds the rules and the families of one exporter; it is safe for concurrent use. Each process that is
// observed has a [Rank], which compiles its variables, objects and handles into a plan once; a sample then only fills
// in numbers. A Rank belongs to one goroutine.
//
// To read what becomes of a sample, begin with [Rank.Update]: handle.go takes values in, cells.go makes series of
// them, and count.go says what has been counted. plan.go finds the cells of handles when something new comes,
// limit.go whether there is room for them, reload.go what other rules change. group.go merges ranks.
//
// The package knows neither sockets nor HTTP. What the rules are, and why, stands in docs/mapping.md.
package mapping
