// Package growth provides a test helper that checks that work on a text grows no faster than the text.
package growth

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

// Texts that have been, or could be, read again and again from each of their places: pieces that are repeated.
var repeated = []string{
	"What is it? ", "how do I and why? ", "it? ", "word%d ", "a-", "aB", "why.\n", "\n", " ", "\n\n```\n", "x `", "``x",
	"[", "[a](", "[[a](b)](c) ", "![", "<", "<a ", "<a x=\"", "<!--",
	"{", "{.", "{#", "{{<", "{/*", "\\", "&nbsp;", "(", "a. b. ", ". ", "- a\n", "- - ", "- a\nlazy\n", "lazy\n", "> ",
	"| a ", "| a |\n", "# ", "#", "***", "~~~\n", "1. a\n   - b\n", ":::x\n", "[1] ", "[1", "[x]: y\n", "    c\n",
	"e.g. ", "a\n: b\n",
}

// nested are pieces of which one is repeated before a text and the other after it.
var nested = [][2]string{{"[", "](b)"}, {"![", "](b)"}, {"(", ")"}, {"{", "}"}, {"{{<", ">}}"}, {"<a ", ">"},
	{"`", "\n"}, {"```\n`", "`"}, {"- x\n", "lazy\n"}}

// workTexts names a file with the texts that a process is to work on.
const workTexts = "GROWTH_TEST_TEXTS"

// Check does each work on texts that repeat what has been, or could be, read again and again, and on texts twice as
// long. It counts how often each statement of the packages (as for -coverpkg) is carried out, in a process of its own:
// four times as often would be half an hour when a page is large. Time is not looked at. The test that calls Check
// must not do anything else.
func Check(t *testing.T, packages string, works ...func(t *testing.T, text string)) {
	t.Helper()
	if name := os.Getenv(workTexts); name != "" {
		workOn(t, name, works)
		return
	}
	if testing.Short() {
		t.Skip("compiles the package again to count its statements")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "counting.test")
	build := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-o", binary, ".")
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
		cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+t.Name()+"$", "-test.coverprofile="+profile)
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
	// A small text shows what the code here does, and quickly even if it is wrong. Regular expressions work in another
	// way on small texts than on large ones.
	for _, size := range []int{8_000, 20_000} {
		for some := range slices.Chunk(texts, 4) {
			var what, once, twice []string
			for _, text := range some {
				what, once, twice = append(what, text.what), append(once, text.make(size)), append(twice, text.make(2*size))
			}
			before := count(once)
			for place, n := range count(twice) {
				if n > 3*before[place] && n > 40*size && (place != "regexp" || size == 20_000) {
					t.Errorf("one of %q: %s is carried out %d times, and %d times when there is twice as much", what, place,
						before[place], n)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

// workOn is what the process does whose statements are counted.
func workOn(t *testing.T, name string, works []func(t *testing.T, text string)) {
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
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
