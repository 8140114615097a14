package builtin

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/model"
	"docent/search/analysis"
)

// OpeningOf is what a question asks that everybody asks first, of the project itself. Within a conversation "it" is most
// likely something else.
func OpeningOf(question string, history []model.Message, project string) analysis.Opening {
	kind := analysis.OpeningOf(question, project)
	switch kind {
	case analysis.Start, analysis.Install, analysis.About, analysis.Example:
		if len(history) > 0 {
			return analysis.NoOpening
		}
	}
	return kind
}

// opens matches what a passage says that answers an opening. Where there is nothing to match, its place is enough.
var opens = map[analysis.Opening]*regexp.Regexp{
	analysis.Install: regexp.MustCompile("(?i)\\b(?:install|go get|docker (?:run|compose|pull)|brew|apt(?:-get)?|composer require|npm i|yarn add|" +
		"pnpm add|download (?:it|and|page|the|an?|our|from)|unpack|curl -|helm)\\b|(?i)^\\W*downloads?\\b"),
	analysis.Price: regexp.MustCompile(`(?i)[$€£]\s?\d|\d\s?(?:[$€£]|(?:USD|EUR|GBP|dollars?|euros?|cents?)\b)|\b(?:is|are|for) free\b|\bfree ` +
		`(?:plan|tier|of charge|for)\b|\bcosts?\b.{0,20}\d|\bpricing\b`),
	analysis.Contact: regexp.MustCompile(`(?i)[\w.+-]+@[\w-]+\.\w|\bmail(?:to)?\b|\b(?:slack|discord|forum|mailing list|discussions|chat|github (?:issues|discussions)|gitter|matrix|bluesky|mastodon|twitter|reddit|stack ?overflow|phone)\b|\bcontact us\b|` +
		`\bcall us\b|\bissue tracker\b|\bopen an issue\b`),
	analysis.License: regexp.MustCompile(`\b(?i:licen[cs]ed?)\b|\b(?:MIT|BSD|A?GPL|LGPL|MPL|Apache)\b`),
	analysis.Example: regexp.MustCompile("(?i)```|\\bexamples?\\b|(?m)^ {4}\\S"),
}

// said is how much of the evidence for an answer an opening has: the site's own place for it, and what is said there.
func said(kind analysis.Opening, p *model.Passage) float64 {
	fit := 0.0
	if p.Opens {
		fit = 1
	}
	if says := opens[kind]; says != nil {
		fit /= 2
		if says.MatchString(p.Text) {
			fit += 0.5
		}
	}
	return fit
}

// answersOpening quotes the sections that answer what everybody asks first, from their beginning on; nothing if the
// site has no place for it.
func answersOpening(req *model.Request, q *query, sections []*section, kind analysis.Opening) (quotes []quote) {
	if kind == "" {
		return nil
	}
	var quoted []uint64
	if kind == analysis.About {
		if quotes = defining(req, q, sections, &quoted); len(quotes) > 0 {
			return quotes
		}
	}
	least := 0.75 // of what is shown it is said; else of its place alone
	if opens[kind] == nil {
		least = 1
	}
	lowest, most := 0.5, mostOpening
	switch kind {
	case analysis.Price, analysis.Contact, analysis.License: // a page in that place that does not say it is no answer
		lowest = 0.75
	case analysis.About, analysis.Latest: // the first one says it
		most = 1
	}
	for ; least >= lowest && len(quotes) == 0; least -= 0.25 {
		for i := range req.Passages {
			p := &req.Passages[i]
			fit := said(kind, p)
			if fit < least || !p.Opens || len(quotes) == most ||
				slices.ContainsFunc(quotes, func(q quote) bool { return req.Passages[q.passage].Path == p.Path }) {
				continue
			}
			budget := mainWords
			if len(quotes) > 0 {
				budget = moreWords
			}
			if c := fromTheBeginning(q, sections[i], budget, &quoted); c.any() {
				one := quote{passage: i, chosen: c}
				if kind == analysis.Latest || kind == analysis.Changelog { // the heading is what is asked for
					one.lead = "**" + cmp.Or(p.Heading, p.Title) + "**"
				}
				quotes = append(quotes, one)
			}
		}
	}
	switch kind {
	case analysis.License:
		if len(quotes) == 0 {
			return licensing(req, q, sections, &quoted)
		}
	case analysis.Start:
		addCommand(req, quotes)
	case analysis.Install: // another page is a card
		addCommand(req, quotes[:min(1, len(quotes))])
	}
	return quotes
}

