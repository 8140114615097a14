package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/actors/persistent"
	"docent/api"
	"docent/api/stream"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/brief"
	"docent/internal/tracing"
	"docent/model"
	"docent/model/builtin"
	"docent/search"
)

// start begins a run, which writes to the turn's log; the actor hears only how it ended. Prepared is called when the
// run needs this machine's processors no more, and at its end in any case.
func (a *Actor) start(recovered bool, prepared func()) {
	exchange := a.State.open[0]
	log := a.logs[exchange.Turn]
	if log == nil {
		log = a.openLog(exchange.Turn)
	}
	e := &effect{deps: a.deps, log: log, exchange: exchange, state: a.State, prepared: prepared,
		slot: persistent.Slot{Slots: a.deps.Slots, Project: a.State.project}}
	a.Start(a.deps.turnSpan(&exchange), recovered, e.perform)
}

// An effect is a run's view of the thread. It holds a copy of the state, and reads only.
type effect struct {
	deps     *Deps
	run      *persistent.Run
	log      *stream.Log // the only one that this run writes to
	exchange Exchange
	state    state
	slot     persistent.Slot
	prepared func() // closes Turn.Prepared; once or more
	waited   Micros // see Trace
	searched Micros

	explain *explaining   // nil if nobody asks
	begun   *model.Result // what was used before the model was asked; nil for nothing
	notes   notes
	reread  string // see Trace.Rewritten
	before  string // see Trace.Before
}

func (e *effect) perform(stopped context.Context, r *persistent.Run) {
	defer e.prepared()
	if open := e.deps.Open; open != nil {
		open(e.state.id, 1)
		defer open(e.state.id, -1)
	}
	e.run = r
	if r.Rest(stopped, e.state.interrupted-e.state.left) != nil {
		return
	}
	if e.slot.Take(stopped) != nil {
		return // stopped, not failed: recovery answers it again
	}
	defer e.slot.Give()
	e.waited = e.since()
	if r.Counted(stopped) != nil {
		return
	}
	var done *turnDone
	for times, again := 0, true; again; times++ {
		ctx, cancel := context.WithTimeout(stopped, e.deps.TurnLimit)
		done = e.answer(ctx)
		cancel()
		again = done.unindexed && times < maxUnindexed && e.indexed(stopped, &done.err)
	}
	if stopped.Err() == nil { // stopped is not failed
		e.report(stopped, done)
	}
}

// since is the time since the question was put.
func (e *effect) since() Micros { return micros(e.exchange.Asked, e.deps.Now()) }

// maxUnindexed is how often a turn waits for an index: one that cannot be used whenever it was made is on a bad disk.
const maxUnindexed = 3

// indexed waits until the project has an index, without a slot, and says whether it has: an index that is being rebuilt,
// after an upgrade or because it was damaged, is no reason to fail a question. It gives up if the index could not
// be made for as long as patience lasts; that it takes long to make is none.
//
//go:noinline
func (e *effect) indexed(ctx context.Context, err *error) bool {
	const pause = 5 * time.Second
	e.deps.Log.InfoContext(ctx, "a turn is waiting for its project's index", "project", e.state.project, "thread", e.state.id, "turn",
		e.exchange.Turn, "error", *err)
	e.slot.Give()
	e.prepared() // others can be let in meanwhile
	for failing := time.Duration(0); ; failing += pause {
		failed := e.deps.Searcher.Indexed(ctx, e.state.project)
		if failed == nil {
			break
		}
		if failing >= patience || backoff.Sleep(ctx, pause) != nil {
			*err = errors.Join(*err, failed)
			return false
		}
	}
	if stopped := e.slot.Take(ctx); stopped != nil {
		*err = errors.Join(*err, stopped)
		return false
	}
	return true
}

// report tells the actor how the turn ended. It has a frame of its own, as has all that stands around the call of the
// model: a goroutine waits in that for minutes, and tens of thousands of stacks hold what the frames below it take.
//
//go:noinline
func (e *effect) report(ctx context.Context, done *turnDone) {
	if done.err != nil {
		e.deps.Log.ErrorContext(ctx, "a turn failed", "project", e.state.project, "thread", e.state.id, "turn", e.exchange.Turn, "error",
			done.err)
	}
	e.run.Tell(*done)
}

// errLong stops a model that has written more than an answer may hold.
var errLong = errors.New("the answer is longer than allowed")

