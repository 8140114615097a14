package edit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/golangci/misspell"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

// FixTypos corrects common misspellings.
type FixTypos struct{ Located }

func (o *FixTypos) Todo() string { return "Fix typos " + o.Scope.String() }

func (o *FixTypos) Within(s Scope) Operation { return again(o, s) }

var typoWords = func() func(w string) (string, bool) {
	fixes := map[string]string{}
	for i := 0; i+1 < len(misspell.DictMain); i += 2 {
		fixes[misspell.DictMain[i]] = misspell.DictMain[i+1]
	}
	return func(w string) (string, bool) {
		fix, ok := fixes[strings.ToLower(w)]
		if !ok {
			return "", false
		}
		switch {
		case w == strings.ToLower(w):
			return fix, true
		case w == strings.ToUpper(w):
			return strings.ToUpper(fix), true
		case unicode.IsUpper(rune(w[0])) && w[1:] == strings.ToLower(w[1:]):
			return strings.ToUpper(fix[:1]) + fix[1:], true
		}
		return "", false // an odd form is a name
	}
}()

var asciiWord = regexp.MustCompile(`[A-Za-z][A-Za-z']*[A-Za-z]`)

func (o *FixTypos) Run(r *Run) error {
	list := r.pages()
	find := func(src []byte, at markup.Span) []hit {
		var out []hit
		for _, m := range asciiWord.FindAllIndex(src[at.Start:at.End], -1) {
			sp := markup.Span{Start: at.Start + m[0], End: at.Start + m[1]}
			fix, ok := typoWords(string(src[sp.Start:sp.End]))
			if !ok || inWord(src, sp, at) || codeLike(src, sp, at, false, true) {
				continue
			}
			out = append(out, hit{sp, fix})
		}
		return out
	}
	foreign := 0
	list = slices.DeleteFunc(list, func(f string) bool {
		p, err := r.Site.Page(f)
		if err == nil && !pages.English(p) {
			foreign++
			return true
		}
		return false
	})
	if foreign > 0 {
		r.Kept("Left %s of another language than English", say.Count(foreign, "page"))
	}
	n, files, err := r.rewritePages(list, r.reach(Manner{}), find, "typos fixed")
	if err != nil {
		return err
	}
	if n == 0 {
		return say.Idle("no word of the list of common misspellings occurs%s", o.Scope.there())
	}
	r.Did("Fixed %s in %s", say.Count(n, "typo"), say.Count(files, "file"))
	r.headline("fix typos")
	return nil
}

// ListMarkers gives all lists one marker.
type ListMarkers struct {
	Marker byte
	Located
}

func (o *ListMarkers) Todo() string {
	return fmt.Sprintf("Use “%c” for lists %s", o.Marker, o.Scope)
}

func (o *ListMarkers) Within(s Scope) Operation { return again(o, s) }

var bullet = regexp.MustCompile(`^([ \t>]*(?:[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)*?)([-*+])(?:[ \t]+\S|[ \t]*\r?$)`)

func (o *ListMarkers) Run(r *Run) error {
	n, files, err := r.editEach("list markers changed", func(p *markup.Page) ([]markup.Edit, error) {
		edits := r.keep(p, o.edits(p))
		out, err := markup.Apply(p.Src, edits)
		if err != nil || len(edits) == 0 {
			return nil, err
		}
		if q := markup.Parse(p.Path, out); q.Plain(q.Body) != p.Plain(p.Body) || len(q.Headings) != len(p.Headings) ||
			len(q.Code) != len(p.Code) {
			r.Kept("Left the lists of %s: another marker would change what they say", r.Site.Show(p.Path))
			return nil, nil
		}
		return edits, nil
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return say.Idle("no list%s has another marker", o.Scope.there())
	}
	r.Did("Changed %s in %s to “%c”", say.Count(n, "list marker"), say.Count(files, "file"), o.Marker)
	r.headline("use “%c” for lists", o.Marker)
	return nil
}

// edits change the markers of a page's lists.
func (o *ListMarkers) edits(p *markup.Page) (edits []markup.Edit) {
	if !workspace.IsPage(p.Path) {
		return nil
	}
	for at := p.Body.Start; at < len(p.Src); at = pages.LineAfter(p.Src, at) {
		line := p.Src[at:pages.LineAfter(p.Src, at)]
		m := bullet.FindSubmatchIndex(bytes.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		k := at + m[4]
		if p.Src[k] != o.Marker && isBullet(p, k) {
			edits = append(edits, markup.Edit{Span: markup.Span{Start: k, End: k + 1}, New: []byte{o.Marker}})
		}
	}
	return edits
}

// isBullet tells a list marker from a character of text, code, a rule or an underline.
func isBullet(p *markup.Page, at int) bool {
	holds := func(s markup.Span) bool { return at >= s.Start && at < s.End }
	if slices.ContainsFunc(p.Code, func(c markup.Code) bool { return holds(c.Span) }) ||
		slices.ContainsFunc(p.Tags, func(t markup.Tag) bool { return holds(t.Span) }) ||
		slices.ContainsFunc(p.Headings, func(h markup.Heading) bool { return holds(h.Span) }) ||
		slices.ContainsFunc(p.Prose, holds) {
		return false
	}
	line := bytes.TrimSpace(p.Src[pages.LineStart(p.Src, at):pages.LineAfter(p.Src, at)])
	marks := bytes.Count(line, []byte{p.Src[at]})
	return !(marks >= 3 && len(bytes.Trim(line, string(p.Src[at])+" \t")) == 0)
}

// LabelFences gives bare code fences a language.
type LabelFences struct {
	Lang string
	Located
}

func (o *LabelFences) Todo() string {
	return fmt.Sprintf("Add language %s to bare code fences %s", o.Lang, o.Scope)
}

func (o *LabelFences) Within(s Scope) Operation { return again(o, s) }

func (o *LabelFences) Run(r *Run) error {
	n, files, err := r.editEach("code fences labeled", func(p *markup.Page) (edits []markup.Edit, err error) {
		for _, c := range p.Code {
			if !workspace.IsPage(p.Path) || c.Inline || c.Lang != "" || c.Info != "" || c.Span.Start == c.Inner.Start {
				continue
			}
			ch, k := p.Src[c.Span.Start], c.Span.Start
			for (ch == '`' || ch == '~') && k < c.Span.End && p.Src[k] == ch {
				k++
			}
			if k > c.Span.Start {
				edits = append(edits, markup.Edit{Span: markup.Span{Start: k, End: k}, New: []byte(o.Lang)})
			}
		}
		return edits, nil
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return say.Idle("there is no bare code fence%s", o.Scope.there())
	}
	r.Did("Added language %s to %s in %s", o.Lang, say.Count(n, "code fence"), say.Count(files, "file"))
	r.headline("add language %s to code fences", o.Lang)
	return nil
}
