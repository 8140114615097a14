package projects

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/search"
	"docent/search/sources"
	"docent/site"
	"docent/web/console"
)

const (
	rowsShown = 100                    // of a list on one page
	watchPace = 500 * time.Millisecond // between two looks at an update
)

type sourcesView struct {
	Base     string // of this page
	Shown    SourceState
	Kind     string // how the source is reached, in words
	Access   string // with what, in words
	Updates  []updateView
	Running  *taskView
	Check    checkView
	Checked  time.Time
	Stale    bool // the check is of another commit than the answers
	Show     string
	Query    string
	State    string
	Pages    []search.CheckedPage
	Left     []search.LeftOut
	Dead     []search.DeadLink
	More     string // address of the rest
	Matching int
	Same     []string
	Problem  string // of a form
	All      []sourceLine
	Site     siteForm
	Zip      zipForm
}

// An updateView is one reading of the documentation.
type updateView struct {
	api.Update
	Path string
	Good string // class of its badge
	Name string
}

func viewUpdate(base string, u api.Update) updateView {
	view := updateView{
		Update: u,
		Path:   base + "/sources/updates/" + string(u.ID),
		Name:   strings.ReplaceAll(string(u.Status), "_", " "),
	}
	switch u.Status {
	case api.UpdateSuccess:
		view.Good = "ok"
	case api.UpdateFailure:
		view.Good = "bad"
	default:
		view.Good = "info"
	}
	return view
}

// Short is a commit's hash as people write it.
func (u updateView) Short() string { return u.Commit.SHA[:min(len(u.Commit.SHA), 12)] }

// showSources is what was read of the documentation, and how far.
func (s *handler) showSources(v *console.Visit) error {
	return s.sourcesPage(v, http.StatusOK, "")
}

func (s *handler) sourcesPage(v *console.Visit, status int, problem string) error {
	return s.sourcesWith(v, status, problem, newSiteForm(nil, nil), newZipForm(nil, nil))
}

// sourcesWith is the page with the forms as they were filled in.
func (s *handler) sourcesWith(v *console.Visit, status int, problem string, site siteForm, zip zipForm) error {
	p := v.Project
	view := sourcesView{Base: v.Base(), Kind: sourceKind(p), Access: sourceAccess(p), Problem: problem, Site: site, Zip: zip,
		Show: v.Query("show"), Query: strings.TrimSpace(v.Query("q")), State: v.Query("state")}
	var err error
	if view.Shown, err = s.Sources.Shown(v.Context(), p); err != nil {
		return err
	}
	updates, err := s.Sources.Updates(v.Context(), p.ID)
	if err != nil {
		return err
	}
	all, err := s.Sources.All(v.Context(), p.ID)
	if err != nil {
		return err
	}
	for _, one := range all {
		view.All = append(view.All, viewSource(view.Base, one))
	}
	for _, u := range updates[:min(len(updates), 10)] {
		view.Updates = append(view.Updates, viewUpdate(view.Base, u))
	}
	if task, ok := s.Tasks.Newest(p.ID); ok && task.Running() {
		running := viewTask(task, view.Base+"/sources", view.Base+"/sources/task/"+task.ID+"/live?of=sources")
		view.Running = &running
	}
	if check, at, ok := s.Tasks.LastCheck(p.ID); ok {
		view.Check, view.Checked, view.Stale = viewCheck(check, rowsShown), at, check.Commit != view.Shown.Commit
		view.fill(check, v.Query("after"))
	}
	view.Same = []string{
		"docent index " + string(p.ID),
		"docent source list " + string(p.ID),
		"docent crawl preview https://www.example.com/blog/ --pages 10",
		"docent source add " + string(p.ID) + " blog --kind web --address https://www.example.com/blog/",
		"docent source add " + string(p.ID) + " manual --kind zip",
		"docent source upload " + string(p.ID) + " manual FILE.zip",
		"docent project check " + string(p.ID),
		"docent project token " + string(p.ID) + ` <<< "$DOCS_TOKEN"`,
		"curl -X POST -H \"Authorization: Bearer $ADMIN_KEY\" " + console.ShellWord(
			s.APIAddress()+"/v1/project/update/"+string(p.ID),
		),
	}
	return s.RenderStatus(v, status, "sources", "Sources", view)
}

