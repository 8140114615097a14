package hosts

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/forge/forgetest"
	"docent/forge/forgetest/giteatest"
	"docent/tests/harness"
)

const hookSecret = "the secret of the webhook"

// A commentedHost is a code host on which people say something about a job's pull request: ann may write, bob may read,
// and eve is a stranger.
type commentedHost struct {
	say     func(author, body string)
	line    func(author, body string) // on the third line of guide/setup.md
	answers func() map[string]int     // how often each mark of Docent's stands there
	tell    func()                    // delivers all webhooks once more
	commits func() int
	file    func(path string) string
	pulls   func() int
}

// carriedOutOnce lets people comment on a job's pull request while the server is killed again and again: each
// instruction of somebody who may write becomes one commit and one answer; what a stranger or a reader writes does
// nothing.
func carriedOutOnce(t *testing.T, d *harness.ModelledServer, job api.Job, h commentedHost) {
	t.Helper()
	h.say("eve", `@docent replace "Welcome" with "Eve was here" in index.md`)
	h.say("bob", `@docent replace "Welcome" with "Bob was here" in index.md`)
	h.say("ann", "> @docent replace \"Welcome\" with \"Quoted\" in index.md\n\nI would not do that.")
	h.say("ann", `@docent replace "Use it." with "Work with it." in guide/use.md`)
	h.line("ann", `replace "Set up" with "Setting up"`)
	h.line("eve", `replace "Start it." with "Eve was here"`)

	kills := rand.New(rand.NewPCG(23, 23))
	for range 8 {
		h.tell()
		select {
		case <-time.After(time.Duration(50+kills.IntN(1200)) * time.Millisecond): // at any moment of the work
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		d.Kill()
		d.Start()
	}
	answered := func(want int) {
		t.Helper()
		for began := time.Now(); len(h.answers()) < want; {
			if time.Since(began) > 3*time.Minute {
				t.Fatalf("answers %v, want %d\n%s", h.answers(), want, d.Log)
			}
			h.tell()
			select {
			case <-time.After(200 * time.Millisecond): // polls
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			}
		}
	}
	answered(2)
	// Something more is asked for, so that whatever else was on its way has arrived when that is done.
	h.say("ann", `@docent replace "Work with it." with "Enjoy it." in guide/use.md`)
	answered(3)
	d.Settled(job.ID)
	for mark, n := range h.answers() {
		if n != 1 {
			t.Errorf("%s stands %d times", mark, n)
		}
	}
	if n := h.commits(); len(h.answers()) != 3 || n != 5 { // the first version, the job's, and three instructions
		t.Errorf("%d answers, %d commits on the branch", len(h.answers()), n)
	}
	for file, want := range map[string]string{"index.md": "# Welcome\n\nThe first page.",
		"guide/setup.md": "# Setting up\n\nStart it.", "guide/use.md": "# Use\n\nEnjoy it."} {
		if got := h.file(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if n := h.pulls(); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// markOf is the mark that a comment ends with; false if it has none.
func markOf(body string) (string, bool) {
	i := strings.LastIndex(body, "<!-- docent:")
	return body[max(i, 0):], i >= 0
}

// commentedServer is a server whose project is on a code host, with a job that has opened a pull request there.
func commentedServer(t *testing.T, kind, url, repository, token string) (*harness.ModelledServer, api.Job) {
	t.Helper()
	harness.Setenv(t, "HOST_DOCS_TOKEN", token)
	harness.Setenv(t, "HOST_DOCS_WEBHOOK", hookSecret)
	data := filepath.Join(t.TempDir(), "data")
	d := &harness.ModelledServer{Project: harness.NewProject(t, data, "harbour", "", "--host", kind, "--host-url", url,
		"--repository",
		repository, "--token-env", "HOST_DOCS_TOKEN", "--webhook-env", "HOST_DOCS_WEBHOOK", "--review", "lines")}
	d.Server = harness.NewServer(t, data, "--log-level", "debug")
	job := d.Settled(d.Create(`replace "Run it." with "Start it." in guide/setup.md`).ID)
	if job.Status != api.JobCompleted || job.PRLink == nil {
		t.Fatalf("job %+v\n%s", job, d.Log)
	}
	return d, job
}

// Gitea's own webhooks are delivered three times each, with forged ones among them.
func TestCommentsOnARealGiteaAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	repo := s.Repository(t, s.Person(t, "docent-bot"), "docs", forgetest.Files)
	repo.Let(t, s.Person(t, "ann"), "write")
	repo.Let(t, s.Person(t, "bob"), "read")
	d, job := commentedServer(t, "gitea", s.URL, "docent-bot/docs", s.Token(t, repo.Owner))
	relay := &relay{t: t, to: d.URL + "/v1/webhook/harbour/push"}
	front := httptest.NewServer(relay)
	t.Cleanup(front.Close)
	t.Cleanup(relay.close)
	repo.Hook(t, front.URL, hookSecret, "push", "issue_comment", "pull_request", "pull_request_comment",
		"pull_request_review")

	branch := "docent/" + string(job.ID)
	number := repo.Pulls(t, branch)[0].Number
	carriedOutOnce(t, d, job, commentedHost{
		say: func(author, body string) { repo.Say(t, s.Person(t, author), number, body) },
		line: func(author, body string) {
			repo.Review(t, s.Person(t, author), number, false, "", giteatest.LineComment{Path: "guide/setup.md", Line: 3,
				Body: body})
		},
		answers: func() map[string]int {
			out := map[string]int{}
			for _, c := range repo.Said(t, number) {
				if mark, ok := markOf(c.Body); ok && c.User.Login == "docent-bot" {
					out[mark]++
				}
			}
			return out
		},
		tell:    relay.again,
		commits: func() int { return len(repo.Commits(t, branch)) },
		file:    func(path string) string { return repo.File(t, branch, path) },
		pulls:   func() int { return len(repo.Pulls(t, "")) },
	})
	if relay.delivered() == 0 {
		t.Error("Gitea's webhooks were not delivered")
	}
}

// The stand-ins of the other hosts lose answers, fail and ask for fewer requests, each time in some requests of ten.
func TestCommentsOnOtherCodeHostsAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	hooks := map[api.HostKind]hook{
		api.HostGitHub: {header: http.Header{"X-Github-Event": {"issue_comment"}},
			body: []byte(`{"action":"created","issue":{"number":1,"pull_request":{}},"repository":{"full_name":"acme/docs"}}`)},
		api.HostGitLab: {header: http.Header{"X-Gitlab-Event": {"Note Hook"}, "X-Gitlab-Token": {hookSecret}},
			body: []byte(`{"object_kind":"note","merge_request":{"iid":1},"object_attributes":{"id":9,"noteable_type":"MergeRequest"},"project":{"path_with_namespace":"acme/docs"}}`)},
	}
	for kind, told := range hooks {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			host := forgetest.NewStandIn(t)
			host.Do(func() {
				host.Tokens = []string{"hst_any"}
				host.People = map[string]string{"ann": "write", "bob": "read"}
			})
			d, job := commentedServer(t, string(kind), host.URL, "acme/docs", "hst_any")
			relay := &relay{t: t, to: d.URL + "/v1/webhook/harbour/push"}
			faults := rand.New(rand.NewPCG(5, 5))
			host.Do(func() { host.Fault = func(r *http.Request) forgetest.Fault { return troubled(faults, r) } })
			branch := "docent/" + string(job.ID)
			carriedOutOnce(t, d, job, commentedHost{
				say: func(author, body string) { host.Say(1, author, body) },
				line: func(author, body string) {
					host.SayOn(forgetest.StandInComment{Pull: 1, Author: author, Path: "guide/setup.md", Line: 3, Body: body,
						Hunk: "@@ -1,3 +1,3 @@\n # Set up\n \n-Run it.\n+Start it."})
				},
				answers: func() map[string]int {
					out := map[string]int{}
					for _, c := range host.Replies(1) {
						if mark, ok := markOf(c.Body); ok {
							out[mark]++
						}
					}
					return out
				},
				tell: func() {
					h := hook{header: told.header.Clone(), body: told.body}
					if kind == api.HostGitHub {
						h.sign()
					}
					for range 3 {
						relay.post(h)
					}
				},
				commits: func() int { return len(host.Commits(t, branch)) },
				file:    func(path string) string { return host.Git(t, "show", branch+":"+path) },
				pulls:   func() int { return len(host.Pulls("")) },
			})
			if relay.delivered() == 0 {
				t.Error("no webhook was taken")
			}
		})
	}
}

