package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/agent/edit"
	"docent/agent/workspace"
)

// This file reads requests in people's words: an issue, a template that was filled in, a message of a commit. It looks
// for a text, for what should stand in its place, and for the page, and takes nothing on trust: what it finds is
// checked against the documentation before anything is changed.

// A Request is what a text in people's words seems to ask for.
type Request struct {
	Readings []edit.Reading
	Places   []Mention
	Quoted   []string // every text in quotes: a longer one may show where a shorter one stands
	Rest     string   // other words of the first line and of the lines that were read: they may name a page in passing
	Every    bool     // it says that all occurrences are meant
	Lines    []int    // numbers of lines that it names
	Limit    string   // a sentence that restricts what is asked for, in a way that is not read
	Other    bool     // it gives an order besides that is not read
	Ignored  []string // sentences that were not read
}

// A Mention names a page: by its path, its address or its title.
type Mention struct {
	Text string
	Kind MentionKind
	At   bool // it is said that something stands there
}

// A MentionKind is how a page is named.
type MentionKind uint8

// Kinds of mentions, the most exact first.
const (
	PathMention MentionKind = iota
	URLMention
	TitleMention
)

const (
	maxRequest  = 20_000 // bytes that are read of a request
	maxReadings = 40
	maxOperand  = 2_000 // bytes of a text to be replaced, or to stand there
)

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	linkMarkup  = regexp.MustCompile(`!?\[([^\]\n]*)\]\(([^)\s]*)\)`)
	checkbox    = regexp.MustCompile(`(?m)^[ \t]*[-*] \[[ xX]\].*$`)
	trailer     = regexp.MustCompile(`(?mi)^(?:signed-off-by|co-authored-by|reviewed-by|change-type|(?:-{3,}|_{3,}))\b?.*$`)
	commitScope = regexp.MustCompile(`(?m)^(?:feat|fix|docs?|chore|refactor|style|content|i18n|bug)(?:\(([^)\n]*)\))?!?:[ \t]`)
	templated   = regexp.MustCompile(`(?mi)^(?:name|about|labels|assignees|title): .*$`)
	plainURL    = regexp.MustCompile("https?://[^\\s)>\\]\"'`<]+")
	quotation   = regexp.MustCompile(`(?m)^[ \t]*>[ \t]?([^\n“”]+)$`)
	lineNumber  = regexp.MustCompile(`(?i)(?:\blines? |\.(?:mdx?|rst|adoc|markdown):)(\d{1,6}\b(?:(?:,| and| &|, and) (?:line )?\d{1,6}\b)*)(?:[^-–\w]|$)`)
	digits      = regexp.MustCompile(`\d+`)
	issueNumber = regexp.MustCompile(`^#\d+$`)
)

// blank puts blanks in the place of what is matched, so that everything else stays where it was.
func blank(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, m)
	})
}

// Read looks for changes and pages in a text. It decides nothing.
func Read(text string) Request {
	text = strings.ReplaceAll(text[:min(len(text), maxRequest)], "\r\n", "\n")
	scope := commitScope.FindStringSubmatch(text)
	for _, re := range []*regexp.Regexp{htmlComment, struck, checkbox, trailer, templated, commitScope} {
		text = blank(re, text)
	}
	text = unwrapped(quotation.ReplaceAllString(text, "“$1”"))
	q := &reader{parser: &parser{}, used: map[int]bool{}}
	text = q.unlinked(text)
	q.src, q.toks = text, lex(text)
	for i := 0; i < len(q.toks) && len(q.req.Readings) < maxReadings; i++ {
		q.at(i)
	}
	q.sections()
	q.labels()
	q.twoAlike()
	q.judged()
	q.mentions()
	q.rest()
	if s := q.contradicted(); s != "" {
		q.req.Limit = s
	}
	single := slices.ContainsFunc(q.toks, func(t token) bool { return t.kind == word && singled[t.low] })
	for i, r := range q.req.Readings { // a typo that is another word altogether happened in one place
		q.req.Readings[i].Slip = (q.slipped || slices.ContainsFunc(q.toks, func(t token) bool { return faults[t.low] })) &&
			slices.ContainsFunc(r.Pairs, func(p edit.Pair) bool { return slip(p.Old, p.New, 3, 1) })
		q.req.Readings[i].One = single || q.slipped && !slices.ContainsFunc(r.Pairs, func(p edit.Pair) bool { return slip(p.Old, p.New, 3, 1) })
	}
	for _, m := range lineNumber.FindAllStringSubmatch(text, 20) {
		for _, s := range digits.FindAllString(m[1], 20) {
			if n, err := strconv.Atoi(s); err == nil {
				q.req.Lines = append(q.req.Lines, n)
			}
		}
	}
	q.req.Rest = q.passing()
	if scope != nil {
		q.req.Rest += scope[1]
	}
	return q.req
}

// passing are the words that no reading took, of the first line and of the lines that were read.
func (q *reader) passing() string {
	var b strings.Builder
	for i, first := 0, true; i < len(q.toks); i++ {
		var line []string
		read := false
		for ; i < len(q.toks) && q.toks[i].kind != newline; i++ {
			read = read || q.used[i] && q.toks[i].kind != mark
			if q.toks[i].kind == word && !q.used[i] {
				line = append(line, q.toks[i].low)
			}
		}
		if (first || read) && b.Len() < maxOperand {
			b.WriteString(strings.Join(line, " ") + " . ")
		}
		first = first && line == nil
	}
	return b.String()
}

type reader struct {
	*parser
	req  Request
	used map[int]bool // tokens that a reading or a mention took

	slipped bool // it is said that something is a typo
}

// unlinked takes the markup of links off, but not within quotes, where it is what stands on the page.
func (q *reader) unlinked(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range linkMarkup.FindAllStringSubmatchIndex(s, -1) {
		line := s[strings.LastIndexByte(s[:m[0]], '\n')+1 : m[0]]
		if strings.Count(line, "`")%2 == 1 || strings.Count(line, `"`)%2 == 1 || strings.Count("\n"+s[:m[0]], "\n```")%2 == 1 {
			continue
		}
		b.WriteString(s[at:m[0]] + s[m[2]:m[3]])
		at = m[1]
		if url := s[m[4]:m[5]]; strings.HasPrefix(url, "http") {
			q.mention(Mention{Text: url, Kind: URLMention})
		}
	}
	return b.String() + s[at:]
}

func (q *reader) mention(m Mention) {
	if len(q.req.Places) < 50 && !slices.Contains(q.req.Places, m) {
		q.req.Places = append(q.req.Places, m)
	}
}

// An operand is a text that a request names: one in quotes, or words that stand before or behind a cue, in the several
// ways in which these may be cut off.
type operand struct {
	texts   []string
	literal bool
	article string // stands before words without quotes; it belongs to them if the other text has one
	from    int    // first token
	to      int    // behind the last one
}

func (o operand) ok() bool { return len(o.texts) > 0 }

