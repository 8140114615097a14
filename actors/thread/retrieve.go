package thread

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/internal/tracing"
	"docent/model"
	"docent/model/rewrite"
	"docent/search"
)

// strongHit is the score from which on words alone have found what a first question asks: it is not rewritten then.
const strongHit = 0.8

// A reading is a question that is being rewritten, and what came of it.
type reading struct {
	by   string // the model that does; empty if none does
	q    rewrite.Question
	done chan struct{}
	read rewrite.Reading
	err  error
	took time.Duration
}

// newReading is the question of a turn, not rewritten yet; nil if no model rewrites it.
func (e *effect) newReading(wanted *Wanted, project *api.Project, history []model.Message) *reading {
	if e.deps.Rewriter == nil {
		return nil
	}
	r := &reading{by: e.deps.Rewriter.By(cmp.Or(wanted.Model, project.Model))}
	if r.by == "" {
		return nil
	}
	r.q = rewrite.Question{Text: e.exchange.Question, History: history, Context: wanted.Context,
		Project: cmp.Or(project.Name, string(project.ID)), Key: string(e.exchange.Turn)}
	return r
}

// begin starts rewriting the question, while the documentation is searched for it as it is.
func (r *reading) begin(ctx context.Context, rewriter Rewriter, name string) {
	if r.done != nil {
		return
	}
	r.done = make(chan struct{})
	background.Go("actors/thread.begin", func() {
		defer close(r.done)
		began := time.Now()
		ctx, span := tracing.Start(ctx, "rewrite the question")
		r.err = background.Guard(func() (err error) {
			r.read, err = rewriter.Rewrite(ctx, name, r.q)
			return err
		})
		span.Bool("docent.remembered", r.read.Cached)
		span.Int("docent.queries", int64(len(r.read.Queries)))
		span.Done(r.err)
		r.took = time.Since(began)
	})
}

// retrieve finds what the model is told: with the question as it is and, if a model rewrites it, with what that
// makes of it too. A question that cannot be rewritten goes on as it stands.
func (e *effect) retrieve(ctx context.Context, project *api.Project, wanted *Wanted) (Brief, error) {
	history := e.state.history()
	r := e.newReading(wanted, project, history)
	name := cmp.Or(wanted.Model, project.Model)
	f := e.finder()
	f.explain = e.explain
	if r != nil && e.tooDear(r) {
		e.notes.add("rewrite: over budget")
		e.explain.rewritten("failed", "it would take too much of what one answer may", &rewrite.Reading{Model: r.by}, 0)
		r = nil
	}
	leans := r != nil && (len(history) > 0 || len(wanted.Context) > 0)
	if leans { // it can hardly be understood without
		r.begin(ctx, e.deps.Rewriter, name)
	}
	b, err := briefOf(ctx, f, project, wanted, e.exchange.Question, history)
	if err != nil || r == nil {
		return b, err
	}
	if !leans && len(b.Hits) > 0 && b.Hits[0].Score >= strongHit {
		e.explain.rewritten("skipped", "a first question that finds a section by its words", &rewrite.Reading{Model: r.by}, 0)
		return b, nil
	}
	r.begin(ctx, e.deps.Rewriter, name)
	<-r.done // which has a time limit of its own
	if ctx.Err() != nil {
		return b, ctx.Err()
	}
	if r.read.Usage != (model.Usage{}) {
		e.begun = new(model.Result)
		e.begun.Count(r.read.Usage)
	}
	if r.err != nil {
		why := unread(r.err)
		if e.deps.unread.Failed(r.by) {
			e.deps.Log.WarnContext(ctx, "questions cannot be rewritten; searching for them as asked", "model", r.by,
				"project", e.state.project, "thread", e.state.id, "turn", e.exchange.Turn, "error", r.err)
		}
		e.notes.add("rewrite: " + why)
		e.explain.rewritten("failed", why, &r.read, r.took)
		return b, nil
	}
	outcome := "used"
	if r.read.Cached {
		outcome = "cached"
	} else if n, lasted := e.deps.unread.Worked(r.by); n > 0 {
		e.deps.Log.InfoContext(ctx, "rewriting questions works again", "model", r.by, "count", n, "seconds", lasted.Seconds())
	}
	e.explain.rewritten(outcome, "", &r.read, r.took)
	f.by = "rewrite"
	e.reread = strings.Join(append([]string{r.read.Question}, r.read.Queries...), "\n")
	f.again(ctx, wanted, &b, r.read.Queries, len(history) > 0)
	return b, nil
}

// notes are what did not take part in an answer as it should have, each with the reason, once. Searches that go on side
// by side add to them.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.list, why) {
		n.list = append(n.list, why)
	}
}

// before are the notes with others after them.
func (n *notes) before(later []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == 0 {
		return later
	}
	return slices.Concat(n.list, later)
}

// tooDear reports whether rewriting would take too much of what the answer may use.
func (e *effect) tooDear(r *reading) bool {
	most := e.deps.Budget.Tokens
	return most > 0 && r.q.Tokens() > most/4
}

// unread says why a question was not rewritten, in words that readers may see.
func unread(err error) string {
	switch {
	case errors.Is(err, rewrite.ErrReply):
		return "not understood"
	case errors.Is(err, rewrite.ErrResting):
		return "unavailable"
	}
	return unable(err)
}

