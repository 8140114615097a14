package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/background"
)

// Several sources may answer for one project. Each has an index of its own, and what they find is merged by its score
// times the weight of its source. A page of a further source is told from the others by its path: @label/path.

// sourceMark begins the paths of further sources.
const sourceMark = "@"

// A Source is one of a project's sources.
type Source struct {
	Label  string
	Index  api.ProjectID // under which it is indexed
	Weight float64
	Groups []string // if there are any, only readers with one of them are answered from it
	First  bool     // it is the project's own
	// Of one whose index is that of a published site: the index of its repository, and the file there of a page.
	Written api.ProjectID
	File    func(path string) string
}

// open reports whether readers with these groups may be answered from a source.
func (p *Source) open(groups []string) bool {
	return len(p.Groups) == 0 || slices.ContainsFunc(p.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// path is a path of the source as it is shown and asked for.
func (p *Source) path(path string) string {
	if p.First {
		return path
	}
	return sourceMark + p.Label + "/" + strings.TrimPrefix(path, "/")
}

// sources are those of a project. One that has an index of its own and is nobody's project is its only source.
func (l *Library) sources(ctx context.Context, project api.ProjectID) ([]Source, error) {
	if _, label := api.SplitSource(project); l.options.Sources == nil || label != "" {
		return []Source{{Index: project, Weight: 1, First: true}}, nil
	}
	parts, err := l.options.Sources(ctx, project)
	if errors.Is(err, api.ErrNotFound) { // it is being added, or was removed
		return []Source{{Index: project, Weight: 1, First: true}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the sources of %s: %w", project, err)
	}
	return parts, nil
}

// asked are those of a project's sources that a query is put to.
func (l *Library) asked(ctx context.Context, project api.ProjectID, f *Filter) (parts []Source, several bool, err error) {
	all, err := l.sources(ctx, project)
	if err != nil {
		return nil, false, err
	}
	for _, p := range all {
		if p.open(f.Groups) && (len(f.Sources) == 0 || slices.Contains(f.Sources, p.Label)) {
			parts = append(parts, p)
		}
	}
	return parts, len(all) > 1, nil
}

// within is a query as it is put to one of several sources.
func (p *Source) within(q Query) Query {
	q.Filter.Sources = nil
	if q.Threshold > 0 {
		q.Threshold /= p.Weight // of the score before the weight counts
	}
	own, label, rest := !strings.HasPrefix(q.CurrentPath, sourceMark), "", ""
	if !own {
		label, rest, _ = strings.Cut(q.CurrentPath[len(sourceMark):], "/")
	}
	switch {
	case own == p.First:
	case !own && label == p.Label:
		q.CurrentPath = rest
	case own && !p.First:
		// The address tells which version and language the reader is in; which page it is tells nothing here.
	default:
		q.CurrentPath = ""
	}
	return q
}

// mark says of which source hits are.
func (p *Source) mark(hits []Hit) {
	for i := range hits {
		hits[i].Source, hits[i].Path, hits[i].File = p.Label, p.path(hits[i].Path), p.path(hits[i].File)
		hits[i].Score *= p.Weight
	}
}

// searchAll puts a query to several sources and merges what they find. A further source that has no index is left out:
// the others answer meanwhile. That the project's own has none is for the caller to know.
func (l *Library) searchAll(ctx context.Context, parts []Source, q Query) ([]Hit, error) {
	found := make([][]Hit, len(parts))
	var group background.Group
	for i := range parts {
		p := &parts[i]
		within := p.within(q)
		if within.Threshold > 1 {
			continue
		}
		group.Go(func() error {
			hits, err := l.searchOne(ctx, p, within)
			switch {
			case err == nil:
				p.mark(hits)
				found[i] = hits
			case errors.Is(err, ErrNotIndexed) && !p.First:
				if l.options.Missing != nil {
					l.options.Missing(p.Index)
				}
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return merged(slices.Concat(found...), q.pages()), nil
}

// merged are hits of several sources in their order, of so many pages at the most. Scores stay between 0 and 1.
func merged(hits []Hit, pages int) []Hit {
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	seen := make(map[string]bool, pages)
	kept := hits[:0]
	for _, h := range hits {
		if !seen[h.Path] && len(seen) == pages {
			continue
		}
		seen[h.Path] = true
		h.Score = min(1, h.Score)
		kept = append(kept, h)
	}
	return kept
}

// sourceOf is the source that a path belongs to, and the path within it. A path that names no source is of the project's
// own. ok is false if there is no such source, or if it is not for readers with these groups.
func sourceOf(parts []Source, path string, groups []string) (p *Source, within string, ok bool) {
	label, within := "", path
	if marked, found := strings.CutPrefix(strings.TrimPrefix(path, "/"), sourceMark); found {
		label, within, _ = strings.Cut(marked, "/")
		within = strings.TrimPrefix(within, "/")
	}
	for i := range parts {
		p := &parts[i]
		if label != "" && p.Label == label && !p.First || label == "" && p.First {
			return p, within, p.open(groups)
		}
	}
	if len(parts) > 0 { // a folder of the project's own that begins with @
		return &parts[0], path, parts[0].open(groups)
	}
	return nil, path, false
}

// pageOf finds a page in the sources of a project: by its path in the one that it names, or by its address in the one
// whose site has it.
func (l *Library) pageOf(parts []Source, path string, groups []string) (Page, error) {
	p, within, ok := sourceOf(parts, path, groups)
	if at := l.siteOf(parts, path); at != nil {
		p, within, ok = at, path, at.open(groups)
	}
	if !ok {
		return Page{}, fmt.Errorf("page %q: %w", path, api.ErrNotFound)
	}
	return l.pageIn(p, within, groups)
}

// siteOf is the source whose site an address is on; nil if it is none, or if it is not known.
func (l *Library) siteOf(parts []Source, address string) (at *Source) {
	if len(parts) < 2 || !strings.Contains(address, "://") {
		return nil
	}
	longest := 0
	for i := range parts {
		site := strings.TrimRight(l.Address(parts[i].Index), "/")
		rest, on := strings.CutPrefix(address, site)
		if on && len(site) > longest && (rest == "" || strings.ContainsAny(rest[:1], "/?#")) {
			at, longest = &parts[i], len(site)
		}
	}
	return at
}

func (l *Library) pageIn(p *Source, path string, groups []string) (Page, error) {
	snap, err := l.acquire(p.Index)
	if err != nil {
		return Page{}, err
	}
	defer snap.release()
	page, err := snap.page(path, groups)
	if err == nil && len(page.Groups) == 0 {
		page.Groups = slices.Clone(p.Groups)
	}
	page.Path = p.path(page.Path)
	return page, err
}

// eachOpen does something with each index that readers with these groups are answered from. Further sources that have
// none are left out.
func (l *Library) eachOpen(ctx context.Context, project api.ProjectID, groups []string,
	do func(p *Source, several bool, s *snapshot) error) error {
	parts, several, err := l.asked(ctx, project, &Filter{Groups: groups})
	if err != nil {
		return err
	}
	for i := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := l.acquire(parts[i].Index)
		if errors.Is(err, ErrNotIndexed) && !parts[i].First {
			continue
		}
		if err != nil {
			return err
		}
		err = do(&parts[i], several, s)
		s.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// explainAll explains what several sources find. What was made of the query is what the first of them made of it.
func (l *Library) explainAll(ctx context.Context, parts []Source, q Query, expected []string) (Explanation, error) {
	var out Explanation
	of := make(map[string][]string, len(parts)) // the expected pages by label
	for _, path := range expected {
		if p, within, ok := sourceOf(parts, path, q.Filter.Groups); ok {
			of[p.Label] = append(of[p.Label], within)
		}
	}
	explained := 0
	for i := range parts {
		p := &parts[i]
		e, err := l.explainOne(ctx, p.Index, p.within(q), of[p.Label])
		if errors.Is(err, ErrNotIndexed) && !p.First {
			continue
		}
		if err != nil {
			return Explanation{}, err
		}
		if explained++; explained == 1 {
			out.Understood = e.Understood
		}
		for _, h := range e.Hits {
			raw := h.Hit.Score
			hit := []Hit{h.Hit}
			p.mark(hit)
			h.Hit = hit[0]
			h.Parts = byWeight(h.Parts, raw, min(1, h.Hit.Score))
			out.Hits = append(out.Hits, h)
		}
		for _, x := range e.Expected {
			x.Path = p.path(x.Path)
			weighted := min(1, x.Score*p.Weight)
			x.Parts, x.Score = byWeight(x.Parts, x.Score, weighted), weighted
			out.Expected = append(out.Expected, x)
		}
	}
	out.rank(q.pages())
	return out, nil
}

// byWeight are the parts of a score with what the weight of its source makes of it.
func byWeight(parts []Part, raw, score float64) []Part {
	if score == raw {
		return parts
	}
	return append(slices.Clone(parts), Part{Kind: PartSource, Amount: score - raw})
}

// rank puts the hits of several sources in their order, and returns the ranks of the expected pages among them.
func (e *Explanation) rank(pages int) {
	slices.SortStableFunc(e.Hits, func(a, b Explained) int { return cmp.Compare(b.Hit.Score, a.Hit.Score) })
	place := make(map[string]int, pages)
	kept := e.Hits[:0]
	for _, h := range e.Hits {
		if _, seen := place[h.Hit.Path]; !seen {
			place[h.Hit.Path] = len(place) + 1
		}
		if place[h.Hit.Path] <= pages {
			h.Hit.Score = min(1, h.Hit.Score)
			kept = append(kept, h)
		}
	}
	e.Hits = kept
	for i := range e.Expected {
		x := &e.Expected[i]
		if x.Why != StandsFound {
			continue
		}
		if x.Rank = place[x.Path]; x.Rank > pages {
			x.Why = StandsBelow
		}
	}
}