// quote is the operand of one token in quotes, unless it is one of several: `a`/`b`.
func (q *reader) quote(i int) operand {
	if i+1 < len(q.toks) && q.toks[i+1].start == q.toks[i].end && q.toks[i+1].kind == word && q.toks[i+1].text[0] == '/' {
		return operand{from: i, to: i + 1}
	}
	return operand{texts: []string{shown(q.toks[i])}, literal: true, from: i, to: i + 1}
}

func article(s string) bool { return s == "a" || s == "an" || s == "the" }

var (
	runStops = wordSet(`in on at for from to as since because when with by into where which that but and or instead rather within inside throughout everywhere it
		should must is are was were has have not`)
	operandNouns = wordSet(`the a an this that word words term terms phrase text string sentence line name value typo wrong old incorrect correct deprecated misspelled all every each any both
		occurrences occurrence instances instance mentions mention references reference uses usages usage of to parameter param variable option flag command method function property remaining other case some
		spelling confusing outdated current existing new link url setting env var channel type`)
	adverbs = wordSet(`probably actually rather instead really now correctly likely also be just simply currently still only always to`)
)

func literalToken(t token) bool {
	return (t.kind == literalText || t.kind == block) && strings.TrimSpace(t.text) != "" && len(t.text) <= maxOperand
}

// shown is the text of a token in quotes, as it stands on a page.
func shown(t token) string {
	if t.kind == block {
		return strings.Trim(t.text, "\n")
	}
	return strings.TrimSpace(t.text)
}

// broken reports whether a quotation is broken off with dots.
func broken(s string) bool { return strings.HasSuffix(s, "..") || strings.HasSuffix(s, "…") }

// bare is a word as it is meant: without marks of emphasis and brackets.
func bare(t token) string { return unemphasized(t.text) }

func unemphasized(s string) string {
	s = strings.Trim(s, `*,"'“”‘’()`)
	if len(s) > 2 && s[0] == '_' && s[len(s)-1] == '_' && s[1] != '_' {
		return strings.Trim(s[1:len(s)-1], `*"'“”‘’`)
	}
	return s
}

// gaps are what may stand between a cue and its operand.
func (q *reader) gap(i int) bool {
	return i >= 0 && i < len(q.toks) && (q.toks[i].kind == newline || q.toks[i].is(":") || q.toks[i].is(","))
}

// before is the operand that ends before token i.
func (q *reader) before(i int, pronouns bool) operand {
	i--
	for steps := 0; q.gap(i) && steps < 4; steps++ {
		i--
	}
	if i < 0 {
		return operand{}
	}
	if pronouns {
		for steps := 0; i >= 0 && steps < 8 && q.toks[i].kind == word && !codeWord(q.toks[i].text); steps++ {
			i-- // which is wrong, and it …: what was quoted last is meant
			for steps := 0; q.gap(i) && steps < 4; steps++ {
				i--
			}
			if i >= 0 && (q.toks[i].is(".") || q.toks[i].is(";")) {
				i--
			}
		}
	}
	if i < 0 {
		return operand{}
	}
	if literalToken(q.toks[i]) {
		return q.quote(i)
	}
	to := i + 1
	from := to
	for from > 0 && to-from < 6 && q.toks[from-1].kind == word && bare(q.toks[from-1]) != "" &&
		(from == to || !pageFile(q.toks[from-1].text) && !plainURL.MatchString(q.toks[from-1].text)) { // these say where
		from--
	}
	o := operand{from: from, to: to}
	for k := from; k < to; k++ {
		o.texts = append(o.texts, q.run(k, to))
	}
	return o
}

// leads reports whether a word only leads to an operand: "the word", "read".
func (q *reader) leads(i int) bool {
	if q.toks[i].kind != word || !operandNouns[q.toks[i].low] && !states[q.toks[i].low] || i+1 >= len(q.toks) {
		return false
	}
	next := q.toks[i+1]
	return !next.is(".") && !(next.kind == word && runStops[next.low] && next.low != "to")
}

// behind is the operand that begins at token i.
func (q *reader) behind(i int) operand {
	for steps := 0; i < len(q.toks) && steps < 10 && (q.gap(i) || q.leads(i)); steps++ {
		i++
	}
	if i >= len(q.toks) {
		return operand{}
	}
	if literalToken(q.toks[i]) {
		return q.quote(i)
	}
	to := q.runs(i)
	if to < len(q.toks) && to-i < 4 && literalToken(q.toks[to]) { // to the adverb "x"
		return q.quote(to)
	}
	if to == i || to < len(q.toks) && literalToken(q.toks[to]) && !q.bracketed(to) || to-i == 8 && to < len(q.toks) && q.toks[to].kind == word {
		return operand{}
	}
	o := operand{texts: []string{q.run(i, to)}, from: i, to: to}
	if i > 0 && article(q.toks[i-1].low) {
		o.article = q.toks[i-1].text
	}
	return o
}

// runs is the end of a run of words that begins at token i: eight at most, up to what ends one.
func (q *reader) runs(i int) int {
	to := i
	for to < len(q.toks) && to-i < 8 && q.toks[to].kind == word && !arrow(q.toks[to].text) && !issueNumber.MatchString(q.toks[to].text) &&
		(to == i || !runStops[q.toks[to].low] && !q.bracketed(to)) {
		to++
	}
	return to
}

// bracketed reports whether what is said in brackets begins with a token: "a to b (it was renamed)".
func (q *reader) bracketed(i int) bool {
	gap := q.src[q.toks[i-1].end:q.toks[i].start]
	return strings.HasPrefix(gap, " ") && strings.Contains(gap, "(")
}

func (q *reader) run(from, to int) string {
	if to-from == 1 {
		return bare(q.toks[from])
	}
	s := unemphasized(q.src[q.toks[from].start:q.toks[to-1].end])
	return strings.Join(strings.Fields(s), " ")
}

// arrow reports whether a word is an arrow: drawn with strokes, or a character that is one.
func arrow(s string) bool {
	switch s {
	case "->", "=>", "-->", "--->", "==>", "–>", "—>", "-to->", ">>", "»":
		return true
	}
	r, n := utf8.DecodeRuneInString(s)
	return n > 1 && unicode.Is(arrows, r) && strings.TrimPrefix(s[n:], "\ufe0f") == ""
}

// arrows are the blocks of Unicode that are arrows, and those of the dingbats.
var arrows = &unicode.RangeTable{
	R16: []unicode.Range16{{0x2190, 0x21ff, 1}, {0x2794, 0x27be, 1}, {0x27f0, 0x27ff, 1}, {0x2900, 0x297f, 1}, {0x2b00, 0x2b11, 1}},
	R32: []unicode.Range32{{0x1f800, 0x1f8ff, 1}},
}

// codeWord reports whether a word without quotes can only be meant as it is written.
func codeWord(s string) bool {
	s = strings.Trim(s, ".,;:()")
	for i, r := range s {
		if i > 0 && (unicode.IsUpper(r) || r == '-' && i < len(s)-1) || unicode.IsDigit(r) || strings.ContainsRune("_/.$@=<>[]{}#", r) {
			return true
		}
	}
	return strings.HasPrefix(s, "--")
}

