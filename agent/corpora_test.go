package agent_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"docent/agent"
	"docent/internal/testing/need"
	"docent/site/markup"
)

// sampled is how many of a large set a test takes.
func sampled(n int) int {
	if !need.All {
		return max(n/4, 1)
	}
	return n
}

var sets = []string{"prometheus", "mintlify", "vite"}

// outside lists what a rename must not touch: code, destinations, tags apart from their text, keys of front matter.
func outside(p *markup.Page) []string {
	var out []string
	for _, c := range p.Code {
		out = append(out, "code "+string(p.Src[c.Inner.Start:c.Inner.End]))
	}
	for _, l := range p.Links {
		out = append(out, "link "+l.Dest)
	}
	for _, t := range p.Tags {
		if t.Name == "a" && len(t.Attrs) == 1 && t.Attrs[0].Name == "id" || t.Name == "a" && t.Close {
			continue // an anchor that was kept
		}
		s := "tag " + t.Name
		for _, a := range t.Attrs {
			s += " " + a.Name
		}
		out = append(out, s)
	}
	return out
}

func stated(t *testing.T, body string) (n, files int) {
	t.Helper()
	i := strings.Index(body, ": ")
	if _, err := fmt.Sscanf(body[i+2:], "%d occurrences in %d files", &n, &files); err != nil {
		t.Fatalf("no counts in %q: %v", body, err)
	}
	return n, files
}

func TestARenameTouchesProseAloneAndCountsItRight(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	for _, c := range []struct{ set, from, to string }{
		{"prometheus", "Alertmanager", "Alert Manager"}, {"prometheus", "Prometheus", "Zyxwv"},
		{"mintlify", "Mintlify", "Zyxwv"}, {"mintlify", "navigation", "zyxwv"}, {"vite", "Vite", "Zyxwv"},
		{"vite", "plugin", "zyxwv"},
	} {
		t.Run(c.set+" "+c.from, func(t *testing.T) {
			if !need.All && c.from != "Alertmanager" {
				t.Skip("one of each kind is enough")
			}
			files := corpus(t, c.set)
			j := newJob(t, files)
			j.once = !need.All
			if c.set == "prometheus" {
				j.project.SiteURL = "https://prometheus.io/docs"
			}
			res := j.must(fmt.Sprintf("rename %q to %q everywhere", c.from, c.to))
			n, changed := stated(t, res.Message)
			if changed != len(res.Changes) {
				t.Errorf("%d files stated, %d changed", changed, len(res.Changes))
			}
			found := 0
			for _, ch := range res.Changes {
				before, after := markup.Parse(ch.Path, []byte(files[ch.Path])), markup.Parse(ch.Path, ch.Content)
				if a, b := outside(before), outside(after); !slices.Equal(a, b) {
					t.Errorf("%s: code, links or tags differ", ch.Path)
				}
				if len(after.Problems) > len(before.Problems) {
					t.Errorf("%s: %v", ch.Path, after.Problems)
				}
				found += strings.Count(strings.ToLower(string(ch.Content)),
					strings.ToLower(c.to)) - strings.Count(strings.ToLower(files[ch.Path]), strings.ToLower(c.to))
				// Every other byte is as before: with the new term taken back, only kept anchors are left over.
				back := string(ch.Content)
				if c.to != "Alert Manager" {
					for _, f := range []func(string) string{func(s string) string { return s }, strings.ToLower, strings.ToUpper,
						func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }} {
						back = strings.ReplaceAll(back, f(c.to), f(c.from))
					}
					if strip(back) != strip(files[ch.Path]) {
						t.Errorf("%s: other bytes differ", ch.Path)
					}
				}
			}
			if found != n {
				t.Errorf("%d occurrences stated, %d in the files", n, found)
			}
			if c.from == "Alertmanager" && n < 35 {
				t.Errorf("only %d occurrences", n)
			}
		})
	}
}

// strip takes kept anchors off.
func strip(s string) string {
	for _, b := range [][2]string{{`<a id="`, `</a>`}, {" {#", "}"}} {
		for {
			i := strings.Index(s, b[0])
			if i < 0 {
				break
			}
			e := strings.Index(s[i:], b[1])
			if e < 0 {
				break
			}
			s = s[:i] + s[i+e+len(b[1]):]
		}
	}
	return s
}

