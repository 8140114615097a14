package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docent/actors/job"
	"docent/actors/persistent"
	"docent/actors/thread"
	"docent/api"
	"docent/datadir"
	"docent/disk"
	"docent/persistence/journal"
)

const (
	opJournalCheck = "journal.check"
	opJournalShow  = "journal.show"
)

type (
	journalReport struct {
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
	streamParams struct {
		Stream string `json:"stream"`
	}
	// A shownRecord is one record of a stream, for people: a snapshot's state, or an event.
	shownRecord struct {
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

func (o *operations) checkJournal(context.Context, struct{}, Progress) (journalReport, error) {
	j, err := o.inspectJournal()
	if err != nil {
		return journalReport{}, err
	}
	return j.report()
}

func (o *operations) showStream(_ context.Context, p streamParams, _ Progress) ([]shownRecord, error) {
	j, err := o.inspectJournal()
	if err != nil {
		return nil, err
	}
	return j.show(p.Stream)
}

func (o *operations) inspectJournal() (*inspected, error) {
	if o.journal != nil {
		return o.journal, nil
	}
	if o.app == nil {
		return nil, errNoServer
	}
	j, err := journalFile(o.app.journal, "look into its records", "look into the tables journal_… with psql")
	if err != nil {
		return nil, err
	}
	return &inspected{path: j.Path(), check: j.Check, Inspection: j.Inspect()}, nil
}

// report reads everything: the records, and whether jobs and threads can be recovered from them.
func (j *inspected) report() (journalReport, error) {
	r := journalReport{File: j.path}
	found := func(p journalProblem) {
		if r.Found++; len(r.Problems) < mostProblems {
			p.File = j.path
			r.Problems = append(r.Problems, p)
		}
	}
	err := j.check(func(p journal.Problem) bool {
		shown := journalProblem{Bucket: p.Bucket, Stream: p.Stream, Sequence: p.Seq, Position: p.Position,
			Problem: p.Err.Error(),
			Advice:  "`docent journal repair` takes it out, so that the rest works"}
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
				Advice: "its actor is quarantined and the rest works; it may have been written by a newer version of docent. `docent journal repair --stream " + stream + "` takes it out"}
			var at *persistent.RecoverError
			if errors.As(err, &at) {
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
	}
	return errors.New("this version of docent knows no such kind of stream")
}

// show decodes what there is of a stream.
func (j *inspected) show(stream string) ([]shownRecord, error) {
	if j.Inspection == nil {
		return nil, errors.New("the journal's file is damaged and cannot be read safely; `docent journal check` says more")
	}
	var shown []shownRecord
	err := j.Records(stream, func(r journal.Record) bool {
		shown = append(shown, showRecord(stream, r))
		return true
	})
	if err == nil && len(shown) == 0 {
		err = fmt.Errorf("there is no stream %q in %s", stream, j.path)
	}
	return shown, err
}

func showRecord(stream string, r journal.Record) shownRecord {
	s := shownRecord{Stream: r.Stream, Sequence: r.Seq, Position: r.Position, Type: r.Event.Type}
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

// inspectHere reads the journal's file where no server has it.
func inspectHere(ctx context.Context, c Config, name string, params []byte, progress Progress) (json.RawMessage,
	error) {
	if c.shared() {
		return nil, &inFileError{"look into its records", "look into the tables journal_… with psql"}
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
	return (&operations{journal: j}).run(ctx, name, params, progress)
}

func newJournalCommand(prog program) *cobra.Command {
	o := &operator{prog: prog, here: inspectHere}
	cmd := &cobra.Command{Use: "journal", Short: "Check, inspect and repair the event journal"}
	operatorFlags(cmd, o)
	check := &cobra.Command{
		Use: "check", Short: "Check the whole journal and report damage; the server may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r journalReport
			if err := o.run(cmd, opJournalCheck, nil, &r); err != nil {
				return err
			}
			return printReport(cmd, o.json, r)
		},
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Print the snapshot and the events of a job or thread, a JSON object a line; the server may run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stream, err := streamName(args[0])
			if err != nil {
				return err
			}
			var shown []shownRecord
			if err := o.run(cmd, opJournalShow, streamParams{stream}, &shown); err != nil {
				return err
			}
			for _, r := range shown {
				if err := printJSON(cmd.OutOrStdout(), r); err != nil {
					return err
				}
			}
			return nil
		},
	}
	var yes bool
	var aside []string
	repair := &cobra.Command{
		Use: "repair", Short: "Take damaged records out of the journal, so that the rest works; the server must be stopped",
		Args: cobra.NoArgs,
		Long: "Take damaged records out of the journal, so that the rest works. The server must be stopped.\n\n" +
			"A job or thread whose snapshot still holds everything is repaired. Any other one with damage is removed as a whole: the\n" +
			"server then does not know it. What is taken out is first written unchanged to a file in the folder set-aside of the data\n" +
			"directory. Without --yes nothing is changed: the command says what is damaged.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.load(cmd)
			if err != nil {
				return err
			}
			for i, name := range aside {
				if aside[i], err = streamName(name); err != nil {
					return err
				}
			}
			return repairJournal(cmd, o, c, aside, yes)
		},
	}
	repair.Flags().BoolVar(&yes, "yes", false, "do it; without this flag nothing is changed")
	repair.Flags().StringArrayVar(&aside, "stream", nil,
		"also take out this job or thread, damaged or not (may be given more than once)")
	compact := &cobra.Command{
		Use: "compact", Short: "Give the journal's free space back to the disk; the server must be stopped",
		Args: cobra.NoArgs,
		Long: "Copy the journal into a new file without the space that is free in it, and put that in its place. The server must be\n" +
			"stopped. The journal never needs this: it uses free space again. It needs room for both files while it works.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.load(cmd)
			if err != nil {
				return err
			}
			return compactJournal(cmd, o, c)
		},
	}
	cmd.AddCommand(check, show, repair, compact, newAdoptCommand(o), newJournalCopyCommand(o))
	return cmd
}

// streamName is the stream of a job or thread, from its name or its id.
func streamName(name string) (string, error) {
	switch {
	case strings.Contains(name, "/"):
		return name, nil
	case strings.HasPrefix(name, api.JobPrefix):
		return job.Stream(api.JobID(name)), nil
	case strings.HasPrefix(name, api.ThreadPrefix):
		return thread.Stream(api.ThreadID(name)), nil
	}
	return "", usagef("%q is neither the id of a job (%s…) or thread (%s…) nor a stream such as job/ID", name,
		api.JobPrefix, api.ThreadPrefix)
}

// printReport prints what a check found, and fails where it found something.
func printReport(cmd *cobra.Command, asJSON bool, r journalReport) error {
	out := cmd.OutOrStdout()
	if asJSON {
		if err := printJSON(out, r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			fmt.Fprintf(out, "%s", p.File)
			if p.Stream != "" {
				fmt.Fprintf(out, ": stream %s", p.Stream)
			}
			if p.Sequence != 0 {
				fmt.Fprintf(out, ", sequence %d", p.Sequence)
			}
			if p.Position != 0 {
				fmt.Fprintf(out, ", position %d", p.Position)
			}
			if p.Bucket != "" {
				fmt.Fprintf(out, " (%s)", p.Bucket)
			}
			fmt.Fprintf(out, ": %s\n  %s\n", p.Problem, p.Advice)
		}
		fmt.Fprintf(out, "%s: %d streams, %d events and %d snapshots, up to position %d, %d bytes\n", r.File, r.Streams,
			r.Events, r.Snapshots, r.Position, r.Bytes)
	}
	switch r.Found {
	case 0:
		if !asJSON {
			fmt.Fprintln(out, "nothing is wrong")
		}
		return nil
	case 1:
		return errors.New("one thing is wrong in the journal")
	}
	return fmt.Errorf("%d things are wrong in the journal", r.Found)
}

type journalRepaired struct {
	Kept    string             `json:"kept,omitempty"` // the file that holds what was taken out
	Repairs []journal.Repaired `json:"repairs"`
}

// hasJournal says that a data directory has none.
func hasJournal(data string) error {
	if ok, err := datadir.Has(data, datadir.Journal); err != nil || !ok {
		return errors.Join(fmt.Errorf("there is no journal in %s", data), err)
	}
	return nil
}

// openStopped opens the data directory of a server that is stopped.
func openStopped(c Config, command string) (*datadir.Dir, error) {
	dir, err := datadir.OpenUsed(c.Data, command, 10*time.Second)
	var locked *datadir.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("%w: stop the server first", err)
	}
	return dir, err
}

type journalCompacted struct {
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
}

func compactJournal(cmd *cobra.Command, o *operator, c Config) error {
	if c.shared() {
		return &inFileError{"compact it", "PostgreSQL gives space free again by itself (autovacuum)"}
	}
	dir, err := openStopped(c, "journal compact")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := hasJournal(dir.Path); err != nil {
		return err
	}
	var done journalCompacted
	done.Before, done.After, err = journal.Compact(dir.File(datadir.Journal),
		journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), done)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the journal had %d bytes and has %d\n", done.Before, done.After)
	return nil
}

