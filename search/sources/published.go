package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/forge"
	"docent/internal/brief"
	"docent/search"
	"docent/search/page"
	"docent/site"
	"docent/site/published"
)

// A Published is a project's published site beside the repository that it is made of.
type Published struct {
	Map  published.Map
	Site bool // readers are answered from it

	why      string            // they are, or are not
	shows    func() string     // which commit it shows, found when somebody asks: readers do not wait for it
	files    map[string]string // by the addresses of their pages
	withheld map[string]string // files of the site whose pages nobody is answered from, and why
	key      string            // of what it was made of
}

// siteMaps are those of all projects, in memory: they follow from the indexes, and are made again after a start.
type siteMaps struct {
	mu    sync.Mutex
	known map[api.ProjectID]*siteMap
	moved map[api.ProjectID]time.Time // when a project's source changed last
}

type siteMap struct {
	mu sync.Mutex // held while it is made
	at *Published // nil before the first
}

const (
	// After a change of the source its site is looked at more often for a while, since it is built then.
	soonEvery = 10 * time.Minute
	soonFor   = 2 * time.Hour
	enough    = 0.8 // of a repository's pages that a site must have for readers to be answered from it by default
)

// sooner is how often a source is read, given how often it is by itself.
func (m *siteMaps) sooner(id api.ProjectID, every time.Duration, now time.Time) time.Duration {
	project, label := api.SplitSource(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.moved[project]; ok && label == api.SiteLabel && now.Sub(at) < soonFor {
		return min(every, soonEvery)
	}
	return every
}

func (m *siteMaps) of(id api.ProjectID) *siteMap {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[id] == nil {
		m.known[id] = &siteMap{}
	}
	return m.known[id]
}

// Answering are the sources that a project's readers are answered from, its own first. Its published site stands for its
// own if it is that.
func (s *Reader) Answering(p api.Project) []search.Source {
	parts := make([]search.Source, 0, 1+len(p.Sources))
	own := search.Source{Label: p.FirstLabel(), Index: p.ID, Weight: 1, First: true}
	if m := s.Published(p); m != nil && m.Site {
		own.Index, own.Written = api.SourceID(p.ID, api.SiteLabel), p.ID
		own.File = func(page string) string {
			row, _ := m.Map.Of(page)
			return row.File
		}
	}
	parts = append(parts, own)
	for _, f := range p.Sources {
		parts = append(parts, search.Source{Label: f.Label, Index: api.SourceID(p.ID, f.Label), Weight: f.Counts(), Groups: f.Groups})
	}
	return parts
}

// Files are the files of a project by the addresses of their pages on its published site. Nobody changes them.
func (s *Reader) Files(p api.Project) map[string]string {
	if m := s.Published(p); m != nil {
		return m.files
	}
	return nil
}

// Published is what is known of a project's site; nil if it was not read.
func (s *Reader) Published(p api.Project) *Published {
	web, ok := p.Published()
	if !ok {
		return nil
	}
	commit := s.Index.Commit(web.ID)
	if commit == "" {
		return nil
	}
	m, err := s.mapSite(p, web, commit)
	s.Report(web.ID, err)
	if m != nil && len(m.Map.Rows) == 0 {
		if last, ok := s.LastCollection(web.ID); ok && last.Error != "" {
			return nil // an index without a page is no reading
		}
	}
	return m
}

// mapSite maps the pages of a site, as they were read at a commit, to the files of the repository as they are indexed.
func (s *Reader) mapSite(p, web api.Project, commit string) (*Published, error) {
	kept := s.sites.of(p.ID)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	own := s.Index.Commit(p.ID)
	key := fmt.Sprintf("%s %s %s %q %q %q", commit, own, p.AnswersFrom, p.Include, p.Exclude, p.DocsDir)
	if kept.at != nil && kept.at.key == key {
		return kept.at, nil
	}
	var files []*page.Record
	var address string
	if own != "" {
		var err error
		if files, address, err = s.Index.Held(p.ID); err != nil && !errors.Is(err, search.ErrNotIndexed) {
			return nil, err
		}
	}
	m := &Published{withheld: map[string]string{}, key: key}
	var err error
	if m.Map, err = s.match(p, web, commit, own, files, address); err != nil {
		return nil, fmt.Errorf("map the site of %s to its files: %w", p.ID, err)
	}
	m.files = m.Map.Files()
	m.decide(p, own, files)
	m.shows = sync.OnceValue(func() string {
		said, err := s.shows(p, web, &m.Map, commit, own)
		s.Report(p.ID, err)
		return said
	})
	kept.at = m
	return m, nil
}

// Why says why readers are answered from the site, or are not, and which of the repository's changes it shows.
func (m *Published) Why() string {
	if said := m.shows(); said != "" {
		return m.why + ". " + said
	}
	return m.why
}

// What is looked for on a site: the repository's newest changes. One may touch every page, and each page is read whole.
const (
	maxChanges = 10
	maxTelling = 50  // files of a change that tell whether the site shows it
	maxLooks   = 200 // at pages, for all changes
)

// shows says which of the repository's newest changes its site shows; nothing if the words of its pages do not tell.
func (s *Reader) shows(p, web api.Project, m *published.Map, commit, own string) (string, error) {
	if own == "" {
		return "", nil
	}
	pages := make(map[string]string, len(m.Rows)) // by the files that they are made of
	for _, row := range m.Rows {
		if row.File != "" && !row.Doubtful() {
			pages[path.Join(p.DocsDir, row.File)] = row.Page
		}
	}
	site, err := s.Repositories.Tree(s.ctx, web, commit)
	if err != nil {
		return "", err
	}
	tree, err := s.Repositories.Tree(s.ctx, p, own)
	if err != nil {
		return "", err
	}
	changes, err := tree.Log(s.ctx, p.DocsDir, maxChanges)
	late, looks := 0, maxLooks
	for _, c := range changes {
		if looks == 0 {
			break
		}
		if tree, err = s.Repositories.Tree(s.ctx, p, c.Hash); err != nil {
			return "", err
		}
		if _, err := tree.Parent(s.ctx, c.Hash); err != nil {
			break // nothing is known before the first
		}
		diff, _, err := tree.Since(s.ctx, "", 1)
		if err != nil {
			return "", err
		}
		after, before := tells(diff.Files, pages, func(page string) []byte { return textOf(s.ctx, site, page)() }, &looks)
		if after > before {
			said := fmt.Sprintf("The newest change that is seen on the site is commit %.7s of %s", c.Hash, c.Time.UTC().Format(time.DateOnly))
			if late > 0 {
				said += "; not there yet: " + brief.Count(late, "later change")
			}
			return said, nil
		}
		if before > after {
			late++
		}
	}
	if late > 0 {
		return "Not on the site yet: " + brief.Count(late, "change"), nil
	}
	return "", err
}

// tells counts the files of a change whose pages show it, and those whose pages show what was there before. It looks at no
// more pages than looks, which it lessens.
func tells(files []forge.FileDiff, pages map[string]string, text func(page string) []byte, looks *int) (after, before int) {
	for _, f := range files {
		if *looks == 0 || after+before == maxTelling {
			break
		}
		if page := pages[f.Path]; page != "" && f.Unified != "" {
			*looks--
			is, was := published.Shows(text(page), f.Unified)
			if is {
				after++
			} else if was {
				before++
			}
		}
	}
	return after, before
}

// match reads what the map is made of.
func (s *Reader) match(p, web api.Project, commit, own string, files []*page.Record, address string) (published.Map, error) {
	ctx := s.ctx // what one reader's request makes, all use
	tree, err := s.Repositories.Tree(ctx, web, commit)
	if err != nil {
		return published.Map{}, err
	}
	list, err := tree.Files(ctx)
	if err != nil {
		return published.Map{}, err
	}
	var said site.Collected
	if raw, err := tree.Read(ctx, site.CollectedFile); err == nil {
		err = json.Unmarshal(raw, &said)
		if err != nil {
			return published.Map{}, err
		}
	}
	var pages []published.Page
	for _, f := range list {
		if said.Addresses[f.Path] != "" {
			pages = append(pages, published.Page{Path: f.Path, URL: said.Addresses[f.Path], Edit: said.Edits[f.Path],
				Text: textOf(ctx, tree, f.Path)})
		}
	}
	if len(files) > 0 {
		if tree, err = s.Repositories.Tree(ctx, p, own); err != nil {
			return published.Map{}, err
		}
	}
	sources := filesOf(files, address, func(file string) func() []byte { return textOf(ctx, tree, path.Join(p.DocsDir, file)) })
	return published.Match(pages, sources, p.DocsDir), ctx.Err()
}

// filesOf are the files that pages are made of. Where a site begins it shows the first page of its navigation, if no file is
// the page there.
func filesOf(files []*page.Record, address string, text func(file string) func() []byte) (out []published.File) {
	at := slices.IndexFunc(files, func(r *page.Record) bool { return r.File == "" && r.Order == 1 })
	if at >= 0 && !slices.ContainsFunc(files, func(r *page.Record) bool { return published.Key(r.URL("", "")) == "" }) {
		out = append(out, published.File{Path: files[at].Path, URL: address + "/", Hidden: files[at].Hidden})
	}
	for _, r := range files {
		if r.File == "" { // no operation of an API
			out = append(out, published.File{Path: r.Path, URL: r.URL(address, ""), Hidden: r.Hidden, Text: text(r.Path)})
		}
	}
	return out
}

func textOf(ctx context.Context, tree *forge.Tree, name string) func() []byte {
	return func() []byte {
		text, _ := tree.Read(ctx, name) // what cannot be read has no words
		return text
	}
}

// decide says whether readers are answered from the site, and from which of its pages they never are: what the project or
// its site keeps from searches is kept from them here too.
func (m *Published) decide(p api.Project, own string, files []*page.Record) {
	byPath := make(map[string]*page.Record, len(files))
	public, grouped := 0, ""
	for _, r := range files {
		if byPath[r.Path] = r; r.File == "" && !r.Hidden {
			public++
		}
		if len(r.Groups) > 0 {
			grouped = r.Path
		}
	}
	there := map[string]bool{}
	for _, row := range m.Map.Rows {
		r := byPath[row.File]
		switch {
		case r != nil && r.Hidden:
			m.withheld[row.Page] = "its file is kept from searches"
		case (r == nil || row.Doubtful()) && len(p.Include)+len(p.Exclude) > 0:
			m.withheld[row.Page] = "the project says which files are public (--include, --exclude), and it is not known of which file this page is made"
		case r != nil:
			there[row.File] = true
		}
	}
	covered := fmt.Sprintf("%d of the %d pages of the repository are there", len(there), public)
	const instead = "Readers are answered from the repository: "
	switch {
	case p.AnswersFrom == api.FromSource:
		m.why = instead + "the project says so (--answers-from); on the site, " + covered
	case own == "":
		m.why = instead + "it is not indexed yet"
	case grouped != "":
		m.why = instead + "the site cannot tell for which readers " + grouped + " is (groups)"
	case len(m.Map.Rows) <= len(m.withheld):
		m.why = instead + "no page of the site may be shown"
	case p.AnswersFrom == api.FromSite:
		m.Site, m.why = true, "Readers are answered from the site, as the project says (--answers-from): "+covered
	case float64(len(there)) < enough*float64(public):
		m.why = instead + "only " + covered + ", on the site (--answers-from site answers from the site all the same)"
	default:
		m.Site, m.why = true, "Readers are answered from the site: "+covered+" (--answers-from source answers from the repository)"
	}
}

// sourceMoved takes over that the source of a project has changed: pages of its site may be of other files now, and the site
// is built again before long.
func (s *Reader) sourceMoved(p api.Project, first bool) {
	web, ok := p.Published()
	if !ok {
		return
	}
	if !first {
		s.sites.mu.Lock()
		s.sites.moved[p.ID] = s.Guard.now()
		s.sites.mu.Unlock()
	}
	commit := s.Index.Commit(web.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if commit == "" || s.ctx.Err() != nil {
		return
	}
	s.work.Go("search/sources.sourceMoved", func() {
		if now := s.Index.Commit(web.ID); now != "" {
			_, err := s.again(s.ctx, web, now, func(string, int, int) {})
			s.Report(web.ID, err)
		}
	})
}

// A partly tree is one without some of its files.
type partly struct {
	*forge.Tree
	without map[string]string
}

func (t partly) Files(ctx context.Context) ([]api.File, error) {
	all, err := t.Tree.Files(ctx)
	var kept []api.File
	for _, f := range all {
		if _, out := t.without[f.Path]; !out {
			kept = append(kept, f)
		}
	}
	return kept, err
}

// shown is what is indexed of a tree: of a published site without the pages that nobody is answered from.
func (s *Reader) shown(ctx context.Context, part api.Project, tree *forge.Tree) (search.Tree, error) {
	id, label := api.SplitSource(part.ID)
	if label != api.SiteLabel {
		return tree, nil
	}
	p, err := s.Catalog.Project(ctx, id)
	if err != nil {
		return nil, err
	}
	m, err := s.mapSite(p, part, tree.Commit())
	if err != nil {
		return nil, err
	}
	return partly{tree, m.withheld}, nil
}

// readSite reads the published site of a project that was added or changed, and says what readers are answered from. If
// the site cannot be read, that is the repository.
func (s *Reader) readSite(ctx context.Context, old, p api.Project, progress Progress) string {
	was, had := old.Published()
	web, has := p.Published()
	if had && (!has || was.Source != web.Source) {
		s.Report(was.ID, s.drop(ctx, was.ID))
	}
	if !has {
		return ""
	}
	var err error
	if commit := s.Index.Commit(web.ID); !had || !readAlike(was, web) {
		s.Forget(web.ID)
		_, err = s.Refresh(ctx, web, progress)
	} else if commit != "" {
		_, err = s.again(ctx, web, commit, progress)
	}
	s.Report(web.ID, err)
	return s.answers(p, web)
}

// answers says what readers are answered from, of a project whose site is read.
func (s *Reader) answers(p, web api.Project) string {
	if m := s.Published(p); m != nil {
		return m.Why()
	}
	text := "Readers are answered from the repository: the site couldn't be read"
	if last, ok := s.LastCollection(web.ID); ok && last.Error != "" {
		text += ": " + strings.TrimPrefix(last.Error, "failed: ")
	}
	return text + ". Docent tries again automatically."
}

// compare compares a project's source with its published site; nil if that is not read.
func (s *Reader) compare(ctx context.Context, p api.Project, out []search.LeftOut) (*published.Comparison, error) {
	web, ok := p.Published()
	if !ok {
		return nil, nil
	}
	m := s.Published(p)
	if m == nil {
		return &published.Comparison{Summary: "nothing is known of its pages", Answers: s.answers(p, web)}, nil
	}
	var lists [2][]published.Shown
	for i, id := range []api.ProjectID{web.ID, p.ID} {
		held, address, err := s.Index.Held(id)
		if err != nil {
			return nil, err
		}
		for _, r := range held {
			if r.File != "" {
				continue
			}
			shown := published.Shown{Path: r.Path, URL: r.URL(address, ""), Hidden: r.Hidden}
			for j := range r.Sections {
				shown.Anchors = append(shown.Anchors, r.Sections[j].Anchor)
			}
			lists[i] = append(lists[i], shown)
		}
	}
	left := make([]string, len(out))
	for i, f := range out {
		left[i] = f.Path
	}
	c := published.Compare(&m.Map, lists[0], lists[1], left, p.DocsDir, m.withheld)
	c.Answers, c.Site = m.Why(), m.Site
	last, _ := s.LastCollection(web.ID)
	for _, note := range last.Notes[min(1, len(last.Notes)):] {
		if strings.Contains(note, "without JavaScript") {
			note += ": have the site's generator write the text into the page (server-side rendering), or answer from the repository"
		}
		c.Unread = append(c.Unread, note)
	}
	return &c, ctx.Err()
}
