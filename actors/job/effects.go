package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/actors/persistent"
	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/internal/backoff"
	"docent/internal/tracing"
)

// start begins a run. It may be done twice, as after a crash: an edit touches nothing outside, and a publication is
// idempotent under the job's branch.
func (a *Actor) start(recovered bool) {
	e := &effect{deps: a.deps, state: a.State, slot: persistent.Slot{Slots: a.deps.Slots,
		Project: a.State.project, Given: a.State.oldest()}}
	a.progress = &e.progress
	a.began = a.deps.Now()
	if recovered {
		a.began = a.State.runBegan()
	}
	a.Start(a.deps.runSpan(&a.State), recovered, e.perform)
}

// An effect is a run's view of the job. It holds a copy of the state, and reads only.
type effect struct {
	deps     *Deps
	state    state
	run      *persistent.Run
	slot     persistent.Slot
	progress reporter
	allowed  *backoff.Allowance // time of the run
}

func (e *effect) perform(stopped context.Context, r *persistent.Run) {
	e.run = r
	if r.Rest(stopped, e.state.interrupted-e.state.left) != nil {
		return
	}
	if e.state.phase == editing && e.deps.Open != nil {
		open := persistent.Slot{Slots: e.deps.Open, Project: e.state.project, Given: e.state.oldest()}
		if open.Take(stopped) != nil {
			return
		}
		defer open.Give()
	}
	if e.slot.Take(stopped) != nil {
		return // stopped, not failed: recovery runs it again
	}
	defer e.slot.Give()
	ctx, allowed, cancel := backoff.WithAllowance(stopped, e.deps.RunLimit) // waiting for the slot does not count
	defer cancel()
	e.allowed = allowed
	if r.Counted(ctx) != nil {
		return
	}
	var body any
	switch e.state.phase {
	case editing:
		edited, err := e.edit(ctx)
		body = editDone{r.Attempt, edited, e.limit(ctx, err)}
	case publishing:
		result, err := e.publish(ctx)
		body = publishDone{r.Attempt, result, e.limit(ctx, err)}
	}
	if stopped.Err() != nil {
		return // stopped, not failed
	}
	r.Tell(body)
}

// limit puts the end of the run's time in words.
func (e *effect) limit(ctx context.Context, err error) error {
	var given *agent.Failure
	if err != nil && !errors.As(err, &given) && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &failure{api.HaltError, fmt.Sprintf("The agent did not end within %v.", e.deps.RunLimit), err}
	}
	return err
}

// edit finds out the job's state, lets the editor work on that tree, and says what is to be published where.
func (e *effect) edit(ctx context.Context) (Edited, error) {
	project, err := e.project(ctx)
	if err != nil {
		return Edited{}, err
	}
	var tip forge.Tip
	number, branch := max(e.state.number, 1), ""
	over := map[string]api.PullState{} // branches whose pull requests are merged or closed
	for {
		branch = e.state.branchName(number)
		published := ""
		if branch == e.state.branch {
			published = e.state.commit
		}
		if err := e.patiently(ctx, "look for the branch", func(ctx context.Context) error {
			tip, err = e.deps.Forge.TipAfter(ctx, project, branch,
				published)
			return err
		}); err != nil {
			return Edited{}, fmt.Errorf("look for %s: %w", branch, err)
		}
		if branch == tip.Base {
			return Edited{}, &failure{api.HaltMisconfigured,
				fmt.Sprintf("The branch %q is the one that pull requests are meant for: name another one.", branch),
				fmt.Errorf("the branch %s is the base", branch)}
		}
		if tip.Pull != api.PullMerged && tip.Pull != api.PullClosed {
			if tip.There && published == "" && e.state.wish != "" {
				return Edited{}, &failure{api.HaltMisconfigured,
					fmt.Sprintf("The branch %q exists, and this job didn't make it. Name a branch that doesn't exist yet.", branch),
					fmt.Errorf("the branch %s is not the job's", branch)}
			}
			break
		}
		over[branch] = tip.Pull
		number++ // what was merged or closed is done with: the next pull request comes from a branch of its own
	}
	if tip.Restored {
		e.progress.report(e.run,
			agent.Progress{Text: fmt.Sprintf(
				"The branch %s had lost the commit that this job published before. It was found and brought back.", branch)})
	}
	var tree agent.Tree
	if err := e.patiently(ctx, "read the repository", func(ctx context.Context) error {
		tree, err = e.deps.Forge.Tree(ctx, project,
			tip.Commit)
		return err
	}); err != nil {
		return Edited{}, fmt.Errorf("read the repository at %s: %w", tip.Commit, err)
	}
	in := e.state.queue[0]
	id := in.ID
	if id == "" {
		id = fmt.Sprint("at ", in.At.UnixMilli())
	}
	result, err := e.deps.Editor.Edit(ctx, agent.Task{
		Project: project, Job: e.state.id, ID: id, Model: e.state.asked, Prompt: in.Prompt, Earlier: e.earlier(tip, over),
		Tree: tree, Fork: e.fork(project, tip), DocsDir: project.DocsDir, Now: e.deps.Now(),
		Attempts: e.state.interrupted + e.state.panicked + e.state.stale,
		Base:     func(ctx context.Context) (agent.Tree, error) { return e.base(ctx, project, tip, tree) },
		Steps:    e.state.steps, Record: e.keep,
		Show: func(ctx context.Context, changes []agent.Change) {
			if files, diff, err := describe(ctx, tree, changes, maxDiff); err == nil {
				e.run.Tell(drafted{e.run.Attempt, Edits{Files: files, Diff: diff}})
			}
		},
		Aside: e.slot.Aside, Waiting: e.waiting(), Extend: e.allowed.Extend,
	}, func(p agent.Progress) { e.progress.report(e.run, p) })
	if err != nil {
		return Edited{}, fmt.Errorf("edit: %w", err)
	}
	result.Message = e.leftAlone(in, result)
	limit := maxDiff
	if e.state.dryRun {
		limit = maxDryDiff
	}
	files, diff, err := describe(ctx, tree, result.Changes, limit)
	if err != nil {
		return Edited{}, err
	}
	return Edited{Branch: branch, Number: number, Base: tip.Base, Parent: tip.Commit, Repo: tip.Repo, Result: result,
		Files: files, Diff: diff, Author: tip.Author, SignOff: project.Pulls.SignOff}, nil
}

