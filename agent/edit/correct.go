package edit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"docent/agent/pages"
	"docent/agent/say"
	"docent/internal/brief"
	"docent/site/markup"
)

// A Pair is a text and what should stand in its place.
type Pair struct{ Old, New string }

// A Reading is what a request says at one place: the ways in which it can be taken, the likeliest first.
type Reading struct {
	Pairs   []Pair
	Cue     Cue
	Literal bool   // both texts are quoted
	One     bool   // one place is meant, whatever the text
	Whole   bool   // the first pair is all that is said: where its text stands, no part of it is meant
	Placed  bool   // it goes on with where it is, which must be a page, or it may belong to the text
	Slip    bool   // it is said to be a slip of the pen, and is one away
	Of      string // what the text is said of: it stands on the same line
}

// A Cue is what tells the old text from the new one.
type Cue uint8

// Cues, the surest first.
const (
	Arrow  Cue = iota + 1 // X -> Y
	Verb                  // replace X with Y
	Should                // X should be Y
	Told                  // Y, not X: nothing is to be done where both stand
	Unsure                // Y instead of X, or X instead of Y: the documentation must tell
	Either                // X and Y: one of them stands there and is wrong
)

// Correct makes the changes that a request in people's words asks for, if the documentation bears them out: the old text
// stands there once, or several times in one sort of place if all are meant.
type Correct struct {
	Readings []Reading
	In       []string // files that the request names; none for all pages
	Near     []string // pages that it may mean: they decide where the text stands on several
	Anchors  []string // of sections that it names
	Sections []string // words that may be the title of a section
	Rest     string   // words of the request that may name a page in passing
	Quoted   []string // longer texts that may show where one stands
	Every    bool     // all occurrences are meant
	Lines    []int    // the lines that are meant

	Translated func() map[string]bool // pages that are another one in another language
}

