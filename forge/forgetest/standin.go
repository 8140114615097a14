package forgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
)

// A Fault is what goes wrong with one request to a StandIn. The zero Fault lets it pass.
type Fault struct {
	Act    bool          // the request takes effect all the same
	Drop   bool          // the connection is cut off without an answer
	Stall  bool          // there is no answer until the client gives up
	Status int           // of the answer
	Header http.Header   // of the answer
	Body   string        // of the answer; JSON
	Pause  time.Duration // before the request is looked at
}

func (f Fault) none() bool { return !f.Drop && !f.Stall && f.Status == 0 }

// A StandIn stands in for a code host in tests: it serves one bare repository by git's own http backend, and the pull
// requests of it in the API dialects of GitHub (/api/v3), GitLab (/api/v4) and Gitea (/api/v1) at the same address. Its
// answers are the documented ones, as far as an adapter can see them. Set its fields before the first request, or under
// Do.
type StandIn struct {
	URL   string
	Dir   string // of the bare repository; its parent is what is served
	Owner string
	Name  string

	mu       sync.Mutex
	Tokens   []string // that may do everything
	ReadOnly []string // tokens that may read
	Narrow   []string // tokens that may read, of somebody who may do everything
	// what GitHub and GitLab say that a token may do; they say nothing if it is empty
	Scopes []string
	// OWNER/NAME that the repository had before: it answers to that too, as its dialect does
	Former   string
	Archived bool                          // the repository cannot be written to
	NoDrafts bool                          // drafts are refused, as on some plans
	Prune    bool                          // a branch goes when its pull request is merged
	OldGit   bool                          // git speaks the first version of its protocol alone
	Fault    func(req *http.Request) Fault // asked for each request, git's too
	Seen     func(req *http.Request)       // told of each request
	App      *StandInApp                   // a GitHub App that may ask for tokens
	pulls    []*StandInPull

	// People are what the host says of accounts: "admin", "write", "read", "bot", or "blocked", who may do nothing any
	// more. It does not know others.
	People map[string]string
	Teams  []string // of the owner, who may be asked to review
	// Writer is the account of the tokens; "docent-bot", who may write, if it is empty.
	Writer string
	// what Gitea tells of people it tells only to administrators, and the tokens are no administrator's
	NoAdmin   bool
	NoReplies bool // Gitea before 1.27: comments on lines cannot be answered
	SamePage  bool // the host gives its first page, whichever is asked for
	Clock     func() time.Time
	said      []*StandInComment
	reviews   []*StandInReview
	lastID    int64
	Issues    []StandInIssue // that were opened
}

// A StandInIssue is an issue of the repository.
type StandInIssue struct{ Title, Body string }

// tracked lists the issues or opens one, if that is asked for: all hosts do so alike, but that GitLab has words of its own.
func (s *StandIn) tracked(x *exchange) bool {
	gitlab := x.parts[0] == "projects"
	if last := len(x.parts) - 1; x.parts[last] != "issues" || last > 3 {
		return false
	}
	show := func(i int) map[string]any {
		link, is := fmt.Sprintf("%s/%s/%s/issues/%d", s.URL, s.Owner, s.Name, i+1), s.Issues[i]
		if gitlab {
			return map[string]any{"id": i + 1, "iid": i + 1, "title": is.Title, "description": is.Body, "web_url": link, "state": "opened"}
		}
		return map[string]any{"id": i + 1, "number": i + 1, "title": is.Title, "body": is.Body, "html_url": link, "state": "open"}
	}
	switch x.r.Method {
	case http.MethodGet:
		list := []map[string]any{}
		for i := range s.Issues {
			list = append(list, show(i))
		}
		x.say(http.StatusOK, list)
	case http.MethodPost:
		var in struct{ Title, Body, Description string }
		if x.decode(&in) {
			s.Issues = append(s.Issues, StandInIssue{in.Title, in.Body + in.Description})
			x.say(http.StatusCreated, show(len(s.Issues)-1))
		}
	default:
		return false
	}
	return true
}

// A StandInPull is a pull request on a StandIn.
type StandInPull struct {
	Number     int
	Title      string
	Body       string
	Head, Base string
	Draft      bool
	State      api.PullState
	Commit     string // the branch's, once it is merged or closed
	Labels     []string
	Reviewers  []string // accounts, and teams as OWNER/TEAM
	Asked      int      // people and teams that were told that their review is wanted
	Created    time.Time
}

