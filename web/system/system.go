package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"docent/api"
	"docent/internal/brief"
	"docent/internal/health"
	"docent/web/console"
)

// systemPath is the address of the page about the server itself.
const systemPath = "/console/system"

// logLines is how many records of the log a page shows.
const logLines = 200

// systemView is the server and its log.
type systemView struct {
	Status health.Status
	Now    []console.Concern // what needs somebody
	Log    logView
	In     operatorsView
}

// operatorsView is who is in as the operator without being a person, and what lets in once.
type operatorsView struct {
	Sessions []console.SessionLine
	Links    []console.OpenLink
}

type logView struct {
	Level   string
	Levels  []string
	Records []health.Record
}

func (s *handler) systemFigures() (systemView, error) {
	st, err := s.System.Status()
	if err != nil {
		return systemView{}, err
	}
	return systemView{Status: st, Now: concernsOf(st, s.Now())}, nil
}

func (s *handler) showSystem(v *console.Visit) error {
	view, err := s.systemFigures()
	if err != nil {
		return err
	}
	if view.Log, err = s.logOf(v); err != nil {
		return err
	}
	if view.In, err = s.operatorsOf(v); err != nil {
		return err
	}
	return s.Render(v, "system", "System", view)
}

func (s *handler) operatorsOf(v *console.Visit) (view operatorsView, err error) {
	sessions, err := s.Catalog.Sessions(v.Context(), api.SessionQuery{Links: true})
	if err != nil {
		return view, err
	}
	view.Sessions = v.SessionLines(sessions)
	links, err := s.Catalog.Links(v.Context())
	if err != nil {
		return view, err
	}
	for _, l := range links {
		line := console.OpenLink{Link: l}
		if l.Person != "" {
			p, err := s.Catalog.Person(v.Context(), l.Person)
			if err != nil && !errors.Is(err, api.ErrNotFound) {
				return view, err
			}
			line.For = cmp.Or(p.Name, string(l.Person))
		}
		view.Links = append(view.Links, line)
	}
	return view, nil
}

// endOperatorsSession ends a session that began with an operator's link.
func (s *handler) endOperatorsSession(v *console.Visit) error {
	all, err := s.Catalog.Sessions(v.Context(), api.SessionQuery{Links: true})
	if err != nil {
		return err
	}
	id := api.SessionID(v.Form.Get("session"))
	at := slices.IndexFunc(all, func(in api.SignIn) bool { return in.ID == id })
	if at < 0 {
		return api.Missing("session")
	}
	if err := s.Catalog.EndSession(v.Context(), id); err != nil {
		return err
	}
	v.Audit("session.end", string(id), "the operator's, by the link "+string(all[at].Link))
	return v.Done(systemPath, "Session ended.")
}

// revokeLink takes back a one-time link that nobody has used yet.
func (s *handler) revokeLink(v *console.Visit) error {
	id := api.LinkID(v.Form.Get("link"))
	if err := s.Catalog.RevokeLink(v.Context(), id); err != nil {
		return api.Named(err, "open link")
	}
	v.Audit("link.revoke", string(id), "")
	return v.Done(systemPath, "Link revoked.")
}

// liveSystem is the figures as they change.
func (s *handler) liveSystem(v *console.Visit) error {
	return s.Watch(v, "system.figures", "", console.Every(2*time.Second), func(context.Context) (any, error) {
		return s.systemFigures()
	})
}

// logOf is the end of the log, from the level on that the address asks for.
func (s *handler) logOf(v *console.Visit) (logView, error) {
	view := logView{Level: v.Query("level"), Levels: []string{"info", "warn", "error"}}
	if view.Level == "" {
		view.Level = view.Levels[0]
	}
	var level slog.Level
	if !slices.Contains(view.Levels, view.Level) || level.UnmarshalText([]byte(view.Level)) != nil {
		return view, console.Invalid("level", "must be info, warn or error")
	}
	view.Records = s.System.Log(logLines, level)
	return view, nil
}

// liveLog is the end of the log as it grows.
func (s *handler) liveLog(v *console.Visit) error {
	if _, err := s.logOf(v); err != nil {
		return err
	}
	return s.Watch(v, "system.log", v.Query("level"), s.System.FollowLog, func(context.Context) (any, error) {
		return s.logOf(v)
	})
}

// retryActor recovers a job or a thread in quarantine.
func (s *handler) retryActor(v *console.Visit) error {
	id := v.Form.Get("id")
	ctx, cancel := context.WithTimeout(v.Context(), 10*time.Second)
	defer cancel()
	err := s.System.Retry(ctx, id)
	v.Audit("actor.retry", id, outcome(err))
	switch {
	case errors.Is(err, api.ErrInvalid):
		return err
	case errors.Is(err, api.ErrNotFound):
		return v.Done(systemPath, id+" is not in quarantine any more.")
	case err != nil:
		return &api.StateError{Kind: api.ErrConflict, Reason: "it failed again: " + err.Error()}
	}
	return v.Done(systemPath, id+" is recovered, and goes on with its work.")
}

