package startjob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"docent/actors/job"
	"docent/api"
	"docent/internal/grant"
	"docent/persistence/journal"
	"docent/persistence/quota"
)

const (
	// MaxPrompt is how many characters an instruction may have.
	MaxPrompt = 100_000

	// ProjectHour names the quota of instructions, as people and the RateLimit headers read it.
	ProjectHour = "project-hour"

	claimLife = 30 * 24 * time.Hour
)

// A Request is an instruction for a job, as a person gives it on a page.
type Request struct {
	Project api.Project
	By      api.KeyID // who asks: a key, or a person's id
	Prompt  string
	Model   string // empty for the project's
	Draft   bool
	DryRun  bool
	Branch  string // of a new job: where the changes go; empty for a name made from the job's id
	ID      string // of a follow-up's message; made if empty
	// Key names the request: what comes again under it is answered with the same job, for thirty days. Anyone who may send
	// it for different purposes puts the purpose into it.
	Key string
}

// A Starter starts jobs and follows up on them, outside of the API.
type Starter struct {
	Gate
	Quotas      Quotas
	Models      Models
	IDs         *api.IDs
	ProjectHour int // the configured quota, where a project has none of its own
}

// ProjectHourUses are the quota's uses of creating a job and of following up on one.
func ProjectHourUses(p api.Project, otherwise int) []quota.Use {
	limit := cmp.Or(p.Limits.ProjectHour, otherwise)
	if limit < 0 {
		return nil
	}
	return []quota.Use{{Name: ProjectHour, Key: "project/" + string(p.ID), Window: quota.SlidingHour, Limit: limit}}
}

// Create starts a job, or finds the one that was started under the key.
func (s Starter) Create(ctx context.Context, r Request) (job.Reply, error) {
	if err := s.check(&r); err != nil {
		return job.Reply{}, err
	}
	now := s.Now()
	id := api.JobID(s.IDs.New(api.JobPrefix, now))
	uses := ProjectHourUses(r.Project, s.ProjectHour)
	claim := r.claim("create", id, now)
	return s.Once(ctx, Command{Project: r.Project.ID, Job: id, Claim: claim, Admit: s.admit(uses),
		Do: job.Create{Project: r.Project, User: r.By, Prompt: r.Prompt, Model: r.Model, Draft: r.Draft,
			DryRun: r.DryRun, Branch: r.Branch, At: now, Uses: uses, Claim: claim}})
}

// FollowUp gives a job of the request's project one more instruction.
func (s Starter) FollowUp(ctx context.Context, id api.JobID, r Request) (job.Reply, error) {
	if !api.ValidID(api.JobPrefix, string(id)) {
		return job.Reply{}, api.Missing("job")
	}
	if err := s.check(&r); err != nil {
		return job.Reply{}, err
	}
	now := s.Now()
	ref := cmp.Or(r.ID, s.IDs.New(api.TurnPrefix, now))
	uses := ProjectHourUses(r.Project, s.ProjectHour)
	claim := r.claim("message "+string(id), id, now)
	if claim != nil {
		claim.Ref = ref
	}
	return s.Once(ctx, Command{Project: r.Project.ID, Job: id, Claim: claim, Admit: s.admit(uses),
		Do: job.FollowUp{Project: r.Project.ID, ID: ref, Prompt: r.Prompt, Uses: uses, Claim: claim}})
}

// Started finds the job that was created under a key, if there is one.
func (s Starter) Started(project api.ProjectID, key string) (api.JobID, bool, error) {
	held, found, err := s.Claims.Claim(claimKey("create", project, key), s.Now())
	if err != nil || !found {
		return "", false, err
	}
	id, ok := job.OfStream(held.Owner)
	return id, ok, nil
}

// check refuses an instruction that a job would not take, and settles its model.
func (s Starter) check(r *Request) error {
	r.Prompt = strings.TrimSpace(strings.ReplaceAll(r.Prompt, "\r\n", "\n"))
	say := ""
	switch n := utf8.RuneCountInString(r.Prompt); {
	case n == 0:
		say = "is required: say what is to be changed"
	case n > MaxPrompt:
		say = fmt.Sprintf("must have at most %d characters, and has %d", MaxPrompt, n)
	case !utf8.ValidString(r.Prompt) || strings.ContainsRune(r.Prompt, 0):
		say = "must be text in UTF-8"
	case r.Branch != "" && !api.ValidBranch(r.Branch):
		return &api.InvalidError{Problems: []api.Problem{{Field: "branch", Message: "is not a branch name that git accepts"}}}
	}
	if say != "" {
		return &api.InvalidError{Problems: []api.Problem{{Field: "prompt", Message: say}}}
	}
	if r.Model == "" {
		return nil
	}
	name, err := s.Models.Resolve(r.Model)
	r.Model = name
	return err
}

func (s Starter) admit(uses []quota.Use) func(*grant.Grant) error {
	return func(g *grant.Grant) error {
		now := s.Now()
		if err := s.Quotas.Reserve(now, uses); err != nil {
			return err
		}
		g.Add(func() { s.Quotas.Release(now, uses) })
		return nil
	}
}

// claimKey is the key in the journal. Keys of the API are of another form, so that nobody's key stands for a page's.
func claimKey(operation string, project api.ProjectID, key string) string {
	return "page " + operation + " " + string(project) + " " + key
}

func (r Request) claim(operation string, id api.JobID, now time.Time) *journal.Claim {
	if r.Key == "" {
		return nil
	}
	what := []any{r.Prompt, r.Model, r.Draft, r.DryRun}
	if r.Branch != "" {
		what = append(what, r.Branch)
	}
	body, _ := json.Marshal(what) // strings and booleans: cannot fail
	return &journal.Claim{Key: claimKey(operation, r.Project.ID, r.Key), Digest: sha256.Sum256(body),
		Owner: job.Stream(id), Expires: now.Add(claimLife)}
}
