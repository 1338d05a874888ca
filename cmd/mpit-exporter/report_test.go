package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/cli"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report"
	"github.com/mpit-exporter/mpit-exporter/cmd/mpit-exporter/internal/report/reporttest"
	"github.com/mpit-exporter/mpit-exporter/exporter/api"
)

// Where one job is meant and there are several, each has a line with its verdict; the one that hangs comes first.
func TestReportOfOneOfManyJobs(t *testing.T) {
	list := api.ValueList{Time: reporttest.Began.Add(time.Hour)}
	for _, job := range []string{"17", "18", "19"} {
		for rank := range 2 {
			of := reporttest.RankOf(rank, "node1", 95)
			of.Rank.JobID, of.Rank.WorldSize = job, 2
			if job != "19" {
				of.Rank.State, of.Rank.EndReason, of.Rank.Ended = "up", "", nil
			}
			if job == "18" {
				of.Rank.Calls.Running, of.Rank.Calls.Long = 480, &api.LongCall{Function: "MPI_Barrier", Kind: "comm", Object: "halo\x1b"}
			}
			list.Ranks = append(list.Ranks, of)
		}
	}
	jobs := manyJobs(report.Of([]api.ValueList{list}, nil))
	var out strings.Builder
	assert.Equal(t, cli.Failure, cli.Report(&out, jobs))
	assert.Equal(t, `mpit-exporter: report: there are 3 jobs; choose one with --jobid:
  18 (--world=0, solver, runs): hung: all 2 ranks have been in MPI_Barrier on halo for 8m0s
  17 (--world=0, solver, runs): healthy: 95 % useful
  19 (--world=0, solver, ended `+jobs[2].Job.Ended.Local().Format(time.DateTime)+`): healthy: 95 % useful
`, out.String())
}

// What is said lets one choose: a job may have several worlds.
func TestReportOfOneOfManyWorlds(t *testing.T) {
	of := func(labels ...string) (jobs manyJobs) { // jobid and world
		for _, l := range labels {
			id, world, _ := strings.Cut(l, "/")
			jobs = append(jobs, &report.Report{Job: report.Job{ID: id, World: world}})
		}
		return jobs
	}
	assert.EqualError(t, of("17/0", "18/0"), "there are 2 jobs; choose one with --jobid")
	assert.EqualError(t, of("17/0", "17/1"), "the job has 2 MPI_COMM_WORLDs; choose one with --world")
	assert.EqualError(t, of("17/0", "17/1", "18/0"),
		"there are 2 jobs with 3 MPI_COMM_WORLDs; choose one with --jobid or --world")

	var worlds []string
	for n := range maxLines + 3 {
		worlds = append(worlds, fmt.Sprint("17/", n))
	}
	lines := of(worlds...).Lines()
	assert.Len(t, lines, 1+maxLines+1)
	assert.Equal(t, "  and 3 more", lines[len(lines)-1])
	assert.Len(t, of(worlds[:maxLines]...).Lines(), 1+maxLines)
}
