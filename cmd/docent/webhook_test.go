package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/actors/webhooks"
	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/internal/testing/need"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// allowLoopback is a configuration with which webhooks may be sent to this machine.
func allowLoopback(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(config, []byte("webhook_allow = [\"127.0.0.0/8\"]\nlog_level = \"warn\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// addTestWebhook adds a webhook by command, and gives its id and secret.
func addTestWebhook(t *testing.T, data, config, project, url string, flags ...string) (id, secret string) {
	t.Helper()
	out := docent(t, append([]string{"webhook", "add", url, "--data", data, "--config", config, "--project", project}, flags...)...)
	id, secret, ok := strings.Cut(strings.TrimSpace(out), "\n")
	if !ok || !strings.HasPrefix(id, api.WebhookPrefix) || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("a webhook was added: %q", out)
	}
	return id, secret
}

// A delivered is an event as a receiver got it.
type delivered struct {
	id    string
	key   string // the fact that it tells of, from its payload alone
	taken bool   // the receiver said so, and the answer was on its way
}

// factKey names a fact by what its payload says.
func factKey(kind api.EventKind, subject, detail string, at time.Time) string {
	return fmt.Sprintf("%s %s %s %d", kind, subject, detail, at.UTC().UnixNano())
}

// A hookReceiver gets events, and has faults.
type hookReceiver struct {
	*httptest.Server
	t      *testing.T
	secret string
	faulty *atomic.Bool // nil for one that has no faults
	mu     sync.Mutex
	random *rand.Rand
	got    []delivered
	faults int
}

func newHookReceiver(t *testing.T, faulty *atomic.Bool, seed uint64) *hookReceiver {
	r := &hookReceiver{t: t, faulty: faulty, random: rand.New(rand.NewPCG(seed, 9))}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	fault := 100
	if r.faulty != nil && r.faulty.Load() {
		fault = r.random.IntN(100)
	}
	secret := r.secret
	r.mu.Unlock()
	if fault < 40 {
		r.mu.Lock()
		r.faults++
		r.mu.Unlock()
	}
	switch {
	case fault < 10:
		panic(http.ErrAbortHandler) // it breaks off, and has taken nothing
	case fault < 20:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case fault < 25:
		select { // it stalls
		case <-req.Context().Done():
		case <-time.After(2 * time.Second):
		}
		panic(http.ErrAbortHandler)
	}
	if wh, err := standardwebhooks.NewWebhook(secret); err != nil || wh.Verify(body, req.Header) != nil {
		r.t.Errorf("an event that does not verify: %v %s", req.Header, body)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var p webhooks.Payload
	if err := json.Unmarshal(body, &p); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	d := delivered{id: req.Header.Get("webhook-id"), taken: fault >= 40}
	switch {
	case p.Data.PullRequest != nil && p.Type != api.EventJobEnded:
		d.key = factKey(p.Type, string(p.Data.Job.ID), p.Data.PullRequest.Link, p.Timestamp)
	case p.Data.Job != nil:
		d.key = factKey(p.Type, string(p.Data.Job.ID), p.Data.Job.Instruction+" "+p.Data.Job.Status, p.Timestamp)
	case p.Data.Question != nil:
		d.key = factKey(p.Type, string(p.Data.Question.ThreadID), string(p.Data.Question.ID), p.Timestamp)
	}
	r.mu.Lock()
	r.got = append(r.got, d)
	r.mu.Unlock()
	if !d.taken {
		panic(http.ErrAbortHandler) // it has it, and the answer is lost
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *hookReceiver) all() []delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// met is how many deliveries met a fault.
func (r *hookReceiver) met() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults
}

// A fact is an event that the journal holds.
type fact struct {
	kind api.EventKind
	key  string
}

// journaledFacts reads from the journal what has to be told, in its order. It shares nothing with what makes the events but the
// types of the journal.
func journaledFacts(t *testing.T, data, url string) []fact {
	t.Helper()
	j, err := journal.Open(filepath.Join(data, datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var facts []fact
	add := func(kind api.EventKind, subject, detail string, at time.Time) {
		facts = append(facts, fact{kind, factKey(kind, subject, detail, at)})
	}
	err = j.Log(0, func(string) bool { return true }, func(e journal.Logged) bool {
		kind, name, _ := strings.Cut(e.Stream, "/")
		switch {
		case kind == "job":
			ev, err := job.Decode(e.Event)
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case job.Published:
				if ev.Opened {
					add("pull_request.opened", name, url+ev.Result.Link, ev.At)
				}
			case job.PullChanged:
				if ev.State != api.PullOpen {
					add(api.EventKind("pull_request."+string(ev.State)), name, url+ev.Link, ev.At)
				}
			case job.Finished:
				add("job.ended", name, ev.Ended.Instruction+" completed", ev.At)
			case job.Failed:
				status := " failed"
				if ev.Reason == api.HaltInterrupted {
					status = " cancelled"
				}
				add("job.ended", name, ev.Ended.Instruction+status, ev.At)
			}
		case kind == "thread":
			ev, err := thread.Decode(e.Event)
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case thread.Answered:
				if !ev.Answered {
					add("question.unanswered", name, string(ev.Turn), ev.At)
				}
			case thread.Rated:
				if ev.Feedback.Rating == api.RatedDown {
					add("answer.rated_down", name, string(ev.Turn), ev.Feedback.At)
				}
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// checkDeliveries compares what a receiver got with what the journal holds: all of it was taken at least once, nothing else
// came, first deliveries are in order, and an id stands for one fact.
func checkDeliveries(facts []fact, got []delivered) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	place := map[string]int{}
	for i, f := range facts {
		place[f.key] = i
	}
	taken, first := map[string]bool{}, map[string]bool{}
	idOf, keyOf := map[string]string{}, map[string]string{}
	last := -1
	for _, d := range got {
		at, known := place[d.key]
		if !known {
			wrong("%s was delivered, and the journal does not hold it: %s", d.id, d.key)
			continue
		}
		if other, seen := keyOf[d.id]; seen && other != d.key {
			wrong("the id %s stands for %s and for %s", d.id, other, d.key)
		}
		if other, seen := idOf[d.key]; seen && other != d.id {
			wrong("%s was delivered as %s and as %s", d.key, other, d.id)
		}
		keyOf[d.id], idOf[d.key] = d.key, d.id
		if !first[d.key] {
			if at < last {
				wrong("%s came after a later event", d.key)
			}
			last = max(last, at)
			first[d.key] = true
		}
		taken[d.key] = taken[d.key] || d.taken
	}
	for _, f := range facts {
		if !taken[f.key] {
			wrong("%s was never delivered", f.key)
		}
	}
	return problems
}

// TestTheCheckOfDeliveriesFindsDefects plants in a good run what must not be.
func TestTheCheckOfDeliveriesFindsDefects(t *testing.T) {
	t.Parallel()
	facts := []fact{{"job.ended", "a"}, {"job.ended", "b"}, {"job.ended", "c"}}
	good := []delivered{{"1", "a", false}, {"1", "a", true}, {"2", "b", true}, {"1", "a", true}, {"2", "b", false}, {"3", "c", true}}
	if problems := checkDeliveries(facts, good); len(problems) > 0 {
		t.Errorf("in a good run: %q", problems)
	}
	for defect, c := range map[string]struct {
		got  []delivered
		says string
	}{
		"one is lost":               {good[:5], "never delivered"},
		"one is never taken":        {append(slices.Clone(good[:5]), delivered{"3", "c", false}), "never delivered"},
		"one is invented":           {append(slices.Clone(good), delivered{"4", "d", true}), "does not hold it"},
		"they change places":        {[]delivered{good[1], good[5], good[2]}, "after a later event"},
		"one has two ids":           {append(slices.Clone(good), delivered{"9", "a", true}), "as 1 and as 9"},
		"an id stands for two":      {append(slices.Clone(good), delivered{"1", "c", true}), "stands for"},
		"a first failure is passed": {[]delivered{good[0], good[2], good[5]}, "never delivered"},
	} {
		if problems := strings.Join(checkDeliveries(facts, c.got), "\n"); !strings.Contains(problems, c.says) {
			t.Errorf("%s: found is %q, want %q", defect, problems, c.says)
		}
	}
}

// A hookUser does what events come of, over all lives of the server. What it is told is of no interest: the journal says what
// happened.
type hookUser struct {
	t      *testing.T
	server *testServer
	p      testProject
	random *rand.Rand
	number int
}

func (u *hookUser) work(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		switch u.random.IntN(3) {
		case 0:
			u.makeJob(ctx, n)
		case 1:
			u.ask(ctx, "Which planets have rings of ice and dust?")
		case 2:
			u.ask(ctx, "When does the ferry to the island leave?")
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(u.random.IntN(300)) * time.Millisecond): // how often is random
		}
	}
}

func (u *hookUser) post(ctx context.Context, key, path string, body, out any) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cl := &client.Client{Base: u.server.url, Key: key, HTTP: http.DefaultClient}
	return cl.Post(ctx, path, body, out) == nil
}

func (u *hookUser) makeJob(ctx context.Context, n int) {
	prompt := fmt.Sprintf(`create page made/u%d-%d.md titled "Page" with content: "made by job"`, u.number, n)
	if u.random.IntN(4) == 0 {
		prompt = "sing a song"
	}
	var j api.Job
	jobs := "/v2/agent/" + u.p.id + "/job"
	if !u.post(ctx, u.p.admin, jobs, map[string]string{"prompt": prompt, "model": "builtin"}, &j) {
		return
	}
	switch u.random.IntN(4) {
	case 0:
		u.post(ctx, u.p.admin, jobs+"/"+string(j.ID)+"/message",
			map[string]string{"prompt": fmt.Sprintf(`append "more" to made/u%d-%d.md`, u.number, n)}, nil)
	case 1:
		u.post(ctx, u.p.admin, jobs+"/"+string(j.ID)+"/cancel", nil, nil)
	}
}

func (u *hookUser) ask(ctx context.Context, question string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cl := &client.Client{Base: u.server.url, Key: u.p.assistant, HTTP: http.DefaultClient}
	a, err := cl.Ask(ctx, client.Question{Domain: u.p.domain, Caller: "ann", Text: question}, io.Discard)
	if err != nil || a.MessageID == "" {
		return
	}
	if u.random.IntN(2) == 0 {
		rating := []string{"up", "down", "down"}[u.random.IntN(3)]
		u.post(ctx, u.p.assistant, "/discovery/v1/feedback/"+u.p.domain,
			map[string]string{"threadId": a.ThreadID, "messageId": a.MessageID, "rating": rating, "comment": "because"}, nil)
	}
}

// settlePulls merges and closes pull requests by command.
func settlePulls(ctx context.Context, t *testing.T, data string, p testProject, random *rand.Rand) {
	for ctx.Err() == nil {
		out, err := tryDocent(t, "pull", "list", "--data", data, "--project", p.id, "--state", "open", "--json")
		for line := range strings.Lines(out) {
			var pull api.PullRequest
			if err == nil && json.Unmarshal([]byte(line), &pull) == nil && random.IntN(3) > 0 {
				// What a kill cuts off fails here, and is told later or done again.
				_, _ = tryDocent(t, "pull", []string{"merge", "close"}[random.IntN(2)], pull.ID, "--data", data)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // a person takes a moment
		}
	}
}

// TestWebhooksSurviveKills kills the real server at random moments while jobs run, pull requests are merged and closed, questions
// go unanswered and answers are rated, and while receivers fail, stall and break off. A person is impatient and has things sent again.
// In the end each receiver that is there has got all that the journal holds, and nothing else, in order.
func TestWebhooksSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the server many times; left out with -short")
	}
	t.Parallel()
	o := tortureFromEnvironment(t)
	t.Logf("seed %d: set DOCENT_TEST_SEED to run these moments again", o.seed)
	random := rand.New(rand.NewPCG(o.seed, 21))
	data, config := filepath.Join(t.TempDir(), "data"), allowLoopback(t)
	p := newTestProject(t, data, "harbour", writeFiles(t, map[string]string{
		"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers and a lighthouse.\n",
		"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n",
	}), "--limit-key-month", plentiful, "--limit-org-hour", plentiful, "--limit-ip-day", plentiful, "--limit-project-hour", plentiful)
	holdJournal(t, data)
	server := newTestServer(t, data, "--config", config)

	faulty := new(atomic.Bool)
	steady, moody, choosy := newHookReceiver(t, nil, o.seed), newHookReceiver(t, faulty, o.seed), newHookReceiver(t, faulty, o.seed+1)
	dead := newHookReceiver(t, nil, o.seed)
	dead.Close()
	ids := map[*hookReceiver]string{}
	chosen := []api.EventKind{api.EventPullOpened, api.EventPullMerged, api.EventPullClosed, api.EventAnswerRatedDown}
	for _, r := range []*hookReceiver{steady, moody, choosy, dead} {
		var flags []string
		if r == choosy {
			for _, k := range chosen {
				flags = append(flags, "--event", string(k))
			}
		}
		ids[r], r.secret = addTestWebhook(t, data, config, p.id, r.URL, flags...)
	}

	faulty.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var users sync.WaitGroup
	for n := range 4 {
		u := &hookUser{t: t, server: server, p: p, random: rand.New(rand.NewPCG(o.seed, 300+uint64(n))), number: n}
		users.Go(func() { u.work(ctx) })
	}
	merges, patience := rand.New(rand.NewPCG(o.seed, 400)), rand.New(rand.NewPCG(o.seed, 500))
	users.Go(func() { settlePulls(ctx, t, data, p, merges) })
	users.Go(func() {
		for ctx.Err() == nil {
			for _, r := range []*hookReceiver{moody, choosy} {
				args := []string{"webhook", "resume", ids[r], "--data", data, "--config", config}
				if patience.IntN(4) == 0 {
					args = []string{"webhook", "replay", ids[r], "--since", "5s", "--data", data, "--config", config}
				}
				_, _ = tryDocent(t, args...) // a kill may cut it off
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond): // so impatient
			}
		}
	})
	for range o.kills {
		time.Sleep(o.gap/4 + time.Duration(random.Int64N(int64(o.gap)))) // the moment is random
		server.kill()
		server.start()
	}
	// On a machine that stands still little may have happened before the kills were over.
	until(t, "something of each kind has happened, and a delivery met a fault", func() bool {
		came := map[string]bool{}
		for _, d := range steady.all() {
			kind, _, _ := strings.Cut(d.key, " ")
			came[kind] = true
		}
		return !slices.ContainsFunc(api.EventKinds, func(k api.EventKind) bool { return !came[string(k)] }) && moody.met() > 0
	})
	leave()
	users.Wait()
	faulty.Store(false)
	moodyFaults := moody.met()

	awaitIdle(t, server, p)
	awaitDelivered(t, data, config, ids[steady], ids[moody], ids[choosy])
	server.stop()
	facts := journaledFacts(t, data, server.url)
	kinds := map[api.EventKind]int{}
	for _, f := range facts {
		kinds[f.kind]++
	}
	for _, k := range api.EventKinds {
		if kinds[k] == 0 {
			t.Errorf("no %s happened: the test does not show what it should", k)
		}
	}
	if moodyFaults == 0 {
		t.Error("no delivery met a fault")
	}
	for name, c := range map[string]struct {
		r     *hookReceiver
		facts []fact
	}{
		"steady": {steady, facts}, "moody": {moody, facts},
		"choosy": {choosy, slices.DeleteFunc(slices.Clone(facts), func(f fact) bool { return !slices.Contains(chosen, f.kind) })},
	} {
		problems := checkDeliveries(c.facts, c.r.all())
		for _, p := range problems[:min(len(problems), 10)] {
			t.Errorf("%s: %s", name, p)
		}
	}
	t.Logf("%d events, %v; %d, %d and %d deliveries; %d faults", len(facts), kinds, len(steady.all()), len(moody.all()), len(choosy.all()), moodyFaults)
}

// holdJournal has a journal keep all events, though snapshots cover them: somebody follows it who never comes.
func holdJournal(t *testing.T, data string) {
	t.Helper()
	j, err := journal.Open(filepath.Join(data, datadir.Journal), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := j.Follow("kill-test")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// awaitIdle waits until no job is active.
func awaitIdle(t *testing.T, server *testServer, p testProject) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out := docent(t, "job", "list", "--url", server.url, "--project", p.id, "--key", p.admin, "--limit", "0", "--json")
		if !strings.Contains(out, `"status":"active"`) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("jobs do not end:\n%s", out)
		}
	}
}

// awaitDelivered waits until nothing has come to some webhooks for ten looks, and nothing waits. Each look is answered by the
// server: while it stands still, none counts.
func awaitDelivered(t *testing.T, data, config string, ids ...string) {
	t.Helper()
	var last string
	calm := 0
	for until := time.Now().Add(3 * time.Minute); calm < 10; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("webhooks do not come to rest: %s", last)
		}
		calm++
		var now strings.Builder
		for line := range strings.Lines(docent(t, "webhook", "list", "--data", data, "--json")) {
			var w api.WebhookStatus
			if err := json.Unmarshal([]byte(line), &w); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(ids, w.ID) {
				fmt.Fprintln(&now, w.ID, w.State.Position, w.State.Error)
				if w.State.Error != "" {
					docent(t, "webhook", "resume", w.ID, "--data", data, "--config", config)
					calm = 0
				}
			}
		}
		if now.String() != last {
			last, calm = now.String(), 0
		}
	}
}

