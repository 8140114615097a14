package projects

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"docent/actors/thread"
	"docent/api"
	"docent/api/stream"
	"docent/internal/idn"
	"docent/search"
	"docent/search/sources"
	"docent/web/console"
	"docent/web/password"
)

// draftsKept is how many projects may be on their way at once.
const draftsKept = 50

// A draft is a project that is on its way into the catalog. It is kept in memory: after a restart the project is
// there, or the wizard begins again.
type draft struct {
	ID       api.ProjectID
	Entered  string // what was pasted
	Project  api.Project
	Look     *sources.Look
	task     string // the newest one's id
	added    bool   // the task that adds it was begun
	Token    bool   // one was entered
	Thread   api.ThreadID
	Question string
	KeysMade bool
	fresh    bool // the repository was made by looking
}

// Folder reports whether the source is on the server's machine, where no token is asked for.
func (d draft) Folder() bool { return path.IsAbs(d.Project.Source) }

type drafts struct {
	mu   sync.Mutex
	list []*draft // oldest first
}

// get is a copy of a draft.
func (d *drafts) get(id api.ProjectID) (draft, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.list {
		if one.ID == id {
			return *one, true
		}
	}
	return draft{}, false
}

// put stores a draft in place of the one of its name, and returns those that it displaced.
func (d *drafts) put(next draft) (dropped []draft) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = slices.DeleteFunc(d.list, func(old *draft) bool { return old.ID == next.ID })
	d.list = append(d.list, &next)
	for len(d.list) > draftsKept {
		dropped = append(dropped, *d.list[0])
		d.list = d.list[1:]
	}
	return dropped
}

// change changes a draft that is there.
func (d *drafts) change(id api.ProjectID, how func(*draft)) (draft, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.list {
		if one.ID == id {
			how(one)
			return *one, true
		}
	}
	return draft{}, false
}

func (d *drafts) remove(id api.ProjectID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = slices.DeleteFunc(d.list, func(old *draft) bool { return old.ID == id })
}

func (d *drafts) all() (list []draft) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range slices.Backward(d.list) {
		list = append(list, *one)
	}
	return list
}

// onTheirWay are the drafts that are no projects yet.
func (s *handler) onTheirWay(projects []api.Project) []draft {
	return slices.DeleteFunc(s.drafts.all(), func(d draft) bool {
		return slices.ContainsFunc(projects, func(p api.Project) bool { return p.ID == d.ID })
	})
}

// Path is the address of the step that a draft has come to.
func (d draft) Path() string { return setupPath(d.ID, "") }

func setupPath(id api.ProjectID, step string) string {
	return strings.TrimRight("/console/setup/"+url.PathEscape(string(id))+"/"+step, "/")
}

// The steps of the wizard, as their pages show them.
const (
	stepSource = iota + 1
	stepProject
	stepIndex
	stepQuestion
	stepModel
	stepKeys
)

type setupView struct {
	Step                     int
	ID                       api.ProjectID
	Fields                   []console.Field
	More                     []console.Field // folded away
	Problems                 []string
	Drafts                   []draft
	First                    bool // there is no project yet
	Site                     string
	Candidates               []sources.Candidate
	Token                    bool
	Task                     taskView
	Draft                    draft
	Check                    checkView
	Project                  api.Project
	Console                  string // address of the project's overview
	Answer                   Answer
	Model                    string    // that answers; the built-in one's name if none is connected
	Made                     setupKeys // shown once
	Tag, Curl, Chat, Command string
	Same                     []string
	// Newcomer is who came by the operator's link while nobody has an account: one is offered.
	Newcomer bool
	Shortest int // characters of a password
}

// Steps are the names of the wizard's steps.
func (setupView) Steps() []string {
	return []string{"Source", "Project", "Index", "First question", "Model (optional)", "Keys"}
}

// showSetup is the first step: where the documentation is.
func (s *handler) showSetup(v *console.Visit) error {
	return s.sourceStep(v, http.StatusOK, url.Values{"source": {v.Query("source")}}, nil)
}