// leads is a slow and simple reading of where a link goes: the files that it could mean.
func leads(files map[string]string, from, dest string, roots []string) string {
	dest, _, _ = strings.Cut(dest, "#")
	dest, _, _ = strings.Cut(dest, "?")
	if dest == "" || strings.Contains(dest, ":") || strings.HasPrefix(dest, "//") {
		return ""
	}
	var at []string
	if strings.HasPrefix(dest, "/") {
		for _, r := range roots {
			prefix, dir, _ := strings.Cut(r, ">")
			if rest, ok := strings.CutPrefix(dest, prefix); ok {
				at = append(at, path.Join(dir, rest))
			}
		}
	} else {
		at = append(at, path.Join(path.Dir(from), dest))
		at = append(at, path.Join(strings.TrimSuffix(from, path.Ext(from)), dest))
	}
	for _, p := range at {
		p = strings.Trim(p, "/")
		for _, c := range []string{p, p + ".md", p + ".mdx", p + "/index.md", p + "/index.mdx",
			strings.TrimSuffix(p, ".html") + ".md"} {
			if _, ok := files[strings.Trim(c, "/")]; ok {
				return strings.Trim(c, "/")
			}
		}
	}
	return ""
}

// canon writes a link between pages in one form, if the original has a roundabout one: ../guide/a.md within guide.
func canon(t *testing.T, files map[string]string, f, src string, roots []string) string {
	t.Helper()
	if !strings.HasSuffix(f, ".md") && !strings.HasSuffix(f, ".mdx") {
		return src
	}
	p := markup.Parse(f, []byte(src))
	var edits []markup.Edit
	for _, l := range p.Links {
		if l.At.Start < l.At.End && strings.HasPrefix(l.Dest, ".") {
			edits = append(edits, markup.Edit{Span: l.At, New: []byte(leads(files, f, l.Dest, roots))})
		}
	}
	out, err := markup.Apply(p.Src, edits)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAMoveRewritesEveryLinkAndTheWayBackGivesTheSameBytes(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	roots := map[string][]string{"prometheus": {"/docs>"}, "mintlify": {"/>"}, "vite": {"/>docs"}}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			files := corpus(t, set)
			var pages []string
			for p := range files {
				if strings.Count(p, "/") > 0 && (set != "vite" || strings.Count(p, "/") > 1) &&
					(strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".mdx")) && !strings.Contains(path.Base(p), "index") &&
					!strings.HasPrefix(path.Base(p), "README") && !strings.Contains("/"+p, "/.") &&
					path.Base(p) == strings.ToLower(path.Base(p)) {
					pages = append(pages, p)
				}
			}
			slices.Sort(pages)
			step := max(len(pages)/sampled(5), 1)
			moved := 0
			for i := 0; i < len(pages); i += step {
				p := pages[i]
				to := path.Join(path.Dir(path.Dir(p)), "elsewhere", "moved-"+path.Base(p))
				j := newJob(t, files)
				j.once = true
				res := j.do("move " + p + " to " + to)
				if len(res.Changes) == 0 {
					t.Errorf("%s: %s", p, res.Message)
					continue
				}
				moved++
				now := j.tree.files()
				name := func(f string) string {
					if f == p {
						return to
					}
					return f
				}
				for f, src := range files {
					if !strings.HasSuffix(f, ".md") && !strings.HasSuffix(f, ".mdx") {
						continue
					}
					a, b := markup.Parse(f, []byte(src)), markup.Parse(f, []byte(now[name(f)]))
					if len(a.Links) != len(b.Links) {
						t.Errorf("%s: %d links were %d", f, len(b.Links), len(a.Links))
						continue
					}
					for k := range a.Links {
						was := leads(files, f, a.Links[k].Dest, roots[set])
						is := leads(now, name(f), b.Links[k].Dest, roots[set])
						if was != "" && name(was) != is {
							t.Errorf("move %s: in %s the link %s led to %s; now %s leads to %q", p, f, a.Links[k].Dest, was, b.Links[k].Dest,
								is)
						}
						if was != p && f != p && a.Links[k].Dest != b.Links[k].Dest {
							t.Errorf("move %s: in %s the link %s became %s for nothing", p, f, a.Links[k].Dest, b.Links[k].Dest)
						}
					}
				}
				j.must("move " + to + " to " + p)
				for f, src := range files {
					if !strings.HasSuffix(f, ".json") && j.tree.files()[f] != src &&
						canon(t, files, f, src, roots[set]) != canon(t, files, f, j.tree.files()[f], roots[set]) {
						t.Errorf("move %s and back: %s differs:\n%s", p, f, udiff.Unified("before", "after", src, j.tree.files()[f]))
					}
				}
			}
			if moved < sampled(5) {
				t.Errorf("%d pages moved", moved)
			}
		})
	}
}

