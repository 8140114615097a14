package site

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/internal/formats"
	"docent/internal/glob"
	"docent/site/anchor"
)

// A tree is a folder of Hugo's content. Its pages' addresses begin with the language, if that is shown, and the
// folder that it is mounted as.
type tree struct {
	folder, language, mounted string
	in, out                   []excluded // patterns of the files that a mount takes in, if it has some, and leaves out
}

// treeOf is the folder of Hugo's content that a page lies in, and the page's path there.
func (s *Site) treeOf(p string) (t tree, rel string, ok bool) {
	full := path.Join(s.docsDir, p)
	for _, x := range s.trees {
		if below, in := strings.CutPrefix(full, x.folder+"/"); in && (!ok || len(x.folder) > len(t.folder)) {
			t, rel, ok = x, below, true
		}
	}
	return t, rel, ok
}

// hugoBuild is what Hugo's configuration says of all pages.
type hugoBuild struct {
	drafts, future, expired bool
	ignore                  []*regexp.Regexp
	languages               []string          // that are not built
	permalinks              map[string]string // of pages, by the first folder that they lie in
	cascade                 []Cascade
	ugly, cased, plain      bool // addresses end in .html; they have capitals; they have no accents
}

// inTree is the place of a page in Hugo's content: its path there, and what its address begins with.
func (s *Site) inTree(p string) (prefix, rel string, ok bool) {
	t, rel, ok := s.treeOf(p)
	if ok && s.docsDir != "" && (s.docsDir == t.folder || strings.HasPrefix(s.docsDir, t.folder+"/")) {
		return "", "", false // the documentation folder's address says it
	}
	return path.Join(t.language, t.mounted), rel, ok
}

func (s *Site) openHugo(files []string, read func(string) ([]byte, error)) {
	s.language = "en"
	if s.config == "" {
		if slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "content/") }) {
			s.content = path.Join(s.docsDir, "content")
		}
		return
	}
	dir := strings.TrimSuffix(strings.TrimSuffix(s.folder(), "config/_default"), "/")
	settings := s.hugoSettings(files, dir, read)
	s.content = path.Join(dir, cmp.Or(text(settings["contentdir"]), "content"))
	s.language = cmp.Or(strings.ToLower(text(settings["defaultcontentlanguage"])), "en")
	s.trees = slices.Concat(s.languageTrees(settings, dir), s.mountedTrees(settings, dir), []tree{{folder: s.content}})
	is := func(key string) bool { return settings[key] == true }
	s.build = hugoBuild{drafts: is("builddrafts"), future: is("buildfuture"), expired: is("buildexpired"),
		cascade: readCascades(settings["cascade"]), ugly: is("uglyurls"), cased: is("disablepathtolower"), plain: is("removepathaccents")}
	s.build.languages = disabledLanguages(settings)
	patterns, whole := strs(settings["ignorefiles"])
	if !whole {
		s.unknown(s.config, "ignoreFiles is no list of texts")
	}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			s.unknown(s.config, "the pattern %q of ignoreFiles is not understood", p)
			continue
		}
		s.build.ignore = append(s.build.ignore, re)
	}
	s.setOrigin(s.config, "baseURL", text(settings["baseurl"]))
	s.rules.Values = map[string]any{"params": lowered(object(settings["params"]))}
	s.build.permalinks = hugoPermalinks(object(settings["permalinks"]))
	typographer := settings
	for _, key := range []string{"markup", "goldmark", "extensions", "typographer"} {
		if typographer[key] == false { // as older versions have it
			s.anchors.Untyped = true
		}
		typographer = lowerKeys(object(typographer[key]))
	}
	s.anchors.Untyped = s.anchors.Untyped || typographer["disable"] == true
	parser := settings
	for _, key := range []string{"markup", "goldmark", "parser"} {
		parser = lowerKeys(object(parser[key]))
	}
	s.anchors.HugoType = cmp.Or(text(parser["autoidtype"]), text(parser["autoheadingidtype"]))
}

// hugoSettings joins the files of a configuration. What the file says that is named for the site goes before what
// others say.
func (s *Site) hugoSettings(files []string, dir string, read func(string) ([]byte, error)) map[string]any {
	settings := map[string]any{}
	for _, f := range files {
		base, full := path.Base(f), path.Join(s.docsDir, path.Dir(f))
		built := full == path.Join(dir, "config/production") // what a site is built with
		if Configures(f) != api.SiteHugo || full != s.folder() && full != path.Join(dir, "config/_default") && !built {
			continue
		}
		raw, err := read(f)
		var doc map[string]any
		if err == nil {
			err = formats.Decode(f, raw, &doc)
		}
		if err != nil {
			s.unreadable(f, err)
			continue
		}
		doc = lowerKeys(doc)
		if stem := strings.TrimSuffix(base, path.Ext(base)); slices.Contains([]string{"languages", "module", "params", "permalinks", "markup"}, stem) {
			doc = map[string]any{stem: doc}
		}
		for k, v := range doc {
			was, taken := settings[k]
			a, some := was.(map[string]any)
			b, more := v.(map[string]any)
			switch {
			case built && some && more:
				a = maps.Clone(a)
				maps.Copy(a, b)
				settings[k] = a
			case !taken || f == s.config || built:
				settings[k] = v
			}
		}
	}
	return settings
}