func (s *handler) sourceStep(v *console.Visit, status int, form url.Values, problems map[string]string) error {
	projects, err := s.Catalog.Projects(v.Context())
	if err != nil {
		return err
	}
	host := func(value, label string) console.Option {
		return console.Option{Value: value, Label: label, On: form.Get("kind") == value}
	}
	view := setupView{Step: stepSource, Drafts: s.onTheirWay(projects), First: len(projects) == 0,
		Fields: []console.Field{
			{
				Name:     "source",
				Label:    "Where is your documentation?",
				Value:    form.Get("source"),
				Required: true,
				Hint:     "A folder on this server such as /srv/docs, a git address, a repository's page on GitHub, GitLab, Gitea or Forgejo, or the address of your published site.",
			},
			{
				Name:  "secret",
				Label: "Access token",
				Kind:  "password",
				Hint:  "Only for a private repository, or for pull requests on the code host. It is kept in the data directory, readable for this server alone, and never shown again.",
			},
		},
		More: []console.Field{
			{
				Name:  "id",
				Label: "Name of the project",
				Value: form.Get("id"),
				Hint:  "Used in commands and URLs, such as docs. Default: taken from the source. You can't change it later.",
			},
			{
				Name:  "branch",
				Label: "Branch",
				Value: form.Get("branch"),
				Hint:  "Default: the repository's default branch.",
			},
			{
				Name:  "kind",
				Label: "Code host",
				Kind:  "select",
				Hint:  "Choose it if the address doesn't tell, as with your own GitLab.",
				Options: []console.Option{
					host("", "detect"),
					host("github", "GitHub Enterprise Server"),
					host("gitlab", "GitLab"),
					host("gitea", "Gitea or Forgejo"),
					host("git", "any other git server"),
				},
			},
		}}
	if v.Who.SignIn.Kind == api.SessionOfLink {
		people, err := s.Catalog.Members(v.Context(), api.DefaultOrg)
		if err != nil {
			return err
		}
		view.Newcomer, view.Shortest = len(people) == 0, password.Shortest
	}
	if len(problems) > 0 {
		view.Problems = console.PlaceFaults(view.Fields, problems)
		rest := map[string]string{}
		for _, p := range view.Problems {
			name, text, _ := strings.Cut(p, " ")
			rest[name] = text
		}
		view.Problems = console.PlaceFaults(view.More, rest)
	}
	return s.RenderStatus(v, status, "setup", "Set up a project", view)
}

// setupSource takes the first step: it finds out what was pasted and begins to look at it.
func (s *handler) setupSource(v *console.Visit) error {
	form := v.Form
	kind, text := api.HostKind(form.Get("kind")), form.Get("source")
	var place sources.Place
	var candidates []sources.Candidate
	var err error
	if kind == "" {
		place, candidates, err = s.Setup.Find(v.Context(), text)
	} else {
		place, err = sources.LocateOn(kind, text)
	}
	if err != nil {
		if problems := console.Faults(err); len(problems) > 0 {
			return s.sourceStep(v, http.StatusBadRequest, form, problems)
		}
		return err
	}
	if place.Kind == sources.PlaceUnknown || place.Kind == "" {
		return s.Render(v, "setup.site", "Set up a project", setupView{Step: stepSource, Site: strings.TrimSpace(text),
			Candidates: candidates, Same: []string{"docent crawl preview " + console.ShellWord(strings.TrimSpace(text)),
				"docent project add NAME --domain DOMAIN --kind web --source " + console.ShellWord(strings.TrimSpace(text))}})
	}
	p := place.Project
	p.Branch = cmp.Or(strings.TrimSpace(form.Get("branch")), p.Branch)
	if p.ID = api.ProjectID(strings.TrimSpace(form.Get("id"))); p.ID == "" {
		if p.ID, err = s.freeID(v.Context(), sources.ProposeID(p)); err != nil {
			return err
		}
	}
	d := draft{ID: p.ID, Entered: entered(text), Project: p}
	if err := s.lookAt(v, d, strings.TrimSpace(form.Get("secret"))); err != nil {
		if problems := console.Faults(err); len(problems) > 0 {
			if text := problems["token"]; text != "" {
				problems["secret"] = text
			}
			return s.sourceStep(v, http.StatusBadRequest, form, problems)
		}
		return err
	}
	return v.SeeOther(d.Path())
}

