package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/internal/brief"
	"docent/model"
)

const (
	defaultSearches = 3
	maxPages        = 2    // that a model may read on for an answer
	leastAnswer     = 128  // tokens without which a call is not made
	callsTogether   = 4    // of searches in one reply
	foundAtOnce     = 5    // sections that one search shows
	roomToSearch    = 4096 // tokens that a window must leave for prompts before a model may search
	longestQuery    = 400
)

var searchTool = model.Tool{
	Name:        "search_docs",
	Description: "Searches the documentation and returns the sections that fit best, each with its number for citing.",
	Schema: json.RawMessage(
		`{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in the words that the documentation would use."}},"required":["query"]}`),
}

var pageTool = model.Tool{
	Name:        "read_page",
	Description: "Returns more of the page that a passage is from, around the passage, with a number of its own for citing.",
	Schema: json.RawMessage(
		`{"type":"object","properties":{"passage":{"type":"integer","description":"The number of the passage."}},"required":["passage"]}`),
}

// searches is how often a model may search for an answer.
func (r *Model) searches(req model.Request) int {
	switch {
	case req.Search == nil || r.Searches < 0 || r.toolless.Load() || r.Config.Window-r.MaxTokens < roomToSearch:
		return 0
	case r.Searches == 0:
		return defaultSearches
	}
	return r.Searches
}

// An answering is one answer of a language model: one exchange, or several if the model searches by itself.
type answering struct {
	*Model
	req   model.Request
	c     *citer
	chat  model.Chat
	left  int // tokens that results of searches may still have
	limit int // searches
	done  int
	read  int      // pages
	asked []string // queries so far
	tight bool     // what is left is less because of the budget
}

func (r *Model) prepare(req model.Request, emit func(model.Delta) error) *answering {
	a := &answering{Model: r, req: req, limit: r.searches(req)}
	if a.limit == 0 {
		a.req.Search, a.req.ReadPage = nil, nil
	}
	p := r.write(a.req, a.limit)
	a.chat, a.left = p.chat(req.Key), p.spare
	a.c = &citer{given: p.given, emit: emit}
	if a.limit > 0 {
		a.chat.Tools = []model.Tool{searchTool}
		if a.req.ReadPage != nil {
			a.chat.Tools = append(a.chat.Tools, pageTool)
		}
	}
	return a
}

// room returns how long the next reply may be by what is left for the answer, and whether that is less than usual.
func (a *answering) room(result *model.Result) (most int, short bool) {
	usual := model.Chat{}
	a.bound(&usual)
	most = usual.MaxTokens
	if a.req.Budget == (model.Budget{}) {
		return most, false
	}
	left, prompt := a.req.Budget.Less(result.PromptTokens+result.CompletionTokens, result.Cost), chatTokens(&a.chat)
	if left.Tokens != 0 {
		most = min(most, left.Tokens-prompt)
	}
	if cost := left.Cost; cost != 0 {
		cost -= a.Price.of(model.Usage{PromptTokens: prompt}, 0)
		switch {
		case cost < 0:
			most = -1
		case a.Price.Completion > 0:
			most = int(min(float64(most), float64(cost)/a.Price.Completion))
		}
	}
	return most, most < usual.MaxTokens
}

// tighten bounds what results of tools may have by what the answer may still use, with an answer after them.
func (a *answering) tighten(result *model.Result) {
	if a.req.Budget == (model.Budget{}) {
		return
	}
	left := a.req.Budget.Less(result.PromptTokens+result.CompletionTokens, result.Cost)
	most, prompt := a.left, chatTokens(&a.chat)
	if left.Tokens != 0 {
		most = min(most, left.Tokens-prompt-2*leastAnswer)
	}
	if left.Cost != 0 && a.Price.Prompt > 0 {
		cost := float64(left.Cost) - a.Price.Completion*2*leastAnswer
		most = min(most, int(cost/a.Price.Prompt)-prompt)
	}
	if most < a.left {
		a.left, a.tight = most, true
	}
}

// chatTokens estimates a conversation from above.
func chatTokens(c *model.Chat) int {
	n := tokens(c.System)
	for i := range c.Turns {
		n += tokens(c.Turns[i].Text) + 8
		n += len(c.Turns[i].Kept) / 3
		for _, call := range c.Turns[i].Calls {
			n += tokens(call.Name+call.Arguments) + 16
		}
	}
	for i := range c.Tools {
		n += tokens(c.Tools[i].Name+c.Tools[i].Description) + tokens(string(c.Tools[i].Schema))
	}
	return n
}

