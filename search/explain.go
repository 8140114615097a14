package search

import (
	"context"
	"math"
	"slices"
	"strings"

	"docent/api"
	"docent/internal/brief"
	"docent/search/analysis"
	"docent/search/page"
)

// An Explanation is what a search finds, in the order and with the scores of Search, and why.
type Explanation struct {
	Understood Understood
	Hits       []Explained
	Expected   []Expected // the pages that were asked about
}

// Understood is what was made of a query.
type Understood struct {
	Words    []Word
	LeftOut  []string // words of grammar, which are not looked for
	Cut      bool     // the query is longer than what is looked at
	Version  Choice
	Language Choice
	Tag      string
	Groups   []string
	Page     string // that the reader is on, if the index has it
	Matching int    // pages that may be found and have one of the words
	Closely  int    // of these, how many were looked at closely
}

// A Choice is a version or a language that was searched, and what chose it. Name is empty for the site's own.
type Choice struct {
	Name string
	By   ChosenBy
}

// ChosenBy is what chose a version or a language.
type ChosenBy string

const (
	ByFilter   ChosenBy = "filter"   // of the query
	ByPage     ChosenBy = "page"     // that the reader is on
	ByQuestion ChosenBy = "question" // its words tell
	BySite     ChosenBy = "site"     // nothing names another: the site's own language, the current version
	ByFit      ChosenBy = "fit"      // pages in another one fit much better, or nothing else was found
	ByNobody   ChosenBy = "nobody"   // all are searched
	ByAbsence  ChosenBy = "absence"  // the filter names what the site does not have: nothing is searched
)

// A Word is one word of a query, with what counts as it.
type Word struct {
	Text     string
	Share    float64 // of the query: rare words count more; all words make 1
	Sections int     // how many have it
	Terms    []Term  // that are in the index
}

// A Term is what counts as a word of the query.
type Term struct {
	Text    string
	Reading Reading
	Weight  float64 // of an occurrence, beside 1 for the word as it was typed
}

// A Reading is how a term comes to count as a word.
type Reading uint8

const (
	ReadTyped     Reading = iota // as it was typed, or its stem
	ReadOtherForm                // written short or in full: "config", "configuration"
	ReadBegun                    // the word is the beginning of it
	ReadCorrected                // the word may be it with a typing error
	ReadSynonym                  // it stands for the word: "remove", "delete"
)

var readings = [...]string{"typed", "other form", "begun", "corrected", "synonym"}

func (r Reading) String() string { return readings[r] }

// MarshalText names the reading for programs.
func (r Reading) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// An Explained is one hit with the parts of its score.
type Explained struct {
	Hit   Hit
	Parts []Part   // they add up to the score
	Words []WordIn // what each word of the query gives to PartSection and PartPage together, in the order of the query
}

// A Part is one reason for a score, with what it adds: less than 0 if it takes away.
type Part struct {
	Kind   PartKind
	Amount float64
	Count  int // of what the reason counts: pages that link here
}

// A PartKind names a reason.
type PartKind string

const (
	PartSection   PartKind = "section"       // the words in the section, and in what it inherits of its page
	PartPage      PartKind = "page"          // the words in the whole page
	PartTitle     PartKind = "title"         // the title fits the query
	PartHeading   PartKind = "heading"       // the heading fits the query
	PartExact     PartKind = "exact"         // the query is the heading
	PartProximity PartKind = "proximity"     // the words stand near each other
	PartStart     PartKind = "start"         // the title begins with what is typed
	PartNear      PartKind = "neighbourhood" // the page is near the one that the reader is on
	PartLinks     PartKind = "links"         // other pages that were found link here
	PartBoost     PartKind = "boost"         // the author raises the page, or lowers it
	PartSource    PartKind = "source"        // the weight of the source that the page is in
	PartMeaning   PartKind = "meaning"       // what the section means is near to the question, or less near than others are
	PartLimit     PartKind = "limit"         // no score is more than 1, and none is below 0
)

// A WordIn is what one word gives to a hit.
type WordIn struct {
	Word   int // of Understood.Words
	Amount float64
	// where it was found: "title", "path", "keywords", "links", "description" of the page, "heading", "trail", "body",
	// "code" of the section, or else in "other sections" of the page
	Fields []string
	// what is there in the word's place, or beside it: its other form, what it begins, a synonym
	Through []Term
}