// A StandInApp is a GitHub App that is installed on the repository.
type StandInApp struct {
	ID           int64
	Installation int64
	Verify       func(jwt string) error
	Slug         string        // its comments are by SLUG[bot]
	Lifetime     time.Duration // of its tokens
	Now          func() time.Time
	Made         int // tokens
}

// NewStandIn starts a host with a repository that holds Files. Without git there is none, and the test is skipped.
func NewStandIn(t testing.TB) *StandIn {
	t.Helper()
	gitPath := GitPath(t)
	s := &StandIn{Owner: "acme", Name: "docs"}
	root := t.TempDir()
	s.Dir = filepath.Join(root, s.Owner, s.Name+".git")
	Bare(t, s.Dir, Files)
	backend := &cgi.Handler{Path: gitPath, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=docent",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack",
		"GIT_CONFIG_VALUE_1=true",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, backend) }))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Project is a project whose documentation lives on the host, with its token in a variable.
func (s *StandIn) Project(kind api.HostKind, tokenEnv string) api.Project {
	return api.Project{
		ID: "docs", Domain: "docs.example.org", Source: s.URL + "/" + s.Owner + "/" + s.Name + ".git",
		Host: kind, HostURL: s.URL, Repository: s.Owner + "/" + s.Name, TokenEnv: tokenEnv,
	}
}

// Do changes the host's settings between requests.
func (s *StandIn) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *StandIn) serve(w http.ResponseWriter, r *http.Request, git http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	again := func() *http.Request {
		c := r.Clone(r.Context())
		c.Body, c.ContentLength, c.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		return c
	}
	s.mu.Lock()
	seen, fault := s.Seen, s.Fault
	s.mu.Unlock()
	if seen != nil {
		seen(again())
	}
	var f Fault
	if fault != nil {
		f = fault(again())
	}
	if f.Pause > 0 {
		select {
		case <-time.After(f.Pause):
		case <-r.Context().Done():
			return
		}
	}
	if f.none() {
		s.answer(w, again(), body, git)
		return
	}
	if f.Act {
		s.answer(httptest.NewRecorder(), again(), body, git)
	}
	switch {
	case f.Stall:
		<-r.Context().Done()
	case f.Drop:
		panic(http.ErrAbortHandler)
	default:
		maps.Copy(w.Header(), f.Header)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(f.Status)
		io.WriteString(w, f.Body)
	}
}

func (s *StandIn) answer(w http.ResponseWriter, r *http.Request, body []byte, git http.Handler) {
	path := r.URL.EscapedPath()
	for prefix, dialect := range map[string]func(*exchange){"/api/v3/": s.github, "/api/v4/": s.gitlab,
		"/api/v1/": s.gitea} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			x := &exchange{w: w, r: r, body: body}
			if s.movedOn(x, prefix, rest) {
				return
			}
			for part := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
				plain, _ := url.PathUnescape(part)
				x.parts = append(x.parts, plain)
			}
			dialect(x)
			return
		}
	}
	_, password, _ := r.BasicAuth()
	s.mu.Lock()
	writer, archived := slices.Contains(s.Tokens, password), s.Archived
	reader := slices.Contains(slices.Concat(s.ReadOnly, s.Narrow), password)
	for _, name := range []string{s.Former, s.Owner + "/" + s.Name} { // git is served under both names
		if rest, ok := strings.CutPrefix(r.URL.Path, "/"+name+".git/"); ok && name != "" {
			r.URL.Path = "/" + filepath.Base(filepath.Dir(s.Dir)) + "/" + filepath.Base(s.Dir) + "/" + rest
		}
	}
	if s.OldGit {
		r.Header.Del("Git-Protocol")
	}
	s.mu.Unlock()
	writes := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
	switch {
	case !writer && !reader:
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "Invalid username or token.", http.StatusUnauthorized)
	case writes && (!writer || archived):
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
	default:
		git.ServeHTTP(w, r)
	}
}

// Rename gives the repository another owner and name.
func (s *StandIn) Rename(owner, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Former, s.Owner, s.Name = s.Owner+"/"+s.Name, owner, name
}