// TestDocumentedReceiversVerifyDeliveries runs the receivers that the documentation prints, and sends them a test: they take it,
// and refuse one that is signed with another secret.
func TestDocumentedReceiversVerifyDeliveries(t *testing.T) {
	t.Parallel()
	data, config := filepath.Join(t.TempDir(), "data"), allowLoopback(t)
	p := newTestProject(t, data, "tea", writeFiles(t, map[string]string{"index.md": "# Tea\n\nGreen.\n"}))
	fences := readFences(t, "docs/api/outgoing-webhooks.mdx")
	snippet := func(language string) string {
		i := slices.IndexFunc(fences, func(f fence) bool { return f.language == language })
		if i < 0 {
			t.Fatalf("the page has no block of %s", language)
		}
		return fences[i].text
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	receivers := map[string][]string{}
	binary := filepath.Join(dir, "receiver")
	virtual, err := filepath.Abs("documented_receiver/main.go") // is nowhere but in the overlay
	if err != nil {
		t.Fatal(err)
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{virtual: write("main.go", snippet("go"))}})
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", write("overlay.json", string(overlay)), "-o", binary,
		"./documented_receiver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	receivers["Go"] = []string{binary}
	if node, err := exec.LookPath("node"); err == nil {
		receivers["Node"] = []string{node, write("receiver.mjs", snippet("js"))}
	} else if need.All {
		t.Fatal("node is not there, which CI has")
	} else {
		t.Log("the receiver in JavaScript is left out: there is no node")
	}
	for name, command := range receivers {
		listen, err := ownAddress()
		if err != nil {
			t.Fatal(err)
		}
		id, secret := addTestWebhook(t, data, config, p.id, "http://"+listen+"/docs")
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		out := new(lockedBuffer)
		cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret, "LISTEN="+listen)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			resp, err := http.Get("http://" + listen + "/docs")
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: a request without a signature: %d", name, resp.StatusCode)
				}
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s does not listen: %v\n%s", name, err, out.String())
			}
		}
		test := []string{"webhook", "test", id, "--data", data, "--config", config}
		if said := docent(t, test...); !strings.Contains(said, "was taken: 204") {
			t.Errorf("%s: %s\n%s", name, said, out.String())
		}
		until(t, name+" shows the event", func() bool { return strings.Contains(out.String(), `"webhook.test"`) })
		docent(t, "webhook", "rotate", id, "--data", data, "--config", config)
		if said := docent(t, test...); !strings.Contains(said, "was taken") {
			t.Errorf("%s, during a rotation: %s", name, said)
		}
		docent(t, "webhook", "rotate", id, "--overlap", "0s", "--data", data, "--config", config)
		if said, err := tryDocent(t, test...); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s takes what another secret signs: %s, %v", name, said, err)
		}
	}
}