// entered is what was pasted as pages repeat it: what comes behind the path of an address may be a secret.
func entered(text string) string {
	if text = strings.TrimSpace(text); strings.Contains(text, "://") {
		text, _, _ = strings.Cut(text, "#")
		text, _, _ = strings.Cut(text, "?")
	}
	return text
}

// freeID is a name that no project has.
func (s *handler) freeID(ctx context.Context, proposed string) (api.ProjectID, error) {
	for n := 1; ; n++ {
		id := api.ProjectID(proposed)
		if n > 1 {
			id = api.ProjectID(proposed + "-" + strconv.Itoa(n))
		}
		if _, err := s.Catalog.Project(ctx, id); errors.Is(err, api.ErrNotFound) {
			return id, nil
		} else if err != nil {
			return "", err
		}
	}
}

// lookAt begins to look at a draft's source. A token that was entered belongs to the draft from then on.
func (s *handler) lookAt(v *console.Visit, d draft, secret string) error {
	if err := checkDraft(d.Project, secret != "" || d.Token); err != nil {
		return err
	}
	old, had := s.drafts.get(d.ID)
	if secret != "" {
		name, err := s.Secrets.Keep(d.ID, secret)
		if err != nil {
			return console.Invalid("secret", err.Error())
		}
		d.Project.TokenFile, d.Token = name, true
	} else if !d.Token && d.Project.Host != api.HostBuiltin {
		// Without a token pull requests cannot be opened there: they are pages of this console.
		d.Project.Host, d.Project.HostURL = api.HostBuiltin, ""
	}
	task, err := s.Setup.Look(d.Project)
	if err != nil {
		if secret != "" {
			err = errors.Join(err, s.Secrets.Drop(d.Project.TokenFile))
		}
		return err
	}
	if had && old.Project.TokenFile != d.Project.TokenFile {
		if err := s.Secrets.Drop(old.Project.TokenFile); err != nil {
			s.Log.Warn("could not remove an unused token", "error", err)
		}
	}
	d.task, d.Look, d.added = task.ID, nil, false
	for _, dropped := range s.drafts.put(d) {
		s.discardDraft(v.Context(), dropped)
	}
	return nil
}

// checkDraft says what is wrong with a draft before anything is asked.
func checkDraft(p api.Project, token bool) error {
	p.Domain = cmp.Or(p.Domain, "docs")
	if token {
		p.TokenFile = string(p.ID) + ".00000000" // whatever it will be called
	} else {
		p.Host, p.HostURL = api.HostBuiltin, ""
	}
	err := p.WithDefaults().Validate()
	if bad, ok := errors.AsType[*api.InvalidError](err); ok { // what follows from the name is said of the name
		bad.Problems = slices.DeleteFunc(bad.Problems, func(p api.Problem) bool { return p.Field == "tokenFile" })
		if len(bad.Problems) == 0 {
			return nil
		}
	}
	return err
}

func (s *handler) discardDraft(ctx context.Context, d draft) {
	if d.task != "" {
		_ = s.Tasks.Cancel(d.task)
	}
	if _, err := s.Catalog.Project(ctx, d.ID); err == nil {
		return // it was added: it is a draft no more
	}
	err := s.Secrets.Drop(d.Project.TokenFile)
	if d.fresh {
		err = errors.Join(err, s.Setup.Discard(ctx, d.ID))
	}
	if err != nil {
		s.Log.Warn("what was looked at for a project could not be removed", "project", d.ID, "error", err)
	}
}

// draftOf is the draft of the address, with what its task has found.
func (s *handler) draftOf(v *console.Visit) (draft, sources.Task, bool) {
	d, ok := s.drafts.get(api.ProjectID(v.Param("id")))
	if !ok {
		return d, sources.Task{}, false
	}
	task, err := s.Tasks.Task(d.task)
	if err == nil && !task.Running() && task.Look != nil && task.Err == nil && d.Look == nil {
		d, ok = s.drafts.change(d.ID, func(d *draft) {
			d.Look, d.fresh = task.Look, d.fresh || task.Look.Fresh
			d.Project.DocsDir, d.Project.Branch = task.Look.Project.DocsDir, task.Look.Project.Branch
		})
	}
	return d, task, ok
}

