package agent

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"docent/api"
	"docent/markup"
	"docent/site"
)

// address writes the destination of a link from a page to a file, in the form that the link had when it led to t.
func (s *documentation) address(from string, t target, file, orig string) string {
	p, rest := orig, ""
	if i := strings.IndexAny(orig, "?#"); i >= 0 {
		p, rest = orig[:i], orig[i:]
	}
	if t.form == sameForm || t.byAlias {
		return orig
	}
	name, slash := file, strings.HasSuffix(p, "/")
	ext := strings.ToLower(path.Ext(strings.TrimSuffix(p, "/")))
	html := ext == ".html" || ext == ".htm"
	folder, beside := stem(from), path.Dir(from) // what relative links start from
	switch {
	case t.byAddress:
		at := s.addressOf(file)
		if at == t.shown && (t.form == rootForm || t.form == siteForm) {
			return orig // it is shown where it was
		}
		name = site.AddressKey(at)
		if html && name != "" && !strings.HasSuffix(at, "/") {
			name += ext
			slash = false
		} else if isIndex(t.file) && !isIndex(file) {
			slash = s.slashed()
		}
		folder = site.AddressKey(s.addressOf(from))
		beside = path.Dir(folder)
	case isPage(file):
		last := strings.ToLower(stem(path.Base(p)))
		explicit := last == "index" || last == "readme" || last == "_index"
		switch {
		case pageExts[ext]:
		case html:
			name = stem(file) + ext
		default:
			name = stem(file)
			if isIndex(file) && !explicit {
				name = path.Dir(file)
				if name == "." {
					name = ""
				}
			} else if isIndex(t.file) && !explicit {
				slash = s.slashed()
			}
		}
		if pageExts[ext] || html {
			slash = false
		}
	}
	rel := func(dir string) string {
		out := relative(dir, name)
		if out == "" {
			out = "."
		}
		if (strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") && s.dotted(from)) && !strings.HasPrefix(out, ".") {
			out = "./" + out
		}
		return out
	}
	below := func() string { // the name from the root that the link starts at
		out := name
		if !t.byAddress && t.root != "" {
			out = strings.TrimPrefix(strings.TrimPrefix(name, t.root), "/")
		}
		for _, pub := range []string{"public/", "static/"} {
			if !isPage(file) && strings.HasPrefix(out, pub) && !strings.HasPrefix(strings.TrimPrefix(p, "/"), pub) {
				return strings.TrimPrefix(out, pub)
			}
		}
		return out
	}
	var out string
	switch t.form {
	case rootForm:
		out = "/" + path.Join(t.prefix, below())
	case siteForm:
		out = s.own + "/" + below()
		if slash {
			out = strings.TrimSuffix(out, "/") + "/"
		}
		return out + rest
	case fileForm:
		out = rel(path.Dir(from))
	case urlForm:
		out = rel(folder)
	case besideForm:
		out = rel(beside)
	}
	if slash && !strings.HasSuffix(out, "/") {
		out += "/"
	} else if !slash && out != "/" {
		out = strings.TrimSuffix(out, "/")
	}
	if strings.Contains(p, "%") || strings.ContainsAny(out, " ()") {
		out = (&url.URL{Path: out}).EscapedPath()
		out = strings.NewReplacer("(", "%28", ")", "%29").Replace(out)
	}
	return out + rest
}

// dotted tells whether links to a page's neighbours begin with "./": on the page or, where it has none, on the site.
func (s *documentation) dotted(from string) bool {
	count := func(p *markup.Page) (n int) {
		for _, l := range p.Links {
			d, _, ok := localPath(l.Dest)
			switch {
			case !ok || d == "" || l.Kind == markup.ImportLink || strings.HasPrefix(d, "/") || strings.HasPrefix(d, "../"):
			case strings.HasPrefix(d, "./"):
				n++
			default:
				n--
			}
		}
		return n
	}
	if s.ws.exists(from) {
		if p, err := s.page(from); err == nil {
			if n := count(p); n != 0 {
				return n > 0
			}
		}
	}
	if s.dots == nil {
		n := 0
		if all, err := s.all(); err == nil {
			for _, p := range all {
				n += count(p)
			}
		}
		dots := n > 0
		s.dots = &dots
	}
	return *s.dots
}

