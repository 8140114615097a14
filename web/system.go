package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"docent/api"
	"docent/health"
)

// systemPath is the address of the page about the server itself.
const systemPath = "/console/system"

// logLines is how many records of the log a page shows.
const logLines = 200

// systemView is the server and its log.
type systemView struct {
	Status health.Status
	Now    []concern // what needs somebody
	Log    logView
}

// A concern is something that needs somebody, with the place where it is put right.
type concern struct {
	Bad  bool // it has already cost something; else it may
	Text string
	Path string // where it is put right; empty where that is elsewhere
	Do   string // what the link says
}

type logView struct {
	Level   string
	Levels  []string
	Records []health.Record
}

func (s *Server) systemFigures() (systemView, error) {
	st, err := s.System.Status()
	if err != nil {
		return systemView{}, err
	}
	return systemView{Status: st, Now: concernsOf(st, s.Now())}, nil
}

func (s *Server) showSystem(v *visit) error {
	view, err := s.systemFigures()
	if err != nil {
		return err
	}
	if view.Log, err = s.logOf(v); err != nil {
		return err
	}
	return s.render(v, "system", "System", view)
}

// liveSystem is the figures as they change.
func (s *Server) liveSystem(v *visit) error {
	return s.watch(v, "system.figures", "", every(2*time.Second), func(context.Context) (any, error) {
		return s.systemFigures()
	})
}

// logOf is the end of the log, from the level on that the address asks for.
func (s *Server) logOf(v *visit) (logView, error) {
	view := logView{Level: v.query("level"), Levels: []string{"info", "warn", "error"}}
	if view.Level == "" {
		view.Level = view.Levels[0]
	}
	var level slog.Level
	if !slices.Contains(view.Levels, view.Level) || level.UnmarshalText([]byte(view.Level)) != nil {
		return view, invalid("level", "must be info, warn or error")
	}
	view.Records = s.System.Log(logLines, level)
	return view, nil
}

// liveLog is the end of the log as it grows.
func (s *Server) liveLog(v *visit) error {
	if _, err := s.logOf(v); err != nil {
		return err
	}
	return s.watch(v, "system.log", v.query("level"), s.System.FollowLog, func(context.Context) (any, error) {
		return s.logOf(v)
	})
}

// retryActor recovers a job or a thread in quarantine.
func (s *Server) retryActor(v *visit) error {
	id := v.form().Get("id")
	ctx, cancel := context.WithTimeout(v.Context(), 10*time.Second)
	defer cancel()
	err := s.System.Retry(ctx, id)
	v.audit("actor.retry", id, outcome(err))
	switch {
	case errors.Is(err, api.ErrInvalid):
		return err
	case errors.Is(err, api.ErrNotFound):
		return v.done(systemPath, id+" is not in quarantine any more.")
	case err != nil:
		return &api.StateError{Kind: api.ErrConflict, Reason: "it failed again: " + err.Error()}
	}
	return v.done(systemPath, id+" is recovered, and goes on with its work.")
}

// outcome is how something went, for the audit log.
func outcome(err error) string {
	if err != nil {
		return "failed: " + err.Error()
	}
	return ""
}

// beginBackup begins a copy of the data directory.
func (s *Server) beginBackup(v *visit) error {
	dir, err := s.System.BackUp()
	v.audit("backup.begin", dir, outcome(err))
	if err != nil {
		return &api.StateError{Kind: api.ErrConflict, Reason: "no backup is begun: " + err.Error()}
	}
	return v.done(systemPath, "A backup is being made in "+dir+".")
}

// Bounds beyond which figures are a concern.
const (
	leastFree    = 1 << 30            // bytes of the disk
	oldBackup    = 8 * 24 * time.Hour // a week, and a day to make it
	longQueue    = 1.0                // seconds
	slowCommit   = 0.25               // seconds, of one commit in a hundred
	listingBlank = uint64(10_000)     // positions that the listings are behind
	manyFiles    = 0.9                // of the files that the process may open
)

