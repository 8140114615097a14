package insights

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"docent/actors/gaps"
	"docent/actors/gaps/topics"
	"docent/api"
	"docent/internal/background"
	"docent/persistence/catalog"
	"docent/search"
	"docent/web/console"
)

const (
	maxLines    = 20     // of a list on the page; the CSV has all
	maxPages    = 20_000 // that are looked at for those that no answer cites
	csvLines    = 10_000
	othersShown = 200 // of the pages that no answer cites
)

type analyticsView struct {
	Range   dayRange
	Totals  catalog.QuestionTotals
	InDoubt int
	Days    []catalog.Day
	Asked   gaps.Listing
	Top     []topLine
	Missed  []catalog.SearchCount
	Cited   []pageLine
	Never   []search.PageInfo
	NeverOf int // pages
	Uncited int // of them
	NoIndex bool
	Callers []catalog.CallerCount
	Agents  []catalog.PageReads
}

// A topLine is a topic of all questions.
type topLine struct {
	Question  string
	Words     []string
	Questions int
	Readers   int
	Bad       int
}

type pageLine struct {
	catalog.CitedPage
	Title string // empty if the page is in the index no more
}

// showAnalytics is what was asked over days, and how that went.
func (s *handler) showAnalytics(v *console.Visit) error {
	r, err := days(v, 30)
	if err != nil {
		return err
	}
	view := analyticsView{Range: r}
	q := catalog.AnalyticsQuery{Project: v.Project.ID, From: r.Start, To: r.End, Limit: maxLines}
	g, ctx := background.WithContext(v.Context())
	g.Go(guarded(func() (err error) { view.Totals, view.Callers, err = s.counts.of(ctx, s.Catalog, q); return err }))
	g.Go(guarded(func() (err error) { view.Days, err = s.Catalog.Days(ctx, q, time.UTC); return err }))
	g.Go(guarded(func() (err error) { view.Missed, _, err = s.Catalog.SearchesWithoutResult(ctx, q); return err }))
	g.Go(guarded(func() (err error) { view.Asked, err = s.Topics.Asked(ctx, q.Project, r.Start, r.End); return err }))
	g.Go(guarded(func() (err error) { view.Agents, err = s.Catalog.AgentReads(ctx, q); return err }))
	g.Go(guarded(func() error { return s.cited(ctx, q, &view) }))
	if err := g.Wait(); err != nil {
		return err
	}
	view.Top = topLines(view.Asked, maxLines)
	view.sum()
	return s.Render(v, "analytics", "Analytics", view)
}

// sum takes from the days what they count, which is of this moment; what is counted across days may be a minute old.
func (a *analyticsView) sum() {
	t := catalog.QuestionTotals{Threads: a.Totals.Threads, Callers: a.Totals.Callers, Web: a.Totals.Web, API: a.Totals.API}
	for _, d := range a.Days {
		t.Questions += d.Questions
		t.Answered += d.Answered
		t.Unanswered += d.Unanswered
		t.Failed += d.Failed
		t.Up += d.Up
		t.Down += d.Down
		a.InDoubt += d.InDoubt
	}
	a.Totals = t
}

// countsLive is how long is shown what takes a look at every question of a time.
const countsLive = time.Minute

// counts remembers what was counted across all questions of a time.
type counts struct {
	mu    sync.Mutex
	known map[countsKey]countsOf
}

type countsKey struct {
	project  api.ProjectID
	from, to time.Time
}

type countsOf struct {
	totals  catalog.QuestionTotals
	callers []catalog.CallerCount
	at      time.Time
}

// maxCounts is how many times are remembered.
const maxCounts = 256