// alike reports whether one text may be a slip of the pen away from another.
func alike(a, b string) bool { return slip(a, b, 5, 2) }

// slip reports whether at most a share of the characters of two texts differ: most of each all.
func slip(a, b string, all, most int) bool {
	if a == b || len(a) > 60 || len(b) > 60 {
		return false
	}
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for j := range y {
			cost := last
			if x[i] != y[j] {
				cost = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], cost
		}
	}
	return all*row[len(y)] <= most*max(len(x), len(y))
}

// named reports whether every word of a text is a name or code.
func named(s string) bool {
	words := strings.Fields(s)
	for _, w := range words {
		if !codeWord(w) && !unicode.IsUpper([]rune(w)[0]) {
			return false
		}
	}
	return len(words) > 0 && (len(words) > 1 || codeWord(s))
}

// add keeps a reading. Words without quotes are taken for texts only if they can hardly be anything else.
func (q *reader) add(old, now operand, how edit.Cue) {
	if !old.ok() || !now.ok() {
		return
	}
	var r edit.Reading
	if !old.literal && !now.literal {
		now.texts = lengths(now.texts, old.texts)
	}
	old, now = q.unpointed(old, now)
	if q.severed(old, now) {
		q.req.Other = true
		return
	}
	if old.literal && now.literal && len(old.texts) == 1 && len(now.texts) == 1 {
		old.texts[0], now.texts[0] = q.unmarked(old, now)
	}
	cut := !now.literal && now.to < len(q.toks) && q.toks[now.to].kind == word && !q.bracketed(now.to)
	r.Pairs = q.pairs(old, now, how, cut)
	if len(r.Pairs) == 0 {
		return
	}
	r.Cue, r.Literal = how, old.literal && now.literal
	r.Placed = cut && how == edit.Arrow && !old.literal && q.toks[now.to].low == "in" &&
		!slices.ContainsFunc(r.Pairs, func(p edit.Pair) bool { return sure(p.Old, p.New) })
	q.req.Readings = append(q.req.Readings, r)
	for _, o := range []operand{old, now} {
		for i := o.from; i < o.to; i++ {
			q.used[i] = true
		}
	}
}

// severed reports whether two operands in words are cut off at marks that may be parts of them: at one without a blank
// ("alpha,beta"), or both at the same one ("Hello, world -> Hello, World").
func (q *reader) severed(old, now operand) bool {
	sign := func(o operand, at int) (text string, tight bool) {
		if o.literal || at < 0 || at >= len(q.toks) || q.toks[at].kind != mark || !strings.Contains(",;!?", q.toks[at].text) {
			return "", false
		}
		t := q.toks[at]
		return t.text, t.start > 0 && t.end < len(q.src) && !strings.ContainsAny(q.src[t.start-1:t.start]+q.src[t.end:t.end+1], " \t\n")
	}
	if !old.literal && old.to > old.from && old.to < len(q.toks) { // "free (for now) -> free (forever)"
		gap := q.src[q.toks[old.to-1].end:q.toks[old.to].start]
		if strings.Contains(gap, ")") && strings.Contains(q.src[max(q.toks[old.from].start-1, 0):q.toks[old.to-1].end], "(") {
			return true
		}
	}
	before, tight := sign(old, old.from-1)
	behind, tightToo := sign(now, now.to)
	return tight || tightToo || before != "" && before == behind
}

