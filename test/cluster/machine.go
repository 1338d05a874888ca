package cluster

import (
	"slices"
	"sync"
	"time"
)

// retention is how long the exporter shows ranks that have ended, as long as serve's default.
const retention = 2 * time.Minute

// machine is a cluster on which the jobs of a workload run, each on whole nodes, in model time since its beginning. Of
// the jobs that wait the first one that fits begins.
type machine struct {
	mu       sync.Mutex
	workload *workload
	now      time.Duration
	arrival  time.Duration // of the next job
	waiting  []*job
	running  []*job
	nodes    []node
	started  int // jobs so far
	placed   int // nodes that they were given
}

// job is one of a machine's jobs.
type job struct {
	number     int
	width      int
	length     time.Duration
	start, end time.Duration
}

// node has a job's ranks, or is idle, and those of jobs that have ended and are still shown.
type node struct {
	running *place
	ended   []place
}

// place is what a job has of a node.
type place struct {
	job   *job
	index int // among the job's nodes
}

func newMachine(w *workload) *machine { return &machine{workload: w, nodes: make([]node, w.nodes)} }

// advance lets the time come to a moment.
func (m *machine) advance(to time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		next := m.arrival
		for _, j := range m.running {
			next = min(next, j.end)
		}
		if next > to {
			break
		}
		m.now = next
		m.finish()
		if m.arrival == next {
			width, length := m.workload.job()
			m.waiting = append(m.waiting, &job{width: width, length: length})
			m.arrival += m.workload.pause()
		}
		m.begin()
	}
	m.now = to
	for i := range m.nodes {
		n := &m.nodes[i]
		n.ended = slices.DeleteFunc(n.ended, func(p place) bool { return p.job.end+retention < to })
	}
}

func (m *machine) finish() {
	for i := range m.nodes {
		n := &m.nodes[i]
		if n.running != nil && n.running.job.end <= m.now {
			n.ended = append(n.ended, *n.running)
			n.running = nil
		}
	}
	m.running = slices.DeleteFunc(m.running, func(j *job) bool { return j.end <= m.now })
}

func (m *machine) begin() {
	var idle []int
	for i := range m.nodes {
		if m.nodes[i].running == nil {
			idle = append(idle, i)
		}
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(j *job) bool {
		if j.width > len(idle) {
			return false
		}
		m.started++
		m.placed += j.width
		j.number, j.start, j.end = m.started, m.now, m.now+j.length
		for index, i := range idle[:j.width] {
			m.nodes[i].running = &place{job: j, index: index}
		}
		idle = idle[j.width:]
		m.running = append(m.running, j)
		return true
	})
}

// busy is how many nodes have a job.
func (m *machine) busy() (busy int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.nodes {
		if n.running != nil {
			busy++
		}
	}
	return busy
}

// shown is what node i's exporter has on its page, and when.
func (m *machine) shown(i int) (places []place, now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[i]
	places = slices.Clone(n.ended)
	if n.running != nil {
		places = append(places, *n.running)
	}
	return places, m.now
}