// movedOn answers a request for the repository's former name: readers are sent on; GitLab refuses the others.
func (s *StandIn) movedOn(x *exchange, prefix, rest string) bool {
	was, is := "repos/"+s.Former, "repos/"+s.Owner+"/"+s.Name
	if prefix == "/api/v4/" {
		was, is = "projects/"+url.PathEscape(s.Former), "projects/"+url.PathEscape(s.Owner+"/"+s.Name)
	}
	after, ok := strings.CutPrefix(rest, was)
	if !ok || s.Former == "" || after != "" && after[0] != '/' {
		return false
	}
	status := http.StatusTemporaryRedirect
	switch {
	case prefix == "/api/v4/" && x.r.Method != http.MethodGet:
		x.say(http.StatusMethodNotAllowed,
			map[string]any{"message": "405 Non GET methods are not allowed for moved projects"})
		return true
	case prefix != "/api/v1/" && x.r.Method == http.MethodGet:
		status = http.StatusMovedPermanently
	}
	to := prefix + is + after
	if x.r.URL.RawQuery != "" {
		to += "?" + x.r.URL.RawQuery
	}
	x.w.Header().Set("Location", s.URL+to)
	x.say(status, map[string]any{"message": "Moved Permanently", "url": s.URL + to})
	return true
}

// An exchange is one request to the API and its answer.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	parts []string // of the path
}

func (x *exchange) is(method string, pattern ...string) bool {
	if x.r.Method != method || len(pattern) != len(x.parts) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != x.parts[i] {
			return false
		}
	}
	return true
}

func (x *exchange) say(status int, v any) {
	x.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	x.w.WriteHeader(status)
	json.NewEncoder(x.w).Encode(v)
}

