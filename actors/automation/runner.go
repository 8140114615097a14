package automation

import (
	"context"
	"crypto/sha256"
	"docent/internal/background"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/internal/backoff"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

const (
	tick      = 30 * time.Second    // the clock is looked at this often, since it may have been set
	maxTries  = 24                  // of a run that the outside refuses for now: half an hour
	claimLife = 30 * 24 * time.Hour // how long the journal remembers which job a run was given to
)

// A Runner accepts the runs that are due and carries out those that are pending.
type Runner struct {
	Deps
	pause func(try int) time.Duration // before a try, from 1

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   background.Work
	wake   chan struct{}

	mu      sync.Mutex
	busy    map[api.AutomationID]bool // automations of which a run is being carried out
	refused map[api.ProjectID]api.Delivery
}

// New makes a Runner. It does nothing by itself before Start.
func New(deps Deps) (*Runner, error) {
	if err := deps.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Runner{Deps: deps, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		pause: backoff.Exponential(time.Second, 2*time.Minute), busy: map[api.AutomationID]bool{}}, nil
}

// Start carries out what is pending, and keeps the time from now on, until Close. It is called at most once.
func (r *Runner) Start() {
	failed := func(err error) { r.Log.Warn("automations wait for the catalogue", "error", err) }
	r.work.Go("actors/automation.Start", func() { backoff.Loop(r.ctx, r.wake, r.pause, failed, r.step) })
}

// Close breaks off what goes on; the next server takes it up.
func (r *Runner) Close() error {
	r.cancel()
	r.work.Wait()
	return nil
}

// Wake has the Runner look at the automations at once.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// step accepts what is due and begins what is pending. It says how long there is nothing more to do.
func (r *Runner) step() (time.Duration, error) {
	wait, err := r.acceptDue()
	if err != nil {
		return wait, err
	}
	return wait, r.beginPending()
}

// acceptDue accepts a run of each automation whose time has come, and says when the next one's comes.
func (r *Runner) acceptDue() (time.Duration, error) {
	wait := tick
	if !r.here("task/automations") {
		return wait, nil
	}
	list, err := r.Catalog.Automations(r.ctx, "")
	if err != nil {
		return wait, err
	}
	now := r.Now()
	for _, au := range list {
		if au.Paused {
			continue
		}
		next, calls, err := due(au, now)
		if err != nil { // it could be read when it was added
			r.Log.Error("an automation's times cannot be read", "project", au.Project, "automation", au.ID, "error", err)
			continue
		}
		schedule := func(au *api.Automation) { au.Next = &next }
		switch calls {
		case forNothing:
		case forNextTime:
			err = r.Catalog.ChangeAutomation(r.ctx, au.ID, schedule)
		case forRun:
			err = r.Accept(r.ctx, api.AutomationRun{Automation: au.ID, Trigger: api.TriggerSchedule,
				Key: string(au.ID) + " at " + au.Next.UTC().Format(time.RFC3339)}, schedule)
		}
		if err != nil && !errors.Is(err, api.ErrNotFound) && r.ctx.Err() == nil {
			r.Log.Warn("an automation waits for the catalogue", "project", au.Project, "automation", au.ID, "error", err)
		}
		if au.Cron != "" {
			wait = min(wait, max(next.Sub(now), time.Millisecond))
		}
	}
	return wait, nil
}

// Accept stores a run, once for its key, and with it a change of its automation. What is stored is carried out by this
// server or by the next.
func (r *Runner) Accept(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) error {
	run.At = r.Now().UTC()
	run, begun, err := r.Catalog.BeginRun(ctx, run, change)
	if err != nil || !begun {
		return err
	}
	r.Log.Info("automation", "project", run.Project, "automation", run.Automation, "trigger", run.Trigger,
		"status", run.Status, "reason", run.Reason)
	r.Wake()
	return nil
}

// beginPending begins the runs that the catalogue has as accepted: at most one of each automation at a time, since
// each looks at what became of the one before.
func (r *Runner) beginPending() error {
	open, err := r.Catalog.OpenRuns(r.ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range open { // oldest first
		if r.busy[run.Automation] {
			continue
		}
		if mine, err := r.mine(run); err != nil {
			return err
		} else if !mine {
			continue
		}
		r.busy[run.Automation] = true
		r.work.Go("actors/automation.beginPending", func() {
			stored := r.carryOut(run)
			r.mu.Lock()
			delete(r.busy, run.Automation)
			r.mu.Unlock()
			if stored {
				r.Wake() // the automation's next one
			}
		})
	}
	return nil
}

// mine is whether this node carries out a run: the one that runs the automation's last job, which it may be a follow-up
// of. Where a run is carried out by two nodes because the job moves, the journal gives it to one job.
func (r *Runner) mine(run api.AutomationRun) (bool, error) {
	if r.Here == nil {
		return true, nil
	}
	au, err := r.Catalog.Automation(r.ctx, run.Automation)
	switch {
	case errors.Is(err, api.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case au.Job != "":
		return r.Here(job.Stream(au.Job)), nil
	}
	return r.Here("task/automation/" + string(au.ID)), nil
}

// carryOut brings a run to a job, unless the server stops before. It says whether the catalogue has what became of it.
func (r *Runner) carryOut(run api.AutomationRun) (stored bool) {
	for tries := 0; r.ctx.Err() == nil; tries++ {
		if mine, err := r.mine(run); err == nil && !mine {
			return false // another node does
		}
		var started api.AutomationRun
		err := background.Guard(func() (err error) {
			started, err = r.attempt(run)
			return err
		})
		switch {
		case err == nil:
			started.Status = api.RunStarted
			return r.save(started)
		case r.ctx.Err() != nil:
			return false // stopped, not failed
		case passing(err) && tries < maxTries:
			r.Log.Warn("an automation's run failed for now and is tried again", "project", run.Project, "automation",
				run.Automation, "try", tries+1,
				"error", err)
			_ = backoff.Sleep(r.ctx, r.pause(tries+1))
		default:
			r.Log.Error("an automation's run failed", "project", run.Project, "automation", run.Automation, "error", err)
			run.Status, run.Reason = api.RunFailed, failure(err)
			return r.save(run)
		}
	}
	return false
}

// save stores how a run went, as often as it takes.
func (r *Runner) save(run api.AutomationRun) (stored bool) {
	for tries := 0; r.ctx.Err() == nil; tries++ {
		err := r.Catalog.SaveRun(r.ctx, run)
		if err == nil || errors.Is(err, api.ErrNotFound) { // the automation was removed meanwhile
			return err == nil
		}
		r.Log.Warn("an automation waits for the catalogue", "project", run.Project, "automation", run.Automation, "error",
			err)
		_ = backoff.Sleep(r.ctx, r.pause(tries+1))
	}
	return false
}

// passing reports whether trying again later may help, or another node does so.
func passing(err error) bool {
	if errors.As(err, new(*cluster.ElsewhereError)) { // the job has moved there meanwhile, and the run with it
		return true
	}
	for _, kind := range []error{forge.ErrTemporary, api.ErrUnavailable, api.ErrOverloaded, api.ErrShuttingDown,
		context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// A runError is a run's failure in words for the operator.
type runError struct {
	reason string
	err    error
}

func (e *runError) Error() string { return e.reason }
func (e *runError) Unwrap() error { return e.err }

func failure(err error) string {
	var own *runError
	var state *api.StateError
	var said *forge.HostError
	switch {
	case errors.As(err, &own):
		return own.reason
	case errors.As(err, &said):
		return said.Say
	case errors.Is(err, forge.ErrMisconfigured):
		return forge.ErrMisconfigured.Error()
	case errors.Is(err, forge.ErrTemporary):
		return forge.ErrTemporary.Error()
	case errors.As(err, &state):
		return state.Reason
	}
	return "the server's log has the reason"
}

// attempt gives the instruction to a job: the one whose pull request is still open, or else a new one. The journal
// knows the run by its key, so an attempt that may have taken place is found and not repeated.
func (r *Runner) attempt(run api.AutomationRun) (api.AutomationRun, error) {
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
	defer cancel()
	au, err := r.Catalog.Automation(ctx, run.Automation)
	if err != nil {
		return run, fmt.Errorf("find automation %s: %w", run.Automation, err)
	}
	project, err := r.Catalog.Project(ctx, au.Project)
	if err != nil {
		return run, fmt.Errorf("find project %s: %w", au.Project, err)
	}
	claim := &journal.Claim{Key: "automation " + run.Key, Digest: sha256.Sum256([]byte(run.Key)),
		Expires: r.Now().Add(claimLife)}
	held, found, err := r.Claims.Claim(claim.Key, r.Now())
	if err != nil {
		return run, fmt.Errorf("look up run %s: %w", run.Key, err)
	}
	if found {
		return alreadyGiven(run, au, held), nil
	}
	text, err := r.instruction(ctx, project, au, run)
	if err != nil {
		return run, err
	}
	open, err := r.open(ctx, project, au)
	if err != nil {
		return run, err
	}
	if open {
		claim.Owner, claim.Ref = job.Stream(au.Job), r.IDs.New(api.TurnPrefix, r.Now())
		_, err := r.Jobs.Ask(ctx, au.Job, job.FollowUp{Project: project.ID, ID: claim.Ref, Prompt: text, Claim: claim})
		if done, err := outcome(run, au, au.Job, err); !errors.Is(err, api.ErrConflict) {
			return done, err
		}
		claim.Ref = "" // it was archived just now
	}
	now := r.Now()
	id := api.JobID(r.IDs.New(api.JobPrefix, now))
	claim.Owner = job.Stream(id)
	_, err = r.Jobs.Ask(ctx, id, job.Create{Project: project, User: api.KeyID(au.ID), Prompt: text, Draft: au.Draft,
		At: now, Claim: claim})
	return outcome(run, au, id, err)
}

// outcome says which job has a run's instruction, from what the job answered.
func outcome(run api.AutomationRun, au api.Automation, id api.JobID, err error) (api.AutomationRun, error) {
	var claimed *journal.ClaimedError
	switch {
	case errors.As(err, &claimed):
		return alreadyGiven(run, au, claimed.Claim), nil
	case err != nil:
		return run, fmt.Errorf("give an instruction to job %s: %w", id, err)
	}
	run.Job, run.FollowUp = id, id == au.Job
	return run, nil
}

// alreadyGiven is a run whose instruction a job already has.
func alreadyGiven(run api.AutomationRun, au api.Automation, held journal.Claim) api.AutomationRun {
	run.Job = api.JobID(strings.TrimPrefix(held.Owner, job.Stream("")))
	run.FollowUp = run.Job == au.Job
	return run
}

// open reports whether the automation's last job takes a follow-up: it is at work, or its pull request is open.
func (r *Runner) open(ctx context.Context, p api.Project, au api.Automation) (bool, error) {
	if au.Job == "" {
		return false, nil
	}
	reply, err := r.Jobs.Ask(ctx, au.Job, job.Read{Project: p.ID})
	switch {
	case errors.Is(err, api.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at job %s: %w", au.Job, err)
	case reply.Row.Archived:
		return false, nil
	case reply.Row.Job.Status == api.JobActive:
		return true, nil
	case reply.Row.Job.PRLink == nil:
		return false, nil
	}
	state, err := r.Documentation.PullState(ctx, p, reply.Row.Branch)
	if err != nil {
		return false, fmt.Errorf("look at the pull request of job %s: %w", au.Job, err)
	}
	return state == api.PullOpen, nil
}
