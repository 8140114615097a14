// Package giteatest starts, for tests, a real Gitea, which scripts/install-gitea builds from its module. It makes the
// people and repositories that a test needs, and says what the server itself has of them.
package giteatest

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/forge/forgetest"
	"docent/internal/background"
	"docent/internal/testing/freeport"
	"docent/internal/testing/need"
)

// scripts/install-gitea reads it, too.
//
//go:embed version.txt
var version string

// Folder is where scripts/install-gitea puts the server, with the templates that it cannot start without.
func Folder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "docent-tests", "gitea-"+strings.TrimSpace(version))
}

// Scopes of the tokens that docs/deploy/code-hosts.mdx asks for.
var Scopes = []string{"write:repository", "write:issue"}

// A Server runs as a process of its own until the test ends.
type Server struct {
	URL string

	t      testing.TB
	dir    string
	port   string
	log    *bounded
	admin  string // a token
	people map[string]*Person
	mu     sync.Mutex

	process *os.Process // that Serve started last
	ended   chan struct{}
}

// A Person has an account on the server.
type Person struct {
	Name     string
	Password string
	Token    string // may do all that the person may
}

// bounded keeps the end of what is written to it.
type bounded struct {
	mu   sync.Mutex
	text []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - 64<<10; over > 0 {
		b.text = b.text[over:]
	}
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// Start starts a server on this machine's own address. The test is skipped if it is not installed.
func Start(t testing.TB) *Server {
	t.Helper()
	need.Peer(t, "a real Gitea", "scripts/install-gitea", filepath.Join(Folder(), "gitea"))
	forgetest.GitPath(t)
	s := &Server{t: t, dir: t.TempDir(), log: &bounded{}, people: map[string]*Person{}}
	s.port = strconv.Itoa(freeport.On(t, "127.0.0.1"))
	s.URL = "http://127.0.0.1:" + s.port
	s.configure()
	s.run("migrate")
	s.run("admin", "user", "create", "--username", "root-admin", "--password", secret(), "--email", "root@example.org",
		"--admin", "--must-change-password=false")
	made := s.run("admin", "user", "generate-access-token", "--username", "root-admin", "--scopes", "all", "--raw")
	if s.admin = regexp.MustCompile(`(?m)^[0-9a-f]{40}$`).FindString(made); s.admin == "" { // its log is there, too
		t.Fatalf("no token in %q", made)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of Gitea's log:\n%s", s.log)
		}
	})
	s.Serve()
	return s
}

func secret() string { return rand.Text() }

func (s *Server) configure() {
	s.t.Helper()
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	conf := fmt.Sprintf(`RUN_MODE = prod
RUN_USER = %s
WORK_PATH = %s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %s
ROOT_URL = %s/
STATIC_ROOT_PATH = %s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
SECRET_KEY = %s
INTERNAL_TOKEN = %s
PASSWORD_HASH_ALGO = pbkdf2$1$16
[webhook]
ALLOWED_HOST_LIST = loopback
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`, me.Username, s.dir, s.port, s.URL, Folder(), secret(), secret())
	if err := os.WriteFile(s.conf(), []byte(conf), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) conf() string { return filepath.Join(s.dir, "app.ini") }

func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(Folder(), "gitea"), append([]string{"--config", s.conf()}, args...)...)
	cmd.Dir = s.dir
	// It refuses to run as root elsewhere; containers have no other user.
	cmd.Env = append(os.Environ(), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "HOME="+s.dir, "GIT_CONFIG_NOSYSTEM=1",
		"GITEA_WORK_DIR="+s.dir)
	return cmd
}

// run runs one of the server's own commands, and answers with what it prints.
func (s *Server) run(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	var out bytes.Buffer
	var said bounded
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("gitea %s: %v\n%s%s", args[0], err, out.String(), said.String())
	}
	return out.String()
}

