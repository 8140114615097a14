package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"syscall"

	"docent/api/stream"
)

// An Answer is what came of one question.
type Answer struct {
	ThreadID  string   `json:"threadId"`
	ThreadKey string   `json:"threadKey,omitempty"`
	MessageID string   `json:"messageId"`
	Text      string   `json:"text"`
	Sources   []Source `json:"sources"` // [1] in the text is the first one
	Cards     []Card   `json:"cards,omitempty"`
	// Questions that the documentation answers too, if the project offers them.
	Suggestions []Suggestion `json:"suggestions,omitempty"`
	// What did not take part in the answer as it should have, each with the reason: "model: unavailable".
	Degraded []string `json:"degraded,omitempty"`
	// How it came about, if Question.Explain has asked for that.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// A Source is a page that an answer was written from.
type Source struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url"`
}

// A Card is a section to go on with, which the answer was not written from.
type Card struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Excerpt string `json:"excerpt"` // what it says in a line or two, as plain text
}

// A Question is put to a project's assistant.
type Question struct {
	Domain, Text string
	Caller       string // anonymous if empty, or a user's id
	Thread, Key  string // the thread that it continues, and its secret if the project asks for that
	Version      string // of the documentation that answers; any if empty
	Language     string // the same
	Page         string // that the reader is on
	Context      []AskContext
	Explain      bool // the answer includes how it came about: for admin keys
	DataStream   bool // use the deprecated version 1, whose lines some proxies pass on that hold events back
	// Chat names the conversation, so that its newest answer is resumed by that name, and Message the question: one that
	// comes again while it is answered is the same one. What chance gives if empty.
	Chat, Message string
}

// A PartKind says what a part of an answer is.
type PartKind int

const (
	PartStart   PartKind = iota + 1 // Answer has the thread's id and key and the message's id
	PartText                        // Text is a piece of the answer
	PartSource                      // Source is a page that it cites
	PartRestart                     // what came before is void: the server lost the answer and writes it again
	PartFinish                      // Answer is all of it
)

// A Part is what comes of an answer, in its order.
type Part struct {
	Kind   PartKind
	Text   string
	Source Source
	Answer Answer
}

// ErrNoStream says that there is no answer to resume.
var ErrNoStream = errors.New("there is no answer to resume")

// An AnswerError is why there is no answer, in words for the reader.
type AnswerError struct{ Reason string }

func (e *AnswerError) Error() string { return e.Reason }

// A Stream is an answer, or a job's run, over one connection.
type Stream struct {
	ThreadID, ThreadKey string // of an answer; the key only with the one that opens the thread
	SessionID, Branch   string // of a run

	decoder *stream.Decoder
	body    io.ReadCloser
}

// Next returns the next part. The error is io.EOF after the last one, and io.ErrUnexpectedEOF if the stream broke.
func (s *Stream) Next() (stream.Part, error) { return s.decoder.Next() }

// Close ends the connection.
func (s *Stream) Close() error { return s.body.Close() }

// open sends a request that is answered with a stream.
func (c *Client) open(ctx context.Context, method, path string, body any, options ...Option) (*Stream, error) {
	resp, err := c.Do(ctx, method, path, body, options...)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNoContent {
		resp.Body.Close()
		return nil, ErrNoStream
	}
	form := stream.DataStream
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		form = stream.UIMessages
	}
	return &Stream{ThreadID: resp.Header.Get("X-Thread-Id"), ThreadKey: resp.Header.Get("X-Thread-Key"),
		SessionID: resp.Header.Get("X-Session-Id"), Branch: resp.Header.Get("X-Branch-Name"),
		decoder: stream.NewDecoder(form, resp.Body), body: resp.Body}, nil
}

// Ask puts a question and writes the answer's text to w as it comes. If the server loses the answer and writes it
// again, so does w, after an empty line; the Answer has it once.
func (c *Client) Ask(ctx context.Context, q Question, w io.Writer) (a Answer, err error) {
	for part, err := range c.AskStream(ctx, q) {
		if err != nil {
			return a, err
		}
		switch part.Kind {
		case PartStart, PartFinish:
			a = part.Answer
		case PartText:
			_, err = io.WriteString(w, part.Text)
		case PartRestart:
			_, err = io.WriteString(w, "\n\n")
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// AskStream puts a question and yields the parts of its answer as they come; the last is a [PartFinish] or an error. A
// connection that breaks is taken up again, and every part comes once. A question whose answer never began is not asked
// twice.
func (c *Client) AskStream(ctx context.Context, q Question) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		a := asking{client: c, q: q, chat: cmp.Or(q.Chat, rand.Text()), message: cmp.Or(q.Message, rand.Text()),
			yield: yield}
		a.known = Answer{ThreadID: q.Thread, ThreadKey: q.Key}
		for first, failures := true, 0; ; first = false {
			a.progress = false
			err := a.connection(ctx, first)
			if err == nil || errors.Is(err, errLeft) {
				return
			}
			if failures++; a.progress {
				failures = 1
			}
			if err = a.lost(ctx, failures, err); err != nil {
				yield(Part{Answer: a.known}, err)
				return
			}
		}
	}
}

// lost waits before the next connection. It returns the error if there shall be none.
func (a *asking) lost(ctx context.Context, failures int, err error) error {
	if _, ok := errors.AsType[*AnswerError](err); ok {
		return err
	}
	if !a.accepted {
		tries := a.client.Retries
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			tries = max(tries, 1) // the server may have it, and only its answer was lost
		}
		if failures > tries {
			return err
		}
	}
	err = a.client.broke(ctx, failures, err)
	if err != nil && a.accepted {
		return fmt.Errorf("%w; thread %s has the answer", err, a.known.ThreadID)
	}
	return err
}