// pairs are the ways in which two operands may be meant.
func (q *reader) pairs(old, now operand, how edit.Cue, cut bool) (out []edit.Pair) {
	listed := now.to+1 < len(q.toks) && q.toks[now.to].is(",") && q.toks[now.to+1].kind == word && codeWord(q.toks[now.to+1].text) // "the color to 21, 23, 26"
	for i, o := range old.texts {
		for _, n := range now.texts {
			if i > 0 && !old.literal && startsWithDigit(n) && !startsWithDigit(o) && startsWithDigit(old.texts[i-1]) { // "2 GB should be 4GB"
				continue
			}
			if first, _, more := strings.Cut(o, " "); more && article(strings.ToLower(first)) && now.article != "" {
				n = now.article + " " + n
			}
			o, n = shortened(o, n)
			if o != old.texts[0] && runStops[strings.ToLower(o)] { // "ought to -> should" says nothing of "to"
				continue
			}
			if !now.literal && (listed && !alike(o, n) || cut && !old.literal && q.within(o, n, now.to, how)) {
				continue
			}
			if meant(o, n, old.literal, now.literal, how) {
				out = append(out, edit.Pair{Old: o, New: n})
			}
		}
	}
	return out
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// within reports whether a word that a new text is cut off at may belong to it: "a b -> a on b", "a in b -> c in b".
func (q *reader) within(old, now string, at int, how edit.Cue) bool {
	stop := q.toks[at].low
	if strings.Contains(" "+strings.ToLower(old)+" ", " "+stop+" ") {
		return true
	}
	return how == edit.Arrow && !sure(old, now) && !(stop == "in" && len(strings.Fields(old)) == len(strings.Fields(now)))
}

// meant reports whether two texts may be an old and a new one. What is in quotes may; words without are hardly anything
// else if they are code, names, or a slip of the pen away from each other.
func meant(old, now string, oldQuoted, nowQuoted bool, how edit.Cue) bool {
	switch {
	case old == now || pronouns[strings.ToLower(old)] || min(len(old), len(now)) == 0 || max(len(old), len(now)) > maxOperand:
		return false
	case oldQuoted && nowQuoted:
		return !fragment(old, now)
	case !oldQuoted && (how != edit.Arrow && operandNouns[strings.ToLower(old)] || pageFile(old) && !pageFile(now)): // it says what the other text is
		return false
	case !inStep(old, now), numeric(old) != numeric(now) && !alike(old, now):
		return false
	case alike(old, now), len(old) > 3 && strings.Contains(now, old):
		return true
	case oldQuoted || nowQuoted:
		return codeWord(old) && codeWord(now)
	}
	return how == edit.Arrow || named(old) && named(now) || how == edit.Verb && oneOff(old, now)
}

// inStep reports whether two runs of words may be cut off at the same places: they are of one length, or begin alike.
func inStep(old, now string) bool {
	a, b := strings.Fields(old), strings.Fields(now)
	return len(a) == len(b) || strings.EqualFold(a[0], b[0]) || len(a) == 1 && codeWord(old)
}

// numeric reports whether a text is a number, or the number of a version.
func numeric(s string) bool { return strings.Trim(s, "0123456789.") == "" }

// oneOff reports whether two runs of words differ in one word of several: "plugin register", "plugin add".
func oneOff(old, now string) bool {
	a, b := strings.Fields(old), strings.Fields(now)
	if len(a) < 2 || len(a) != len(b) {
		return false
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n == 1 && !article(strings.ToLower(a[0]))
}

// fragment reports whether one text is but a part of what would have to stand in the place of the other: the rest of
// the old one is meant to stay.
func fragment(old, now string) bool {
	a, b := strings.Fields(old), strings.Fields(now)
	if len(b) < 2 || len(a) < len(b)+3 {
		return false
	}
	return a[0] == b[0] || a[len(a)-1] == b[len(b)-1]
}

// lengths adds to a run of words its beginnings that are a slip of the pen away from an old text: what follows them is
// said of them. "Trity -> Trivy typo".
func lengths(now, old []string) []string {
	if len(now) != 1 || len(old) > 0 && named(old[0]) && named(now[0]) { // two whole names
		return now
	}
	words := strings.Fields(now[0])
	for n := 1; n < len(words); n++ {
		if head := strings.Join(words[:n], " "); slices.ContainsFunc(old, func(o string) bool { return len(strings.Fields(o)) == n && alike(o, head) }) {
			return []string{head}
		}
	}
	return now
}

var (
	changeVerbs = wordSet(`replace replaced replaces replacing change changed changes changing rename renamed renames renaming update updated updates updating correct corrected corrects correcting fix fixed fixes fixing
		convert converted switch switched swap swapped tweak tweaked substitute substituted turn turned edit edited rewrite modify modified reword reworded amend amended adjust adjusted moved`)
	leadsTo  = wordSet(`pointing points pointed leading leads linking links linked referring refers redirecting redirects redirected going goes due related relating according belonging`) // to what is there
	modals   = wordSet(`should must shall could`)
	states   = wordSet(`be read say says point link state refer spell spelled called use show`)
	sayWords = wordSet(`says say said reads read has have had written spelled spelt misspelled misspelt typed used mentions mentioned shows specifies specified uses used referenced contains states wrote using put called suggests suggesting was were typed`)
)

var pronouns = wordSet(`it this that these those them they which what something everything one`)

// words reports whether words stand at token i.
func (q *reader) words(i int, list ...string) bool {
	if i < 0 || i+len(list) > len(q.toks) {
		return false
	}
	for k, w := range list {
		if q.toks[i+k].low != w {
			return false
		}
	}
	return true
}

// at looks for a change around one token.
func (q *reader) at(i int) {
	t := q.toks[i]
	switch {
	case t.kind == block:
		q.patch(t)
	case t.kind == literalText:
		q.arrowWithin(i)
		if w := strings.Fields(t.text); len(w) == 2 && q.slipped { // typo: "the the"
			if again := strings.TrimRight(w[1], ".,"); strings.EqualFold(w[0], again) {
				q.add(q.quote(i), operand{texts: []string{w[0] + w[1][len(again):]}, literal: true, from: i, to: i + 1}, edit.Should)
			}
		}
	case t.kind != word:
	case t.low == "typo" || t.low == "typos":
		q.slipped = true
		q.misspelled(i)
	case arrow(t.text):
		q.arrow(i)
	case t.low == "to":
		q.typoTo(i)
	case t.text == ">":
		q.slip(i)
	case substitution.MatchString(t.text):
		q.substitute(i)
	case strings.Contains(t.text, "->") && !strings.Contains(t.text, "-->"), strings.Contains(t.text, "→"), strings.Contains(t.text, "=>"):
		q.joined(i)
	case t.low == "from":
		q.from(i)
	case changeVerbs[t.low]:
		q.between(i + 1)
		if q.words(i+1, "to") || q.words(i+1, "with") || q.words(i+1, "by") {
			q.add(q.before(q.auxiliary(i), true), q.behind(i+2), edit.Verb)
		}
	default:
		q.states(i)
	}
}

// states looks for a sentence that states what is wrong, around one word.
func (q *reader) states(i int) {
	t := q.toks[i]
	switch {
	case q.words(i, "instead", "of"), q.words(i, "rather", "than"), q.words(i, "in", "place", "of"):
		n := 2
		if t.low == "in" {
			n = 3
		}
		q.instead(i, i+n)
	case modals[t.low], q.words(i, "has", "to"), q.words(i, "needs", "to"), q.words(i, "ought", "to"), q.words(i, "supposed", "to"),
		q.words(i, "suppose", "to"), q.words(i, "meant", "to"):
		q.should(i)
	case (t.low == "is" || t.low == "are") && (q.words(i+1, "called", "now") || q.words(i+1, "now", "called") || q.words(i+1, "now")):
		k := i + 1
		for k < len(q.toks) && (q.toks[k].low == "now" || q.toks[k].low == "called") {
			k++
		}
		q.add(q.before(i, false), q.behind(k), edit.Should)
	case t.low == "now" && q.words(i+1, "is"):
		q.add(q.before(i, false), q.behind(i+2), edit.Should)
	case t.low == "is" || t.low == "are":
		q.told(i)
	case t.low == "as" && i > 1:
		q.writtenAs(i)
	case t.low == "not" && i+1 < len(q.toks):
		q.contrast(i)
	}
}

// auxiliary is where "has been", "is to be" before a participle begin.
func (q *reader) auxiliary(i int) int {
	for i > 0 && (auxiliary[q.toks[i-1].low] || q.toks[i-1].low == "been" || q.toks[i-1].low == "be" || q.toks[i-1].low == "now" ||
		q.toks[i-1].low == "got" || q.toks[i-1].low == "needs" || q.toks[i-1].low == "should") {
		i--
	}
	return i
}

// slip reads "a > b", where one is a slip of the pen away from the other: a path through menus is written so too.
func (q *reader) slip(i int) {
	old, now := q.before(i, false), q.behind(i+1)
	old.texts = slices.DeleteFunc(old.texts, func(o string) bool {
		return !slices.ContainsFunc(now.texts, func(n string) bool { return alike(o, n) })
	})
	q.add(old, now, edit.Arrow)
}

// line are the tokens of the line that token i stands on, without the mark of a list.
func (q *reader) line(i int) [2]int {
	from, to := i, i
	for from > 0 && q.toks[from-1].kind != newline && q.toks[from-1].text != "•" {
		from--
	}
	for to < len(q.toks) && q.toks[to].kind != newline {
		to++
	}
	return [2]int{from, to}
}

// arrow reads "a -> b". Where that is all of a line, in words, the whole of each side is looked for first.
func (q *reader) arrow(i int) {
	before := len(q.req.Readings)
	old, now := q.before(i, false), q.behind(i+1)
	if q.chained(old, now) {
		return
	}
	q.add(old, now, edit.Arrow)
	from, to := q.line(i)[0], q.line(i)[1]
	for k := i + 2; k < to; k++ {
		if q.bracketed(k) || issueNumber.MatchString(q.toks[k].text) {
			to = k
		}
	}
	if i == from || i-from >= 8 || i+1 >= to || to-i >= 8 || to-from <= 3 ||
		slices.ContainsFunc(q.toks[from:to], func(t token) bool { return t.kind != word || pageFile(t.text) }) ||
		slices.ContainsFunc(q.toks[i+1:to], func(t token) bool { return arrow(t.text) }) ||
		slices.ContainsFunc(q.toks[i+1:to], func(t token) bool {
			return beforePlace[t.low] && q.toks[i-1].low != q.toks[to-1].low && !slices.ContainsFunc(q.toks[from:i], func(o token) bool { return o.low == t.low })
		}) {
		return
	}
	whole := edit.Pair{Old: q.run(from, i), New: q.run(i+1, to)}
	if len(q.req.Readings) == before {
		q.add(operand{texts: []string{whole.Old}, literal: true, from: from, to: i}, operand{texts: []string{whole.New}, literal: true, from: i + 1, to: to}, edit.Arrow)
	}
	if n := len(q.req.Readings); n > before && (inStep(whole.Old, whole.New) ||
		!slices.ContainsFunc(q.req.Readings[n-1].Pairs, func(p edit.Pair) bool { return p.New == whole.New && alike(p.Old, p.New) })) {
		last := &q.req.Readings[n-1]
		last.Pairs = slices.Insert(slices.DeleteFunc(last.Pairs, func(p edit.Pair) bool { return p == whole }), 0, whole)
		last.Whole, last.Literal = true, false
	}
}

// chained reports whether two operands of an arrow stand beside another one: a path through menus, or several steps.
func (q *reader) chained(old, now operand) bool {
	return now.ok() && now.to < len(q.toks) && arrow(q.toks[now.to].text) || old.ok() && old.from > 0 && arrow(q.toks[old.from-1].text)
}

// beforePlace are words before a place, which is no part of what is to stand there.
var beforePlace = wordSet(`in on at for from of within throughout everywhere`)

// arrowWithin reads 'a -> b', quotes and all.
func (q *reader) arrowWithin(i int) {
	for _, a := range []string{" -> ", " → ", " => "} {
		if l, r, ok := strings.Cut(q.toks[i].text, a); ok && alike(strings.TrimSpace(l), strings.TrimSpace(r)) {
			q.add(operand{texts: []string{strings.TrimSpace(l)}, literal: true, from: i, to: i + 1},
				operand{texts: []string{strings.TrimSpace(r)}, literal: true, from: i, to: i + 1}, edit.Arrow)
		}
	}
}

// joined reads a->b.
func (q *reader) joined(i int) {
	for _, a := range []string{"->", "→", "=>"} {
		if l, r, ok := strings.Cut(q.toks[i].text, a); ok && strings.Trim(l, "*`") != "" && strings.Trim(r, "*`") != "" {
			q.add(operand{texts: []string{strings.Trim(l, "*`_")}, from: i, to: i + 1},
				operand{texts: []string{strings.Trim(r, "*`_")}, from: i, to: i + 1}, edit.Arrow)
			return
		}
	}
}

// between reads "replace X with Y", "from X to Y".
func (q *reader) between(i int) {
	if q.words(i, "from") {
		return // "from" is read by itself
	}
	verb := i
	i = q.introduced(i)
	for k := i; k < len(q.toks) && k < i+12; k++ {
		t := q.toks[k]
		switch {
		case t.is("."), t.is(";"), t.kind == newline && k > i && !q.beside(k), k > i && arrow(t.text):
			return // an arrow is read by itself
		case t.low == "from" && t.kind == word: // is read by itself
			return
		case k > verb && t.low == "to" && q.sample(verb, k):
			return
		case k > i && (t.low == "to" || t.low == "with" || t.low == "by" || t.low == "into"):
			if t.low == "to" && q.pointed(i, k) { // the link to x, to y
				continue
			}
			if now := q.behind(k + 1); !q.contrasted(now) && !leadsTo[q.toks[k-1].low] {
				q.add(q.among(i, k), now, edit.Verb)
				q.next(now)
			}
			return
		}
	}
}

// introduced is behind the words that only lead to an operand.
func (q *reader) introduced(i int) int {
	for steps := 0; i < len(q.toks) && steps < 9; steps++ {
		if t := q.toks[i]; !t.is(":") && t.kind != newline && (t.kind != word || !operandNouns[t.low] || t.low == "to") {
			break
		}
		i++
	}
	return i
}

// pointed reports whether "to" stands before a text in quotes that something leads to, and another one is said behind it.
func (q *reader) pointed(from, to int) bool {
	if q.lastLiteral(from, to) >= 0 || to+1 >= len(q.toks) || !literalToken(q.toks[to+1]) {
		return false
	}
	for k := to + 2; k < len(q.toks) && k < to+8 && !q.toks[k].ends(); k++ {
		if literalToken(q.toks[k]) {
			return q.toks[to+2].low == "to" || q.toks[to+2].low == "with" || q.toks[to+2].low == "by"
		}
	}
	return false
}

// next reads what a list of changes goes on with: "a" to "b", and "c" to "d".
func (q *reader) next(now operand) {
	i := now.to
	for now.literal && i < len(q.toks) && (q.gap(i) || q.toks[i].low == "and") {
		i++
	}
	if now.literal && i > now.to && i+1 < len(q.toks) && literalToken(q.toks[i]) && (q.toks[i+1].low == "to" || q.toks[i+1].low == "with") {
		q.between(i)
	}
}

// among is the operand in some tokens: the text in quotes, else their words, else the one word that is code.
func (q *reader) among(from, to int) operand {
	end := to
	for end > from && q.gap(end-1) {
		end--
	}
	if lit := q.lastLiteral(from, end); lit >= 0 {
		return q.quote(lit)
	}
	old := operand{from: from, to: to}
	if slices.ContainsFunc(q.toks[from:end], literalToken) { // several: the last one, if it is not one of a list
		if rest := slices.IndexFunc(q.toks[from:end-1], func(t token) bool { return literalToken(t) && !pageFile(t.text) }); rest < 0 && literalToken(q.toks[end-1]) && !pageFile(q.toks[end-1].text) {
			return q.quote(end - 1) // in `a.md`, "x" to "y"
		}
		if end-from > 1 && literalToken(q.toks[end-1]) && !slices.ContainsFunc(q.toks[from:end-1], func(t token) bool {
			return t.is(",") || t.low == "and" || t.low == "or"
		}) && !literalToken(q.toks[end-2]) {
			return q.quote(end - 1)
		}
		return old
	}
	for s := from; s < end && s < from+6; s++ {
		old.texts = append(old.texts, q.run(s, end))
	}
	if code := q.code(from, min(end, from+6)); len(code) == 1 { // "the aes_key file"
		old.texts = append(old.texts, code[0])
	}
	return old
}

// code are the words among some tokens that can only be meant as they are written.
func (q *reader) code(from, to int) (out []string) {
	for _, t := range q.toks[from:to] {
		if w := bare(t); t.kind == word && codeWord(w) {
			out = append(out, w)
		}
	}
	return out
}

// beside reports whether a line ends beside a text in quotes or a colon: what belongs together may stand on several lines.
func (q *reader) beside(k int) bool {
	for i := k - 1; i >= 0 && i >= k-3; i-- {
		if q.toks[i].kind != newline {
			if literalToken(q.toks[i]) || q.toks[i].is(":") {
				return true
			}
			break
		}
	}
	for i := k + 1; i < len(q.toks) && i <= k+3; i++ {
		if q.toks[i].kind != newline {
			return literalToken(q.toks[i]) || q.toks[i].is(":")
		}
	}
	return false
}

// lastLiteral is the one text in quotes among some tokens; -1 if there is none, or more than one.
func (q *reader) lastLiteral(from, to int) int {
	at := -1
	for i := from; i < to; i++ {
		if literalToken(q.toks[i]) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// ahead is the operand that "instead of" stands behind: one word without quotes, unless what was quoted or is code is meant.
func (q *reader) ahead(i int, second operand) operand {
	first := q.before(i, false)
	if !first.ok() && i > 0 && q.toks[i-1].kind == word { // "use `x` in the list instead of `y`"
		first = q.before(i, true)
	}
	if first.literal || !first.ok() {
		return first
	}
	run := first.from
	first.texts, first.from = first.texts[len(first.texts)-1:], first.to-1
	clause := max(0, i-9)
	for k := clause; k < i; k++ {
		if q.toks[k].ends() {
			clause = k + 1
		}
	}
	if lit := q.lastLiteral(clause, i); lit >= 0 && !codeWord(first.texts[0]) {
		return q.quote(lit)
	}
	if code := q.code(run, i); len(code) == 1 && second.ok() && codeWord(second.texts[0]) { // the acme/tide repository
		first.texts = code
	}
	return first
}

// instead reads "Y instead of X", and "it says X instead of Y".
func (q *reader) instead(i, next int) {
	second := q.behind(next)
	first := q.ahead(i, second)
	lead := first.from - 1
	for q.gap(lead) {
		lead--
	}
	if first.ok() && lead >= 0 && (q.toks[lead].low == "typo" || q.toks[lead].low == "typos") { // "typo: x instead of y"
		q.add(first, second, edit.Should)
		return
	}
	for k := first.to; k < i; k++ { // 'x' used instead of 'y'
		if sayWords[q.toks[k].low] || q.toks[k].low == "is" || q.toks[k].low == "appears" {
			q.add(first, second, edit.Should)
			return
		}
	}
	for k := first.from - 1; k >= 0 && k > first.from-8; k-- {
		t := q.toks[k]
		switch {
		case t.kind == word && experiences[t.low]: // what happened to somebody
			return
		case k > 0 && calledWrong[q.toks[k-1].low] && t.low == "use": // mistaken use of x
			q.add(first, second, edit.Should)
			return
		case modals[t.low], t.low == "use", t.low == "refer", t.low == "reference":
			q.add(second, first, edit.Should)
			return
		case t.kind == word && sayWords[t.low]:
			if k > 0 && (q.toks[k-1].low == "to" && !q.words(k-2, "used") || modals[q.toks[k-1].low]) { // it is updated to read x instead of y
				first, second = second, first
			}
			q.add(first, second, edit.Should)
			return
		case t.ends():
			k = -1
		}
	}
	q.add(second, first, edit.Unsure)
}

// should reads "X should be Y", "it has to read Y".
func (q *reader) should(i int) {
	k := i + 1
	for k < len(q.toks) && k < i+4 && q.toks[k].kind == word && adverbs[q.toks[k].low] && !q.words(k, "be") {
		k++
	}
	switch {
	case q.words(k, "have", "been"):
		k += 2
	case k < len(q.toks) && states[q.toks[k].low]:
		k++
	default:
		return
	}
	for k < len(q.toks) && q.toks[k].kind == word && (adverbs[q.toks[k].low] || changeVerbs[q.toks[k].low] || q.toks[k].low == "with") {
		k++
	}
	now := q.behind(k)
	if !now.ok() {
		return
	}
	if q.contrasted(now) {
		return
	}
	old := q.before(i, false)
	if !old.literal {
		if lit := q.before(i, true); lit.literal || !now.literal && !old.ok() {
			old = lit
		}
	}
	q.add(old, now, edit.Should)
}

// contrasted reports whether it is said behind an operand what it stands instead of.
func (q *reader) contrasted(o operand) bool {
	for n := o.to; o.ok() && n < o.to+4; n++ {
		if q.words(n, "instead", "of") || q.words(n, "rather", "than") || q.words(n, "not") {
			return true
		}
	}
	return false
}

// misspelled reads "typo in X, it says Y".
func (q *reader) misspelled(i int) {
	var lits []int
	says := -1
	for k := i + 1; k < len(q.toks) && k < i+16 && len(lits) < 2 && !q.toks[k].is(".") && !(q.toks[k].kind == newline && q.toks[k-1].kind == newline); k++ {
		if q.toks[k].low == "instead" { // is read by itself
			return
		}
		if literalToken(q.toks[k]) {
			lits = append(lits, k)
		}
		if len(lits) == 1 && sayWords[q.toks[k].low] {
			says = k
		}
	}
	if len(lits) == 2 && says > 0 && !modals[q.toks[says-1].low] {
		q.add(q.quote(lits[1]), q.quote(lits[0]), edit.Should)
	}
}

// patch reads a diff in a fenced block: what goes and what comes in its place.
func (q *reader) patch(t token) {
	var old, now []string
	came := byte(0)
	flush := func() {
		if len(old) > 0 && len(now) > 0 && len(old)+len(now) < 60 {
			q.req.Readings = append(q.req.Readings, edit.Reading{Pairs: []edit.Pair{{Old: strings.Join(old, "\n"),
				New: strings.Join(now, "\n")}}, Cue: edit.Arrow, Literal: true})
		}
		old, now = nil, nil
	}
	for line := range strings.Lines(t.text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			if f := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line[3:]), "a/"), "b/"); workspace.PathLike(f) && t.info == "diff" {
				q.mention(Mention{Text: f, Kind: PathMention})
			}
		case t.info != "diff" && t.info != "patch" && !bareDiff(t.text):
			return
		case strings.HasPrefix(line, "-"):
			if len(now) > 0 && len(old) > 0 && came == '+' {
				flush()
			}
			came = '-'
			old = append(old, strings.TrimSpace(line[1:]))
		case strings.HasPrefix(line, "+"):
			if came == '-' && len(old) > 0 { // what came before it is no part of it
				now = nil
			}
			came = '+'
			now = append(now, strings.TrimSpace(line[1:]))
		default:
			flush()
		}
	}
	flush()
}

