package router

import (
	"fmt"
	"math"
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/actors/job"
	"docent/api"
	"docent/persistence/catalog/listing"
	"docent/router/reqbody"
)

// sessionBody is a session of version 1 on the wire; the spelling is the specification's.
type sessionBody struct {
	SessionID       api.JobID      `json:"sessionId"`
	Subdomain       string         `json:"subdomain"`
	Branch          string         `json:"branch"`
	Haulted         bool           `json:"haulted"`
	HaultReason     api.HaltReason `json:"haultReason"`
	PullRequestLink string         `json:"pullRequestLink"`
	MessageToUser   string         `json:"messageToUser"`
	Todos           []api.Todo     `json:"todos"`
	UserID          string         `json:"userId"`
	Title           string         `json:"title"`
	CreatedAt       timestamp      `json:"createdAt"`
}

func (s *Server) sessionBody(x *exchange, req *http.Request, row api.JobRow) sessionBody {
	row.Job.PRLink = s.link(x, req, row.Job.PRLink)
	v := row.Session(x.project.Domain)
	if v.HaultReason == "" { // a row of a job that has said nothing yet
		v.HaultReason = api.HaltProcessing
	}
	return sessionBody{SessionID: v.SessionID, Subdomain: v.Subdomain, Branch: v.Branch, Haulted: v.Haulted,
		HaultReason:     v.HaultReason,
		PullRequestLink: v.PullRequestLink, MessageToUser: v.MessageToUser, Todos: v.Todos, UserID: v.UserID, Title: v.Title,
		CreatedAt: timestamp(v.CreatedAt)}
}

func (s *Server) listSessions(x *exchange, req bunrouter.Request) error {
	var ps reqbody.Problems
	query := req.URL.Query()
	q := listing.JobQuery{Project: x.project.ID, MinPos: listing.Newest, // who created a job finds it
		Skip:  ps.QueryInt(query, "skip", 0, math.MaxInt32, 0),
		Limit: ps.QueryInt(query, "take", 1, 100, 0)} // all if it is not given
	if err := ps.Err(); err != nil {
		return err
	}
	rows, err := s.Catalog.Jobs(req.Context(), q)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	out := struct {
		AllSessions []sessionBody `json:"allSessions"`
	}{AllSessions: make([]sessionBody, 0, len(rows))}
	for _, r := range rows {
		out.AllSessions = append(out.AllSessions, s.sessionBody(x, req.Request, r))
	}
	return encode(x, http.StatusOK, out)
}

func (s *Server) readSession(x *exchange, req bunrouter.Request) error {
	id, err := jobID(x, req)
	if err != nil {
		return err
	}
	reply, err := s.command(req.Context(), id, job.Read{Project: x.project.ID})
	if err != nil {
		return err
	}
	return encode(x, http.StatusOK, s.sessionBody(x, req.Request, reply.Row))
}
