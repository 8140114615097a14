package builtin

import (
	"cmp"
	"slices"
	"strings"

	"docent/model"
	"docent/model/builtin/blocks"
	"docent/search/analysis"
)

const (
	prose   = blocks.Prose
	list    = blocks.List
	code    = blocks.Code
	table   = blocks.Table
	heading = blocks.Heading
)

// A quote is what the answer takes from one passage.
type quote struct {
	passage int
	text    string
	lead    string     // the line that answers by itself, before what is chosen
	tail    string     // what is typed first, after what is chosen
	both    bool       // it is a table of both things that are compared
	chosen  *selection // that the text is still to be made of; nil if it is made
}

// What an answer may hold. Words of code and tables count too, so that an answer stays readable.
const (
	maxWords       = 120 // of blocks, without code, before the best sentences are taken of them
	maxPassages    = 4
	maxDoubtful    = 3   // when they may not answer
	maxOfPage      = 3   // passages of one page
	mainWords      = 120 // of the first passage; a section that is not longer is taken whole
	moreWords      = 90  // of each further passage
	shortLead      = 40  // of the paragraph that a section begins with, up to which it is always taken
	longPara       = 70  // words from which a paragraph is cut to its best sentences
	longCode       = 150 // words from which a stretch of code is not taken
	longLineOfCode = 400 // bytes from which it holds data rather than code
	maxCode        = 160 // words of code of a section, if it takes more than one
	longBlock      = 220 // words from which an item, a row or steps are not taken
	longSteps      = 450 // words of a numbered list from which it is not taken whole
	longList       = 70  // words from which the items of a list are taken one by one
	longTable      = 70  // the same for the rows of a table, which its lines hold together
	longCompare    = 330 // words up to which a table is taken whole that compares what is asked about
	shortRest      = 40  // words up to which the rest of a list or table is taken with what fits
	maxNamed       = 6   // rows that are taken because the question names them
	listed         = 100 // words shown of a list or table if the question asks which there are
)

// A section is one passage as it fits one question.
type section struct {
	*passage
	terms  []int32   // of each term of the question, which of the passage's it is; -1 if it has none
	counts []uint8   // for each unit, how often it has each term of the question
	lines  []float64 // how much of the question each line holds
	scores []float64 // of the units
	hidden []bool    // the units of tabs that the reader does not want; nil if there are none
	best   float64   // match of its best block
	named  float64   // how well its heading fits
	sure   float64   // of the search, as a share of how sure it is of its first passage
	score  float64
}

// A composition is what an answer is made of, and why.
type composition struct {
	quotes   []quote
	cards    []model.Card // what else was found
	verdict  verdict
	question string // as it is read
	language string // that it is put in; empty if it does not tell
	foreign  string // the language of what is quoted, if it is another one
	evidence evidence
	unfound  []string // names in the question that nothing of what was found has
	opening  analysis.Opening
}

// compose chooses what to quote: nothing if the documentation does not answer, and less if it is not sure that it
// does.
func compose(req model.Request) composition {
	sections := parse(req)
	c := composeOf(req, sections)
	c.foreign = foreign(c.language, sections, c.quotes)
	if c.foreign != "" {
		c.unfound = nil // it has other names in another language
	}
	return c
}

// asked are the reader's questions, the newest first.
func asked(req *model.Request) []string {
	out := []string{gist(req.Question)}
	for _, m := range slices.Backward(req.History) {
		if m.Role == "user" && len(out) < 4 {
			out = append(out, gist(m.Text))
		}
	}
	return out
}

func composeOf(req model.Request, sections []*section) (c composition) {
	question := Standalone(req.Question, req.History, req.Context)
	points := false
	if about := excerpt(req.Context); about != "" && pointsAtText(gist(req.Question)) {
		question, points = about, true // "explain this code": that it is code tells nothing
	}
	c.question = question
	c.language = Language(&req)
	question = plain(question, c.language)
	q := newQuery(question, sections)
	q.language = c.language
	if slices.ContainsFunc(sections, func(s *section) bool { return len(s.tabs) > 0 }) {
		q.asks, q.readers = alternativesIn(nil, gist(req.Question)), readers(&req)
	}
	if found := c.judge(&req, q, question, sections, points); found != denied && len(c.quotes) == 0 {
		c.quoteBest(&req, q, question, sections, found, points)
	}
	if len(c.quotes) == 0 && len(q.terms) > 0 {
		c.point(&req, q, sections)
	}
	return c
}

// point makes cards of the sections that come closest, one of a page. Each holds something of the question.
func (c *composition) point(req *model.Request, q *query, sections []*section) {
	c.cards = cardsOf(req, q, sections, rank(*req, q, sections), leastPointed)
}

