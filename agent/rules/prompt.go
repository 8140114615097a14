package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/agent/edit"
	"docent/agent/say"
	"docent/agent/workspace"
)

// This file is about what stands in a prompt beside its instructions (greetings, lead-ins, a sentence of context,
// thanks), and about what is said if an instruction is not understood.

var (
	greetings = wordSet(`hi hello hey dear greetings`)
	// A lead-in holds these words and no others: "Three things please:", "Here are my changes:".
	leadWords = wordSet(
		`a an the my our some few couple of one two three four five six seven eight nine ten several small quick minor following next these this
		things thing changes change edits edit tasks task items item fixes fix updates update requests request points point
		todos todo to-do list
		please here here's heres are is what i i'd we we'd need want would like have got do make apply also and for you today now asks ask to be done as follows below just`)
	thankWords = wordSet(`thanks thank thx ty cheers`)
	closings   = wordSet(`best kind warm regards sincerely yours wishes`)
	farewells  = [][]string{{"that's", "all"}, {"that", "is", "all"}, {"that's", "it"}, {"that", "is", "it"},
		{"that's", "everything"}, {"nothing", "else"}, {"good", "morning"}, {"good", "afternoon"}, {"good", "evening"},
		{"good", "day"}, {"no", "rush"}, {"no", "hurry"}, {"let", "me", "know"}}
	statements = wordSet(
		`we we've we're our i i've i'm my it it's its they they've their he she there there's this that these those the a an as since because fyi background context some all today yesterday recently currently now last`)
	subjects  = wordSet(`we we've we're i i've i'm it it's they they've he she there there's that's`)
	pastWords = wordSet(
		`became got went began made came took left bought sold built wrote grew won lost said told found met sent kept`)
	auxiliary = wordSet(`is are was were has have had`)
	wishWords = wordSet(
		`should must need needs ought shall want wants would wish wishes better supposed please require requires required expect hope`)
	limitWords = wordSet(
		`not only except unless never without no none neither nor but nothing nowhere apart besides excluding unchanged untouched instead`)
	placeWords = wordSet(
		`page pages file files folder folders directory directories section sections heading headings title titles paragraph paragraphs line lines sentence sentences link links url urls code codeblock codeblocks
		table tables list lists image images figure figures guide guides tutorial tutorials chapter chapters article
		articles quickstart readme index faq sidebar navigation nav menu frontmatter matter
		snippet snippets example examples sample samples block blocks fence fences intro introduction overview reference changelog footer header navbar tab tabs description keyword keywords`)
	nounMarkers = wordSet(
		`a an the our my your this that its their his her new old current next last previous latest big small major minor recent upcoming first second own of`)
	// Words that ask for work on a text, in the form of an order. What may also be a noun is one behind an article.
	orders = wordSet(`rewrite reword rephrase translate improve clean tidy shorten simplify expand extend split merge combine reorder sort group align format restructure reorganise reorganize document describe explain
		mention note link unlink capitalise capitalize lowercase uppercase bold highlight emphasise emphasize indent wrap
		erase purge prune get keep leave skip ignore avoid exclude include preserve spare touch limit restrict
		stop start print show hide redirect copy duplicate import export publish release deploy run execute commit push
		open close check verify review look see ensure do let try go work stay remain apply adjust adapt
		modify alter amend revise polish enhance refactor proofread spellcheck bump enable disable switch shift bring take
		give say tell call name title refer reference cite quote generate produce draft compose complete
		finish fill populate register strip trim cut crop join swap revert undo redo repeat restore reset retitle relocate discard replace rename order place retire scrap repair resolve unset clear`)
	pageNouns = wordSet(`page guide file doc document tutorial article chapter`)
)

func isOrder(w string) bool { return verbs[w] || orders[w] }

// ordered reports whether a sentence may ask for something.
func ordered(toks []token) bool {
	for i, t := range toks {
		if t.kind == word && isOrder(t.low) && (i == 0 || !nounMarkers[toks[i-1].low]) {
			return true
		}
	}
	return false
}

