package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"docent/actors/persistent"
	"docent/agent"
	"docent/api"
	"docent/forge"
	"docent/internal/brief"
)

// What an instruction may cost before it is given up.
const (
	maxInterrupted = 8   // runs that ended with the process: an instruction that kills it must not do so forever
	maxPanicked    = 3   // runs that failed in the program
	maxStale       = 5   // times that the branch moved between edit and publication
	maxWaiting     = 100 // instructions that wait
	maxEarlier     = 50  // earlier instructions that the agent gets
	maxPulls       = 50  // pull requests whose states are remembered
	maxText        = 4000
	titleLength    = 80
)

type phase uint8

const (
	idle phase = iota
	editing
	publishing
)

func (p phase) String() string { return [...]string{"idle", "editing", "publishing"}[p] }

// An instruction is a prompt that waits or is worked on.
type instruction struct {
	ID     string    `cbor:"1,keyasint"`
	Prompt string    `cbor:"2,keyasint"`
	At     time.Time `cbor:"3,keyasint"`
	Traced string    `cbor:"4,keyasint,omitempty"`

	Follows Follows `cbor:"5,keyasint,omitzero"`
}

// oldest is when the oldest instruction was given that has not ended; zero if none is left.
func (s *state) oldest() time.Time {
	if len(s.queue) == 0 {
		return time.Time{}
	}
	return s.queue[0].At
}

// A state is all that is known of a job. It is a value: apply returns a new one and leaves the old one as it was.
type state struct {
	id      api.JobID
	seq     uint64 // of the last event applied
	created bool
	project api.ProjectID
	user    api.KeyID
	source  api.JobSource
	model   string // as users see it: the one that will work, and then the one that worked
	asked   string // for by the creator, or the project's then; a name of the configuration
	draft   bool
	dryRun  bool   // nothing is published
	wish    string // branch that the caller asked for

	phase   phase
	attempt int           // of the work in hand; results of earlier ones are ignored
	queue   []instruction // the first is in hand while the phase is not idle
	seen    []string      // ids of all instructions
	edited  Edited        // what is to be published, in phase publishing
	steps   []agent.Step  // of the edit in hand with a language model, in its last round
	spent   agent.Spent   // on language models by earlier instructions
	// How often the instruction in hand broke off.
	interrupted, panicked, stale int
	left                         int   // how often of these in good order
	waiting                      int64 // since when it waits for a model, in milliseconds; 0 if it does not

	status    api.JobStatus
	halt      api.HaltReason
	title     string
	message   string
	outcome   api.Outcome // of the last instruction; empty while one is worked on, and if it failed
	todos     []api.Todo
	link      string // of the pull request
	pulls     []pull // that the job opened, oldest first
	records   []recorded
	branch    string // where the job's changes are, or would go
	joined    string // the branch of another job's pull request, which changed the same: this job goes on there
	number    int    // which of the job's branches that is
	commit    string // that the job published last
	earlier   []agent.Instruction
	log       []Entry
	logBytes  int    // size of the entries
	dropped   uint64 // the last event whose entry is no longer kept
	createdAt time.Time
	updatedAt time.Time
	archived  time.Time
}

// work is what the state calls for now.
type work struct {
	attempt int
	phase   phase
}

// pending tells which work the state calls for. It is asked after every event and once after recovery, so work that was
// lost in a crash is found again by looking at the state.
func (s state) pending() (work, bool) {
	return work{s.attempt, s.phase}, s.phase != idle
}

// Results of effects. They never leave this package.
type (
	begun       = persistent.Begun
	runLeft     = persistent.RunLeft
	runPanicked = persistent.RunPanicked
	// progressed shows how far a run is.
	progressed struct {
		attempt int
		agent.Progress
	}
	// stepped asks to keep a step of an edit.
	stepped struct {
		attempt int
		step    agent.Step
		kept    chan<- struct{} // closed when it is on disk
	}
	// editDone is the outcome of an edit: edited is complete but for its time.
	editDone struct {
		attempt int
		edited  Edited
		err     error
	}
	// drafted is what an edit comes to while it goes on.
	drafted struct {
		attempt int
		edits   Edits
	}
	publishDone struct {
		attempt int
		result  forge.Published
		err     error
	}
)

