package pages

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"docent/internal/brief"
	"docent/site/links"
	"docent/site/markup"
	"docent/site/published"

	"golang.org/x/text/unicode/norm"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// Called reports whether a name means a file: its path or address, a folder that it is in, or a glob.
func (s *Site) Called(name, file string) bool {
	if f := s.publishedAt(strings.TrimSpace(name)); f != "" {
		return f == file
	}
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "./"), "/")
	if own := strings.TrimSuffix(s.project.SiteURL, "/"); own != "" {
		name = strings.TrimPrefix(name, strings.TrimPrefix(own, "/")+"/")
	}
	shown := s.Show(file)
	if name == "" || name == "." {
		return false
	}
	if workspace.Globbed(name, file) || workspace.Globbed(name, shown) {
		return true
	}
	f, err := s.Find(name)
	if err == nil && !strings.HasSuffix(name, "/") {
		return f == file
	}
	folder := strings.TrimSuffix(name, "/")
	if strings.HasPrefix(file, folder+"/") || strings.HasPrefix(shown, folder+"/") || strings.HasSuffix(name,
		"/") && !strings.Contains(folder, "/") && slices.Contains(strings.Split(path.Dir(shown), "/"), folder) {
		return true
	}
	return s.Titled(name, file)
}

// Titled reports whether a name is the title of a page, or what its file is called.
func (s *Site) Titled(name, file string) bool {
	if SameFold(Humanize(workspace.Stem(path.Base(file))), name) || SameFold(workspace.Stem(path.Base(file)), name) {
		return true
	}
	if !workspace.IsPage(file) {
		return false
	}
	p, err := s.Page(file)
	return err == nil && SameFold(p.Title(), name)
}

// Find settles which file a user's path means.
func (s *Site) Find(p string) (string, error) {
	if f := s.publishedAt(p); f != "" {
		return f, nil
	}
	if own := s.own; own != "" && (p == own || strings.HasPrefix(p, own+"/")) {
		p, _, _ = links.LocalPath(strings.TrimPrefix(p, own) + "/")
		if f := s.ShownAt(p); f != "" {
			return f, nil
		}
	}
	if f := s.findAddress(p); f != "" {
		return f, nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	if name == "" {
		return "", say.Refuse("a path is empty")
	}
	name = strings.TrimSuffix(name, "/")
	if err := workspace.CleanPath(name); err != nil {
		return "", err
	}
	paths := []string{path.Join(s.Files.DocsDir, name), path.Join(s.Root(), name)}
	if s.Files.DocsDir != "" {
		paths = append(paths, name)
	}
	if f, err := s.findFile(paths); f != "" || err != nil {
		return f, err
	}
	s.seekRoot()
	if rel, ok := links.Under(s.prefix, name); ok && s.prefix != "" {
		if f := s.lookup(path.Join(s.Root(), rel)); f != "" && s.Files.InDocs(f) {
			return f, nil
		}
	}
	if f := s.ShownAt(name); f != "" && s.Generated() {
		return f, nil
	}
	for _, f := range paths {
		if s.Files.Exists(f) && !s.Files.InDocs(f) {
			return "", say.Refuse("%s lies outside the documentation folder %s", f, s.Files.DocsDir)
		}
	}
	switch same := s.withName(name); len(same) {
	case 0:
		return "", say.Refuse("there is no page %s", say.Quote(p))
	case 1:
		return same[0], nil
	default:
		return "", say.Refuse("%s could be any of %s", say.Quote(p), say.List(same))
	}
}

// publishedAt finds the file of the page that the published site shows at an address; empty if that is not known.
func (s *Site) publishedAt(p string) string {
	if !strings.Contains(p, "://") && !strings.HasPrefix(p, "/") || s.own != "" && strings.Contains(p, "://") && !strings.HasPrefix(p+"/", s.own+"/") ||
		s.Files.Exists(path.Join(s.Files.DocsDir, p)) {
		return ""
	}
	if f := s.Published[published.Key(p)]; f != "" && s.Files.Exists(path.Join(s.Files.DocsDir, f)) {
		return path.Join(s.Files.DocsDir, f)
	}
	return ""
}

// findAddress finds the page at an address from the site's root, which goes before a path without its extension.
func (s *Site) findAddress(p string) string {
	if !strings.HasPrefix(p, "/") || s.Files.Exists(path.Join(s.Files.DocsDir, p)) {
		return ""
	}
	for _, prefix := range s.resolver().Prefixes() {
		if rel, ok := links.Under(prefix, p); ok {
			if f := s.ShownAt(rel); f != "" {
				return f
			}
		}
	}
	return ""
}

// findFile finds the first of some paths that leads to a file of the documentation, in any form of Unicode.
func (s *Site) findFile(paths []string) (string, error) {
	for _, p := range paths {
		for _, form := range []string{p, norm.NFC.String(p), norm.NFD.String(p)} {
			if f := s.lookup(form); f != "" && s.Files.InDocs(f) {
				return f, nil
			}
		}
	}
	for _, p := range paths {
		if err := s.Files.ViaLink(p); err != nil {
			return "", err
		}
	}
	return "", nil
}

// withName lists the pages that have a bare name: it is enough if only one page has it.
func (s *Site) withName(name string) (same []string) {
	if strings.Contains(name, "/") {
		return nil
	}
	for _, f := range s.List() {
		if base := path.Base(f); base == name || workspace.Stem(base) == name {
			same = append(same, f)
		}
	}
	return same
}

// Fresh settles where a new page goes.
func (s *Site) Fresh(p string) (string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(p, "./"), "/")
	if err := workspace.CleanPath(name); err != nil {
		return "", err
	}
	if !workspace.IsPage(name) {
		if ext := path.Ext(name); ext != "" && workspace.TextExts[strings.ToLower(ext)] {
			return "", say.Refuse("%s is no Markdown page", say.Quote(p))
		}
		name += s.ext()
	}
	base := s.Root()
	if !s.Files.InDocs(path.Join(base, "x")) {
		base = s.Files.DocsDir
	}
	if s.Files.DocsDir != "" && strings.HasPrefix(name, s.Files.DocsDir+"/") ||
		base != "" && strings.HasPrefix(name, base+"/") {
		return name, s.Files.Writable(name)
	}
	// A path written from the documentation folder although the pages begin lower down is taken as it stands.
	if first, _, ok := strings.Cut(name, "/"); ok && base != s.Files.DocsDir && !s.Files.IsDir(path.Join(base, first)) &&
		s.Files.IsDir(path.Join(s.Files.DocsDir, first)) {
		base = s.Files.DocsDir
	}
	f := path.Join(base, name)
	return f, s.Files.Writable(f)
}

