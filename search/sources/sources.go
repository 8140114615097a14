package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"docent/api"
)

// A Source is a further source of a project with what is known of it.
type Source struct {
	api.Source
	Project  api.ProjectID `json:"project"`
	Editable bool          `json:"editable"` // the agent can change what it holds
	First    bool          `json:"first,omitempty"`
	Counts   float64       `json:"counts"` // its weight, or that of its kind
	Commit   string        `json:"commit,omitempty"`
	Pages    int           `json:"pages"`
	Sections int           `json:"sections"`
	Lost     string        `json:"lost,omitempty"` // the rule that leaves out a large part of its files
	// The last reading since the server started, and why it failed; the pages that were read before still answer.
	Read       *Reading    `json:"-"`
	Error      string      `json:"error,omitempty"`
	Collection *Collection `json:"collection,omitempty"` // of one that has to be collected
	Answers    string      `json:"answers,omitempty"`    // of a published site: what readers are answered from, and why
	// When it is read again by itself; zero if that is whenever the server looks, or never.
	Next time.Time `json:"next,omitzero"`
}

// Health says in a line how the last collection went and when the next one is due; empty if nothing was collected.
func (s Source) Health() string {
	if s.Collection == nil {
		return ""
	}
	const minutes = "2006-01-02 15:04 MST"
	text := "read " + s.Collection.At.UTC().Format(minutes)
	if s.Collection.Site != nil {
		text += ": " + s.Collection.Site.String()
	}
	if s.Collection.Error != "" {
		text += "; FAILED: " + strings.TrimPrefix(s.Collection.Error, "failed: ")
	}
	if !s.Next.IsZero() {
		text += "; again " + s.Next.UTC().Format(minutes)
	}
	return text
}

// noSource says that a project has no source of a label.
func noSource(p api.Project, label string) error {
	return &api.StateError{Kind: api.ErrNotFound, Reason: fmt.Sprintf(
		"project %s has no further source %.40q: `docent source list %s` lists them", p.ID, label, p.ID)}
}

// Sources lists a project's sources, its own first.
func (s *Reader) Sources(ctx context.Context, id api.ProjectID) ([]Source, error) {
	p, err := s.Catalog.Project(ctx, id)
	if err != nil {
		return nil, err
	}
	own := api.Source{Label: p.FirstLabel(), Kind: p.Kind, Address: p.Source, Branch: p.Branch, DocsDir: p.DocsDir,
		SiteURL: p.SiteURL, Site: p.Site, Every: p.Every, Collect: p.Collect}
	out := []Source{s.state(p, own)}
	if site, ok := p.Published(); ok {
		row := s.state(p, api.Source{Label: site.Label, Name: site.Name, Kind: site.Kind, Address: site.Source, Collect: site.Collect})
		row.Answers = s.answers(p, site)
		out = append(out, row)
	}
	for _, f := range p.Sources {
		out = append(out, s.state(p, f))
	}
	return out, nil
}

// state is a source with what is known of it.
func (s *Reader) state(p api.Project, f api.Source) Source {
	part := p.Of(f.Label)
	out := Source{Source: f, Project: p.ID, Editable: part.ID == p.ID && p.Kind.Editable(), First: part.ID == p.ID,
		Counts: f.Counts(), Commit: s.Index.Commit(part.ID), Lost: s.Index.Lost(part.ID)}
	if out.First {
		out.Counts = 1
	}
	out.Pages, out.Sections = s.Index.Size(part.ID)
	if read, ok := s.LastReading(part.ID); ok {
		out.Read = &read
		if read.Err != nil {
			out.Error = failure(read.Err)
		}
	}
	if c, ok := s.LastCollection(part.ID); ok && f.Kind.Collected() {
		out.Collection = &c
		if every := part.Interval(); every > 0 && f.Kind != api.SourceZip {
			out.Next = c.At.Add(every)
		}
		out.Error = cmp.Or(out.Error, c.Error)
	}
	return out
}

// AddSource reads a further source and adds it to its project: one that cannot be read is not added.
func (s *Reader) AddSource(ctx context.Context, id api.ProjectID, f api.Source, progress Progress) (Source, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	p, part, err := s.with(ctx, id, f, false)
	if err != nil {
		return Source{}, err
	}
	s.Forget(part.ID)
	if err := s.readPart(ctx, part, progress); err != nil {
		return Source{}, errors.Join(err, s.drop(context.WithoutCancel(ctx), part.ID))
	}
	return s.storeSource(ctx, p.ID, part.Label, f)
}

// SetSource changes a further source. If what is read stays the same, nothing is read again.
func (s *Reader) SetSource(ctx context.Context, id api.ProjectID, f api.Source, progress Progress) (Source, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	p, part, err := s.with(ctx, id, f, true)
	if err != nil {
		return Source{}, err
	}
	before := p.Of(part.Label)
	if s.Index.Commit(part.ID) == "" || !readAlike(before, part) {
		s.Forget(part.ID)
		if before.Kind != part.Kind || before.Source != part.Source {
			// What was collected of another place is not what this one has.
			if err := errors.Join(s.Nodes.Forget(ctx, part.ID), os.RemoveAll(s.CollectedDir(part.ID))); err != nil {
				return Source{}, err
			}
		}
		if err := s.readPart(ctx, part, progress); err != nil {
			return Source{}, err
		}
	}
	return s.storeSource(ctx, id, part.Label, f)
}

