package router

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/actors/job"
	"docent/actors/job/startjob"
	"docent/api"
	"docent/internal/grant"
	"docent/internal/gzipped"
	"docent/persistence/catalog/listing"
	"docent/persistence/journal"
	"docent/persistence/quota"
	"docent/router/reqbody"
)

const (
	maxWait     = 60 // seconds that a poll may be held
	claimedLife = 24 * time.Hour
)

// jobBody is a job on the wire.
type jobBody struct {
	ID         api.JobID     `json:"id"`
	Status     api.JobStatus `json:"status"`
	Source     api.JobSource `json:"source"`
	Model      string        `json:"model"`
	PRLink     *string       `json:"prLink"`
	CreatedAt  timestamp     `json:"createdAt"`
	ArchivedAt *timestamp    `json:"archivedAt"`
	Title      string        `json:"title"`
	Message    string        `json:"message"`
	UpdatedAt  timestamp     `json:"updatedAt"`
	Outcome    *api.Outcome  `json:"outcome"`
}

func (s *Server) jobBody(x *exchange, req *http.Request, j api.Job) jobBody {
	var outcome *api.Outcome
	if j.Outcome != "" {
		outcome = &j.Outcome
	}
	return jobBody{Outcome: outcome, ID: j.ID, Status: j.Status, Source: j.Source, Model: j.Model,
		PRLink: s.link(x, req, j.PRLink), CreatedAt: timestamp(j.CreatedAt), ArchivedAt: stamp(j.ArchivedAt),
		Title: j.Title, Message: j.Message,
		UpdatedAt: timestamp(j.UpdatedAt)}
}

// link makes a path under the service's own address, such as a pull request's of the built-in host, a whole URL.
func (s *Server) link(x *exchange, req *http.Request, link *string) *string {
	if link == nil || !strings.HasPrefix(*link, "/") {
		return link
	}
	whole := s.base(x, req) + *link
	return &whole
}

// base is the service's own address, without a slash at the end.
func (s *Server) base(x *exchange, req *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	u := url.URL{Scheme: "http", Host: req.Host}
	if x.secure {
		u.Scheme = "https"
	}
	return u.String()
}

// readPrompt reads the body of create and of follow-up.
func (s *Server) readPrompt(x *exchange, req bunrouter.Request, create bool) (reqbody.Prompt, error) {
	p, err := decodePrompt(s, x, req.Request, func(raw []byte) (reqbody.Prompt, error) {
		return reqbody.DecodePrompt(raw, create)
	})
	if err != nil {
		return p, err
	}
	return p, s.resolve(&p)
}

// resolve turns the name of a model into the one that a job keeps. A name that nobody has configured is refused here,
// where the caller can still do something about it.
func (s *Server) resolve(p *reqbody.Prompt) error {
	if p.Model == "" {
		return nil
	}
	name, err := s.Models.Resolve(p.Model)
	if err != nil {
		return err
	}
	p.Model = name
	return nil
}

// idempotencyKey is what the caller names this request by, or nothing.
func idempotencyKey(req *http.Request) (string, error) {
	values := req.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	var ps reqbody.Problems
	key := values[0]
	switch {
	case len(values) > 1:
		ps.Add("Idempotency-Key", "must be sent once, not %d times", len(values))
	case key == "" || len(key) > 255:
		ps.Add("Idempotency-Key", "must have 1 to 255 characters, and has %d", len(key))
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		ps.Add("Idempotency-Key", "must hold visible ASCII characters only, without spaces")
	}
	return key, ps.Err()
}

// claim binds the caller's Idempotency-Key, if there is one, to what this request makes of a job. The key is the
// caller's own and the operation's: two callers, or two operations, may use the same.
func (s *Server) claim(x *exchange, key, operation string, p reqbody.Prompt, id api.JobID) *journal.Claim {
	if key == "" {
		return nil
	}
	return &journal.Claim{Key: operation + " " + string(x.key.ID) + " " + key, Digest: p.Digest(), Owner: job.Stream(id),
		Expires: s.Now().Add(claimedLife)}
}

// gate brings commands to jobs, each once for its key.
func (s *Server) gate() startjob.Gate {
	return startjob.Gate{Jobs: s.Jobs, Claims: s.Claims, Now: s.Now, Timeout: s.Bounds.CommandTimeout}
}