// An Expected is a page that was asked about, and why it is found or not.
type Expected struct {
	Path, Title, URL string
	Rank             int // among the pages found, from 1; 0 if it is not found
	Why              Standing
	Detail           string // the version, the language, the tag or the groups of the page, if these are why
	Score            float64
	Parts            []Part
	Words            []WordIn
}

// A Standing says how a page that was asked about ranks.
type Standing string

const (
	StandsFound     Standing = "found"
	StandsUnknown   Standing = "unknown"   // the index has no such page
	StandsHidden    Standing = "hidden"    // the site keeps it from searches
	StandsGroups    Standing = "groups"    // restricted to groups that the reader is not in
	StandsTag       Standing = "tag"       // not of the filter's tag
	StandsEdition   Standing = "edition"   // of another version or language
	StandsWordless  Standing = "wordless"  // none of the words is on it
	StandsFar       Standing = "far"       // its words count too little for a closer look
	StandsBelow     Standing = "below"     // beyond the limit of pages
	StandsThreshold Standing = "threshold" // its score is below the threshold
)

// Explain finds what Search finds, and says why, also of pages that were expected. It ranks again, whatever is
// cached, and takes several times as long.
func (l *Library) Explain(ctx context.Context, project api.ProjectID, q Query, expected ...string) (Explanation,
	error) {
	if err := ctx.Err(); err != nil {
		return Explanation{}, err
	}
	asked, several, err := l.asked(ctx, project, &q.Filter)
	if err != nil {
		return Explanation{}, err
	}
	if several || len(asked) == 0 {
		return l.explainAll(ctx, asked, q, expected)
	}
	return l.explainOne(ctx, asked[0].Index, q, expected)
}

func (l *Library) explainOne(ctx context.Context, id api.ProjectID, q Query, expected []string) (Explanation, error) {
	snap, err := l.acquire(id)
	if err != nil {
		return Explanation{}, err
	}
	defer snap.release()
	return snap.explain(ctx, q, expected)
}

// A trace notes what adds up to scores while a query is ranked. It watches few sections, which are those that an
// earlier ranking of the same query has found.
type trace struct {
	looks    []look
	sections map[uint32]*sectionTally // that are watched
	pages    map[uint32]*pageTally

	words       []tracedWord
	total, most float32
}

// A look is one ranking within one scope.
type look struct {
	scope scope
	found []scored
}

type tracedWord struct {
	group    group
	sections int
}

type sectionTally struct {
	words []float32 // sum over the words up to each
	extra sectionExtra
}

type pageTally struct {
	words []float32
	extra pageExtra
	seen  bool // looked at closely
}

// watch records the parts of a section's score.
func (t *trace) watch(section, page uint32) {
	if t.sections == nil {
		t.sections, t.pages = make(map[uint32]*sectionTally), make(map[uint32]*pageTally)
	}
	t.sections[section] = new(sectionTally)
	if t.pages[page] == nil {
		t.pages[page] = new(pageTally)
	}
}

// begin forgets what an earlier ranking noted.
func (t *trace) begin() {
	t.words, t.total, t.most = nil, 0, 0
	for _, v := range t.sections {
		*v = sectionTally{}
	}
	for _, v := range t.pages {
		*v = pageTally{}
	}
}

// word notes what the scores are after one more word.
func (t *trace) word(w *scratch, g *group, sections int) {
	t.words = append(t.words, tracedWord{*g, sections})
	for at, v := range t.sections {
		v.words = append(v.words, w.sectionScore.weight[at])
	}
	for at, v := range t.pages {
		v.words = append(v.words, w.pageScore.weight[at])
	}
}

func (t *trace) section(at uint32, x sectionExtra) {
	if v := t.sections[at]; v != nil {
		v.extra = x
	}
}

func (t *trace) page(c *candidate, x pageExtra) {
	if v := t.pages[c.page]; v != nil {
		v.extra, v.seen = x, true
	}
}

// gave is what the n-th word added, from what the sum was after each.
func gave(sums []float32, n int) float64 {
	if n == 0 {
		return float64(sums[0])
	}
	return float64(sums[n] - sums[n-1])
}

