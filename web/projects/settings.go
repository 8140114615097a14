package projects

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"docent/api"
	"docent/internal/brief"
	"docent/internal/idn"
	"docent/web/console"
)

type settingsView struct {
	Groups   []fieldGroup
	Problems []string
	Base     string
	MayWrite bool
	Wrong    string // what was typed in place of the project's name
	Same     []string
	Endpoint string // where Discord sends what people do
}

// A fieldGroup is the fields of one thing.
type fieldGroup struct {
	Name, Hint string
	Fields     []console.Field
}

func (s *handler) showSettings(v *console.Visit) error {
	return s.settingsPage(v, http.StatusOK, nil, nil, "")
}

// settingsPage is the form, filled in with the project's settings or with what was sent.
func (s *handler) settingsPage(v *console.Visit, status int, form url.Values, problems map[string]string, wrong string) error {
	view := settingsView{Groups: s.settingGroups(v, form), Base: v.Base(), MayWrite: v.May(console.Owner), Wrong: wrong,
		Same: []string{setCommand(v.Project), "docent project chat " + string(v.Project.ID) + " --app slack",
			"docent project remove " + string(v.Project.ID)}, Endpoint: s.APIAddress() + "/v1/discord/" + string(v.Project.ID)}
	for i := range view.Groups {
		if len(problems) == 0 {
			break
		}
		rest := map[string]string{}
		for _, p := range console.PlaceFaults(view.Groups[i].Fields, problems) {
			name, text, _ := strings.Cut(p, " ")
			rest[name] = text
		}
		problems = rest
	}
	for name, text := range problems {
		view.Problems = append(view.Problems, strings.TrimSpace(name+" "+text))
	}
	return s.RenderStatus(v, status, "settings", "Settings", view)
}

// A settingsForm makes the fields of a project's settings, filled in with what was sent, or else with what is stored.
type settingsForm struct {
	p    api.Project
	sent url.Values // nil if nothing was
}

func (f settingsForm) value(name, now string) string {
	if f.sent.Has(name) {
		return f.sent.Get(name)
	}
	return now
}

func (f settingsForm) text(name, label, now, hint string) console.Field {
	return console.Field{Name: name, Label: label, Value: f.value(name, now), Hint: hint}
}

func (f settingsForm) area(name, label string, now []string, hint string) console.Field {
	return console.Field{Name: name, Label: label, Kind: "area", Value: f.value(name, strings.Join(now, "\n")), Hint: hint}
}

func (f settingsForm) check(name, label, hint string, now bool) console.Field {
	if f.sent != nil {
		now = f.sent.Get(name) == "on"
	}
	return console.Field{Name: name, Label: label, Kind: "check", Hint: hint, On: now}
}

func (f settingsForm) number(name, label string, now, standard int) console.Field {
	return console.Field{Name: name, Label: label, Kind: "number", Value: f.value(name, strconv.Itoa(now)),
		Hint: "0 for the server's default, which is " + limitText(standard) + "; a negative number for no limit."}
}

