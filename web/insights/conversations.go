package insights

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"docent/api"
	"docent/internal/brief"
	"docent/persistence/catalog"
	"docent/web/console"
)

const (
	conversationsPage   = 50
	conversationsExport = 200 // conversations that are read at once for a file
)

type conversationsView struct {
	Filter   map[string]string
	Filtered bool
	More     bool // one of the filters that are folded away is set
	Rows     []conversationRow
	Path     string // of the page, without a filter
	Live     string // address of the events; empty on later pages
	Older    string // address of the next page; empty on the last one
	Newest   string // address of the first page; empty there
	CSV      string
	NDJSON   string
	Person   string // address where everything of the caller asked for is deleted; empty if none is, or nobody may
}

// A conversationRow is a line of the list.
type conversationRow struct {
	catalog.Conversation
	Path     string
	Answered int
	Plain    int     // unanswered, and not in doubt
	Excerpt  []piece // of the answer that fits what is looked for
	Other    string  // the question that was asked for, if it is not the first
}

// A piece is a part of a text; a hit is what was looked for.
type piece struct {
	Text string
	Hit  bool
}

func conversationsPath(v *console.Visit) string { return v.Base() + "/conversations" }

// conversationFilters are what the list is filtered by, as the address has it; from the fourth on they are folded away.
var conversationFilters = []string{"q", "outcome", "rating", "from", "until", "page", "channel", "caller"}

// conversationFilter reads a filter from the address. A value that means nothing is left out.
func conversationFilter(v *console.Visit) (q catalog.ConversationQuery, shown map[string]string) {
	shown = map[string]string{}
	for _, name := range conversationFilters {
		if value := strings.TrimSpace(v.Query(name)); value != "" && utf8.ValidString(value) && len(value) <= 1000 {
			shown[name] = value
		}
	}
	keep := func(name string, among ...string) {
		if slices.Contains(among, shown[name]) {
			return
		}
		delete(shown, name)
	}
	keep("outcome", "answered", "unanswered", "in_doubt", "failed")
	keep("rating", string(api.RatedUp), string(api.RatedDown))
	keep("channel", string(api.ChannelWeb), string(api.ChannelAPI), string(api.ChannelSlack), string(api.ChannelDiscord))
	q = catalog.ConversationQuery{Project: v.Project.ID, Text: shown["q"], Outcome: shown["outcome"],
		Rating: api.Rating(shown["rating"]), Page: shown["page"], Channel: api.Channel(shown["channel"]),
		Caller: shown["caller"], After: v.Query("after"), Limit: conversationsPage}
	if at, err := time.Parse(time.DateOnly, shown["from"]); err == nil {
		q.From = at
	} else {
		delete(shown, "from")
	}
	if at, err := time.Parse(time.DateOnly, shown["until"]); err == nil {
		q.To = at.AddDate(0, 0, 1) // the day included
	} else {
		delete(shown, "until")
	}
	return q, shown
}

