package edit

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
	"docent/site"
	"docent/site/markup"
	"docent/site/script"
)

// moveInPrograms makes the navigation follow a page that has moved, where it names it in texts. namings, was and
// sidebar are those of before.
func (r *Run) moveInPrograms(namings []pages.Naming, was, sidebar, from, to string) error {
	edits := map[string][]markup.Edit{}
	var order []string
	is, now := r.Site.ID(to)
	for _, n := range namings {
		var text string
		switch {
		case n.ID != "" && (is == "" || now != sidebar):
			continue // a sidebar of other pages: it is said below
		case n.ID != "":
			text = is
			if strings.HasPrefix(n.Value, "/") {
				text = "/" + text
			}
		default:
			dest := "/" + strings.TrimPrefix(n.Address, "/")
			next, ok := strings.CutPrefix(r.Site.Address(from, n.To, to, dest), "/"+strings.TrimPrefix(n.Base, "/"))
			if !ok {
				continue
			}
			if text = next; n.Base == "" && strings.HasPrefix(n.Value, "/") {
				text = "/" + text
			}
		}
		if text == n.Value {
			continue
		}
		if !slices.Contains(order, n.File) {
			order = append(order, n.File)
		}
		edits[n.File] = append(edits[n.File], markup.Edit{Span: markup.Span{Start: n.Start, End: n.End}, New: []byte(text)})
	}
	done := 0
	for _, f := range order {
		src, err := r.Files.Read(f)
		if err != nil {
			return err
		}
		for i, e := range edits[f] {
			edits[f][i].New = []byte(script.Quote(string(e.New), src[e.Span.Start]))
		}
		out, err := markup.Apply(src, edits[f])
		if err != nil {
			return err
		}
		if r.Files.Rewrite(f, out) != nil {
			continue // it is said below
		}
		r.Tally(f, "navigation entries changed", len(edits[f]))
		done += len(edits[f])
	}
	if done > 0 {
		r.Did("Changed %s in %s", say.Count(done, "navigation entry"), say.List(order))
	}
	r.stillNamed(from, was)
	return nil
}

// dropFromPrograms takes a page out of the navigation, where it names it in texts. It is called while the page is
// there.
func (r *Run) dropFromPrograms(page string) error {
	var files []string
	for _, f := range r.Site.Programs() {
		n := 0
		for {
			list := r.Site.Namings(f, page)
			i := slices.IndexFunc(list, func(n pages.Naming) bool { return n.Cut[1] > n.Cut[0] })
			if i < 0 {
				break
			}
			src, err := r.Files.Read(f)
			if err != nil {
				return err
			}
			out := slices.Concat(src[:list[i].Cut[0]], src[list[i].Cut[1]:])
			if script.Texts(string(out)) == nil && len(list) > 1 || r.Files.Rewrite(f, out) != nil {
				break
			}
			n++
		}
		if n > 0 {
			r.Tally(f, "navigation entries removed", n)
			files = append(files, f)
		}
	}
	if len(files) > 0 {
		r.Did("Removed it from the navigation in %s", say.List(files))
	}
	return nil
}

// tables are files that list pages for generators, or for parts of them, that are not edited.
var tables = regexp.MustCompile(
	`(?i)(?:^|/)(?:_?toc\.ya?ml|\.pages|_?meta\.(?:json|[jt]sx?)|_sidebar\.(?:json|ya?ml))$`)

// stillNamed says which files name a page that is no longer there. id is its name in programs.
func (r *Run) stillNamed(page, id string) {
	const most = 2000
	config, err := r.Files.Read(r.Site.NavigationFile())
	// it takes in other files
	split := r.Site.Generator.Kind == api.SiteMintlify && err == nil && bytes.Contains(config, []byte(`"$ref"`))
	programs := r.Site.Programs()
	looked := 0
	for _, f := range r.Files.List() {
		if !r.mayName(f, split && path.Ext(f) == ".json" || slices.Contains(programs, f)) {
			continue
		}
		if looked++; looked > most {
			return
		}
		src, err := r.Files.Read(f)
		if err == nil && workspace.IsText(src) && namesAny(f, string(src), r.namesFrom(f, page, id)) {
			r.Kept("%s still names %s: change it by hand", r.Site.Show(f), r.Site.Show(page))
		}
	}
}

// mayName reports whether a file may list pages and was not edited by this operation. known says that it lists some.
func (r *Run) mayName(f string, known bool) bool {
	rel, ok := site.Relative(r.Files.DocsDir, f)
	switch {
	case !ok || strings.Contains("/"+f, "/node_modules/"):
		return false
	case f == r.Site.NavigationFile() && path.Ext(f) == ".json" && r.Files.Writable(f) == nil:
		return false // it was edited, and its redirects name what was there
	case r.Counts[f]["redirects changed"] > 0:
		return false // likewise
	case workspace.IsPage(f):
		return false // its references were followed
	}
	return known || site.Concerns(rel) || tables.MatchString(f)
}

// namesFrom are the names that a file may have for a page.
func (r *Run) namesFrom(f, page, id string) (names []string) {
	stem := workspace.Stem(page)
	for _, dir := range []string{path.Dir(f), r.Files.DocsDir, r.Site.Root(), r.Site.Generator.Content()} {
		if dir == "" || dir == "." {
			names = append(names, stem)
		} else if name, ok := strings.CutPrefix(stem, dir+"/"); ok {
			names = append(names, name)
		}
	}
	if id != "" {
		names = append(names, id)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesAny reports whether a file names one of some paths as a whole: in quotes, on a line of its own, or in a list of
// YAML.
func namesAny(file, src string, names []string) bool {
	quoted := slices.Contains([]string{".json", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".jsx", ".tsx", ".toml"},
		path.Ext(file))
	for _, name := range names {
		q := regexp.QuoteMeta(name) + `(?:\.mdx?|\.markdown|\.html?)?`
		expr := `["'` + "`" + `]/?` + q + `/?(?:#[^"'` + "`" + `\n]*)?["'` + "`" + `]`
		if !quoted {
			expr += `|(?m:^[ \t]*(?:-[ \t]+)?(?:[\w "']+:[ \t]+|[^\n<]*<)?/?` + q +
				`>?[ \t]*\r?$)|[\[{,][ \t]*(?:[^\n,\[\]{}]+:[ \t]+)?/?` + q + `[ \t]*[,\]}]`
		}
		if regexp.MustCompile(expr).MatchString(src) {
			return true
		}
	}
	return false
}
