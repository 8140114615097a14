package page

import (
	"regexp"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2/document"

	"docent/search/analysis"
	"docent/site"
)

// maxWords bounds what the closer look keeps of one section.
const maxWords = 4000

// Describe fills a record from its source and makes its documents, one for each section.
func Describe(r *Record, src *Source) []*document.Document {
	a := analysis.Get()
	defer a.Put()
	language := analysis.Language(r.Locale)
	r.Name(src.Place)
	surface := make(map[string]struct{}, 256)
	var buf []byte
	// terms writes the terms of a text to buf and remembers its words; it returns their number.
	terms := func(text string, words *WordList) int {
		return a.Tokens(text, language, func(t analysis.Token) {
			buf = append(append(buf, t.Term...), ' ')
			if len(t.Surface) > 2 && len(t.Surface) <= 40 {
				surface[t.Surface] = struct{}{}
			}
			if words != nil && t.Covers == 0 && words.Len() < maxWords {
				words.add(analysis.Hash(t.Term))
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
	docs := make([]*document.Document, 0, len(src.passages))
	r.Titles = src.Place.Names
	for n, s := range src.passages {
		doc := document.NewDocument(SectionID(r.UID, n))
		rec := Section{Anchor: s.anchor, Heading: s.heading, Level: s.level, Trail: s.trail, Start: int64(s.start),
			End: int64(s.end)}
		buf = nil
		rec.Len[FieldHeading] = uint16(min(terms(s.heading, &rec.Body), 65535))
		addField(doc, SectionFieldNames[FieldHeading], buf)
		field(doc, SectionFieldNames[FieldTrail], &rec.Len[FieldTrail], s.trail...)
		rec.Head = titleWords(a, WithoutCount(s.heading), language)
		buf = nil
		rec.Len[FieldBody] = uint16(min(terms(s.body, &rec.Body), 65535))
		addField(doc, SectionFieldNames[FieldBody], buf)
		buf = nil
		count := a.Tokens(s.code, language, func(t analysis.Token) { buf = append(append(buf, t.Term...), ' ') })
		rec.Len[FieldCode] = uint16(min(count, 65535))
		addField(doc, SectionFieldNames[FieldCode], buf)
		r.Sections = append(r.Sections, rec)
		docs = append(docs, doc)
	}
	if len(docs) == 0 {
		return nil
	}
	first := docs[0]
	buf = nil
	r.TitleWords = titleWords(a, r.Title, language)
	n := terms(r.Title, nil)
	for _, t := range r.Titles {
		if !strings.EqualFold(t, r.Title) {
			n += terms(t, nil)
		}
	}
	r.PageLen[FieldTitle] = uint16(min(n, 65535))
	addField(first, FieldNames[FieldTitle], buf)
	field(first, FieldNames[FieldPath], &r.PageLen[FieldPath], strings.ReplaceAll(site.PageKey(r.Path), "/", " / "))
	field(first, FieldNames[FieldKeywords], &r.PageLen[FieldKeywords],
		slices.Concat(r.Keywords, r.Tags, src.Place.Crumbs)...)
	field(first, FieldNames[FieldLinks], &r.PageLen[FieldLinks], src.Links...)
	field(first, FieldNames[FieldDescription], &r.PageLen[FieldDescription], r.Description)
	buf = nil
	for w := range surface {
		buf = append(append(buf, w...), ' ')
	}
	addField(first, FieldNames[FieldSurface], buf)
	return docs
}

// titleWords lists the words of a title or heading that say what it is about, with its names.
func titleWords(a *analysis.Tokenizer, text, language string) WordList {
	var tokens []analysis.Token
	parts := a.Tokens(text, language, func(t analysis.Token) { tokens = append(tokens, t) })
	inName := make([]bool, parts)
	for _, t := range tokens {
		for k := t.At; k < t.At+t.Covers; k++ {
			inName[k] = true
		}
	}
	list := func(all bool) WordList {
		var w WordList
		at := make([]int, parts) // where a part is once the others are left out
		for _, t := range tokens {
			if t.Covers == 0 {
				at[t.At] = w.Len()
				if all || inName[t.At] || !analysis.Dropped(t.Surface) {
					w.add(analysis.Hash(t.Term))
				}
			}
		}
		for _, t := range tokens {
			if t.Covers > 0 {
				w.Names = append(w.Names, Name{Hash: analysis.Hash(t.Term), At: uint16(at[t.At]), N: uint16(t.Covers)})
			}
		}
		return w
	}
	if w := list(false); w.Len() > 0 {
		return w
	}
	return list(true)
}

// counted is what stands before a heading that counts: "2. ", "3) ", "Step 4: ".
var counted = regexp.MustCompile(`^(?i:(step|part|pattern)\s+)?\d+(\.\d+)*\s*[.):–-]\s+`)

// WithoutCount is a heading without its number, which nobody asks for.
func WithoutCount(heading string) string {
	if heading == "" || heading[0] > '9' && !strings.Contains("SsPp", heading[:1]) {
		return heading
	}
	return heading[len(counted.FindString(heading)):]
}