func (o *Correct) Todo() string {
	var parts []string
	for _, r := range o.Readings {
		p := r.Pairs[0]
		if s := fmt.Sprintf("replace %s with %s", say.Quote(p.Old), say.Quote(p.New)); !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return "Look for what the request says, and " + strings.Join(parts, ", ")
}

func (o *Correct) Where() *Scope { return nil } // it names its places one by one

// A Doubt says what a request in people's words leaves open, with what is known.
type Doubt struct {
	Why   string
	Pair  Pair
	Files []string // where the old text stands; none if it does not
	Forms []string // what to say instead, filled in
}

func (d *Doubt) Error() string { return d.Why }

// A site of a text on a page.
type located struct {
	page *markup.Page
	markup.Span
	text   string // what is to stand there
	sort   string
	joined bool // to a longer name: resin-sample.ignore
}

func (o *Correct) Run(r *Run) error {
	var found []located
	var doubt *Doubt
	var doubts []*Doubt
	done := map[Pair]bool{}
	for _, reading := range o.Readings {
		pair, at, err := o.find(r, reading)
		switch d, open := err.(*Doubt); {
		case err != nil && !open:
			return err
		case open:
			if reading.Literal || len(d.Files) > 0 {
				doubts = append(doubts, d)
			}
			continue
		case len(at) == 0 || done[pair]:
			continue
		}
		done[pair] = true
		found = append(found, at...)
	}
	for _, d := range doubts {
		settled := slices.ContainsFunc(found, func(l located) bool {
			old := string(l.page.Src[l.Start:l.End])
			return holds(old, d.Pair.Old) && holds(l.text, d.Pair.New) || holds(old, d.Pair.New) && holds(l.text, d.Pair.Old)
		})
		if !settled && (doubt == nil || len(doubt.Files) == 0) {
			doubt = d
		}
	}
	if doubt != nil && (len(found) == 0 || len(doubt.Files) > 0) {
		return doubt
	}
	if len(found) == 0 {
		return o.nothing(r)
	}
	if found = apart(found); found == nil {
		return &Doubt{Why: "it names different texts for the same place", Pair: o.Readings[0].Pairs[0]}
	}
	return o.write(r, found)
}

// holds reports whether a text holds another, whatever their case.
func holds(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// nothing says that none of the texts is there.
func (o *Correct) nothing(r *Run) error {
	p := o.Readings[0].Pairs[0]
	where := "anywhere"
	if len(o.In) > 0 {
		where = "in " + r.shown(o.In)
	}
	return &Doubt{Why: fmt.Sprintf("%s does not stand %s", say.Quote(p.Old), where), Pair: p}
}

func (r *Run) shown(files []string) string {
	var out []string
	for _, f := range files {
		out = append(out, r.Site.Show(f))
	}
	return say.List(out)
}

// apart sorts what was found and drops what was found twice; nil if two changes of one place differ.
func apart(list []located) []located {
	slices.SortFunc(list, func(a, b located) int {
		if c := strings.Compare(a.page.Path, b.page.Path); c != 0 {
			return c
		}
		return a.Start - b.Start
	})
	var out []located
	for _, l := range list {
		if n := len(out); n > 0 && out[n-1].page.Path == l.page.Path && l.Start < out[n-1].End {
			last := out[n-1]
			whole := func(a, b located) bool { // b's change is part of a's
				return a.Start <= b.Start && b.End <= a.End && strings.Contains(a.text, b.text)
			}
			switch {
			case whole(last, l):
			case whole(l, last):
				out[n-1] = l
			default:
				return nil
			}
			continue
		}
		out = append(out, l)
	}
	return out
}

func (o *Correct) write(r *Run, found []located) error {
	byPage := map[*markup.Page][]markup.Edit{}
	for _, l := range found {
		byPage[l.page] = append(byPage[l.page], markup.Edit{Span: l.Span, New: []byte(l.text)})
	}
	for _, p := range inOrder(byPage) {
		if err := r.Files.Writable(p.Path); err != nil {
			return err
		}
		out, err := markup.Apply(p.Src, byPage[p])
		if err != nil {
			return fmt.Errorf("edit %s: %w", p.Path, err)
		}
		if err := r.put(p.Path, p, out, true); err != nil {
			return err
		}
		r.Tally(p.Path, "replaced", len(byPage[p]))
	}
	for _, l := range found {
		old := string(l.page.Src[l.Start:l.End])
		s := fmt.Sprintf("Replaced %s with %s in %s, line %d%s", say.Quote(old), say.Quote(l.text), r.Site.Show(l.page.Path), lineOf(l.page, l.Start),
			l.sort)
		r.Did("%s", s)
	}
	r.headline("replace %s with %s", say.Quote(string(found[0].page.Src[found[0].Start:found[0].End])), say.Quote(found[0].text))
	return nil
}

func lineOf(p *markup.Page, at int) int { return bytes.Count(p.Src[:at], []byte("\n")) + 1 }

// find settles which way of taking a reading the documentation bears out, and where.
func (o *Correct) find(r *Run, reading Reading) (Pair, []located, error) {
	pairs := reading.Pairs
	var first *Doubt
	for n, p := range pairs {
		at, err := o.places(r, p)
		if err != nil {
			return p, nil, err
		}
		if up, ok := capitalized(p); ok && !reading.Literal { // without quotes, the case is that of the sentence it is named in
			more, err := o.places(r, up)
			if err != nil {
				return p, nil, err
			}
			at = append(at, more...)
		}
		back := Pair{p.New, p.Old}
		if right := reading.Cue >= Should && misspelled(back); right || len(at) == 0 && reading.Cue >= Unsure { // what is called wrong is right
			if at, err = o.places(r, back); err != nil {
				return p, nil, err
			}
			p = back
		}
		if len(at) == 0 {
			if n == 0 && reading.Whole && sameStart(p) {
				break // what both begin with says where it stands, and it does not
			}
			continue
		}
		both, err := o.both(r, p, reading.Cue, at)
		if err != nil {
			return p, nil, err
		}
		if both {
			return p, nil, o.doubt(r, p, at, fmt.Sprintf("both %s and %s stand there, and it is not certain which is wrong", say.Quote(p.Old), say.Quote(p.New)))
		}
		settled, why := o.certain(r, p, reading, at)
		if why == "" {
			return p, settled, nil
		}
		if first == nil {
			first = o.doubt(r, p, at, why)
		}
		if n == 0 && reading.Whole {
			break
		}
	}
	if first != nil {
		return first.Pair, nil, first
	}
	return o.missed(r, pairs)
}

// missed looks for the last parts of names that do not stand anywhere themselves.
func (o *Correct) missed(r *Run, pairs []Pair) (Pair, []located, error) {
	for _, p := range pairs {
		if part, ok := unqualified(p); ok {
			if at, err := o.places(r, part); err != nil || len(at) == 1 {
				return part, at, err
			}
		}
	}
	p := pairs[0]
	return p, nil, &Doubt{Why: o.nothing(r).Error(), Pair: p}
}

// sameStart reports whether two texts begin with the same word.
func sameStart(p Pair) bool {
	a, b := strings.Fields(p.Old), strings.Fields(p.New)
	return len(a) > 1 && len(b) > 1 && a[0] == b[0]
}

// both reports whether the other text stands there too, where that leaves open which one is wrong.
func (o *Correct) both(r *Run, p Pair, cue Cue, at []located) (bool, error) {
	switch cue {
	case Unsure:
		others, err := o.places(r, Pair{p.New, p.Old})
		return len(others) > 0 && (len(o.In) == 0 && !misspelled(p) && !o.nonword(r, p, at) || o.stands(r, p.New, at)), err
	case Told:
		return o.stands(r, p.New, at), nil
	case Either:
		others, err := o.places(r, Pair{p.New, p.Old})
		return len(others) > 0, err
	}
	return false, nil
}

// capitalized are the texts of a pair as they begin a sentence; not ok if they are code.
func capitalized(p Pair) (Pair, bool) {
	if distinct(p.Old) || distinct(p.New) {
		return p, false
	}
	up := Pair{brief.Capital(p.Old), brief.Capital(p.New)}
	return up, up.Old != p.Old && up.New != p.New
}

// unqualified is what differs of two names within the same one: shiki.themes -> shiki.theme, where a page has them below
// one another.
func unqualified(p Pair) (Pair, bool) {
	at := strings.LastIndexByte(p.Old, '.') + 1
	if at == 0 || strings.ContainsAny(p.Old+p.New, " \n/") || !strings.HasPrefix(p.New, p.Old[:at]) || len(p.Old) < at+4 || len(p.New) == at {
		return p, false
	}
	return Pair{p.Old[at:], p.New[at:]}, true
}

// stands reports whether a text stands on one of the pages already.
func (o *Correct) stands(r *Run, text string, at []located) bool {
	re, err := regexp.Compile(wrapping(text))
	if err != nil {
		return true
	}
	for _, l := range at {
		for _, m := range re.FindAllIndex(l.page.Src, -1) {
			sp := markup.Span{Start: m[0], End: m[1]}
			if !inWord(l.page.Src, sp, markup.Span{End: len(l.page.Src)}) && (sp.End <= l.Start || sp.Start >= l.End) {
				return true
			}
		}
	}
	return false
}

// places are where the old text of a pair stands as whole words, and the new one does not.
func (o *Correct) places(r *Run, p Pair) ([]located, error) {
	list := o.In
	if len(list) == 0 {
		list = r.Site.List()
	}
	if strings.TrimSpace(p.Old) == "" || p.Old == p.New {
		return nil, nil
	}
	var out []located
	for _, f := range list {
		if err := r.Context.Err(); err != nil {
			return nil, err
		}
		page, err := r.Site.Page(f)
		if err != nil {
			continue
		}
		out = append(out, occurrences(page, p)...)
		if len(out) > 1000 {
			break
		}
	}
	return out, nil
}

// occurrences finds a text on a page, as it is written there or with marks of emphasis between its words.
func occurrences(page *markup.Page, p Pair) (out []located) {
	whole := markup.Span{End: len(page.Src)}
	for _, w := range strings.Fields(p.Old) {
		if !bytes.Contains(page.Src, []byte(strings.Trim(w, "*_`"))) {
			return nil
		}
	}
	var covered []markup.Span
	if strings.Contains(p.New, p.Old) {
		covered = spansOf(page.Src, wrapping(p.New))
	}
	for _, sp := range spansOf(page.Src, wrapping(p.Old)) {
		if inNumber(page.Src, sp) || inWord(page.Src, sp, whole) && !(emphasized(page.Src, sp) && sortOf(page, sp) == "") || inside(sp, covered) {
			continue
		}
		out = append(out, located{page, sp, asWrapped(string(page.Src[sp.Start:sp.End]), p), sortOf(page, sp), withinName(page.Src, sp)})
	}
	if len(out) > 0 || !strings.Contains(p.Old, " ") || strings.Contains(p.Old, "\n") { // lines are as they are, or not there
		return out
	}
	// As a reader sees it: the words that differ are looked for within the text.
	old, now := core(p)
	if old == "" || old == p.Old {
		return nil
	}
	for _, sp := range spansOf(page.Src, loose(p.Old)) {
		var within []located
		for _, c := range spansOf(page.Src[sp.Start:sp.End], wrapping(old)) {
			c = markup.Span{Start: sp.Start + c.Start, End: sp.Start + c.End}
			if !inWord(page.Src, c, whole) {
				within = append(within, located{page, c, now, sortOf(page, c), false})
			}
		}
		if len(within) == 1 {
			out = append(out, within[0])
		}
	}
	return out
}

// emphasized reports whether a text stands behind or before a single mark of emphasis that looks as if it were part of a word: _a b_.
func emphasized(src []byte, sp markup.Span) bool {
	word := func(i int) bool { return i >= 0 && i < len(src) && isWordRune(rune(src[i])) }
	mark := func(i, out int) bool { return !word(i) || src[i] == '_' && !word(i+out) }
	return mark(sp.Start-1, -1) && mark(sp.End, 1)
}

// withinName reports whether a text is the beginning or the end of a longer name, with a hyphen or a dot between.
func withinName(src []byte, sp markup.Span) bool {
	letter := func(i int) bool { return i >= 0 && i < len(src) && isWordRune(rune(src[i])) }
	if letter(sp.End-1) && letter(sp.End+1) && (src[sp.End] == '-' || src[sp.End] == '.') {
		return true
	}
	return letter(sp.Start) && letter(sp.Start-2) && src[sp.Start-1] == '-'
}

func spansOf(src []byte, expr string) (out []markup.Span) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil
	}
	for _, m := range re.FindAllIndex(src, 1000) {
		out = append(out, markup.Span{Start: m[0], End: m[1]})
	}
	return out
}

