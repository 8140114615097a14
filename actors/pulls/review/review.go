package review

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/job"
	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/required"
	"docent/internal/task"
)

const (
	tick            = 5 * time.Second // new pull requests are looked for this often
	maxPolls        = 8               // pull requests that are looked at at once, each of another project
	maxInstructions = 500             // instructions that are under way at once
	pollInterval    = 4 * time.Second // between looks at a project's pull requests that nobody hinted at
	hintedInterval  = 500 * time.Millisecond
	maxBackoff      = time.Hour // of a project whose code host refuses
	maxNew          = 100       // pull requests that begin to be followed in one step
)

// pause is how long after a failure a look or a step of an instruction is tried again.
var pause = backoff.Exponential(time.Second, 2*time.Minute)

// A Reviewer follows the comments on pull requests.
type Reviewer struct {
	Deps
	metrics metrics
	polling task.Slots
}

type metrics struct{ comments, answers, polls *prometheus.CounterVec }

func newMetrics() metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	return metrics{
		comments: counter("docent_review_comments_total",
			"Comments on pull requests of code hosts that were read, by what they are: instruction, stranger (of somebody who may not write), bot or not_addressed.",
			"kind"),
		answers: counter("docent_review_answers_total",
			"Comments with instructions that were answered, by what became of them: changed, nothing_to_do, not_understood, needs_detail, failed, refused, over (the pull request is merged or closed), question, unknown or unanswerable (the host takes no answer).",
			"result"),
		polls: counter("docent_review_looks_total",
			"Looks at pull requests of code hosts for comments, by result: ok or failed.", "result"),
	}
}

