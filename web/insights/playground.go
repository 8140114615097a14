package insights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/background"
	"docent/internal/brief"
	"docent/model"
	"docent/persistence/cluster"
	"docent/search"
	"docent/web/console"
)

// What is tried in the playground, and in which of two ways.
const (
	trySearch = "search" // as in a search box
	tryAnswer = "answer" // as the assistant answers a question

	longestTry   = 2000 // bytes of a question in the playground: it stands in the page's address
	longestField = 500
	tryGroups    = 20
)

// A try is what somebody tries in the playground: all of it stands in the page's address, so that it can be shared.
type try struct {
	Text, As              string
	Version, Language     string
	Groups, Page          string // groups with commas between them; the page that the reader is on
	Expect                string // the page that should be found
	Both                  bool   // two configurations side by side
	Setups                [2]trySetup
	problems              []api.Problem
	weights               []search.TrialWeight
	choices               []model.Choice
	standard, builtinName string // the project's model, and the one that always is there
}

// A trySetup is one of the configurations that are compared.
type trySetup struct {
	Letter  string // "a" or "b"
	Model   string // empty for the project's
	Weights map[string]float64
	Thread  api.ThreadID // with the answer; empty if nobody was asked
}

// readTry reads what is tried, from an address or from a form.
func (s *handler) readTry(v *console.Visit, from url.Values) *try {
	get := func(name string, most int) string {
		text := strings.TrimSpace(strings.ToValidUTF8(from.Get(name), ""))
		text = brief.Bytes(text, most, "")
		return text
	}
	t := &try{Text: get("q", longestTry), As: get("as", 10), Version: get("version", longestField),
		Language: get("language", longestField), Groups: get("groups", longestField), Page: get("page", longestField),
		Expect: get("expect", longestField), Both: get("both", 5) != "",
		weights: s.Finder.TrialWeights(), choices: s.Models.Choices(), standard: s.Models.Name(v.Project.Model),
		builtinName: model.Builtin}
	if t.As != tryAnswer {
		t.As = trySearch
	}
	if len(from.Get("q")) > longestTry {
		t.problems = append(t.problems, api.Problem{Field: "q",
			Message: fmt.Sprintf("must have at most %d bytes; the rest was left out", longestTry)})
	}
	for i, letter := range []string{"a", "b"} {
		u := &t.Setups[i]
		u.Letter, u.Model = letter, get(letter+".model", longestField)
		if u.Model == t.standard {
			u.Model = ""
		}
		if u.Model != "" && !slices.ContainsFunc(t.choices, func(c model.Choice) bool { return c.Name == u.Model }) {
			t.problems = append(t.problems, api.Problem{Field: letter + ".model", Message: "is no model of this server"})
			u.Model = ""
		}
		if id := get(letter+".thread", 100); api.ValidID(api.ThreadPrefix, id) {
			u.Thread = api.ThreadID(id)
		}
		for _, w := range t.weights {
			t.readWeight(u, w, get(letter+"."+w.Name, 30))
		}
	}
	return t
}

