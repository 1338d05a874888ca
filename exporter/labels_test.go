package exporter

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/mapping/rules"
	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// inCgroup has the process of the tests, which all simulated ranks are of, in a control group.
func inCgroup(path string) func(*Exporter) {
	return func(e *Exporter) {
		e.proc = fstest.MapFS{
			fmt.Sprintf("%d/cgroup", os.Getpid()): {Data: []byte("0::" + path + "\n")},
			fmt.Sprintf("%d/status", os.Getpid()): {Data: fmt.Appendf(nil, "Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n",
				ownUID)},
		}
	}
}

// processLabels says where each rank's jobid comes from, by jobid/world/rank: its source, the kernel's word and the
// check.
func (n *node) processLabels() map[string]string {
	n.t.Helper()
	families, done, err := n.Gather(n.t.Context())
	require.NoError(n.t, err)
	defer done()
	found := map[string]string{}
	for _, f := range families {
		if f.GetName() != "mpit_process_info" {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			cgroupJob, has := labels["cgroup_jobid"]
			if !has {
				cgroupJob = "none"
			}
			found[labels["jobid"]+"/"+labels["world"]+"/"+labels["rank"]] = fmt.Sprint(labels["jobid_source"], " ",
				cgroupJob, " ", labels["jobid_check"])
		}
	}
	return found
}

func TestJobsAreVerified(t *testing.T) {
	n := startNode(t, Config{}, inCgroup("/system.slice/slurmstepd.scope/job_104/step_0/user/task_0"))
	array := small("104", 1)
	array.Hello.Attributes["SLURM_ARRAY_JOB_ID"], array.Hello.Attributes["SLURM_ARRAY_TASK_ID"] = "100", "3"
	own := small("", 3)
	own.Hello.Attributes = map[string]string{"MPIT_JOB_ID": "mine"}
	liar := mpittest.New(small("4711", 2))
	n.connect(mpittest.New(small("104", 0)), mpittest.New(array), liar, mpittest.New(own))

	n.scrape()
	assert.Equal(t, map[string]string{
		"104/0/0":        "slurm 104 verified",
		"100_3/0/1":      "slurm 104 verified",
		"4711/0/2":       "slurm 104 differs",
		"mine/node7-0/3": "mpit 104 unknown",
	}, n.processLabels())
	assert.Equal(t, 1.0, n.scrape()["mpit_exporter_jobid_mismatches_total"])

	// Shown as it was said, and counted once for each rank.
	n.kill(liar)
	n.connect(liar)
	page := n.scrape()
	assert.Equal(t, 10.0+2, page[of("mpit_calls_total", "4711", 2)])
	assert.Equal(t, 1.0, page["mpit_exporter_jobid_mismatches_total"])
	status := n.Ranks()[2]
	assert.Equal(t, []string{"4711", "slurm", "104", "differs"},
		[]string{status.JobID, status.JobIDSource, status.CgroupJobID, status.JobIDCheck})
}

// A rank that is so short that only its last sample is seen is verified as well.
func TestLastSamplesAreVerified(t *testing.T) {
	n := startNode(t, Config{}, inCgroup("/slurm/uid_0/job_104/step_0"))
	n.finish(mpittest.New(small("1", 0)), mpit.EndFinalize)
	n.scrape()
	assert.Equal(t, map[string]string{"1/0/0": "slurm 104 differs"}, n.processLabels())
}

func TestJobsWithoutCgroupAreUnknown(t *testing.T) {
	for name, change := range map[string]func(*Exporter){
		"a cgroup of no job": inCgroup("/user.slice/user-1000.slice/session-3.scope"),
		"no process":         func(e *Exporter) { e.proc = fstest.MapFS{} },
		"another user's process": func(e *Exporter) {
			inCgroup("/slurm/uid_0/job_104/step_0")(e)
			e.proc.(fstest.MapFS)[fmt.Sprintf("%d/status", os.Getpid())].Data = []byte("Uid:\t1\t4294967294\t1\t1\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, Config{}, change)
			n.connect(mpittest.New(small("1", 0)))
			n.scrape()
			assert.Equal(t, map[string]string{"1/0/0": "slurm none unknown"}, n.processLabels())
			assert.Zero(t, n.scrape()["mpit_exporter_jobid_mismatches_total"])
		})
	}
}

// The rules see what the kernel says, and who it is; what they make of it does not change the kernel's verdict.
func TestIdentityByRule(t *testing.T) {
	n := startNode(t, Config{
		UserName: func(uint32) string { return "alice" },
		Identity: []rules.Relabel{
			{SourceLabels: []string{"source", "cgroup_jobid"}, Regex: "launcher;(.+)", TargetLabel: "jobid"},
			{SourceLabels: []string{"user", "host", "rank", "library", "executable", "env_PALS_RANKID"},
				Separator: text(" "),
				Regex:     "(.*)", TargetLabel: "partition"},
			{SourceLabels: []string{"partition"}, Regex: "(alice) .*", TargetLabel: "world"},
		},
	}, inCgroup("/slurm/uid_0/job_104/step_extern"))
	cfg := small("", 0)
	cfg.Hello.Attributes = map[string]string{"PALS_RANKID": " blue\n", "ppid": "99"}
	n.connect(mpittest.New(cfg), mpittest.New(small("1", 1)))
	n.scrape()
	assert.Equal(t, map[string]string{"104/alice/0": "launcher 104 unknown", "1/alice/1": "slurm 104 differs"},
		n.processLabels())
	assert.Equal(t, "alice node7 0 openmpi /usr/bin/app blue", n.Ranks()[1].Partition)
}

