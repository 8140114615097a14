package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2"
	bleveindex "github.com/blevesearch/bleve_index_api"

	"docent/api"
	"docent/internal/cache"
	"docent/search/analysis"
	"docent/search/index"
	"docent/search/meaning"
	"docent/search/page"
	"docent/search/written"
	"docent/site"
)

// A snapshot is one generation, open. It never changes.
type snapshot struct {
	*index.Generation
	tables
	norms
	library *Library
	index   bleve.Index
	reader  bleveindex.IndexReader
	tuning  *Tuning

	living  sync.Map // word -> the number of pages that have it
	terms   cache.Cache[termKey, *postings]
	shown   cache.Cache[uint32, *shown]
	results cache.Cache[resultKey, []scored]
	flights cache.Flights[resultKey, []scored]
	lookups *lookups
	fixed   int64 // bytes that it holds beside the caches
	memory  *atomic.Int64

	relabeled      atomic.Pointer[index.Manifest]
	embeddingIndex atomic.Pointer[embeddingIndex]
	meantBytes     atomic.Int64
	written        *written.Field // nil if no section has questions

	keying sync.Mutex
	keys   []meaning.Key // of the sections, once somebody has asked

	// Under library.mu:
	users    int
	retired  bool // no longer served: its last user closes it
	obsolete bool // replaced: its folder goes when it is closed
}

// tables are what ranking needs of a generation, by dense numbers: pages in the order of their paths, sections in the
// order of their pages.
type tables struct {
	naming
	pages     []*page.Record
	pageOf    []uint32 // page of a section
	firstOf   []uint32 // first section of a page; one more at the end
	sections  []*page.Section
	sectionOf []int32     // section of a Bleve document number; -1 if deleted
	linksTo   [][]uint32  // pages that a page links to, sorted
	words     index.Words // in how many pages each is, counting those that are deleted
}

// naming is by what pages are found beside their words.
type naming struct {
	byKey      map[string]uint32 // pages by path without extension, then by address
	byAddress  map[string]uint32 // pages by the address that readers see
	covered    map[uint32]bool   // descriptions of which such a page shows an operation
	titles     []titleEntry
	languages  []string // that pages are written in: primary subtags
	locales    []locale // the same as the site names them, its own first
	localeOf   []uint16 // of a page
	hasVersion map[versionOfDocs]bool
	same       map[string][]uint32 // pages that are one in several versions and languages; nil if there are none of these
}

// norms are the weights by which a term frequency counts, by document: the field's weight over the norm of its length.
type norms struct {
	sectionNorm [page.SectionFields][]float32
	headingNorm []float32              // the same for fields of whole pages
	inheritNorm [page.Fields][]float32 // what a page's field is worth in the score of its sections
	pageNorm    [page.Fields][]float32
	pageBody    []float32
	pageCode    []float32
	titleIDF    raggedArray // how rare the words of a page's title are
	headIDF     raggedArray // the same for the headings of sections
	census      *index.Census
	meanBody    float64
}

type titleEntry struct {
	title string // words in lower case with one space between
	page  uint32
}

// openSnapshot opens a generation. One that was just made is known, and goes on with the snapshot before; both are nil
// for one that is read from disk.
func openSnapshot(dir string, l *Library, gen *index.Generation, before *snapshot) (_ *snapshot, err error) {
	defer func() {
		if p := recover(); p != nil { // bytes that pass the checksum and still are no index
			err = fmt.Errorf("open %s: %v", filepath.Base(dir), p)
		}
	}()
	if gen == nil {
		if gen, err = index.Open(dir); err != nil {
			return nil, err
		}
		before = nil
	}
	s := &snapshot{Generation: gen, library: l, tuning: &l.tuning, memory: &l.memory, lookups: &l.lookups}
	s.remember(l.options)
	if s.index, err = bleve.OpenUsing(filepath.Join(dir, "index"), map[string]interface{}{"read_only": true}); err != nil {
		return nil, errors.Join(fmt.Errorf("open index: %w", err), s.Text.Close())
	}
	advanced, err := s.index.Advanced()
	if err == nil {
		s.reader, err = advanced.Reader()
	}
	if err == nil {
		err = s.build(before)
	}
	if err != nil {
		s.closeFiles()
		return nil, err
	}
	if before != nil {
		s.takeKeys(before)
	}
	l.mu.Lock()
	l.live[dir]++
	l.mu.Unlock()
	s.fixed = s.measureMemory()
	s.memory.Add(s.fixed)
	s.openWritten()
	s.openMeaning()
	return s, nil
}

