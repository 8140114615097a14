package builtin

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"docent/internal/brief"
	"docent/model"
	"docent/model/builtin/blocks"
)

// A reader who asks how two things differ gets what the documentation says that each of them is, one beside the other; a
// passage that speaks of both goes before these.

// A comparison is two things that a question weighs against each other, as it names them.
type comparison [2]string

const thing = `(.{1,80}?)`

// betweenForm is the one of compared in which two things may share a noun.
const betweenForm = 0

// A compareForm is a form in which two things are compared. A question that has none of the words is not matched with
// it: the expressions are slow.
type compareForm struct {
	words []string
	form  *regexp.Regexp
}

// compared are the forms in which two things are compared. They take milliseconds to compile,
// which commands that answer nothing do not spend.
var compared = sync.OnceValue(func() []compareForm {
	return []compareForm{
		{[]string{"between"}, regexp.MustCompile(`(?i)\bdifferen(?:ces?|t|tiates?)\b.{0,20}?\bbetween\s+` + thing +
			`\s+(?:and|&|or|vs\.?|versus)\s+` + thing + `$`)},
		{[]string{"differ"}, regexp.MustCompile(`(?i)\bhow\s+(?:does|do|is|are)\s+` + thing +
			`\s+differ(?:ent)?\s+(?:from|to|than)\s+` + thing + `$`)},
		{[]string{"differ", "compare"}, regexp.MustCompile(`(?i)\bhow\s+(?:do|does)\s+` + thing + `\s+and\s+` + thing +
			`\s+(?:differ|compare)$`)},
		{[]string{"compare"}, regexp.MustCompile(`(?i)\bhow\s+(?:do|does)\s+` + thing + `\s+compare\s+(?:to|with|against)\s+` +
			thing + `$`)},
		{[]string{"compare"}, regexp.MustCompile(`(?i)\bcompare\s+` + thing + `\s+(?:and|with|to|against|vs\.?)\s+` + thing + `$`)},
		{[]string{" over "}, regexp.MustCompile(`(?i)\b(?:advantages?|benefits?|drawbacks?)\s+of\s+(?:using\s+)?` + thing +
			`\s+over\s+` + thing + `$`)},
		{[]string{"instead of", "rather than", " over "}, regexp.MustCompile(`(?i)\b(?:when|why|should|shall|do)\b.{0,30}?` +
			`\b(?:use|choose|prefer|pick|need|want)\s+` + thing + `\s+(?:instead of|rather than|over)\s+` + thing + `$`)},
		{[]string{"instead of", "rather than"}, regexp.MustCompile(`(?i)^(?:why|when)\s+` + thing +
			`\s+(?:instead of|rather than)\s+` + thing + `$`)},
		{[]string{" or "}, regexp.MustCompile(`(?i)\b(?:should|shall|do|can|better to|whether to)\s+(?:i|we|you|one)?\s*(?:better\s+)?` +
			`(?:use|choose|prefer|pick|take|go with)\s+` + thing + `\s+or\s+` + thing + `$`)},
		{[]string{"better"}, regexp.MustCompile(`(?i)\b(?:which|what)\b.{0,30}?\bbetter\b[:,]?\s+` + thing + `\s+or\s+` + thing + `$`)},
		{[]string{" vs", " versus "}, regexp.MustCompile(`(?i)^(?:.{0,40}?(?:when|whether|what is|what are|what's)\s+)?` + thing +
			`\s+(?:vs\.?|versus)\s+` + thing + `$`)},
	}
})

var (
	article    = regexp.MustCompile(`(?i)^(?:(?:the|a|an|using|use|to use|to|i|we|should|do)\s+)+`)
	afterThing = regexp.MustCompile(`(?i)(?:[,;:]\s.*|\s+(?:and|when|if|because|so)\s+(?:when|which|how|what|why|should|i|we|you)\b.*|\s+(?:in|for|with|on)\s+\S+)$`)
)

