package search

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2/document"

	"docent/markup"
	"docent/site"
)

// A source is one file as reading it gives it, before other files add to it.
type source struct {
	sections []section
	place    site.Place     // in the navigation
	links    []string       // texts of the links that point to the page
	parts    []string       // paths of the imported files that are there
	dests    []string       // where its links lead to, as they are written
	uses     map[string]int // where the text shows an imported file
	headings []markup.Heading
}

// A section is a stretch of a page from one heading to the next.
type section struct {
	heading, anchor string
	level           int
	number          int // of the heading among all headings of a page in Markdown, from 1; 0 for any other
	trail           []string
	start, end      int
	body, code      string
}

// classify tells from its path alone what a file can be to the index. Which pages the site shows is decided when all files
// are known.
func classify(p string) kind {
	base := path.Base(p)
	dirs := strings.Split(path.Dir(p), "/")
	if site.Concerns(p) {
		return kindNavigation
	}
	for _, d := range dirs {
		if d == "node_modules" || d != "." && strings.HasPrefix(d, ".") {
			return kindIgnored
		}
	}
	ext := strings.ToLower(path.Ext(base))
	if isData(base) && !strings.HasPrefix(base, ".") {
		return kindPage // where it describes an API
	}
	if strings.HasPrefix(base, ".") || !site.IsPage(base) {
		return kindIgnored
	}
	if ext == ".txt" && (base == "robots.txt" || base == "requirements.txt" || base == "CMakeLists.txt") {
		return kindIgnored
	}
	return kindPage
}

// name gives the sections the anchors that the site's generator does.
func (s *source) name(where *site.Site) {
	anchors := where.Anchors(s.headings)
	for i := range s.sections {
		if t := &s.sections[i]; t.number > 0 {
			t.anchor = anchors[t.number-1]
		}
	}
}

// maxWords bounds what the closer look keeps of one section.
const maxWords = 4000

// describe fills a record from its source and makes its documents, one for each section.
func describe(r *record, src *source) []*document.Document {
	a := analysers.Get().(*analyser)
	defer analysers.Put(a)
	language := languageOf(r.Locale)
	surface := make(map[string]struct{}, 256)
	var buf []byte
	// terms writes the terms of a text to buf and remembers its words; it returns their number.
	terms := func(text string, words *wordList) int {
		return a.tokens(text, language, func(t token) {
			buf = append(append(buf, t.term...), ' ')
			if len(t.surface) > 2 && len(t.surface) <= 40 {
				surface[t.surface] = struct{}{}
			}
			if words != nil && t.covers == 0 && words.len() < maxWords {
				words.add(hashTerm(t.term))
			}
		})
	}
	field := func(doc *document.Document, name string, length *uint16, texts ...string) {
		buf = nil // Bleve keeps the value
		n := 0
		for _, text := range texts {
			n += terms(text, nil)
		}
		*length = uint16(min(n, 65535))
		addField(doc, name, buf)
	}
	r.Sections = r.Sections[:0:0]
	docs := make([]*document.Document, 0, len(src.sections))
	r.Titles = src.place.Names
	for n, s := range src.sections {
		doc := document.NewDocument(sectionID(r.UID, n))
		rec := sectionRecord{Anchor: s.anchor, Heading: s.heading, Level: s.level, Trail: s.trail, Start: int64(s.start), End: int64(s.end)}
		buf = nil
		rec.Len[fieldHeading] = uint16(min(terms(s.heading, &rec.Body), 65535))
		addField(doc, sectionFieldNames[fieldHeading], buf)
		field(doc, sectionFieldNames[fieldTrail], &rec.Len[fieldTrail], s.trail...)
		rec.Head = a.titleWords(withoutCount(s.heading), language)
		buf = nil
		rec.Len[fieldBody] = uint16(min(terms(s.body, &rec.Body), 65535))
		addField(doc, sectionFieldNames[fieldBody], buf)
		buf = nil
		count := a.tokens(s.code, language, func(t token) { buf = append(append(buf, t.term...), ' ') })
		rec.Len[fieldCode] = uint16(min(count, 65535))
		addField(doc, sectionFieldNames[fieldCode], buf)
		r.Sections = append(r.Sections, rec)
		docs = append(docs, doc)
	}
	if len(docs) == 0 {
		return nil
	}
	first := docs[0]
	buf = nil
	r.TitleWords = a.titleWords(r.Title, language)
	n := terms(r.Title, nil)
	for _, t := range r.Titles {
		if !strings.EqualFold(t, r.Title) {
			n += terms(t, nil)
		}
	}
	r.PageLen[fieldTitle] = uint16(min(n, 65535))
	r.TitleLen = uint16(r.TitleWords.len())
	addField(first, pageFieldNames[fieldTitle], buf)
	field(first, pageFieldNames[fieldPath], &r.PageLen[fieldPath], strings.ReplaceAll(site.PageKey(r.Path), "/", " / "))
	field(first, pageFieldNames[fieldKeywords], &r.PageLen[fieldKeywords], slices.Concat(r.Keywords, r.Tags, src.place.Crumbs)...)
	field(first, pageFieldNames[fieldLinks], &r.PageLen[fieldLinks], src.links...)
	field(first, pageFieldNames[fieldDescription], &r.PageLen[fieldDescription], r.Description)
	buf = nil
	for w := range surface {
		buf = append(append(buf, w...), ' ')
	}
	addField(first, pageFieldNames[fieldSurface], buf)
	return docs
}

// titleWords lists the words of a title or heading that say what it is about, with its names.
func (a *analyser) titleWords(text, language string) wordList {
	var tokens []token
	parts := a.tokens(text, language, func(t token) { tokens = append(tokens, t) })
	inName := make([]bool, parts)
	for _, t := range tokens {
		for k := t.at; k < t.at+t.covers; k++ {
			inName[k] = true
		}
	}
	list := func(all bool) wordList {
		var w wordList
		at := make([]int, parts) // where a part stands once the others are left out
		for _, t := range tokens {
			if t.covers == 0 {
				at[t.at] = w.len()
				if all || inName[t.at] || !dropped[t.surface] {
					w.add(hashTerm(t.term))
				}
			}
		}
		for _, t := range tokens {
			if t.covers > 0 {
				w.Names = append(w.Names, name{Hash: hashTerm(t.term), At: uint16(at[t.at]), N: uint16(t.covers)})
			}
		}
		return w
	}
	if w := list(false); w.len() > 0 {
		return w
	}
	return list(true)
}

// counted is what stands before a heading that counts: "2. ", "3) ", "Step 4: ".
var counted = regexp.MustCompile(`^(?i:(step|part|pattern)\s+)?\d+(\.\d+)*\s*[.):–-]\s+`)

// withoutCount is a heading without its number, which nobody asks for.
func withoutCount(heading string) string {
	if heading == "" || heading[0] > '9' && !strings.Contains("SsPp", heading[:1]) {
		return heading
	}
	return heading[len(counted.FindString(heading)):]
}
