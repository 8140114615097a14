package projects

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"docent/api"
	"docent/internal/brief"
	"docent/persistence/catalog"
	"docent/web/console"
)

// index introduces the server to visitors of its address.
func (s *handler) index(v *console.Visit) error {
	return s.Render(v, "index", "Docent", nil)
}

// chooseProject lists the projects that the visitor may see, or leads to the only one.
func (s *handler) chooseProject(v *console.Visit) error {
	all, err := s.Catalog.Projects(v.Context())
	if err != nil {
		return err
	}
	var mine []projectLink
	for _, p := range all {
		if v.Who.Reads(p.Org) {
			mine = append(mine, projectLink{p, console.PathOf(p)})
		}
	}
	switch { // a request for the list gets it
	case v.Query("all") != "":
	case len(mine) == 1:
		return v.SeeOther(mine[0].Path)
	case len(all) == 0 && v.May(console.Operator):
		return v.SeeOther("/console/setup")
	}
	return s.Render(v, "projects", "Projects", projectsView{mine, s.onTheirWay(all)})
}

type projectsView struct {
	Projects []projectLink
	Drafts   []draft
}

type projectLink struct {
	api.Project
	Path string
}

// Condition is what a project's page needs to know of the machinery below it.
type Condition struct {
	Commit          string // that the index shows; empty if there is none that can be used
	Pages, Sections int
	Meaning         []string  // how the vectors of each source stand; none if there is no endpoint of embeddings
	Questions       []string  // how those of each source stand that a model writes; none if no model does
	Address         string    // public URL of the pages; empty if not known
	Read            time.Time // when the source was last looked at; zero if it was not since the server started
	Failure         string    // why that failed
	DeadLinks       int       // that the last check found
	Model           string    // that answers
	ModelState      string    // of its circuit; empty for a model of this machine
	Limits          []Allowance
}

// overviewView is a project's overview.
type overviewView struct {
	Project   api.Project
	Condition Condition
	Concerns  []console.Concern
	Health    string // in a few words
	Bad       bool

	Day       catalog.Day       // the last 24 hours
	Week      catalog.Day       // the last seven days
	Spark     spark             // questions of the last 14 days
	Answered  spark             // the share of them that was answered
	Questions []api.QuestionRow // the newest
	Jobs      []api.JobRow      // the newest
	Running   int
	JobsToday int
	Pulls     int // that are open
	Keys      int // that are good
	Update    *api.Update
	New       bool // nothing was asked yet
}

// asked counts what was asked in a project from a time ago until another. The catalog remembers the counts of what is
// past, so that a part that is live may ask again and again.
func (s *handler) asked(ctx context.Context, id api.ProjectID, from, to time.Duration) (sum catalog.Day, err error) {
	now := s.Now()
	q := catalog.AnalyticsQuery{Project: id, From: now.Add(-from), AsIs: true}
	if to > 0 {
		q.To = now.Add(-to)
	}
	days, err := s.Catalog.Days(ctx, q, time.UTC)
	for _, d := range days {
		sum.Questions += d.Questions
		sum.Answered += d.Answered
		sum.Unanswered += d.Unanswered
		sum.Failed += d.Failed
		sum.Up += d.Up
		sum.Down += d.Down
	}
	return sum, err
}

func (s *handler) overview(v *console.Visit) error {
	view, err := s.overviewOf(v.Context(), v.Project)
	if err != nil {
		return err
	}
	return s.Render(v, "overview", v.Project.Domain, view)
}

// liveOverview is the overview as it changes.
func (s *handler) liveOverview(v *console.Visit) error {
	p := v.Project
	return s.Watch(v, "overview.live", "", func() (<-chan struct{}, func()) { return s.Catalog.Watch(p.ID) },
		func(ctx context.Context) (any, error) { return s.overviewOf(ctx, p) })
}

const (
	overviewDays = 14 // that the curves show
	overviewRows = 5  // of the newest questions and jobs
	busyJobs     = 500
)

func (s *handler) overviewOf(ctx context.Context, p api.Project) (*overviewView, error) {
	now := s.Now()
	o := &overviewView{Project: p}
	var before catalog.Day // the week before the last
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	var days []catalog.Day
	var pulls []api.PullRequest
	var keys []api.Key
	var updates []api.Update
	var open []api.JobRow
	var newJobs []api.JobRow
	for _, load := range []func() error{
		func() (err error) { o.Day, err = s.asked(ctx, p.ID, day, 0); return err },
		func() (err error) { o.Week, err = s.asked(ctx, p.ID, week, 0); return err },
		func() (err error) { before, err = s.asked(ctx, p.ID, 2*week, week); return err },
		func() (err error) {
			from := now.UTC().Truncate(day).Add(-(overviewDays - 1) * day)
			days, err = s.Catalog.Days(ctx, catalog.AnalyticsQuery{Project: p.ID, From: from, AsIs: true}, time.UTC)
			return err
		},
		func() (err error) {
			o.Questions, _, err = s.Catalog.Questions(ctx, catalog.AnalyticsQuery{Project: p.ID, Limit: overviewRows, AsIs: true})
			return err
		},
		func() (err error) {
			o.Jobs, err = s.Catalog.Jobs(ctx, catalog.JobQuery{Project: p.ID, Limit: overviewRows})
			return err
		},
		func() (err error) {
			open, err = s.Catalog.Jobs(ctx, catalog.JobQuery{Project: p.ID, Status: api.JobActive, Limit: busyJobs})
			return err
		},
		func() (err error) {
			newJobs, err = s.Catalog.Jobs(ctx, catalog.JobQuery{Project: p.ID, From: now.Add(-day), Limit: busyJobs})
			return err
		},
		func() (err error) { pulls, err = s.Catalog.Pulls(ctx, p.ID, api.PullOpen); return err },
		func() (err error) { keys, err = s.Catalog.Keys(ctx, catalog.KeyQuery{Project: p.ID}); return err },
		func() (err error) { updates, err = s.Catalog.Updates(ctx, p.ID, 1); return err },
		func() (err error) { o.Condition, err = s.Conditions.Condition(ctx, p); return err },
	} {
		if err := load(); err != nil {
			return nil, err
		}
	}
	o.Running, o.JobsToday, o.Pulls = len(open), len(newJobs), len(pulls)
	o.New = len(o.Questions) == 0
	o.curves(days)
	if len(updates) > 0 {
		o.Update = &updates[0]
	}
	kinds := map[api.KeyKind]int{}
	for _, k := range keys {
		if k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt)) {
			kinds[k.Kind]++
			o.Keys++
		}
	}
	o.judge(console.PathOf(p), kinds, before, newJobs, updates)
	return o, nil
}

