package web_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/model"
	"docent/persistence/catalog"
)

// jobs stands in for the actors of jobs and for what gives them instructions.
type jobs struct {
	mu       sync.Mutex
	all      map[api.JobID]*api.JobRow
	logs     map[api.JobID][]job.Entry
	keys     map[string]api.JobID // of requests
	requests []startjob.Request
	messages []string // ids of follow-ups
	edits    *job.Edits
	fail     error // of the next request
	lose     bool  // the answer to the next request
}

func (j *jobs) Ask(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	row := j.all[id]
	project := map[bool]api.ProjectID{}
	switch cmd := cmd.(type) {
	case job.Read:
		project[true] = cmd.Project
	case job.Watch:
		project[true] = cmd.Project
	case job.Cancel:
		project[true] = cmd.Project
	case job.Archive:
		project[true] = cmd.Project
	}
	if row == nil || row.Project != project[true] {
		return job.Reply{}, api.ErrNotFound
	}
	switch cmd := cmd.(type) {
	case job.Cancel:
		row.Job.Status, row.Halt, row.Job.Message = api.JobFailed, api.HaltInterrupted, "cancelled"
		return job.Reply{Row: *row, Fresh: true}, nil
	case job.Archive:
		row.Archived = true
		return job.Reply{Row: *row, Fresh: true}, nil
	case job.Watch:
		if wait := time.Until(cmd.Until); row.Seq <= cmd.After && wait > 0 && j.edits == nil {
			j.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(min(wait, 20*time.Millisecond)):
			}
			j.mu.Lock()
		}
		r := job.Reply{Row: *row}
		for _, e := range j.logs[id] {
			if cmd.Log && e.Seq > cmd.After {
				r.Log = append(r.Log, e)
			}
		}
		if cmd.Edits && j.edits != nil && j.edits.Version > cmd.Seen {
			edits := *j.edits
			r.Edits = &edits
		}
		return r, nil
	}
	return job.Reply{Row: *row}, nil
}

// add puts a job of a project there.
func (j *jobs) add(row api.JobRow, log ...job.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range log {
		log[i].Seq = uint64(i) + 1
	}
	row.Seq = uint64(len(log))
	j.all[row.Job.ID], j.logs[row.Job.ID] = &row, log
}

func (j *jobs) take(r startjob.Request) (api.JobID, bool, error) {
	if r.Prompt == "" {
		return "", false, &api.InvalidError{Problems: []api.Problem{{Field: "prompt", Message: "is required"}}}
	}
	if err := j.fail; err != nil {
		j.fail = nil
		return "", false, err
	}
	id, held := j.keys[r.Key]
	if !held {
		j.requests = append(j.requests, r)
	}
	return id, held, nil
}

func (j *jobs) Create(_ context.Context, r startjob.Request) (job.Reply, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id, held, err := j.take(r)
	if err != nil {
		return job.Reply{}, err
	}
	if !held {
		id = api.JobID(api.NewID(api.JobPrefix, time.Now()))
		j.keys[r.Key] = id
		j.all[id] = &api.JobRow{Project: r.Project.ID, User: string(r.By), DryRun: r.DryRun,
			Job: api.Job{ID: id, Status: api.JobActive, Title: r.Prompt, CreatedAt: time.Now()}}
	}
	return job.Reply{Row: *j.all[id], Fresh: !held}, nil
}

func (j *jobs) FollowUp(_ context.Context, id api.JobID, r startjob.Request) (job.Reply, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	row := j.all[id]
	if row == nil || row.Project != r.Project.ID {
		return job.Reply{}, api.ErrNotFound
	}
	_, held, err := j.take(r)
	if err != nil {
		return job.Reply{}, err
	}
	if !held {
		j.keys[r.Key] = id
		j.messages = append(j.messages, r.ID)
		row.Seq++
		j.logs[id] = append(j.logs[id], job.Entry{Seq: row.Seq, Type: job.EntryPrompt, Text: r.Prompt, Instruction: r.ID})
	}
	if j.lose {
		j.lose = false
		return job.Reply{}, fmt.Errorf("ask: %w", context.DeadlineExceeded)
	}
	return job.Reply{Row: *row, Fresh: !held}, nil
}

// automations are a catalog's, without anything that runs them.
type automations struct{ *catalog.Catalog }

func (a automations) AddAutomation(ctx context.Context, n api.Automation) (api.Automation, error) {
	n.ID = api.AutomationID(api.NewID(api.AutomationPrefix, time.Now()))
	return n, a.Catalog.AddAutomation(ctx, n)
}

func (a automations) PauseAutomation(ctx context.Context, id api.AutomationID, paused bool) error {
	return a.ChangeAutomation(ctx, id, func(au *api.Automation) { au.Paused = paused })
}

func (a automations) RunAutomation(ctx context.Context, id api.AutomationID) error {
	_, _, err := a.BeginRun(ctx, api.AutomationRun{Automation: id, Key: api.NewID("", time.Now()), At: time.Now(),
		Trigger: api.TriggerManual}, func(*api.Automation) {})
	return err
}

// Choices are the models that a new job may ask for.
func (nobody) Choices() []model.Choice {
	return []model.Choice{{Name: "builtin", Provider: model.Builtin, Default: true}, {Name: "large", Provider: "openai"}}
}

func (p *pulls) Ends(_ context.Context, id string) (base, head string, err error) {
	return "c0", "c1", nil
}

func (p *pulls) PullFile(_ context.Context, id, path string, before bool) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.files, func(f pullFile) bool { return f.path == path && f.before == before })
	if i < 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(p.files[i].text), nil
}

// A pullFile is a file in one of the versions of a pull request.
type pullFile struct {
	path   string
	before bool
	text   string
}