// remember makes the caches, which go with the snapshot.
func (s *snapshot) remember(o Options) {
	if s.lookups == nil {
		s.lookups = new(lookups) // nobody counts
	}
	s.terms = cache.Cache[termKey, *postings]{Most: o.CacheBytes, Held: s.memory, Looked: s.lookups.terms.add,
		Size: func(k termKey, p *postings) int64 { return p.size(k) }}
	s.shown = cache.Cache[uint32, *shown]{Most: o.TextBytes, Held: s.memory, Looked: s.lookups.texts.add,
		Size: func(_ uint32, v *shown) int64 { return v.size() }}
	s.results = cache.Cache[resultKey, []scored]{Most: o.ResultBytes, Held: s.memory, Looked: s.lookups.results.add,
		Size: func(k resultKey, found []scored) int64 { return k.size() + int64(16*len(found)) }}
}

// What an open index takes beside what can be counted: Bleve's goroutines, buffers and tables.
const openIndexMemory = 256 << 10

// measureMemory counts what the snapshot's arrays and records hold.
func (s *snapshot) measureMemory() int64 {
	n := int64(openIndexMemory)
	for _, f := range s.Manifest.Files {
		if f.Name == "pages" {
			n += 2 * f.Size // decoded
		}
	}
	n += int64(len(s.sections)) * (4*page.SectionFields + 24)
	if s.library.meaning() != nil || s.library.options.Written != nil {
		n += int64(len(s.sections) * len(meaning.Key{}))
	}
	n += int64(len(s.pages)) * (4*(2*page.Fields+3) + 160)
	for key, pages := range s.same {
		n += int64(len(key)+4*len(pages)) + 64
	}
	for _, w := range s.words.Texts {
		n += int64(len(w)) + 20
	}
	for _, t := range s.titles {
		n += int64(len(t.title)) + 24
	}
	n += s.census.Bytes()
	return n + int64(len(s.titleIDF.all)+len(s.headIDF.all)+len(s.titleIDF.from)+len(s.headIDF.from))*4
}

// holds is how many bytes are free once the snapshot is closed.
func (s *snapshot) holds() int64 {
	return s.fixed + s.meantBytes.Load() + s.terms.Holds() + s.shown.Holds() + s.results.Holds()
}

func (s *snapshot) closeFiles() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.index.Close()
	s.Text.Close()
}

// close is called once, when nobody uses the snapshot any more.
func (s *snapshot) close() {
	s.closeFiles()
	s.memory.Add(-s.holds())
	l := s.library
	l.mu.Lock()
	if l.live[s.Dir]--; l.live[s.Dir] == 0 {
		delete(l.live, s.Dir)
	}
	l.mu.Unlock()
	if s.obsolete {
		os.RemoveAll(s.Dir)
	}
}

func (s *snapshot) labels() *index.Manifest {
	if m := s.relabeled.Load(); m != nil {
		return m
	}
	return &s.Manifest
}

