package model

import (
	"slices"
	"strings"
)

// Standalone makes a search text from a question that leans on the conversation before it: "and how do I configure it?"
// becomes that with the words of the earlier question that it leaves out. A question that stands by itself comes back
// as it is.
func Standalone(question string, history []Message) string {
	if !elliptical(question) {
		return question
	}
	have := make(map[uint64]bool)
	for _, t := range terms(question) {
		have[t.hash] = true
	}
	var add []string
	for i := len(history) - 1; i >= 0 && len(add) < mostCarried; i-- {
		if history[i].Role != "user" {
			continue
		}
		earlier := history[i].Text
		for _, w := range split(earlier) {
			fresh := false
			for _, t := range termsOf(w.text) {
				fresh = fresh || !have[t.hash]
				have[t.hash] = true
			}
			if fresh && len(add) < mostCarried {
				add = append(add, w.text)
			}
		}
		if !elliptical(earlier) {
			break
		}
	}
	if len(add) == 0 {
		return question
	}
	return strings.TrimSpace(question) + " " + strings.Join(add, " ")
}

// mostCarried bounds the words taken over from earlier questions: more would drown the new one.
const mostCarried = 8

// elliptical reports whether a question says too little by itself: it begins as a continuation, points back with a
// pronoun that nothing in it explains, or has hardly a word of its own.
func elliptical(question string) bool {
	var room [64]word
	words := appendWords(room[:0], question)
	if len(words) == 0 {
		return true
	}
	own := make([]uint64, 0, 6) // different terms, as far as they are counted
	for _, w := range words {
		for _, t := range termsOf(w.text) {
			if len(own) < 6 && !slices.Contains(own, t.hash) {
				own = append(own, t.hash)
			}
		}
	}
	first := words[0].text
	switch {
	case len(own) == 0:
		return true
	case len(own) <= 5 && (strings.EqualFold(first, "and") || strings.EqualFold(first, "but") || strings.EqualFold(first, "or") ||
		len(words) > 1 && (strings.EqualFold(first, "what") || strings.EqualFold(first, "how")) && strings.EqualFold(words[1].text, "about")):
		return true
	case len(own) <= 1 && len(words) <= 4 && !named(question):
		return true
	case len(own) > 5:
		return false
	}
	// "it" that comes before the question's own nouns points back; after two of them it most likely points at those.
	before := 0
	for _, w := range words {
		if before >= 2 {
			return false
		}
		lower := strings.ToLower(w.text)
		switch lower {
		case "it", "its", "they", "them", "their", "these", "those", "that", "this":
			return true
		}
		before += len(termsOf(lower))
	}
	return false
}

// named reports whether a short question is a name of its own, such as a setting or a flag.
func named(question string) bool {
	return strings.ContainsAny(question, "_.-/`") || strings.ToLower(question) != question && strings.ToUpper(question[:1])+question[1:] != question
}

// Queries are the searches that find what a question asks: the question itself, standing alone, and where it asks two
// things each of them. The passages of a later search come after those of the first.
func Queries(question string, history []Message) []string {
	whole := Standalone(question, history)
	out := []string{whole}
	parts := clauses(question)
	if len(parts) < 2 {
		return out
	}
	var before []Message
	for _, p := range parts {
		if len(terms(p)) == 0 && !refers(p) {
			continue
		}
		out = append(out, strings.TrimSpace(Standalone(p, append(history[:len(history):len(history)], before...))))
		before = append(before, Message{Role: "user", Text: p})
	}
	if len(out) < 3 {
		return out[:1]
	}
	return out[:min(len(out), 4)]
}
