package operator

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
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"docent/api"
	"docent/cmd/docent/stores"
	"docent/internal/cell"
	"docent/internal/health"
	"docent/persistence/secrets"
	"docent/router"
	"docent/search/sources"
	website "docent/search/sources/crawl"
	"docent/web"
	"docent/web/projects"
)

// ownSystem is this server, as its operator looks after it.
type ownSystem struct{ ops *Service }

func (s ownSystem) Status() (health.Status, error) { return s.ops.server.Status() }

func (s ownSystem) Log(n int, level slog.Level) []health.Record {
	return s.ops.server.Tail.Newest(n, level)
}

func (s ownSystem) FollowLog() (<-chan struct{}, func()) { return s.ops.server.Tail.Follow() }

func (s ownSystem) Retry(ctx context.Context, id string) error {
	return s.ops.server.System.Retry(ctx, id)
}

func (s ownSystem) BackUp() (dir string, err error) { return s.ops.server.Backups.Start() }

// A projectSetup adds and changes projects for the console, by the same operations as the commands.
type projectSetup struct {
	*sources.Reader
	*secrets.Store
	ops  *Service
	site sources.Website
}

// Find is that of search/sources, with a look at what only asking tells.
func (s projectSetup) Find(ctx context.Context, text string) (sources.Place, []sources.Candidate, error) {
	place, err := sources.Locate(text)
	if err == nil && place.Kind == sources.PlaceFolder {
		if _, missing := os.Stat(place.Project.Source); errors.Is(missing, fs.ErrNotExist) || errors.Is(missing, fs.ErrPermission) {
			return place, nil, invalid("source", "can't be read on this server. Check the path and its permissions")
		}
	}
	if err != nil || place.Kind != sources.PlaceUnknown {
		return place, nil, err
	}
	return s.site.Find(ctx, place.Address)
}

// byPage checks what a page says of a project, so that the page can show at once what is wrong with which field. Beyond
// what commands may not do either, a page gives no project private addresses.
func (s projectSetup) byPage(p api.Project) error {
	if err := s.ops.checkSettings(s.ops.server.Work, p); err != nil {
		return err
	}
	other, err := s.ops.stores.Catalog.ProjectByDomain(s.ops.server.Work, p.Domain)
	if err == nil && other.ID != p.ID {
		return invalid("domain", "belongs to another project already")
	}
	return s.keepsPrivate(p)
}

// keepsPrivate refuses to have a page give a project private addresses, or take them away.
func (s projectSetup) keepsPrivate(p api.Project) error {
	before, err := s.ops.stores.Catalog.Project(s.ops.server.Work, p.ID)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	return p.KeepsPrivate(before)
}

func (s projectSetup) Look(p api.Project) (sources.Task, error) {
	if err := s.keepsPrivate(p); err != nil {
		return sources.Task{}, err
	}
	return s.ops.server.Tasks.Begin(
		sources.TaskLook,
		p.ID,
		func(ctx context.Context, progress Progress) (sources.Outcome, error) {
			look, err := s.ops.stores.Source.Look(ctx, p, progress)
			return sources.Outcome{Look: &look, Check: &look.Check}, err
		},
	)
}

func (s projectSetup) Add(p api.Project) (sources.Task, error) {
	if err := s.byPage(p); err != nil {
		return sources.Task{}, err
	}
	return s.ops.server.Tasks.Begin(
		sources.TaskAdd,
		p.ID,
		func(ctx context.Context, progress Progress) (sources.Outcome, error) {
			added, err := s.ops.add(ctx, p, progress)
			if err != nil {
				return sources.Outcome{}, err
			}
			out := sources.Outcome{Read: &added}
			// What could not be read is worth knowing, and no reason to have failed.
			if check, err := s.ops.stores.Source.CheckIndexed(ctx, added.Project, progress); err == nil {
				out.Check = &check
			} else {
				s.ops.server.Log.Warn("what is public of a new project is not known", "project", p.ID, "error", err)
			}
			return out, nil
		},
	)
}