// explain ranks twice: to see what is found and in which scope, and once more to note the parts of these scores.
func (s *snapshot) explain(ctx context.Context, q Query, expected []string) (e Explanation, err error) {
	if s, err = s.weighted(q.Weights); err != nil || len(s.sections) == 0 || strings.TrimSpace(q.Text) == "" {
		return e, err
	}
	w := scratches.Get().(*scratch)
	defer w.done()
	t := &trace{}
	w.trace, w.candidates, w.top = t, w.candidates[:0], w.top[:0]
	w.tokens, w.keep = w.tokens[:0], w.keep[:0]
	sc, err := s.scopeOf(ctx, &q)
	if err != nil {
		return e, err
	}
	found, err := s.rankIn(ctx, w, q, sc)
	if err != nil {
		return e, err
	}
	used := sc
	for _, l := range t.looks { // several scopes may have been ranked
		if len(found) > 0 && len(l.found) > 0 && &l.found[0] == &found[0] {
			used = l.scope
		}
	}
	rest, both, helped := PartLimit, []scored(nil), false
	if s.library.meaning() != nil {
		if both, helped, err = s.both(ctx, q); err != nil {
			return e, err
		}
	}
	if helped {
		rest = PartMeaning
	}
	for _, f := range slices.Concat(found, both) {
		t.watch(f.section, s.pageOf[f.section])
	}
	pages := make([]int64, len(expected))
	for i, name := range expected {
		pages[i] = -1
		if at, ok := s.find(name); ok {
			pages[i] = int64(at)
			for sec := s.firstOf[at]; sec < s.firstOf[at+1]; sec++ {
				t.watch(sec, at)
			}
		}
	}
	if found, err = s.rankScope(ctx, w, q, &used); err != nil {
		return e, err
	}
	if helped {
		found = both
	}
	hits, err := s.show(found, &q)
	if err != nil {
		return e, err
	}
	x := explaining{s, w, t, &q, make(map[wordAt]fieldSet), make(map[wordAt][]Term), rest}
	if err = x.findFields(ctx); err != nil {
		return e, err
	}
	if e.Understood, err = x.understood(ctx, &sc, &used); err != nil {
		return e, err
	}
	for i, f := range found {
		page := s.pageOf[f.section]
		e.Hits = append(e.Hits, Explained{hits[i], x.parts(page, f.section, f.score), x.words(page, f.section)})
	}
	for i, name := range expected {
		if pages[i] < 0 {
			e.Expected = append(e.Expected, Expected{Path: name, Why: StandsUnknown})
		} else {
			e.Expected = append(e.Expected, x.expected(uint32(pages[i]), &used, found))
		}
	}
	return e, nil
}

// An explaining is a ranking that was traced.
type explaining struct {
	*snapshot
	w       *scratch
	t       *trace
	q       *Query
	fields  map[wordAt]fieldSet
	through map[wordAt][]Term
	rest    PartKind // what makes up for what all other parts leave of a score
}

// A wordAt is a word of the query in a watched section, or in the fields of a watched page.
type wordAt struct {
	word   int
	ofPage bool
	doc    uint32
}

// A fieldSet holds fields as bits: those of sections, then those of pages.
type fieldSet uint16

// somewhere marks the fields of a page in which one of its sections has the word.
const somewhere fieldSet = 1 << 15

// asWritten is the questions that were written for a section.
const asWritten fieldSet = 1 << 14

// findFields looks up which fields of the watched sections and pages have the words, and in which form.
func (x *explaining) findFields(ctx context.Context) error {
	for n, word := range x.t.words {
		var named Term // a stem is named by its word
		for _, v := range word.group.variants {
			if !v.stem {
				named = Term{Text: v.term, Reading: v.as, Weight: float64(v.weight)}
			}
			note := func(at wordAt, set fieldSet) {
				x.fields[at] |= set
				if v.as != ReadTyped && !slices.Contains(x.through[at], named) {
					x.through[at] = append(x.through[at], named)
				}
			}
			for f, name := range slices.Concat(page.SectionFieldNames[:], page.FieldNames[:page.FieldSurface]) {
				ofPage := f >= page.SectionFields
				err := x.walk(ctx, []byte(v.term), name, func(section uint32, _ float32) {
					at := wordAt{n, ofPage, section}
					watched := x.t.sections[section] != nil
					if ofPage {
						at.doc = x.pageOf[section]
						watched = x.t.pages[at.doc] != nil
					}
					if watched {
						note(at, 1<<f)
					}
					if of := x.pageOf[section]; !ofPage && x.t.pages[of] != nil {
						note(wordAt{n, true, of}, somewhere)
					}
				})
				if err != nil {
					return err
				}
			}
			x.written.Each(v.term, func(section uint32, _ float32) {
				if x.t.sections[section] != nil {
					note(wordAt{n, false, section}, asWritten)
				}
			})
		}
	}
	return nil
}

