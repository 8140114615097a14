package edit

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/site/markup"
)

// speaks reports whether an operation is done in reStructuredText and AsciiDoc too.
func speaks(op Operation) bool {
	switch o := op.(type) {
	case *Replace, *Rename, *FixTypos, *Correct, *ChangeHeading, *Lines, *Undo, *Move, *DeletePage:
		return true
	case *Many:
		return true // each was asked
	case *DeleteSection:
		return !o.Line
	case *Insert:
		return !inMarkdown.MatchString(o.Text)
	case *Append:
		return !inMarkdown.MatchString(o.Text)
	case *AddSection:
		return !inMarkdown.MatchString(o.Text)
	}
	return false
}

// inMarkdown finds what has a meaning in Markdown alone.
var inMarkdown = regexp.MustCompile("(?m)\\]\\(|^#{1,6} |^[ \t]*```|^[ \t]*~~~|^\\|.*\\|$|\\[[^\\]]*\\]\\[")

// names are what references may call parts of a page.
func names(p *markup.Page) map[string]bool {
	out := map[string]bool{}
	for _, l := range p.Refs {
		if l.Kind == markup.ReferenceDefinition {
			out[refName(p, l.Label)] = true
		}
	}
	for _, h := range p.Headings {
		out[refName(p, h.Text)] = true
		if p.Format == markup.AsciiDoc {
			out[h.Anchor] = true
		}
	}
	return out
}

func refName(p *markup.Page, name string) string {
	if p.Format == markup.RST {
		return markup.RefName(name)
	}
	return name
}

// called returns the name of a part of a page that a reference from another or the same one may have; empty if it is none.
func called(p, from *markup.Page, l markup.Link) string {
	if l.Kind == markup.ReferenceDefinition || l.Kind == markup.ImportLink || from.Format != p.Format {
		return ""
	}
	if p.Format == markup.RST {
		if l.Label == "_" && from.Path == p.Path || l.Label != "_" && !strings.Contains(l.Label, "doc") {
			name := markup.RefName(l.Dest)
			if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.HasSuffix(strings.TrimSuffix(p.Path, ".rst"), name[:i]) {
				name = name[i+1:] // by the extension that names sections by their titles
			}
			return name
		}
		return ""
	}
	file, id, ok := strings.Cut(l.Dest, "#")
	if !ok {
		if file, id = "", l.Dest; strings.HasSuffix(id, ".adoc") {
			return ""
		}
	}
	if i := strings.LastIndexAny(file, "/:"); i >= 0 {
		file = file[i+1:]
	}
	base := path.Base(p.Path)
	if file == "" && from.Path == p.Path || file == base || file != "" && file+path.Ext(base) == base {
		return id
	}
	return ""
}

// referable keeps the names alive that references lead to and that an edit of a page would end: with a target of the
// old name above the heading. Otherwise it refuses.
func (r *Run) referable(before *markup.Page, out []byte) ([]byte, error) {
	now := markup.Parse(before.Path, out)
	is, lost := names(now), map[string]bool{}
	for name := range names(before) {
		if !is[name] {
			lost[name] = true
		}
	}
	if len(lost) == 0 {
		return out, nil
	}
	all, err := r.Site.All()
	if err != nil {
		return nil, err
	}
	eol := pages.EOL(out)
	var edits []markup.Edit
	done := map[string]bool{}
	for _, from := range all {
		if from.Path == before.Path {
			from = now
		}
		for _, l := range from.Refs {
			name := called(before, from, l)
			if !lost[name] || done[name+"\x00"+l.Dest] {
				continue
			}
			done[name+"\x00"+l.Dest] = true
			i := headingNamed(before, name)
			if i < 0 || len(now.Headings) != len(before.Headings) {
				return nil, say.Refuse("%s of %s is referred to from %s", say.Quote(name), r.Site.Show(before.Path), r.Site.Show(from.Path))
			}
			old, h := before.Headings[i], now.Headings[i]
			target := "[[" + old.Anchor + "]]" + eol
			switch {
			case now.Format == markup.RST && l.Label == "_":
				target = ".. _`" + old.Text + "`:" + eol + eol
			case now.Format == markup.RST:
				target = ".. _`" + strings.TrimSpace(l.Dest) + "`:" + eol + eol
			case name != old.Anchor:
				target = "[[" + old.Anchor + "," + old.Text + "]]" + eol
			}
			at := pages.LineStart(out, h.Span.Start)
			edit := markup.Edit{Span: markup.Span{Start: at, End: at}, New: []byte(target)}
			if !bytes.Contains(bytes.Join(texts(edits), nil), edit.New) {
				edits = append(edits, edit)
				r.Kept("Kept the name %s of heading %s in %s, which references lead to", say.Quote(name), say.Quote(h.Text), r.Site.Show(now.Path))
			}
		}
	}
	return markup.Apply(out, edits)
}

func texts(edits []markup.Edit) (out [][]byte) {
	for _, e := range edits {
		out = append(out, e.New)
	}
	return out
}

func headingNamed(p *markup.Page, name string) int {
	for i, h := range p.Headings {
		if refName(p, h.Text) == name || p.Format == markup.AsciiDoc && h.Anchor == name {
			return i
		}
	}
	return -1
}
