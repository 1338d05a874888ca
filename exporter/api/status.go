package api

import (
	"cmp"
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
	JobID          string     `json:"jobid"`
	World          string     `json:"world"`
	Rank           int        `json:"rank"`
	Dup            int        `json:"dup,omitempty"`
	State          string     `json:"state"` // new, up, busy, passive, paused, late, ended
	EndReason      string     `json:"end_reason,omitempty"`
	ExitStatus     string     `json:"exit_status,omitempty"` // "exit 1", "SIGSEGV"; empty: it runs, or nobody knows
	PID            int        `json:"pid"`                   // the kernel's, where it can say; else the process's own
	UID            uint32     `json:"uid"`
	User           string     `json:"user"`
	Host           string     `json:"host"`
	Executable     string     `json:"executable"`
	Library        string     `json:"library"` // empty: not known
	LibraryVersion string     `json:"library_version"`
	WorldSize      int        `json:"world_size"`
	ThreadLevel    string     `json:"thread_level"`
	AgentVersion   string     `json:"agent_version"`
	JobIDSource    string     `json:"jobid_source"`           // who says the jobid: slurm, pbs … launcher
	CgroupJobID    string     `json:"cgroup_jobid,omitempty"` // the kernel's word on it; empty: none
	JobIDCheck     string     `json:"jobid_check"`            // verified, differs, unknown
	JobName        string     `json:"jobname,omitempty"`
	Partition      string     `json:"partition,omitempty"`
	Started        *time.Time `json:"started,omitempty"`
	Ended          *time.Time `json:"ended,omitempty"`
	Calls          *Calls     `json:"calls,omitempty"` // absent: the rank has no call profile
	Peer           Peer       `json:"-"`
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
	// Of the thread that initialised MPI: inside MPI to that moment, a call that it is in included, and measured at all.
	Inside   float64 `json:"inside_seconds"`
	Observed float64 `json:"observed_seconds"`
	// Inside by kind of call.
	Kind KindSeconds `json:"kind_seconds"`
	// How long the longest call under way of any thread has taken; 0: there was none.
	Running float64   `json:"running_seconds"`
	Long    *LongCall `json:"long,omitempty"` // that call, if it has taken longer than LongCallTime
}

// KindSeconds are seconds for each kind of call (mpit.CallKind).
type KindSeconds struct {
	Send       float64 `json:"send"`
	Wait       float64 `json:"wait"`
	Collective float64 `json:"collective"`
	File       float64 `json:"file"`
	Poll       float64 `json:"poll"`
}

// Of returns the seconds of one kind; 0: there is no such kind.
func (k *KindSeconds) Of(kind mpit.CallKind) float64 {
	switch kind {
	case mpit.CallSend:
		return k.Send
	case mpit.CallWait:
		return k.Wait
	case mpit.CallCollective:
		return k.Collective
	case mpit.CallFile:
		return k.File
	case mpit.CallPoll:
		return k.Poll
	}
	return 0
}

// Most returns what is larger of each kind.
func (k KindSeconds) Most(other KindSeconds) KindSeconds {
	return KindSeconds{Send: max(k.Send, other.Send), Wait: max(k.Wait, other.Wait),
		Collective: max(k.Collective, other.Collective), File: max(k.File, other.File),
		Poll: max(k.Poll, other.Poll)}
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

// CallsOf describes what a sample says of calls under way, in words that are bounded; nil: nothing.
func CallsOf(s *mpit.Sample) *Calls {
	u := s.UnderWay
	if u == nil {
		return nil
	}
	c := &Calls{Inside: u.Inside.Seconds(), Observed: u.Observed.Seconds(), Running: u.Running.Seconds(),
		Kind: KindSeconds{
			Send:       u.InsideBy[mpit.CallSend].Seconds(),
			Wait:       u.InsideBy[mpit.CallWait].Seconds(),
			Collective: u.InsideBy[mpit.CallCollective].Seconds(),
			File:       u.InsideBy[mpit.CallFile].Seconds(),
			Poll:       u.InsideBy[mpit.CallPoll].Seconds(),
		}}
	if u.Running <= LongCallTime {
		return c
	}
	c.Long = &LongCall{Function: clean.Label(u.Function), Module: clean.Path(u.Module), Offset: u.Offset}
	if u.Bind == mpit.BindNone {
		return c
	}
	c.Long.Kind, c.Long.Object = mapping.BindLabel(u.Bind), mapping.Unnamed
	if s.Layout == nil {
		return c
	}
	for i := range s.Layout.Objects {
		if o := &s.Layout.Objects[i]; o.ID == u.Object && o.Kind == u.Bind {
			c.Long.Object = strings.Clone(mapping.CleanName(o.Name))
		}
	}
	return c
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
		JobName:        of.JobName,
		Partition:      of.Partition,
	}
	if !h.InitTime.IsZero() {
		started := h.InitTime // nothing else of h is held
		s.Started = &started
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