// cardsOf makes cards of sections, one of a page that is not shown, as far as their best blocks hold so much of a question.
func cardsOf(req *model.Request, q *query, sections []*section, order []int, least float64, shown ...string) (cards []model.Card) {
	for _, at := range order {
		path := req.Passages[at].Path
		if len(cards) == maxCards || sections[at].best < least || slices.Contains(shown, path) {
			continue
		}
		if text := sections[at].brief(q, nil); text != "" {
			shown, cards = append(shown, path), append(cards, model.Card{Passage: at, Text: text})
		}
	}
	return cards
}

// leastPointed is how much of a question a section's best block holds that a denial points to.
const leastPointed = 0.25

// judge says whether the documentation answers. What answers in a way of its own is quoted at once.
func (c *composition) judge(req *model.Request, q *query, question string, sections []*section, points bool) verdict {
	var quoted []uint64
	opening := OpeningOf(req.Question, req.History, req.Project)
	if quotes := answersOpening(req, q, sections, opening); len(quotes) > 0 {
		said := maxSaid
		if opening == analysis.Install { // another page says how something else is
			said = 1
		}
		c.quotes, c.cards = written(q, quotes, sections, &quoted, said)
		c.verdict, c.opening = answered, opening
		return answered
	}
	if len(q.terms) == 0 {
		return denied
	}
	c.evidence = evidenceFor(*req, question, q, sections)
	found := c.evidence.verdict(points)
	switch opening { // the site has no place for it, and its one word proves nothing in a text
	case "":
	case analysis.License: // nor does any text say it: it is that of something else
		found = denied
	default:
		found = min(found, doubtful)
	}
	if things, ok := comparisonOf(question); ok {
		quotes, sure := compareThings(req, sections, things)
		if sure {
			found = answered
		}
		if len(quotes) > 0 && found == answered {
			c.quotes, c.verdict = quotes, found
		}
	}
	return found
}

// quoteBest quotes the sections that fit best.
func (c *composition) quoteBest(req *model.Request, q *query, question string, sections []*section, found verdict, points bool) {
	order := rank(*req, q, sections)
	if len(order) == 0 {
		return
	}
	proseFirst(question, sections, order)
	c.verdict = found
	if found == answered {
		if p := q.procedure(req, question, order, sections); p != nil {
			c.quotes = []quote{*p} // and of other pages what is about as good
			c.cards = cardsOf(req, q, sections, order[1:], 0.5*sections[order[0]].best, req.Passages[order[0]].Path)
			return
		}
	}
	most, said := maxPassages, maxSaid
	if found == doubtful {
		most = maxDoubtful
		if c.evidence.sum() < unlikely {
			said = 1
		}
	}
	// The first section is the one to begin with. What else is said is where the best blocks are.
	first := sections[order[0]]
	rest := order[1:]
	worth := func(at int) float64 {
		s := sections[at]
		v := s.sure * (1 + s.best + 0.3*s.named)
		if req.Passages[at].Path == req.Passages[order[0]].Path {
			v *= 1.1
		}
		return v
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(worth(b), worth(a)) })
	var quoted []uint64 // fingerprints, for blocks that two pages share
	var pages [][]quote
	count := 0
	pageOf := func(at int) int {
		path := req.Passages[at].Path
		return slices.IndexFunc(pages, func(p []quote) bool { return req.Passages[p[0].passage].Path == path })
	}
	add := func(q quote) {
		count++
		if page := pageOf(q.passage); page >= 0 {
			pages[page] = append(pages[page], q)
		} else {
			pages = append(pages, []quote{q})
		}
	}
	stated := stating(q, settingAsked(question, req.Project), sections, &quoted)
	if len(stated) == 0 {
		stated = beginWith(req, q, question, sections, order, found == answered, &quoted)
	}
	for _, s := range stated {
		add(s)
	}
	for n, at := range order {
		if count == most {
			break
		}
		if slices.ContainsFunc(stated, func(q quote) bool { return q.passage == at }) {
			continue
		}
		budget := moreWords
		if n == 0 {
			budget = mainWords
		} else if page := pageOf(at); worth(at) < 0.5*worth(order[0]) || sections[at].best < 0.5*first.best ||
			page >= 0 && len(pages[page]) == maxOfPage {
			continue
		}
		chosen := pick(q, sections[at], budget, &quoted)
		if found == doubtful && !q.howTo {
			chosen.leaveCode()
		}
		if chosen.any() {
			chosen.worth = worth(at) / worth(order[0])
			add(quote{passage: at, chosen: chosen})
		}
	}
	if c.quotes, c.cards = written(q, slices.Concat(pages...), sections, &quoted, said); len(c.quotes) == 0 {
		if text := first.bestLine(q); text != "" { // of what is too long to be quoted
			c.quotes = []quote{{passage: order[0], text: text}}
			return
		}
		c.verdict = denied
	}
	if !points {
		c.unfound = q.unfound(c.question, sections)
	}
}