// loose matches a text with marks of emphasis, code and links between its words.
func loose(text string) string {
	var b strings.Builder
	for i, w := range strings.Fields(text) {
		if i > 0 {
			b.WriteString("[*_`\\[]{0,3}\\s+[*_`\\[]{0,3}")
		}
		b.WriteString(regexp.QuoteMeta(strings.Trim(w, "*_`")))
	}
	return b.String()
}

// asWrapped is the new text with the line ends of the old one kept where only words at its ends differ.
func asWrapped(seen string, p Pair) string {
	if !strings.ContainsAny(seen, "\r\n") || strings.Contains(p.Old, "\n") {
		return p.New
	}
	old, now := core(p)
	if old != "" && strings.Count(seen, old) == 1 {
		return strings.Replace(seen, old, now, 1)
	}
	return p.New
}

// core is what differs between the two texts of a pair, in whole words.
func core(p Pair) (old, now string) {
	a, b := strings.Fields(p.Old), strings.Fields(p.New)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return strings.Trim(strings.Join(a, " "), "*_`"), strings.Trim(strings.Join(b, " "), "*_`")
}

// sortOf says what sort of place a text stands in, as it is told: empty for running text.
func sortOf(p *markup.Page, sp markup.Span) string {
	for _, c := range p.Code {
		if c.Span.Start <= sp.Start && sp.End <= c.Span.End {
			if c.Inline {
				return ", in inline code"
			}
			return ", in a code block"
		}
	}
	if sp.End <= p.Body.Start {
		return ", in the front matter"
	}
	for _, l := range p.Links {
		if l.At.Start <= sp.Start && sp.End <= l.At.End && l.At.Start < l.At.End {
			return ", in the target of a link"
		}
	}
	for _, h := range p.Headings {
		if h.Span.Start <= sp.Start && sp.End <= h.Span.End {
			return ", in a heading"
		}
	}
	return ""
}