// Serve starts the process, also after Stop.
func (s *Server) Serve() {
	s.t.Helper()
	cmd := s.command("web")
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	background.Go("forge/forgetest/giteatest.Serve", func() { defer close(ended); _ = cmd.Wait() })
	s.process, s.ended = cmd.Process, ended
	s.t.Cleanup(s.end)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		res, err := http.Get(s.URL + "/api/v1/version")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("Gitea does not answer: %v\n%s", err, s.log)
		}
		select {
		case <-ended:
			s.t.Fatalf("Gitea ends at once:\n%s", s.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop kills the process.
func (s *Server) Stop() {
	_ = s.process.Kill()
	<-s.ended
}

// end lets the process stop its git commands first: one that outlives it still writes to the folder that the test
// removes.
func (s *Server) end() {
	_ = s.process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.Stop()
	}
}

// Call sends a request to the server's API with a token, decodes the answer into out if it is not nil, and answers
// with its status. The path begins after /api/v1.
func (s *Server) Call(t testing.TB, token, method, path string, in, out any) int {
	t.Helper()
	status, _ := s.call(t, token, method, path, in, out)
	return status
}

func (s *Server) call(t testing.TB, token, method, path string, in, out any) (status int, said []byte) {
	t.Helper()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/api/v1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s %s: %v in %.300s", method, path, err, data)
		}
	}
	return res.StatusCode, data
}

// must is Call for what has to go well.
func (s *Server) must(t testing.TB, token, method, path string, in, out any) {
	t.Helper()
	if status, said := s.call(t, token, method, path, in, out); status >= 300 {
		t.Fatalf("%s %s: status %d, %.500s", method, path, status, said)
	}
}

// Person is the account of that name, which is created if it does not exist.
func (s *Server) Person(t testing.TB, name string) *Person {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.people[name]; p != nil {
		return p
	}
	p := &Person{Name: name, Password: secret()}
	s.must(t, s.admin, http.MethodPost, "/admin/users", map[string]any{"username": name, "password": p.Password,
		"email": name + "@example.org", "must_change_password": false}, nil)
	p.Token = s.token(t, p, "all")
	s.people[name] = p
	return p
}

// Token is a new token of a person's with some scopes alone; with those of Scopes if none is given.
func (s *Server) Token(t testing.TB, p *Person, scopes ...string) string {
	t.Helper()
	if len(scopes) == 0 {
		scopes = Scopes
	}
	return s.token(t, p, scopes...)
}

func (s *Server) token(t testing.TB, p *Person, scopes ...string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"name": rand.Text(), "scopes": scopes})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v1/users/"+p.Name+"/tokens",
		bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(p.Name, p.Password)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var made struct {
		SHA1 string `json:"sha1"`
	}
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || made.SHA1 == "" {
		t.Fatalf("no token for %s: status %d, %v", p.Name, res.StatusCode, err)
	}
	return made.SHA1
}

// Suspend takes a person's right to sign in.
func (s *Server) Suspend(t testing.TB, p *Person) {
	t.Helper()
	s.must(t, s.admin, http.MethodPatch, "/admin/users/"+p.Name, map[string]any{"login_name": p.Name, "source_id": 0,
		"prohibit_login": true, "active": false}, nil)
}

// A Repository is one on the server.
type Repository struct {
	*Server
	Owner *Person
	Name  string
	work  string // a clone, for what people do by hand
	turn  *sync.Mutex
}

