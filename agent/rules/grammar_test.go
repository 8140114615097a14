package rules

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"docent/agent/edit"
	"docent/agent/say"
	"docent/internal/testing/need"
)

func places(list []edit.Place) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, "+")
}

// shape shows what an instruction was understood as.
func shape(op edit.Operation) string {
	s := func(sc edit.Scope) string {
		var out []string
		for _, list := range sc.In {
			out = append(out, "in "+places(list))
		}
		if len(sc.Except) > 0 {
			out = append(out, "except "+places(sc.Except))
		}
		if len(sc.Parts) > 0 {
			out = append(out, "parts "+edit.Scope{Parts: sc.Parts}.String())
		}
		for name, on := range map[string]bool{"code": sc.Code} {
			if on {
				out = append(out, name)
			}
		}
		if sc.Links {
			out = append(out, "links")
		}
		if sc.Words {
			out = append(out, "words")
		}
		if sc.IgnoreCase {
			out = append(out, "nocase")
		}
		if len(out) == 0 {
			return ""
		}
		return " (" + strings.Join(out, ", ") + ")"
	}
	at := ""
	if w := op.Where(); w != nil {
		for _, list := range w.In {
			at += places(list)
		}
	}
	switch o := op.(type) {
	case *edit.Replace:
		return fmt.Sprintf("replace %s -> %s%s", o.From, o.To, s(o.Scope))
	case *edit.Rename:
		return fmt.Sprintf("rename %s -> %s%s", o.From, o.To, s(o.Scope))
	case *edit.Insert:
		return fmt.Sprintf("insert %q before=%v section=%v %s @%s", o.Text, o.Before, o.Section, o.Heading, at)
	case *edit.AddSection:
		return fmt.Sprintf("section %s %q before=%v near=%s @%s", o.Title, o.Text, o.Before, o.Near, at)
	case *edit.Append:
		return fmt.Sprintf("append %q top=%v section=%s @%s", o.Text, o.Top, o.Section, at)
	case *edit.DeleteSection:
		return fmt.Sprintf("delete section %s @%s", o.Heading, at)
	case *edit.DeleteText:
		return fmt.Sprintf("delete line=%v %s @%s", o.Unit == "line", o.Text, at)
	case *edit.Create:
		return fmt.Sprintf("create %s title=%s description=%s group=%s content=%q", o.Page, o.Title, o.Description, o.Group,
			o.Content)
	case *edit.Move:
		return fmt.Sprintf("move %s -> %s", o.From, o.To)
	case *edit.DeletePage:
		return fmt.Sprintf("delete page %s unlink=%v", o.Page, o.Unlink)
	case *edit.FixLinks:
		return "fix links" + s(o.Scope)
	case *edit.FixTypos:
		return "fix typos" + s(o.Scope)
	case *edit.SetFront:
		if o.Remove {
			return fmt.Sprintf("unset %s%s", o.Key, s(o.Scope))
		}
		return fmt.Sprintf("set %s=%s%s", o.Key, o.Value, s(o.Scope))
	case *edit.NavEntry:
		return fmt.Sprintf("nav %s group=%s after=%s before=%s top=%v remove=%v", o.Page, o.Group, o.After, o.Before, o.Top,
			o.Remove)
	case *edit.ChangeHeading:
		return fmt.Sprintf("heading %s -> %s @%s", o.From, o.To, at)
	case *edit.ListMarkers:
		return fmt.Sprintf("lists %c%s", o.Marker, s(o.Scope))
	case *edit.PointLinks:
		if o.Dest != "" {
			return fmt.Sprintf("links %s -> %s%s", o.Dest, o.To, s(o.Scope))
		}
		return fmt.Sprintf("link %s -> %s%s", o.Text, o.To, s(o.Scope))
	case *edit.LabelFences:
		return fmt.Sprintf("fences %s%s", o.Lang, s(o.Scope))
	case *edit.Undo:
		return strings.TrimSpace("undo " + o.Commit)
	case *edit.Many:
		var l []string
		for _, x := range *o {
			l = append(l, shape(x))
		}
		return strings.Join(l, " & ")
	}
	return fmt.Sprintf("%T", op)
}