// names lists the fields of a set, the page's first.
func (f fieldSet) names() []string {
	var out []string
	for n, name := range page.FieldNames[:page.FieldSurface] {
		if f&(1<<(page.SectionFields+n)) != 0 {
			out = append(out, name)
		}
	}
	for n, name := range page.SectionFieldNames {
		if f&(1<<n) != 0 {
			out = append(out, name)
		}
	}
	if f&asWritten != 0 {
		out = append(out, "written questions")
	}
	if f&somewhere != 0 && f&(1<<page.SectionFields-1) == 0 {
		out = append(out, "other sections")
	}
	return out
}

// rated is an amount as a part of a score.
func (x *explaining) rated(amount float64) float64 {
	if x.t.most == 0 {
		return 0
	}
	return amount / float64(x.t.most)
}

// parts are what a section's score is made of.
func (x *explaining) parts(page, section uint32, score float64) []Part {
	share := float64(float32(x.tuning.PageShare))
	sec, pg := x.t.sections[section], x.t.pages[page]
	if sec == nil || pg == nil || !pg.seen {
		if x.rest == PartMeaning {
			return []Part{{Kind: PartMeaning, Amount: score}}
		}
		return nil
	}
	last := func(sums []float32) float64 {
		if len(sums) == 0 {
			return 0
		}
		return float64(sums[len(sums)-1])
	}
	links := 0
	if pg.extra.links > 0 {
		for _, c := range x.w.top {
			if _, ok := slices.BinarySearch(x.linksTo[c.page], page); ok {
				links++
			}
		}
	}
	all := []Part{
		{Kind: PartSection, Amount: (1 - share) * last(sec.words)}, {Kind: PartPage, Amount: share * last(pg.words)},
		{Kind: PartTitle, Amount: float64(pg.extra.title)}, {Kind: PartHeading, Amount: float64(sec.extra.heading)},
		{Kind: PartExact, Amount: float64(sec.extra.exact + sec.extra.named)},
		{Kind: PartProximity, Amount: float64(sec.extra.proximity)}, {Kind: PartStart, Amount: float64(pg.extra.start)},
		{Kind: PartNear, Amount: float64(pg.extra.near)},
		{Kind: PartLinks, Amount: float64(pg.extra.links), Count: links},
		{Kind: PartBoost, Amount: float64(pg.extra.boost)},
	}
	sum := 0.0
	for i := range all {
		all[i].Amount = x.rated(all[i].Amount)
		sum += all[i].Amount
	}
	all = append(all, Part{Kind: x.rest, Amount: score - sum})
	const least = 1e-5 // what rounding leaves
	return slices.DeleteFunc(all, func(p Part) bool { return math.Abs(p.Amount) < least })
}

// words are what each word of the query gives to a section.
func (x *explaining) words(page, section uint32) []WordIn {
	share := float64(float32(x.tuning.PageShare))
	sec, pg := x.t.sections[section], x.t.pages[page]
	var out []WordIn
	for n := range x.t.words {
		if sec == nil || pg == nil || n >= len(sec.words) || n >= len(pg.words) {
			break
		}
		amount := x.rated((1-share)*gave(sec.words, n) + share*gave(pg.words, n))
		inSection, inPage := wordAt{n, false, section}, wordAt{n, true, page}
		fields := x.fields[inSection] | x.fields[inPage]
		through := slices.Clone(x.through[inSection])
		for _, term := range x.through[inPage] {
			if !slices.Contains(through, term) {
				through = append(through, term)
			}
		}
		if amount > 0 {
			out = append(out, WordIn{Word: n, Amount: amount, Fields: fields.names(), Through: through})
		}
	}
	return out
}

// understood says what was made of the query: of its words, and of which pages were searched. Asked is the scope that
// it has by itself, used the one that was searched in the end.
func (x *explaining) understood(ctx context.Context, asked, used *scope) (Understood, error) {
	q := x.q
	u := Understood{Tag: q.Filter.Tag, Groups: q.Filter.Groups, Cut: len(brief.Bytes(q.Text, longestQuery, "")) < len(q.Text),
		Version: x.versionChosen(q, used), Language: x.languageChosen(q, asked, used),
		Matching: len(x.w.candidates), Closely: len(x.w.top)}
	if at, ok := x.here(q); ok {
		u.Page = x.pages[at].Path
	}
	kept := make(map[string]bool)
	for _, t := range x.w.keep {
		kept[t.Surface] = true
	}
	for _, t := range x.w.tokens {
		if !kept[t.Surface] && analysis.Dropped(t.Surface) && !slices.Contains(u.LeftOut, t.Surface) {
			u.LeftOut = append(u.LeftOut, strings.Clone(t.Surface))
		}
	}
	for _, t := range x.t.words {
		word := Word{Text: strings.Clone(t.group.word), Sections: t.sections}
		if x.t.total > 0 {
			word.Share = float64(t.group.idf / x.t.total)
		}
		var err error
		if word.Terms, err = x.terms(ctx, t.group.variants); err != nil {
			return u, err
		}
		u.Words = append(u.Words, word)
	}
	return u, nil
}

