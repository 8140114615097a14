package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones of automations, where the system has none
	"unicode/utf8"

	"github.com/adhocore/gronx"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/persistence"
)

const (
	automationTick  = 30 * time.Second    // the clock is looked at this often, since it may have been set
	automationTries = 24                  // times that a run is tried which the outside refuses for now: half an hour
	automationLife  = 30 * 24 * time.Hour // how long the journal remembers what a run's job is
	maxPromptFile   = 100_000             // characters, as of any instruction
)

// automations start jobs by themselves: at times and on pushes. That a run is due is stored before it is carried out and
// the automation's next time with it, under a key that stands for the time or the commit: so a run is carried out once,
// whatever dies in between, however the clock is set, and however often a push is told. Times that were missed while no
// server ran are made up for by one run.
type automations struct {
	store   automationStore
	jobs    automationJobs
	claims  func(key string, now time.Time) (persistence.Claim, bool, error)
	docs    automationDocs
	updates func(context.Context, api.ProjectID) (api.UpdateID, error)
	now     func() time.Time
	ids     *api.IDs
	pause   func(tries int) time.Duration
	log     *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}

	mu      sync.Mutex
	closed  bool
	running map[string]bool // keys of runs in hand
	turns   map[api.AutomationID]*sync.Mutex
}

type automationStore interface {
	Project(ctx context.Context, id api.ProjectID) (api.Project, error)
	Automation(ctx context.Context, id api.AutomationID) (api.Automation, error)
	Automations(ctx context.Context, project api.ProjectID) ([]api.Automation, error)
	ChangeAutomation(ctx context.Context, id api.AutomationID, change func(*api.Automation)) error
	BeginRun(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) (api.AutomationRun, bool, error)
	SaveRun(ctx context.Context, run api.AutomationRun) error
	OpenRuns(ctx context.Context) ([]api.AutomationRun, error)
}

type automationJobs interface {
	Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error)
}

// automationDocs is the documentation's repository as automations need it.
type automationDocs interface {
	// file reads a file as it is now on the documentation's branch.
	file(ctx context.Context, p api.Project, path string) ([]byte, error)
	// pull is the state of a branch's pull request; empty where there is none.
	pull(ctx context.Context, p api.Project, branch string) (api.PullState, error)
}

func newAutomations(store automationStore, log *slog.Logger) *automations {
	ctx, cancel := context.WithCancel(context.Background())
	return &automations{store: store, log: log, now: clock, ids: new(api.IDs), ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		pause:   func(tries int) time.Duration { return min(time.Second<<min(tries, 10), 2*time.Minute) },
		running: map[string]bool{}, turns: map[api.AutomationID]*sync.Mutex{}}
}

// start takes up what was accepted and not carried out, and keeps the time from now on.
func (a *automations) start() {
	a.run(func() {
		a.resume()
		for {
			wait := a.step()
			timer := time.NewTimer(wait)
			select {
			case <-a.ctx.Done():
				timer.Stop()
				return
			case <-a.wake:
				timer.Stop()
			case <-timer.C:
			}
		}
	})
}

// Close breaks off what goes on; the next server takes it up.
func (a *automations) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.work.Wait()
	return nil
}

// changed has the loop look at the automations at once.
func (a *automations) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *automations) run(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.work.Go(f)
	}
}

func (a *automations) resume() {
	for tries := 0; a.ctx.Err() == nil; tries++ {
		open, err := a.store.OpenRuns(a.ctx)
		if err == nil {
			for _, r := range open {
				a.begin(r)
			}
			return
		}
		a.log.Warn("automations wait for the catalogue", "error", err)
		a.rest(tries)
	}
}

func (a *automations) rest(tries int) {
	timer := time.NewTimer(a.pause(tries))
	defer timer.Stop()
	select {
	case <-a.ctx.Done():
	case <-timer.C:
	}
}

