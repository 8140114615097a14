package forge_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

const token = "ghp_TheSecretTokenThatNobodyMaySee"

// serveGit serves a folder of bare repositories over http with git's own backend, to clients that have the token.
// before may answer a request instead.
func serveGit(t testing.TB, root string,
	before func(w http.ResponseWriter, r *http.Request, backend http.Handler) bool) *httptest.Server {
	t.Helper()
	gitPath := forgetest.GitPath(t)
	dir := git(t, root, "--exec-path")
	if _, err := os.Stat(filepath.Join(dir, "git-http-backend")); err != nil {
		t.Skip("git has no http backend here")
	}
	backend := &cgi.Handler{Path: gitPath, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=docent",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack",
		"GIT_CONFIG_VALUE_1=true",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "not "+password, http.StatusUnauthorized)
			return
		}
		if before == nil || !before(w, r, backend) {
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func overHTTP(t *testing.T, bare string,
	before func(http.ResponseWriter, *http.Request, http.Handler) bool) api.Project {
	t.Helper()
	server := serveGit(t, filepath.Dir(bare), before)
	t.Setenv("DOCENT_TEST_TOKEN", token)
	p := project(server.URL + "/" + filepath.Base(bare))
	p.TokenEnv = "DOCENT_TEST_TOKEN"
	p.Host = api.HostGit
	return p
}

func TestPlainRemoteOverHTTPKeepsTheContract(t *testing.T) {
	need.Everything(t, "the contract is kept by the other hosts")
	forgetest.Test(t, func(t *testing.T) forgetest.Host {
		bare := bareSource(t)
		r := open(t, t.TempDir(), overHTTP(t, bare, nil), &forgetest.Pulls{}, forge.Options{})
		return remoteHost(t, r, bare)
	})
}

func remoteHost(t *testing.T, r *rig, bare string) forgetest.Host {
	h := r.host(t)
	h.Requests, h.Close = nil, nil
	h.Commits = func(t *testing.T, branch string) []string { return log(t, bare, branch) }
	h.Push = func(t *testing.T, branch, path, content string) { pushTo(t, bare, branch, path, content) }
	h.Merge = func(t *testing.T, branch string) {
		t.Helper()
		work := t.TempDir()
		git(t, work, "clone", "-q", "file://"+bare, ".")
		git(t, work, "merge", "-q", "-m", "merged by hand", "origin/"+branch)
		git(t, work, "push", "-q", "origin", "HEAD:main")
	}
	t.Cleanup(func() {
		if !t.Skipped() {
			fsck(t, r.repository())
			fsck(t, bare)
		}
	})
	return h
}

func TestWrongTokenIsMisconfiguredAndNeverShown(t *testing.T) {
	bare := bareSource(t)
	p := overHTTP(t, bare, nil)
	const wrong = "ghp_wrongButStillSecret"
	t.Setenv("DOCENT_TEST_TOKEN", wrong)
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	_, err := r.Tip(t.Context(), p, "docent/job_1")
	if !errors.Is(err, forge.ErrMisconfigured) || strings.Contains(err.Error(), wrong) {
		t.Errorf("tip = %v", err)
	}
	p.Source += "-not-there"
	t.Setenv("DOCENT_TEST_TOKEN", token)
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("a repository that is not there: %v", err)
	}
}