// troubled is what goes wrong with a request for comments, or with an answer to one.
func troubled(r *rand.Rand, req *http.Request) forgetest.Fault {
	said := strings.Contains(req.URL.Path, "/comments") || strings.Contains(req.URL.Path, "/discussions") ||
		strings.Contains(req.URL.Path, "/notes")
	if !said {
		return forgetest.Fault{}
	}
	switch n := faultNumber(r); {
	case n == 0 && req.Method == http.MethodPost:
		return forgetest.Fault{Act: true, Drop: true}
	case n == 1 && req.Method == http.MethodPost:
		return forgetest.Fault{Act: true, Status: http.StatusBadGateway, Body: "bad gateway"}
	case n == 2:
		return forgetest.Fault{Drop: true}
	case n == 3:
		return forgetest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}},
			Body: `{"message":"slow down"}`}
	}
	return forgetest.Fault{}
}

var faultTurn sync.Mutex

// faultNumber is one of ten; requests come at the same time.
func faultNumber(r *rand.Rand) int {
	faultTurn.Lock()
	defer faultTurn.Unlock()
	return r.IntN(10)
}

// A relay passes a code host's webhooks on three times each, and a forged one with each of them.
type relay struct {
	t  *testing.T
	to string

	mu   sync.Mutex
	got  []hook
	took int // deliveries that the server took
	done bool
	work sync.WaitGroup
}