// showDraft is the second step: what was found, and what the project is to be called. Until that is known, and if it
// cannot be, it says so.
func (s *handler) showDraft(v *console.Visit) error {
	d, task, ok := s.draftOf(v)
	if !ok {
		return s.draftIsGone(v)
	}
	if d.added {
		return v.SeeOther(setupPath(d.ID, "indexing"))
	}
	if d.Look == nil {
		view := setupView{Step: stepProject, ID: d.ID, Draft: d, Task: viewTask(task, d.Path(), setupPath(d.ID, "live"))}
		return s.Render(v, "setup.looking", "Check the source", view)
	}
	return s.projectStep(v, http.StatusOK, d, nil, nil)
}

// draftIsGone leads on from an address of the wizard that the server knows nothing of: it was restarted since.
func (s *handler) draftIsGone(v *console.Visit) error {
	p, err := s.Catalog.Project(v.Context(), api.ProjectID(v.Param("id")))
	if err == nil {
		return v.Done(console.PathOf(p), "The project "+string(p.ID)+" is set up.")
	}
	if !errors.Is(err, api.ErrNotFound) {
		return err
	}
	return s.RenderStatus(
		v,
		http.StatusNotFound,
		"setup.gone",
		"Set up a project",
		setupView{Step: stepSource, ID: api.ProjectID(v.Param("id"))},
	)
}

// projectStep is the form of the second step, filled in with what was found or with what was sent.
func (s *handler) projectStep(v *console.Visit, status int, d draft, form url.Values, problems map[string]string) error {
	look := d.Look
	value := func(name, proposed string) string {
		if form != nil {
			return form.Get(name)
		}
		return proposed
	}
	domain := string(d.ID)
	if u, err := url.Parse(look.Check.Address); err == nil && u.Hostname() != "" {
		domain = u.Hostname()
	}
	siteHint := "Where your docs are published. Sources in answers link there, and answers come from its pages if they match the repository."
	if look.Check.Address != "" {
		siteHint += " Found in " + look.Check.AddressFrom + "."
	} else {
		siteHint += " The site's configuration doesn't say. Leave empty if nothing is published yet: sources are then paths."
	}
	siteURL := ""
	if u, err := url.Parse(look.Check.Address); err == nil && !api.ReservedHost(u.Hostname()) {
		siteURL = look.Check.Address
	}
	folderHint := "The folder in the repository that holds the pages. Default: its root."
	if look.Guessed != "" {
		folderHint += " Guessed from " + look.Guessed + "."
	}
	view := setupView{Step: stepProject, ID: d.ID, Draft: d, Check: viewCheck(look.Check, 20),
		Fields: []console.Field{
			{
				Name:     "domain",
				Label:    "Domain",
				Value:    value("domain", strings.ToLower(domain)),
				Required: true,
				Hint:     "Identifies the project in URLs and in this console: the domain of your documentation, or one word.",
			},
			{Name: "name", Label: "Name", Value: value("name", string(d.ID)), Hint: "Display name."},
			{Name: "siteUrl", Label: "Public URL", Value: value("siteUrl", siteURL), Kind: "url", Hint: siteHint},
		},
		More: []console.Field{
			{Name: "docsDir", Label: "Documentation folder", Value: value("docsDir", d.Project.DocsDir), Hint: folderHint},
			{Name: "branch", Label: "Branch", Value: value("branch", d.Project.Branch)},
			siteField(value("site", string(d.Project.Site)), string(look.Check.Site)),
			{
				Name:  "include",
				Label: "Include",
				Kind:  "area",
				Value: value("include", strings.Join(d.Project.Include, "\n")),
				Hint:  "Patterns as in .gitignore, one per line. Only files that match are pages.",
			},
			{
				Name:  "exclude",
				Label: "Leave out",
				Kind:  "area",
				Value: value("exclude", strings.Join(d.Project.Exclude, "\n")),
				Hint:  "Patterns as in .gitignore, one per line. Files that match are not pages; ! includes what the site leaves out.",
			},
		}}
	if len(problems) > 0 {
		rest := map[string]string{}
		for _, p := range console.PlaceFaults(view.Fields, problems) {
			name, text, _ := strings.Cut(p, " ")
			rest[name] = text
		}
		view.Problems = console.PlaceFaults(view.More, rest)
	}
	view.Same = []string{addCommand(d.Project, value("domain", strings.ToLower(domain)))}
	return s.RenderStatus(v, status, "setup.project", "Review the project", view)
}

