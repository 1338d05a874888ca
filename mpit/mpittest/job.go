package mpittest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mpit-exporter/mpit-exporter/mpit"
)

const (
	// StepTime is how much of the job's time a step is, and how often Run makes one.
	StepTime = 100 * time.Millisecond

	haloBytes   = 8 << 10
	solverSteps = 50 // the solver's communicator lives so long
)

// Job is a number of ranks of one program that exchanges halos in a ring, waits for a slow rank, and makes and frees
// communicators. Its library calls itself simulated.
type Job struct {
	Ranks []*Rank

	mu     sync.Mutex
	step   int
	random *rand.Rand
	comms  []uint32 // the solver's communicator in each rank; 0: none
	errs   []error
}

// NewJob makes a job of n ranks that has not begun to move. Each job has the same values after the same number of
// steps.
func NewJob(n int) *Job {
	//nolint:gosec // weak and the same each time, as it should be
	j := &Job{random: rand.New(rand.NewPCG(1, uint64(n))), comms: make([]uint32, n)}
	for rank := range n {
		j.Ranks = append(j.Ranks, New(jobConfig(rank, n)))
	}
	return j
}

// The variables of a job: names and classes as Open MPI has them, and a few that no Open MPI has.
const (
	unexpectedQueue = "pml_ob1_unexpected_msgq_length"
	postedQueue     = "pml_ob1_posted_recvq_length"
	messageCount    = "pml_monitoring_messages_count"
	messageSize     = "pml_monitoring_messages_size"
	hugepageBytes   = "mpool_hugepage_bytes_allocated"
	barrier         = "simulated_barrier_wait"
	pool            = "simulated_send_buffers"
	phase           = "simulated_phase"
	share           = "simulated_link_busy"
	descriptors     = "simulated_free_descriptors"
)

func jobConfig(rank, size int) Config {
	phases := &mpit.Enum{Name: "phase", Items: []mpit.EnumItem{
		{Value: 0, Name: "compute"}, {Value: 1, Name: "halo"}, {Value: 2, Name: "solve"},
	}}
	variables := []mpit.Variable{
		{Name: unexpectedQueue, Description: "Number of unexpected messages received by each peer in a communicator",
			Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4, Bind: mpit.BindComm},
		{Name: postedQueue, Description: "Number of unmatched receives posted for each peer in a communicator",
			Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4, Bind: mpit.BindComm},
		{Name: messageCount, Description: "Number of messages sent to each peer through the PML framework.",
			Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8, Bind: mpit.BindComm},
		{Name: messageSize, Description: "Size of messages sent to each peer in a communicator through the PML " +
			"framework.", Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8,
			Bind: mpit.BindComm},
		{Name: hugepageBytes, Description: "Number of bytes currently allocated in the mpool hugepage component",
			Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8},
		{Name: barrier, Description: "Time spent waiting in barriers.", Class: mpit.ClassTimer,
			Datatype: mpit.DatatypeDouble, DatatypeBytes: 8},
		{Name: barrier, Description: "Time spent waiting in barriers.", Class: mpit.ClassCounter,
			Datatype: mpit.DatatypeUnsignedLongLong, DatatypeBytes: 8},
		{Name: pool, Description: "Send buffers.", Class: mpit.ClassLevel, Datatype: mpit.DatatypeUnsignedLong,
			DatatypeBytes: 8},
		{Name: pool, Description: "Send buffers.", Class: mpit.ClassSize, Datatype: mpit.DatatypeUnsignedLong,
			DatatypeBytes: 8},
		{Name: pool, Description: "Send buffers.", Class: mpit.ClassHighWatermark,
			Datatype: mpit.DatatypeUnsignedLong, DatatypeBytes: 8},
		{Name: phase, Description: "What the program does.", Class: mpit.ClassState, Datatype: mpit.DatatypeInt,
			DatatypeBytes: 4, Enum: phases},
		{Name: share, Description: "Share of time in which the link is busy.", Class: mpit.ClassPercentage,
			Datatype: mpit.DatatypeDouble, DatatypeBytes: 8},
		{Name: descriptors, Description: "Descriptors left.", Class: mpit.ClassLowWatermark,
			Datatype: mpit.DatatypeUnsigned, DatatypeBytes: 4},
	}
	categories := []mpit.Category{{Name: "pml", Description: "Point-to-point"},
		{Index: 1, Name: "simulated", Description: "Not of Open MPI"}}
	for i := range variables {
		v := &variables[i]
		v.Index, v.Verbosity, v.ReadOnly = i, mpit.VerbosityUserDetail, true
		v.Continuous = v.Class != mpit.ClassTimer
		at := 0
		if i >= 5 {
			at = 1
		}
		categories[at].Variables = append(categories[at].Variables, i)
	}
	eager := mpit.ControlVariable{
		Name: "btl_vader_eager_limit", Description: "Maximum size of a short message", Scope: mpit.ScopeAllEq,
		Verbosity: mpit.VerbosityTunerBasic, Datatype: mpit.DatatypeUnsignedLong, HasValue: true,
		Values: []uint64{4096},
	}
	categories[0].ControlVariables = []int{0}
	return Config{
		Hello: mpit.Hello{
			PID:            1000 + rank,
			Rank:           rank,
			Size:           size,
			ThreadLevel:    3,
			ABI:            mpit.ABIOpenMPI,
			AgentVersion:   "simulated",
			LibraryVersion: "Open MPI v4.1.4, simulated: there is no MPI in this process",
			Host:           "simulated",
			Executable:     "/simulated/job",
			Attributes:     map[string]string{"MPIT_JOB_ID": "simulated", "ppid": "999"},
		},
		Variables: variables,
		Objects: []mpit.Object{
			{Kind: mpit.BindComm, Name: "MPI_COMM_WORLD", Predefined: true, Size: size, Rank: rank},
			{Kind: mpit.BindComm, Name: "MPI_COMM_SELF", Predefined: true, Size: 1},
			{Kind: mpit.BindComm, Name: "halo", Size: size, Rank: rank},
			{Kind: mpit.BindWin, Name: "ghost cells", Size: size, Rank: rank},
		},
		Elements: map[string]int{
			unexpectedQueue: PerPeer, postedQueue: PerPeer, messageCount: PerPeer, messageSize: PerPeer,
		},
		ControlVariables: []mpit.ControlVariable{eager},
		Categories:       categories,
	}
}

