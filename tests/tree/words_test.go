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

// forbiddenInPages are those that the pages of the console say in no other way either.
var forbiddenInPages = []struct{ word, write string }{
	{`may be empty`, "optional"},
	{`taken? back`, "undone, revoked"},
	{`good for nothing`, "no longer works"},
	{`colours?|behaviours?|favour\w*|recognis\w+|authoris\w+`, "in American spelling"},
	{`e-mail`, "email"},
	{`store the`, "save"},
	{`look at (it|them)`, "review"},
	{`what stands|stands here`, "appears"},
	{`make (a|the|both|yourself an?) (\w+ )?(key|keys|account|secret|link|backup|project)`, "create"},
}

// unchecked are files that name the words, or a ferry's fare.
var unchecked = []string{"tests/tree/words_test.go", "tests/models/injected_test.go", "tests/models/models_test.go"}

func TestWordsAreThoseOfTheField(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	all := slices.Concat(forbidden, forbiddenInPages)
	words := make([]*regexp.Regexp, len(all))
	for i, f := range all {
		words[i] = regexp.MustCompile(`(?i)\b(` + f.word + `)\b`)
	}
	check := func(path string, line int, text string) {
		list := words[:len(forbidden)]
		if strings.HasSuffix(path, ".html") {
			list = words
		}
		for i, w := range list {
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
			for i, line := range strings.Split(string(src), "\n") {
				check(path, i+1, line)
			}
		case strings.HasSuffix(path, ".go"):
			file := token.NewFileSet().AddFile(path, -1, len(src))
			var s scanner.Scanner
			s.Init(file, src, nil, scanner.ScanComments)
			for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
				if tok == token.COMMENT || tok == token.STRING {
					check(path, file.Line(pos), text)
				}
			}
		}
		return nil
	})
	if files < 1000 {
		t.Errorf("only %d files and folders were looked at", files)
	}
}
