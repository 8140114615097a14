package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"docent/actors/job"
	"docent/actors/reports"
	"docent/actors/thread"
	"docent/api"
	"docent/internal/brief"
	"docent/persistence/catalog"
	"docent/persistence/journal"
)

// version is that of the payloads. Fields are only added within one.
const version = 1

// maxText is how many bytes of a text an event has.
const maxText = 2000

// A Payload is what receivers get.
type Payload struct {
	Type      api.EventKind `json:"type"`
	Version   int           `json:"version"`
	Timestamp time.Time     `json:"timestamp"` // when it happened
	Data      Data          `json:"data"`
}

// Data says what an event is of. What its kind does not have is left out.
type Data struct {
	Project     Project      `json:"project"`
	Job         *Job         `json:"job,omitempty"`
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	Question    *Question    `json:"question,omitempty"`
	Rating      *Rating      `json:"rating,omitempty"`
	Contact     *Contact     `json:"contact,omitempty"`
	// Conversation is what was asked and answered until then, the newest of it.
	Conversation []Said `json:"conversation,omitempty"`
	Webhook      string `json:"webhook,omitempty"` // of a test
}

type Project struct {
	ID     api.ProjectID `json:"id"`
	Domain string        `json:"domain"`
}

type Job struct {
	ID    api.JobID `json:"id"`
	Title string    `json:"title"`
	Link  string    `json:"link,omitempty"` // of its page
	// Of job.ended:
	Status      string      `json:"status,omitempty"` // completed, failed or cancelled
	Outcome     api.Outcome `json:"outcome,omitempty"`
	Message     string      `json:"message,omitempty"`
	Instruction string      `json:"instruction,omitempty"` // the id of the one that has ended
	Waiting     int         `json:"waiting,omitempty"`     // instructions that the job goes on with
}

type PullRequest struct {
	Link   string        `json:"link"`
	Branch string        `json:"branch,omitempty"`
	State  api.PullState `json:"state,omitempty"`
}

type Question struct {
	ID       api.TurnID   `json:"id"`
	ThreadID api.ThreadID `json:"threadId"`
	Text     string       `json:"text,omitempty"`
	Page     string       `json:"page,omitempty"` // that the reader was on
	Channel  api.Channel  `json:"channel,omitempty"`
	AskedAt  *time.Time   `json:"askedAt,omitempty"`
	Link     string       `json:"link,omitempty"` // of the conversation's page
}

type Rating struct {
	Comment string `json:"comment,omitempty"`
}

// A maker makes events of what the journal holds.
type maker struct {
	catalog   Catalog
	streams   Streams
	publicURL string
	types     map[string]bool // of the journal's events that are looked at
}

func newMaker(deps Deps) (*maker, error) {
	m := &maker{catalog: deps.Catalog, streams: deps.Streams, publicURL: strings.TrimRight(deps.PublicURL, "/"),
		types: map[string]bool{reports.EventType: true}}
	for _, ev := range []job.Event{job.Published{}, job.Finished{}, job.Failed{}, job.PullChanged{}} {
		stored, err := job.Encode(ev)
		if err != nil {
			return nil, err
		}
		m.types[stored.Type] = true
	}
	for _, ev := range []thread.Event{thread.Answered{}, thread.Rated{}, thread.HandedOver{}} {
		stored, err := thread.Encode(ev)
		if err != nil {
			return nil, err
		}
		m.types[stored.Type] = true
	}
	return m, nil
}

// errUnknown says that an event cannot be decoded.
var errUnknown = errors.New("the event cannot be decoded")

// unreadable are the errors of records that will not be read another time either.
var unreadable = []error{errUnknown, journal.ErrCorrupt, catalog.ErrCorrupt}

func (m *maker) wanted(eventType string) bool { return m.types[eventType] }

// make makes the event of what was journaled; nil if that is none. An error that is one of unreadable will not go away;
// another one may.
func (m *maker) make(ctx context.Context, e journal.Logged) (*api.WebhookEvent, error) {
	if id, ok := job.OfStream(e.Stream); ok {
		return m.ofJob(ctx, e, id)
	}
	if id, ok := strings.CutPrefix(e.Stream, thread.Stream("")); ok {
		return m.ofThread(ctx, e, api.ThreadID(id))
	}
	if project, ok := reports.OfStream(e.Stream); ok {
		return ofReport(e, project)
	}
	return nil, nil
}