func TestInstructionsAreUnderstood(t *testing.T) {
	for _, c := range []struct {
		prompt string
		want   []string
	}{
		// Replace.
		{`replace "a" with "b"`, []string{`replace a -> b`}},
		{`Please replace all "A b" with "B" in docs/x.md.`, []string{`replace A b -> B (in docs/x.md)`}},
		{`Replace every occurrence of “a” by “b” in guides/*.md and c.md`, []string{`replace a -> b (in guides/*.md+c.md)`}},
		{`replace 'a' with 'b', also in code`, []string{`replace a -> b (code)`}},
		{"replace `a` with `b` in x.md including code blocks", []string{`replace a -> b (in x.md, code)`}},
		{`replace "a" with "b" everywhere, only whole words, case-insensitive`, []string{`replace a -> b (words, nocase)`}},
		{`replace "a" with "b" in x.md, ignoring case and also in code`, []string{`replace a -> b (in x.md, code, nocase)`}},
		{`change "a" to "b" in x.md`, []string{`replace a -> b (in x.md)`}},
		{`Change all occurrences of "a" to "b" across the docs`, []string{`replace a -> b`}},
		{`replace "a" with "b" in all pages except y.md`, []string{`replace a -> b (except y.md)`}},
		{`replace "http://a.example" with "https://b.example" everywhere`,
			[]string{`replace http://a.example -> https://b.example`}},
		{`Could you replace foo with bar in x.md?`, []string{`replace foo -> bar (in x.md)`}},
		{`use "b" instead of "a" in x.md`, []string{`replace a -> b (in x.md)`}},
		{`replace the word "a" with "b" in the file x.md`, []string{`replace a -> b (in x.md, words)`}},
		{`In guides/a.md, replace "x" with "y" in guides/a.md`, []string{`replace x -> y (in guides/a.md)`}},
		{`remove "a" from x.md`, []string{`replace a ->  (in x.md)`}},
		{`replace "it's" with "it is"`, []string{`replace it's -> it is`}},
		{`replace "say \"hi\"" with "x"`, []string{`replace say "hi" -> x`}},
		{`Search and replace "a" with "b" everywhere (also in code)`, []string{`replace a -> b (code)`}},
		{`Find "a" and replace it with "b" in x.md`, []string{`replace a -> b (in x.md)`}},
		{`replace "a" → "b" in x.md`, []string{`replace a -> b (in x.md)`}},
		// Rename a term.
		{`rename "A" to "B" everywhere, including headings and titles`, []string{`rename A -> B`}},
		{`rename "Alertmanager" to "Alert Manager" everywhere`, []string{`rename Alertmanager -> Alert Manager`}},
		{`Rename “Alertmanager” to “Alert Manager” everywhere.`, []string{`rename Alertmanager -> Alert Manager`}},
		{`rename 'A' to 'B' in guides/`, []string{`rename A -> B (in guides/)`}},
		{`rename the term "A" to "B" throughout the documentation`, []string{`rename A -> B`}},
		{`Please rename Alertmanager to AlertManager everywhere`, []string{`rename Alertmanager -> AlertManager`}},
		{`rename "A" to "B"`, []string{`rename A -> B`}},
		{`change all mentions of Foo to Bar`, []string{`rename Foo -> Bar`}},
		// Insert, sections, append.
		{`add "Text." after heading "H" in a.md`, []string{`insert "Text." before=false section=false H @a.md`}},
		{`Insert the following paragraph "Text." before the heading "H" in a.md`,
			[]string{`insert "Text." before=true section=false H @a.md`}},
		{`insert "Text." under "H" in page a.md`, []string{`insert "Text." before=false section=false H @a.md`}},
		{`insert "Text." after the section "H" in a.md`, []string{`insert "Text." before=false section=true H @a.md`}},
		{"insert after heading \"H\" in a.md: Some *text*.\nAnd more.",
			[]string{`insert "Some *text*.\nAnd more." before=false section=false H @a.md`}},
		{"add this after heading \"H\" in a.md:\n\n```md\nx. y\n\nz\n```",
			[]string{`insert "x. y\n\nz\n" before=false section=false H @a.md`}},
		{`add a section "Limits" to a.md with content "None."`, []string{`section Limits "None." before=false near= @a.md`}},
		{`Add a new section titled "Limits" with content "None." after section "H" in a.md`,
			[]string{`section Limits "None." before=false near=H @a.md`}},
		{`append a section "Limits" to a.md: There are none.`,
			[]string{`section Limits "There are none." before=false near= @a.md`}},
		{`add a "Limits" section to a.md containing "None."`, []string{`section Limits "None." before=false near= @a.md`}},
		{`append "Text." to a.md`, []string{`append "Text." top=false section= @a.md`}},
		{`append the text "Text." to the end of a.md`, []string{`append "Text." top=false section= @a.md`}},
		{`add "Text." at the end of a.md`, []string{`append "Text." top=false section= @a.md`}},
		{`add "Text." to a.md`, []string{`append "Text." top=false section= @a.md`}},
		{`append "Text." to section "H" of a.md`, []string{`append "Text." top=false section=H @a.md`}},
		{`append "Text." to a.md in section "H"`, []string{`append "Text." top=false section=H @a.md`}},
		{`append "Text." to a.md section "H"`, []string{`append "Text." top=false section=H @a.md`}},
		{`add "Text." to the "H" section of a.md`, []string{`append "Text." top=false section=H @a.md`}},
		{`prepend "Text." to a.md`, []string{`append "Text." top=true section= @a.md`}},
		{`add "Text." to the top of a.md`, []string{`append "Text." top=true section= @a.md`}},
		{`Append the following to a.md: "Bye."`, []string{`append "Bye." top=false section= @a.md`}},
		{`Add the following text to a.md under "H": "Use it well."`,
			[]string{`append "Use it well." top=false section=H @a.md`}},
		{`Append a new section "S" to a.md with the following content: Write to us. Soon.`,
			[]string{`section S "Write to us. Soon." before=false near= @a.md`}},
		{"append to a.md: Text. More text.", []string{`append "Text. More text." top=false section= @a.md`}},
		// Delete.
		{`delete section "H" from a.md`, []string{`delete section H @a.md`}},
		{`Remove the section titled "H" in a.md`, []string{`delete section H @a.md`}},
		{`remove the "H" section from a.md`, []string{`delete section H @a.md`}},
		{`delete the paragraph containing "x y" from a.md`, []string{`delete line=false x y @a.md`}},
		{`delete the line containing "x" in a.md`, []string{`delete line=true x @a.md`}},
		{`delete page a.md`, []string{`delete page a.md unlink=false`}},
		{`delete guides/a.md and unlink it`, []string{`delete page guides/a.md unlink=true`}},
		{`remove the page guides/a.md, and remove all links to it`, []string{`delete page guides/a.md unlink=true`}},
		{`delete the page quickstart and then fix broken links`,
			[]string{`delete page quickstart unlink=false`, `fix links`}},
		// Create.
		{`create page a/b.md titled "T"`, []string{`create a/b.md title=T description= group= content=""`}},
		{`Create a page guides/foo.mdx titled "Foo" with content: Hello. This is it.`,
			[]string{`create guides/foo.mdx title=Foo description= group= content="Hello. This is it."`}},
		{"Create a new page guides/foo.mdx with title \"Foo\" and description \"D.\" in group \"G\" with content:\n\n# Hi\n\nText; and more, then done.", []string{`create guides/foo.mdx title=Foo description=D. group=G content="# Hi\n\nText; and more, then done."`}},
		{`add a page a.md called "T" with description "D" with content "C" under group "G"`,
			[]string{`create a.md title=T description=D group=G content="C"`}},
		{`create a page titled "T" at guides/t.md`, []string{`create guides/t.md title=T description= group= content=""`}},
		{`create page a.md with content "C." and rename "A" to "B"`,
			[]string{`create a.md title= description= group= content="C."`, `rename A -> B`}},
		{"Create the page a/b.md with title \"T\".\nContent:\n\n## H\n\nText.",
			[]string{`create a/b.md title=T description= group= content="## H\n\nText."`}},
		{"Create a page a/b.md titled \"T\" with this content:\n```mdx\n## H\n```\nThen add it to the navigation under \"G\".", []string{`create a/b.md title=T description= group= content="## H\n"`, `nav a/b.md group=G after= before= top=false remove=false`}},
		{"Create a page a/b.md titled \"T\" with content:\n```bash\nls\n```\nMore.",
			[]string{`create a/b.md title=T description= group= content="` + "```bash\\nls\\n```\\nMore." + `"`}},
		// Move.
		{`move a.md to b/a.md`, []string{`move a.md -> b/a.md`}},
		{`Move the page guides/a.md to tutorials/a.md.`, []string{`move guides/a.md -> tutorials/a.md`}},
		{`rename guides/a.md to guides/b.md`, []string{`move guides/a.md -> guides/b.md`}},
		// a page or a term: what there is decides
		{`rename "guides/a.md" to "guides/b.md"`, []string{`rename guides/a.md -> guides/b.md`}},
		{`rename page a.md to b.md`, []string{`move a.md -> b.md`}},
		{`move a.md into guides/`, []string{`move a.md -> guides/`}},
		// Links, typos.
		{`fix broken links`, []string{`fix links`}},
		{`Please fix all the broken internal links in guides/.`, []string{`fix links (in guides/)`}},
		{`fix typos`, []string{`fix typos`}},
		{`fix the spelling mistakes in a.md and b.md`, []string{`fix typos (in a.md+b.md)`}},
		{`Fix all broken links and typos`, []string{`fix links & fix typos`}},
		{`correct typos in guides/*.md`, []string{`fix typos (in guides/*.md)`}},
		// Front matter.
		{`set title of a.md to "T"`, []string{`set title=T (in a.md)`}},
		{`set the description of guides/a.md to "D. E"`, []string{`set description=D. E (in guides/a.md)`}},
		{`change the title of a.md to "T"`, []string{`set title=T (in a.md)`}},
		{`Update the title in a.md from "A" to "B"`, []string{`set title=B (in a.md)`}},
		{`set description to "D" in a.md and b.md`, []string{`set description=D (in a.md+b.md)`}},
		{`set hidden of a.md to true`, []string{`set hidden=true (in a.md)`}},
		{`set the front matter key sidebarTitle of a.md to "S"`, []string{`set sidebarTitle=S (in a.md)`}},
		{`add description "D" to the front matter of a.md`, []string{`set description=D (in a.md)`}},
		{`give a.md the title "T"`, []string{`set title=T (in a.md)`}},
		{`remove keywords from the front matter of a.md`, []string{`unset keywords (in a.md)`}},
		{`remove the description from a.md`, []string{`unset description (in a.md)`}},
		// Navigation.
		{`add a.md to navigation under "G"`, []string{`nav a.md group=G after= before= top=false remove=false`}},
		{`add a.md to the navigation in group "G" after b.md`,
			[]string{`nav a.md group=G after=b.md before= top=false remove=false`}},
		{`add guides/a.md to the "G" group`, []string{`nav guides/a.md group=G after= before= top=false remove=false`}},
		{`remove a.md from the navigation`, []string{`nav a.md group= after= before= top=false remove=true`}},
		// Headings, lists, fences.
		{`change heading "A" to "B" in a.md`, []string{`heading A -> B @a.md`}},
		{`rename the heading "A" to "B"`, []string{`heading A -> B @`}},
		{`change the "A" heading to "B" in a.md`, []string{`heading A -> B @a.md`}},
		{`use "-" for lists in a.md`, []string{`lists - (in a.md)`}},
		{`use * for lists`, []string{`lists *`}},
		{`use asterisks for bullet lists in guides/`, []string{`lists * (in guides/)`}},
		{`add language "bash" to bare code fences in a.md`, []string{`fences bash (in a.md)`}},
		{`Add the language bash to all code blocks without a language in a.md`, []string{`fences bash (in a.md)`}},
		{`label bare code blocks as "text"`, []string{`fences text`}},
		// Undo.
		{`undo that`, []string{`undo`}},
		{`Please revert the last change.`, []string{`undo`}},
		{`Revert commit 0123456789abcdef.`, []string{`undo 0123456789abcdef`}},
		// Several.
		{`Rename "A" to "B" in a.md. Then replace "c" with "d" in b.md; finally fix typos.`,
			[]string{`rename A -> B (in a.md)`, `replace c -> d (in b.md)`, `fix typos`}},
		{"Please do the following:\n- rename \"A\" to \"B\"\n- move a.md to b.md\n* fix broken links\n",
			[]string{`rename A -> B`, `move a.md -> b.md`, `fix links`}},
		{"1. set title of a.md to \"T\"\n2. append \"x\" to it\n",
			[]string{`set title=T (in a.md)`, `append "x" top=false section= @a.md`}},
		{`replace "a" with "b" in x.md and "c" in y.md`, nil},
		{`replace "a" with "b" and "c" with "d" in x.md`, []string{`replace a -> b (in x.md) & replace c -> d (in x.md)`}},
		{`replace "a" with "b" and "b" with "a" in x.md`, nil},
		{`replace "a" with "b" and "c" with "d", and fix typos in x.md`, nil},
		{`In x.md, replace "a" with "b". Fix typos in y.md.`, []string{`replace a -> b (in x.md)`, `fix typos (in y.md)`}},
		{`In x.md: replace "a" with "b"; fix typos`, []string{`replace a -> b (in x.md)`, `fix typos (in x.md)`}},
		{`In the headings, rename "a" to "b"`, []string{`rename a -> b (parts in the headings)`}},
		{`replace "a" with "b" in headings and tables of x.md`,
			[]string{`replace a -> b (in x.md, parts in the headings and the tables)`}},
		{`replace "a" with "b" in the tables of x.md, also in headings`,
			[]string{`replace a -> b (in x.md, parts in the tables and the headings)`}},
		{`replace "a" with "b" in code`, []string{`replace a -> b (parts in the code)`}},
		{`replace "a" with "b" in links too`, []string{`replace a -> b (links)`}},
		{`in x.md, change the title to "T"`, []string{`set title=T (in x.md)`}},
		{`replace "a" with "b" in the headings of x.md, in tables too`,
			[]string{`replace a -> b (in x.md, parts in the headings and the tables)`}},
		{`replace "a" with "b" in x.md, in headings too`, []string{`replace a -> b (in x.md)`}},
		{`In x.md only, replace "a" with "b"`, []string{`replace a -> b (in x.md)`}},
		{`replace "a" with "b" in prose only in x.md`, []string{`replace a -> b (in x.md, parts in the text)`}},
		{`replace "a" with "b" everywhere but in x.md`, []string{`replace a -> b (except x.md)`}},
		{`replace "a" with "b" in all pages but x.md`, []string{`replace a -> b (except x.md)`}},
		{`Except in blog/, replace "a" with "b"`, []string{`replace a -> b (except blog/)`}},
		{`replace "a" with "b" in x.md, but in y.md`, nil},
		{`replace "a" with "b" in x.md but not in code`, nil},
		{`replace "a" with "b" in x.md except the headings`, nil},
		{`change the link to a.md to b.md in c.md`, []string{`links a.md -> b.md (in c.md)`}},
		{`In c.md, point the link "A" to https://b.example.`, []string{`link A -> https://b.example (in c.md)`}},
		{`change the URL of the link "A" in c.md to b.md#x`, []string{`link A -> b.md#x (in c.md)`}},
		{`move the folder guides to howto`, []string{`move guides -> howto`}},
		{`create page a.md titled "T". Add it to the navigation under "G".`,
			[]string{`create a.md title=T description= group= content=""`,
				`nav a.md group=G after= before= top=false remove=false`}},
		{`rename "A" to "B" in a.md, and also in b.md`, []string{`rename A -> B (in a.md)`, `rename A -> B (in b.md)`}},
		{`In a.md, delete section "H"`, []string{`delete section H @a.md`}},
	} {
		ops, err := Parse(c.prompt, &Memory{})
		var got []string
		for _, op := range ops {
			got = append(got, shape(op))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") || (err == nil) != (c.want != nil) {
			t.Errorf("%q:\n got %q %v\nwant %q", c.prompt, got, err, c.want)
		}
	}
}

