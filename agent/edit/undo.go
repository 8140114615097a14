package edit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// Undo takes back an earlier instruction of the job.
type Undo struct{ unlocated }

func (o *Undo) Todo() string { return "Undo the last instruction" }

func (o *Undo) Run(r *Run) error {
	if len(r.Done) > 0 {
		return say.Refuse("“undo” must stand alone")
	}
	var last *Instruction
	for _, e := range r.Earlier {
		if e.Commit != "" {
			last = &e
		}
	}
	switch {
	case last == nil:
		return say.Idle("no earlier instruction of this job has changed anything, so there is nothing to undo")
	case last.Pull == api.PullClosed:
		return say.Refuse("the pull request that held %s was closed without being merged, so there is nothing to undo",
			say.Quote(last.Prompt))
	}
	h, ok := r.Files.Tree.(workspace.History)
	if !ok {
		return say.Refuse("this repository does not show its earlier commits, so %s cannot be undone; close the pull request instead", say.Quote(last.Prompt))
	}
	parent, err := h.Parent(r.Context, last.Commit)
	if err != nil {
		return say.Refuse("the commit before %s cannot be read, so it cannot be undone", say.OneLine(last.Commit, 12))
	}
	was, err := hashes(r, h, parent)
	if err != nil {
		return err
	}
	is, err := hashes(r, h, last.Commit)
	if err != nil {
		return err
	}
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	n, programs := 0, r.Site.Programs()
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		old, had := was[p]
		want, has := is[p]
		if old == want && had == has {
			continue
		}
		if now, ok := r.Files.BaseFile(p); ok != has || ok && want != now.Hash {
			return say.Refuse("%s has changed since, so %s cannot be undone by itself", r.Site.Show(p), say.Quote(last.Prompt))
		}
		restored, err := r.restoreFile(h, parent, p, had, slices.Contains(programs, p))
		if err != nil {
			return err
		}
		if restored {
			r.Tally(p, "file restored", 1)
			n++
		}
	}
	if n == 0 {
		return say.Idle("%s is undone already", say.Quote(last.Prompt))
	}
	r.Undone = true
	r.Did("Undid %s: %s as before", say.Quote(last.Prompt), say.Count(n, "file"))
	r.headline("undo %s", say.Quote(last.Prompt))
	return nil
}

// hashes are those of the files of a commit.
func hashes(r *Run, h workspace.History, commit string) (map[string]string, error) {
	files, err := h.FilesAt(r.Context, commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", commit, err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[f.Path] = f.Hash
	}
	return out, nil
}

// restoreFile gives a file the content that it had at a commit, or removes it. It tells whether that changed anything.
func (r *Run) restoreFile(h workspace.History, commit, p string, had, program bool) (bool, error) {
	if !had {
		return true, r.Files.Remove(p)
	}
	old, err := h.ReadAt(r.Context, commit, p)
	if err != nil {
		return false, fmt.Errorf("read %s of %s: %w", p, commit, err)
	}
	if cur, err := r.Files.Read(p); err == nil && bytes.Equal(cur, old) {
		return false, nil
	}
	if program { // of which texts alone had been changed
		return true, r.Files.Rewrite(p, old)
	}
	return true, r.Files.Write(p, old)
}
