package router

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/uptrace/bunrouter"

	"docent/actors/job"
	"docent/api"
	"docent/api/stream"
	"docent/internal/budget"
	"docent/persistence/cluster"
	"docent/persistence/quota"
	"docent/router/reqbody"
	"docent/router/sockets"
)

// eventBody is one entry of a job's log on the wire.
type eventBody struct {
	ID     uint64           `json:"id"`
	Type   job.EntryType    `json:"type"`
	At     timestamp        `json:"at"`
	Status api.JobStatus    `json:"status"` // of the job after it
	Title  string           `json:"title,omitempty"`
	Text   string           `json:"text,omitempty"`
	Todos  []api.Todo       `json:"todos,omitempty"`
	Tool   *toolBody        `json:"tool,omitempty"`
	Files  []job.FileChange `json:"files,omitempty"`
	Diff   string           `json:"diff,omitempty"`
	Branch string           `json:"branch,omitempty"`
	Commit string           `json:"commit,omitempty"`
	PRLink *string          `json:"prLink,omitempty"`

	Outcome api.Outcome `json:"outcome,omitempty"`
}

type toolBody struct {
	Name   string `json:"name"`
	Input  string `json:"input"`
	Output string `json:"output"`
	Failed bool   `json:"failed"`
}

func (s *Server) eventBody(x *exchange, req *http.Request, e job.Entry) eventBody {
	b := eventBody{ID: e.Seq, Type: e.Type, At: timestamp(e.At), Status: e.Status, Title: e.Title, Text: e.Text,
		Todos: e.Todos, Files: e.Files, Diff: e.Diff, Branch: e.Branch, Commit: e.Commit, Outcome: e.Outcome}
	if e.Tool != nil {
		b.Tool = &toolBody{e.Tool.Name, e.Tool.Input, e.Tool.Output, e.Tool.Failed}
	}
	if e.Link != "" {
		b.PRLink = s.link(x, req, &e.Link)
	}
	return b
}

// appendEntry appends the events of an entry. Calls of tools are one event each, once it is known what they gave: with
// the entry behind them. The last event bears the entry's number and the others that of the one before, so that a reader
// who was cut off among them gets them all again.
func (s *Server) appendEntry(buf []byte, x *exchange, req *http.Request, e job.Entry) []byte {
	body := s.eventBody(x, req, e)
	own := e.Type != job.EntryTool || e.Tool != nil
	if !own && e.Text != "" { // what the model said with its calls
		body.Type, own = job.EntryProgress, true
	}
	for i, r := range e.Results {
		if r.Name == "" {
			continue // of a log of before they were kept
		}
		id := e.Seq - 1
		if !own && i == len(e.Results)-1 {
			id = e.Seq
		}
		buf = appendEvent(buf, id, string(job.EntryTool), eventBody{ID: id, Type: job.EntryTool, At: body.At, Status: e.Status,
			Tool: &toolBody{r.Name, r.Input, shownOutput(r), r.Failed}})
	}
	if own {
		buf = appendEvent(buf, e.Seq, string(body.Type), body)
	}
	return buf
}

// shownOutput is what a call gave, for readers with a key: what the project's own check printed is for those who edit.
func shownOutput(r job.ToolUse) string {
	if r.Printed {
		return "The project's own check fails. Those who may edit see what it printed."
	}
	return r.Output
}

