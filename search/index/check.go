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
	Address     string         `json:"address,omitempty"` // public URL of the documentation; empty if nobody says
	AddressFrom string         `json:"addressFrom,omitempty"`
	Pages       []CheckedPage  `json:"pages"`
	LeftOut     []LeftOut      `json:"leftOut"`
	DeadLinks   []DeadLink     `json:"deadLinks"`
	Warnings    []site.Warning `json:"warnings"`
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
	if c.Site == "" {
		c.Site = api.SitePlain
	}
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
	c.DeadLinks = append(c.DeadLinks, u.deadLinks()...)
	return c, nil
}

// A linkChecker knows where the links of public pages may lead.
type linkChecker struct {
	*Update
	pages   *site.Map       // by anything that a link may call them
	folders map[string]bool // that hold pages: the generator lists these at an address of their own
	there   map[string]bool // files, without what makes pages of programs end differently
	base    string          // path of the site's address
}

// deadLinks are the links of public pages that lead to no public page.
func (u *Update) deadLinks() (out []DeadLink) {
	c := linkChecker{Update: u, pages: u.where.Map(), folders: make(map[string]bool),
		there: make(map[string]bool, len(u.files))}
	for _, r := range u.records {
		d, ok := u.decided[r.Path]
		if !ok {
			continue
		}
		p := r.Page()
		p.Aliases = append(slices.Clone(r.Aliases), "/"+site.PageKey(r.Path))
		c.pages.Add(p, d.State.IsPage())
		shown, _ := c.pages.Address(r.Path)
		if r.Kind == page.KindPage {
			for dir := path.Dir(site.AddressKey(shown)); dir != "." && dir != "/"; dir = path.Dir(dir) {
				c.folders[dir] = true
			}
		}
	}
	for f := range u.files {
		c.there[f] = true
		if ext := path.Ext(f); slices.Contains([]string{".js", ".jsx", ".ts", ".tsx", ".vue", ".astro"}, ext) {
			c.there[strings.TrimSuffix(strings.TrimSuffix(f, ext), "/index")] = true
		}
	}
	if at, err := url.Parse(u.report.SiteURL); err == nil {
		c.base = strings.Trim(at.Path, "/")
	}
	for _, r := range u.records {
		src := u.sources[r]
		if r.Kind != page.KindPage || src == nil {
			continue
		}
		looked := make(map[string]bool)
		for _, dest := range src.Dests {
			to, ok := withinSite(dest)
			if !ok || looked[to] {
				continue
			}
			looked[to] = true
			if paths := c.meant(r, to); len(paths) > 0 {
				if why := c.dead(paths); why != "" {
					out = append(out, DeadLink{r.Path, dest, why})
				}
			}
		}
	}
	return out
}

// meant are the paths that a link on a page may mean; none if only the theme's templates know.
func (c *linkChecker) meant(r *page.Record, to string) []string {
	if rooted, ok := strings.CutPrefix(to, "/"); ok {
		paths := []string{rooted}
		if below, ok := strings.CutPrefix(rooted+"/", c.base+"/"); ok && c.base != "" {
			paths = append(paths, below)
		}
		return paths
	}
	hugo := c.where.Kind == api.SiteHugo
	if hugo && !strings.Contains(to, "/") && path.Ext(to) == "" {
		return nil // a word that the theme's templates know
	}
	// Relative to the file or, if it is an address, to that of the page.
	shown, _ := c.pages.Address(r.Path)
	paths := []string{path.Join(path.Dir(r.Path), to), path.Join("/", shown, to),
		path.Join("/", path.Dir(strings.TrimSuffix(shown, "/")), to)}
	if hugo {
		paths = append(paths, to) // as its templates resolve links
	}
	return paths
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
	case ext == "", ext == ".html", ext == ".htm", ext == ".md", ext == ".mdx", ext == ".markdown",
		strings.HasSuffix(dest, "/"):
		return dest, true
	default: // a picture or a download, or a name with a dot in it
		return dest, strings.ContainsAny(ext, " 0123456789")
	}
}

// dead says why none of the paths that a link may mean is a page; empty if one is.
func (c *linkChecker) dead(paths []string) string {
	hidden := "" // a file that one of them names and the site does not show
	for _, p := range paths {
		p = strings.TrimPrefix(path.Clean("/"+p), "/")
		names := []string{site.PageKey(p), site.AddressKey(p)}
		if locale, rest, ok := strings.Cut(p, "/"); ok && localeCode.MatchString(locale) {
			names = append(names, site.PageKey(rest)) // a page that is not translated is shown in its own language
		}
		for _, name := range names {
			file, known := c.pages.Find(name)
			if known && c.pages.Shows(file) || c.lives(name) {
				return ""
			}
			if known {
				hidden = file
			}
		}
	}
	if hidden != "" {
		return fmt.Sprintf("%s is no public page: %s", hidden, c.decided[hidden].Rule)
	}
	if slices.ContainsFunc(paths, c.isFile) {
		return ""
	}
	return "there is no such page"
}

// lives reports whether the site shows something at an address that belongs to no page.
func (c *linkChecker) lives(name string) bool {
	kind := c.where.Kind
	if kind == api.SiteDocusaurus {
		if file, ok := c.pages.Find(site.WithoutNumbers(name)); ok && c.pages.Shows(file) {
			return true
		}
	}
	return name == "" || c.folders[name] && (kind == api.SiteHugo || kind == api.SiteDocusaurus) || c.where.Redirects(name)
}

// isFile reports whether a path is that of a file which is no page: a download, or a page that a program makes.
func (c *linkChecker) isFile(p string) bool {
	p = strings.Trim(path.Clean("/"+p), "/")
	for _, folder := range []string{"", "static", "public", "src/pages", "pages"} {
		for _, above := range []string{c.project.DocsDir, path.Dir(c.where.Config()), c.where.Content()} {
			if c.there[path.Join(above, folder, p)] && (!site.IsPage(p) || folder != "") {
				return true
			}
		}
	}
	return false
}