// certain settles which of several places are meant, or says why that is not known.
func (o *Correct) certain(r *Run, p Pair, reading Reading, at []located) ([]located, string) {
	at, why := o.possible(r, p, reading, at)
	if why != "" || len(at) == 1 {
		return at, why
	}
	at, done := o.pointed(r, p, at)
	if !done {
		at = o.passing(at)
	}
	if done || len(at) == 1 {
		return at, ""
	}
	return o.settled(r, p, reading, at)
}

// onLines are the places on the lines that are named.
func (o *Correct) onLines(at []located) []located {
	return slices.DeleteFunc(slices.Clone(at), func(l located) bool { return !slices.Contains(o.Lines, lineOf(l.page, l.Start)) })
}

// possible leaves out places that cannot be meant, or says why none can be.
func (o *Correct) possible(r *Run, p Pair, reading Reading, at []located) ([]located, string) {
	if reading.Placed && len(o.In)+len(o.Near) == 0 {
		return nil, fmt.Sprintf("it is not certain what else belongs to %s", say.Quote(p.New))
	}
	if reading.Of != "" && len(o.In) == 0 {
		if at = slices.DeleteFunc(slices.Clone(at), func(l located) bool { return !holds(lineAround(l), reading.Of) }); len(at) == 0 {
			return nil, fmt.Sprintf("%s stands nowhere beside %s", say.Quote(p.Old), say.Quote(reading.Of))
		}
	}
	if named := o.onLines(at); len(named) == 1 {
		return named, ""
	}
	if !(reading.Slip && len(at) == 1) && (distinct(p.Old) || strings.Contains(p.Old, "-")) {
		alone := slices.DeleteFunc(slices.Clone(at), func(l located) bool { return l.joined })
		if len(alone) == 0 || countPages(alone) < countPages(at) || len(o.In) == 0 && len(alone) < len(at) {
			l := at[slices.IndexFunc(at, func(l located) bool { return l.joined })]
			return nil, fmt.Sprintf("%s stands within a longer name in %s, line %d", say.Quote(p.Old), r.Site.Show(l.page.Path), lineOf(l.page, l.Start))
		}
		at = alone
	}
	return o.original(at), ""
}