func (x *exchange) decode(v any) bool {
	if err := json.Unmarshal(x.body, v); err != nil {
		x.say(http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"})
		return false
	}
	return true
}

func (x *exchange) number(i int) int {
	n, _ := strconv.Atoi(x.parts[i])
	return n
}

// rights are what the host says that a token may do: 0 nothing, 1 read, 2 write.
func (s *StandIn) rights(token string) int {
	switch {
	case slices.Contains(s.Tokens, token), slices.Contains(s.Narrow, token):
		return 2
	case slices.Contains(s.ReadOnly, token):
		return 1
	}
	return 0
}

func (s *StandIn) pull(number int) *StandInPull {
	for _, p := range s.pulls {
		if p.Number == number {
			return p
		}
	}
	return nil
}

func (s *StandIn) open(head, base string) *StandInPull {
	for _, p := range s.pulls {
		if p.Head == head && (base == "" || p.Base == base) && p.State == api.PullOpen {
			return p
		}
	}
	return nil
}

func (s *StandIn) add(p *StandInPull) *StandInPull {
	p.Number, p.State, p.Created = len(s.pulls)+1, api.PullOpen, time.Now().UTC()
	s.pulls = append(s.pulls, p)
	return p
}

// sha is a branch's head; empty if there is none.
func (s *StandIn) sha(branch string) string {
	// From the files first: a process for each pull request of a listing would make the host slow.
	if loose, err := os.ReadFile(filepath.Join(s.Dir, "refs", "heads", filepath.FromSlash(branch))); err == nil &&
		len(strings.TrimSpace(string(loose))) == 40 {
		return strings.TrimSpace(string(loose))
	}
	if packed, err := os.ReadFile(filepath.Join(s.Dir, "packed-refs")); err == nil {
		for line := range strings.Lines(string(packed)) {
			if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "refs/heads/"+branch &&
				len(hash) == 40 {
				return hash
			}
		}
	}
	out, err := exec.Command("git", "-C", s.Dir, "-c", "safe.directory=*", "rev-parse", "--verify", "-q",
		"refs/heads/"+branch).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// diffOf is what a branch changes since it left another one.
func (s *StandIn) diffOf(base, head string) string {
	out, err := exec.Command("git", "-C", s.Dir, "-c", "safe.directory=*", "diff", "refs/heads/"+base+"...refs/heads/"+head).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func (p *StandInPull) commit(s *StandIn) string {
	if p.Commit != "" {
		return p.Commit
	}
	return s.sha(p.Head)
}

// Pulls lists the pull requests from a branch, oldest first; from all if it is empty.
func (s *StandIn) Pulls(branch string) []StandInPull {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []StandInPull
	for _, p := range s.pulls {
		if branch == "" || p.Head == branch {
			c := *p
			c.Labels, c.Reviewers = slices.Clone(p.Labels), slices.Clone(p.Reviewers)
			out = append(out, c)
		}
	}
	return out
}

// Describe sets a pull request's body, as somebody does who edits it.
func (s *StandIn) Describe(number int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull(number).Body = body
}

// Close closes a branch's open pull request.
func (s *StandIn) Close(t testing.TB, branch string) {
	t.Helper()
	s.end(t, branch, api.PullClosed)
}

func (s *StandIn) end(t testing.TB, branch string, state api.PullState) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.open(branch, "")
	if p == nil {
		t.Fatalf("%s has no open pull request", branch)
	}
	p.Commit, p.State = s.sha(branch), state
}

// Merge merges a branch's open pull request as a maintainer does.
func (s *StandIn) Merge(t testing.TB, branch string) {
	t.Helper()
	s.end(t, branch, api.PullMerged)
	work := t.TempDir()
	Git(t, work, "clone", "-q", "file://"+s.Dir, ".")
	Git(t, work, "merge", "-q", "--no-ff", "-m", "Merge "+branch, "origin/"+branch)
	Git(t, work, "push", "-q", "origin", "HEAD:main")
	s.mu.Lock()
	prune := s.Prune
	s.mu.Unlock()
	if prune {
		Git(t, s.Dir, "update-ref", "-d", "refs/heads/"+branch)
	}
}

// Squash merges it as one commit of its own, and removes the branch.
func (s *StandIn) Squash(t testing.TB, branch string) {
	t.Helper()
	s.end(t, branch, api.PullMerged)
	work := t.TempDir()
	Git(t, work, "clone", "-q", "file://"+s.Dir, ".")
	Git(t, work, "merge", "-q", "--squash", "origin/"+branch)
	Git(t, work, "commit", "-q", "-m", "Squashed "+branch)
	Git(t, work, "push", "-q", "origin", "HEAD:main")
	Git(t, s.Dir, "update-ref", "-d", "refs/heads/"+branch)
}

// Push adds a commit of somebody else to a branch.
func (s *StandIn) Push(t testing.TB, branch, path, content string) {
	t.Helper()
	work := t.TempDir()
	Git(t, work, "clone", "-q", "--branch", branch, "file://"+s.Dir, ".")
	Write(t, work, map[string]string{path: content})
	Git(t, work, "add", "-A")
	Git(t, work, "commit", "-q", "-m", "by hand")
	Git(t, work, "push", "-q", "origin", "HEAD:"+branch)
}

// Commits lists a branch's commits, newest first; none if there is no such branch.
func (s *StandIn) Commits(t testing.TB, branch string) []string {
	t.Helper()
	if s.sha(branch) == "" {
		return nil
	}
	return strings.Fields(Git(t, s.Dir, "log", "--format=%H", branch, "--"))
}

// Protect makes the host refuse pushes to a branch, in the words that hosts have for it.
func (s *StandIn) Protect(t testing.TB, branch string) {
	t.Helper()
	hook := filepath.Join(s.Dir, "hooks", "pre-receive")
	script := "#!/bin/sh\nwhile read old new ref; do [ \"$ref\" != refs/heads/" + branch +
		" ] || { echo \"branch is protected\" >&2; exit 1; }; done\n"
	if err := os.WriteFile(hook, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Fsck lets git judge the repository.
func (s *StandIn) Fsck(t testing.TB) { t.Helper(); Fsck(t, s.Dir) }

// Git runs git in the bare repository.
func (s *StandIn) Git(t testing.TB, args ...string) string { t.Helper(); return Git(t, s.Dir, args...) }

// Host is the stand-in as the contract wants it.
func (s *StandIn) Host(f Forge, p api.Project) Host {
	return Host{
		Forge: f, Project: p,
		Requests: func(t *testing.T, branch string) int { return len(s.Pulls(branch)) },
		Commits:  func(t *testing.T, branch string) []string { return s.Commits(t, branch) },
		Merge:    func(t *testing.T, branch string) { s.Merge(t, branch) },
		Close:    func(t *testing.T, branch string) { s.Close(t, branch) },
		Push:     func(t *testing.T, branch, path, content string) { s.Push(t, branch, path, content) },
		Narrow:   func(t *testing.T) { s.Do(func() { s.Narrow, s.Tokens = s.Tokens, nil }) },
		Rename:   func(t *testing.T) { s.Rename("newco", "manual") },
	}
}
