package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
	"docent/internal/brief"
	"docent/internal/outbound"
	"docent/persistence/journal"
)

// maxSaid is how many questions an event has of a conversation.
const maxSaid = 10

// Contact is what a reader writes to people.
type Contact struct {
	Name    string `json:"name,omitempty"`
	Email   string `json:"email,omitempty"`
	Message string `json:"message"`
	Reader  string `json:"reader,omitempty"` // the reader's id, if the site gives one
}

// Said is a question of a conversation with its answer.
type Said struct {
	Question string    `json:"question"`
	Answer   string    `json:"answer,omitempty"`
	Answered bool      `json:"answered"` // the documentation had an answer
	AskedAt  time.Time `json:"askedAt"`
}

// tell adds what was said in the conversation until it was handed over, and who asks.
func (d *Data) tell(id api.ThreadID, rec journal.Recovered) error {
	c, _, err := thread.History(id, rec)
	if err != nil {
		return err
	}
	if c.Caller != "anonymous" {
		d.Contact.Reader = c.Caller
	}
	turns := c.Turns
	if i := slices.IndexFunc(turns, func(e thread.Exchange) bool { return e.Turn == d.Question.ID }); i >= 0 {
		turns = turns[:i+1]
	}
	for _, e := range turns[max(0, len(turns)-maxSaid):] {
		d.Conversation = append(d.Conversation, Said{Question: cut(e.Question), Answer: cut(e.Answer + e.Text), Answered: e.Answered,
			AskedAt: e.Asked.UTC()})
	}
	return nil
}

// open makes a conversation that was handed over an issue, if the project's settings say so now.
func (m Manager) open(ctx context.Context, project api.ProjectID, id string, payload []byte) (r result) {
	var p Payload
	if err := json.Unmarshal(payload, &p); err != nil || p.Data.Contact == nil {
		return result{err: errors.New("this event does not become an issue: only " + string(api.EventContactRequested) + " does")}
	}
	of, err := m.Catalog.Project(ctx, project)
	if err == nil && !of.Widget.ContactIssues {
		err = errors.New("the project's setting widget.contactIssues is off: nothing becomes an issue")
	}
	if err != nil {
		return result{err: err}
	}
	link, err := m.Tracker.OpenIssue(ctx, of, id, "Asked in the documentation: "+failure.Line(p.Data.Contact.Message, 80), issue(&p.Data), p.Timestamp)
	if err == nil {
		return result{Answer: outbound.Answer{Code: http.StatusCreated, Text: link}}
	}
	if refused, ok := errors.AsType[*failure.Error](err); ok {
		r.Code, r.Pause, err = refused.Status, refused.After, errors.New(refused.Say)
		if r.gone() { // GitHub says so where issues are disabled, and people may enable them again: no receiver has left permanently
			r.Code = 0
		}
	}
	r.err = err
	return r
}

// issue is the text of an issue. It may be public, so it has neither the reader's name nor their address, nor the thread's
// id, with which anybody could go on in the conversation; what strangers wrote calls nobody and links nowhere.
func issue(d *Data) string {
	var b strings.Builder
	b.WriteString("A reader of the documentation asks people for help:\n\n" + quoted(d.Contact.Message))
	b.WriteString("\n<details><summary>The conversation</summary>\n\n")
	for _, s := range d.Conversation {
		b.WriteString("**Question**\n\n" + quoted(s.Question) + "\n**Answer**\n\n" + quoted(s.Answer) + "\n")
	}
	b.WriteString("</details>\n")
	return b.String()
}

// quoted is a text as a quotation of Markdown that shows it as it is, line by line.
func quoted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(failure.Text(brief.Bytes(text, 2*maxText, "…"))) {
		b.WriteString("> " + host.Escaped(strings.TrimSpace(line)) + "  \n")
	}
	return b.String()
}
