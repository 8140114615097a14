package rules

import (
	"regexp"
	"slices"
	"strings"

	"docent/agent/edit"
)

// This file is about what people say of a change beside its two texts: the marks that they point with, what they leave
// out, which of the two they call wrong, and that they want no change at all.

var (
	// hedges are words of a sentence with two texts that ask for no change now, or for one under a condition.
	hedges = regexp.MustCompile(`(?i)\b(?:` +
		`(?:should|must|shall|needs? to|ought to|may)(?: really| probably| actually| also| ever)? (?:not|never)|(?:should|must|need|would)n['’]t|would (?:not|it|be (?:wrong|bad|a mistake))|never be|ne .*pas|` +
		`not (?:quite |entirely |completely |really )?(?:sure|certain)|unsure|uncertain|wonder(?:ing)?|don['’]t know|no idea|whether|either|nobody|no one|never|one day|tomorrow|or not|discuss|decide|debate|` +
		`if|unless|until|next (?:release|version)|in the future|out of scope|not now|(?:for )?another (?:pr|pull request|time)|` +
		`from (?:version|release) \S+ on|avoid|tried|typed|broke|nothing happened|revert(?:s|ed)?|undo|roll(?:ed)? back|(?:old|previous|earlier) version (?:said|had|was)|(?:everything|all|anything) but|` +
		`disputed?|rejected|declined|vetoed|not (?:yet )?(?:accepted|approved|agreed)|false positive|upstream|fork|translations?|` +
		`instead of (?:changing|replacing|renaming|updating|fixing)|nicht|keine?n?|niemals|jamais|nunca|niet|nooit|inte|ikke|aldrig|once \S+ (?:is|are|has|have|was))\b|^once\b|, once\b|^after (?:i|we|you)\b|(?:^|\s)(?:não|не)(?:\s|$)|不要|不应|不该|勿`)
	retracts = regexp.MustCompile(`(?i)\b(?:never ?mind|i disagree|please (?:ignore|disregard|close)|not a typo|(?:right|correct|fine|ok|okay) as (?:it )?is|no longer (?:relevant|needed|an issue)|` +
		`i was wrong|works? as intended|forget (?:it|this|that)|won['’]?t ?fix|please (?:revert|undo)|keep it|rather (?:not|don['’]t))\b|^(?:rejected|declined|withdrawn|reverted|wontfix|not (?:yet )?(?:accepted|approved|agreed))\b|^(?:this )?reverts? (?:commit|#|")|^-1\b|^no$`)
	told         = regexp.MustCompile(`(?i)\b(?:some(?:one|body)|he|she|they) (?:asked|wrote|said|proposed|suggested|wants|wanted)\b|^(?:we|i|you|one) (?:might|may|could|can)\b`)
	struck       = regexp.MustCompile(`(?s)~~[^~]+~~`)
	misspells    = wordSet(`misspelled misspelt mis-spelled mis-spelt mistyped`)
	misspellings = wordSet(`misspelling mis-spelling spelling typo mistyping`)
	faultNouns   = wordSet(`typo typos error errors mistake mistakes bug issue problem place places case spelling`)
	singled      = wordSet(`duplicate first second third last`)
	experiences  = wordSet(`expects reports reported complains complained warns warned found find get gets got getting receive receives received see sees saw pass passes passed passing send sends sent throws threw returns returned prints printed outputs`)
	factual      = wordSet(`actually really called named correct actual right proper`)
	sampleWords  = wordSet(`it this that the code snippet sample example command line lines block following text sentence to`)
)

// unpointed takes marks off two texts in quotes that only point: those of code within quotes if the other text is code,
// and those that show in the new one what is new.
func (q *reader) unpointed(old, now operand) (operand, operand) {
	if !old.literal || !now.literal || len(old.texts) != 1 || len(now.texts) != 1 {
		return old, now
	}
	o, n := old.texts[0], now.texts[0]
	code := func(x operand) bool { return q.toks[x.from].kind == literalText && q.src[q.toks[x.from].start] == '`' }
	if code(now) {
		o = inBackticks.ReplaceAllString(o, "$1")
	}
	if code(old) {
		n = inBackticks.ReplaceAllString(n, "$1")
	}
	if s := strings.ReplaceAll(n, "**", ""); !strings.Contains(o, "**") && s != o {
		n = s
	}
	if s := strings.ReplaceAll(n, "`", ""); !strings.Contains(o, "`") && withinWord.MatchString(n) && s != o {
		n = s
	}
	old.texts, now.texts = []string{o}, []string{n}
	if q.toks[old.from].kind == block && q.toks[now.from].kind == block {
		o, n = oneLine(o, n)
		old.texts, now.texts = []string{o}, []string{n}
	}
	return old, now
}

