package affected

import (
	"fmt"
	"net/url"
	"strings"

	"docent/internal/brief"
)

// Markdown is the result for a comment on a pull request. Link makes the address of a line of a page, if there is one. What
// pages and code say stands in code spans: it names nobody and hides nothing.
func (r Result) Markdown(link func(page string, line int) string) string {
	var b strings.Builder
	if len(r.Findings) == 0 {
		fmt.Fprintf(&b, "### Documentation: nothing to change was found\n\nNo page says what this changes (%s looked at).\n",
			brief.Count(r.Pages, "page"))
		r.rest(&b)
		return b.String()
	}
	b.WriteString("### Documentation that this may concern\n")
	for _, level := range []Level{Outdated, Related} {
		first := true
		for _, f := range r.Findings {
			if f.Level != level {
				continue
			}
			if first {
				b.WriteString(map[Level]string{
					Outdated: "\nThese pages still say what is changed here:\n\n",
					Related:  "\nThese pages describe what is changed here, or where new things belong. They may be right as they are:\n\n",
				}[level])
				first = false
			}
			f.markdown(&b, link)
		}
	}
	r.rest(&b)
	return b.String()
}

func (r Result) rest(b *strings.Builder) {
	if r.More > 0 {
		fmt.Fprintf(b, "\n%s less concerned.\n", brief.Count(r.More, "further page")+map[bool]string{true: " is", false: " are"}[r.More == 1])
	}
	if r.Cut {
		b.WriteString("\nThe change is larger than what is looked at: its end was left out.\n")
	}
}

func (f Finding) markdown(b *strings.Builder, link func(string, int) string) {
	fmt.Fprintf(b, "- **%s**", code(f.Page))
	switch {
	case f.Generated:
		b.WriteString(" (says that a program writes it: run that)")
	case f.Changed:
		b.WriteString(" (changed here, and still says it)")
	}
	b.WriteString("\n")
	for _, p := range f.Places {
		at := fmt.Sprintf("line %d", p.Line)
		if link != nil {
			if to := link(f.Page, p.Line); to != "" {
				at = fmt.Sprintf("[line %d](%s)", p.Line, to)
			}
		}
		fmt.Fprintf(b, "  - %s: %s", at, p.Why)
		if p.Source != "" {
			fmt.Fprintf(b, " (%s)", code(p.Source))
		}
		b.WriteString("\n")
	}
}

// code is a text as a code span, whatever it holds.
func code(s string) string { return "`" + strings.ReplaceAll(brief.Line(s), "`", "'") + "`" }

// Text is the result for a terminal: a line for each place, as compilers write them.
func (r Result) Text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		for _, p := range f.Places {
			fmt.Fprintf(&b, "%s:%d: %s: %s", f.Page, p.Line, p.Level, p.Why)
			if p.Source != "" {
				fmt.Fprintf(&b, " (%s)", p.Source)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Annotations are the result as commands to GitHub's runner, which shows them at the lines.
func (r Result) Annotations() string {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	var b strings.Builder
	for _, f := range r.Findings {
		for _, p := range f.Places {
			command := "notice"
			if p.Level == Outdated {
				command = "warning"
			}
			fmt.Fprintf(&b, "::%s file=%s,line=%d,title=%s::%s\n", command, property.Replace(f.Page), p.Line,
				property.Replace("Documentation: "+string(p.Level)), data.Replace(p.Why))
		}
	}
	return b.String()
}

// SARIF is the result in the Static Analysis Results Interchange Format, version 2.1.0.
func (r Result) SARIF(version string) any {
	type m = map[string]any
	results := []m{}
	for _, f := range r.Findings {
		for _, p := range f.Places {
			level := "note"
			if p.Level == Outdated {
				level = "warning"
			}
			results = append(results, m{"ruleId": "docs/" + string(p.Level), "level": level,
				"message": m{"text": sentence(p)},
				"locations": []m{{"physicalLocation": m{
					"artifactLocation": m{"uri": uri(f.Page)}, "region": m{"startLine": p.Line}}}}})
		}
	}
	rule := func(level Level, text string) m {
		return m{"id": "docs/" + string(level), "shortDescription": m{"text": text}}
	}
	return m{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []m{{
		"tool": m{"driver": m{"name": "docent check-docs", "version": version, "rules": []m{
			rule(Outdated, "The documentation says what the code no longer does"),
			rule(Related, "The documentation describes code that was changed")}}},
		"columnKind": "unicodeCodePoints", "results": results}}}
}

func sentence(p Place) string {
	if p.Source == "" {
		return p.Why
	}
	return p.Why + " (" + p.Source + ")"
}

func uri(p string) string { return (&url.URL{Path: p}).EscapedPath() }

// Worst is the strongest level of the findings; empty if there are none.
func (r Result) Worst() Level {
	var worst Level
	for _, f := range r.Findings {
		if f.Level == Outdated {
			return Outdated
		}
		worst = f.Level
	}
	return worst
}