// step begins what is due, and says how long there is nothing to do.
func (a *automations) step() time.Duration {
	wait := automationTick
	list, err := a.store.Automations(a.ctx, "")
	if err != nil {
		if a.ctx.Err() == nil {
			a.log.Warn("automations wait for the catalogue", "error", err)
		}
		return wait
	}
	now := a.now()
	for _, au := range list {
		if au.Cron == "" {
			continue
		}
		next, err := nextTime(au, now)
		if err != nil { // it could be read when it was added
			a.log.Error("an automation's times cannot be read", "project", au.Project, "automation", au.ID, "error", err)
			continue
		}
		due := au.Next
		switch {
		case due == nil || due.After(next):
			// It is new, or the clock was set back: what lies between was due once already, or will be in its time.
			err = a.store.ChangeAutomation(a.ctx, au.ID, func(au *api.Automation) { au.Next = &next })
		case !due.After(now):
			_, err = a.fire(a.ctx, api.AutomationRun{Automation: au.ID, Trigger: api.TriggerSchedule,
				Key: string(au.ID) + " at " + due.UTC().Format(time.RFC3339)}, func(au *api.Automation) { au.Next = &next })
		}
		if err != nil && !errors.Is(err, api.ErrNotFound) && a.ctx.Err() == nil {
			a.log.Warn("an automation waits for the catalogue", "project", au.Project, "automation", au.ID, "error", err)
		}
		wait = min(wait, max(next.Sub(now), time.Millisecond))
	}
	return wait
}

// nextTime is when an automation's cron line is due next, after a time.
func nextTime(au api.Automation, after time.Time) (time.Time, error) {
	zone, err := time.LoadLocation(au.TimeZone)
	if err != nil {
		return time.Time{}, &api.InvalidError{Problems: []api.Problem{{Field: "timeZone", Message: "is not a time zone, such as Europe/Berlin"}}}
	}
	bad := func(message string) error {
		return &api.InvalidError{Problems: []api.Problem{{Field: "cron", Message: message}}}
	}
	if !strings.HasPrefix(au.Cron, "@") && len(strings.Fields(au.Cron)) != 5 || !gronx.IsValid(au.Cron) {
		return time.Time{}, bad(`must have five fields (minute, hour, day of the month, month, day of the week), such as "0 6 * * 1", or be one such as @daily`)
	}
	next, err := gronx.NextTickAfter(au.Cron, after.In(zone), false)
	if err != nil || !next.After(after) {
		return time.Time{}, bad("names no time that will come")
	}
	return next.UTC(), nil
}

// fire accepts a run, and begins it. Begun is false where there was one for its key already.
func (a *automations) fire(ctx context.Context, run api.AutomationRun, change func(*api.Automation)) (bool, error) {
	run.At = a.now().UTC()
	run, begun, err := a.store.BeginRun(ctx, run, change)
	if err != nil || !begun {
		return false, err
	}
	a.log.Info("automation", "project", run.Project, "automation", run.Automation, "trigger", run.Trigger, "status", run.Status, "reason", run.Reason)
	if run.Status == api.RunAccepted {
		a.begin(run)
	}
	return true, nil
}

// begin carries a run out in the background. The runs of an automation come one after the other: each looks at what became
// of the one before.
func (a *automations) begin(run api.AutomationRun) {
	if a.jobs == nil {
		return // an operator's command without a server: the next one takes it up
	}
	a.mu.Lock()
	twice := a.running[run.Key]
	a.running[run.Key] = true
	turn := a.turns[run.Automation]
	if turn == nil {
		turn = new(sync.Mutex)
		a.turns[run.Automation] = turn
	}
	a.mu.Unlock()
	if twice {
		return
	}
	a.run(func() {
		turn.Lock()
		defer turn.Unlock()
		a.carryOut(run)
		a.mu.Lock()
		delete(a.running, run.Key)
		a.mu.Unlock()
	})
}

// carryOut brings a run to a job, unless the server stops before or the automation is removed.
func (a *automations) carryOut(run api.AutomationRun) {
	for tries := 0; a.ctx.Err() == nil; tries++ {
		var started api.AutomationRun
		err := api.Guard(func() (err error) {
			started, err = a.attempt(run)
			return err
		})
		switch {
		case err == nil:
			started.Status = api.RunStarted
			a.save(started)
			return
		case a.ctx.Err() != nil:
			return // stopped, not failed
		case passing(err) && tries < automationTries:
			a.log.Warn("an automation tries again", "project", run.Project, "automation", run.Automation, "try", tries+1, "error", err)
			a.rest(tries)
		default:
			a.log.Error("an automation's run failed", "project", run.Project, "automation", run.Automation, "error", err)
			run.Status, run.Reason = api.RunFailed, runFailure(err)
			a.save(run)
			return
		}
	}
}

