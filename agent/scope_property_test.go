package agent_test

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/agent"
	"docent/internal/testing/need"
	"docent/site/markup"
)

// planted stands at the end of every page of the property test, so that each operation finds something to do in each
// part.
const planted = `
## Zyxwv heading the first

Teh zyxwv paragraph of the page, with ` + "`teh zyxwv code`" + ` and [teh zyxwv link](nowhere-zyxwv.md "the").

| Zyxwv head | the |
| --- | --- |
| teh zyxwv row | the |

* teh zyxwv item of the [list](Zyxwv_Target.md)
* another

` + "```" + `
teh zyxwv block of the code
` + "```" + `

## Zyxwv heading the second

See [the zyxwv page](https://example.org/zyxwv/the).
`

// allOperations are instructions of every kind that the rules know. Their words occur inside and outside of every
// scope.
var allOperations = []string{
	`replace "the" with "qqq"`, `replace the word "zyxwv" with "qqq"`, `rename "zyxwv" to "qqq"`, `remove "zyxwv"`,
	`replace "zyxwv" with "qqq", also in code`, `replace "zyxwv" with "qqq", also in links`,
	`add "A qqq." after heading "Zyxwv heading the first"`, `append "A qqq." to it`, `prepend "A qqq." to it`,
	`add a section "Qqq" with content "A qqq."`,
	`add a section "Qqq" with content "A qqq." after section "Zyxwv heading the first"`,
	`delete section "Zyxwv heading the second"`, `delete the heading "Zyxwv heading the second"`,
	`delete the paragraph containing "zyxwv paragraph"`, `delete the table row containing "zyxwv row"`,
	`delete the list item containing "zyxwv item"`, `delete the line containing "zyxwv block"`,
	`change heading "Zyxwv heading the first" to "Qqq"`, `change the links to "nowhere-zyxwv.md" to "https://qqq.example"`,
	`fix typos`, `fix broken links`, `fix broken links and typos`, `set zyxwv to "x"`,
	`remove title from the front matter`, `use "-" for lists`, `add language "text" to bare code fences`,
	`create page qqq/new.md titled "Qqq"`, `move the page %PAGE% to qqq/moved.md`, `delete page %PAGE% and unlink it`,
	`add %PAGE% to navigation under "Qqq"`, `undo that`, `do the same`,
}

// A scoped phrase says where, and what may change then: a part of one page, of a folder, or of all.
type scopedPhrase struct {
	lead, trail  string // %s is the instruction
	folder, part string
	everywhere   bool
}

var scopedPhrases = []scopedPhrase{
	{lead: `In %PAGE%, %s.`, trail: `%s in %PAGE%`},
	{lead: `On the page %PAGE%, %s.`, trail: `%s on the page %PAGE%.`},
	{lead: `For %PAGE%: %s`, trail: `%s within %PAGE%`},
	{lead: `Only in %PAGE%, %s.`, trail: `%s only in %PAGE%`},
	{lead: `%PAGE%: %s`, trail: `%s in the file %PAGE%`},
	{lead: `In the file %PAGE%, please %s!`, trail: `Could you %s throughout %PAGE%?`},
	{lead: "In %PAGE%:\n- %s\n", trail: "Please:\n- %s in %PAGE%\n"},
	{lead: `In %FOLDER%/, %s.`, trail: `%s in %FOLDER%/`, folder: "x"},
	{lead: `Everywhere under %FOLDER%/, %s.`, trail: `%s everywhere under %FOLDER%/`, folder: "x"},
	{lead: `In all pages in the folder %FOLDER%, %s.`, trail: `%s in all pages under %FOLDER%/`, folder: "x"},
	{lead: `In the folder %FOLDER%, %s.`, trail: `%s in the folder %FOLDER%`, folder: "x"},
	{lead: `In the headings, %s.`, trail: `%s in the headings`, part: "headings", everywhere: true},
	{lead: `In the headings of %PAGE%, %s.`, trail: `%s in the headings of %PAGE%`, part: "headings"},
	{lead: `In %FOLDER%/, %s, only in headings`, trail: `%s, but only in headings, in %FOLDER%/`, part: "headings",
		folder: "x"},
	{lead: `In the link texts of %PAGE%, %s.`, trail: `%s in link texts in %PAGE%`, part: "link texts"},
	{lead: `In link targets, %s.`, trail: `%s only in link targets`, part: "link targets", everywhere: true},
	{lead: `In the links of %PAGE%, %s.`, trail: `%s in links in %PAGE%`, part: "links"},
	{lead: `In code blocks in %PAGE%, %s.`, trail: `%s in code blocks in %PAGE%`, part: "code blocks"},
	{lead: `In inline code under %FOLDER%/, %s.`, trail: `%s in inline code under %FOLDER%/`, part: "inline code",
		folder: "x"},
	{lead: `In the code of %PAGE%, %s.`, trail: `%s in the code of %PAGE%`, part: "code"},
	{lead: `In tables in %PAGE%, %s.`, trail: `%s in the tables of %PAGE%`, part: "tables"},
	{lead: `In the lists of %PAGE%, %s.`, trail: `%s in the lists of %PAGE%`, part: "lists"},
	{lead: `In the front matter of %PAGE%, %s.`, trail: `%s in the front matter of %PAGE%`, part: "front matter"},
	{lead: `In the section "Zyxwv heading the first" of %PAGE%, %s.`,
		trail: `%s in the section "Zyxwv heading the first" of %PAGE%`, part: "section"},
	{lead: `Under the heading "Zyxwv heading the first" in %PAGE%, %s.`,
		trail: `%s under the heading "Zyxwv heading the first" in %PAGE%`, part: "below"},
}

