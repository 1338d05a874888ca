package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mpit-exporter/mpit-exporter/exporter/identity"
	"github.com/mpit-exporter/mpit-exporter/exporter/internal/clean"
	"github.com/mpit-exporter/mpit-exporter/mapping"
	"github.com/mpit-exporter/mpit-exporter/mpit"
)

// RankList is the answer to GET /api/v1/ranks.
type RankList struct {
	Ranks []RankStatus `json:"ranks"` // sorted by jobid, world, user, rank
}

// RankStatus describes one rank. It leaves out the agent's id, with which anybody could pass for the rank.
type RankStatus struct {
	JobID          string `json:"jobid"`
	World          string `json:"world"`
	Rank           int    `json:"rank"`
	Dup            int    `json:"dup,omitempty"`
	State          string `json:"state"` // new, up, busy, passive, paused, late, ended
	PID            int    `json:"pid"`   // the kernel's, where it can say; else the process's own
	UID            uint32 `json:"uid"`
	User           string `json:"user"`
	Host           string `json:"host"`
	Executable     string `json:"executable"`
	Library        string `json:"library"` // empty: not known
	LibraryVersion string `json:"library_version"`
	WorldSize      int    `json:"world_size"`
	ThreadLevel    string `json:"thread_level"`
	AgentVersion   string `json:"agent_version"`
	JobIDSource    string `json:"jobid_source"`           // who says the jobid: slurm, pbs … launcher
	CgroupJobID    string `json:"cgroup_jobid,omitempty"` // the kernel's word on it; empty: none
	JobIDCheck     string `json:"jobid_check"`            // verified, differs, unknown
	Batch
	Started *time.Time `json:"started,omitempty"`
	Calls   *Calls     `json:"calls,omitempty"` // absent: the rank has no call profile
	Peer    Peer       `json:"-"`

	End
}

// Batch is what a batch system says of a job. Empty: nothing.
type Batch struct {
	JobName   string `json:"jobname,omitempty"`
	Partition string `json:"partition,omitempty"`
	Account   string `json:"account,omitempty"` // Slurm's, as is QOS
	QOS       string `json:"qos,omitempty"`
}

// End is how a rank has ended.
type End struct {
	EndReason  string     `json:"end_reason,omitempty"`
	ExitStatus string     `json:"exit_status,omitempty"` // "exit 1", "SIGSEGV"; empty: it runs, or it isn't known
	Ended      *time.Time `json:"ended,omitempty"`
}

// Peer is what an exporter knows of a rank's connection, and only Go programs are told.
type Peer struct {
	PID int // the kernel's alone, in the exporter's pid namespace; 0: not known
	// Lost is since when there is no connection: the last sample may follow, or the rank comes again. Zero: there is
	// one, or the rank has ended.
	Lost time.Time
}

// Calls is what a rank's call profile says of the moment of its last answer. Times are in seconds.
type Calls struct {
	State StateSeconds `json:"state_seconds"`
	// How long the longest call under way of any thread has taken; 0: there was none.
	Running float64   `json:"running_seconds"`
	Long    *LongCall `json:"long,omitempty"` // that call, if it has taken longer than LongCallTime
	// Threads are those that call MPI, at most eight, the one that initialised it first; absent: not known.
	Threads []Thread `json:"threads,omitempty"`
	CPU     *CPU     `json:"cpu,omitempty"` // absent: nothing is known
	Phases  []Phase  `json:"phases,omitempty"`
	// Comms are the communicators of which it is known which they are, at most 256: those on which a collective began
	// last.
	Comms []Comm `json:"comms,omitempty"`
}

// LongCallTime is how long a call has to take before it is shown: others come and go between two looks.
const LongCallTime = time.Second

// LongCall is a call of MPI that has not returned yet.
type LongCall struct {
	Function string `json:"function"`         // with MPI_
	Kind     string `json:"kind,omitempty"`   // comm, win or file: of the object that it names; empty: none
	Object   string `json:"object,omitempty"` // its name, as in the call profile's series
	Module   string `json:"module,omitempty"` // file that it was made from, as the rank sees it; empty: not known
	Offset   uint64 `json:"offset,omitempty"` // of the address that it returns to, in that file
}

