package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/internal/glob"
	"docent/site"
	"docent/site/markup"
)

// notices say what a maintainer would ask about the pages that were changed: that they are generated, that they have
// siblings in other versions or languages, and that a version was meant which is not the released one.
func (r *work) notices(changes []Change) {
	if r.Undone {
		return
	}
	generated := r.generated()
	var made []string
	var pages []Change
	for _, c := range changes {
		from := cmp.Or(c.From, c.Path)
		if c.Delete || !site.IsPage(c.Path) || !r.Files.Had(from) {
			continue
		}
		old, err := r.Files.Original(from)
		if err != nil || !workspace.IsText(old) {
			continue
		}
		said := markup.Parse(from, old).Generated()
		if said == "" && generated.Ignores(from, false) {
			said = ".gitattributes: linguist-generated"
		}
		if said != "" {
			made = append(made, fmt.Sprintf("%s (%s)", r.Site.Show(c.Path), say.Quote(say.OneLine(said, 120))))
		}
		pages = append(pages, c)
	}
	if len(made) == 1 {
		r.Kept("%s says that it is generated: the change is lost when it is made again, unless its source is changed too", made[0])
	} else if len(made) > 1 {
		r.Kept("%d of the changed pages say that they are generated, so that the changes are lost when they are made again: %s", len(made), say.List(made))
	}
	r.siblings(pages)
}

// generated are the files that the repository names as made by programs, as code hosts know them.
func (r *work) generated() *glob.GitIgnore {
	list := &glob.GitIgnore{}
	src, err := r.Files.Original(".gitattributes")
	if err != nil {
		return list
	}
	var names []string
	for line := range strings.Lines(string(src)) {
		if f := strings.Fields(line); len(f) > 1 && !strings.HasPrefix(f[0], "#") &&
			slices.ContainsFunc(f[1:], func(a string) bool { return a == "linguist-generated" || a == "linguist-generated=true" }) {
			names = append(names, f[0])
		}
	}
	list.Add("", strings.Join(names, "\n"))
	return list
}

// An edition is a page with the version and language that it is in.
type edition struct {
	file string
	site.Edition
}

func (e edition) version() string { return strings.Join(e.Versions, ", ") }

// siblings says which pages are the same as changed ones in other versions or languages.
func (r *work) siblings(pages []Change) {
	const most = 5
	groups := r.editions()
	changed := map[string]bool{}
	for _, c := range pages {
		changed[c.Path] = true
	}
	told := 0
	for _, c := range pages {
		own, group := groups.of(c.Path)
		gone := r.goneLines(c)
		var same, versions, languages []string
		released := edition{}
		for _, o := range group {
			switch {
			case o.file == c.Path:
			case o.Language == own.Language && o.version() != own.version():
				if o.Current {
					released = o
				}
				if changed[o.file] {
					continue
				}
				if r.holdsAny(o.file, gone) {
					same = append(same, r.Site.Show(o.file))
				} else {
					versions = append(versions, r.Site.Show(o.file))
				}
			case o.Language != own.Language && o.version() == own.version() && !changed[o.file]:
				languages = append(languages, r.Site.Show(o.file))
			}
		}
		if len(same)+len(versions)+len(languages) == 0 && released.file == "" {
			continue
		}
		if told++; told > most {
			r.Kept("More of the changed pages have siblings in other versions or languages, which were left as they are")
			return
		}
		name := r.Site.Show(c.Path)
		if len(same) > 0 {
			r.Kept("The same words stand in other versions of %s, which were left as they are: %s", name, say.List(same))
		}
		if len(versions) > 0 && len(same) == 0 {
			r.Kept("Other versions of %s were left as they are: %s", name, say.List(versions))
		}
		if len(languages) > 0 {
			r.Kept("%s in other languages was left as it is: %s", name, say.List(languages))
		}
		if released.file != "" && !changed[released.file] && r.bySilence(own) {
			r.Kept("%s is of the version %s, since the instruction names none; readers see %s (%s) first", name, own.Versions[0], released.version(),
				r.Site.Show(released.file))
		}
	}
}

// bySilence reports whether a page is of a version that readers do not see first, and that the instruction does not name.
func (r *work) bySilence(e edition) bool {
	said := func(name string) bool { return strings.Contains(r.task.Prompt, name) }
	return !e.Current && len(e.Versions) > 0 && !said(path.Dir(r.Site.Show(e.file))+"/") && !slices.ContainsFunc(e.Versions, said)
}

// An editionGroups holds pages by what they are the same as.
type editionGroups struct {
	own  map[string]edition
	same map[[2]string][]edition
}

func (g editionGroups) of(file string) (edition, []edition) {
	e := g.own[file]
	return e, g.same[[2]string{e.Docs, e.Same}]
}

func (r *work) editions() editionGroups {
	g := editionGroups{map[string]edition{}, map[[2]string][]edition{}}
	var list []site.EditionPage
	files := r.Site.List()
	for _, f := range files {
		rel, _ := site.Relative(r.Files.DocsDir, f)
		list = append(list, site.EditionPage{Path: rel})
	}
	for i, e := range r.Site.Generator.Editions(list) {
		one := edition{files[i], e}
		g.own[files[i]] = one
		if e.Same != "" {
			key := [2]string{e.Docs, e.Same}
			g.same[key] = append(g.same[key], one)
		}
	}
	return g
}

// translated are the pages that another page is in another language: the one without a language, or else the English one.
func (r *work) translated() map[string]bool {
	out := map[string]bool{}
	for _, group := range r.editions().same {
		for _, first := range []string{"", "en"} {
			if slices.ContainsFunc(group, func(e edition) bool { return e.Language == first }) {
				for _, e := range group {
					out[e.file] = out[e.file] || e.Language != first
				}
				break
			}
		}
	}
	return out
}

// goneLines are the lines of a page that a change takes away.
func (r *work) goneLines(c Change) map[string]bool {
	old, err := r.Files.Original(cmp.Or(c.From, c.Path))
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(old)) {
		if line = strings.TrimSpace(line); len(line) > 3 {
			out[line] = true
		}
	}
	for line := range strings.Lines(string(c.Content)) {
		delete(out, strings.TrimSpace(line))
	}
	return out
}

// holdsAny reports whether a file has one of some lines.
func (r *work) holdsAny(file string, lines map[string]bool) bool {
	src, err := r.Files.Read(file)
	if err != nil || len(lines) == 0 {
		return false
	}
	for line := range strings.Lines(string(src)) {
		if lines[strings.TrimSpace(line)] {
			return true
		}
	}
	return false
}
