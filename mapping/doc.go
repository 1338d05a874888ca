// Package mapping says what each MPI_T performance variable becomes: a metric's name, kind, unit and labels, and how
// the values of its objects, elements and ranks become one.
//
// It is pure functions and values. [Basis.Become] turns a variable, and what the rules say of it ([Properties]), into a
// [Spec]: begin there. name.go makes names, unit.go units, class.go reads words of a sample. [Series] and [Histogram]
// are what everything above passes on; [Count] is how all that only grows is counted.
//
// The rule files are package rules, the values of a rank package series, ranks of one job together package merge.
// Why the rules are what they are is in docs/mapping.md.
package mapping
