package analysis

import "strings"

// irregular are forms of English verbs that no stemmer leads back to the verb. Forms that are words of their own are
// left out: found, left, felt, saw.
var irregular = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(`break broke broken
		buy bought
		choose chose chosen
		draw drew drawn
		drive drove driven
		forget forgot forgotten
		freeze froze frozen
		grow grew grown
		hide hid hidden
		hold held
		keep kept
		lose lost
		pay paid
		rewrite rewrote rewritten
		run ran
		sell sold
		speak spoken
		spend spent
		steal stole stolen
		take took taken
		throw threw thrown
		understand understood
		write wrote written`, "\n") {
		forms := strings.Fields(line)
		for _, form := range forms[1:] {
			m[form] = forms[0]
		}
	}
	return m
}()

// Regular is the verb that an English word is an irregular form of; the word itself if it is none.
func Regular(word string) string {
	if verb, ok := irregular[word]; ok {
		return verb
	}
	return word
}
