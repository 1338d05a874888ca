package exporter

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// A rank is kept long after its connection: of HELLO only what is bounded.
func TestRankKeepsLittleOfItsHello(t *testing.T) {
	long := func(prefix string) string { return prefix + strings.Repeat("x", 64<<10) }
	hello := func(number int) mpit.Hello {
		attributes := map[string]string{"SLURM_JOB_NAME": "cfd", "PBS_QUEUE": long("batch"),
			"SLURM_JOB_ID": "4711" + strings.Repeat(" ", 64<<10)}
		for i := range 61 {
			attributes[fmt.Sprint(i)] = long("")
		}
		return mpit.Hello{
			ID: mpit.RankID{byte(number)}, Rank: number, Host: long("node"), Executable: long("/bin/"),
			AgentVersion:   long("1.0 "),
			LibraryVersion: long("Open MPI v4.1.4 "), Attributes: attributes,
		}
	}
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	table := newTable()
	before := used()
	for i := range 4 {
		h := hello(i)
		table.add(nil, h, mpit.Peer{}, processOf(&h, "alice"))
	}
	assert.Less(t, used(), before+1<<20, "each HELLO has more than 4 MiB")

	s := table.ordered[0].status()
	assert.Equal(t, "4711", s.JobID)
	assert.Equal(t, "cfd", s.JobName)
	assert.Equal(t, long("batch")[:clean.MaxLabel], s.Partition)
	assert.Equal(t, long("node")[:clean.MaxLabel], s.Host)
	assert.Equal(t, long("/bin/")[:clean.MaxPath], s.Executable)
	assert.Equal(t, "4.1.4", s.LibraryVersion)
	runtime.KeepAlive(table)
}
