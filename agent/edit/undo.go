package edit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/internal/brief"
)

// Undo takes back an earlier instruction of the job, or a commit of the repository.
type Undo struct {
	unlocated
	Commit string // empty for the last instruction that changed anything
}

func (o *Undo) Todo() string {
	if o.Commit != "" {
		return "Revert " + o.what()
	}
	return "Undo the last instruction"
}

func (o *Undo) what() string { return "commit " + brief.Bytes(o.Commit, 12, "") }

func (o *Undo) Run(r *Run) error {
	if len(r.Done) > 0 {
		return say.Refuse("“undo” must stand alone")
	}
	commit, what := o.Commit, o.what()
	if commit == "" {
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
		commit, what = last.Commit, say.Quote(last.Prompt)
	}
	h, ok := r.Files.Tree.(workspace.History)
	if !ok {
		return say.Refuse("this repository does not show its earlier commits, so %s cannot be undone; close the pull request instead", what)
	}
	parent, err := h.Parent(r.Context, commit)
	if err != nil {
		return say.Refuse("the commit before %s cannot be read, so it cannot be undone: a commit is named by all 40 digits", say.OneLine(commit, 12))
	}
	was, err := hashes(r, h, parent)
	if err != nil {
		return err
	}
	is, err := hashes(r, h, commit)
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
			return say.Refuse("%s has changed since, so %s cannot be undone by itself", r.Site.Show(p), what)
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
		return say.Idle("%s is undone already", what)
	}
	r.Undone = true
	r.Did("Undid %s: %s as before", what, say.Count(n, "file"))
	if o.Commit != "" {
		r.headline("revert %s", what)
	} else {
		r.headline("undo %s", what)
	}
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
