package search

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"docent/search/analysis"
	"docent/search/page"
	"docent/site"
)

// A locale is a language that pages are written in, as the site names it.
type locale struct {
	name  string       // in lower case, with hyphens
	shown string       // as the site writes it; empty if nothing says which language it is
	tag   language.Tag // what it stands for
	pages int
}

// A scope is which version and which language a query is answered from. What has neither a version nor a filter's
// groups to say belongs to every scope.
type scope struct {
	only string // version that the filter names: only its pages
	// version that the reader is in, if it is not the current one; of docs that have no such version, the current
	// one
	version  string
	locale   int  // number of the language; everyLocale for all
	certain  bool // the filter or the reader's page names the language, or the question shows it
	strict   bool // the filter names the language
	nothing  bool // the filter names what the site does not have
	anything bool // all versions and languages
	foreign  bool // pages of the site's language that are not there in the reader's: set for the second look
}

const everyLocale = -1

// maxLocales bounds what folders that look like languages cost. Pages of further ones count as the site's own.
const maxLocales = 1000

// parseTag reads a language's name, as codes of countries that sites use too.
func parseTag(name string) language.Tag {
	if tag, err := language.Parse(cmp.Or(site.OtherTags[site.FoldTag(name)], name)); err == nil {
		return tag
	}
	return language.Und
}

type versionOfDocs struct{ docs, version string }

// findEditions lists the site's languages and versions, and which pages are the same in several.
func (s *snapshot) findEditions() {
	s.localeOf = make([]uint16, len(s.pages))
	s.hasVersion = make(map[versionOfDocs]bool)
	named := s.Manifest.Language
	english := func(r *page.Record) bool { return r.Locale == "" || analysis.Language(r.Locale) == "en" }
	if named == "" && !slices.ContainsFunc(s.pages, english) {
		count := map[string]int{} // nothing says it, and nothing is in English: the language of most pages
		for _, r := range s.pages {
			if count[r.Locale]++; count[r.Locale] > count[named] {
				named = r.Locale
			}
		}
	}
	for _, r := range s.pages { // or the English that pages name
		if named == "" && r.Locale != "" && analysis.Language(r.Locale) == "en" {
			named = r.Locale
		}
	}
	s.locales = []locale{{name: site.FoldTag(cmp.Or(named, "en")), shown: named, tag: parseTag(cmp.Or(named, "en"))}}
	numbers := map[string]int{"": 0, s.locales[0].name: 0}
	for page, r := range s.pages {
		name := site.FoldTag(r.Locale)
		at, known := numbers[name]
		if !known && len(s.locales) < maxLocales {
			at = len(s.locales)
			numbers[name] = at
			s.locales = append(s.locales, locale{name: name, shown: r.Locale, tag: parseTag(r.Locale)})
		}
		s.localeOf[page] = uint16(at)
		s.locales[at].pages++
		for _, v := range r.Versions {
			s.hasVersion[versionOfDocs{r.Docs, strings.ToLower(v)}] = true
		}
	}
	if len(s.locales) > 1 || len(s.hasVersion) > 0 {
		s.same = make(map[string][]uint32)
		for page, r := range s.pages {
			s.same[r.Same] = append(s.same[r.Same], uint32(page))
		}
	}
}

// localeNamed is the number of the site's language that a name stands for: the same, or the one that BCP 47's rules
// take for it: fr for fr-CA, zh-Hans for zh-CN.
func (s *snapshot) localeNamed(name string) (int, bool) {
	folded := site.FoldTag(name)
	if at := slices.IndexFunc(s.locales, func(l locale) bool { return l.name == folded }); at >= 0 {
		return at, true
	}
	wanted := parseTag(name)
	if wanted == language.Und {
		return 0, false
	}
	tags := make([]language.Tag, len(s.locales))
	for i, l := range s.locales {
		tags[i] = l.tag
	}
	_, at, confidence := language.NewMatcher(tags).Match(wanted)
	return at, confidence >= language.High
}

// A reader is what the page that someone is on tells of the version and the language that they read.
type reader struct {
	version string // empty if it is the current one
	locale  int    // everyLocale if the page does not tell
}

// readerOf reads it from the page or, if there is no such page, from its address alone: an untranslated page is shown
// under its language's address too.
func (s *snapshot) readerOf(q *Query) reader {
	who := reader{locale: everyLocale}
	if q.CurrentPath == "" {
		return who
	}
	if page, ok := s.here(q); ok {
		r := s.pages[page]
		who.locale = int(s.localeOf[page])
		if !r.Current && len(r.Versions) > 0 {
			who.version = strings.ToLower(r.Versions[0])
		}
		return who
	}
	for i, dir := range strings.Split(s.addressPath(q.CurrentPath), "/") {
		if i < 2 && who.locale < 0 {
			who.locale = slices.IndexFunc(s.locales, func(l locale) bool { return l.name == site.FoldTag(dir) })
		}
		for v := range s.hasVersion {
			if low := strings.ToLower(dir); v.version == low || low == "version-"+v.version {
				who.version = v.version
			}
		}
	}
	return who
}

// addressPath is the path of a page's address on the site, without leading slash.
func (s *snapshot) addressPath(address string) string {
	if site := strings.TrimRight(s.labels().SiteURL, "/"); site != "" {
		if rest, ok := strings.CutPrefix(address, site); ok && (rest == "" || strings.ContainsAny(rest[:1], "/?#")) {
			address = rest
		}
	}
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	return strings.TrimPrefix(path.Clean("/"+address), "/")
}

