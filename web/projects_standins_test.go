package web_test

import (
	"context"
	"io"
	"time"

	"docent/api"
	"docent/search"
	"docent/search/sources"
	"docent/search/sources/crawl"
	"docent/web/projects"
)

// projectsOf stands in for what adds projects and reads their sources: there is nothing to see and nothing goes on.
type projectsOf struct{}

var noTask = &api.StateError{Kind: api.ErrConflict, Reason: "nothing is read here"}

func (projectsOf) Find(context.Context, string) (sources.Place, []sources.Candidate, error) {
	return sources.Place{}, nil, &api.InvalidError{Problems: []api.Problem{{Field: "source", Message: "is not read here"}}}
}
func (projectsOf) Look(api.Project) (sources.Task, error)             { return sources.Task{}, noTask }
func (projectsOf) Add(api.Project) (sources.Task, error)              { return sources.Task{}, noTask }
func (projectsOf) Change(api.Project) (sources.Task, error)           { return sources.Task{}, noTask }
func (projectsOf) Check(api.Project) (sources.Task, error)            { return sources.Task{}, noTask }
func (projectsOf) SetToken(api.Project, string) (sources.Task, error) { return sources.Task{}, noTask }
func (projectsOf) Discard(context.Context, api.ProjectID) error       { return nil }
func (projectsOf) Remove(context.Context, api.ProjectID) error        { return noTask }
func (projectsOf) AddSource(api.ProjectID, api.Source) (sources.Task, error) {
	return sources.Task{}, noTask
}
func (projectsOf) SetSource(api.ProjectID, api.Source) (sources.Task, error) {
	return sources.Task{}, noTask
}
func (projectsOf) ReadSource(api.ProjectID, string) (sources.Task, error) {
	return sources.Task{}, noTask
}
func (projectsOf) Preview(context.Context, api.Source) (crawl.Report, error) {
	return crawl.Report{}, noTask
}
func (projectsOf) Upload(context.Context, api.ProjectID, api.Source, io.Reader) (sources.Task, error) {
	return sources.Task{}, noTask
}
func (projectsOf) RemoveSource(context.Context, api.ProjectID, string) error { return noTask }
func (projectsOf) All(context.Context, api.ProjectID) ([]sources.Source, error) {
	return []sources.Source{
		{Source: api.Source{Label: "docs"}, First: true, Editable: true, Counts: 1},
		{Source: api.Source{Label: "blog", Kind: api.SourceZip, Address: "<script>", Groups: []string{"staff"}}, Counts: 0.5,
			Error: "failed: <b>it</b>", Collection: &sources.Collection{}},
	}, nil
}
func (projectsOf) Rereads(api.Project, api.Project) bool                     { return true }
func (projectsOf) NewWebhook(context.Context, api.ProjectID) (string, error) { return "", noTask }
func (projectsOf) NewReaderSecret(context.Context, api.ProjectID) (string, string, error) {
	return "", "", noTask
}
func (projectsOf) RetireReaderSecret(context.Context, api.ProjectID, string) error { return noTask }
func (projectsOf) SetChat(context.Context, api.ProjectID, api.Channel, string) (string, error) {
	return "", noTask
}
func (projectsOf) RemoveWebhook(context.Context, api.ProjectID) error { return noTask }
func (projectsOf) Keys(context.Context, api.Project) (projects.NewKey, projects.NewKey, error) {
	return projects.NewKey{}, projects.NewKey{}, noTask
}
func (projectsOf) Limits() api.Limits { return api.Limits{} }
func (projectsOf) Models() []projects.ModelChoice {
	return []projects.ModelChoice{{Name: "builtin", Default: true}}
}

func (projectsOf) Task(string) (sources.Task, error)             { return sources.Task{}, api.ErrNotFound }
func (projectsOf) Newest(api.ProjectID) (sources.Task, bool)     { return sources.Task{}, false }
func (projectsOf) Watch(context.Context, string) <-chan struct{} { return nil }
func (projectsOf) Cancel(string) error                           { return api.ErrNotFound }
func (projectsOf) LastCheck(api.ProjectID) (search.Check, time.Time, bool) {
	return search.Check{}, time.Time{}, false
}

func (projectsOf) Shown(context.Context, api.Project) (projects.SourceState, error) {
	return projects.SourceState{}, nil
}
func (projectsOf) Updates(context.Context, api.ProjectID) ([]api.Update, error) { return nil, nil }
func (projectsOf) Reindex(context.Context, api.ProjectID) (api.UpdateID, error) { return "", noTask }
func (projectsOf) Refused(api.ProjectID) (api.Delivery, bool)                   { return api.Delivery{}, false }
func (projectsOf) TryWebhook(context.Context, api.Project) ([]projects.WebhookTry, error) {
	return nil, noTask
}
func (projectsOf) LastDelivery(context.Context, api.ProjectID) (api.Delivery, error) {
	return api.Delivery{}, api.ErrNotFound
}
