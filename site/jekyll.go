package site

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"docent/internal/formats"
	"docent/internal/glob"
	"docent/site/expand"
	"docent/site/markup"
)

// A jekyll is what the configuration of a Jekyll site says of its pages.
type jekyll struct {
	permalink   string
	collections map[string]map[string]any // with their settings, by the folder's name without its underscore
	folder      string                    // of the collections
	excluded    []glob.Glob
	included    []string
	defaults    []jekyllDefault
	bare        bool // files without front matter are pages too
	future      bool
	zone        *time.Location // of the dates in addresses
}

// A jekyllDefault is front matter of all pages of a scope.
type jekyllDefault struct {
	path, kind string
	values     map[string]any
}

var jekyllStyles = map[string]string{"": "/:categories/:year/:month/:day/:title:output_ext",
	"date": "/:categories/:year/:month/:day/:title:output_ext", "pretty": "/:categories/:year/:month/:day/:title/",
	"ordinal": "/:categories/:year/:y_day/:title:output_ext", "weekdate": "/:categories/:year/W:week/:short_day/:title:output_ext",
	"none": "/:categories/:title:output_ext"}

func (s *Site) openJekyll(files []string, read func(string) ([]byte, error)) {
	s.content = s.folder()
	doc := map[string]any{}
	if !s.configured(read, &doc) {
		return
	}
	if dir := text(doc["source"]); dir != "" {
		s.content = path.Join(s.folder(), dir)
	}
	s.setOrigin(s.config, "url and baseurl", strings.TrimRight(text(doc["url"]), "/")+path.Clean("/"+text(doc["baseurl"])))
	j := jekyll{permalink: text(doc["permalink"]), folder: text(doc["collections_dir"]), collections: map[string]map[string]any{},
		future: doc["future"] == true, zone: time.UTC}
	if zone, err := time.LoadLocation(text(doc["timezone"])); err == nil {
		j.zone = zone
	}
	list, _ := strs(doc["collections"])
	for _, name := range list {
		j.collections[name] = nil
	}
	for name, settings := range object(doc["collections"]) {
		j.collections[name] = object(settings)
	}
	if _, ok := j.collections["posts"]; !ok {
		j.collections["posts"] = map[string]any{"output": true}
	}
	j.excluded = s.globList(s.config, "exclude", doc["exclude"])
	j.included, _ = strs(doc["include"])
	plugins, _ := strs(doc["plugins"])
	j.bare = slices.Contains(plugins, "jekyll-optional-front-matter")
	defaults, _ := doc["defaults"].([]any)
	for _, v := range defaults {
		scope := object(object(v)["scope"])
		j.defaults = append(j.defaults, jekyllDefault{strings.Trim(text(scope["path"]), "/"), text(scope["type"]), object(object(v)["values"])})
	}
	s.jekyll = j
	of := map[string]any{}
	for _, d := range j.defaults {
		for key := range d.values {
			of[key] = expand.ErrUnknown // it depends on the page
		}
	}
	s.rules.Values = map[string]any{"site": doc, "page": of}
	maps.Copy(doc, s.jekyllDocs(files, read))
	doc["data"] = s.jekyllData(files, read, cmp.Or(text(doc["data_dir"]), "_data"))
}

// jekyllDocs are the documents of each collection, as pages list them: with their front matter, titles and addresses.
func (s *Site) jekyllDocs(files []string, read func(string) ([]byte, error)) map[string]any {
	out, taken := map[string]any{}, 0
	for name := range s.jekyll.collections {
		out[name] = []any{}
	}
	for _, file := range slices.Sorted(slices.Values(files)) {
		full := path.Join(s.docsDir, file)
		rel := strings.TrimPrefix(strings.TrimPrefix(full, s.content), "/")
		kind, below, _ := s.jekyll.collectionOf(rel)
		list, known := out[kind].([]any)
		if !known || !slices.Contains(jekyllFiles, strings.ToLower(path.Ext(rel))) || s.jekyll.excludes(rel) != "" || s.jekyll.unnamed(below) != "" {
			continue
		}
		raw, err := read(file)
		closed := s.Withholds(full)
		if taken++; taken > mostData || err != nil {
			out[kind] = expand.ErrUnknown
			continue
		}
		front := markup.ReadFront("x.md", raw)
		for key := range front.Values {
			closed = closed || strings.EqualFold(key, "groups") // a list on an open page would tell of it
		}
		if closed || front.Values == nil || front.Values["published"] == false {
			continue
		}
		doc := maps.Clone(front.Values)
		at := ReadPage(rel, doc)
		at.Path = file
		doc["url"], doc["path"], doc["collection"], doc["content"] = "/"+strings.TrimPrefix(s.shownByJekyll(at), "/"), rel, kind, expand.ErrUnknown
		if doc["title"] == nil {
			doc["title"] = strings.Join(strings.FieldsFunc(strings.TrimSuffix(path.Base(rel), path.Ext(rel)), func(r rune) bool { return r == '-' || r == '_' }), " ")
		}
		out[kind] = append(list, doc)
	}
	if posts, ok := out["posts"].([]any); ok { // by their days, the last one first
		slices.Reverse(posts)
	}
	return out
}