// settingGroups are all settings of a project.
func (s *handler) settingGroups(v *console.Visit, sent url.Values) []fieldGroup {
	p := v.Project
	f := settingsForm{p, sent}
	limits := s.Setup.Limits()
	return []fieldGroup{
		{"Project", "These take effect at once.", []console.Field{
			f.text("name", "Name", p.Name, "Display name."),
			f.text("domain", "Domain", p.Domain, "In the assistant's address and in this console. "+
				"Programs that use the old one are refused."),
			f.text("timeZone", "Time zone", p.TimeZone, "Weeks of reports begin in this time zone, such as Europe/Berlin. Default: UTC."),
		}},
		f.source(v.May(console.Operator)),
		f.pages(),
		f.answers(s.Setup.Models()),
		{"Pull requests", "", []console.Field{
			f.text("pulls.title", "Title pattern", p.Pulls.Title,
				"Such as docs({scope}): {title}, where {scope} is the folder that all changes are in. Default: "+api.DefaultTitle+"."),
			f.text("labels", "Labels", p.Labels, "Separated by commas."),
			f.text("pulls.reviewers", "Reviewers", p.Pulls.Reviewers,
				"Accounts, teams as OWNER/TEAM, codeowners, and code-authors, separated by commas."),
			f.check("pulls.draft", "Open pull requests as drafts", "", p.Pulls.Draft),
			f.area("pulls.body", "Text of pull requests", []string{p.Pulls.Body},
				"Replaces the repository's template. {report} stands for the agent's report."),
			f.text("pulls.author", "Commit author", p.Pulls.Author,
				"Name <name@example.com>. Default: the account of the GitHub App, if there is one."),
			f.number("pulls.most", "Max open pull requests of automations", p.Pulls.Most, api.DefaultMostPulls),
			f.check("pulls.signOff", "Sign off commits", "Adds the author's Signed-off-by line, which the DCO requires.", p.Pulls.SignOff),
			f.check("direct", "Commit directly",
				"A pull request is opened only if the branch is protected. Not on the built-in host.", p.Direct),
			{Name: "review", Label: "Comments as instructions", Kind: "select",
				Options: reviewOptions(f.value("review", string(p.ReviewMode()))),
				Hint:    "On pull requests of GitHub, GitLab, Gitea and Forgejo, by people who may write to the repository."},
			f.text("handle", "Name in comments", p.Handle, "The agent's name in comments, without the @. Default: docent."),
		}},
		{"Limits", "", []console.Field{
			f.number("projectHour", "Jobs and follow-ups per hour", p.Limits.ProjectHour, limits.ProjectHour),
			f.number("keyMonth", "Assistant messages per key and month", p.Limits.KeyMonth, limits.KeyMonth),
			f.number("orgHour", "Assistant messages of the organization per hour", p.Limits.OrgHour, limits.OrgHour),
			f.number("ipDay", "Assistant messages per IP address and day", p.Limits.IPDay, limits.IPDay),
			{Name: "proofOfWork", Label: "Proof of work", Kind: "number",
				Value: f.value("proofOfWork", strconv.Itoa(p.Options.ProofOfWork)),
				Hint: "0 for none. With 200000, a phone works for about half a second before each question, while its reader types. " +
					"Keys that are limited to addresses need none."},
		}},
	}
}

// source is what names the server's machine or decides where its tokens go: the operator's to change.
func (f settingsForm) source(operates bool) fieldGroup {
	p := f.p
	g := fieldGroup{"Source",
		"Saving checks the credentials with the code host and re-indexes the documentation.",
		[]console.Field{
			f.text("source", "Source", p.Source, "A folder on the server, or the URL of a git repository."),
			{Name: "host", Label: "Code host", Kind: "select", Value: string(p.Host),
				Options: hostOptions(f.value("host", string(p.Host)))},
			f.text("hostUrl", "URL of the code host", p.HostURL, "For your own instance."),
			f.text("repository", "Repository", p.Repository, "OWNER/NAME on the code host."),
			f.text("tokenEnv", "Token environment variable", p.TokenEnv,
				"An environment variable of the server. It overrides a stored token."),
		}}
	if !operates {
		g.Hint = "An operator of this server changes these."
		for i, field := range g.Fields {
			g.Fields[i].Fixed, g.Fields[i].Hint = true, ""
			g.Fields[i].Value = map[string]string{"source": p.Source, "host": string(p.Host), "hostUrl": p.HostURL,
				"repository": p.Repository, "tokenEnv": p.TokenEnv}[field.Name]
		}
	}
	return g
}