// languageTrees are the folders of languages that have one of their own.
func (s *Site) languageTrees(settings map[string]any, dir string) (out []tree) {
	languages := object(settings["languages"])
	for _, code := range slices.Sorted(maps.Keys(languages)) {
		folder := text(lowerKeys(object(languages[code]))["contentdir"])
		if folder == "" {
			continue
		}
		t := tree{folder: path.Join(dir, folder)}
		if !strings.EqualFold(code, s.language) || settings["defaultcontentlanguageinsubdir"] == true {
			t.language = strings.ToLower(code)
		}
		out = append(out, t)
	}
	return out
}

// mountedTrees are the folders that the configuration mounts as content.
func (s *Site) mountedTrees(settings map[string]any, dir string) (out []tree) {
	mounts, _ := lowerKeys(object(settings["module"]))["mounts"].([]any)
	for _, v := range mounts {
		m := lowerKeys(object(v))
		target, source := path.Clean(text(m["target"])), text(m["source"])
		if source == "" || target != "content" && !strings.HasPrefix(target, "content/") {
			continue
		}
		t := tree{folder: path.Join(dir, source), mounted: strings.TrimPrefix(strings.TrimPrefix(target, "content"), "/")}
		if lang := text(m["lang"]); lang != "" && !strings.EqualFold(lang, s.language) {
			t.language = strings.ToLower(lang)
		}
		s.readMount(&t, m)
		out = append(out, t)
	}
	return out
}

// readMount reads which files a mount takes in.
func (s *Site) readMount(t *tree, m map[string]any) {
	for _, key := range []string{"excludefiles", "includefiles", "files"} {
		list, whole := strs(m[key])
		if !whole {
			s.unknown(s.config, "%s of a mount is no list of texts", key)
		}
		for _, text := range list {
			pattern, negated := strings.CutPrefix(text, "! ")
			pattern = "/" + strings.TrimPrefix(strings.ToLower(pattern), "/")
			re, err := regexp.Compile(glob.Expression(pattern, false))
			switch by := (excluded{text, re}); {
			case err != nil:
				s.unknown(s.config, "the pattern %q of %s of a mount is not understood", text, key)
			case key == "excludefiles" || key == "files" && negated:
				t.out = append(t.out, by)
			default:
				t.in = append(t.in, by)
			}
		}
	}
}

// takes reports whether a mount takes a file in, and why not.
func (t *tree) takes(rel string) (why string, ok bool) {
	name := "/" + strings.ToLower(rel)
	for at := name; at != "/"; at = path.Dir(at) {
		for _, by := range t.out {
			if by.re.MatchString(at) {
				return "a mount leaves out " + by.text, false
			}
		}
	}
	if t.in != nil && !slices.ContainsFunc(t.in, func(by excluded) bool { return by.re.MatchString(name) }) {
		return "no pattern of the files of a mount matches", false
	}
	return "", true
}

// disabledLanguages are those that a site is not built in.
func disabledLanguages(settings map[string]any) (out []string) {
	list, _ := strs(settings["disablelanguages"])
	for _, code := range list {
		out = append(out, strings.ToLower(code))
	}
	for code, v := range object(settings["languages"]) {
		if of := lowerKeys(object(v)); of["disabled"] == true {
			out = append(out, strings.ToLower(code))
		}
	}
	return out
}

var hugoFormats = map[string]bool{".md": true, ".mdown": true, ".markdown": true, ".html": true, ".htm": true,
	".adoc": true, ".asciidoc": true, ".ad": true, ".rst": true, ".org": true, ".pandoc": true, ".pdc": true}