// readWeight reads a weight that is not the default.
func (t *try) readWeight(u *trySetup, w search.TrialWeight, text string) {
	if text == "" {
		return
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", "."), 64)
	if err != nil || math.IsNaN(value) || value < 0 || value > w.Most {
		t.problems = append(t.problems, api.Problem{Field: u.Letter + "." + w.Name,
			Message: fmt.Sprintf("must be a number from 0 to %g", w.Most)})
		return
	}
	if value == w.Default {
		return
	}
	if u.Weights == nil {
		u.Weights = map[string]float64{}
	}
	u.Weights[w.Name] = value
}

// groups are those of the reader that is tried.
func (t *try) groups() []string {
	var out []string
	for g := range strings.SplitSeq(t.Groups, ",") {
		if g = strings.TrimSpace(g); g != "" && len(out) < tryGroups {
			out = append(out, g)
		}
	}
	return out
}

// setups are the configurations that are tried: one, or both.
func (t *try) setups() []*trySetup {
	if t.Both {
		return []*trySetup{&t.Setups[0], &t.Setups[1]}
	}
	return []*trySetup{&t.Setups[0]}
}

// tuned reports whether something of the configurations is not as usual.
func (t *try) tuned() bool {
	return t.Both || slices.ContainsFunc(t.Setups[:], func(u trySetup) bool { return u.Model != "" || len(u.Weights) > 0 })
}

// address is where the try is shown. Defaults are left out.
func (t *try) address(base string) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("q", t.Text)
	if t.As == tryAnswer {
		q.Set("as", tryAnswer)
	}
	set("version", t.Version)
	set("language", t.Language)
	set("groups", t.Groups)
	set("page", t.Page)
	set("expect", t.Expect)
	if t.Both {
		q.Set("both", "1")
	}
	for _, u := range t.setups() {
		set(u.Letter+".model", u.Model)
		set(u.Letter+".thread", string(u.Thread))
		for name, value := range u.Weights {
			q.Set(u.Letter+"."+name, strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	if len(q) == 0 {
		return base + "/playground"
	}
	return base + "/playground?" + q.Encode()
}

// query is the search of a reader who types in a box.
func (t *try) query(u *trySetup) search.Query {
	q := t.asked(u)
	q.Text, q.Limit, q.Box = t.Text, 10, true
	return q
}

// asked is what a question to the assistant comes with.
func (t *try) asked(u *trySetup) search.Query {
	return search.Query{Limit: 5, CurrentPath: t.Page, Weights: u.Weights,
		Filter: search.Filter{Version: t.Version, Language: t.Language, Groups: t.groups()}}
}

// expected are the pages that should be found.
func (t *try) expected() []string {
	if t.Expect == "" {
		return nil
	}
	return []string{t.Expect}
}

// playground lets somebody search and ask as any reader does, and shows why the answer is what it is.
func (s *handler) playground(v *console.Visit) error {
	return s.playgroundPage(v, s.readTry(v, v.Req.URL.Query()))
}

func (s *handler) playgroundPage(v *console.Visit, t *try) error {
	view := &playgroundView{Try: t, Empty: t.Text == "", Problems: t.problems, Setups: s.trySetupViews(t),
		Share: t.address(v.Base()), MayChoose: v.May(console.Editor), Tuned: t.tuned()}
	if !view.Empty {
		for _, u := range t.setups() {
			c, err := s.tryColumn(v, t, u)
			if err != nil {
				return err
			}
			for i := range c.Hits {
				c.Hits[i].Column = c.Letter
			}
			view.Columns = append(view.Columns, c)
			view.MayFollow = c.Answer != nil && c.Answer.Mine && (view.MayFollow || len(view.Columns) == 1)
		}
		view.compare()
	}
	status := http.StatusOK
	if len(t.problems) > 0 {
		status = http.StatusBadRequest
	}
	return s.RenderStatus(v, status, "playground", "Playground", view)
}

// tryIt takes the form: it leads to the address that shows the try, after asking if that is wanted.
//
// Everyone who may see the project may ask: a question changes nothing, costs what a reader's costs, and counts against
// the same quotas. But a model that is not the project's may be dearer, so that is for editors.
func (s *handler) tryIt(v *console.Visit) error {
	t := s.readTry(v, v.Form)
	if len(t.problems) > 0 {
		return s.playgroundPage(v, t)
	}
	do := v.Form.Get("do")
	for i := range t.Setups {
		if do != "follow" {
			t.Setups[i].Thread = ""
		}
	}
	switch do {
	case "ask", "follow":
		t.As = tryAnswer
		err := s.ask(v, t)
		if errors.Is(err, errAskedOne) {
			return v.Resend(v.Base() + "/playground/try?" + askedField + "=" + url.QueryEscape(string(t.Setups[0].Thread)))
		}
		if err != nil {
			return err
		}
	case "preview":
		t.As = tryAnswer
	default:
		t.As = trySearch
	}
	return v.SeeOther(t.address(v.Base()))
}

// ask puts the question, once for each configuration.
func (s *handler) ask(v *console.Visit, t *try) error {
	if t.Text == "" {
		return console.Invalid("q", "is empty: write a question")
	}
	for _, u := range t.setups() {
		if u.Model != "" && u.Model != t.builtinName && !v.May(console.Editor) {
			return &api.StateError{Kind: api.ErrForbidden,
				Reason: "only editors may ask other models than the project's own and the built-in one"}
		}
	}
	p := v.Project
	p.Options.RequireThreadKey = false // that is for readers: who is signed in has no key of the thread
	var open []*trySetup
	for i, u := range t.setups() {
		if id := v.Query(askedField); i == 0 && t.Both && api.ValidID(api.ThreadPrefix, id) {
			u.Thread = api.ThreadID(id) // as an earlier step of this request says
			continue
		}
		open = append(open, u)
	}
	for _, u := range open { // before anything is asked: a reader's thread is not gone on with
		if u.Thread != "" {
			if _, _, err := s.tried(v.Context(), v, u.Thread, ""); err != nil {
				return err
			}
		}
	}
	for i, u := range open {
		ctx := v.Context()
		if i > 0 {
			ctx, _ = cluster.WithSlot(ctx) // what was asked is not forwarded with the request and asked again
		}
		turn, err := s.Readers.Put(ctx, v.Client, u.Thread, thread.Ask{
			Project: p, Caller: v.Caller(), Channel: api.ChannelPlayground, Text: t.Text,
			Query: t.asked(u), Model: u.Model, Explain: true,
		})
		if i > 0 && errors.As(err, new(*cluster.ElsewhereError)) {
			return errAskedOne
		}
		if err != nil {
			return err
		}
		u.Thread = turn.Thread
		v.About("", turn.Thread)
	}
	return nil
}

// askedField names, in the address of a form, the thread in which the first of two configurations was asked already.
const askedField = "asked"

// errAskedOne means that the second of two configurations is to be asked by itself: another node runs its thread.
var errAskedOne = errors.New("one of two configurations was asked")

// tried finds an answer that was asked for in the playground: the newest to a question, otherwise the newest of all.
func (s *handler) tried(ctx context.Context, v *console.Visit, id api.ThreadID, question string) (thread.Conversation,
	thread.Exchange, error) {
	c, err := s.Tries.Read(ctx, id, thread.Read{Project: v.Project.ID})
	if err == nil && (len(c.Turns) == 0 || c.Turns[0].Channel != api.ChannelPlayground) {
		err = api.ErrNotFound
	}
	if err != nil {
		return c, thread.Exchange{}, api.Named(err, "answer")
	}
	for _, e := range slices.Backward(c.Turns) {
		if question != "" && e.Question == question {
			return c, e, nil
		}
	}
	return c, c.Turns[len(c.Turns)-1], nil
}

// tryAnswer sends an answer as it is being written.
func (s *handler) tryAnswer(v *console.Visit) error {
	id := api.ThreadID(v.Param("thread"))
	c, e, err := s.tried(v.Context(), v, id, "")
	if err != nil {
		return err
	}
	view := func(ctx context.Context) (any, error) { return s.tryAnswerView(ctx, v, id, "") }
	if !liveWanted(v) {
		a, err := view(v.Context())
		if err != nil {
			return err
		}
		return s.Part(v, "playground.answer", a)
	}
	changed := make(chan struct{}, 1)
	if e.Done {
		changed <- struct{}{}
		close(changed)
		return s.Live(v, "playground.answer", changed, view)
	}
	log, err := s.tryLog(v.Context(), v.Project, c)
	if err != nil {
		return err
	}
	background.Go("web.tryAnswer", func() {
		defer close(changed)
		r := log.Reader(0)
		defer r.Close()
		for more := true; more; {
			_, more, _ = r.Next(v.Context())
			select {
			case changed <- struct{}{}:
			default: // it is already reported
			}
		}
	})
	return s.Live(v, "playground.answer", changed, view)
}

// liveWanted reports whether the browser asks for server-sent events.
func liveWanted(v *console.Visit) bool {
	return strings.Contains(v.Req.Header.Get("Accept"), "text/event-stream")
}

// tryLog is the stream of a conversation's newest answer. Somebody else may have asked for it.
func (s *handler) tryLog(ctx context.Context, p api.Project, c thread.Conversation) (*stream.Log, error) {
	p.Options.RequireThreadKey = false // that is for readers
	turn, err := s.Tries.Resume(ctx, c.Thread, thread.Resume{Project: p, Caller: c.Caller})
	return turn.Log, err
}

// stopTry ends an answer that is being written.
func (s *handler) stopTry(v *console.Visit) error {
	id := api.ThreadID(v.Param("thread"))
	_, e, err := s.tried(v.Context(), v, id, "")
	if err != nil {
		return err
	}
	if err := s.Tries.Stop(v.Context(), id, thread.Stop{Project: v.Project.ID, Turn: e.Turn}); err != nil {
		return err
	}
	if v.Partial() {
		a, err := s.tryAnswerView(v.Context(), v, id, "")
		if err != nil {
			return err
		}
		return s.Part(v, "playground.answer", a)
	}
	back := v.Base() + "/playground"
	if at, err := url.Parse(v.Req.Referer()); err == nil && at.Path == back {
		back += "?" + at.RawQuery
	}
	return v.SeeOther(back)
}

// tryColumn is what one configuration gives.
func (s *handler) tryColumn(v *console.Visit, t *try, u *trySetup) (*tryColumn, error) {
	c := &tryColumn{Letter: strings.ToUpper(u.Letter), Setup: u, Model: cmp.Or(u.Model, t.standard), As: t.As}
	var err error
	if t.As == trySearch {
		err = s.searchColumn(v, t, u, c)
	} else {
		err = s.answerColumn(v, t, u, c)
	}
	var bad *api.InvalidError
	switch {
	case errors.Is(err, search.ErrNotIndexed):
		c.Problem = "The documentation is not indexed yet, or its index is being rebuilt. See the progress on the Sources page."
	case errors.As(err, &bad):
		c.Problem = err.Error()
	case err != nil:
		return nil, err
	}
	return c, nil
}

// searchColumn searches as a reader does, to see how long that takes, and then says why.
func (s *handler) searchColumn(v *console.Visit, t *try, u *trySetup, c *tryColumn) error {
	q := t.query(u)
	began := time.Now()
	if _, err := s.Finder.Search(v.Context(), v.Project.ID, q); err != nil {
		return err
	}
	c.Took = time.Since(began)
	e, err := s.Finder.Explain(v.Context(), v.Project.ID, q, t.expected()...)
	if err != nil {
		return err
	}
	c.Searches = []trySearchView{newTrySearchView(q.Text, &e)}
	for i := range e.Hits {
		c.Hits = append(c.Hits, newTryHitView(i+1, &e.Hits[i].Hit, &e.Hits[i], &e.Understood))
	}
	c.Expected = tryExpectedViews(&e)
	return nil
}

// answerColumn shows the prompt and what was found for it, and the answer if it was asked for one.
func (s *handler) answerColumn(v *console.Visit, t *try, u *trySetup, c *tryColumn) error {
	var history []model.Message
	if u.Thread != "" {
		a, err := s.tryAnswerView(v.Context(), v, u.Thread, t.Text)
		switch {
		case err == nil:
			c.Answer, history = a, a.history
		case errors.Is(err, api.ErrNotFound): // removed since
			c.Gone = true
		default:
			return err
		}
	}
	var rewritten []string
	if c.Answer != nil {
		rewritten = c.Answer.exchange.Trace.Queries()
	}
	told := &explainingSearcher{Finder: s.Finder, expected: t.expected()}
	b, err := thread.Preview(v.Context(), told, v.Project, t.Text, thread.Wanted{Query: t.asked(u), Model: u.Model},
		history, rewritten...)
	if err != nil {
		return err
	}
	c.Took = told.took
	for i := range told.found {
		c.Searches = append(c.Searches, newTrySearchView(told.texts[i], &told.found[i]))
		if i == 0 {
			c.Expected = tryExpectedViews(&told.found[i])
		}
	}
	prompt, err := s.Models.Prompt(b.Model, b.Request)
	if err != nil {
		return err
	}
	c.Prompt = newTryPromptView(&prompt, &b.Request)
	for i := range b.Hits {
		x, of := told.why(&b.Hits[i])
		h := newTryHitView(i+1, &b.Hits[i], x, of)
		h.Given = c.Prompt.uses(i)
		c.Hits = append(c.Hits, h)
	}
	if a := c.Answer; a != nil && !like(a.exchange.Trace, b.Hits) {
		c.Then, err = s.threadWhy(v.Context(), v, &a.exchange)
	}
	return err
}

// An explainingSearcher searches for a thread and keeps why it found what.
type explainingSearcher struct {
	Finder
	expected []string
	texts    []string
	found    []search.Explanation
	took     time.Duration
}

// Search is the library's, explained.
func (x *explainingSearcher) Search(ctx context.Context, project api.ProjectID, q search.Query) ([]search.Hit, error) {
	began := time.Now()
	hits, err := x.Finder.Search(ctx, project, q)
	if x.took += time.Since(began); err != nil {
		return nil, err
	}
	e, err := x.Finder.Explain(ctx, project, q, x.expected...)
	if err != nil {
		return nil, err
	}
	x.texts, x.found = append(x.texts, q.Text), append(x.found, e)
	return hits, nil
}

// why finds the explanation of a passage, with what was understood of its query.
func (x *explainingSearcher) why(h *search.Hit) (*search.Explained, *search.Understood) {
	for i := range x.found {
		for k := range x.found[i].Hits {
			if e := &x.found[i].Hits[k]; e.Hit.Path == h.Path && e.Hit.Anchor == h.Anchor {
				return e, &x.found[i].Understood
			}
		}
	}
	return nil, nil
}

// tryAnswerView is an answer of the playground as it stands.
func (s *handler) tryAnswerView(ctx context.Context, v *console.Visit, id api.ThreadID, question string) (*tryAnswerView,
	error) {
	c, e, err := s.tried(ctx, v, id, question)
	if err != nil {
		return nil, err
	}
	a := &tryAnswerView{Thread: id, Base: v.Base(), Asked: e.Asked, Done: e.Done, Model: e.Model, Error: e.Error,
		Answered: e.Answered, Sources: e.Sources, Instead: e.FallbackFor, Degraded: e.Degraded,
		Steps: explanationText(&e), history: c.Before(e.Turn),
		Mine: c.Caller == v.Caller()}
	for _, before := range c.Turns {
		if before.Turn == e.Turn {
			break
		}
		a.Before = append(a.Before, before.Question)
	}
	if !e.Done {
		ctx, _ := cluster.WithSlot(ctx) // the page may have an answer of another node beside it
		log, err := s.tryLog(ctx, v.Project, c)
		switch {
		case err == nil:
			a.Text = log.Text(0)
		case !errors.As(err, new(*cluster.ElsewhereError)): // else its live stream shows it, from there
			return nil, err
		}
		return a, nil
	}
	a.Timings = answerTimings(&e)
	a.exchange = e
	a.InDoubt = e.Error == "" && !e.Answered && len(e.Sources) > 0
	a.HTML = s.Markdown(ctx, v.Project.ID, cmp.Or(e.Answer, e.Text))
	return a, nil
}

// like reports whether an answer was made from the passages that are found now, as far as that is known.
func like(t *thread.Trace, hits []search.Hit) bool {
	list, _ := t.Retrieved()
	for i, r := range list {
		if i < len(hits) && (hits[i].Path != r.Path || hits[i].Anchor != r.Anchor || math.Abs(hits[i].Score-r.Score) > 0.002) {
			return false
		}
	}
	return true
}
