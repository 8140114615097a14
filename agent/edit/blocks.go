package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// blockText is a user's text as a block of a page, with its line ends.
func blockText(text, eol string) string {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return strings.Join(lines, eol)
}

// insertBlock returns the edit that makes text a block of its own at a line's start.
func insertBlock(src []byte, at int, text string) markup.Edit {
	eol := pages.EOL(src)
	var b strings.Builder
	if at > 0 && at <= len(src) {
		head := src[:at]
		switch {
		case !bytes.HasSuffix(head, []byte("\n")):
			b.WriteString(eol + eol)
		case !endsBlank(head):
			b.WriteString(eol)
		}
	}
	b.WriteString(blockText(text, eol))
	b.WriteString(eol)
	if at < len(src) && !startsBlank(src[at:]) {
		b.WriteString(eol)
	}
	return markup.Edit{Span: markup.Span{Start: at, End: at}, New: []byte(b.String())}
}

func endsBlank(b []byte) bool {
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	i := bytes.LastIndexByte(b, '\n')
	return len(bytes.TrimSpace(b[i+1:])) == 0
}

func startsBlank(b []byte) bool {
	return len(bytes.TrimSpace(b[:pages.LineAfter(b, 0)])) == 0
}

// backOver steps back over blank lines, so that a block stands right behind the text before it.
func backOver(src []byte, at, least int) int {
	for at > least {
		start := pages.LineStart(src, at-1)
		if start < least || len(bytes.TrimSpace(src[start:at])) > 0 {
			break
		}
		at = start
	}
	return at
}

// A spot is where a block can go: before a section, at its beginning, or at its end.
type spot struct {
	page               *markup.Page
	heading            string
	level              int
	before, first, end int
}

// sectionSpot is that of the section with a heading.
func (r *Run) sectionSpot(heading string) (spot, error) {
	p, i, err := r.heading(heading)
	if err != nil {
		return spot{}, err
	}
	h := p.Headings[i]
	first := pages.LineAfter(p.Src, h.Span.End)
	return spot{p, h.Text, h.Level, pages.LineStart(p.Src, h.Span.Start), first, backOver(p.Src, sectionEnd(p, i), first)},
		nil
}

// spot is that of a section, or of the page if none is named.
func (r *Run) spot(section string) (spot, error) {
	if section != "" {
		return r.sectionSpot(section)
	}
	p, err := r.page()
	if err != nil {
		return spot{}, err
	}
	end := backOver(p.Src, p.Body.End, p.Body.Start)
	return spot{page: p, level: 2, before: end, first: afterTitle(p), end: end}, nil
}

// Insert inserts a block beside a heading.
type Insert struct {
	Text, Heading   string
	Before, Section bool
	Located
}

func (o *Insert) side() string {
	if o.Before {
		return "before"
	}
	return "after"
}

func (o *Insert) Todo() string {
	return fmt.Sprintf("Insert %s %s heading %s", say.Quote(o.Text), o.side(), say.Quote(o.Heading)) + o.Scope.describe()
}

func (o *Insert) Run(r *Run) error {
	if strings.TrimSpace(o.Text) == "" {
		return say.Refuse("the text to insert is empty")
	}
	s, err := r.sectionSpot(o.Heading)
	if err != nil {
		return err
	}
	at := s.first
	if o.Before {
		at = s.before
	} else if o.Section {
		at = s.end
	}
	if err := r.edit(s.page, []markup.Edit{insertBlock(s.page.Src, at, o.Text)}, "blocks inserted", 1); err != nil {
		return err
	}
	r.Did("Inserted a block %s heading %s in %s", o.side(), say.Quote(s.heading), r.Site.Show(s.page.Path))
	r.headline("add text %s %s in %s", o.side(), say.Quote(s.heading), r.Site.Show(s.page.Path))
	return nil
}

// AddSection adds a section.
type AddSection struct {
	Title, Text, Near string
	Before            bool
	Located
}

func (o *AddSection) Todo() string {
	return "Add a section " + say.Quote(o.Title) + o.Scope.describe()
}

func (o *AddSection) Run(r *Run) error {
	title := say.OneLine(o.Title, 200)
	if title == "" {
		return say.Refuse("the section has no title")
	}
	s, err := r.spot(o.Near)
	if err != nil {
		return err
	}
	name := r.Site.Show(s.page.Path)
	if slices.ContainsFunc(s.page.Headings, func(h markup.Heading) bool { return pages.SameFold(h.Text, title) }) {
		return say.Idle("%s has a section %s already", name, say.Quote(title))
	}
	at := s.end
	if o.Before {
		at = s.before
	}
	text := s.page.NewHeading(s.level, title)
	if strings.TrimSpace(o.Text) != "" {
		text += "\n\n" + strings.Trim(o.Text, "\n")
	}
	if err := r.edit(s.page, []markup.Edit{insertBlock(s.page.Src, at, text)}, "sections added", 1); err != nil {
		return err
	}
	r.Did("Added the section %s to %s", say.Quote(title), name)
	r.headline("add the section %s to %s", say.Quote(title), name)
	return nil
}

// Append adds text at the end of a page or a section, or at the beginning.
type Append struct {
	Text, Section string
	Top           bool
	Located
}

func (o *Append) Todo() string {
	verb := "Append"
	if o.Top {
		verb = "Prepend"
	}
	s := fmt.Sprintf("%s %s", verb, say.Quote(o.Text)) + o.Scope.describe()
	if o.Section != "" {
		s += " in section " + say.Quote(o.Section)
	}
	return s
}

func (o *Append) Run(r *Run) error {
	if strings.TrimSpace(o.Text) == "" {
		return say.Refuse("the text to add is empty")
	}
	s, err := r.spot(o.Section)
	if err != nil {
		return err
	}
	at, where, what := s.end, "at the end of", r.Site.Show(s.page.Path)
	if o.Top {
		at, where = s.first, "at the beginning of"
	}
	if err := r.edit(s.page, []markup.Edit{insertBlock(s.page.Src, at, o.Text)}, "blocks added", 1); err != nil {
		return err
	}
	r.headline("add text to %s", what)
	if o.Section != "" {
		what = "section " + say.Quote(o.Section) + " in " + what
	}
	r.Did("Added a block %s %s", where, what)
	return nil
}

// afterTitle is where the text of a page begins: behind its front matter, its imports and a first heading of level 1.
func afterTitle(p *markup.Page) int {
	at := p.Body.Start
	for _, l := range p.Links {
		if l.Kind == markup.ImportLink && len(bytes.TrimSpace(p.Src[at:l.Span.Start])) == 0 {
			at = pages.LineAfter(p.Src, l.Span.End)
		}
	}
	if len(p.Headings) > 0 && p.Headings[0].Level == 1 && len(bytes.TrimSpace(p.Src[at:p.Headings[0].Span.Start])) == 0 {
		return pages.LineAfter(p.Src, p.Headings[0].Span.End)
	}
	for at < p.Body.End && len(bytes.TrimSpace(p.Src[at:pages.LineAfter(p.Src, at)])) == 0 {
		at = pages.LineAfter(p.Src, at)
	}
	return at
}