// leftAlone is the result's message with the pages that the instruction named for a change of code and that stay as they
// are.
func (e *effect) leftAlone(in instruction, result agent.Result) string {
	pages := slices.DeleteFunc(slices.Clone(in.Follows.Pages), func(page string) bool {
		return slices.ContainsFunc(result.Changes, func(c agent.Change) bool { return c.Path == page })
	})
	judged := result.Outcome == api.OutcomeChanged || result.Outcome == api.OutcomeNothingToDo
	if !judged || len(pages) == 0 {
		return result.Message
	}
	e.deps.Log.Info("left pages unchanged", "job", e.state.id, "project", e.state.project, "pages", pages)
	return strings.TrimPrefix(result.Message+"\n\nLooked at for the change of code, and left as they are: "+
		strings.Join(pages, ", ")+".", "\n\n")
}

// waiting is since when the run that this one takes up has waited; zero if it did not.
func (e *effect) waiting() time.Time {
	if e.state.waiting == 0 {
		return time.Time{}
	}
	return time.UnixMilli(e.state.waiting)
}

// earlier are the job's earlier instructions, with what has become of the pull requests that they went into.
func (e *effect) earlier(tip forge.Tip, over map[string]api.PullState) []agent.Instruction {
	out := slices.Clone(e.state.earlier)
	for i := range out {
		if out[i].Commit == "" {
			continue
		}
		switch at := cmp.Or(out[i].Branch, e.state.branch); {
		case over[at] != "":
			out[i].Pull = over[at]
		case at == tip.Branch && tip.Fork != tip.Commit:
			out[i].Pull = api.PullOpen
		case at == tip.Branch:
			out[i].Pull = api.PullMerged // it went to the base itself
		}
	}
	return out
}