// build fills the arrays, by what the snapshot before knows, if there is one with records in common.
func (s *snapshot) build(before *snapshot) error {
	for _, r := range s.Records {
		if r.Kind != page.KindPage {
			continue
		}
		page := uint32(len(s.pages))
		s.pages = append(s.pages, r)
		s.firstOf = append(s.firstOf, uint32(len(s.sections)))
		for i := range r.Sections {
			s.sections = append(s.sections, &r.Sections[i])
			s.pageOf = append(s.pageOf, page)
		}
	}
	s.firstOf = append(s.firstOf, uint32(len(s.sections)))
	if before == nil || !s.takeNames(before) {
		s.name()
	}
	if err := s.numberDocuments(before); err != nil {
		return err
	}
	s.measure()
	s.countRarities(before)
	return nil
}

// takeNames takes over by what names, addresses and editions the snapshot before finds the same pages: those that have
// changed have the same, and only other texts and links.
func (s *snapshot) takeNames(before *snapshot) bool {
	if len(before.pages) != len(s.pages) || before.Manifest.Language != s.Manifest.Language {
		return false
	}
	for i, r := range s.pages {
		if old := before.pages[i]; r != old && (r.Path != old.Path || r.Renders != "" || old.Renders != "" || r.Hidden != old.Hidden || r.Title != old.Title ||
			r.Shown != old.Shown || r.Locale != old.Locale || r.Docs != old.Docs || r.Same != old.Same || !slices.Equal(r.Titles, old.Titles) ||
			!slices.Equal(r.Aliases, old.Aliases) || !slices.Equal(r.Versions, old.Versions)) {
			return false
		}
	}
	s.naming, s.linksTo = before.naming, slices.Clone(before.linksTo)
	for page, r := range s.pages {
		if r != before.pages[page] {
			s.linkFrom(page)
		}
	}
	return true
}

// linkFrom finds the pages that a page links to.
func (s *snapshot) linkFrom(page int) {
	links := s.pages[page].Links
	to := make([]uint32, 0, len(links))
	for _, l := range links {
		if other, ok := s.byKey[l.To]; ok && other != uint32(page) {
			to = append(to, other)
		}
	}
	slices.Sort(to)
	s.linksTo[page] = slices.Compact(to)
}

// name finds out by what pages are found beside their words.
func (s *snapshot) name() {
	s.byKey, s.byAddress = make(map[string]uint32), make(map[string]uint32)
	languages := make(map[string]bool)
	for page, r := range s.pages {
		languages[analysis.Language(r.Locale)] = true
		if title := plainTitle(r.Title); title != "" && !r.Hidden {
			s.titles = append(s.titles, titleEntry{title, uint32(page)})
			for _, other := range r.Titles {
				if t := plainTitle(other); t != "" && t != title {
					s.titles = append(s.titles, titleEntry{t, uint32(page)})
				}
			}
		}
		if r.File == "" {
			s.byKey[site.PageKey(r.Path)] = uint32(page)
		}
	}
	s.findEditions()
	s.findOperations()
	order := s.byClaim()
	for _, addresses := range []func(*page.Record) []string{
		func(r *page.Record) []string { return []string{r.Shown} },
		func(r *page.Record) []string { return r.Aliases },
	} {
		for _, page := range order {
			for _, address := range addresses(s.pages[page]) {
				key := site.AddressKey(address)
				for _, names := range []map[string]uint32{s.byKey, s.byAddress} {
					if _, taken := names[key]; !taken {
						names[key] = page
					}
				}
			}
		}
	}
	s.linksTo = make([][]uint32, len(s.pages))
	for page := range s.pages {
		s.linkFrom(page)
	}
	if s.languages = slices.Sorted(maps.Keys(languages)); len(s.languages) == 0 {
		s.languages = []string{"en"}
	}
	sort.Slice(s.titles, func(i, j int) bool { return s.titles[i].title < s.titles[j].title })
}