func (d *decider) hugo(e *Entry) Decision {
	rel, ok := d.inside(e.Path)
	if t, below, in := d.treeOf(e.Path); in {
		rel, ok = path.Join(t.mounted, below), true
		if why, takes := t.takes(below); !takes {
			return Decision{LeftOut, why, d.Config()}
		}
	}
	if !ok {
		return d.outside(d.Config())
	}
	if code := d.languageOf(e.Path); slices.Contains(d.build.languages, code) {
		return Decision{LeftOut, "the language " + code + " is disabled", d.Config()}
	}
	full := d.file(e.Path)
	for _, re := range d.build.ignore {
		if re.MatchString(full) || re.MatchString("/"+full) {
			return Decision{LeftOut, "ignoreFiles: " + re.String(), d.Config()}
		}
	}
	base := path.Base(e.Path)
	if strings.HasPrefix(base, "#") || strings.HasSuffix(base, "~") {
		return Decision{LeftOut, "Hugo leaves out " + base, ""}
	}
	if !hugoFormats[strings.ToLower(path.Ext(base))] {
		return d.formats(e)
	}
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if page := d.bundles[dir]; page != "" && !(path.Dir(e.Path) == dir && strings.HasPrefix(base, "index.")) {
			return Decision{Included, "is a resource of the page that its folder is", d.file(page)}
		}
		if dir == "." || dir == "/" || strings.HasSuffix(dir, "..") {
			break
		}
	}
	return d.hugoBuilds(e, rel)
}

// languageOf is the language that Hugo has a page in, if its folder or its name says so.
func (d *decider) languageOf(p string) string {
	if t, _, ok := d.treeOf(p); ok && t.language != "" {
		return t.language
	}
	stem := strings.TrimSuffix(path.Base(p), path.Ext(p))
	return strings.ToLower(strings.TrimPrefix(path.Ext(stem), "."))
}

// hugoBuilds says of a page of Hugo's what its dates and the options of building it make of it.
func (d *decider) hugoBuilds(e *Entry, rel string) Decision {
	build, from := d.hugoBuild(e, rel)
	if build.Draft != "" && !d.build.drafts {
		return Decision{LeftOut, "cascade: " + build.Draft, from.Draft}
	}
	switch build.Render {
	case "never", "link":
		return Decision{Included, "build.render: " + build.Render, from.Render}
	}
	if at := e.Front.PublishAt; at != 0 && at > d.now.Unix() && !d.build.future {
		return Decision{LeftOut, "is published from " + time.Unix(at, 0).UTC().Format(time.RFC3339) + " on", d.file(e.Path)}
	}
	if at := e.Front.ExpireAt; at != 0 && at <= d.now.Unix() && !d.build.expired {
		return Decision{LeftOut, "has expired on " + time.Unix(at, 0).UTC().Format(time.RFC3339), d.file(e.Path)}
	}
	if build.List == "never" {
		return Decision{Unlisted, "build.list: never", from.List}
	}
	return Decision{Published, "lies in the content folder", d.Config()}
}

// target reports whether a pattern of a cascade matches. An invalid pattern matches everything, so that nothing is
// published that it may have meant to hold back.
func (d *decider) target(text, name string) bool {
	if text == "" {
		return true
	}
	g, known := d.targets[text]
	if !known {
		var err error
		if g, err = glob.Compile(strings.ToLower(text), true); err != nil {
			g = everything
		}
		d.targets[text] = g
	}
	return g.Match(name)
}

var everything = glob.Globs("**")[0]

// hugoBuild is what a page, those above it and the site say of building it, and which file says each.
func (d *decider) hugoBuild(e *Entry, rel string) (b, from Build) {
	take := func(x Build, file string) {
		if b.Render == "" && x.Render != "" {
			b.Render, from.Render = x.Render, file
		}
		if b.List == "" && x.List != "" {
			b.List, from.List = x.List, file
		}
		if b.Draft == "" && x.Draft != "" {
			b.Draft, from.Draft = x.Draft, file
		}
	}
	take(e.Front.Build, d.file(e.Path))
	kind, logical := "page", "/"+strings.ToLower(strings.TrimSuffix(rel, path.Ext(rel)))
	switch base := path.Base(logical); {
	case base == "_index" || strings.HasPrefix(base, "_index."):
		kind, logical = "section", path.Dir(logical)
		if logical == "/" {
			kind = "home"
		}
	case base == "index" || strings.HasPrefix(base, "index."):
		logical = path.Dir(logical)
	}
	cascade := func(list []Cascade, file string) {
		for _, c := range list {
			if d.target(c.Path, logical) && d.target(c.Kind, kind) && d.target(c.Lang, d.language) {
				take(c.Build, file)
			}
		}
	}
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		for _, end := range []string{"md", "html", "markdown", "adoc", "rst", d.language + ".md"} {
			if above := d.entries[path.Join(dir, "_index."+end)]; above != nil {
				cascade(above.Front.Cascade, d.file(above.Path))
			}
		}
		if dir == "." || dir == "/" || strings.HasSuffix(dir, "..") {
			break
		}
	}
	cascade(d.build.cascade, d.Config())
	return b, from
}

