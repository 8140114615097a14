package agent_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// A request is what a maintainer writes, and what must come out of it: one of several sets of files, or nothing.
type request struct {
	name, prompt string
	refuse       bool                // nothing may change
	outcomes     []map[string]string // the whole documentation set afterwards
}

// maxRefused is how many of the edits that are wanted are refused. It only gets smaller.
const maxRefused = 10

// TestNoRequestOfAMaintainerIsCarriedOutWrongly runs the requests of testdata/maintainer/prompts.txt, which were
// written before the grammar was looked at. Not one may be carried out in another way than wanted. That a wanted edit
// is refused is allowed, and counted.
func TestNoRequestOfAMaintainerIsCarriedOutWrongly(t *testing.T) {
	carriedOutAsWanted(t, "prompts.txt", maxRefused)
}

// TestRequestsInPeoplesWordsComeOutRightOrAreAsked does the same with requests in people's words.
func TestRequestsInPeoplesWordsComeOutRightOrAreAsked(t *testing.T) {
	carriedOutAsWanted(t, "words.txt", 0)
}

// What is said to be the typo is the right one: the documentation has the other, which nobody can mean.
func TestATypoNamedTheWrongWayRound(t *testing.T) {
	for text, want := range map[string]string{"Set a initial value. It is an initial one.\n": "Set an initial value. It is an initial one.\n", "Set an initial value.\n": "Set an initial value.\n"} {
		j := newJob(t, map[string]string{"a.md": text})
		j.do(`typo: "an initial" instead of "a initial"`)
		if got := j.tree.files()["a.md"]; got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A page that is named by its address is not missing from a request that is asked back.
func TestARequestThatIsAskedBackKeepsItsPage(t *testing.T) {
	j := newJob(t, maintained(t))
	res := j.do("Spelling mistake\n\nOn https://docs.tide.example.com/guides/upgrade/ the spelling of minute is wrong.")
	if len(res.Changes) > 0 || !strings.Contains(res.Message, "the page “guides/upgrade.md”") {
		t.Error(res.Message)
	}
}

// Of the places where a text stands, those in the section that the request names are offered first.
func TestThePlacesOfTheSectionThatIsNamedAreOfferedFirst(t *testing.T) {
	j := newJob(t, map[string]string{"a.md": "# A\n\nUse postAdded-2 and postAdded.\n", "b.md": "# B\n\n## Updating Posts\n\nCall postAdded.\n"})
	res := j.do("In `Updating Posts` it mentions `postAdded` but it should be `postUpdated`.")
	first, _, _ := strings.Cut(res.Message[strings.Index(res.Message, "\n- ")+1:]+"\n", "\n")
	if len(res.Changes) > 0 || !strings.Contains(first, "b.md") {
		t.Error(res.Message)
	}
}

// Where a text stands in several places, the documentation and the other words of the request tell which is meant; where they do not,
// it is asked back.
func TestThePlaceIsToldByTheDocumentation(t *testing.T) {
	for _, c := range []struct {
		name, prompt, changed string
		files                 map[string]string
	}{
		{"a slip that stands on one page alone", "docs: version typo\n\n`varsion` -> `version`", "a.md",
			map[string]string{"a.md": "A varsion.\n\n```\nvarsion: 1\n```\n", "b.md": "The version.\n", "c.md": "A version.\n"}},
		{"a word that stands on other pages too", "docs: typo\n\n`casual` -> `causal`", "",
			map[string]string{"a.md": "A casual link. A casual walk.\n", "b.md": "A casual talk.\n", "c.md": "A causal link.\n", "d.md": "The causal one.\n"}},
		{"a page by the words of its name", "typo in the rotation of logs: `keepp` -> `keepOld`", "log-rotation.md",
			map[string]string{"log-rotation.md": "Set keepp.\n", "disks.md": "Set keepp.\n"}},
		{"a title of one word is no name", "The commands of a fork of mine: use `keepOld` instead of `keepp`", "",
			map[string]string{"cli.md": "# Commands\n\nSet keepp.\n", "disks.md": "Set keepp.\n"}},
		{"a place by the words of its line", "a.md: change INFO to NOTE for the analysis duration message", "a.md",
			map[string]string{"a.md": "Logs have INFO.\n\nThe message of the analysis duration is INFO.\n"}},
		{"a version of what is named", "bump pygments from 2.18.0 to 2.19.2", "",
			map[string]string{"a.md": "Dart 2.18.0 is needed.\n"}},
		{"a mark of emphasis", "a.md: granchild -> grandchild", "a.md", map[string]string{"a.md": "The _granchild context_ is new.\n"}},
		{"a sentence on a page of another site", "On https://other.example.org/guide it says \"a minute\", it should be \"an hour\".", "",
			map[string]string{"a.md": "It takes a minute.\n"}},
		{"a sentence on a page of the site", "On https://docs.example.org/a it says \"a minute\", it should be \"an hour\".", "a.md",
			map[string]string{"a.md": "It takes a minute.\n", "b.md": "It takes a minute.\n"}},
	} {
		j := newJob(t, c.files)
		j.project.SiteURL = "https://docs.example.org"
		res := j.do(c.prompt)
		changed := ""
		for _, f := range res.Changes {
			changed += f.Path
		}
		if changed != c.changed {
			t.Errorf("%s: changed %q, wanted %q: %s", c.name, changed, c.changed, res.Message)
		}
	}
}

// A page and its translations have the text: the page is meant.
func TestTranslationsAreLeftToTheirOwnRequests(t *testing.T) {
	j := newJob(t, map[string]string{"mkdocs.yml": "site_name: A\nplugins:\n  - i18n:\n      docs_structure: folder\n      languages:\n        - locale: en\n          default: true\n        - locale: de\n",
		"docs/en/a.md": "Set exbibite.\n", "docs/de/a.md": "Setze exbibite.\n"})
	res := j.do("`exbibite` -> `exbibyte`")
	if len(res.Changes) != 1 || res.Changes[0].Path != "docs/en/a.md" {
		t.Error(res.Changes, res.Message)
	}
}

func carriedOutAsWanted(t *testing.T, list string, maxRefused int) {
	t.Helper()
	docs := maintained(t)
	right, refused, wrong := 0, 0, 0
	requests := maintainersRequests(t, list, docs)
	for _, r := range requests {
		j := newJob(t, docs)
		j.once = true
		res := j.do(r.prompt)
		after := keptAnchorsOff(j.tree.files())
		switch {
		case len(res.Changes) == 0 && r.refuse,
			slices.ContainsFunc(r.outcomes, func(want map[string]string) bool { return maps.Equal(want, after) }):
			right++
		case len(res.Changes) == 0:
			refused++
			t.Logf("refused: %s: %q: %s", r.name, r.prompt, firstLine(res.Message))
		default:
			want := "nothing changed"
			if len(r.outcomes) > 0 {
				want = difference(docs, r.outcomes[0])
			}
			wrong++
			t.Errorf("WRONG: %s: %q\n%s\n--- what came out:\n%s--- what was wanted:\n%s", r.name, r.prompt,
				firstLine(res.Message), difference(docs, after), want)
		}
	}
	t.Logf("%d requests: %d right, %d refused where an edit was wanted, %d wrong", len(requests), right, refused, wrong)
	if refused > maxRefused {
		t.Errorf("%d wanted edits are refused; at most %d were", refused, maxRefused)
	}
}

func firstLine(s string) string { return strings.SplitN(s, "\n", 2)[0] }

// difference shows what is not the same in two documentation sets.
func difference(a, b map[string]string) string {
	var out strings.Builder
	names := slices.Sorted(maps.Keys(a))
	for f := range b {
		if _, ok := a[f]; !ok {
			names = append(names, f)
		}
	}
	for _, f := range names {
		if a[f] != b[f] {
			out.WriteString(udiff.Unified(f, f, a[f], b[f]))
		}
	}
	return out.String()
}

// keptAnchorsOff takes the anchors off that are kept for changed headings: whether one is kept is another test's
// question.
func keptAnchorsOff(files map[string]string) map[string]string {
	out := map[string]string{}
	for f, src := range files {
		out[f] = strip(src)
	}
	return out
}

// maintained reads the documentation set of testdata/maintainer.
func maintained(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("testdata", "maintainer", "docs")
	files := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

// maintainersRequests reads a list of testdata/maintainer; prompts.txt says how it is written.
func maintainersRequests(t *testing.T, list string, docs map[string]string) []request {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "maintainer", list))
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	for _, part := range strings.Split("\n"+string(b), "\n=== ")[1:] {
		head, want, ok := strings.Cut(part, "\n---\n")
		name, prompt, named := strings.Cut(head, "\n")
		if !ok || !named {
			t.Fatalf("no outcome: %s", part)
		}
		r := request{name: name, prompt: prompt}
		for _, alternative := range strings.Split(strings.TrimRight(want, "\n"), "\nor\n") {
			if alternative == "refuse" {
				r.refuse = true
				continue
			}
			files, err := outcome(docs, alternative)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.outcomes = append(r.outcomes, files)
		}
		out = append(out, r)
	}
	return out
}

// outcome applies what is wanted to the documentation set.
func outcome(docs map[string]string, want string) (map[string]string, error) {
	files := maps.Clone(docs)
	file := ""
	var old, now []string
	hunk := func() error {
		defer func() { old, now = nil, nil }()
		switch text := strings.Join(old, ""); {
		case len(old)+len(now) == 0:
		case file == "":
			return fmt.Errorf("a hunk of no file: %q", now)
		case text == "":
			files[file] += strings.Join(now, "")
		case strings.Count("\n"+files[file], "\n"+text) != 1:
			return fmt.Errorf("%s has it %d times: %q", file, strings.Count("\n"+files[file], "\n"+text), text)
		default:
			files[file] = strings.Replace("\n"+files[file], "\n"+text, "\n"+strings.Join(now, ""), 1)[1:]
		}
		return nil
	}
	for line := range strings.Lines(want + "\n") {
		if text := line[1:]; line[0] == ' ' || line[0] == '-' || line[0] == '+' {
			if line[0] != '+' {
				old = append(old, text)
			}
			if line[0] != '-' {
				now = append(now, text)
			}
			continue
		}
		if err := hunk(); err != nil {
			return nil, err
		}
		words := strings.Fields(line)
		switch {
		case words[0] == "@@":
			continue
		case words[0] == "gone":
			delete(files, words[1])
		case words[0] == "moved" && files[words[1]] != "":
			files[words[3]] = files[words[1]]
			delete(files, words[1])
		case words[0] == "in" && files[words[1]] == "", words[0] == "new" && files[words[1]] != "", words[0] != "in" &&
			words[0] != "new":
			return nil, fmt.Errorf("not understood: %s", line)
		}
		file = words[len(words)-1]
	}
	return files, hunk()
}

// Words without quotes are cut off at marks, which may be a part of them: then it is asked what is meant.
func TestAMarkWithinATextIsNoEndOfIt(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\nIt prints Hello, world. The list is alpha,beta. 1,000 lines and 5 pages at 2,5 GHz. Port 9090; then stop.\n"}
	for prompt, want := range map[string]string{
		`Replace "," with "." in the clock speed: 2,5 GHz -> 2.5 GHz (a.md)`: "world. The list is alpha,beta. 1,000 lines and 5 pages at 2.5 GHz",
		"2,5 GHz -> 2.5 GHz (a.md)":                               "at 2.5 GHz",
		"2,5 GHz should be 2.5 GHz in a.md":                       "at 2.5 GHz",
		"2,5 -> 2.5":                                              "at 2.5 GHz",
		"In a.md it should be 5,000 instead of 1,000":             "5,000 lines",
		"1,000 lines -> 1,500 lines":                              "1,500 lines",
		"Hello, world -> Hello, World in a.md":                    "",
		"alpha,beta -> alpha, beta":                               "",
		"alpha,beta should be alpha, beta":                        "",
		"port 9090; then stop -> port 9091; then stop":            "",
		"Hello, world -> Hello, World\nalpha,beta -> alpha, beta": "",
	} {
		j := newJob(t, maps.Clone(files))
		res := j.do(prompt)
		got := j.tree.files()["a.md"]
		if (got != files["a.md"]) != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\n%s", prompt, got, res.Message)
		}
	}
	if res := newJob(t, maps.Clone(files)).do("change 1,000 lines to 2,000 pages in a.md"); strings.Contains(res.Message, `"000"`) {
		t.Error(res.Message)
	}
}