// mostData bounds how many files of data are read.
const mostData = 100

// jekyllData is what the files of a folder say, by their names.
func (s *Site) jekyllData(files []string, read func(string) ([]byte, error), folder string) map[string]any {
	out, taken := map[string]any{}, 0
	for _, file := range files {
		rel, ok := strings.CutPrefix(path.Join(s.docsDir, file), path.Join(s.content, folder)+"/")
		ext := path.Ext(rel)
		if !ok || taken == mostData || !slices.Contains([]string{".yml", ".yaml", ".json"}, ext) {
			continue
		}
		var doc any
		if raw, err := read(file); err == nil && formats.Decode(file, raw, &doc) == nil {
			taken++
			parts := strings.Split(strings.TrimSuffix(rel, ext), "/")
			in := out
			for _, part := range parts[:len(parts)-1] {
				if object(in[part]) == nil {
					in[part] = map[string]any{}
				}
				in = object(in[part])
			}
			in[parts[len(parts)-1]] = doc
		}
	}
	return out
}

// collectionOf is the collection that a file lies in, and the file's path there; empty if it lies in none. The folders
// above one of posts are categories.
func (j *jekyll) collectionOf(rel string) (name, below string, above []string) {
	rest := strings.TrimPrefix(strings.TrimPrefix(rel, strings.Trim(j.folder, "/")), "/")
	first, tail, ok := strings.Cut(rest, "/")
	if _, known := j.collections[strings.TrimPrefix(first, "_")]; ok && known && strings.HasPrefix(first, "_") {
		return first[1:], tail, nil
	}
	if before, tail, ok := strings.Cut("/"+rel, "/_posts/"); ok {
		return "posts", tail, strings.FieldsFunc(before, func(r rune) bool { return r == '/' })
	}
	return "", rel, nil
}

// says is what the defaults give pages of a kind under a key.
func (j *jekyll) says(rel, kind, key string) any {
	var out any
	longest := -1
	for _, d := range j.defaults {
		in := d.path == "" || rel == d.path || strings.HasPrefix(rel, d.path+"/")
		if v, ok := d.values[key]; ok && in && (d.kind == "" || d.kind == kind) && len(d.path)+len(d.kind) > longest {
			out, longest = v, len(d.path)+len(d.kind)
		}
	}
	return out
}

var jekyllDefaults = glob.Globs(".sass-cache", ".jekyll-cache", "gemfiles", "Gemfile", "Gemfile.lock", "node_modules", "vendor/bundle/",
	"vendor/cache/", "vendor/gems/", "vendor/ruby/")

// excludes is the pattern that leaves a file out; empty if none does.
func (j *jekyll) excludes(rel string) string {
	for name := rel; name != "."; name = path.Dir(name) {
		for _, g := range slices.Concat(j.excluded, jekyllDefaults) {
			if pattern := strings.TrimPrefix(g.Text, "/"); (g.Match(name) || pattern == name || strings.TrimSuffix(pattern, "/") == name) &&
				!slices.Contains(j.included, name) {
				return g.Text
			}
		}
	}
	return ""
}

// unnamed is a part of a path that is the name of no page.
func (j *jekyll) unnamed(rel string) string {
	for part := range strings.SplitSeq(rel, "/") {
		if (strings.ContainsAny(part[:min(1, len(part))], "_.#") || strings.HasSuffix(part, "~")) && !slices.Contains(j.included, part) {
			return part
		}
	}
	return ""
}

var jekyllFiles = []string{".md", ".markdown", ".mkdown", ".mkdn", ".mkd", ".html", ".htm"}

func (d *decider) jekyllPage(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if !ok {
		return d.outside(d.Config())
	}
	if e.OpenAPI || !slices.Contains(jekyllFiles, strings.ToLower(path.Ext(rel))) {
		return d.formats(e)
	}
	j := &d.jekyll
	if by := j.excludes(rel); by != "" {
		return Decision{LeftOut, "exclude: " + by, d.Config()}
	}
	kind, below, _ := j.collectionOf(rel)
	if kind != "" && j.collections[kind]["output"] != true && kind != "posts" {
		return Decision{LeftOut, "the collection " + kind + " has no pages: output is not set", d.Config()}
	}
	named := rel
	if kind != "" {
		named = below
	}
	if part := j.unnamed(named); part != "" {
		return Decision{Included, "Jekyll makes no pages of names such as " + part, ""}
	}
	if !e.Front.Has && !j.bare {
		return Decision{LeftOut, "Jekyll makes no page of a file without front matter", ""}
	}
	if p := d.importer(e); p != "" {
		return Decision{Included, "is included", d.file(p)}
	}
	if kind == "posts" {
		if at, err := postDate(below); err != nil {
			return Decision{LeftOut, "the name of a post begins with its date", ""}
		} else if at.After(d.now) && !j.future {
			return Decision{LeftOut, "is published from " + at.Format(time.DateOnly) + " on", ""}
		}
	}
	scope := cmp.Or(kind, "pages")
	if v := j.says(rel, scope, "published"); v == false {
		return Decision{LeftOut, "published: false by the defaults", d.Config()}
	}
	if v := j.says(rel, scope, "search_exclude"); v == true {
		return Decision{Unlisted, "search_exclude: true by the defaults", d.Config()}
	}
	return Decision{Published, "is a page of Jekyll", d.Config()}
}