// regionsOf finds the parts of a page again, by other means than the agent does.
func regionsOf(part, name, src string) []markup.Span {
	p := markup.Parse(name, []byte(src))
	var out []markup.Span
	switch part {
	case "":
		out = append(out, markup.Span{End: len(src)})
	case "headings":
		for _, h := range p.Headings {
			out = append(out, h.Span)
		}
	case "link texts", "link targets", "links":
		for _, l := range p.Links {
			if part != "link targets" && l.Kind != markup.ImageLink && l.Inner.Start < l.Inner.End {
				out = append(out, l.Inner)
			}
			if part != "link texts" && l.At.Start < l.At.End {
				out = append(out, l.At)
			}
		}
	case "code blocks", "inline code", "code":
		for _, c := range p.Code {
			if part == "code" || c.Inline == (part == "inline code") {
				out = append(out, c.Span)
			}
		}
	case "tables", "lists":
		at := 0
		for line := range strings.Lines(src) {
			if text := strings.TrimLeft(line, " \t>"); part == "tables" && strings.Contains(text, "|") || part == "lists" {
				out = append(out, markup.Span{Start: at, End: at + len(line)})
			}
			at += len(line)
		}
	case "front matter":
		out = append(out, p.Front.Body)
	case "section", "below":
		i := strings.Index(src, "## Zyxwv heading the first")
		j := strings.Index(src, "## Zyxwv heading the second")
		if i >= 0 && j > i {
			if part == "below" {
				i += strings.IndexByte(src[i:], '\n')
			}
			out = append(out, markup.Span{Start: i, End: j})
		}
	}
	slices.SortFunc(out, func(a, b markup.Span) int { return a.Start - b.Start })
	return out
}

// changedOutside reports whether a byte outside of the regions is another one: what stands between the regions must
// follow each other in the new text as it was.
func changedOutside(old, now string, regions []markup.Span) bool {
	at := 0
	for _, s := range regions {
		if s.Start < at {
			at = max(at, s.End)
			continue
		}
		i := strings.Index(now, old[at:s.Start])
		if i < 0 || at == 0 && i > 0 {
			return true
		}
		now = now[i+s.Start-at:]
		at = s.End
	}
	return at == 0 && now != old || !strings.HasSuffix(now, old[at:])
}