func TestANameIsChangedWhole(t *testing.T) {
	for _, prompt := range []string{"rename Foo Bar to Baz Qux in a.md", "change Foo Bar to Baz Qux", "Foo Bar should be Baz Qux"} {
		j := newJob(t, map[string]string{"a.md": "# A\n\nThe Foo Bar.\n"})
		if res := j.do(prompt); len(res.Changes) > 0 && j.tree.files()["a.md"] != "# A\n\nThe Baz Qux.\n" {
			t.Errorf("%s: %s", prompt, res.Message)
		}
	}
}

// A number is a word: a part of it is not meant by the whole.
func TestANumberIsNoPartOfAnother(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\nVersion 1.2.3 has 3 replicas, 2 GB of RAM, 1,000 lines, and is free (for now).\n"}
	for prompt, want := range map[string]string{
		"3 -> 5": "Version 1.2.3 has 5 replicas", `replace "3" with "5" in a.md`: "Version 1.2.3 has 5 replicas",
		`replace "1" with "2" in a.md`: "", `replace "1.2" with "1.3" in a.md`: "", "2 GB should be 4GB": "", "2 GB should be 4 GB": "4 GB of RAM",
		"free (for now) -> free (forever)": "", "3 -> 5 -> 7": "",
	} {
		j := newJob(t, maps.Clone(files))
		res := j.do(prompt)
		if got := j.tree.files()["a.md"]; (got != files["a.md"]) != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s\n%s", prompt, got, res.Message)
		}
	}
}

