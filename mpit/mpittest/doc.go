// Package mpittest is a rank without MPI. It speaks the agent's side of docs/internals/protocol.md to an exporter or to
// package mpit, keeps the same books (handles, what freed objects have counted, generations), does MPI_T's operations
// for tools, and has faults on demand: it stalls, is busy, refuses, sends nonsense, dies.
//
// [Everything] describes a rank with each class, bind and datatype and fixed values, for golden files. [NewJob] makes
// ranks of a job whose values move as those of a real one might.
package mpittest