// ext is the extension that most pages have.
func (s *Site) ext() string {
	counts := map[string]int{}
	for _, f := range s.List() {
		counts[strings.ToLower(path.Ext(f))]++
	}
	best := ".md"
	if s.Generator.Kind == api.SiteMintlify {
		best = ".mdx"
	}
	for _, e := range []string{".md", ".mdx", ".markdown"} {
		if counts[e] > counts[best] {
			best = e
		}
	}
	return best
}

// Show names a file for people: relative to the documentation folder.
func (s *Site) Show(p string) string {
	if s.Files.DocsDir == "" {
		return p
	}
	return strings.TrimPrefix(p, s.Files.DocsDir+"/")
}

// Matching returns the pages that a pattern fits.
func (s *Site) Matching(said, pattern string) ([]string, error) {
	for _, seg := range strings.Split(pattern, "/") {
		if seg == ".." || strings.EqualFold(seg, ".git") {
			return nil, say.Refuse("the path %s leaves the documentation", say.Quote(said))
		}
	}
	var out []string
	for _, f := range s.List() {
		if workspace.Globbed(pattern, f) || workspace.Globbed(pattern, s.Show(f)) ||
			s.Root() != "" && workspace.Globbed(pattern, strings.TrimPrefix(f, s.Root()+"/")) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, say.Refuse("no page matches %s", say.Quote(said))
	}
	return out, nil
}

// Below returns the pages of a folder, and whether there is one.
func (s *Site) Below(folder string) (pages []string, dir bool) {
	if workspace.CleanPath(folder) != nil {
		return nil, false
	}
	for _, d := range []string{path.Join(s.Files.DocsDir, folder), path.Join(s.Root(), folder), folder} {
		if !s.Files.IsDir(d) || d != s.Files.DocsDir && !s.Files.InDocs(d+"/x") {
			continue
		}
		dir = true
		for _, p := range s.List() {
			if strings.HasPrefix(p, d+"/") {
				pages = append(pages, p)
			}
		}
		if len(pages) > 0 {
			break
		}
	}
	return pages, dir
}

// SameFold reports whether two texts are the same but for case and the blanks around them.
func SameFold(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// Humanize makes a title of the name of a file.
func Humanize(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) })
	if len(words) == 0 {
		return name
	}
	words[0] = brief.Capital(words[0])
	return strings.Join(words, " ")
}

// Compose writes a new page in the manner of the site's other pages.
func (s *Site) Compose(f, title, description, content string) ([]byte, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	front, quoted, toml, crlf := 0, 0, 0, 0
	for _, p := range all {
		if EOL(p.Src) == "\r\n" {
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
		return nil, say.Refuse("the content has front matter of its own; give title and description in the instruction")
	}
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	switch {
	case s.Generator.Kind != api.SiteMintlify && len(all) > 0 && front*2 < len(all) && description == "":
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
			if quoted*2 >= front || s.Generator.Kind == api.SiteMintlify {
				at := p.Front.Body.End
				out, err := markup.Apply(p.Src, []markup.Edit{{Span: markup.Span{Start: at, End: at},
					New: []byte(key + ": \"" + escape.Replace(value) + "\"\n")}})
				if err != nil {
					return err
				}
				p = markup.Parse(f, out)
				return nil
			}
			edits, err := p.SetFront(key, value)
			if err != nil {
				return say.Refuse("%v", err)
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
