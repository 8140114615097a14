package site

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"docent/internal/formats"
	"docent/internal/glob"
	"docent/site/expand"
)

// openQuarto reads the project file of a website or a book: what it renders, and where it is published.
func (s *Site) openQuarto(read func(string) ([]byte, error)) {
	s.content = s.folder()
	var doc map[string]any
	if !s.configured(read, &doc) {
		return
	}
	project, book := object(doc["project"]), object(doc["book"])
	s.setOrigin(s.config, "site-url", cmp.Or(text(object(doc["website"])["site-url"]), text(book["site-url"])))
	patterns, _ := strs(project["render"])
	if chapters := slices.Concat(chaptersOf(book["chapters"]), chaptersOf(book["appendices"])); len(patterns) == 0 && book != nil {
		patterns = chapters
	}
	if len(patterns) == 0 || strings.HasPrefix(patterns[0], "!") {
		patterns = append([]string{"*"}, patterns...)
	}
	s.ignored = glob.NewList(patterns...)
	of := map[string]any{}
	if raw, err := read(path.Join(path.Dir(s.config), "_variables.yml")); err == nil {
		_ = formats.YAML(raw, &of)
	}
	s.rules.Values = map[string]any{"var": of}
}

// chaptersOf are the files of a book's chapters, those of its parts too.
func chaptersOf(v any) (out []string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, ".") {
			return []string{"/" + strings.TrimPrefix(v, "/")}
		}
	case []any:
		for _, of := range v {
			out = append(out, chaptersOf(of)...)
		}
	case map[string]any:
		for _, key := range []string{"part", "file", "href", "chapters"} {
			out = append(out, chaptersOf(v[key])...)
		}
	}
	return out
}

func (d *decider) quarto(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	switch ext := strings.ToLower(path.Ext(e.Path)); {
	case !ok:
		return d.outside(d.Config())
	case e.OpenAPI || !expand.Markup(rel) && ext != ".md" || ext == ".rst" || ext == ".adoc" || ext == ".asciidoc" || ext == ".org" || ext == ".mdoc":
		return d.formats(e)
	case strings.EqualFold(strings.TrimSuffix(path.Base(rel), path.Ext(rel)), "README"):
		return Decision{LeftOut, "Quarto makes no page of a README", ""}
	}
	for part := range strings.SplitSeq(rel, "/") {
		if part[0] == '_' || part[0] == '.' {
			return Decision{Included, "Quarto makes no pages of names that begin with " + part[:1], ""}
		}
	}
	if by := d.ignored.LastAsGit(rel); by == nil || by.Keep {
		return Decision{LeftOut, "is not among what is rendered", d.Config()}
	}
	return Decision{Published, "is rendered by Quarto", d.Config()}
}

// shownByQuarto is the address of a page.
func shownByQuarto(rel string) string {
	if n := nameOf(rel, "index"); !n.index {
		return n.beside(n.stem) + ".html"
	} else if n.dir == "" || n.dir == "." {
		return ""
	} else {
		return n.dir + "/index.html"
	}
}
