// Package builtin is the model that needs nothing: it answers with the documentation's own sentences.
package builtin

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"docent/model"
)

// A Model answers with the documentation's own sentences. It reads the passages as blocks, weighs each block by how
// much of the question it holds, takes the best ones with what they lean on, and writes them in the order of their
// page. When too little of the question is in the documentation it says so.
type Model struct{ name string }

// New makes the model under a name.
func New(name string) Model { return Model{name} }

// What an answer may hold. Words of code and tables count too, so that an answer stays readable.
const (
	mostPassages = 4
	mostDoubtful = 3   // where they may not answer
	mostOfPage   = 3   // passages of one page
	mainWords    = 170 // of the first passage; a section that is not longer is taken whole
	moreWords    = 90  // of each further passage
	shortLead    = 40  // of the paragraph that a section begins with, up to which it is always taken
	longBlock    = 220 // words from which an item, a row or steps are not taken; code no more than its passage has room for
	longList     = 70  // words from which the items of a list are taken one by one
	longTable    = 150 // the same for the rows of a table, which its lines hold together
	longCompare  = 330 // words up to which a table is taken whole that compares what is asked about
	shortRest    = 40  // words up to which the rest of a list or table is taken with what fits
	mostNamed    = 6   // rows that are taken because the question names them
	listed       = 100 // words of a list or table that are shown from its beginning where the question asks which there are
)

// Answer writes one answer. Emit is called from the caller's goroutine; an error of it ends the answer.
func (e Model) Answer(ctx context.Context, req model.Request, emit func(model.Delta) error) (model.Result, error) {
	result := model.Result{Model: e.name, Reason: "stop"}
	write := func(cite []int, text string) error {
		for piece := range pieces(text) {
			if err := ctx.Err(); err != nil {
				return err
			}
			d := model.Delta{Text: piece, Cite: cite}
			cite = nil // with the first piece
			result.CompletionTokens++
			if err := emit(d); err != nil {
				return err
			}
		}
		return nil
	}
	plan, sure := compose(req)
	if len(plan) == 0 {
		return result, write(nil, deflect(req))
	}
	result.Answered = sure
	if !sure {
		if err := write(nil, unsure(req)); err != nil {
			return result, err
		}
	}
	for n, part := range plan {
		p := &req.Passages[part.passage]
		text := part.text
		switch {
		case n > 0 || !sure:
			text = "\n\n**" + p.Label() + "**\n\n" + text
		case len(plan) > 1:
			text = "**" + p.Label() + "**\n\n" + text
		}
		if err := write([]int{part.passage}, text); err != nil {
			return result, err
		}
	}
	if !sure && strings.TrimSpace(req.Deflection) != "" {
		return result, write(nil, "\n\n"+req.AskHere())
	}
	return result, nil
}

// subject is the documentation as a sentence begins with it.
func subject(req model.Request) string {
	switch {
	case req.Project == "":
		return "The documentation"
	case strings.Contains(strings.ToLower(req.Project), "doc"):
		return req.Project
	}
	return "The " + req.Project + " documentation"
}

// unsure comes before what may be no answer.
func unsure(req model.Request) string {
	return subject(req) + " does not seem to answer this question. The closest that it says:"
}

// deflect says that the documentation does not answer, and where to ask.
func deflect(req model.Request) string {
	text := subject(req) + " does not answer this question."
	if strings.TrimSpace(req.Deflection) == "" {
		return text + " You could try other words, or name the feature or setting that it is about."
	}
	return text + " " + req.AskHere()
}

// pieces cuts an answer into what one event of a stream carries: a few words each, a line of code whole.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) { cutPieces(text, yield) }
}

func cutPieces(text string, yield func(string) bool) {
	const words = 4
	start, first, n, coding := 0, -1, 0, false // first is where something stands after start; -1 where nothing does
	for i := 0; i < len(text); i++ {
		end := false
		switch text[i] {
		case '\n':
			end = true
			if first >= 0 && strings.HasPrefix(text[first:i], "```") {
				coding = !coding
			}
		case ' ':
			if !coding {
				n++
				end = n >= words && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\n'
			}
		case '\t', '\r':
		default:
			if first < 0 {
				first = i
			}
		}
		if end && first >= 0 {
			if !yield(text[start : i+1]) {
				return
			}
			start, first, n = i+1, -1, 0
		}
	}
	if start < len(text) {
		yield(text[start:])
	}
}

// A quote is what the answer takes from one passage.
type quote struct {
	passage int
	text    string
}

