package api

import (
	"strings"
	"time"
	"unicode/utf8"
)

// CommentPrefix is that of comments' ids.
const CommentPrefix = "cmt_"

// CommentState is how far a comment is on its way to the job.
type CommentState string

const (
	CommentDraft   CommentState = "draft"   // only its author sees it
	CommentSending CommentState = "sending" // it is on its way, under its message's id
	CommentSent    CommentState = "sent"    // the job has it
	// the job is through with it, and what became of it is stored: Answer, Outcome and AnswerCommit
	CommentAnswered CommentState = "answered"
)

// A Comment on one line of a pull request of the built-in code host. Drafts of one author are sent together, as one
// follow-up message to the job.
type Comment struct {
	ID        string       `json:"id"`
	Project   ProjectID    `json:"project"`
	Pull      string       `json:"pull"`
	Job       JobID        `json:"job,omitempty"`
	Path      string       `json:"path"`
	Old       bool         `json:"old,omitempty"` // the line is one of the version before the change
	Line      int          `json:"line"`
	Quote     string       `json:"quote,omitempty"`  // the line, as it was then
	Commit    string       `json:"commit,omitempty"` // of that version
	Text      string       `json:"text"`
	Author    string       `json:"author"` // id
	By        string       `json:"by"`     // name
	State     CommentState `json:"state"`
	Message   string       `json:"message,omitempty"` // id of the message to the job
	CreatedAt time.Time    `json:"createdAt"`
	SentAt    *time.Time   `json:"sentAt,omitempty"`

	Answer       string  `json:"answer,omitempty"`       // the agent's last word on it
	Outcome      Outcome `json:"outcome,omitempty"`      // how it ended; empty if it failed, or is no longer known
	AnswerCommit string  `json:"answerCommit,omitempty"` // that carried it out
	Failed       bool    `json:"failed,omitempty"`
}

// Bounds of comments.
const (
	MaxComment = 4_000 // characters
	MaxDrafts  = 50    // that one author has on one pull request
	maxQuote   = 500
)

// Validate checks a new comment.
func (c *Comment) Validate() error {
	var out problems
	c.Text = strings.TrimSpace(strings.ReplaceAll(c.Text, "\r\n", "\n"))
	switch n := utf8.RuneCountInString(c.Text); {
	case n == 0:
		out.add("text", "is required")
	case n > MaxComment:
		out.add("text", "must have at most %d characters, and has %d", MaxComment, n)
	case !utf8.ValidString(c.Text), strings.ContainsRune(c.Text, 0):
		out.add("text", "must be text in UTF-8")
	}
	if c.Path == "" || len(c.Path) > 4096 {
		out.add("path", "must name a file of the pull request")
	}
	if c.Line < 1 {
		out.add("line", "must be the number of a line")
	}
	if r := []rune(c.Quote); len(r) > maxQuote {
		c.Quote = string(r[:maxQuote]) + "…"
	}
	return out.err()
}
