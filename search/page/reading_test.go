package page

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/bench/corpora"
	"docent/internal/cell"
	"docent/internal/testing/need"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// realPages reads the MDX pages of a real site.
func realPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for name, body := range corpora.Site(t, "mintlify") {
		if strings.HasSuffix(name, ".mdx") && Classify(name) == KindPage {
			pages[name] = string(body)
		}
	}
	return pages
}

var (
	slowFront    = regexp.MustCompile(`(?s)\A---\n.*?\n---\n`)
	slowFence    = regexp.MustCompile("^[ \t>]*(?:[-*+] +|[0-9]+[.)] +)?(`{3,}|~{3,})([^`]*)$")
	slowComment  = regexp.MustCompile(`(?s)\{/\*.*?\*/\}|<!--.*?-->`)
	slowModule   = regexp.MustCompile(`(?m)^(import\s.*|export\s+(const|let|function|default)\b(?s:.*?)\n[)}\]]+;?)$`)
	slowCodeSpan = regexp.MustCompile("``[^`\n]+(?:`[^`\n]+)*``|`[^`\n]+`")
	slowDest     = regexp.MustCompile(`\]\([^)\s]*(\s+"[^"]*")?\)`)
	slowAddress  = regexp.MustCompile(`https?://[^\s)"'>]+`)
	slowEntity   = regexp.MustCompile(`&#?\w+;`)
	slowWord     = regexp.MustCompile(`[A-Za-z]{3,}`)
	slowAttr     = regexp.MustCompile(`\s[A-Za-z-]+=(?:"([^"]*)"|'([^']*)')`)
)

// slowFences takes fenced code out of a text, line by line.
func slowFences(text string) (rest string, fences []string) {
	var b, code strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		m := slowFence.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case m != nil && fence == "":
			fence = m[1]
			code.WriteString(line)
		case m != nil && m[1][0] == fence[0] && len(m[1]) >= len(fence) && strings.TrimSpace(m[2]) == "":
			fence = ""
			fences = append(fences, code.String())
			code.Reset()
			b.WriteString("\n")
		case fence != "":
			code.WriteString(line)
		default:
			b.WriteString(line)
		}
	}
	return b.String(), append(fences, code.String())
}

// slowly takes JSX out of a text by counting brackets: tags, and what stands in braces outside of code. texts are the
// values of attributes that are written as texts.
func slowly(text string) (visible string, texts []string) {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '`': // a code span
			if m := slowCodeSpan.FindStringIndex(text[i:]); m != nil && m[0] == 0 {
				b.WriteString(text[i : i+m[1]])
				i += m[1]
				continue
			}
			b.WriteByte(c)
			i++
		case c == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i += 2
		case c == '{':
			i += closing(text[i:], '{', '}')
			b.WriteByte(' ')
		case c == '<' && i+1 < len(text) &&
			(text[i+1] == '/' || text[i+1] == '>' || text[i+1] >= 'A' && text[i+1] <= 'Z' || text[i+1] >= 'a' &&
				text[i+1] <= 'z'):
			end, depth, quote := i+1, 0, byte(0)
			for ; end < len(text); end++ {
				d := text[end]
				if quote != 0 {
					if d == quote {
						quote = 0
					}
					continue
				}
				switch {
				case d == '{':
					depth++
				case d == '}':
					depth--
				case depth == 0 && (d == '"' || d == '\''):
					quote = d
				}
				if d == '>' && depth == 0 {
					break
				}
			}
			tag := text[i:min(end+1, len(text))]
			for j := 0; j < len(tag); j++ { // no expressions among its texts
				if tag[j] == '{' {
					n := closing(tag[j:], '{', '}')
					tag = tag[:j] + strings.Repeat(" ", n) + tag[j+n:]
				}
			}
			for _, m := range slowAttr.FindAllStringSubmatch(tag, -1) {
				texts = append(texts, m[1]+m[2])
			}
			b.WriteByte(0)
			i = end + 1
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), texts
}

func closing(text string, open, end byte) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

func countWords(texts ...string) map[string]int {
	n := map[string]int{}
	for _, text := range texts {
		for _, w := range slowWord.FindAllString(text, -1) {
			n[strings.ToLower(w)]++
		}
	}
	return n
}