// pages is what decides which pages there are.
func (f settingsForm) pages() fieldGroup {
	p := f.p
	return fieldGroup{"Indexing", "Saving re-indexes the documentation and shows the progress.",
		[]console.Field{
			f.text("branch", "Branch", p.Branch, "Default: the repository's default branch."),
			f.text("docsDir", "Documentation folder", p.DocsDir, "Default: the root of the repository."),
			f.text("siteUrl", "Public URL", p.SiteURL,
				"Public URL of the pages. Default: from the site's configuration."),
			answersField(f.value("answersFrom", string(answering(p)))),
			siteField(f.value("site", string(p.Site)), ""),
			f.area("include", "Include", p.Include,
				"Patterns as in .gitignore, one per line. Only files that match are pages."),
			f.area("exclude", "Leave out", p.Exclude,
				"Patterns as in .gitignore, one per line. Files that match are not pages; ! includes what the site leaves out."),
		}}
}

// answering is what a form offers: a site that is named now is read, unless the project had one before it could be.
func answering(p api.Project) api.AnswersFrom {
	if p.AnswersFrom == api.FromNothingElse && p.SiteURL == "" {
		return api.FromBetter
	}
	return cmp.Or(p.AnswersFrom, api.FromSourceOnly)
}

// answersField asks what readers are answered from.
func answersField(value string) console.Field {
	f := console.Field{Name: "answersFrom", Label: "Answer from", Kind: "select",
		Hint: "The published site has what readers see: included text, values, generated pages. The agent edits the repository either way. Switching re-indexes nothing."}
	for _, o := range [][2]string{{"auto", "the site, if it has the repository's pages"}, {"site", "the site"},
		{"source", "the repository; the site is compared"}, {"source-only", "the repository; the site is not read"}} {
		f.Options = append(f.Options, console.Option{Value: o[0], Label: o[1], On: value == o[0]})
	}
	return f
}

// answers is how the assistant answers.
func (f settingsForm) answers(models []ModelChoice) fieldGroup {
	p := f.p
	return fieldGroup{"Answers", "These take effect with the next question.", []console.Field{
		{Name: "model", Label: "Model", Kind: "select", Options: modelOptions(models, f.value("model", p.Model)),
			Hint: "Operators connect models under Models or in the server's configuration."},
		{Name: "agentModel", Label: "Model of jobs", Kind: "select", Options: jobModelOptions(models, f.value("agentModel", p.AgentModel)),
			Hint: "A job can name another one."},
		f.text("deflection", "Support contact", p.Deflection,
			"An email address or URL, offered if the documentation has no answer."),
		f.check("suggestions", "End answers with suggested questions", "", p.Options.Suggestions),
		f.check("searchTool", "Show retrieval as a tool call named search", "", p.Options.SearchTool),
		f.check("requireThreadKey", "Continue a thread only with its secret key", "", p.Options.RequireThreadKey),
		f.check("public", "Public access (no key needed for llms.txt and MCP)", "", p.Options.Public),
		f.text("publicOrigins", "Origins with public access", p.Options.PublicOrigins,
			"Optional. Origins besides the site's own, separated by commas, such as https://app.example.com; * for all."),
		f.text("readerJwks", "Keys of reader tokens (JWKS)", p.ReaderJWKS,
			"Optional. The https address of the JSON Web Key Set whose ES256 keys sign who a reader of private pages is. Reader secrets are on the page API keys."),
		f.text("readerSignIn", "Sign-in of readers", p.ReaderSignIn,
			"Optional. The https address of your site where readers sign in to connect an editor or a chat to private pages, over MCP."),
	}}
}