// TestWebhooksByCommand has a webhook added, looked at, paused, tested, sent again and removed by command, beside a server.
func TestWebhooksByCommand(t *testing.T) {
	t.Parallel()
	data, config := filepath.Join(t.TempDir(), "data"), allowLoopback(t)
	p := newTestProject(t, data, "tea", writeFiles(t, map[string]string{"index.md": "# Tea\n\nGreen.\n"}))
	server := newTestServer(t, data, "--config", config)
	r := newHookReceiver(t, nil, 1)
	var id string
	id, r.secret = addTestWebhook(t, data, config, p.id, r.URL+"/with-a-token", "--event", "job.ended")
	run := func(args ...string) string {
		t.Helper()
		return docent(t, append(append([]string{"webhook"}, args...), "--data", data)...)
	}
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d events came\n%s\n%s", what, len(r.all()), run("list"), server.log.String())
			}
		}
	}
	job := func() {
		t.Helper()
		docent(t, "job", "create", fmt.Sprintf("create page p%d.md titled \"P\" with content: \"x\"", len(r.all())), "--wait", "--url", server.url, "--project", p.id, "--key", p.admin)
	}
	job()
	until("the first event", func() bool { return len(r.all()) == 1 })
	run("pause", id)
	job()
	if out := run("list", "--project", p.id); !strings.Contains(out, "off") || !strings.Contains(out, "it was paused") || !strings.Contains(out, "job.ended") {
		t.Errorf("listed is\n%s", out)
	}
	run("resume", id)
	until("the second event", func() bool { return len(r.all()) == 2 })
	until("its delivery", func() bool { return strings.Count(run("deliveries", id), "delivered") == 2 })
	if out := run("replay", id, "--event", r.all()[0].id); !strings.Contains(out, "was taken: 204") {
		t.Errorf("sent again: %s", out)
	}
	if out := run("replay", id, "--since", "1h"); !strings.Contains(out, "2 events") {
		t.Errorf("all again: %s", out)
	}
	until("all again", func() bool { return len(r.all()) == 5 })
	for _, wrong := range [][]string{{"replay", id}, {"replay", id, "--since", "soon"}, {"replay", "whk_none", "--since", "1h"},
		{"replay", id, "--event", "evt_none"}, {"test", "whk_none"}, {"add", "http://192.168.0.1/", "--project", p.id},
		{"add", r.URL, "--project", p.id, "--event", "job.begun"}, {"rotate", id, "--overlap", "soon"}} {
		if out, err := tryDocent(t, append(append([]string{"webhook"}, wrong...), "--data", data, "--config", config)...); err == nil {
			t.Errorf("%v: %s", wrong, out)
		}
	}
	audit := docent(t, "audit", "--data", data)
	for _, action := range []string{operator.OpWebhookAdd, operator.OpWebhookPause, "webhook.resume", operator.OpWebhookReplay} {
		if !strings.Contains(audit, action) {
			t.Errorf("the audit log lacks %s:\n%s", action, audit)
		}
	}
	run("remove", id)
	if out := run("list", "--json"); strings.TrimSpace(out) != "" {
		t.Errorf("after its removal: %s", out)
	}
	if text := server.log.String() + audit; strings.Contains(text, r.secret) || strings.Contains(text, "with-a-token") {
		t.Error("the secret or the whole address is in the log")
	}
	if list := holders(t, data, r.secret); len(list) > 0 {
		t.Errorf("after its removal the secret is in %q", list)
	}
	server.stop()
	if _, err := os.Stat(filepath.Join(data, "secrets")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if bytes.Contains([]byte(server.log.String()), []byte("level=ERROR")) {
		t.Errorf("the server says\n%s", server.log.String())
	}
}