func (s projectSetup) change(
	id api.ProjectID, do func(context.Context, Progress) (sources.Project, error),
) (sources.Task, error) {
	return s.ops.server.Tasks.Begin(
		sources.TaskChange,
		id,
		func(ctx context.Context, progress Progress) (sources.Outcome, error) {
			set, err := do(ctx, progress)
			return sources.Outcome{Read: &set}, err
		},
	)
}

func (s projectSetup) Change(p api.Project) (sources.Task, error) {
	if err := s.byPage(p); err != nil {
		return sources.Task{}, err
	}
	return s.change(p.ID, func(ctx context.Context, progress Progress) (sources.Project, error) {
		return s.ops.set(ctx, p, progress)
	})
}

func (s projectSetup) SetToken(p api.Project, secret string) (sources.Task, error) {
	return s.change(p.ID, func(ctx context.Context, progress Progress) (sources.Project, error) {
		return s.ops.storeToken(ctx, SecretParams{ID: p.ID, Secret: secret}, progress)
	})
}

func (s projectSetup) Check(p api.Project) (sources.Task, error) {
	return s.ops.server.Tasks.Begin(
		sources.TaskCheck,
		p.ID,
		func(ctx context.Context, progress Progress) (sources.Outcome, error) {
			check, err := s.ops.stores.Source.Check(ctx, p, progress)
			if err != nil {
				return sources.Outcome{}, err
			}
			return sources.Outcome{Check: &check}, nil
		},
	)
}

// further does something with one further source, as a task on its project.
func (s projectSetup) further(project api.ProjectID, do func(context.Context, Progress) error) (sources.Task, error) {
	return s.ops.server.Tasks.Begin(sources.TaskChange, project, func(ctx context.Context, progress Progress) (sources.Outcome, error) {
		return sources.Outcome{}, do(ctx, progress)
	})
}

// sourceByPage is byPage for one further source.
func (s projectSetup) sourceByPage(project api.ProjectID, f api.Source) error {
	p, err := s.ops.stores.Catalog.Project(s.ops.server.Work, project)
	if err != nil {
		return err
	}
	return f.KeepsPrivate(p)
}

func (s projectSetup) AddSource(project api.ProjectID, f api.Source) (sources.Task, error) {
	if err := s.sourceByPage(project, f); err != nil {
		return sources.Task{}, err
	}
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.stores.Source.AddSource(ctx, project, f, progress)
		return err
	})
}

func (s projectSetup) SetSource(project api.ProjectID, f api.Source) (sources.Task, error) {
	if err := s.sourceByPage(project, f); err != nil {
		return sources.Task{}, err
	}
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.stores.Source.SetSource(ctx, project, f, progress)
		return err
	})
}

// Preview reads the first pages of a web site as its source would read them.
func (s projectSetup) Preview(ctx context.Context, f api.Source) (website.Report, error) {
	if err := f.KeepsPrivate(api.Project{}); err != nil {
		return website.Report{}, err
	}
	settings := stores.SiteSettings(api.Project{Source: f.Address, Include: f.Include, Exclude: f.Exclude, Collect: f.Collect})
	settings.MaxTime = previewTime
	return s.ops.stores.Sites.Crawler.Preview(cell.WithOwner(ctx, "preview"), settings, previewPages, quietly)
}

// What a preview on a page reads at most.
const (
	previewPages = 10
	previewTime  = 15 * time.Second
)