func limitText(n int) string {
	if n <= 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

func hostOptions(now string) (out []console.Option) {
	for _, kind := range []api.HostKind{api.HostBuiltin, api.HostGitHub, api.HostGitLab, api.HostGitea, api.HostGit} {
		out = append(out, console.Option{Value: string(kind), Label: string(kind), On: now == string(kind)})
	}
	return out
}

func reviewOptions(now string) (out []console.Option) {
	for _, o := range []struct {
		mode  api.ReviewMode
		label string
	}{{api.ReviewMention, "those that name the agent"}, {api.ReviewLines, "those that name it, and all on a line"},
		{api.ReviewOff, "none"}} {
		out = append(out, console.Option{Value: string(o.mode), Label: o.label, On: now == string(o.mode)})
	}
	return out
}

func modelOptions(models []ModelChoice, now string) []console.Option {
	out := []console.Option{}
	known := now == ""
	for _, m := range models {
		label := m.Name
		value := m.Name
		if m.Default {
			label, value = "the server's default ("+m.Name+")", ""
		}
		if m.State != "" {
			label += ": " + m.State
		}
		on := now == value
		known = known || on
		out = append(out, console.Option{Value: value, Label: label, On: on})
	}
	if !known {
		out = append(out, console.Option{Value: now, Label: now + ": not configured any more", On: true})
	}
	return out
}

// jobModelOptions are the models that can do jobs in the place of the one that answers.
func jobModelOptions(models []ModelChoice, now string) []console.Option {
	out := []console.Option{{Label: "the model above, or the server's default for jobs", On: now == ""}}
	known := now == ""
	for _, m := range models {
		known = known || now == m.Name
		out = append(out, console.Option{Value: m.Name, Label: m.Name, On: now == m.Name})
	}
	if !known {
		out = append(out, console.Option{Value: now, Label: now + ": not configured any more", On: true})
	}
	return out
}

// changedSettings is the project with what a form says of it.
func changedSettings(p api.Project, form url.Values, operates bool) (api.Project, map[string]string) {
	wrong := map[string]string{}
	set := func(name string, to *string) {
		if form.Has(name) {
			*to = strings.TrimSpace(form.Get(name))
		}
	}
	set("name", &p.Name)
	set("domain", &p.Domain)
	p.Domain = idn.ASCII(p.Domain)
	set("timeZone", &p.TimeZone)
	if operates {
		set("source", &p.Source)
		set("host", (*string)(&p.Host))
		set("hostUrl", &p.HostURL)
		set("repository", &p.Repository)
		set("tokenEnv", &p.TokenEnv)
	}
	set("branch", &p.Branch)
	set("docsDir", &p.DocsDir)
	set("siteUrl", &p.SiteURL)
	set("answersFrom", (*string)(&p.AnswersFrom))
	set("site", (*string)(&p.Site))
	set("model", &p.Model)
	set("agentModel", &p.AgentModel)
	set("deflection", &p.Deflection)
	set("readerJwks", &p.ReaderJWKS)
	set("readerSignIn", &p.ReaderSignIn)
	set("labels", &p.Labels)
	set("pulls.title", &p.Pulls.Title)
	set("pulls.reviewers", &p.Pulls.Reviewers)
	set("pulls.author", &p.Pulls.Author)
	if form.Has("pulls.body") {
		p.Pulls.Body = strings.TrimSpace(strings.ReplaceAll(form.Get("pulls.body"), "\r\n", "\n"))
	}
	p.Pulls.Draft, p.Pulls.SignOff = form.Get("pulls.draft") == "on", form.Get("pulls.signOff") == "on"
	set("review", (*string)(&p.Review))
	set("handle", &p.Handle)
	if form.Has("include") {
		p.Include = console.Lines(form.Get("include"))
	}
	if form.Has("exclude") {
		p.Exclude = console.Lines(form.Get("exclude"))
	}
	p.Options.Suggestions, p.Options.SearchTool = form.Get("suggestions") == "on", form.Get("searchTool") == "on"
	set("publicOrigins", &p.Options.PublicOrigins)
	p.Options.RequireThreadKey, p.Options.Public = form.Get("requireThreadKey") == "on", form.Get("public") == "on"
	p.Direct = form.Get("direct") == "on"
	for name, to := range map[string]*int{"projectHour": &p.Limits.ProjectHour, "keyMonth": &p.Limits.KeyMonth,
		"orgHour": &p.Limits.OrgHour, "ipDay": &p.Limits.IPDay, "pulls.most": &p.Pulls.Most, "proofOfWork": &p.Options.ProofOfWork} {
		if !form.Has(name) {
			continue
		}
		n, err := strconv.Atoi(cmp.Or(strings.TrimSpace(form.Get(name)), "0"))
		if err != nil || n > 1_000_000_000 || n < -1_000_000_000 {
			wrong[name] = "must be a whole number"
			continue
		}
		*to = n
	}
	return p.WithDefaults(), wrong
}

// changeSettings changes the project. What has it read again goes on in the background.
func (s *handler) changeSettings(v *console.Visit) error {
	form := v.Form
	p, wrong := changedSettings(v.Project, form, v.May(console.Operator))
	problems := map[string]string{}
	if more := console.Faults(p.Validate()); len(more) > 0 {
		problems = more
	}
	maps.Copy(problems, wrong)
	if len(problems) > 0 {
		return s.settingsPage(v, http.StatusBadRequest, form, problems, "")
	}
	rereads := s.Setup.Rereads(v.Project, p)
	task, err := s.Setup.Change(p)
	if errors.Is(err, api.ErrConflict) { // it is being read: what was filled in stays
		return s.settingsPage(v, http.StatusConflict, form, map[string]string{"": Failure(err)}, "")
	}
	if problems := console.Faults(err); len(problems) > 0 {
		return s.settingsPage(v, http.StatusBadRequest, form, problems, "")
	}
	if err != nil {
		return err
	}
	v.Audit("project.set", string(p.ID), strings.Join(changedNames(v.Project, p), ", "))
	task = s.settled(v.Context(), task)
	to := console.PathOf(p)
	switch {
	case task.Running():
		if p.Domain != v.Project.Domain && !rereads {
			return v.Done(v.Base()+"/settings", "Saving the settings.")
		}
		return v.SeeOther(v.Base() + "/sources/task/" + task.ID)
	case task.Failed():
		if problems := console.Faults(task.Err); len(problems) > 0 {
			return s.settingsPage(v, http.StatusBadRequest, form, problems, "")
		}
		return s.settingsPage(v, http.StatusBadRequest, form, map[string]string{"": Failure(task.Err)}, "")
	}
	message := "Settings saved."
	if rereads && task.Read != nil {
		message += " The documentation was read again: " + brief.Count(task.Read.Pages, "page") + "."
	}
	return v.Done(to+"/settings", message)
}

// changedNames are the settings in which two states of a project differ.
func changedNames(a, b api.Project) (out []string) {
	differ := func(name string, is bool) {
		if is {
			out = append(out, name)
		}
	}
	differ("name", a.Name != b.Name)
	differ("domain", a.Domain != b.Domain)
	differ("timeZone", a.TimeZone != b.TimeZone)
	differ("source", a.Source != b.Source || a.Host != b.Host || a.HostURL != b.HostURL || a.Repository != b.Repository)
	differ("token", a.TokenEnv != b.TokenEnv)
	differ("branch", a.Branch != b.Branch)
	differ("docsDir", a.DocsDir != b.DocsDir)
	differ("siteUrl", a.SiteURL != b.SiteURL)
	differ("answersFrom", a.AnswersFrom != b.AnswersFrom)
	differ("site", a.Site != b.Site)
	differ("patterns", strings.Join(a.Include, "\n") != strings.Join(b.Include, "\n") ||
		strings.Join(a.Exclude, "\n") != strings.Join(b.Exclude, "\n"))
	differ("model", a.Model != b.Model || a.AgentModel != b.AgentModel)
	differ("deflection", a.Deflection != b.Deflection)
	differ("readerJwks", a.ReaderJWKS != b.ReaderJWKS)
	differ("readerSignIn", a.ReaderSignIn != b.ReaderSignIn)
	differ("options", a.Options != b.Options)
	differ("labels", a.Labels != b.Labels)
	differ("pulls", a.Pulls != b.Pulls)
	differ("review", a.ReviewMode() != b.ReviewMode() || a.Handle != b.Handle)
	differ("direct", a.Direct != b.Direct)
	differ("limits", a.Limits != b.Limits)
	return out
}

// setChat has the assistant answer in a chat, or not any more.
func (s *handler) setChat(v *console.Visit) error {
	app := api.Channel(v.Form.Get("app"))
	tokens := strings.TrimSpace(v.Form.Get("appToken") + "\n" + v.Form.Get("botToken"))
	if v.Form.Get("remove") != "" {
		tokens = ""
	} else if tokens == "" {
		return s.settingsPage(v, http.StatusBadRequest, nil, map[string]string{"": "Paste the tokens of the app."}, "")
	}
	name, err := s.Setup.SetChat(v.Context(), v.Project.ID, app, tokens)
	if problems := console.Faults(err); len(problems) > 0 {
		return s.settingsPage(v, http.StatusBadRequest, nil, map[string]string{"": Failure(err)}, "")
	}
	if err != nil {
		return err
	}
	v.Audit("project.chat", string(v.Project.ID), string(app))
	if tokens == "" {
		return v.Done(v.Base()+"/settings", "The app is disconnected and its tokens are deleted.")
	}
	return v.Done(v.Base()+"/settings", "The assistant answers in "+name+" within seconds.")
}

// removeProject removes a project, once its name was typed.
func (s *handler) removeProject(v *console.Visit) error {
	if typed := strings.TrimSpace(v.Form.Get("confirm")); typed != string(v.Project.ID) {
		return s.settingsPage(v, http.StatusBadRequest, nil, nil, "Type "+string(v.Project.ID)+" to remove the project.")
	}
	if err := s.Setup.Remove(v.Context(), v.Project.ID); err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	v.Audit("project.remove", string(v.Project.ID), "")
	return v.Done("/console", "The project "+string(v.Project.ID)+" is removed, with its keys and its index.")
}

// setCommand is the command that gives a project its settings.
func setCommand(p api.Project) string {
	words := []string{"docent project set", console.ShellWord(string(p.ID))}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name, console.ShellWord(value))
		}
	}
	flag("domain", p.Domain)
	flag("title", p.Name)
	flag("time-zone", p.TimeZone)
	flag("branch", p.Branch)
	flag("docs-dir", p.DocsDir)
	flag("site-url", p.SiteURL)
	flag("answers-from", string(p.AnswersFrom))
	flag("site", string(p.Site))
	for _, pattern := range p.Include {
		flag("include", pattern)
	}
	for _, pattern := range p.Exclude {
		flag("exclude", pattern)
	}
	flag("model", p.Model)
	flag("agent-model", p.AgentModel)
	flag("deflection", p.Deflection)
	flag("labels", p.Labels)
	flag("author", p.Pulls.Author)
	flag("pull-title", p.Pulls.Title)
	flag("pull-body", p.Pulls.Body)
	flag("reviewers", p.Pulls.Reviewers)
	flag("review", string(p.Review))
	flag("handle", p.Handle)
	flag("public-origins", p.Options.PublicOrigins)
	for _, on := range []struct {
		name string
		is   bool
	}{{"suggestions", p.Options.Suggestions}, {"search-tool", p.Options.SearchTool},
		{"require-thread-key", p.Options.RequireThreadKey}, {"public", p.Options.Public}, {"direct", p.Direct},
		{"sign-off", p.Pulls.SignOff}, {"draft", p.Pulls.Draft}} {
		if on.is {
			words = append(words, "--"+on.name)
		}
	}
	for _, limit := range []struct {
		name string
		n    int
	}{{"project-hour", p.Limits.ProjectHour}, {"key-month", p.Limits.KeyMonth}, {"org-hour", p.Limits.OrgHour},
		{"ip-day", p.Limits.IPDay}} {
		if limit.n != 0 {
			flag("limit-"+limit.name, strconv.Itoa(limit.n))
		}
	}
	if n := p.Pulls.Most; n != 0 {
		flag("most-pulls", strconv.Itoa(n))
	}
	if n := p.Options.ProofOfWork; n != 0 {
		flag("proof-of-work", strconv.Itoa(n))
	}
	return strings.Join(words, " ")
}