// aside reads what is no instruction: a courtesy, a lead-in, or one sentence of context, which it gives. A sentence
// that might be an instruction, or might say where or how one is meant, is no aside.
func (p *parser) aside(pos int) (end int, context string) {
	if end = p.courtesy(pos); end > pos {
		return end, ""
	}
	end = p.sentenceEnd(pos)
	if isContext(p.toks[pos:end]) {
		return end, p.words(pos, end)
	}
	// "We renamed our product, so rename …": the instruction is the rest of the sentence.
	for i, cuts := pos+1, 0; i < end && cuts < 8; i++ {
		t := p.toks[i]
		if t.kind == mark && (t.text == "," || t.text == ":") || t.low == "so" || t.low == "therefore" || t.low == "hence" {
			cuts++
			k := i
			for k < end && (p.toks[k].kind == mark || p.toks[k].low == "so" || p.toks[k].low == "therefore" ||
				p.toks[k].low == "hence") {
				k++
			}
			if k = p.skip(k); k < end && p.toks[k].kind == word && verbs[p.toks[k].low] && isContext(p.toks[pos:i]) {
				return k, p.words(pos, i)
			}
		}
	}
	return pos, ""
}

func (p *parser) words(from, to int) string {
	return strings.TrimSpace(p.src[p.toks[from].start:p.toks[to-1].end])
}

// sentenceEnd is behind the sentence that begins at pos. A line break ends it if a list item, an empty line or a
// capital follows.
func (p *parser) sentenceEnd(pos int) int {
	for i := pos; i < len(p.toks); i++ {
		t := p.toks[i]
		switch {
		case t.kind == mark && strings.Contains(".;!?•", t.text):
			return i
		case t.kind == newline && i > pos:
			if i+1 >= len(p.toks) || p.toks[i+1].kind != word {
				return i
			}
			if r, _ := utf8.DecodeRuneInString(p.toks[i+1].text); !unicode.IsLower(r) {
				return i
			}
		}
	}
	return len(p.toks)
}

// courtesy reads a greeting, a lead-in or thanks.
func (p *parser) courtesy(pos int) int {
	t := p.toks[pos]
	if t.kind != word {
		return pos
	}
	if end := p.farewell(pos); end > pos {
		return end
	}
	switch {
	case greetings[t.low]:
		return p.name(pos+1, 3)
	case thankWords[t.low] || t.low == "many" && pos+1 < len(p.toks) && thankWords[p.toks[pos+1].low]:
		return p.thanks(pos)
	case closings[t.low]:
		end := pos
		for !p.stops(end) && closings[p.toks[end].low] {
			end++
		}
		if p.stops(end) {
			return p.signature(end)
		}
	case leadWords[t.low]:
		end := pos
		for end < len(p.toks) && (leadWords[p.toks[end].low] || p.toks[end].is(",")) {
			end++
		}
		if end == len(p.toks) || p.toks[end].kind == newline || p.toks[end].kind == mark && strings.Contains(":.!",
			p.toks[end].text) {
			return end
		}
	}
	return pos
}

// stops reports whether a mark, a line end or the end of the prompt is at i.
func (p *parser) stops(i int) bool {
	return i >= len(p.toks) || p.toks[i].kind == newline || p.toks[i].kind == mark
}

// name reads at most n words that can be a name, up to a mark or the end of the line.
func (p *parser) name(i, n int) int {
	for k := i; ; k++ {
		if p.stops(k) {
			return k
		}
		t := p.toks[k]
		if k-i == n || t.kind != word || isOrder(t.low) || placeWords[t.low] || limitWords[t.low] ||
			workspace.PathLike(t.text) || t.low == "please" {
			return i
		}
	}
}

func (p *parser) farewell(pos int) int {
	for _, f := range farewells {
		if pos+len(f) > len(p.toks) || !slices.EqualFunc(p.toks[pos:pos+len(f)], f,
			func(t token, w string) bool { return t.low == w }) {
			continue
		}
		n := 3
		if f[0] == "let" { // me know when it is done
			n = 8
		}
		if end := p.name(pos+len(f), n); p.stops(end) {
			return end
		}
	}
	return pos
}