// terms are the variants of a word that some page has. A word that counts by its stem is named as it is written.
func (x *explaining) terms(ctx context.Context, variants []variant) (out []Term, err error) {
	for i := 0; i < len(variants); {
		v, known := variants[i], false
		for first := true; i < len(variants) && (first || variants[i].stem); i++ {
			has, err := x.known(ctx, variants[i].term)
			if err != nil {
				return nil, err
			}
			first, known = false, known || has
		}
		if known {
			out = append(out, Term{Text: v.term, Reading: v.as, Weight: float64(v.weight)})
		}
	}
	return out, nil
}

func (x *explaining) known(ctx context.Context, term string) (bool, error) {
	p, err := x.decode(ctx, term)
	return err == nil && len(p.sections)+len(p.pages) > 0, err
}

func (x *explaining) versionChosen(q *Query, sc *scope) Choice {
	switch {
	case sc.anything:
		return Choice{By: ByNobody}
	case sc.only != "" && !slices.ContainsFunc(x.pages, func(r *page.Record) bool { return r.HasVersion(sc.only) }):
		return Choice{sc.only, ByAbsence}
	case sc.only != "":
		return Choice{sc.only, ByFilter}
	case sc.version != "":
		return Choice{sc.version, ByPage}
	}
	return Choice{By: BySite}
}

func (x *explaining) languageChosen(q *Query, asked, used *scope) Choice {
	switch {
	case used.anything:
		return Choice{By: ByNobody}
	case used.nothing:
		return Choice{q.Filter.Language, ByAbsence}
	case used.foreign:
		return Choice{x.locales[0].shown, ByFit}
	case used.locale < 0:
		return Choice{By: ByNobody}
	}
	c := Choice{x.locales[used.locale].shown, BySite}
	switch {
	case used.locale != asked.locale:
		c.By = ByFit
	case q.Filter.Language != "":
		c.By = ByFilter
	case x.readerOf(q).locale >= 0:
		c.By = ByPage
	case len(x.locales) > 1 && asked.certain:
		c.By = ByQuestion
	}
	return c
}

// expected says how a page ranks.
func (x *explaining) expected(at uint32, sc *scope, found []scored) Expected {
	r := x.pages[at]
	e := Expected{Path: r.Path, Title: r.Title, URL: r.URL(x.labels().SiteURL, "")}
	seen := make(map[uint32]bool)
	for _, f := range found {
		p := x.pageOf[f.section]
		seen[p] = true
		if p == at {
			e.Rank, e.Why, e.Score = len(seen), StandsFound, f.score
			e.Parts, e.Words = x.parts(at, f.section, f.score), x.words(at, f.section)
			return e
		}
	}
	switch tag := x.q.Filter.Tag; {
	case r.Hidden || x.covered[at]:
		e.Why = StandsHidden
	case !r.Allowed(x.q.Filter.Groups):
		e.Why, e.Detail = StandsGroups, strings.Join(r.Groups, ", ")
	case !x.inScope(sc, at):
		e.Why = StandsEdition
		e.Detail = strings.Trim(r.VersionShown("")+" "+x.locales[x.localeOf[at]].shown, " ")
	case tag != "" && !slices.ContainsFunc(r.Tags, func(t string) bool { return strings.EqualFold(t, tag) }):
		e.Why, e.Detail = StandsTag, strings.Join(r.Tags, ", ")
	default:
		e.Why = StandsWordless
		for _, c := range x.w.candidates {
			if c.page == at {
				e.Why = StandsFar
			}
		}
	}
	for n, c := range x.w.top {
		if c.page != at || x.t.most == 0 {
			continue
		}
		e.Score = min(1, max(0, x.rated(float64(c.score))))
		e.Why, e.Rank = StandsBelow, n+1
		if e.Score < x.q.Threshold {
			e.Why = StandsThreshold
		}
		e.Parts, e.Words = x.parts(at, c.section, e.Score), x.words(at, c.section)
	}
	return e
}
