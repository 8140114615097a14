package edit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// DeleteSection deletes a section, or its heading alone.
type DeleteSection struct {
	Heading string
	Line    bool // the heading alone; the text under it stays
	Located
}

func (o *DeleteSection) Todo() string {
	if o.Line {
		return "Delete the heading " + say.Quote(o.Heading) + o.Scope.describe()
	}
	return "Delete section " + say.Quote(o.Heading) + o.Scope.describe()
}

func (o *DeleteSection) Run(r *Run) error {
	p, i, err := r.heading(o.Heading)
	if err != nil {
		return err
	}
	h := p.Headings[i]
	cut := markup.Span{Start: pages.LineStart(p.Src, h.Span.Start), End: sectionEnd(p, i)}
	if o.Line {
		cut.End = pages.LineAfter(p.Src, h.Span.End)
		if emptyLine(p.Src, cut.End) && (cut.Start == p.Body.Start || emptyLine(p.Src, pages.LineStart(p.Src, cut.Start-1))) {
			cut.End = pages.LineAfter(p.Src, cut.End)
		}
		if err := r.edit(p, []markup.Edit{{Span: cut}}, "headings deleted", 1); err != nil {
			return err
		}
		r.Did("Deleted the heading %s from %s; the text under it stays", say.Quote(h.Text), r.Site.Show(p.Path))
		r.headline("delete the heading %s from %s", say.Quote(h.Text), r.Site.Show(p.Path))
		return nil
	}
	cut.End = closeTags(p, cut)
	if err := whole(p, cut); err != nil {
		return err
	}
	if cut.End == p.Body.End { // the last one: no blank lines are left at the end
		cut.Start = max(backOver(p.Src, cut.Start, p.Body.Start), p.Body.Start)
	}
	n := 0
	for _, h := range p.Headings {
		if h.Span.Start >= cut.Start && h.Span.End <= cut.End {
			n++
		}
	}
	edits, kept := keepDefinitions(p, cut)
	if err := r.edit(p, append([]markup.Edit{{Span: cut}}, edits...), "sections deleted", n); err != nil {
		return err
	}
	if kept > 0 {
		r.Kept("Kept %s of the section, which other parts of %s use, at its end", say.Count(kept, "definition"),
			r.Site.Show(p.Path))
	}
	r.means(p.Path)
	r.Did("Deleted the section %s from %s%s", say.Quote(p.Headings[i].Text), r.Site.Show(p.Path), func() string {
		if n > 1 {
			return fmt.Sprintf(", with %s below it", say.Count(n-1, "section"))
		}
		return ""
	}())
	r.headline("delete the section %s from %s", say.Quote(p.Headings[i].Text), r.Site.Show(p.Path))
	return nil
}

var footnote = regexp.MustCompile(`(?m)^ {0,3}\[(\^[^\]\s]+)\]:`)

// keepDefinitions returns the edits that carry definitions of links and footnotes which other parts of the page use over
// to its end.
func keepDefinitions(p *markup.Page, cut markup.Span) ([]markup.Edit, int) {
	eol := pages.EOL(p.Src)
	links, notes := linkDefinitions(p, cut), footnotes(p, cut)
	if len(links)+len(notes) == 0 {
		return nil, 0
	}
	blocks := notes
	if len(links) > 0 {
		blocks = append([]string{strings.Join(links, eol)}, notes...)
	}
	at, before := backOver(p.Src, p.Body.End, p.Body.Start), ""
	if cut.End >= at { // the section is the last one: its blank lines go with it
		at, before = cut.End, eol
	} else if !endsBlank(p.Src[:at]) {
		before = eol
		if p.Src[at-1] != '\n' {
			before += eol
		}
	}
	text := before + strings.Join(blocks, eol+eol) + eol
	return []markup.Edit{{Span: markup.Span{Start: at, End: at}, New: []byte(text)}}, len(links) + len(notes)
}

// linkDefinitions are the definitions of links in a cut that the rest of the page uses.
func linkDefinitions(p *markup.Page, cut markup.Span) (out []string) {
	used, stays := map[string]bool{}, map[string]bool{}
	for _, l := range p.Links {
		switch inCut := l.Span.Start >= cut.Start && l.Span.Start < cut.End; {
		case l.Kind == markup.ReferenceLink && !inCut:
			used[l.Label] = true
		case l.Kind == markup.ReferenceDefinition && !inCut:
			stays[l.Label] = true
		}
	}
	for _, l := range p.Links {
		if l.Kind == markup.ReferenceDefinition && used[l.Label] && !stays[l.Label] {
			stays[l.Label] = true
			out = append(out, string(p.Src[l.Span.Start:l.Span.End]))
		}
	}
	return out
}

