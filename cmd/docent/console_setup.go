package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"docent/api"
	website "docent/crawl"
	"docent/ingest"
	"docent/model"
	"docent/router"
	"docent/uploads"
	"docent/web"
)

// A projectSetup adds and changes projects for the console, by the same operations as the commands.
type projectSetup struct {
	app  *app
	ops  *operations
	site ingest.Website
}

// Find is ingest's, with a look at what only asking tells.
func (s projectSetup) Find(ctx context.Context, text string) (ingest.Place, []ingest.Candidate, error) {
	place, err := ingest.Locate(text)
	if err != nil || place.Kind != ingest.PlaceUnknown {
		return place, nil, err
	}
	return s.site.Find(ctx, place.Address)
}

func (s projectSetup) Keep(project api.ProjectID, secret string) (string, error) {
	return s.ops.stores.secrets.Keep(project, secret)
}

func (s projectSetup) Drop(name string) error { return s.ops.stores.secrets.Drop(name) }

// byPage refuses what a page may not change of a project. The operator's commands do not come by here.
func (s projectSetup) byPage(p api.Project) error {
	before, err := s.ops.stores.catalog.Project(s.app.work, p.ID)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	return p.KeepsPrivate(before)
}

func (s projectSetup) Look(p api.Project) (ingest.Task, error) {
	if err := s.byPage(p); err != nil {
		return ingest.Task{}, err
	}
	return s.app.tasks.Begin(
		ingest.TaskLook,
		p.ID,
		func(ctx context.Context, progress Progress) (ingest.Outcome, error) {
			look, err := s.ops.stores.source.Look(ctx, p, progress)
			return ingest.Outcome{Look: &look, Check: &look.Check}, err
		},
	)
}

func (s projectSetup) Add(p api.Project) (ingest.Task, error) {
	if err := s.byPage(p); err != nil {
		return ingest.Task{}, err
	}
	return s.app.tasks.Begin(
		ingest.TaskAdd,
		p.ID,
		func(ctx context.Context, progress Progress) (ingest.Outcome, error) {
			added, err := s.ops.addProject(ctx, p, progress)
			if err != nil {
				return ingest.Outcome{}, err
			}
			out := ingest.Outcome{Read: &added}
			// What could not be read is worth knowing, and no reason to have failed.
			if check, err := s.ops.stores.source.CheckIndexed(ctx, added.Project, progress); err == nil {
				out.Check = &check
			} else {
				s.app.log.Warn("what is public of a new project is not known", "project", p.ID, "error", err)
			}
			return out, nil
		},
	)
}

func (s projectSetup) change(
	id api.ProjectID, do func(context.Context, Progress) (ingest.Project, error),
) (ingest.Task, error) {
	return s.app.tasks.Begin(
		ingest.TaskChange,
		id,
		func(ctx context.Context, progress Progress) (ingest.Outcome, error) {
			set, err := do(ctx, progress)
			return ingest.Outcome{Read: &set}, err
		},
	)
}

func (s projectSetup) Change(p api.Project) (ingest.Task, error) {
	if err := s.byPage(p); err != nil {
		return ingest.Task{}, err
	}
	return s.change(p.ID, func(ctx context.Context, progress Progress) (ingest.Project, error) {
		return s.ops.setProject(ctx, p, progress)
	})
}

func (s projectSetup) SetToken(p api.Project, secret string) (ingest.Task, error) {
	return s.change(p.ID, func(ctx context.Context, progress Progress) (ingest.Project, error) {
		return s.ops.storeToken(ctx, secretParams{ID: p.ID, Secret: secret}, progress)
	})
}

func (s projectSetup) Check(p api.Project) (ingest.Task, error) {
	return s.app.tasks.Begin(
		ingest.TaskCheck,
		p.ID,
		func(ctx context.Context, progress Progress) (ingest.Outcome, error) {
			check, err := s.ops.stores.source.Check(ctx, p, progress)
			if err != nil {
				return ingest.Outcome{}, err
			}
			return ingest.Outcome{Check: &check}, nil
		},
	)
}