// comparisonOf reads the two things that a question compares; not ok if it compares none.
func comparisonOf(question string) (c comparison, ok bool) {
	question = brief.Line(strings.TrimRight(strings.TrimRight(gist(question), " \t\n\f\r"), "?.!"))
	if at := strings.IndexAny(question, "?\n"); at > 0 { // what else is asked
		question = question[:at]
	}
	if len(question) > 240 {
		return c, false
	}
	lower := strings.ToLower(question)
	for n, f := range compared() {
		if !hasAny(lower, f.words) {
			continue
		}
		m := f.form.FindStringSubmatch(question)
		if m == nil {
			continue
		}
		for i := range c {
			c[i] = strings.TrimSpace(article.ReplaceAllString(strings.TrimSpace(m[i+1]), ""))
		}
		c[1] = strings.TrimSpace(afterThing.ReplaceAllString(c[1], ""))
		if n == betweenForm && article.FindString(m[1]) == "" {
			c[0] = sharesNoun(c[0], c[1])
		}
		if len(terms(c[0])) > 0 && len(terms(c[1])) > 0 && !strings.EqualFold(c[0], c[1]) {
			return c, true
		}
	}
	return comparison{}, false
}

// sharesNoun gives the first thing the noun that it shares with the second: "path and query parameters".
func sharesNoun(first, second string) string {
	words := strings.Fields(second)
	if strings.Contains(first, " ") || len(words) != 2 || strings.HasSuffix(first, "s") ||
		!strings.HasSuffix(words[1], "s") || strings.EqualFold(first, words[0]) || named(first) {
		return first
	}
	return first + " " + words[1]
}

const (
	onePage    = 0.6 // what it counts that both are defined on one page
	sideWords  = 60  // said of each thing
	sideNamed  = 0.3 // how well a heading has to name a thing
	bothInLine = 2   // sentences of a passage that names both, that are quoted
)

// A side is where one of two compared things is defined.
type side struct {
	passage int
	unit    int
	score   float64
}

// sidesOf finds where a thing is defined on each page best: under its own heading, in the sentence that begins with it,
// or in the row or item that is looked up by it.
func sidesOf(req *model.Request, sections []*section, name string) (all []side) {
	sections = cloned(sections)
	q := newQuery("what is "+name, sections)
	top := 0.0
	for i := range req.Passages {
		top = max(top, req.Passages[i].Score)
	}
	for i, s := range sections {
		p := &req.Passages[i]
		head := q.headFit(s)
		if p.Heading != "" && p.Anchor != "" && q.fit(s, s.head, inHead) < head {
			head /= 3 // the page is named so, and this is one of its sections
		}
		sure := 1 / float64(i+1)
		if top > 0 {
			sure = p.Score / top
		}
		at := slices.IndexFunc(all, func(s side) bool { return req.Passages[s.passage].Path == p.Path })
		lead := true
		for n := range s.units {
			u := &s.units[n]
			if u.kind == heading || u.kind == code {
				continue
			}
			own := q.saysWhat(u)
			whole, share := q.row(u.named)
			named := own > 0 || whole*share > 0 || lead && head >= sideNamed
			score := 0.2*sure + head*boolean(lead) + 0.9*own + 0.8*whole*share
			lead = lead && !named && u.kind != prose
			switch {
			case !named:
			case at < 0:
				at = len(all)
				all = append(all, side{i, n, score})
			case score > all[at].score:
				all[at] = side{i, n, score}
			}
		}
	}
	return all
}

