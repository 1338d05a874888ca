package api

import (
	"cmp"
	"strconv"
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
	PID            int        `json:"pid"` // the kernel's, where it can say; else the process's own
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
	switch level {
	case -1:
		return "unknown"
	case 0:
		return "single"
	case 1:
		return "funneled"
	case 2:
		return "serialized"
	case 3:
		return "multiple"
	}
	return strconv.Itoa(level)
}