// A failure is an error whose words a user may read.
type failure struct {
	reason  api.HaltReason
	message string
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// decide tells which facts follow from a message, or why none may. No events and no error: nothing changes.
func (s state) decide(msg any, now time.Time) ([]Event, error) {
	if now.Before(s.updatedAt) {
		now = s.updatedAt // the clock was set back; a job's time is not
	}
	switch msg := msg.(type) {
	case Create:
		return s.create(msg, now)
	case FollowUp:
		return s.followUp(msg, now)
	case Read:
		return nil, s.known(msg.Project)
	case Watch:
		return nil, s.known(msg.Project)
	case Archive:
		return s.archive(msg, now)
	case Cancel:
		events, err := s.cancel(msg, now)
		return s.ending(events), err
	case PullIs:
		return s.pullIs(msg, now)
	case Note:
		if err := s.known(msg.Project); err != nil || s.message == lastLine(msg.Text) {
			return nil, err
		}
		return []Event{Progressed{Text: msg.Text, At: now}}, nil
	}
	events, err := s.decideResult(msg, now)
	return s.ending(events), err
}

// ending makes the events that end an instruction say which.
func (s state) ending(events []Event) []Event {
	link := s.link
	for i, ev := range events {
		switch ev := ev.(type) {
		case Published:
			link = ev.Result.Link
		case Finished:
			ev.Ended = Ended{Instruction: s.queue[0].ID, Link: link, Waiting: len(s.queue) - 1}
			events[i] = ev
		case Failed:
			ev.Ended = Ended{Instruction: s.queue[0].ID, Link: link}
			events[i] = ev
		}
	}
	return events
}

// decideResult tells which facts follow from what a run reports. Runs of earlier work are not listened to.
func (s state) decideResult(msg any, now time.Time) ([]Event, error) {
	switch msg := msg.(type) {
	case editDone:
		if s.current(msg.attempt) {
			return s.editDone(msg, now)
		}
	case publishDone:
		if s.current(msg.attempt) {
			return s.publishDone(msg, now)
		}
	case begun:
		if s.current(msg.Attempt) {
			return s.broken(persistent.Interrupted, s.interrupted+1-s.left >= maxInterrupted, now), nil
		}
	case runLeft:
		if s.current(msg.Attempt) {
			return []Event{Retried{Reason: persistent.Left, At: now}}, nil
		}
	case runPanicked:
		if s.current(msg.Attempt) {
			return s.broken(persistent.Panicked, s.panicked+1 >= maxPanicked, now), nil
		}
	case progressed:
		if s.current(msg.attempt) && s.phase == editing {
			return s.progressed(msg, now), nil
		}
	case stepped:
		if s.current(msg.attempt) && s.phase == editing && s.follows(msg.step) {
			return []Event{Stepped{Step: msg.step, At: now}}, nil
		}
	case drafted: // shown, and not kept
	default:
		return nil, fmt.Errorf("a job does not know %T", msg)
	}
	return nil, nil
}

func (s state) archive(msg Archive, now time.Time) ([]Event, error) {
	if err := s.known(msg.Project); err != nil || !s.archived.IsZero() {
		return nil, err
	}
	return []Event{Archived{At: now}}, nil
}

// A pull is a pull request that the job opened, with its state as far as the job has heard.
type pull struct {
	Branch string        `cbor:"1,keyasint"`
	Link   string        `cbor:"2,keyasint"`
	State  api.PullState `cbor:"3,keyasint"`
}

// pullOf is the index of a branch's pull request; negative if there is none.
func (s state) pullOf(branch string) int {
	return slices.IndexFunc(s.pulls, func(p pull) bool { return p.Branch == branch })
}

func (s state) pullIs(cmd PullIs, now time.Time) ([]Event, error) {
	if err := s.known(cmd.Project); err != nil {
		return nil, err
	}
	switch cmd.State {
	case api.PullOpen, api.PullMerged, api.PullClosed:
	default:
		return nil, &api.InvalidError{Problems: []api.Problem{{Field: "state", Message: "must be open, merged or closed"}}}
	}
	i := len(s.pulls) - 1
	if cmd.Branch != "" {
		i = s.pullOf(cmd.Branch)
	}
	if i < 0 && s.phase == publishing && s.edited.Branch == cmd.Branch {
		return nil, &api.BusyError{Kind: api.ErrUnavailable, RetryAfter: time.Second} // the host was faster than the job
	}
	if i < 0 {
		return nil, &api.StateError{Kind: api.ErrNotFound,
			Reason: fmt.Sprintf("this job has opened no pull request from the branch %q", cmd.Branch)}
	}
	if p := s.pulls[i]; p.State != cmd.State && p.State != api.PullMerged {
		return []Event{PullChanged{Branch: p.Branch, Link: p.Link, State: cmd.State, At: now}}, nil
	}
	return nil, nil
}

// known refuses those of another project, as if there were no such job.
func (s state) known(project api.ProjectID) error {
	if !s.created || s.project != project {
		return api.ErrNotFound
	}
	return nil
}

func (s state) cancel(cmd Cancel, now time.Time) ([]Event, error) {
	if err := s.known(cmd.Project); err != nil {
		return nil, err
	}
	if s.phase != idle {
		return []Event{Failed{Reason: api.HaltInterrupted, Message: "cancelled", At: now}}, nil
	}
	if s.halt == api.HaltInterrupted {
		return nil, nil // a repeat
	}
	return nil, &api.StateError{Kind: api.ErrConflict,
		Reason: fmt.Sprintf("this job is not active any more, it has %s: there is nothing to cancel", s.status)}
}

// broken says what follows from a run that broke off: the work is taken up once more, or it was the last time.
func (s state) broken(reason persistent.RetryReason, last bool, now time.Time) []Event {
	switch {
	case !last:
		return []Event{Retried{Reason: reason, At: now}}
	case reason == persistent.Panicked:
		return []Event{Failed{Reason: api.HaltError, At: now,
			Message: "The agent failed on this instruction because of an internal error. The service's log has the details."}}
	}
	return []Event{Failed{Reason: api.HaltError, At: now, Message: fmt.Sprintf(
		"The work on this instruction broke off %d times without a result, so it was given up.", maxInterrupted)}}
}

func (s state) progressed(msg progressed, now time.Time) []Event {
	ev := Progressed{Title: clip(brief.Line(msg.Title), titleLength), Todos: msg.Todos, Text: clip(msg.Text, maxText),
		At: now}
	if !msg.Waiting.IsZero() {
		ev.Waiting = msg.Waiting.UnixMilli()
	}
	if ev.Title == "" && ev.Text == "" && len(ev.Todos) == 0 {
		return nil
	}
	return []Event{ev}
}

// current reports whether a result is of the work in hand.
func (s state) current(attempt int) bool { return s.phase != idle && attempt == s.attempt }

// follows reports whether a step comes next: one that came before, or that leaves one out, does not.
func (s state) follows(step agent.Step) bool {
	if len(s.steps) == 0 {
		return step.Number == 1
	}
	last := s.steps[len(s.steps)-1]
	if step.Round == last.Round {
		return step.Number == last.Number+1 && step.Commit == last.Commit
	}
	return step.Round == last.Round+1 && step.Number == 1
}

func (s state) create(cmd Create, now time.Time) ([]Event, error) {
	if s.created {
		if s.project != cmd.Project.ID {
			return nil, api.ErrNotFound
		}
		return nil, nil
	}
	if err := cmd.Project.MayBeEdited(); err != nil {
		return nil, err
	}
	at := now // neighbors in a listing, which is in the order of ids, are in the order of these times as well
	if !cmd.At.IsZero() && cmd.At.Before(now) && now.Sub(cmd.At) < time.Minute {
		at = cmd.At
	}
	return []Event{
		Created{Project: cmd.Project.ID, Job: s.id, User: cmd.User, Source: cmd.Source, Model: cmd.Asks(), Draft: cmd.Draft,
			At:     at,
			Branch: cmd.Branch, DryRun: cmd.DryRun, Works: cmd.Works},
		Prompted{ID: string(s.id), Prompt: cmd.Prompt, At: now, Traced: cmd.Traced, Follows: cmd.Follows},
	}, nil
}

func (s state) followUp(cmd FollowUp, now time.Time) ([]Event, error) {
	if err := s.known(cmd.Project); err != nil {
		return nil, err
	}
	switch {
	case cmd.ID != "" && slices.Contains(s.seen, cmd.ID):
		return nil, nil
	case !s.archived.IsZero():
		return nil, &api.StateError{Kind: api.ErrConflict,
			Reason: "this job is archived and takes no further instructions: create a new job"}
	case len(s.queue) > maxWaiting:
		return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: time.Minute}
	}
	return []Event{Prompted{ID: cmd.ID, Prompt: cmd.Prompt, At: now, Traced: cmd.Traced, Follows: cmd.Follows}}, nil
}