// again searches with the queries of a rewritten question, side by side, and fuses what they find with what the
// question has found as it stands. A search that fails is left out: there is something already.
func (f finder) again(ctx context.Context, wanted *Wanted, b *Brief, queries []string, followUp bool) {
	queries = slices.DeleteFunc(slices.Clone(queries), func(q string) bool {
		return slices.ContainsFunc(b.Queries, func(asked string) bool { return strings.EqualFold(q, asked) })
	})
	lists, weights := [][]search.Hit{b.Hits}, []float64{1}
	if followUp {
		weights[0] = 0.5 // what it leaves out is only guessed at
	}
	for _, hits := range f.together(ctx, wanted.placed(), queries) {
		if hits != nil {
			lists, weights = append(lists, hits), append(weights, 1)
		}
	}
	b.Queries = append(slices.Clip(b.Queries), queries...)
	b.Hits = fuse(lists, weights, 2*cmp.Or(wanted.Query.Limit, 5))
	b.Request.Passages = passages(b.Hits)
}

// together searches for several texts at the same time. What one finds is nil if it fails.
func (f finder) together(ctx context.Context, q search.Query, texts []string) [][]search.Hit {
	found := make([][]search.Hit, len(texts))
	var all background.Work
	for i, text := range texts {
		all.Go("actors/thread.together", func() {
			if hits, err := f.search(ctx, q, []string{text}); err == nil {
				found[i] = hits
			}
		})
	}
	all.Wait()
	return found
}

// What a rewritten question gives a model: so many sections, and of what each search has found first so many at least, since
// what answers one part of a question alone ranks below what two searches have found.
const (
	maxFused = 15
	ofSearch = 2
)

// fuse makes one list of several, by the reciprocals of the ranks, with at most so many pages. A section is there once,
// with the best of its scores.
func fuse(lists [][]search.Hit, weights []float64, pages int) []search.Hit {
	if len(lists) == 1 {
		return lists[0]
	}
	const smooth = 60 // as in the paper by Cormack and others: how little the first ranks count more than those after them
	type fused struct {
		hit   search.Hit
		rank  float64
		first bool // of those that a search has found first
	}
	var all []fused
	for l, hits := range lists {
		for rank := range hits {
			h := &hits[rank]
			at := slices.IndexFunc(all, func(f fused) bool { return f.hit.Path == h.Path && f.hit.Anchor == h.Anchor })
			if at < 0 {
				at = len(all)
				all = append(all, fused{hit: *h})
			}
			all[at].rank += weights[l] / float64(smooth+rank+1)
			all[at].hit.Score = max(all[at].hit.Score, h.Score)
			all[at].first = all[at].first || rank < ofSearch
		}
	}
	slices.SortStableFunc(all, func(a, b fused) int { return cmp.Compare(b.rank, a.rank) })
	room, of := maxFused, map[string]int{}
	for _, f := range all {
		if f.first {
			room--
			of[f.hit.Path]++
		}
	}
	out := make([]search.Hit, 0, maxFused)
	for _, f := range all {
		if !f.first {
			if room <= 0 || of[f.hit.Path] == sectionsOfPage || of[f.hit.Path] == 0 && len(of) == pages {
				continue
			}
			room--
			of[f.hit.Path]++
		}
		out = append(out, f.hit)
	}
	return out
}

// pageAround is how many bytes of a page a model reads around a passage.
const pageAround = 12_000

// readPage lets a model read on around a passage, on a page that the reader may see.
func (e *effect) readPage(w *writer) func(context.Context, int) ([]model.Found, error) {
	return func(ctx context.Context, index int) ([]model.Found, error) {
		if index < 0 || index >= len(w.candidates) {
			return nil, nil
		}
		var groups []string
		if e.exchange.Wanted != nil {
			groups = e.exchange.Wanted.Query.Filter.Groups
		}
		c := w.candidates[index]
		page, err := e.deps.Pages.Page(ctx, e.state.project, c.path, groups)
		if errors.Is(err, api.ErrNotFound) || errors.Is(err, search.ErrNotIndexed) {
			return nil, nil // it has gone since it was found
		}
		if err != nil {
			return nil, err
		}
		at := len(w.candidates)
		w.candidates = append(slices.Clip(w.candidates), c)
		return []model.Found{{Index: at, Passage: model.Passage{Path: c.path, Anchor: c.anchor, URL: c.url, Title: c.title,
			Heading: c.heading, Text: around(page.Content, c.heading, pageAround), Score: c.score}}}, nil
	}
}

// around is what stands around a heading in a page: a fifth of it before, the rest after.
func around(content, heading string, most int) string {
	if len(content) <= most {
		return content
	}
	from := max(0, headingAt(content, heading)-most/5)
	end := min(len(content), from+most)
	from = max(0, end-most)
	part := content[from:end]
	if from > 0 {
		if at := strings.IndexByte(part, '\n'); at >= 0 {
			part = part[at+1:]
		}
		part = "…\n" + part
	}
	if end < len(content) {
		if at := strings.LastIndexByte(part, '\n'); at > 0 {
			part = part[:at]
		}
		part += "\n…"
	}
	return strings.ToValidUTF8(part, "")
}

// headingAt is a heading's position in a page; 0 if it is not there.
func headingAt(content, heading string) int {
	if heading == "" {
		return 0
	}
	at := 0
	for line := range strings.Lines(content) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "#") && strings.Contains(line, heading) {
			return at
		}
		at += len(line)
	}
	return max(0, strings.Index(content, heading))
}