// relative gives the way from a folder to a file, both relative to the repository.
func relative(dir, to string) string {
	if dir == "." || dir == "" {
		return to
	}
	a, b := strings.Split(dir, "/"), strings.Split(to, "/")
	if to == "" {
		b = nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.TrimSuffix(strings.Repeat("../", len(a)-i)+strings.Join(b[i:], "/"), "/")
}

// Create a page.
type createOp struct {
	page, title, description, group, content string
	unlocated
}

func (o *createOp) todo() string { return "Create page " + o.page }

func (o *createOp) run(r *run) error {
	f, err := r.site.fresh(o.page)
	if err != nil {
		return err
	}
	if r.ws.exists(f) {
		return refuse("%s exists already", r.site.show(f))
	}
	for _, ext := range []string{".md", ".mdx", ".markdown"} {
		if other := r.ws.twin(stem(f) + ext); other != "" {
			return refuse("%s exists already and has the same address", r.site.show(other))
		}
	}
	title := oneLine(o.title, 200)
	if title == "" {
		title = humanise(stem(path.Base(f)))
	}
	out, err := r.site.compose(f, title, oneLine(o.description, 500), o.content)
	if err != nil {
		return err
	}
	if err := r.ws.write(f, out); err != nil {
		return err
	}
	r.tally(f, "page created", 1)
	r.did("Created %s, %s", r.site.show(f), quote(title))
	r.headline("add the page %s", r.site.show(f))
	return r.listPage(f, title, o.group)
}

// listPage gives a new page its place in the navigation.
func (r *run) listPage(f, title, group string) error {
	nav, err := r.site.navigation()
	if err != nil {
		return err
	}
	if nav == nil {
		if group != "" {
			return refuse("the navigation of this site cannot be edited: %s", r.site.navWhy())
		}
		if r.site.generated() {
			r.kept("The navigation was not edited: %s", r.site.navWhy())
		}
		return nil
	}
	where, err := nav.add(f, title, group, "", "", false)
	if err != nil {
		if group != "" {
			return err
		}
		if _, ok := err.(*refusal); !ok {
			return err
		}
		r.kept("The page is in no navigation yet: %v. Say: add %s to navigation under \"…\"", err, r.site.show(f))
		return nil
	}
	if err := r.ws.write(nav.file, nav.src); err != nil {
		return err
	}
	r.tally(nav.file, "navigation entries added", 1)
	r.did("Added it to the navigation under %s", quote(where))
	return nil
}

func humanise(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) })
	if len(words) == 0 {
		return name
	}
	first := []rune(words[0])
	first[0] = unicode.ToUpper(first[0])
	words[0] = string(first)
	return strings.Join(words, " ")
}

