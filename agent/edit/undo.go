package edit

import (
	"bytes"
	"fmt"
	"slices"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// Undo an earlier instruction of the job.
type Undo struct{ unlocated }

func (o *Undo) Todo() string { return "Undo the last instruction" }

func (o *Undo) Run(r *Run) error {
	if len(r.Done) > 0 {
		return say.Refuse("“undo” must stand alone")
	}
	var last *Instruction
	for i := len(r.Earlier) - 1; i >= 0; i-- {
		if r.Earlier[i].Commit != "" {
			last = &r.Earlier[i]
			break
		}
	}
	if last != nil && last.Pull == api.PullClosed {
		return say.Refuse("the pull request that held %s was closed without being merged, so there is nothing to undo", say.Quote(last.Prompt))
	}
	if last == nil {
		return say.Idle("no earlier instruction of this job has changed anything, so there is nothing to undo")
	}
	h, ok := r.Files.Tree.(workspace.History)
	if !ok {
		return say.Refuse("this repository does not show its earlier commits, so %s cannot be undone; close the pull request instead", say.Quote(last.Prompt))
	}
	parent, err := h.Parent(r.Context, last.Commit)
	if err != nil {
		return say.Refuse("the commit before %s cannot be read, so it cannot be undone", say.OneLine(last.Commit, 12))
	}
	before, err := h.FilesAt(r.Context, parent)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", parent, err)
	}
	after, err := h.FilesAt(r.Context, last.Commit)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", last.Commit, err)
	}
	hash := func(list []api.File) map[string]string {
		m := map[string]string{}
		for _, f := range list {
			m[f.Path] = f.Hash
		}
		return m
	}
	was, is := hash(before), hash(after)
	var paths []string
	for p := range was {
		if is[p] != was[p] {
			paths = append(paths, p)
		}
	}
	for p := range is {
		if _, ok := was[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	n := 0
	programs := r.Site.Programs()
	for _, p := range paths {
		now, had := r.Files.BaseFile(p)
		if want, ok := is[p]; ok != had || ok && want != now.Hash {
			return say.Refuse("%s has changed since, so %s cannot be undone by itself", r.Site.Show(p), say.Quote(last.Prompt))
		}
		if _, ok := was[p]; !ok {
			if err := r.Files.Remove(p); err != nil {
				return err
			}
		} else {
			old, err := h.ReadAt(r.Context, parent, p)
			if err != nil {
				return fmt.Errorf("read %s of %s: %w", p, parent, err)
			}
			if cur, err := r.Files.Read(p); err == nil && bytes.Equal(cur, old) {
				continue
			}
			write := r.Files.Write
			if slices.Contains(programs, p) { // of which texts alone had been changed
				write = r.Files.Rewrite
			}
			if err := write(p, old); err != nil {
				return err
			}
		}
		r.Tally(p, "file restored", 1)
		n++
	}
	if n == 0 {
		return say.Idle("%s is undone already", say.Quote(last.Prompt))
	}
	r.Undone = true
	r.Did("Undid %s: %s as before", say.Quote(last.Prompt), say.Count(n, "file"))
	r.headline("undo %s", say.Quote(last.Prompt))
	return nil
}
