package model

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// extractive answers with the documentation's own sentences. It reads the passages as blocks, weighs each block by how
// much of the question it holds, takes the best ones with what they lean on, and writes them in the order of their
// page. When too little of the question is in the documentation it says so.
type extractive struct{ name string }

// What an answer may hold. Words of code and tables count too, so that an answer stays readable.
const (
	mostPassages = 3
	mainWords    = 170 // of the first passage; a section that is not longer is taken whole
	moreWords    = 90  // of each further passage
	longBlock    = 220 // words from which a list, a table or code is not taken
)

func (e extractive) answer(ctx context.Context, req Request, emit func(Delta) error) (Result, error) {
	result := Result{Model: e.name, Reason: "stop"}
	write := func(cite []int, text string) error {
		for n, piece := range pieces(text) {
			if err := ctx.Err(); err != nil {
				return err
			}
			d := Delta{Text: piece}
			if n == 0 {
				d.Cite = cite
			}
			result.CompletionTokens++
			if err := emit(d); err != nil {
				return err
			}
		}
		return nil
	}
	plan := compose(req)
	if len(plan) == 0 {
		return result, write(nil, deflect(req))
	}
	result.Answered = true
	for n, part := range plan {
		p := &req.Passages[part.passage]
		text := part.text
		if len(plan) > 1 {
			text = "**" + title(p) + "**\n\n" + text
		}
		if n > 0 {
			text = "\n\n" + text
		}
		if err := write([]int{part.passage}, text); err != nil {
			return result, err
		}
	}
	return result, nil
}

// deflect says that the documentation does not answer, and where to ask.
func deflect(req Request) string {
	name := "The documentation"
	if req.Project != "" {
		name = "The " + req.Project + " documentation"
		if strings.Contains(strings.ToLower(req.Project), "doc") {
			name = req.Project
		}
	}
	text := name + " does not answer this question."
	if strings.TrimSpace(req.Deflection) == "" {
		return text + " You could try other words, or name the feature or setting that it is about."
	}
	return text + " " + askHere(req.Deflection)
}

// askHere sends a reader to an e-mail or web address.
func askHere(address string) string {
	address = oneLine(address)
	switch {
	case strings.Contains(address, "@") && !strings.Contains(address, "/"):
		return fmt.Sprintf("You can ask here: [%s](mailto:%s).", address, address)
	case strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://"):
		return fmt.Sprintf("You can ask here: <%s>.", address)
	}
	return "You can ask here: " + address + "."
}

func title(p *Passage) string {
	switch {
	case p.Heading == "" || strings.EqualFold(p.Heading, p.Title):
		return p.Title
	case p.Title == "":
		return p.Heading
	}
	return p.Title + ": " + p.Heading
}

