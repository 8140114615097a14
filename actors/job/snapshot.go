package job

import (
	"errors"
	"time"

	"docent/actors/persistent"
	"docent/agent"
	"docent/api"
	"docent/persistence/journal"
)

// snapshotV1 is a state on disk. Fields are added, never changed or used again; events after it are replayed on top.
type snapshotV1 struct {
	Version     int                 `cbor:"0,keyasint"`
	Project     api.ProjectID       `cbor:"1,keyasint"`
	User        api.KeyID           `cbor:"2,keyasint"`
	Source      api.JobSource       `cbor:"3,keyasint"`
	Model       string              `cbor:"4,keyasint"`
	Draft       bool                `cbor:"5,keyasint"`
	Phase       uint8               `cbor:"6,keyasint"`
	Attempt     int                 `cbor:"7,keyasint"`
	Queue       []instruction       `cbor:"8,keyasint"`
	Seen        []string            `cbor:"9,keyasint"`
	Edited      *Edited             `cbor:"10,keyasint,omitempty"`
	Interrupted int                 `cbor:"11,keyasint"`
	Panicked    int                 `cbor:"12,keyasint"`
	Stale       int                 `cbor:"13,keyasint"`
	Status      api.JobStatus       `cbor:"14,keyasint"`
	Halt        api.HaltReason      `cbor:"15,keyasint"`
	Title       string              `cbor:"16,keyasint"`
	Message     string              `cbor:"17,keyasint"`
	Todos       []api.Todo          `cbor:"18,keyasint"`
	Link        string              `cbor:"19,keyasint"`
	Branch      string              `cbor:"20,keyasint"`
	Number      int                 `cbor:"21,keyasint"`
	Commit      string              `cbor:"22,keyasint"`
	Earlier     []agent.Instruction `cbor:"23,keyasint"`
	OldLog      []Progressed        `cbor:"24,keyasint,omitempty"` // of snapshots that have no Log
	CreatedAt   time.Time           `cbor:"25,keyasint"`
	UpdatedAt   time.Time           `cbor:"26,keyasint"`
	Archived    time.Time           `cbor:"27,keyasint"`
	Seq         uint64              `cbor:"28,keyasint"`
	Log         []Entry             `cbor:"29,keyasint"`
	Dropped     uint64              `cbor:"30,keyasint,omitempty"`
	DryRun      bool                `cbor:"31,keyasint,omitempty"`
	Wish        string              `cbor:"32,keyasint,omitempty"`
	Asked       *string             `cbor:"33,keyasint,omitempty"` // nil in snapshots of before it was kept
	Steps       []agent.Step        `cbor:"34,keyasint,omitempty"`
	Spent       agent.Spent         `cbor:"35,keyasint"`
	Outcome     api.Outcome         `cbor:"36,keyasint,omitempty"`
	Pulls       []pull              `cbor:"37,keyasint,omitempty"`
	Joined      string              `cbor:"38,keyasint,omitempty"`
	Left        int                 `cbor:"39,keyasint,omitempty"`
	Records     []recorded          `cbor:"40,keyasint,omitempty"`
	Waiting     int64               `cbor:"41,keyasint,omitempty"`
}

func (s *state) snapshot() ([]byte, error) {
	v := snapshotV1{
		Version: 1, Project: s.project, User: s.user, Source: s.source, Model: s.model, Draft: s.draft,
		Phase: uint8(s.phase), Attempt: s.attempt, Queue: s.queue, Seen: s.seen,
		Interrupted: s.interrupted, Left: s.left, Panicked: s.panicked, Stale: s.stale,
		Status: s.status, Halt: s.halt, Title: s.title, Message: s.message, Todos: s.todos, Link: s.link,
		Branch: s.branch, Number: s.number, Commit: s.commit, Earlier: s.earlier, Log: s.log,
		CreatedAt: s.createdAt, UpdatedAt: s.updatedAt, Archived: s.archived,
		Seq: s.seq, Dropped: s.dropped, DryRun: s.dryRun, Wish: s.wish,
		Asked: &s.asked, Steps: s.steps, Spent: s.spent, Outcome: s.outcome, Pulls: s.pulls, Joined: s.joined,
		Records: s.records, Waiting: s.waiting,
	}
	if s.phase == publishing {
		v.Edited = &s.edited
	}
	return persistent.EncodeSnapshot(string(s.id), v)
}

func restore(id api.JobID, data []byte) (state, error) {
	var v snapshotV1
	if err := persistent.DecodeSnapshot(data, &v, &v.Version, 1); err != nil {
		return state{}, err
	}
	if v.Phase > uint8(publishing) || (phase(v.Phase) != idle && len(v.Queue) == 0) ||
		(phase(v.Phase) == publishing) != (v.Edited != nil) {
		return state{}, errors.New("the snapshot contradicts itself")
	}
	s := state{
		id: id, created: true, project: v.Project, user: v.User, source: v.Source, model: v.Model, draft: v.Draft,
		phase: phase(v.Phase), attempt: v.Attempt, queue: v.Queue, seen: v.Seen,
		interrupted: v.Interrupted, left: v.Left, panicked: v.Panicked, stale: v.Stale,
		status: v.Status, halt: v.Halt, title: v.Title, message: v.Message, todos: v.Todos, link: v.Link,
		branch: v.Branch, number: v.Number, commit: v.Commit, earlier: v.Earlier, log: v.Log,
		createdAt: v.CreatedAt, updatedAt: v.UpdatedAt, archived: v.Archived,
		seq: v.Seq, dropped: v.Dropped, logBytes: logBytes(v.Log), dryRun: v.DryRun, wish: v.Wish,
		steps: v.Steps, spent: v.Spent, outcome: v.Outcome, pulls: v.Pulls, joined: v.Joined,
		records: v.Records, waiting: v.Waiting,
	}
	if v.Pulls == nil && v.Link != "" && v.Joined == "" { // a snapshot of before they were kept
		s.pulls = []pull{{Branch: v.Branch, Link: v.Link, State: api.PullOpen}}
	}
	switch {
	case v.Asked != nil:
		s.asked = *v.Asked
	case v.Model != agent.Rules: // what worked, if it has worked already, was the built-in one
		s.asked = v.Model
	}
	if v.Edited != nil {
		s.edited = *v.Edited
	}
	if v.Seq == 0 {
		for _, p := range v.OldLog {
			s.log = append(s.log, Entry{Type: EntryProgress, At: p.At, Status: s.status, Title: p.Title, Todos: p.Todos,
				Text: p.Text})
		}
		s.logBytes = logBytes(s.log)
	}
	return s, nil
}

// at sets a restored state to the event that its snapshot covers. An earlier program's snapshot kept progress only, and
// not of which events it was: it is numbered from the end.
func (s state) at(seq uint64) state {
	if s.seq == 0 && len(s.log) > 0 {
		s.dropped = seq - min(seq, uint64(len(s.log)))
		for i := range s.log {
			s.log[i].Seq = s.dropped + uint64(i) + 1
		}
	}
	s.seq = seq
	return s
}

// Row is the line that listings show of a job, from what the journal holds of it. It is false if no job was created.
func Row(id api.JobID, rec journal.Recovered) (api.JobRow, bool, error) {
	s, err := kind.Recovered(string(id), rec)
	if err != nil || !s.created {
		return api.JobRow{}, false, err
	}
	return s.row(rec.Seq), true, nil
}