// addCommand adds what is typed first to an answer that only says how to begin: the first command or steps of the rest of a section
// that is quoted, or of one below or after it.
func addCommand(req *model.Request, quotes []quote) {
	if req.Around == nil || slices.ContainsFunc(quotes, func(q quote) bool { return q.chosen.typed() }) {
		return
	}
	for n := range quotes {
		c := quotes[n].chosen
		if c.takeCommand() {
			return
		}
		p := &req.Passages[quotes[n].passage]
		around := req.Around(p.Path, p.Anchor)
		around = around[1+slices.IndexFunc(around, func(a model.Passage) bool { return a.Anchor == p.Anchor }):]
		below := make([]*section, len(around))
		for i := range below {
			below[i] = &section{passage: parsed.of(&around[i])}
		}
		q := newQuery(req.Question, below)
		q.howTo, q.asks, q.readers = true, c.q.asks, c.q.readers
		for _, s := range below {
			more := newSelection(q, s, moreWords, c.quoted)
			if asides.MatchString(s.of.Heading) || !more.takeCommand() {
				continue
			}
			more.complete()
			quotes[n].tail = more.write()
			if !slices.ContainsFunc(c.units, func(u unit) bool { return u.kind == heading && u.text == s.of.Heading }) {
				quotes[n].tail = "**" + s.of.Heading + "**\n\n" + quotes[n].tail
			}
			return
		}
	}
}

// takeCommand takes the first that is typed to install something, or the steps of that; false if there is none.
func (c *selection) takeCommand() bool {
	at := slices.IndexFunc(c.units, func(u unit) bool {
		return (u.kind == code || u.steps()) && opens[analysis.Install].MatchString(u.text)
	})
	if at >= 0 {
		c.takeWhole(at)
	}
	return c.typed()
}

// typed reports whether something that is typed is taken, or steps are.
func (c *selection) typed() bool {
	for i, taken := range c.taken {
		if u := &c.units[i]; taken && (u.kind == code || u.steps()) {
			return true
		}
	}
	return false
}

// defining quotes the section that says what the product is: it says it better than the first page.
func defining(req *model.Request, q *query, sections []*section, quoted *[]uint64) []quote {
	for i := range req.Passages {
		if saysWhatItIs(req.Passages[i].Text, req.Project) {
			if c := fromTheBeginning(q, sections[i], mainWords, quoted); c.any() {
				return []quote{{passage: i, chosen: c}}
			}
		}
	}
	return nil
}

// licensing quotes the sentence that says what license the product is under, of any page.
func licensing(req *model.Request, q *query, sections []*section, quoted *[]uint64) []quote {
	for i, s := range sections {
		for n := range s.units {
			if u := &s.units[n]; u.kind == prose && licensed.MatchString(u.text) && (names(u.text, req.Project) || openSource.MatchString(u.text)) {
				c := newSelection(q, s, moreWords, quoted)
				if c.take(n); c.any() {
					return []quote{{passage: i, chosen: c}}
				}
			}
		}
	}
	return nil
}

var (
	licensed = regexp.MustCompile(`(?i)\blicen[cs]ed under\b|\b(?:MIT|BSD|A?GPL|LGPL|MPL|Apache|GNU)\b[^\n]{0,60}\blicen[cs]e\b|` +
		`\blicen[cs]ed?\b[^\n]{0,30}\b(?:MIT|BSD|A?GPL|LGPL|MPL|Apache)\b`)
	openSource = regexp.MustCompile(`(?i)\bopen[ -]source\b`)
)

// saysWhatItIs reports whether the beginning of a text says what a product is: "Kettle is a …".
func saysWhatItIs(text, product string) bool {
	rest, named := strings.ToLower(text[:min(len(text), 600)]), product != ""
	for named {
		var before string
		before, rest, named = strings.Cut(rest, strings.ToLower(product))
		last, _ := utf8.DecodeLastRuneInString(before)
		if named && !unicode.IsLetter(last) && !unicode.IsDigit(last) && (isA.MatchString(rest) || welcomes.MatchString(before) && isThe.MatchString(rest)) {
			return true
		}
	}
	return false
}

var isA = regexp.MustCompile("^[*_`]*(?:\\]\\([^)]*\\))?[*_`]* is (?:an?|the) ")

var welcomes, isThe = regexp.MustCompile(`\bwelcome to [^.!\n]*$`), regexp.MustCompile("^[*_`]*(?:\\]\\([^)]*\\))?[*_`]*, (?:an?|the) ") // "Welcome to X, the …"

// mostOpening is how many sections are quoted.
const mostOpening = 2

// fromTheBeginning takes a section from its beginning on, as much as there is room for.
func fromTheBeginning(q *query, s *section, budget int, quoted *[]uint64) *selection {
	c := newSelection(q, s, budget, quoted)
	for n := range c.units {
		if c.used > 0 && c.used+c.units[n].words > budget {
			break
		}
		if u := &c.units[n]; u.kind == prose && u.words < 4 && n+1 < len(c.units) && c.units[n+1].kind == prose && !strings.ContainsAny(u.text, ".:!?。") {
			continue // a button
		}
		c.take(n)
	}
	return c
}