// siteField asks for the generator of the site.
func siteField(value, recognized string) console.Field {
	f := console.Field{
		Name:  "site",
		Label: "Site generator",
		Kind:  "select",
		Hint:  "Decides which files are pages and what their addresses are.",
	}
	label := "detect"
	if recognized != "" {
		label += " (" + recognized + ")"
	}
	f.Options = []console.Option{{Value: "", Label: label, On: value == ""}}
	for _, kind := range api.SiteKinds {
		f.Options = append(f.Options, console.Option{Value: string(kind), Label: string(kind), On: value == string(kind)})
	}
	return f
}

// filled is the draft's project with what a form says of it.
func (d draft) filled(form url.Values) api.Project {
	p := d.Project
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	p.Domain, p.Name, p.SiteURL = idn.ASCII(text("domain")), text("name"), text("siteUrl")
	p.DocsDir, p.Branch, p.Site = text("docsDir"), text("branch"), api.SiteKind(text("site"))
	p.Include, p.Exclude = console.Lines(form.Get("include")), console.Lines(form.Get("exclude"))
	return p.WithDefaults()
}

// setupLook looks again, with another folder or branch.
func (s *handler) setupLook(v *console.Visit) error {
	d, task, ok := s.draftOf(v)
	if !ok {
		return s.draftIsGone(v)
	}
	if task.Running() {
		return v.SeeOther(d.Path())
	}
	if d.Look != nil {
		d.Project = d.filled(v.Form)
	}
	secret := strings.TrimSpace(v.Form.Get("secret"))
	if err := s.lookAt(v, d, secret); err != nil {
		if problems := console.Faults(err); len(problems) > 0 && d.Look != nil {
			return s.projectStep(v, http.StatusBadRequest, d, v.Form, problems)
		}
		return err
	}
	return v.SeeOther(d.Path())
}

// setupAdd takes the second step: the project is read, indexed and added.
func (s *handler) setupAdd(v *console.Visit) error {
	d, _, ok := s.draftOf(v)
	if !ok {
		return s.draftIsGone(v)
	}
	if d.Look == nil || d.added {
		return v.SeeOther(d.Path())
	}
	p := d.filled(v.Form)
	task, err := s.Setup.Add(p)
	if err != nil {
		if problems := console.Faults(err); len(problems) > 0 {
			return s.projectStep(v, http.StatusBadRequest, d, v.Form, problems)
		}
		return err
	}
	v.AuditIn(api.DefaultOrg, d.ID, "project.add", string(p.ID), "begun, from "+p.Source)
	s.drafts.change(d.ID, func(d *draft) { d.Project, d.task, d.added = p, task.ID, true })
	return v.SeeOther(setupPath(d.ID, "indexing"))
}

// setupLive sends how far the draft's task is.
func (s *handler) setupLive(v *console.Visit) error {
	d, _, ok := s.draftOf(v)
	if !ok {
		return api.Missing("set-up")
	}
	page := d.Path()
	if d.added {
		page = setupPath(d.ID, "indexing")
	}
	return s.showTask(v, d.task, page)
}

func (s *handler) setupCancel(v *console.Visit) error {
	if d, ok := s.drafts.get(api.ProjectID(v.Param("id"))); ok {
		_ = s.Tasks.Cancel(d.task) // one that has ended needs none
		return v.SeeOther(d.Path())
	}
	return s.draftIsGone(v)
}

// setupDiscard gives a draft up.
func (s *handler) setupDiscard(v *console.Visit) error {
	d, ok := s.drafts.get(api.ProjectID(v.Param("id")))
	if !ok {
		return s.draftIsGone(v)
	}
	s.drafts.remove(d.ID)
	s.discardDraft(v.Context(), d)
	return v.Done("/console/setup", "Nothing was added, and what was read of "+string(d.ID)+" is removed.")
}