// numberDocuments maps Bleve's document numbers to sections, and reads the dictionary. A section that has no document, or
// a document that has no section, means that postings and pages do not belong together. Segments that the snapshot before
// has too are not read again.
func (s *snapshot) numberDocuments(before *snapshot) error {
	var known bleveindex.IndexReader
	if before != nil {
		known = before.reader
	}
	segments, shared, err := index.Segments(s.reader, known)
	if err != nil {
		return err
	}
	byUID := make([]uint32, s.Manifest.NextUID) // numbers of pages, from 1
	for at, r := range s.pages {
		byUID[r.UID] = uint32(at) + 1
	}
	found, number := 0, 0
	s.sectionOf = nil
	for i, seg := range segments {
		s.sectionOf = append(s.sectionOf, make([]int32, seg.FullSize())...)
		own := s.sectionOf[number:]
		for n := range own {
			own[n] = -1
		}
		if i < shared {
			for n, was := range before.sectionOf[number : number+len(own)] {
				if was < 0 {
					continue
				}
				old := before.pageOf[was]
				if at := byUID[before.pages[old].UID]; at > 0 && s.pages[at-1] == before.pages[old] { // else it is deleted
					own[n] = int32(s.firstOf[at-1]) + was - int32(before.firstOf[old])
					found++
				}
			}
			number += len(own)
			continue
		}
		for live := seg.DocNumbersLive().Iterator(); live.HasNext(); found++ {
			n := live.Next()
			id, err := seg.DocID(uint64(n))
			if err != nil {
				return fmt.Errorf("read document: %w", err)
			}
			uid, section, ok := page.ParseSectionID(string(id))
			if !ok || uid >= s.Manifest.NextUID || byUID[uid] == 0 || section >= len(s.pages[byUID[uid]-1].Sections) {
				return fmt.Errorf("document %q belongs to no page", id)
			}
			own[n] = int32(s.firstOf[byUID[uid]-1]) + int32(section)
		}
		number += len(own)
	}
	if found != len(s.sections) {
		return fmt.Errorf("%d documents for %d sections", found, len(s.sections))
	}
	s.Segments = len(segments)
	if before != nil && shared == before.Segments {
		s.words, segments = before.words, segments[shared:]
	}
	s.words, err = s.words.With(page.FieldNames[page.FieldSurface], segments)
	return err
}

// findOperations finds the pages that show an operation of an API and nothing else: they are found by the operation.
func (s *snapshot) findOperations() {
	s.covered = make(map[uint32]bool)
	described := make(map[string]bool)
	for _, r := range s.pages {
		if r.File != "" && !r.Hidden {
			described[r.Renders] = true
		}
	}
	for at, r := range s.pages {
		if r.File == "" && described[r.Renders] && len(r.Groups) == 0 && !slices.ContainsFunc(r.Sections,
			func(own page.Section) bool { return own.Len[page.FieldBody]+own.Len[page.FieldCode] > 0 }) {
			s.covered[uint32(at)] = true
		}
	}
}

// byClaim orders the pages by whose an address is that several have: an operation of an API has that of the page which
// renders it, and is what readers see there if the page holds nothing else.
func (s *snapshot) byClaim() []uint32 {
	var own, operations, covered []uint32
	for at, r := range s.pages {
		switch {
		case s.covered[uint32(at)]:
			covered = append(covered, uint32(at))
		case r.File != "":
			operations = append(operations, uint32(at))
		default:
			own = append(own, uint32(at))
		}
	}
	return slices.Concat(own, operations, covered)
}

// used is how many pages have a word of the dictionary. Bleve's dictionaries still hold the words of deleted documents
// until their segments are written afresh.
func (s *snapshot) used(word int) uint32 {
	if s.Manifest.Dead == 0 {
		return s.words.In[word]
	}
	text := s.words.Texts[word]
	if known, ok := s.living.Load(text); ok {
		return known.(uint32)
	}
	pages := uint32(0)
	if r, err := s.reader.TermFieldReader(context.Background(), []byte(text), page.FieldNames[page.FieldSurface], false,
		false, false); err == nil {
		pages = uint32(min(r.Count(), math.MaxUint32))
		r.Close()
	}
	s.living.Store(text, pages)
	return pages
}

