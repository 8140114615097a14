package edit

import (
	"bytes"
	"fmt"
	"strings"

	"docent/agent/say"
	"docent/agent/workspace"
	"docent/site/markup"
)

func hasMarkup(s string) bool {
	return strings.ContainsAny(s, "\n`<>{}[]") || strings.Contains(s, "**") || strings.HasPrefix(s, "#")
}

// AddressLike reports whether a text is an address and not words.
func AddressLike(s string) bool {
	return strings.Contains(s, "://") || strings.HasPrefix(s, "/") && len(s) > 1 || strings.HasPrefix(s, "www.") ||
		strings.HasPrefix(s, "#") && !strings.Contains(s, " ")
}

// maxPlaces is how many places one text is replaced in without a second look: it may stand there in many a sense.
const maxPlaces = 20

// Replace replaces or removes text.
type Replace struct {
	From, To string
	Located
}

func (o *Replace) Todo() string {
	if o.To == "" {
		return fmt.Sprintf("Remove %s %s", say.Quote(o.From), o.Scope)
	}
	return fmt.Sprintf("Replace %s with %s %s", say.Quote(o.From), say.Quote(o.To), o.Scope)
}

func (o *Replace) Within(s Scope) Operation { return again(o, s) }

func (o *Replace) Run(r *Run) error {
	if strings.TrimSpace(o.From) == "" {
		return say.Refuse("the text to replace is empty")
	}
	if o.From == o.To {
		return say.Idle("the text to replace and the new one are the same")
	}
	pages := r.pages()
	re := r.reach(o.Scope.Manner)
	re.links = re.links || AddressLike(o.From)
	if hasMarkup(o.From) && !AddressLike(o.From) {
		re.raw, re.front = true, false
	}
	manner := o.Scope.Manner
	manner.Words = !manner.InWords
	find := literalFinder(o.From, o.To, manner)
	if o.To == "" {
		find = removing(find)
	}
	parts := Manner{IgnoreCase: manner.IgnoreCase}
	within, _, err := r.countPages(pages, re, literalFinder(o.From, o.To, parts))
	if err != nil {
		return err
	}
	if err := r.oneMeaning(o.Scope, pages, find, o.From); err != nil {
		return err
	}
	what := "replaced"
	if o.To == "" {
		what = "removed"
	}
	n, files, err := r.rewritePages(pages, re, find, what)
	if err != nil {
		return err
	}
	if err := r.bounded(o.Scope, o.From, n); err != nil {
		return err
	}
	if n == 0 {
		if within > 0 {
			return say.Refuse("%s stands only within longer words%s, %s; end the instruction with “also within words” to change these", say.Quote(o.From), o.Scope.there(), say.Times(within))
		}
		m, _, err := r.countPages(pages, r.reach(Manner{Code: true, Links: true}), find)
		if err != nil {
			return err
		}
		if m > 0 && !o.Scope.Code {
			return say.InCode("%s does not occur in text%s; it does %s in code or links, which are left alone unless the instruction ends with “also in code” or “also in links”", say.Quote(o.From), o.Scope.there(), say.Times(m))
		}
		return say.Idle("%s does not occur %s", say.Quote(o.From), o.Scope.nowhere())
	}
	if part := within - n; part > 0 && !manner.InWords && !o.Scope.Words {
		r.Kept("Left %s within longer words; say “also within words” to change such", say.Count(part, "occurrence"))
	}
	verb := "Replaced"
	if o.To == "" {
		r.Did("Removed %s: %s in %s", say.Quote(o.From), say.Count(n, "occurrence"), say.Count(files, "file"))
		r.headline("remove %s", say.Quote(o.From))
		return nil
	}
	r.Did("%s %s with %s: %s in %s", verb, say.Quote(o.From), say.Quote(o.To), say.Count(n, "occurrence"),
		say.Count(files, "file"))
	r.headline("replace %s with %s", say.Quote(o.From), say.Quote(o.To))
	return nil
}

// bounded makes a draft of what changes one text in many places, unless their number was said.
func (r *Run) bounded(s Scope, text string, n int) error {
	switch {
	case s.Places != 0 && s.Places != n:
		return say.Refuse("%s stands %s%s, not in %s", say.Quote(text), say.Times(n), s.there(), say.Count(max(s.Places, 0), "place"))
	case n > maxPlaces && s.Places == 0 && !s.Placed():
		return say.Refuse("%s stands in %d places, and it is not said where: name the page, or say “everywhere” or “in all %d places”", say.Quote(text), n, n)
	case n > maxPlaces && s.Places == 0:
		r.Mass = true
		r.Kept("A draft, as %d places are many for one text: look whether all are meant, or say “in all %d places”", n, n)
	}
	return nil
}