func TestFollowUpsReferToWhatCameBefore(t *testing.T) {
	for _, c := range []struct {
		prompts []string
		want    string
	}{
		{[]string{`rename "A" to "B" in a.md`, `also in b.md`}, `rename A -> B (in b.md)`},
		{[]string{`replace "a" with "b" in a.md, also in code`, `Do the same in guides/*.md`},
			`replace a -> b (in guides/*.md, code)`},
		{[]string{`fix typos in a.md`, `and in b.md too`}, `fix typos (in b.md)`},
		{[]string{`fix broken links and typos in a.md`, `and in b.md too`}, `fix links (in b.md) & fix typos (in b.md)`},
		{[]string{`replace "a" with "b" in the headings of a.md`, `also in b.md`},
			`replace a -> b (in b.md, parts in the headings)`},
		{[]string{`replace "a" with "b" in a.md`, `In b.md, do the same.`}, `replace a -> b (in b.md)`},
		{[]string{`rename "A" to "B" everywhere`, `rename it to "C"`}, `rename B -> C`},
		{[]string{`create page guides/a.md titled "T"`, `rename it to guides/b.md`}, `move guides/a.md -> guides/b.md`},
		{[]string{`create page guides/a.md titled "T"`, `append "x" to it`}, `append "x" top=false section= @guides/a.md`},
		{[]string{`create page guides/a.md titled "T"`, `set its description to "D"`}, `set description=D (in guides/a.md)`},
		{[]string{`create page guides/a.md titled "T"`, `delete it`}, `delete page guides/a.md unlink=false`},
		{[]string{`move a.md to b.md`, `add it to the navigation under "G"`},
			`nav b.md group=G after= before= top=false remove=false`},
		{[]string{`replace "a" with "b" in x.md and then rename "C" to "D" in x.md`, `do the same in y.md`},
			`replace a -> b (in y.md) & rename C -> D (in y.md)`},
	} {
		m := &Memory{}
		var last []edit.Operation
		for _, p := range c.prompts {
			ops, err := Parse(p, m)
			if err != nil {
				t.Fatalf("%q: %v", p, err)
			}
			last = ops
		}
		if len(last) != 1 || shape(last[0]) != c.want {
			t.Errorf("%q: %s, want %s", c.prompts, shape(last[0]), c.want)
		}
	}
	for _, p := range []string{`also in b.md`, `rename it to "C"`, `append "x" to it`, `do the same in y.md`} {
		if ops, err := Parse(p, &Memory{}); err == nil {
			t.Errorf("%q with nothing before it: %s", p, shape(ops[0]))
		}
	}
}