// command asks a job's actor.
func (s *Server) command(ctx context.Context, id api.JobID, cmd job.Command) (job.Reply, error) {
	return s.gate().Ask(ctx, id, cmd)
}

// accept takes the quota's use, asks the actor, and settles what a repeat or a refusal costs: nothing. The job that
// answers may be another than was asked, when a repeated request raced this one.
func (s *Server) accept(
	x *exchange, ctx context.Context, id api.JobID, claim *journal.Claim, make func([]quota.Use) job.Command,
) (job.Reply, error) {
	uses := s.jobUses(x)
	return s.gate().Once(ctx, startjob.Command{Project: x.project.ID, Job: id, Claim: claim, Do: make(uses),
		Admit: func(g *grant.Grant) error { return s.enter(ctx, g, x.Header(), uses) }})
}

func (s *Server) createJob(x *exchange, req bunrouter.Request) error {
	key, err := idempotencyKey(req.Request)
	if err != nil {
		return err
	}
	p, err := s.readPrompt(x, req, true)
	if err != nil {
		return err
	}
	id := api.JobID(s.IDs.New(api.JobPrefix, x.started))
	claim := s.claim(x, key, "create "+string(x.project.ID), p, id)
	reply, err := s.accept(x, req.Context(), id, claim, func(uses []quota.Use) job.Command {
		return job.Create{Project: x.project, User: x.key.ID, Prompt: p.Prompt, Model: p.Model, Draft: p.Draft,
			DryRun: p.DryRun, At: x.started, Uses: uses, Claim: claim}
	})
	if err != nil {
		return err
	}
	x.job = reply.Row.Job.ID
	x.Header().Set("Location", "/v2/agent/"+url.PathEscape(string(x.project.ID))+"/job/"+url.PathEscape(string(x.job)))
	return encode(x, http.StatusCreated, s.jobBody(x, req.Request, reply.Row.Job))
}

// jobID is the job that the path names. What cannot be a job's id is answered like an unknown one.
func jobID(x *exchange, req bunrouter.Request) (api.JobID, error) {
	id := param(req, "id")
	if !api.ValidID(api.JobPrefix, id) {
		return "", api.Missing("job")
	}
	x.job = api.JobID(id)
	return x.job, nil
}

func (s *Server) followUp(x *exchange, req bunrouter.Request) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(req.Request)
	if err != nil {
		return err
	}
	p, err := s.readPrompt(x, req, false)
	if err != nil {
		return err
	}
	ref := s.IDs.New(api.TurnPrefix, x.started)
	claim := s.claim(x, key, "message "+string(id), p, id)
	if claim != nil {
		claim.Ref = ref
	}
	reply, err := s.accept(x, req.Context(), id, claim, func(uses []quota.Use) job.Command {
		return job.FollowUp{Project: x.project.ID, ID: ref, Prompt: p.Prompt, Uses: uses, Claim: claim}
	})
	if err != nil {
		return err
	}
	return encode(x, http.StatusOK, s.jobBody(x, req.Request, reply.Row.Job))
}

func (s *Server) archiveJob(x *exchange, req bunrouter.Request) error {
	return s.change(x, req, job.Archive{Project: x.project.ID})
}

func (s *Server) cancelJob(x *exchange, req bunrouter.Request) error {
	return s.change(x, req, job.Cancel{Project: x.project.ID})
}

// change serves the operations that take no body.
func (s *Server) change(x *exchange, req bunrouter.Request, cmd job.Command) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	reply, err := s.command(req.Context(), id, cmd)
	if err != nil {
		return err
	}
	return encode(x, http.StatusOK, s.jobBody(x, req.Request, reply.Row.Job))
}

func (s *Server) readJob(x *exchange, req bunrouter.Request) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	var ps reqbody.Problems
	wait := ps.QueryInt(req.URL.Query(), "wait", 0, maxWait, 0)
	if err := ps.Err(); err != nil {
		return err
	}
	reply, err := s.command(req.Context(), id, job.Read{Project: x.project.ID})
	if err != nil {
		return err
	}
	body, tag, err := s.tagged(x, req.Request, reply)
	if err != nil {
		return err
	}
	seen := req.Header.Values("If-None-Match")
	if wait > 0 && s.hold() {
		defer s.waits.Add(-1)
		body, tag, err = s.await(x, req, reply, body, tag, seen, time.Duration(wait)*time.Second)
		if err = cmp.Or(err, s.mayFollow(x, req)); err != nil {
			return err
		}
	}
	h := x.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	if gzipped.Known(seen, tag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(x, http.StatusOK, "application/json", body)
	return nil
}

