// Package conformance checks every feature of the chapter on tools of the MPI standard (MPI-4.1 §15.3) against three
// libraries: the fixture, which has everything, Debian's Open MPI and Debian's MPICH. What its tests find, and nothing
// else, is the table in docs/internals/conformance.md:
//
//	go test ./conformance -update
//
// writes it; without -update a table that differs fails the test.
package conformance
