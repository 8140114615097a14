package router

import (
	"net/http"

	"github.com/uptrace/bunrouter"

	"docent/api"
)

// startUpdate starts re-indexing the documentation. It takes no body.
func (s *Server) startUpdate(x *exchange, req bunrouter.Request) error {
	id, err := s.Updates.Start(req.Context(), x.project.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	x.Header().Set("Location", "/v1/project/update-status/"+string(id))
	return encode(x, http.StatusAccepted, struct {
		StatusID api.UpdateID `json:"statusId"`
	}{id})
}

// updateBody is an update on the wire. Its names are those of the hosted platform.
type updateBody struct {
	ID        api.UpdateID     `json:"_id"`
	Project   api.ProjectID    `json:"projectId"`
	Subdomain string           `json:"subdomain"`
	Status    api.UpdateStatus `json:"status"`
	Summary   string           `json:"summary"`
	Logs      []string         `json:"logs"`
	CreatedAt timestamp        `json:"createdAt"`
	StartedAt *timestamp       `json:"startedAt"`
	EndedAt   *timestamp       `json:"endedAt"`
	Source    string           `json:"source"`
	Commit    *commitBody      `json:"commit"`
}

type commitBody struct {
	SHA     string    `json:"sha"`
	Ref     string    `json:"ref"`
	Message string    `json:"message"`
	Files   filesBody `json:"filesChanged"`
}

type filesBody struct {
	Added    []string `json:"added"`
	Modified []string `json:"modified"`
	Removed  []string `json:"removed"`
}

// updateStatus shows how far an update has come. The path names no project: whose it is, the update says.
func (s *Server) updateStatus(x *exchange, req bunrouter.Request) error {
	id := param(req, "statusId")
	if !api.ValidID(api.UpdatePrefix, id) {
		return api.Missing("update")
	}
	u, err := s.Updates.Status(req.Context(), api.UpdateID(id))
	if err != nil {
		return api.Named(err, "update")
	}
	project, err := s.Catalog.Project(req.Context(), u.Project)
	if err != nil {
		return api.Named(err, "update")
	}
	if project.Org != x.key.Org {
		return api.Missing("update")
	}
	x.project = project
	out := updateBody{ID: u.ID, Project: u.Project, Subdomain: project.Domain, Status: u.Status, Summary: u.Summary,
		Logs:      list(u.Logs),
		CreatedAt: timestamp(u.CreatedAt), StartedAt: stamp(u.StartedAt), EndedAt: stamp(u.EndedAt), Source: "api"}
	if c := u.Commit; c.SHA != "" {
		out.Commit = &commitBody{c.SHA, c.Ref, c.Message, filesBody{list(c.Added), list(c.Modified), list(c.Removed)}}
	}
	return encode(x, http.StatusOK, out)
}

// list is a list that is never null on the wire.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
