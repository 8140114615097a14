package tree

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbidden are words and phrases that read as translated, each with what to write in its place.
var forbidden = []struct{ word, write string }{
	{`anew`, "again, re-read, rebuilt, starts over"},
	{`fares?|faring`, "the status of, is healthy"},
	{`whoever|whomever`, "anyone who, the caller, the client"},
	{`of late`, "recently"},
	{`for good`, "permanently, durably"},
	{`that there (is|are|was|were) not`, "that does not exist"},
	{`(the|our) houses?`, "the server, the program"},
	{`rooms|(this|each|every|another) room`, "package"},
	{`(empty|nil|zero|none|false|also) where`, "if: where is for places"},
	{`catalogues?`, "catalog"},
	{`where (nil|zero|empty|there (is|are) no)`, "if: where is for places"},
}

// misspelled are those that pages, the documentation, comments, and the program's texts are without.
var misspelled = []struct{ word, write string }{
	{`colours?|coloured|behaviours?|favour\w*|recognis\w+|authoris\w+|organis(e[ds]?|ing|ations?)|(un)?labelled|whilst|licences?|capitalis\w+|summaris\w+|neighbours?|neighbouring`,
		"in American spelling"},
	{`e-mail`, "email"},
}

// forbiddenInPages are those that the pages of the console say in no other way either.
var forbiddenInPages = []struct{ word, write string }{
	{`may be empty`, "optional"},
	{`taken? back`, "undone, revoked"},
	{`good for nothing`, "no longer works"},
	{`store the`, "save"},
	{`look at (it|them)`, "review"},
	{`what stands|stands here`, "appears"},
	{`make (a|the|both|yourself an?) (\w+ )?(key|keys|account|secret|link|backup|project)`, "create"},
}

// wordLists are packages whose strings are words that other people write.
var wordLists = []string{"agent/rules", "bench/traffic", "search/analysis"}

// unchecked are files that name the words, or a ferry's fare.
var unchecked = []string{"tests/tree/words_test.go", "tests/models/injected_test.go", "tests/models/models_test.go"}

func TestWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	all := slices.Concat(forbidden, misspelled, forbiddenInPages)
	words := make([]*regexp.Regexp, len(all))
	for i, f := range all {
		words[i] = regexp.MustCompile(`(?i)\b(` + f.word + `)\b`)
	}
	check := func(path string, line, sets int, text string) {
		for i, w := range words[:[]int{len(forbidden), len(forbidden) + len(misspelled), len(words)}[sets]] {
			if said := w.FindString(text); said != "" {
				t.Errorf("%s:%d says %q; write: %s", path, line, said, all[i].write)
			}
		}
	}
	files, leftOut := 0, append([]string{".git", "bin", "data", "node_modules", "testdata"}, unchecked...)
	_ = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // what tests beside this one build comes and goes
		}
		if slices.Contains(leftOut, path) || slices.Contains(leftOut, entry.Name()) {
			return map[bool]error{true: fs.SkipDir}[entry.IsDir()]
		}
		files++
		src, _ := fs.ReadFile(root, path)
		switch {
		case path == "CONTRIBUTING.md" || path == "docs/ARCHITECTURE.md" || strings.HasPrefix(path, "web/templates/"):
			sets := map[string]int{".html": 2}[filepath.Ext(path)]
			for i, line := range strings.Split(string(src), "\n") {
				check(path, i+1, sets, line)
			}
		case strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".mdx"):
			text := fencedCode.ReplaceAllStringFunc(string(src), func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
			for i, line := range strings.Split(text, "\n") {
				check(path, i+1, 1, line)
			}
			for _, sentence := range longSentences(text) {
				t.Errorf("%s: a sentence of more than %d words: %s", path, maxSentence, sentence)
			}
		case strings.HasSuffix(path, ".go"):
			file := token.NewFileSet().AddFile(path, -1, len(src))
			var s scanner.Scanner
			s.Init(file, src, nil, scanner.ScanComments)
			for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
				if tok == token.COMMENT || tok == token.STRING {
					said := tok == token.STRING && !strings.HasSuffix(path, "_test.go") && !slices.Contains(wordLists, filepath.Dir(path))
					check(path, file.Line(pos), map[bool]int{true: 1}[said || tok == token.COMMENT], text)
				}
			}
		}
		return nil
	})
	if files < 1000 {
		t.Errorf("only %d files and folders were looked at", files)
	}
}

// maxSentence is how many words a sentence of the documentation may have outside tables. People write 25.
const maxSentence = 30

var (
	fencedCode   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	tableRow     = regexp.MustCompile(`(?m)^\|.*$`)
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	inlineCode   = regexp.MustCompile("`[^`]*`")
	endOfText    = regexp.MustCompile(`\n\s*\n|\n *(?:[-*]|\d+\.) `)
	endOfClauses = regexp.MustCompile(`[.!?:;]\s`)
)

// longSentences lists the sentences of a page that are too long, without its code.
func longSentences(text string) (list []string) {
	text = inlineCode.ReplaceAllString(linkTarget.ReplaceAllString(tableRow.ReplaceAllString(text, ""), "]"), "x")
	for _, paragraph := range endOfText.Split(text, -1) {
		for _, sentence := range endOfClauses.Split(paragraph, -1) {
			if len(strings.Fields(sentence)) > maxSentence {
				list = append(list, sentence)
			}
		}
	}
	return list
}