// Upload takes a zip whole, and has it become the pages of a source. One that does not exist yet is added with it.
func (s projectSetup) Upload(ctx context.Context, project api.ProjectID, f api.Source, zip io.Reader) (sources.Task, error) {
	stores := s.ops.stores
	p, err := stores.Catalog.Project(ctx, project)
	if err != nil {
		return sources.Task{}, err
	}
	isNew := p.Of(f.Label).ID == ""
	if !isNew {
		if _, err := s.ops.uploadTo(ctx, project, f.Label); err != nil {
			return sources.Task{}, err
		}
	}
	incoming, err := stores.Uploads.Read(strings.ToLower(rand.Text()), zip)
	if err != nil {
		return sources.Task{}, err
	}
	task, err := s.further(project, func(ctx context.Context, progress Progress) error {
		return s.ops.uploadOnPage(ctx, project, f, isNew, incoming, progress)
	})
	if err != nil {
		incoming.Drop()
	}
	return task, err
}

func (s projectSetup) ReadSource(project api.ProjectID, label string) (sources.Task, error) {
	return s.further(project, func(ctx context.Context, progress Progress) error {
		_, err := s.ops.readSource(ctx, SourceParams{ID: project, Name: label}, progress)
		return err
	})
}

func (s projectSetup) Remove(ctx context.Context, id api.ProjectID) error {
	err := s.ops.removeProject(ctx, ProjectParams{ID: id})
	if err == nil {
		s.ops.server.Tasks.Forget(id)
	}
	return err
}

func (s projectSetup) NewWebhook(ctx context.Context, id api.ProjectID) (string, error) {
	made, err := s.ops.storeWebhook(ctx, SecretParams{ID: id}, quietly)
	return made.Secret, err
}

func (s projectSetup) RemoveWebhook(ctx context.Context, id api.ProjectID) error {
	_, err := s.ops.storeWebhook(ctx, SecretParams{ID: id, Remove: true}, quietly)
	return err
}

func (s projectSetup) NewReaderSecret(ctx context.Context, id api.ProjectID) (name, secret string, err error) {
	made, err := s.ops.createReaderSecret(ctx, ReaderSecretParams{Project: id})
	return made.ID, made.Secret, err
}

func (s projectSetup) SetChat(ctx context.Context, id api.ProjectID, app api.Channel, tokens string) (string, error) {
	made, err := s.ops.setChat(ctx, ChatParams{ID: id, App: app, Secret: tokens, Remove: tokens == ""})
	return made.Name, err
}

func (s projectSetup) RetireReaderSecret(ctx context.Context, id api.ProjectID, name string) error {
	err := s.ops.retireReaderSecret(ctx, ReaderSecretParams{Project: id, ID: name})
	return err
}

// quietly is a Progress that nobody hears.
func quietly(string, int, int) {}

func (s projectSetup) Keys(ctx context.Context, p api.Project) (admin, assistant projects.NewKey, err error) {
	made := map[api.KeyKind]projects.NewKey{}
	for _, kind := range []api.KeyKind{api.AdminKey, api.AssistantKey} {
		key, err := s.ops.CreateKey(ctx, KeyParams{Project: p.ID, Kind: kind, Name: "Setup"})
		if err != nil {
			return projects.NewKey{}, projects.NewKey{}, err
		}
		made[kind] = projects.NewKey{ID: key.ID, Secret: key.Key}
	}
	return made[api.AdminKey], made[api.AssistantKey], nil
}

func (s projectSetup) Limits() api.Limits { return s.ops.stores.Config.Limits }

func (s projectSetup) Models() []projects.ModelChoice {
	states := map[string]string{}
	for _, e := range s.ops.server.Models.Endpoints() {
		for _, name := range e.Models {
			switch {
			case e.After > 0:
				states[name] = fmt.Sprintf("not asked for %v, since it has failed", e.After.Round(time.Second))
			case e.Failures > 0:
				states[name] = fmt.Sprintf("%d failures in a row", e.Failures)
			}
		}
	}
	var list []projects.ModelChoice
	for _, choice := range s.ops.server.Models.Choices() {
		one := projects.ModelChoice{Name: choice.Name, Default: choice.Default, State: states[choice.Name]}
		if choice.Default {
			list = append([]projects.ModelChoice{one}, list...)
		} else {
			list = append(list, one)
		}
	}
	return list
}

