// Package wordset makes sets of words that stand in the program as one text.
package wordset

import "strings"

// Of is the set of the words in a text, which white space separates.
func Of(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