// scopeOf is the scope of a query: the filter's version and language; else those of the page that the reader is on;
// else the current version, and the language of the question or the site's own.
func (s *snapshot) scopeOf(ctx context.Context, q *Query) (scope, error) {
	if q.Everywhere {
		return scope{anything: true, locale: everyLocale}, nil
	}
	who := s.readerOf(q)
	sc := scope{version: who.version, locale: who.locale, certain: who.locale >= 0}
	if q.Filter.Version != "" {
		sc.only = q.Filter.Version
	}
	if q.Filter.Language != "" {
		at, ok := s.localeNamed(q.Filter.Language)
		sc.locale, sc.certain, sc.strict, sc.nothing = at, true, true, !ok
	}
	if sc.locale >= 0 {
		return sc, nil
	}
	sc.locale = 0
	if len(s.locales) == 1 {
		sc.certain = true
		return sc, nil
	}
	for _, text := range q.asked() {
		at, ok, err := s.languageOfText(ctx, text, q.Box && len(q.Asked) == 0)
		if err != nil {
			return sc, err
		}
		if ok {
			sc.locale, sc.certain = at, true
			break
		}
	}
	return sc, nil
}

// asked are the words of the reader that tell their language, the newest first.
func (q *Query) asked() []string {
	if len(q.Asked) > 0 {
		return q.Asked
	}
	return []string{q.Text}
}

// inScope reports whether a page is in a scope.
func (s *snapshot) inScope(sc *scope, page uint32) bool {
	switch {
	case sc.anything:
		return true
	case sc.nothing || !s.inVersion(sc, page):
		return false
	case sc.foreign:
		return s.localeOf[page] == 0 && !s.translated(sc, page)
	}
	return sc.locale == everyLocale || int(s.localeOf[page]) == sc.locale
}

func (s *snapshot) inVersion(sc *scope, page uint32) bool {
	r := s.pages[page]
	switch {
	case sc.only != "":
		return r.HasVersion(sc.only)
	case sc.version == "":
		return r.Current
	case len(r.Versions) == 0: // unless it is the newer state of a page of the reader's version
		return !slices.ContainsFunc(s.same[r.Same], func(other uint32) bool { return s.pages[other].HasVersion(sc.version) })
	}
	return r.HasVersion(sc.version) || r.Current && !s.hasVersion[versionOfDocs{r.Docs, sc.version}]
}

// translated reports whether the reader has a page of the site's own language in theirs.
func (s *snapshot) translated(sc *scope, page uint32) bool {
	r := s.pages[page]
	return slices.ContainsFunc(s.same[r.Same], func(other uint32) bool {
		return int(s.localeOf[other]) == sc.locale && s.inVersion(sc, other)
	})
}

// foreignLead is how many times better a page of the site's own language must fit than any in the reader's, so that
// these are taken to have nothing on the subject.
const foreignLead = 2

// rankIn ranks the pages of a scope. All that it finds is in one language. If the reader's language was not asked
// for by name, and has nothing, pages that are not translated into it answer; and if nobody knows the reader's
// language, that of the page that fits best.
func (s *snapshot) rankIn(ctx context.Context, w *scratch, q Query, sc scope) ([]scored, error) {
	found, err := s.rankScope(ctx, w, q, &sc)
	switch {
	case err != nil || sc.strict || sc.anything || len(s.locales) == 1:
		return found, err
	case sc.certain && sc.locale > 0:
		second := sc
		second.foreign = true
		other, err := s.rankScope(ctx, w, q, &second)
		if err == nil && len(other) > 0 && (len(found) == 0 || other[0].score >= foreignLead*found[0].score) {
			return other, nil
		}
		return found, err
	case !sc.certain && q.Box && len(found) == 0: // a word that is not finished tells no language
		second := sc
		second.locale = everyLocale
		other, err := s.rankScope(ctx, w, q, &second)
		if err != nil || len(other) == 0 {
			return nil, err
		}
		second.locale = int(s.localeOf[s.pageOf[other[0].section]])
		return s.rankScope(ctx, w, q, &second)
	}
	return found, nil
}

// rankScope ranks the pages of one scope, by the words of its language.
func (s *snapshot) rankScope(ctx context.Context, w *scratch, q Query, sc *scope) ([]scored, error) {
	languages := s.languages
	switch {
	case sc.nothing:
		return nil, nil
	case sc.foreign:
		languages = []string{analysis.Language(s.locales[0].name)}
	case sc.locale >= 0:
		languages = []string{analysis.Language(s.locales[sc.locale].name)}
	}
	if w.trace != nil {
		w.trace.begin()
	}
	groups, err := s.parse(ctx, w, q, languages)
	if err != nil {
		return nil, err
	}
	w.asked.clear()
	found, err := s.rankGroups(ctx, w, q, groups, sc, 0)
	if err == nil && w.lead < s.tuning.SynonymBelow {
		if bridged, ok := s.bridge(w, groups, languages); ok {
			if w.trace != nil {
				w.trace.begin()
			}
			w.asked.clear()
			// Words that were not asked for put pages in order. They do not make it likelier that a page answers.
			found, err = s.rankGroups(ctx, w, q, bridged, sc, cmp.Or(w.lead, s.tuning.SynonymBelow))
		}
	}
	if w.trace != nil && err == nil {
		w.trace.looks = append(w.trace.looks, look{*sc, found})
	}
	return found, err
}
