// Package job says what a job is: how efficient it is, where its time goes, which of its ranks are late, what waits in
// the library, and what is wrong with it, if anything.
//
// It asks nobody and knows no clock: Of makes reports of what exporters have answered (package api), all totals since
// the job began; Since makes one of what happened between two of them, Window remembers some for that; Compare
// compares two runs. What is wrong is a State of the table in state.go, which alerts, boards and the page follow.
//
// Begin with report.go and rank.go, then make.go and verdict.go. Who waits for whom at one moment is a graph
// (graph.go, culprit.go; blocked.go where too little is known for one); where time went is divided in late.go, and by
// the program's phases in phases.go. What functions of MPI wait for is in functions.go, and from where they are called
// in sites.go. written.go has what files and screens get.
package job
