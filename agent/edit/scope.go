package edit

import (
	"slices"
	"strings"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

// there is the scope behind a negation, with a blank before it: nothing if it is the whole documentation.
func (s Scope) there() string {
	if len(s.In) == 0 && len(s.Parts) == 0 {
		return ""
	}
	return " " + s.String()
}

// nowhere is the scope behind "does not occur".
func (s Scope) nowhere() string {
	if len(s.In) == 0 && len(s.Parts) == 0 {
		return "anywhere"
	}
	return s.String()
}

// A Scope is where an operation works: pages, and parts of them. Every operation has one or says that it has none, the
// words before an instruction narrow it, and run.confined refuses whatever an operation does outside of it.
type Scope struct {
	In     [][]Place // a page must be in one place of each list
	Except []Place
	Parts  [][]Part // what is changed must be in one part of each list
	All    bool     // "everywhere" was said
	Places int      // in how many places text is replaced, if it was said
	Only   bool     // "only" was said: it narrows what was said before and asks for nothing more
	Manner
}

// A Manner is how a text operation compares, and what it touches beyond running text.
type Manner struct {
	Code, Links           bool
	Words, InWords        bool
	IgnoreCase, ExactCase bool
}

// A Place names a page, a folder or pages by a pattern.
type Place struct {
	Name string // as it was written
	Kind PlaceKind
}

// A PlaceKind says what the name of a place is a name of.
type PlaceKind uint8

const (
	AnyPlace PlaceKind = iota // what there is decides; a name that is a page and a folder is neither
	PagePlace
	FolderPlace
)

func (p Place) String() string {
	if p.Kind == FolderPlace && !strings.HasSuffix(p.Name, "/") {
		return p.Name + "/"
	}
	return p.Name
}

// A Part is a kind of region of a page.
type Part struct {
	Kind    string // a name of partKinds
	One     bool   // "the table": there must be one alone
	Heading string // of a section
}

// partKinds finds the regions of each kind.
var partKinds = map[string]func(p *markup.Page) []markup.Span{
	"headings": func(p *markup.Page) (out []markup.Span) {
		for _, h := range p.Headings {
			out = append(out, h.Span)
		}
		return out
	},
	"link texts": linkTexts, "link targets": linkTargets,
	"links":       func(p *markup.Page) []markup.Span { return append(linkTexts(p), linkTargets(p)...) },
	"code blocks": func(p *markup.Page) []markup.Span { return codeOf(p, true, false) },
	"inline code": func(p *markup.Page) []markup.Span { return codeOf(p, false, true) },
	"code":        func(p *markup.Page) []markup.Span { return codeOf(p, true, true) },
	"tables":      func(p *markup.Page) []markup.Span { return slices.Clone(p.Tables) },
	"lists":       func(p *markup.Page) []markup.Span { return slices.Clone(p.Items) },
	"text":        func(p *markup.Page) []markup.Span { return slices.Clone(p.Prose) },
	"front matter": func(p *markup.Page) []markup.Span {
		if p.Front.Kind == "" {
			return nil
		}
		return []markup.Span{p.Front.Body}
	},
	"titles":       func(p *markup.Page) []markup.Span { return frontValues(p, "title", "sidebarTitle", "sidebar_label") },
	"descriptions": func(p *markup.Page) []markup.Span { return frontValues(p, "description", "summary") },
}

func linkTexts(p *markup.Page) (out []markup.Span) {
	for _, l := range p.Links {
		if l.Inner.Start < l.Inner.End && (l.Kind == markup.InlineLink || l.Kind == markup.ReferenceLink) {
			out = append(out, l.Inner)
		}
	}
	return out
}

func linkTargets(p *markup.Page) (out []markup.Span) {
	for _, l := range p.Links {
		if l.At.Start < l.At.End && l.Kind != markup.ImportLink {
			out = append(out, l.At)
		}
	}
	return out
}

func codeOf(p *markup.Page, blocks, inline bool) (out []markup.Span) {
	for _, c := range p.Code {
		if c.Inline && inline || !c.Inline && blocks {
			out = append(out, c.Span)
		}
	}
	return out
}

func frontValues(p *markup.Page, keys ...string) (out []markup.Span) {
	for _, k := range keys {
		if v, ok := p.FrontValue(k); ok {
			out = append(out, v)
		}
	}
	return out
}

// Located is part of an operation that works within a scope.
type Located struct{ Scope Scope }

func (l *Located) Where() *Scope { return &l.Scope }

// What is unlocated is about things that it names itself: pages that it makes, moves or deletes.
type unlocated struct{}

func (unlocated) Where() *Scope { return nil }

// Narrow adds what was said before an instruction.
func (s *Scope) Narrow(lead Scope) {
	for _, list := range lead.In {
		if !slices.ContainsFunc(s.In, func(have []Place) bool { return slices.Equal(have, list) }) {
			s.In = append(slices.Clip(s.In), list)
		}
	}
	s.Except = append(slices.Clip(s.Except), lead.Except...)
	s.Parts = append(slices.Clip(s.Parts), lead.Parts...)
	s.All = s.All || lead.All
	s.Places = max(s.Places, lead.Places)
	s.Manner = s.Manner.and(lead.Manner)
}

func (m Manner) and(n Manner) Manner {
	return Manner{m.Code || n.Code, m.Links || n.Links, m.Words || n.Words, m.InWords || n.InWords, m.IgnoreCase ||
		n.IgnoreCase, m.ExactCase || n.ExactCase}
}

// Placed reports whether the scope says where: in which pages, or that it is everywhere.
func (s *Scope) Placed() bool { return len(s.In) > 0 || s.All }

// Plain reports whether the scope names one page at most, and restricts nothing else.
func (s *Scope) Plain() bool {
	if len(s.In) > 1 || len(s.In) == 1 && (len(s.In[0]) != 1 || !workspace.IsPage(s.In[0][0].Name)) {
		return false
	}
	return len(s.Except) == 0 && len(s.Parts) == 0 && s.Places == 0 && !s.All && !s.Only && s.Manner == Manner{}
}

// elsewhere is a scope for doing something again: in the places of the second, in the parts and the manner of both.
func (s Scope) elsewhere(now Scope) Scope {
	now.Parts = append(slices.Clip(s.Parts), now.Parts...)
	now.Manner = s.Manner.and(now.Manner)
	return now
}

// has reports whether the scope is confined to a kind of part.
func (s *Scope) has(kinds ...string) bool {
	for _, list := range s.Parts {
		for _, p := range list {
			if slices.Contains(kinds, p.Kind) {
				return true
			}
		}
	}
	return false
}

func (s Scope) String() string {
	var parts, pages []string
	for _, list := range s.Parts {
		var names []string
		for _, p := range list {
			switch p.Kind {
			case "section":
				names = append(names, "section "+say.Quote(p.Heading))
			case "below":
				names = append(names, "section below "+say.Quote(p.Heading))
			default:
				names = append(names, "the "+p.Kind)
			}
		}
		parts = append(parts, strings.Join(names, " and "))
	}
	for _, list := range s.In {
		var names []string
		for _, p := range list {
			names = append(names, p.String())
		}
		if text := strings.Join(names, ", "); !slices.Contains(pages, text) {
			pages = append(pages, text)
		}
	}
	switch {
	case len(parts) == 0 && len(pages) == 0:
		return "everywhere"
	case len(parts) == 0:
		return "in " + strings.Join(pages, " in ")
	case len(pages) == 0:
		return "in " + strings.Join(parts, " in ")
	}
	return "in " + strings.Join(parts, " in ") + " of " + strings.Join(pages, " in ")
}

// describe is a scope for a todo: nothing if nothing was said.
func (s Scope) describe() string {
	if len(s.In)+len(s.Parts) == 0 {
		return ""
	}
	return " " + s.String()
}