// thanks reads a sentence of thanks, and the name under it. An instruction may follow in the sentence.
func (p *parser) thanks(pos int) int {
	end := p.sentenceEnd(pos)
	for i := pos; i < end; i++ {
		t := p.toks[i]
		if t.kind == literalText || t.kind == block || t.kind == word && (isOrder(t.low) && i > pos ||
			workspace.PathLike(t.text)) {
			for end = pos + 1; end < len(p.toks) && (p.toks[end].low == "you" || p.toks[end].low == "thanks"); {
				end++
			}
			return end
		}
	}
	return p.signature(end)
}

// signature reads the name under a prompt that has ended with thanks.
func (p *parser) signature(pos int) int {
	n := 0
	for i := pos; i < len(p.toks); i++ {
		t := p.toks[i]
		switch {
		case t.kind == newline || t.kind == mark && t.text != "•":
		case t.kind == word && !isOrder(t.low) && !workspace.PathLike(t.text) && !statements[t.low] && n < 3:
			if r, _ := utf8.DecodeRuneInString(t.text); !unicode.IsUpper(r) {
				return pos
			}
			n++
		default:
			return pos
		}
	}
	return len(p.toks)
}

// isContext reports whether a sentence states something and asks for nothing: it begins like a statement, has no word of
// an order, of a wish or of a limit, quotes nothing, and names no place.
func isContext(toks []token) bool {
	if len(toks) < 2 || len(toks) > 60 {
		return false
	}
	tells := false // it has a verb that states
	for i, t := range toks {
		if t.kind == newline || t.is(",") || t.is(":") && i == 1 {
			continue
		}
		tells = tells || i > 0 && (auxiliary[t.low] || pastWords[t.low] || strings.HasSuffix(t.low, "ed")) ||
			subjects[straight(t.low)]
		if t.kind != word || workspace.PathLike(t.text) || wishWords[t.low] || limitWords[t.low] || placeWords[t.low] ||
			strings.HasSuffix(straight(t.low), "n't") {
			return false
		}
	}
	return tells && !ordered(toks) && (statements[straight(toks[0].low)] || beginsWithName(toks))
}

// straight writes an apostrophe as it is typed.
func straight(w string) string { return strings.ReplaceAll(w, "’", "'") }