var (
	heading    = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+(.+?)|\*\*(.+?)\*\*:?|([A-Z][^.:\n]{2,50}):)[ \t#]*$`)
	nowLabel   = regexp.MustCompile(`(?i)^(?:.*\b(?:current|actual|currently|existing|wrong|incorrect|docs say now|before)\b.*)$`)
	wantLabel  = regexp.MustCompile(`(?i)^(?:.*\b(?:expected|should|proposed|suggested|correct|desired|after|fixed)\b.*)$`)
	issueLabel = regexp.MustCompile(`(?i)^(?:describe\b.*|description|problem|the problem|issue|the issue|what happened|bug)\??$`)
	lastPhrase = regexp.MustCompile(`(?s)^.*?:[ \t]*\n+(.+)$`)
)

// sections reads a template that has what stands there under one heading and what should under another.
func (q *reader) sections() {
	heads := slices.DeleteFunc(heading.FindAllStringSubmatchIndex(q.src, 60), func(h []int) bool { // "The line is:"
		return h[6] >= 0 && !nowLabel.MatchString(q.src[h[6]:h[7]]) && !wantLabel.MatchString(q.src[h[6]:h[7]])
	})
	var now, want, told string
	var quotedNow, loose, plain bool
	for i, h := range heads {
		end := len(q.src)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		title := strings.Trim(q.src[h[0]:h[1]], "#*: \t")
		body := strings.TrimSpace(q.src[h[1]:end])
		switch {
		case body == "" || len(body) > 2*maxOperand:
		case wantLabel.MatchString(title) && want == "":
			want = payload(body)
			plain = len(lex(body)) == 1 || want == onlyLiteral(body) && strings.Contains(strings.ToLower(body), "should ")
			loose = want == body && slices.ContainsFunc(lex(body), literalToken)
		case nowLabel.MatchString(title) && now == "":
			now = payload(body)
			quotedNow = now != body
		case issueLabel.MatchString(title) && told == "":
			told = onlyLiteral(body)
		}
	}
	if now == "" && plain { // the text that the description has is what stands there
		now = told
	}
	if now != "" && want != "" && now != want && !(quotedNow && loose) { // a sentence about it is not what should stand there
		q.req.Readings = append(q.req.Readings, edit.Reading{Pairs: []edit.Pair{{Old: now, New: want}}, Cue: edit.Should, Literal: true})
	}
}

