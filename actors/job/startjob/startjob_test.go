package startjob_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

// jobs are the actors and the journal of a test: a claim is taken with the command that brings it.
type jobs struct {
	mu     sync.Mutex
	claims map[string]journal.Claim
	made   map[api.JobID]job.Create
	told   []job.FollowUp
	fail   error
	hide   bool // a look-up finds nothing, as when two requests come at once
}

func (j *jobs) Claim(key string, _ time.Time) (journal.Claim, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c, ok := j.claims[key]
	return c, ok && !j.hide, nil
}

func (j *jobs) Ask(_ context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return job.Reply{}, j.fail
	}
	take := func(c *journal.Claim) error {
		if c == nil {
			return nil
		}
		if held, ok := j.claims[c.Key]; ok {
			return &journal.ClaimedError{Claim: held}
		}
		j.claims[c.Key] = *c
		return nil
	}
	reply := job.Reply{Row: api.JobRow{Job: api.Job{ID: id}}, Fresh: true}
	switch cmd := cmd.(type) {
	case job.Create:
		if err := take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		j.made[id] = cmd
	case job.FollowUp:
		if err := take(cmd.Claim); err != nil {
			return job.Reply{}, err
		}
		j.told = append(j.told, cmd)
	case job.Read:
		if _, ok := j.made[id]; !ok {
			return job.Reply{}, api.ErrNotFound
		}
		reply.Fresh = false
	}
	return reply, nil
}

type anyModel struct{}

func (anyModel) Resolve(name string) (string, error) { return "resolved " + name, nil }

func newStarter(limit int) (startjob.Starter, *jobs) {
	j := &jobs{claims: map[string]journal.Claim{}, made: map[api.JobID]job.Create{}}
	return startjob.Starter{
		Gate:   startjob.Gate{Jobs: j, Claims: j, Now: time.Now, Timeout: time.Minute},
		Quotas: quota.New(), Models: anyModel{}, IDs: new(api.IDs), ProjectHour: limit,
	}, j
}

var docs = api.Project{ID: "docs"}

func TestARequestUnderAKeyMakesOneJobHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	for _, hide := range []bool{false, true} { // a plain repeat, and one that races the first
		s, j := newStarter(1)
		j.hide = hide
		r := startjob.Request{Project: docs, By: "person", Prompt: " do it\r\n", Model: "m", Key: "topic 1"}
		first, err := s.Create(t.Context(), r)
		if err != nil || !first.Fresh {
			t.Fatalf("the first: %+v, %v", first, err)
		}
		again, err := s.Create(t.Context(), r)
		if err != nil && !hide { // the race needs a use for a moment, and there is one alone
			t.Fatal(err)
		}
		if len(j.made) != 1 {
			t.Errorf("%d jobs", len(j.made))
		}
		if !hide && again.Row.Job.ID != first.Row.Job.ID {
			t.Errorf("the repeat got job %s, not %s", again.Row.Job.ID, first.Row.Job.ID)
		}
		made := j.made[first.Row.Job.ID]
		if made.Prompt != "do it" || made.Model != "resolved m" || made.User != "person" {
			t.Errorf("made with %+v", made)
		}
		j.hide = false
		if id, found, err := s.Started("docs", "topic 1"); err != nil || !found || id != first.Row.Job.ID {
			t.Errorf("started under the key is %q, %v, %v", id, found, err)
		}
		r.Prompt = "something else"
		if _, err := s.Create(t.Context(), r); !errors.Is(err, api.ErrConflict) {
			t.Errorf("another instruction under the same key: %v", err)
		}
		if _, found, _ := s.Started("other", "topic 1"); found {
			t.Error("another project has the key too")
		}
	}
}

func TestARequestThatLosesARaceIsAnsweredWithTheJobOfTheOther(t *testing.T) {
	t.Parallel()
	s, j := newStarter(10)
	j.hide = true
	r := startjob.Request{Project: docs, Prompt: "do it", Key: "k"}
	first, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Create(t.Context(), r)
	if err != nil || again.Fresh || again.Row.Job.ID != first.Row.Job.ID {
		t.Errorf("the second got %+v, %v", again, err)
	}
}

func TestOnlyInstructionsThatCountAreCounted(t *testing.T) {
	t.Parallel()
	s, j := newStarter(1)
	j.fail = &api.BusyError{Kind: api.ErrUnavailable}
	r := startjob.Request{Project: docs, Prompt: "do it"}
	if _, err := s.Create(t.Context(), r); !errors.Is(err, api.ErrUnavailable) {
		t.Fatal(err)
	}
	j.fail = nil
	made, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("a refusal cost a use: %v", err)
	}
	var limit *api.LimitError
	if _, err := s.FollowUp(t.Context(), made.Row.Job.ID, r); !errors.As(err, &limit) || limit.Name != "project-hour" {
		t.Errorf("beyond the quota: %v", err)
	}
	none := docs
	none.Limits.ProjectHour = -1
	r.Project = none
	if _, err := s.FollowUp(t.Context(), made.Row.Job.ID, r); err != nil || len(j.told) != 1 {
		t.Errorf("without a quota: %v", err)
	}
	if _, err := s.FollowUp(t.Context(), "nonsense", r); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a job that cannot be: %v", err)
	}
}

func TestAnInstructionThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	s, j := newStarter(10)
	for _, prompt := range []string{"", " \n", strings.Repeat("x", startjob.MaxPrompt+1), "a\x00b", "\xff"} {
		var invalid *api.InvalidError
		_, err := s.Create(t.Context(), startjob.Request{Project: docs, Prompt: prompt})
		if !errors.As(err, &invalid) || invalid.Problems[0].Field != "prompt" {
			t.Errorf("%.20q: %v", prompt, err)
		}
	}
	if len(j.made) != 0 {
		t.Errorf("%d jobs", len(j.made))
	}
}
