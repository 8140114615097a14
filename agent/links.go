package agent

import (
	"fmt"
	"path"
	"strings"

	"docent/markup"
)

// Change where links lead: those to one target, or the one with a text.
type linkOp struct {
	dest, text string // either
	to         string
	located
}

func (o *linkOp) todo() string {
	what := "the links to " + quote(o.dest)
	if o.dest == "" {
		what = "the link " + quote(o.text)
	}
	return fmt.Sprintf("Point %s to %s %s", what, quote(o.to), o.scope)
}

func (o *linkOp) within(s scope) operation {
	c := *o
	c.scope = o.scope.elsewhere(s)
	return &c
}

// A named target is an address, or a page with an anchor.
type named struct {
	address string // as it was written
	file    string // empty for an address elsewhere
	anchor  string // with its mark
}

func (r *run) named(s string) (named, error) {
	if strings.Contains(s, ":") || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "//") {
		return named{address: s}, nil
	}
	n := named{address: s}
	s, anchor, ok := strings.Cut(s, "#")
	if ok {
		n.anchor = "#" + anchor
	}
	f, err := r.site.find(s)
	n.file = f
	return n, err
}

func (o *linkOp) run(r *run) error {
	to, err := r.named(o.to)
	if err != nil {
		return err
	}
	from, _ := r.named(o.dest) // one that leads nowhere is found as it is written
	n, files, anchored := 0, 0, 0
	edits := map[*markup.Page][]markup.Edit{}
	list, err := r.readable(r.bounds)
	if err != nil {
		return err
	}
	for _, p := range list {
		for _, l := range p.Links {
			if l.At.Start >= l.At.End || l.Kind == markup.ImportLink {
				continue
			}
			t := r.site.resolve(p.Path, l)
			switch {
			case o.text != "" && (l.Kind != markup.InlineLink || strings.TrimSpace(l.Text) != strings.TrimSpace(o.text)):
				continue
			case o.text == "" && l.Dest != o.dest:
				if from.file == "" || !t.local || t.file != from.file {
					continue
				}
				if "#"+t.fragment != from.anchor && (t.fragment != "" || from.anchor != "") {
					anchored++
					continue
				}
			}
			next := to.address
			switch {
			case to.file == "":
			case t.local:
				t.byAlias = false // the link leads to another page now
				next = r.site.address(p.Path, t, to.file, strings.TrimSuffix(l.Dest, "#"+t.fragment)) + to.anchor
			default:
				next = relative(path.Dir(p.Path), to.file) + to.anchor
			}
			edits[p] = append(edits[p], markup.Edit{Span: l.At, New: []byte(next)})
		}
		edits[p] = r.keep(p, edits[p])
		n += len(edits[p])
	}
	what := "no link leads to " + quote(o.dest)
	if o.text != "" {
		what = "no link has the text " + quote(o.text)
	}
	switch {
	case n == 0 && anchored > 0:
		return refuse("%s itself %s; its anchors have %s: name the one that is meant", what, o.scope, count(anchored, "link"))
	case n == 0:
		return refuse("%s %s", what, o.scope)
	case n > 1 && o.text != "":
		return refuse("%d links have the text %s %s, so none is certain", n, quote(o.text), o.scope)
	}
	for _, p := range inOrder(edits) {
		if len(edits[p]) == 0 {
			continue
		}
		if err := r.edit(p, edits[p], "links changed", len(edits[p])); err != nil {
			return err
		}
		files++
	}
	if anchored > 0 {
		r.kept("Left %s to anchors of %s", count(anchored, "link"), quote(o.dest))
	}
	r.did("Pointed %s in %s to %s", count(n, "link"), count(files, "file"), quote(o.to))
	r.headline("point links to %s", quote(o.to))
	return nil
}
