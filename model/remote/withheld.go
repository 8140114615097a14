package remote

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// Withheld are the model's instructions: an answer does not repeat them.
type withheld struct {
	runs   map[uint64]bool // of words, by their digests
	fences []string
	recent []string // the last words of the answer so far
}

const (
	longestRun = 6 // words in a row that are no chance
	// What a model says when it follows the instruction about what the documentation does not answer is like that
	// instruction itself.
	longestOwnRun = 9
	ownWords      = "If the passages do not answer"
)

// withhold keeps instructions back.
func withhold(system string) *withheld {
	w := &withheld{runs: map[uint64]bool{}}
	for line := range strings.Lines(system) {
		n := longestRun
		if strings.Contains(line, ownWords) {
			n = longestOwnRun
		}
		for run := range runs(wordsOf(line), n) {
			w.runs[run] = true
		}
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" <>/", r) }) {
			if strings.HasPrefix(field, "passages-") {
				w.fences = append(w.fences, strings.TrimRight(field, ".,:"))
			}
		}
	}
	return w
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// runs are the digests of so many words in a row each.
func runs(words []string, n int) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for i := 0; i+n <= len(words); i++ {
			h := fnv.New64a()
			for _, w := range words[i : i+n] {
				_, _ = h.Write([]byte(w))
				_, _ = h.Write([]byte{0})
			}
			if !yield(h.Sum64()) {
				return
			}
		}
	}
}

// in reports whether the next piece of an answer repeats the instructions, with what came before it.
func (w *withheld) in(text string) bool {
	if w == nil {
		return false
	}
	for _, f := range w.fences {
		if strings.Contains(text, f) {
			return true
		}
	}
	words := append(w.recent, wordsOf(text)...)
	w.recent = append([]string(nil), words[max(0, len(words)-longestOwnRun+1):]...)
	for _, n := range []int{longestRun, longestOwnRun} {
		for run := range runs(words, n) {
			if w.runs[run] {
				return true
			}
		}
	}
	return false
}
