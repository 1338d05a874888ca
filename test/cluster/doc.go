// Package cluster has a real Prometheus look at a cluster: how it finds exporters, what takes over when one server is
// not enough, and, as a benchmark, what a hundred nodes cost it whose jobs come and go as a workload archive says.
//
// Begin with workload.go, which makes up jobs, machine.go, which gives them nodes, and page.go, which writes the pages
// of these nodes' exporters, which serve.go serves. bench_test.go is the benchmark.
package cluster