// CallsOf describes what a sample says of calls under way, in words that are bounded, of a rank that has been so long
// in each state, and of which that was known of its CPU; nil: nothing.
func CallsOf(s *mpit.Sample, state StateSeconds, cpu *CPU) *Calls {
	u := s.UnderWay
	if u == nil {
		return nil
	}
	c := &Calls{State: state, Running: u.Running.Seconds(), CPU: cpuOf(u, cpu, s.Status == mpit.SampleFinal)}
	if c.CPU != nil {
		c.CPU.Paused = max(cmp.Or(cpu, &CPU{}).Paused, s.Stats.PausedTime.Seconds()) // not every sample has it
	}
	for i := range u.Threads {
		c.Threads = append(c.Threads, threadOf(s, &u.Threads[i]))
	}
	if u.Running > LongCallTime {
		c.Long = &LongCall{Function: clean.Label(u.Function), Module: clean.Path(u.Module), Offset: u.Offset}
		c.Long.Kind, c.Long.Object = objectOf(s, u.Bind, u.Object)
	}
	return c
}

// objectOf returns the kind and the name of the object that a call names, as in the call profile's series; empty: none.
func objectOf(s *mpit.Sample, bind mpit.Bind, id uint32) (kind, name string) {
	if bind == mpit.BindNone {
		return "", ""
	}
	if s.Layout != nil {
		for i := range s.Layout.Objects {
			if o := &s.Layout.Objects[i]; o.ID == id && o.Kind == bind {
				return mapping.BindLabel(bind), strings.Clone(mapping.CleanName(o.Name))
			}
		}
	}
	return mapping.BindLabel(bind), mapping.Unnamed
}

// threadOf describes a thread, in words that are bounded.
func threadOf(s *mpit.Sample, t *mpit.Thread) Thread {
	thread := Thread{Main: t.Main, Moved: max(t.Now-max(t.Begun, t.Ended), 0).Seconds()}
	if t.Begun == 0 {
		return thread
	}
	c := &CallUnderWay{Function: clean.Label(t.Function), Seconds: max(t.Now-t.Begun, 0).Seconds(),
		Of: clean.Label(t.Of), AnySource: t.Peer == mpit.AnySource}
	c.Kind, c.Object = objectOf(s, t.Bind, t.Object)
	c.Peers = slices.Clone(t.Peers)
	if t.Peer >= 0 {
		c.Peers = []int{t.Peer}
	}
	if t.Tag >= 0 {
		c.Tag = new(t.Tag)
	}
	if t.Root >= 0 {
		c.Root = new(t.Root)
	}
	thread.Call = c
	return thread
}

// StatusOf describes a rank that has answered. The result is bounded, and keeps nothing of h alive.
func StatusOf(h *mpit.Hello, peer mpit.Peer, of identity.Process) RankStatus {
	library := mapping.ParseLibrary(h.LibraryVersion)
	s := RankStatus{
		JobID:          of.ID.JobID,
		World:          of.ID.World,
		Rank:           of.ID.Rank,
		Dup:            of.ID.Dup,
		State:          "up",
		PID:            cmp.Or(int(max(peer.PID, 0)), h.PID),
		Peer:           Peer{PID: int(max(peer.PID, 0))},
		UID:            peer.UID,
		User:           cmp.Or(of.ID.User, strconv.FormatUint(uint64(peer.UID), 10)),
		Host:           clean.Label(h.Host),
		Executable:     clean.Path(h.Executable),
		Library:        clean.Label(library.Name),
		LibraryVersion: clean.Label(library.Version),
		WorldSize:      h.Size,
		ThreadLevel:    threadLevel(h.ThreadLevel),
		AgentVersion:   clean.Label(h.AgentVersion),
		JobIDSource:    of.Source,
		CgroupJobID:    of.CgroupJobID,
		JobIDCheck:     cmp.Or(of.Check, identity.Unknown),
		Batch:          Batch{of.JobName, of.Partition, of.Account, of.QOS},
	}
	if !h.InitTime.IsZero() {
		s.Started = new(h.InitTime) // nothing else of h is held
	}
	return s
}

// threadLevel names a thread level of MPI (MPI-4.1 §11.2.1).
func threadLevel(level int) string {
	names := [...]string{"unknown", "single", "funneled", "serialized", "multiple"} // from -1 on
	if level >= -1 && level+1 < len(names) {
		return names[level+1]
	}
	return strconv.Itoa(level)
}
