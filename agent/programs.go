package agent

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"docent/api"
	"docent/markup"
	"docent/site"
)

// A naming is a place where a navigation that is a program names a page.
type naming struct {
	file string
	site.Name
	to target // of an address
}

// programs are the files that hold the navigation as programs.
func (s *documentation) programs() []string {
	var files []string
	for _, f := range s.ws.files() {
		if rel, ok := site.Relative(s.ws.docsDir, f); ok {
			files = append(files, rel)
		}
	}
	out := s.generator.Programs(files)
	for i, f := range out {
		out[i] = path.Join(s.ws.docsDir, f)
	}
	return out
}

// id is how programs name a page, and the program that may.
func (s *documentation) id(file string) (id, sidebar string) {
	rel, _ := site.Relative(s.ws.docsDir, file)
	at := site.Page{Path: rel}
	if p, err := s.page(file); err == nil {
		at = site.ReadPage(rel, p.Front.Values)
	}
	return s.generator.ID(at)
}

// namings are the places in a program that name a page.
func (s *documentation) namings(program, page string) (out []naming) {
	src, err := s.ws.read(program)
	if err != nil || !isText(src) {
		return nil
	}
	rel, _ := site.Relative(s.ws.docsDir, program)
	id, sidebar := s.id(page)
	for _, n := range s.generator.Names(rel, string(src)) {
		if n.ID != "" {
			if n.ID == id && (program == sidebar || n.Key == "docId" || s.generator.Kind == api.SiteStarlight) {
				out = append(out, naming{file: program, Name: n})
			}
			continue
		}
		if t := s.resolve(page, markup.Link{Dest: "/" + strings.TrimPrefix(n.Address, "/")}); t.file == page {
			out = append(out, naming{program, n, t})
		}
	}
	return out
}

// named are all places in programs that name a page.
func (s *documentation) named(page string) (out []naming) {
	for _, program := range s.programs() {
		out = append(out, s.namings(program, page)...)
	}
	return out
}

// moveInPrograms makes the navigation follow a page that has moved, where it names it in texts. namings, was and sidebar are
// those of before.
func (r *run) moveInPrograms(namings []naming, was, sidebar, from, to string) error {
	edits := map[string][]markup.Edit{}
	var order []string
	is, now := r.site.id(to)
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
			next, ok := strings.CutPrefix(r.site.address(from, n.to, to, dest), "/"+strings.TrimPrefix(n.Base, "/"))
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
		if !slices.Contains(order, n.file) {
			order = append(order, n.file)
		}
		edits[n.file] = append(edits[n.file], markup.Edit{Span: markup.Span{Start: n.Start, End: n.End}, New: []byte(text)})
	}
	done := 0
	for _, f := range order {
		src, err := r.ws.read(f)
		if err != nil {
			return err
		}
		for i, e := range edits[f] {
			edits[f][i].New = []byte(site.Quote(string(e.New), src[e.Span.Start]))
		}
		out, err := markup.Apply(src, edits[f])
		if err != nil {
			return err
		}
		if r.ws.rewrite(f, out) != nil {
			continue // it is said below
		}
		r.tally(f, "navigation entries changed", len(edits[f]))
		done += len(edits[f])
	}
	if done > 0 {
		r.did("Changed %s in %s", count(done, "navigation entry"), listing(order))
	}
	r.stillNamed(from, was)
	return nil
}

// dropFromPrograms takes a page out of the navigation, where it names it in texts. It is called while the page is there.
func (r *run) dropFromPrograms(page string) error {
	var files []string
	for _, f := range r.site.programs() {
		n := 0
		for {
			list := r.site.namings(f, page)
			i := slices.IndexFunc(list, func(n naming) bool { return n.Cut[1] > n.Cut[0] })
			if i < 0 {
				break
			}
			src, err := r.ws.read(f)
			if err != nil {
				return err
			}
			out := slices.Concat(src[:list[i].Cut[0]], src[list[i].Cut[1]:])
			if site.Texts(string(out)) == nil && len(list) > 1 || r.ws.rewrite(f, out) != nil {
				break
			}
			n++
		}
		if n > 0 {
			r.tally(f, "navigation entries removed", n)
			files = append(files, f)
		}
	}
	if len(files) > 0 {
		r.did("Removed it from the navigation in %s", listing(files))
	}
	return nil
}

// tables are files that list pages for generators, or for parts of them, that are not edited.
var tables = regexp.MustCompile(`(?i)(?:^|/)(?:_?toc\.ya?ml|\.pages|_?meta\.(?:json|[jt]sx?)|_sidebar\.(?:json|ya?ml)|[^/]*\.rst)$`)

// stillNamed says which files name a page that is not there any more. id is its name in programs.
func (r *run) stillNamed(page, id string) {
	const most = 2000
	config, err := r.ws.read(r.site.navFile())
	split := r.site.generator.Kind == api.SiteMintlify && err == nil && bytes.Contains(config, []byte(`"$ref"`)) // it takes in other files
	programs := r.site.programs()
	looked := 0
	for _, f := range r.ws.files() {
		rel, ok := site.Relative(r.ws.docsDir, f)
		if !ok || strings.Contains("/"+f, "/node_modules/") {
			continue
		}
		if f == r.site.navFile() && path.Ext(f) == ".json" && r.ws.writable(f) == nil {
			continue // it was edited, and its redirects name what was there
		}
		tree := false // a page of Sphinx's that lists others
		if isPage(f) {
			p, err := r.site.page(f)
			if tree = err == nil && bytes.Contains(p.Src, []byte("{toctree}")); !tree {
				continue
			}
		}
		if !tree && !site.Concerns(rel) && !tables.MatchString(f) && !slices.Contains(programs, f) && !(split && path.Ext(f) == ".json") {
			continue
		}
		if looked++; looked > most {
			return
		}
		src, err := r.ws.read(f)
		if err != nil || !isText(src) {
			continue
		}
		names := []string{}
		for _, dir := range []string{path.Dir(f), r.ws.docsDir, r.site.root, r.site.generator.Content()} {
			if dir == "" || dir == "." {
				names = append(names, stem(page))
			} else if name, ok := strings.CutPrefix(stem(page), dir+"/"); ok {
				names = append(names, name)
			}
		}
		if id != "" {
			names = append(names, id)
		}
		slices.Sort(names)
		if names = slices.Compact(names); namesAny(f, string(src), names) {
			r.kept("%s still names %s: change it by hand", r.site.show(f), r.site.show(page))
		}
	}
}

// namesAny tells whether a file names one of some paths as a whole: in quotes, on a line of its own, or in a list of YAML.
func namesAny(file, src string, names []string) bool {
	quoted := slices.Contains([]string{".json", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".jsx", ".tsx", ".toml"}, path.Ext(file))
	for _, name := range names {
		q := regexp.QuoteMeta(name) + `(?:\.mdx?|\.markdown|\.html?)?`
		expr := `["'` + "`" + `]/?` + q + `/?(?:#[^"'` + "`" + `\n]*)?["'` + "`" + `]`
		if !quoted {
			expr += `|(?m:^[ \t]*(?:-[ \t]+)?(?:[\w "']+:[ \t]+|[^\n<]*<)?/?` + q + `>?[ \t]*\r?$)|[\[{,][ \t]*(?:[^\n,\[\]{}]+:[ \t]+)?/?` + q + `[ \t]*[,\]}]`
		}
		if regexp.MustCompile(expr).MatchString(src) {
			return true
		}
	}
	return false
}
