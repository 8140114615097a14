package sources

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/search"
	"docent/site"
)

// A Look is what a source holds that no project reads yet.
type Look struct {
	Project api.Project // with the documentation folder, if its files tell
	Branch  string
	Commit  string
	Message string // of the commit
	Author  string // of the commit
	At      time.Time
	Check   search.Check
	Open    string // what the code host does not tell of the credentials
	Folders string // which folders hold pages, if none is public
	Fresh   bool   // there was no repository of the project's name before
	Guessed string // the file or folder that the documentation folder was guessed from; empty if it was not
}

// Look reads a source before there is a project: whether it can be read, and what would be public. The project's id
// names the repository that it is read into; nothing is stored in the catalog.
func (s *Reader) Look(ctx context.Context, p api.Project, progress Progress) (Look, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	p = p.WithDefaults()
	domain := p.Domain
	if domain == "" {
		p.Domain = "docs" // which is asked for afterwards
	}
	if err := CheckSettings(p); err != nil {
		return Look{}, err
	}
	if _, err := s.Catalog.Project(ctx, p.ID); err == nil {
		return Look{}, &api.InvalidError{Problems: []api.Problem{{Field: "id",
			Message: fmt.Sprintf("there is a project %s already: choose another name", p.ID)}}}
	} else if !errors.Is(err, api.ErrNotFound) {
		return Look{}, err
	}
	progress("asking the code host for what the credentials may do", 0, 0)
	open, err := s.rights(ctx, p)
	if err != nil {
		return Look{}, err
	}
	s.Forget(p.ID)
	held := s.Repositories.Holds(p.ID)
	l, err := s.look(ctx, p, progress)
	if err != nil && !held {
		err = errors.Join(err, s.Repositories.Discard(context.WithoutCancel(ctx), p.ID))
	}
	l.Open, l.Project.Domain, l.Fresh = open, domain, !held
	return l, err
}

func (s *Reader) look(ctx context.Context, p api.Project, progress Progress) (l Look, err error) {
	end, err := s.turn(ctx, p.ID)
	if err != nil {
		return Look{}, err
	}
	defer end()
	l.Project = p
	err = background.Guard(func() error {
		read, tip, err := s.fetch(ctx, p, true, progress)
		if err != nil {
			return err
		}
		l.Branch = tip.Branch
		if read.SiteURL != "" {
			l.Project.SiteURL = read.SiteURL
		}
		tree, err := s.Repositories.Tree(ctx, p, tip.Commit)
		if err != nil {
			return err
		}
		made, err := tree.Made(ctx)
		if err != nil {
			return err
		}
		l.Commit, l.Message, l.Author, l.At = tip.Commit, made.Subject, made.Author, made.Time
		endIndex, err := s.Guard.begin(p.ID, stepIndex, tip.Commit)
		if err != nil {
			return err
		}
		defer endIndex()
		examine := func() error {
			l.Check, err = s.Index.Check(
				ctx,
				l.Project,
				tree,
				func(done, total int) { progress("reading the pages", done, total) },
			)
			return err
		}
		if err := examine(); err != nil {
			return err
		}
		if l.Project.DocsDir, l.Guessed = guessDocsDir(l.Project, l.Check); l.Guessed != "" {
			if err := examine(); err != nil {
				return err
			}
		}
		if len(l.Check.Pages) == 0 && l.Check.Withheld == "" {
			files, err := tree.Files(ctx)
			if err != nil {
				return err
			}
			var pages []string
			for _, f := range files {
				if site.IsPage(f.Path) {
					pages = append(pages, f.Path)
				}
			}
			if len(pages) > 0 {
				l.Folders = pageFolders(pages)
			}
		}
		return nil
	})
	return l, err
}

// guessDocsDir is the folder that holds the documentation if its files tell: that of Mintlify's configuration, which
// lies beside the pages, or one that is called so if no generator is recognized and other folders hold pages too.
func guessDocsDir(p api.Project, c search.Check) (dir, from string) {
	if p.DocsDir != "" {
		return p.DocsDir, ""
	}
	if c.Config != "" {
		if dir := path.Dir(c.Config); c.Site == api.SiteMintlify && dir != "." {
			return dir, c.Config
		}
		return "", ""
	}
	for _, name := range []string{"docs", "doc", "documentation"} {
		below := slices.ContainsFunc(
			c.Pages,
			func(p search.CheckedPage) bool { return strings.HasPrefix(p.Path, name+"/") },
		)
		beside := slices.ContainsFunc(
			c.Pages,
			func(p search.CheckedPage) bool { return !strings.HasPrefix(p.Path, name+"/") },
		)
		if below && beside {
			return name, "the folder " + name
		}
	}
	return "", ""
}

// Discard forgets what a look has read, of a project that was not added.
func (s *Reader) Discard(ctx context.Context, id api.ProjectID) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	if _, err := s.Catalog.Project(ctx, id); !errors.Is(err, api.ErrNotFound) {
		return err // it was added
	}
	s.folders().forget(id)
	return s.Repositories.Discard(ctx, id)
}

// CheckIndexed says what is public of the commit that the project's index shows.
func (s *Reader) CheckIndexed(ctx context.Context, p api.Project, progress Progress) (search.Check, error) {
	if commit := s.Index.Commit(p.ID); commit != "" {
		return s.checkAt(ctx, p, commit, progress)
	}
	return s.Check(ctx, p, progress)
}

func (s *Reader) checkAt(ctx context.Context, p api.Project, commit string, progress Progress) (search.Check, error) {
	endTurn, err := s.turn(ctx, p.ID)
	if err != nil {
		return search.Check{}, err
	}
	defer endTurn()
	end, err := s.Guard.begin(p.ID, stepIndex, commit)
	if err != nil {
		return search.Check{}, err
	}
	defer end()
	tree, err := s.Repositories.Tree(ctx, p, commit)
	if err != nil {
		return search.Check{}, fmt.Errorf("read the documentation of %s: %w", p.ID, err)
	}
	shown, err := s.shown(ctx, p, tree)
	if err != nil {
		return search.Check{}, err
	}
	c, err := s.Index.Check(ctx, p, shown, func(done, total int) { progress("checking the pages of "+string(p.ID), done, total) })
	if err == nil {
		c.Published, err = s.compare(ctx, p, c.LeftOut)
	}
	return c, err
}
