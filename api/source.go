package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A SourceKind says how the pages of a source come to be files.
type SourceKind string

const (
	SourceFiles  SourceKind = ""       // they are: a folder, or a git repository
	SourceWeb    SourceKind = "web"    // a web site is read
	SourceZip    SourceKind = "zip"    // somebody uploads them
	SourceIssues SourceKind = "issues" // issues and discussions on GitHub are read
	// A folder or a git repository with code, which jobs are told of and readers are not answered from.
	SourceCode SourceKind = "code"
)

// Editable reports whether the agent can change what a source of this kind holds.
func (k SourceKind) Editable() bool { return k == SourceFiles }

// Collected reports whether something brings the files before they can be read.
func (k SourceKind) Collected() bool { return k != SourceFiles && k != SourceCode }

// Said is the kind in words, such as "a web site".
func (k SourceKind) Said() string {
	switch k {
	case SourceCode:
		return "a code repository"
	case SourceWeb:
		return "a web site"
	case SourceZip:
		return "an uploaded zip"
	case SourceIssues:
		return "GitHub's issues and discussions"
	}
	return "a folder or a git repository"
}

// A Source is one more place that a project's readers are answered from, beside the project's own. It is read like a
// project by itself: see Project.Of.
type Source struct {
	Label   string     `json:"label"` // names it in commands, answers and filters
	Kind    SourceKind `json:"kind,omitempty"`
	Name    string     `json:"name,omitempty"` // shown to people; the label if empty
	Address string     `json:"address,omitempty"`
	Branch  string     `json:"branch,omitempty"`
	DocsDir string     `json:"docsDir,omitempty"`
	SiteURL string     `json:"siteUrl,omitempty"`
	Site    SiteKind   `json:"site,omitempty"`
	Include []string   `json:"include,omitempty"`
	Exclude []string   `json:"exclude,omitempty"`

	Host       HostKind `json:"host,omitempty"` // of the credentials that a private repository is read with
	HostURL    string   `json:"hostUrl,omitempty"`
	Repository string   `json:"repository,omitempty"`
	TokenEnv   string   `json:"tokenEnv,omitempty"`
	TokenFile  string   `json:"tokenFile,omitempty"`
	AppID      int64    `json:"appId,omitempty"`

	// How much what it says counts beside the project's own source, which has 1; that of its kind if 0.
	Weight float64 `json:"weight,omitempty"`
	// If there are any, only readers with one of these groups are answered from it.
	Groups  []string `json:"groups,omitempty"`
	Every   string   `json:"every,omitempty"` // how often it is read, such as 6h; like the server's other sources if empty
	Collect Collect  `json:"collect,omitzero"`
}

// Collect is what the collectors of a source want to know.
type Collect struct {
	Web    WebOptions   `json:"web,omitzero"`
	Issues IssueOptions `json:"issues,omitzero"`
}