// fill chooses the rows of the list that is shown, from the one after the cursor.
func (view *sourcesView) fill(check search.Check, after string) {
	next := ""
	switch view.Show {
	case "left":
		view.Left, view.Matching, next = rowsFrom(check.LeftOut, after, func(l search.LeftOut) string { return l.Path },
			func(l search.LeftOut) bool { return view.wants(string(l.State), l.Path, l.Why, l.File) })
	case "links":
		view.Dead, view.Matching, next = rowsFrom(check.DeadLinks, after,
			func(l search.DeadLink) string { return l.Path + "\n" + l.Link },
			func(l search.DeadLink) bool { return view.wants("", l.Path, l.Link) })
	case "warnings":
	default:
		view.Show = "pages"
		view.Pages, view.Matching, next = rowsFrom(
			check.Pages,
			after,
			func(p search.CheckedPage) string { return p.Path },
			func(p search.CheckedPage) bool { return view.wants(string(p.State), p.Path, p.URL, p.Title) },
		)
	}
	if next != "" {
		q := url.Values{"show": {view.Show}, "after": {next}}
		for name, value := range map[string]string{"q": view.Query, "state": view.State} {
			if value != "" {
				q.Set(name, value)
			}
		}
		view.More = view.Base + "/sources?" + q.Encode()
	}
}

// wants reports whether a row is of the state and has the words that are asked for.
func (view *sourcesView) wants(state string, texts ...string) bool {
	if view.State != "" && state != view.State {
		return false
	}
	query := strings.ToLower(view.Query)
	return query == "" ||
		slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), query) })
}

// rowsFrom are the rows that are wanted, in the order of their keys, behind one of them; how many there are in all; and
// the key to go on from, if there are more.
func rowsFrom[T any](all []T, after string, key func(T) string, want func(T) bool) (rows []T, count int, next string) {
	wanted := slices.DeleteFunc(slices.Clone(all), func(row T) bool { return !want(row) })
	if order := func(a, b T) int { return strings.Compare(key(a), key(b)) }; !slices.IsSortedFunc(wanted, order) {
		slices.SortStableFunc(wanted, order)
	}
	from := 0
	for from < len(wanted) && after != "" && key(wanted[from]) <= after {
		from++
	}
	rows = wanted[from:min(from+rowsShown, len(wanted))]
	if from+rowsShown < len(wanted) {
		next = key(rows[len(rows)-1])
	}
	return rows, len(wanted), next
}

func sourceKind(p api.Project) string {
	switch {
	case p.Host == api.HostGit:
		return "a git server: the agent pushes branches"
	case p.Host != api.HostBuiltin:
		return string(p.Host) + ": the agent opens pull requests there"
	case strings.Contains(p.Source, "://") || strings.Contains(p.Source, "@"):
		return "a git repository; pull requests are pages of this console"
	}
	return "a folder or repository on the server; pull requests are pages of this console"
}

// sourceAccess says with what the source is reached. The secret itself is never shown.
func sourceAccess(p api.Project) string {
	switch {
	case p.TokenFile != "":
		return "a token that is stored here"
	case p.TokenEnv != "":
		return "a token in the server's environment variable " + p.TokenEnv
	}
	return "no token"
}

