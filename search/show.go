package search

import (
	"slices"
	"strings"
	"sync"

	"docent/search/analysis"
	"docent/search/index"
	"docent/search/page"
	"docent/site/markup"
)

// Bounds of a hit's content: a section that says little is shown with those below it.
const (
	contentEnough = 600
	contentMost   = 8000
	sourceMost    = 4 * contentMost // of the source: what readers do not see is taken out of it
	sourceLongest = 256 << 10       // of the source of a longer section: what answers is looked for in it
)

// contents of sections that are not too long are read into these, so that a hit takes only what it holds.
var contents = sync.Pool{New: func() any { return new([sourceMost]byte) }}

// stretch is the end of what a section shows: its offset in the page, and the number of the section that follows.
func (s *snapshot) stretch(section uint32) (end int64, after uint32) {
	page := s.pageOf[section]
	sec := s.sections[section]
	end, after = sec.End, section+1
	for ; after < s.firstOf[page+1] && end-sec.Start < contentEnough; after++ {
		below := s.sections[after]
		if sec.Level > 0 && below.Level <= sec.Level {
			break
		}
		end = below.End
	}
	return end, after
}

// A shown section is a hit without its score, as it was written out under the labels that the index had then.
type shown struct {
	labels *index.Manifest
	hit    Hit
	whole  string // the text of a section that is too long to be shown
}

func (v *shown) size() int64 { return int64(len(v.hit.Content)+len(v.whole)+len(v.hit.URL)) + 400 }

// show writes out what a query has found.
func (s *snapshot) show(found []scored, q *Query) ([]Hit, error) {
	labels, version := s.labels(), s.versionAsked(q)
	hits := make([]Hit, len(found))
	for i, p := range found {
		v, ok := s.shown.Get(p.section)
		if !ok || v.labels != labels {
			var err error
			if v, err = s.write(p.section, labels); err != nil {
				return nil, err
			}
			if ok {
				s.shown.Drop(p.section)
			}
			s.shown.Put(p.section, v)
		}
		hits[i] = v.hit
		if v.whole != "" {
			hits[i].Content = page.Window(v.whole, q.Text, p.opens, analysis.Language(v.hit.Language), contentMost)
		}
		hits[i].Score, hits[i].Opens = p.score, p.opens
		if d := v.hit.Description; p.opens && d != "" && p.section == s.firstOf[s.pageOf[p.section]] &&
			!strings.Contains(hits[i].Content, d) { // it says in a sentence what the page is for
			hits[i].Content = strings.TrimSpace(d + "\n\n" + hits[i].Content)
		}
		hits[i].Version = s.pages[s.pageOf[p.section]].VersionShown(version)
	}
	return hits, nil
}

// write writes one section out.
func (s *snapshot) write(section uint32, labels *index.Manifest) (*shown, error) {
	r, sec := s.pages[s.pageOf[section]], s.sections[section]
	end, _ := s.stretch(section)
	var buf []byte
	if size := end - sec.Start; size > sourceMost {
		buf = make([]byte, min(size, sourceLongest))
	} else {
		held := contents.Get().(*[sourceMost]byte)
		defer contents.Put(held)
		buf = held[:max(0, size)]
	}
	if _, err := s.Text.ReadAt(buf, r.Offset+sec.Start); err != nil {
		return nil, err
	}
	content := strings.TrimSpace(strings.ToValidUTF8(s.readable(r, buf, labels), ""))
	whole := ""
	if len(content) > contentMost {
		content, whole = "", content
	}
	return &shown{labels: labels, whole: whole, hit: Hit{
		Path: r.Path, File: r.Origin(), Anchor: sec.Anchor, URL: r.URL(labels.SiteURL, sec.Anchor), Title: r.Title, Heading: sec.Heading,
		Trail: slices.Clip(sec.Trail), Crumbs: slices.Clip(r.Crumbs), Content: content,
		Description: r.Description, Language: s.locales[s.localeOf[s.pageOf[section]]].shown, Tags: slices.Clip(r.Tags),
	}}, nil
}

// readable is a part of a page as readers have it: see markup.Page.Readable.
func (s *snapshot) readable(r *page.Record, part []byte, labels *index.Manifest) string {
	name := r.SourceName()
	if page.IsHTML(name) {
		name, part = name+".md", page.Markdown(part)
	}
	src := append([]byte{'\n'}, part...) // so that a line of hyphens does not begin front matter
	return markup.Parse(name, src).Readable(markup.Span{Start: 1, End: len(src)}, labels.Site.Templates,
		func(dest string, below bool) (string, bool) {
			return s.leadsTo(r, dest, below, labels), true
		})
}

// Excerpt is the part of a hit around the first word of a query, as plain text.
func (h *Hit) Excerpt(query string) string { return page.Excerpt(h.Path, h.Content, query) }
