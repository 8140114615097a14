package api

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
)

// HostKind names the code host that holds a project's documentation repository.
type HostKind string

const (
	HostBuiltin HostKind = "builtin" // Docent's own bare repositories and pull request pages
	HostGitHub  HostKind = "github"
	HostGitLab  HostKind = "gitlab"
	HostGitea   HostKind = "gitea" // and Forgejo
	HostGit     HostKind = "git"   // a plain remote: a branch and a request-pull text
)

// A Project is one documentation set: where it comes from, where it is served, and how its agent and assistant work.
type Project struct {
	ID     ProjectID `json:"id"`
	Org    OrgID     `json:"organization"`
	Domain string    `json:"domain"`         // names the project in assistant URLs; may contain dots
	Name   string    `json:"name,omitempty"` // display name; the ID if empty
	// how its source is read; a folder or a git repository if empty. See Source for this and for what follows.
	Kind    SourceKind `json:"kind,omitempty"`
	Label   string     `json:"label,omitempty"` // names its source among several; FirstSource if empty
	Every   string     `json:"every,omitempty"`
	Collect Collect    `json:"collect,omitzero"`
	Sources []Source   `json:"sources,omitempty"` // further ones
	Source  string     `json:"source"`            // a folder, a local git repository, or a git URL
	Branch  string     `json:"branch,omitempty"`  // the documentation's branch; the source's default if empty
	// sub-folder that holds the documentation, slash-separated; the root if empty
	DocsDir string `json:"docsDir,omitempty"`
	SiteURL string `json:"siteUrl,omitempty"` // where readers find the pages; citations link there
	// Whether readers are answered from the site that is there, or from the source.
	AnswersFrom AnswersFrom `json:"answersFrom,omitempty"`
	// what makes the site of the pages, which decides their URLs; recognized by its files if empty
	Site SiteKind `json:"site,omitempty"`
	// patterns as in .gitignore: if there are any, only what one of them matches is a page
	Include []string `json:"include,omitempty"`
	// the same: what they match is no page; "!" brings back what the site leaves out
	Exclude    []string `json:"exclude,omitempty"`
	Host       HostKind `json:"host"`
	HostURL    string   `json:"hostUrl,omitempty"`    // base URL of a code host that is not the public one
	Repository string   `json:"repository,omitempty"` // OWNER/NAME on the code host
	TokenEnv   string   `json:"tokenEnv,omitempty"`   // environment variable that holds the code host's token
	// environment variable that holds the secret of the code host's push webhook
	WebhookEnv string `json:"webhookEnv,omitempty"`
	// The same if they were entered on a page: the names of files among the data directory's secrets. They go before
	// the variables. The secrets themselves are nowhere else.
	TokenFile   string `json:"tokenFile,omitempty"`
	WebhookFile string `json:"webhookFile,omitempty"`
	// What reader tokens are signed with: secrets of the project, and the keys at an address.
	ReaderSecrets []ReaderSecret `json:"readerSecrets,omitempty"`
	ReaderJWKS    string         `json:"readerJwks,omitempty"`
	// where the site signs its readers in for clients of MCP, and sends them back with a token
	ReaderSignIn string `json:"readerSignIn,omitempty"`

	AppID  int64  `json:"appId,omitempty"`  // of a GitHub App: then the variable holds the app's private key
	Labels string `json:"labels,omitempty"` // that pull requests get, separated by commas
	// how pull requests and commits look
	Pulls PullForm `json:"pulls,omitzero"`
	// commit to the documentation's branch itself; a pull request only if it is protected
	Direct bool   `json:"direct,omitempty"`
	Model  string `json:"model,omitempty"` // that answers; the server's default if empty
	// that does jobs; if empty, Model, or else the server's default for jobs
	AgentModel string `json:"agentModel,omitempty"`
	// email address or URL offered when the documentation does not answer
	Deflection string `json:"deflection,omitempty"`
	// which comments on pull requests are instructions, and the name that they call the agent by
	Review    ReviewMode `json:"review,omitempty"`
	Handle    string     `json:"handle,omitempty"`
	Limits    Limits     `json:"limits"`
	Options   Options    `json:"options"`
	Widget    Widget     `json:"widget,omitzero"`
	Chats     Chats      `json:"chats,omitzero"`
	TimeZone  string     `json:"timeZone,omitempty"` // in which the weeks of its reports begin; UTC if empty
	CreatedAt time.Time  `json:"createdAt"`
}