// hold counts one more poll that is held open. If there are too many, the poll is answered at once: to poll
// more often is better than not to be served.
func (s *Server) hold() bool {
	if s.isDraining() {
		return false
	}
	if s.waits.Add(1) > int64(s.Bounds.Waits) {
		s.waits.Add(-1)
		s.metrics.refuse("waits")
		return false
	}
	return true
}

// await holds the answer while the job is as the caller knows it: the version that it names in If-None-Match, or
// if it names none, the one that it would get now, as long as there is something to wait for.
func (s *Server) await(
	x *exchange, req bunrouter.Request, reply job.Reply, body []byte, tag string, seen []string, wait time.Duration,
) ([]byte, string, error) {
	if len(seen) > 0 && !gzipped.Known(seen, tag) || len(seen) == 0 && reply.Row.Job.Status != api.JobActive {
		return body, tag, nil
	}
	s.release(x) // a poll that waits is not worked on
	until := time.Now().Add(wait)
	ctx, cancel := context.WithDeadline(req.Context(), until.Add(s.Bounds.CommandTimeout))
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	first := tag
	for time.Now().Before(until) {
		next, err := s.Jobs.Ask(ctx, x.job, job.Watch{Project: x.project.ID, After: reply.Row.Seq, Until: until})
		if err != nil {
			if s.isDraining() && req.Context().Err() == nil {
				return body, tag, nil // what is known now is an answer too
			}
			return nil, "", api.Named(err, "job")
		}
		if body, tag, err = s.tagged(x, req.Request, next); err != nil || tag != first {
			return body, tag, err
		}
		if next.Row.Seq <= reply.Row.Seq {
			break // the time has passed
		}
		reply = next // something happened that this answer does not show
	}
	return body, tag, nil
}

// tagged is a job's representation, and the entity tag that stands for exactly these bytes.
func (s *Server) tagged(x *exchange, req *http.Request, reply job.Reply) (body []byte, tag string, err error) {
	body, err = marshal(s.jobBody(x, req, reply.Row.Job))
	if err != nil {
		return nil, "", fmt.Errorf("encode the job: %w", err)
	}
	return body, gzipped.Tag(body), nil
}

func (s *Server) listJobs(x *exchange, req bunrouter.Request) error {
	var ps reqbody.Problems
	query := req.URL.Query()
	q := listing.JobQuery{Project: x.project.ID, MinPos: listing.Newest} // who created a job finds it
	limit := ps.QueryInt(query, "limit", 1, 100, 20)
	if v, ok := ps.QueryOne(query, "cursor"); ok {
		if !api.ValidID(api.JobPrefix, v) {
			ps.Add("cursor", "must be the nextCursor of an earlier answer, as it was")
		}
		q.Before = api.JobID(v)
	}
	if v, ok := ps.QueryOne(query, "status"); ok {
		switch q.Status = api.JobStatus(v); q.Status {
		case api.JobActive, api.JobCompleted, api.JobFailed:
		default:
			ps.Add("status", "must be active, completed or failed")
		}
	}
	if v, ok := ps.QueryOne(query, "archived"); ok {
		yes := v == "true"
		if !yes && v != "false" {
			ps.Add("archived", "must be true or false")
		}
		q.Archived = &yes
	}
	if err := ps.Err(); err != nil {
		return err
	}
	q.Limit = limit + 1 // one more tells whether there is a next page
	rows, err := s.Catalog.Jobs(req.Context(), q)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	out := struct {
		Jobs       []jobBody  `json:"jobs"`
		NextCursor *api.JobID `json:"nextCursor"`
	}{Jobs: []jobBody{}}
	if len(rows) > limit {
		rows = rows[:limit]
		out.NextCursor = &rows[limit-1].Job.ID
	}
	for _, r := range rows {
		out.Jobs = append(out.Jobs, s.jobBody(x, req.Request, r.Job))
	}
	return encode(x, http.StatusOK, out)
}