// showIndexing is the third step: the pages are read, and what was read and what could not be.
func (s *handler) showIndexing(v *console.Visit) error {
	d, task, ok := s.draftOf(v)
	if !ok {
		return s.draftIsGone(v)
	}
	if !d.added {
		return v.SeeOther(d.Path())
	}
	view := setupView{Step: stepIndex, ID: d.ID, Draft: d,
		Task: viewTask(task, setupPath(d.ID, "indexing"), setupPath(d.ID, "live"))}
	if task.Failed() {
		s.drafts.change(d.ID, func(d *draft) { d.added = false }) // it can be tried again
		return s.Render(v, "setup.failed", "Not added", view)
	}
	if task.Running() {
		return s.Render(v, "setup.indexing", "Indexing", view)
	}
	p, err := s.Catalog.Project(v.Context(), d.ID)
	if err != nil {
		return api.Named(err, "project")
	}
	s.drafts.change(d.ID, func(d *draft) { d.fresh = false }) // the repository is the project's now
	view.Project, view.Console = p, console.PathOf(p)
	if task.Check != nil {
		view.Check = viewCheck(*task.Check, 50)
	}
	view.Same = []string{"docent project check " + string(p.ID), "docent index " + string(p.ID)}
	return s.Render(v, "setup.indexed", "Indexed", view)
}

// added is the project of the address, for the steps after it was added, and the draft that it came from if the
// server still knows it.
func (s *handler) added(v *console.Visit) (api.Project, draft, error) {
	d, _ := s.drafts.get(api.ProjectID(v.Param("id")))
	p, err := s.Catalog.Project(v.Context(), api.ProjectID(v.Param("id")))
	if err != nil {
		return p, d, api.Named(err, "set-up")
	}
	d.ID = p.ID
	return p, d, nil
}

// showQuestion is the fourth step: the first question and its answer.
func (s *handler) showQuestion(v *console.Visit) error {
	p, d, err := s.added(v)
	if err != nil {
		return err
	}
	view := setupView{Step: stepQuestion, ID: p.ID, Draft: d, Project: p, Console: console.PathOf(p),
		Same: []string{"docent ask --domain " + p.Domain + ` --key "$ASSISTANT_KEY" "How do I get started?"`}}
	if d.Thread != "" {
		if view.Answer, err = s.firstAnswer(v.Context(), p, d.Thread); err != nil {
			return api.Named(err, "thread")
		}
	}
	return s.Render(v, "setup.question", "The first question", view)
}

func (s *handler) setupAsk(v *console.Visit) error {
	p, _, err := s.added(v)
	if err != nil {
		return err
	}
	question := strings.TrimSpace(v.Form.Get("question"))
	if question == "" || len(question) > 2000 {
		return console.Invalid("question", "must have 1 to 2,000 characters")
	}
	turn, err := s.Readers.Put(v.Context(), v.Client, "", thread.Ask{Project: p, Caller: v.Caller(),
		Channel: api.ChannelPlayground, Text: question, Query: search.Query{Limit: 5}})
	if err != nil {
		return err
	}
	v.About("", turn.Thread)
	if _, ok := s.drafts.change(p.ID, func(d *draft) { d.Thread, d.Question = turn.Thread, question }); !ok {
		s.drafts.put(draft{ID: p.ID, Project: p, added: true, Thread: turn.Thread, Question: question})
	}
	return v.SeeOther(setupPath(p.ID, "question"))
}

// firstAnswer is the answer to the first question as far as it is written.
func (s *handler) firstAnswer(ctx context.Context, p api.Project, id api.ThreadID) (Answer, error) {
	c, err := s.Tries.Read(ctx, id, thread.Read{Project: p.ID})
	if err != nil {
		return Answer{}, err
	}
	p.Options.RequireThreadKey = false // that is for readers
	turn, err := s.Tries.Resume(ctx, c.Thread, thread.Resume{Project: p, Caller: c.Caller})
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	var text strings.Builder
	r := turn.Log.Reader(0)
	defer r.Close()
	parts, more := r.Take()
	for _, part := range parts {
		switch part.Kind {
		case stream.Text:
			text.WriteString(part.Text)
		case stream.Source:
			a.Sources = append(a.Sources, AnswerSource{Title: cmp.Or(part.Title, part.URL), URL: part.URL, Excerpt: part.Excerpt})
		case stream.Error:
			a.Failed, a.Done = part.Text, true
		case stream.Finish:
			a.Done = true
		}
	}
	a.HTML, a.Done = s.Markdown(ctx, p.ID, text.String()), a.Done || !more
	return a, nil
}