// WebOptions choose what is read of a web site.
type WebOptions struct {
	Prefix   string `json:"prefix,omitempty"`   // what addresses of pages begin with: that of the source if empty
	Sitemap  string `json:"sitemap,omitempty"`  // its address, or none to follow links; what the site says if empty
	MaxPages int    `json:"maxPages,omitempty"` // 5,000 if 0
	// The site may be on this machine or in a private network. The operator's commands alone set it.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// MostWebPages is how many pages may be read of one web site.
const MostWebPages = 50_000

// IssueOptions choose among the threads of a repository.
type IssueOptions struct {
	Labels      []string `json:"labels,omitempty"`      // only issues and discussions with one of these
	Without     []string `json:"without,omitempty"`     // none with one of these
	Open        bool     `json:"open,omitempty"`        // also those that are neither closed nor answered
	Discussions bool     `json:"discussions,omitempty"` // discussions too, which need a token
	// discussions and no issues
	OnlyDiscussions bool `json:"onlyDiscussions,omitempty"`
}

// FirstSource is the label of a project's own source if the project gives it no other.
const FirstSource = "docs"

// SiteLabel is that of a project's published site. No further source's has the mark.
const SiteLabel = sourceMark + "site"

const (
	maxSources   = 20
	maxWeight    = 5
	leastWeight  = 0.01
	leastEvery   = time.Minute
	maxEvery     = 30 * 24 * time.Hour
	sourceMark   = "@" // between a project and a label; no project's id has it
	issuesWeight = 0.6
)

// FirstLabel is the label of the project's own source.
func (p Project) FirstLabel() string { return cmp.Or(p.Label, FirstSource) }

// SourceID is the id under which a project's further source is read and indexed. It can be no project's.
func SourceID(project ProjectID, label string) ProjectID {
	return project + sourceMark + ProjectID(label)
}

// SplitSource is the project and the label of an id that SourceID made. The label of a project's own id is empty.
func SplitSource(id ProjectID) (project ProjectID, label string) {
	before, after, _ := strings.Cut(string(id), sourceMark)
	return ProjectID(before), after
}

// Further finds a further source by its label.
func (p Project) Further(label string) (Source, bool) {
	i := slices.IndexFunc(p.Sources, func(s Source) bool { return s.Label == label })
	if i < 0 {
		return Source{}, false
	}
	return p.Sources[i], true
}

// Of is the source of that label as a project of its own, which is read and indexed as any other is and is nowhere
// else: no catalog has it. The project itself is its own first source. Of a label that it does not have the id is
// empty.
func (p Project) Of(label string) Project {
	if label == "" || label == p.FirstLabel() {
		return p
	}
	if label == SiteLabel {
		site, _ := p.Published()
		return site
	}
	s, ok := p.Further(label)
	if !ok {
		return Project{}
	}
	d := Project{
		ID: SourceID(p.ID, label), Org: p.Org, Domain: p.Domain, Name: cmp.Or(s.Name, s.Label), Label: label, Kind: s.Kind,
		Source: s.Address, Branch: s.Branch, DocsDir: s.DocsDir, SiteURL: s.SiteURL, Site: s.Site, Include: s.Include,
		Exclude: s.Exclude, Host: s.Host, HostURL: s.HostURL, Repository: s.Repository, TokenEnv: s.TokenEnv,
		TokenFile: s.TokenFile, AppID: s.AppID, Every: s.Every, Collect: s.Collect, CreatedAt: p.CreatedAt,
	}
	if s.Kind == SourceCode {
		d.Include, d.Exclude = nil, []string{"*"} // nothing of it is a page
	}
	// The project's credentials are for its own host alone.
	if d.TokenEnv == "" && d.TokenFile == "" && d.Host == p.Host && d.HostURL == p.HostURL &&
		d.Host != HostBuiltin && d.Host != HostGit && d.TokenKept(p) {
		d.TokenEnv, d.TokenFile, d.AppID = p.TokenEnv, p.TokenFile, p.AppID
	}
	return d
}

// Published is the project's site as it is published, read from the web as a source of its own; false if it has none, or
// none that is read.
func (p Project) Published() (site Project, ok bool) {
	if p.Kind != SourceFiles || p.SiteURL == "" || p.AnswersFrom == FromNothingElse || p.AnswersFrom == FromSourceOnly {
		return Project{}, false
	}
	return Project{ID: SourceID(p.ID, SiteLabel), Org: p.Org, Domain: p.Domain, Name: "the published site", Label: SiteLabel,
		Kind: SourceWeb, Source: p.SiteURL, Host: HostBuiltin, Collect: Collect{Web: p.Collect.Web}, CreatedAt: p.CreatedAt}, true
}

// reserved are names that nobody has a site at (RFC 2606).
var reserved = strings.Fields("example.com example.org example.net example invalid test")

// ReservedHost reports whether an address can only be an example.
func ReservedHost(host string) bool {
	host = strings.ToLower(host)
	return slices.ContainsFunc(reserved, func(r string) bool { return host == r || strings.HasSuffix(host, "."+r) })
}

// ReadsSite is the project with what follows for its site from a new address: it is read where nobody has said otherwise.
func (p Project) ReadsSite(before Project) Project {
	u, err := url.Parse(p.SiteURL)
	if err == nil && p.SiteURL != "" && p.SiteURL != before.SiteURL && p.Kind == SourceFiles && p.AnswersFrom == FromNothingElse &&
		!ReservedHost(u.Hostname()) {
		p.AnswersFrom = FromBetter
	}
	return p
}

// CodeSource is the project's source of kind code for a repository.
func (p Project) CodeSource(repository string) (Project, bool) {
	for _, s := range p.Sources {
		if s.Kind == SourceCode && s.Repository != "" && strings.EqualFold(s.Repository, repository) {
			return p.Code(s.Label)
		}
	}
	return Project{}, false
}

// Code is the project's source of kind code of that label, with the patterns that choose what is read of it.
func (p Project) Code(label string) (Project, bool) {
	s, ok := p.Further(label)
	if !ok || s.Kind != SourceCode {
		return Project{}, false
	}
	code := p.Of(label)
	code.Include, code.Exclude = s.Include, s.Exclude
	return code, true
}

// MayBeEdited refuses a project whose own source the agent cannot change, and says what would help.
func (p Project) MayBeEdited() error {
	if p.Kind.Editable() {
		return nil
	}
	return &StateError{Kind: ErrConflict, Reason: fmt.Sprintf("the agent cannot edit %s: its source is %s, which is only read. "+
		"For jobs, make the repository that the pages are written in the project's own source (docent project set %[1]s --kind '' --source URL), "+
		"and add this one beside it with `docent source add`", p.ID, p.Kind.Said())}
}

// Parts are all sources as projects of their own, the project itself first, then its published site.
func (p Project) Parts() []Project {
	parts := make([]Project, 0, 2+len(p.Sources))
	parts = append(parts, p)
	if site, ok := p.Published(); ok {
		parts = append(parts, site)
	}
	for _, s := range p.Sources {
		parts = append(parts, p.Of(s.Label))
	}
	return parts
}

// Interval is how often the source is read at the most; 0 if it is read whenever the server looks at its sources.
func (p Project) Interval() time.Duration {
	d, _ := time.ParseDuration(p.Every)
	switch {
	case d > 0:
		return d
	case p.Kind == SourceWeb:
		return 6 * time.Hour
	case p.Kind == SourceIssues:
		return time.Hour
	}
	return 0
}

// Counts is how much what a source says counts.
func (s Source) Counts() float64 {
	switch {
	case s.Weight > 0:
		return s.Weight
	case s.Kind == SourceIssues:
		return issuesWeight
	}
	return 1
}

// For reports whether a reader with these groups may be answered from the source.
func (s Source) For(groups []string) bool {
	return len(s.Groups) == 0 || slices.ContainsFunc(s.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// withDefaults writes in one way what means the same. The repository of issues may be given as the source's address.
func (s Source) withDefaults() Source {
	p := Project{Domain: "docs", Source: strings.TrimSpace(s.Address), DocsDir: s.DocsDir, SiteURL: s.SiteURL, Include: s.Include,
		Exclude: s.Exclude, Host: s.Host, HostURL: s.HostURL, Repository: s.Repository, Kind: s.Kind,
		Collect: s.Collect}.WithDefaults()
	s.Label = strings.ToLower(strings.TrimSpace(s.Label))
	s.Address, s.DocsDir, s.SiteURL, s.Include, s.Exclude = p.Source, p.DocsDir, p.SiteURL, p.Include, p.Exclude
	s.Host, s.HostURL, s.Repository, s.Collect = p.Host, p.HostURL, p.Repository, p.Collect
	s.Groups = withoutEmpty(s.Groups)
	return s
}

// collectedDefaults fills in what follows from the kind of a project's own source.
func (p Project) collectedDefaults() Project {
	o := &p.Collect.Issues
	o.Labels, o.Without = withoutEmpty(o.Labels), withoutEmpty(o.Without)
	o.Discussions = o.Discussions || o.OnlyDiscussions
	if p.Kind != SourceIssues {
		return p
	}
	if p.Host == HostBuiltin {
		p.Host = HostGitHub
	}
	if p.Repository == "" {
		p.Repository, p.HostURL = repositoryAt(p.Source, p.HostURL)
	}
	if p.Repository != "" {
		p.Source = cmp.Or(p.HostURL, "https://github.com") + "/" + p.Repository
	}
	return p
}

// repositoryAt reads OWNER/NAME, and the address of GitHub if it is another one, of a repository's address.
func repositoryAt(address, hostURL string) (repository, host string) {
	address = strings.TrimSuffix(strings.Trim(strings.TrimSpace(address), "/"), ".git")
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		if !strings.EqualFold(u.Host, "github.com") && hostURL == "" {
			hostURL = u.Scheme + "://" + u.Host
		}
		address = u.Path
	} else {
		address = strings.TrimPrefix(address, "github.com/")
	}
	parts := strings.SplitN(strings.Trim(address, "/"), "/", 3)
	if len(parts) < 2 {
		return "", hostURL
	}
	return parts[0] + "/" + parts[1], hostURL
}

// sources checks a project's further sources.
func (p *problems) sources(project Project) {
	if project.Label != "" {
		if problem := labelProblem(project.Label); problem != "" {
			p.add("label", "%s", problem)
		}
	}
	p.collected("", project)
	if len(project.Sources) > maxSources {
		p.add("sources", "must have at most %d", maxSources)
	}
	labels := map[string]bool{project.FirstLabel(): true}
	for i, s := range project.Sources {
		at := indexed("sources", i) + "."
		if problem := labelProblem(s.Label); problem != "" {
			p.add(at+"label", "%s", problem)
			continue
		}
		if labels[s.Label] {
			p.add(at+"label", "%q is the label of another source of the project", s.Label)
		}
		labels[s.Label] = true
		part := project.Of(s.Label)
		part.Domain = "docs" // its own is the project's, which is checked there
		p.source(at, part)
		if s.Weight != 0 && !(s.Weight >= leastWeight && s.Weight <= maxWeight) {
			p.add(at+"weight", "must be from %v to %v; the project's own source has 1", leastWeight, maxWeight)
		}
		if len(s.Groups) > MaxGroups {
			p.add(at+"groups", "must have at most %d groups", MaxGroups)
		}
		for j, g := range s.Groups {
			p.text(indexed(at+"groups", j), g, MaxGroup)
		}
	}
}

// source checks what a further source has in common with a project.
func (p *problems) source(at string, part Project) {
	var own problems
	own.text("name", part.Name, 200)
	if part.Kind == SourceFiles {
		if problem := sourceProblem(part.Source); problem != "" {
			own.add("address", "%s", problem)
		}
	}
	own.place(part)
	own.secretNames(part)
	if part.Kind == SourceFiles {
		host := part
		if host.TokenEnv == "" && host.TokenFile == "" {
			host.TokenEnv = "NONE" // a public repository is read without
		}
		own.host(host)
	}
	own.collected("", part)
	for _, problem := range own {
		if problem.Field == "source" {
			problem.Field = "address"
		}
		*p = append(*p, Problem{Field: at + problem.Field, Message: problem.Message})
	}
}

// collected checks what follows from the kind of a source.
func (p *problems) collected(at string, project Project) {
	switch project.Kind {
	case SourceFiles:
		froms := []AnswersFrom{FromNothingElse, FromBetter, FromSite, FromSource, FromSourceOnly}
		if !slices.Contains(froms, project.AnswersFrom) {
			p.add(at+"answersFrom", "must be auto, site, source or source-only")
		}
		p.web(at+"collect.web.", project.Collect.Web)
	case SourceZip, SourceCode:
	case SourceWeb:
		if !validWebURL(project.Source) {
			p.add(at+"source", "must be an http or https URL without credentials")
		}
		p.web(at+"collect.web.", project.Collect.Web)
	case SourceIssues:
		if project.Host != HostGitHub {
			p.add(at+"host", "issues and discussions are read from GitHub: it must be github")
		}
		if !validRepository(project.Repository) || strings.Count(project.Repository, "/") != 1 {
			p.add(at+"repository", "must have the form OWNER/NAME")
		}
		if project.HostURL != "" && !validWebURL(project.HostURL) {
			p.add(at+"hostUrl", "must be an http or https URL without credentials")
		}
		o := project.Collect.Issues
		for i, l := range slices.Concat(o.Labels, o.Without) {
			p.text(indexed(at+"collect.issues.labels", i), l, 100)
		}
	default:
		p.add(at+"kind", "must be empty for a folder or a git repository, or %s, %s, %s or %s", SourceWeb, SourceZip, SourceIssues, SourceCode)
	}
	if project.Every == "" {
		return
	}
	if d, err := time.ParseDuration(project.Every); err != nil || d < leastEvery || d > maxEvery {
		p.add(at+"every", "must be a time from 1m to 720h, such as 6h")
	}
}

// web checks what is read of a web site.
func (p *problems) web(at string, o WebOptions) {
	if o.Prefix != "" && !strings.HasPrefix(o.Prefix, "/") && !validWebURL(o.Prefix) || len(o.Prefix) > 1000 {
		p.add(at+"prefix", "must be a path such as /docs/, or an address")
	}
	if o.Sitemap != "" && o.Sitemap != "none" && !validWebURL(o.Sitemap) {
		p.add(at+"sitemap", "must be the address of a sitemap, or none to follow links")
	}
	if o.MaxPages < 0 || o.MaxPages > MostWebPages {
		p.add(at+"maxPages", "must be from 1 to %d, or 0 for 5000", MostWebPages)
	}
}

// labelProblem keeps labels to what is plain in a path, a command and the name of a folder.
func labelProblem(label string) string {
	if len(label) > 32 {
		return "must have at most 32 characters"
	}
	for i, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (i == 0 || i == len(label)-1 || c != '-') {
			return "must consist of lower-case letters, digits and hyphens, and begin and end with a letter or digit"
		}
	}
	if label == "" {
		return "is required: a word such as blog or api"
	}
	return ""
}

// PrivateByCommand is the error for private addresses that are allowed anywhere but on the command line.
const PrivateByCommand = "can only be set by the server's operator, on the command line: --allow-private"

// KeepsPrivate refuses a change of the project's own source that came from a page or by the API, and gives it private
// addresses, takes them away, or points it at another place while it may reach them.
func (p Project) KeepsPrivate(before Project) error {
	var wrong problems
	if p.Kind == SourceFiles && before.Kind == SourceFiles {
		before.Source, p.Source = before.SiteURL, p.SiteURL
		wrong.private("siteUrl", before, p)
		return wrong.err()
	}
	wrong.private("source", before, p)
	return wrong.err()
}

// KeepsPrivate is the same for a further source of a project, which may be new.
func (s Source) KeepsPrivate(of Project) error {
	old, _ := of.Further(strings.ToLower(strings.TrimSpace(s.Label)))
	s = s.withDefaults()
	var wrong problems
	wrong.private("address", Project{Source: old.Address, Kind: old.Kind, Collect: old.Collect},
		Project{Source: s.Address, Kind: s.Kind, Collect: s.Collect})
	return wrong.err()
}

func (p *problems) private(field string, was, is Project) {
	const byCommand = "belongs to a source that may reach private addresses: the command line alone changes it"
	before, after := was.Collect.Web, is.Collect.Web
	switch {
	case before.AllowPrivate != after.AllowPrivate:
		p.add("collect.web.allowPrivate", "%s", PrivateByCommand)
	case !after.AllowPrivate:
	case was.Source != is.Source || was.Kind != is.Kind:
		p.add(field, "%s", byCommand)
	case before.Prefix != after.Prefix || before.Sitemap != after.Sitemap:
		p.add("collect.web", "%s", byCommand)
	}
}

// MayAdd says what is wrong with a further source before it is added, by its own fields.
func (p Project) MayAdd(s Source) error {
	p.Sources = append(slices.Clone(p.Sources), s.withDefaults())
	var all, own problems
	all.sources(p)
	at := indexed("sources", len(p.Sources)-1) + "."
	for _, problem := range all {
		if field, ours := strings.CutPrefix(problem.Field, at); ours {
			own = append(own, Problem{Field: field, Message: problem.Message})
		} else if problem.Field == "sources" {
			own = append(own, problem)
		}
	}
	return own.err()
}