// pointed keeps to the places that the request points at: by lines, a longer text, a section, a page; done if all that are left are meant.
func (o *Correct) pointed(r *Run, p Pair, at []located) (left []located, done bool) {
	if named := o.onLines(at); len(named) > 0 {
		if at = named; len(at) == 1 || o.oneOnEach(at) {
			return at, true
		}
	}
	if narrowed := o.shownBy(r, p, at); len(narrowed) > 0 {
		at = narrowed
	}
	if narrowed, oneEach := o.below(p, at); len(narrowed) > 0 {
		if at = narrowed; oneEach && countPages(at) == 1 {
			return at, true
		}
	}
	if near := slices.DeleteFunc(slices.Clone(at), func(l located) bool { return !slices.Contains(o.Near, l.page.Path) }); len(near) > 0 {
		at = near
	}
	return at, false
}

// settled says whether all of several places are meant, or the one that other words tell.
func (o *Correct) settled(r *Run, p Pair, reading Reading, at []located) ([]located, string) {
	if !(countPages(at) == 1 && sameSort(at, distinct(p.Old)) && o.all(r, p, reading, at)) {
		if at = o.beside(p, at); len(at) == 1 {
			return at, ""
		}
	}
	one := true
	for _, l := range at {
		one = one && l.page == at[0].page
	}
	switch {
	case !one && misspelled(p) && sameSort(at, false) && o.named(at):
		return at, ""
	case !one:
		return nil, fmt.Sprintf("%s stands on %d pages", say.Quote(p.Old), countPages(at))
	case reading.Slip && o.nonword(r, p, at):
		return at, ""
	case !sameSort(at, distinct(p.Old)):
		return nil, fmt.Sprintf("%s stands %s in %s, in unlike places (%s)", say.Quote(p.Old), say.Times(len(at)), r.Site.Show(at[0].page.Path),
			lines(at))
	case o.all(r, p, reading, at):
		return at, ""
	}
	return nil, fmt.Sprintf("%s stands %s in %s (%s)", say.Quote(p.Old), say.Times(len(at)), r.Site.Show(at[0].page.Path), lines(at))
}

// named reports whether the request names every page of some places.
func (o *Correct) named(at []located) bool {
	return !slices.ContainsFunc(at, func(l located) bool {
		return !slices.Contains(o.In, l.page.Path) && !slices.Contains(o.Near, l.page.Path)
	})
}