// further does something with one further source, as a task on its project.
func (s projectSetup) further(project api.ProjectID, do func(context.Context, Progress) error) (ingest.Task, error) {
	return s.app.tasks.Begin(ingest.TaskChange, project, func(ctx context.Context, progress Progress) (ingest.Outcome, error) {
		return ingest.Outcome{}, do(ctx, progress)
	})
}

// sourceByPage is byPage for one further source.
func (s projectSetup) sourceByPage(project api.ProjectID, f api.Source) error {
	p, err := s.ops.stores.catalog.Project(s.app.work, project)
	if err != nil {
		return err
	}
	return f.KeepsPrivate(p)
}

func (s projectSetup) AddSource(project api.ProjectID, f api.Source) (ingest.Task, error) {
	if err := s.sourceByPage(project, f); err != nil {
		return ingest.Task{}, err
	}
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.stores.source.AddSource(ctx, project, f, progress)
		return err
	})
}

func (s projectSetup) SetSource(project api.ProjectID, f api.Source) (ingest.Task, error) {
	if err := s.sourceByPage(project, f); err != nil {
		return ingest.Task{}, err
	}
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.stores.source.SetSource(ctx, project, f, progress)
		return err
	})
}

// Preview reads the first pages of a web site as its source would read them.
func (s projectSetup) Preview(ctx context.Context, f api.Source) (website.Report, error) {
	if err := f.KeepsPrivate(api.Project{}); err != nil {
		return website.Report{}, err
	}
	settings := siteSettings(api.Project{Source: f.Address, Include: f.Include, Exclude: f.Exclude, Collect: f.Collect})
	settings.MaxTime = previewTime
	return s.ops.stores.sites.crawler.Preview(ctx, settings, previewPages, quietly)
}

// What a preview on a page reads at most.
const (
	previewPages = 10
	previewTime  = 15 * time.Second
)

// Upload takes a zip whole, and has it become the pages of a source. One that there is not yet is added with it.
func (s projectSetup) Upload(ctx context.Context, project api.ProjectID, f api.Source, zip io.Reader) (ingest.Task, error) {
	stores := s.ops.stores
	p, err := stores.catalog.Project(ctx, project)
	if err != nil {
		return ingest.Task{}, err
	}
	isNew := p.Of(f.Label).ID == ""
	if !isNew {
		if _, err := stores.uploadTo(ctx, project, f.Label); err != nil {
			return ingest.Task{}, err
		}
	}
	incoming, err := stores.uploads.Read(strings.ToLower(rand.Text()), zip)
	if err != nil {
		return ingest.Task{}, err
	}
	task, err := s.further(project, func(ctx context.Context, progress Progress) error {
		return stores.uploadOnPage(ctx, project, f, isNew, incoming, progress)
	})
	if err != nil {
		incoming.Drop()
	}
	return task, err
}

func (s *stores) uploadOnPage(ctx context.Context, project api.ProjectID, f api.Source, isNew bool, incoming uploads.Incoming,
	progress Progress) error {
	defer incoming.Drop()
	if isNew {
		if _, err := s.source.AddSource(ctx, project, f, progress); err != nil {
			return err
		}
	}
	part, err := s.uploadTo(ctx, project, f.Label)
	if err == nil {
		_, err = s.uploaded(ctx, part, incoming, progress)
	}
	if err != nil && isNew {
		err = errors.Join(err, s.source.RemoveSource(context.WithoutCancel(ctx), project, f.Label))
	}
	return err
}

func (s projectSetup) ReadSource(project api.ProjectID, label string) (ingest.Task, error) {
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.readSource(ctx, sourceParams{ID: project, Name: label}, progress)
		return err
	})
}

func (s projectSetup) RemoveSource(ctx context.Context, project api.ProjectID, label string) error {
	return s.ops.stores.source.RemoveSource(ctx, project, label)
}