// pieces cuts an answer into what one event of a stream carries: a few words each, a line of code whole.
func pieces(text string) []string {
	const words = 4
	var out []string
	start, n, coding := 0, 0, false
	for i := 0; i < len(text); i++ {
		end := false
		switch text[i] {
		case '\n':
			end = true
			if strings.HasPrefix(strings.TrimSpace(text[start:i]), "```") {
				coding = !coding
			}
		case ' ':
			if !coding {
				n++
				end = n >= words && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\n'
			}
		}
		if end && strings.TrimSpace(text[start:i+1]) != "" {
			out = append(out, text[start:i+1])
			start, n = i+1, 0
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// A quote is what the answer takes from one passage.
type quote struct {
	passage int
	text    string
}

// A unit is one block with what is needed to weigh it.
type unit struct {
	block
	terms map[string]int
	words int
	print uint64 // the same for blocks with the same words
}

// A leaf is one passage, read. It is shared between answers and never changes.
type leaf struct {
	units   []unit
	context map[string]bool // terms of title, heading and the headings above
	head    map[string]bool // terms of the heading, or of the title where there is none
	title   map[string]bool
	terms   map[string]bool // all of it
	words   int
	bytes   int // of the passage
}

// A section is one passage as it fits one question.
type section struct {
	*leaf
	scores []float64 // of the units
	best   float64   // match of its best block
	score  float64
}

// A query is the question as it is matched.
type query struct {
	aspects []aspect
	terms   []string // of all aspects, each once
	weights weights
	total   float64
	howTo   bool
	whatIs  bool
}

type aspect struct {
	terms []string
	total float64
}

// compose chooses what to quote; nothing where the documentation does not answer.
func compose(req Request) []quote {
	sections := read(req)
	q := ask(Standalone(req.Question, req.History), sections)
	if len(q.terms) == 0 || !answers(req, q, sections) {
		return nil
	}
	order := rank(req, q, sections)
	if len(order) == 0 {
		return nil
	}
	var out []quote
	covered := map[string]bool{}
	var said []uint64 // prints of what was quoted, for blocks that two pages share
	best, bestBlock := sections[order[0]].score, 0.0
	for _, s := range sections {
		bestBlock = max(bestBlock, s.best)
	}
	for n, at := range order {
		if len(out) == mostPassages {
			break
		}
		s := sections[at]
		gain := 0.0
		for _, t := range q.terms {
			if s.terms[t] && !covered[t] {
				gain += q.weights.of(t)
			}
		}
		// A further passage has to add something: a term of the question, or near as good a match as the first one.
		if n > 0 && (s.best < 0.5*bestBlock || (gain < 0.12*q.total || s.score < 0.55*best) && s.score < 0.85*best) {
			continue
		}
		budget := moreWords
		if n == 0 {
			budget = mainWords
		}
		text := choose(q, s, budget, &said)
		if text == "" {
			continue
		}
		for t := range s.terms {
			covered[t] = true
		}
		out = append(out, quote{at, text})
	}
	return out
}

func read(req Request) []*section {
	out := make([]*section, len(req.Passages))
	for i := range req.Passages {
		l := leaves.of(&req.Passages[i])
		out[i] = &section{leaf: l, scores: make([]float64, len(l.units))}
	}
	return out
}

func newLeaf(p *Passage) *leaf {
	l := &leaf{context: map[string]bool{}, head: map[string]bool{}, title: map[string]bool{}, terms: map[string]bool{}, bytes: len(p.Text) + 256}
	for _, t := range terms(p.Title + " \n" + p.Heading + " \n" + strings.Join(p.Trail, " \n")) {
		l.context[t] = true
		l.terms[t] = true
	}
	for _, t := range terms(p.Title) {
		l.title[t] = true
	}
	head := p.Heading
	if head == "" {
		head = p.Title
	}
	for _, t := range terms(head) {
		l.head[t] = true
	}
	for _, b := range cut(p) {
		u := unit{block: b, terms: map[string]int{}, words: len(strings.Fields(b.text)), print: fingerprint(b.text)}
		for _, t := range terms(b.text) {
			u.terms[t]++
			l.terms[t] = true
		}
		l.words += u.words
		l.units = append(l.units, u)
	}
	return l
}

// shelf keeps passages that were read lately: the good sections of a documentation are found again and again. It has
// two generations, so that it stays bounded without a list of who was used when.
type shelf struct {
	mu         sync.Mutex
	young, old map[leafKey]*leaf
	bytes      int
}

type leafKey struct{ path, url, title, heading, trail, text string }

const shelfBytes = 4 << 20 // of passages in a generation; a leaf takes some five times its passage

var leaves shelf

func (s *shelf) of(p *Passage) *leaf {
	k := leafKey{p.Path, p.URL, p.Title, p.Heading, strings.Join(p.Trail, "\n"), p.Text}
	s.mu.Lock()
	l, ok := s.young[k]
	if !ok {
		l, ok = s.old[k]
		if ok {
			s.put(k, l)
		}
	}
	s.mu.Unlock()
	if ok {
		return l
	}
	l = newLeaf(p)
	s.mu.Lock()
	s.put(k, l)
	s.mu.Unlock()
	return l
}

func (s *shelf) put(k leafKey, l *leaf) {
	if s.young == nil || s.bytes > shelfBytes {
		s.old, s.young, s.bytes = s.young, map[leafKey]*leaf{}, 0
	}
	s.young[k] = l
	s.bytes += l.bytes
}

// ask reads the question: its aspects and their terms, each weighed by how few blocks have it.
func ask(question string, sections []*section) query {
	q := query{weights: weights{df: map[string]int{}}}
	lower := strings.ToLower(strings.TrimSpace(question))
	q.howTo = strings.Contains(lower, "how ") || strings.HasPrefix(lower, "can ") || strings.Contains(lower, "example")
	for _, begin := range []string{"what is", "what are", "what's", "whats", "what does", "explain", "define"} {
		q.whatIs = q.whatIs || strings.HasPrefix(lower, begin)
	}
	seen := map[string]bool{}
	var topic []string
	for _, clause := range clauses(question) {
		var a aspect
		found := terms(clause)
		if refers(clause) { // "how does it differ": it is what was asked about before
			found = append(found, topic...)
		}
		for _, t := range found {
			if slices.Contains(a.terms, t) {
				continue
			}
			a.terms = append(a.terms, t)
			if !seen[t] {
				seen[t] = true
				q.terms = append(q.terms, t)
			}
		}
		if topic == nil {
			topic = found
		}
		if len(a.terms) > 0 {
			q.aspects = append(q.aspects, a)
		}
	}
	for _, s := range sections {
		q.weights.units += len(s.units)
		for _, t := range q.terms {
			if !s.terms[t] {
				continue
			}
			for i := range s.units {
				if s.units[i].terms[t] > 0 {
					q.weights.df[t]++
				}
			}
		}
	}
	known := make(map[string]float64, len(q.terms))
	for _, t := range q.terms {
		known[t] = q.weights.of(t)
	}
	q.weights.known = known
	for i := range q.aspects {
		for _, t := range q.aspects[i].terms {
			q.aspects[i].total += q.weights.of(t)
		}
	}
	for _, t := range q.terms {
		q.total += q.weights.of(t)
	}
	return q
}

// clauses cuts a question at its ends of sentences and before a further question word.
func clauses(question string) []string {
	var out []string
	start := 0
	words := split(question)
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
	return append(out, question[start:])
}

func refers(clause string) bool {
	for _, w := range split(clause) {
		if pronouns[strings.ToLower(w.text)] {
			return true
		}
	}
	return false
}

// coverage is the share of the question's weight that is among the terms.
func (q query) coverage(has func(string) bool) float64 {
	if q.total == 0 {
		return 0
	}
	sum := 0.0
	for _, t := range q.terms {
		if has(t) {
			sum += q.weights.of(t)
		}
	}
	return sum / q.total
}

// match is how well a unit fits a question: for each aspect the share of its weight in the block, less for what only the
// headings above say; the best aspect counts most.
func (q query) match(s *section, u *unit) float64 {
	best, sum := 0.0, 0.0
	for _, a := range q.aspects {
		if a.total == 0 {
			continue
		}
		got := 0.0
		for _, t := range a.terms {
			w := q.weights.of(t)
			switch n := u.terms[t]; {
			case n > 1:
				got += 1.15 * w
			case n == 1:
				got += w
			case s.head[t]:
				got += 0.5 * w
			case s.context[t]:
				got += 0.25 * w
			}
		}
		got /= a.total
		best = max(best, got)
		sum += got
	}
	score := 0.7*best + 0.3*sum/float64(max(len(q.aspects), 1))
	switch {
	case u.words < 4:
		score *= 0.6
	case u.words > 150:
		score *= 0.85
	}
	return score
}

// rank orders the passages.
func rank(req Request, q query, sections []*section) []int {
	top := 0.0
	for _, p := range req.Passages {
		top = max(top, p.Score)
	}
	var order []int
	for i, s := range sections {
		best := 0.0
		for n := range s.units {
			if u := &s.units[n]; u.kind != heading {
				s.scores[n] = q.match(s, u)
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
		s.score = sure + 0.05*head
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
func (q query) headFit(s *section) float64 {
	best := 0.0
	for _, head := range []map[string]bool{s.head, s.title} {
		whole, got := 0.0, 0.0
		for t := range head {
			w := q.weights.of(t)
			whole += w
			if slices.Contains(q.terms, t) {
				got += w
			}
		}
		if whole == 0 {
			continue
		}
		for _, a := range q.aspects {
			have := 0.0
			for _, t := range a.terms {
				if head[t] {
					have += q.weights.of(t)
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
func (q query) defines(s *section) bool {
	for i := range s.units[:min(2, len(s.units))] {
		if s.units[i].kind != prose {
			continue
		}
		subject := false
		for _, w := range split(firstWords(s.units[i].text)) {
			lower := strings.ToLower(w.text)
			if t := appendTerms(nil, w.text); len(t) > 0 && slices.Contains(q.aspects[0].terms, t[0]) {
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
func choose(q query, s *section, budget int, said *[]uint64) string {
	taken := make([]bool, len(s.units))
	used := 0
	take := func(i int) {
		if i < 0 || i >= len(s.units) || taken[i] {
			return
		}
		u := &s.units[i]
		if u.words > longBlock && u.kind != prose {
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
		for i := range s.units {
			u := &s.units[i]
			if u.kind == heading {
				continue
			}
			score := s.scores[i]
			if i == 0 || i == 1 && s.units[0].kind == heading {
				score += 0.08 // a section says first what it is about
			}
			if q.howTo && (u.kind == code || u.kind == list) && score > 0 {
				score += 0.06
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
	}
	var out []string
	for i := range s.units {
		u := &s.units[i]
		if !taken[i] || u.kind == heading || slices.Contains(*said, u.print) {
			continue
		}
		*said = append(*said, u.print)
		// What a step, a tab or a small heading just above says belongs to the first block under it.
		label := ""
		if i > 0 && s.units[i-1].kind == heading {
			label = "**" + strings.Trim(s.units[i-1].text, "*") + "**\n\n"
		}
		text := u.text
		if u.kind == prose {
			text = q.shorten(s, u, budget)
			if i+1 == len(s.units) || !taken[i+1] { // what it announces is not quoted
				if t, ok := strings.CutSuffix(text, ":"); ok {
					text = t + "."
				}
			}
		}
		out = append(out, label+text)
	}
	return strings.Join(out, "\n\n")
}

// lean takes what a unit cannot stand without: the sentence that introduces a list or code, the list or code that a
// paragraph announces, the paragraph that a "this" refers to.
func (s *section) lean(q query, i int, take func(int)) {
	u := &s.units[i]
	if u.kind != prose && i > 0 && s.units[i-1].kind == prose {
		take(i - 1)
	}
	if u.kind == prose {
		if i+1 < len(s.units) {
			next := s.units[i+1].kind
			if announces(u.text) && next != heading || next == code && q.howTo {
				take(i + 1)
			}
		}
		if first := split(firstWords(u.text)); len(first) > 0 && i > 0 && s.units[i-1].kind != heading {
			switch w := strings.ToLower(first[0].text); {
			case pronouns[w], w == "however", w == "therefore", w == "for" && len(first) > 1 && strings.EqualFold(first[1].text, "example"):
				take(i - 1)
			}
		}
	}
}

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
func (q query) shorten(s *section, u *unit, budget int) string {
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
	for i, text := range all {
		v := &unit{terms: map[string]int{}, words: len(strings.Fields(text))}
		for _, t := range terms(text) {
			v.terms[t]++
		}
		score := q.match(s, v)
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
		w := len(strings.Fields(all[b.at]))
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

var seed = maphash.MakeSeed()

// fingerprint tells blocks apart by their words alone.
func fingerprint(text string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, w := range split(text) {
		h.WriteString(strings.ToLower(w.text))
		h.WriteByte(' ')
	}
	return h.Sum64()
}

// answers decides whether the documentation answers at all.
func answers(req Request, q query, sections []*section) bool {
	f := features(req, q, sections)
	return f.verdict()
}

// fit is what the verdict is made of.
type fit struct {
	passage float64 // share of the question's weight in the best passage
	block   float64 // share in the best block with its headings
	score   float64 // of the search's first passage
	missing float64 // share of the question's weight that no passage has
}

func features(req Request, q query, sections []*section) fit {
	var f fit
	all := map[string]bool{}
	for i, s := range sections {
		f.passage = max(f.passage, q.coverage(func(t string) bool { return s.terms[t] }))
		for i := range s.units {
			u := &s.units[i]
			f.block = max(f.block, q.coverage(func(t string) bool { return u.terms[t] > 0 || s.context[t] }))
		}
		f.score = max(f.score, req.Passages[i].Score)
		for t := range s.terms {
			all[t] = true
		}
	}
	f.missing = 1 - q.coverage(func(t string) bool { return all[t] })
	return f
}

// verdict weighs how sure the search is, which has the whole documentation to compare with, and a little how much of the
// question one passage holds. The line was drawn on the judged questions, on descriptions of pages, on questions asked
// of another product's documentation, and on questions that no documentation answers (cmd/docent/answers_test.go).
func (f fit) verdict() bool {
	if f.score == 0 { // passages of unknown worth
		return f.passage >= 0.5
	}
	return f.passage >= 0.1 && f.score+0.2*f.passage >= 0.245
}
