package dashboards

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest/catalogue"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// simulated are the libraries that Debian doesn't have, by their catalogues: jobs of two ranks, one on each node.
var simulated = []string{"openmpi-4.1", "mpich-3.4", "mpich-4.0", "mvapich2-2.3", "mvapich-4.0"}

// simulate runs a job for each catalogue, called as it is, until the test ends. Everything that it has counts and
// changes all the time.
func simulate(t *testing.T, nodes ...*harness.Exporter) {
	t.Helper()
	list, err := catalogue.Read(filepath.Join("..", "..", "mapping", "testdata", "catalogues"))
	require.NoError(t, err)
	byName := map[string]*catalogue.Catalogue{}
	for _, c := range list {
		byName[c.Name] = c
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended []<-chan error
	t.Cleanup(func() {
		cancel()
		for _, end := range ended {
			assert.NoError(t, <-end)
		}
	})
	run := func(f func() error) {
		end := make(chan error, 1)
		ended = append(ended, end)
		go func() { end <- f() }()
	}
	for _, name := range simulated {
		require.Contains(t, byName, name)
		for number, node := range nodes {
			rank := mpittest.New(rankOf(byName[name], number, len(nodes)))
			run(func() error { return rank.Run(ctx, node.Socket) })
			run(func() error { return move(ctx, rank, byName[name], number) })
		}
	}
	// A job that has what no library has in these catalogues: states, shares, low watermarks.
	job := mpittest.NewJob(2)
	run(func() error { return job.Run(ctx, nodes[0].Socket) })
}

// simulateAlone runs a job of one rank without variables.
func simulateAlone(t *testing.T, node *harness.Exporter) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	rank := mpittest.New(rankOf(&catalogue.Catalogue{Name: lost, Version: "Open MPI v4.1.4"}, 0, 1))
	end := make(chan error, 1)
	go func() { end <- rank.Run(ctx, node.Socket) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-end)
	})
}

func rankOf(c *catalogue.Catalogue, number, size int) mpittest.Config {
	return mpittest.Config{
		Hello: mpit.Hello{
			PID: 4242 + number, Rank: number, Size: size, ThreadLevel: 3, AgentVersion: "simulated",
			LibraryVersion: c.Version,
			Host:           "simulated", Executable: "/simulated/" + c.Name,
			Attributes: map[string]string{"MPIT_JOB_ID": c.Name, "ppid": "99"},
		},
		Variables: c.MPIT(), Elements: c.Elements(mpittest.PerPeer), Categories: c.Categories(),
		Objects: objects(number, size),
	}
}

func objects(number, size int) []mpit.Object {
	return []mpit.Object{
		{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: size, Rank: number},
		{Kind: mpit.BindComm, Name: "halo", Size: size, Rank: number},
		{Kind: mpit.BindWin, Name: "ghosts", Size: size, Rank: number},
	}
}

// move lets the rank's variables go on, each rank at a pace of its own.
func move(ctx context.Context, r *mpittest.Rank, c *catalogue.Catalogue, number int) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, v := range c.MPIT() {
			step := any(number + 1)
			switch v.Class {
			case mpit.ClassGeneric:
				continue
			case mpit.ClassState:
				step = 0
			case mpit.ClassTimer:
				step = 0.01 * float64(number+1)
			}
			if v.Bind == mpit.BindNone {
				if err := r.Add(v.Name, v.Class, 0, step); err != nil {
					return err
				}
				continue
			}
			for at, o := range objects(number, 2) {
				if o.Kind != v.Bind {
					continue
				}
				if err := r.Add(v.Name, v.Class, uint32(at+1), step); err != nil {
					return err
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