func TestNothingOfTheTokenStaysOnDiskOrInErrors(t *testing.T) {
	bare := bareSource(t)
	var broken atomic.Int32
	p := overHTTP(t, bare, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		switch code := int(broken.Load()); code {
		case 0:
			return false
		case 1: // the server says it all back in what should be the protocol
			_, password, _ := r.BasicAuth()
			fmt.Fprintf(w, "%04xERR %s\n", len(password)+9, password)
		default:
			_, password, _ := r.BasicAuth()
			http.Error(w, "\x1b[31mwith "+password+" I answer nothing", code)
		}
		return true
	})
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_1", put("index.md", "# New\n"))
	for _, code := range []int32{1, 403, 404, 429, 500, 503} {
		broken.Store(code)
		_, err := r.Tip(t.Context(), p, "docent/job_2")
		want := forge.ErrTemporary
		if code == 403 || code == 404 {
			want = forge.ErrMisconfigured
		}
		if !errors.Is(err, want) {
			t.Errorf("status %d: %v, want %v", code, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), token) || strings.ContainsRune(err.Error(), '\x1b')) {
			t.Errorf("status %d: the error shows what it must not: %q", code, err)
		}
	}
	for name, text := range contents(t, r.dir) {
		if strings.Contains(text, token) {
			t.Errorf("%s holds the token", name)
		}
	}
}

func TestRedirectToAnotherHostIsRefused(t *testing.T) {
	bare := bareSource(t)
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(true)
	}))
	defer other.Close()
	to := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	p := overHTTP(t, bare, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusFound)
		return true
	})
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("tip = %v", err)
	}
	if leaked.Load() {
		t.Error("the other host was asked")
	}
	// On the same host a renamed repository is followed, with the credentials.
	p = overHTTP(t, bare, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.HasPrefix(r.URL.Path, "/former.git") {
			return false
		}
		http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), "/former.git", "/docs.git", 1), http.StatusMovedPermanently)
		return true
	})
	p.Source = strings.Replace(p.Source, "docs.git", "former.git", 1)
	r = open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_1", put("index.md", "# New\n"))
	if log(t, bare, "docent/job_1") == nil {
		t.Error("the branch did not arrive")
	}
}

func TestPushWhoseAnswerIsLostCounts(t *testing.T) {
	bare := bareSource(t)
	var mode atomic.Value
	mode.Store("")
	p := overHTTP(t, bare, func(w http.ResponseWriter, r *http.Request, backend http.Handler) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			return false
		}
		switch mode.Swap("") {
		case "act, then drop":
			backend.ServeHTTP(httptest.NewRecorder(), r)
		case "drop":
		default:
			return false
		}
		panic(http.ErrAbortHandler)
	})
	pub := &forgetest.Pulls{}
	r := open(t, t.TempDir(), p, pub, forge.Options{})
	first := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	mode.Store("act, then drop")
	one, err := r.Publish(t.Context(), first)
	if err != nil {
		t.Fatalf("the push took effect, its answer was lost: %v", err)
	}
	if got := log(t, bare, "docent/job_1"); got[0] != one.Commit {
		t.Errorf("the branch has %v", got)
	}
	next := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNewer.\n")
	mode.Store("drop")
	if _, err := r.Publish(t.Context(), next); !errors.Is(err, forge.ErrTemporary) {
		t.Errorf("a push that did not arrive: %v, want ErrTemporary", err)
	}
	two, err := r.Publish(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if got := log(t, bare, "docent/job_1"); len(got) < 2 || got[0] != two.Commit || got[1] != one.Commit {
		t.Errorf("the branch has %v", got)
	}
	// The same for a merge of the built-in host.
	p.Host = api.HostBuiltin
	r = open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	r.publish(t, "docent/job_2", put("guide/use.md", "# Use\n\nOther.\n"))
	mode.Store("act, then drop")
	pull, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_2").ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := log(t, bare, "main"); got[0] != pull.MergedAs {
		t.Errorf("main has %v, merged as %s", got, pull.MergedAs)
	}
}