// passing reports whether trying again later may help.
func passing(err error) bool {
	for _, kind := range []error{forge.ErrTemporary, api.ErrUnavailable, api.ErrOverloaded, api.ErrShuttingDown, context.DeadlineExceeded} {
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

func runFailure(err error) string {
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

// save stores how a run went, as often as it takes.
func (a *automations) save(run api.AutomationRun) {
	for tries := 0; a.ctx.Err() == nil; tries++ {
		err := a.store.SaveRun(a.ctx, run)
		if err == nil || errors.Is(err, api.ErrNotFound) { // removed meanwhile
			return
		}
		a.log.Warn("an automation waits for the catalogue", "project", run.Project, "automation", run.Automation, "error", err)
		a.rest(tries)
	}
}

// attempt gives the instruction to a job: the one whose pull request is open still, or else a new one. The journal knows the
// run by its key, so an attempt that may have taken place is found and not repeated.
func (a *automations) attempt(run api.AutomationRun) (api.AutomationRun, error) {
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Minute)
	defer cancel()
	au, err := a.store.Automation(ctx, run.Automation)
	if err != nil {
		return run, fmt.Errorf("find automation %s: %w", run.Automation, err)
	}
	project, err := a.store.Project(ctx, au.Project)
	if err != nil {
		return run, fmt.Errorf("find project %s: %w", au.Project, err)
	}
	claim := &persistence.Claim{Key: "automation " + run.Key, Digest: sha256.Sum256([]byte(run.Key)), Expires: a.now().Add(automationLife)}
	held, found, err := a.claims(claim.Key, a.now())
	if err != nil {
		return run, fmt.Errorf("look up run %s: %w", run.Key, err)
	}
	if found {
		return taken(run, au, held), nil
	}
	text, err := a.instruction(ctx, project, au, run)
	if err != nil {
		return run, err
	}
	open, err := a.open(ctx, project, au)
	if err != nil {
		return run, err
	}
	if open {
		claim.Owner, claim.Ref = job.Stream(au.Job), a.ids.New(api.TurnPrefix, a.now())
		_, err := a.jobs.Ask(ctx, au.Job, job.FollowUp{Project: project.ID, ID: claim.Ref, Prompt: text, Claim: claim})
		if done, err := outcome(run, au, au.Job, err); !errors.Is(err, api.ErrConflict) {
			return done, err
		}
		claim.Ref = "" // it was archived just now
	}
	now := a.now()
	id := api.JobID(a.ids.New(api.JobPrefix, now))
	claim.Owner = job.Stream(id)
	_, err = a.jobs.Ask(ctx, id, job.Create{Project: project, User: api.KeyID(au.ID), Prompt: text, Draft: au.Draft, At: now, Claim: claim})
	return outcome(run, au, id, err)
}

// outcome says which job has a run's instruction after it was given.
func outcome(run api.AutomationRun, au api.Automation, id api.JobID, err error) (api.AutomationRun, error) {
	var claimed *persistence.ClaimedError
	switch {
	case errors.As(err, &claimed):
		return taken(run, au, claimed.Claim), nil
	case err != nil:
		return run, fmt.Errorf("give an instruction to job %s: %w", id, err)
	}
	run.Job, run.FollowUp = id, id == au.Job
	return run, nil
}

// taken is a run whose instruction a job has already.
func taken(run api.AutomationRun, au api.Automation, held persistence.Claim) api.AutomationRun {
	run.Job = api.JobID(strings.TrimPrefix(held.Owner, job.Stream("")))
	run.FollowUp = run.Job == au.Job
	return run
}

// instruction is what the prompt file says. Three words in it stand for what the run is about.
func (a *automations) instruction(ctx context.Context, p api.Project, au api.Automation, run api.AutomationRun) (string, error) {
	data, err := a.docs.file(ctx, p, au.Prompt)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &runError{fmt.Sprintf("the prompt file %q is not in the repository", au.Prompt), err}
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", au.Prompt, err)
	}
	return promptText(au.Prompt, data, strings.NewReplacer("{{commit}}", run.Commit, "{{repository}}", run.Repository, "{{date}}", run.At.UTC().Format(time.DateOnly)))
}

// promptText checks a prompt file and fills it in.
func promptText(name string, data []byte, fill *strings.Replacer) (string, error) {
	text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	switch {
	case text == "":
		return "", &runError{fmt.Sprintf("the prompt file %q is empty", name), nil}
	case !utf8.ValidString(text), strings.ContainsRune(text, 0):
		return "", &runError{fmt.Sprintf("the prompt file %q is no text", name), nil}
	}
	text = fill.Replace(text)
	if utf8.RuneCountInString(text) > maxPromptFile {
		return "", &runError{fmt.Sprintf("the prompt file %q has more than %d characters", name, maxPromptFile), nil}
	}
	return text, nil
}

// open reports whether the automation's last job takes what comes now: it is at work, or its pull request is open.
func (a *automations) open(ctx context.Context, p api.Project, au api.Automation) (bool, error) {
	if au.Job == "" {
		return false, nil
	}
	reply, err := a.jobs.Ask(ctx, au.Job, job.Read{Project: p.ID})
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
	state, err := a.docs.pull(ctx, p, reply.Row.Branch)
	if err != nil {
		return false, fmt.Errorf("look at the pull request of job %s: %w", au.Job, err)
	}
	return state == api.PullOpen, nil
}

// docsAt tells that the documentation of a project stands at a commit. It may be told again, and of none that lie between.
func (a *automations) docsAt(ctx context.Context, project api.ProjectID, commit string) {
	list, err := a.store.Automations(ctx, project)
	for _, au := range list {
		if !au.OnPush || au.Seen == commit || err != nil {
			continue
		}
		see := func(au *api.Automation) { au.Seen = commit }
		if au.Seen == "" {
			err = a.store.ChangeAutomation(ctx, au.ID, see)
			continue
		}
		_, err = a.fire(ctx, api.AutomationRun{Automation: au.ID, Trigger: api.TriggerPush, Commit: commit, Key: string(au.ID) + " push " + commit}, see)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("an automation did not hear of a push, and will with the next look at the documentation", "project", project, "error", err)
	}
}

// Push takes in what a code host's webhook says. The documentation is read anew where it may be meant; the update's id says
// how that goes. Automations that wait for the repository run.
func (a *automations) Push(ctx context.Context, project api.ProjectID, push api.Push) (api.UpdateID, error) {
	p, err := a.store.Project(ctx, project)
	if err != nil {
		return "", err
	}
	list, err := a.store.Automations(ctx, project)
	if err != nil {
		return "", err
	}
	for _, au := range list {
		if au.Repository == "" || !strings.EqualFold(au.Repository, push.Repository) || au.Branch != push.Branch && (au.Branch != "" || !push.Default) {
			continue
		}
		run := api.AutomationRun{Automation: au.ID, Trigger: api.TriggerPush, Repository: push.Repository, Commit: push.Commit,
			Key: string(au.ID) + " push " + strings.ToLower(push.Repository) + " " + push.Commit}
		if _, err := a.fire(ctx, run, func(*api.Automation) {}); err != nil && !errors.Is(err, api.ErrNotFound) {
			return "", err
		}
	}
	if p.Repository != "" && !strings.EqualFold(p.Repository, push.Repository) || p.Branch != push.Branch && (p.Branch != "" || !push.Default) {
		return "", nil
	}
	return a.updates(ctx, project)
}

// Secret is what the project's code host signs its pushes with; empty where the project takes none.
func (a *automations) Secret(ctx context.Context, project api.ProjectID) (string, error) {
	p, err := a.store.Project(ctx, project)
	if err != nil || p.WebhookEnv == "" {
		return "", err
	}
	secret := strings.TrimSpace(os.Getenv(p.WebhookEnv))
	if secret == "" {
		a.log.Warn("the environment variable that is to hold a webhook's secret is empty", "project", project, "variable", p.WebhookEnv)
	}
	return secret, nil
}

// repositoryDocs are the documentation's repositories of the stores.
type repositoryDocs struct{ *stores }

func (d repositoryDocs) file(ctx context.Context, p api.Project, path string) ([]byte, error) {
	tip, _, err := d.hub.Sync(ctx, p, func(string) {})
	if err != nil {
		return nil, err
	}
	tree, err := d.hub.Tree(ctx, p, tip.Commit)
	if err != nil {
		return nil, err
	}
	return tree.Read(ctx, path)
}

func (d repositoryDocs) pull(ctx context.Context, p api.Project, branch string) (api.PullState, error) {
	tip, err := d.hub.Tip(ctx, p, branch)
	return tip.Pull, err
}