// onlyLiteral is the one text that a section has in quotes; nothing if it has none, or several.
func onlyLiteral(body string) string {
	text := ""
	for _, t := range lex(body) {
		if literalToken(t) {
			if text != "" {
				return ""
			}
			text = shown(t)
		}
	}
	return text
}

var (
	wasLine  = labeled(`was|before|old|current|currently|actual|wrong|incorrect|original|existing`)
	willLine = labeled(`now|after|new|expected|correct|corrected|suggested|suggestion|proposed|should be|fixed|correction`)

	errorLine = labeled(`error|typo|mistake`)
	fixLine   = labeled(`(?:suggested|proposed) (?:fix|correction|change)|correction|should (?:be|read|say)`)
)

// labeled matches a line that begins with one of some words as its label.
func labeled(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?mi)^[ \t]*(?:[-*][ \t]+)?[*_]{0,2}(?:` + words + `)(?: (?:text|version|line|wording|sentence|link|url|value))?[*_]{0,2}[ \t]*(?::[*_]{0,2}|=)[ \t]+(\S.*)$`)
}

// labels reads two lines that say which is the old text and which the new one: "Was: …", "Now: …".
func (q *reader) labels() {
	was, will := wasLine.FindAllStringSubmatch(q.src, 2), willLine.FindAllStringSubmatch(q.src, 2)
	if len(was) == 1 && len(will) == 1 {
		q.lines(was[0][1], will[0][1])
	}
	if was, will := errorLine.FindAllStringSubmatch(q.src, 2), fixLine.FindAllStringSubmatch(q.src, 2); len(was) == 1 && len(will) == 1 {
		q.lines(was[0][1], will[0][1])
	}
	for _, m := range append(cueLine.FindAllStringSubmatch(q.src, 10), fromLine.FindAllStringSubmatch(q.src, 10)...) {
		q.lines(m[1], m[2])
	}
}

// cueLine matches two lines with what makes one of the other between them, on a line of its own.
var cueLine = regexp.MustCompile(`(?mi)^[ \t]*(\S.*)\n+[ \t]*(?:(?:it |which |this )?(?:should|must|has to|needs to) (?:be|read|say)|->|→|=>)[ \t]*[:;]?[ \t]*\n+[ \t]*(\S.*)$`)

// fromLine matches a line and what it is changed to, each below a cue with a colon.
var fromLine = regexp.MustCompile(`(?mi)^[^\n]*\b(?:from|replace|change)[ \t]*:[ \t]*\n+[ \t]*(\S[^\n]*)\n+[ \t]*(?:to|by|with|into)[ \t]*:[ \t]*\n+[ \t]*(\S[^\n]*)$`)

// lines reads two lines as they stand, or what they have in quotes.
func (q *reader) lines(was, will string) {
	if old, now := payload(was), payload(will); old != "" && now != "" && old != now && len(old)+len(now) < maxOperand &&
		!slices.ContainsFunc(q.req.Readings, func(r edit.Reading) bool { return r.Pairs[0] == edit.Pair{Old: old, New: now} }) {
		q.req.Readings = append(q.req.Readings, edit.Reading{Pairs: []edit.Pair{{Old: old, New: now}}, Cue: edit.Arrow, Literal: true})
	}
}

// twoAlike reads a request that says of nothing but two texts in quotes, a slip of the pen away from each other, that one is
// wrong: the documentation must tell which.
func (q *reader) twoAlike() {
	var lits []int
	wrong := q.slipped
	for i, t := range q.toks {
		if t.kind == word && verdicts[t.low] { // it is said which is right
			return
		}
		wrong = wrong || faults[t.low]
		if literalToken(t) && t.kind == literalText && !slices.ContainsFunc(lits, func(k int) bool { return shown(q.toks[k]) == shown(t) }) {
			lits = append(lits, i)
		}
	}
	if wrong && len(q.req.Readings) == 0 && len(lits) == 2 && alike(shown(q.toks[lits[0]]), shown(q.toks[lits[1]])) &&
		!pageFile(shown(q.toks[lits[0]])) && !pageFile(shown(q.toks[lits[1]])) {
		q.add(q.quote(lits[1]), q.quote(lits[0]), edit.Either)
	}
}

var (
	faults   = wordSet(`fix fixed fixes correct corrects corrected misspelled misspelling spelling`)
	verdicts = wordSet(`is are was were wrong right not no`)
)

// payload is what a section gives as text: what it has in quotes, or what stands below a line that ends with a colon.
func payload(body string) string {
	toks := lex(body)
	if len(toks) == 1 && literalToken(toks[0]) {
		return shown(toks[0])
	}
	if m := lastPhrase.FindStringSubmatch(body); m != nil && !strings.Contains(strings.TrimSpace(m[1]), "\n") {
		return strings.TrimSpace(m[1])
	}
	if lit := (&reader{parser: &parser{toks: toks}}).lastLiteral(0, len(toks)); lit >= 0 {
		return shown(toks[lit])
	}
	if !strings.Contains(body, "\n") {
		return body
	}
	return ""
}

// mentions finds the pages that the request names.
func (q *reader) mentions() {
	if title, _, ok := strings.Cut(strings.SplitN(strings.TrimSpace(q.src), "\n", 2)[0], ": "); ok && len(title) < 100 {
		q.mention(Mention{Text: title, Kind: TitleMention})
	}
	for i, t := range q.toks {
		name := strings.Trim(t.text, `*_()[]:,"'`)
		if at := lineNumber.FindStringSubmatchIndex(name); at != nil && at[1] == len(name) {
			name = name[:at[2]-1]
		}
		url := plainURL.FindString(t.text)
		if literalToken(t) {
			q.quoted(t)
			name = strings.TrimSpace(t.text)
			if url == name && !q.used[i] {
				q.mention(Mention{Text: url, Kind: URLMention})
			}
		}
		switch {
		case q.used[i]:
		case (t.kind == word || literalToken(t)) && pageFile(name):
			q.mention(Mention{Text: name, Kind: PathMention})
			q.used[i] = true
		case t.kind == word && url != "":
			q.mention(Mention{strings.TrimRight(url, ".,;:!?*_"), URLMention, i > 0 && (q.toks[i-1].low == "in" || q.toks[i-1].low == "on" || q.toks[i-1].low == "at")})
			q.used[i] = true
		case t.kind == word:
			q.titles(i)
		}
	}
}