// plainTitle is a title as it is compared with what is typed: lower case, words only.
func plainTitle(title string) string {
	var b strings.Builder
	gap := false
	for _, r := range title {
		if analysis.IsWord(r) {
			if gap && b.Len() > 0 {
				b.WriteByte(' ')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
	}
	return analysis.Fold(b.String())
}

// url is a page's address for readers.
func (s *snapshot) url(r *page.Record, anchor string) string {
	return r.URL(s.labels().SiteURL, anchor)
}

func (s *snapshot) named(p Place) Named {
	at, ok := slices.BinarySearchFunc(s.pages, p.Path, func(r *page.Record, path string) int {
		return strings.Compare(r.Path, path)
	})
	if !ok {
		return Named{}
	}
	r := s.pages[at]
	for i := range r.Sections {
		if sec := &r.Sections[i]; sec.Anchor == p.Anchor {
			return Named{r.Title, sec.Heading, s.url(r, sec.Anchor)}
		}
	}
	return Named{Title: r.Title, URL: s.url(r, "")}
}

func (s *snapshot) around(p Place, groups []string) ([]Hit, error) {
	at, ok := s.find(p.Path)
	if !ok || !s.pages[at].Allowed(groups) {
		return nil, nil
	}
	all := s.pages[at].Sections
	n := slices.IndexFunc(all, func(sec page.Section) bool { return sec.Anchor == p.Anchor })
	var found []scored
	for _, section := range page.Around(all, max(n, 0)) {
		found = append(found, scored{section: s.firstOf[at] + uint32(section)})
	}
	return s.show(found, &Query{})
}

func (s *snapshot) page(p string, groups []string) (Page, error) {
	number, ok := s.find(p)
	if !ok { // a page that is not translated is shown at the translation's address too
		first, rest, _ := strings.Cut(s.addressPath(p), "/")
		if slices.ContainsFunc(s.locales, func(l locale) bool { return l.name == site.FoldTag(first) }) {
			number, ok = s.find("/" + rest)
		}
	}
	if !ok {
		return Page{}, fmt.Errorf("page %q: %w", p, api.ErrNotFound)
	}
	r := s.pages[number]
	if !r.Allowed(groups) {
		return Page{}, fmt.Errorf("page %q: %w", p, api.ErrNotFound)
	}
	content, err := s.Content(r)
	if err != nil {
		return Page{}, err
	}
	return Page{Path: r.Path, Title: r.Title, URL: s.url(r, ""), Content: s.readable(r, content[r.Body:], s.labels()),
		Groups: slices.Clone(r.Groups)}, nil
}

// find looks a page up by anything that names it. What begins with a slash, or with the site's address, is an address
// before it is the path of a file: docs/a.md may be shown at /docs/next/a, and /docs/a be the same page of the release.
func (s *snapshot) find(p string) (uint32, bool) {
	address := s.addressPath(p)
	shown := strings.HasPrefix(p, "/") || strings.Contains(p, "://")
	byPath := func(p string) (uint32, bool) {
		i, ok := slices.BinarySearchFunc(s.pages, p, func(r *page.Record, p string) int { return strings.Compare(r.Path, p) })
		return uint32(i), ok
	}
	if page, ok := byPath(address); ok {
		return page, true
	}
	if docs := s.Manifest.DocsDir; docs != "" {
		if rest, ok := strings.CutPrefix(address, docs+"/"); ok {
			if page, ok := byPath(rest); ok {
				return page, true
			}
		}
	}
	if shown {
		for _, address := range []string{address, p} { // absolute if the page was collected from another site
			if page, ok := s.byAddress[site.AddressKey(address)]; ok {
				return page, true
			}
		}
	}
	page, ok := s.byKey[site.PageKey(address)]
	if !ok {
		page, ok = s.byKey[site.AddressKey(address)]
	}
	return page, ok
}