func TestWhatWasNotUnderstoodIsNamed(t *testing.T) {
	_, err := Parse("rename \"A\" to \"B\" everywhere. Make the intro friendlier. Fix typos.", &Memory{})
	var m *Misunderstanding
	if !errors.As(err, &m) || m.Part != "Make the intro friendlier" {
		t.Errorf("%v", err)
	}
}

func TestEveryExampleIsUnderstood(t *testing.T) {
	for _, e := range examples {
		if _, err := Parse(e, &Memory{}); err != nil {
			t.Errorf("%q: %v", e, err)
		}
	}
}

// TestEveryInstructionOfTheDocsIsUnderstood reads the lists of the page on instructions.
func TestEveryInstructionOfTheDocsIsUnderstood(t *testing.T) {
	page, err := os.ReadFile("../../docs/agent/instructions.mdx")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	check := func(prompt string) {
		// what stands at the end of one
		if strings.HasPrefix(prompt, "in ") || strings.HasPrefix(prompt, "under ") || prompt == "everywhere" {
			prompt = `replace "a" with "b" ` + prompt
		}
		if _, err := Parse(prompt, &Memory{}); err != nil {
			t.Errorf("%q: %v", prompt, err)
		}
		n++
	}
	forms, rest, _ := strings.Cut(string(page), "\n## Where an instruction works\n")
	places, _, _ := strings.Cut(rest, "\nName a page")
	for _, list := range regexp.MustCompile("(?s)```text\n(.*?)\n```").FindAllStringSubmatch(forms, -1) {
		for prompt := range strings.SplitSeq(list[1], "\n") {
			check(prompt)
		}
	}
	for _, code := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(places, -1) {
		check(code[1])
	}
	if n < 35 {
		t.Errorf("only %d instructions", n)
	}
}