// No word that a reader sees is lost, and none that a reader does not see is indexed: what is indexed of each page of a
// real site lies between two slow readings, one that takes only what is surely seen and one that takes all that may be.
func TestNothingVisibleIsLostAndNothingInvisibleIsIndexed(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	seen, pages := 0, realPages(t)
	for name, src := range pages {
		r := &Record{Path: name, Kind: KindPage}
		source := Read(r, []byte(src))
		indexed := []string{r.Title}
		for _, s := range source.passages {
			indexed = append(indexed, s.heading, s.body, s.code)
		}
		got := countWords(indexed...)

		text := slowFront.ReplaceAllString(src, "")
		text, fences := slowFences(text)
		text = slowComment.ReplaceAllString(text, " ")
		text = slowModule.ReplaceAllString(text, "")
		visible, attributes := slowly(text)
		visible = slowDest.ReplaceAllString(visible, "]")
		visible = slowEntity.ReplaceAllString(visible, " ")
		joined := strings.NewReplacer("`", "", "*", "", "_", "", "\x00", "").Replace(visible)
		visible = strings.ReplaceAll(visible, "\x00", " ")
		other := countWords(slowAddress.ReplaceAllString(joined, " "))
		for w, n := range countWords(slowAddress.ReplaceAllString(visible, " ")) {
			n = min(n, other[w]) // when marks within a word part it, both readings are right
			seen += n
			if got[w] < n {
				t.Errorf("%s: %q is seen %d times and indexed %d times", name, w, n, got[w])
			}
		}
		may := countWords(append(append(fences, attributes...), visible, joined, src[:len(slowFront.FindString(src))],
			r.Title)...)
		for w, n := range got {
			if n > 0 && may[w] == 0 {
				t.Errorf("%s: %q is indexed and nowhere to be seen", name, w)
			}
		}
	}
	t.Logf("%d pages, %d words", len(pages), seen)
	if len(pages) < 250 || seen < 50_000 {
		t.Error("too little was read to compare with")
	}
}

// Other formats read as golden: a section an operation, a heading, a whole text.
func TestOtherFormatsReadAsGolden(t *testing.T) { readAsGolden(t, "testdata/reading", 6) }

// Twelve pages of a real site, picked for what they have in components, imports, code in attributes and tables, read as
// golden. The pages are Mintlify's; their license lies beside them.
func TestDifficultPagesReadAsGolden(t *testing.T) { readAsGolden(t, "testdata/mintlify", 12) }

func readAsGolden(t *testing.T, folder string, least int) {
	files, err := filepath.Glob(folder + "/*.*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".golden") {
			continue
		}
		n++
		t.Run(filepath.Base(f), func(t *testing.T) {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := Texts(t.Context(), cell.InProcess(Kinds()...), filepath.Base(f), content)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if len(texts) == 0 {
				fmt.Fprintln(&b, "nothing for readers")
			}
			for _, text := range texts {
				r := &Record{Path: filepath.Base(f), Renders: text.Renders, Kind: KindPage}
				if text.Path != "" {
					r.Path, r.File = text.Path, r.Path
				}
				writeRead(&b, r, text.Content)
			}
			golden := f + ".golden"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), want)
			}
		})
	}
	if n < least {
		t.Errorf("only %d files", n)
	}
}

// writeRead writes down how a page is read.
func writeRead(b *strings.Builder, r *Record, content []byte) {
	src := Read(r, content)
	if r.File != "" {
		fmt.Fprintf(b, "\npage %s renders %q tags %q\n", r.Path, r.Renders, r.Tags)
	}
	fmt.Fprintf(b, "kind %d title %q description %q hidden %t keywords %q groups %q links %v\n", r.Kind, r.Title,
		r.Description, r.Front.Hidden != "", r.Keywords, r.Groups, r.Links)
	for _, s := range src.passages {
		fmt.Fprintf(b, "section %d %q #%s %q\n", s.level, s.heading, s.anchor, s.trail)
		for line := range strings.Lines(s.body) {
			fmt.Fprintf(b, "\t%s\n", strings.TrimSpace(line))
		}
		for line := range strings.Lines(s.code) {
			fmt.Fprintf(b, "\t| %s\n", strings.TrimRight(line, "\n"))
		}
		shown := strings.TrimSpace(string(content[s.start:min(s.end, len(content))]))
		first, _, _ := strings.Cut(shown, "\n")
		fmt.Fprintf(b, "\tshown: %s … (%d lines)\n", first, strings.Count(shown, "\n")+1)
	}
}

// TestASchemaThatNamesItselfManyTimesIsReadWithinABound reads a document whose schemas unfold to 60^5 when nobody
// counts.
func TestASchemaThatNamesItselfManyTimesIsReadWithinABound(t *testing.T) {
	all := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/components/schemas/S"},`, 60), ",")
	doc := `{"openapi":"3.1.0","info":{"title":"Bomb"},"paths":{"/x":{"post":{"summary":"X","requestBody":{"content":{"application/json":{"schema":` +
		`{"$ref":"#/components/schemas/S"}}}}}}},"components":{"schemas":{"S":{"properties":{"a":{"type":"string"}},"allOf":[` + all + `]}}}}`
	texts := apiPages("openapi.json", []byte(doc))
	if len(texts) != 2 {
		t.Fatalf("%d pages", len(texts))
	}
	r := &Record{Path: texts[1].Path, File: "openapi.json", Kind: KindPage}
	src := Read(r, texts[1].Content)
	if len(src.passages) != 1 || r.Title != "POST /x: X" || !strings.Contains(src.passages[0].body, "a string no") {
		t.Errorf("%q: %d sections", r.Title, len(src.passages))
	}
}
