package builtin

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"docent/model"
	"docent/model/builtin/blocks"
	"docent/site/markup"
)

// A question for a default is answered by a line that states one, as a reference does, rather than by a sample that
// merely sets a value.

var (
	asksDefault = regexp.MustCompile(`(?i)^\W*(?:what(?:'s|’s| is| are| was| does)?|which)\b.*\bdefaults?\b|` +
		`^\W*how (?:many|much|often|long|large|big)\b.*\bby default\b|^\W*(?:the )?default(?:\W+[\w.-]+){1,4}\W*$|` +
		`\bdefault (?:value|setting)s?\b|\bdefaults? (?:of|for|to)\b`)
	// statesDefault matches "| default = 1m", "**Default:** `dist`", "defaults to 5", "The default port is 5" and
	// "(default 5)", up to the value.
	statesDefault = regexp.MustCompile("(?i)\\bdefault(?:s? value)?[*_`\"]*\\s*(?:=|:|is\\b)[*_`\"\\s]*[^|)\\]*_`\"\\s]|" +
		"\\bdefault(?:s|ed|ing) to [`\"]*[^\\s`\"]|\\bdefault (?:`?[\\w.-]+`? ){1,3}is [`\"\\d]|\\(defaults?\\s[^)]|" +
		"^\\W*by default\\b[^.]{0,60}?[\\s`\"(]\\d|[—–] defaults? [`\"]*[^\\s`\"]")
	aroundSetting = set("default defaults value values setting settings option options parameter parameters")
)

const (
	maxStatements     = 2  // sections that are quoted for what they state
	wholeStatement    = 60 // words up to which what holds a statement is quoted whole
	commentLines      = 6  // above a line of code
	statementCoverage = 0.6
)

// A setting is what a question asks the default of, by the terms of its words: of a name of several parts the name
// first.
type setting [][]term

// settingAsked is the setting that a question asks the default of; nil if it asks for something else.
func settingAsked(question, project string) setting {
	question = gist(question)
	if !strings.Contains(question, "efault") || !asksDefault.MatchString(question) {
		return nil
	}
	var s setting
	own := strings.ToLower(project)
	for _, w := range split(question) {
		lower := strings.ToLower(w.text)
		if t := termsOf(w.text); len(t) > 0 && !aroundSetting[lower] && lower != own {
			s = append(s, t)
		}
	}
	return s
}

// covered is the share of the setting's words that are among the terms.
func (s setting) covered(has func(uint64) bool) float64 {
	n := 0
	for _, word := range s {
		part := func(t term) bool { return !has(t.hash) }
		if has(word[0].hash) || len(word) > 1 && !slices.ContainsFunc(word[1:], part) {
			n++
		}
	}
	return float64(n) / float64(len(s))
}

// named reports whether a word is a name that says all of the setting, such as scrape_interval.
func (s setting) named(w word) bool {
	parts := termsOf(w.text)
	return len(parts) > 1 && s.covered(among(parts)) == 1
}

func among(list []term) func(hash uint64) bool {
	return func(hash uint64) bool { return slices.ContainsFunc(list, func(t term) bool { return t.hash == hash }) }
}

// A statement is a line of a passage that states a default.
type statement struct {
	unit, line int
	fit        float64 // how well it names the setting; 0 if there is no statement
}

// statement finds where a passage states the default of a setting best.
func (p *passage) statement(s setting) statement {
	var best statement
	inHead := func(hash uint64) bool { return slices.Contains(p.head, hash) }
	for i := range p.units {
		u := &p.units[i]
		if u.kind == heading {
			continue
		}
		column := defaultColumn(u)
		all := ownLines(u)
		if u.kind == prose && u.words <= wholeStatement { // one sentence names it, the next one states it
			all = []string{u.text}
		}
		for n, line := range all {
			name := line // what names the setting: all but the value
			var at []int
			if hasDefault(line) { // the expression is slow
				at = statesDefault.FindStringIndex(line)
			}
			if at != nil {
				name = line[:at[1]-1]
			} else if column < 0 || !fills(line, column) {
				continue
			}
			inLine := among(terms(name))
			all := s.covered(func(hash uint64) bool { return inLine(hash) || inHead(hash) })
			if all < statementCoverage {
				continue
			}
			fit := all + max(s.covered(inLine), s.covered(inHead)) - min(0.002*float64(countWords(name)), 0.2)
			if s.covered(among(terms(line[len(name):]))) == 1 {
				fit -= 0.2 // it is that of another setting of this name
			}
			if slices.ContainsFunc(split(cmp.Or(p.of.Heading, p.of.Title)+"\n"+name), s.named) {
				fit++
			}
			if fit > best.fit {
				best = statement{i, n, fit}
			}
		}
	}
	return best
}