func (s state) editDone(msg editDone, now time.Time) ([]Event, error) {
	if s.phase != editing {
		return nil, nil
	}
	if msg.err != nil {
		return []Event{failed(msg.err, now)}, nil
	}
	ev := msg.edited
	ev.At = now
	if len(ev.Result.Changes) == 0 {
		return []Event{ev, Finished{Message: ev.Result.Message, At: now,
			Outcome: cmp.Or(ev.Result.Outcome, api.OutcomeNothingToDo)}}, nil
	}
	if s.dryRun {
		message := strings.TrimPrefix(ev.Result.Message+"\n\nThis was a dry run: nothing was published.", "\n\n")
		return []Event{ev, Finished{Message: message, At: now, Outcome: api.OutcomeChanged}}, nil
	}
	return []Event{ev}, nil
}

func (s state) publishDone(msg publishDone, now time.Time) ([]Event, error) {
	if s.phase != publishing {
		return nil, nil
	}
	switch {
	case msg.err == nil:
		message := s.edited.Result.Message
		if msg.result.Text != "" { // a host without pull requests: the user passes the request on
			message += "\n\n" + msg.result.Text
		}
		opened := msg.result.Link != "" && msg.result.Text == "" && msg.result.Joined == "" && s.branch != s.joined &&
			s.pullOf(s.branch) < 0
		if msg.result.Joined != "" {
			message = fmt.Sprintf("An open pull request makes the same change already, so none was opened: %s. "+
				"Further instructions to this job go there.\n\n%s", msg.result.Link, message)
		}
		return []Event{Published{Result: msg.result, At: now, Opened: opened}, Finished{Message: message, At: now,
			Outcome: api.OutcomeChanged}}, nil
	case errors.Is(msg.err, forge.ErrNoChange):
		return []Event{Finished{Message: "Nothing had to be changed: the pages are as the instruction wants them.", At: now,
			Outcome: api.OutcomeNothingToDo}}, nil
	case errors.Is(msg.err, forge.ErrMoved) && s.stale+1 < maxStale:
		return []Event{Stale{At: now}}, nil
	case errors.Is(msg.err, forge.ErrMoved):
		return []Event{Failed{Reason: api.HaltError, At: now,
			Message: "Others changed the branch each time while the edit was being published, so it was given up. Send the instruction again when the branch rests."}}, nil
	}
	return []Event{failed(msg.err, now)}, nil
}

