package builtin

import (
	"slices"
	"strings"

	"docent/model"
	"docent/model/builtin/blocks"
	"docent/search/analysis"
)

// Documentation says the same in several forms: a command for each package manager, an example for each language. A
// reader gets one of them, with links to the others: the one that the question names, or the page that the reader is
// on; otherwise the first one, unless another fits the question better.

// A tab is one of several forms of the same.
type tab struct {
	label    string
	names    []string // that it is known by, as they are spelled
	from, to int      // units that it holds
	set      int      // the same for the forms of the same, which follow each other
}

const (
	labelWords = 4   // of what may be a name that a reader knows
	fitsTab    = 1.3 // times that a tab fits better than the first one to be taken instead
	linkedTabs = 6
)

// ambiguous are names that are words of everyday language too.
var ambiguous = set("go swift rust dart edge render bun solid remix node express choco conda scoop")

// alternativesIn appends the names of alternatives in a text that a person wrote, in its order.
func alternativesIn(out []string, text string) []string {
	var buf [64]word
	before := ""
	for i, w := range appendWords(buf[:0], text) {
		_, name := analysis.Alternative(w.text)
		lower := strings.ToLower(w.text)
		if name != "" && ambiguous[lower] && (i == 0 || w.text == lower && !openings[before]) {
			name = ""
		}
		before = lower
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// labeled are the names that a label stands for; none if it says more than that.
func labeled(label string) (kind int, names []string) {
	all := split(label)
	if len(all) > labelWords {
		return 0, nil
	}
	for _, w := range all {
		k, name := analysis.Alternative(w.text)
		if name != "" && (names == nil || k == kind) {
			kind, names = k, append(names, name)
		}
	}
	return kind, names
}

// findTabs finds what a passage says in several forms: what tabs of the site hold, sections and code that are named by
// alternatives, and code in several languages of which one comes right after the other.
func (p *passage) findTabs() {
	var open []tab           // of one set
	kind, tabbed := 0, false // of these
	end := func() {
		if n := len(open); n > 1 {
			set := 1
			if len(p.tabs) > 0 {
				set += p.tabs[len(p.tabs)-1].set
			}
			most := 0 // units of one of those before the last one, which ends where nothing says so
			for i := range open {
				open[i].set = set
				if i < n-1 {
					most = max(most, open[i].to-open[i].from)
				}
			}
			if last := &open[n-1]; last.to == len(p.units) || p.units[last.to].text != "" {
				last.to = min(last.to, last.from+most)
			}
			p.tabs = append(p.tabs, open...)
		}
		open = nil
	}
	for i := 0; i < len(p.units); {
		t, of, inTabs := p.tabAt(i)
		if t.label == "" {
			if p.units[i].text != "" {
				end()
			}
			i++
			continue
		}
		if len(open) > 0 && (inTabs != tabbed || !inTabs && of != kind || slices.ContainsFunc(open, func(o tab) bool { return o.label == t.label })) {
			end()
		}
		kind, tabbed = of, inTabs
		open = append(open, t)
		i = t.to
	}
	end()
}

// tabAt is the tab that begins with a unit; without a label if none does.
func (p *passage) tabAt(i int) (t tab, kind int, tabbed bool) {
	u := &p.units[i]
	t = tab{from: i, to: i + 1}
	switch {
	case u.kind == heading && u.text != "":
		if kind, t.names = labeled(u.text); t.names == nil && !u.tab {
			return tab{}, 0, false
		}
		for t.to < len(p.units) && p.units[t.to].kind != heading {
			t.to++
		}
		if t.to == i+1 {
			return tab{}, 0, false
		}
		t.label, tabbed = u.text, u.tab
	case u.kind == code:
		if kind, t.names = labeled(u.label); t.names != nil {
			t.label = u.label
			return t, kind, false
		}
		lang := strings.Trim(blocks.FirstLine(u.text), "`")
		if kind, t.names = labeled(lang); t.names != nil && kind == analysis.Languages && !shells[lang] {
			t.label = t.names[0]
		}
	}
	return t, kind, tabbed
}

// shells are languages of code that stands beside other code more often than in place of it.
var shells = set("bash shell sh zsh console powershell ps1 pwsh curl")

// readers are the alternatives that a reader has named: in the question, in those before it, and by the pages that he
// is on and that he has selected something of.
func readers(req *model.Request) (names []string) {
	for _, text := range asked(req) {
		names = alternativesIn(names, text)
	}
	paths := []string{req.Page}
	for _, s := range req.Context {
		paths = append(paths, s.Path)
	}
	for _, path := range paths {
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '-' || r == '_' }) {
			if _, name := analysis.Alternative(part); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// chooseTabs hides of each set of a section's tabs all but the one that the reader wants.
func (q *query) chooseTabs(s *section) {
	if len(s.tabs) == 0 || s.hidden != nil || q.lists {
		return
	}
	s.hidden = make([]bool, len(s.units))
	for i, end := 0, 0; i < len(s.tabs); i = end {
		for end = i + 1; end < len(s.tabs) && s.tabs[end].set == s.tabs[i].set; {
			end++
		}
		chosen := i + q.tabOf(s, s.tabs[i:end])
		both := q.names(&s.tabs[chosen]) // and others perhaps too
		for n := i; n < end; n++ {
			t := &s.tabs[n]
			for u := t.from; u < t.to && n != chosen && !(both && q.names(t)); u++ {
				s.hidden[u] = true
			}
		}
	}
}

// names reports whether the question names a tab.
func (q *query) names(t *tab) bool {
	return slices.ContainsFunc(t.names, func(name string) bool { return slices.Contains(q.asks, name) })
}

// hides reports whether a unit is one of a tab that the reader does not want.
func (s *section) hides(unit int) bool { return s.hidden != nil && s.hidden[unit] }

// tabOf is the number of the tab that the reader wants.
func (q *query) tabOf(s *section, all []tab) int {
	for _, name := range q.readers {
		if n := slices.IndexFunc(all, func(t tab) bool { return slices.Contains(t.names, name) }); n >= 0 {
			return n
		}
	}
	asked := func(hash uint64) bool { return q.find(hash) >= 0 }
	for n, t := range all {
		if hashes := hashesOf(t.label); len(hashes) > 0 && t.names == nil && !slices.ContainsFunc(hashes, func(h uint64) bool { return !asked(h) }) {
			return n
		}
	}
	if !slices.ContainsFunc(all, func(t tab) bool { return t.to > t.from+1 }) { // code says little of what it is for
		return 0
	}
	first, best, at := 0.0, 0.0, 0
	for n, t := range all {
		for u := t.from; u < t.to; u++ {
			if s.scores[u] > best {
				best, at = s.scores[u], n
			}
		}
		if n == 0 {
			first = best
		}
	}
	if best < fitsTab*first {
		return 0
	}
	return at
}

// tabLabel is a tab's label, with links to the others of its set.
func (s *section) tabLabel(unit int) string {
	at := slices.IndexFunc(s.tabs, func(t tab) bool { return t.from == unit })
	if at < 0 {
		return ""
	}
	out, others := "**"+s.tabs[at].label+"**", 0
	for n := range s.tabs {
		t := &s.tabs[n]
		if n == at || t.set != s.tabs[at].set || others == linkedTabs {
			continue
		}
		others++
		if s.of.URL == "" {
			out += " · " + t.label
		} else {
			out += " · [" + t.label + "](" + s.of.URL + ")"
		}
	}
	return out
}