// A parser that tried every way to read such prompts would not finish.
func TestHostilePromptsAreReadInBoundedTime(t *testing.T) {
	for _, unit := range []string{
		"in in ", "replace ", "replace \"a\" with \"b\" in a.md and ", "a.md, ", "\"", "'a ", "“", "`", "`` ` ", "~~~a\n",
		"```a\n", "the ", "and ", "create page a.md titled \"T\" and with ",
		"in all every each of the whole docs ", "- ", "1. ", "rename \"A\" to \"B\" in the the ", ", also in code", "\\\"",
		"(", "add \"x\" to the end of ", "fix typos in a.md and in b.md and in ",
		"We the x page ", "the x page the y page\n", "thanks ", "Thanks X. ", "hi ", "Best,\n", "We are, ", "We are. ", "so ",
		"replace \"a\" on the x page ", "delete the page and the page in ",
	} {
		size := 99_000
		if !need.All {
			size /= 10
		}
		prompt := strings.Repeat(unit, size/len(unit))
		if _, err := Parse(prompt, &Memory{}); err == nil {
			t.Errorf("%q… was understood", say.OneLine(prompt, 40))
		}
	}
}

func TestTwiceTheMarksAreTwiceTheWork(t *testing.T) {
	steps := func(n int) int {
		e := sentenceEnds{s: strings.Repeat(".", n) + "x"}
		for i := range n {
			if e.at(i) {
				t.Fatalf("a sentence ends at %d, in the midst of a word", i)
			}
		}
		return e.steps
	}
	if once, twice := steps(10_000), steps(20_000); twice > 3*once {
		t.Errorf("%d steps, and %d for twice the marks", once, twice)
	}
	if e := (&sentenceEnds{s: `a.") b`}); !e.at(2) || !e.at(3) || e.at(0) {
		t.Error("a sentence ends before a blank, whatever marks stand between")
	}
}