// cloned returns copies of the sections, for another question.
func cloned(sections []*section) []*section {
	all, out := make([]section, len(sections)), make([]*section, len(sections))
	for i, s := range sections {
		all[i].passage = s.passage
		out[i] = &all[i]
	}
	return out
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// saysWhat is how well a unit begins by saying what the thing is that the query names: "A *counter* is …", "**Leaf
// bundle**: …".
func (q *query) saysWhat(u *unit) float64 {
	var buf [32]word
	got, strange, plural := 0.0, 0.0, false
	for _, w := range appendWords(buf[:0], firstWords(u.text)) {
		lower := strings.ToLower(w.text)
		found := termsOf(w.text)
		if len(found) == 0 {
			if got > 0 && definesBy[lower] {
				break
			}
			if got > 0 {
				plural = false
			}
			continue
		}
		at := q.find(found[0].hash)
		switch {
		case at >= 0:
			got += q.weights[at]
			plural = strings.HasSuffix(lower, "s")
			continue
		case got > 0 && (definesBy[lower] || strings.HasSuffix(lower, "s") || plural):
		case got == 0:
			strange += q.unknown
			if strange > 2*q.unknown {
				return 0
			}
			continue
		default:
			strange += q.unknown / 2
			continue
		}
		break
	}
	if got == 0 || q.total == 0 {
		return 0
	}
	fit := min(1, got/q.total) * got / (got + strange)
	if strings.HasPrefix(u.text, "[") { // a link to where it is defined
		fit *= 0.7
	}
	return fit
}

// definesBy are words with which a thing is said to be something.
var definesBy = set("is are means allows lets can represents describes defines refers does was were has have")

// surelyDefined is the score from which a side is about its thing: a heading or a sentence of its own says so.
const surelyDefined = 0.8

// compareThings quotes what is said of each of two things, one after the other; nothing if one of them is said
// nowhere. A table or a paragraph that speaks of both comes first. Sure is whether each has a place of its own.
func compareThings(req *model.Request, sections []*section, c comparison) (out []quote, sure bool) {
	var sides [2]side
	best := 0.0
	seconds := sidesOf(req, sections, c[1])
	for _, first := range sidesOf(req, sections, c[0]) {
		for _, second := range seconds {
			sum := first.score + second.score
			if req.Passages[first.passage].Path == req.Passages[second.passage].Path {
				sum += onePage
			}
			if sum > best {
				best, sides = sum, [2]side{first, second}
			}
		}
	}
	if best == 0 {
		return nil, false
	}
	sure = true
	for i := range sides {
		sure = sure && sides[i].score >= surelyDefined
	}
	if sides[0].passage == sides[1].passage {
		if text := sections[sides[0].passage].rowsOf(sides[0].unit, sides[1].unit); text != "" {
			return []quote{{passage: sides[0].passage, text: text}}, sure
		}
	}
	for _, s := range sides {
		text := sections[s.passage].defining(s.unit)
		if n := slices.IndexFunc(out, func(q quote) bool { return q.passage == s.passage }); n >= 0 {
			if !strings.Contains(out[n].text, text) {
				out[n].text += "\n\n" + text
			}
			continue
		}
		out = append(out, quote{passage: s.passage, text: text})
	}
	switch both := bothOf(req, sections, c); {
	case both.passage < 0 || slices.ContainsFunc(out, func(q quote) bool { return strings.Contains(q.text, both.text) }):
	case both.both: // a table of both
		out = append([]quote{both}, out...)
	default:
		out = append(out, both)
	}
	return out, sure
}

// defining is a unit as it defines a thing: with the rest of a short paragraph after it.
func (s *section) defining(n int) string {
	u := &s.units[n]
	if text := s.rowsOf(n); text != "" {
		return text
	}
	text := u.text
	if u.kind == prose {
		text = firstSentences(u.text, sideWords)
	}
	words := countWords(text)
	if u.of > 0 || u.kind == list && words > shortRest {
		return text
	}
	for k := n + 1; k < len(s.units) && words < sideWords; k++ {
		next := &s.units[k]
		fits := next.kind == prose || next.kind == list && s.units[k-1].announces
		if !fits || words+next.words > sideWords+sideWords/3 {
			break
		}
		if next.announces && (k+1 == len(s.units) || s.units[k+1].kind != list || words+next.words+s.units[k+1].words >
			sideWords+sideWords/3) {
			break
		}
		text += "\n\n" + next.text
		words += next.words
	}
	if at := strings.LastIndex(text, "\n\n"); strings.HasSuffix(text, ":") { // of what is not quoted
		if all := brief.Sentences(text[at+1:]); len(all) > 1 || at > 0 {
			text = strings.TrimSpace(text[:at+1] + "\n\n" + strings.Join(all[:len(all)-1], " "))
		}
	}
	return strings.TrimSpace(text)
}

// rowsOf are some rows of a long table, in their order, under its head; empty if the units are no such rows.
func (s *section) rowsOf(units ...int) string {
	slices.Sort(units)
	units = slices.Compact(units)
	first := &s.units[units[0]]
	text := first.head
	for _, n := range units {
		u := &s.units[n]
		if u.kind != table || u.of == 0 || u.of != first.of {
			return ""
		}
		text += "\n" + u.text
	}
	all := 0
	for i := range s.units {
		if s.units[i].of == first.of {
			all++
		}
	}
	if all > len(units) {
		text += "\n\n" + s.more("en", all-len(units))
	}
	return text
}

// firstSentences are those of a paragraph up to so many words, one at least.
func firstSentences(text string, most int) string {
	if countWords(text) <= most {
		return text
	}
	words, out := 0, []string{}
	for _, s := range brief.Sentences(text) {
		if words += countWords(s); len(out) > 0 && words > most {
			break
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// bothOf quotes the section that speaks best of both things.
func bothOf(req *model.Request, sections []*section, c comparison) quote {
	best, most := quote{passage: -1}, 0.0
	first, second := terms(c[0]), terms(c[1])
	first, second = without(first, second), without(second, first)
	if len(first) == 0 || len(second) == 0 {
		return best
	}
	for i, s := range sections {
		p := &req.Passages[i]
		title := cmp.Or(p.Heading, p.Title)
		head := namesThing(title, c[0]) && namesThing(title, c[1])
		text, score, whole := s.weighing(first, second, head)
		if text == "" {
			continue
		}
		if score += 0.5 * p.Score; head {
			score += 1.5
		}
		if score > most {
			most, best = score, quote{passage: i, text: text, both: whole}
		}
	}
	return best
}

// weighing is what a section says of both things: a table with a column for each; what it begins with, if it is
// about them; or the sentences that set one against the other. Whole is whether that stands for itself.
func (s *section) weighing(first, second []term, about bool) (text string, score float64, whole bool) {
	var lines []string
	for n := range s.units {
		u := &s.units[n]
		if u.kind == table && u.head == "" && u.words <= longCompare {
			if rows, above := blocks.Rows(u.text); len(rows) > 1 && has(above, first) && has(above, second) {
				return u.text, 3, true
			}
		}
		if u.kind != prose {
			continue
		}
		for _, sentence := range brief.Sentences(u.text) {
			if len(lines) < bothInLine && countWords(sentence) < 60 && has(sentence, first) && has(sentence, second) &&
				!strings.HasSuffix(sentence, ":") && weighs.MatchString(sentence) {
				lines = append(lines, sentence)
				score += 0.5
			}
		}
	}
	if n := slices.IndexFunc(s.units, func(u unit) bool { return u.kind == prose }); about && n >= 0 {
		return s.defining(n), score, true
	}
	return strings.Join(lines, " "), score, false
}

// has reports whether a text has all of some terms.
func has(text string, all []term) bool {
	in := among(terms(text))
	return !slices.ContainsFunc(all, func(t term) bool { return !in(t.hash) })
}

// weighs matches a sentence that sets one thing against another.
var weighs = regexp.MustCompile(`(?i)\b(differ\w*|whereas|while|unlike|instead|prefer\w*|than|rather|compared?|versus|vs|` +
	`alternative\w*|but|however|replace[sd]?|deprecated|same|similar\w*|both|contrary|opposed|on the other hand)\b`)

// namesThing reports whether a heading names a thing, and not another one that is called after it: "Counters" of
// "Counters and gauges", but not of "Counter histograms".
func namesThing(heading, name string) bool {
	words, want := split(heading), terms(name)
	for i := range words {
		n := 0
		for n < len(want) && i+n < len(words) {
			found := termsOf(words[i+n].text)
			if len(found) == 0 || found[0].hash != want[n].hash {
				break
			}
			n++
		}
		if n < len(want) {
			continue
		}
		end := i + n
		if end == len(words) || stopWords[strings.ToLower(words[end].text)] ||
			strings.Trim(heading[min(words[end-1].end, words[end].start):words[end].start], " ") != "" {
			return true
		}
	}
	return false
}

// without are the terms of one thing that the other does not have.
func without(of, other []term) (out []term) {
	has := among(other)
	for _, t := range of {
		if !has(t.hash) {
			out = append(out, t)
		}
	}
	return out
}
