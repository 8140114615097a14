package model

import "encoding/json"

// A Prompt is what a model gets for a request, told without asking it. It holds no secret: neither the key of the
// endpoint nor that of the question.
type Prompt struct {
	Model    string // its name in the configuration
	Provider string
	Remote   *RemotePrompt // of a language model
	Judged   *Judgement    // of the built-in model, which gets the passages as they are
}

// A RemotePrompt is what a language model is sent first. If it searches by itself, more is sent after that, by what
// it asks for.
type RemotePrompt struct {
	Named     string // the provider's name of the model
	Chat      Chat
	Body      json.RawMessage // of the request, as it goes to the provider
	Given     []int           // the request's passages that stand behind [1], [2], …; the others did not fit
	Searches  int             // how often the model may search by itself
	MaxTokens int             // of the answer
	Window    int             // tokens of prompt and answer together
	Tokens    int             // of the prompt, estimated from above
}

// A Judgement is what the built-in model makes of a question and the passages found for it.
type Judgement struct {
	Question string // as it is read: what a follow-up points back at is filled in
	Verdict  Verdict
	Opening  string // what everybody asks first, if that is what it asks and the site has a place for it: nothing is summed up then
	// What the verdict is made of; each is from 0 to 1.
	Search  float64 // how well the best passage fits, by the search
	Held    float64 // how much of the question one passage says
	Missing float64 // how rare a name of the question is that this passage does not have
	// Sum is what they come to. From Answers on the question counts as answered, from Doubts on as in doubt.
	Sum, Answers, Doubts float64
	Quoted               []Quote // in the order of the answer
}

// A Quote is what an answer takes from one of the request's passages.
type Quote struct {
	Passage int
	Text    string
}

// A Verdict says whether the documentation answers a question.
type Verdict string

// Verdicts.
const (
	VerdictAnswered Verdict = "answered"
	VerdictDoubtful Verdict = "in doubt" // what comes closest is shown
	VerdictDenied   Verdict = "not answered"
)

// A Choice is a model that can be asked for.
type Choice struct {
	Name     string
	Provider string
	Default  bool // if none is named
	Agent    bool // if none is named for a job
}

// WorksBuiltin reports whether the built-in agent does the jobs that name a model; the empty name stands for the default.
func WorksBuiltin(choices []Choice, name string) bool {
	for _, c := range choices {
		if c.Name == name || name == "" && c.Agent {
			return c.Provider == Builtin
		}
	}
	return name == "rules-1" || name == ""
}
