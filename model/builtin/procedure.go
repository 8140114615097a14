package builtin

import (
	"slices"
	"strconv"
	"strings"

	"docent/model"
)

// What is done in several steps often has a heading for each of them, and one of these sections alone is not the answer.
// A reader who asks how it is done gets all of them, in the order of the page: of each what it says to do, with its
// command.

const (
	leastCovered = 0.75 // of what is asked, by the title of what the steps make up
	leastSteps   = 2
	mostSteps    = 10
	manySteps    = 6   // from which each of them says less
	stepWords    = 40  // of a step, without its lists and code
	briefWords   = 25  // of one of many
	enoughSteps  = 250 // words, code and all, after which further steps are only named
	stepCode     = 60  // words of code
	listOfStep   = 120
	shortStep    = 25 // of a paragraph that it begins with
)

var (
	asksHow = caseless(`^\W*(?:(?:please )?(?:tell|show) me )?how (?:do|does|can|to|should|would|could|am|is)\b|`,
		`^\W*what (?:are the steps|do (?:i|we) (?:need|have) to do)\b|^\W*(?:steps|instructions) (?:to|for)\b`)
	// asides are sections that are beside what they stand below.
	asides = caseless(`^\W*(?:next steps?|what'?s next|see also|related|further (?:reading|resources|information)|learn more|`,
		`troubleshooting|faqs?|frequently asked|known issues|limitations?|conclusion|summary|references?|(?:other |additional )?resources|`,
		`examples?|notes?|remov|delet|uninstall|clean|disabl)`)
	// begins a heading that tells what to do.
	stepping = verbs(`step prerequisites requirements before prepare choose select pick verify check test generate sign log clone
		roll shut initialize initialise secure connect retry validate review commit push tag wire mount expose point map use try see`)
)

// asksForSteps reports whether a question is how something is done.
func asksForSteps(question string) bool {
	if asksHow.MatchString(question) {
		return true
	}
	first := split(firstWords(question))
	return len(first) > 1 && actions[strings.ToLower(first[0].text)] && !strings.Contains(question, "?")
}

// isStep reports whether a heading says what to do: "Hashing a password", "Create a key", "Step 2".
func isStep(heading string) bool {
	for _, w := range split(firstWords(heading)) {
		lower := strings.ToLower(w.text)
		if w.text[0] >= '0' && w.text[0] <= '9' {
			continue
		}
		return actions[lower] || imperatives[lower] || stepping[lower] || len(lower) > 5 && strings.HasSuffix(lower, "ing")
	}
	return false
}

// procedure quotes the sections that are the steps of what is asked, if the best passage is one of them or what they
// stand below; nothing if there are none.
func (q *query) procedure(req *model.Request, question string, order []int, sections []*section) *quote {
	if req.Around == nil || !q.steps || len(q.aspects) != 1 {
		return nil
	}
	p := &req.Passages[order[0]]
	if p.Heading != "" && q.asksFor(p.Heading, hashesOf(p.Title)) {
		return nil
	}
	if out := q.stepsOf(req, question, req.Around(p.Path, p.Anchor)); out != "" {
		return &quote{passage: order[0], text: out}
	}
	if out := q.stepsOf(req, question, req.Around(p.Path, "")); out != "" {
		return &quote{passage: order[0], text: out}
	}
	return nil
}

// stepsOf are sections as the steps of what the first of them is about; empty if they are none of what is asked.
func (q *query) stepsOf(req *model.Request, question string, around []model.Passage) string {
	if len(around) < 1+leastSteps {
		return ""
	}
	whole, title := 0.0, hashesOf(around[0].Title+"\n"+around[0].Heading)
	own := hashesOf(req.Project)
	covered := 0.0
	for n, t := range q.terms {
		if doing[t.text] || slices.Contains(own, t.hash) {
			continue
		}
		whole += q.weights[n]
		if slices.Contains(title, t.hash) {
			covered += q.weights[n]
		}
	}
	if whole == 0 || covered < leastCovered*whole {
		return ""
	}
	steps, telling := around[:0:0], 0
	for _, p := range around[1:] {
		if q.asksFor(p.Heading, title) {
			return ""
		}
		if p.Heading == "" || asides.MatchString(p.Heading) {
			continue
		}
		if isStep(p.Heading) {
			telling++
		}
		steps = append(steps, p)
	}
	if len(steps) < leastSteps || len(steps) > mostSteps || 2*telling < len(steps) {
		return ""
	}
	all := make([]*section, 0, len(steps)+1)
	for i := range around[:1] {
		all = append(all, &section{passage: parsed.of(&around[i])})
	}
	for i := range steps {
		all = append(all, &section{passage: parsed.of(&steps[i])})
	}
	of := newQuery(question, all) // what tells the steps apart are other words than what tells them from the rest
	of.howTo, of.language, of.asks, of.readers = true, q.language, q.asks, q.readers
	var quoted []uint64
	var out []string
	if top := all[0]; len(top.units) > 0 && top.units[0].kind == prose && !top.units[0].announces {
		out = append(out, firstSentences(top.units[0].text, stepWords))
		quoted = append(quoted, top.units[0].fingerprint)
	}
	words := 0
	for n, s := range all[1:] {
		if words > enoughSteps { // the rest is named
			out = append(out, s.stepTitle(n+1))
			continue
		}
		step := of.step(s, n+1, len(steps), &quoted)
		words += countWords(step)
		out = append(out, step)
	}
	return strings.Join(out, "\n\n")
}