// A projectSources says how far projects' documentation was read.
type projectSources struct{ ops *Service }

func (s projectSources) Shown(ctx context.Context, p api.Project) (projects.SourceState, error) {
	stores := s.ops.stores
	state := projects.SourceState{Commit: stores.Library.Commit(p.ID), Address: stores.Library.Address(p.ID)}
	for _, reason := range stores.Source.LeftOut() {
		if strings.HasPrefix(reason, "project "+string(p.ID)+" is left out") {
			state.LeftOut = reason
		}
	}
	if r, ok := stores.Source.LastReading(p.ID); ok {
		state.Looked = r.At
		if r.Err != nil {
			state.Failed = projects.Failure(r.Err)
		}
	}
	if state.Commit == "" {
		return state, nil
	}
	tree, err := stores.Hub.Tree(ctx, p, state.Commit)
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
	s.ops.server.Log.Debug("the commit that answers are from is not known", "project", p.ID, "error", err)
	return state, nil // the index is enough for answers, and for the page
}

func (s projectSources) All(ctx context.Context, project api.ProjectID) ([]sources.Source, error) {
	return s.ops.stores.Source.Sources(ctx, project)
}

func (s projectSources) Updates(ctx context.Context, project api.ProjectID) ([]api.Update, error) {
	list, err := s.ops.stores.Catalog.Updates(ctx, project, 50)
	for i, u := range list {
		if u.Open() {
			if now, err := s.ops.server.Updates.Status(ctx, u.ID); err == nil {
				list[i] = now
			}
		}
	}
	return list, err
}

func (s projectSources) Reindex(ctx context.Context, project api.ProjectID) (api.UpdateID, error) {
	s.ops.stores.Source.Forget(project)
	return s.ops.server.Updates.Start(ctx, project)
}

func (s projectSources) LastDelivery(ctx context.Context, project api.ProjectID) (api.Delivery, error) {
	return s.ops.stores.Catalog.LastDelivery(ctx, project)
}

func (s projectSources) Refused(project api.ProjectID) (api.Delivery, bool) {
	return s.ops.server.Automations.Refused(project)
}

// TryWebhook sends a push by the public address and, where that is another one, by the server's own: the difference
// says whether the project or the way to it is not right.
func (s projectSources) TryWebhook(ctx context.Context, p api.Project) ([]projects.WebhookTry, error) {
	secret, err := s.ops.server.Automations.Secret(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	if secret == "" {
		return nil, &api.StateError{
			Kind:   api.ErrConflict,
			Reason: "there is no secret to sign a push with: make one first",
		}
	}
	ways := []projects.WebhookTry{{From: "by the public address", Address: s.ops.stores.Config.PublicURL}}
	if s.ops.server.Address != "" && s.ops.server.Address != s.ops.stores.Config.PublicURL {
		ways = append(ways, projects.WebhookTry{From: "on this machine", Address: s.ops.server.Address})
	}
	for i := range ways {
		ways[i].Address += "/v1/webhook/" + string(p.ID) + "/push"
		ways[i].Status, ways[i].Outcome = sendPush(ctx, ways[i].Address, p, s.ops.stores.Library.Commit(p.ID), secret)
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

// Console gives the pages what this server does for its operators and for those who own projects.
func (o *Service) Console(deps *web.Deps) {
	deps.Setup = projectSetup{Reader: o.stores.Source, Store: o.stores.Secrets, ops: o}
	deps.Tasks, deps.Sources, deps.System = o.server.Tasks, projectSources{o}, ownSystem{o}
	deps.LanguageModels = languageModels{o}
	deps.Automations, deps.Webhooks = ownAutomations{o.stores.Catalog, o}, ownWebhooks{o.stores.Catalog, o}
	deps.Eraser = &o.erasing
}

// Wait waits for what was begun for the pages. It does not end what is under way.
func (o *Service) Wait() { o.erasing.running.Wait() }