// proseFirst begins with a section that says whether something is so, where the first one has only rows of a table that share
// words with a question for yes or no.
func proseFirst(question string, sections []*section, order []int) {
	first := sections[order[0]]
	if first.bestKind() != table || !asksYesNo.MatchString(question) {
		return
	}
	for n, at := range order {
		if s := sections[at]; s.sure >= leastSure && s.best >= first.best && s.bestKind() == prose {
			copy(order[1:], order[:n])
			order[0] = at
			return
		}
	}
}

// bestKind is the kind of the unit that holds most of the question.
func (s *section) bestKind() blocks.Kind {
	best := 0
	for n := range s.units {
		if s.scores[n] > s.scores[best] {
			best = n
		}
	}
	return s.units[best].kind
}

func parse(req model.Request) []*section {
	all := make([]section, len(req.Passages))
	out := make([]*section, len(req.Passages))
	for i := range req.Passages {
		all[i].passage = parsed.of(&req.Passages[i])
		out[i] = &all[i]
	}
	return out
}

// rank orders the passages.
func rank(req model.Request, q *query, sections []*section) []int {
	top := 0.0
	for _, p := range req.Passages {
		top = max(top, p.Score)
	}
	order := make([]int, 0, len(sections))
	message := literally(messageOf(gist(req.Question)))
	for i, s := range sections {
		best := 0.0
		for n := range s.units {
			if u := &s.units[n]; u.kind != heading {
				terms := len(q.terms)
				s.scores[n] = q.match(s, s.counts[n*terms:(n+1)*terms], s.lines[u.firstLine:u.firstLine+u.lines], u.words, u.kind)
				best = max(best, s.scores[n])
			}
		}
		if len(s.units) == 0 || best == 0 {
			continue
		}
		s.best = best
		sure := 1 / float64(i+1)
		if top > 0 {
			sure = req.Passages[i].Score / top
		}
		// The search has compared with the whole documentation: its order is right more often than any mixture with what
		// the passages alone show, except that it does not know a definition when it sees one.
		head := q.headFit(s)
		s.sure, s.named = sure, head
		s.score = sure + 0.1*head + 0.2*best
		if q.steps && head >= 0.3 {
			s.score += s.instructs()
		}
		if q.whatIs && head >= 0.3 && q.defines(s) {
			s.score += 0.35
		}
		if q.steps && q.beside(s.of.Heading) {
			s.score -= otherThing
		}
		if !q.makes && aside(s.of.Path, q) {
			s.score -= ofMakers * sure
		}
		if message != "" && strings.Contains(strings.ToLower(s.of.Heading+"\n"+s.of.Text), message) {
			s.score += 1
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(sections[b].score, sections[a].score)
	})
	return order
}

// headFit is how well the section's heading or the page's title names what is asked.
func (q *query) headFit(s *section) float64 {
	return max(q.fit(s, s.head, inHead), q.fit(s, s.title, inTitle))
}

// fit is how well a heading names what is asked: the share of the heading that the question has, times the share of one
// aspect that the heading has.
func (q *query) fit(s *section, heading []uint64, in where) float64 {
	whole, got, best := 0.0, 0.0, 0.0
	for _, t := range heading {
		if n := q.find(t); n >= 0 {
			whole += q.weights[n]
			got += q.weights[n]
		} else {
			whole += q.unknown
		}
	}
	if whole == 0 {
		return 0
	}
	for i := range q.aspects {
		a := &q.aspects[i]
		have := 0.0
		for _, t := range a.terms {
			if n := s.terms[t]; n >= 0 && s.where[n]&in != 0 {
				have += q.weights[t]
			}
		}
		if a.total > 0 {
			best = max(best, got/whole*have/a.total)
		}
	}
	return best
}

// defines reports whether a section begins by saying what the thing asked about is or does: "A histogram records …",
// "Path parameters are …".
func (q *query) defines(s *section) bool {
	for i := range s.units[:min(2, len(s.units))] {
		if s.units[i].kind != prose {
			continue
		}
		subject := false
		var buf [32]word
		for _, w := range appendWords(buf[:0], firstWords(s.units[i].text)) {
			lower := strings.ToLower(w.text)
			if t := termsOf(w.text); len(t) > 0 && slices.Contains(q.aspects[0].terms, q.find(t[0].hash)) {
				subject = true
				continue
			}
			if subject {
				return lower == "is" || lower == "are" || strings.HasSuffix(lower, "s") && lower != "this"
			}
			if lower != "a" && lower != "an" && lower != "the" && lower != "in" {
				break
			}
		}
	}
	return false
}