// oneOnEach reports whether the lines that are named have one place each, on one page.
func (o *Correct) oneOnEach(at []located) bool {
	seen := map[int]bool{}
	for _, l := range at {
		seen[lineOf(l.page, l.Start)] = true
	}
	return countPages(at) == 1 && len(seen) == len(at) && len(at) == len(o.Lines)
}

// all reports whether all of several places of one sort on a page are meant.
func (o *Correct) all(r *Run, p Pair, reading Reading, at []located) bool {
	name := distinct(p.Old)
	switch {
	case misspelled(p), reading.Slip && o.nonword(r, p, at):
		return true
	case (reading.One || len(o.Lines) > 0 || reading.Cue >= Told) && !o.Every:
		return false
	case name && (o.Every || reading.Cue == Arrow || reading.Cue == Verb):
		return true
	case o.Every || name || inCode(at) && strings.Contains(p.Old, "-") && !strings.Contains(p.Old, " "):
		return !o.stands(r, p.New, at)
	}
	return false
}

// original leaves out translations of pages, if a text stands on others too: the request is about what is translated.
func (o *Correct) original(at []located) []located {
	if o.Translated == nil || countPages(at) < 2 || strings.Contains(strings.ToLower(o.Rest), "transl") {
		return at
	}
	translated := o.Translated()
	if left := slices.DeleteFunc(slices.Clone(at), func(l located) bool { return translated[l.page.Path] }); len(left) > 0 {
		return left
	}
	return at
}

// nonword reports whether the documentation itself shows that a text is no word: it stands on one page alone, and the one that is
// meant, which is but a slip of the pen away and no other form of it, stands on others.
func (o *Correct) nonword(r *Run, p Pair, at []located) bool {
	if len(p.Old) < 6 || strings.Contains(p.New, p.Old) || strings.Contains(p.Old, p.New) || len(at) > 20 {
		return false
	}
	whole := &Correct{}
	all, err := whole.places(r, p)
	if err != nil || countPages(all) != 1 {
		return false
	}
	right, err := whole.places(r, Pair{p.New, p.Old})
	return err == nil && countPages(right) > 1
}

// misspelled reports whether the old text is a known misspelling of the new one, has a word twice, or the wrong article:
// then none of its places is right.
func misspelled(p Pair) bool {
	old, now := strings.Fields(p.Old), strings.Fields(p.New)
	if len(old) > 1 && strings.EqualFold(old[0], old[1]) && strings.Join(old[1:], " ") == strings.Join(now, " ") {
		return true
	}
	if len(old) > 1 && len(now) == len(old) && slices.Equal(old[1:], now[1:]) {
		vowel := strings.Contains("aeio", strings.ToLower(old[1][:1])) && !strings.HasPrefix(old[1], "eu") && !strings.HasPrefix(old[1], "one")
		consonant := strings.Contains("bcdfgjkpqtvwyz", strings.ToLower(old[1][:1])) || len(old[1]) > 2 && strings.Contains("lmnrsx", old[1][:1])
		if strings.EqualFold(old[0], "a") && strings.EqualFold(now[0], "an") && vowel || strings.EqualFold(old[0], "an") && strings.EqualFold(now[0], "a") && consonant {
			return true
		}
	}
	fix, ok := typoWords(p.Old)
	return ok && strings.EqualFold(fix, p.New)
}

func countPages(at []located) int {
	seen := map[string]bool{}
	for _, l := range at {
		seen[l.page.Path] = true
	}
	return len(seen)
}

func inCode(at []located) bool {
	return !slices.ContainsFunc(at, func(l located) bool { return l.sort != ", in inline code" && l.sort != ", in a code block" })
}

// sameSort reports whether texts stand in one sort of place: code (of one kind, but for names), link targets, or what
// readers read.
func sameSort(at []located, name bool) bool {
	class := func(s string) string {
		if name && s == ", in inline code" {
			return ", in a code block"
		}
		if s == ", in a heading" || s == ", in the front matter" {
			return ""
		}
		return s
	}
	return !slices.ContainsFunc(at, func(l located) bool { return class(l.sort) != class(at[0].sort) })
}

