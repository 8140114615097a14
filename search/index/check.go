package index

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/search/page"
	"docent/site"
)

// A Check says what of a project's documentation is public, and what is not.
type Check struct {
	Project     api.ProjectID  `json:"project"`
	Commit      string         `json:"commit"`
	Site        api.SiteKind   `json:"site"`
	Config      string         `json:"config,omitempty"`  // the file that configures the site
	Address     string         `json:"address,omitempty"` // where readers find the documentation; empty where nobody says
	AddressFrom string         `json:"addressFrom,omitempty"`
	Pages       []CheckedPage  `json:"pages"`
	LeftOut     []LeftOut      `json:"leftOut"`
	DeadLinks   []DeadLink     `json:"deadLinks"`
	Warnings    []site.Warning `json:"warnings"`
}

// A CheckedPage is a page that is public.
type CheckedPage struct {
	Path  string     `json:"path"` // relative to the documentation folder
	URL   string     `json:"url"`
	State site.State `json:"state"`
	Why   string     `json:"why"`
	File  string     `json:"file,omitempty"` // that says so; empty where it is the generator's own rule
}

// LeftOut is a file that could be a page and is none.
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
func Examine(ctx context.Context, o Options, project api.Project, tree Tree) (Check, error) {
	u := newUpdate(o, project, tree)
	u.passed = make(map[string]string)
	if err := u.begin(ctx, func(int, int) {}); err != nil {
		return Check{}, err
	}
	project = u.project
	c := Check{
		Project: project.ID, Commit: tree.Commit(), Site: u.where.Kind, Config: u.where.Config(), Address: u.report.SiteURL, AddressFrom: u.report.SiteURLFrom,
		Pages: []CheckedPage{}, LeftOut: []LeftOut{}, DeadLinks: []DeadLink{}, Warnings: append([]site.Warning{}, u.where.Warnings()...),
	}
	if c.Site == "" {
		c.Site = api.SitePlain
	}
	taken := make(map[string]string) // pages by their URLs
	for _, r := range u.records {
		d, ok := u.decided[r.Path]
		switch {
		case !ok:
		case d.State.IsPage():
			r.Shown = u.where.Shown(r.Page())
			at := r.URL(c.Address, "")
			c.Pages = append(c.Pages, CheckedPage{r.Path, at, d.State, d.Rule, d.File})
			if first := taken[at]; first != "" {
				c.Warnings = append(c.Warnings, site.Warning{File: path.Join(project.DocsDir, r.Path), Text: "has the address of " + first + ": readers find only one of them"})
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
	c.DeadLinks = append(c.DeadLinks, u.deadLinks()...)
	return c, nil
}

// deadLinks are the links of public pages that lead to no public page.
func (u *Update) deadLinks() (out []DeadLink) {
	targets := make(map[string]*page.Record) // by anything that a link may call it
	name := func(key string, r *page.Record) {
		if old := targets[key]; old == nil || old.Kind != page.KindPage && r.Kind == page.KindPage {
			targets[key] = r
		}
	}
	folders := make(map[string]bool) // that hold pages: the generator lists these at an address of their own
	for _, r := range u.records {
		if _, ok := u.decided[r.Path]; !ok {
			continue
		}
		shown := u.where.Shown(r.Page())
		name(site.PageKey(r.Path), r)
		name(site.AddressKey(shown), r)
		for _, a := range r.Aliases {
			name(site.AddressKey(a), r)
		}
		for dir := path.Dir(site.AddressKey(shown)); r.Kind == page.KindPage && dir != "." && dir != "/"; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	there := make(map[string]bool, len(u.sizes)) // without what makes pages of programs end differently
	for f := range u.sizes {
		there[f] = true
		if ext := path.Ext(f); slices.Contains([]string{".js", ".jsx", ".ts", ".tsx", ".vue", ".astro"}, ext) {
			there[strings.TrimSuffix(strings.TrimSuffix(f, ext), "/index")] = true
		}
	}
	base := ""
	if at, err := url.Parse(u.report.SiteURL); err == nil {
		base = strings.Trim(at.Path, "/")
	}
	for _, r := range u.records {
		src := u.sources[r]
		if r.Kind != page.KindPage || src == nil {
			continue
		}
		shown := u.where.Shown(r.Page())
		said := make(map[string]bool)
		for _, dest := range src.Dests {
			to, ok := withinSite(dest)
			if !ok || said[to] {
				continue
			}
			said[to] = true
			var keys []string
			if rooted, ok := strings.CutPrefix(to, "/"); ok {
				keys = []string{rooted}
				if below, ok := strings.CutPrefix(rooted+"/", base+"/"); ok && base != "" {
					keys = append(keys, below)
				}
			} else if u.where.Kind == api.SiteHugo && !strings.Contains(to, "/") && path.Ext(to) == "" {
				continue // a word that the theme's templates know
			} else { // relative to the file or, where it is an address, to that of the page
				keys = []string{path.Join(path.Dir(r.Path), to), path.Join("/", shown, to), path.Join("/", path.Dir(strings.TrimSuffix(shown, "/")), to)}
				if u.where.Kind == api.SiteHugo {
					keys = append(keys, to) // as its templates resolve links
				}
			}
			if why := u.dead(keys, targets, folders, there); why != "" {
				out = append(out, DeadLink{r.Path, dest, why})
			}
		}
	}
	return out
}

var localeCode = regexp.MustCompile(`^[a-z]{2}(-[A-Za-z]{2,4})?$`)

// withinSite is the path of a link that stays on the site.
func withinSite(dest string) (string, bool) {
	if i := strings.IndexAny(dest, "#?"); i >= 0 {
		dest = dest[:i]
	}
	dest = strings.TrimPrefix(dest, "@site/")
	if dest == "" || strings.HasPrefix(dest, "//") || strings.ContainsAny(dest, ":{}<>") {
		return "", false
	}
	if plain, err := url.PathUnescape(dest); err == nil {
		dest = plain
	}
	switch ext := strings.ToLower(path.Ext(dest)); {
	case ext == "", ext == ".html", ext == ".htm", ext == ".md", ext == ".mdx", ext == ".markdown", strings.HasSuffix(dest, "/"):
		return dest, true
	default: // a picture or a download, or a name with a dot in it
		return dest, strings.ContainsAny(ext, " 0123456789")
	}
}

// dead says why none of the paths that a link may mean is a page; empty where one is.
func (u *Update) dead(keys []string, targets map[string]*page.Record, folders, there map[string]bool) string {
	var out *page.Record
	for _, key := range keys {
		key = strings.TrimPrefix(path.Clean("/"+key), "/")
		meant := []string{site.PageKey(key), site.AddressKey(key)}
		if locale, rest, ok := strings.Cut(key, "/"); ok && localeCode.MatchString(locale) {
			meant = append(meant, site.PageKey(rest)) // a page that is not translated is shown in its own language
		}
		for _, k := range meant {
			switch r := targets[k]; {
			case r != nil && r.Kind == page.KindPage:
				return ""
			case r != nil:
				out = r
			}
			if u.where.Kind == api.SiteDocusaurus {
				if r := targets[site.WithoutNumbers(k)]; r != nil && r.Kind == page.KindPage {
					return ""
				}
			}
			if folders[k] && (u.where.Kind == api.SiteHugo || u.where.Kind == api.SiteDocusaurus) || k == "" || u.where.Redirects(k) {
				return ""
			}
		}
	}
	if out != nil {
		d := u.decided[out.Path]
		return fmt.Sprintf("%s is no public page: %s", out.Path, d.Rule)
	}
	for _, key := range keys {
		key = strings.Trim(path.Clean("/"+key), "/")
		for _, folder := range []string{"", "static", "public", "src/pages", "pages"} {
			for _, above := range []string{u.project.DocsDir, path.Dir(u.where.Config()), u.where.Content()} {
				if there[path.Join(above, folder, key)] && (!site.IsPage(key) || folder != "") {
					return ""
				}
			}
		}
	}
	return "there is no such page"
}