// Containers repeat pids, and may be given one host name: what tells processes apart is their agents' ids.
func TestContainersWithEqualNames(t *testing.T) {
	n := startNode(t, Config{})
	container := small("", 0)
	container.Hello.PID, container.Hello.Host, container.Hello.Attributes = 7, "container",
		map[string]string{"ppid": "1"}
	one, two := mpittest.New(container), mpittest.New(container)
	n.connect(one, two)
	require.NoError(t, two.Set("calls", mpit.ClassCounter, 0, 20))
	page := n.scrape()
	assert.Equal(t, 10.0, page[`mpit_calls_total{jobid="container-1",rank="0",user="alice",world="container-1"}`])
	assert.Equal(t, 20.0, page[`mpit_calls_total{dup="1",jobid="container-1",rank="0",user="alice",world="container-1"}`])
	assert.Equal(t, 1.0, page["mpit_exporter_label_clashes_total"])
}

// Process numbers come again: a launcher may have that of an earlier one, whose ranks' last values nobody has read yet.
func TestLauncherWithTheNumberOfAnEarlierOne(t *testing.T) {
	n := startNode(t, Config{})
	for _, started := range []string{"1000", "9000"} {
		cfg := small("", 0)
		cfg.Hello.Attributes = map[string]string{"PMI_RANK": "0", "ppid": "42", "ppid_started": started}
		r := mpittest.New(cfg)
		n.connect(r)
		n.finish(r, mpit.EndFinalize)
	}
	page := n.scrape()
	for _, world := range []string{"node7-42-1000", "node7-42-9000"} {
		assert.Equal(t, 10.0, page[fmt.Sprintf(`mpit_calls_total{jobid=%q,rank="0",user="alice",world=%[1]q}`, world)])
	}
	assert.Zero(t, page["mpit_exporter_label_clashes_total"])
}

// A job that is requeued has the same labels. Once its old ranks' last values have been read, the new ones take their
// place.
func TestRestartedRankTakesTheEndedOnesPlace(t *testing.T) {
	const twin = `mpit_calls_total{dup="1",jobid="1",rank="0",user="alice",world="0"}`
	start := func() (*node, *mpittest.Rank) {
		n := startNode(t, Config{Retention: time.Hour})
		r := mpittest.New(small("1", 0))
		n.connect(r)
		n.scrape()
		require.NoError(t, r.Set("calls", mpit.ClassCounter, 0, 99))
		n.finish(r, mpit.EndAbort)
		return n, r
	}
	t.Run("once it has been scraped", func(t *testing.T) {
		n, old := start()
		assert.Equal(t, 99.0, n.scrape()[of("mpit_calls_total", "1", 0)])
		n.connect(mpittest.New(small("1", 0)))
		page := n.scrape()
		assert.Equal(t, 10.0, page[of("mpit_calls_total", "1", 0)], "it begins anew")
		assert.NotContains(t, page, twin)
		assert.NotContains(t, page, ended("abort"))
		assert.False(t, n.known(old))
		assert.Zero(t, page["mpit_exporter_label_clashes_total"])
	})
	t.Run("not before", func(t *testing.T) {
		n, _ := start()
		n.connect(mpittest.New(small("1", 0)))
		page := n.scrape()
		assert.Equal(t, 99.0, page[of("mpit_calls_total", "1", 0)], "nobody had read this")
		assert.Equal(t, 10.0, page[twin])
		assert.Equal(t, 1.0, page["mpit_exporter_label_clashes_total"])

		n.connect(mpittest.New(small("1", 0)))
		assert.Equal(t, 10.0, n.scrape()[of("mpit_calls_total", "1", 0)], "the third one has a free place")
	})
	t.Run("not another user's", func(t *testing.T) {
		n, old := start()
		n.scrape()
		g := n.lock()
		g.table.byID[old.Hello().ID].UID++
		g.unlock()
		n.connect(mpittest.New(small("1", 0)))
		page := n.scrape()
		assert.Equal(t, 99.0, page[of("mpit_calls_total", "1", 0)])
		assert.Equal(t, 10.0, page[twin])
		g = n.lock()
		g.table.byID[old.Hello().ID].UID-- // as it came, so that it can leave its world
		g.unlock()
	})
	t.Run("while a slow reader still has the page", func(t *testing.T) {
		n, _ := start()
		n.scrape()
		families, done, err := n.Gather(t.Context())
		require.NoError(t, err)
		n.connect(mpittest.New(small("1", 0)))
		assert.Equal(t, 10.0, n.scrape()[of("mpit_calls_total", "1", 0)])
		assert.Equal(t, 99.0, valuesOf(families)[of("mpit_calls_total", "1", 0)], "his page stays as it was")
		done()
	})
}