// judge says what needs somebody, and where it is fixed.
func (o *overviewView) judge(base string, keys map[api.KeyKind]int, before catalog.Day, jobs []api.JobRow,
	updates []api.Update) {
	add := func(bad bool, page, do, format string, args ...any) {
		o.Concerns = append(o.Concerns, console.Concern{Bad: bad, Path: base + page, Do: do, Text: fmt.Sprintf(format, args...)})
	}
	c := o.Condition
	switch {
	case c.Failure != "":
		add(true, "/sources", "View sources", "The documentation could not be read: %s", c.Failure)
	case len(updates) > 0 && updates[0].Status == api.UpdateFailure:
		add(true, "/sources", "View sources", "The last update failed: %s", updates[0].Summary)
	case c.Commit == "":
		add(true, "/sources", "View sources", "The documentation is not indexed yet: questions wait until it is.")
	case c.Pages == 0:
		add(true, "/sources", "View sources", "The index has no pages: nothing can be answered.")
	}
	if c.ModelState != "" && c.ModelState != "closed" {
		add(true, "/settings", "Open settings", "The model %s is failing: its circuit is %s.", c.Model, c.ModelState)
	}
	if keys[api.AssistantKey]+keys[api.ServerKey] == 0 {
		add(false, "/keys", "Create a key", "There is no assistant key yet: no site can ask.")
	}
	for _, l := range c.Limits {
		used := l.Limit - l.Left
		if l.Limit <= 0 || used*10 < l.Limit*9 {
			continue
		}
		where, do := "/settings", "View limits"
		if l.Key != "" {
			where, do = "/keys", "Manage keys"
		}
		add(used >= l.Limit, where, do, "%s: %d of %d used.", l.Of, used, l.Limit)
	}
	failed := 0
	for _, j := range jobs {
		if j.Job.Status == api.JobFailed {
			failed++
		}
	}
	if failed > 0 {
		add(false, "/jobs?status=failed", "Review", "%s failed in the last 24 hours.", brief.Count(failed, "job"))
	}
	now, then := o.Week, before
	if enough := 20; min(now.Questions, then.Questions) >= enough && console.AnsweredPercent(now) <= console.AnsweredPercent(then)-10 {
		add(false, "/gaps", "View gaps", "Fewer questions are answered: %d%% in the last seven days, %d%% in the seven before.",
			console.AnsweredPercent(now), console.AnsweredPercent(then))
	}
	if now.Questions >= 5 && now.Down*5 >= now.Questions {
		add(false, "/conversations?rating=down", "Review", "%d of %d answers of the last seven days were rated down.", now.Down,
			now.Questions)
	}
	if c.DeadLinks > 0 {
		add(false, "/sources", "Review", "The documentation has %s.", brief.Count(c.DeadLinks, "dead link"))
	}
	slices.SortStableFunc(o.Concerns, console.WorstFirst)
	switch {
	case len(o.Concerns) == 0:
		o.Health = "Healthy"
	case o.Concerns[0].Bad:
		o.Bad, o.Health = true, "Readers are affected"
	default:
		o.Health = "Needs attention"
	}
}

// curves are the small plots of the last days.
func (o *overviewView) curves(days []catalog.Day) {
	questions, answered := make([]float64, len(days)), make([]float64, len(days))
	texts, shares := make([]string, len(days)), make([]string, len(days))
	for i, d := range days {
		questions[i] = float64(d.Questions)
		texts[i] = strconv.Itoa(d.Questions)
		rate := console.AnsweredPercent(d)
		answered[i], shares[i] = float64(max(rate, 0)), "–"
		if rate >= 0 {
			shares[i] = strconv.Itoa(rate) + "%"
		}
	}
	o.Spark, o.Answered = newSpark(questions, 0, texts), newSpark(answered, 100, shares)
}

// A spark is a curve without axes.
type spark struct {
	Line, Area string // of an SVG path
	Text       string // the same for who does not see it
}

const sparkWidth, sparkHeight = 120, 28

// newSpark draws values from 0 to most; to the highest of them if most is 0.
func newSpark(values []float64, most float64, texts []string) spark {
	if len(values) < 2 {
		return spark{}
	}
	for _, v := range values {
		if most < v {
			most = v
		}
	}
	most = cmp.Or(most, 1)
	var line strings.Builder
	for i, v := range values {
		x := float64(i) * sparkWidth / float64(len(values)-1)
		y := 1 + (sparkHeight-2)*(1-v/most)
		fmt.Fprintf(&line, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
	}
	return spark{Line: line.String(), Area: fmt.Sprintf("%sL%d %dL0 %dZ", line.String(), sparkWidth, sparkHeight, sparkHeight),
		Text: strings.Join(texts, ", ")}
}