// MaxReaderSecrets is how many reader secrets a project has at a time: the one in use, and during a rotation the next.
const MaxReaderSecrets = 2

// A ReaderSecret signs reader tokens, by which a site's own server says who a reader is.
type ReaderSecret struct {
	ID        string    `json:"id"`
	File      string    `json:"file"` // its name among the data directory's secrets
	CreatedAt time.Time `json:"createdAt"`
}

// Credentials is how messages name what the project's repository is reached with.
func (p Project) Credentials() string {
	if p.TokenFile != "" {
		return "the stored token"
	}
	return p.TokenEnv
}

// SendsTokenTo is where the project's token is sent: the code host, and the source if that is reached over HTTP.
func (p Project) SendsTokenTo() (hosts []string) {
	public := map[HostKind]string{HostGitHub: "https://github.com", HostGitLab: "https://gitlab.com"}[p.Host]
	for _, address := range []string{cmp.Or(p.HostURL, public), p.Source} {
		if u, err := url.Parse(address); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
			hosts = append(hosts, u.Scheme+"://"+strings.ToLower(u.Host))
		}
	}
	return hosts
}

// TokenKept reports whether the project sends its token only to where it was before.
func (p Project) TokenKept(before Project) bool {
	known := before.SendsTokenTo()
	return !slices.ContainsFunc(p.SendsTokenTo(), func(host string) bool { return !slices.Contains(known, host) })
}

