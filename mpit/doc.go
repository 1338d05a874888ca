// Package mpit is MPI_T, the tool information interface of MPI (MPI-4.1 §15.3), of processes that are running.
//
// A rank that has libmpit-agent.so preloaded connects to a Unix socket, which a [Listener] owns, says who it is
// ([Hello]), and from then on does nothing unless it is asked. A [Session] asks:
//
//   - [Session.Read] returns a [Sample]: the values of all performance variables that are open, with the catalogue they
//     belong to: [Variables], the [Layout] of objects and handles, and the [Remains] of what has been freed.
//   - [Session.Select] says which variables are worth reading.
//   - [Session.ControlVariables] and [Session.Categories] list the rest of what MPI_T knows; [Session.ReadCvar] and
//     [Session.WriteCvar] are for one control variable.
//   - [Session.CreatePvarSession] begins what a tool does on its own: handles that it starts, stops, reads, resets and
//     writes, without anybody else noticing.
//
// docs/api.md lists the functions of MPI_T with what stands for them here. Their return codes are errors
// ([ReturnCode]), in a [RefusedError].
//
// To read many ranks in one round, call [Session.Ask] on all of them, then wait for each [Pending]: no rank waits for
// another, and one that is late holds up nobody.
//
// When a rank ends in an orderly way it leaves its last values over a second connection, whose Hello says Final and
// carries the same [RankID]; [Session.Final] returns them. A rank that is killed is seen as the end of its session.
//
// Nothing that a rank says is trusted: see docs/internals/protocol.md for the limits, and [ProtocolError] for what
// happens to who breaks them. Who is at the other end comes from the kernel ([Peer]).
//
// A Go program that uses this package alone listens at a socket of its own and starts the job with MPIT_SOCKET set to
// its path. Package mpittest simulates ranks, for tests and where there is no MPI.
package mpit