// A page beside an arrow says where, a template has the old text in its description, and a request of which a part is not read
// is not carried out by half.
func TestARequestIsReadWhole(t *testing.T) {
	files := map[string]string{"guides/a.md": "# A\n\nUse the colour. It listens on port 8080, and waits.\n", "guides/b.md": "# B\n\nIt listens on port 8080.\n"}
	const template = "### Describe the issue\nThe page says `port 8080`, which is old.\n\n### URL of the docs\nhttps://docs.acme.test/guides/b/\n\n### Expected content\n"
	for prompt, want := range map[string]string{
		"https://github.com/acme/docs/blob/main/guides/b.md#L3 colour -> color": "",
		"guides/b.md colour -> color":                                           "",
		"guides/a.md colour -> color":                                           "guides/a.md",
		"replace colour with color, 8080 with 9090 in guides/a.md":              "",
		`replace "colour" with "color" and remove "and" once in guides/a.md`:    "",
		template + "`port 9090`":                                                "guides/b.md",
		template + "It should say `port 9090`.":                                 "guides/b.md",
		template + "A section on `port 9090` is needed":                         "",
	} {
		j := newJob(t, maps.Clone(files))
		res := j.do(prompt)
		if (len(res.Changes) > 0) != (want != "") || want != "" && res.Changes[0].Path != want {
			t.Errorf("%s: %s", prompt, res.Message)
		}
	}
}

