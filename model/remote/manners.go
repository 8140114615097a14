package remote

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"docent/model"
)

// Manners are in what an endpoint differs from others of its form, for one model. They are learned from its refusals: a
// 400 that names a parameter has it swapped or left out, from then on.
type manners struct {
	without   []string // parameters that are left out, sorted
	most      int      // tokens of a reply; 0 for what is not known
	context   int      // tokens of prompt and reply together; 0 for what is not known
	least     int      // tokens that a reply needs until something of it is seen
	whole     bool     // it does not stream
	responses bool     // it takes the Responses form alone
	user      bool     // it takes no system messages: what they say stands in the user's
	reasoning bool     // each turn with calls has to have a reasoning_content
	signature bool     // each call has to have a signature of its thought
	unkept    []string // kept fields that it refuses, sorted
	blind     bool     // it takes no pictures
}

func (m *manners) leavesOut(name string) bool { return slices.Contains(m.without, name) }

// A learned holds the manners of an endpoint.
type learned struct {
	mu sync.Mutex
	manners
}

func (l *learned) now() manners {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.manners
}

// needs says that nothing of a reply is seen until it has more than so many tokens.
func (l *learned) needs(tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.least = max(l.least, tokens)
}

// manners are those of an endpoint for one model.
func (s *Set) manners(base, name string) *learned {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := [2]string{base, name}
	if s.learned[id] == nil {
		if s.learned == nil {
			s.learned = map[[2]string]*learned{}
		}
		s.learned[id] = new(learned)
	}
	return s.learned[id]
}

// negotiations bounds how often a request is sent in another way because the endpoint refused it.
const negotiations = 8

// The names of the bound on a reply's length.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
	maxOutputTokens     = "max_output_tokens"
)

