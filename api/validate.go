package api

import (
	"cmp"
	"net/mail"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// WithDefaults is the project with what an operator may leave out filled in, and with what means the same written in
// one way: the domain in lower case, the docs folder without slashes around it.
func (p Project) WithDefaults() Project {
	p.Domain = strings.ToLower(strings.TrimSpace(p.Domain))
	p.Host = cmp.Or(p.Host, HostBuiltin)
	p.DocsDir = strings.TrimRight(p.DocsDir, "/")
	for strings.HasPrefix(p.DocsDir, "./") {
		p.DocsDir = strings.TrimLeft(p.DocsDir[2:], "/")
	}
	if p.DocsDir == "." {
		p.DocsDir = ""
	}
	p.HostURL = strings.TrimRight(p.HostURL, "/")
	p.Handle = strings.TrimPrefix(strings.TrimSpace(p.Handle), "@")
	p.SiteURL = strings.TrimRight(p.SiteURL, "/")
	p.Include, p.Exclude = withoutEmpty(p.Include), withoutEmpty(p.Exclude)
	p.Widget.Suggestions = withoutEmpty(p.Widget.Suggestions)
	p.Widget.Accent, p.Widget.AccentDark = strings.ToLower(p.Widget.Accent), strings.ToLower(p.Widget.AccentDark)
	p.Repository = strings.TrimSuffix(strings.Trim(p.Repository, "/"), ".git")
	p.Label = strings.ToLower(strings.TrimSpace(p.Label))
	if len(p.Sources) > 0 {
		p.Sources = slices.Clone(p.Sources)
		for i, s := range p.Sources {
			p.Sources[i] = s.withDefaults()
		}
	}
	p = p.collectedDefaults()
	if p.Source == "" && p.Repository != "" {
		web := p.HostURL
		switch {
		case web == "" && p.Host == HostGitHub:
			web = "https://github.com"
		case web == "" && p.Host == HostGitLab:
			web = "https://gitlab.com"
		}
		switch p.Host {
		case HostGitHub, HostGitLab, HostGitea:
			if web != "" {
				p.Source = web + "/" + p.Repository + ".git"
			}
		}
	}
	return p
}

// Validate says everything that is wrong with a project's settings: an *InvalidError, or nil. No message repeats a
// value that may hold a secret.
func (p Project) Validate() error {
	var out problems
	if problem := projectIDProblem(string(p.ID)); problem != "" {
		out.add("id", "%s", problem)
	}
	switch {
	case p.Domain == "":
		out.add("domain", "is required")
	case !validHostname(p.Domain):
		out.add("domain", "must be a domain or one part of it, such as docs or docs.example.com: lower-case letters, digits, hyphens and dots")
	}
	out.text("name", p.Name, 200)
	out.text("model", p.Model, 100)
	out.text("agentModel", p.AgentModel, 100)
	if problem := sourceProblem(p.Source); problem != "" && p.Kind == SourceFiles {
		out.add("source", "%s", problem)
	}
	out.place(p)
	if p.Deflection != "" && !validWebURL(p.Deflection) && !ValidMail(p.Deflection) {
		out.add("deflection", "must be an email address or an http or https URL")
	}
	out.widget(p.Widget)
	if p.Widget.ContactIssues && (p.Widget.Contact != ContactForm || !slices.Contains([]HostKind{HostGitHub, HostGitLab, HostGitea}, p.Host)) {
		out.add("widget.contactIssues", "needs the form (widget.contact: %q), and a repository on GitHub, GitLab, or Gitea", ContactForm)
	}
	if _, err := time.LoadLocation(p.TimeZone); err != nil || p.TimeZone == "Local" { // of the server: that tells nobody anything
		out.add("timeZone", "must be a time zone such as Europe/Berlin")
	}
	for _, origin := range commaList(p.Options.PublicOrigins) {
		if problem := originProblem(origin); problem != "" && origin != "*" {
			out.add("publicOrigins", "%s", problem)
		}
	}
	if n := p.Options.ProofOfWork; n != 0 && (n < LeastProofOfWork || n > MostProofOfWork) {
		out.add("proofOfWork", "must be 0 for none, or from %d to %d", LeastProofOfWork, MostProofOfWork)
	}
	if p.Kind == SourceFiles {
		out.host(p)
	} else {
		out.secretNames(p)
	}
	out.sources(p)
	out.review(p)
	return out.err()
}

// place checks where a source's pages are and where readers find them.
func (p *problems) place(of Project) {
	if of.Branch != "" && !ValidBranch(of.Branch) {
		p.add("branch", "is not a branch name that git accepts")
	}
	if problem := docsDirProblem(of.DocsDir); problem != "" {
		p.add("docsDir", "%s", problem)
	}
	if of.SiteURL != "" && !validWebURL(of.SiteURL) {
		p.add("siteUrl", "must be an http or https URL without credentials")
	}
	if of.Site != "" && of.Site != SiteCollected && !slices.Contains(SiteKinds, of.Site) {
		p.add("site", "must be one of %v", SiteKinds)
	}
	p.patterns("include", of.Include)
	p.patterns("exclude", of.Exclude)
}

// withoutEmpty is a list without its empty texts, which a command line gives to clear it.
func withoutEmpty(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// patterns checks a list of patterns as .gitignore has them.
func (p *problems) patterns(field string, list []string) {
	const most = 200
	if len(list) > most {
		p.add(field, "must have at most %d patterns", most)
	}
	for i, s := range list {
		p.text(indexed(field, i), s, 500)
		switch {
		case strings.HasPrefix(s, "#"):
			p.add(indexed(field, i), "is a comment; write \\# for a name that begins with #")
		case field == "include" && strings.HasPrefix(s, "!"):
			p.add(indexed(field, i), "must not begin with !; what is to be left out belongs to exclude")
		case strings.Trim(s, "!/") == "":
			p.add(indexed(field, i), "names nothing; write ** for everything")
		}
	}
}

var color = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// widget checks how the widget looks.
func (p *problems) widget(w Widget) {
	for _, c := range []struct{ field, value string }{{"widget.accent", w.Accent}, {"widget.accentDark", w.AccentDark}} {
		if c.value != "" && !color.MatchString(c.value) {
			p.add(c.field, "must be a color such as #0b57d0")
		}
	}
	oneOf := func(field, value string, of ...string) {
		if value != "" && !slices.Contains(of, value) {
			p.add(field, "must be empty or one of %s", strings.Join(of, ", "))
		}
	}
	oneOf("widget.theme", w.Theme, "light", "dark")
	oneOf("widget.button", w.Button, "start", "none")
	oneOf("widget.language", w.Language, WidgetLanguages...)
	p.text("widget.label", w.Label, 40)
	p.text("widget.greeting", w.Greeting, 300)
	if len(w.Contact) > maxAddress || w.Contact != "" && w.Contact != ContactForm && !validWebURL(w.Contact) && !ValidMail(w.Contact) {
		p.add("widget.contact", "must be %s, or an email address or an http or https URL of at most %d bytes", ContactForm, maxAddress)
	}
	if len(w.Logo) > maxAddress || w.Logo != "" && !validWebURL(w.Logo) && !(strings.HasPrefix(w.Logo, "/") && validWebURL("https://site"+w.Logo)) {
		p.add("widget.logo", "must be an http or https URL, or a path of the site, of at most %d bytes", maxAddress)
	}
	for i, client := range w.OpenIn {
		oneOf(indexed("widget.openIn", i), client, WidgetClients...)
	}
	if len(w.Suggestions) > 6 {
		p.add("widget.suggestions", "must have at most 6 questions")
	}
	for i, s := range w.Suggestions {
		p.text(indexed("widget.suggestions", i), s, 150)
	}
}

// host checks what the kind of code host asks for.
func (p *problems) host(project Project) {
	switch project.Host {
	case HostBuiltin, HostGit:
		// The repository's name is only shown here.
		if project.Repository != "" && !validRepository(project.Repository) {
			p.add("repository", "must have the form OWNER/NAME")
		}
		if project.HostURL != "" {
			p.add("hostUrl", "a project on the %s host has none: its source says where it is", project.Host)
		}
	case HostGitHub, HostGitea, HostGitLab:
		switch parts := strings.Count(project.Repository, "/") + 1; {
		case project.Repository == "":
			p.add("repository", "is required for %s: OWNER/NAME", project.Host)
		case !validRepository(project.Repository) || parts < 2 || parts > 2 && project.Host != HostGitLab:
			p.add("repository", "must have the form OWNER/NAME")
		}
		if project.TokenEnv == "" && project.TokenFile == "" {
			p.add("tokenEnv", "is required for %s: the environment variable that holds the token to push and open pull requests with", project.Host)
		}
		switch {
		case project.HostURL == "" && project.Host == HostGitea:
			p.add("hostUrl", "is required for gitea: the address of the server")
		case project.HostURL != "" && !validWebURL(project.HostURL):
			p.add("hostUrl", "must be an http or https URL without credentials")
		}
	default:
		p.add("host", "must be one of %s, %s, %s, %s, %s", HostBuiltin, HostGitHub, HostGitLab, HostGitea, HostGit)
	}
	if project.AppID != 0 && (project.Host != HostGitHub || project.AppID < 0) {
		p.add("appId", "is the number of a GitHub App, for a project on the github host")
	}
	p.text("labels", project.Labels, 500)
	p.pulls(project)
	if project.Direct && project.Host == HostBuiltin {
		p.add("direct", "needs a git repository on another host: on the builtin one a pull request is merged by hand")
	}
	p.secretNames(project)
}

var (
	author   = regexp.MustCompile(`^[^<>\s][^<>]* <[^<>\s@]+@[^<>\s@.]+(\.[^<>\s@.]+)+>$`)
	reviewer = regexp.MustCompile(`^[\pL\pN_][\pL\pN_.-]*(/[\pL\pN_][\pL\pN_.-]*)?$`)
)

// pulls checks how pull requests and commits look.
func (p *problems) pulls(project Project) {
	f := project.Pulls
	if f.Most < 0 || f.Most > MaxMostPulls {
		p.add("pulls.most", "must be a whole number from 0 to %d", MaxMostPulls)
	}
	p.text("pulls.author", f.Author, 200)
	if f.Author != "" && !author.MatchString(f.Author) {
		p.add("pulls.author", "must have the form Name <name@example.com>")
	}
	if f.SignOff && f.Author == "" && project.AppID == 0 {
		p.add("pulls.signOff", "needs an author who signs: a name with an address")
	}
	p.text("pulls.title", f.Title, 100)
	if f.Title != "" && !strings.Contains(f.Title, "{title}") {
		p.add("pulls.title", "must contain {title}, such as docs({scope}): {title}")
	}
	const most = 12 << 10 // as for a repository's template
	if len(f.Body) > most {
		p.add("pulls.body", "must have at most %d bytes", most)
	}
	p.text("pulls.reviewers", f.Reviewers, 500)
	for _, who := range f.ReviewerList() {
		if !reviewer.MatchString(who) {
			p.add("pulls.reviewers", "must be names of accounts, or of teams as OWNER/TEAM, separated by commas: not %q", who)
		}
	}
}

const maxAddress = 500 // bytes of a web or mail address that pages lead to

// secretNames checks the names under which a project's secrets are found.
func (p *problems) secretNames(project Project) {
	if project.WebhookEnv != "" && !validVariable(project.WebhookEnv) {
		p.add("webhookEnv", "must be the name of an environment variable, not the secret itself")
	}
	if project.TokenEnv != "" && !validVariable(project.TokenEnv) {
		p.add("tokenEnv", "must be the name of an environment variable, not the token itself")
	}
	if project.WebhookFile != "" && !ValidSecretFile(project.WebhookFile) {
		p.add("webhookFile", "is not the name of a stored secret")
	}
	if project.TokenFile != "" && !ValidSecretFile(project.TokenFile) {
		p.add("tokenFile", "is not the name of a stored secret")
	}
	for i, secret := range project.ReaderSecrets {
		if i == MaxReaderSecrets || !ValidSecretFile(secret.File) || secret.ID == "" {
			p.add(indexed("readerSecrets", i), "is not a reader secret of this project: docent reader-secret lists them")
		}
	}
	for _, name := range []string{project.Chats.Slack.AppTokenFile, project.Chats.Slack.BotTokenFile, project.Chats.Discord.TokenFile} {
		if name != "" && !ValidSecretFile(name) {
			p.add("chats", "are no settings: docent project chat sets them")
		}
	}
	if len(project.ReaderSignIn) > maxAddress || project.ReaderSignIn != "" && !validPrivateURL(project.ReaderSignIn) {
		p.add("readerSignIn", "must be an https URL of at most %d bytes without credentials, such as https://docs.example.com/docent, or one of this machine", maxAddress)
	}
	if project.ReaderJWKS != "" && !validWebURL(project.ReaderJWKS) {
		p.add("readerJwks", "must be an https URL without credentials, such as https://id.example.com/.well-known/jwks.json")
	}
}

// projectIDProblem keeps IDs to what is safe in a URL and as the name of a folder or file, on every system.
func projectIDProblem(id string) string {
	switch {
	case id == "":
		return "is required"
	case len(id) > 64:
		return "must have at most 64 characters"
	}
	for i, c := range []byte(id) {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '-' && c != '_' && c != '.') {
			return "must consist of letters, digits, hyphens, underscores and dots, and begin with a letter or digit"
		}
	}
	lower := strings.ToLower(id)
	if strings.Contains(id, "..") || strings.HasSuffix(id, ".") || strings.HasSuffix(lower, ".git") ||
		strings.HasSuffix(lower, ".lock") {
		return "must not contain two dots in a row, nor end in a dot, .git or .lock"
	}
	return ""
}

// sourceProblem tells a folder, a local repository or a git URL from what git would take for something else.
func sourceProblem(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is required: a folder, a local git repository, or a git URL"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must not contain control characters"
	case strings.HasPrefix(s, "-"), strings.Contains(s, "::"): // an option, or a helper program, to git
		return "must be a folder, a local git repository, or a git URL"
	}
	scheme, _, ok := strings.Cut(s, "://")
	if !ok {
		return "" // a path, or user@host:path
	}
	u, err := url.Parse(s)
	if err != nil {
		return "is not a valid URL"
	}
	switch scheme {
	case "http", "https":
		if u.User != nil {
			return "must not contain credentials: name the environment variable that holds the token instead"
		}
	case "ssh", "git", "git+ssh", "ssh+git":
		if _, set := u.User.Password(); set {
			return "must not contain a password"
		}
	case "file":
		return ""
	default:
		return "must be a path or a URL with https, http, ssh, git or file"
	}
	if u.Host == "" {
		return "is a URL without a host"
	}
	return ""
}

