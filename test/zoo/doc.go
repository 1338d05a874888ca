// Package zoo measures how good the verdict is: programs with planted trouble, and healthy ones, each with the true
// answer beside it.
//
// programs has the programs, answers.yaml what is wrong with each and what may be said of it. Which rank is guilty,
// tags, names and the order of ranks are drawn from a seed at each run, so that nothing can be fitted to them.
//
// TestZoo runs them, with -zoo (make zoo): for each it asks the page (/api/v1/jobs) every second, then top and a
// report, and for a third of them, over two exporters, a real Prometheus for its alerts. Judge compares what was said
// with the answer. It is a measurement with a clock and wants an otherwise idle machine; nothing fails for a poor
// verdict.
//
// TestJudge and TestAnswers are in make test, and TestRecordings: it lets the program judge ranks as they once were
// (testdata/recordings, renewed by -zoo.record), so that a change of the verdict shows without a clock.
//
// An answer is
//
//	right       state, rank and call are as they should be
//	silent      nothing was said, or less than could be: no state, or a true one that names no rank
//	misleading  another kind of trouble than there is
//	wrong       a rank that can't be guilty, trouble where there is none, or "healthy" where there is
package zoo
