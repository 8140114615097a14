package issues

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"docent/forge/host"
	"docent/internal/brief"
)

const (
	maxBody    = 20_000 // characters of one comment
	maxAnswers = 8      // comments of a page beside the question
	leastWords = 4      // of a comment that is no answer: "+1", "same here"
)

// page is a thread as Markdown, with the question, then what was accepted, then what maintainers said, then the others.
// It is empty if nothing is left of it.
func page(t host.Thread, repository string) string {
	question := cleaned(t.Body)
	answers := answersOf(t)
	if question == "" && len(answers) == 0 {
		return ""
	}
	var b strings.Builder
	kind := "issue"
	if t.Discussion {
		kind = "discussion"
	}
	state := "open"
	switch {
	case t.Answered:
		state = "answered"
	case t.Closed:
		state = "closed"
	}
	label := fmt.Sprintf("GitHub %s #%d (%s", kind, t.Number, state)
	if !t.Ended.IsZero() {
		label += " " + t.Ended.UTC().Format("2006-01-02")
	}
	label += ")"
	title := oneLine(t.Title)
	fmt.Fprintf(&b, "---\ntitle: %s\ndescription: %s\nurl: %s\n", quoted(title), quoted(label+" in "+repository), quoted(t.Link))
	if len(t.Labels) > 0 {
		b.WriteString("tags:\n")
		for _, l := range t.Labels {
			fmt.Fprintf(&b, "  - %s\n", quoted(oneLine(l)))
		}
	}
	fmt.Fprintf(&b, "---\n\n# %s\n\n%s\n", plain(title), label)
	if question != "" {
		fmt.Fprintf(&b, "\n## Question\n\n%s\n", question)
	}
	for _, a := range answers {
		heading := "Comment"
		switch {
		case a.Answer:
			heading = "Accepted answer"
		case a.Maintainer:
			heading = "Answer of a maintainer"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", heading, cleaned(a.Body))
	}
	return b.String()
}

// answersOf are the comments that tell something, the accepted answer and the maintainers' first.
func answersOf(t host.Thread) []host.Said {
	var out []host.Said
	for _, s := range t.Said {
		text := cleaned(s.Body)
		if s.Bot || text == "" || !s.Answer && len(strings.Fields(text)) < leastWords {
			continue
		}
		out = append(out, s)
	}
	rank := func(s host.Said) int {
		switch {
		case s.Answer:
			return 0
		case s.Maintainer:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b host.Said) int { return rank(a) - rank(b) })
	return out[:min(len(out), maxAnswers)]
}

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)
	noneSaid = regexp.MustCompile(`(?i)^_?(no response|n/?a|none)_?\.?$`)
	checkbox = regexp.MustCompile(`^\s*[-*] \[[ xX]\] `)
	mention  = regexp.MustCompile(`^(?:@[A-Za-z0-9-]+[,:]?\s*)+$`)
)

// cleaned is what somebody wrote, without what a template put there: comments, lists of boxes to tick, headings with
// nothing below them. Headings become bold text, so that they do not cut the page, and nothing of it is a component or
// a link to a script.
func cleaned(body string) string {
	body = comment.ReplaceAllString(strings.ReplaceAll(body, "\r\n", "\n"), "")
	body = brief.Runes(body, maxBody, "\n")
	var out []string
	heading := "" // that has nothing below it yet
	fence := ""
	for line := range strings.SplitSeq(body, "\n") {
		trimmed := strings.TrimSpace(line)
		if mark := fenceOf(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence) && mark == trimmed) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
		} else if fence == "" {
			if text, ok := headingOf(trimmed); ok {
				heading = text
				continue
			}
			if checkbox.MatchString(line) || noneSaid.MatchString(trimmed) || mention.MatchString(trimmed) {
				continue
			}
			line = escapedHTML(hiddenOut(line))
		}
		if heading != "" && trimmed != "" {
			out = append(out, "**"+plain(heading)+"**", "")
			heading = ""
		}
		out = append(out, line)
	}
	if fence != "" {
		out = append(out, fence)
	}
	text := strings.TrimSpace(strings.Join(out, "\n"))
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	return text
}

// fenceOf is the run that opens or closes a block of code; empty if the line does neither.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && (c == "~" || !strings.Contains(line[n:], "`")) {
			return strings.Repeat(c, n)
		}
	}
	return ""
}

func headingOf(line string) (string, bool) {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	if level < 1 || level > 6 || len(line) == level || line[level] != ' ' {
		return "", false
	}
	return strings.Trim(line[level:], " #*"), true
}

// escapedHTML writes tags as text.
func escapedHTML(line string) string {
	if !strings.Contains(line, "<") || strings.Contains(line, "`") {
		return line
	}
	return strings.ReplaceAll(line, "<", "&lt;")
}

func hiddenOut(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' {
			return -1
		}
		return r
	}, s)
}

func oneLine(s string) string { return brief.Line(hiddenOut(s)) }

// plain is a text that no Markdown is read in.
func plain(s string) string {
	return strings.NewReplacer("<", "&lt;", "[", `\[`, "]", `\]`, "*", `\*`, "{", `\{`).Replace(oneLine(s))
}

// quoted is a text as YAML has it between double quotes.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