func TestInverseInstructionsGiveBackTheBytes(t *testing.T) {
	need.Everything(t, "one goroutine on whole documentation sets")
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			files := corpus(t, set)
			var pages []string
			for p, src := range files {
				if (strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".mdx")) && strings.HasSuffix(src, "\n") &&
					!strings.HasSuffix(src, "\n\n") && !strings.Contains("/"+p, "/.") &&
					path.Base(p) == strings.ToLower(path.Base(p)) {
					pages = append(pages, p)
				}
			}
			slices.Sort(pages)
			step := max(len(pages)/sampled(3), 1)
			done := 0
			for i := 0; i < len(pages); i += step {
				p := pages[i]
				src := files[p]
				pg := markup.Parse(p, []byte(src))
				if len(pg.Problems) > 0 {
					continue
				}
				pairs := [][2]string{
					{`append "A paragraph of zyxwv." to ` + p, `delete the paragraph containing "zyxwv" from ` + p},
					{`add a section "Zyxwv" with content "Text." to ` + p, `delete section "Zyxwv" from ` + p},
					{`create page zyxwv/new-page.md titled "Zyxwv"`, `delete page zyxwv/new-page.md`},
				}
				if pg.Front.Kind == "yaml" {
					pairs = append(pairs,
						[2]string{`set zyxwv of ` + p + ` to "Some: value"`, `remove zyxwv from the front matter of ` + p})
				}
				for _, h := range pg.Headings {
					same := 0
					for _, o := range pg.Headings {
						if strings.EqualFold(o.Text, h.Text) {
							same++
						}
					}
					raw := src[h.Inner.Start:h.Inner.End]
					if same == 1 && raw == h.Text && !strings.ContainsAny(raw, "\"\\<&`") && !h.Custom &&
						!strings.Contains(src[h.Span.Start:h.Span.End], "\n") {
						pairs = append(pairs, [2]string{
							fmt.Sprintf(`change heading "%s" to "Zyxwv heading" in %s`, raw, p),
							fmt.Sprintf(`change heading "Zyxwv heading" to "%s" in %s`, raw, p),
						})
						break
					}
				}
				for _, pair := range pairs {
					j := newJob(t, files)
					j.once = true
					j.must(pair[0])
					j.must(pair[1])
					for f, want := range files {
						if j.tree.files()[f] != want {
							t.Errorf("%s; %s: %s differs", pair[0], pair[1], f)
						}
					}
					if len(j.tree.files()) != len(files) {
						t.Errorf("%s; %s: %d files, not %d", pair[0], pair[1], len(j.tree.files()), len(files))
					}
					done++
				}
			}
			if done < sampled(8) {
				t.Errorf("%d pairs", done)
			}
		})
	}
}

func TestWholeSetOperationsKeepEveryPageSound(t *testing.T) {
	need.Everything(t, "one goroutine on whole documentation sets")
	for _, set := range sets {
		if !need.All && set == "mintlify" {
			continue
		}
		files := corpus(t, set)
		for _, prompt := range []string{
			`fix typos`, `fix broken links`, `use "-" for lists`, `add language "text" to bare code fences`,
			`set zyxwv to "x" in **/*.md*`,
			`replace "the" with "THE" everywhere, only whole words`,
			`replace "http://" with "https://" everywhere, also in code`,
		} {
			t.Run(set+" "+prompt, func(t *testing.T) {
				j := newJob(t, files)
				j.once = true
				res := j.do(prompt)
				if len(res.Changes) == 0 {
					t.Log(res.Message[:min(len(res.Message), 200)])
				}
				for _, c := range res.Changes {
					a, b := markup.Parse(c.Path, []byte(files[c.Path])), markup.Parse(c.Path, c.Content)
					if len(b.Problems) > len(a.Problems) || len(a.Headings) != len(b.Headings) || len(a.Code) != len(b.Code) ||
						len(a.Tags) > len(b.Tags) {
						t.Errorf("%s reads differently", c.Path)
					}
				}
			})
		}
	}
}

func TestARunStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := agent.New(agent.Options{}).Edit(ctx,
		agent.Task{Prompt: `rename "a" to "b" everywhere`, Tree: tree(map[string]string{"a.md": "a\n"})}, nil)
	if err == nil {
		t.Error("no error")
	}
}

// TestEveryOperationOnRealDocumentation carries out each of the thirteen operations on whole documentation sets. Every
// page that it touches must read as soundly as before, every link that led somewhere must lead somewhere, what it was
// not told to touch must be the same bytes, the inverse instruction, if there is one, must give back the original,
// and so must "undo".
func TestEveryOperationOnRealDocumentation(t *testing.T) {
	need.Everything(t, "one goroutine on whole documentation sets")
	roots := map[string][]string{"prometheus": {"/docs>"}, "mintlify": {"/>"}, "vite": {"/>docs"}}
	for _, set := range sets {
		if !need.All && set != "vite" {
			continue
		}
		files := corpus(t, set)
		p, heading, lone := samplePage(files)
		if p == "" {
			t.Fatalf("%s has no page to try on", set)
		}
		dir := path.Dir(p)
		type operation struct {
			name, prompt, inverse string
			only                  []string // files that may change; nil for any
		}
		ops := []operation{
			{"replace", `replace "the " with "zyxwv " everywhere`, `replace "zyxwv " with "the " everywhere`, nil},
			{"rename a term", `rename "configuration" to "zyxwvutsr" everywhere`,
				`rename "zyxwvutsr" to "configuration" everywhere`, nil},
			{"insert after a heading", fmt.Sprintf(`add "A zyxwv paragraph." after heading "%s" in %s`, heading, p),
				`delete the paragraph containing "zyxwv" from ` + p, []string{p}},
			{"insert before a heading", fmt.Sprintf(`add "A zyxwv paragraph." before heading "%s" in %s`, heading, p),
				`delete the paragraph containing "zyxwv" from ` + p, []string{p}},
			{"append", `append "A zyxwv paragraph." to ` + p, `delete the paragraph containing "zyxwv" from ` + p, []string{p}},
			{"prepend", `prepend "A zyxwv paragraph." to ` + p, `delete the paragraph containing "zyxwv" from ` + p,
				[]string{p}},
			{"delete a section", fmt.Sprintf(`delete section "%s" from %s`, lone, p), "", []string{p}},
			{"create a page", `create page ` + dir + `/zyxwv-page.md titled "Zyxwv" with description "About zyxwv"`,
				`delete page ` + dir + `/zyxwv-page.md`, nil},
			{"move a page", `move ` + p + ` to ` + dir + `/zyxwv-moved` + path.Ext(p), "", nil},
			{"delete a page", `delete page ` + p + ` and unlink it`, "", nil},
			{"fix links", `fix broken internal links`, "", nil},
			{"front matter of one page", `set zyxwv of ` + p + ` to "Some: value"`, `remove zyxwv from the front matter of ` + p,
				[]string{p}},
			{"front matter of all", `set zyxwv to "x" in **/*.md*`, ``, nil},
			{"navigation", ``, ``, nil},
			{"typos", `fix typos`, "", nil},
			{"a heading", fmt.Sprintf(`change heading "%s" to "Zyxwv heading" in %s`, heading, p),
				fmt.Sprintf(`change heading "Zyxwv heading" to "%s" in %s`, heading, p), nil},
			{"lists", `use "*" for lists`, "", nil},
			{"fences", `add language "text" to bare code fences`, "", nil},
		}
		for _, op := range ops {
			t.Run(set+" "+op.name, func(t *testing.T) {
				if op.name == "navigation" {
					if set != "mintlify" {
						t.Skip("its navigation is a program")
					}
					op.prompt, op.inverse = "remove "+p+" from the navigation", "" // where it stood is known to undo alone
				}
				j := newJob(t, files)
				j.once = true
				res := j.do(op.prompt)
				if len(res.Changes) == 0 {
					if op.name == "fix links" || op.name == "typos" || op.name == "fences" || op.name == "lists" {
						t.Skipf("nothing to do: %.200s", res.Message)
					}
					t.Fatalf("%s: %s", op.prompt, res.Message)
				}
				now := j.tree.files()
				moved := map[string]string{}
				for _, c := range res.Changes {
					if op.only != nil && !slices.Contains(op.only, c.Path) {
						t.Errorf("%s is touched", c.Path)
					}
					if c.From != "" {
						moved[c.Path] = c.From
					}
				}
				for _, c := range res.Changes {
					from := c.Path
					if moved[from] != "" {
						from = moved[from]
					}
					if c.Delete {
						continue
					}
					if after := markup.Parse(c.Path,
						c.Content); len(after.Problems) > len(markup.Parse(from, []byte(files[from])).Problems) {
						t.Errorf("%s: %v", c.Path, after.Problems)
					}
				}
				for f, src := range now { // links: none is lost, and none leads nowhere that led somewhere
					if !strings.HasSuffix(f, ".md") && !strings.HasSuffix(f, ".mdx") || src == files[f] && len(moved) == 0 &&
						op.name != "delete a page" {
						continue
					}
					from := f
					if moved[f] != "" {
						from = moved[f]
					}
					dead := func(all map[string]string, at, text string) (n int) {
						for _, l := range markup.Parse(at, []byte(text)).Links {
							if l.Dest != "" && !strings.ContainsAny(l.Dest, ":{") && !strings.HasPrefix(l.Dest, "#") &&
								leads(all, at, l.Dest, roots[set]) == "" {
								n++
							}
						}
						return n
					}
					if was, is := dead(files, from, files[from]), dead(now, f, src); is > was {
						t.Errorf("%s: %d links lead nowhere, %d did", f, is, was)
					}
				}
				same := func(what string) {
					t.Helper()
					back := j.tree.files()
					for f, want := range files {
						if back[f] != want {
							t.Errorf("%s: %s differs", what, f)
							return
						}
					}
					if len(back) != len(files) {
						t.Errorf("%s: %d files, not %d", what, len(back), len(files))
					}
				}
				j.must("undo")
				same("undo")
				if op.inverse != "" && !keepsAnchors(res.Message) {
					j = newJob(t, files)
					j.once = true
					j.must(op.prompt)
					j.must(op.inverse)
					same(op.inverse)
				}
			})
		}
	}
}