// jobEvents sends the log of a job as server-sent events: what there is beyond the last event that the reader has
// seen, and then what comes, until the job is no longer active.
func (s *Server) jobEvents(x *exchange, req bunrouter.Request) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	after, err := lastSeen(req.Request)
	if err != nil {
		return err
	}
	reply, err := s.command(req.Context(), id, job.Watch{Project: x.project.ID, After: after, Log: true})
	if err != nil {
		return err
	}
	if after > 0 && reply.Row.Job.Status != api.JobActive && len(reply.Log) == 0 {
		x.WriteHeader(http.StatusNoContent) // a browser that knows the end asks no more
		return nil
	}
	done, err := s.open(x, budget.Streams)
	if err != nil {
		return err
	}
	defer done()
	s.release(x) // a stream is counted for itself
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.deadline()
	x.WriteHeader(http.StatusOK)
	if req.Method == http.MethodHead {
		return nil
	}
	w := s.jobWriter(x, req.Request, stream.UIMessages)
	defer w.end()
	if !w.send(0, []byte("retry: 1000\n\n")) {
		w.ended(w.left())
		return nil
	}
	return s.tail(x, req, w, after, reply, func(reply job.Reply) bool {
		var buf []byte
		if reply.Omitted > after {
			buf = appendEvent(buf, 0, "omitted", struct {
				Until uint64 `json:"until"`
			}{reply.Omitted})
		}
		for _, e := range reply.Log {
			buf = s.appendEntry(buf, x, req.Request, e)
			if len(buf) >= chunk {
				if !w.send(0, buf) {
					return false
				}
				buf = buf[:0]
			}
			after = e.Seq
		}
		if reply.Row.Job.Status != api.JobActive {
			buf = appendEvent(buf, 0, "end", s.jobBody(x, req.Request, reply.Row.Job))
		}
		return w.send(len(reply.Log), buf)
	}, func(string) {}) // a reader that was cut off comes again by itself
}

// lastSeen is the event that the reader has seen last: what it says when it comes again, or what it asks for at first.
func lastSeen(req *http.Request) (uint64, error) {
	var ps reqbody.Problems
	field, v := "Last-Event-ID", req.Header.Get("Last-Event-ID")
	if v == "" {
		field = "after"
		v, _ = ps.QueryOne(req.URL.Query(), field)
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if v != "" && err != nil {
		ps.Add(field, "must be the id of an event of this job, a whole number")
	}
	return n, ps.Err()
}

// appendEvent appends a server-sent event. JSON holds no line break, so one data line is enough.
func appendEvent(buf []byte, id uint64, name string, v any) []byte {
	data, err := marshal(v)
	if err != nil {
		return buf // strings, numbers and times: cannot happen
	}
	if id > 0 {
		buf = append(buf, "id: "...)
		buf = strconv.AppendUint(buf, id, 10)
		buf = append(buf, '\n')
	}
	buf = append(buf, "event: "...)
	buf = append(buf, name...)
	buf = append(buf, "\ndata: "...)
	buf = append(buf, data...)
	return append(buf, "\n\n"...)
}

// jobWriter is the writer of a stream that follows a job. The form serves keep-alives and, in version 1, the rest as
// well.
func (s *Server) jobWriter(x *exchange, req *http.Request, form stream.Form) *writer {
	return s.newWriter(x, req, &reading{server: s, enc: stream.NewEncoder(form), figures: figures{m: s.metrics.jobs}})
}

// tail follows a job from a first reply until it is no longer active. Each reply is shown, and show is false when the
// reader takes it in no more; cut is called if the stream ends before the job does. A reader waits on its own
// request to the actor, so its slowness is nobody else's. A stop of the service ends these streams first: jobs stop
// too, and a client that returns resumes where the log ended.
func (s *Server) tail(
	x *exchange, req bunrouter.Request, w *writer, after uint64, reply job.Reply,
	show func(job.Reply) bool, cut func(reason string),
) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	for first := true; ; first = false {
		if !first && s.mayFollow(x, req) != nil {
			cut("the API key is not valid any more")
			w.ended("cut")
			return nil
		}
		switch {
		case first || len(reply.Log) > 0 || reply.Row.Job.Status != api.JobActive:
			if !show(reply) {
				w.ended(w.left())
				return nil
			}
		case w.mustProbe():
			if !w.send(0, w.enc.KeepAlive(nil)) {
				w.ended(w.left())
				return nil
			}
		}
		if reply.Row.Job.Status != api.JobActive {
			w.ended("finished")
			return nil
		}
		seen := max(after, reply.Row.Seq)
		until := time.Now().Add(s.Bounds.KeepAlive)
		if w.probes == 1 {
			until = time.Now().Add(probeAgain)
		}
		// an actor that never answers holds no stream
		wait, done := context.WithDeadline(ctx, until.Add(s.Bounds.CommandTimeout))
		stop := func() bool { return true }
		if w.probes == 0 {
			stop = context.AfterFunc(req.Context(), done)
		}
		next, err := s.Jobs.Ask(wait, x.job, job.Watch{Project: x.project.ID, After: seen, Until: until, Log: true})
		told := !stop()
		done()
		switch {
		case err == nil:
			reply, after = next, seen
		case told && ctx.Err() == nil:
			reply.Log, after = nil, seen // the reader may have gone
		case errors.As(err, new(*cluster.ElsewhereError)) || s.Together && (s.isDraining() || errors.Is(err, api.ErrUnavailable)):
			x.aborted = true // who comes again goes on at another node
			w.ended(sockets.EndedMoved)
			return nil
		case s.isDraining() || errors.Is(err, api.ErrShuttingDown):
			cut("the service is restarting; the job goes on and can be followed again")
			w.ended("cut")
			return nil
		default:
			x.err = err
			cut("the job cannot be followed now; read it again later")
			w.ended("broken")
			return nil
		}
	}
}