// of counts the questions of a time and the callers with most of them, or remembers what it has counted.
func (c *counts) of(ctx context.Context, usage Catalog, q catalog.AnalyticsQuery) (
	catalog.QuestionTotals, []catalog.CallerCount, error) {
	key := countsKey{q.Project, q.From, q.To}
	c.mu.Lock()
	have, ok := c.known[key]
	c.mu.Unlock()
	if ok && time.Since(have.at) < countsLive {
		return have.totals, have.callers, nil
	}
	g, ctx := background.WithContext(ctx)
	fresh := countsOf{at: time.Now()}
	g.Go(guarded(func() (err error) { fresh.totals, err = usage.Totals(ctx, q); return err }))
	g.Go(guarded(func() (err error) { fresh.callers, _, err = usage.Callers(ctx, q); return err }))
	if err := g.Wait(); err != nil {
		return fresh.totals, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxCounts {
		c.known = map[countsKey]countsOf{}
	}
	c.known[key] = fresh
	return fresh.totals, fresh.callers, nil
}

// guarded lets a panic of work beside others be an error.
func guarded(work func() error) func() error {
	return func() error { return background.Guard(work) }
}

func topLines(list gaps.Listing, most int) []topLine {
	var out []topLine
	for i := range list.Topics {
		t := &list.Topics[i]
		if len(out) == most {
			break
		}
		line := topLine{Question: t.Question, Words: t.Words, Questions: len(t.Questions), Readers: t.Askers}
		for _, q := range t.Questions {
			if q.Kind&(topics.Unanswered|topics.Doubt) != 0 {
				line.Bad++
			}
		}
		out = append(out, line)
	}
	return out
}

// cited finds which pages answers cite, and which they never do.
func (s *handler) cited(ctx context.Context, q catalog.AnalyticsQuery, view *analyticsView) error {
	q.Limit = maxPages
	cited, _, err := s.Catalog.CitedPages(ctx, q)
	if err != nil {
		return err
	}
	pages, err := s.Finder.Pages(ctx, q.Project)
	if errors.Is(err, search.ErrNotIndexed) {
		view.NoIndex, err = true, nil
	}
	if err != nil {
		return err
	}
	titles := make(map[string]string, len(pages))
	for _, p := range pages {
		titles[api.PageRef{URL: p.URL}.Page()] = p.Title
	}
	isCited := make(map[string]bool, len(cited))
	for _, c := range cited {
		isCited[c.Page] = true
		view.Cited = append(view.Cited, pageLine{c, titles[c.Page]})
	}
	view.NeverOf = len(pages)
	for _, p := range pages {
		if !isCited[api.PageRef{URL: p.URL}.Page()] {
			view.Never = append(view.Never, p)
		}
	}
	view.Uncited = len(view.Never)
	return nil
}

// Shown are the first of the pages that no answer cites.
func (a analyticsView) Shown() []search.PageInfo { return a.Never[:min(othersShown, len(a.Never))] }

// Most are the first of the pages that answers cite.
func (a analyticsView) Most() []pageLine { return a.Cited[:min(maxLines, len(a.Cited))] }

// Timed reports whether the time until the first text is known of any question.
func (a analyticsView) Timed() bool {
	return slices.ContainsFunc(a.Days, func(d catalog.Day) bool { return d.Timed > 0 })
}

// analyticsCSV gives the numbers of one part of the page.
func (s *handler) analyticsCSV(v *console.Visit) error {
	r, err := days(v, 30)
	if err != nil {
		return err
	}
	q := catalog.AnalyticsQuery{Project: v.Project.ID, From: r.Start, To: r.End, Limit: csvLines}
	part := cmp.Or(v.Query("part"), "days")
	rows, err := s.analyticsRows(v.Context(), part, q)
	if err != nil {
		return err
	}
	name := "analytics-" + v.Project.Domain + "-" + part + "-" + r.From + "-" + r.To
	return sendCSV(v, name, rows)
}

// analyticsRows are the lines of a part, its heading first.
func (s *handler) analyticsRows(ctx context.Context, part string, q catalog.AnalyticsQuery) ([][]string, error) {
	n := strconv.Itoa
	var rows [][]string
	add := func(cells ...string) { rows = append(rows, cells) }
	var view analyticsView
	var err error
	switch part {
	case "days":
		add("day", "questions", "answered", "unanswered", "in doubt", "failed", "rated up", "rated down",
			"first text median ms", "first text p95 ms")
		view.Days, err = s.Catalog.Days(ctx, q, time.UTC)
		for _, d := range view.Days {
			median, p95 := "", ""
			if d.Timed > 0 {
				median, p95 = n(int(d.Median)), n(int(d.P95))
			}
			add(d.Start.Format(time.DateOnly), n(d.Questions), n(d.Answered), n(d.Unanswered), n(d.InDoubt), n(d.Failed),
				n(d.Up), n(d.Down), median, p95)
		}
	case "topics":
		add("question", "words", "questions", "readers", "not answered")
		view.Asked, err = s.Topics.Asked(ctx, q.Project, q.From, q.To)
		for _, t := range topLines(view.Asked, csvLines) {
			add(t.Question, fmt.Sprint(t.Words), n(t.Questions), n(t.Readers), n(t.Bad))
		}
	case "searches":
		add("search", "times", "last")
		view.Missed, _, err = s.Catalog.SearchesWithoutResult(ctx, q)
		for _, m := range view.Missed {
			add(m.Query, n(m.Count), m.Last.UTC().Format(time.RFC3339))
		}
	case "cited":
		add("page", "title", "answers")
		err = s.cited(ctx, q, &view)
		for _, c := range view.Cited {
			add(c.Page, c.Title, n(c.Answers))
		}
	case "never":
		add("page", "title", "path")
		err = s.cited(ctx, q, &view)
		for _, p := range view.Never {
			add(p.URL, p.Title, p.Path)
		}
	case "callers":
		add("caller", "questions", "conversations", "last")
		view.Callers, _, err = s.Catalog.Callers(ctx, q)
		for _, c := range view.Callers {
			add(c.Caller, n(c.Questions), n(c.Threads), c.Last.UTC().Format(time.RFC3339))
		}
	case "agents":
		add("page", "mcp and api", "markdown")
		view.Agents, err = s.Catalog.AgentReads(ctx, q)
		for _, a := range view.Agents {
			add(a.Page, n(a.Tools), n(a.Markdown))
		}
	default:
		err = console.Invalid("part", "must be days, topics, searches, cited, never, callers or agents")
	}
	return rows, err
}

// sendCSV sends lines as a file. What a spreadsheet would compute is text.
func sendCSV(v *console.Visit, name string, rows [][]string) error {
	v.BeginFile(console.TypeCSV, name, "csv")
	out := csv.NewWriter(v)
	for _, row := range rows {
		out.Write(console.CSVRow(row...)) // the first error is kept, and a browser that has gone is none of ours
	}
	out.Flush()
	return nil
}
