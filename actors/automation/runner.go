package automation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/required"
	"docent/internal/task"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

const (
	tick      = 30 * time.Second    // the clock is looked at this often, since it may have been set
	maxTries  = 24                  // of a run that the outside refuses for now: half an hour
	claimLife = 30 * 24 * time.Hour // how long the journal remembers which job a run was given to
)

// pause is how long after a failure a run is tried again.
var pause = backoff.Exponential(time.Second, 2*time.Minute)

// A Runner accepts the runs that are due and carries out those that are pending.
type Runner struct {
	Deps

	mu      sync.Mutex
	refused map[api.ProjectID]api.Delivery

	creating sync.Mutex // while open pull requests are counted and a job is created
}

// New makes a Runner. It does nothing by itself before Wake.
func New(deps Deps) (*Runner, error) {
	if err := required.Fields("automation", deps, "Catalog", "Jobs", "Claims", "Documentation", "Code", "Updates", "IDs",
		"Now", "Log", "Tasks", "Owns"); err != nil {
		return nil, err
	}
	return &Runner{Deps: deps}, nil
}

// Wake has the Runner look at the automations at once, and keep the time from now on.
func (r *Runner) Wake() { r.Tasks.Start(task.Task{Name: "automations", Handle: r.step}) }

// step accepts what is due and begins what is pending. It says how long there is nothing more to do.
func (r *Runner) step(ctx context.Context, _ int) (time.Duration, error) {
	wait, err := r.acceptDue(ctx)
	if err != nil {
		return wait, err
	}
	return wait, r.beginPending(ctx)
}