func repairJournal(cmd *cobra.Command, o *operator, c Config, aside []string, yes bool) (err error) {
	if c.shared() {
		return &inFileError{"repair it", "put the database back from its own backup or replica"}
	}
	dir, err := openStopped(c, "journal repair")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := hasJournal(dir.Path); err != nil {
		return err
	}
	if !yes {
		path := dir.File(datadir.Journal)
		found := 0
		if err := journal.Check(path, func(p journal.Problem) bool {
			found++
			fmt.Fprintln(cmd.ErrOrStderr(), path+": "+p.String())
			return true
		}); err != nil {
			return err
		}
		if found == 0 && len(aside) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "nothing is damaged")
			return nil
		}
		return fmt.Errorf("%d damaged and %d named: nothing was changed; make a copy of %s and run this again with --yes",
			found, len(aside), path)
	}
	j, err := journal.Open(dir.File(datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler),
		AcceptDamage: true})
	if errors.Is(err, journal.ErrCorrupt) {
		return fmt.Errorf("%w: this is more than can be repaired here; restore a backup", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	keep := &keeper{folder: dir.File(datadir.SetAside), name: "journal"}
	repairs, err := j.Repair(aside, keep.add, keep.close)
	if err != nil {
		return errors.Join(err, keep.discard())
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), journalRepaired{keep.path, repairs})
	}
	out := cmd.OutOrStdout()
	for _, r := range repairs {
		what := "kept whole"
		if r.Lost {
			what = "LOST"
		}
		fmt.Fprintf(out, "%s %s: %s (%s, %d records taken out)\n", r.Bucket, r.Stream, r.What, what, r.Records)
	}
	switch {
	case len(repairs) == 0:
		fmt.Fprintln(out, "nothing was damaged")
	case keep.path != "":
		fmt.Fprintf(out, "what was taken out stands in %s, a record a line\n", keep.path)
	}
	return nil
}