// footnotes are the definitions of footnotes in a cut that the rest of the page uses.
func footnotes(p *markup.Page, cut markup.Span) (out []string) {
	src := p.Src
	for _, m := range footnote.FindAllSubmatchIndex(src[cut.Start:cut.End], -1) {
		start := cut.Start + m[0]
		mark := []byte("[" + string(src[cut.Start+m[2]:cut.Start+m[3]]) + "]")
		code := slices.ContainsFunc(p.Code, func(c markup.Code) bool { return c.Span.Start <= start && start < c.Span.End })
		if code || !bytes.Contains(src[:cut.Start], mark) && !bytes.Contains(src[cut.End:], mark) {
			continue
		}
		end := pages.LineAfter(src, start)
		for at := end; at < cut.End; at = pages.LineAfter(src, at) { // its further lines, and paragraphs that are indented
			if emptyLine(src, at) {
				continue
			}
			line := src[at:pages.LineAfter(src, at)]
			if emptyLine(src, pages.LineStart(src, at-1)) && line[0] != ' ' && line[0] != '\t' || footnote.Match(line) {
				break
			}
			end = at + len(line)
		}
		out = append(out, strings.TrimRight(string(src[start:end]), "\r\n"))
	}
	return out
}

// closeTags shortens a section that runs past the end of the component that it stands in.
func closeTags(p *markup.Page, cut markup.Span) int {
	for _, t := range p.Tags {
		if t.Close && t.Partner >= 0 && t.Span.Start >= cut.Start && t.Span.Start < cut.End &&
			p.Tags[t.Partner].Span.Start < cut.Start {
			return pages.LineStart(p.Src, t.Span.Start)
		}
	}
	return cut.End
}

// whole refuses to cut a component in two.
func whole(p *markup.Page, cut markup.Span) error {
	in := func(s markup.Span) bool { return s.Start >= cut.Start && s.Start < cut.End }
	for _, t := range p.Tags {
		if t.Partner >= 0 && in(t.Span) != in(p.Tags[t.Partner].Span) {
			return say.Refuse("that would cut <%s> in %s in two", t.Name, p.Path)
		}
	}
	return nil
}

// DeleteText deletes a paragraph, a line, a row of a table or an item of a list.
type DeleteText struct {
	Text, Unit string
	Located
}

func (o *DeleteText) unitName() string {
	switch o.Unit {
	case "row":
		return "table row"
	case "item":
		return "list item"
	}
	return o.Unit
}

func (o *DeleteText) Todo() string {
	return fmt.Sprintf("Delete the %s containing %s", o.unitName(), say.Quote(o.Text)) + o.Scope.describe()
}

// A cut is one match that could be meant, or the reason why it is not.
type cut struct {
	p    *markup.Page
	span markup.Span
	why  error
}

func (o *DeleteText) Run(r *Run) error {
	if strings.TrimSpace(o.Text) == "" {
		return say.Refuse("the text to look for is empty")
	}
	p, span, err := o.match(r)
	if err != nil {
		return err
	}
	if err := whole(p, span); err != nil {
		return err
	}
	items := 0
	for _, it := range p.Items {
		if it.Start >= span.Start && it.End <= span.End {
			items++
		}
	}
	span = o.withBlankLine(p, span)
	edits := []markup.Edit{{Span: span}}
	if o.Unit == "item" {
		edits = append(edits, renumbered(p, span)...)
	}
	if err := r.edit(p, edits, o.unitName()+"s deleted", 1); err != nil {
		return err
	}
	r.means(p.Path)
	more := ""
	if o.Unit == "item" && items > 1 {
		more = fmt.Sprintf(", with %s below it", say.Count(items-1, "item"))
	}
	r.Did("Deleted the %s containing %s from %s%s", o.unitName(), say.Quote(o.Text), r.Site.Show(p.Path), more)
	r.headline("delete a %s from %s", o.unitName(), r.Site.Show(p.Path))
	return nil
}

// match finds the one match that is meant.
func (o *DeleteText) match(r *Run) (*markup.Page, markup.Span, error) {
	list, err := r.readable(r.bounds)
	if err != nil {
		return nil, markup.Span{}, err
	}
	re := regexp.MustCompile(wrapping(strings.TrimSpace(o.Text)))
	var cuts []cut
	for _, p := range list {
		regions, everywhere := r.bounds.within(p)
		for _, m := range re.FindAllIndex(p.Src[p.Body.Start:], -1) {
			at := markup.Span{Start: p.Body.Start + m[0], End: p.Body.Start + m[1]}
			if !everywhere && !inside(at, regions) {
				continue
			}
			c := o.cut(r, p, at)
			if !slices.ContainsFunc(cuts, func(x cut) bool { return x.p == p && x.span == c.span }) {
				cuts = append(cuts, c)
			}
		}
	}
	certain := slices.DeleteFunc(slices.Clone(cuts), func(c cut) bool { return c.why != nil })
	switch {
	case len(certain) == 1:
		return certain[0].p, certain[0].span, nil
	case len(certain) > 1:
		return nil, markup.Span{}, say.Refuse("%d %ss contain %s, so none is certain", len(certain), o.unitName(),
			say.Quote(o.Text))
	case len(cuts) > 0:
		return nil, markup.Span{}, cuts[0].why
	}
	where := "no " + o.unitName()
	if len(list) == 1 && !r.bounds.free {
		where += " of " + r.Site.Show(list[0].Path)
	}
	return nil, markup.Span{}, say.Refuse("%s contains %s", where, say.Quote(o.Text))
}