// A section is one passage as it fits one question.
type section struct {
	*leaf
	terms  []int32   // of each term of the question, which of the passage's it is; -1 where it has none
	counts []uint8   // for each unit, how often it has each term of the question
	lines  []float64 // how much of the question each line holds
	scores []float64 // of the units
	best   float64   // match of its best block
	named  float64   // how well its heading fits
	sure   float64   // of the search, as a share of how sure it is of its first passage
	score  float64
}

// A query is the question as it is matched.
type query struct {
	aspects []aspect
	terms   []term    // of all aspects, each once
	weights []float64 // of the terms: how few blocks have each
	unknown float64   // weight of a term that no block has
	byName  []int     // the terms in alphabetical order
	total   float64
	howTo   bool
	whatIs  bool
	lists   bool // it asks which there are
}

// mostAspects bounds the things that are asked at once.
const mostAspects = 8

// An aspect is one of the things that are asked, by its terms.
type aspect struct {
	terms []int
	total float64
}

// compose chooses what to quote: nothing where the documentation does not answer, and less where it is not sure that it does.
func compose(req model.Request) (quotes []quote, sure bool) {
	sections := read(req)
	question := Standalone(req.Question, req.History, req.Context)
	points := false
	if about := excerpt(req.Context); about != "" && pointsAtText(gist(req.Question)) { // "explain this code": that it is code tells nothing
		question, points = about, true
	}
	q := ask(question, sections)
	if len(q.terms) == 0 {
		return nil, false
	}
	found := fits(req, question, q, sections).finding(points)
	if found == denied {
		return nil, false
	}
	order := rank(req, q, sections)
	if len(order) == 0 {
		return nil, false
	}
	most := mostPassages
	if found == doubtful {
		most = mostDoubtful
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
	var said []uint64 // prints of what was quoted, for blocks that two pages share
	var pages [][]quote
	quoted := 0
	for n, at := range order {
		if quoted == most {
			break
		}
		path := req.Passages[at].Path
		page := slices.IndexFunc(pages, func(p []quote) bool { return req.Passages[p[0].passage].Path == path })
		budget := moreWords
		if n == 0 {
			budget = mainWords
		} else if worth(at) < 0.5*worth(order[0]) || sections[at].best < 0.5*first.best || page >= 0 && len(pages[page]) == mostOfPage {
			continue
		}
		text := choose(q, sections[at], budget, &said)
		if text == "" {
			continue
		}
		quoted++
		if page < 0 {
			pages = append(pages, []quote{{at, text}})
		} else {
			pages[page] = append(pages[page], quote{at, text})
		}
	}
	return slices.Concat(pages...), found == answered
}

func read(req model.Request) []*section {
	all := make([]section, len(req.Passages))
	out := make([]*section, len(req.Passages))
	for i := range req.Passages {
		all[i].leaf = leaves.of(&req.Passages[i])
		out[i] = &all[i]
	}
	return out
}

// ask reads the question: its aspects and their terms, each weighed by how few blocks have it.
func ask(question string, sections []*section) *query {
	q := &query{}
	lower := strings.ToLower(strings.TrimSpace(question))
	q.howTo = strings.Contains(lower, "how ") || strings.HasPrefix(lower, "can ") || strings.Contains(lower, "example")
	for _, begin := range []string{"what is", "what are", "what's", "whats", "what does", "explain", "define"} {
		q.whatIs = q.whatIs || strings.HasPrefix(lower, begin)
	}
	for _, begin := range []string{"which ", "what are", "list ", "show all", "show me all"} {
		q.lists = q.lists || strings.HasPrefix(lower, begin)
	}
	var topic []term
	parts := clauses(question)
	if len(parts) > mostAspects { // the rest is one
		n := 0
		for _, p := range parts[:mostAspects-1] {
			n += len(p)
		}
		parts = append(parts[:mostAspects-1], question[n:])
	}
	for _, clause := range parts {
		var a aspect
		found := terms(clause)
		if refers(clause) { // "how does it differ": it is what was asked about before
			found = append(found, topic...)
		}
		if q.terms == nil {
			q.terms = make([]term, 0, max(16, len(found)))
		}
		a.terms = make([]int, 0, len(found))
		for _, t := range found {
			n := q.find(t.hash)
			if n < 0 {
				n = len(q.terms)
				q.terms = append(q.terms, t)
			}
			if !slices.Contains(a.terms, n) {
				a.terms = append(a.terms, n)
			}
		}
		if len(topic) == 0 {
			topic = found
		}
		if len(a.terms) > 0 {
			q.aspects = append(q.aspects, a)
		}
	}
	q.byName = make([]int, len(q.terms))
	for i := range q.byName {
		q.byName[i] = i
	}
	slices.SortFunc(q.byName, func(a, b int) int { return strings.Compare(q.terms[a].text, q.terms[b].text) })
	q.look(sections)
	for i := range q.aspects {
		for _, t := range q.aspects[i].terms {
			q.aspects[i].total += q.weights[t]
		}
	}
	for _, w := range q.weights {
		q.total += w
	}
	return q
}

// find is the number of a term of the question, or -1.
func (q *query) find(hash uint64) int {
	for i := range q.terms {
		if q.terms[i].hash == hash {
			return i
		}
	}
	return -1
}

// look finds the question's terms in the sections, and weighs them: rare ones among the units tell more, and a term that
// no unit has tells most.
func (q *query) look(sections []*section) {
	n := len(q.terms)
	units, cells, lines := 0, 0, 0
	for _, s := range sections {
		units += len(s.units)
		cells += len(s.units) * n
		lines += s.lineCount
	}
	at, counts := make([]int32, len(sections)*n), make([]uint8, cells)
	weights := make([]float64, n+lines+units)
	q.weights, weights = weights[:n:n], weights[n:]
	df := make([]int, n)
	for _, s := range sections {
		s.terms, at = at[:n:n], at[n:]
		s.counts, counts = counts[:len(s.units)*n:len(s.units)*n], counts[len(s.units)*n:]
		s.lines, weights = weights[:s.lineCount:s.lineCount], weights[s.lineCount:]
		s.scores, weights = weights[:len(s.units):len(s.units)], weights[len(s.units):]
		for t := range n {
			v := s.leaf.find(q.terms[t].hash)
			s.terms[t] = int32(v)
			if v < 0 {
				continue
			}
			found := s.inUnits.of(v)
			df[t] += len(found)
			for _, m := range found {
				s.counts[int(m.at)*n+t] = m.times
			}
		}
	}
	weight := func(df int) float64 {
		n, df_ := float64(units), float64(df)
		return math.Log(1 + (n-df_+0.5)/(df_+0.5))
	}
	q.unknown = weight(0)
	for t := range q.weights {
		q.weights[t] = weight(df[t])
	}
	for _, s := range sections {
		for _, t := range q.byName { // a line's sum is made in one order, so that equal lines weigh the same
			if v := s.terms[t]; v >= 0 {
				for _, m := range s.inLines.of(int(v)) {
					s.lines[m.at] += q.weights[t]
				}
			}
		}
	}
}

// clauses cuts a question at its ends of sentences and before a further question word.
func clauses(question string) []string {
	var out []string
	start := 0
	var room [64]word
	words := appendWords(room[:0], question)
	for i, w := range words {
		if i == 0 || w.start == start {
			continue
		}
		between := question[words[i-1].end:w.start]
		lower := strings.ToLower(w.text)
		asks := false
		if lower == "and" || lower == "or" || lower == "but" {
			if i+1 < len(words) {
				switch strings.ToLower(words[i+1].text) {
				case "how", "what", "why", "when", "where", "which", "who", "can", "is", "are", "does", "do", "should":
					asks = true
				}
			}
		}
		if asks || strings.ContainsAny(between, "?;\n") || strings.Contains(between, ". ") {
			out = append(out, question[start:w.start])
			start = w.start
		}
	}
	if out == nil {
		return []string{question}
	}
	return append(out, question[start:])
}

func refers(clause string) bool {
	var room [64]word
	for _, w := range appendWords(room[:0], clause) {
		if pronouns[strings.ToLower(w.text)] {
			return true
		}
	}
	return false
}

// match is how well a unit fits a question: for each aspect the share of its weight in the block, less for what only the
// headings above say; the best aspect counts most. Counts are how often the unit has each term, lines how much of the
// question each of its lines holds, where it has several.
func (q *query) match(s *section, counts []uint8, lines []float64, words int, kind blockKind) float64 {
	best, sum := 0.0, 0.0
	for i := range q.aspects {
		a := &q.aspects[i]
		if a.total == 0 {
			continue
		}
		got := 0.0
		for _, t := range a.terms {
			w := q.weights[t]
			switch n := counts[t]; {
			case n > 1:
				got += 1.15 * w
			case n == 1:
				got += w
			case s.terms[t] < 0:
			case s.where[s.terms[t]]&inHead != 0:
				got += 0.5 * w
			case s.where[s.terms[t]]&inContext != 0:
				got += 0.25 * w
			}
		}
		got /= a.total
		best = max(best, got)
		sum += got
	}
	score := 0.7*best + 0.3*sum/float64(max(len(q.aspects), 1))
	// What answers stands in one sentence, one line or one item rather than here and there in a long block.
	near, whole := 0.0, 0.0
	for t, w := range q.weights {
		if counts[t] > 0 {
			whole += w
		}
	}
	if len(lines) == 0 {
		near = whole
	}
	for _, got := range lines {
		if near == whole { // no line holds more than all of them
			break
		}
		near = max(near, got)
	}
	if q.total > 0 {
		score = (score + near/q.total) / 2
	}
	switch {
	case words < 4:
		score *= 0.6
	case kind == code && !q.howTo:
		score *= 0.8
	case words > 150:
		score *= 0.85
	}
	return score
}

// rank orders the passages.
func rank(req model.Request, q *query, sections []*section) []int {
	top := 0.0
	for _, p := range req.Passages {
		top = max(top, p.Score)
	}
	order := make([]int, 0, len(sections))
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
		if q.whatIs && head >= 0.3 && q.defines(s) {
			s.score += 0.35
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(sections[b].score, sections[a].score)
	})
	return order
}

