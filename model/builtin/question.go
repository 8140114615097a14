package builtin

import (
	"regexp"
	"slices"
	"strings"

	"docent/internal/brief"
	"docent/model"
	"docent/search/analysis"
)

// Standalone makes a search text from a question that leans on the conversation before it: "and how do I configure it?"
// becomes that with the words of the earlier question that it leaves out. A question that stands by itself comes back
// as it is. What the reader has selected goes before the conversation: "what does this mean?" is about that.
func Standalone(question string, history []model.Message, selected []model.Snippet) string {
	text, _ := standalone(question, history, selected)
	return text
}

// standalone is Standalone; carried are the words that it has taken over from the conversation.
func standalone(question string, history []model.Message, selected []model.Snippet) (text string, carried []string) {
	question = gist(question)
	if about := excerpt(selected); about != "" && (elliptical(question) || pointsAtText(question)) {
		return strings.TrimSpace(question) + " " + about, nil
	}
	if !elliptical(question) {
		return question, nil
	}
	carried = topic(question, history)
	if len(carried) == 0 {
		return question, nil
	}
	return strings.TrimRight(question, " \t\n?!.…") + " " + strings.Join(carried, " "), carried
}

// Before is what was said before a question that it leans on: the questions of the conversation back to the one that
// stands by itself, or what the reader has selected. It is empty if the question stands by itself.
func Before(question string, history []model.Message, selected []model.Snippet) string {
	if len(history)+len(selected) == 0 {
		return ""
	}
	question = gist(question)
	whole, carried := standalone(question, history, selected)
	if len(carried) == 0 {
		if whole != question && len(selected) > 0 {
			return selected[0].Text
		}
		return ""
	}
	var said []string
	for _, m := range slices.Backward(history) {
		if m.Role != "user" {
			continue
		}
		earlier := gist(m.Text)
		said = append(said, earlier)
		if !elliptical(earlier) {
			break
		}
	}
	slices.Reverse(said)
	return strings.Join(said, " ")
}

// longestAsked is how many bytes of a question are looked for, and of each text that the reader has selected. A longer
// question is a text with the question before or after it.
const longestAsked = 2000

// gist is a question, or the beginning and the end of a long one.
func gist(question string) string {
	if len(question) <= longestAsked {
		return question
	}
	const half = longestAsked/2 - 1
	begin, end := question[:half], question[len(question)-half:]
	if at := strings.LastIndexAny(begin, " \n"); at > 0 {
		begin = begin[:at]
	}
	if at := strings.IndexAny(end, " \n"); at >= 0 {
		end = end[at:]
	}
	return strings.ToValidUTF8(begin, "") + "\n" + strings.ToValidUTF8(end, "")
}

// maxSelected bounds the words taken over from what the reader has selected, of all texts together.
const maxSelected = 24

// excerpt is what tells what the reader has selected: its first words that mean something, each once.
func excerpt(selected []model.Snippet) string {
	var out []string
	have := make(map[uint64]bool)
	for _, s := range selected[:min(len(selected), maxSelected)] {
		text := s.Text
		text = brief.Bytes(text, longestAsked, "")
		for _, w := range split(text) {
			if len(out) == maxSelected {
				return strings.Join(out, " ")
			}
			fresh := false
			for _, t := range termsOf(w.text) {
				fresh = fresh || !have[t.hash]
				have[t.hash] = true
			}
			if fresh {
				out = append(out, w.text)
			}
		}
	}
	return strings.Join(out, " ")
}

// forText are words for a text that a reader points at, and for its parts.
var forText = set(`code snippet text selection selected highlighted paragraph sentence section block example command line
	lines part word phrase first second third last next`)

// pointsAtText reports whether a question says no more than that it is about a text: "explain the second line".
func pointsAtText(question string) bool {
	var buf [64]word
	for _, w := range appendWords(buf[:0], question) {
		if !forText[strings.ToLower(w.text)] && len(termsOf(w.text)) > 0 {
			return false
		}
	}
	return true
}

// maxCarried bounds the words taken over from earlier questions: more would drown the new one.
const maxCarried = 8

// elliptical reports whether a question says too little by itself: it begins as a continuation, points back with a
// pronoun that nothing in it explains, or has hardly a word of its own.
func elliptical(question string) bool {
	question = plain(question, analysis.LanguageOf(question))
	var buf [64]word
	words := appendWords(buf[:0], question)
	if len(words) == 0 {
		return true
	}
	own := make([]uint64, 0, 6) // different terms, as far as they are counted
	special := false            // one of them names a thing
	for i, w := range words {
		lower := strings.ToLower(w.text)
		if standsAlone(words, i) {
			continue
		}
		for _, t := range termsOf(w.text) {
			if len(own) < 6 && !slices.Contains(own, t.hash) {
				own = append(own, t.hash)
				special = special || !general[lower]
			}
		}
	}
	switch {
	case len(own) == 0:
		return true
	case len(own) <= 5 && continues(words) && !(special && len(own) > 1 && asksAnew(words)):
		return true
	case len(own) <= 1 && len(words) <= 4 && !named(question):
		return true
	case len(own) > 5:
		return false
	case !special: // "What is the default?" is asked of something
		return true
	}
	// "it" that comes before the question's own nouns points back; after two of them it most likely points at those.
	before := 0
	for i, w := range words {
		if before >= 2 {
			return false
		}
		lower := strings.ToLower(w.text)
		switch lower {
		case "it", "its", "they", "them", "their", "these", "those", "that", "this":
			return true
		}
		if standsAlone(words, i) {
			return true
		}
		before += len(termsOf(lower))
	}
	return false
}