// withBlankLine takes one of the blank lines around a block along.
func (o *DeleteText) withBlankLine(p *markup.Page, s markup.Span) markup.Span {
	if o.Unit == "line" || o.Unit == "row" {
		return s
	}
	above := s.Start > p.Body.Start && emptyLine(p.Src, pages.LineStart(p.Src, s.Start-1))
	switch {
	case s.End < len(p.Src) && emptyLine(p.Src, s.End) && (o.Unit == "paragraph" || s.Start == p.Body.Start || above):
		s.End = pages.LineAfter(p.Src, s.End)
	case o.Unit == "paragraph" && above:
		s.Start = max(pages.LineStart(p.Src, s.Start-1), p.Body.Start)
	}
	return s
}

// cut finds what would go with a match.
func (o *DeleteText) cut(r *Run, p *markup.Page, at markup.Span) cut {
	lines := func(s markup.Span) markup.Span {
		return markup.Span{Start: max(pages.LineStart(p.Src, s.Start), p.Body.Start),
			End: pages.LineAfter(p.Src, max(s.End-1, s.Start))}
	}
	holds := func(s markup.Span) bool { return s.Start <= at.Start && at.End <= s.End }
	not := func(format string, args ...any) cut {
		return cut{p, lines(at), say.Refuse("%s stands in %s of %s", say.Quote(o.Text), fmt.Sprintf(format, args...),
			r.Site.Show(p.Path))}
	}
	table := slices.IndexFunc(p.Tables, holds)
	item := -1
	for i, it := range p.Items {
		if holds(it) {
			item = i // the innermost comes last
		}
	}
	code := slices.ContainsFunc(p.Code, func(c markup.Code) bool { return !c.Inline && holds(c.Span) })
	switch o.Unit {
	case "line":
		if table >= 0 && at.Start < pages.LineAfter(p.Src, pages.LineAfter(p.Src, p.Tables[table].Start)) {
			return not("the head of a table")
		}
		return cut{p: p, span: lines(at)}
	case "row":
		switch {
		case code || table < 0:
			return not("no table")
		case at.Start < pages.LineAfter(p.Src, pages.LineAfter(p.Src, p.Tables[table].Start)):
			return not("the head of a table")
		}
		return cut{p: p, span: lines(at)}
	case "item":
		if item < 0 || code {
			return not("no list item")
		}
		it := p.Items[item]
		span := lines(markup.Span{Start: it.Start, End: it.End})
		span.End = max(backOver(p.Src, span.End, pages.LineAfter(p.Src, it.Start)), pages.LineAfter(p.Src, it.Start))
		if strings.TrimLeft(string(p.Src[span.Start:it.Start]), " \t>") != "" {
			return not("an item that begins within the line of another, which is not deleted by itself")
		}
		return cut{p: p, span: span}
	}
	switch block := slices.IndexFunc(p.Blocks, holds); {
	case code:
		return not("a block of code")
	case table >= 0:
		return not("a table: say “delete the table row containing …”, which leaves the others; it is in a table")
	case slices.ContainsFunc(p.Headings, func(h markup.Heading) bool { return holds(h.Span) }):
		return not("a heading")
	case block < 0:
		return not("no paragraph")
	case item >= 0 && pages.LineStart(p.Src, p.Items[item].Start) == pages.LineStart(p.Src, p.Blocks[block].Start):
		return not("a list: say “delete the list item containing …”, which leaves the others; it is in an item")
	default:
		return cut{p: p, span: lines(p.Blocks[block])}
	}
}

// renumbered returns the edits that keep a numbered list counting on when one of its items goes.
func renumbered(p *markup.Page, gone markup.Span) []markup.Edit {
	marker := func(s markup.Span) (number, column int, at markup.Span) {
		end := s.Start
		for end < s.End && p.Src[end] >= '0' && p.Src[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(string(p.Src[s.Start:end]))
		if err != nil {
			return -1, 0, at
		}
		return n, s.Start - pages.LineStart(p.Src, s.Start), markup.Span{Start: s.Start, End: end}
	}
	var edits []markup.Edit
	last, column, end := -1, 0, 0
	for _, it := range p.Items {
		n, col, at := marker(it)
		switch {
		case pages.LineStart(p.Src, it.Start) == gone.Start:
			last, column, end = n, col, it.End
		case last < 0 || it.Start < end:
		case pages.LineStart(p.Src, it.Start) != end || col != column || n != last+1:
			return edits
		default:
			edits = append(edits, markup.Edit{Span: at, New: []byte(strconv.Itoa(last))})
			last, end = n, it.End
		}
	}
	return edits
}

// emptyLine tells a blank line, also within a quotation.
func emptyLine(src []byte, at int) bool {
	return at >= len(src) || len(bytes.Trim(src[at:pages.LineAfter(src, at)], "> \t\r\n")) == 0
}
