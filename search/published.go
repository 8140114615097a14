package search

import (
	"context"

	"docent/api"
	"docent/search/page"
)

// PageInfo is what is known of a page without its text.
type PageInfo struct {
	Path        string // relative to the documentation folder, with its extension
	Title       string
	Label       string // what the navigation calls it; empty if it says nothing else than its title
	Description string
	URL         string // its address for readers
	Version     string // that it is shown under; empty if the site has none
	Language    string // the same
	Current     bool   // found by readers who name no version
	Own         bool   // in the site's own language
	Sections    int
	Crumbs      []string // titles of the groups or folders above it
	Order       int      // place in the navigation of its source, from 1; 0 if it is not known
	Source      string   // label of the project's source; empty if it has only one
}

// Published lists the pages that every reader may find, in the order of their paths: neither what the site keeps from
// searches nor what is for groups, and of a source with an audience nothing.
func (l *Library) Published(ctx context.Context, project api.ProjectID) ([]PageInfo, error) {
	return l.list(ctx, project, func(s *snapshot, at uint32) bool { return !s.covered[at] && s.pages[at].Allowed(nil) })
}

// Pages lists the pages that searches can find, in the order of their paths within each source. Those of sources with
// an audience are not told.
func (l *Library) Pages(ctx context.Context, project api.ProjectID) ([]PageInfo, error) {
	return l.list(ctx, project, func(*snapshot, uint32) bool { return true })
}

func (l *Library) list(ctx context.Context, project api.ProjectID, shown func(s *snapshot, at uint32) bool) ([]PageInfo,
	error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var list []PageInfo
	err := l.eachOpen(ctx, project, nil, func(from *Source, several bool, s *snapshot) error {
		m := s.labels()
		places := m.Places()
		for at, r := range s.pages {
			if r.Hidden || !shown(s, uint32(at)) {
				continue
			}
			p := PageInfo{Path: from.path(r.Path), Title: r.Title, Description: m.Description(r), URL: s.url(r, ""),
				Language: r.Locale, Current: r.Current, Own: len(s.localeOf) == 0 || s.localeOf[at] == 0, Sections: len(r.Sections),
				Crumbs: r.Crumbs, Order: places[r.UID], Label: append(r.Titles[:len(r.Titles):len(r.Titles)], r.Front.Sidebar.Label)[0]}
			if len(r.Versions) > 0 {
				p.Version = r.Versions[0]
			}
			if several {
				p.Source = from.Label
			}
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// Held are the pages of one index, whichever of them readers are answered from, and the address of its site.
func (l *Library) Held(index api.ProjectID) (pages []*page.Record, siteURL string, err error) {
	s, err := l.acquire(index)
	if err != nil {
		return nil, "", err
	}
	defer s.release()
	return s.pages, s.labels().SiteURL, nil
}