// keepsAnchors tells that an instruction kept anchors of changed headings, which an inverse one has no reason to
// remove.
func keepsAnchors(message string) bool { return strings.Contains(message, "Kept the anchor") }

// samplePage finds a page that other pages link to in running text, with front matter, a plain heading in it that
// stands alone, and another such that no link leads to.
func samplePage(files map[string]string) (page, heading, lone string) {
	var names []string
	var all strings.Builder
	for f, src := range files {
		names = append(names, f)
		all.WriteString(src)
	}
	text := all.String()
	slices.Sort(names)
	for _, f := range names {
		src := files[f]
		base := path.Base(f)
		if !strings.HasSuffix(f, ".md") && !strings.HasSuffix(f, ".mdx") || strings.Count(f, "/") < 1 ||
			base != strings.ToLower(base) || strings.HasPrefix(base, "index") || strings.Contains("/"+f, "/.") ||
			!strings.HasSuffix(src, "\n") || strings.HasSuffix(src, "\n\n") {
			continue
		}
		pg := markup.Parse(f, []byte(src))
		if len(pg.Problems) > 0 || pg.Front.Kind == "" || len(pg.Tags) > 0 {
			continue
		}
		name := "/" + strings.TrimSuffix(base, path.Ext(base))
		linked := false
		for _, other := range names {
			linked = linked || other != f && strings.Contains(files[other], name+")")
		}
		if !linked || strings.Contains(text, name+`"`) &&
			strings.Contains(text, `href="/`+strings.TrimSuffix(f, path.Ext(f))+`"`) {
			continue
		}
		heading, lone = "", ""
		for i, h := range pg.Headings {
			raw := src[h.Inner.Start:h.Inner.End]
			if i == 0 || raw != h.Text || strings.ContainsAny(raw, "\"\\<&`:*_[(") || h.Custom ||
				strings.Contains(src[h.Span.Start:h.Span.End], "\n") {
				continue
			}
			same := 0
			for _, o := range pg.Headings {
				if strings.EqualFold(o.Text, h.Text) {
					same++
				}
			}
			switch {
			case same > 1:
			case heading == "":
				heading = raw
			case lone == "" && !strings.Contains(text, "#"+h.Anchor) &&
				(i+1 == len(pg.Headings) || pg.Headings[i+1].Level <= h.Level):
				lone = raw
			}
		}
		if heading != "" && lone != "" {
			return f, heading, lone
		}
	}
	return "", "", ""
}