// failed puts an error in words for the user.
func failed(err error, now time.Time) Failed {
	var f *failure
	var given *agent.Failure
	var host *forge.HostError
	switch {
	case errors.As(err, &f):
		return Failed{Reason: f.reason, Message: f.message, At: now}
	case errors.As(err, &given):
		return Failed{Reason: given.Reason, Message: given.Message, Output: clip(given.Output, maxText), At: now}
	case errors.As(err, &host) && errors.Is(host, forge.ErrMisconfigured):
		return Failed{Reason: api.HaltMisconfigured, Message: clip(brief.Line(host.Say), 500), At: now}
	case errors.As(err, &host) && errors.Is(host, forge.ErrLost):
		return Failed{Reason: api.HaltError, Message: clip(brief.Line(host.Say), 500), At: now}
	case errors.As(err, &host):
		return Failed{Reason: api.HaltError, Message: clip(brief.Line(host.Say), 400) + " Send the instruction again later.",
			At: now}
	case errors.Is(err, forge.ErrMisconfigured):
		return Failed{Reason: api.HaltMisconfigured, At: now,
			Message: "The code host refused: the project's repository, address or credentials are not right, or lack a permission."}
	case errors.Is(err, forge.ErrTemporary):
		return Failed{Reason: api.HaltError, At: now,
			Message: "The code host did not answer for a long time. Send the instruction again later."}
	case errors.Is(err, api.ErrUnavailable):
		return Failed{Reason: api.HaltError, At: now,
			Message: "The database did not answer for a long time. Send the instruction again later."}
	}
	return Failed{Reason: api.HaltError, At: now, Message: "The agent could not carry this out: " +
		clip(brief.Line(err.Error()), 300)}
}

// apply is total: ev has happened.
func (s state) apply(ev Event) state {
	inHand := ""
	if len(s.queue) > 0 {
		inHand = s.queue[0].ID
	}
	s = s.after(ev)
	s.seq++
	return s.record(ev, inHand)
}

