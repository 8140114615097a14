package router

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/uptrace/bunrouter"

	"docent/actors/thread"
	"docent/api"
	"docent/persistence/catalog/insights"
	"docent/router/reqbody"
)

// What analytics answer follows the hosted platform's published form, so that clients made for it need another address
// only. Fields that stand for something that Docent does not know are null; what Docent knows beyond it is added.

const (
	// Most entries of a page. Conversations come in larger pages, as clients of the hosted platform ask for them.
	maxConversations = 1000
	maxEntries       = 100

	someConversations = 100
	someEntries       = 50
)

// analyticsQuery reads which part of what happened is wanted.
func analyticsQuery(x *exchange, req bunrouter.Request, most, otherwise int) (
	q insights.AnalyticsQuery, ps *reqbody.Problems,
) {
	ps = new(reqbody.Problems)
	query := req.URL.Query()
	q = insights.AnalyticsQuery{Project: x.project.ID, Limit: ps.QueryInt(query, "limit", 1, most, otherwise)}
	q.From = ps.QueryTime(query, "dateFrom")
	q.To = ps.QueryTime(query, "dateTo")
	if !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
		ps.Add("dateTo", "must not lie before dateFrom")
	}
	q.After, _ = ps.QueryOne(query, "cursor")
	return q, ps
}

// pageBody is what every list ends with.
type pageBody struct {
	NextCursor *string `json:"nextCursor"`
	HasMore    bool    `json:"hasMore"`
}

func nextPage(cursor string) pageBody { return pageBody{optional(cursor), cursor != ""} }

// optional is a text that is null if there is none.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type sourceBody struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

func sourceBodies(refs []api.PageRef) []sourceBody {
	out := make([]sourceBody, len(refs))
	for i, r := range refs {
		out[i] = sourceBody{r.Title, r.URL}
	}
	return out
}

func resolution(answered bool) string {
	if answered {
		return "answered"
	}
	return "unanswered"
}

// conversationBody is one question and its answer. The id is the thread's, by which the whole of it can be read.
type conversationBody struct {
	ID         api.ThreadID `json:"id"`
	MessageID  api.TurnID   `json:"messageId"`
	Timestamp  timestamp    `json:"timestamp"`
	Query      string       `json:"query"`
	Response   string       `json:"response"`
	Type       string       `json:"responseType"`
	Sources    []sourceBody `json:"sources"`
	Resolution string       `json:"resolutionStatus"`
	Category   *string      `json:"queryCategory"`
	PageURL    *string      `json:"pageUrl"`
	Caller     string       `json:"caller"`
	Channel    *string      `json:"channel"`
	Model      string       `json:"model"`
	Error      *string      `json:"error"`
	Rating     *string      `json:"rating"`
	Comment    *string      `json:"comment"`
	Fallback   *string      `json:"fallbackFor"`
	Degraded   []string     `json:"degraded,omitempty"`
}

type totalsBody struct {
	Threads    int `json:"threads"`
	Callers    int `json:"callers"`
	Questions  int `json:"questions"`
	Answered   int `json:"answered"`
	Unanswered int `json:"unanswered"`
	Failed     int `json:"failed"`
	Up         int `json:"thumbsUp"`
	Down       int `json:"thumbsDown"`
}

// listConversations shows what was asked, newest first, and with the first page how much it is altogether.
func (s *Server) listConversations(x *exchange, req bunrouter.Request) error {
	q, ps := analyticsQuery(x, req, maxConversations, someConversations)
	if err := ps.Err(); err != nil {
		return err
	}
	rows, next, err := s.Analytics.Questions(req.Context(), q)
	if err != nil {
		return err
	}
	address := cmp.Or(x.project.SiteURL, s.Documents.Address(x.project.ID))
	out := struct {
		Conversations []conversationBody `json:"conversations"`
		Totals        *totalsBody        `json:"totals,omitempty"`
		pageBody
	}{Conversations: make([]conversationBody, len(rows)), pageBody: nextPage(next)}
	for i, r := range rows {
		out.Conversations[i] = conversationBody{ID: r.Thread, MessageID: r.ID, Timestamp: timestamp(r.Asked),
			Query: r.Question, Response: r.Answer,
			Type: "answer", Sources: sourceBodies(r.Sources), Resolution: resolution(r.Answered),
			PageURL: optional(pageURL(address, r.Page)),
			Caller:  r.Caller, Channel: optional(string(r.Channel)), Model: r.Model, Error: optional(r.Error),
			Rating: optional(string(r.Rating)), Comment: optional(r.Comment), Fallback: optional(r.FallbackFor),
			Degraded: r.Degraded}
	}
	if q.After == "" {
		t, err := s.Analytics.Totals(req.Context(), q)
		if err != nil {
			return err
		}
		out.Totals = &totalsBody{t.Threads, t.Callers, t.Questions, t.Answered, t.Unanswered, t.Failed, t.Up, t.Down}
	}
	return encode(x, http.StatusOK, out)
}

