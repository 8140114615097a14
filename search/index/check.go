package index

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/search/page"
	"docent/site"
	"docent/site/published"
)

// A Check says what of a project's documentation is public, and what is not.
type Check struct {
	Project     api.ProjectID  `json:"project"`
	Commit      string         `json:"commit"`
	Site        api.SiteKind   `json:"site"`
	Config      string         `json:"config,omitempty"`  // the file that configures the site
	Address     string         `json:"address,omitempty"` // public URL of the documentation; empty if nobody says
	AddressFrom string         `json:"addressFrom,omitempty"`
	Pages       []CheckedPage  `json:"pages"`
	LeftOut     []LeftOut      `json:"leftOut"`
	DeadLinks   []DeadLink     `json:"deadLinks"`
	Warnings    []site.Warning `json:"warnings"`
	// Published compares the source with the site as it is published; nil if that is not read.
	Published *published.Comparison `json:"published,omitempty"`
	// Withheld says why no page is public, and what to do, if it is not known what the site leaves out.
	Withheld string `json:"withheld,omitempty"`
}

// A CheckedPage is a page that is public.
type CheckedPage struct {
	Path  string     `json:"path"` // relative to the documentation folder
	URL   string     `json:"url"`
	State site.State `json:"state"`
	Why   string     `json:"why"`
	File  string     `json:"file,omitempty"` // that says so; empty if it is the generator's own rule
	Title string     `json:"title,omitempty"`
	// how many sections it has to be found by
	Sections int `json:"sections,omitempty"`
}

// LeftOut is a file that could be a page and is not one.
type LeftOut struct {
	Path  string     `json:"path"`
	State site.State `json:"state"`
	Why   string     `json:"why"`
	File  string     `json:"file,omitempty"`
}

// A DeadLink is a link in a public page that leads to no page.
type DeadLink struct {
	Path string `json:"path"`
	Link string `json:"link"`
	Why  string `json:"why"`
}

// Examine says what the index would show of a tree. It changes nothing.
func Examine(ctx context.Context, o Options, project api.Project, tree Tree, progress func(done, total int)) (Check,
	error) {
	u := newUpdate(o, project, tree)
	u.passed = make(map[string]string)
	defer u.Close()
	if err := u.begin(ctx, progress); err != nil {
		return Check{}, err
	}
	project = u.project
	c := Check{
		Project: project.ID, Commit: tree.Commit(), Site: u.where.Kind, Config: u.where.Config(),
		Address: u.report.SiteURL, AddressFrom: u.report.SiteURLFrom,
		Withheld: u.withheld,
		Pages:    []CheckedPage{}, LeftOut: []LeftOut{}, DeadLinks: []DeadLink{},
		Warnings: append([]site.Warning{}, u.report.Warnings...),
	}
	c.Site = cmp.Or(c.Site, api.SitePlain)
	taken := make(map[string]string) // pages by their URLs
	parts := make(map[string][]*page.Record)
	for _, r := range u.records {
		if r.File != "" {
			parts[r.File] = append(parts[r.File], r)
		}
	}
	for _, r := range u.records {
		d, ok := u.decided[r.Path]
		switch {
		case !ok:
		case d.State.IsPage():
			r.Shown = u.where.Shown(r.Page())
			if place, ok := u.place(r, r.Shown); ok {
				r.Name(place)
			}
			at := r.URL(c.Address, "")
			checked := CheckedPage{r.Path, at, d.State, d.Rule, d.File, r.Title, 0}
			for _, part := range append(parts[r.Path], r) {
				if src := u.sources[part]; src != nil {
					checked.Sections += src.Sections()
				}
			}
			c.Pages = append(c.Pages, checked)
			if first := taken[at]; first != "" {
				c.Warnings = append(c.Warnings, site.Warning{File: path.Join(project.DocsDir, r.Path),
					Text: "has the address of " + first + ": readers find only one of them"})
			}
			taken[at] = r.Path
		default:
			c.LeftOut = append(c.LeftOut, LeftOut{r.Path, d.State, d.Rule, d.File})
		}
	}
	for p, why := range u.passed {
		c.LeftOut = append(c.LeftOut, LeftOut{p, site.LeftOut, why, ""})
	}
	slices.SortFunc(c.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	c.DeadLinks = append(c.DeadLinks, u.deadLinks(ctx)...)
	return c, nil
}
