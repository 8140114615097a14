package thread

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/api/stream"
	"docent/internal/brief"
	"docent/internal/wordset"
	"docent/model"
	"docent/search"
)

const (
	maxSuggestions = 3
	maxTried       = 2 * maxSuggestions // a try costs a search and a built-in answer
)

// suggestions is the block for an answer: questions about sections that were found and not used, and have about as
// much to do with what the reader asks as the best one. Each was put to the documentation, and its section is a part
// of the answer.
func (e *effect) suggestions(ctx context.Context, w *writer) string {
	english := isEnglish(e.exchange.Question)
	var lines strings.Builder
	tried := []string{e.exchange.Question}
	n, best := 0, 0.0
	for _, c := range w.candidates {
		best = max(best, c.score)
	}
	for i, c := range w.candidates {
		if len(tried) > maxTried || n == maxSuggestions {
			break
		}
		text := questionAbout(c, english)
		if text == "" || c.url == "" || c.score < best/2 || w.used[i] || slices.Contains(tried, text) {
			continue
		}
		tried = append(tried, text)
		if !e.answered(ctx, text, c) {
			continue
		}
		n++
		lines.WriteString("(" + text + ")[" + suggestedURL.Replace(c.url) + "]\n")
	}
	if n == 0 {
		return ""
	}
	return stream.SuggestionsStart + lines.String() + stream.SuggestionsEnd
}

// suggestedURL keeps an address within its brackets.
var suggestedURL = strings.NewReplacer("[", "%5B", "]", "%5D", "(", "%28", ")", "%29", "\n", "", " ", "%20")

// answered reports whether the documentation answers a question, with what a section says.
func (e *effect) answered(ctx context.Context, question string, section candidate) bool {
	var q search.Query
	if e.exchange.Wanted != nil {
		q = e.exchange.Wanted.placed()
	}
	hits, err := e.search(ctx, q, []string{question})
	if err != nil {
		return false
	}
	cites := false
	result, err := e.deps.Model.Answer(ctx, model.Builtin, model.Request{Question: question, Passages: passages(hits)},
		func(d model.Delta) error {
			for _, i := range d.Cite {
				cites = cites || i >= 0 && i < len(hits) && hits[i].Path == section.path && hits[i].Anchor == section.anchor
			}
			return nil
		})
	return err == nil && result.Answered && cites
}

var (
	inParentheses = regexp.MustCompile(`\s*\([^()]*\)`)
	notInText     = strings.NewReplacer("`", "", "*", "", "(", "", ")", "", "[", "", "]", "")
)

// questionAbout is the question that a section answers, made from its heading; empty if the heading says too
// little. In other languages than English it is the heading itself.
func questionAbout(c candidate, english bool) string {
	for _, about := range []string{c.heading, c.title} {
		about = notInText.Replace(inParentheses.ReplaceAllString(about, ""))
		about = strings.Trim(brief.Line(about), " .:;,!")
		if about == "" || genericHeadings[strings.ToLower(strings.ReplaceAll(about, " ", "-"))] {
			continue // the page's title says more
		}
		switch {
		case strings.HasSuffix(about, "?"), !english:
			return about
		default:
			return asQuestion(about)
		}
	}
	return ""
}

// asQuestion makes a question of an English heading.
func asQuestion(heading string) string {
	words := strings.Fields(heading)
	first := strings.ToLower(words[0])
	second := ""
	if len(words) > 1 {
		second = strings.ToLower(words[1])
	}
	head := words // of the phrase: what comes before "of", "with" and their like
	if at := slices.IndexFunc(words, func(w string) bool { return prepositions[w] }); at > 0 {
		head = words[:at]
	}
	ask, ok := map[string]string{"how": "How do I ", "when": "When should I ", "where": "Where can I "}[first]
	switch {
	case ok && second == "to" && len(words) > 2:
		return ask + lowerFirst(strings.Join(words[2:], " ")) + "?"
	case questionWords[first] && auxiliaries[second]:
		return heading + "?"
	case questionWords[first]:
		return "" // "What Docent is", "Why GraphQL": what was meant cannot be told
	case strings.Contains(heading, ":"), prepositions[first], first == "understanding":
		return ""
	case instructs(first, second, len(words)):
		return "How do I " + first + " " + strings.Join(words[1:], " ") + "?"
	case strings.HasSuffix(first, "ing") && len(words) > 1 && !gerundNouns[first]:
		if len(words) == 2 && plural(second) { // as "alerting rules"
			return "How do " + first + " " + words[1] + " work?"
		}
		return "How does " + first + " " + strings.Join(words[1:], " ") + " work?"
	case plural(head[len(head)-1]) || slices.Contains(head, "and"):
		return "What are " + heading + "?"
	case len(words) > 1 && capitalized(words[0]) && !slices.ContainsFunc(words[1:], capitalized) && first != "the":
		return "What is the " + heading + "?" // of a name every word is capitalized
	default:
		return "What is " + heading + "?"
	}
}

// instructs tells by its first two words whether a heading tells what to do.
func instructs(first, second string, words int) bool {
	return verbs[first] && words > 1 ||
		verbsOrNouns[first] && (leadsToObject[second] || second == "and" && words > 3) ||
		determiners[second] && !prepositions[first] && !strings.HasSuffix(first, "ing") // "Mute an alert", whatever the verb
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[size:]); unicode.IsUpper(next) {
		return s // an abbreviation
	}
	return string(unicode.ToLower(r)) + s[size:]
}

func capitalized(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r)
}

func plural(word string) bool {
	word = strings.ToLower(word)
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") &&
		!strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is") &&
		!strings.HasSuffix(word, "lytics")
}

// isEnglish reports whether a question has words that only English ones are asked with.
func isEnglish(question string) bool {
	for word := range strings.FieldsFuncSeq(strings.ToLower(question), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if questionWords[word] || englishWords[word] {
			return true
		}
	}
	return false
}

var set = wordset.Of

var (
	questionWords = set("how what when where which who why")
	auxiliaries   = set("is are do does did can could should will would must has have was were")
	englishWords  = set("the does can my with it's i'm should could you your this that there and of for on a an")

	// Verbs that headings of documentation begin with. The second ones are nouns as well ("Set types"), unless what
	// follows is an object.
	verbs = set("add allow apply assign attach choose configure connect convert create customize customise define " +
		"delete deploy detect disable download avoid embed enable ensure extend find fix generate get give " +
		"handle hide implement include install integrate invite keep let make manage migrate modify prepare " +
		"prevent publish put remove rename replace restrict revoke send serve specify subscribe troubleshoot " +
		"understand unsubscribe upgrade validate verify write")
	verbsOrNouns = set("build call change check copy debug edit export filter import limit link load log merge monitor move " +
		"open process query read record release request reset restore review rotate route run save scale " +
		"search secure select set share show sort start stop store style switch sync test track transform " +
		"translate turn update upload use view watch")
	leadsToObject = set("a an the your its up on off out in into to from with without multiple several all")
	prepositions  = set(
		"of with for in on at by from to as via without about behind under inside outside beyond after before " +
			"over through")
	determiners = set("a an the your")
	gerundNouns = set("string thing king ring setting building")

	// Headings that say nothing without their page's title.
	genericHeadings = set(
		"about appendix background conclusion configuration description details example examples faq features " +
			"further goals installation introduction intro notes note more next options output overview " +
			"parameters prerequisites reference references related remarks requirements result results resources " +
			"returns see steps setup summary syntax tips usage warning what's why next-steps see-also " +
			"further-reading related-pages getting-started before-you-begin learn-more what's-next " +
			"table-of-contents")
)