// beginsWithName reports whether a sentence is about something with a name: Acme Cloud is …
func beginsWithName(toks []token) bool {
	for i, t := range toks {
		if auxiliary[t.low] {
			return i > 0
		}
		if r, _ := utf8.DecodeRuneInString(t.text); !unicode.IsUpper(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return false
}

// A Guide knows the documentation's pages by name.
type Guide interface {
	Exactly(words string) []string // the pages that have this title or name
	Like(words string) []string    // those that may be meant
}

// byTitle reads an instruction that names its page in words: "on the getting started page". If it is a form but for
// that, and one page alone has that title, the operation is on it; else the misunderstanding says that the path is
// missing.
func (p *parser) byTitle(pos int, m *Memory) (edit.Operation, int, *Misunderstanding) {
	end := p.sentenceEnd(pos)
	if end-pos > 100 {
		return nil, 0, nil // what hostile input may cost is bounded
	}
	for i := end - 1; i > pos+1 && p.within(); i-- {
		if !pageNouns[p.toks[i].low] {
			continue
		}
		for from := i - 1; from > pos && i-from <= 6 && p.toks[from].kind == word && !reserved[p.toks[from].low] &&
			!isOrder(p.toks[from].low) && !workspace.PathLike(p.toks[from].text); from-- {
			if prev := p.toks[from-1].low; prev != "the" && prev != "our" && prev != "my" {
				continue
			}
			said := p.words(from, i)
			name := token{kind: literalText, text: "page.md", start: p.toks[from].start, end: p.toks[i].end}
			title := said + " " + p.toks[i].low
			pages := []string{}
			if m.Guide != nil {
				if pages = m.Guide.Exactly(said); len(pages) == 0 {
					pages = m.Guide.Exactly(title)
				}
			}
			if len(pages) == 1 {
				name.text = pages[0]
			}
			toks := append(slices.Clone(p.toks[:from-1]), token{kind: word, text: "the", low: "the", start: p.toks[from-1].start,
				end: p.toks[from-1].end},
				token{kind: word, text: "page", low: "page", start: name.start, end: name.start}, name)
			q := &parser{src: p.src, toks: append(toks, p.toks[i+1:]...), spent: p.spent + p.steps}
			saved := *m
			op, to, _ := q.operation(pos, m)
			p.spent, p.steps = q.spent+q.steps, 0
			if op == nil {
				*m = saved
				continue
			}
			if len(pages) == 1 {
				return op, to + len(p.toks) - len(q.toks), nil
			}
			*m = saved
			mis := &Misunderstanding{Part: p.sentence(pos), Why: fmt.Sprintf("the path of the page %s is missing",
				say.Quote(said)), Detail: true}
			if m.Guide != nil {
				if len(pages) == 0 {
					pages = m.Guide.Like(said)
				}
				if len(pages) > 0 {
					mis.Why += "; it may be " + say.List(pages)
				}
			}
			mis.Nearest = p.nearest(pos, end, "PAGE")
			return nil, 0, mis
		}
	}
	return nil, 0, nil
}

// Verbs that ask for the same kind of thing.
var kinds = [][]string{
	strings.Fields("replace change update swap substitute exchange convert turn edit modify"), {"rename"},
	strings.Fields("add insert put place include write"), strings.Fields("append prepend"),
	strings.Fields("delete remove drop erase discard"), strings.Fields("create make start new write"),
	strings.Fields("move relocate"), strings.Fields("fix repair correct"), strings.Fields("set write give change update"),
	strings.Fields("use prefer"), strings.Fields("undo revert"),
}

// Words that tell forms with the same verb apart, with other words for the same.
var nouns = map[string]string{
	"heading": "heading", "headings": "heading", "headline": "heading", "section": "section", "sections": "section",
	"paragraph": "paragraph", "line": "paragraph", "sentence": "paragraph", "page": "page", "file": "page",
	"link": "links", "links": "links", "typo": "typos", "typos": "typos", "spelling": "typos", "misspellings": "typos",
	"description": "description", "title": "description", "keywords": "keywords", "frontmatter": "front", "front": "front",
	"navigation": "navigation", "nav": "navigation", "sidebar": "navigation", "menu": "navigation", "lists": "lists",
	"bullets": "lists", "language": "language", "fences": "fences", "everywhere": "everywhere", "content": "content",
}

// nearest is the form that a sentence comes nearest to, with the sentence's own words in it; empty if it is like
// none. What the sentence does not give is shown as … or, for a page, as the given word.
func (p *parser) nearest(from, to int, page string) string {
	toks := p.toks[from:min(to, len(p.toks))]
	w := wordsOf(toks)
	if restriction(toks) != "" {
		return ""
	}
	best, most := "", 0
	for _, e := range examples {
		if score := w.likeness(lex(e)); score > most {
			best, most = e, score
		}
	}
	if most < 3 || !w.covered(lex(best)) {
		return ""
	}
	for _, tail := range []string{" with content", " and unlink"} { // what need not be said
		if head, rest, ok := strings.Cut(best, tail); ok && !w.said["content"] && !w.said["unlink"] &&
			!strings.Contains(rest, `"`) {
			best = head
		}
	}
	if len(w.texts) == 0 && (strings.HasPrefix(best, "replace ") || strings.HasPrefix(best, "rename ") ||
		strings.HasPrefix(best, "change ")) {
		w.texts = unquoted(toks)
	}
	for _, text := range w.texts {
		if slices.Contains(unquoted(toks), text) && !named(text) && text == strings.ToLower(text) {
			return "" // words of the sentence, and no names
		}
	}
	if len(w.texts) == 0 && len(w.paths) == 0 && !isOrder(toks[0].low) {
		return ""
	}
	if len(w.paths) == 0 && w.said["everywhere"] {
		page = "everywhere"
	}
	if best = w.placed(best); best == "" {
		return ""
	}
	return strings.Replace(w.fill(best, page), " in everywhere", " everywhere", 1)
}

// placed is a form with room for each page that is said; empty if it has none, since it would leave out where, or what.
func (w wording) placed(form string) string {
	room := 0
	for _, t := range lex(form) {
		if t.kind == word && workspace.PathLike(t.text) {
			room++
		}
	}
	head, everywhere := strings.CutSuffix(form, " everywhere")
	switch {
	case room >= len(w.paths):
		return form
	case everywhere:
		return head + " in x.md"
	}
	return ""
}

// restriction is what a sentence restricts an instruction by, if no form says that; a hint without it would say more
// than the sentence.
func restriction(toks []token) string {
	for i, t := range toks {
		switch {
		case t.kind != word:
		case limitWords[t.low] && t.low != "instead" && t.low != "but", ordinals[t.low] && i > 0:
			return t.text
		case (t.low == "if" || t.low == "when") && i > 0, t.low == "below" && i > 2, t.low == "above" && i > 2:
			return t.text
		}
	}
	return ""
}

var ordinals = wordSet(`first second third fourth fifth last final next previous top bottom 1st 2nd 3rd`)

// covered reports whether a form has a word for each part of a page that is said, and for each thing of which the
// sentence means one.
func (w wording) covered(form []token) bool {
	has := map[string]bool{}
	for _, t := range form {
		has[t.low], has[nouns[t.low]] = true, true
	}
	for said := range w.said {
		if !placeWords[said] || has[said] || has[nouns[said]] || said == "section" && has["heading"] {
			continue
		}
		if n := nouns[said]; n != "page" && !pageNouns[said] && said != "files" && said != "folder" && said != "folders" {
			return false
		}
	}
	if form[0].low == "fix" && !(w.said["links"] && has["links"]) &&
		!(has["typos"] && (w.said["typos"] || w.said["spelling"] || w.said["misspellings"]) && !w.said["typo"]) {
		return false
	}
	return !(has["links"] && (len(w.texts) > 0 || w.said["link"]) && form[0].low == "fix")
}

// A wording is what a sentence says, for comparing it with forms.
type wording struct {
	verb         string          // the first word of an order
	said         map[string]bool // its words, and what they stand for
	texts, paths []string
}

func wordsOf(toks []token) wording {
	w := wording{said: map[string]bool{}}
	for _, t := range toks {
		switch {
		case isName(t) && workspace.PathLike(t.text):
			w.paths = append(w.paths, t.text)
		case t.kind == literalText || t.kind == block:
			w.texts = append(w.texts, t.text)
		case t.kind == word:
			w.said[t.low] = true
			if n := nouns[t.low]; n != "" {
				w.said[n] = true
			}
			// also "is to be changed"
			for _, base := range []string{t.low, strings.TrimSuffix(t.low, "d"), strings.TrimSuffix(t.low, "ed")} {
				if w.verb == "" && isOrder(base) {
					w.verb = base
				}
			}
		}
	}
	return w
}

// likeness scores how near a form comes to what is said.
func (w wording) likeness(form []token) int {
	verb, score, texts := form[0].low, 0, 0
	switch {
	case w.verb == "rename" && verb == "change" && w.said["section"]: // its heading is what is renamed
		score = 7
	case slices.ContainsFunc(kinds, func(k []string) bool {
		return slices.Contains(k, verb) &&
			slices.Contains(k, w.verb)
	}):
		score = 4
		if w.verb == "make" || w.verb == "start" || w.verb == "write" { // of much else as well
			score = 2
		}
	case !w.said[verb]:
		score = -2
	}
	seen := map[string]bool{}
	for _, t := range form[1:] {
		if t.kind == literalText {
			texts++
		}
		if noun := nouns[t.low]; noun != "" && !seen[noun] {
			seen[noun] = true
			if w.said[noun] {
				score += 3
			} else if noun != "everywhere" && noun != "page" && noun != "content" {
				score--
			}
		}
	}
	if len(w.texts) > 0 {
		score -= max(texts-len(w.texts), len(w.texts)-texts)
	}
	return score
}

// fill puts the texts and paths that are said into a form.
func (w wording) fill(form, page string) string {
	var b strings.Builder
	at := 0
	for _, t := range lex(form) {
		b.WriteString(form[at:t.start])
		at = t.end
		switch {
		case t.kind == literalText:
			text := "…"
			if len(w.texts) > 0 {
				text, w.texts = say.OneLine(w.texts[0], 80), w.texts[1:]
			}
			b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`)
		case t.kind == word && workspace.PathLike(t.text):
			name := page
			if len(w.paths) > 0 {
				name, w.paths = say.OneLine(w.paths[0], 200), w.paths[1:]
			}
			b.WriteString(name)
		default:
			b.WriteString(form[t.start:t.end])
		}
	}
	return b.String() + form[at:]
}

// Known is what can be read of a text that is no instruction: the texts that it quotes, and the pages that it names.
func Known(prompt string) (texts, paths []string) {
	w := wordsOf(lex(prompt[:min(len(prompt), maxRequest)]))
	return w.texts, w.paths
}

// Restriction is what a sentence restricts an instruction by, if that is not known how to do.
func Restriction(sentence string) string { return restriction(lex(sentence)) }

// hole reports whether some tokens have a place that was to be filled in: "…" or PAGE, as hints show them.
func hole(toks []token) bool {
	dots := 0
	found := false
	for _, t := range toks {
		found = found || t.kind == literalText && t.text == "…" || t.kind == word && t.text == "PAGE"
		if t.kind == literalText && t.text == "..." {
			dots++
		}
	}
	return found && dots == 0
}

// SayWhere reports whether each operation says itself where it works, which its account shows; "everywhere" counts if
// the prompt says so.
func SayWhere(prompt string, ops []edit.Operation) bool {
	everywhere := slices.ContainsFunc(lex(prompt), func(t token) bool {
		return t.low == "everywhere" ||
			t.low == "throughout" || t.low == "all"
	})
	return !slices.ContainsFunc(ops, func(op edit.Operation) bool { return !saysWhere(op.Todo(), everywhere) })
}

func saysWhere(todo string, everywhere bool) bool {
	if strings.HasSuffix(todo, "everywhere") {
		return everywhere
	}
	return slices.ContainsFunc(strings.Fields(todo), func(w string) bool {
		return !strings.HasPrefix(w, "“") &&
			workspace.PathLike(strings.Trim(w, ","))
	})
}

// unquoted takes the words that were meant as they stand out of a sentence without quotes: rename A B to C in …
func unquoted(toks []token) (out []string) {
	var words []string
	begun, parted := false, false
	flush := func() {
		if len(words) > 0 {
			out = append(out, strings.Join(words, " "))
			words = nil
		}
	}
	for _, t := range toks {
		switch {
		case t.kind != word || workspace.PathLike(t.text):
			flush()
		case !begun:
			begun = isOrder(t.low)
		case t.low == "to" || t.low == "with" || t.low == "by" || t.low == "into" || t.low == "as":
			flush()
			parted = true
		case t.low == "in" || t.low == "on" || t.low == "from" || t.low == "everywhere" || t.low == "throughout" ||
			t.low == "after" || t.low == "before":
			flush()
			if !parted {
				return nil
			}
			return out
		case len(words)+len(out) == 0 && (reserved[t.low] || nouns[t.low] != "" || t.low == "product" || t.low == "name"):
		default:
			words = append(words, t.text)
		}
	}
	flush()
	if !parted {
		return nil
	}
	return out
}
