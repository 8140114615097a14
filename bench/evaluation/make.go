package evaluation

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"docent/internal/brief"
)

// A Rated is a question whose answer a reader has rated. It has nothing of who asked.
type Rated struct {
	Before   []string // what was asked in the conversation before it, oldest first
	Question string
	Answer   string
	Sources  []string // addresses, or paths
	Up       bool
	Comment  string // empty if it shall not be written
}

// How much of an answer is proposed as facts.
const (
	mostFacts    = 5
	longestFact  = 120 // bytes
	shortestFact = 3
)

// WriteRated writes a file of questions made from rated answers, for a person to go through: a liked answer becomes a
// question with the pages that it cites and strings of its text as facts; a disliked one is left open.
func WriteRated(w io.Writer, rated []Rated) error {
	const head = "# Made of answers that readers have rated. Go through it before it is used:\n" +
		"# - take out facts that do not matter, and names of people that a question holds;\n" +
		"# - answers that readers disliked are open: they are asked and shown, and not judged. Write down what would be\n" +
		"#   right (sources, facts, or unanswerable: true) and take `open` out.\n"
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range rated {
		list.Content = append(list.Content, entry(&rated[i]))
	}
	body, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word("questions"), list}})
	if err != nil {
		return fmt.Errorf("write the questions: %w", err)
	}
	_, err = io.WriteString(w, head+string(body))
	return err
}

func entry(r *Rated) *yaml.Node {
	q := fields("ask", word(WithoutPersons(r.Question)))
	if !r.Up {
		put(q, "open", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		put(q, "tags", words([]string{"disliked"}))
		if r.Comment != "" {
			q.HeadComment = "a reader: " + brief.Line(WithoutPersons(r.Comment))
		}
	} else {
		if len(r.Sources) > 0 {
			put(q, "sources", words(r.Sources))
		}
		if facts := ProposeFacts(r.Answer); len(facts) > 0 {
			put(q, "facts", words(facts))
		}
		if len(r.Sources) == 0 { // a reader liked to be told that there is nothing
			q = fields("ask", word(WithoutPersons(r.Question)))
			put(q, "unanswerable", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		}
		put(q, "tags", words([]string{"liked"}))
	}
	before := r.Before[max(0, len(r.Before)-MostTurns+1):]
	if len(before) == 0 {
		return q
	}
	turns := &yaml.Node{Kind: yaml.SequenceNode}
	for _, b := range before {
		lead := fields("ask", word(WithoutPersons(b)))
		put(lead, "open", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		turns.Content = append(turns.Content, lead)
	}
	turns.Content = append(turns.Content, q)
	return fields("conversation", turns)
}

func word(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func words(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range list {
		n.Content = append(n.Content, word(s))
	}
	return n
}

func fields(name string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word(name), value}}
}

func put(n *yaml.Node, name string, value *yaml.Node) {
	n.Content = append(n.Content, word(name), value)
}

var (
	fence    = regexp.MustCompile("(?s)```.*?(```|$)")
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	sentence = regexp.MustCompile(`[^.!?\n]+[.!?]`)
)

// ProposeFacts are strings of an answer that another right answer will hold too: the names and values that it quotes as
// code, or else its first sentence.
func ProposeFacts(answer string) (facts []string) {
	prose := fence.ReplaceAllString(answer, "")
	seen := map[string]bool{}
	for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
		f := strings.TrimSpace(m[1])
		if len(f) < shortestFact || len(f) > longestFact || seen[f] || !utf8.ValidString(f) {
			continue
		}
		seen[f] = true
		if facts = append(facts, f); len(facts) == mostFacts {
			return facts
		}
	}
	if len(facts) > 0 {
		return facts
	}
	for _, s := range sentence.FindAllString(prose, -1) {
		s = strings.TrimSpace(strings.Trim(s, "*# "))
		if len(s) >= 20 && len(s) <= longestFact {
			return []string{s}
		}
	}
	return nil
}

var (
	mail   = regexp.MustCompile(`[\w.+-]+@[\w-]+(\.[\w-]+)+`)
	phone  = regexp.MustCompile(`\+\d[\d ()/-]{7,}\d`)
	number = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	secret = regexp.MustCompile(`\b(?:[A-Za-z]{2,10}_)+[A-Za-z0-9]{16,}\b|\b(?:sk|pk|ghp|glpat|xox[bp])-[A-Za-z0-9-]{12,}\b|\beyJ[\w-]{10,}\.[\w-]+\.[\w-]+`)
	link   = regexp.MustCompile(`https?://\S+`)
)

// WithoutPersons takes out of a reader's words what names him: addresses of mail, telephone numbers, addresses of
// machines, keys, and what stands behind the path of a link. Names of people it cannot know.
func WithoutPersons(text string) string {
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		u, err := url.Parse(s)
		if err != nil || u.User == nil && u.RawQuery == "" && u.Fragment == "" {
			return s
		}
		return u.Scheme + "://" + u.Host + u.Path
	})
	text = mail.ReplaceAllString(text, "[mail]")
	text = secret.ReplaceAllString(text, "[key]")
	text = number.ReplaceAllString(text, "[address]")
	return phone.ReplaceAllString(text, "[telephone]")
}