// learn takes in a refusal of a request that was sent with these manners. It reports whether the request may be sent
// again in another way. The chat's own bound is lowered if there is no room for it this once.
func (l *learned) learn(e *reported, with manners, sent map[string]any, c *model.Chat) bool {
	switch e.status {
	case 400, 404, 405, 422, 501:
	default:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !same(with, l.manners) {
		return true // another request has learned since
	}
	text := strings.ToLower(e.text)
	all, room := roomLeft(text)
	if room >= defaultMaxTokens && room < c.MaxTokens && !c.Exact {
		c.MaxTokens, l.context = room, all
		return true
	}
	if e.means != nil {
		return false
	}
	m := l.manners
	if !m.blind && refusesPictures(text, c) {
		l.blind = true
		return true
	}
	if !m.learn(e, text, sent) || same(m, with) {
		return false
	}
	l.manners = m
	return true
}

// Manners says in what the endpoint has turned out to differ from others of its form; nothing if it does not.
func (r *Model) Manners() string {
	m := r.manners.now()
	var list []string
	for _, name := range m.without {
		list = append(list, "without "+name)
	}
	for _, name := range m.unkept {
		list = append(list, "without "+name+" of earlier turns")
	}
	if m.most > 0 {
		list = append(list, fmt.Sprintf("at most %d tokens of a reply", m.most))
	}
	for word, is := range map[string]bool{"in one piece": m.whole, "by Responses": m.responses && r.API == "",
		"without system messages": m.user, "without pictures": m.blind} {
		if is {
			list = append(list, word)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func same(a, b manners) bool {
	return slices.Equal(a.without, b.without) && slices.Equal(a.unkept, b.unkept) && a.most == b.most && a.whole == b.whole &&
		a.responses == b.responses && a.user == b.user && a.reasoning == b.reasoning && a.blind == b.blind && a.signature == b.signature
}

// learn takes in a refusal, and reports whether it says what is wanted otherwise.
func (m *manners) learn(e *reported, text string, sent map[string]any) bool {
	if m.learnDemand(text, sent) {
		return true
	}
	coded := holds(e.kind, "unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden")
	if e.status == 404 || e.status == 405 || !coded && !holds(text, refusals...) {
		return false
	}
	for _, name := range named(e.param, text, sent) {
		if m.refuse(name, text, sent) {
			return true
		}
	}
	for _, field := range keptFields {
		if holds(text, "'"+field+"'", "."+field, " "+field, `"`+field+`"`, "`"+field+"`") && !slices.Contains(m.unkept, field) {
			m.unkept = with(m.unkept, field)
			return true
		}
	}
	return false
}

// learnDemand recognizes what providers demand, or do not take, that is no parameter.
func (m *manners) learnDemand(text string, sent map[string]any) bool {
	missing := holds(text, "missing", "must be passed", "is required", "must contain", "must include")
	chat := sent["messages"] != nil
	switch {
	case strings.Contains(text, "reasoning_content") && missing && !m.reasoning:
		m.reasoning = true
	case holds(text, "thought_signature", "thought signature", "thoughtsignature") && !m.signature:
		m.signature = true
		if holds(text, "invalid", "corrupted") {
			m.unkept = with(m.unkept, "extra_content")
		}
	case holds(text, "v1/responses", "responses api") && chat && !m.responses:
		m.responses = true
	case strings.Contains(text, "encrypted content") && sent["include"] != nil:
		m.without = with(m.without, "include")
	case strings.Contains(text, "system") && strings.Contains(text, "role") && holds(text, refusals...) && chat && !m.user:
		m.user = true
	default:
		return false
	}
	return true
}

// keptFields are those of turns that some servers send and refuse to get back.
var keptFields = []string{"reasoning_content", "reasoning_details", "reasoning", "extra_content", "annotations", "thinking"}

// refusals are the words with which servers refuse a parameter.
var refusals = []string{"support", "unknown", "unrecognized", "unrecognised", "unexpected", "not permitted", "not allowed", "forbidden",
	"invalid", "deprecated", "too large", "too high", "must be", "should be", "exceed", "not available", "maximum", "cannot", "does not match"}

// named lists the parameters of a request that a refusal names, the one that it points at first.
func named(param, text string, sent map[string]any) (list []string) {
	root, _, _ := strings.Cut(strings.ToLower(param), ".")
	root, _, _ = strings.Cut(root, "[")
	if _, ok := sent[root]; ok {
		list = append(list, root)
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if slices.Contains(words, name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// refuse has a parameter swapped, bounded or left out.
func (m *manners) refuse(name, text string, sent map[string]any) bool {
	switch name {
	case "model", "messages", "input", "tools", "system", "instructions":
		return false // there is no other way to say it
	case "stream":
		m.whole = true
		return true
	case maxTokens, maxCompletionTokens, maxOutputTokens:
		if n := mostTokens(text); n > 0 {
			if now, _ := sent[name].(int); n < now {
				m.most = n
				return true
			}
		}
		if sent["messages"] != nil && sent["system"] != nil || holds(text, "greater than") {
			return false // Anthropic's form has no other name for it
		}
	}
	m.without = with(m.without, name)
	return true
}

func with(list []string, name string) []string {
	list = append(slices.Clone(list), name)
	slices.Sort(list)
	return slices.Compact(list)
}

var (
	mostOf   = regexp.MustCompile(`(?:at most|maximum (?:allowed )?(?:value|number|limit)?[a-z ]*(?:is|of|:)|less than or equal to|up to|<=|> ?|between 1 and|\[1, ?|1 ?- ?)\s*([0-9][0-9,_]{2,9})`)
	windowOf = regexp.MustCompile(`maximum (?:context|model) length (?:is|of) ([0-9]+)|exceed context limit: [0-9]+ \+ [0-9]+ > ([0-9]+)`)
	promptOf = regexp.MustCompile(`(?:your request has|prompt contains at least|resulted in|\()\s*([0-9]+) (?:input tokens|tokens|in the messages)|exceed context limit: ([0-9]+) \+`)
)

// mostTokens is how many tokens a reply may have, by the words of a refusal; 0 if they do not say.
func mostTokens(text string) int { return number(mostOf, text) }

// roomLeft is how many tokens the endpoint takes together, and how many of these a reply may have after this prompt, by
// the words of a refusal; 0 if they do not say.
func roomLeft(text string) (all, room int) {
	all, used := number(windowOf, text), number(promptOf, text)
	if all == 0 || used == 0 || used >= all {
		return 0, 0
	}
	return all, (all - used) * 9 / 10
}

func number(in *regexp.Regexp, text string) int {
	m := in.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(strings.Join(m[1:], "")))
	if err != nil {
		return 0
	}
	return n
}

// limitName is what the bound on a reply's length is called; nothing if none is sent.
func (m *manners) limitName(first string) string {
	other := map[string]string{maxTokens: maxCompletionTokens, maxCompletionTokens: maxTokens}[first]
	for _, name := range []string{first, other} {
		if name != "" && !m.leavesOut(name) {
			return name
		}
	}
	return ""
}