// pageURL is where a reader was who sent that path: as an address on the site, or below the documentation's.
func pageURL(address, path string) string {
	if path == "" || strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return path
	}
	address, path = strings.TrimRight(address, "/"), "/"+strings.TrimLeft(path, "/")
	if u, err := url.Parse(address); err == nil && u.Path != "" {
		if rest, ok := strings.CutPrefix(path+"/", u.Path+"/"); ok {
			path = "/" + strings.TrimSuffix(rest, "/")
		}
	}
	return address + path
}

// messageBody is one message of a thread. What stands behind createdAt comes with answers only.
type messageBody struct {
	ID         string         `json:"id"`
	Role       string         `json:"role"`
	Content    string         `json:"content"`
	CreatedAt  timestamp      `json:"createdAt"`
	Sources    *[]sourceBody  `json:"sources,omitempty"`
	Resolution string         `json:"resolutionStatus,omitempty"`
	Model      string         `json:"model,omitempty"`
	Fallback   string         `json:"fallbackFor,omitempty"`
	Degraded   []string       `json:"degraded,omitempty"`
	Error      string         `json:"error,omitempty"`
	Feedback   *verdictedBody `json:"feedback,omitempty"`
}

type verdictedBody struct {
	Rating    api.Rating `json:"rating"`
	Comment   *string    `json:"comment"`
	CreatedAt timestamp  `json:"createdAt"`
}

// readThread shows a whole conversation, as it stands now.
func (s *Server) readThread(x *exchange, req bunrouter.Request) error {
	id := param(req, "threadId")
	if !api.ValidID(api.ThreadPrefix, id) {
		return api.Missing("thread")
	}
	x.thread = api.ThreadID(id)
	ctx, cancel := context.WithTimeout(req.Context(), s.Bounds.CommandTimeout)
	defer cancel()
	c, err := s.Threads.Read(ctx, x.thread, thread.Read{Project: x.project.ID})
	if err != nil {
		return api.Named(err, "thread")
	}
	out := struct {
		ThreadID  api.ThreadID  `json:"threadId"`
		CreatedAt timestamp     `json:"createdAt"`
		Caller    string        `json:"caller"`
		Messages  []messageBody `json:"messages"`
		Replaced  []messageBody `json:"replaced"` // by other questions or answers, with what came after them
	}{c.Thread, timestamp(c.Opened), c.Caller, messages(c.Turns), messages(c.Replaced)}
	return encode(x, http.StatusOK, out)
}

// messages are a conversation's exchanges as their questions and answers.
func messages(turns []thread.Exchange) []messageBody {
	list := []messageBody{}
	for _, e := range turns {
		list = append(list, messageBody{ID: cmp.Or(e.Message, string(e.Turn)+":question"), Role: "user",
			Content: e.Question, CreatedAt: timestamp(e.Asked)})
		if !e.Done {
			continue
		}
		sources := []sourceBody{}
		for _, src := range e.Sources {
			sources = append(sources, sourceBody{src.Title, src.URL})
		}
		m := messageBody{ID: string(e.Turn), Role: "assistant", Content: e.Answer, CreatedAt: timestamp(e.Ended),
			Sources:    &sources,
			Resolution: resolution(e.Answered), Model: e.Model, Fallback: e.FallbackFor, Error: e.Error,
			Degraded: e.Degraded}
		if e.Error != "" {
			m.Content = e.Text // as far as it had come
		}
		if f := e.Feedback; f != nil {
			m.Feedback = &verdictedBody{f.Rating, optional(f.Comment), timestamp(f.At)}
		}
		list = append(list, m)
	}
	return list
}

type callerBody struct {
	Caller    string    `json:"caller"`
	Threads   int       `json:"threads"`
	Questions int       `json:"questions"`
	LastAt    timestamp `json:"lastAt"`
}

// callerStats shows by which way questions came, and who asked them.
func (s *Server) callerStats(x *exchange, req bunrouter.Request) error {
	q, ps := analyticsQuery(x, req, maxEntries, someEntries)
	if err := ps.Err(); err != nil {
		return err
	}
	rows, next, err := s.Analytics.Callers(req.Context(), q)
	if err != nil {
		return err
	}
	t, err := s.Analytics.Totals(req.Context(), q)
	if err != nil {
		return err
	}
	out := struct {
		Web     int          `json:"web"`
		API     int          `json:"api"`
		Other   int          `json:"other"`
		Total   int          `json:"total"`
		Callers []callerBody `json:"callers"`
		pageBody
	}{t.Web, t.API, t.Questions - t.Web - t.API, t.Questions, make([]callerBody, len(rows)), nextPage(next)}
	for i, r := range rows {
		out.Callers[i] = callerBody{r.Caller, r.Threads, r.Questions, timestamp(r.Last)}
	}
	return encode(x, http.StatusOK, out)
}

type searchedBody struct {
	Query   string    `json:"searchQuery"`
	Hits    int       `json:"hits"`
	Results int       `json:"results"`
	CTR     *float64  `json:"ctr"`
	Clicked *string   `json:"topClickedPage"`
	Last    timestamp `json:"lastSearchedAt"`
}