// fork is the tree that the pull request's changes are counted from; nil if the job's branch holds nothing yet.
func (e *effect) fork(project api.Project, tip forge.Tip) func(context.Context) (agent.Tree, error) {
	if tip.Fork == "" || tip.Fork == tip.Commit {
		return nil
	}
	return func(ctx context.Context) (tree agent.Tree, err error) {
		err = e.patiently(ctx, "read the repository", func(ctx context.Context) error {
			tree, err = e.deps.Forge.Tree(ctx, project, tip.Fork)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the repository at %s: %w", tip.Fork, err)
		}
		return tree, nil
	}
}

// base is the tree of the branch that the changes are meant for, as it is now.
func (e *effect) base(ctx context.Context, project api.Project, tip forge.Tip, tree agent.Tree) (agent.Tree, error) {
	if tip.Pull == "" && e.state.commit == "" {
		return tree, nil // the job has no branch yet
	}
	// A branch that is not there stands for the base.
	none := e.state.branchName(max(e.state.number, 1) + maxBranches)
	err := e.patiently(ctx, "look for the base", func(ctx context.Context) (err error) {
		tip, err = e.deps.Forge.TipAfter(ctx, project, none, "")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for the base branch: %w", err)
	}
	err = e.patiently(ctx, "read the repository", func(ctx context.Context) (err error) {
		tree, err = e.deps.Forge.Tree(ctx, project, tip.Commit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the repository at %s: %w", tip.Commit, err)
	}
	return tree, nil
}

// maxBranches is beyond any number of branches that a job comes to have at a time.
const maxBranches = 1_000_000

// keep sends the actor a step to journal, and returns when it has.
func (e *effect) keep(ctx context.Context, step agent.Step) error {
	kept := make(chan struct{})
	e.run.Tell(stepped{attempt: e.run.Attempt, step: step, kept: kept})
	select {
	case <-kept:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish brings exactly what was journaled to the code host.
func (e *effect) publish(ctx context.Context) (forge.Published, error) {
	project, err := e.project(ctx)
	if err != nil {
		return forge.Published{}, err
	}
	p := e.state.publication(project)
	p.Reviewers = e.state.queue[0].Follows.Authors
	var result forge.Published
	err = e.patiently(ctx, "publish", func(ctx context.Context) error {
		result, err = e.deps.Forge.Publish(ctx, p)
		return err
	})
	if err != nil {
		return forge.Published{}, fmt.Errorf("publish to %s: %w", p.Branch, err)
	}
	return result, nil
}

func (e *effect) project(ctx context.Context) (api.Project, error) {
	var p api.Project
	err := e.patiently(ctx, "look up the project", func(ctx context.Context) (err error) {
		p, err = e.deps.Projects.Project(ctx, e.state.project)
		return err
	})
	if errors.Is(err, api.ErrNotFound) {
		return p, &failure{api.HaltMisconfigured, "The project of this job does not exist any more.", err}
	}
	if err != nil {
		return p, fmt.Errorf("look up project %s: %w", e.state.project, err)
	}
	return p, nil
}

// patiently tries something again for as long as the code host or the database says that this may help, with growing
// pauses. The pauses take no slot.
func (e *effect) patiently(ctx context.Context, what string, try func(context.Context) error) error {
	began := time.Now()
	for n := 1; ; n++ {
		tried := time.Now()
		within, span := tracing.Start(ctx, what)
		span.Int("docent.try", int64(n))
		err := try(within)
		span.Done(err)
		who := "the code host"
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, api.ErrUnavailable):
			who = "the database"
		case !errors.Is(err, forge.ErrTemporary):
			return err
		}
		pause := e.deps.Backoff(n)
		if host, ok := errors.AsType[*forge.HostError](err); ok {
			pause = max(pause, host.After) // the host said for how long it wants to be left alone
		}
		if time.Since(began)+pause > e.deps.Patience {
			return err
		}
		e.allowed.Extend(time.Since(tried) + pause) // waiting is no work
		if n == 3 && e.run != nil {
			e.progress.report(e.run, agent.Progress{Text: fmt.Sprintf("Waiting for %s since %s", who,
				began.UTC().Format("2006-01-02 15:04 UTC"))})
		}
		e.deps.Log.WarnContext(ctx, who+" does not answer, trying again", "job", e.state.id, "try", n, "pause", pause, "error", err)
		if err := e.slot.Aside(ctx, func(ctx context.Context) error { return backoff.Sleep(ctx, pause) }); err != nil {
			return err
		}
	}
}

// A reporter hands progress to the actor, one message at a time: what comes while the actor stores the last one is put
// together, so that a talkative run costs no more than the disk allows.
type reporter struct {
	mu      sync.Mutex
	waiting *agent.Progress
	busy    bool
}

func (p *reporter) report(r *persistent.Run, news agent.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news.Todos = append([]api.Todo(nil), news.Todos...) // the editor may go on writing its own
	if p.busy {
		if p.waiting == nil {
			p.waiting = &agent.Progress{}
		}
		merge(p.waiting, news)
		return
	}
	p.busy = true
	r.Tell(progressed{attempt: r.Attempt, Progress: news})
}

// told says that the actor has stored what it was handed.
func (p *reporter) told(r *persistent.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.busy = false
		return
	}
	news := *p.waiting
	p.waiting = nil
	r.Tell(progressed{attempt: r.Attempt, Progress: news})
}

func merge(into *agent.Progress, news agent.Progress) {
	if news.Title != "" {
		into.Title = news.Title
	}
	into.Waiting = news.Waiting
	if len(news.Todos) > 0 {
		into.Todos = news.Todos
	}
	if news.Text != "" && len(into.Text) < maxText {
		into.Text = strings.TrimPrefix(into.Text+"\n"+news.Text, "\n")
	}
}
