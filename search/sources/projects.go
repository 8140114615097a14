package sources

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"docent/api"
	"docent/forge"
	"docent/search"
	"docent/site"
)

// A Project is one with what reading its documentation has found.
type Project struct {
	api.Project
	Commit   string `json:"commit"`
	Pages    int    `json:"pages"`
	Sections int    `json:"sections"`
	// What the site's files say.
	LeftOut     int            `json:"leftOut"`
	Address     string         `json:"address,omitempty"` // public URL of the documentation
	AddressFrom string         `json:"addressFrom,omitempty"`
	Warnings    []site.Warning `json:"warnings,omitempty"`
	// Answers says what readers are answered from, and why, if there is a published site.
	Answers string `json:"answers,omitempty"`
	// Open is what the code host does not tell of the credentials.
	Open string `json:"open,omitempty"`
}

// Add reads and indexes the documentation before the project is in the catalog: a source that cannot be read
// leaves no project behind.
func (s *Reader) Add(ctx context.Context, p api.Project, progress Progress) (Project, error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	p = p.WithDefaults().ReadsSite(api.Project{})
	for _, taken := range []func() (api.Project, error){
		func() (api.Project, error) { return s.Catalog.Project(ctx, p.ID) },
		func() (api.Project, error) { return s.Catalog.ProjectByDomain(ctx, p.Domain) },
	} {
		if _, err := taken(); err == nil {
			_, err = s.Catalog.AddProject(ctx, p) // says what is taken
			return Project{}, err
		} else if !errors.Is(err, api.ErrNotFound) {
			return Project{}, err
		}
	}
	open, err := s.rights(ctx, p)
	if err != nil {
		return Project{}, err
	}
	s.Forget(p.ID)
	_, report, err := s.readNow(ctx, p, progress)
	if err == nil {
		err = s.checkDocsDir(ctx, p, report.Commit)
	}
	if p.Name == "" {
		p.Name = report.Title
	}
	if err == nil && s.asksForSignOff(ctx, p, report.Commit) {
		open = strings.TrimSpace(open + " The repository's CONTRIBUTING file asks for commits that are signed off: give the project --author and --sign-off.")
	}
	if err != nil {
		s.folders().forget(p.ID)
		return Project{}, errors.Join(err, s.Index.Remove(p.ID), s.Nodes.Forget(context.WithoutCancel(ctx), p.ID))
	}
	added, err := s.Catalog.AddProject(ctx, p)
	if err == nil {
		s.turned(ctx, p.ID) // other nodes begin to read it
	}
	out := found(added, report, open)
	if err == nil {
		out.Answers = s.readSite(ctx, api.Project{}, added, progress)
	}
	return out, err
}

// found is a project with what reading its documentation has found.
func found(p api.Project, r search.Report, open string) Project {
	return Project{Project: p, Commit: r.Commit, Pages: r.Pages, Sections: r.Sections,
		LeftOut: r.LeftOut, Address: r.SiteURL, AddressFrom: r.SiteURLFrom, Warnings: r.Warnings, Open: open}
}

// CheckSettings says what is wrong with a project's settings: whatever can be known without reading anything. Add and
// Set take settings that have passed it.
func CheckSettings(p api.Project) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := site.CheckPatterns(p); err != nil {
		return err
	}
	if p.Kind.Collected() {
		return nil
	}
	return forge.Check(p)
}

// rights says what a code host leaves open of a project's credentials.
func (s *Reader) rights(ctx context.Context, p api.Project) (open string, err error) {
	if p.Kind.Collected() {
		return "", nil // its collector finds out
	}
	return s.Repositories.Rights(ctx, p)
}

// checkDocsDir says which folders hold pages if the one that a project names holds none: the name is mistyped.
func (s *Reader) checkDocsDir(ctx context.Context, p api.Project, commit string) error {
	if p.DocsDir == "" {
		return nil
	}
	tree, err := s.Repositories.Tree(ctx, p, commit)
	if err != nil {
		return err
	}
	files, err := tree.Files(ctx)
	if err != nil {
		return err
	}
	var pages []string
	for _, f := range files {
		if !site.IsPage(f.Path) {
			continue
		}
		if strings.HasPrefix(f.Path, p.DocsDir+"/") {
			return nil
		}
		pages = append(pages, f.Path)
	}
	message := fmt.Sprintf("the folder %q holds no page", p.DocsDir)
	if len(pages) == 0 {
		message += ", and neither does any other folder of the source"
	} else {
		message += "; these folders do: " + pageFolders(pages)
	}
	return &api.InvalidError{Problems: []api.Problem{{Field: "docsDir", Message: message}}}
}

// asksForSignOff reports whether a repository says that contributors sign their commits off, and the project's will not be.
func (s *Reader) asksForSignOff(ctx context.Context, p api.Project, commit string) bool {
	if p.Pulls.SignOff || p.Host == api.HostBuiltin || p.Kind.Collected() {
		return false
	}
	tree, err := s.Repositories.Tree(ctx, p, commit)
	if err != nil {
		return false // it is a hint
	}
	for _, name := range []string{"CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md", "CONTRIBUTING"} {
		if text, err := tree.Read(ctx, name); err == nil && bytes.Contains(bytes.ToLower(text), []byte("signed-off-by")) {
			return true
		}
	}
	return false
}