// asksFor reports whether a question is about the section with a heading rather than about all of what is below a title:
// the heading has a thing that the title does not have, or what is done and all of the things that the title has.
func (q *query) asksFor(heading string, title []uint64) bool {
	in := hashesOf(heading)
	does, verbs, things, all := false, 0, 0, true
	for _, t := range q.terms {
		has, titled := slices.Contains(in, t.hash), slices.Contains(title, t.hash)
		switch {
		case doing[t.text]:
			does, verbs = does || has, verbs+1
		case has && !titled:
			return true
		case titled:
			all, things = all && has, things+1
		}
	}
	return all && (does || verbs == 0 && things > 1)
}

// doing are the terms of words for what is done, and of those that name nothing.
var doing = func() map[string]bool {
	m := map[string]bool{}
	for _, words := range []map[string]bool{general, actions} {
		for w := range words {
			for _, t := range splitTerms(w) {
				m[t] = true
			}
		}
	}
	delete(m, "custom") // that of "customize" as well
	return m
}()

// step is one of so many steps: its heading, what is to be done first of all, lists of what is done, and a command.
func (q *query) step(s *section, number, of int, quoted *[]uint64) string {
	words := stepWords
	if of >= manySteps {
		words = briefWords
	}
	c := newSelection(q, s, words, quoted)
	told := c.telling()
	if told >= 0 {
		c.takeWhole(told)
	}
	if lead := slices.IndexFunc(c.units, func(u unit) bool { return u.kind == prose }); lead >= 0 && c.units[lead].words <= shortStep && of < manySteps {
		c.take(lead)
	}
	coded := false
	for i := range c.units {
		switch u := &c.units[i]; {
		case u.steps() && u.words <= listOfStep:
			c.takeWhole(i)
		case u.kind == list && c.taken[i] && u.words > listOfStep, u.kind == code && c.taken[i] && (coded || u.words > stepCode):
			c.taken[i] = false
		case u.kind == code && i > told && !coded && u.words <= stepCode:
			c.take(i)
		}
		coded = coded || c.units[i].kind == code && c.taken[i]
	}
	return strings.TrimSpace(s.stepTitle(number) + "\n\n" + c.write())
}

// stepTitle is a step's heading, with its number unless it has one.
func (s *section) stepTitle(number int) string {
	heading := s.of.Heading
	if s.of.URL != "" && !strings.ContainsAny(heading, "[]") {
		heading = "[" + heading + "](" + s.of.URL + ")"
	}
	if first := split(firstWords(s.of.Heading)); len(first) > 0 && !strings.ContainsAny(first[0].text[:1], "0123456789") &&
		!strings.EqualFold(first[0].text, "step") {
		heading = strconv.Itoa(number) + ". " + heading
	}
	return "**" + heading + "**"
}

// telling is the paragraph that says what to do: the first one that leads to code, or the first that speaks to the
// reader, or the first.
func (s *section) telling() int {
	first, best := -1, -1
	for i := range s.units {
		u := &s.units[i]
		if u.kind != prose {
			continue
		}
		if u.announces && i+1 < len(s.units) && s.units[i+1].kind == code {
			return i
		}
		if best < 0 && u.advises {
			best = i
		}
		if first < 0 {
			first = i
		}
	}
	if best < 0 || first >= 0 && s.units[first].words <= stepWords {
		return first
	}
	return best
}
