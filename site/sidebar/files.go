package sidebar

import (
	"path"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/formats"
	"docent/site/script"
)

// Rules are how a site orders its pages: by its generator, and by the files that its folders have for that.
type Rules struct {
	kind        api.SiteKind
	folders     map[string]folder
	collections map[string]string // titles of Jekyll's collections that Just the Docs shows, by their folders
}

// A folder is what a file in it says of it.
type folder struct {
	said     bool // there is such a file
	label    string
	at       string // its own position
	link     string // Docusaurus: the id of its page; noPage if it has none
	hidden   bool
	list     []entry // what it holds, in its order
	named    map[string]entry
	sorted   bool // MkDocs: the order is said
	reversed bool
	natural  bool
	byTitle  bool
}

// An entry of a folder's list names a file or a folder in it, or, with a pattern, those that no other entry names.
type entry struct {
	name, title string
	hidden      bool
	rest        func(name string) bool // nil if it names one
}

const (
	noPage = "-"
	// maxEntries bounds a folder's list.
	maxEntries = 1000
	// maxFiles bounds how many folders are asked.
	maxFiles = 10_000
)

// Speaks reports whether a file of a site says the order of its folder, or what of it is shown.
func Speaks(kind api.SiteKind, file string) bool {
	base := path.Base(file)
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch kind {
	case api.SiteDocusaurus:
		return stem == "_category_"
	case api.SiteNext:
		return (stem == "_meta" || base == fumadocs) && !strings.Contains("/"+file, "/node_modules/")
	case api.SiteMkDocs:
		return base == ".pages" || base == ".nav.yml" || base == ".nav.yaml"
	case api.SiteJekyll:
		return base == "_config.yml" || base == "_config.yaml"
	}
	return false
}

// fumadocs is the file of a folder that Fumadocs reads.
const fumadocs = "meta.json"

// Read reads the rules of a site from the files that Speaks names, by their paths from the documentation folder.
func Read(kind api.SiteKind, files []string, read func(string) ([]byte, error)) *Rules {
	r := &Rules{kind: kind, folders: map[string]folder{}, collections: map[string]string{}}
	for _, file := range files[:min(len(files), maxFiles)] {
		dir := path.Dir(file)
		if dir == "." {
			dir = ""
		}
		if raw, err := read(file); err == nil {
			f := r.folder(dir, file, raw)
			f.said, f.named = true, map[string]entry{}
			for _, e := range f.list {
				f.named[e.name] = e
			}
			r.folders[dir] = f
		}
	}
	return r
}

// Roots are the folders that say their order and lie in no other one that does.
func (r *Rules) Roots() (out []string) {
	for dir := range r.folders {
		above := dir
		for above != "" {
			if above = strings.TrimPrefix(path.Dir(above), "."); r.folders[above].said {
				break
			}
		}
		if dir == "" || !r.folders[above].said {
			out = append(out, dir)
		}
	}
	return out
}

// folder reads what a file says of its folder.
func (r *Rules) folder(dir, file string, raw []byte) (f folder) {
	if r.kind == api.SiteNext && path.Base(file) != fumadocs {
		return folder{list: readMeta(string(raw))}
	}
	var doc map[string]any
	if r.kind == api.SiteMkDocs { // .pages has no ending that says so
		file = "pages.yml"
	}
	if formats.Decode(file, raw, &doc) != nil {
		return folder{}
	}
	switch r.kind {
	case api.SiteDocusaurus:
		f = folder{label: word(doc["label"]), at: word(doc["position"])}
		if link, set := doc["link"]; set {
			of, _ := link.(map[string]any)
			if f.link = noPage; word(of["type"]) == "doc" {
				f.link = word(of["id"])
			}
		}
	case api.SiteNext:
		f = readFumadocs(doc)
	case api.SiteMkDocs:
		f = readPages(doc)
	case api.SiteJekyll:
		of, _ := doc["just_the_docs"].(map[string]any)
		collections, _ := of["collections"].(map[string]any)
		for name, v := range collections {
			if of, _ := v.(map[string]any); of["nav_exclude"] != true {
				r.collections[path.Join(dir, "_"+name)] = word(of["name"])
			}
		}
	}
	return f
}

func anything(string) bool { return true }

// readFumadocs reads a meta.json of Fumadocs.
func readFumadocs(doc map[string]any) (f folder) {
	f.label = word(doc["title"])
	pages, _ := doc["pages"].([]any)
	for _, v := range pages[:min(len(pages), maxEntries)] {
		name := word(v)
		switch left, isLeft := strings.CutPrefix(name, "!"); {
		case name == "..." || name == "z...a":
			f.list = append(f.list, entry{rest: anything})
		case isLeft:
			f.list = append(f.list, entry{name: left, hidden: true})
		case !strings.HasPrefix(name, "---") && !strings.HasPrefix(name, "["):
			f.list = append(f.list, entry{name: strings.TrimPrefix(name, "...")})
		}
	}
	return f
}

// readMeta reads what a _meta.js or _meta.json of Nextra writes out, in its order.
func readMeta(src string) (list []entry) {
	at := strings.IndexByte(src, '{')
	if m := sidebarObject.FindStringIndex(src); m != nil {
		at = m[1] - 1
	}
	if at < 0 {
		return nil
	}
	v, _ := script.Literal(src[at:])
	values, _ := v.(map[string]any)
	for _, name := range script.Keys(src[at:]) {
		e := entry{name: name, title: word(values[name])}
		if of, ok := values[name].(map[string]any); ok {
			e.title, e.hidden = word(of["title"]), word(of["display"]) == "hidden"
		}
		if !slices.ContainsFunc(list, func(o entry) bool { return o.name == name }) && len(list) < maxEntries {
			list = append(list, e)
		}
	}
	return list
}
