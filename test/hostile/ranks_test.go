package hostile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
	"github.com/mpit-exporter/mpit-exporter/test/harness"
)

// crowd is ranks of one user: levels on communicators, whose names are long.
type crowd struct {
	uid, ranks, levels, objects, name int
	threads                           int  // in calls of long names
	silent                            bool // they never answer
}

// job is the job of a crowd's ranks.
func (c crowd) job() string { return fmt.Sprintf("of%d", c.uid) }

func (c crowd) rank(number int) *mpittest.Rank {
	cfg := mpittest.Config{
		Hello: mpit.Hello{PID: 4242 + number, Rank: number, Size: c.ranks, ThreadLevel: 3, AgentVersion: "simulated",
			LibraryVersion: "Open MPI v4.1.4", Host: "simulated", Executable: "/simulated/job",
			Attributes: map[string]string{"MPIT_JOB_ID": c.job()}},
		UnderWay:   &mpit.UnderWay{Observed: time.Hour},
		MaxObjects: c.objects + 1,
	}
	for i := range uint64(c.threads) {
		cfg.UnderWay.Threads = append(cfg.UnderWay.Threads, mpit.Thread{ID: i + 1, Main: i == 0, Now: time.Hour, Begun: 1,
			Function: "MPI_" + strings.Repeat("x", 1000), Bind: mpit.BindComm, Object: 1, Number: 7, Peer: 1, Tag: 7, Root: 1,
			In: strings.Repeat("y", 1000)})
	}
	for i := range c.levels {
		cfg.Variables = append(cfg.Variables, mpit.Variable{Name: fmt.Sprintf("level_%d", i), Class: mpit.ClassLevel,
			Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8, Bind: mpit.BindComm,
			Verbosity: mpit.VerbosityUserBasic, Continuous: true})
	}
	for i := range c.objects {
		cfg.Objects = append(cfg.Objects, mpit.Object{Kind: mpit.BindComm, Size: c.ranks, Rank: number,
			Name: fmt.Sprintf("%d of %d %s", i, number, strings.Repeat("x", c.name))})
		cfg.Comms = append(cfg.Comms, mpit.Comm{Object: uint32(i + 1), Identity: uint64(i + 1), Begun: 7, Counted: true})
	}
	return mpittest.New(cfg)
}

// stay has the crowd's ranks connect, and connect again when they are thrown out, until ctx ends. The thread is the
// user's, and ends with it.
func (c crowd) stay(ctx context.Context, socket string, connected chan<- error) {
	runtime.LockOSThread() // never unlocked: nobody else gets this thread
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(c.uid), ^uintptr(0)); errno != 0 {
		connected <- errno
		return
	}
	ranks := make([]*mpittest.Rank, c.ranks)
	for i := range ranks {
		ranks[i] = c.rank(i)
		ranks[i].Stall(c.silent)
	}
	for first := true; ctx.Err() == nil; first = false {
		for _, r := range ranks {
			select {
			case <-r.Disconnected():
				if err := r.Connect(ctx, socket); err != nil && first && c.uid == honest.uid {
					connected <- err
					return
				}
			default:
			}
		}
		if first {
			connected <- nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// playRanks plays the crowds that stdin says, a line each.
func playRanks(socket string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("connected") {
		var c crowd
		if _, err := fmt.Sscan(lines.Text(), &c.uid, &c.ranks, &c.levels, &c.objects, &c.name, &c.silent); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		connected := make(chan error)
		go c.stay(ctx, socket, connected)
		if err := <-connected; err != nil {
			return err
		}
	}
	return nil
}

// come lets the player's ranks connect.
func (c *crowd) come(t *testing.T, player *harness.Player) {
	t.Helper()
	player.Do(t, "connected", c.uid, c.ranks, c.levels, c.objects, c.name, c.silent)
}