// unmarked are two texts in quotation marks without the mark behind one of them that belongs to the sentence: "have" instead of "has."
func (q *reader) unmarked(old, now operand) (string, string) {
	o, n := old.texts[0], now.texts[0]
	a, b := strings.TrimRight(o, ".,"), strings.TrimRight(n, ".,")
	quote := func(x operand) bool { return q.toks[x.from].kind == literalText && q.src[q.toks[x.from].start] != '`' }
	if quote(old) && quote(now) && a != b && a != "" && b != "" && (a != o) != (b != n) {
		return a, b
	}
	return o, n
}

var (
	inBackticks = regexp.MustCompile("^`([^`]+)`$")
	withinWord  = regexp.MustCompile("\\pL`[^` ]+`|`[^` ]+`\\pL")
)

// oneLine is the line that differs of two texts of as many lines; the texts as they are if it is not one.
func oneLine(old, now string) (string, string) {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	at := -1
	for i := range a {
		switch {
		case len(a) != len(b) || a[i] != b[i] && at >= 0:
			return old, now
		case a[i] != b[i]:
			at = i
		}
	}
	if at < 0 {
		return old, now
	}
	return strings.TrimSpace(a[at]), strings.TrimSpace(b[at])
}

// shortened are two texts without the end that both leave out: "x ..." and "y ...", "x(a, ...)" and "y(a, ...)".
func shortened(old, now string) (string, string) {
	if broken(old) && broken(now) {
		return strings.TrimRight(old, " .…"), strings.TrimRight(now, " .…")
	}
	for _, dots := range []string{"...", "…"} {
		a, end, ok := strings.Cut(old, dots)
		b, other, too := strings.Cut(now, dots)
		if ok && too && end == other && !strings.ContainsFunc(end, wordRune) && strings.ContainsFunc(a, wordRune) && strings.ContainsFunc(b, wordRune) {
			return strings.TrimRight(a, " "), strings.TrimRight(b, " ")
		}
	}
	return old, now
}

// unwrapped joins the lines of a paragraph that was broken at a width.
func unwrapped(s string) string {
	lines := strings.Split(s, "\n")
	var b strings.Builder
	fence := false
	for i, line := range lines {
		b.WriteString(line)
		fence = fence != strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case i == len(lines)-1:
		case !fence && len(line) >= narrowest && !strings.HasSuffix(line, "”") && goesOn.MatchString(lines[i+1]):
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

const narrowest = 40 // bytes of a line that may have been broken

// goesOn matches a line that goes on with a sentence: it begins with a small letter or a text in quotes.
var goesOn = regexp.MustCompile("^(?:[a-z][a-z,]* |[`'\"][^`'\"]+[`'\"][ ,.])")

// substitution matches s/old/new/, as sed has it.
var substitution = regexp.MustCompile(`^s/[^/]+(?:$|/)`)

// substitute reads s/old/new/, with blanks within.
func (q *reader) substitute(i int) {
	end := min(q.toks[i].start+200, len(q.src))
	if nl := strings.IndexByte(q.src[q.toks[i].start:end], '\n'); nl >= 0 {
		end = q.toks[i].start + nl
	}
	m := substituted.FindStringSubmatchIndex(q.src[q.toks[i].start:end])
	if m == nil {
		return
	}
	to := i
	for to < len(q.toks) && q.toks[to].start < q.toks[i].start+m[1] {
		to++
	}
	text := func(n int) operand {
		return operand{texts: []string{strings.TrimSpace(q.src[q.toks[i].start+m[n] : q.toks[i].start+m[n+1]])}, literal: true, from: i, to: to}
	}
	now := 4
	if m[4] < 0 {
		now = 6
	}
	q.add(text(2), text(now), edit.Arrow)
}

var substituted = regexp.MustCompile(`^s/([^/]+)/(?:([^/]+)/|([^/\s),;]+))`)

func wordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r > 127
}

// bareDiff reports whether a fenced block without a language is a diff: lines that go and lines that come, and no others.
func bareDiff(text string) bool {
	signs := ""
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if line[0] != '-' && line[0] != '+' {
			return false
		}
		if !strings.Contains(signs, line[:1]) {
			signs += line[:1]
		}
	}
	return len(signs) == 2
}

