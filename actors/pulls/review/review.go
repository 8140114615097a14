package review

import (
	"context"
	"docent/internal/background"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/job"
	"docent/api"
	"docent/forge/failure"
	"docent/forge/host"
	"docent/internal/backoff"
)

const (
	tick        = 5 * time.Second // new pull requests are looked for this often
	mostLooks   = 8               // pull requests that are looked at at once, each of another project
	mostAsks    = 500             // instructions that are under way at once
	betweenAll  = 4 * time.Second // between looks at a project's pull requests that nobody hinted at
	betweenHint = 500 * time.Millisecond
	restLongest = time.Hour // of a project whose code host refuses
	atOnce      = 100       // pull requests that begin to be followed in one step
)

// A Reviewer follows the comments on pull requests.
type Reviewer struct {
	Deps
	pause   func(try int) time.Duration // before a try, from 1
	metrics metrics

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   background.Work
	wake   chan struct{}

	mu     sync.Mutex
	looks  map[api.ProjectID]*looking
	busy   int                // looks that go on
	asks   map[string]bool    // that are under way
	giving map[api.JobID]bool // jobs that an instruction is on its way to: those after it wait
}

// looking is where the looks at a project's pull requests stand.
type looking struct {
	busy   bool
	last   time.Time // when the last look ended
	rests  time.Time // until when the code host is left alone
	failed int
}

type metrics struct{ comments, asks, looks *prometheus.CounterVec }

func newMetrics() metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	return metrics{
		comments: counter("docent_review_comments_total",
			"Comments on pull requests of code hosts that were read, by what they are: instruction, stranger (of somebody who may not write), bot or not_addressed.",
			"kind"),
		asks: counter("docent_review_answers_total",
			"Comments with instructions that were answered, by what became of them: changed, nothing_to_do, not_understood, needs_detail, failed, refused, over (the pull request is merged or closed), question, unknown or unanswerable (the host takes no answer).",
			"result"),
		looks: counter("docent_review_looks_total",
			"Looks at pull requests of code hosts for comments, by result: ok or failed.", "result"),
	}
}