// general are words that are asked of a thing, and name none.
var general = verbs(`default defaults value values option options setting settings example examples limit limits limitation
	limitations syntax alternative alternatives other others reason difference advantage advantages disadvantage
	disadvantages purpose command commands name type format parameter parameters argument arguments return multiple
	several more single required optional possible safe fast slow best recommended disable enable change configure remove
	delete undo revert stop start add set install update test step steps first next second last`)

// standsAlone reports whether a word stands for a thing that was named before: "ones", or "one" with no noun after it.
func standsAlone(words []word, i int) bool {
	switch text := words[i].text; {
	case strings.EqualFold(text, "ones"):
		return true
	case strings.EqualFold(text, "one"):
		return i > 0 && (i+1 == len(words) || stopWords[strings.ToLower(words[i+1].text)])
	}
	return false
}

// openings are words that a phrase without a verb of its own begins with: "in TypeScript?", "for libraries?"
var openings = set("in on with without for from via using inside within as at by to under behind per only also same")

// continues reports whether a question begins as the continuation of another.
func continues(words []word) bool {
	first := strings.ToLower(words[0].text)
	switch first {
	case "and", "but", "or":
		return true
	case "what", "how":
		return len(words) > 1 && (strings.EqualFold(words[1].text, "about") || strings.EqualFold(words[1].text, "if"))
	}
	return openings[first] && len(words) <= 5 && !slices.ContainsFunc(words, func(w word) bool {
		return asking[strings.ToLower(w.text)]
	})
}

// asksAnew reports whether what begins with "and" is a whole question: "And where does the ferry leave?"
func asksAnew(words []word) bool {
	switch strings.ToLower(words[0].text) {
	case "and", "but", "or":
		return len(words) > 1 && asking[strings.ToLower(words[1].text)]
	}
	return false
}

// asking are words that a question of its own is put with.
var asking = set(`how what why when where which who can is are does do should could would will`)

// named reports whether a short question is a name of its own, such as a setting or a flag.
func named(question string) bool {
	capital := brief.Capital(question) == question
	return strings.ContainsAny(question, "_.-/`") || strings.ToLower(question) != question && !capital
}

// maxQueries bounds the searches for one question.
const maxQueries = 4

// Queries are the searches that find what a question asks: the question itself, standing alone, and if it asks two
// things each of them; if the reader has selected something, the question together with that. The passages of a
// later search come after those of the first.
func Queries(question string, history []model.Message, selected []model.Snippet) []string {
	question = gist(question)
	whole, carried := standalone(question, history, selected)
	out := []string{whole}
	c, compares := comparisonOf(whole)
	message := messageOf(question)
	switch parts := clauses(question); {
	case message != "": // the page that explains it has its words, and not the question's around it
		out = append(out, message)
	case compares:
		out = append(out, c[:]...)
	case len(carried) > 0: // what the conversation is about counts as much as what is new
		out[0] += " " + strings.Join(carried, " ")
	case len(parts) > 1:
		out = append(out, queriesOf(parts, history, selected)...)
		if len(out) < 3 {
			out = out[:1]
		}
	}
	if about := excerpt(selected); about != "" && whole == question {
		out = append(out[:min(len(out), maxQueries-1)], strings.TrimSpace(question)+" "+about)
	}
	return out
}

// quoted matches what a question puts in quotation marks or types as code.
var quoted = regexp.MustCompile("`([^`\n]{12,300})`|\"([^\"\n]{12,300})\"|“([^”\n]{12,300})”|'([^'\n]{12,300})'")

// quotedMessage is the message that a question quotes: several words of a program; empty if it quotes none.
func quotedMessage(question string) string {
	if !strings.ContainsAny(question, "`\"“'") {
		return ""
	}
	for _, m := range quoted.FindAllStringSubmatch(question, 4) {
		text := strings.Join(m[1:], "")
		if len(strings.Fields(text)) >= 3 && len(text) < len(question)-2 {
			return text
		}
	}
	return ""
}

// queriesOf are the searches for the parts of a question that asks several things.
func queriesOf(parts []string, history []model.Message, selected []model.Snippet) (out []string) {
	before, pointed := slices.Clone(history), selected
	for _, p := range parts {
		if len(out) == maxQueries-1 {
			break
		}
		if len(terms(p)) == 0 && !refers(p) {
			continue
		}
		out = append(out, strings.TrimSpace(Standalone(p, before, pointed)))
		before = append(before, model.Message{Role: "user", Text: p})
		if !elliptical(p) {
			pointed = nil // "it" is what this part is about
		}
	}
	return out
}

// clauses cuts a question at its ends of sentences and before a further question word.
func clauses(question string) []string {
	var out []string
	start := 0
	var buf [64]word
	words := appendWords(buf[:0], question)
	for i, w := range words {
		if i == 0 || w.start == start {
			continue
		}
		between := question[min(words[i-1].end, w.start):w.start]
		lower := strings.ToLower(w.text)
		asks := false
		if lower == "and" || lower == "or" || lower == "but" {
			if i+1 < len(words) {
				asks = asking[strings.ToLower(words[i+1].text)]
			}
		}
		if asks || strings.ContainsAny(between, "?;\n？；。") || strings.Contains(between, ". ") {
			out = append(out, question[start:w.start])
			start = w.start
		}
	}
	if out == nil {
		return []string{question}
	}
	return append(out, question[start:])
}

func refers(clause string) bool {
	var buf [64]word
	for _, w := range appendWords(buf[:0], clause) {
		if pronouns[strings.ToLower(w.text)] {
			return true
		}
	}
	return false
}
