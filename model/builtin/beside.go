package builtin

import (
	"regexp"
	"slices"
	"strings"
)

// What has all words of a question may still be beside it: it does something else with the same things, or is written for
// those who make the product.

const (
	otherThing = 0.25 // what a section's score loses that does something else
	ofMakers   = 0.2  // share of the search's that a page for those who make the product loses
)

// otherForm matches headings that ask something else than how a thing is done.
var otherForm = regexp.MustCompile(`(?i)^\W*(?:how (?:much|many|long|often)|why|when|what|which|who|where)\b.*\?\W*$`)

// beside reports whether a heading has nothing but what is asked about, and does or asks something else with it: "Fetch
// scheduled messages", "How much data is imported?"
func (q *query) beside(heading string) bool {
	words := split(heading)
	if len(words) < 2 {
		return false
	}
	if !otherForm.MatchString(heading) {
		does := termsOf(words[0].text)
		if !actions[strings.ToLower(words[0].text)] || len(does) == 0 || q.find(does[0].hash) >= 0 {
			return false
		}
	}
	any := false
	for _, w := range words[1:] {
		for _, t := range termsOf(w.text) {
			if q.find(t.hash) < 0 {
				return false
			}
			any = true
		}
	}
	return any
}

var (
	// makers are folders and files of pages for those who make a product, and of what was new in it.
	makers = set(`dev devel develop development contribute contributing contributors internals hacking changelog changelogs changes history
		news release releases release-notes releasenotes release_notes whatsnew whats-new`)
	// making are words of questions of those who make something.
	making = set(`write writing develop developing development build building contribute contributing extend extending implement
		implementing compile compiling source code hook hooks`)
)

// aside reports whether a page is for those who make the product, or says what was new in it, which is not asked.
func aside(path string, q *query) bool {
	if at := strings.LastIndexByte(path, '.'); at > 0 {
		path = path[:at]
	}
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		if makers[part] && !slices.ContainsFunc(termsOf(part), func(t term) bool { return q.find(t.hash) >= 0 }) {
			return true
		}
	}
	return false
}