// compose writes a new page in the manner of the site's other pages.
func (s *documentation) compose(f, title, description, content string) ([]byte, error) {
	all, err := s.all()
	if err != nil {
		return nil, err
	}
	front, quoted, toml, crlf := 0, 0, 0, 0
	for _, p := range all {
		if eolOf(p.Src) == "\r\n" {
			crlf++
		}
		if _, ok := p.Front.Values["title"]; !ok {
			continue
		}
		front++
		if p.Front.Kind == "toml" {
			toml++
		}
		if at, ok := p.FrontValue("title"); ok && at.Start < at.End && p.Src[at.Start] == '"' {
			quoted++
		}
	}
	body := strings.Trim(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	if p := markup.Parse(f, []byte(body)); p.Front.Kind != "" {
		return nil, refuse("the content has front matter of its own; give title and description in the instruction")
	}
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	switch {
	case s.generator.Kind != api.SiteMintlify && len(all) > 0 && front*2 < len(all) && description == "":
		if !strings.HasPrefix(body, "# ") {
			b.WriteString("# " + title + "\n\n")
		}
	case toml*2 > front:
		b.WriteString("+++\ntitle = \"" + escape.Replace(title) + "\"\n")
		if description != "" {
			b.WriteString("description = \"" + escape.Replace(description) + "\"\n")
		}
		b.WriteString("+++\n\n")
	default:
		p := markup.Parse(f, []byte("---\n---\n"))
		set := func(key, value string) error {
			if quoted*2 >= front || s.generator.Kind == api.SiteMintlify {
				at := p.Front.Body.End
				out, err := markup.Apply(p.Src, []markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(key + ": \"" + escape.Replace(value) + "\"\n")}})
				if err != nil {
					return err
				}
				p = markup.Parse(f, out)
				return nil
			}
			edits, err := p.SetFront(key, value)
			if err != nil {
				return refuse("%v", err)
			}
			out, err := markup.Apply(p.Src, edits)
			p = markup.Parse(f, out)
			return err
		}
		if err := set("title", title); err != nil {
			return nil, err
		}
		if description != "" {
			if err := set("description", description); err != nil {
				return nil, err
			}
		}
		b.Write(p.Src)
		b.WriteString("\n")
	}
	out := strings.TrimRight(b.String()+body, "\n") + "\n"
	if crlf*2 > len(all) {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	}
	return []byte(out), nil
}

// Move a page; links, navigation and redirects follow.
type moveOp struct {
	from, to string
	folder   bool // it was said to be one
	unlocated
}

func (o *moveOp) todo() string { return fmt.Sprintf("Move %s to %s", o.from, o.to) }

