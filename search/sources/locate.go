package sources

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	"docent/api"
)

// A Place is what a path or address that somebody has pasted names.
type Place struct {
	Kind    PlaceKind
	Project api.Project // its settings as far as they follow from that: source, host, repository, branch, folder
	Address string      // of a site, or of what may be one
}

// A PlaceKind says where documentation may be.
type PlaceKind string

const (
	PlaceFolder  PlaceKind = "folder"  // on the server's machine
	PlaceGit     PlaceKind = "git"     // a repository that is fetched
	PlaceHosted  PlaceKind = "hosted"  // a repository of a code host that keeps pull requests
	PlaceUnknown PlaceKind = "address" // a web address: a repository or a site, which only asking it tells
)

func badPlace(message string) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: "source", Message: message}}}
}

var (
	windowsPath = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
	scpForm     = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9_.-]+):([^/\\].*)$`)
	bareHost    = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}(:\d+)?(/|$)`)
)

// Locate says what a text names that somebody has pasted as the place of documentation. It asks nobody. What it refuses
// it refuses with an *api.InvalidError for the field source, in words that do not repeat the text, which may hold a
// secret.
func Locate(text string) (Place, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Place{}, badPlace(
			"is required: a folder on the server, the address of a git repository, or the address of your site",
		)
	case len(text) > 2000:
		return Place{}, badPlace("is too long for a path or an address")
	case strings.ContainsFunc(text, unicode.IsControl):
		return Place{}, badPlace("must not contain control characters")
	case strings.HasPrefix(text, "-"), strings.Contains(text, "::"):
		return Place{}, badPlace(
			"must be a folder, a git repository or a web address: what begins with a hyphen or contains :: would be an option or a program to git",
		)
	case windowsPath.MatchString(text), strings.HasPrefix(text, `\\`):
		return Place{}, badPlace("is a path of Windows: name a folder on the machine that this server runs on")
	}
	if path.IsAbs(text) {
		return Place{Kind: PlaceFolder, Project: api.Project{Source: path.Clean(text), Host: api.HostBuiltin}}, nil
	}
	if strings.Contains(text, "://") {
		return locateURL(text)
	}
	if m := scpForm.FindStringSubmatch(text); m != nil && !bareHost.MatchString(text) {
		return located(text, m[1], "", m[2]), nil
	}
	if bareHost.MatchString(text) {
		return locateURL("https://" + text)
	}
	return Place{}, badPlace(
		"is not a whole path or address: a folder begins with a slash, such as /srv/docs, and an address with https:// or git@",
	)
}

func locateURL(text string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Place{}, badPlace("is not a valid address")
	}
	_, password := u.User.Password()
	web := u.Scheme == "http" || u.Scheme == "https"
	switch {
	case password, web && u.User != nil:
		return Place{}, badPlace(
			"has a user name or a token in it: take it out, and paste the token into its own field",
		)
	case u.Scheme == "file":
		if u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) {
			return Place{}, badPlace("is not the address of a file on this machine")
		}
		return Place{Kind: PlaceFolder, Project: api.Project{Source: path.Clean(u.Path), Host: api.HostBuiltin}}, nil
	case u.Scheme != "ssh" && u.Scheme != "git+ssh" && u.Scheme != "ssh+git" && !web:
		return Place{}, badPlace("must be a folder or an address with https, http or ssh")
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return Place{}, badPlace("is an address without a host")
	}
	if !web {
		u.RawQuery, u.Fragment = "", ""
		return located(u.String(), u.Hostname(), "", u.Path), nil
	}
	return located("", u.Hostname(), u.Scheme+"://"+u.Host, u.Path), nil
}

// LocateOn is Locate for an address of which somebody says which kind of code host it is on.
func LocateOn(kind api.HostKind, text string) (Place, error) {
	place, err := Locate(text)
	if err != nil || place.Kind == PlaceHosted && place.Project.Host == kind || kind == "" {
		return place, err
	}
	address := place.Address
	if place.Kind == PlaceGit {
		address = place.Project.Source
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Place{}, badPlace(
			"is not the address of a repository on such a host: paste the one that the browser shows",
		)
	}
	if kind == api.HostGit {
		return Place{
			Kind:    PlaceGit,
			Project: api.Project{Source: u.Scheme + "://" + u.Host + u.Path, Host: api.HostBuiltin},
		}, nil
	}
	p := api.Project{Host: kind, HostURL: u.Scheme + "://" + u.Host}
	p.Repository, p.Branch, p.DocsDir = splitPage(kind, u.Path)
	if strings.Count(p.Repository, "/") < 1 {
		return Place{}, badPlace("does not name a repository: its path is to begin with OWNER/NAME")
	}
	return Place{Kind: PlaceHosted, Project: p.WithDefaults(), Address: address}, nil
}