// A briefing is the prompt, and what is kept of it while the model answers.
type briefing struct {
	model      string // that its project wants
	options    api.Options
	candidates []candidate
	request    model.Request
}

// A candidate is a section that the answer may cite: what is kept of a hit while the model answers.
type candidate struct {
	path, anchor, url, title, heading string
	source                            string // label
	score                             float64
}

func newCandidate(h *search.Hit) candidate {
	return candidate{path: h.Path, anchor: h.Anchor, url: h.URL, title: h.Title, heading: h.Heading, source: h.Source,
		score: h.Score}
}

// longestBefore is how many bytes are kept of what a question leans on.
const longestBefore = 400

// brief looks up and finds what goes into the prompt.
func (e *effect) brief(ctx context.Context) (*briefing, error) {
	project, err := e.deps.Projects.Project(ctx, e.state.project)
	if err != nil {
		return nil, fmt.Errorf("look up project %s: %w", e.state.project, err)
	}
	wanted := e.exchange.Wanted
	if wanted == nil {
		wanted = &Wanted{}
	}
	if wanted.Explain {
		e.explain = newExplaining(e.exchange.Question)
	}
	told, err := e.retrieve(ctx, &project, wanted)
	if err != nil {
		return nil, err
	}
	e.before = brief.Line(brief.Bytes(builtin.Before(e.exchange.Question, e.state.history(), wanted.Context), longestBefore, ""))
	if project.Options.SearchTool {
		if err := e.log.Append(searchPart(e.exchange.Turn, told.Queries[0], told.Hits)); err != nil {
			return nil, err
		}
	}
	b := &briefing{model: told.Model, options: project.Options, candidates: make([]candidate, 0, len(told.Hits)),
		request: told.Request}
	b.request.Key = string(e.exchange.Turn)
	if e.explain != nil {
		b.request.Watch = e.explain.step
	}
	for i := range told.Hits {
		b.candidates = append(b.candidates, newCandidate(&told.Hits[i]))
	}
	return b, nil
}

// aside does work in a goroutine of its own and waits for it. Its stack grows with what it does, and goes with it; that
// of the caller, who waits for a model for minutes, among tens of thousands of others, stays small.
func aside(work func()) {
	done := make(chan error)
	background.Go("actors/thread.aside", func() {
		done <- background.Guard(func() error {
			work()
			return nil
		})
	})
	if err := <-done; err != nil {
		panic(err)
	}
}

// answer searches, asks the model and passes on what it writes, piece by piece.
func (e *effect) answer(ctx context.Context) *turnDone {
	done := &turnDone{attempt: e.run.Attempt}
	var b *briefing
	aside(func() { b, done.err = e.brief(ctx) })
	e.searched = max(0, e.since()-e.waited)
	if done.err != nil {
		done.trace = &Trace{Waited: e.waited, Searched: e.searched}
		done.unindexed = errors.Is(done.err, search.ErrNotIndexed)
		return done
	}
	if !e.deps.Model.Local(b.model) {
		e.prepared()
	}
	w := &writer{effect: e, log: e.log, from: e.log.Len(), candidates: b.candidates, limit: e.deps.AnswerLimit,
		cited: make(map[string]bool), request: &b.request}
	b.request.Search = e.further(w, b.options.SearchTool)
	if e.deps.Pages != nil {
		b.request.ReadPage = e.readPage(w)
	}
	if b.options.Suggestions || e.explain != nil {
		w.used = make(map[int]bool)
	}
	if e.begun != nil {
		done.result = *e.begun
	}
	within, span := tracing.Start(ctx, "answer")
	err := e.patiently(within, b, w, &done.result)
	checked(span, &done.result, err)
	if err == nil {
		err = ctx.Err() // a model that stops early when told to has not answered
	}
	var suggest func() string
	if b.options.Suggestions {
		suggest = func() string { return e.suggestions(ctx, w) }
	}
	w.end(done, suggest, err)
	return done
}

