package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"docent/model"
)

const (
	defaultSearches = 3
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

// An answering is one answer of a language model: one exchange, or some where the model searches by itself.
type answering struct {
	*Model
	req   model.Request
	c     *citer
	chat  model.Chat
	left  int // tokens that results of searches may still have
	limit int // searches
	done  int
	asked []string // queries so far
}

func (r *Model) prepare(req model.Request, emit func(model.Delta) error) *answering {
	a := &answering{Model: r, req: req, limit: r.searches(req)}
	if a.limit == 0 {
		a.req.Search = nil
	}
	p := r.write(a.req, a.limit)
	a.chat, a.left = p.chat(req.Key), p.spare
	a.c = &citer{given: p.given, emit: emit}
	if a.limit > 0 {
		a.chat.Tools = []model.Tool{searchTool}
	}
	return a
}

// run asks until the model has answered. Result has the usage of all exchanges and the last one's reason.
func (a *answering) run(ctx context.Context, result *model.Result) error {
	spoke := false
	for round := 0; ; round++ {
		var raw strings.Builder
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
		result.PromptTokens += end.usage.PromptTokens
		result.CachedTokens += end.usage.CachedTokens
		result.CompletionTokens += end.usage.CompletionTokens
		result.Cost += end.usage.Cost
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
		result.Reason = end.reason
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
		if err := a.carryOut(ctx, raw.String(), end.calls); err != nil {
			return err
		}
	}
}

// carryOut runs the model's calls and puts the results into the conversation. A wrong call gets an error as its result.
func (a *answering) carryOut(ctx context.Context, said string, calls []model.Call) error {
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = a.chat.CallID(i)
		}
	}
	a.chat.Turns = append(slices.Clip(a.chat.Turns), model.Turn{Role: "assistant", Text: said, Calls: calls})
	a.left -= tokens(said)
	for _, call := range calls {
		a.left -= tokens(call.Name+call.Arguments) + 16
	}
	for i, call := range calls {
		t := model.Turn{Role: "tool", CallID: call.ID}
		var in struct {
			Query string `json:"query"`
		}
		err := json.Unmarshal([]byte(call.Arguments), &in)
		query := shortenRunes(oneLine(in.Query), longestQuery)
		switch {
		case call.Name != searchTool.Name:
			t.Failed, t.Text = true, "There is no such tool. There is "+searchTool.Name+"."
		case err != nil:
			t.Failed, t.Text = true, `The arguments are no JSON of the form {"query": "..."}.`
		case query == "":
			t.Failed, t.Text = true, "The query is empty."
		case a.done >= a.limit || i >= callsTogether || a.left < 2*tokens(noMore)+128:
			t.Failed, t.Text = true, noMore
		case slices.Contains(a.asked, strings.ToLower(query)):
			t.Text = "This was searched before: see above."
		default:
			a.done++
			a.asked = append(a.asked, strings.ToLower(query))
			found, err := a.req.Search(ctx, query)
			if err != nil {
				return fmt.Errorf("search for the model: %w", err)
			}
			t.Text = a.show(found)
		}
		a.left -= tokens(t.Text) + 8
		a.chat.Turns = append(a.chat.Turns, t)
	}
	return nil
}

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

// noTools recognises the errors of servers that take no tools, with this model or as they were started.
func noTools(err error) bool {
	var f *Failure
	if !errors.As(err, &f) || f.cause != nil {
		return false
	}
	text := strings.ToLower(f.Detail)
	return f.Status >= 400 && f.Status != 429 && strings.Contains(text, "tool") &&
		(strings.Contains(text, "support") || strings.Contains(text, "require") || strings.Contains(text, "enable"))
}

func shortenRunes(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
