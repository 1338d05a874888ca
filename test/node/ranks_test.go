package node

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
	"github.com/mpit-exporter/mpit-exporter/mpit/mpittest"
)

// A rank has 60 performance variables: those of a call profile for a program that calls six functions, 36 counters,
// 8 levels, 4 watermarks and two TIMERs.
var (
	functions = []string{"MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast", "MPI_Barrier"}
	bytesOf   = []string{"sent_MPI_Isend", "posted_MPI_Irecv", "sent_MPI_Allreduce", "received_MPI_Allreduce"}
	libraries = []struct {
		name  string
		class mpit.Class
		of    mpit.Datatype
		count int
	}{
		{"pml_events", mpit.ClassCounter, mpit.DatatypeUnsignedLongLong, 36},
		{"pml_depth", mpit.ClassLevel, mpit.DatatypeUnsignedLongLong, 8},
		{"pml_peak", mpit.ClassHighWatermark, mpit.DatatypeUnsignedLongLong, 4},
		{"pml_wait", mpit.ClassTimer, mpit.DatatypeDouble, 2},
	}
)

func rankVariables() (list []mpit.Variable) {
	for _, f := range functions {
		list = append(list, mpittest.DistributionVariable("mpit_call_time_"+f, mpit.BindComm))
	}
	for _, f := range bytesOf {
		v := mpittest.SizesVariable("mpit_call_bytes_"+f, mpit.BindComm)
		v.Distribution = false
		list = append(list, v)
	}
	for _, l := range libraries {
		for i := range l.count {
			list = append(list, mpit.Variable{Name: fmt.Sprintf("%s_%d", l.name, i), Class: l.class, Datatype: l.of,
				Description: "Made up", DatatypeBytes: 8, Verbosity: mpit.VerbosityUserBasic, Continuous: true})
		}
	}
	return list
}

func newRank(job string, number, size int) *mpittest.Rank {
	return mpittest.New(mpittest.Config{
		Hello: mpit.Hello{PID: 4242 + number, Rank: number, Size: size, ThreadLevel: 3, AgentVersion: "simulated",
			LibraryVersion: "Open MPI v4.1.4", Host: "simulated", Executable: "/simulated/job",
			Attributes: map[string]string{"MPIT_JOB_ID": job, "ppid": "99"}},
		Variables: rankVariables(),
		Objects:   []mpit.Object{{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Size: size, Rank: number}},
		UnderWay:  &mpit.UnderWay{},
	})
}

// move lets all variables of a rank go on, each rank at a pace of its own.
func move(r *mpittest.Rank, number, step int) error {
	pace := time.Duration(number%97 + 1)
	for _, v := range rankVariables() {
		object, by := uint32(0), any(7*uint64(pace))
		switch {
		case v.Distribution:
			if err := r.Add(v.Name, v.Class, 1, mpittest.Distribution(pace*time.Microsecond,
				2*pace*time.Microsecond, 31*pace*time.Microsecond, pace*time.Millisecond)...); err != nil {
				return err
			}
			continue
		case v.Bind == mpit.BindComm:
			object, by = 1, 4096*uint64(pace)
		case v.Class == mpit.ClassTimer:
			by = 0.000123 * float64(pace)
		}
		if err := r.Add(v.Name, v.Class, object, by); err != nil {
			return err
		}
	}
	r.UnderWay(mpit.UnderWay{Observed: time.Duration(step) * time.Second})
	return nil
}

// playRanks plays all ranks of a node, and does what stdin says: move, stop or renew a number of ranks.
func playRanks() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	size, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	socket, ranks := os.Args[1], make([]*mpittest.Rank, size)
	connect := func(number, generation int) error {
		ranks[number] = newRank(fmt.Sprintf("job%d", generation), number, size)
		return ranks[number].Connect(ctx, socket)
	}
	for i := range ranks {
		if err := connect(i, 0); err != nil {
			return err
		}
	}
	step, renewed := 0, 0
	fmt.Println("connected")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("done") {
		var what string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		step++
		for i := range n {
			switch what {
			case "move":
				err = move(ranks[i], i, step)
			case "stop": // others than those that are renewed first
				ranks[size-1-i].Stall(true)
			case "renew":
				at := renewed % size
				if err = ranks[at].Finish(ctx, socket, mpit.EndFinalize); err == nil {
					err = connect(at, 1+renewed/n)
				}
				renewed++
			}
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}
