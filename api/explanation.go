package api

import "time"

// An Explanation is how an answer came about, step by step, for those who look after the documentation and the server.
// The API, the command line and the console show the same.
type Explanation struct {
	Question string             `json:"question"` // as it was put
	Read     string             `json:"read"`     // as it was searched for, standing by itself
	Rewrite  ExplainedRewrite   `json:"rewrite"`
	Searches []ExplainedSearch  `json:"searches"`
	Passages []ExplainedPassage `json:"passages"` // what the model was told, best first
	Calls    []ExplainedCall    `json:"calls"`    // of the model that answers
	Tools    []ExplainedTool    `json:"tools"`    // that the model called
	Claims   []ExplainedClaim   `json:"claims"`   // that were changed or taken out when the answer was checked
	Degraded []string           `json:"degraded"` // what did not take part as it should have, each with the reason

	Model       string         `json:"model"`                 // that has answered
	FallbackFor string         `json:"fallbackFor,omitempty"` // in place of this one
	Answered    bool           `json:"answered"`
	Usage       ExplainedUsage `json:"usage"` // of all calls together
	Times       ExplainedTimes `json:"times"`
}

// An ExplainedRewrite is what became of rewriting the question together with its conversation.
type ExplainedRewrite struct {
	Outcome string         `json:"outcome"` // used, cached, skipped, failed or off
	Why     string         `json:"why,omitempty"`
	Model   string         `json:"model,omitempty"`
	Queries []string       `json:"queries"`
	Usage   ExplainedUsage `json:"usage"`
	Took    Milliseconds   `json:"milliseconds"`
}

// An ExplainedSearch is one search of the documentation.
type ExplainedSearch struct {
	By    string         `json:"by"` // question, rewrite or model
	Query string         `json:"query"`
	Hits  []ExplainedHit `json:"hits"`
	Took  Milliseconds   `json:"milliseconds"`
}

// An ExplainedHit is one section that a search has found.
type ExplainedHit struct {
	Path    string  `json:"path"`
	Anchor  string  `json:"anchor,omitempty"`
	URL     string  `json:"url,omitempty"`
	Title   string  `json:"title"`
	Heading string  `json:"heading,omitempty"`
	Source  string  `json:"source,omitempty"` // label of the project's source that it is in
	Score   float64 `json:"score"`            // 0 to 1
}

// An ExplainedPassage is a section that the model could answer from.
type ExplainedPassage struct {
	ExplainedHit
	Number int  `json:"number,omitempty"` // that it has in the prompt; 0 if it did not fit
	Cited  bool `json:"cited"`
}

// An ExplainedCall is one call of a language model.
type ExplainedCall struct {
	Reason string         `json:"reason"` // stop, tools, length or failed
	Usage  ExplainedUsage `json:"usage"`
	Took   Milliseconds   `json:"milliseconds"`
}

// An ExplainedTool is one call of a tool by the model.
type ExplainedTool struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them
	Gave      string `json:"gave"`      // the beginning of what it got
	Failed    bool   `json:"failed"`
}

// An ExplainedClaim is one thing that was changed in the answer when it was checked.
type ExplainedClaim struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Why  string `json:"why"`
}

// An ExplainedUsage is what calls of models took.
type ExplainedUsage struct {
	PromptTokens     int   `json:"promptTokens"`
	CachedTokens     int   `json:"cachedTokens"` // of the prompt's
	CompletionTokens int   `json:"completionTokens"`
	Cost             int64 `json:"costMicros"` // in millionths of a US dollar, by the configured prices
}

// ExplainedTimes are when things were, from the question on.
type ExplainedTimes struct {
	Waited    Milliseconds `json:"waited"`    // until the turn was in hand
	Retrieved Milliseconds `json:"retrieved"` // until the documentation was searched and the model's request made
	FirstText Milliseconds `json:"firstText"` // until the first text of the answer; 0 if there was none
	Ended     Milliseconds `json:"ended"`
}

// Milliseconds is a time.
type Milliseconds float64

// InMilliseconds is a duration, to the microsecond.
func InMilliseconds(d time.Duration) Milliseconds { return Milliseconds(d.Microseconds()) / 1000 }