func (o *moveOp) run(r *run) error {
	below, dir := r.site.below(strings.Trim(strings.TrimPrefix(o.from, "./"), "/"))
	if dir && (o.folder || strings.HasSuffix(o.from, "/")) {
		return o.moveFolder(r, below)
	}
	if o.folder {
		return refuse("there is no folder %s", quote(o.from))
	}
	from, err := r.site.find(o.from)
	if err != nil {
		return err
	}
	if dir && isIndex(from) && !strings.EqualFold(path.Base(o.from), path.Base(from)) {
		return refuse("%s is a folder; say “move the folder …”, or name one of its pages, as %s", quote(o.from), r.site.show(from))
	}
	if !isPage(from) {
		return refuse("%s is no Markdown page", r.site.show(from))
	}
	if err := r.ws.writable(from); err != nil {
		return err
	}
	name := o.to
	dirName := strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if strings.HasSuffix(name, "/") || !isPage(name) && dirName != "" && cleanPath(dirName) == nil && (r.ws.isDir(path.Join(r.ws.docsDir, dirName)) || r.ws.isDir(path.Join(r.site.root, dirName))) {
		name = strings.TrimSuffix(name, "/") + "/" + path.Base(from)
	}
	if !strings.Contains(strings.TrimPrefix(name, "/"), "/") && !isPage(name) && !strings.HasPrefix(name, "/") {
		name = path.Join(path.Dir(r.site.show(from)), name)
	}
	if !isPage(name) {
		name += path.Ext(from)
	}
	to, err := r.site.fresh(name)
	if err != nil {
		return err
	}
	if to == from {
		return idle("%s is there already", r.site.show(to))
	}
	if r.ws.exists(to) {
		return refuse("%s exists already", r.site.show(to))
	}
	for _, ext := range []string{".md", ".mdx", ".markdown"} {
		if other := r.ws.twin(stem(to) + ext); other != "" && other != from {
			return refuse("%s exists already and has the same address", r.site.show(other))
		}
	}
	nav, err := r.site.navigation()
	if err != nil {
		return err
	}

	all, err := r.site.all()
	if err != nil {
		return err
	}
	type passage struct { // a link that has to follow
		page *markup.Page
		link markup.Link
		to   target
		file string
	}
	var follow []passage
	var self *markup.Page
	for _, p := range all {
		if p.Path == from {
			self = p
		}
		for _, l := range p.Links {
			if l.Kind == markup.ReferenceLink || l.Kind == markup.AutoLink {
				continue
			}
			t := r.site.resolve(p.Path, l)
			if !t.local || t.form == sameForm {
				continue
			}
			file := t.file
			switch {
			case file == from:
				file = to
			case p.Path != from || t.form == rootForm || t.form == siteForm:
				continue
			}
			follow = append(follow, passage{p, l, t, file})
		}
	}
	if self == nil {
		return refuse("%s cannot be read as text", r.site.show(from))
	}
	namings := r.site.named(from)
	id, sidebar := r.site.id(from)
	if err := r.ws.move(from, to); err != nil { // its new address is known from here on
		return err
	}
	edits := map[*markup.Page][]markup.Edit{}
	links, others := 0, 0
	for _, f := range follow {
		p, l, t, at := f.page, f.link, f.to, f.page.Path
		if at == from {
			at = to
		}
		var next string
		if f.file == "" { // leads nowhere that is known; it shall lead there still
			d, rest, ok := localPath(l.Dest)
			if !ok || strings.Contains(l.Dest, "%") {
				continue
			}
			next = relative(path.Dir(to), path.Join(path.Dir(from), d))
			if strings.HasPrefix(d, "./") && !strings.HasPrefix(next, ".") {
				next = "./" + next
			}
			if strings.HasSuffix(d, "/") {
				next += "/"
			}
			next += rest
		} else if l.Kind == markup.ImportLink {
			next = r.importPath(at, t, f.file, l.Dest)
		} else {
			next = r.site.address(at, t, f.file, l.Dest)
		}
		if next == l.Dest {
			continue
		}
		edits[p] = append(edits[p], markup.Edit{Span: l.At, New: []byte(next)})
		if p.Path == from {
			others++
		} else {
			links++
		}
	}
	for _, p := range inOrder(edits) {
		if p.Path == from {
			continue
		}
		if err := r.edit(p, edits[p], "links rewritten", len(edits[p])); err != nil {
			return err
		}
	}
	out, err := markup.Apply(self.Src, edits[self])
	if err != nil {
		return fmt.Errorf("rewrite the links of %s: %w", from, err)
	}
	if err := r.ws.write(to, out); err != nil {
		return err
	}
	r.moved(from, to)
	r.tally(to, "page moved", 1)
	if others > 0 {
		r.tally(to, "links rewritten", others)
	}
	r.did("Moved %s to %s; %s rewritten", r.site.show(from), r.site.show(to), count(links+others, "link"))
	r.headline("move %s to %s", r.site.show(from), r.site.show(to))
	if nav != nil {
		if err := r.moveInNavigation(nav, from, to); err != nil {
			return err
		}
	}
	return r.moveInPrograms(namings, id, sidebar, from, to)
}

// moveFolder moves the pages of a folder; its other files stay where they are.
func (o *moveOp) moveFolder(r *run, pages []string) error {
	from, to := strings.Trim(strings.TrimPrefix(o.from, "./"), "/"), strings.Trim(strings.TrimPrefix(o.to, "./"), "/")
	if len(pages) == 0 {
		return refuse("the folder %s has no pages", quote(o.from))
	}
	if err := cleanPath(to); err != nil {
		return err
	}
	if isPage(to) {
		return refuse("%s is a folder, and %s names a page", quote(o.from), quote(o.to))
	}
	root := ""
	for _, d := range []string{path.Join(r.ws.docsDir, from), path.Join(r.site.root, from), from} {
		if strings.HasPrefix(pages[0], d+"/") {
			root = d
			break
		}
	}
	target := path.Join(strings.TrimSuffix(root, from), to)
	if target == root || strings.HasPrefix(target, root+"/") {
		return refuse("%s lies within %s", quote(o.to), quote(o.from))
	}
	if _, there := r.site.below(to); there || r.ws.isDir(target) {
		return refuse("there is a folder %s already; move the pages into it one by one", quote(o.to))
	}
	titles := len(r.titles)
	for _, f := range pages {
		one := &moveOp{from: r.site.show(f), to: r.site.show(path.Join(target, strings.TrimPrefix(f, root+"/")))}
		if err := one.run(r); err != nil {
			return err
		}
	}
	r.titles = r.titles[:titles]
	r.headline("move %s/ to %s/", from, to)
	if n := len(slices.DeleteFunc(slices.Clone(r.ws.files()), func(f string) bool { return !strings.HasPrefix(f, root+"/") })); n > 0 {
		r.kept("Left %s in %s/, which are no pages", count(n, "file"), from)
	}
	return nil
}