// readPart reads a source, and says where its pages are if they are not in the folder that it names.
func (s *Reader) readPart(ctx context.Context, part api.Project, progress Progress) error {
	_, report, err := s.readNow(ctx, part, progress)
	if err != nil || part.Kind.Collected() {
		return err
	}
	return s.checkDocsDir(ctx, part, report.Commit)
}

// with is a project as it would be with a source added, or changed, and that source as a project of its own.
func (s *Reader) with(ctx context.Context, id api.ProjectID, f api.Source, there bool) (p, part api.Project, err error) {
	if p, err = s.Catalog.Project(ctx, id); err != nil {
		return p, part, err
	}
	changed := p
	changed.Sources = append(slices.Clone(p.Sources), f)
	changed = changed.WithDefaults()
	f = changed.Sources[len(changed.Sources)-1]
	_, known := p.Further(f.Label)
	switch {
	case there && !known:
		return p, part, noSource(p, f.Label)
	case !there && known:
		return p, part, &api.StateError{Kind: api.ErrConflict, Reason: fmt.Sprintf(
			"project %s has a source %s already: change it with `docent source set`, or choose another label", id, f.Label)}
	case known:
		changed.Sources = replaced(p.Sources, f)
	}
	if err := changed.Validate(); err != nil {
		return p, part, aboutSource(err, slices.IndexFunc(changed.Sources, func(o api.Source) bool { return o.Label == f.Label }))
	}
	part = changed.Of(f.Label)
	return p, part, CheckSettings(withDomain(part))
}

// withDomain is a part with a name that is valid as a project's.
func withDomain(part api.Project) api.Project {
	part.ID, part.Label, part.Host = "part", "", api.HostBuiltin
	part.Repository, part.HostURL = "", ""
	if part.Kind == api.SourceIssues {
		part.Host, part.Repository = api.HostGitHub, "owner/name" // checked with the project
	}
	return part
}

// aboutSource names the fields of one source without their place among the others.
func aboutSource(err error, at int) error {
	var invalid *api.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	out := &api.InvalidError{}
	for _, problem := range invalid.Problems {
		field, found := strings.CutPrefix(problem.Field, fmt.Sprintf("sources[%d].", at))
		if found {
			out.Problems = append(out.Problems, api.Problem{Field: field, Message: problem.Message})
		}
	}
	if len(out.Problems) == 0 {
		return err
	}
	return out
}

func replaced(list []api.Source, f api.Source) []api.Source {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Label == f.Label {
			out[i] = f
		}
	}
	return out
}

// storeSource stores a source with the project as it stands now: it may have changed while the source was read.
func (s *Reader) storeSource(ctx context.Context, id api.ProjectID, label string, f api.Source) (Source, error) {
	f.Label = label
	p, err := s.Catalog.ChangeProject(ctx, id, func(p api.Project) (api.Project, error) {
		if !slices.ContainsFunc(p.Sources, func(o api.Source) bool { return o.Label == label }) {
			p.Sources = append(slices.Clone(p.Sources), f)
		} else {
			p.Sources = replaced(p.Sources, f)
		}
		return p, nil
	})
	if errors.Is(err, api.ErrNotFound) { // the project was removed meanwhile
		err = errors.Join(err, s.drop(context.WithoutCancel(ctx), api.SourceID(id, label)))
	}
	if err != nil {
		return Source{}, err
	}
	s.turned(ctx, api.SourceID(id, label)) // other nodes begin to read it
	f, _ = p.Further(label)
	return s.state(p, f), nil
}

// RemoveSource removes a further source with its index and what was read of it: readers are no longer answered from it
// when this returns.
func (s *Reader) RemoveSource(ctx context.Context, id api.ProjectID, label string) error {
	_, err := s.Catalog.ChangeProject(ctx, id, func(p api.Project) (api.Project, error) {
		if _, known := p.Further(label); !known {
			return p, noSource(p, label)
		}
		p.Sources = slices.DeleteFunc(slices.Clone(p.Sources), func(f api.Source) bool { return f.Label == label })
		return p, nil
	})
	if err != nil {
		return err
	}
	return s.drop(ctx, api.SourceID(id, label))
}

// drop forgets all that was read of a further source, here and on other nodes.
func (s *Reader) drop(ctx context.Context, id api.ProjectID) error {
	return errors.Join(s.dropHere(ctx, id), s.Nodes.Forget(ctx, id))
}

// RefreshAll reads a project's further sources. What fails of one is reported for that one, and the others are read.
func (s *Reader) RefreshAll(ctx context.Context, p api.Project, progress Progress) map[string]error {
	failed := map[string]error{}
	for _, part := range p.Parts()[1:] {
		if _, err := s.Refresh(ctx, part, progress); err != nil {
			if ctx.Err() != nil {
				return failed
			}
			failed[part.Label] = err
			s.Report(part.ID, err)
		}
	}
	return failed
}

// Leftovers removes what was kept of sources that no project has: of removals and additions that broke off. Names are
// those of what is stored.
func (s *Reader) Leftovers(ctx context.Context, names []string) error {
	used, err := s.used(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		id := api.ProjectID(name)
		if _, label := api.SplitSource(id); label != "" && !used[id] {
			errs = append(errs, s.dropHere(ctx, id))
		}
	}
	return errors.Join(errs...)
}