// headFit is how well the section's heading or the page's title names what is asked: the share of the heading that the
// question has, times the share of one aspect that the heading has.
func (q *query) headFit(s *section) float64 {
	best := 0.0
	for _, head := range []struct {
		terms []uint64
		where where
	}{{s.head, inHead}, {s.title, inTitle}} {
		whole, got := 0.0, 0.0
		for _, t := range head.terms {
			if n := q.find(t); n >= 0 {
				whole += q.weights[n]
				got += q.weights[n]
			} else {
				whole += q.unknown
			}
		}
		if whole == 0 {
			continue
		}
		for i := range q.aspects {
			a := &q.aspects[i]
			have := 0.0
			for _, t := range a.terms {
				if n := s.terms[t]; n >= 0 && s.where[n]&head.where != 0 {
					have += q.weights[t]
				}
			}
			if a.total > 0 {
				best = max(best, got/whole*have/a.total)
			}
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
		var room [32]word
		for _, w := range appendWords(room[:0], firstWords(s.units[i].text)) {
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

// choose takes the units of a section that fit, with what they lean on, in the order of the page.
func choose(q *query, s *section, budget int, said *[]uint64) string {
	taken := make([]bool, len(s.units))
	used := 0
	take := func(i int) {
		if i < 0 || i >= len(s.units) || taken[i] {
			return
		}
		u := &s.units[i]
		if u.kind == code && u.words > budget+budget/3 || u.kind != prose && u.words > longBlock {
			return
		}
		taken[i] = true
		used += min(u.words, budget)
	}
	if s.words <= budget {
		for i := range s.units {
			take(i)
		}
	} else {
		byScore := make([]int, 0, len(s.units))
		named := 0
		lead := slices.IndexFunc(s.units, func(u unit) bool { return u.kind == prose })
		for i := range s.units {
			u := &s.units[i]
			if u.kind == heading {
				continue
			}
			score := s.scores[i]
			if i == lead {
				score += 0.08 // a section says first what it is about
			}
			if q.howTo && (u.kind == code || u.kind == list) && score > 0 {
				score += 0.06
			}
			if u.advises && score > 0 {
				score += 0.1
			}
			whole, share := q.row(u.named)
			score += 0.5 * whole * share
			if whole == 1 && named < mostNamed {
				named++
				take(i)
				s.lean(q, i, take)
			}
			s.scores[i] = score
			byScore = append(byScore, i)
		}
		slices.SortStableFunc(byScore, func(a, b int) int {
			return cmp.Compare(s.scores[b], s.scores[a])
		})
		best := 0.0
		if len(byScore) > 0 {
			best = s.scores[byScore[0]]
		}
		for n, i := range byScore {
			u := &s.units[i]
			if n > 0 && (used >= budget || s.scores[i] < 0.55*best || used+u.words > budget+budget/3) {
				continue
			}
			take(i)
			s.lean(q, i, take)
		}
		// A section is understood by its first sentences; and an answer says what to do, where the section does.
		if lead >= 0 && s.units[lead].words <= shortLead && s.scores[lead] > 0 {
			take(lead)
		}
		if i := s.remedy(taken); i >= 0 && !q.whatIs {
			take(i)
			s.lean(q, i, take)
		}
	}
	s.complete(q, taken, *said, take)
	return s.write(q, taken, budget, said)
}

// remedy is the paragraph that tells a reader best what to do, or -1 where none does or one is taken already.
func (s *section) remedy(taken []bool) int {
	best := -1
	for i := range s.units {
		switch u := &s.units[i]; {
		case !u.advises:
		case taken[i]:
			return -1
		case u.kind == prose && s.scores[i] > 0 && (best < 0 || s.scores[i] > s.scores[best]):
			best = i
		}
	}
	return best
}

// follows reports whether something of what comes after a unit is taken: the next one, or another part of the same list.
func (s *section) follows(i int, taken []bool) bool {
	for n := i + 1; n < len(s.units); n++ {
		if taken[n] {
			return true
		}
		if s.units[n].of == 0 || s.units[n].of != s.units[i+1].of {
			return false
		}
	}
	return false
}

// lean takes what a unit cannot stand without: the sentence that introduces a list or code, the list or code that a
// paragraph announces, the paragraph that a "this" refers to.
func (s *section) lean(q *query, i int, take func(int)) {
	u := &s.units[i]
	if u.kind != prose {
		at := i - 1
		for at >= 0 && u.of > 0 && s.units[at].of == u.of {
			at--
		}
		if at >= 0 && s.units[at].kind == prose {
			take(at)
		}
		for n, margin := i-1, indent(u.text); u.kind == list && margin > 0 && n > at; n-- { // the items that it is below
			if m := indent(s.units[n].text); m < margin {
				take(n)
				margin = m
			}
		}
	}
	if u.kind == prose {
		if i+1 < len(s.units) {
			next := s.units[i+1].kind
			if u.announces && next != heading || next == code && q.howTo {
				take(s.bestOf(i + 1))
			}
		}
		if u.refers && i > 0 && s.units[i-1].kind != heading {
			take(i - 1)
		}
	}
}

// bestOf is the unit itself, or where it begins a list that is in parts the one of them that fits best.
func (s *section) bestOf(i int) int {
	best := i
	for n := i + 1; n < len(s.units) && s.units[i].of > 0 && s.units[n].of == s.units[i].of; n++ {
		if s.scores[n] > s.scores[best] {
			best = n
		}
	}
	return best
}

// advises reports whether a block tells a reader what to do: it names a thing as it is typed, and speaks to him.
func advises(text string) bool {
	if !strings.Contains(text, "`") {
		return false
	}
	for _, sentence := range sentences(text) {
		words := split(firstWords(sentence))
		for i, w := range words {
			lower := strings.ToLower(w.text)
			if i == 0 && imperatives[lower] {
				return true
			}
			if i > 0 && strings.EqualFold(words[i-1].text, "you") && mayDo[lower] || i > 0 && lower == "use" && !strings.EqualFold(words[i-1].text, "of") {
				return true
			}
		}
	}
	return false
}

var (
	imperatives = set("use set add create configure enable disable run specify pass install call put define import turn change replace wrap provide make ensure avoid consider include")
	mayDo       = set("can may should must need")
)

// announces reports whether a paragraph speaks of what comes after it.
func announces(text string) bool {
	if strings.HasSuffix(text, ":") {
		return true
	}
	last := strings.ToLower(text[max(len(text)-120, 0):])
	return strings.Contains(last, "following") || strings.Contains(last, "below") || strings.Contains(last, "as follows")
}

func firstWords(s string) string {
	if len(s) > 80 {
		s = s[:80]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

// shorten leaves the best sentences of a paragraph that is too long, in their order.
func (q *query) shorten(s *section, u *unit, budget int) string {
	const long = 110
	if u.words <= min(long, budget) {
		return u.text
	}
	all := sentences(u.text)
	type scored struct {
		at    int
		score float64
	}
	var by []scored
	counts := make([]uint8, len(q.terms))
	for i, text := range all {
		clear(counts)
		for _, t := range terms(text) {
			if n := q.find(t.hash); n >= 0 && counts[n] < 2 {
				counts[n]++
			}
		}
		score := q.match(s, counts, nil, countWords(text), 0)
		if i == 0 {
			score += 0.3 // a paragraph says first what it is about
		}
		by = append(by, scored{i, score})
	}
	slices.SortStableFunc(by, func(a, b scored) int {
		return cmp.Compare(b.score, a.score)
	})
	keep := make([]bool, len(all))
	words := 0
	for n, b := range by {
		w := countWords(all[b.at])
		if n > 0 && words+w > min(long, budget) {
			continue
		}
		keep[b.at] = true
		words += w
	}
	var out []string
	for i, text := range all {
		if keep[i] {
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}