// end notes how the answer has ended, after it was written as far as it is.
//
//go:noinline
func (w *writer) end(done *turnDone, suggest func() string, err error) {
	if w.long {
		done.result.Reason, done.result.Answered, err = "length", true, nil
	}
	if err == nil && w.size == 0 {
		err = errors.New("the model wrote nothing")
	}
	if err == nil && done.result.Answered && len(w.sources) == 0 {
		// A model that does not say what it used was given these pages.
		w.cite(0, 1, 2)
	}
	if err == nil && done.result.Answered && suggest != nil {
		aside(func() {
			if block := suggest(); block != "" {
				_ = w.text(block) // an answer that has no room for it goes without
			}
		})
	}
	done.result.Degraded = w.effect.notes.before(done.result.Degraded)
	done.text, done.sources = w.log.Text(w.from), slices.Clip(w.sources)
	done.trace = &Trace{Waited: w.effect.waited, Searched: w.effect.searched, First: w.first}
	done.trace.Passages, done.trace.Found = traced(w.candidates)
	done.trace.Rewritten, done.trace.Before = w.effect.reread, w.effect.before
	if x := w.effect.explain; x != nil {
		done.trace.Explained = x.end(w, &done.result, done.trace)
		_ = w.log.Append(explainedPart(done.trace.Explained)) // of a log that is closed nobody reads
	}
	if err != nil {
		done.err = fmt.Errorf("answer: %w", err)
	}
}

// patience is how long a turn waits, altogether, for a model that wants to be left alone: about as long as a person
// does who sees that it is still at work.
const patience = 30 * time.Second

// maxResting is how many turns wait so at a time. When an endpoint is down under a heavy load, those beyond fail at
// once: each that waits is memory.
const maxResting = 5000

// patiently asks the model or, if it fails before it has written anything, the one that answers in its place.
// If none does it is asked again if it cannot be asked now: others may have met its faults, and this question
// none. That goes on for as long as patience lasts. A turn that waits holds no slot.
func (e *effect) patiently(ctx context.Context, b *briefing, w *writer, result *model.Result) error {
	for waited := time.Duration(0); ; {
		b.request.Budget = e.deps.Budget.Less(result.PromptTokens+result.CompletionTokens, result.Cost)
		tried, err := e.deps.Model.Answer(ctx, b.model, b.request, w.write)
		addUse(&tried, result)
		*result = tried
		if err == nil || w.begun() || ctx.Err() != nil {
			return err
		}
		if e.deps.Model.FallsBack(b.model, err) {
			return e.fallBack(ctx, b, w, result, err)
		}
		if !e.again(ctx, &err, &waited) {
			return err
		}
	}
}

// fallBack lets another model answer in place of the one that failed.
//
//go:noinline
func (e *effect) fallBack(ctx context.Context, b *briefing, w *writer, result *model.Result, cause error) error {
	e.deps.Log.WarnContext(ctx, "the built-in model answered because another model failed", "project", e.state.project, "thread",
		e.state.id, "turn", e.exchange.Turn, "error", cause)
	var instead model.Result
	var err error
	aside(func() { instead, err = e.deps.Model.Fallback(ctx, b.model, b.request, w.write) })
	addUse(&instead, result)
	*result = instead
	result.Degrade("model", unable(cause))
	return err
}

// unable says why a part did not take part, in words that readers may see.
func unable(cause error) string {
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(cause, model.ErrTooLong):
		return "no room"
	case errors.Is(cause, model.ErrBudget):
		return "over budget"
	}
	return "unavailable"
}

// addUse adds what earlier tries have used: it is paid for.
func addUse(result, earlier *model.Result) {
	result.PromptTokens += earlier.PromptTokens
	result.CompletionTokens += earlier.CompletionTokens
	result.CachedTokens += earlier.CachedTokens
	result.Cost += earlier.Cost
	result.Degraded = append(slices.Clip(earlier.Degraded), result.Degraded...)
}

// again waits for a model that may be asked later, and says whether it is asked again. A stop meanwhile is
// joined to err.
//
//go:noinline
func (e *effect) again(ctx context.Context, err *error, waited *time.Duration) bool {
	const shortest = 250 * time.Millisecond
	var later *model.Unavailable
	if !errors.As(*err, &later) {
		return false
	}
	pause := max(later.After, shortest)
	if *waited += pause; *waited > patience {
		return false
	}
	if e.deps.resting.Add(1) > maxResting {
		e.deps.resting.Add(-1)
		return false
	}
	e.deps.Log.DebugContext(ctx, "a turn waits for its model", "project", e.state.project, "thread", e.state.id, "turn",
		e.exchange.Turn, "pause", pause, "error", *err)
	e.slot.Give()
	stopped := backoff.Sleep(ctx, pause)
	e.deps.resting.Add(-1)
	if stopped == nil {
		stopped = e.slot.Take(ctx)
	}
	if stopped != nil {
		*err = errors.Join(*err, stopped)
		return false
	}
	return true
}

