package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"docent/actors/job"
	"docent/actors/persistent"
	"docent/actors/reports"
	"docent/actors/thread"
	"docent/api"
	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

type (
	// JournalReport is what a check of the journal found.
	JournalReport struct {
		File      string           `json:"file"`
		Position  uint64           `json:"position"`
		Events    uint64           `json:"events"`
		Snapshots uint64           `json:"snapshots"`
		Streams   int              `json:"streams"`
		Pending   int              `json:"pending"`
		Bytes     int64            `json:"bytes"`
		Found     int              `json:"found"`
		Problems  []journalProblem `json:"problems,omitempty"` // the first so many
	}
	journalProblem struct {
		File     string `json:"file"`
		Bucket   string `json:"bucket,omitempty"`
		Stream   string `json:"stream,omitempty"`
		Sequence uint64 `json:"sequence,omitempty"`
		Position uint64 `json:"position,omitempty"`
		Problem  string `json:"problem"`
		Advice   string `json:"advice,omitempty"`
	}
	// StreamParams name a stream of the journal.
	StreamParams struct {
		Stream string `json:"stream"`
	}
	// A ShownRecord is one record of a stream, for people: a snapshot's state, or an event.
	ShownRecord struct {
		Stream   string `json:"stream"`
		Sequence uint64 `json:"sequence,omitempty"`
		Position uint64 `json:"position,omitempty"`
		Snapshot any    `json:"snapshot,omitempty"` // covers the events up to its sequence number
		Type     string `json:"type,omitempty"`
		Event    any    `json:"event,omitempty"`
		Problem  string `json:"problem,omitempty"`
	}
)

// mostProblems is how many problems a report lists.
const mostProblems = 1000

// An inspected journal is one that a process serves, or a file.
type inspected struct {
	path  string
	check func(func(journal.Problem) bool) error
	*journal.Inspection
}

func (o *Service) checkJournal(context.Context, struct{}) (JournalReport, error) {
	j, err := o.inspectJournal()
	if err != nil {
		return JournalReport{}, err
	}
	return j.report()
}

func (o *Service) showStream(_ context.Context, p StreamParams) ([]ShownRecord, error) {
	j, err := o.inspectJournal()
	if err != nil {
		return nil, err
	}
	return j.show(p.Stream)
}

func (o *Service) inspectJournal() (*inspected, error) {
	if o.journal != nil {
		return o.journal, nil
	}
	if o.server == nil {
		return nil, errNoServer
	}
	j, err := stores.JournalFile(o.server.Journal, "look into its records", "look into the tables journal_… with psql")
	if err != nil {
		return nil, err
	}
	return &inspected{path: j.Path(), check: j.Check, Inspection: j.Inspect()}, nil
}

// report reads everything: the records, and whether jobs and threads can be recovered from them.
func (j *inspected) report() (JournalReport, error) {
	r := JournalReport{File: j.path}
	found := func(p journalProblem) {
		if r.Found++; len(r.Problems) < mostProblems {
			p.File = j.path
			r.Problems = append(r.Problems, p)
		}
	}
	err := j.check(func(p journal.Problem) bool {
		shown := journalProblem{Bucket: p.Bucket, Stream: p.Stream, Sequence: p.Seq, Position: p.Position,
			Problem: p.Err.Error(),
			Advice:  "restore a backup; the rest works meanwhile"}
		if p.Stream != "" && (p.Bucket == "events" || p.Bucket == "snapshots") {
			shown.Advice = "restore a backup, or give it up: docent journal drop " + p.Stream + "; the rest works meanwhile"
		}
		if j.Inspection == nil {
			shown.Advice = "restore a backup: what stands in the file cannot be read safely"
		}
		found(shown)
		return true
	})
	if err != nil || j.Inspection == nil {
		return r, err
	}
	stats, err := j.Stats()
	if err != nil && !errors.Is(err, journal.ErrCorrupt) {
		return r, err
	}
	r.Position, r.Events, r.Snapshots, r.Pending, r.Bytes = stats.Position, stats.Events, stats.Snapshots, stats.Pending,
		stats.FileBytes
	return r, j.Streams(func(stream string, rec journal.Recovered) bool {
		r.Streams++
		if err := understood(stream, rec); err != nil {
			p := journalProblem{Bucket: "events", Stream: stream, Sequence: rec.Seq, Problem: err.Error(),
				Advice: "its actor is quarantined and the rest works; it may have been written by a newer version of docent. `docent journal drop " + stream + "` takes it out"}
			if at, ok := errors.AsType[*persistent.RecoverError](err); ok {
				p.Sequence = at.Seq
			}
			found(p)
		}
		return true
	})
}

