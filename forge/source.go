package forge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"docent/api"
	"docent/forge/failure"
	"docent/forge/git"
	"docent/forge/host"
)

type sourceKind int

const (
	plainFolder sourceKind = iota + 1 // imported as it is
	workTree                          // a git working tree: its files are imported, but those that git ignores
	gitRemote                         // a repository that is fetched from and pushed to
)

// A source is where a project's documentation comes from.
type source struct {
	kind sourceKind
	path string // of a folder, clean and absolute
	url  string // of a repository, without credentials
	web  string // repository's web page, if its address tells
	name string // as the API shows it
	docs string // documentation folder; empty for the root

	absent bool // the folder is not on this node, and may be on others
}

var scpLike = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_.-]+:[^/\\].*$|^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:.*$`)

// Check says whether this version can serve the project's source and code host, before it is asked to. The error wraps
// ErrMisconfigured and is a sentence for the operator.
func Check(p api.Project) error {
	_, err := checked(p)
	return err
}

// checked is the source of a project that can be served.
func checked(p api.Project) (source, error) {
	switch p.Host {
	case "", api.HostBuiltin, api.HostGit, api.HostGitHub, api.HostGitLab, api.HostGitea:
	default:
		return source{}, fmt.Errorf("%w: there is no code host of kind %q", ErrMisconfigured, p.Host)
	}
	if p.Branch != "" && git.CheckBranch(p.Branch) != nil {
		return source{}, fmt.Errorf("%w: the branch %q is not a branch name", ErrMisconfigured, p.Branch)
	}
	docs, err := docsDir(p)
	if err != nil {
		return source{}, err
	}
	src, err := resolve(p)
	if err == nil && host.KeepsPulls(p.Host) && src.kind != gitRemote {
		err = fmt.Errorf("%w: the source %q is a folder; with the host %q it must be the address of the repository there",
			ErrMisconfigured, p.Source, p.Host)
	}
	src.docs = docs
	return src, err
}

// docsDir is the project's documentation folder in the form that paths have; empty for the root.
func docsDir(p api.Project) (string, error) {
	dir := strings.Trim(filepath.ToSlash(p.DocsDir), "/")
	if dir == "" || dir == "." {
		return "", nil
	}
	dir = strings.TrimPrefix(dir, "./")
	if err := git.CheckPath(dir); err != nil {
		return "", fmt.Errorf("%w: the documentation folder %q is not a plain path below the repository's root",
			ErrMisconfigured, p.DocsDir)
	}
	return dir, nil
}

func resolve(p api.Project) (source, error) {
	name := cmp.Or(p.Repository, string(p.ID))
	if p.Kind.Collected() {
		return source{}, fmt.Errorf("%w: the source is %s, which nobody but its collector reads; it holds no repository to work on",
			ErrMisconfigured, p.Kind.Said())
	}
	s := strings.TrimSpace(p.Source)
	if s == "" {
		return source{}, fmt.Errorf("%w: the project has no source", ErrMisconfigured)
	}
	if strings.Contains(s, "://") {
		return resolveURL(s, p)
	}
	path, err := filepath.Abs(s)
	if err != nil {
		return source{}, fmt.Errorf("%w: the source %q: %w", ErrMisconfigured, s, err)
	}
	info, err := os.Stat(path)
	// "::" asks git to run a program
	if errors.Is(err, fs.ErrNotExist) && scpLike.MatchString(s) && !strings.Contains(s, "::") {
		host, path, _ := strings.Cut(s, ":")
		if _, h, ok := strings.Cut(host, "@"); ok {
			host = h
		}
		return source{kind: gitRemote, url: s, web: webPage(host, path), name: cmp.Or(p.Repository, s)}, nil
	}
	switch {
	case err != nil:
		return source{}, fmt.Errorf("%w: the source %q cannot be opened: %w", ErrMisconfigured, s, failure.Reason(err))
	case !info.IsDir():
		return source{}, fmt.Errorf(
			"%w: the source %q is a file; a folder or a git repository is needed (clone a bundle first)", ErrMisconfigured, s)
	case exists(filepath.Join(path, ".git")):
		if p.Host == api.HostGit {
			return source{kind: gitRemote, url: path, name: name}, nil
		}
		return source{kind: workTree, path: path, name: name}, nil
	case exists(filepath.Join(path, "HEAD")) && exists(filepath.Join(path, "objects")) &&
		exists(filepath.Join(path, "refs")):
		return source{kind: gitRemote, url: path, name: name}, nil
	case p.Host == api.HostGit:
		return source{}, fmt.Errorf("%w: the source %q is a plain folder; the host %q needs a git repository",
			ErrMisconfigured, s, api.HostGit)
	}
	return source{kind: plainFolder, path: path, name: name}, nil
}

func resolveURL(s string, p api.Project) (source, error) {
	u, err := url.Parse(s)
	if err != nil {
		// the address may hold a secret
		return source{}, fmt.Errorf("%w: the source is not a valid address", ErrMisconfigured)
	}
	_, secret := u.User.Password()
	if secret || u.User != nil && (u.Scheme == "http" || u.Scheme == "https") {
		return source{}, fmt.Errorf(
			"%w: credentials do not belong into the source's address; name the environment variable that holds the token instead", ErrMisconfigured)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return source{}, fmt.Errorf("%w: the source's address has a query or a fragment, which no repository's has",
			ErrMisconfigured)
	}
	src := source{kind: gitRemote, url: s}
	switch u.Scheme {
	case "https", "http", "ssh":
		if u.Host == "" {
			return source{}, fmt.Errorf("%w: the source's address names no host", ErrMisconfigured)
		}
		src.web, src.name = webPage(u.Hostname(), u.Path), cmp.Or(p.Repository, s)
	case "file":
		src.name = cmp.Or(p.Repository, string(p.ID))
	default:
		return source{}, fmt.Errorf("%w: the source's address has the scheme %q; https, http, ssh and file are understood",
			ErrMisconfigured, u.Scheme)
	}
	return src, nil
}

// webPage is the repository's page on the hosts whose addresses are known to follow from the clone address.
func webPage(host, path string) string {
	switch host = strings.ToLower(host); host {
	case "github.com", "gitlab.com", "codeberg.org", "bitbucket.org":
		return "https://" + host + "/" + strings.Trim(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	}
	return ""
}

// compareLink is the page on which a person opens a pull request for a pushed branch; empty if the host is not known.
func (s source) compareLink(base, head string) string {
	if s.web == "" {
		return ""
	}
	base, head = url.PathEscape(base), url.PathEscape(head)
	switch {
	case strings.HasPrefix(s.web, "https://gitlab.com/"):
		return s.web + "/-/merge_requests/new?merge_request%5Bsource_branch%5D=" + head +
			"&merge_request%5Btarget_branch%5D=" + base
	case strings.HasPrefix(s.web, "https://bitbucket.org/"):
		return s.web + "/pull-requests/new?source=" + head + "&dest=" + base
	}
	return s.web + "/compare/" + base + "..." + head
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