// hasDefault reports whether a line has the word "default", in letters of any size.
func hasDefault(line string) bool {
	const word = "default"
	for i := range len(line) - len(word) + 1 {
		if line[i]|0x20 == word[0] && strings.EqualFold(line[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// defaultColumn is the number of a table's column of defaults; -1 if there is none.
func defaultColumn(u *unit) int {
	if u.kind != table {
		return -1
	}
	head, _, _ := strings.Cut(cmp.Or(u.head, u.text), "\n")
	return slices.IndexFunc(blocks.Cells(head), func(c string) bool {
		c = strings.ToLower(strings.Trim(c, " *_`"))
		return c == "default" || c == "defaults" || c == "default value"
	})
}

// fills reports whether a table's row has something in a column.
func fills(row string, column int) bool {
	c := blocks.Cells(row)
	if column >= len(c) || strings.Trim(c[column], " -–—:") == "" {
		return false
	}
	return !strings.EqualFold(strings.Trim(c[column], " *_`"), "default") // the head itself
}

// excerpt is what is quoted of a passage for a statement.
func (p *passage) excerpt(at statement) string {
	u := &p.units[at.unit]
	lines := lines(u)
	switch {
	case u.words <= wholeStatement || u.kind == list || u.kind == table && len(lines) < 3 && u.head == "":
		return strings.TrimPrefix(u.head+"\n"+u.text, "\n")
	case u.kind == table && u.head == "":
		return strings.Join([]string{lines[0], lines[1], lines[at.line]}, "\n")
	case u.kind == table:
		return u.head + "\n" + lines[at.line]
	case u.kind == code:
		from := at.line
		for from > 1 && at.line-from < commentLines && comments(lines[from-1]) {
			from--
		}
		return lines[0] + "\n" + markup.Dedent(strings.Join(lines[from:at.line+1], "\n")) + "\n" + lines[len(lines)-1]
	}
	return lines[at.line]
}

// bestLine is the line of a section that says most of what is asked, as it is quoted by itself.
func (s *section) bestLine(q *query) string {
	best, at := 0.0, statement{}
	for i := range s.units {
		if s.units[i].kind == heading {
			continue
		}
		for n, line := range lines(&s.units[i]) {
			got := 0.0
			for _, t := range terms(line) {
				if n := q.find(t.hash); n >= 0 {
					got += q.weights[n]
				}
			}
			if got > best {
				best, at = got, statement{unit: i, line: n}
			}
		}
	}
	if best == 0 {
		return ""
	}
	return s.excerpt(at)
}

func comments(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "--")
}

// stating quotes the sections that state the default of a setting best: a short one whole, with
// what states it first.
func stating(q *query, s setting, sections []*section, quoted *[]uint64) []quote {
	if len(s) == 0 {
		return nil
	}
	found, best := make([]statement, len(sections)), 0.0
	for i, section := range sections {
		found[i] = section.statement(s)
		best = max(best, found[i].fit)
	}
	var out []quote
	for i := range sections {
		if best > 0 && found[i].fit >= best-0.25 {
			out = append(out, quote{passage: i})
		}
	}
	slices.SortStableFunc(out, func(a, b quote) int { return cmp.Compare(found[b.passage].fit, found[a.passage].fit) })
	out = out[:min(len(out), maxStatements)]
	for i := range out {
		section := sections[out[i].passage]
		at := found[out[i].passage]
		out[i].text = section.excerpt(at)
		switch u := &section.units[at.unit]; {
		case section.words <= wholeStatement:
			out[i].text = choose(q, section, mainWords, quoted)
		case section.words <= mainWords && (u.of > 0 || u.words <= wholeStatement): // what states it leads
			*quoted = append(*quoted, u.fingerprint)
			out[i].chosen = pick(q, section, mainWords, quoted)
			out[i].chosen.taken[at.unit] = false
			out[i].lead, out[i].text = out[i].text, ""
		}
	}
	return out
}

// StatesDefault reports whether a question asks for a default, and if so which passages state it. The section that does
// is often long and names much else, so that a search finds it after others of its page.
func StatesDefault(question string) (states func(p *model.Passage) bool, asked bool) {
	s := settingAsked(question, "")
	if len(s) == 0 {
		return nil, false
	}
	return func(p *model.Passage) bool { return parsed.of(p).statement(s).fit > 0 }, true
}