// A keeper writes records that are taken out to a file, as they stand.
type keeper struct {
	folder string
	name   string // what the file's name begins with
	path   string
	file   *os.File
	buffer *bufio.Writer
}

func (k *keeper) add(r journal.Record) error {
	line := map[string]any{"bucket": r.Bucket, "key": r.Key, "value": r.Value} // the bytes in base64
	for name, v := range map[string]string{"stream": r.Stream, "type": r.Event.Type} {
		if v != "" {
			line[name] = v
		}
	}
	for name, n := range map[string]uint64{"sequence": r.Seq, "position": r.Position} {
		if n != 0 {
			line[name] = n
		}
	}
	if r.Err != nil {
		line["problem"] = r.Err.Error()
	}
	return k.line(line)
}

// line writes one line, to a file that the first one makes.
func (k *keeper) line(line map[string]any) error {
	if k.file == nil {
		if err := os.MkdirAll(k.folder, 0o700); err != nil {
			return err
		}
		var err error
		k.path = filepath.Join(k.folder, k.name+"-"+time.Now().UTC().Format("20060102T150405.000Z")+".jsonl")
		if k.file, err = os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		k.buffer = bufio.NewWriter(k.file)
	}
	return printJSON(k.buffer, line)
}

// close brings the file to the disk, before what it holds leaves the journal.
func (k *keeper) close() error {
	if k.file == nil {
		return nil
	}
	return errors.Join(k.buffer.Flush(), k.file.Sync(), k.file.Close(), disk.SyncFolder(k.folder))
}

// discard removes the file of a repair that did not take place.
func (k *keeper) discard() error {
	if k.file == nil {
		return nil
	}
	k.file.Close()
	return os.Remove(k.path)
}
