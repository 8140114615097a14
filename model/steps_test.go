package model

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Work on what readers, pages and models write, by the text that it is done on. One of them is done alone, in a process whose
// statements are counted.
var works = map[string]func(t *testing.T, text string){
	"queries":  func(_ *testing.T, text string) { Queries(text, nil, nil) },
	"history":  func(_ *testing.T, text string) { Queries("why?", []Message{{Role: "user", Text: text}}, nil) },
	"selected": func(_ *testing.T, text string) { Queries("why?", nil, []Snippet{{Text: text}, {Text: text}}) },
	"question": func(t *testing.T, text string) {
		answerOf(t, Request{Question: text, Passages: []Passage{install}})
	},
	"page": func(t *testing.T, text string) {
		answerOf(t, Request{Question: "x", Passages: []Passage{{Path: "a.mdx", URL: "https://docs.example/a", Title: "A", Text: text + "\n\nx", Score: 1}}})
	},
	"page without components": func(t *testing.T, text string) {
		answerOf(t, Request{Question: "x", Passages: []Passage{{Path: "a.md", Title: "A", Text: text, Score: 1}}})
	},
	"quoted": func(_ *testing.T, text string) {
		for range pieces(text) {
			continue
		}
	},
	"prompt": func(_ *testing.T, text string) {
		Named{Window: defaultWindow, MaxTokens: defaultMaxTokens}.write(Request{Question: text, History: []Message{{Role: "user", Text: text}},
			Context: []Snippet{{Text: text}}, Passages: []Passage{{Text: text}}}, 3)
	},
	"cited": func(t *testing.T, text string) {
		c := &citer{given: []int{0, 1, 2}, emit: func(Delta) error { return nil }}
		for i := range len(text) { // as slowly as it may come
			if err := c.write(text[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	},
}

// Texts that have been, or could be, read again and again from each of their places: pieces that are repeated.
var repeated = []string{
	"What is it? ", "how do I and why? ", "it? ", "word%d ", "a-", "aB", "why.\n", "\n", " ", "\n\n```\n", "x `", "``x", "[", "[a](", "[[a](b)](c) ", "![", "<", "<a ", "<a x=\"", "<!--",
	"{", "{.", "{#", "{{<", "{/*", "\\", "&nbsp;", "(", "a. b. ", ". ", "- a\n", "- - ", "- a\nlazy\n", "lazy\n", "> ", "| a ", "| a |\n", "# ", "#", "***", "~~~\n", "1. a\n   - b\n", ":::x\n", "[1] ", "[1", "[x]: y\n", "    c\n", "e.g. ", "a\n: b\n",
}

// nested are pieces of which one is repeated before a text and the other after it.
var nested = [][2]string{{"[", "](b)"}, {"![", "](b)"}, {"(", ")"}, {"{", "}"}, {"{{<", ">}}"}, {"<a ", ">"}, {"`", "\n"}, {"```\n`", "`"}, {"- x\n", "lazy\n"}}

// workTexts names a file with the texts that a process is to work on.
const workTexts = "MODEL_TEST_WORK"

func TestWork(t *testing.T) {
	raw, err := os.ReadFile(os.Getenv(workTexts))
	if err != nil {
		t.Skip("this is a part of TestWorkGrowsNoFasterThanItsText")
	}
	var texts []string
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		for _, work := range works {
			work(t, text)
		}
	}
}

// TestWorkGrowsNoFasterThanItsText counts how often each statement is carried out for a text and for twice the text: four times as often
// would be half an hour where a page is large. Time is not looked at.
func TestWorkGrowsNoFasterThanItsText(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "counting.test")
	build := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg=docent/model,regexp,github.com/blevesearch/snowballstem/english", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	count := func(texts []string) map[string]int {
		t.Helper()
		file, profile := filepath.Join(dir, "texts"), filepath.Join(dir, "profile")
		raw, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestWork$", "-test.coverprofile="+profile)
		cmd.Env = append(os.Environ(), workTexts+"="+file)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if raw, err = os.ReadFile(profile); err != nil {
			t.Fatal(err)
		}
		times := map[string]int{}
		for line := range strings.Lines(string(raw)) { // file:from,to statements times
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, err := strconv.Atoi(f[2])
			if err != nil {
				t.Fatal(err)
			}
			if name, _, _ := strings.Cut(f[0], "/"); name == "regexp" {
				f[0] = name // which has several ways to do the same
			}
			times[f[0]] += n
		}
		return times
	}
	type text struct {
		what string
		make func(size int) string
	}
	var texts []text
	for _, piece := range repeated {
		texts = append(texts, text{piece, func(size int) string {
			var b strings.Builder
			for n := 0; b.Len() < size; n++ {
				b.WriteString(strings.ReplaceAll(piece, "%d", fmt.Sprint(n)))
			}
			return b.String()
		}})
	}
	for _, around := range nested {
		texts = append(texts, text{around[0] + "…" + around[1], func(size int) string {
			n := size / len(around[0]+around[1])
			return strings.Repeat(around[0], n) + "text" + strings.Repeat(around[1], n)
		}})
	}
	// A small text shows what the code here does, and quickly also where it is wrong. Regular expressions work in another way on small
	// texts than on large ones.
	for _, size := range []int{8_000, 40_000} {
		for some := range slices.Chunk(texts, 4) {
			var what, once, twice []string
			for _, text := range some {
				what, once, twice = append(what, text.what), append(once, text.make(size)), append(twice, text.make(2*size))
			}
			before := count(once)
			for place, n := range count(twice) {
				if n > 3*before[place] && n > 40*size && (place != "regexp" || size == 40_000) {
					t.Errorf("one of %q: %s is carried out %d times, and %d times when there is twice as much", what, place, before[place], n)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}