// distinct reports whether a text is a name or an identifier, which means the same wherever it stands, and no word of
// the language.
func distinct(s string) bool {
	words := strings.Fields(s)
	upper := 0
	for _, w := range words {
		if strings.ContainsFunc(w[1:], unicode.IsUpper) || strings.ContainsAny(w, "_./=@$[]{}<>0123456789") {
			return true
		}
		if unicode.IsUpper([]rune(w)[0]) {
			upper++
		}
	}
	return len(words) > 1 && upper == len(words)
}

func lines(at []located) string {
	var out []string
	for _, l := range at {
		out = append(out, fmt.Sprint(lineOf(l.page, l.Start)))
	}
	return "lines " + say.List(out)
}

// shownBy are the places within a longer text that the request quotes, if that stands in one place alone.
func (o *Correct) shownBy(r *Run, p Pair, at []located) []located {
	for _, q := range o.Quoted {
		if len(q) <= len(p.Old) || q == p.New || !strings.Contains(q, p.Old) {
			continue
		}
		var within []located
		spots := 0
		for _, page := range pagesOf(at) {
			for _, sp := range append(spansOf(page.Src, wrapping(q)), spansOf(page.Src, loose(q))...) {
				n := len(within)
				for _, l := range at {
					if l.page == page && sp.Start <= l.Start && l.End <= sp.End && !slices.ContainsFunc(within, func(w located) bool { return w.Span == l.Span && w.page == l.page }) {
						within = append(within, l)
					}
				}
				if len(within) > n {
					spots++
				}
			}
		}
		if spots == 1 {
			return within
		}
	}
	return nil
}

func pagesOf(at []located) (out []*markup.Page) {
	for _, l := range at {
		if !slices.Contains(out, l.page) {
			out = append(out, l.page)
		}
	}
	return out
}

// passing keeps to the one page whose title or name stands among the other words of the request, and no other one's that
// says more.
func (o *Correct) passing(at []located) []located {
	list := pagesOf(at)
	if len(list) < 2 || len(list) > 200 {
		return at
	}
	said := pages.Words(o.Rest)
	best := telling(len(list), func(i int) map[string]bool { return pages.NamedBy(list[i], said) })
	if best < 0 {
		return at
	}
	return slices.DeleteFunc(slices.Clone(at), func(l located) bool { return l.page != list[best] })
}

// beside keeps to the one place of a page that the other words of the request tell from the rest, by those that stand on its
// line and in the heading above it: two of them at least.
func (o *Correct) beside(p Pair, at []located) []located {
	if len(at) < 2 || len(at) > 50 || countPages(at) != 1 {
		return at
	}
	said := pages.Words(o.Rest)
	for w := range pages.Words(p.Old + " " + p.New) {
		delete(said, w)
	}
	best := telling(len(at), func(i int) map[string]bool {
		has := shared(said, pages.Words(lineAround(at[i])+" "+headingOver(at[i].page, at[i].Start)))
		if len(has) < 2 {
			return nil
		}
		return has
	})
	if best < 0 {
		return at
	}
	return at[best : best+1]
}

// telling is the one of several that has all words that any other has, and more; -1 if there is none.
func telling(n int, words func(int) map[string]bool) int {
	best, most := -1, map[string]bool{}
	all := make([]map[string]bool, n)
	for i := range all {
		if all[i] = words(i); len(all[i]) > len(most) {
			best, most = i, all[i]
		}
	}
	for i, has := range all {
		if i == best {
			continue
		}
		if len(has) >= len(most) || len(shared(has, most)) < len(has) {
			return -1
		}
	}
	return best
}

func shared(a, b map[string]bool) map[string]bool {
	out := map[string]bool{}
	for w := range a {
		if b[w] {
			out[w] = true
		}
	}
	return out
}

func lineAround(l located) string {
	src := l.page.Src
	end := len(src)
	if n := bytes.IndexByte(src[l.End:], '\n'); n >= 0 {
		end = l.End + n
	}
	return string(src[pages.LineStart(src, l.Start):end])
}