// readHugo reads the languages of a Hugo site. The names of its settings are in any case.
func (l *layout) readHugo(f siteConfig) {
	var doc map[string]any
	_ = formats.Decode(f.path, f.text, &doc) // openHugo says what cannot be read
	doc = lowerKeys(doc)
	site := strings.TrimSuffix(strings.TrimSuffix(path.Dir(f.path), "config/_default"), "/")
	if tag, ok := doc["defaultcontentlanguage"].(string); ok {
		l.setDefault(tag)
	}
	languages, _ := doc["languages"].(map[string]any)
	if strings.HasPrefix(path.Base(f.path), "languages.") {
		languages = doc
	}
	for tag, v := range languages {
		of, ok := v.(map[string]any)
		if !ok {
			continue
		}
		l.name(tag, tag)
		if dir, ok := lowerKeys(of)["contentdir"].(string); ok && dir != "" {
			l.folders[path.Join(site, dir)] = tag
		}
	}
}

func (s *Site) shownByHugo(r Page, n fileName) string {
	if prefix, rest, ok := s.inTree(r.Path); ok {
		n.dir = path.Join(prefix, strings.Trim(path.Dir("/"+rest), "/"))
	}
	home := n.dir == "" && strings.HasPrefix(n.stem, "_index")
	for _, code := range slices.Concat(Translations, slices.Sorted(maps.Keys(s.layout.locales))) {
		if rest, ok := strings.CutSuffix(n.stem, "."+code); ok {
			n.stem = rest
			if code != s.language {
				n.dir = path.Join(code, n.dir)
			}
			n.index = rest == "index" || rest == "_index"
		}
	}
	own := n.beside(n.stem)
	section, _, _ := strings.Cut(own, "/")
	if pattern := s.build.permalinks[section]; pattern != "" && n.stem != "_index" && own != section {
		if at, ok := hugoPermalink(pattern, r, n); ok {
			return s.hugoAddress(at, false)
		}
	}
	switch {
	case r.Slug != "" && n.stem == "index": // a bundle: the folder is the page
		own = path.Join(path.Dir(n.dir), r.Slug)
	case r.Slug != "" && n.stem != "_index":
		own = n.beside(strings.Trim(r.Slug, "/"))
	case n.index:
		own = n.dir
	}
	return s.hugoAddress(own, home)
}

// hugoAddress is the address of a path by the settings for all of them.
func (s *Site) hugoAddress(p string, home bool) string {
	if p = strings.Trim(anchor.HugoPath(p, s.build.cased, s.build.plain), "/"); s.build.ugly && !home && p != "" {
		return p + ".html"
	}
	return asFolder(p)
}

// lowered are settings whose names are in any case, however deep they lie.
func lowered(values map[string]any) map[string]any {
	out := lowerKeys(values)
	for k, v := range out {
		if of, ok := v.(map[string]any); ok {
			out[k] = lowered(of)
		}
	}
	return out
}

// hugoPermalinks are the patterns of the addresses of pages, by section.
func hugoPermalinks(settings map[string]any) map[string]string {
	out := map[string]string{}
	for section, v := range settings {
		if pattern, ok := v.(string); ok {
			out[section] = pattern
		} else if section == "page" {
			maps.Copy(out, hugoPermalinks(object(v)))
		}
	}
	return out
}

var hugoToken = regexp.MustCompile(`:\w+`)

// hugoPermalink fills in the pattern of a page's address; ok is false if it names what is not known here.
func hugoPermalink(pattern string, r Page, n fileName) (at string, ok bool) {
	ok = true
	date := time.Unix(r.Date, 0).UTC()
	if r.Date == 0 {
		date = time.Time{}
	}
	name, sections := n.stem, n.dir
	if n.stem == "index" { // a bundle: the folder is the page
		name, sections = path.Base(n.dir), path.Dir(n.dir)
	}
	at = hugoToken.ReplaceAllStringFunc(pattern, func(token string) string {
		switch token {
		case ":year", ":month", ":monthname", ":day", ":weekdayname":
			return date.Format(map[string]string{":year": "2006", ":month": "01", ":monthname": "January", ":day": "02", ":weekdayname": "Monday"}[token])
		case ":weekday":
			return strconv.Itoa(int(date.Weekday()))
		case ":yearday":
			return strconv.Itoa(date.YearDay())
		case ":section":
			section, _, _ := strings.Cut(sections, "/")
			return section
		case ":sections":
			return sections
		case ":title":
			return strings.ReplaceAll(r.Title, "/", "-")
		case ":slug":
			return cmp.Or(strings.Trim(r.Slug, "/"), strings.ReplaceAll(r.Title, "/", "-"))
		case ":filename", ":contentbasename":
			return name
		case ":slugorfilename", ":slugorcontentbasename":
			return cmp.Or(strings.Trim(r.Slug, "/"), name)
		}
		ok = false
		return ""
	})
	return strings.Trim(at, "/"), ok && !strings.Contains(pattern, "[")
}