// Hedges reports whether what stands before an instruction says when, or of whom, or that it is not to be carried out.
func Hedges(said string) bool {
	return hedges.MatchString(said) || retracts.MatchString(said) || forbids.MatchString(said) || told.MatchString(said)
}

// hedged reports whether a sentence that was read asks for no change after all, or for one of several.
func (q *reader) hedged(pos, end int) bool {
	var b strings.Builder
	for i := pos; i < end && q.toks[i].low != "because"; i++ {
		switch t := q.toks[i]; {
		case t.low == "or" && i > pos && i+1 < end && literalToken(q.toks[i-1]) && literalToken(q.toks[i+1]):
			return true
		case t.kind == word && !q.used[i]:
			b.WriteString(t.low + " ")
		case t.kind == mark:
			b.WriteString(t.text + " ")
		}
	}
	said := strings.ReplaceAll(b.String(), " ,", ",")
	return hedges.MatchString(said) || told.MatchString(said) || q.foreign(pos, end)
}

// foreign reports whether a sentence is about something else than the documentation: of those who write, or another product.
func (q *reader) foreign(pos, end int) bool {
	for i := pos; i+1 < end; i++ {
		next := strings.TrimRight(q.toks[i+1].low, "'’s")
		switch q.toks[i].low {
		case "my", "our", "his", "her":
			if q.toks[i+1].kind == word && !ownWords[next] && !ownWords[q.toks[i+1].low] {
				return true
			}
		case "another", "other", "different":
			if otherThings[next] {
				return true
			}
		}
	}
	return false
}

var (
	ownWords = wordSet(`opinion view understanding reading mind mistake fault bad english knowledge doc docs documentation page pages guide guides example examples readme site website tutorial tutorials
		book own previous last pr pull patch fix change request issue manual code sample samples team`)
	otherThings = wordSet(`product project tool program site website app application library fork repo repository package company`)
)

// contradicted is a sentence that says of the old text of a reading that it is right, or of the new one that it is wrong.
func (q *reader) contradicted() string {
	list, _ := q.judgements()
	for _, j := range list {
		if len(j.spans) != 1 || j.fine == j.bad || j.fine && j.wrong {
			continue
		}
		text := j.spans[0].texts[0]
		for _, r := range q.req.Readings {
			if r.Literal && (j.fine && r.Pairs[0].Old == text || j.bad && r.Pairs[0].New == text) {
				return strings.TrimSpace(q.src[q.toks[j.from].start:q.toks[j.to-1].end])
			}
		}
	}
	return ""
}

// A judgement is a clause with what it says of a text: that it is wrong, or that it is what should stand there.
type judgement struct {
	spans        []operand
	words        int
	wrong, right bool
	fine, bad    bool // it is right as it is, or never right
	denied       bool
	wanted       bool // it is what is to come
	leads        bool // to what follows: it ends with a colon
	from, to     int
}

// judged reads a request that says of one text that it is wrong and of another one that it is right, in clauses of their own.
func (q *reader) judged() {
	if len(q.req.Readings) > 0 {
		return
	}
	list, ok := q.judgements()
	if !ok {
		return
	}
	var wrong, right, named []operand
	for i, j := range list {
		if len(j.spans) != 1 {
			if len(j.spans) > 1 {
				named = append(named, j.spans...)
			}
			continue
		}
		if j.words == 0 {
			j.wrong, j.right = saidBeside(list, i)
		}
		switch {
		case j.wrong && !j.right:
			wrong = others(wrong, j.spans[0])
		case j.right && !j.wrong:
			right = others(right, j.spans[0])
		case !j.fine:
			named = append(named, j.spans[0])
		}
	}
	kin := func(o operand) operand { // the one text that is like it, of those of which nothing is said
		var found []operand
		for _, n := range named {
			if alike(n.texts[0], o.texts[0]) {
				found = others(found, n)
			}
		}
		if len(found) != 1 {
			return operand{}
		}
		return found[0]
	}
	switch {
	case len(wrong) == 1 && len(right) == 1:
		q.add(wrong[0], right[0], edit.Should)
	case len(wrong) == 1 && len(right) == 0:
		q.add(wrong[0], kin(wrong[0]), edit.Should)
	case len(wrong) == 0 && len(right) == 1:
		q.add(kin(right[0]), right[0], edit.Should)
	}
}