// Describe implements prometheus.Collector.
func (r *Reviewer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range []*prometheus.CounterVec{r.metrics.comments, r.metrics.answers, r.metrics.polls} {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (r *Reviewer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []*prometheus.CounterVec{r.metrics.comments, r.metrics.answers, r.metrics.polls} {
		c.Collect(ch)
	}
}

// New makes a Reviewer. It does nothing by itself before Wake.
func New(deps Deps) (*Reviewer, error) {
	if err := required.Fields("review", deps, "Catalog", "Hosts", "Jobs", "Starter", "IDs", "Now",
		"Log", "Cell", "Tasks", "Owns"); err != nil {
		return nil, err
	}
	return &Reviewer{Deps: deps, metrics: newMetrics(), polling: make(task.Slots, maxPolls)}, nil
}

// Wake takes up what is under way, and follows pull requests from now on.
func (r *Reviewer) Wake() { r.Tasks.Start(task.Task{Name: "reviews", Handle: r.step}) }

// Hint takes a code host's word that there may be news on a pull request. It is stored when Hint returns; what the news
// are, the host is asked. It is false if the pull request is none of a job of the project.
func (r *Reviewer) Hint(ctx context.Context, id api.ProjectID, hint api.PullHint) (bool, error) {
	project, err := r.Catalog.Project(ctx, id)
	if err != nil {
		return false, err
	}
	if !host.KeepsPulls(project.Host) || hint.Number <= 0 || !strings.EqualFold(hint.Repository, project.Repository) {
		return false, nil
	}
	followed, err := r.Catalog.HintPull(ctx, id, hint.Number)
	if err == nil && !followed { // it may be new
		if err = r.discover(ctx, project); err == nil {
			followed, err = r.Catalog.HintPull(ctx, id, hint.Number)
		}
	}
	if followed {
		r.Wake()
	}
	return followed, err
}

// step begins what there is to do for each project, and takes up instructions.
func (r *Reviewer) step(ctx context.Context, _ int) (time.Duration, error) {
	if err := r.takeUp(ctx); err != nil {
		return 0, err
	}
	if err := r.answerBuiltin(ctx); err != nil {
		return 0, err
	}
	projects, err := r.Catalog.Projects(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range projects {
		if host.KeepsPulls(p.Host) {
			r.Tasks.Start(task.Task{Name: "reviews/project/" + string(p.ID), Place: "task/review/" + string(p.ID), Pause: pause, Handle: r.project(p.ID)})
		}
	}
	return tick, nil
}

// discover follows the pull requests of a project's jobs that are not followed yet.
func (r *Reviewer) discover(ctx context.Context, project api.Project) error {
	rows, err := r.Catalog.UnfollowedPulls(ctx, project.ID, maxNew)
	if err != nil || len(rows) == 0 {
		return err
	}
	since, err := r.Catalog.ReviewsSince(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if p, ok := follow(row, since, r.Now()); ok {
			err = errors.Join(err, r.Catalog.FollowPull(ctx, p))
		}
	}
	return err
}

// project follows new pull requests of a project, and looks at the one whose time came first, if one's has.
func (r *Reviewer) project(id api.ProjectID) func(context.Context, int) (time.Duration, error) {
	var last time.Time // when the last look ended
	return func(ctx context.Context, attempt int) (time.Duration, error) {
		project, err := r.Catalog.Project(ctx, id)
		if errors.Is(err, api.ErrNotFound) || err == nil && !host.KeepsPulls(project.Host) {
			return task.Done, nil
		}
		if err == nil {
			err = r.discover(ctx, project)
		}
		if err != nil {
			return 0, err
		}
		p, err := r.Catalog.NextPull(ctx, id)
		if errors.Is(err, api.ErrNotFound) {
			return tick, nil
		}
		if err != nil {
			return 0, err
		}
		now := r.Now()
		due, gap := p.Next, pollInterval
		if p.Hinted {
			due, gap = now, hintedInterval
		}
		if next := last.Add(gap); next.After(due) && next.Sub(now) <= gap { // further off, the clock was set back
			due = next
		}
		if wait := due.Sub(now); wait > 0 {
			return min(max(wait, 50*time.Millisecond), tick), nil // the clock may be set, and a pull request may be new
		}
		give, err := r.polling.Take(ctx)
		if err != nil {
			return 0, err
		}
		defer give()
		err = background.Guard(func() error { return r.look(ctx, project, p) })
		last = r.Now()
		if err == nil || ctx.Err() != nil {
			r.metrics.polls.WithLabelValues("ok").Inc()
			return 0, nil
		}
		r.metrics.polls.WithLabelValues("failed").Inc()
		return r.failed(ctx, p, err, attempt), err
	}
}

// failed takes down that a look failed. It is made again, later each time; the project's code host is left alone for as
// long as failed returns.
func (r *Reviewer) failed(ctx context.Context, p api.ReviewPull, err error, attempt int) time.Duration {
	rest := pause(attempt)
	if said, ok := errors.AsType[*failure.Error](err); ok {
		rest = min(max(rest, said.After), maxBackoff)
	}
	if errors.Is(err, failure.ErrMisconfigured) && attempt > 1 {
		rest = max(rest, 10*time.Minute)
	}
	p.Failed++
	p.Said, p.Hinted = words(err), false
	p.Next = r.Now().Add(min(rest*time.Duration(p.Failed), 6*time.Hour))
	if err := r.Catalog.EndLook(ctx, p, nil); err != nil && ctx.Err() == nil && !errors.Is(err, api.ErrNotFound) {
		r.Log.Warn("a pull request is waiting for the catalog", "project", p.Project, "pull", p.Link, "error", err)
	}
	return rest
}

// words is what a host has against a look.
func words(err error) string {
	if said, ok := errors.AsType[*failure.Error](err); ok {
		return said.Say
	}
	return "the server's log has the reason"
}

// takeUp begins to carry the instructions that are stored, oldest first: of those that one job has not been given yet, the
// first one.
func (r *Reviewer) takeUp(ctx context.Context) error {
	open, err := r.Catalog.OpenAsks(ctx, maxInstructions)
	if err != nil {
		return err
	}
	sending := map[api.JobID]bool{}
	for _, a := range open {
		if a.State == api.ReviewTaken && sending[a.Job] {
			continue
		}
		sending[a.Job] = sending[a.Job] || a.State == api.ReviewTaken
		r.Tasks.Start(task.Task{Name: "reviews/ask/" + a.ID, Place: job.Stream(a.Job), Pause: pause,
			Handle: func(ctx context.Context, attempt int) (time.Duration, error) { return r.carry(ctx, a.ID, attempt) }})
	}
	return nil
}