func TestServerThatStallsIsTemporary(t *testing.T) {
	bare := bareSource(t)
	p := overHTTP(t, bare, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	})
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{Timeout: 50 * time.Millisecond})
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrTemporary) {
		t.Errorf("tip = %v, want ErrTemporary", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	if _, err := r.Tip(ctx, p, "docent/job_1"); !errors.Is(err, errStop) || errors.Is(err, forge.ErrTemporary) {
		t.Errorf("tip with a cancelled context = %v", err)
	}
}

func TestSourceThatRefusesAMergeLeavesAllAsItWas(t *testing.T) {
	bare := bareSource(t)
	hook := filepath.Join(bare, "hooks", "pre-receive")
	write(t, bare, map[string]string{"hooks/pre-receive": "#!/bin/sh\nread old new ref\n[ $ref != refs/heads/main ] || { echo protected >&2; exit 1; }\n"})
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	r := open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, forge.Options{})
	before := r.tip(t, "docent/job_1")
	r.publish(t, "docent/job_1", put("index.md", "# New\n"))
	pull, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID)
	if !errors.Is(err, forge.ErrMisconfigured) || !errors.Is(err, api.ErrConflict) ||
		!strings.Contains(err.Error(), "hook declined") {
		t.Errorf("merge = %v", err)
	}
	if pull.State != api.PullOpen || r.pullOf(t, "docent/job_1").State != api.PullOpen {
		t.Error("the pull request is no longer open")
	}
	if tip, changed := r.sync(t); changed || tip.Commit != before.Commit {
		t.Error("the branch moved")
	}
	os.Remove(hook)
	if _, err := r.Merge(t.Context(), pull.ID); err != nil {
		t.Errorf("once the source accepts it: %v", err)
	}
}

func TestMergeTakesInWhatReachedTheSourceFirst(t *testing.T) {
	bare := bareSource(t)
	var once sync.Once
	r := open(t, t.TempDir(), project(bare), &forgetest.Pulls{}, forge.Failing(forge.Options{}, func(step string) error {
		if step == "merge written" {
			once.Do(func() { pushTo(t, bare, "main", "guide/use.md", "# Use\n\nFaster.\n") })
		}
		return nil
	}))
	r.publish(t, "docent/job_1", put("index.md", "# New\n"))
	pull, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID)
	if err != nil {
		t.Fatal(err)
	}
	files := r.files(t, pull.MergedAs)
	if files["index.md"] != "# New\n" || files["guide/use.md"] != "# Use\n\nFaster.\n" ||
		log(t, bare, "main")[0] != pull.MergedAs {
		t.Errorf("merged to %q", files)
	}
}

func TestPacksOfManyFetchesArePutTogether(t *testing.T) {
	need.Everything(t, "it fetches fifty times")
	bare := bareSource(t)
	r := open(t, t.TempDir(), project("file://"+bare), &forgetest.Pulls{}, forge.Options{})
	r.sync(t)
	for i := range 52 {
		pushTo(t, bare, "main", "docs/new.md", fmt.Sprintf("# New %d\n", i))
		r.sync(t)
	}
	forge.Packed(r.Hub, r.project.ID)
	if packs, err := filepath.Glob(filepath.Join(r.repository(), "objects", "pack", "*.pack")); err != nil || len(packs) > 5 {
		t.Errorf("%d packs after 53 fetches, %v", len(packs), err)
	}
	fsck(t, r.repository())
}