// Describe implements prometheus.Collector.
func (r *Reviewer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range []*prometheus.CounterVec{r.metrics.comments, r.metrics.asks, r.metrics.looks} {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (r *Reviewer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []*prometheus.CounterVec{r.metrics.comments, r.metrics.asks, r.metrics.looks} {
		c.Collect(ch)
	}
}

// New makes a Reviewer. It does nothing by itself before Start.
func New(deps Deps) (*Reviewer, error) {
	if err := deps.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Reviewer{Deps: deps, pause: backoff.Exponential(time.Second, 2*time.Minute), metrics: newMetrics(),
		ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), looks: map[api.ProjectID]*looking{},
		asks: map[string]bool{}, giving: map[api.JobID]bool{}}, nil
}

// Start takes up what is under way, and follows pull requests from now on, until Close. It is called at most once.
func (r *Reviewer) Start() {
	step := func() (wait time.Duration, err error) {
		err = background.Guard(func() (err error) { wait, err = r.step(); return err })
		return wait, err
	}
	failed := func(err error) { r.Log.Warn("comments on pull requests wait", "error", err) }
	r.work.Go("actors/pulls/review.Start", func() { backoff.Loop(r.ctx, r.wake, r.pause, failed, step) })
}

// Close breaks off what goes on; the next server takes it up.
func (r *Reviewer) Close() error {
	r.cancel()
	r.work.Wait()
	return nil
}

// Wake has the Reviewer look for work at once.
func (r *Reviewer) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Hint takes a code host's word that there may be news on a pull request. It is stored when Hint returns; what the news
// are, the host is asked. It is false where the pull request is none of a job of the project.
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

// step follows new pull requests, looks at those whose time has come, and takes up instructions. It says how long there
// is nothing more to do.
func (r *Reviewer) step() (time.Duration, error) {
	if err := r.takeUp(); err != nil {
		return tick, err
	}
	if err := r.answerBuiltin(); err != nil {
		return tick, err
	}
	projects, err := r.Catalog.Projects(r.ctx)
	if err != nil {
		return tick, err
	}
	wait := tick
	for _, p := range projects {
		if !host.KeepsPulls(p.Host) || !r.here("task/review/"+string(p.ID)) {
			continue
		}
		if err := r.discover(r.ctx, p); err != nil {
			return tick, err
		}
		next, err := r.beginLook(p)
		if err != nil {
			return tick, err
		}
		wait = min(wait, next)
	}
	return max(wait, 10*time.Millisecond), nil
}

// discover follows the pull requests of a project's jobs that are not followed yet.
func (r *Reviewer) discover(ctx context.Context, project api.Project) error {
	rows, err := r.Catalog.UnfollowedPulls(ctx, project.ID, atOnce)
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

// beginLook begins to look at the project's pull request whose time came first, if one's has and none is looked at, and
// says when to ask again.
func (r *Reviewer) beginLook(project api.Project) (time.Duration, error) {
	p, err := r.Catalog.NextPull(r.ctx, project.ID)
	if errors.Is(err, api.ErrNotFound) {
		return tick, nil
	}
	if err != nil {
		return tick, err
	}
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.looks[project.ID]
	if l == nil {
		l = &looking{}
		r.looks[project.ID] = l
	}
	due, gap := p.Next, betweenAll
	if p.Hinted {
		due, gap = now, betweenHint
	}
	for _, t := range []time.Time{l.last.Add(gap), l.rests} {
		if t.After(due) && t.Sub(now) <= restLongest { // further off, the clock was set back
			due = t
		}
	}
	if wait := due.Sub(now); wait > 0 || l.busy || r.busy >= mostLooks {
		return max(wait, 50*time.Millisecond), nil // the end of a look wakes as well
	}
	l.busy = true
	r.busy++
	r.work.Go("actors/pulls/review.beginLook", func() {
		err := background.Guard(func() error { return r.look(r.ctx, project, p) })
		r.endLook(project, p, l, err)
		r.Wake()
	})
	return tick, nil
}

// endLook takes down how a look went. One that failed is made again, later each time.
func (r *Reviewer) endLook(project api.Project, p api.ReviewPull, l *looking, err error) {
	r.mu.Lock()
	r.busy--
	l.busy, l.last = false, r.Now()
	if err == nil || r.ctx.Err() != nil {
		l.failed, l.rests = 0, time.Time{}
		r.mu.Unlock()
		r.metrics.looks.WithLabelValues("ok").Inc()
		return
	}
	l.failed++
	pause := r.pause(l.failed)
	var said *failure.Error
	if errors.As(err, &said) {
		pause = min(max(pause, said.After), restLongest)
	}
	if errors.Is(err, failure.ErrMisconfigured) && l.failed > 1 {
		pause = max(pause, 10*time.Minute)
	}
	l.rests = l.last.Add(pause)
	failed := l.failed
	r.mu.Unlock()
	r.metrics.looks.WithLabelValues("failed").Inc()
	if failed == 1 || failed%20 == 0 {
		r.Log.Warn("comments on a pull request could not be read, and are later", "project", project.ID, "pull", p.Link,
			"try", failed, "pause", pause, "error", err)
	}
	p.Failed++
	p.Said, p.Hinted = words(err), false
	p.Next = r.Now().Add(min(pause*time.Duration(p.Failed), 6*time.Hour))
	if err := r.Catalog.EndLook(r.ctx, p, nil); err != nil && r.ctx.Err() == nil && !errors.Is(err, api.ErrNotFound) {
		r.Log.Warn("a pull request waits for the catalogue", "project", project.ID, "pull", p.Link, "error", err)
	}
}

// words is what a host has against a look.
func words(err error) string {
	var said *failure.Error
	if errors.As(err, &said) {
		return said.Say
	}
	return "the server's log has the reason"
}

// takeUp begins to carry the instructions that are stored, oldest first: those to one job one after the other.
func (r *Reviewer) takeUp() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	open, err := r.Catalog.OpenAsks(r.ctx, mostAsks) // under the lock: what is carried to its end now is in r.asks still
	if err != nil {
		return err
	}
	for _, a := range open {
		if r.asks[a.ID] || a.State == api.ReviewTaken && r.giving[a.Job] || !r.here(job.Stream(a.Job)) {
			continue
		}
		r.asks[a.ID] = true
		given := func() {}
		if a.State == api.ReviewTaken {
			r.giving[a.Job] = true
			given = sync.OnceFunc(func() {
				r.mu.Lock()
				delete(r.giving, a.Job)
				r.mu.Unlock()
				r.Wake()
			})
		}
		r.work.Go("actors/pulls/review.takeUp", func() {
			r.carry(a, given)
			r.mu.Lock()
			delete(r.asks, a.ID)
			r.mu.Unlock()
		})
	}
	return nil
}
