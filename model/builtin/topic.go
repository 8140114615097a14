package builtin

import (
	"slices"
	"strings"

	"docent/model"
	"docent/search/analysis"
)

// A follow-up leaves out what the conversation is about. What it says itself replaces what was said of the same kind:
// "and on Linux?" after a question about Windows is not about Windows, "how do I remove one?" not about adding one.

// actions are what is done with a thing. A follow-up that names one is about that one.
var actions = verbs(`add create make write define declare register show display open start run launch install set
	configure enable disable change modify edit update upgrade remove delete drop uninstall unregister hide close stop
	build deploy publish send receive read get fetch load save store import export upload download test debug rename move
	copy list find filter sort format reload restart turn customize style override replace reset rotate revoke`)

// reversals are actions whose object is another action.
var reversals = set("undo revert reverse cancel")

// topic are the words that a follow-up takes over from the questions before it, the newest first.
func topic(question string, history []model.Message) (add []string) {
	have := make(map[uint64]bool)
	own := appendWords(nil, question)
	acts, reverses := false, false
	for _, w := range own {
		for _, t := range termsOf(w.text) {
			have[t.hash] = true
		}
		lower := strings.ToLower(w.text)
		acts = acts || actions[lower]
		reverses = reverses || reversals[lower]
	}
	for _, m := range slices.Backward(history) {
		if m.Role != "user" {
			continue
		}
		if len(add) == maxCarried {
			break
		}
		earlier := gist(m.Text)
		for _, w := range split(earlier) {
			lower := strings.ToLower(w.text)
			if replaced(lower, own) || acts && !reverses && actions[lower] {
				continue
			}
			fresh := false
			for _, t := range termsOf(w.text) {
				fresh = fresh || !have[t.hash]
				have[t.hash] = true
			}
			if fresh && len(add) < maxCarried {
				add = append(add, w.text)
			}
		}
		if !elliptical(earlier) {
			break
		}
	}
	return add
}

// replaced reports whether one of the words is an alternative to another one.
func replaced(lower string, by []word) bool {
	kind, name := analysis.Alternative(lower)
	return name != "" && slices.ContainsFunc(by, func(w word) bool {
		k, other := analysis.Alternative(w.text)
		return other != "" && k == kind
	})
}