// pageFolders names the folders that hold pages, those with most first: of each part of the source the deepest folder
// that has all of its pages.
func pageFolders(pages []string) string {
	const most = 5
	parts := map[string][]string{}
	for _, page := range pages {
		part, _, below := strings.Cut(page, "/")
		if !below {
			part = "" // the root
		}
		parts[part] = append(parts[part], page)
	}
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(parts[b]), len(parts[a])), cmp.Compare(a, b))
	})
	var said []string
	for _, part := range names[:min(most, len(names))] {
		folder := "the root (leave out --docs-dir)"
		if part != "" {
			folder = path.Dir(parts[part][0])
			for _, page := range parts[part] {
				for !strings.HasPrefix(page, folder+"/") {
					folder = path.Dir(folder)
				}
			}
		}
		count := "1 page"
		if n := len(parts[part]); n > 1 {
			count = fmt.Sprint(n, " pages")
		}
		said = append(said, folder+": "+count)
	}
	if more := len(names) - most; more > 0 {
		said = append(said, fmt.Sprint("and ", more, " more"))
	}
	return strings.Join(said, ", ")
}

// readAlike reports whether two projects' settings differ in nothing that decides what is read and indexed of the
// documentation.
func readAlike(a, b api.Project) bool {
	a.Name, a.Domain, a.Labels, a.Direct, a.WebhookEnv = b.Name, b.Domain, b.Labels, b.Direct, b.WebhookEnv
	a.WebhookFile, a.ReaderSecrets, a.ReaderJWKS, a.ReaderSignIn = b.WebhookFile, b.ReaderSecrets, b.ReaderJWKS, b.ReaderSignIn
	a.Model, a.Deflection, a.Limits, a.Options = b.Model, b.Deflection, b.Limits, b.Options
	a.Widget, a.Chats, a.TimeZone, a.Pulls, a.Review, a.Handle = b.Widget, b.Chats, b.TimeZone, b.Pulls, b.Review, b.Handle
	a.Label, a.Every, a.Sources, a.AnswersFrom = b.Label, b.Every, b.Sources, b.AnswersFrom
	if a.Kind == api.SourceFiles {
		a.Collect.Web = b.Collect.Web // of the published site, which is a part of its own
	}
	a.Org, a.CreatedAt = b.Org, b.CreatedAt
	return reflect.DeepEqual(a, b)
}

// Rereads reports whether a change of a project's settings requires reading its documentation again.
func (s *Reader) Rereads(before, after api.Project) bool {
	after = after.WithDefaults().ReadsSite(before)
	was, had := before.Published()
	is, has := after.Published()
	return !readAlike(before, after) || has && (!had || !readAlike(was, is))
}

// Set changes a project. If what is read stays the same, nothing is read again.
func (s *Reader) Set(ctx context.Context, p api.Project, progress Progress) (Project, error) {
	old, err := s.Catalog.Project(ctx, p.ID)
	if err != nil {
		return Project{}, err
	}
	p = p.WithDefaults().ReadsSite(old)
	if commit := s.Index.Commit(p.ID); commit != "" && readAlike(old, p) {
		if p, err = s.store(ctx, p); err != nil {
			return Project{}, err
		}
		report, err := s.again(ctx, p, commit, progress)
		if err == nil {
			s.everywhere(ctx, p.ID, progress)
		}
		out := found(p, report, "")
		out.Answers = s.readSite(ctx, old, p, progress)
		return out, err
	}
	open, err := s.rights(ctx, p)
	if err != nil {
		return Project{}, err
	}
	if p.DocsDir != "" && !p.Kind.Collected() {
		tip, _, err := s.Repositories.Sync(ctx, p, func(text string) { progress(text, 0, 0) })
		if err == nil {
			err = s.checkDocsDir(ctx, p, tip.Commit)
		}
		if err != nil {
			return Project{}, err
		}
	}
	if p, err = s.store(ctx, p); err != nil {
		return Project{}, err
	}
	s.Forget(p.ID)
	report, err := s.Refresh(ctx, p, progress)
	out := found(p, report, open)
	if err == nil {
		out.Answers = s.readSite(ctx, old, p, progress)
	}
	return out, err
}

// store stores a project's settings but for its further sources, its reader secrets, and its apps in chats, which operations
// of their own change.
func (s *Reader) store(ctx context.Context, p api.Project) (api.Project, error) {
	return s.Catalog.ChangeProject(ctx, p.ID, func(now api.Project) (api.Project, error) {
		p.Sources, p.ReaderSecrets, p.Chats = now.Sources, now.ReaderSecrets, now.Chats
		return p, nil
	})
}

// Remove removes a project with its index; its repository stays. Of its further sources nothing stays: no job has
// worked on them.
func (s *Reader) Remove(ctx context.Context, id api.ProjectID) error {
	p, err := s.Catalog.Project(ctx, id)
	if err != nil {
		return err
	}
	if err := s.Catalog.RemoveProject(ctx, id); err != nil {
		return err
	}
	s.Forget(id)
	s.forget(id)
	s.follows.forget(id)
	s.folders().forget(id)
	errs := []error{s.Index.Remove(id), os.RemoveAll(s.CollectedDir(id)), s.Nodes.Forget(ctx, id)}
	for _, part := range p.Parts()[1:] {
		errs = append(errs, s.drop(ctx, part.ID))
	}
	return errors.Join(errs...)
}