// saidBeside is what the clause before or behind says of a text that stands by itself.
func saidBeside(list []judgement, i int) (wrong, right bool) {
	switch {
	case i > 0 && list[i-1].leads && len(list[i-1].spans) == 0:
		return list[i-1].wrong, list[i-1].right
	case i+1 < len(list) && len(list[i+1].spans) == 0:
		return list[i+1].wrong, list[i+1].right
	}
	return false, false
}

// others adds a text to several, if it is another one.
func others(list []operand, o operand) []operand {
	if slices.ContainsFunc(list, func(l operand) bool { return l.texts[0] == o.texts[0] }) {
		return list
	}
	return append(list, o)
}

// judgements cuts a request into clauses; not ok if one of them denies or reports something else.
func (q *reader) judgements() (list []judgement, ok bool) {
	var j judgement
	ok = true
	flush := func(to int) {
		ok = j.close(to) && ok
		if len(j.spans) > 0 || j.words > 0 {
			list = append(list, j)
		}
		j = judgement{from: to + 1}
	}
	for i, t := range q.toks {
		url := plainURL.FindString(t.text)
		switch {
		case literalToken(t) && !pageFile(t.text) && !strings.Contains(shown(t), "\n"):
			j.spans = append(j.spans, q.quote(i))
		case t.kind == word && url != "":
			j.spans = append(j.spans, operand{texts: []string{strings.TrimRight(url, ".,;:!?*_")}, literal: true, from: i, to: i + 1})
		case t.kind == word && (contrasts[t.low] || t.low == "and" && len(j.spans) > 0):
			flush(i)
		case t.kind == word:
			ok = ok && !experiences[t.low]
			j.hear(t.low)
		case t.is(":") && len(j.spans) == 0 && j.words == 0:
		case t.kind == mark || t.kind == newline:
			j.leads = t.is(":")
			flush(i)
		}
	}
	flush(len(q.toks))
	return list, ok
}

// hear takes in a word of a clause.
func (j *judgement) hear(w string) {
	verb := len(j.spans)+j.words == 0 && changeVerbs[w] // "correct" it
	j.words++
	j.wrong = j.wrong || calledWrong[w]
	j.bad = j.bad || w == "wrong" || w == "incorrect"
	j.denied = j.denied || w == "not" || w == "longer" || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t")
	if !verb {
		j.right = j.right || calledRight[w]
		j.fine = j.fine || calledFine[w]
		j.wanted = j.wanted || calledRight[w] && !calledFine[w]
	}
}

// close ends a clause, and reports whether it is known what it says.
func (j *judgement) close(to int) bool {
	known := true
	if j.denied && (j.right || !j.wrong) { // not correct; what else is denied is not known
		known = j.right && !j.wanted || len(j.spans) == 0
		j.wrong, j.right = j.right, false
	}
	j.fine, j.bad, j.to = j.fine && !j.denied, j.bad && !j.denied, to
	return known && !(j.wrong && j.right && len(j.spans) > 0)
}

var (
	contrasts   = wordSet(`but whereas while`)
	calledWrong = wordSet(`wrong mistaken mistakenly accidentally wrongly incorrectly incorrect invalid outdated obsolete deprecated broken dead old previous former stale erroneous typo misspelled misspelling removed gone 404`)
	calledFine  = wordSet(`correct right proper fine ok okay good valid works work exists exist supported`)
	calledRight = wordSet(`correct right proper fine ok okay good new should expected updated valid supported intended suggested proposed now use instead`)
)

// from reads "from X to Y", of what stands before it. What the text was to become is no change of its own: a release, a number.
func (q *reader) from(i int) {
	n := len(q.req.Readings)
	q.between(i + 1)
	if len(q.req.Readings) == n || i == 0 || q.toks[i-1].kind != word {
		return
	}
	if r := &q.req.Readings[n]; !slices.ContainsFunc(r.Pairs, func(p edit.Pair) bool { return !numeric(p.Old) }) && !changeVerbs[q.toks[i-1].low] && !operandNouns[q.toks[i-1].low] {
		r.Of = bare(q.toks[i-1])
	}
}

// sure reports whether two texts without quotes are the ones that are meant, whatever follows: they are like each other, or code.
func sure(old, now string) bool { return alike(old, now) || codeWord(old) && codeWord(now) }