func (s projectSetup) Discard(ctx context.Context, id api.ProjectID) error {
	return s.ops.stores.source.Discard(ctx, id)
}

func (s projectSetup) Remove(ctx context.Context, id api.ProjectID) error {
	_, err := s.ops.removeProject(ctx, projectParams{ID: id}, nil)
	if err == nil {
		s.app.tasks.Forget(id)
	}
	return err
}

func (s projectSetup) Rereads(before, after api.Project) bool {
	return s.ops.stores.source.Rereads(before, after)
}

func (s projectSetup) NewWebhook(ctx context.Context, id api.ProjectID) (string, error) {
	made, err := s.ops.storeWebhook(ctx, secretParams{ID: id}, quietly)
	return made.Secret, err
}

func (s projectSetup) RemoveWebhook(ctx context.Context, id api.ProjectID) error {
	_, err := s.ops.storeWebhook(ctx, secretParams{ID: id, Remove: true}, quietly)
	return err
}

// quietly is a Progress that nobody hears.
func quietly(string, int, int) {}

func (s projectSetup) Keys(ctx context.Context, p api.Project) (admin, assistant string, err error) {
	made := map[api.KeyKind]string{}
	for _, kind := range []api.KeyKind{api.AdminKey, api.AssistantKey} {
		key, err := s.ops.createKey(ctx, keyParams{Project: p.ID, Kind: kind, Name: "made at set-up"}, quietly)
		if err != nil {
			return "", "", err
		}
		made[kind] = key.Key
	}
	return made[api.AdminKey], made[api.AssistantKey], nil
}

func (s projectSetup) Limits() api.Limits { return s.app.config.Limits }

func (s projectSetup) Models() []web.ModelChoice {
	c := s.app.config
	states := map[string]string{}
	for _, e := range s.app.models.Endpoints() {
		for _, name := range e.Models {
			switch {
			case e.After > 0:
				states[name] = fmt.Sprintf("not asked for %v, since it has failed", e.After.Round(time.Second))
			case e.Failures > 0:
				states[name] = fmt.Sprintf("%d failures in a row", e.Failures)
			}
		}
	}
	standard := cmp.Or(c.Model, model.Builtin)
	list := []web.ModelChoice{{Name: standard, Default: true, State: states[standard]}}
	for _, name := range append([]string{model.Builtin}, slices.Sorted(maps.Keys(c.Models))...) {
		if name != standard {
			list = append(list, web.ModelChoice{Name: name, State: states[name]})
		}
	}
	return list
}

// A projectSources says how far projects' documentation was read.
type projectSources struct{ app *app }

func (s projectSources) Shown(ctx context.Context, p api.Project) (web.SourceState, error) {
	stores := s.app.stores
	state := web.SourceState{Commit: stores.library.Commit(p.ID), Address: stores.library.Address(p.ID)}
	for _, reason := range stores.source.LeftOut() {
		if strings.HasPrefix(reason, "project "+string(p.ID)+" is left out") {
			state.LeftOut = reason
		}
	}
	if r, ok := stores.source.LastReading(p.ID); ok {
		state.Looked = r.At
		if r.Err != nil {
			state.Failed = web.Failure(r.Err)
		}
	}
	if state.Commit == "" {
		return state, nil
	}
	tree, err := stores.hub.Tree(ctx, p, state.Commit)
	if err == nil {
		made, err := tree.Made(ctx)
		if err == nil {
			state.Message, state.Author, state.At = made.Subject, made.Author, made.Time
			return state, nil
		}
	}
	if ctx.Err() != nil {
		return state, ctx.Err()
	}
	s.app.log.Debug("the commit that answers are from is not known", "project", p.ID, "error", err)
	return state, nil // the index is enough for answers, and for the page
}

func (s projectSources) All(ctx context.Context, project api.ProjectID) ([]ingest.Source, error) {
	return s.app.stores.source.Sources(ctx, project)
}