func TestHistoryIsFetchedOnlyFromTheFirstSyncOn(t *testing.T) {
	bare := prometheus(t)
	r := open(t, t.TempDir(), project("file://"+bare), &forgetest.Pulls{}, forge.Options{})
	var steps []string
	if _, _, err := r.Sync(t.Context(), r.project, func(text string) { steps = append(steps, text) }); err != nil {
		t.Fatal(err)
	}
	if len(steps) < 2 || !strings.HasPrefix(steps[len(steps)-1], "received ") {
		t.Errorf("progress = %q", steps)
	}
	if n := git(t, r.repository(), "rev-list", "--count", "main"); n != "1" {
		t.Errorf("%s commits fetched at first", n)
	}
	for i := range 3 {
		pushTo(t, bare, "main", "docs/new.md", fmt.Sprintf("# New %d\n", i))
	}
	tip, changed := r.sync(t)
	if packs, err := filepath.Glob(filepath.Join(r.repository(), "objects", "pack", "*.pack")); err != nil ||
		len(packs) > 2 { // each keeps what it brought as it came
		t.Errorf("%d packs after two fetches, %v", len(packs), err)
	}
	if n := git(t, r.repository(), "rev-list", "--count", "main"); n != "4" || !changed ||
		tip.Commit != log(t, bare, "main")[0] {
		t.Errorf("%s commits after three more", n)
	}
	fsck(t, r.repository())
	// History that was rewritten is followed; a pull request that grew on the old one still shows what it is.
	r.publish(t, "docent/job_1", put("docs/new.md", "# Mine\n"))
	work := t.TempDir()
	git(t, work, "clone", "-q", "file://"+bare, ".")
	git(t, work, "reset", "-q", "--hard", "HEAD~2")
	write(t, work, map[string]string{"docs/other.md": "# Other\n"})
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "rewritten")
	git(t, work, "push", "-q", "--force", "origin", "HEAD:main")
	tip, changed = r.sync(t)
	if !changed || tip.Commit != git(t, work, "rev-parse", "HEAD") {
		t.Errorf("tip = %+v", tip)
	}
	git(t, work, "checkout", "-q", "--orphan", "fresh")
	git(t, work, "commit", "-q", "-m", "without any history")
	git(t, work, "push", "-q", "--force", "origin", "HEAD:main")
	tip, _ = r.sync(t)
	if tip.Commit != git(t, work, "rev-parse", "HEAD") || len(r.files(t, tip.Commit)) == 0 {
		t.Errorf("tip = %+v", tip)
	}
	fsck(t, r.repository())
	r.publish(t, "docent/job_2", put("docs/new.md", "# Again\n"))
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_2").ID); err != nil {
		t.Error(err)
	}
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID); !errors.Is(err, forge.ErrMergeConflict) {
		t.Errorf("merging across unrelated histories: %v", err)
	}
}

