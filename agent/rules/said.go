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
		`instead of (?:changing|replacing|renaming|updating|fixing)|nicht|keine?n?|niemals|jamais|nunca|niet|nooit|inte|ikke|aldrig|once \S+ (?:is|are|has|have|was))\b|^once\b|, once\b|(?:^|\s)(?:não|не)(?:\s|$)|不要|不应|不该|勿`)
	retracts = regexp.MustCompile(`(?i)\b(?:never ?mind|i disagree|please (?:ignore|disregard|close)|not a typo|(?:right|correct|fine|ok|okay) as (?:it )?is|no longer (?:relevant|needed|an issue)|` +
		`i was wrong|works? as intended|forget (?:it|this|that)|won['’]?t ?fix|please (?:revert|undo)|keep it|rather (?:not|don['’]t))\b|^-1\b|^no$`)
	told         = regexp.MustCompile(`(?i)\b(?:some(?:one|body)|he|she|they) (?:asked|wrote|said|proposed|suggested|wants|wanted)\b|^(?:we|i|you|one) (?:might|may|could|can)\b`)
	struck       = regexp.MustCompile(`(?s)~~[^~]+~~`)
	misspells    = wordSet(`misspelled misspelt mis-spelled mis-spelt mistyped`)
	misspellings = wordSet(`misspelling mis-spelling spelling typo mistyping`)
	faultNouns   = wordSet(`typo typos error errors mistake mistakes bug issue problem place places case spelling`)
	singled      = wordSet(`duplicate first second third last`)
	experiences  = wordSet(`get gets got getting receive receives received see sees saw pass passes passed passing send sends sent throws threw returns returned prints printed outputs`)
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
	return hedges.MatchString(said) || told.MatchString(said)
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

// contrast reads "Y, not X", in quotes or in code.
func (q *reader) contrast(i int) {
	how := edit.Told
	if q.slipped {
		how = edit.Should
	}
	first := q.before(i, false)
	if literalToken(q.toks[i+1]) {
		if first.literal {
			q.add(q.quote(i+1), first, how)
		}
		return
	}
	if !first.ok() || first.literal {
		return
	}
	old, now := bare(q.toks[i+1]), first.texts[len(first.texts)-1]
	if q.toks[i+1].kind == word && codeWord(old) && codeWord(now) {
		q.add(operand{texts: []string{old}, from: i + 1, to: i + 2}, operand{texts: []string{now}, from: first.to - 1, to: first.to}, how)
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