// below are the places in the sections that the request names, and whether each stands in one of its own.
func (o *Correct) below(p Pair, at []located) (out []located, oneEach bool) {
	type section struct {
		page    *markup.Page
		heading int
	}
	seen := map[section]bool{}
	for _, l := range at {
		for i, h := range l.page.Headings {
			named := slices.ContainsFunc(o.Anchors, func(a string) bool { return strings.EqualFold(a, h.Anchor) }) ||
				slices.ContainsFunc(o.Sections, func(s string) bool { return strings.EqualFold(s, h.Text) && s != p.Old && s != p.New })
			if named && pages.LineStart(l.page.Src, h.Span.Start) <= l.Start && l.End <= sectionEnd(l.page, i) {
				out = append(out, l)
				seen[section{l.page, i}] = true
				break
			}
		}
	}
	return out, len(seen) == len(out)
}

// doubt says why it is not certain what is meant, and what could be said instead.
func (o *Correct) doubt(r *Run, p Pair, at []located, why string) *Doubt {
	d := &Doubt{Why: why, Pair: p}
	named, _ := o.below(p, at) // offered first
	at = append(named, slices.DeleteFunc(slices.Clone(at), func(l located) bool { return slices.Contains(named, l) })...)
	for _, page := range pagesOf(at) {
		d.Files = append(d.Files, page.Path)
		own := slices.DeleteFunc(slices.Clone(at), func(l located) bool { return l.page != page })
		d.Forms = append(d.Forms, r.forms(p, own)...)
	}
	if len(d.Forms) > 5 {
		d.Forms = d.Forms[:5]
	}
	return d
}

// forms are instructions that replace a text in places of a page: section by section if these differ, and never more
// than these places.
func (r *Run) forms(p Pair, at []located) (out []string) {
	quoted := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	page := r.Site.Show(at[0].page.Path)
	for _, l := range at {
		where := " in " + page
		h := headingOver(l.page, l.Start)
		if old, now := around(l, p); old != "" && slices.ContainsFunc(at, func(o located) bool { // the section has others below
			return headingOver(o.page, o.Start) != h && inside(o.Span, []markup.Span{sectionAt(l.page, l.Start)})
		}) {
			out = append(out, "replace "+quoted(old)+" with "+quoted(now)+where)
			continue
		}
		if h != "" && len(at) > 1 {
			where = " in the section " + quoted(h) + " of " + page
		}
		switch l.sort {
		case ", in inline code":
			where = " in inline code" + where
		case ", in a code block":
			where = " in code blocks" + where
		case ", in the target of a link":
			where = " in link targets" + where
		case ", in the front matter":
			where = " in the front matter of " + page
		}
		s := "replace " + quoted(p.Old) + " with " + quoted(p.New) + where
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// around is a text with the words beside it, by which its place can be told, and what is to stand there; nothing if there are none.
func around(l located, p Pair) (old, now string) {
	src := string(l.page.Src)
	stops := func(r rune) bool { return !isWordRune(r) && r != ' ' && r != '\'' }
	left := strings.Fields(src[strings.LastIndexFunc(src[:l.Start], stops)+1 : l.Start])
	right := src[l.End:]
	if at := strings.IndexFunc(right, stops); at >= 0 {
		right = right[:at]
	}
	words := strings.Fields(right)
	for n := 1; n <= 4 && l.sort == ""; n++ {
		before, behind := left[max(len(left)-n, 0):], words[:min(n, len(words))]
		old := strings.Join(slices.Concat(before, []string{p.Old}, behind), " ")
		if old != p.Old && strings.Count(src, old) == 1 {
			return old, strings.Join(slices.Concat(before, []string{l.text}, behind), " ")
		}
	}
	return "", ""
}

// sectionAt is the section that a place stands in, with those below.
func sectionAt(p *markup.Page, at int) markup.Span {
	in, level := markup.Span{End: len(p.Src)}, 0
	for _, h := range p.Headings {
		switch {
		case h.Span.Start <= at:
			in.Start, level = h.Span.Start, h.Level
		case h.Level <= level:
			in.End = h.Span.Start
			return in
		}
	}
	return in
}

func headingOver(p *markup.Page, at int) string {
	text := ""
	for _, h := range p.Headings {
		if h.Span.Start <= at {
			text = h.Text
		}
	}
	if strings.IndexFunc(text, unicode.IsControl) >= 0 {
		return ""
	}
	return text
}
