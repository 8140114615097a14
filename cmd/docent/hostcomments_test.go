package main

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
	"docent/forge/giteatest"
)

// TestCommentsOnARealGiteaAreCarriedOutOnce lets people comment on a job's pull request while the server is killed again
// and again, and Gitea's webhooks are delivered three times each, with forged ones among them: each instruction of
// somebody who may write becomes one commit and one answer; what a stranger or a reader writes does nothing.
func TestCommentsOnARealGiteaAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	repo := s.Repository(t, s.Person(t, "docent-bot"), "docs", forgetest.Files)
	ann, bob, eve := s.Person(t, "ann"), s.Person(t, "bob"), s.Person(t, "eve")
	repo.Let(t, ann, "write")
	repo.Let(t, bob, "read")

	const secret = "the secret of the webhook"
	setenv(t, "GITEA_DOCS_TOKEN", s.Token(t, repo.Owner))
	setenv(t, "GITEA_DOCS_WEBHOOK", secret)
	data := filepath.Join(t.TempDir(), "data")
	d := &modelledServer{project: newTestProject(t, data, "harbour", "", "--host", "gitea", "--host-url", s.URL,
		"--repository", "docent-bot/docs", "--token-env", "GITEA_DOCS_TOKEN", "--webhook-env", "GITEA_DOCS_WEBHOOK",
		"--review", "lines")}
	d.testServer = newTestServer(t, data, "--log-level", "debug")
	relay := &relay{t: t, to: d.url + "/v1/webhook/harbour/push", secret: secret}
	front := httptest.NewServer(relay)
	t.Cleanup(front.Close)
	t.Cleanup(relay.close)
	repo.Hook(t, front.URL, secret, "push", "issue_comment", "pull_request", "pull_request_comment", "pull_request_review")

	job := d.settled(d.create(`replace "Run it." with "Start it." in guide/setup.md`).ID)
	if job.Status != api.JobCompleted || job.PRLink == nil {
		t.Fatalf("job %+v\n%s", job, d.log)
	}
	branch := "docent/" + string(job.ID)
	number := repo.Pulls(t, branch)[0].Number

	repo.Say(t, eve, number, `@docent replace "Welcome" with "Eve was here" in index.md`)
	repo.Say(t, bob, number, `@docent replace "Welcome" with "Bob was here" in index.md`)
	repo.Say(t, ann, number, "> @docent replace \"Welcome\" with \"Quoted\" in index.md\n\nI would not do that.")
	repo.Say(t, ann, number, `@docent replace "Use it." with "Work with it." in guide/use.md`)
	repo.Review(t, ann, number, false, "One thing:", giteatest.LineComment{Path: "guide/setup.md", Line: 3,
		Body: `replace "Set up" with "Setting up"`})
	repo.Review(t, eve, number, false, "", giteatest.LineComment{Path: "guide/setup.md", Line: 3,
		Body: `replace "Start it." with "Eve was here"`})

	// answers are what Docent wrote, by their marks.
	answers := func() map[string]int {
		t.Helper()
		out := map[string]int{}
		for _, c := range repo.Said(t, number) {
			if i := strings.LastIndex(c.Body, "<!-- docent:"); i >= 0 && c.User.Login == "docent-bot" {
				out[c.Body[i:]]++
			}
		}
		return out
	}
	kills := rand.New(rand.NewPCG(23, 23))
	for range 8 {
		select {
		case <-time.After(time.Duration(50+kills.IntN(1200)) * time.Millisecond): // at any moment of the work
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		d.kill()
		d.start()
	}
	for began := time.Now(); len(answers()) < 2; {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("answers %v\n%s", answers(), d.log)
		}
		relay.again()
		select {
		case <-time.After(200 * time.Millisecond): // polls
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	// Everything that Gitea said is said again; then the job is asked for something more, so that what is on its way
	// arrives before.
	relay.again()
	repo.Say(t, ann, number, `@docent replace "Work with it." with "Enjoy it." in guide/use.md`)
	for began := time.Now(); len(answers()) < 3; {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("answers %v\n%s", answers(), d.log)
		}
		select {
		case <-time.After(200 * time.Millisecond): // polls
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	d.settled(job.ID)
	for mark, n := range answers() {
		if n != 1 {
			t.Errorf("%s stands %d times", mark, n)
		}
	}
	if got := repo.Commits(t, branch); len(answers()) != 3 || len(got) != 5 { // the first version, the job's, three instructions
		t.Errorf("%d answers, %d commits on the branch", len(answers()), len(got))
	}
	for file, want := range map[string]string{"index.md": "# Welcome\n\nThe first page.\n",
		"guide/setup.md": "# Setting up\n\nStart it.\n", "guide/use.md": "# Use\n\nEnjoy it.\n"} {
		if got := repo.File(t, branch, file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if n := len(repo.Pulls(t, "")); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	if relay.delivered() == 0 {
		t.Error("Gitea's webhooks were not delivered")
	}
}

// A relay passes a code host's webhooks on three times each, and a forged one with each of them.
type relay struct {
	t      *testing.T
	to     string
	secret string

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
	mac := hmac.New(sha256.New, []byte(r.secret))
	mac.Write(forged)
	sum := hex.EncodeToString(mac.Sum(nil))
	f := hook{header: h.header.Clone(), body: forged}
	f.header.Set("X-Gitea-Signature", sum)
	f.header.Set("X-Hub-Signature-256", "sha256="+sum)
	r.post(f)
}

// post delivers one; the server may be down.
func (r *relay) post(h hook) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.to, bytes.NewReader(h.body))
	if err != nil {
		return
	}
	for _, name := range []string{"Content-Type", "X-Gitea-Event", "X-Gitea-Event-Type", "X-Gitea-Signature", "X-GitHub-Event",
		"X-Hub-Signature-256", "X-Gitea-Delivery"} {
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