func TestAPromptOfManyOperationsStaysFarFromTheBoundOnItsWork(t *testing.T) {
	prompt := strings.Repeat(
		"In guides/a.md, replace \"time series\" with \"timeseries\" in the headings, then rename b.md to c.md. ",
		maxOperations/2)
	p := &parser{src: prompt, toks: lex(prompt)}
	pos, n := p.skip(0), 0
	for m := new(Memory); pos < len(p.toks); n++ {
		if to, _, ok := p.lead(pos, m); ok {
			pos = to
		}
		op, to, why := p.operation(pos, m)
		if op == nil {
			t.Fatalf("operation %d: %s", n, why)
		}
		pos = p.skip(to)
	}
	t.Logf("%d operations took %d steps", n, p.spent+p.steps)
	if p.spent+p.steps > maxPromptSteps/4 {
		t.Errorf("%d operations take %d steps of %d", n, p.spent+p.steps, maxPromptSteps)
	}
}

func FuzzParseInstruction(f *testing.F) {
	for _, e := range examples {
		f.Add(e)
	}
	f.Add("- the the the \"a\" in in in a.md, b.md and c.md\n```\nx")
	f.Fuzz(func(t *testing.T, prompt string) {
		ops, err := Parse(prompt, &Memory{})
		if (err == nil) != (len(ops) > 0) {
			t.Fatalf("%d operations and %v", len(ops), err)
		}
		for _, tok := range lex(prompt) {
			if tok.start < 0 || tok.end < tok.start || tok.end > len(prompt) {
				t.Fatalf("token %+v", tok)
			}
		}
	})
}

// A word that stands twice may be longer in the one case than in the other.
func TestAWordThatStandsTwiceIsReadInAnyScript(t *testing.T) {
	for _, text := range []string{`Typo: "ẞ ß"`, `Typo: "s ſ"`, `Typo: "k K"`, `Typo: "the the."`} {
		for _, r := range Read(text).Readings {
			for _, p := range r.Pairs {
				if !utf8.ValidString(p.New) {
					t.Errorf("%s: %q", text, p.New)
				}
			}
		}
	}
}
