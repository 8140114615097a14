package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"docent/api"
)

var secrets = []struct {
	name string
	re   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a cloud access key", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a code host's token", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,})\b`)},
	{"a chat service's token", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{"an API key", regexp.MustCompile(`\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}|AIza[0-9A-Za-z_-]{35}|dct_adm_[0-9A-Za-z]{30,})\b`)},
}

// secretIn names what looks like a secret in the new text and was not in the old.
func secretIn(now, before string) string {
	for _, s := range secrets {
		for _, m := range s.re.FindAllString(now, -1) {
			if !strings.Contains(before, m) {
				return "what looks like " + s.name
			}
		}
	}
	return ""
}

// published lists what the job had published when this instruction came: a follow-up's pull request holds that too, or goes on
// from it.
func (r *run) published(body *strings.Builder) {
	const most = 20
	var earlier []Instruction
	for _, e := range r.task.Earlier {
		if e.Commit != "" {
			earlier = append(earlier, e)
		}
	}
	if len(earlier) == 0 {
		return
	}
	body.WriteString("Before that, in the same job:\n\n")
	if left := len(earlier) - most; left > 0 {
		fmt.Fprintf(body, "- %s\n", count(left, "older instruction"))
		earlier = earlier[left:]
	}
	for _, e := range earlier {
		fmt.Fprintf(body, "- %s: %s\n", codeText(oneLine(e.Prompt, 200)), plainText(oneLine(e.Message, 300)))
	}
	body.WriteString("\n")
}

// report writes the result: titles, the pull request's text and the word to the user, all from the same counts.
func (r *run) report(changes []Change, checked []string, todos []api.Todo) Result {
	title := "docs: " + r.titles[0]
	if n := len(r.titles); n > 1 {
		title += fmt.Sprintf(" and %d more", n-1)
	}
	title = oneLine(title, 100)
	subject := oneLine(title, 71)

	var body strings.Builder
	body.WriteString("## What was asked\n\n" + quoteBlock(r.task.Prompt) + "\n")
	r.published(&body)
	body.WriteString("## What changed\n\n")
	for _, d := range r.done {
		body.WriteString("- " + plainText(d) + "\n")
	}
	const most = 200
	listedFiles := 0
	moved := map[string]bool{}
	for _, c := range changes {
		if c.From != "" {
			moved[c.From] = true
		}
	}
	files := 0
	for _, c := range changes {
		if !c.Delete || !moved[c.Path] {
			files++
		}
	}
	fmt.Fprintf(&body, "\n%s:\n\n", count(files, "file"))
	for _, c := range changes {
		if c.Delete && moved[c.Path] {
			continue
		}
		if listedFiles++; listedFiles > most {
			continue
		}
		body.WriteString("- " + codeText(c.Path))
		switch {
		case c.Delete:
			body.WriteString(" (deleted)")
		case c.From != "":
			body.WriteString(" (moved from " + codeText(c.From) + ")")
		}
		var parts []string
		for _, what := range sortedKeys(r.counts[c.Path]) {
			if strings.HasPrefix(what, "page ") || what == "file restored" {
				parts = append(parts, what)
				continue
			}
			parts = append(parts, fmt.Sprintf("%s: %d", what, r.counts[c.Path][what]))
		}
		if len(parts) > 0 {
			body.WriteString(": " + strings.Join(parts, ", "))
		}
		body.WriteString("\n")
	}
	if listedFiles > most {
		fmt.Fprintf(&body, "- and %d more\n", listedFiles-most)
	}
	body.WriteString("\n## What was checked\n\n")
	for _, c := range checked {
		body.WriteString("- " + plainText(c) + "\n")
	}
	if len(r.left) > 0 {
		body.WriteString("\n## What was left\n\n")
		for i, l := range r.left {
			if i == 100 {
				fmt.Fprintf(&body, "- and %d more\n", len(r.left)-i)
				break
			}
			body.WriteString("- " + plainText(l) + "\n")
		}
	}
	if r.model == Rules {
		body.WriteString("\n---\n\nMade by Docent's built-in agent (" + codeText(Rules) + "), which follows instructions of fixed forms and uses no language model.")
	} else {
		body.WriteString("\n---\n\nMade by Docent's agent with the language model " + codeText(r.model) + ". Read it as you would a stranger's contribution.")
	}
	if r.task.Job != "" {
		body.WriteString(" Job " + codeText(string(r.task.Job)) + ".")
	}
	body.WriteString("\n")

	var commit strings.Builder
	commit.WriteString(subject + "\n\n")
	for _, d := range r.done {
		commit.WriteString("- " + oneLine(d, 300) + "\n")
	}
	if r.task.Job != "" {
		commit.WriteString("\nJob: " + oneLine(string(r.task.Job), 100) + "\n")
	}
	message := strings.Join(r.done, ". ") + "."
	if len(r.left) > 0 {
		shown := r.left
		if len(shown) > 5 {
			shown = append(slices.Clone(shown[:5]), fmt.Sprintf("and %d more, see the pull request", len(r.left)-5))
		}
		message += " " + strings.Join(shown, ". ") + "."
	}
	return Result{
		Model: r.model, Changes: changes, Title: title, Commit: commit.String(), Body: body.String(), Message: message, Todos: todos,
		Review: r.review, Outcome: api.OutcomeChanged,
	}
}

// quoteBlock shows the words of others as text that is nothing but text, whatever is in it.
func quoteBlock(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return c
		}
		if c < ' ' || c == 0x7f || hidden(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	const most = 4000
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "\n…"
	}
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// codeText shows a name as code.
func codeText(s string) string {
	s = oneLine(s, 300)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

var markdownSpecial = regexp.MustCompile("[\\\\`*_\\[\\]<>#|~@!]")

// plainText keeps the words of others from acting as Markdown, mentions or references.
func plainText(s string) string {
	s = markdownSpecial.ReplaceAllStringFunc(oneLine(s, 600), func(m string) string {
		if m == "@" || m == "#" {
			return m + "<!-- -->" // no mention and no reference
		}
		return "\\" + m
	})
	return s
}