// sectionsOfPage is how many sections of one page an answer may be made from: the one that is found first often names
// what another one explains.
const sectionsOfPage = 4

// sectionsOfReference is how many are looked at if the question asks for a default: a section of a reference that
// states it is often long and names much else, so that it is found after others of its page.
const sectionsOfReference = 24

// stating leaves of each page the sections that were found first, and of the others those that state the default
// asked for.
func stating(found []search.Hit, states func(*model.Passage) bool) []search.Hit {
	of := map[string]int{}
	return slices.DeleteFunc(found, func(h search.Hit) bool {
		of[h.Path]++
		return of[h.Path] > sectionsOfPage && !states(&passages([]search.Hit{h})[0])
	})
}

// search finds what each of the queries asks for, see finder.
func (e *effect) search(ctx context.Context, q search.Query, texts []string) ([]search.Hit, error) {
	return e.finder().search(ctx, q, texts)
}

func (e *effect) finder() finder {
	return finder{searcher: e.deps.Searcher, project: e.state.project, by: "question", degraded: e.notes.add,
		asked: questions(e.exchange.Question, e.state.history())}
}

// A finder searches for an answer.
type finder struct {
	searcher Finder
	project  api.ProjectID
	asked    []string // by the reader in this thread, see questions
	by       string   // who searches, in the explanation
	explain  *explaining
	degraded func(why string)
}

// search finds what each of the queries asks for. What a later one adds comes after what the first has found;
// altogether it is at most three times as many pages as one search gives.
func (f finder) search(ctx context.Context, q search.Query, texts []string) ([]search.Hit, error) {
	var hits []search.Hit
	pages, most := 0, min(len(texts), 3)*cmp.Or(q.Limit, 5)
	q.Asked, q.Degraded = f.asked, f.degraded
	for _, text := range texts {
		states, asked := builtin.StatesDefault(text)
		q.Text, q.Sections = text, sectionsOfPage
		if asked {
			q.Sections = sectionsOfReference
		}
		began := f.explain.now()
		found, err := f.searcher.Search(ctx, f.project, q)
		q.Opening = "" // which is what the first asks
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		f.explain.searched(f.by, text, found, began)
		if asked {
			found = stating(found, states)
		}
		if len(texts) == 1 { // a search finds each section once
			return found, nil
		}
		if hits == nil {
			hits = make([]search.Hit, 0, min(most, len(texts)*len(found)))
		}
		for i := range found {
			h, page, section := &found[i], false, false
			for k := range hits { // a few dozen
				if hits[k].Path == h.Path {
					page, section = true, section || hits[k].Anchor == h.Anchor
				}
			}
			if !page {
				if pages == most {
					continue
				}
				pages++
			}
			if !section {
				hits = append(hits, *h)
			}
		}
	}
	return hits, nil
}