// setupAnswer sends the answer as it is written.
func (s *handler) setupAnswer(v *console.Visit) error {
	p, d, err := s.added(v)
	if err != nil {
		return err
	}
	if d.Thread == "" {
		return api.Missing("question")
	}
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	return s.Live(v, "setup.answer.live", pulse(ctx, watchPace), func(ctx context.Context) (any, error) {
		answer, err := s.firstAnswer(ctx, p, d.Thread)
		return setupView{Draft: d, Project: p, Answer: answer}, api.Named(err, "thread")
	})
}

// showModelStep is the fifth step, which may be skipped: a language model.
func (s *handler) showModelStep(v *console.Visit) error {
	p, d, err := s.added(v)
	if err != nil {
		return err
	}
	view := setupView{Step: stepModel, ID: p.ID, Draft: d, Project: p, Model: p.Model}
	for _, m := range s.Setup.Models() {
		if m.Default && view.Model == "" {
			view.Model = m.Name
		}
	}
	return s.Render(v, "setup.model", "Connect a model (optional)", view)
}

// setupKeys are the secrets that the last step shows once.
type setupKeys struct{ Admin, Assistant string }

// showKeysStep is the last step: the keys are made, and shown once.
func (s *handler) showKeysStep(v *console.Visit) error {
	p, d, err := s.added(v)
	if err != nil {
		return err
	}
	view := setupView{Step: stepKeys, ID: p.ID, Draft: d, Project: p, Console: console.PathOf(p), Same: keyCommands(p)}
	if v.TakeOnce(&view.Made) {
		server, key := s.APIAddress(), view.Made.Assistant
		view.Tag, view.Curl, view.Chat = widgetTag(server, p.Domain, key), curlSnippet(server, p.Domain, key), chatSnippet(server, p.Domain, key)
		view.Command = "DOCENT_KEY=" + console.ShellWord(view.Made.Admin) + " docent job create --wait --url " + console.ShellWord(server) +
			" --project " + string(p.ID) + " \\\n  'create page trying-docent.md titled \"Trying Docent\" with content: The agent made this page.'"
	}
	return s.Render(v, "setup.keys", "Keys", view)
}

func keyCommands(p api.Project) []string {
	return []string{"docent key create --project " + string(p.ID) + " --kind admin",
		"docent key create --project " + string(p.ID) + " --kind assistant"}
}

// makeKeys makes both keys. Their secrets are on the page that it leads to, once; a form that is sent again makes no others.
func (s *handler) makeKeys(v *console.Visit) error {
	p, d, err := s.added(v)
	if err != nil {
		return err
	}
	if d.KeysMade {
		return v.Done(setupPath(p.ID, "keys"), "The keys were made and shown. More are made on the page API keys.")
	}
	for _, kind := range []api.KeyKind{api.AdminKey, api.AssistantKey} {
		if err := v.Who.Rights.MayGive(api.GivenKey(api.Key{Kind: kind, Org: p.Org})); err != nil {
			return err
		}
	}
	adminKey, assistantKey, err := s.Setup.Keys(v.Context(), p)
	if err != nil {
		return err
	}
	v.AuditIn(p.Org, p.ID, "key.create", string(adminKey.ID), string(api.AdminKey)+", at the set-up")
	v.AuditIn(p.Org, p.ID, "key.create", string(assistantKey.ID), string(api.AssistantKey)+", at the set-up")
	if _, ok := s.drafts.change(p.ID, func(d *draft) { d.KeysMade = true }); !ok {
		s.drafts.put(draft{ID: p.ID, Project: p, added: true, KeysMade: true})
	}
	return v.Once(setupPath(p.ID, "keys"), setupKeys{adminKey.Secret, assistantKey.Secret})
}

// An Answer is one as a reader sees it.
type Answer struct {
	HTML    template.HTML
	Sources []AnswerSource
	Done    bool
	Failed  string // why there is none
}

// An AnswerSource is a page that an answer cites, or points to.
type AnswerSource struct{ Title, URL, Excerpt string }