// outcome is how something went, for the audit log.
func outcome(err error) string {
	if err != nil {
		return "failed: " + err.Error()
	}
	return ""
}

// beginBackup begins a copy of the data directory.
func (s *handler) beginBackup(v *console.Visit) error {
	dir, err := s.System.BackUp()
	v.Audit("backup.begin", dir, outcome(err))
	if err != nil {
		return &api.StateError{Kind: api.ErrConflict, Reason: "no backup is begun: " + err.Error()}
	}
	return v.Done(systemPath, "A backup is being made in "+dir+".")
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
func concernsOf(st health.Status, now time.Time) []console.Concern {
	var list []console.Concern
	add := func(bad bool, path, do, format string, args ...any) {
		list = append(list, console.Concern{Bad: bad, Text: fmt.Sprintf(format, args...), Path: path, Do: do})
	}
	if st.Journal.Unavailable {
		add(true, "", "", "The journal can't be written: the disk is full, read-only or broken. Nothing new is accepted.")
	}
	if st.Catalog.Error != "" {
		add(true, "", "", "The catalog does not answer: %s", st.Catalog.Error)
	}
	if n := st.Journal.Damaged; n > 0 {
		add(true, "", "", "%s in the journal cannot be read: docent journal check says which.", brief.Count(n, "stream"))
	}
	if n := len(st.Actors.Quarantined); n > 0 {
		add(true, "#quarantine", "Review", "%s in quarantine.", brief.Count(n, "job or thread"))
	}
	for _, m := range st.Models {
		if m.State != "closed" {
			add(true, "#models", "Review", "The model %s is failing: its circuit is %s.", m.Name, m.State)
		}
	}
	if d := st.Disk; d.Total > 0 && (d.Free < leastFree || d.Free < d.Total/20) {
		add(d.Free < leastFree/8, "", "", "The disk of the data directory has %s free of %s.", console.FormatBytes(d.Free), console.FormatBytes(d.Total))
	}
	for _, reason := range st.LeftOut {
		add(true, "", "", "%s", reason)
	}
	if st.Edge.Queue > longQueue {
		add(true, "", "", "Requests wait for %s: more is asked than this machine answers.", console.FormatSeconds(st.Edge.Queue))
	}
	if st.Journal.CommitP99 > slowCommit {
		add(false, "", "", "One commit in a hundred takes more than %s: the disk is slow.", console.FormatSeconds(slowCommit))
	}
	if behind := st.Journal.Position - min(st.Journal.Listed, st.Journal.Position); behind > listingBlank {
		add(false, "", "", "Lists are %d events behind the journal.", behind)
	}
	if m := st.Machine; m.MaxFiles > 0 && float64(m.OpenFiles) > manyFiles*float64(m.MaxFiles) {
		add(false, "", "", "%d of %d files that the process may open are open.", m.OpenFiles, m.MaxFiles)
	}
	if st.Crashed {
		add(false, "", "", "The server before this one crashed: crash.last.log in the data directory has its trace.")
	}
	if c := st.Cluster; c != nil {
		concernsOfNodes(c, add)
		slices.SortStableFunc(list, console.WorstFirst)
		return list // the database's own backups count
	}
	switch b := st.Backup; {
	case b.Failed != nil:
		add(false, "#backup", "Review", "The last backup failed: %s", b.Failed.Error)
	case b.Made == nil:
		add(false, "#backup", "Back up now", "No backups yet.")
	case now.Sub(b.Made.Began) > oldBackup:
		add(false, "#backup", "Back up now", "The last backup is %s old.",
			brief.Count(int(now.Sub(b.Made.Began)/(24*time.Hour)), "day"))
	}
	slices.SortStableFunc(list, console.WorstFirst)
	return list
}

// concernsOfNodes is what of several nodes needs somebody.
func concernsOfNodes(c *health.Cluster, add func(bad bool, path, do, format string, args ...any)) {
	if !c.Acts {
		add(true, "", "", "This node has not reached the database for %s: it acts on nothing that it runs.", console.FormatSeconds(c.LastBeat))
	}
	if c.Without > 0 {
		add(true, "", "", "%s of jobs and threads are run by no node.", brief.Count(c.Without, "shard"))
	}
	for _, n := range c.Nodes {
		if n.State == "silent" {
			add(true, "#nodes", "Review", "The node %s shows no life.", n.Name)
		}
		if n.State == "isolated" {
			add(true, "#nodes", "Review", "The node %s and the others do not reach each other: it runs nothing. %s", n.Name, n.Reason)
		}
	}
}