// watch reports a step of the answer to its watcher, if there is one.
func (a *answering) watch(s model.Step) {
	if a.req.Watch != nil {
		a.req.Watch(s)
	}
}

// within bounds the next reply by what is left for the answer, and says whether that is less than usual. The answer has
// ended if that is too little; the error is why there is none at all.
func (a *answering) within(spoke bool, result *model.Result) (short, ended bool, err error) {
	most, short := a.room(result)
	switch {
	case most >= leastAnswer:
		if a.chat.MaxTokens, a.chat.Exact = 0, short; short {
			a.chat.MaxTokens = most
		}
		return short, false, nil
	case !spoke:
		return short, true, &Failure{Model: a.name, Host: a.host,
			Reason: "was not asked: it would take more than one answer may", cause: model.ErrBudget}
	}
	result.Reason = "length"
	result.Degrade("answer", "over budget")
	return short, true, nil
}

// run asks until the model has answered. Result has the usage of all exchanges and the last one's reason.
func (a *answering) run(ctx context.Context, result *model.Result) error {
	spoke := false
	a.watch(model.Step{Given: a.c.given})
	for round := 0; ; round++ {
		var raw strings.Builder
		short, ended, err := a.within(spoke, result)
		if ended {
			return err
		}
		began := time.Now()
		if round > 0 && a.req.Key != "" {
			a.chat.Key = fmt.Sprintf("%s.%d", a.req.Key, round)
		}
		end, err := a.ask(ctx, a.chat, func(s string) error {
			if raw.Len() == 0 && spoke {
				if err := a.c.write("\n\n"); err != nil {
					return err
				}
			}
			raw.WriteString(s)
			return a.c.write(s)
		}, func(f *Failure) bool { return f.temporary && raw.Len() == 0 }, !a.NoFallback)
		result.Count(end.usage)
		a.watch(model.Step{Called: true, Reason: end.reason, Usage: end.usage, Took: time.Since(began), Failed: err != nil})
		if err != nil {
			if round == 0 && raw.Len() == 0 && len(a.chat.Tools) > 0 && noTools(err) {
				a.toolless.Store(true) // and is not offered any again
				emit := a.c.emit
				*a = *a.prepare(a.req, emit)
				continue
			}
			return err
		}
		spoke = spoke || raw.Len() > 0
		if result.Reason = end.reason; short && end.reason == "length" {
			result.Degrade("answer", "over budget")
		}
		if len(end.calls) == 0 || end.reason == "length" || round > a.limit {
			if !spoke {
				return &Failure{Model: a.name, Host: a.host, Reason: "gave an empty answer"}
			}
			if result.Reason == "tools" {
				result.Reason = "stop" // it goes on searching, and has been told to stop
			}
			return nil
		}
		if err := a.c.flush(); err != nil {
			return err
		}
		if err := a.carryOut(ctx, raw.String(), &end, result); err != nil {
			return err
		}
	}
}

// roomForCall is how many tokens have to be left for the result of a call.
const roomForCall = 2*(len(noMore)+2)/3 + 128

// carryOut runs the model's calls and puts the results into the conversation. A wrong call gets an error as its result.
func (a *answering) carryOut(ctx context.Context, said string, end *ending, result *model.Result) error {
	a.tighten(result)
	calls := end.calls
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = a.chat.CallID(i)
		}
	}
	a.chat.Turns = append(slices.Clip(a.chat.Turns), model.Turn{Role: "assistant", Text: said, Calls: calls, Kept: end.kept})
	a.left -= tokens(said) + len(end.kept)/3
	for _, call := range calls {
		a.left -= tokens(call.Name+call.Arguments) + 16
	}
	for i, call := range calls {
		t := model.Turn{Role: "tool", CallID: call.ID}
		var err error
		switch {
		case call.Name == searchTool.Name:
			t.Text, t.Failed, err = a.search(ctx, call.Arguments, i)
		case call.Name == pageTool.Name && a.req.ReadPage != nil:
			t.Text, t.Failed, err = a.readPage(ctx, call.Arguments, i)
		default:
			t.Failed, t.Text = true, "There is no such tool. There is "+searchTool.Name+"."
		}
		if err != nil {
			return err
		}
		a.watch(model.Step{Tool: call.Name, Arguments: call.Arguments, Gave: t.Text, Failed: t.Failed})
		a.left -= tokens(t.Text) + 8
		a.chat.Turns = append(a.chat.Turns, t)
	}
	if a.tight && a.left < roomForCall {
		result.Degrade("answer", "over budget")
	}
	return nil
}