// reindex starts re-indexing the documentation.
func (s *handler) reindex(v *console.Visit) error {
	id, err := s.Sources.Reindex(v.Context(), v.Project.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	v.Audit("source.reindex", string(v.Project.ID), string(id))
	return v.SeeOther(v.Base() + "/sources/updates/" + string(id))
}

// recheck reads everything again to say what is public.
func (s *handler) recheck(v *console.Visit) error {
	task, err := s.Setup.Check(v.Project)
	if err != nil && !errors.Is(err, api.ErrConflict) {
		return err
	}
	if err == nil {
		s.settled(v.Context(), task)
	}
	return v.SeeOther(v.Base() + "/sources")
}

// sourceTask is the page of a task on the project, while it goes on and after.
func (s *handler) sourceTask(v *console.Visit) error {
	task, err := s.ownTask(v)
	if err != nil {
		return err
	}
	page := v.Base() + "/sources/task/" + task.ID
	return s.Render(v, "sources.task", "Indexing", viewTask(task, page, page+"/live"))
}

func (s *handler) sourceTaskLive(v *console.Visit) error {
	task, err := s.ownTask(v)
	if err != nil {
		return err
	}
	page := v.Base() + "/sources/task/" + task.ID
	if v.Query("of") == "sources" {
		page = v.Base() + "/sources"
	}
	return s.showTask(v, task.ID, page)
}

// ownTask is the task of the address, if it is one of its project.
func (s *handler) ownTask(v *console.Visit) (sources.Task, error) {
	task, err := s.Tasks.Task(v.Param("task"))
	if err == nil && task.Project != v.Project.ID {
		err = api.ErrNotFound
	}
	if errors.Is(err, api.ErrNotFound) {
		err = &api.StateError{Kind: api.ErrNotFound,
			Reason: "there is no such task: it belongs to an earlier start of the server, or to another project"}
	}
	return task, err
}

type updatePageView struct {
	Update updateView
	Base   string
	Live   string
	Files  []fileList
	Same   []string
}

// A fileList is the files of one kind that an update has found.
type fileList struct {
	Name  string
	Files []string
}

// showUpdate is one reading of the documentation, live while it goes on.
func (s *handler) showUpdate(v *console.Visit) error {
	u, err := s.updateOf(v)
	if err != nil {
		return err
	}
	view := s.viewUpdatePage(v, u)
	view.Same = []string{"curl -H \"Authorization: Bearer $ADMIN_KEY\" " +
		console.ShellWord(s.APIAddress()+"/v1/project/update-status/"+string(u.ID))}
	return s.Render(v, "sources.update", "Update", view)
}

func (s *handler) viewUpdatePage(v *console.Visit, u api.Update) updatePageView {
	view := updatePageView{Update: viewUpdate(v.Base(), u), Base: v.Base()}
	view.Live = view.Update.Path + "/live"
	for _, list := range []fileList{{"added", u.Commit.Added}, {"modified", u.Commit.Modified}, {"removed", u.Commit.Removed}} {
		if len(list.Files) > 0 {
			view.Files = append(view.Files, list)
		}
	}
	return view
}

func (s *handler) updateOf(v *console.Visit) (api.Update, error) {
	list, err := s.Sources.Updates(v.Context(), v.Project.ID)
	if err != nil {
		return api.Update{}, err
	}
	for _, u := range list {
		if string(u.ID) == v.Param("update") {
			return u, nil
		}
	}
	return api.Update{}, api.Missing("update")
}

// liveUpdate sends how far an update is until it has ended.
func (s *handler) liveUpdate(v *console.Visit) error {
	if _, err := s.updateOf(v); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	return s.Live(v, "sources.update.live", pulse(ctx, watchPace), func(context.Context) (any, error) {
		u, err := s.updateOf(v)
		return s.viewUpdatePage(v, u), err
	})
}

// pulse yields now and then, for what says nothing when it changes.
func pulse(ctx context.Context, pace time.Duration) <-chan struct{} {
	c := make(chan struct{})
	background.Go("web.pulse", func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	})
	return c
}

// setToken stores the token that the source is reached with from now on.
func (s *handler) setToken(v *console.Visit) error {
	secret := strings.TrimSpace(v.Form.Get("secret"))
	if secret == "" {
		return s.sourcesPage(v, http.StatusBadRequest, "Paste the token.")
	}
	task, err := s.Setup.SetToken(v.Project, secret)
	if errors.Is(err, api.ErrConflict) {
		return s.sourcesPage(v, http.StatusConflict, Failure(err))
	}
	if err != nil {
		return err
	}
	v.Audit("source.token", string(v.Project.ID), "")
	task = s.settled(v.Context(), task)
	switch {
	case task.Running():
		return v.SeeOther(v.Base() + "/sources/task/" + task.ID)
	case task.Failed():
		return s.sourcesPage(v, http.StatusBadRequest, Failure(task.Err))
	}
	return v.Done(v.Base()+"/sources", "The token is stored, and the source was read with it.")
}