// concernsOf is what of a server's figures needs somebody, the worst first.
func concernsOf(st health.Status, now time.Time) []concern {
	var list []concern
	add := func(bad bool, path, do, format string, args ...any) {
		list = append(list, concern{Bad: bad, Text: fmt.Sprintf(format, args...), Path: path, Do: do})
	}
	if st.Journal.Unavailable {
		add(true, "", "", "The journal cannot be written to: the disk is full, read-only or broken. Nothing new is accepted.")
	}
	if st.Catalog.Error != "" {
		add(true, "", "", "The catalogue does not answer: %s", st.Catalog.Error)
	}
	if n := st.Journal.Damaged; n > 0 {
		add(true, "", "", "%s in the journal cannot be read: docent journal check says which.", count(n, "stream"))
	}
	if n := len(st.Actors.Quarantined); n > 0 {
		add(true, "#quarantine", "Look at them", "%s in quarantine.", count(n, "job or thread"))
	}
	for _, m := range st.Models {
		if m.State != "closed" {
			add(true, "#models", "Look at it", "The model %s fails: its circuit is %s.", m.Name, m.State)
		}
	}
	if d := st.Disk; d.Total > 0 && (d.Free < leastFree || d.Free < d.Total/20) {
		add(d.Free < leastFree/8, "", "", "The disk of the data directory has %s free of %s.", size(d.Free), size(d.Total))
	}
	for _, reason := range st.LeftOut {
		add(true, "", "", "%s", reason)
	}
	if st.Edge.Queue > longQueue {
		add(true, "", "", "Requests wait for %s: more is asked than this machine answers.", seconds(st.Edge.Queue))
	}
	if st.Journal.CommitP99 > slowCommit {
		add(false, "", "", "One commit in a hundred takes more than %s: the disk is slow.", seconds(slowCommit))
	}
	if behind := st.Journal.Position - min(st.Journal.Listed, st.Journal.Position); behind > listingBlank {
		add(false, "", "", "The listings are %d events behind the journal.", behind)
	}
	if m := st.Machine; m.MaxFiles > 0 && float64(m.OpenFiles) > manyFiles*float64(m.MaxFiles) {
		add(false, "", "", "%d of %d files that the process may open are open.", m.OpenFiles, m.MaxFiles)
	}
	if st.Crashed {
		add(false, "", "", "The server before this one crashed: crash.last.log in the data directory has its trace.")
	}
	if c := st.Cluster; c != nil {
		concernsOfNodes(c, add)
		slices.SortStableFunc(list, worstFirst)
		return list // the database's own backups count
	}
	switch b := st.Backup; {
	case b.Failed != nil:
		add(false, "#backup", "Look at it", "The last backup failed: %s", b.Failed.Error)
	case b.Made == nil:
		add(false, "#backup", "Make one", "No backup was made yet.")
	case now.Sub(b.Made.Began) > oldBackup:
		add(false, "#backup", "Make one", "The last backup is %s old.",
			count(int(now.Sub(b.Made.Began)/(24*time.Hour)), "day"))
	}
	slices.SortStableFunc(list, worstFirst)
	return list
}

// concernsOfNodes is what of several nodes needs somebody.
func concernsOfNodes(c *health.Cluster, add func(bad bool, path, do, format string, args ...any)) {
	if !c.Acts {
		add(true, "", "", "This node has not reached the database for %s: it acts on nothing that it runs.", seconds(c.LastBeat))
	}
	if c.Without > 0 {
		add(true, "", "", "%s of jobs and threads are run by no node.", count(c.Without, "shard"))
	}
	for _, n := range c.Nodes {
		if n.State == "silent" {
			add(true, "#nodes", "Look at it", "The node %s shows no life.", n.Name)
		}
	}
}

func worstFirst(a, b concern) int {
	switch {
	case a.Bad == b.Bad:
		return 0
	case a.Bad:
		return -1
	}
	return 1
}

// size is a number of bytes as people read it.
func size(n uint64) string {
	if n < 1024 {
		return count(int(n), "byte")
	}
	value, units := float64(n)/1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[0]
}

// seconds is a time as people read it: as long as it is short, to the tenth of a millisecond.
func seconds(v float64) string {
	d := time.Duration(v * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return count(int(d/(24*time.Hour)), "day")
	case d >= time.Minute:
		return d.Round(time.Minute).String()[:len(d.Round(time.Minute).String())-2] // without its "0s"
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
