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
	list := make([]yaml.Node, len(rated))
	for i := range rated {
		q := entry(&rated[i])
		if err := list[i].Encode(q); err != nil {
			return fmt.Errorf("write a question: %w", err)
		}
		if said := rated[i].Comment; said != "" && !rated[i].Up {
			of := &list[i]
			if n := len(q.Conversation); n > 0 {
				of = of.Content[1].Content[n-1]
			}
			of.HeadComment = "a reader: " + brief.Line(WithoutPersons(said))
		}
	}
	body, err := yaml.Marshal(map[string]any{"questions": list})
	if err != nil {
		return fmt.Errorf("write the questions: %w", err)
	}
	_, err = io.WriteString(w, head+string(body))
	return err
}

// A written question is one as its file has it.
type written struct {
	Ask          string    `yaml:"ask,omitempty"`
	Open         bool      `yaml:"open,omitempty"`
	Sources      []string  `yaml:"sources,omitempty"`
	Facts        []string  `yaml:"facts,omitempty"`
	Unanswerable bool      `yaml:"unanswerable,omitempty"`
	Tags         []string  `yaml:"tags,omitempty"`
	Conversation []written `yaml:"conversation,omitempty"`
}

func entry(r *Rated) written {
	q := written{Ask: WithoutPersons(r.Question), Tags: []string{"liked"}}
	switch {
	case !r.Up:
		q.Open, q.Tags[0] = true, "disliked"
	case len(r.Sources) == 0: // a reader liked to be told that there is nothing
		q.Unanswerable = true
	default:
		q.Sources, q.Facts = r.Sources, ProposeFacts(r.Answer)
	}
	before := r.Before[max(0, len(r.Before)-MostTurns+1):]
	if len(before) == 0 {
		return q
	}
	var all written
	for _, b := range before {
		all.Conversation = append(all.Conversation, written{Ask: WithoutPersons(b), Open: true})
	}
	all.Conversation = append(all.Conversation, q)
	return all
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