// Repository makes a repository of a person's that holds files on main.
func (s *Server) Repository(t testing.TB, owner *Person, name string, files map[string]string) *Repository {
	t.Helper()
	s.must(t, owner.Token, http.MethodPost, "/user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	r := &Repository{Server: s, Owner: owner, Name: name, work: t.TempDir(), turn: &sync.Mutex{}}
	forgetest.Git(t, r.work, "init", "-q", "-b", "main")
	forgetest.Git(t, r.work, "remote", "add", "origin", r.remote())
	forgetest.Write(t, r.work, files)
	forgetest.Git(t, r.work, "add", "-A")
	forgetest.Git(t, r.work, "commit", "-q", "-m", "Version 1")
	forgetest.Git(t, r.work, "push", "-q", "origin", "main")
	s.eventually(t, "the first push is known", func() bool { // it is taken in behind the push's answer
		var is struct {
			Empty bool `json:"empty"`
		}
		s.must(t, owner.Token, http.MethodGet, r.Path(""), nil, &is)
		return !is.Empty
	})
	return r
}

// eventually waits for what the server does in the background.
func (s *Server) eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s\n%s", what, s.log)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// remote is the address at which git finds the repository as its owner.
func (r *Repository) remote() string {
	u, _ := url.Parse(r.URL)
	u.User = url.UserPassword(r.Owner.Name, r.Owner.Token)
	return u.String() + "/" + r.Owner.Name + "/" + r.Name + ".git"
}

// Path is an address of the API below the repository's.
func (r *Repository) Path(format string, args ...any) string {
	return "/repos/" + r.Owner.Name + "/" + r.Name + fmt.Sprintf(format, args...)
}

// Let gives somebody a permission: "read", "write" or "admin".
func (r *Repository) Let(t testing.TB, p *Person, permission string) {
	t.Helper()
	r.must(t, r.Owner.Token, http.MethodPut, r.Path("/collaborators/%s", p.Name),
		map[string]string{"permission": permission}, nil)
}

// Forbid takes somebody's permission.
func (r *Repository) Forbid(t testing.TB, p *Person) {
	t.Helper()
	r.must(t, r.Owner.Token, http.MethodDelete, r.Path("/collaborators/%s", p.Name), nil, nil)
}

// Project is a project whose documentation is the repository, with its token in a variable.
func (r *Repository) Project(tokenEnv string) api.Project {
	return api.Project{
		ID: "docs", Domain: "docs.example.org", Source: r.URL + "/" + r.Owner.Name + "/" + r.Name + ".git",
		Host: api.HostGitea, HostURL: r.URL, Repository: r.Owner.Name + "/" + r.Name, TokenEnv: tokenEnv,
	}
}

// A Pull is a pull request as the server has it.
type Pull struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Merged bool   `json:"merged"`
	Draft  bool   `json:"draft"`
	Head   struct {
		Label string `json:"label"`
		SHA   string `json:"sha"`
	} `json:"head"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

// Pulls are the pull requests from a branch, newest first; from all if it is empty.
func (r *Repository) Pulls(t testing.TB, branch string) []Pull {
	t.Helper()
	var all, out []Pull
	r.must(t, r.Owner.Token, http.MethodGet, r.Path("/pulls?state=all&limit=50"), nil, &all)
	for _, p := range all {
		if branch == "" || p.Head.Label == branch {
			out = append(out, p)
		}
	}
	return out
}

func (r *Repository) open(t testing.TB, branch string) int {
	t.Helper()
	for _, p := range r.Pulls(t, branch) {
		if p.State == "open" {
			return p.Number
		}
	}
	t.Fatalf("%s has no open pull request", branch)
	return 0
}

// Merge merges a branch's open pull request.
func (r *Repository) Merge(t testing.TB, branch string) {
	t.Helper()
	r.merge(t, branch, "merge", false)
}

// Squash merges it as one commit of its own, and removes the branch.
func (r *Repository) Squash(t testing.TB, branch string) {
	t.Helper()
	r.merge(t, branch, "squash", true)
}

func (r *Repository) merge(t testing.TB, branch, how string, prune bool) {
	t.Helper()
	number := r.open(t, branch)
	// It checks in the background whether there are conflicts, and until then refuses.
	r.eventually(t, branch+" is merged", func() bool {
		status := r.Call(t, r.Owner.Token, http.MethodPost, r.Path("/pulls/%d/merge", number),
			map[string]any{"Do": how, "delete_branch_after_merge": prune}, nil)
		if status >= 300 && status != http.StatusMethodNotAllowed {
			t.Fatalf("merging %s: status %d\n%s", branch, status, r.log)
		}
		return status < 300
	})
}

// Close closes a branch's open pull request.
func (r *Repository) Close(t testing.TB, branch string) {
	t.Helper()
	r.must(t, r.Owner.Token, http.MethodPatch, r.Path("/pulls/%d", r.open(t, branch)),
		map[string]string{"state": "closed"}, nil)
}

// Push adds a commit of the owner's to a branch.
func (r *Repository) Push(t testing.TB, branch, path, content string) {
	t.Helper()
	r.turn.Lock()
	defer r.turn.Unlock()
	forgetest.Git(t, r.work, "fetch", "-q", "origin")
	forgetest.Git(t, r.work, "checkout", "-q", "--detach", "origin/"+branch)
	forgetest.Write(t, r.work, map[string]string{path: content})
	forgetest.Git(t, r.work, "add", "-A")
	forgetest.Git(t, r.work, "commit", "-q", "-m", "by hand")
	forgetest.Git(t, r.work, "push", "-q", "origin", "HEAD:refs/heads/"+branch)
}

// Commits lists a branch's commits, newest first; none if there is no such branch.
func (r *Repository) Commits(t testing.TB, branch string) []string {
	t.Helper()
	r.turn.Lock()
	defer r.turn.Unlock()
	forgetest.Git(t, r.work, "fetch", "-q", "--prune", "origin")
	if forgetest.Git(t, r.work, "for-each-ref", "refs/remotes/origin/"+branch) == "" {
		return nil
	}
	return strings.Fields(forgetest.Git(t, r.work, "log", "--format=%H", "origin/"+branch, "--"))
}

// File is a file on a branch, without the space at its ends.
func (r *Repository) File(t testing.TB, branch, path string) string {
	t.Helper()
	r.turn.Lock()
	defer r.turn.Unlock()
	forgetest.Git(t, r.work, "fetch", "-q", "--prune", "origin")
	return forgetest.Git(t, r.work, "show", "origin/"+branch+":"+path)
}

// Rename gives the repository another name.
func (r *Repository) Rename(t testing.TB, name string) {
	t.Helper()
	r.must(t, r.Owner.Token, http.MethodPatch, r.Path(""), map[string]string{"name": name}, nil)
	r.Name = name
	forgetest.Git(t, r.work, "remote", "set-url", "origin", r.remote())
}

// Host is the repository as the contract of a code host wants it.
func (r *Repository) Host(f forgetest.Forge, p api.Project, narrow func(t *testing.T)) forgetest.Host {
	return forgetest.Host{
		Forge: f, Project: p, Narrow: narrow,
		Requests: func(t *testing.T, branch string) int { return len(r.Pulls(t, branch)) },
		Commits:  func(t *testing.T, branch string) []string { return r.Commits(t, branch) },
		Merge:    func(t *testing.T, branch string) { r.Merge(t, branch) },
		Close:    func(t *testing.T, branch string) { r.Close(t, branch) },
		Push:     func(t *testing.T, branch, path, content string) { r.Push(t, branch, path, content) },
		Rename:   func(t *testing.T) { r.Rename(t, "manual") },
	}
}

// A Comment is one in a pull request's conversation, or on a line.
type Comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	Path string `json:"path"`
	Line int    `json:"position"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// Say writes into a pull request's conversation.
func (r *Repository) Say(t testing.TB, p *Person, number int, body string) Comment {
	t.Helper()
	var c Comment
	r.must(t, p.Token, http.MethodPost, r.Path("/issues/%d/comments", number), map[string]string{"body": body}, &c)
	return c
}

// Unsay deletes a comment of the conversation.
func (r *Repository) Unsay(t testing.TB, id int64) {
	t.Helper()
	r.must(t, r.Owner.Token, http.MethodDelete, r.Path("/issues/comments/%d", id), nil, nil)
}

// A LineComment is one that is to stand on a line of the changes; of the file before them if Old is set.
type LineComment struct {
	Path string `json:"path"`
	Body string `json:"body"`
	Line int    `json:"new_position,omitempty"`
	Old  int    `json:"old_position,omitempty"`
}

// Review hands a review in; or keeps it as a draft, to be handed in with Submit.
func (r *Repository) Review(
	t testing.TB, p *Person, number int, draft bool, body string, comments ...LineComment,
) int64 {
	t.Helper()
	event := "COMMENT"
	if draft {
		event = "PENDING"
	}
	var made struct {
		ID int64 `json:"id"`
	}
	r.must(t, p.Token, http.MethodPost, r.Path("/pulls/%d/reviews", number),
		map[string]any{"event": event, "body": body, "comments": comments}, &made)
	return made.ID
}

// Submit hands a draft in.
func (r *Repository) Submit(t testing.TB, p *Person, number int, review int64, body string) {
	t.Helper()
	r.must(t, p.Token, http.MethodPost, r.Path("/pulls/%d/reviews/%d", number, review),
		map[string]any{"event": "COMMENT", "body": body}, nil)
}

// Said are the comments of a pull request's conversation, oldest first.
func (r *Repository) Said(t testing.TB, number int) []Comment {
	t.Helper()
	var list []Comment
	r.must(t, r.Owner.Token, http.MethodGet, r.Path("/issues/%d/comments", number), nil, &list)
	return list
}

// Hook makes the server tell an address of events.
func (r *Repository) Hook(t testing.TB, address, secret string, events ...string) int64 {
	t.Helper()
	var made struct {
		ID int64 `json:"id"`
	}
	r.must(t, r.Owner.Token, http.MethodPost, r.Path("/hooks"), map[string]any{"type": "gitea", "active": true,
		"events": events, "config": map[string]string{"url": address, "content_type": "json", "secret": secret}}, &made)
	return made.ID
}