// importPath writes the module of an import from a page to a file.
func (r *run) importPath(from string, t target, file, orig string) string {
	name := file
	if path.Ext(orig) == "" || !strings.HasSuffix(file, path.Ext(orig)) {
		name = stem(file)
	}
	if t.form == rootForm {
		if r.site.root != "" {
			name = strings.TrimPrefix(name, r.site.root+"/")
		}
		return "/" + name
	}
	out := relative(path.Dir(from), name)
	if !strings.HasPrefix(out, ".") {
		out = "./" + out
	}
	return out
}

// Delete a page.
type deletePageOp struct {
	page   string
	unlink bool
	unlocated
}

func (o *deletePageOp) todo() string {
	if o.unlink {
		return "Delete page " + o.page + " and the links to it"
	}
	return "Delete page " + o.page
}

func (o *deletePageOp) run(r *run) error {
	f, err := r.site.find(o.page)
	_, dir := r.site.below(strings.Trim(strings.TrimPrefix(o.page, "./"), "/"))
	if dir && (strings.HasSuffix(o.page, "/") || err == nil && isIndex(f) && !strings.EqualFold(path.Base(o.page), path.Base(f))) {
		return refuse("%s is a folder; name the page", quote(o.page))
	}
	if err != nil {
		return err
	}
	if !isPage(f) {
		return refuse("%s is no Markdown page", r.site.show(f))
	}
	if err := r.ws.writable(f); err != nil {
		return err
	}
	in, err := r.site.inbound(f)
	if err != nil {
		return err
	}
	in = slices.DeleteFunc(in, func(l inbound) bool { return l.page.Path == f })
	edits := map[*markup.Page][]markup.Edit{}
	listed := 0
	in = slices.DeleteFunc(in, func(l inbound) bool { // an entry of a page that is the navigation goes as a whole
		at, ok := summaryEntry(l)
		if ok {
			edits[l.page] = append(edits[l.page], markup.Edit{Span: at})
			listed++
		}
		return ok
	})
	summaries := inOrder(edits)
	if len(in) > 0 && !o.unlink {
		var from []string
		for _, l := range in {
			if n := r.site.show(l.page.Path); !slices.Contains(from, n) {
				from = append(from, n)
			}
		}
		return refuse("%s is linked to %s, from %s; end the instruction with “and unlink it” to turn these links into text", r.site.show(f), times(len(in)), listing(from))
	}
	n := 0
	for _, l := range in {
		switch l.link.Kind {
		case markup.InlineLink:
			if l.link.Inner.Start >= l.link.Inner.End {
				return refuse("a link to it in %s has no text to leave", r.site.show(l.page.Path))
			}
			edits[l.page] = append(edits[l.page],
				markup.Edit{Span: markup.Span{Start: l.link.Span.Start, End: l.link.Inner.Start}},
				markup.Edit{Span: markup.Span{Start: l.link.Inner.End, End: l.link.Span.End}})
		case markup.ReferenceDefinition:
			for _, use := range l.page.Links {
				if use.Kind == markup.ReferenceLink && use.Dest == strings.ReplaceAll(l.link.Dest, `\`, "") && use.Inner.Start < use.Inner.End {
					edits[l.page] = append(edits[l.page],
						markup.Edit{Span: markup.Span{Start: use.Span.Start, End: use.Inner.Start}},
						markup.Edit{Span: markup.Span{Start: use.Inner.End, End: use.Span.End}})
				}
			}
			edits[l.page] = append(edits[l.page], markup.Edit{Span: markup.Span{Start: lineStart(l.page.Src, l.link.Span.Start), End: lineAfter(l.page.Src, l.link.Span.End)}})
		default:
			return refuse("%s is used by a component or an import in %s, which cannot be unlinked", r.site.show(f), r.site.show(l.page.Path))
		}
		n++
	}
	for _, p := range inOrder(edits) {
		k := 0
		for _, l := range in {
			if l.page == p {
				k++
			}
		}
		what, n := "links turned into text", k
		if k == 0 {
			what, n = "navigation entries removed", len(edits[p])
		}
		if err := r.edit(p, edits[p], what, n); err != nil {
			return err
		}
	}
	nav, err := r.site.navigation()
	if err != nil {
		return err
	}
	id, _ := r.site.id(f)
	before := len(r.done)
	if err := r.dropFromPrograms(f); err != nil {
		return err
	}
	dropped := slices.Clone(r.done[before:])
	r.done = r.done[:before]
	if err := r.ws.remove(f); err != nil {
		return err
	}
	r.means(f)
	r.tally(f, "page deleted", 1)
	if n > 0 {
		r.did("Deleted %s; %s to it turned into text", r.site.show(f), count(n, "link"))
	} else {
		r.did("Deleted %s", r.site.show(f))
	}
	r.headline("delete the page %s", r.site.show(f))
	if r.done = append(r.done, dropped...); listed > 0 {
		r.did("Removed it from the navigation in %s", listing(pathsOf(summaries)))
	}
	defer r.stillNamed(f, id)
	if nav == nil {
		return nil
	}
	k, err := nav.drop(f)
	if err != nil {
		return err
	}
	if k > 0 {
		if err := r.ws.write(nav.file, nav.src); err != nil {
			return err
		}
		r.tally(nav.file, "navigation entries removed", k)
		r.did("Removed it from the navigation")
	}
	return nil
}

// summaryEntry is the line of a list that names a page in a page that is the navigation: mdBook's SUMMARY.md, or docsify's bars.
// One that has entries below it stays.
func summaryEntry(l inbound) (markup.Span, bool) {
	switch path.Base(l.page.Path) {
	case "SUMMARY.md", "_sidebar.md", "_navbar.md":
	default:
		return markup.Span{}, false
	}
	src := l.page.Src
	start, end := lineStart(src, l.link.Span.Start), lineAfter(src, l.link.Span.End)
	lead, rest := string(src[start:l.link.Span.Start]), string(src[l.link.Span.End:end])
	marker := strings.TrimSpace(lead)
	if l.link.Kind != markup.InlineLink || len(marker) != 1 || !strings.Contains("-*+", marker) || strings.TrimSpace(rest) != "" {
		return markup.Span{}, false
	}
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	if next := string(src[end:lineAfter(src, end)]); strings.TrimSpace(next) != "" && indent(next) > indent(lead) {
		return markup.Span{}, false
	}
	return markup.Span{Start: start, End: end}, true
}

func pathsOf(pages []*markup.Page) (out []string) {
	for _, p := range pages {
		out = append(out, p.Path)
	}
	return out
}

// Fix broken links.
type fixLinksOp struct{ located }

func (o *fixLinksOp) todo() string { return "Fix broken internal links " + o.scope.String() }
func (o *fixLinksOp) within(s scope) operation {
	return &fixLinksOp{located{o.scope.elsewhere(s)}}
}

func (o *fixLinksOp) run(r *run) error {
	fixed, files := 0, 0
	var left []string
	for _, f := range r.pages() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		p, err := r.site.page(f)
		if err != nil {
			continue
		}
		var edits []markup.Edit
		regions, whole := r.bounds.within(p)
		for _, l := range r.site.broken(p) {
			if !whole && !inside(l.At, regions) {
				continue
			}
			next, ok := r.site.repair(p, l)
			if !ok || next == l.Dest {
				left = append(left, r.site.show(f)+": "+oneLine(l.Dest, 120))
				continue
			}
			edits = append(edits, markup.Edit{Span: l.At, New: []byte(next)})
		}
		if len(edits) == 0 {
			continue
		}
		if err := r.edit(p, edits, "links fixed", len(edits)); err != nil {
			return err
		}
		fixed += len(edits)
		files++
	}
	for _, l := range left {
		r.kept("No certain target for the link in %s", l)
	}
	if fixed == 0 {
		if len(left) > 0 {
			return refuse("%s, but for none is one target certain: %s", brokenText(len(left)), listing(left))
		}
		return idle("there is no broken internal link%s", o.scope.there())
	}
	r.did("Fixed %s in %s%s", count(fixed, "broken link"), count(files, "file"), func() string {
		if len(left) > 0 {
			return fmt.Sprintf("; %d more have no certain target", len(left))
		}
		return ""
	}())
	r.headline("fix broken links")
	return nil
}

func brokenText(n int) string {
	if n == 1 {
		return "1 link leads nowhere"
	}
	return fmt.Sprintf("%d links lead nowhere", n)
}

// repair gives the destination that a broken link must have meant, where exactly one is certain.
func (s *documentation) repair(p *markup.Page, l markup.Link) (string, bool) {
	if l.Kind == markup.ImportLink {
		return "", false
	}
	t := s.resolve(p.Path, l)
	if t.file != "" { // the anchor
		if !isPage(t.file) {
			return "", false
		}
		q, err := s.page(t.file)
		if err != nil {
			return "", false
		}
		want := squash(t.fragment)
		var found []string
		for _, h := range q.Headings {
			if want != "" && (squash(h.Anchor) == want || squash(h.Text) == want) && !slices.Contains(found, h.Anchor) {
				found = append(found, h.Anchor)
			}
		}
		if len(found) != 1 {
			return "", false
		}
		return l.Dest[:strings.IndexByte(l.Dest, '#')+1] + found[0], true
	}
	file, ok := s.meant(t.path, func(f string) string { return f })
	if !ok && t.asked != "" && s.generated() {
		if file, ok = s.meant(t.asked, s.addressOf); ok {
			t.byAddress = !pageExts[strings.ToLower(path.Ext(t.asked))]
		}
	}
	if !ok {
		return "", false
	}
	t.file = file
	next := s.address(p.Path, t, file, l.Dest)
	if t.fragment != "" {
		if q, err := s.page(file); err != nil || !s.anchors(q, 3)[t.fragment] {
			return "", false
		}
	}
	return next, true
}

func squash(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// meant gives the one page that a path must have meant: the same but for case or separators, or moved to another folder
// with its name, which no other page has, and the rest of its path kept but for one folder. called says what a page's path
// is: that of its file, or its address.
func (s *documentation) meant(want string, called func(file string) string) (string, bool) {
	clean := func(p string) string {
		p = strings.ToLower(strings.Trim(p, "/"))
		for _, e := range []string{".md", ".mdx", ".markdown", ".html", ".htm"} {
			p = strings.TrimSuffix(p, e)
		}
		return strings.TrimSuffix(p, "/index")
	}
	target := clean(want)
	if target == "" || target == "." {
		return "", false
	}
	var same, moved []string
	names := 0
	for _, f := range s.list() {
		c := clean(called(f))
		if c == target || strings.NewReplacer("_", "-").Replace(c) == strings.NewReplacer("_", "-").Replace(target) {
			same = append(same, f)
		}
		if path.Base(c) == path.Base(target) {
			names++
			if oneFolder(c, target) {
				moved = append(moved, f)
			}
		}
	}
	if len(same) == 1 {
		return same[0], true
	}
	if len(same) == 0 && names == 1 && len(moved) == 1 && len(path.Base(target)) > 3 {
		return moved[0], true
	}
	return "", false
}

// oneFolder tells whether two paths differ in one folder only: another one, one more or one less.
func oneFolder(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	if len(x) < len(y) {
		x, y = y, x
	}
	if len(x)-len(y) > 1 {
		return false
	}
	i := 0
	for i < len(y) && x[i] == y[i] {
		i++
	}
	if i < len(x) && isLocale(x[i]) || i < len(y) && isLocale(y[i]) {
		return false // the same page in another language is another page
	}
	if len(x) == len(y) {
		return i < len(y) && slices.Equal(x[i+1:], y[i+1:])
	}
	return slices.Equal(x[i+1:], y[i:])
}

var locale = regexp.MustCompile(`^(?:ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|ko|lt|lv|ms|nl|no|pl|pt|ro|ru|sk|sl|sr|sv|th|tr|uk|vi|zh|jp|cn)(?:[-_](?:[a-z]{2}|[a-z]{4}|[0-9]{3}))?$`)

// isLocale tells the name of a folder that holds the pages of one language.
func isLocale(folder string) bool { return locale.MatchString(strings.ToLower(folder)) }

// english tells whether a page may be read as English.
func english(p *markup.Page) bool {
	for _, f := range strings.Split(path.Dir(p.Path), "/") {
		if isLocale(f) && !strings.HasPrefix(strings.ToLower(f), "en") {
			return false
		}
	}
	for _, k := range []string{"lang", "language", "locale"} {
		if v, ok := p.Front.Values[k].(string); ok && !strings.HasPrefix(strings.ToLower(v), "en") {
			return false
		}
	}
	return true
}

// Undo an earlier instruction of the job.
type undoOp struct{ unlocated }

func (o *undoOp) todo() string { return "Undo the last instruction" }

func (o *undoOp) run(r *run) error {
	if len(r.done) > 0 {
		return refuse("“undo” must stand alone")
	}
	var last *Instruction
	for i := len(r.earlier) - 1; i >= 0; i-- {
		if r.earlier[i].Commit != "" {
			last = &r.earlier[i]
			break
		}
	}
	if last != nil && last.Pull == api.PullClosed {
		return refuse("the pull request that held %s was closed without being merged, so there is nothing to undo", quote(last.Prompt))
	}
	if last == nil {
		return idle("no earlier instruction of this job has changed anything, so there is nothing to undo")
	}
	h, ok := r.ws.tree.(History)
	if !ok {
		return refuse("this repository does not show its earlier commits, so %s cannot be undone; close the pull request instead", quote(last.Prompt))
	}
	parent, err := h.Parent(r.ctx, last.Commit)
	if err != nil {
		return refuse("the commit before %s cannot be read, so it cannot be undone", oneLine(last.Commit, 12))
	}
	before, err := h.FilesAt(r.ctx, parent)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", parent, err)
	}
	after, err := h.FilesAt(r.ctx, last.Commit)
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", last.Commit, err)
	}
	hash := func(list []api.File) map[string]string {
		m := map[string]string{}
		for _, f := range list {
			m[f.Path] = f.Hash
		}
		return m
	}
	was, is := hash(before), hash(after)
	var paths []string
	for p := range was {
		if is[p] != was[p] {
			paths = append(paths, p)
		}
	}
	for p := range is {
		if _, ok := was[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	n := 0
	programs := r.site.programs()
	for _, p := range paths {
		now, had := r.ws.baseFile(p)
		if want, ok := is[p]; ok != had || ok && want != now.Hash {
			return refuse("%s has changed since, so %s cannot be undone by itself", r.site.show(p), quote(last.Prompt))
		}
		if _, ok := was[p]; !ok {
			if err := r.ws.remove(p); err != nil {
				return err
			}
		} else {
			old, err := h.ReadAt(r.ctx, parent, p)
			if err != nil {
				return fmt.Errorf("read %s of %s: %w", p, parent, err)
			}
			if cur, err := r.ws.read(p); err == nil && bytes.Equal(cur, old) {
				continue
			}
			write := r.ws.write
			if slices.Contains(programs, p) { // of which texts alone had been changed
				write = r.ws.rewrite
			}
			if err := write(p, old); err != nil {
				return err
			}
		}
		r.tally(p, "file restored", 1)
		n++
	}
	if n == 0 {
		return idle("%s is undone already", quote(last.Prompt))
	}
	r.undone = true
	r.did("Undid %s: %s as before", quote(last.Prompt), count(n, "file"))
	r.headline("undo %s", quote(last.Prompt))
	return nil
}