// TestNoOperationReachesBeyondItsScope carries out every operation with every phrase, before and behind it, on pages of
// real documentation sets, which share the work. Whatever comes out, no byte outside of the scope is another one.
func TestNoOperationReachesBeyondItsScope(t *testing.T) {
	for si, set := range sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			files, page, other := sampleSet(t, corpus(t, set))
			folder := path.Dir(page)
			one := agent.New(agent.Options{})
			// "the same", in another place
			earlier := []agent.Instruction{{Prompt: `replace "the" with "qqq" in ` + other, Commit: "c0"}}
			done, refused := map[string]int{}, 0
			for pi, ph := range scopedPhrases {
				for oi, op := range allOperations {
					if (pi+oi)%len(sets) != si || !need.All && oi%5 > 0 { // each with one of the sets
						continue
					}
					for _, phrase := range []string{ph.lead, ph.trail} {
						named := strings.Contains(op, "%PAGE%")
						prompt := strings.Replace(phrase, "%s", strings.ReplaceAll(op, "%PAGE%", other), 1)
						prompt = strings.NewReplacer("%PAGE%", page, "%FOLDER%", folder).Replace(prompt)
						res, err := one.Edit(context.Background(),
							agent.Task{Job: "job_1", Prompt: prompt, Earlier: earlier, Tree: tree(files), Now: time.Unix(0, 0)}, nil)
						if err != nil {
							t.Fatalf("%q: %v", prompt, err)
						}
						if len(res.Changes) == 0 {
							refused++
							continue
						}
						done[op]++
						if named {
							t.Errorf("%q was carried out, though its scope does not fit it: %s", prompt, res.Message)
						}
						for _, c := range res.Changes {
							old, had := files[c.Path]
							follows := strings.HasPrefix(op, "change heading") // links to the heading follow it
							in := ph.everywhere || c.Path == page || ph.folder != "" && strings.HasPrefix(c.Path, folder+"/")
							var regions []markup.Span
							if in {
								regions = regionsOf(ph.part, c.Path, old)
							}
							if follows {
								regions = append(regions, regionsOf("link targets", c.Path, old)...)
								slices.SortFunc(regions, func(a, b markup.Span) int { return a.Start - b.Start })
							}
							if !had || c.Delete || c.From != "" || changedOutside(old, string(c.Content), regions) {
								t.Errorf("%q changed %s outside of its scope: %s\n%s", prompt, c.Path, res.Message,
									difference(map[string]string{c.Path: old}, map[string]string{c.Path: string(c.Content)}))
							}
						}
					}
				}
			}
			total := 0
			for _, n := range done {
				total += n
			}
			t.Logf("%d carried out, %d refused: %v", total, refused, done)
			if len(done) < 24 && need.All {
				t.Errorf("only %d of the operations were carried out in any scope", len(done))
			}
		})
	}
}

// sampleSet takes some pages of a documentation set: those of one folder and as many from elsewhere, each with a
// planted end. It gives one of the folder's pages and one of another.
func sampleSet(t *testing.T, all map[string]string) (files map[string]string, page, other string) {
	t.Helper()
	folders := map[string][]string{}
	for _, f := range slices.Sorted(maps.Keys(all)) {
		src := all[f]
		base := path.Base(f)
		if path.Ext(f) != ".md" && path.Ext(f) != ".mdx" || base != strings.ToLower(base) ||
			strings.HasPrefix(base, "index") || strings.Contains("/"+f, "/.") || len(src) > 6_000 ||
			!strings.HasSuffix(src, "\n") || strings.Count(f, "/") == 0 {
			continue
		}
		if p := markup.Parse(f, []byte(src)); len(p.Problems) == 0 && len(p.Links) > 0 && len(p.Headings) > 1 &&
			p.Front.Values["title"] != nil || strings.HasPrefix(f, "docs/guide/") {
			folders[path.Dir(f)] = append(folders[path.Dir(f)], f)
		}
	}
	names := slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		if n := len(folders[b]) - len(folders[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	files = map[string]string{}
	for i, name := range names[:min(2, len(names))] {
		for _, f := range folders[name][:min(3-i, len(folders[name]))] {
			files[f] = all[f] + planted
			if markup.Parse(f, []byte(all[f])).Front.Kind == "" {
				files[f] = "---\ntitle: The zyxwv page\n---\n\n" + files[f]
			}
			if page == "" {
				page = f
				files[path.Dir(f)+"/zyxwv-target.md"] = "# The zyxwv target\n"
			}
			if i == 1 {
				other = f
			}
		}
	}
	if page == "" {
		t.Fatal("no page to try on")
	}
	if other == "" {
		other = folders[names[0]][1]
	}
	return files, page, other
}
