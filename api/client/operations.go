package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"docent/api"
)

const (
	agent     = "/v2/agent/"
	sessions  = "/v1/agent/"
	discovery = "/discovery/"
	analytics = "/v1/analytics/"
)

// The agent. These need an admin key.

// CreateJob gives the agent an instruction. The job is on disk when this returns.
func (c *Client) CreateJob(ctx context.Context, project string, job CreateJob, options ...Option) (Job, error) {
	return post[Job](ctx, c, path(agent, project, "/job"), job, c.named(options)...)
}

// ReadJob reads a job. With [Wait] the answer is held until the job changes.
func (c *Client) ReadJob(ctx context.Context, project, id string, options ...Option) (Job, error) {
	return get[Job](ctx, c, path(agent, project, "/job/", id), options...)
}

// Wait makes ReadJob wait for a change, for at most a minute.
func Wait(d time.Duration) Option {
	return Query("wait", strconv.Itoa(int(min(max(d, time.Second), time.Minute)/time.Second)))
}

// FollowUp gives a job one more instruction.
func (c *Client) FollowUp(ctx context.Context, project, id, prompt string, options ...Option) (Job, error) {
	return post[Job](ctx, c, path(agent, project, "/job/", id, "/message"), FollowUp{prompt}, c.named(options)...)
}

// CancelJob stops an active job.
func (c *Client) CancelJob(ctx context.Context, project, id string) (Job, error) {
	return post[Job](ctx, c, path(agent, project, "/job/", id, "/cancel"), nil)
}

// ArchiveJob puts a job away. Its branch and pull request stay.
func (c *Client) ArchiveJob(ctx context.Context, project, id string) (Job, error) {
	return post[Job](ctx, c, path(agent, project, "/job/", id, "/archive"), nil)
}

// A JobFilter says which jobs to list.
type JobFilter struct {
	Status   api.JobStatus // any if empty
	Archived *bool         // only archived jobs, or only others; all if nil
	Limit    int           // of a page, at most 100; 20 if 0
	Cursor   string        // NextCursor of the page before
}

// ListJobs reads a page of jobs, newest first. [Client.Jobs] yields all of them.
func (c *Client) ListJobs(ctx context.Context, project string, f JobFilter) (JobList, error) {
	archived := ""
	if f.Archived != nil {
		archived = strconv.FormatBool(*f.Archived)
	}
	return get[JobList](ctx, c, path(agent, project, "/jobs"), Query("status", string(f.Status)),
		Query("archived", archived), number("limit", f.Limit), Query("cursor", f.Cursor))
}

func number(name string, n int) Option {
	if n == 0 {
		return Query(name, "")
	}
	return Query(name, strconv.Itoa(n))
}

// CreateSession creates a job and reads its run in the deprecated data stream.
func (c *Client) CreateSession(
	ctx context.Context,
	project string,
	s CreateSession,
	options ...Option,
) (*Stream, error) {
	return c.open(ctx, http.MethodPost, path(sessions, project, "/job"), s, options...)
}

// ListSessions lists jobs in the deprecated form: all of them if take is 0.
func (c *Client) ListSessions(ctx context.Context, project string, skip, take int) (SessionList, error) {
	return get[SessionList](ctx, c, path(sessions, project, "/jobs"), number("skip", skip), number("take", take))
}

// ReadSession reads a job in the deprecated form.
func (c *Client) ReadSession(ctx context.Context, project, id string) (Session, error) {
	return get[Session](ctx, c, path(sessions, project, "/job/", id))
}

// The assistant. These need an assistant key, or none if the project is public.

// AskV2 asks and opens the answer as server-sent events. [Client.AskStream] also takes it up if it breaks.
func (c *Client) AskV2(ctx context.Context, domain string, q Ask, options ...Option) (*Stream, error) {
	return c.open(ctx, http.MethodPost, path(discovery+"v2/assistant/", domain, "/message"), q, options...)
}

// AskV1 asks and opens the answer in the deprecated data stream.
func (c *Client) AskV1(ctx context.Context, domain string, q Ask, options ...Option) (*Stream, error) {
	return c.open(ctx, http.MethodPost, path(discovery+"v1/assistant/", domain, "/message"), q, options...)
}

// ResumeV2 opens the newest answer of a chat or thread from its start. The error is [ErrNoStream] if there is none.
// fp is who asked; it may be left out if that was nobody.
func (c *Client) ResumeV2(ctx context.Context, domain, id, fp string, options ...Option) (*Stream, error) {
	return c.open(ctx, http.MethodGet, path(discovery+"v2/assistant/", domain, "/message/", id, "/stream"), nil,
		append(options, Query("fp", fp))...)
}

// ResumeV1 does the same in the deprecated data stream.
func (c *Client) ResumeV1(ctx context.Context, domain, id, fp string, options ...Option) (*Stream, error) {
	return c.open(ctx, http.MethodGet, path(discovery+"v1/assistant/", domain, "/message"), nil,
		append(options, Query("chatId", id), Query("fp", fp))...)
}