// listSearches shows what was searched for, the most frequent first.
func (s *Server) listSearches(x *exchange, req bunrouter.Request) error {
	q, ps := analyticsQuery(x, req, maxEntries, someEntries)
	if err := ps.Err(); err != nil {
		return err
	}
	rows, next, total, err := s.Analytics.Searches(req.Context(), q)
	if err != nil {
		return err
	}
	out := struct {
		Searches []searchedBody `json:"searches"`
		Total    int            `json:"totalSearches"`
		pageBody
	}{make([]searchedBody, len(rows)), total, nextPage(next)}
	for i, r := range rows {
		out.Searches[i] = searchedBody{Query: r.Query, Hits: r.Count, Results: r.Results, Last: timestamp(r.Last)}
	}
	return encode(x, http.StatusOK, out)
}

// What all feedback is, in the hosted platform's words: on what a page says, and not worked on here.
const (
	feedbackSource = "contextual"
	feedbackStatus = "pending"
)

// feedbackKinds reads which feedback is wanted, and reports whether there is any of that kind.
func feedbackKinds(ps *reqbody.Problems, query url.Values) bool {
	wanted := true
	if v, ok := ps.QueryOne(query, "source"); ok {
		if !slices.Contains([]string{"code_snippet", feedbackSource, "agent", "thumbs_only"}, v) {
			ps.Add("source", "must be code_snippet, contextual, agent or thumbs_only")
		}
		wanted = v == feedbackSource
	}
	if v, ok := ps.QueryOne(query, "status"); ok {
		names := strings.Split(v, ",")
		for _, name := range names {
			if !slices.Contains([]string{feedbackStatus, "in_progress", "resolved", "dismissed"}, name) {
				ps.Add("status", "must be a list of pending, in_progress, resolved and dismissed, separated by commas")
				break
			}
		}
		wanted = wanted && slices.Contains(names, feedbackStatus)
	}
	return wanted
}

type feedbackBody struct {
	ID        api.TurnID   `json:"id"`
	ThreadID  api.ThreadID `json:"threadId"`
	Path      string       `json:"path"`
	Paths     []string     `json:"paths"`
	Query     string       `json:"query"`
	Rating    api.Rating   `json:"rating"`
	Helpful   bool         `json:"helpful"`
	Comment   *string      `json:"comment"`
	Contact   *string      `json:"contact"`
	CreatedAt timestamp    `json:"createdAt"`
	Source    string       `json:"source"`
	Status    string       `json:"status"`
	Replaced  bool         `json:"replaced"`
}

// listFeedback shows what readers thought of answers, newest first.
func (s *Server) listFeedback(x *exchange, req bunrouter.Request) error {
	q, ps := analyticsQuery(x, req, maxEntries, someEntries)
	wanted := feedbackKinds(ps, req.URL.Query())
	if err := ps.Err(); err != nil {
		return err
	}
	var rows []api.QuestionRow
	var next string
	var err error
	if wanted {
		if rows, next, err = s.Analytics.Feedback(req.Context(), q); err != nil {
			return err
		}
	}
	out := struct {
		Feedback []feedbackBody `json:"feedback"`
		pageBody
	}{make([]feedbackBody, len(rows)), nextPage(next)}
	for i, r := range rows {
		b := feedbackBody{ID: r.ID, ThreadID: r.Thread, Paths: []string{}, Query: r.Question, Rating: r.Rating,
			Helpful: r.Rating == api.RatedUp,
			Comment: optional(r.Comment), CreatedAt: timestamp(r.Rated), Source: feedbackSource, Status: feedbackStatus,
			Replaced: r.Replaced}
		for _, src := range r.Sources {
			if p := src.Page(); p != "" && !slices.Contains(b.Paths, p) {
				b.Paths = append(b.Paths, p)
			}
		}
		if len(b.Paths) > 0 {
			b.Path = b.Paths[0]
		}
		out.Feedback[i] = b
	}
	return encode(x, http.StatusOK, out)
}

type pageFeedbackBody struct {
	Path  string `json:"path"`
	Up    int    `json:"thumbsUp"`
	Down  int    `json:"thumbsDown"`
	Code  int    `json:"code"`
	Total int    `json:"total"`
}

// listPageFeedback shows how the answers that cite a page were rated, for each page.
func (s *Server) listPageFeedback(x *exchange, req bunrouter.Request) error {
	q, ps := analyticsQuery(x, req, maxEntries, someEntries)
	wanted := feedbackKinds(ps, req.URL.Query())
	if err := ps.Err(); err != nil {
		return err
	}
	var rows []insights.PageCount
	var next string
	var err error
	if wanted {
		if rows, next, err = s.Analytics.PageFeedback(req.Context(), q); err != nil {
			return err
		}
	}
	out := struct {
		Feedback []pageFeedbackBody `json:"feedback"`
		pageBody
	}{make([]pageFeedbackBody, len(rows)), nextPage(next)}
	for i, r := range rows {
		out.Feedback[i] = pageFeedbackBody{Path: r.Page, Up: r.Up, Down: r.Down, Total: r.Up + r.Down}
	}
	return encode(x, http.StatusOK, out)
}