// filtered is an address with a filter, and the start of a page.
func filtered(path string, filter map[string]string, after string) string {
	values := url.Values{}
	for name, value := range filter {
		values.Set(name, value)
	}
	if after != "" {
		values.Set("after", after)
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

func (s *handler) conversationsOf(ctx context.Context, v *console.Visit, q catalog.ConversationQuery,
	filter map[string]string) (*conversationsView, error) {
	path := conversationsPath(v)
	view := &conversationsView{Filter: filter, Filtered: len(filter) > 0, Path: path,
		CSV: filtered(path+".csv", filter, ""), NDJSON: filtered(path+".ndjson", filter, "")}
	for _, name := range conversationFilters[3:] {
		view.More = view.More || filter[name] != ""
	}
	list, next, err := s.Catalog.Conversations(ctx, q)
	if err != nil {
		return nil, err
	}
	wanted := lookedFor(filter["q"])
	for _, c := range list {
		row := conversationRow{Conversation: c, Path: path + "/" + url.PathEscape(string(c.Thread)),
			Answered: max(0, c.Questions-c.Unanswered-c.Failed), Plain: max(0, c.Unanswered-c.InDoubt)}
		if c.Match.ID != c.First.ID && len(filter) > 0 {
			row.Other = brief.Bytes(c.Match.Question, 300, " …")
		}
		row.First.Question = brief.Bytes(c.First.Question, 300, " …")
		if wanted != nil {
			row.Excerpt = excerpt(wanted, c.Match.Answer, c.Match.Comment)
		}
		view.Rows = append(view.Rows, row)
	}
	if next != "" {
		view.Older = filtered(path, filter, next)
	}
	if q.After != "" {
		view.Newest = filtered(path, filter, "")
	} else {
		view.Live = filtered(path+"/live", filter, "")
	}
	if caller := filter["caller"]; caller != "" && caller != anonymous && v.May(console.Owner) {
		view.Person = path + "/forget?caller=" + url.QueryEscape(caller)
	}
	return view, nil
}

// anonymous is the caller that all are who gave no name.
const anonymous = "anonymous"

func (s *handler) showConversations(v *console.Visit) error {
	q, filter := conversationFilter(v)
	view, err := s.conversationsOf(v.Context(), v, q, filter)
	if err != nil {
		return err
	}
	if v.Partial() { // the address is one to bookmark, without the filters that are empty
		v.Header().Set("HX-Replace-Url", filtered(view.Path, filter, q.After))
		return s.Part(v, "conversations.list", view)
	}
	return s.Render(v, "conversations", "Conversations", view)
}

// liveConversations sends the newest conversations as they come.
func (s *handler) liveConversations(v *console.Visit) error {
	q, filter := conversationFilter(v)
	q.After = ""
	return s.Watch(v, "conversations.rows", filtered("", filter, ""),
		func() (<-chan struct{}, func()) { return s.Catalog.Watch(q.Project) },
		func(ctx context.Context) (any, error) { return s.conversationsOf(ctx, v, q, filter) })
}

// lookedFor finds the words that somebody looks for; nil if there are none.
func lookedFor(text string) *regexp.Regexp {
	var words []string
	for _, w := range strings.Fields(strings.ReplaceAll(text, `"`, " ")) {
		words = append(words, regexp.QuoteMeta(w))
	}
	if len(words) == 0 || len(words) > 16 {
		return nil
	}
	re, err := regexp.Compile("(?i)" + strings.Join(words, "|"))
	if err != nil {
		return nil
	}
	return re
}

// excerptLength is how many bytes of a text are shown around what was looked for.
const excerptLength = 180

// excerpt is the part of the first text that has what was looked for.
func excerpt(wanted *regexp.Regexp, texts ...string) (out []piece) {
	for _, text := range texts {
		at := wanted.FindStringIndex(text)
		if at == nil {
			continue
		}
		begin := max(0, at[0]-excerptLength/3)
		for begin > 0 && !utf8.RuneStart(text[begin]) {
			begin--
		}
		text = text[begin:]
		if begin > 0 { // at a word
			if space := strings.IndexAny(text[:at[0]-begin], " \n"); space >= 0 {
				text = text[space+1:]
			}
		}
		if text = brief.Bytes(text, excerptLength, " …"); begin > 0 {
			text = "… " + text
		}
		last := 0
		for _, hit := range wanted.FindAllStringIndex(text, 16) {
			if hit[1] > hit[0] {
				out = append(out, piece{Text: text[last:hit[0]]}, piece{Text: text[hit[0]:hit[1]], Hit: true})
				last = hit[1]
			}
		}
		return append(out, piece{Text: text[last:]})
	}
	return nil
}

// An exportedQuestion is one line of a file of conversations.
type exportedQuestion struct {
	Thread    api.ThreadID `json:"threadId"`
	ID        api.TurnID   `json:"id"`
	Asked     time.Time    `json:"askedAt"`
	Caller    string       `json:"fp"`
	Channel   api.Channel  `json:"channel,omitempty"`
	Page      string       `json:"page,omitempty"`
	Question  string       `json:"question"`
	Outcome   string       `json:"outcome"`
	Answer    string       `json:"answer"`
	Error     string       `json:"error,omitempty"`
	Sources   []string     `json:"sources,omitempty"`
	Rating    api.Rating   `json:"rating,omitempty"`
	Comment   string       `json:"comment,omitempty"`
	Rated     *time.Time   `json:"ratedAt,omitempty"`
	Replaced  bool         `json:"replaced,omitempty"`
	Model     string       `json:"model,omitempty"`
	Ended     time.Time    `json:"endedAt"`
	FirstText int64        `json:"firstTextMs,omitempty"`
}

func exported(q api.QuestionRow) exportedQuestion {
	e := exportedQuestion{Thread: q.Thread, ID: q.ID, Asked: q.Asked.UTC(), Caller: q.Caller, Channel: q.Channel,
		Page: q.Page, Question: q.Question, Outcome: outcomeOf(q), Answer: q.Answer, Error: q.Error, Rating: q.Rating,
		Comment: q.Comment, Replaced: q.Replaced, Model: q.Model, Ended: q.Ended.UTC(), FirstText: q.FirstText}
	for _, source := range q.Sources {
		e.Sources = append(e.Sources, source.URL)
	}
	if q.Rating != "" {
		rated := q.Rated.UTC()
		e.Rated = &rated
	}
	return e
}

// outcomeOf is what became of a question, in one word.
func outcomeOf(q api.QuestionRow) string {
	switch {
	case q.Error != "":
		return "failed"
	case q.Answered:
		return "answered"
	case q.InDoubt():
		return "in_doubt"
	}
	return "unanswered"
}

var exportedColumns = []string{"thread", "id", "asked", "caller", "channel", "page", "question", "outcome", "answer",
	"error", "sources", "rating", "comment", "rated", "replaced", "model", "ended", "first text ms"}

func (e exportedQuestion) row() []string {
	rated := ""
	if e.Rated != nil {
		rated = e.Rated.Format(time.RFC3339Nano)
	}
	return console.CSVRow(string(e.Thread), string(e.ID), e.Asked.Format(time.RFC3339Nano), e.Caller, string(e.Channel), e.Page,
		e.Question, e.Outcome, e.Answer, e.Error, strings.Join(e.Sources, "\n"), string(e.Rating), e.Comment, rated,
		strconv.FormatBool(e.Replaced), e.Model, e.Ended.Format(time.RFC3339Nano), strconv.FormatInt(e.FirstText, 10))
}

// conversationsCSV gives the conversations that fit a filter, a line for each question.
func (s *handler) conversationsCSV(v *console.Visit) error {
	out := csv.NewWriter(v)
	first := true
	return s.exportConversations(v, console.TypeCSV, "csv", func(list []exportedQuestion) error {
		if first {
			first = false
			out.Write(exportedColumns)
		}
		for _, q := range list {
			out.Write(q.row())
		}
		out.Flush()
		return out.Error()
	})
}

// conversationsNDJSON gives the same as JSON, an object a line.
func (s *handler) conversationsNDJSON(v *console.Visit) error {
	out := json.NewEncoder(v)
	return s.exportConversations(v, console.TypeNDJSON, "ndjson", func(list []exportedQuestion) error {
		for _, q := range list {
			if err := out.Encode(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportConversations writes all conversations that fit a filter, page by page, each with all of its questions.
func (s *handler) exportConversations(v *console.Visit, kind, ending string, write func([]exportedQuestion) error) error {
	q, _ := conversationFilter(v)
	q.After, q.Limit, q.Whole = "", conversationsExport, true
	for begun := false; ; begun = true {
		list, next, err := s.Catalog.Conversations(v.Context(), q)
		threads := make([]api.ThreadID, len(list))
		for i, c := range list {
			threads[i] = c.Thread
		}
		var questions []api.QuestionRow
		if err == nil {
			questions, err = s.Catalog.ThreadQuestions(v.Context(), q.Project, threads)
		}
		if err != nil && begun {
			if v.Context().Err() == nil {
				s.Log.Error("an export of conversations was cut off", "error", err)
			}
			panic(http.ErrAbortHandler) // a file that ends early must not look whole
		}
		if err != nil {
			return err
		}
		if !begun {
			v.BeginFile(kind, "conversations-"+v.Project.Domain, ending)
		}
		v.Patience()
		lines := make([]exportedQuestion, len(questions))
		for i := range questions {
			lines[i] = exported(questions[i])
		}
		if write(lines) != nil || next == "" {
			return nil // a browser that has gone is no error of ours
		}
		q.After = next
	}
}