func (m *maker) ofJob(ctx context.Context, e journal.Logged, id api.JobID) (*api.WebhookEvent, error) {
	ev, err := job.Decode(e.Event)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	p := Payload{Data: Data{Job: &Job{ID: id}}}
	switch ev := ev.(type) {
	case job.Published:
		if !ev.Opened {
			return nil, nil
		}
		p.Type, p.Timestamp = api.EventPullOpened, ev.At
		p.Data.PullRequest = &PullRequest{Link: m.absolute(ev.Result.Link), State: api.PullOpen}
	case job.PullChanged:
		p.Type, p.Timestamp = api.EventPullMerged, ev.At
		switch ev.State {
		case api.PullMerged:
		case api.PullClosed:
			p.Type = api.EventPullClosed
		default:
			return nil, nil
		}
		p.Data.PullRequest = &PullRequest{Link: m.absolute(ev.Link), Branch: ev.Branch, State: ev.State}
	case job.Finished:
		p.Type, p.Timestamp = api.EventJobEnded, ev.At
		m.ended(&p.Data, ev.Ended, string(api.JobCompleted), ev.Message)
		p.Data.Job.Outcome = ev.Outcome
	case job.Failed:
		p.Type, p.Timestamp = api.EventJobEnded, ev.At
		status := string(api.JobFailed)
		if ev.Reason == api.HaltInterrupted {
			status = "cancelled"
		}
		m.ended(&p.Data, ev.Ended, status, ev.Message)
	default:
		return nil, nil
	}
	rec, err := m.streams.Load(e.Stream)
	if err != nil {
		return nil, err
	}
	row, ok, err := job.Row(id, rec)
	if err != nil || !ok {
		return nil, err
	}
	p.Data.Job.Title = cut(row.Job.Title)
	if p.Type == api.EventPullOpened && row.Job.PRLink != nil && m.absolute(*row.Job.PRLink) == p.Data.PullRequest.Link {
		p.Data.PullRequest.Branch = row.Branch
	}
	return m.event(ctx, e, row.Project, p, func(page func(rest string) string) { p.Data.Job.Link = page("jobs/" + string(id)) })
}

func (m *maker) ended(d *Data, ended job.Ended, status, message string) {
	d.Job.Status, d.Job.Message, d.Job.Instruction, d.Job.Waiting = status, cut(message), ended.Instruction, ended.Waiting
	if ended.Link != "" {
		d.PullRequest = &PullRequest{Link: m.absolute(ended.Link)}
	}
}

func (m *maker) ofThread(ctx context.Context, e journal.Logged, id api.ThreadID) (*api.WebhookEvent, error) {
	ev, err := thread.Decode(e.Event)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	q := &Question{ThreadID: id}
	p := Payload{Data: Data{Question: q}}
	switch ev := ev.(type) {
	case thread.Answered:
		if ev.Answered || !ev.Channel.ByReader() {
			return nil, nil
		}
		p.Type, p.Timestamp, q.ID = api.EventQuestionUnanswered, ev.At, ev.Turn
	case thread.Rated:
		if ev.Feedback.Rating != api.RatedDown || !ev.Channel.ByReader() {
			return nil, nil
		}
		p.Type, p.Timestamp, q.ID = api.EventAnswerRatedDown, ev.Feedback.At, ev.Turn
		p.Data.Rating = &Rating{Comment: cut(ev.Feedback.Comment)}
	case thread.HandedOver:
		p.Type, p.Timestamp, q.ID = api.EventContactRequested, ev.Contact.At, ev.Turn
		p.Data.Contact = &Contact{Name: ev.Contact.Name, Email: ev.Contact.Email, Message: ev.Contact.Message}
	default:
		return nil, nil
	}
	rec, err := m.streams.Load(e.Stream)
	if err != nil {
		return nil, err
	}
	project, asked, found, err := thread.Find(id, rec, q.ID)
	if err != nil || project == "" { // it was removed meanwhile
		return nil, err
	}
	if found {
		at := asked.Asked.UTC()
		q.Text, q.Page, q.Channel, q.AskedAt = cut(asked.Question), cut(asked.Page), asked.Channel, &at
	}
	if p.Data.Contact != nil {
		if err := p.Data.tell(id, rec); err != nil {
			return nil, err
		}
	}
	return m.event(ctx, e, project, p, func(page func(rest string) string) { q.Link = page("conversations/" + string(id)) })
}

// ofReport makes the event of a weekly report, which the journal holds as receivers get it.
func ofReport(e journal.Logged, project api.ProjectID) (*api.WebhookEvent, error) {
	made, err := reports.Decode(e.Event)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	return &api.WebhookEvent{ID: reports.ID(project, made.Data.Week), Position: e.Pos, Project: project, Kind: made.Type,
		Stream: e.Stream, At: made.Timestamp, Payload: e.Event.Data}, nil
}

// event completes an event; nil if its project is no more.
func (m *maker) event(ctx context.Context, e journal.Logged, project api.ProjectID, p Payload,
	link func(page func(rest string) string)) (*api.WebhookEvent, error) {
	of, err := m.catalog.Project(ctx, project)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.Version, p.Timestamp, p.Data.Project = version, p.Timestamp.UTC(), Project{ID: of.ID, Domain: of.Domain}
	if m.publicURL != "" {
		link(func(rest string) string {
			return m.publicURL + "/console/" + url.PathEscape(string(of.Org)) + "/" + url.PathEscape(of.Domain) + "/" + rest
		})
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return &api.WebhookEvent{ID: EventID(e.Stream, e.Seq, p.Type, p.Timestamp), Position: e.Pos, Project: project, Kind: p.Type,
		Stream: e.Stream, At: p.Timestamp, Payload: body}, nil
}

// EventID is the id of an event. It follows from the fact alone, so that it is the same in every attempt and after every
// crash; the time is part of it, since a data directory that was restored may have another fact in that place.
func EventID(stream string, seq uint64, kind api.EventKind, at time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%d", stream, seq, kind, at.UnixNano()))
	return api.EventPrefix + hex.EncodeToString(sum[:16])
}

// absolute is a link that works elsewhere: those of the built-in host are paths.
func (m *maker) absolute(link string) string {
	if strings.HasPrefix(link, "/") {
		return m.publicURL + link
	}
	return link
}

// cut bounds a text.
func cut(text string) string {
	return brief.Bytes(strings.ToValidUTF8(text, ""), maxText, "…")
}