// typoTo reads "teh to the" on a line by itself, and "typo 'teh' to 'the'".
func (q *reader) typoTo(i int) {
	if q.line(i) == [2]int{i - 1, i + 2} && alike(q.run(i-1, i), q.run(i+1, i+2)) {
		q.arrow(i)
		return
	}
	if i < 2 || i+1 >= len(q.toks) || !literalToken(q.toks[i-1]) || !literalToken(q.toks[i+1]) {
		return
	}
	if q.toks[i-2].low == "typo" || q.toks[i-2].is(":") && i > 2 && q.toks[i-3].low == "typo" {
		q.add(q.quote(i-1), q.quote(i+1), edit.Arrow)
	}
}

// writtenAs reads "Y is misspelled as X", "misspelling of Y as X".
func (q *reader) writtenAs(i int) {
	switch {
	case misspells[q.toks[i-1].low], q.slipped && (q.toks[i-1].low == "written" || q.toks[i-1].low == "spelled" || q.toks[i-1].low == "typed"):
		q.add(q.behind(i+1), q.before(q.auxiliary(i-1), false), edit.Should)
	case i > 2 && literalToken(q.toks[i-1]) && q.toks[i-2].low == "of" && misspellings[q.toks[i-3].low]:
		q.add(q.behind(i+1), q.quote(i-1), edit.Should)
	}
}

// contrast reads "Y, not X": in quotes, in code, or a slip of the pen away from each other.
func (q *reader) contrast(i int) {
	how := edit.Told
	if q.slipped {
		how = edit.Should
	}
	at := i
	if at > 0 && q.toks[at-1].low == "and" {
		at--
	}
	first, second := q.before(at, false), q.behind(i+1)
	switch {
	case !first.ok() || !second.ok() || first.literal != second.literal:
	case first.literal:
		q.add(second, first, how)
	default:
		if code := q.code(first.from, first.to); len(code) == 1 && !alike(first.texts[len(first.texts)-1], bare(q.toks[second.from])) && codeWord(strings.Fields(second.texts[0])[0]) { // the x method, not y
			q.add(operand{texts: []string{bare(q.toks[second.from])}, from: second.from, to: second.from + 1}, operand{texts: code, from: first.from, to: first.to}, how)
			return
		}
		first.texts = slices.DeleteFunc(first.texts, func(f string) bool {
			return !alike(second.texts[0], f) || strings.Count(second.texts[0], " ") != strings.Count(f, " ")
		})
		q.add(second, first, how)
	}
}

// told reads "it says X, but it is actually called Y", "… but the correct name is Y", of two texts that are like each other.
func (q *reader) told(i int) {
	k, known := i+1, false
	for k < len(q.toks) && k < i+4 && q.toks[k].kind == word && (adverbs[q.toks[k].low] || factual[q.toks[k].low]) {
		known = known || factual[q.toks[k].low]
		k++
	}
	if k >= len(q.toks) || !literalToken(q.toks[k]) {
		return
	}
	start := i
	for start > max(0, i-40) && !(q.toks[start-1].ends() && q.toks[start-1].kind != newline) {
		start--
	}
	but := -1
	for n := i - 1; n > start; n-- {
		known = known || factual[q.toks[n].low]
		if q.toks[n].low == "but" {
			but = n
			break
		}
	}
	if but < 0 || !known || q.lastLiteral(but, i) >= 0 {
		return
	}
	b, old := strings.ToLower(shown(q.toks[k])), -1
	for n := start; n < but; n++ {
		if a := strings.ToLower(shown(q.toks[n])); literalToken(q.toks[n]) && (alike(a, b) || strings.Contains(a, b) || strings.Contains(b, a)) {
			if old >= 0 {
				return
			}
			old = n
		}
	}
	if old >= 0 {
		q.add(q.quote(old), q.quote(k), edit.Told)
	}
}

// sample reads "update the command to" and a block, where another block stands before.
func (q *reader) sample(from, to int) bool {
	now := q.behind(to + 1)
	if !now.literal || q.toks[now.from].kind != block || slices.ContainsFunc(q.toks[from:to], func(t token) bool { return t.kind != word || !sampleWords[t.low] }) {
		return false
	}
	var blocks []int
	for i, t := range q.toks[:from] {
		if t.kind == block {
			blocks = append(blocks, i)
		}
	}
	if len(blocks) != 1 || !literalToken(q.toks[blocks[0]]) {
		return false
	}
	q.add(q.quote(blocks[0]), now, edit.Verb)
	return true
}