// ValidBranch reports whether s can name a branch: it follows git check-ref-format for a branch.
func ValidBranch(s string) bool {
	if len(s) > 250 || s == "@" || strings.HasPrefix(s, "-") || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, unicode.IsControl)
}

func docsDirProblem(dir string) string {
	switch {
	case dir == "":
		return ""
	case strings.HasPrefix(dir, "/"), strings.Contains(dir, "\\"), path.Clean(dir) != dir, dir == "..",
		strings.HasPrefix(dir, "../"):
		return "must be a folder inside the source, with slashes between its parts"
	case strings.ContainsFunc(dir, unicode.IsControl):
		return "must not contain control characters"
	}
	for part := range strings.SplitSeq(dir, "/") {
		if strings.EqualFold(part, ".git") {
			return "must not lie in git's own folder"
		}
	}
	return ""
}

func validWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		!strings.ContainsFunc(s, unicode.IsSpace)
}

// validPrivateURL reports whether what goes to or comes from an address is read by nobody on the way.
func validPrivateURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && validWebURL(s) && (u.Scheme == "https" || Loopback(u))
}

// Loopback reports whether an address is of the machine itself.
func Loopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback() || u.Hostname() == "localhost"
}

// ValidMail reports whether s is an email address, without a name beside it.
func ValidMail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func validRepository(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 100 {
			return false
		}
		for _, c := range []byte(part) {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
				return false
			}
		}
	}
	return true
}

// ValidSecretFile reports whether s can be the name of a stored secret: a project's name, a dot, and what chance gave.
func ValidSecretFile(s string) bool {
	project, random, ok := cutLast(s, ".")
	if !ok || projectIDProblem(project) != "" || len(random) < 8 || len(random) > 40 {
		return false
	}
	for _, c := range []byte(random) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func validVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(s) <= 200
}