// understood says why a stream's actor could not be recovered from the journal.
func understood(stream string, rec journal.Recovered) error {
	switch kind, id, _ := strings.Cut(stream, "/"); kind {
	case "job":
		_, _, err := job.Row(api.JobID(id), rec)
		return err
	case "thread":
		_, _, err := thread.History(api.ThreadID(id), rec)
		return err
	case "report":
		return reports.Understood(rec)
	}
	return errors.New("this version of docent knows no such kind of stream")
}

// show decodes what there is of a stream.
func (j *inspected) show(stream string) ([]ShownRecord, error) {
	if j.Inspection == nil {
		return nil, errors.New("the journal's file is damaged and cannot be read safely; `docent journal check` says more")
	}
	var shown []ShownRecord
	err := j.Records(stream, func(r journal.Record) bool {
		shown = append(shown, showRecord(stream, r))
		return true
	})
	if err == nil && len(shown) == 0 {
		err = fmt.Errorf("there is no stream %q in %s", stream, j.path)
	}
	return shown, err
}

func showRecord(stream string, r journal.Record) ShownRecord {
	s := ShownRecord{Stream: r.Stream, Sequence: r.Seq, Position: r.Position, Type: r.Event.Type}
	err := r.Err
	kind, id, _ := strings.Cut(stream, "/")
	switch {
	case err != nil:
	case r.Bucket == "snapshots" && kind == "job":
		s.Snapshot, _, err = job.Row(api.JobID(id), journal.Recovered{Seq: r.Seq, SnapSeq: r.Seq, Snapshot: r.State})
	case r.Bucket == "snapshots" && kind == "thread":
		s.Snapshot, _, err = thread.History(api.ThreadID(id), journal.Recovered{Seq: r.Seq, SnapSeq: r.Seq,
			Snapshot: r.State})
	case kind == "job":
		s.Event, err = job.Decode(r.Event)
	case kind == "thread":
		var ev thread.Event
		if ev, err = thread.Decode(r.Event); err == nil {
			s.Event = ev
			if opened, ok := ev.(thread.Opened); ok { // without the hash of the thread's secret
				s.Event = map[string]any{"Project": opened.Project, "Caller": opened.Caller, "At": opened.At}
			}
		}
	}
	if err != nil {
		s.Snapshot, s.Event, s.Problem = nil, nil, err.Error()
	}
	return s
}

// InspectHere reads the journal's file where no server has it.
func InspectHere(ctx context.Context, c config.Config, name string, params []byte, progress Progress) (json.RawMessage,
	error) {
	if c.Shared() {
		return nil, stores.InFile("look into its records", "look into the tables journal_… with psql")
	}
	dir, err := datadir.OpenUsed(c.Data, "journal", 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := hasJournal(dir.Path); err != nil {
		return nil, err
	}
	path := dir.File(datadir.Journal)
	j := &inspected{path: path, check: func(yield func(journal.Problem) bool) error { return journal.Check(path, yield) }}
	in, err := journal.Inspect(path)
	switch {
	case err == nil:
		defer in.Close()
		j.Inspection = in
	case !errors.Is(err, journal.ErrCorrupt):
		return nil, err
	}
	return (&Service{journal: j}).Run(ctx, name, params, progress)
}