type webhookView struct {
	Address  string
	State    string
	Stored   bool
	On       bool
	Secret   string // shown this once
	Last     *api.Delivery
	Refused  *api.Delivery
	Tries    []WebhookTry
	Manual   []hostSteps
	Base     string
	Same     []string
	External bool // the address is one that a code host may reach
}

// hostSteps say how a code host's webhook is set up.
type hostSteps struct {
	Host, Name string
	Steps      []string
}

func webhookSteps() []hostSteps {
	return []hostSteps{
		{"github", "GitHub", []string{"Open the repository's Settings, Webhooks, Add webhook.",
			"Payload URL: the address above. Content type: application/json. Secret: the secret.",
			"Choose “Just the push event”, and add the webhook."}},
		{"gitlab", "GitLab", []string{"Open the project's Settings, Webhooks, Add new webhook.",
			"URL: the address above. Secret token: the secret. Trigger: Push events.", "Add the webhook."}},
		{
			"gitea",
			"Gitea and Forgejo",
			[]string{
				"Open the repository's Settings, Webhooks, Add webhook, Gitea (or Forgejo).",
				"Target URL: the address above. Content type: application/json. Secret: the secret. Trigger on: push events.",
				"Add the webhook.",
			},
		},
	}
}

func (s *handler) showWebhook(v *console.Visit) error { return s.webhookPage(v, nil) }

func (s *handler) webhookPage(v *console.Visit, tries []WebhookTry) error {
	p, err := s.Catalog.Project(v.Context(), v.Project.ID) // as it is after what was done
	if err != nil {
		return api.Named(err, "project")
	}
	server := s.APIAddress()
	view := webhookView{
		Address: server + "/v1/webhook/" + string(p.ID) + "/push",
		Base:    v.Base(),
		Tries:   tries,
		Stored:  p.WebhookFile != "",
		On:      p.WebhookFile != "" || p.WebhookEnv != "",
		Same: []string{
			"docent project webhook " + string(p.ID), "docent project webhook " + string(p.ID) + " --remove"},
	}
	v.TakeOnce(&view.Secret)
	switch {
	case p.WebhookFile != "":
		view.State = "A secret is stored here."
	case p.WebhookEnv != "":
		view.State = "The secret is in the server's environment variable " + p.WebhookEnv + "."
	default:
		view.State = "There is no secret: pushes are refused, and the source is looked at now and then."
	}
	if u, err := url.Parse(server); err == nil {
		host := u.Hostname()
		view.External = host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1"
	}
	last, err := s.Sources.LastDelivery(v.Context(), p.ID)
	switch {
	case err == nil:
		view.Last = &last
	case !errors.Is(err, api.ErrNotFound):
		return err
	}
	if d, ok := s.Sources.Refused(p.ID); ok && (view.Last == nil || d.At.After(view.Last.At)) {
		view.Refused = &d
	}
	for _, steps := range webhookSteps() {
		if p.Host == api.HostBuiltin || p.Host == api.HostGit || steps.Host == string(p.Host) {
			view.Manual = append(view.Manual, steps)
		}
	}
	return s.Render(v, "webhook", "Webhook", view)
}

// newWebhook makes the webhook's secret, which its page shows once.
func (s *handler) newWebhook(v *console.Visit) error {
	secret, err := s.Setup.NewWebhook(v.Context(), v.Project.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	v.Audit("webhook.secret", string(v.Project.ID), "")
	return v.Once(v.Base()+"/sources/webhook", secret)
}

func (s *handler) removeWebhook(v *console.Visit) error {
	if err := s.Setup.RemoveWebhook(v.Context(), v.Project.ID); err != nil {
		return api.Named(err, "project")
	}
	v.Audit("webhook.remove", string(v.Project.ID), "")
	return v.Done(v.Base()+"/sources/webhook", "The secret is removed: pushes are refused from now on.")
}

// tryWebhook sends a push as the code host would.
func (s *handler) tryWebhook(v *console.Visit) error {
	tries, err := s.Sources.TryWebhook(v.Context(), v.Project)
	if err != nil {
		return err
	}
	return s.webhookPage(v, tries)
}

// States are what a page may be, for the filter.
func (sourcesView) States() []string {
	return []string{string(site.Published), string(site.Unlisted), string(site.Included), string(site.LeftOut)}
}