// SecretFiles are the names of the stored secrets that the project refers to.
func (p Project) SecretFiles() (names []string) {
	for _, name := range []string{p.TokenFile, p.WebhookFile, p.Chats.Slack.AppTokenFile, p.Chats.Slack.BotTokenFile,
		p.Chats.Discord.TokenFile} {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, s := range p.ReaderSecrets {
		names = append(names, s.File)
	}
	return names
}

// LabelList is the labels one by one.
func (p Project) LabelList() []string { return commaList(p.Labels) }

// OpenTo reports whether pages of an origin may use, without a key, what the project lets everybody use. A page that
// somebody lures a colleague to would read an intranet's documentation through their browser.
func (p Project) OpenTo(origin string) bool {
	return strings.EqualFold(origin, originOf(p.SiteURL)) || strings.EqualFold(origin, "https://"+p.Domain) ||
		slices.ContainsFunc(commaList(p.Options.PublicOrigins), func(o string) bool { return o == "*" || strings.EqualFold(o, origin) })
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func commaList(text string) []string {
	var out []string
	for l := range strings.SplitSeq(text, ",") {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// A PullForm is how a project's pull requests and commits look. It can be compared.
type PullForm struct {
	// of commits, as "Name <address>"; if empty, the account of the project's GitHub App, else Docent's own
	Author  string `json:"author,omitempty"`
	SignOff bool   `json:"signOff,omitempty"` // end commits with the author's Signed-off-by
	// pattern of titles, of commits too: {title} stands for what was done, {scope} for the folder that all changes are in
	Title string `json:"title,omitempty"`
	Draft bool   `json:"draft,omitempty"` // all are drafts at first
	// text in place of the repository's template: {report} stands for the report
	Body string `json:"body,omitempty"`
	// who is asked for reviews, separated by commas: accounts, teams as OWNER/TEAM, and the words of Reviewers
	Reviewers string `json:"reviewers,omitempty"`
	// how many pull requests of the project's automations may be open at a time; DefaultMostPulls if zero
	Most int `json:"most,omitempty"`
}

// DefaultMostPulls is how many pull requests of automations are open at a time where a project does not say, and MaxMostPulls
// how many it may say.
const (
	DefaultMostPulls = 10
	MaxMostPulls     = 100
)

// Words among the reviewers that stand for people.
const (
	CodeOwners  = "codeowners"   // whom the repository's CODEOWNERS names for what is changed
	CodeAuthors = "code-authors" // who wrote the change of code that an automation follows
)

// DefaultTitle is the pattern of titles where a project has none.
const DefaultTitle = "docs: {title}"

// Titled is a title by the project's pattern. The scope, with parentheses around it, is left out if it is empty.
func (f PullForm) Titled(title, scope string) string {
	pattern := cmp.Or(f.Title, DefaultTitle)
	if scope == "" {
		pattern = strings.ReplaceAll(pattern, "({scope})", "")
	}
	return strings.TrimSpace(strings.NewReplacer("{title}", title, "{scope}", scope).Replace(pattern))
}

// ReviewerList is who is asked for reviews, one by one.
func (f PullForm) ReviewerList() []string { return commaList(strings.ReplaceAll(f.Reviewers, "@", "")) }

// A Widget is how the widget looks on a project's site, if the site itself does not say.
type Widget struct {
	Accent     string `json:"accent,omitempty"`     // color of buttons and links, such as #0b57d0
	AccentDark string `json:"accentDark,omitempty"` // the same in the dark; a tone of the other if empty
	Theme      string `json:"theme,omitempty"`      // light or dark; follows the site if empty
	Button     string `json:"button,omitempty"`     // start for the other corner, none for no button
	Label      string `json:"label,omitempty"`      // what the button says
	Language   string `json:"language,omitempty"`   // of the interface; the page's if empty
	// what the dialog says and offers before the first question
	Greeting    string   `json:"greeting,omitempty"`
	Suggestions []string `json:"suggestions,omitempty"`
	// Contact is an email or web address of people who help, for everybody to see; or ContactForm.
	Contact string `json:"contact,omitempty"`
	// ContactIssues makes each conversation that a reader hands over by the form an issue of the repository, which may be public.
	ContactIssues bool `json:"contactIssues,omitempty"`
	// Logo is the address of a picture above the dialog, on the site itself if it begins with a slash.
	Logo string `json:"logo,omitempty"`
	// OpenIn are chat clients, of WidgetClients, that a reader's question may be taken to.
	OpenIn []string `json:"openIn,omitempty"`
}

// ContactForm is the contact of a project whose readers hand conversations over by a form.
const ContactForm = "form"

// WidgetClients are the chat clients that the widget leads to.
var WidgetClients = []string{"chatgpt", "claude"}

// WidgetLanguages are the languages that the widget speaks.
var WidgetLanguages = []string{"ar", "de", "en", "es", "fr", "it", "ja", "pt", "ru", "zh"}

// Options change how a project's assistant answers. All are off by default. They can be compared.
type Options struct {
	RequireThreadKey bool `json:"requireThreadKey,omitempty"` // a thread is only continued with its secret key
	SearchTool       bool `json:"searchTool,omitempty"`       // also show the retrieval as a tool call named "search"
	Suggestions      bool `json:"suggestions,omitempty"`      // end answers with a fenced block of follow-up questions
	Public           bool `json:"public,omitempty"`           // what is published is read, and asked over MCP, without a key
	// The origins whose pages may do so in a browser, separated by commas, beside the site's own and the server's; * for all.
	PublicOrigins string `json:"publicOrigins,omitempty"`
	// Each question comes with a proof of work: the number that a browser looks for is at most this; 0 for none. Keys
	// that are limited to addresses are a server's own, and need none.
	ProofOfWork int `json:"proofOfWork,omitempty"`
}

// What a proof of work may ask for: below, it is no work; beyond, a phone takes half a minute.
const (
	LeastProofOfWork = 1_000
	MostProofOfWork  = 10_000_000
)

// Limits are quotas; zero means the configured default, a negative number means none.
type Limits struct {
	ProjectHour int `json:"projectHour,omitempty" toml:"project_hour"` // create job and follow-up together
	KeyMonth    int `json:"keyMonth,omitempty" toml:"key_month"`       // assistant messages of one key
	OrgHour     int `json:"orgHour,omitempty" toml:"org_hour"`         // assistant messages of an organization
	IPDay       int `json:"ipDay,omitempty" toml:"ip_day"`             // assistant messages of one address
}

// KeyKind tells server-side secrets from keys that a browser may hold.
type KeyKind string

const (
	AdminKey     KeyKind = "admin"     // agent and management operations
	AssistantKey KeyKind = "assistant" // assistant, search, page and feedback operations
	// The same operations for the site's own servers: secret, refused from browsers, and believed about who a reader is.
	ServerKey KeyKind = "server"
)

// Scopes of an admin key.
const (
	ScopeRead  = "read"  // GET and HEAD
	ScopeWrite = "write" // everything else
)

// A Key is what is known of an API key. The secret is shown once, when the key is made; only its hash is stored.
type Key struct {
	ID   KeyID   `json:"id"`
	Kind KeyKind `json:"kind"`
	Org  OrgID   `json:"organization"`
	// the project that the key was made for; an assistant key serves only its domain
	Project ProjectID `json:"project,omitempty"`
	Name    string    `json:"name,omitempty"`
	Hint    string    `json:"hint"` // the prefix and the last four characters of the secret, to recognize it by
	Scopes  []string  `json:"scopes,omitempty"`
	AllowIP []string  `json:"allowIp,omitempty"` // addresses and CIDR ranges; any if empty
	Origins []string  `json:"origins,omitempty"` // browser origins; any if empty
	// Groups of the readers that a server key is for, and the only ones that it may name. If there are none, it may
	// name any.
	Groups    []string   `json:"groups,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	RotatedTo KeyID      `json:"rotatedTo,omitempty"` // its successor, for which it ends
	LastUsed  *time.Time `json:"lastUsedAt,omitempty"`
}

// A File is one file of a documentation tree. Hash identifies the content (the git blob's), so that an unchanged file
// need not be read again.
type File struct {
	Path string // slash-separated, relative to the tree
	Hash string
	Size int64
}

// SiteKinds are those that a project may name.
var SiteKinds = []SiteKind{SitePlain, SiteMintlify, SiteDocusaurus, SiteVitePress, SiteHugo, SiteMkDocs, SiteStarlight, SiteNext,
	SiteMdBook, SiteGitBook, SiteJekyll, SiteSphinx, SiteAntora, SiteFern, SiteQuarto, SiteWiki}

// A Commit is what a repository's history says of one.
type Commit struct {
	Hash    string
	Subject string
	Author  string
	Time    time.Time
}

// AnswersFrom says what readers are answered from, of a project with a source and a published site.
type AnswersFrom string

const (
	// From its source, and the site is not read. Projects that had a site before it could be read are like that.
	FromNothingElse AnswersFrom = ""
	FromBetter      AnswersFrom = "auto"        // from the site where that has the pages of the source, else from the source
	FromSite        AnswersFrom = "site"        // from the site once it was read
	FromSource      AnswersFrom = "source"      // from the source; the site is read to be compared
	FromSourceOnly  AnswersFrom = "source-only" // the same, and the site is not read
)

// A SiteKind is a generator of documentation sites.
type SiteKind string

// The generators whose URLs are known.
const (
	SitePlain      SiteKind = "plain" // a page's path without its extension
	SiteMintlify   SiteKind = "mintlify"
	SiteDocusaurus SiteKind = "docusaurus"
	SiteVitePress  SiteKind = "vitepress"
	SiteHugo       SiteKind = "hugo"
	SiteMkDocs     SiteKind = "mkdocs"
	SiteStarlight  SiteKind = "starlight"
	SiteNext       SiteKind = "nextjs" // Nextra, Fumadocs and others
	SiteMdBook     SiteKind = "mdbook"
	SiteGitBook    SiteKind = "gitbook"
	SiteJekyll     SiteKind = "jekyll"
	SiteSphinx     SiteKind = "sphinx"
	SiteAntora     SiteKind = "antora"
	SiteFern       SiteKind = "fern"
	SiteQuarto     SiteKind = "quarto"
	SiteWiki       SiteKind = "wiki" // of GitHub or GitLab
	// what a program collected from elsewhere, as from a web site: each page's front matter holds its address
	SiteCollected SiteKind = "collected"
)

// JobModel is the name of the model that does the project's jobs; empty for the server's default.
func (p Project) JobModel() string { return cmp.Or(p.AgentModel, p.Model) }
