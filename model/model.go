// Package model defines what models are asked and what they answer. A model gets a question, the conversation so far and
// passages of the documentation, and streams text. The packages below it are models: builtin needs nothing and answers
// with the documentation's own sentences, remote asks language models over HTTP, scripted is for tests and load
// benches. registry binds them.
package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/internal/brief"
)

// Providers of a model.
const (
	Builtin   = "builtin"   // the documentation's own sentences; needs nothing
	OpenAI    = "openai"    // any endpoint that speaks OpenAI's chat completions
	Anthropic = "anthropic" // Anthropic's messages
	Scripted  = "scripted"  // a fixed text at a fixed pace, for tests and load benches
)

// A Request is what a model is asked.
type Request struct {
	Question string
	History  []Message // earlier turns of the thread, oldest first
	Passages []Passage // what the documentation says, best first
	Context  []Snippet // what the reader has selected or looks at
	// Setting is what the program says of itself through which the reader asks. It is quoted to a language model, and sets
	// no rules.
	Setting    string
	Deflection string // address offered when the documentation does not answer; optional
	Project    string // the documentation's name, for the model's instructions
	Page       string // path of the page that the reader is on; optional
	// Search finds more passages for a language model that wants to look by itself. If nil, it cannot.
	Search func(ctx context.Context, query string) ([]Found, error)
	// ReadPage gives the text around a passage on its page, named by the index that a Delta cites it by, for a language
	// model that wants to read more of it. If nil, it cannot.
	ReadPage func(ctx context.Context, index int) ([]Found, error)
	// Around gives the sections that stand together with one on its page, in their order and first the one that they are
	// all below, for a model that quotes; without an anchor those of the whole page. It may be nil.
	Around func(path, anchor string) []Passage
	// Budget is what the answer may use altogether, over all its calls.
	Budget Budget
	// Watch receives the steps of the answer; it may be nil.
	Watch func(Step)
	// Key identifies the question: it is the same when the question is asked again after a failure or a restart. It is
	// sent as the Idempotency-Key, so a provider that knows that header can tell that it has answered before.
	Key string
}

// AskHere is the sentence that sends the reader to the deflection's address, in a language.
func (r *Request) AskHere(language string) string { return filled(in(language).ask, r.askedAt()) }

// askedAt is the deflection's address as a link.
func (r *Request) askedAt() string {
	address := brief.Line(r.Deflection)
	switch {
	case strings.Contains(address, "@") && !strings.Contains(address, "/"):
		return fmt.Sprintf("[%s](mailto:%s)", address, address)
	case strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://"):
		return "<" + address + ">"
	}
	return address
}

// A Message is one earlier utterance.
type Message struct {
	Role string // "user" or "assistant"
	Text string
}

// A Snippet is text or code that the reader sent along.
type Snippet struct {
	Kind string // "code" or "textSelection"
	Text string
	Path string
}

// A Passage is one retrieved section of the documentation.
type Passage struct {
	Path    string
	Anchor  string
	URL     string
	Title   string   // of the page
	Heading string   // of the section; empty for the text before the first heading
	Trail   []string // headings above it
	Text    string   // the section in Markdown
	Score   float64  // 0 to 1, comparable between questions
	Opens   bool     // the site has it where what the question, which everybody asks first, belongs
}

// Label names a passage for a reader, by its page and its section.
func (p *Passage) Label() string {
	switch {
	case p.Heading == "" || strings.EqualFold(p.Heading, p.Title):
		return p.Title
	case p.Title == "":
		return p.Heading
	}
	return p.Title + ": " + p.Heading
}

// A Found is a section that a model's own search found. A Delta cites it by its Index; if it is a passage of the
// request too, that is its place there.
type Found struct {
	Passage
	Index int
}

// A Budget bounds what is used. What is 0 bounds nothing; what is negative is used up.
type Budget struct {
	Tokens int
	Cost   int64 // in millionths of a US dollar, by the configured prices
}

// Less is what is left of a budget.
func (b Budget) Less(tokens int, cost int64) Budget {
	if b.Tokens != 0 {
		if b.Tokens -= tokens; b.Tokens == 0 {
			b.Tokens = -1
		}
	}
	if b.Cost != 0 {
		if b.Cost -= cost; b.Cost == 0 {
			b.Cost = -1
		}
	}
	return b
}

// Spent reports whether nothing is left of it.
func (b Budget) Spent() bool { return b.Tokens < 0 || b.Cost < 0 }

// A Step is one thing that a language model did on its way to an answer, for those who want to know how that came about.
type Step struct {
	Given []int // the passages that its prompt has, by the request's; nil for the other kinds of steps

	Called bool // it was asked: how that ended, what it took, and since when
	Reason string
	Usage  Usage
	Took   time.Duration

	Tool      string // it has called this tool
	Arguments string // as it wrote them
	Gave      string // what it got for it, or what is wrong with the call
	Failed    bool
}

// A Delta is a piece of an answer: text, or a citation of one of the request's passages (its index), or of a Found's,
// or both.
type Delta struct {
	Text  string
	Cite  []int
	Cards []Card
}

// A Card is a passage of the request that an answer only points to: what it says in a line or two, as plain text.
type Card struct {
	Passage int
	Text    string
}

// A Result says how an answer ended.
type Result struct {
	Model            string // which one worked, as shown to users
	FallbackFor      string // the one that was asked and could not answer, if this one answered in its place
	Reason           string // "stop" or "length"
	Answered         bool   // false when the documentation does not say
	PromptTokens     int
	CachedTokens     int // of the prompt's
	CompletionTokens int
	Cost             int64 // in millionths of a US dollar; zero if the configuration has no prices

	// Checked is what became of the answer's claims when they were held against the passages; nil if nobody did.
	Checked *Checked
	// Degraded are the parts that did not take part in the answer as they should have, each with the reason, in words
	// that readers may see: "rewrite: timeout", "model: unavailable".
	Degraded []string
}

// Checked is what became of an answer's claims when they were held against the passages.
type Checked struct {
	Claims   int      // sentences, items, rows and lines of code that claim something
	Moved    int      // those that cited another passage than the one that says it; they cite that one now
	Marked   int      // those that no passage says, and that are said to be unsure
	Removed  int      // those that no passage says, and that were taken out
	Unlinked int      // links and images to where neither a passage nor the site leads
	Withheld int      // pieces of the model's own instructions, and what only looks like a part of the page
	Changes  []Change // the first of them, in the order of the answer
}

// A Change is one thing that was changed in an answer when it was checked.
type Change struct {
	Kind string // "moved", "marked", "removed", "unlinked" or "withheld"
	Text string // as the model wrote it, shortened
	Why  string // for people: what no passage says
	From []int  // of a move: the passages that were cited, by the index that a Delta has
	To   []int  // and those that are
}

// Count adds what a call took.
func (r *Result) Count(u Usage) {
	r.PromptTokens += u.PromptTokens
	r.CachedTokens += u.CachedTokens
	r.CompletionTokens += u.CompletionTokens
	r.Cost += u.Cost
}

// Degrade notes that a part did not take part as it should have, once.
func (r *Result) Degrade(part, why string) {
	if note := part + ": " + why; !slices.Contains(r.Degraded, note) {
		r.Degraded = append(r.Degraded, note)
	}
}
