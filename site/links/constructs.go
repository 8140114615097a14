package links

import (
	"path"
	"slices"
	"strings"

	"docent/site/markup"
)

// construct follows a reference in a generator's own form.
func (s *Resolver) construct(from string, l markup.Link) Target {
	switch l.From {
	case markup.WikiBase:
		return s.wiki(l)
	case markup.LabelBase:
		if files := s.PagesLabeled(l.Dest); len(files) > 0 {
			return Target{Local: true, File: files[0], Path: files[0], Form: LabelForm}
		}
		return Target{} // Sphinx knows labels of other projects too
	case markup.AntoraBase:
		return s.antora(from, l)
	}
	p, rest, ok := LocalPath(l.Dest)
	if !ok || p == "" {
		return Target{}
	}
	t := Target{Local: true, Fragment: fragment(rest), Form: NextForm, Root: path.Dir(from)}
	for _, lead := range []string{"@site/", "@/", "~/", "/"} { // the site's sources
		if below, ok := strings.CutPrefix(p, lead); ok {
			return s.below(t, lead, below, s.Sources(from), l.From)
		}
	}
	switch l.From {
	case markup.FileBase, markup.DocBase, markup.HugoBase:
		next := s.below(t, "", p, []string{path.Dir(from)}, l.From)
		if next.File != "" || l.From == markup.FileBase && !l.Soft || l.From == markup.DocBase {
			next.Form = NextForm
			return next
		}
		if found := s.below(t, "", p, s.Sources(from), l.From); found.File != "" || l.From == markup.FileBase {
			return found
		}
		if same := s.PagesNamed(Key(p)); len(same) == 1 && !strings.Contains(p, "/") && !l.Soft {
			return Target{Local: true, File: same[0], Path: same[0], Form: NameForm, Fragment: t.Fragment, Bare: !markup.IsPage(p)}
		}
		return next
	case markup.PartBase:
		return s.below(t, "", p, s.inEach(from, "_includes"), l.From)
	case markup.PostBase:
		return s.below(t, "", p, s.inEach(from, "_posts"), l.From)
	case markup.SnippetBase:
		return s.below(t, "", p, slices.Concat(s.Site.SnippetFolders(), s.Sources(from), []string{path.Dir(from)}, s.inEach(from, "snippets"), s.inEach(from, "_snippets")), l.From)
	}
	return s.below(t, "", p, s.Sources(from), l.From)
}

// below looks for a path in folders.
func (s *Resolver) below(t Target, lead, p string, folders []string, base markup.Base) Target {
	t.Form, t.Prefix = PathForm, lead
	for i, folder := range folders {
		folder = strings.Trim(path.Clean("/"+folder), "/")
		at := path.Join(folder, p)
		if i == 0 {
			t.Root, t.Path = folder, at
		}
		if base == markup.HugoBase || base == markup.SourceBase && lead != "" {
			if f := s.Lookup(at); f != "" {
				t.Root, t.Path, t.File, t.Bare = folder, at, f, f != at
				return t
			}
			continue
		}
		if s.Exists(at) && base != markup.DocBase {
			t.Root, t.Path, t.File = folder, at, at
			return t
		}
		if base != markup.DocBase && base != markup.PostBase {
			continue
		}
		for _, ext := range []string{".rst", ".md", ".markdown", ".txt", ""} {
			if s.Exists(at + ext) {
				t.Root, t.Path, t.File, t.Bare = folder, at, at+ext, ext != ""
				return t
			}
		}
	}
	return t
}

// Sources are the folders that a generator's own paths may start from: the nearest first.
func (s *Resolver) Sources(from string) []string {
	out := append(s.Site.ContentFolders(), s.Root())
	if config := s.Site.Config(); config != "" {
		out = append(out, strings.TrimPrefix(path.Dir(config), "."))
	}
	for dir := path.Dir(from); dir != "." && dir != "/"; dir = path.Dir(dir) { // Sphinx's and Jekyll's
		for _, config := range []string{"conf.py", "_config.yml"} {
			if s.Exists(path.Join(dir, config)) {
				out = append([]string{dir}, out...)
			}
		}
	}
	out = append(out, s.DocsDir, "")
	unique := out[:0:0]
	for _, dir := range out {
		if !slices.Contains(unique, dir) {
			unique = append(unique, dir)
		}
	}
	return unique
}

func (s *Resolver) inEach(from, name string) (out []string) {
	for _, dir := range s.Sources(from) {
		out = append(out, path.Join(dir, name))
	}
	return out
}

// wiki follows [[name]], [[text|name]] and [[name|text]].
func (s *Resolver) wiki(l markup.Link) Target {
	parts := strings.Split(l.Dest, "|")
	for i := len(parts) - 1; i >= 0; i-- {
		name, anchor, _ := strings.Cut(strings.TrimSpace(parts[i]), "#")
		if name == "" || strings.ContainsAny(name, ":{}") {
			continue
		}
		same := s.PagesNamed(Key(name))
		if dir := path.Dir(name); dir != "." {
			same = slices.DeleteFunc(slices.Clone(same), func(f string) bool {
				return !strings.HasSuffix("/"+strings.ToLower(path.Dir(f)), "/"+strings.ToLower(strings.Trim(dir, "/")))
			})
		}
		if len(same) > 0 {
			return Target{Local: true, File: same[0], Path: same[0], Form: NameForm, Fragment: anchor, Part: i, Bare: !markup.IsPage(name)}
		}
	}
	return Target{}
}

// Family is the place of a file in a component of Antora: the folder modules/module/family that it lies in.
func Family(file string) (modules, module, family, rel string, ok bool) {
	dirs := strings.Split(file, "/")
	for i, d := range dirs {
		if d != "modules" || i+2 >= len(dirs) {
			continue
		}
		modules, module = strings.Join(dirs[:i+1], "/"), dirs[i+1]
		switch dirs[i+2] {
		case "pages", "partials", "examples", "images", "attachments":
			return modules, module, dirs[i+2], strings.Join(dirs[i+3:], "/"), i+3 < len(dirs)
		}
		return modules, module, "", strings.Join(dirs[i+2:], "/"), true // nav.adoc
	}
	return "", "", "", "", false
}

// antora follows a path of AsciiDoc: Antora's resource, or a path from the file.
func (s *Resolver) antora(from string, l markup.Link) Target {
	p, anchor, _ := strings.Cut(l.Dest, "#")
	t := Target{Local: true, Fragment: anchor, Form: NextForm, Root: path.Dir(from)}
	modules, module, _, rel, ok := Family(from)
	if !ok {
		if strings.Contains(p, ":") {
			return Target{}
		}
		t.Path = path.Join(t.Root, p)
		if s.Exists(t.Path) {
			t.File = t.Path
		}
		return t
	}
	if strings.Contains(p, "@") || strings.Count(p, ":") > 1 {
		return Target{} // of another component or version
	}
	if m, below, ok := strings.Cut(p, ":"); ok {
		module, p, t.Prefix = m, below, m+":"
	}
	family := "pages"
	if f, below, ok := strings.Cut(p, "$"); ok {
		family, p, t.Prefix = f+"s", below, t.Prefix+f+"$"
	}
	if t.Root = path.Join(modules, module, family); strings.Contains(t.Prefix, ":") {
		t.Form = PathForm
	}
	if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
		p = path.Join(path.Dir(rel), p)
	}
	if t.Path = path.Join(t.Root, p); s.Exists(t.Path) {
		t.File = t.Path
	}
	return t
}
