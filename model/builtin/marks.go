package builtin

import (
	"slices"
	"strconv"
	"strings"

	"docent/model"
)

// mark puts the number of its source behind what is quoted: at the end of its last paragraph or item, since code and
// tables hold nothing but their own.
func mark(text string, number int) string {
	sign := " [" + strconv.Itoa(number) + "]"
	blocks := strings.Split(text, "\n\n")
	coding := make([]bool, len(blocks)) // it ends within code, or with it
	in := false
	for i, b := range blocks {
		for l := range strings.SplitSeq(b, "\n") {
			fence := strings.HasPrefix(strings.TrimSpace(l), "```")
			in = in != fence
			coding[i] = in || fence
		}
	}
	for i, b := range slices.Backward(blocks) {
		if !coding[i] && !strings.HasPrefix(b, "|") && (!strings.HasPrefix(b, "**") || strings.Contains(b, ":** ")) {
			blocks[i] += sign
			return strings.Join(blocks, "\n\n")
		}
	}
	return text + "\n\n" + sign[1:]
}

// numbers are those of the sources of passages: each page has one.
func numbers(req *model.Request, plan []quote) []int {
	var pages []string
	out := make([]int, len(plan))
	for n, part := range plan {
		path := req.Passages[part.passage].Path
		at := slices.Index(pages, path)
		if at < 0 {
			at = len(pages)
			pages = append(pages, path)
		}
		out[n] = at + 1
	}
	return out
}

// titles are what stands above each passage: the section's name, with its page's where that is another one than before. One
// passage with nothing before it goes without if it begins with the line that answers, or says its section's name itself.
func titles(req *model.Request, plan []quote, always bool) []string {
	out := make([]string, len(plan))
	if len(plan) == 1 && !always {
		if p := &req.Passages[plan[0].passage]; plan[0].lead != "" || p.Heading == "" || says(plan[0].text, p.Heading) {
			return out
		}
	}
	for n, part := range plan {
		p := &req.Passages[part.passage]
		out[n] = p.Label()
		if n > 0 && p.Heading != "" && req.Passages[plan[n-1].passage].Path == p.Path {
			out[n] = p.Heading
		}
	}
	return out
}

// says reports whether a text has all the words of a heading.
func says(text, heading string) bool {
	said := hashesOf(text)
	return !slices.ContainsFunc(terms(heading), func(t term) bool { return !slices.Contains(said, t.hash) })
}

// maxUnfound is how many names an answer says that it has not found.
const maxUnfound = 3

// unfound are the names in a question that no passage has. In German each noun is written as a name is.
func (q *query) unfound(question string, sections []*section) (names []string) {
	if q.language == "de" {
		return nil
	}
	begins, last := true, 0
	var buf [64]word
	for _, w := range appendWords(buf[:0], question) {
		begins = begins && last == 0 || strings.ContainsAny(question[min(last, w.start):w.start], ".?!:\n")
		name := isName(w.text, begins)
		begins, last = false, w.end
		all := termsOf(w.text)
		if !name || len(all) == 0 || len(names) == maxUnfound || slices.Contains(names, w.text) {
			continue
		}
		known := slices.ContainsFunc(all, func(t term) bool {
			at := q.find(t.hash)
			return at < 0 || slices.ContainsFunc(sections, func(s *section) bool { return s.terms[at] >= 0 })
		})
		if !known {
			names = append(names, w.text)
		}
	}
	return names
}
