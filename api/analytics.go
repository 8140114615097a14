package api

import (
	"strings"
	"time"
)

// A Rating is what a reader thinks of an answer.
type Rating string

const (
	RatedUp   Rating = "up"
	RatedDown Rating = "down"
)

// A Channel is the way by which a question came in.
type Channel string

const (
	ChannelWeb Channel = "web" // from a page in a browser
	ChannelAPI Channel = "api" // from a program
	// From the apps that answer in chats.
	ChannelSlack   Channel = "slack"
	ChannelDiscord Channel = "discord"
	// ChannelPlayground is the console's: somebody tries the assistant. Such questions are no reader's, so analytics do
	// not see them.
	ChannelPlayground Channel = "playground"
	// ChannelEvaluation is that of questions whose answers are judged: `docent eval answers`. The same holds for them.
	ChannelEvaluation Channel = "evaluation"
)

// ByReader reports whether what came this way was asked by a reader.
func (c Channel) ByReader() bool { return c != ChannelPlayground && c != ChannelEvaluation }

// A ThreadRow is a conversation as analytics see it: a copy of what its journal holds.
type ThreadRow struct {
	ID        ThreadID
	Project   ProjectID
	Caller    string // "anonymous" or a user id
	Questions []QuestionRow
	Part      bool // Questions are those that are new or have changed; the others stand
}

// A QuestionRow is one question that has come to its end, and its answer.
type QuestionRow struct {
	ID       TurnID
	Thread   ThreadID
	Project  ProjectID
	Caller   string
	Channel  Channel // empty if it is not known
	Page     string  // that the reader was on; empty if it is not known
	Question string
	Answer   string
	Error    string // why there is no answer
	Answered bool   // the documentation had an answer
	Replaced bool   // by another answer to the same question; it is kept because it was rated
	Model    string
	Sources  []PageRef
	Asked    time.Time
	Ended    time.Time
	Rating   Rating // empty until somebody rates the answer
	Comment  string
	Rated    time.Time

	// the model that was asked and could not answer, if Model answered in its place
	FallbackFor string `json:",omitzero"`
	// Degraded are the parts that did not take part in the answer as they should have: "model: unavailable".
	Degraded []string `json:",omitzero"`
	// FirstText is how many milliseconds after the question the first text of the answer was there; 0 if that is not
	// known.
	FirstText int64 `json:",omitzero"`
	// Before is what was said before the question that it leans on; empty if it stands by itself.
	Before string `json:",omitzero"`
	// Rewritten is such a question as a model has put it so that it stands by itself; empty if none has.
	Rewritten string `json:",omitzero"`
}

// Standing is the question as it can be read without its conversation: "How much is shipping to Sweden? And for Norway?"
func (r QuestionRow) Standing() string {
	switch {
	case r.Rewritten != "":
		return r.Rewritten
	case r.Before != "":
		return r.Before + " " + r.Question
	}
	return r.Question
}

// InDoubt reports whether the documentation has no clear answer, and what comes closest was shown.
func (r QuestionRow) InDoubt() bool { return !r.Answered && r.Error == "" && len(r.Sources) > 0 }

// A PageRef is a place in the documentation that an answer cites.
type PageRef struct {
	URL   string
	Title string
}

// Page is the page that the place is on: its address without the anchor.
func (r PageRef) Page() string {
	page, _, _ := strings.Cut(r.URL, "#")
	return page
}
