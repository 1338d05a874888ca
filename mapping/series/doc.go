// Package series is what the values of a rank become: series that go on from sample to sample.
//
// [Rank.Update] takes a sample in; begin there. A handle's elements are merged into cells, one for each variable and
// object name, and a cell is a series, or several for a STATE.
//
//   - Rarely, when the catalogue, the objects or the remains of freed ones have changed: variable.go follows the
//     catalogue, plan.go finds the cells of handles, place.go and room.go whether there is room for new ones,
//     remains.go adds what freed objects have counted, pairs.go finds a SIZE and its LEVEL.
//   - At every sample: handle.go and element.go take values in, cells.go makes series of them, timer.go and
//     distribution.go histograms.
//
// It knows nothing of names, rules and families: those are package variables'.
package series