type hook struct {
	header http.Header
	body   []byte
}

func (r *relay) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err != nil {
		return
	}
	r.mu.Lock()
	r.got = append(r.got, hook{header: req.Header.Clone(), body: body})
	closed := r.done
	r.mu.Unlock()
	if closed {
		return
	}
	r.work.Go(func() { r.deliver(hook{header: req.Header.Clone(), body: body}) })
}

func (r *relay) deliver(h hook) {
	for range 3 {
		r.post(h)
	}
	// Signed as the host would, it tells of a comment that nobody wrote.
	var said map[string]any
	if json.Unmarshal(h.body, &said) != nil {
		return
	}
	said["comment"] = map[string]any{"id": 1, "body": `@docent replace "Welcome" with "Forged" in index.md`,
		"user": map[string]any{"id": 1, "login": "docent-bot"}}
	forged, err := json.Marshal(said)
	if err != nil {
		return
	}
	f := hook{header: h.header.Clone(), body: forged}
	f.sign()
	r.post(f)
}

// sign signs a delivery as its host does.
func (h hook) sign() {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(h.body)
	sum := hex.EncodeToString(mac.Sum(nil))
	if h.header.Get("X-Gitea-Signature") != "" {
		h.header.Set("X-Gitea-Signature", sum)
	}
	h.header.Set("X-Hub-Signature-256", "sha256="+sum)
}

// post delivers one; the server may be down.
func (r *relay) post(h hook) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.to, bytes.NewReader(h.body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	for _, name := range []string{"X-Gitea-Event", "X-Gitea-Event-Type", "X-Gitea-Signature", "X-GitHub-Event",
		"X-Hub-Signature-256", "X-Gitea-Delivery", "X-Gitlab-Event", "X-Gitlab-Token"} {
		if v := h.header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	res.Body.Close()
	if res.StatusCode < 300 {
		r.mu.Lock()
		r.took++
		r.mu.Unlock()
	}
}

// again delivers everything once more.
func (r *relay) again() {
	r.mu.Lock()
	all := r.got
	r.mu.Unlock()
	for _, h := range all {
		r.post(h)
	}
}

func (r *relay) delivered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.took
}

func (r *relay) close() {
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	r.work.Wait()
}