// titles finds what may be the title of a page around a word: "in the routing guide", "in Routing".
func (q *reader) titles(i int) {
	t := q.toks[i]
	if (t.low == "in" || t.low == "on") && i+1 < len(q.toks) && q.toks[i+1].kind == word && !q.used[i+1] {
		to := i + 2
		for to < len(q.toks) && to <= i+4 && q.toks[to].kind == word && !issueNumber.MatchString(q.toks[to].text) {
			to++
		}
		if to <= i+4 { // the clause ends with it
			q.mention(Mention{Text: q.run(i+1, to), Kind: TitleMention})
		}
	}
	if !mentionNouns[t.low] {
		return
	}
	for from := i - 1; from >= 0 && from >= i-7 && (q.toks[from].kind == word || literalToken(q.toks[from])); from-- {
		if literalToken(q.toks[from]) {
			q.mention(Mention{Text: shown(q.toks[from]), Kind: TitleMention})
			break
		}
		q.mention(Mention{Text: q.run(from, i), Kind: TitleMention})
		q.mention(Mention{Text: q.run(from, i+1), Kind: TitleMention})
	}
}

var mentionNouns = wordSet(`page guide doc docs document tutorial article chapter lesson section documentation reference readme`)

func pageFile(s string) bool {
	return workspace.IsPage(s) && !strings.ContainsAny(s, " \n{}") && len(s) < 300
}