// asking is one question on its way, over as many connections as it takes.
type asking struct {
	client        *Client
	q             Question
	chat, message string // ids of ours, by which the question is known before the server has said its own
	yield         func(Part, error) bool

	known    Answer // ids
	accepted bool   // the question is on the server's disk
	started  bool   // the reader has the start
	shown    string // text that the reader has
	sources  int    // that the reader has
	progress bool   // this connection brought something new
}

// errLeft says that the reader wants no more.
var errLeft = errors.New("the reader has left")

func (a *asking) give(p Part) error {
	if !a.yield(p, nil) {
		return errLeft
	}
	return nil
}

// dial asks, or finds the answer again.
func (a *asking) dial(ctx context.Context, first bool) (*Stream, error) {
	ask, resume := a.client.AskV2, a.client.ResumeV2
	if a.q.DataStream {
		ask, resume = a.client.AskV1, a.client.ResumeV1
	}
	if !first {
		id := a.chat // a thread that goes on has another newest answer until this question is accepted
		if a.accepted {
			id = a.known.ThreadID
		}
		s, err := resume(ctx, a.q.Domain, id, a.q.Caller, ThreadKey(a.known.ThreadKey))
		if !errors.Is(err, ErrNoStream) {
			return s, err
		}
	}
	body := Ask{FP: cmp.Or(a.q.Caller, "anonymous"), ID: a.chat, ThreadID: a.q.Thread, ThreadKey: a.q.Key,
		CurrentPath: a.q.Page, Context: a.q.Context, Explain: a.q.Explain,
		Messages: []Message{{ID: a.message, Role: "user", Parts: []MessagePart{{Type: "text", Text: a.q.Text}}}}}
	if a.q.Version != "" || a.q.Language != "" {
		body.Filter = &Filter{Version: a.q.Version, Language: a.q.Language}
	}
	s, err := ask(ctx, a.q.Domain, body)
	var refused *Error
	if !errors.As(err, &refused) || refused.Challenge == "" || a.client.NoProof {
		return s, err
	}
	challenge, err := a.client.GetChallenge(ctx, a.q.Domain)
	if err != nil {
		return nil, err
	}
	proof, err := challenge.Solve(ctx)
	if err != nil {
		return nil, err
	}
	return ask(ctx, a.q.Domain, body, proof)
}

// connection reads the answer over one connection, from its start, and gives the reader what is new.
func (a *asking) connection(ctx context.Context, first bool) error {
	s, err := a.dial(ctx, first)
	if err != nil {
		return err
	}
	defer s.Close()
	a.accepted = true
	a.known.ThreadID, a.known.ThreadKey = cmp.Or(s.ThreadID, a.known.ThreadID), cmp.Or(s.ThreadKey, a.known.ThreadKey)
	var whole string // with the block of suggestions, which is for programs
	sources := []Source{}
	var cards []Card
	for {
		part, err := s.Next()
		if err != nil {
			return fmt.Errorf("read the answer: %w", cmp.Or(unexpected(err), err))
		}
		switch part.Kind {
		case stream.Start:
			a.known.ThreadID, a.known.MessageID = cmp.Or(part.Thread, a.known.ThreadID), part.Message
			if !a.started {
				a.started = true
				err = a.give(Part{Kind: PartStart, Answer: a.known})
			}
		case stream.Text:
			whole += part.Text
			err = a.catchUp(whole[:stream.SuggestionsBegin(whole)], sources, false)
		case stream.Source:
			if part.Excerpt != "" {
				cards = append(cards, Card{Title: part.Title, URL: part.URL, Excerpt: part.Excerpt})
				continue
			}
			sources = append(sources, Source{Title: part.Title, URL: part.URL})
			err = a.catchUp(whole[:stream.SuggestionsBegin(whole)], sources, false)
		case stream.Explained:
			a.known.Explanation = new(Explanation)
			if err := json.Unmarshal([]byte(part.Text), a.known.Explanation); err != nil {
				return fmt.Errorf("read the explanation: %w", err)
			}
		case stream.Error:
			return &AnswerError{part.Text}
		case stream.Finish:
			end := a.known
			end.ThreadID, end.Sources, end.Cards = cmp.Or(part.Thread, end.ThreadID), sources, cards
			end.Degraded = part.Degraded
			end.Text, end.Suggestions = stream.Suggested(whole)
			if err := a.catchUp(end.Text, sources, true); err != nil {
				return err
			}
			a.yield(Part{Kind: PartFinish, Answer: end}, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// catchUp gives the reader what the text and the sources have more than was shown. What differs from what was shown
// is given again.
func (a *asking) catchUp(text string, sources []Source, finished bool) error {
	behind := len(text) < len(a.shown) && strings.HasPrefix(a.shown, text) // a resumed answer that is not there yet
	if !strings.HasPrefix(text, a.shown) && (finished || !behind) {
		a.shown, a.sources = "", 0
		if err := a.give(Part{Kind: PartRestart}); err != nil {
			return err
		}
	}
	for ; a.sources < len(sources); a.sources++ {
		if err := a.give(Part{Kind: PartSource, Source: sources[a.sources]}); err != nil {
			return err
		}
	}
	if more, ok := strings.CutPrefix(text, a.shown); ok && more != "" {
		a.shown, a.progress = text, true
		return a.give(Part{Kind: PartText, Text: more})
	}
	return nil
}
