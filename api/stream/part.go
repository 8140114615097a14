// Package stream implements the answer of one assistant turn on its way to readers: typed parts, the append-only log
// that any number of readers follow from any position, and the wire forms that chat clients understand.
//
// A Log has one writer, the turn. A reader that is slow or gone holds back neither the writer nor other readers. What
// the encoders write follows the chat SDK's protocols: the data stream protocol (SDK 4) and the UI message stream over
// server-sent events (SDK 5 and later), OpenAI's chat completions and Responses, and AG-UI.
package stream

// A Kind tells what a part holds.
type Kind uint8

const (
	Start  Kind = iota + 1 // first part: Message, Thread
	Source                 // a page that the answer cites, or with an Excerpt only points to: ID, URL, Title, Label, Excerpt
	Text                   // a piece of the answer: Text
	Search                 // the retrieval shown as a tool call named "search": ID, Query, Results
	// last part of a good answer: Thread, Reason, usage, Model, Fallback and Degraded. Written only once the answer is
	// on disk
	Finish
	Error // last part of a failed one: Text is for a person
	// Explained is how the answer came about, for readers who may see that: Text is an api.Explanation as JSON.
	Explained
)

// A Part is one event of an answer. Fields that its Kind does not name are empty.
type Part struct {
	Kind    Kind
	ID      string
	Message string // id of the answer's message, unique for each answer
	Thread  string
	Key     string // the thread's secret, as the reader that opens the thread decodes it; never in a log
	Text    string
	URL     string
	Title   string
	Label   string // of the project's source that the page is in, if it has several
	Excerpt string // what a page that is only pointed to says, as plain text
	Query   string
	Results []Result
	Reason  string // why the answer ended: "stop" or "length"
	Usage   Usage

	Model    string // that has answered, if it did so in place of another
	Fallback bool
	Degraded []string // parts that did not take part as they should have, each with the reason
}

// A Result is one retrieved section, as the search tool call shows it.
type Result struct {
	Path    string
	URL     string
	Title   string
	Content string
}

// Usage counts the tokens of a model; zero if the model does not say. Clients get the first two.
type Usage struct {
	Prompt     int
	Completion int
	Cached     int   `cbor:",omitempty" json:",omitzero"` // of the prompt's tokens, those that the provider had kept
	Cost       int64 `cbor:",omitempty" json:",omitzero"` // in millionths of a US dollar
}