// world and halo are numbers of objects in each rank.
const (
	world = 1
	halo  = 3
)

// Step moves all ranks on by StepTime of the job's time.
func (j *Job) Step() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.step++
	slow := j.step / 100 % len(j.Ranks) // whom the others wait for
	for i, r := range j.Ranks {
		j.move(i, r, i == slow)
	}
	err := errors.Join(j.errs...)
	j.errs = nil
	if err != nil {
		return fmt.Errorf("mpittest: step %d: %w", j.step, err)
	}
	return nil
}

func (j *Job) must(err error) {
	if err != nil {
		j.errs = append(j.errs, err)
	}
}

func (j *Job) move(i int, r *Rank, slow bool) {
	n := len(j.Ranks)
	j.must(r.Set(phase, mpit.ClassState, 0, j.step/3%3))

	// Ten halos to both neighbors.
	sent := make([]any, n)
	bytes := make([]any, n)
	for peer := range n {
		sent[peer], bytes[peer] = 0, 0
		if peer != i && (peer == (i+1)%n || peer == (i+n-1)%n) {
			sent[peer], bytes[peer] = 10, 10*haloBytes
		}
	}
	j.must(r.Add(messageCount, mpit.ClassSize, halo, sent...))
	j.must(r.Add(messageSize, mpit.ClassSize, halo, bytes...))
	// One allreduce, a message to the next.
	next := make([]any, n)
	for peer := range n {
		next[peer] = 0
	}
	next[(i+1)%n] = 1
	j.must(r.Add(messageCount, mpit.ClassSize, world, next...))

	// What a slow rank has not received yet queues up in it.
	queue, waited := j.random.IntN(3), 0.002+0.001*j.random.Float64()
	if slow {
		queue, waited = 20+j.step%100/2, 0.0001
	} else {
		waited += 0.03
	}
	j.must(r.Set(unexpectedQueue, mpit.ClassSize, halo, queue))
	j.must(r.Set(postedQueue, mpit.ClassSize, halo, 2))
	j.must(r.Add(barrier, mpit.ClassTimer, 0, waited))
	j.must(r.Add(barrier, mpit.ClassCounter, 0, 4))
	j.must(r.Set(share, mpit.ClassPercentage, 0, min(1, 0.2+float64(queue)/100)))

	j.must(r.Set(hugepageBytes, mpit.ClassSize, 0, (2+j.step/50%4)<<21))
	j.must(r.Set(pool, mpit.ClassLevel, 0, min(64, 4+queue)))
	j.must(r.Set(pool, mpit.ClassSize, 0, 64))
	j.must(r.Set(pool, mpit.ClassHighWatermark, 0, min(64, 4+min(j.step, 71))))
	j.must(r.Set(descriptors, mpit.ClassLowWatermark, 0, 1024-min(j.step, 300)))

	j.solve(i, r)
}

// solve makes and frees the solver's communicator.
func (j *Job) solve(i int, r *Rank) {
	if j.comms[i] != 0 {
		j.must(r.Add(messageCount, mpit.ClassSize, j.comms[i], 2))
	}
	if j.step%solverSteps != 0 {
		return
	}
	if j.comms[i] != 0 {
		j.must(r.FreeObject(j.comms[i]))
	}
	j.comms[i] = r.AddObject(mpit.Object{Kind: mpit.BindComm, Name: "solver", Size: len(j.Ranks), Rank: i})
}

// Run connects all ranks to the socket, keeps them connected, and makes a step each StepTime, until ctx ends. Then each
// rank leaves its last sample, as in MPI_Finalize, if somebody listens still.
func (j *Job) Run(ctx context.Context, socket string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(j.Ranks))
	var ranks sync.WaitGroup
	for i, r := range j.Ranks {
		ranks.Go(func() { errs[i] = r.Run(ctx, socket) })
	}
	ticker := time.NewTicker(StepTime)
	defer ticker.Stop()
	var err error
	for err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			err = j.Step()
		}
	}
	cancel()
	ranks.Wait()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	for _, r := range j.Ranks {
		_ = r.Finish(last, socket, mpit.EndFinalize) // nobody may be there any more
	}
	return errors.Join(append(errs, err)...)
}
