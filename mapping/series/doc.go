// Package series is what the values of a rank become: series that go on from sample to sample.
//
// [Rank.Update] takes a sample in; begin there. A handle's elements are merged into cells, one for each variable and
// object name, and a cell is a series, or several for a STATE.
//
//   - The plan, made rarely: when the catalogue, the objects or the remains of freed ones have changed, or something
//     is not 0 any more. variable.go follows the catalogue, plan.go finds the cells of handles, room.go whether there
//     is room for new ones, remains.go adds what freed objects have counted, start.go finds where TIMERs
//     with an offset begin.
//   - Filling it, at every sample, in the order of fill.go: handle.go brings values to cells, cells.go makes series of
//     them, distribution.go histograms of what the agent has counted.
//   - estimate.go is both for histograms of TIMERs whose single durations nobody has counted.
//
// It knows nothing of names, rules and families: those are package variables'.
package series