// located is the place of a path on a host. The source is the address to fetch from, if it is not one of the web;
// base is the host's address in the web, if that is known.
func located(source, name, base, at string) Place {
	name = strings.ToLower(name)
	kind := hostKind(name)
	if kind == "" {
		if source != "" || strings.HasSuffix(strings.TrimRight(at, "/"), ".git") {
			if source == "" {
				source = base + "/" + strings.Trim(at, "/")
			}
			return Place{Kind: PlaceGit, Project: api.Project{Source: source, Host: api.HostBuiltin}}
		}
		return Place{Kind: PlaceUnknown, Address: base + at}
	}
	p := api.Project{Host: kind, Source: source}
	p.Repository, p.Branch, p.DocsDir = splitPage(kind, at)
	if strings.Count(p.Repository, "/") < 1 { // somebody's page, not a repository's
		return Place{Kind: PlaceUnknown, Address: base + at}
	}
	switch {
	case kind == api.HostGitHub && name == "github.com", kind == api.HostGitLab && name == "gitlab.com":
	case base != "":
		p.HostURL = base
	default:
		p.HostURL = "https://" + name
	}
	return Place{Kind: PlaceHosted, Project: p.WithDefaults(), Address: base + at}
}

// hostKind is the kind of code host that a name stands for; empty if the name does not tell.
func hostKind(name string) api.HostKind {
	first, _, _ := strings.Cut(name, ".")
	switch {
	case name == "github.com" || name == "www.github.com" || strings.HasSuffix(name, ".ghe.com") || first == "github":
		return api.HostGitHub
	case name == "gitlab.com" || first == "gitlab":
		return api.HostGitLab
	case name == "codeberg.org" || name == "gitea.com" || first == "gitea" || first == "forgejo":
		return api.HostGitea
	}
	return ""
}

// splitPage takes the address of a page of a repository apart: the repository, and the branch and folder that the page
// shows. A branch whose name has slashes cannot be told from a folder: its first part is taken, and the person sees it.
func splitPage(kind api.HostKind, at string) (repository, branch, dir string) {
	parts := strings.Split(strings.Trim(at, "/"), "/")
	marks := map[string]bool{"tree": true, "blob": true, "edit": true, "raw": true, "src": true, "_edit": true}
	least := 2
	rest := []string(nil)
	for i, part := range parts {
		if kind == api.HostGitLab && part == "-" && i >= least {
			parts, rest = parts[:i], parts[i+1:]
			break
		}
		if i == least && kind != api.HostGitLab {
			parts, rest = parts[:i], parts[i:]
			break
		}
	}
	repository = strings.TrimSuffix(strings.Join(parts, "/"), ".git")
	if len(rest) < 2 || !marks[rest[0]] {
		return repository, "", ""
	}
	isFile := rest[0] == "blob" || rest[0] == "edit" || rest[0] == "raw" || rest[0] == "_edit"
	rest = rest[1:]
	if kind == api.HostGitea && rest[0] == "branch" && len(rest) > 1 {
		rest = rest[1:]
	}
	branch = rest[0]
	if rest = rest[1:]; len(rest) > 0 && (isFile || path.Ext(rest[len(rest)-1]) != "") {
		rest = rest[:len(rest)-1]
	}
	return repository, branch, strings.Join(rest, "/")
}

// ProposeID is a name for a project that its source gives: of the repository, the folder or the host.
func ProposeID(p api.Project) string {
	name := path.Base(strings.TrimSuffix(strings.TrimRight(p.Source, "/"), ".git"))
	if p.Repository != "" {
		name = path.Base(p.Repository)
	}
	if _, after, ok := strings.Cut(name, ":"); ok {
		name = path.Base(after)
	}
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	if id := strings.Trim(b.String(), "-"); id != "" {
		return id
	}
	return "docs"
}