// search is what the n-th call of a reply searches for.
func (a *answering) search(ctx context.Context, arguments string, n int) (text string, failed bool, err error) {
	var in struct {
		Query string `json:"query"`
	}
	if json.Unmarshal([]byte(arguments), &in) != nil {
		return `The arguments are no JSON of the form {"query": "..."}.`, true, nil
	}
	query := brief.Runes(oneLine(in.Query), longestQuery, "")
	switch {
	case query == "":
		return "The query is empty.", true, nil
	case a.done >= a.limit || n >= callsTogether || a.left < roomForCall:
		return noMore, true, nil
	case slices.Contains(a.asked, strings.ToLower(query)):
		return "This was searched before: see above.", false, nil
	}
	a.done++
	a.asked = append(a.asked, strings.ToLower(query))
	found, err := a.req.Search(ctx, query)
	if err != nil {
		return "", false, fmt.Errorf("search for the model: %w", err)
	}
	return a.show(found), false, nil
}

// readPage is what the n-th call of a reply reads around a passage.
func (a *answering) readPage(ctx context.Context, arguments string, n int) (text string, failed bool, err error) {
	var in struct {
		Passage *int `json:"passage"`
	}
	switch {
	case json.Unmarshal([]byte(arguments), &in) != nil || in.Passage == nil:
		return `The arguments are no JSON of the form {"passage": 1}.`, true, nil
	case !a.c.known(*in.Passage):
		return "No passage has this number.", true, nil
	case a.read >= maxPages || n >= callsTogether || a.left < roomForCall:
		return noMorePages, true, nil
	}
	a.read++
	found, err := a.req.ReadPage(ctx, a.c.given[*in.Passage-1])
	if err != nil {
		return "", false, fmt.Errorf("read a page for the model: %w", err)
	}
	return a.show(found), false, nil
}

const noMorePages = "No more pages can be read. Answer now with what you have; if it does not answer the question, say so."

const noMore = "No more searches are possible. Answer now with what you have; if it does not answer the question, say so."

// show writes what a search found, with the number of each section, as quoted material that fits what is left.
func (a *answering) show(found []model.Found) string {
	if len(found) == 0 {
		return "Nothing was found."
	}
	room := min(a.left-2*tokens(noMore)-64, a.Config.Window/4)
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Text)
	}
	fence := "passages-" + digest(texts...)
	var b strings.Builder
	fmt.Fprintf(&b, "<%s>\n", fence)
	for n, f := range found {
		number := slices.Index(a.c.given, f.Index) + 1
		if number > 0 {
			fmt.Fprintf(&b, "[%d] is given above.\n\n", number)
			room -= 8
			continue
		}
		head := oneLine(f.Label())
		if f.URL != "" {
			head += " (" + oneLine(f.URL) + ")"
		}
		space := room - tokens(head) - 12
		if n == foundAtOnce || space < 48 {
			break
		}
		a.c.given = append(a.c.given, f.Index)
		text := shorten(strings.TrimSpace(quoted(f.Text)), space)
		fmt.Fprintf(&b, "[%d] %s\n%s\n\n", len(a.c.given), head, text)
		room -= tokens(head) + tokens(text) + 12
	}
	fmt.Fprintf(&b, "</%s>", fence)
	return b.String()
}

// noTools recognizes the errors of servers that take no tools, with this model or as they were started.
func noTools(err error) bool {
	var f *Failure
	if !errors.As(err, &f) || f.cause != nil {
		return false
	}
	text := strings.ToLower(f.Detail)
	return f.Status >= 400 && f.Status != 429 && strings.Contains(text, "tool") &&
		(strings.Contains(text, "support") || strings.Contains(text, "require") || strings.Contains(text, "enable"))
}