func TestWithoutGitTheBuiltInPartsDoItAll(t *testing.T) {
	bare := bareSource(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("git"); err == nil {
		t.Skip("git is found all the same")
	}
	for _, kind := range []api.HostKind{api.HostBuiltin, api.HostGit} {
		p := project(bare)
		p.Host = kind
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
		branch := "docent/job_" + string(kind)
		done := r.publish(t, branch, put("index.md", "# By "+string(kind)+"\n"))
		if kind == api.HostGit {
			if got := log(t, bare, branch); got == nil || got[0] != done.Commit {
				t.Errorf("the source has %v", got)
			}
			continue
		}
		pull, err := r.Merge(t.Context(), r.pullOf(t, branch).ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := log(t, bare, "main"); got[0] != pull.MergedAs {
			t.Errorf("the source has %v, merged as %s", got, pull.MergedAs)
		}
		if tip, changed := r.sync(t); changed || tip.Commit != pull.MergedAs {
			t.Errorf("tip = %+v", tip)
		}
	}
	fsck(t, bare)
}

// serveSSH runs git for the holder of the key, as sshd would.
func serveSSH(t *testing.T, client ssh.PublicKey) (addr string, host ssh.PublicKey) {
	t.Helper()
	gitPath := forgetest.GitPath(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	session := func(ch ssh.Channel, requests <-chan *ssh.Request) {
		defer ch.Close()
		for req := range requests {
			if req.Type != "exec" {
				req.Reply(req.Type == "env", nil)
				continue
			}
			var line struct{ Command string }
			ssh.Unmarshal(req.Payload, &line)
			name, path, _ := strings.Cut(line.Command, " ")
			req.Reply(true, nil)
			cmd := exec.Command(gitPath, strings.TrimPrefix(name, "git-"), strings.Trim(path, "'"))
			cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
			in, err := cmd.StdinPipe()
			if err != nil {
				return
			}
			go func() { io.Copy(in, ch); in.Close() }()
			status := struct{ Status uint32 }{}
			if cmd.Run() != nil {
				status.Status = 1
			}
			ch.SendRequest("exit-status", false, ssh.Marshal(status))
			return
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, channels, requests, err := ssh.NewServerConn(conn, config)
				if err != nil {
					conn.Close()
					return
				}
				go ssh.DiscardRequests(requests)
				for c := range channels {
					ch, requests, err := c.Accept()
					if err != nil {
						return
					}
					go session(ch, requests)
				}
			}()
		}
	}()
	return l.Addr().String(), signer.PublicKey()
}

func TestPlainRemoteOverSSH(t *testing.T) {
	bare := bareSource(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	addr, host := serveSSH(t, signer.PublicKey())
	known := filepath.Join(t.TempDir(), "known_hosts")
	h, port, _ := net.SplitHostPort(addr)
	t.Setenv("SSH_KNOWN_HOSTS", known)
	t.Setenv("DOCENT_TEST_KEY", string(pem.EncodeToMemory(block)))
	p := project((&url.URL{Scheme: "ssh", User: url.User("git"), Host: addr, Path: bare}).String())
	p.Host, p.TokenEnv = api.HostGit, "DOCENT_TEST_KEY"

	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	if err := os.WriteFile(known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("a host whose key is not known: %v, want ErrMisconfigured", err)
	}
	line := fmt.Sprintf("[%s]:%s %s", h, port, ssh.MarshalAuthorizedKey(host))
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	one := r.publish(t, "docent/job_1", put("index.md", "# New\n"))
	two := r.publish(t, "docent/job_1", put("index.md", "# Newer\n"))
	if got := log(t, bare, "docent/job_1"); len(got) < 2 || got[0] != two.Commit || got[1] != one.Commit {
		t.Errorf("the branch has %v", got)
	}
	if !strings.Contains(two.Text, "docent/job_1") || !strings.Contains(two.Text, two.Commit[:12]) || two.Link != "" {
		t.Errorf("published = %+v", two)
	}
	fsck(t, bare)

	t.Setenv("DOCENT_TEST_KEY", "no key at all")
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrMisconfigured) ||
		strings.Contains(err.Error(), "no key at all") {
		t.Errorf("a key that is none: %v", err)
	}
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	if block, err = ssh.MarshalPrivateKey(other, ""); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCENT_TEST_KEY", string(pem.EncodeToMemory(block)))
	if _, err := r.Tip(t.Context(), p, "docent/job_1"); !errors.Is(err, forge.ErrMisconfigured) {
		t.Errorf("a key that the host does not know: %v", err)
	}
}

func TestRealDocumentation(t *testing.T) {
	folder := mintlify(t)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
	var steps []string
	tip, _, err := r.Sync(t.Context(), r.project, func(text string) { steps = append(steps, text) })
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, folder)
	if got := r.files(t, tip.Commit); !maps.Equal(got, want) {
		t.Errorf("%d files imported of %d", len(got), len(want))
	}
	if len(steps) == 0 {
		t.Error("no progress was shown")
	}
	// The whole set renamed and merged comes back as it went.
	var changes []forge.Change
	for path, text := range want {
		if now := strings.ReplaceAll(text, "Mintlify", "Docent"); now != text {
			changes, want[path] = append(changes, put(path, now)), now
		}
	}
	r.publish(t, "docent/job_1", changes...)
	d, err := r.Diff(t.Context(), r.pullOf(t, "docent/job_1").ID)
	if err != nil || len(d.Files) != len(changes) {
		t.Errorf("diff of %d files of %d, %v", len(d.Files), len(changes), err)
	}
	if _, err := r.Merge(t.Context(), r.pullOf(t, "docent/job_1").ID); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, folder); !maps.Equal(got, want) {
		t.Error("the folder is not what the merge made of it")
	}
	if _, changed := r.sync(t); changed {
		t.Error("the merge comes back as an edit of the folder")
	}
	fsck(t, r.repository())
}