// repeatLife is how long the same body by the same key is the same session.
const repeatLife = 10 * time.Second

// createSession makes a job in the manner of version 1, and streams its run.
func (s *Server) createSession(x *exchange, req bunrouter.Request) error {
	key, err := idempotencyKey(req.Request)
	if err != nil {
		return err
	}
	p, err := decodePrompt(s, x, req.Request, reqbody.DecodeSession)
	if err == nil {
		err = s.resolve(&p)
	}
	if err != nil {
		return err
	}
	done, err := s.open(x, budget.Streams)
	if err != nil {
		return err
	}
	defer done()
	id := api.JobID(s.IDs.New(api.JobPrefix, x.started))
	operation := "session " + string(x.project.ID)
	claim := s.claim(x, key, operation, p, id)
	if claim == nil { // clients of version 1 repeat a request whose answer they did not get
		digest := p.Digest()
		claim = s.claim(x, "repeat "+hex.EncodeToString(digest[:]), operation, p, id)
		claim.Expires = s.Now().Add(repeatLife)
	}
	reply, err := s.accept(x, req.Context(), id, claim, func(uses []quota.Use) job.Command {
		return job.Create{Project: x.project, User: x.key.ID, Prompt: p.Prompt, Model: p.Model, Draft: p.Draft,
			Branch: p.Branch, At: x.started, Uses: uses, Claim: claim}
	})
	if err != nil {
		return err
	}
	x.job = reply.Row.Job.ID
	if reply, err = s.command(req.Context(), x.job, job.Watch{Project: x.project.ID, Log: true}); err != nil {
		return err
	}
	s.release(x)
	h := x.Header()
	for _, f := range stream.Headers(stream.DataStream) {
		h.Set(f.Name, f.Value)
	}
	h.Set("X-Session-Id", string(x.job))
	h.Set("X-Branch-Name", reply.Row.Branch)
	x.deadline()
	x.WriteHeader(http.StatusOK)
	w := s.jobWriter(x, req.Request, stream.DataStream)
	defer w.end()
	started := false
	return s.tail(x, req, w, 0, reply, func(reply job.Reply) bool {
		var parts []stream.Part
		if !started {
			started = true
			parts = append(parts, stream.Part{Kind: stream.Start, Message: string(x.job)})
		}
		for _, e := range reply.Log {
			if text := sessionText(e); text != "" {
				parts = append(parts, stream.Part{Kind: stream.Text, Text: text + "\n"})
			}
		}
		switch row := reply.Row; row.Job.Status {
		case api.JobCompleted:
			if row.Job.PRLink != nil {
				parts = append(parts, stream.Part{Kind: stream.Text, Text: "\n" + *s.link(x, req.Request, row.Job.PRLink) + "\n"})
			}
			parts = append(parts, stream.Part{Kind: stream.Finish})
		case api.JobFailed:
			parts = append(parts, stream.Part{Kind: stream.Error, Text: row.Job.Message})
		}
		return w.send(len(parts), w.encode(parts...))
	}, func(reason string) { w.send(0, w.encode(stream.Part{Kind: stream.Error, Text: reason})) })
}

// sessionText is what a client of version 1 reads of an entry.
func sessionText(e job.Entry) string {
	switch e.Type {
	case job.EntryProgress:
		return e.Text
	case job.EntryFinished:
		return "\n" + e.Text
	}
	return ""
}