// questions are what the reader has asked in this thread, the newest first. Its language is the one that every search
// for the answer looks in, in whatever words a model searches.
func questions(newest string, history []model.Message) []string {
	texts := []string{newest}
	for _, m := range slices.Backward(history) {
		if m.Role == "user" {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// further lets a model search by itself, as the reader may: with the filter of the question. What it finds can be
// cited.
func (e *effect) further(w *writer, show bool) func(context.Context, string) ([]model.Found, error) {
	times := 0
	return func(ctx context.Context, query string) ([]model.Found, error) {
		var q search.Query
		if e.exchange.Wanted != nil {
			q = e.exchange.Wanted.placed()
		}
		f := e.finder()
		f.by, f.explain = "model", e.explain
		hits, err := f.search(ctx, q, []string{query})
		if errors.Is(err, search.ErrNotIndexed) && e.deps.Searcher.Indexed(ctx, e.state.project) == nil {
			hits, err = f.search(ctx, q, []string{query})
		}
		if err != nil {
			return nil, err
		}
		times++
		if show {
			part := searchPart(e.exchange.Turn, query, hits)
			part.ID = fmt.Sprintf("%s-%d", part.ID, times)
			if err := e.log.Append(part); err != nil {
				return nil, err
			}
		}
		var found []model.Found
		for i, p := range passages(hits) {
			at := slices.IndexFunc(w.candidates, func(c candidate) bool { return c.path == p.Path && c.anchor == p.Anchor })
			if at < 0 {
				at = len(w.candidates)
				w.candidates = append(slices.Clip(w.candidates), newCandidate(&hits[i]))
			}
			found = append(found, model.Found{Passage: p, Index: at})
		}
		return found, nil
	}
}

// A writer passes an answer on: text as it comes, before it the pages that it cites, each once and only retrieved ones.
type writer struct {
	effect     *effect
	log        *stream.Log
	candidates []candidate
	request    *model.Request // until something is written: the prompt need not stay then
	limit      int
	from       int    // its first part in the log
	size       int    // bytes of text
	first      Micros // until its first text
	sources    []Source
	cited      map[string]bool // paths
	used       map[int]bool    // candidates; nil if nobody asks
	long       bool
}

// begun reports whether a reader has seen anything of the answer itself.
func (w *writer) begun() bool { return w.size > 0 || len(w.sources) > 0 || w.long }

// forget lets go of the prompt, once the model will not be asked again.
func (w *writer) forget() {
	if w.begun() {
		*w.request = model.Request{}
		w.request = nil
	}
}

func (w *writer) write(d model.Delta) error {
	if w.request != nil {
		defer w.forget()
	}
	if len(d.Cite) > 0 {
		if err := w.cite(d.Cite...); err != nil {
			return err
		}
	}
	if d.Text != "" {
		if err := w.text(d.Text); err != nil {
			return err
		}
	}
	return w.cards(d.Cards)
}

func (w *writer) text(s string) error {
	if w.long || w.size+len(s) > w.limit {
		w.long = true
		return errLong
	}
	if err := w.log.AppendText(s); err != nil {
		w.long = errors.Is(err, stream.ErrFull)
		return err
	}
	if w.size == 0 {
		w.first = max(1, w.effect.since())
	}
	w.size += len(s)
	return nil
}

func (w *writer) cite(indexes ...int) error {
	for _, i := range indexes {
		if i < 0 || i >= len(w.candidates) {
			continue
		}
		if w.used != nil {
			w.used[i] = true
		}
		if w.cited[w.candidates[i].path] {
			continue
		}
		c := w.candidates[i]
		if err := w.source(Source{URL: c.url, Title: c.title, Label: c.source}); err != nil {
			return err
		}
		w.cited[c.path] = true
	}
	return nil
}

// cards points to sections that the answer does not cite.
func (w *writer) cards(cards []model.Card) error {
	for _, card := range cards {
		if card.Passage < 0 || card.Passage >= len(w.candidates) || card.Text == "" {
			continue
		}
		c := w.candidates[card.Passage]
		if w.used != nil {
			w.used[card.Passage] = true
		}
		title := c.title
		if c.heading != "" && !strings.EqualFold(c.heading, c.title) {
			title = strings.TrimPrefix(title+" › "+c.heading, " › ")
		}
		if err := w.source(Source{URL: c.url, Title: title, Label: c.source, Excerpt: card.Text}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) source(s Source) error {
	s.ID = fmt.Sprintf("s%d", len(w.sources)+1)
	if err := w.log.Append(sourcePart(s)); err != nil {
		return err
	}
	w.sources = append(w.sources, s)
	return nil
}

func sourcePart(s Source) stream.Part {
	return stream.Part{Kind: stream.Source, ID: s.ID, URL: s.URL, Title: s.Title, Label: s.Label, Excerpt: s.Excerpt}
}

func searchPart(turn api.TurnID, query string, hits []search.Hit) stream.Part {
	p := stream.Part{Kind: stream.Search, ID: "search-" + string(turn), Query: query}
	seen := make(map[string]bool)
	for _, h := range hits {
		if seen[h.Path] {
			continue
		}
		seen[h.Path] = true
		p.Results = append(p.Results, stream.Result{Path: h.Path, URL: h.URL, Title: h.Title, Content: h.Content})
	}
	return p
}

func passages(hits []search.Hit) []model.Passage {
	out := make([]model.Passage, 0, len(hits))
	for _, h := range hits {
		out = append(out, model.Passage{Path: h.Path, Anchor: h.Anchor, URL: h.URL, Title: h.Title, Heading: h.Heading,
			Trail: h.Trail, Text: h.Content, Score: h.Score, Opens: h.Opens})
	}
	return out
}

func usage(r *model.Result) stream.Usage {
	return stream.Usage{Prompt: r.PromptTokens, Completion: r.CompletionTokens, Cached: r.CachedTokens, Cost: r.Cost}
}