// What takes some of the places of a text and leaves others is a restriction, and no word for all of them.
func TestEverySecondIsNotEvery(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\nA server has clients.\n\n## B\n\nA client has a server.\n"}
	for _, prompt := range []string{
		`replace every second "server" with "host" in a.md`, `every other "server" should be "host" in a.md`,
		`replace each 2nd "server" with "host" in a.md`, `replace all but one "server" with "host" in a.md`,
		`replace nearly all "server" with "host" in a.md`,
	} {
		j := newJob(t, maps.Clone(files))
		if res := j.do(prompt); len(res.Changes) > 0 || res.Outcome != "needs_detail" {
			t.Errorf("%s: %s %s", prompt, res.Outcome, res.Message)
		}
	}
}

// Each form that is offered changes one of the places, and no other one.
func TestTheFormsThatAreOfferedChangeOnePlaceEach(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\nStart the server first.\n\n## B\n\nA server has clients.\n\n### C\n\nThe last server.\n"}
	res := newJob(t, maps.Clone(files)).do(`In the first paragraph of a.md, replace "server" with "host".`)
	var forms []string
	for line := range strings.Lines(res.Message) {
		if form, ok := strings.CutPrefix(line, "- "); ok {
			forms = append(forms, strings.TrimSpace(form))
		}
	}
	if len(forms) != 3 {
		t.Fatal(res.Message)
	}
	for _, form := range forms {
		j := newJob(t, maps.Clone(files))
		if j.do(form); strings.Count(j.tree.files()["a.md"], "host") != 1 {
			t.Errorf("%s: %s", form, j.tree.files()["a.md"])
		}
	}
}

// A hint says no more than the request: it has each page and text that is named, and one link is not all of them.
func TestAHintSaysNoMoreThanTheRequest(t *testing.T) {
	files := map[string]string{"a.md": "# A\n\nThe Foo Bar and [b](b.md).\n", "b.md": "# B\n"}
	for prompt, not := range map[string]string{
		"fix the dead link https://example.com/foo":                           "fix broken links",
		"fix the broken link to /foo in a.md":                                 "fix broken links",
		"Please fix the broken link on the A page":                            "fix broken links",
		"fix the broken links to b.md in a.md":                                "fix broken links\n",
		"these links are dead, fix them: https://a.example https://b.example": "fix broken links",
		"delete page PAGE":                                                    "The nearest instruction",
		"move a.md to PAGE":                                                   "The nearest instruction",
		`add PAGE to navigation under "Guides"`:                               "The nearest instruction",
	} {
		res := newJob(t, maps.Clone(files)).do(prompt)
		if len(res.Changes) > 0 || strings.Contains(res.Message+"\n", not) {
			t.Errorf("%s: %s", prompt, res.Message)
		}
		if strings.Contains(prompt, "PAGE") && !strings.Contains(res.Message, "fill them in") {
			t.Errorf("%s: %s", prompt, res.Message)
		}
	}
}