var postName = regexp.MustCompile(`^(?:.*/)?(\d{2,4}-\d{1,2}-\d{1,2})-([^/]*)$`)

func postDate(below string) (time.Time, error) {
	m := postName.FindStringSubmatch(below)
	if m == nil {
		return time.Time{}, fmt.Errorf("no date in %s", below)
	}
	return time.Parse("2006-1-2", m[1])
}

var notPretty, notSlug = regexp.MustCompile(`[^\pM\pL\p{Nd}._~!$&'()+,;=@]+`), regexp.MustCompile(`[^\pM\pL\p{Nd}]+`)

// prettyTitle is a name as :title has it, and jekyllSlug as :slug and :name do.
func prettyTitle(s string) string { return strings.Trim(notPretty.ReplaceAllString(s, "-"), "-") }
func jekyllSlug(s string) string {
	return strings.ToLower(strings.Trim(notSlug.ReplaceAllString(s, "-"), "-"))
}

// shownByJekyll is the address of a page by the templates of permalinks.
func (s *Site) shownByJekyll(r Page) string {
	rel := s.relative(r.Path)
	j := &s.jekyll
	kind, below, above := j.collectionOf(rel)
	stem := strings.TrimSuffix(rel, path.Ext(rel))
	suffix := ".html"
	switch style := j.permalink; {
	case jekyllStyles[style] == "" && !strings.HasSuffix(style, ":output_ext"):
		suffix = ""
		if strings.HasSuffix(style, "/") {
			suffix = "/"
		}
	case style == "pretty":
		suffix = "/"
	}
	template := text(j.says(rel, cmp.Or(kind, "pages"), "permalink"))
	if strings.HasPrefix(r.Address, "/") {
		template = r.Address
	}
	names := map[string]string{":collection": kind, ":output_ext": ".html", ":path": strings.TrimSuffix(below, path.Ext(below)),
		":name": jekyllSlug(path.Base(stem)), ":basename": path.Base(stem), ":title": prettyTitle(cmp.Or(r.Slug, path.Base(stem))), ":slug": jekyllSlug(cmp.Or(r.Slug, path.Base(stem)))}
	switch {
	case kind == "posts":
		if template == "" {
			template = cmp.Or(text(j.collections[kind]["permalink"]), jekyllStyles[j.permalink], j.permalink)
		}
		if m := postName.FindStringSubmatch(below); m != nil {
			at, _ := postDate(below)
			if r.Date != 0 {
				if at = time.Unix(r.Date, 0).UTC(); r.Date%(24*60*60) != 0 { // a day alone is one of the zone
					at = at.In(cmp.Or(j.zone, time.UTC))
				}
			}
			title := cmp.Or(r.Slug, strings.TrimSuffix(m[2], path.Ext(m[2])))
			maps.Copy(names, map[string]string{":title": prettyTitle(title), ":slug": jekyllSlug(title), ":categories": strings.ToLower(strings.Join(append(above, r.Categories...), "/")),
				":year": at.Format("2006"), ":month": at.Format("01"), ":day": at.Format("02"), ":i_month": at.Format("1"), ":i_day": at.Format("2"),
				":short_year": at.Format("06"), ":y_day": fmt.Sprintf("%03d", at.YearDay())})
		}
	case kind != "":
		template = cmp.Or(template, text(j.collections[kind]["permalink"]), "/:collection/:path"+suffix)
	case template == "" || !strings.Contains(template, ":"):
		if n := nameOf(rel, "index", "README"); n.index {
			return asFolder(n.dir)
		}
		template = "/:full" + suffix
		names[":full"] = stem
	}
	switch template {
	case "pretty":
		template = "/:collection/:path/"
	case "date", "none":
		template = "/:collection/:path:output_ext"
	}
	keys := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) })
	for _, key := range keys {
		template = strings.ReplaceAll(template, key, names[key])
	}
	out := strings.TrimPrefix(path.Clean("/"+template), "/")
	if strings.HasSuffix(template, "/") {
		return asFolder(out)
	}
	return out
}