// GetChallenge gets a proof of work to solve, if the project asks for one with each question.
func (c *Client) GetChallenge(ctx context.Context, domain string) (Challenge, error) {
	return get[Challenge](ctx, c, path(discovery+"v1/assistant/", domain, "/challenge"))
}

// Solve does the work and returns the option that brings its proof. It is good for one question.
func (ch Challenge) Solve(ctx context.Context) (Option, error) {
	for n := 0; n <= ch.MaxNumber && ctx.Err() == nil; n++ {
		sum := sha256.Sum256(strconv.AppendInt([]byte(ch.Salt), int64(n), 10))
		if hex.EncodeToString(sum[:]) != ch.Challenge {
			continue
		}
		proof, err := json.Marshal(map[string]any{"algorithm": ch.Algorithm, "challenge": ch.Challenge, "number": n,
			"salt": ch.Salt, "signature": ch.Signature})
		return Header("X-Altcha", base64.StdEncoding.EncodeToString(proof)), err
	}
	return nil, cmp.Or(ctx.Err(), errors.New("the challenge has no solution"))
}

// ThreadKey sends the thread's secret, if the project asks for it.
func ThreadKey(key string) Option {
	if key == "" {
		return func(*http.Request) {}
	}
	return Header("X-Thread-Key", key)
}

// Search finds the sections that fit best, at most one of each page.
func (c *Client) Search(ctx context.Context, domain string, s Search) ([]SearchHit, error) {
	return post[[]SearchHit](ctx, c, path(discovery+"v1/search/", domain), s)
}

// ReadPage reads a page as Markdown.
func (c *Client) ReadPage(ctx context.Context, domain string, p ReadPage) (Page, error) {
	return post[Page](ctx, c, path(discovery+"v1/page/", domain), p)
}

// RateAnswer says what a reader thinks of an answer. A later rating replaces an earlier one.
func (c *Client) RateAnswer(ctx context.Context, domain string, f RateAnswer) error {
	return c.Post(ctx, path(discovery+"v1/feedback/", domain), f, nil)
}

// HandOver hands a conversation over to people, if the project takes messages for them. The same again changes nothing.
func (c *Client) HandOver(ctx context.Context, domain string, h HandOver, options ...Option) error {
	return c.Post(ctx, path(discovery+"v1/contact/", domain), h, nil, c.named(options)...)
}

// ReadLLMS reads what is published as Markdown: llms.txt, llms-full.txt, or a page's path with the ending .md.
func (c *Client) ReadLLMS(ctx context.Context, domain, file string) (string, error) {
	parts := []string{"/llms/", domain}
	for p := range strings.SplitSeq(file, "/") {
		parts = append(parts, "/", p)
	}
	return c.text(ctx, path(parts...))
}

// Keeping the documentation up to date.

// StartUpdate starts re-indexing the documentation and returns the update's id.
func (c *Client) StartUpdate(ctx context.Context, project string) (string, error) {
	started, err := post[struct {
		StatusID string `json:"statusId"`
	}](ctx, c, path("/v1/project/update/", project), nil)
	return started.StatusID, err
}

// UpdateStatus says how far an update has come.
func (c *Client) UpdateStatus(ctx context.Context, id string) (Update, error) {
	return get[Update](ctx, c, path("/v1/project/update-status/", id))
}

// Push hands over a push event as a code host does. The options bear its signature. The id is that of the update that
// re-indexes the documentation; empty if the push is not to its branch.
func (c *Client) Push(ctx context.Context, project string, event json.RawMessage, options ...Option) (string, error) {
	resp, err := c.Do(ctx, http.MethodPost, path("/v1/webhook/", project, "/push"), event, options...)
	if err != nil {
		return "", err
	}
	if resp.StatusCode == http.StatusNoContent {
		return "", resp.Body.Close()
	}
	var taken struct {
		StatusID *string `json:"statusId"`
	}
	if err := decodeBody(resp, &taken); err != nil || taken.StatusID == nil {
		return "", err
	}
	return *taken.StatusID, nil
}

// Analytics.

// A Period says between which times to look, and which page of the list.
type Period struct {
	From, To time.Time // not before From, and before To; no bound if zero
	Limit    int       // of a page; the API's own if 0
	Cursor   string    // NextCursor of the page before
}

func list[T any](ctx context.Context, c *Client, path string, p Period) (T, error) {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return get[T](ctx, c, path, Query("dateFrom", at(p.From)), Query("dateTo", at(p.To)), number("limit", p.Limit),
		Query("cursor", p.Cursor))
}

// ListConversations reads a page of questions and their answers, newest first.
func (c *Client) ListConversations(ctx context.Context, project string, p Period) (ConversationList, error) {
	return list[ConversationList](ctx, c, path(analytics, project, "/assistant"), p)
}

// ReadThread reads a whole conversation.
func (c *Client) ReadThread(ctx context.Context, project, thread string) (Thread, error) {
	return get[Thread](ctx, c, path(analytics, project, "/assistant/threads/", thread))
}

// CallerStats reads the callers, those with most questions first.
func (c *Client) CallerStats(ctx context.Context, project string, p Period) (CallerStats, error) {
	return list[CallerStats](ctx, c, path(analytics, project, "/assistant/caller-stats"), p)
}