// Rename renames a term.
type Rename struct {
	From, To string
	Located
}

func (o *Rename) Todo() string {
	return fmt.Sprintf("Rename %s to %s %s", say.Quote(o.From), say.Quote(o.To), o.Scope)
}

func (o *Rename) Within(s Scope) Operation { return again(o, s) }

func (o *Rename) Run(r *Run) error {
	_, dir := r.Site.Below(strings.TrimSuffix(o.From, "/"))
	if f, err := r.Site.Find(o.From); (workspace.PathLike(o.From) || workspace.PathLike(o.To)) &&
		(err == nil && workspace.IsPage(f) || dir && strings.HasSuffix(o.From, "/")) {
		return (&Move{From: o.From, To: o.To}).Run(r)
	}
	from, to := strings.TrimSpace(o.From), strings.TrimSpace(o.To)
	if from == "" || to == "" {
		return say.Refuse("a term is empty")
	}
	if from == to {
		return say.Idle("both terms are the same")
	}
	if strings.ContainsAny(from+to, "\n\r") {
		return say.Refuse("a term is one line of text")
	}
	pages := r.pages()
	find := termFinder(from, to, o.Scope.Manner)
	if err := r.oneMeaning(o.Scope, pages, find, from); err != nil {
		return err
	}
	any := o.Scope.Manner
	any.IgnoreCase = true
	every, _, err := r.countPages(pages, r.reach(any), termFinder(from, to, any))
	if err != nil {
		return err
	}
	n, files, err := r.rewritePages(pages, r.reach(o.Scope.Manner), find, "renamed")
	if err != nil {
		return err
	}
	if err := r.bounded(o.Scope, from, n); err != nil {
		return err
	}
	all, everything := literalFinder(from, "", Manner{IgnoreCase: true, Words: true}),
		r.reach(Manner{Code: true, Links: true})
	if n == 0 && every > 0 {
		return say.Refuse("the term %s does not occur %s written so; it does %s in another case: end the instruction with “ignoring case” to rename these", say.Quote(from), o.Scope, say.Times(every))
	}
	if n == 0 {
		m, _, err := r.countPages(pages, everything, all)
		if err != nil {
			return err
		}
		if m > 0 {
			return say.InCode("the term %s does not occur as text%s; it does %s in code, links or names of files, which are left alone", say.Quote(from), o.Scope.there(), say.Times(m))
		}
		return say.Idle("the term %s does not occur %s", say.Quote(from), o.Scope.nowhere())
	}
	left, in, err := r.countPages(pages, everything, all)
	if err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(to), strings.ToLower(from)) {
		left = 0 // the new term holds the old one
	}
	r.Did("Renamed %s to %s: %s in %s", say.Quote(from), say.Quote(to), say.Count(n, "occurrence"),
		say.Count(files, "file"))
	if other := every - n; other > 0 && !o.Scope.ExactCase {
		r.Kept("Left %s of %s in another case; say “ignoring case” to rename such", say.Count(other, "occurrence"),
			say.Quote(from))
		left -= other
	}
	if left > 0 {
		r.Kept("Left %s in %s in code, links, URLs and names, where %s is not text", say.Count(left, "occurrence"),
			say.Count(in, "file"), say.Quote(from))
	}
	r.headline("rename %s to %s", say.Quote(from), say.Quote(to))
	return nil
}

// rewritePages makes a text operation on pages; it returns the number of matches and files.
func (r *Run) rewritePages(pages []string, re reach, find finder, what string) (n, files int, err error) {
	for _, f := range pages {
		if err := r.Context.Err(); err != nil {
			return 0, 0, err
		}
		p, err := r.Site.Page(f)
		if err != nil {
			if len(pages) > 1 {
				if _, ok := err.(*say.Refusal); ok {
					r.Kept("Left %s: %v", r.Site.Show(f), err)
					continue
				}
			}
			return 0, 0, err
		}
		out, k, err := rewrite(p, re, find)
		if err != nil {
			return 0, 0, err
		}
		if k == 0 || bytes.Equal(out, p.Src) {
			continue
		}
		if what == "removed" {
			if all := hollow(p, markup.Parse(f, out)); all != "" {
				return 0, 0, say.Refuse("in %s, that is all of %s", r.Site.Show(f), all)
			}
		}
		if err := r.put(f, p, out, true); err != nil {
			return 0, 0, err
		}
		r.Tally(f, what, k)
		n += k
		files++
	}
	return n, files, nil
}

func (r *Run) countPages(pages []string, re reach, find finder) (n, files int, err error) {
	for _, f := range pages {
		p, err := r.Site.Page(f)
		if err != nil {
			continue
		}
		if _, k, err := rewrite(p, re, find); err == nil && k > 0 {
			n += k
			files++
		}
	}
	return n, files, nil
}