// after is the state that an event leads to.
func (s state) after(ev Event) state {
	switch ev := ev.(type) {
	case Created:
		s.created = true
		s.project, s.user, s.source, s.draft = ev.Project, ev.User, ev.Source, ev.Draft
		s.model = cmp.Or(ev.Works, ev.Model)
		s.dryRun, s.wish = ev.DryRun, ev.Branch
		s.asked = ev.Model
		s.number, s.branch = 1, s.branchName(1)
		s.createdAt, s.updatedAt = ev.At, ev.At
		s.status, s.halt = api.JobActive, api.HaltProcessing
	case Prompted:
		s.updatedAt = ev.At
		s.queue = append(slices.Clip(s.queue), instruction(ev))
		if ev.ID != "" {
			s.seen = append(s.seen, ev.ID)
		}
		if s.title == "" {
			s.title = firstTitle(ev.Prompt)
		}
		if s.phase == idle {
			s = s.next()
		}
	case Progressed:
		s.updatedAt, s.waiting = ev.At, ev.Waiting
		if ev.Title != "" && s.link == "" {
			s.title = ev.Title
		}
		if len(ev.Todos) > 0 {
			s.todos = ev.Todos
		}
		if ev.Text != "" {
			s.message = lastLine(ev.Text)
		}
	case Stepped:
		s.updatedAt = ev.At
		if n := len(s.steps); n > 0 && s.steps[n-1].Round == ev.Step.Round {
			s.steps = append(slices.Clip(s.steps), ev.Step)
		} else {
			s.steps = []agent.Step{ev.Step}
		}
		s.waiting = 0
		s.interrupted, s.left = 0, 0 // it goes on: what broke off before was not this step's fault
	case Edited:
		return s.afterEdit(ev)
	case Published:
		return s.afterPublication(ev)
	case Retried:
		switch ev.Reason {
		case persistent.Panicked:
			s.panicked++
			s.attempt++
		case persistent.Left:
			s.left++
		default:
			s.interrupted++
		}
	case Stale:
		s.updatedAt = ev.At
		s.stale++
		s.phase, s.edited = editing, Edited{}
		s.attempt++
	case Finished:
		return s.afterEnd(ev)
	case Failed:
		return s.afterFailure(ev)
	case Archived:
		s.updatedAt, s.archived = ev.At, ev.At
	case PullChanged:
		return s.afterPull(ev)
	}
	return s
}

func (s state) afterPublication(ev Published) state {
	s.updatedAt = ev.At
	s.link, s.commit = ev.Result.Link, ev.Result.Commit
	s = s.recording(ev.Result)
	if ev.Result.Joined != "" {
		s.joined, s.branch = ev.Result.Joined, ev.Result.Joined
	}
	if ev.Result.Link != "" && ev.Result.Text == "" && s.branch != s.joined && s.pullOf(s.branch) < 0 {
		s.pulls = append(last(s.pulls, maxPulls-1), pull{Branch: s.branch, Link: ev.Result.Link, State: api.PullOpen})
	}
	return s
}

func (s state) afterPull(ev PullChanged) state {
	s.updatedAt = ev.At
	if i := s.pullOf(ev.Branch); i >= 0 {
		s.pulls = slices.Clone(s.pulls)
		s.pulls[i].State = ev.State
	}
	if ev.State == api.PullMerged {
		var others []recorded
		for _, r := range s.records {
			if r.Edited.Branch != ev.Branch {
				others = append(others, r)
			}
		}
		s.records = others
	}
	return s
}

func (s state) afterEdit(ev Edited) state {
	s.updatedAt = ev.At
	s.model = cmp.Or(ev.Result.Model, s.model)
	s.source.Repository = cmp.Or(ev.Repo, s.source.Repository)
	s.source.Ref = cmp.Or(ev.Base, s.source.Ref)
	if len(ev.Result.Todos) > 0 {
		s.todos = ev.Result.Todos
	}
	if len(ev.Result.Changes) == 0 {
		return s
	}
	if ev.Result.Title != "" && (s.link == "" || ev.Branch != s.branch) {
		s.title = clip(brief.Line(ev.Result.Title), titleLength)
	}
	if s.dryRun {
		return s
	}
	s.branch, s.number = ev.Branch, max(ev.Number, 1)
	if s.branch != s.joined {
		s.joined = "" // that one is merged or closed
	}
	ev.Files, ev.Diff = nil, "" // the log has them
	s.edited = ev
	s.phase = publishing
	s.attempt++
	// Publishing is another kind of work: what broke off the edit says nothing of it.
	s.interrupted, s.left, s.panicked = 0, 0, 0
	return s
}