// ListSearches reads what was searched for, most frequent first.
func (c *Client) ListSearches(ctx context.Context, project string, p Period) (SearchList, error) {
	return list[SearchList](ctx, c, path(analytics, project, "/searches"), p)
}

// ListFeedback reads what readers think of answers, newest first.
func (c *Client) ListFeedback(ctx context.Context, project string, p Period) (FeedbackList, error) {
	return list[FeedbackList](ctx, c, path(analytics, project, "/feedback"), p)
}

// Evaluate asks the questions of one conversation, to judge the answers. Nothing of it stays, and it counts as no
// reader's.
func (c *Client) Evaluate(ctx context.Context, project string, e Evaluate) (Evaluation, error) {
	return post[Evaluation](ctx, c, path("/v1/evaluation/", project), e)
}

// ListPageFeedback reads how answers were rated, by the pages that they cite.
func (c *Client) ListPageFeedback(ctx context.Context, project string, p Period) (PageFeedbackList, error) {
	return list[PageFeedbackList](ctx, c, path(analytics, project, "/feedback/by-page"), p)
}

// The service.

// Health is whether the process lives.
func (c *Client) Health(ctx context.Context) (Status, error) { return get[Status](ctx, c, "/healthz") }

// Ready is whether work is taken.
func (c *Client) Ready(ctx context.Context) (Status, error) { return get[Status](ctx, c, "/readyz") }

// Metrics reads the figures for Prometheus.
func (c *Client) Metrics(ctx context.Context) (string, error) { return c.text(ctx, "/metrics") }

// OpenapiJSON reads the description of the API.
func (c *Client) OpenapiJSON(ctx context.Context) (json.RawMessage, error) {
	return get[json.RawMessage](ctx, c, "/openapi.json")
}

// OpenapiYAML reads the description of the API as it was written.
func (c *Client) OpenapiYAML(ctx context.Context) (string, error) {
	return c.text(ctx, "/openapi.yaml")
}

// ReadWidgetSettings reads how the widget looks on a project's site.
func (c *Client) ReadWidgetSettings(ctx context.Context, domain string) (WidgetSettings, error) {
	return get[WidgetSettings](ctx, c, path("/widget/settings/", domain))
}

// ReadWidget reads one of the widget's scripts.
func (c *Client) ReadWidget(ctx context.Context, file string) (string, error) {
	return c.text(ctx, path("/widget/", file))
}

func (c *Client) text(ctx context.Context, path string) (string, error) {
	resp, err := c.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Whole lists.

// Jobs yields a project's jobs, newest first.
func (c *Client) Jobs(ctx context.Context, project string, f JobFilter) iter.Seq2[Job, error] {
	return pages(f.Cursor, func(cursor string) (JobList, error) {
		f.Cursor = cursor
		return c.ListJobs(ctx, project, f)
	}, func(l JobList) []Job { return l.Jobs })
}

// Conversations yields questions and their answers, newest first.
func (c *Client) Conversations(ctx context.Context, project string, p Period) iter.Seq2[Conversation, error] {
	return lists(
		ctx,
		project,
		p,
		c.ListConversations,
		func(l ConversationList) []Conversation { return l.Conversations },
	)
}

// Callers yields the callers, those with most questions first.
func (c *Client) Callers(ctx context.Context, project string, p Period) iter.Seq2[Caller, error] {
	return lists(ctx, project, p, c.CallerStats, func(l CallerStats) []Caller { return l.Callers })
}

// Searches yields what was searched for, most frequent first.
func (c *Client) Searches(ctx context.Context, project string, p Period) iter.Seq2[SearchCount, error] {
	return lists(ctx, project, p, c.ListSearches, func(l SearchList) []SearchCount { return l.Searches })
}

// Feedback yields what readers think of answers, newest first.
func (c *Client) Feedback(ctx context.Context, project string, p Period) iter.Seq2[Feedback, error] {
	return lists(ctx, project, p, c.ListFeedback, func(l FeedbackList) []Feedback { return l.Feedback })
}

// PageFeedback yields how answers were rated, by the pages that they cite.
func (c *Client) PageFeedback(ctx context.Context, project string, p Period) iter.Seq2[PageFeedback, error] {
	return lists(ctx, project, p, c.ListPageFeedback, func(l PageFeedbackList) []PageFeedback { return l.Feedback })
}

func lists[Page interface{ next() *string }, Item any](ctx context.Context, project string, p Period,
	read func(context.Context, string, Period) (Page, error), items func(Page) []Item) iter.Seq2[Item, error] {
	return pages(p.Cursor, func(cursor string) (Page, error) {
		p.Cursor = cursor
		return read(ctx, project, p)
	}, items)
}

// pages yields the items of all pages from a cursor on. An error is the last that it yields.
func pages[Page interface{ next() *string }, Item any](cursor string, read func(cursor string) (Page, error),
	items func(Page) []Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for cursor := cursor; ; {
			page, err := read(cursor)
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
			next := page.next()
			if next == nil || *next == "" {
				return
			}
			cursor = *next
		}
	}
}