func (q *reader) quoted(t token) {
	if s := shown(t); len(q.req.Quoted) < 60 {
		q.req.Quoted = append(q.req.Quoted, s)
	}
}

var (
	restricts = regexp.MustCompile(`(?i)\b(?:except|unless|excluding|but not|apart from|other than|if and only|only if|only in|only the|not in)\b`)
	forbids   = regexp.MustCompile(`(?i)^[\s\-*>]*(?:please\s+)?(?:do not|don['’]t|never|only (?:in|the|if|for|when|replace|change|fix)|but not|not|leave|keep|without|should (?:we|i)|shall (?:we|i)|what if|is (?:it|this|that)|isn['’]t|why|how (?:do|can|to|about|come)|do (?:we|you|i)|does|did|would it|could it be|when|out of scope|not now)\b`)
)

var quantifiers = wordSet(`all every everywhere both twice throughout each occurrences remaining`)

// rest sorts out what was not read: a sentence that restricts a change, one that gives another order, and the others.
func (q *reader) rest() {
	for pos := 0; pos < len(q.toks); {
		for pos < len(q.toks) && (q.toks[pos].kind == newline || q.toks[pos].kind == mark) {
			pos++
		}
		if pos >= len(q.toks) {
			return
		}
		end := max(q.sentenceEnd(pos), pos+1)
		q.sort(pos, end)
		pos = end
	}
}

// sort sorts one sentence.
func (q *reader) sort(pos, end int) {
	s := strings.TrimSpace(q.src[q.toks[pos].start:q.toks[end-1].end])
	read := false
	for i := pos; i < end; i++ {
		read = read || q.used[i]
	}
	if !read {
		switch {
		case forbids.MatchString(s), retracts.MatchString(s):
			q.req.Limit = s
		case q.orders(pos, end):
			q.req.Other = true
		case len(q.req.Ignored) < 40 && len(s) > 2 && q.courtesy(pos) < end:
			q.req.Ignored = append(q.req.Ignored, s)
		}
		return
	}
	for _, t := range q.toks[pos:end] {
		q.req.Every = q.req.Every || quantifiers[t.low]
	}
	question := end < len(q.toks) && q.toks[end].is("?") && !polite(q.toks[pos]) && !q.goesOn(end) &&
		(q.toks[end].end == len(q.src) || strings.ContainsRune(" \t\n)", rune(q.src[q.toks[end].end])))
	switch {
	case forbids.MatchString(s), restricts.MatchString(s), q.hedged(pos, end), retracts.MatchString(s), question, some(q.toks[pos:end]), conditional(q.toks[pos:end]):
		q.req.Limit = s
	case q.more(pos, end):
		q.req.Other = true
	}
}

// some reports whether a sentence means some of all: every second one, all but one.
func some(toks []token) bool {
	for i, t := range toks {
		next := toks[min(i+1, len(toks)-1)].low
		if (t.low == "every" || t.low == "each") && (ordinals[next] || next == "other") ||
			t.low == "all" && (next == "but" || i > 0 && almost[toks[i-1].low]) {
			return true
		}
	}
	return false
}

var almost = wordSet(`almost nearly not`)

// more reports whether a sentence goes on with another order behind what was read of it.
func (q *reader) more(pos, end int) bool {
	for i := end - 1; i > pos && (!q.used[i] || pageFile(q.toks[i].text)); i-- {
		t, before := q.toks[i], q.toks[i-1]
		switch {
		case t.kind != word:
		case verbs[t.low] && (before.low == "and" || before.low == "then" || before.low == "also"):
			return true
		case (t.low == "with" || t.low == "to" || t.low == "by") && i+1 < end && !q.used[i-1] && codeWord(before.text) && codeWord(q.toks[i+1].text) &&
			!pageFile(before.text) && !pageFile(q.toks[i+1].text): // "…, 8080 with 9090"
			return true
		}
	}
	return false
}

// goesOn reports whether a line goes on behind a mark with a little word: "from odd? to is_odd".
func (q *reader) goesOn(mark int) bool {
	return mark+1 < len(q.toks) && runStops[q.toks[mark+1].low]
}

func polite(t token) bool {
	return t.low == "could" || t.low == "can" || t.low == "would" || t.low == "please"
}

// conditional reports whether a sentence makes a change depend on something: "… if the team agrees".
func conditional(toks []token) bool {
	changed := false
	fault := false // a typo where something is meant otherwise
	for _, t := range toks {
		changed, fault = changed || changeVerbs[t.low], fault || faultNouns[t.low]
		if t.low == "because" { // a reason
			return false
		}
		if changed && (t.low == "if" || t.low == "until" || !fault && (t.low == "where" || t.low == "when")) {
			return true
		}
	}
	return false
}

var otherOrders = wordSet(`add insert append prepend delete remove drop create move rename put write replace set`)

// orders reports whether a sentence that was not read asks for something else to be done.
func (q *reader) orders(pos, end int) bool {
	at := q.skip(pos)
	return at < end && q.toks[at].kind == word && otherOrders[q.toks[at].low] &&
		slices.ContainsFunc(q.toks[at:end], func(t token) bool {
			return literalToken(t) || t.kind == word && (placeWords[t.low] || workspace.PathLike(t.text))
		})
}