func (s state) afterEnd(ev Finished) state {
	s.updatedAt = ev.At
	if len(s.queue) > 0 {
		done := agent.Instruction{Prompt: clip(s.queue[0].Prompt, maxText), Message: clip(ev.Message, maxText)}
		if s.phase == publishing {
			done.Commit, done.Branch = s.commit, s.branch
		}
		s.earlier = append(last(s.earlier, maxEarlier-1), done)
		s.queue = slices.Clone(s.queue[1:])
	}
	s.message, s.outcome = ev.Message, ev.Outcome
	s = s.settle()
	if len(s.queue) > 0 {
		return s.next()
	}
	s.status, s.halt = api.JobCompleted, api.HaltCompleted
	return s
}

func (s state) afterFailure(ev Failed) state {
	s.updatedAt = ev.At
	for _, in := range s.queue {
		s.earlier = append(last(s.earlier, maxEarlier-1),
			agent.Instruction{Prompt: clip(in.Prompt, maxText), Message: clip(ev.Message, maxText)})
	}
	s.queue = nil
	s.todos = slices.Clone(s.todos)
	for i := range s.todos {
		if s.todos[i].Status != "completed" {
			s.todos[i].Status = "cancelled"
		}
	}
	s = s.settle()
	s.status, s.halt, s.message = api.JobFailed, ev.Reason, ev.Message
	return s
}

// settle ends the work in hand: it counts what the instruction took of language models, and forgets how it went.
func (s state) settle() state {
	s.phase, s.edited = idle, Edited{}
	s.attempt++
	s.spent = s.used()
	s.steps, s.waiting = nil, 0
	return s
}

// used is what the job has taken of language models so far, with the instruction in hand.
func (s state) used() agent.Spent {
	sum := s.spent
	if n := len(s.steps); n > 0 {
		took := s.steps[n-1].Spent
		sum.Steps += took.Steps
		sum.Tokens += took.Tokens
		sum.Cost += took.Cost
		sum.Time += took.Time
		sum.Bytes += took.Bytes
	}
	return sum
}

// next takes the first waiting instruction in hand.
func (s state) next() state {
	s.phase = editing
	s.attempt++
	s.interrupted, s.left, s.panicked, s.stale = 0, 0, 0, 0
	s.status, s.halt = api.JobActive, api.HaltProcessing
	s.message, s.outcome = "", ""
	s.todos = nil
	return s
}

// row is the job as listings show it.
func (s state) row(seq uint64) api.JobRow {
	r := api.JobRow{
		Project: s.project,
		Job: api.Job{
			ID: s.id, Status: s.status, Source: s.source, Model: s.model,
			CreatedAt: s.createdAt, Title: s.title, Message: s.message, UpdatedAt: s.updatedAt, Outcome: s.outcome,
		},
		Branch: s.branch, Halt: s.halt, Todos: slices.Clone(s.todos), User: string(s.user),
		Archived: !s.archived.IsZero(), Seq: seq, DryRun: s.dryRun, Joined: s.joined != "",
	}
	used := s.used()
	r.Spent = api.Spent{Steps: used.Steps, Tokens: used.Tokens, Cost: used.Cost, Time: used.Time}
	if s.link != "" {
		link := s.link
		r.Job.PRLink = &link
	}
	if n := len(s.pulls); n > 0 {
		r.Pull = s.pulls[n-1].State
	}
	if !s.archived.IsZero() {
		at := s.archived
		r.Job.ArchivedAt = &at
	}
	return r
}

// branchName is the branch of the job's n-th pull request.
func (s state) branchName(n int) string {
	if s.joined != "" && n == s.number {
		return s.joined
	}
	name := cmp.Or(s.wish, "docent/"+string(s.id))
	if n <= 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

func firstTitle(prompt string) string {
	for line := range strings.Lines(prompt) {
		if line = brief.Line(line); line != "" {
			return clip(line, titleLength)
		}
	}
	return ""
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// clip cuts s to at most n bytes, at a character's border, and shows that it did.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(brief.Bytes(s, n-len("…"), ""), " ") + "…"
}

// last returns a copy of the last n elements.
func last[T any](s []T, n int) []T {
	if len(s) > n {
		s = s[len(s)-n:]
	}
	return slices.Clone(s)
}