// processOf is who a process is whose control group says nothing.
func processOf(h *mpit.Hello, user string) identity.Process {
	p := identity.FromHello(h)
	p.ID.User = user
	return p
}

// connectAs has a rank of another user's, without a connection.
func (n *node) connectAs(uid uint32, h mpit.Hello, value string) *rank {
	g := n.lock()
	r := g.add(h, mpit.Peer{UID: uid}, processOf(&h, fmt.Sprint(uid)))
	r.gone = n.now().AddDate(1, 0, 0) // not lost yet
	g.unlock()
	n.takeControls(r, []mpit.ControlVariable{{Name: "mode", Datatype: mpit.DatatypeChar, HasValue: true,
		Text: value}}, nil)
	return r
}

// Whoever claims another's job counts for himself.
func TestControlVariablesOfTwoUsersInOneJob(t *testing.T) {
	n := startNode(t, Config{ControlVariables: []string{"*"}})
	hello := func(number int) mpit.Hello {
		h := small("1", number).Hello
		h.ID = mpit.RankID{byte(number + 1)}
		return h
	}
	n.connectAs(1000, hello(0), "a")
	n.connectAs(1000, hello(1), "a")
	others := n.connectAs(1001, hello(2), "a")
	n.connectAs(1001, hello(3), "b")
	n.connectAs(1002, hello(4), "a")
	assert.Equal(t, map[string]float64{
		`mpit_cvar_ranks{jobid="1",name="mode",user="1000",value="a",world="0"}`: 2,
		`mpit_cvar_ranks{jobid="1",name="mode",user="1001",value="a",world="0"}`: 1,
		`mpit_cvar_ranks{jobid="1",name="mode",user="1001",value="b",world="0"}`: 1,
		`mpit_cvar_ranks{jobid="1",name="mode",user="1002",value="a",world="0"}`: 1,
	}, n.with("mpit_cvar_ranks"))

	t.Run("who has gone leaves his place", func(t *testing.T) {
		g := n.lock()
		for _, r := range []*rank{others, g.table.byID[mpit.RankID{4}]} {
			g.dropControls(r)
			g.remove(r)
		}
		g.unlock()
		n.connectAs(1003, hello(5), "c")
		assert.Equal(t, map[string]float64{
			`mpit_cvar_ranks{jobid="1",name="mode",user="1000",value="a",world="0"}`: 2,
			`mpit_cvar_ranks{jobid="1",name="mode",user="1003",value="c",world="0"}`: 1,
			`mpit_cvar_ranks{jobid="1",name="mode",user="1002",value="a",world="0"}`: 1,
		}, n.with("mpit_cvar_ranks"))
	})
}

// Clashes can be made in any number; the log has a line of each world, and no more than one of a user in a minute.
func TestClashesAreLoggedSparingly(t *testing.T) {
	clock := newTestClock()
	log := &logs{}
	n := startNode(t, Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, withClock(clock))
	number := 0
	clash := func(job string, rank int, uid uint32) {
		number++
		h := small(job, rank).Hello
		h.ID = mpit.RankID{byte(number)}
		n.connectAs(uid, h, "")
	}
	lines := func() int { return strings.Count(log.String(), "level=WARN") }

	clash("1", 0, 1000)
	clash("1", 1, 1000)
	assert.Equal(t, 0, lines())
	clash("1", 0, 1000)
	clash("1", 1, 1000)
	assert.Equal(t, 1, lines(), "a line for a world")
	assert.Contains(t, log.String(), "jobid=1")
	clash("2", 0, 1000)
	clash("2", 0, 1000)
	assert.Equal(t, 1, lines(), "not another one so soon")
	clash("2", 0, 1001)
	assert.Equal(t, 1, lines(), "another user's labels are others")
	clock.advance(clashLogInterval)
	clash("1", 0, 1000)
	assert.Equal(t, 1, lines(), "that world has been told of")
	clash("2", 0, 1000)
	assert.Equal(t, 2, lines())
	assert.Equal(t, 5.0, n.scrape()["mpit_exporter_label_clashes_total"], "all are counted")
}

// Coverage: of the ranks that a launcher has started on the node, one doesn't load the agent. One that has ended
// was seen all the same.
func TestRanksThatNeverConnect(t *testing.T) {
	n := startNode(t, Config{})
	var ranks []*mpittest.Rank
	for i := range 3 {
		cfg := small("1", i)
		cfg.Hello.Size = 4
		cfg.Hello.Attributes = maps.Clone(cfg.Hello.Attributes)
		cfg.Hello.Attributes["MPI_LOCALNRANKS"] = "4"
		ranks = append(ranks, mpittest.New(cfg))
	}
	n.connect(ranks...)
	assert.Equal(t, 1.0, n.scrape()[`mpit_exporter_ranks{state="unseen"}`])
	n.finish(ranks[2], mpit.EndFinalize)
	assert.Equal(t, 1.0, n.scrape()[`mpit_exporter_ranks{state="unseen"}`])
}