// acceptDue accepts a run of each automation whose time has come, and says when the next one's comes.
func (r *Runner) acceptDue(ctx context.Context) (time.Duration, error) {
	wait := tick
	if !r.Owns("task/automations") {
		return wait, nil
	}
	list, err := r.Catalog.Automations(ctx, "")
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
			r.Log.Error("an automation's schedule cannot be read", "project", au.Project, "automation", au.ID, "error", err)
			continue
		}
		schedule := func(au *api.Automation) { au.Next = &next }
		switch calls {
		case forNothing:
		case forNextTime:
			err = r.Catalog.ChangeAutomation(ctx, au.ID, schedule)
		case forRun:
			err = r.Accept(ctx, api.AutomationRun{Automation: au.ID, Trigger: api.TriggerSchedule,
				Key: string(au.ID) + " at " + au.Next.UTC().Format(time.RFC3339)}, schedule)
		}
		if err != nil && !errors.Is(err, api.ErrNotFound) && ctx.Err() == nil {
			r.Log.Warn("an automation is waiting for the catalog", "project", au.Project, "automation", au.ID, "error", err)
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

// beginPending begins the runs that the catalog has as accepted, each on the node that runs the automation's last job,
// which it may be a follow-up of. Where a run is carried out by two nodes because the job moves, the journal gives it to
// one job.
func (r *Runner) beginPending(ctx context.Context) error {
	open, err := r.Catalog.OpenRuns(ctx)
	if err != nil {
		return err
	}
	begun := map[api.AutomationID]bool{}
	for _, run := range open {
		if begun[run.Automation] {
			continue
		}
		begun[run.Automation] = true
		au, err := r.Catalog.Automation(ctx, run.Automation)
		switch {
		case errors.Is(err, api.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		place := "task/automation/" + string(au.ID)
		if au.Job != "" {
			place = job.Stream(au.Job)
		}
		r.Tasks.Start(task.Task{Name: "automations/" + string(au.ID), Place: place, Pause: pause,
			Handle: func(ctx context.Context, attempt int) (time.Duration, error) { return r.carryOut(ctx, au.ID, attempt) }})
	}
	return nil
}

// carryOut brings the oldest pending run of an automation to a job. The runs of one go one after the other, since each
// looks at what became of the one before.
func (r *Runner) carryOut(ctx context.Context, id api.AutomationID, attempt int) (time.Duration, error) {
	open, err := r.Catalog.OpenRuns(ctx)
	open = slices.DeleteFunc(open, func(run api.AutomationRun) bool { return run.Automation != id })
	if err != nil || len(open) == 0 {
		return task.Done, err
	}
	au, err := r.Catalog.Automation(ctx, id)
	if errors.Is(err, api.ErrNotFound) {
		return task.Done, nil // it was removed meanwhile
	}
	if err != nil {
		return 0, err
	}
	run, wait, err := r.gather(ctx, au, open)
	if err != nil || wait > 0 {
		return min(wait, tick), err // the clock may be set
	}
	err = background.Guard(func() error { return r.give(ctx, &run) })
	switch {
	case err == nil && run.Status == api.RunAccepted:
		run.Status = api.RunStarted
	case err == nil:
	case ctx.Err() != nil:
		return 0, err // stopped, not failed
	case passing(err) && attempt <= maxTries:
		return 0, fmt.Errorf("run automation %s of project %s: %w", id, run.Project, err)
	default:
		r.Log.Error("an automation's run failed", "project", run.Project, "automation", run.Automation, "error", err)
		run.Status, run.Reason = api.RunFailed, failure(err)
	}
	err = r.Catalog.SaveRun(ctx, run)
	if err == nil && run.Repository != "" && run.Commit != "" && run.Status != api.RunFailed && run.Status != api.RunSkipped && !au.Check {
		err = r.Catalog.ChangeAutomation(ctx, id, func(au *api.Automation) { au.SeenCode = run.Commit })
	}
	if errors.Is(err, api.ErrNotFound) {
		return task.Done, nil // it was removed meanwhile
	} else if err != nil {
		return 0, err
	}
	r.Wake() // the next one may be another node's
	return task.Done, nil
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

// give gives the instruction to a job: the one whose pull request is still open, or else a new one. The journal
// knows the run by its key, so an attempt that may have taken place is found and not repeated.
func (r *Runner) give(ctx context.Context, run *api.AutomationRun) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	au, err := r.Catalog.Automation(ctx, run.Automation)
	if err != nil {
		return fmt.Errorf("find automation %s: %w", run.Automation, err)
	}
	project, err := r.Catalog.Project(ctx, au.Project)
	if err != nil {
		return fmt.Errorf("find project %s: %w", au.Project, err)
	}
	if au.Check {
		return r.check(ctx, project, au, run)
	}
	claim := &journal.Claim{Key: "automation " + run.Key, Digest: sha256.Sum256([]byte(run.Key)),
		Expires: r.Now().Add(claimLife)}
	held, found, err := r.Claims.Claim(claim.Key, r.Now())
	if err != nil {
		return fmt.Errorf("look up run %s: %w", run.Key, err)
	}
	if found {
		alreadyGiven(run, au, held)
		return nil
	}
	text, follows, err := r.instruction(ctx, project, au, *run)
	if errors.Is(err, errNothing) {
		run.Status, run.Reason = api.RunChecked, "no page is concerned by what was pushed: no job was started"
		return nil
	}
	if err != nil {
		return err
	}
	open, err := r.open(ctx, project, au)
	if err != nil {
		return err
	}
	if open {
		claim.Owner, claim.Ref = job.Stream(au.Job), r.IDs.New(api.TurnPrefix, r.Now())
		_, err := r.Jobs.Ask(ctx, au.Job, job.FollowUp{Project: project.ID, ID: claim.Ref, Prompt: text, Claim: claim, Follows: follows})
		if err := outcome(run, au, au.Job, err); !errors.Is(err, api.ErrConflict) {
			return err
		}
		claim.Ref = "" // it was archived just now
	}
	r.creating.Lock() // what another one creates meanwhile counts
	defer r.creating.Unlock()
	most := cmp.Or(project.Pulls.Most, api.DefaultMostPulls)
	switch n, err := r.openPulls(ctx, project, most); {
	case err != nil:
		return err
	case n >= most:
		run.Status, run.Reason = api.RunSkipped, fmt.Sprintf("%d pull requests of the project's automations are open, as many as may be", n)
		return nil
	}
	now := r.Now()
	id := api.JobID(r.IDs.New(api.JobPrefix, now))
	claim.Owner = job.Stream(id)
	_, err = r.Jobs.Ask(ctx, id, job.Create{Project: project, User: api.KeyID(au.ID), Prompt: text, Draft: au.Draft,
		At: now, Claim: claim, Follows: follows})
	if err := outcome(run, au, id, err); err != nil || run.FollowUp {
		return err
	}
	return r.Catalog.ChangeAutomation(ctx, au.ID, func(au *api.Automation) { au.Job = run.Job })
}

// openPulls is how many automations of a project have a job at work or a pull request that is open; it counts no further
// than asked.
func (r *Runner) openPulls(ctx context.Context, p api.Project, most int) (n int, err error) {
	list, err := r.Catalog.Automations(ctx, p.ID)
	for _, other := range list {
		if err != nil || n >= most {
			break
		}
		var open bool
		if open, err = r.open(ctx, p, other); open {
			n++
		}
	}
	return n, err
}

// outcome says which job has a run's instruction, from what the job answered.
func outcome(run *api.AutomationRun, au api.Automation, id api.JobID, err error) error {
	var claimed *journal.ClaimedError
	switch {
	case errors.As(err, &claimed):
		alreadyGiven(run, au, claimed.Claim)
		return nil
	case err != nil:
		return fmt.Errorf("give an instruction to job %s: %w", id, err)
	}
	run.Job, run.FollowUp = id, id == au.Job
	return nil
}

// alreadyGiven notes which job has a run's instruction already.
func alreadyGiven(run *api.AutomationRun, au api.Automation, held journal.Claim) {
	run.Job = api.JobID(strings.TrimPrefix(held.Owner, job.Stream("")))
	run.FollowUp = run.Job == au.Job
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