func (s projectSources) Updates(ctx context.Context, project api.ProjectID) ([]api.Update, error) {
	list, err := s.app.stores.catalog.Updates(ctx, project, 50)
	for i, u := range list {
		if u.Open() {
			if now, err := s.app.updates.Status(ctx, u.ID); err == nil {
				list[i] = now
			}
		}
	}
	return list, err
}

func (s projectSources) Reindex(ctx context.Context, project api.ProjectID) (api.UpdateID, error) {
	s.app.stores.source.Forget(project)
	return s.app.updates.Start(ctx, project)
}

func (s projectSources) LastDelivery(ctx context.Context, project api.ProjectID) (api.Delivery, error) {
	return s.app.stores.catalog.LastDelivery(ctx, project)
}

func (s projectSources) Refused(project api.ProjectID) (api.Delivery, bool) {
	return s.app.automations.Refused(project)
}

// TryWebhook sends a push by the public address and, where that is another one, by the server's own: the difference
// says whether the project or the way to it is not right.
func (s projectSources) TryWebhook(ctx context.Context, p api.Project) ([]web.WebhookTry, error) {
	secret, err := s.app.automations.Secret(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	if secret == "" {
		return nil, &api.StateError{
			Kind:   api.ErrConflict,
			Reason: "there is no secret to sign a push with: make one first",
		}
	}
	ways := []web.WebhookTry{{From: "by the public address", Address: s.app.config.PublicURL}}
	if s.app.address != "" && s.app.address != s.app.config.PublicURL {
		ways = append(ways, web.WebhookTry{From: "on this machine", Address: s.app.address})
	}
	for i := range ways {
		ways[i].Address += "/v1/webhook/" + string(p.ID) + "/push"
		ways[i].Status, ways[i].Outcome = sendPush(ctx, ways[i].Address, p, s.app.stores.library.Commit(p.ID), secret)
		ways[i].Good = ways[i].Status == http.StatusAccepted || ways[i].Status == http.StatusNoContent
	}
	return ways, nil
}

// sendPush sends a push event in the form of the project's code host.
func sendPush(ctx context.Context, to string, p api.Project, commit, secret string) (status int, outcome string) {
	branch := cmp.Or(p.Branch, "main")
	repository := cmp.Or(p.Repository, "test/"+string(p.ID))
	body, err := json.Marshal(map[string]any{
		"object_kind": "push", "ref": "refs/heads/" + branch, "after": cmp.Or(commit, strings.Repeat("1", 40)),
		"repository": map[string]string{"full_name": repository, "default_branch": branch},
		"project":    map[string]string{"path_with_namespace": repository, "default_branch": branch},
	})
	if err != nil {
		return 0, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, "that is no address"
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Docent (test of a webhook)")
	req.Header.Set(router.WebhookTest, "1")
	if p.Host == api.HostGitLab {
		req.Header.Set("X-Gitlab-Event", "Push Hook")
		req.Header.Set("X-Gitlab-Token", secret)
	} else {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	} // nor do code hosts
	resp, err := client.Do(req)
	if err != nil {
		return 0, "no answer: a code host that is elsewhere may reach it all the same, this server does not"
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct {
		Error    string  `json:"error"`
		StatusID *string `json:"statusId"`
	}
	_ = json.Unmarshal(text, &said)
	switch {
	case said.Error != "":
		return resp.StatusCode, said.Error
	case resp.StatusCode == http.StatusAccepted && said.StatusID != nil:
		return resp.StatusCode, "taken in: the documentation is read again"
	case resp.StatusCode == http.StatusAccepted:
		return resp.StatusCode, "taken in: it is not the documentation's branch"
	case resp.StatusCode/100 == 3:
		return resp.StatusCode, "it leads elsewhere, and code hosts do not follow: set public_url to the address that answers"
	}
	return resp.StatusCode, "that is not this server's answer: something before it answers"
}

// Each port of set-up with what serves it.
var (
	_ web.Setup   = projectSetup{}
	_ web.Tasks   = (*ingest.Tasks)(nil)
	_ web.Sources = projectSources{}
)
