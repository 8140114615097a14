package web_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/model"
	"docent/model/modeltest"
	"docent/model/registry"
	"docent/model/remote"
	"docent/persistence/catalog"
	"docent/persistence/cluster"
	"docent/persistence/journal"
	"docent/search"
	"docent/web"
	"docent/web/console"
	"docent/web/insights"
)

const playgroundPath = "/console/org-a/docs.acme.example/playground"

// nobody answers: most tests ask nothing. See withReaders.
type nobody struct {
	console.Readers
	console.Tries
	insights.Finder
	insights.Models
}

func (nobody) TrialWeights() []search.TrialWeight { return nil }
func (nobody) Name(string) string                 { return model.Builtin }
func (nobody) Read(context.Context, api.ThreadID, thread.Read) (thread.Conversation, error) {
	return thread.Conversation{}, api.ErrNotFound
}

// A readers is what the playground asks and searches: real threads over a real journal, a real library, the built-in
// model, and one that writes when the test lets it.
type readers struct {
	*actors.Threads
	documents
	models *registry.Registry

	mu    sync.Mutex
	ids   api.IDs
	asked []thread.Ask
	fail  error         // of Put
	goOn  chan struct{} // the model "slow" goes on when something is sent; it has one word more each time
}

// documents are the library, which indexes nothing by itself.
type documents struct{ *search.Library }

func (documents) Indexed(context.Context, api.ProjectID) error { return nil }
func (documents) Around(context.Context, api.ProjectID, search.Place, []string) ([]search.Hit, error) {
	return nil, nil
}

// stub stands for what jobs need and no test here uses.
type stub struct {
	job.Editor
	job.Forge
}

const endpointSecret = "sk-endpoint-secret-0123456789"

var acmePages = map[string]string{
	"backups.md": "---\ntitle: Backups\n---\n\nA backup is a copy of the data directory.\n\n## Make a backup\n\n" +
		"Run `acme backup` to make a backup of the server. It is safe while the server runs.\n",
	"restore.md": "---\ntitle: Restore\n---\n\nTo restore, see [backups](backups.md). Stop the server first.\n",
	"staff.md":   "---\ntitle: Staff\ngroups: [\"staff\"]\n---\n\nThe backup password lies in the safe.\n",
	"evil.md": "---\ntitle: \"<script>alert(1)</script>\"\n---\n\n## <img src=x onerror=alert(2)>\n\n" +
		"A zebra says </code></pre><script>alert(3)</script> and [click](javascript:alert(4)).\n",
}

// withReaders gives the pages what the playground needs.
func withReaders(t testing.TB, r *readers) func(*web.Deps) {
	return func(d *web.Deps) {
		t.Helper()
		quiet := slog.New(slog.DiscardHandler)
		library, err := search.Open(t.TempDir(), search.Options{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { library.Close() })
		if _, err := library.Update(t.Context(), api.Project{ID: "acme"}, acmeTree(acmePages), nil); err != nil {
			t.Fatal(err)
		}
		r.documents, r.goOn = documents{library}, make(chan struct{})
		r.models, err = registry.New(registry.Config{Models: []registry.Named{
			{Name: "slow", Provider: model.Scripted},
			{Name: "gpt", Provider: model.OpenAI, Remote: remote.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "gpt-x",
				Key: modeltest.Key(endpointSecret), Attempts: 1}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(filepath.Join(t.TempDir(), "journal"), journal.Options{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		system, err := actors.Start(t.Context(), actors.Deps{Journal: j, Projects: d.Catalog.(*catalog.Catalog),
			Editor: stub{}, Forge: stub{}, Searcher: r.documents, Model: gated{r.models, r}, Place: cluster.Single{}, Log: quiet, RunningJobs: 1,
			OpenJobs: 1, RunningTurns: 8, Idle: time.Minute, RunLimit: time.Minute, TurnLimit: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			system.Stop(ctx)
			j.Close()
		})
		r.Threads = system.Threads()
		d.Readers, d.Tries, d.Finder, d.Models, d.Threads = r, r, r.documents, r.models, r.Threads
	}
}

// Put is the edge's, without its limits.
func (r *readers) Put(ctx context.Context, _ netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return thread.Turn{}, r.fail
	}
	r.asked = append(r.asked, ask)
	ask.New, ask.Turn = id == "", api.TurnID(r.ids.New(api.TurnPrefix, time.Now()))
	if ask.New {
		id = api.ThreadID(r.ids.New(api.ThreadPrefix, time.Now()))
	}
	return r.Threads.Ask(ctx, id, ask)
}

// gated are the models, of which "slow" waits for the test.
type gated struct {
	*registry.Registry
	readers *readers
}

func (g gated) Answer(ctx context.Context, name string, req model.Request, emit func(model.Delta) error) (model.Result,
	error) {
	if name != "slow" {
		return g.Registry.Answer(ctx, name, req, emit)
	}
	for n := 0; ; n++ {
		select {
		case _, more := <-g.readers.goOn:
			if !more {
				return model.Result{Model: "slow", Answered: true}, nil
			}
		case <-ctx.Done():
			return model.Result{}, ctx.Err()
		}
		if err := emit(model.Delta{Text: fmt.Sprintf("**word%d** <script>alert(5)</script> ", n)}); err != nil {
			return model.Result{}, err
		}
	}
}

// An acmeTree is a tree of files in memory.
type acmeTree map[string]string

func (acmeTree) Commit() string { return "1" }
func (f acmeTree) Files(context.Context) ([]api.File, error) {
	var out []api.File
	for path, text := range f {
		sum := sha256.Sum256([]byte(text))
		out = append(out, api.File{Path: path, Hash: hex.EncodeToString(sum[:8]), Size: int64(len(text))})
	}
	return out, nil
}
func (f acmeTree) Read(_ context.Context, path string) ([]byte, error) {
	if text, ok := f[path]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// try sends the playground's form and follows to the page that shows the result.
func (b *browser) try(form url.Values) (page, at string) {
	b.t.Helper()
	form.Set("token", b.token(b.open(playgroundPath)))
	res := b.send(playgroundPath+"/try", form)
	if res.StatusCode != http.StatusSeeOther {
		body, _ := io.ReadAll(res.Body)
		b.t.Fatalf("%d: %s", res.StatusCode, body)
	}
	at = res.Header.Get("Location")
	page, _ = b.text(200, at)
	return page, at
}

// until opens a page again and again until it has a text.
func (b *browser) until(at, text string) string {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if page := b.open(at); strings.Contains(page, text) {
			return page
		}
	}
	b.t.Fatalf("%s never says %q: %s", at, text, b.open(at))
	return ""
}

var threadInAddress = regexp.MustCompile(`a\.thread=(thr_[0-9A-Za-z]+)`)

func wants(t *testing.T, page string, texts ...string) {
	t.Helper()
	if _, main, ok := strings.Cut(page, "</form>\n"); ok && strings.Contains(main, "<main") {
		_, page, _ = strings.Cut(page, "<main")
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q:\n%s", text, page)
		}
	}
}

// Searching is an address that can be shared: it needs no script, asks nobody and shows why each page is found.
func TestThePlaygroundSearchesAndSaysWhy(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("vera", api.RoleViewer))
	page, _ := b.text(200, playgroundPath)
	wants(t, page, "Ask a question to see how it", `name="do" value="ask"`, `value="gpt"`)
	page, at := b.try(url.Values{"q": {"make a bakcup"}, "do": {"search"}, "expect": {"evil.md"}})
	if at != playgroundPath+"?expect=evil.md&q=make+a+bakcup" {
		t.Errorf("the result is at %s", at)
	}
	wants(t, page, "Make a backup", "The query is the heading", "read as backup", "Words in this section",
		"None of the words", "Not looked for: a", "Found in")
	if strings.Contains(page, "The backup password") {
		t.Error("an anonymous reader finds what is restricted to a group")
	}
	staff, _ := b.text(200, playgroundPath+"?q=backup+password&groups=staff,+other")
	wants(t, staff, "The backup password", "Groups: staff, other")
	expected, _ := b.text(200, playgroundPath+"?q=backup&expect=staff.md")
	wants(t, expected, "restricted to staff")
	if len(r.asked) != 0 {
		t.Errorf("a model was asked: %+v", r.asked)
	}
	other := h.as(h.person("rita", api.RoleViewer))
	again, _ := other.text(200, at)
	wants(t, again, "Make a backup")
}

func TestThePlaygroundComparesTwoConfigurations(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("vera", api.RoleViewer))
	page, at := b.try(url.Values{"q": {"backup"}, "do": {"search"}, "both": {"1"}, "b.vote": {"0"}, "b.title": {"0"},
		"a.vote": {"0.4"}, "b.proximity": {"0.3"}})
	if !strings.Contains(at, "b.vote=0&") && !strings.HasSuffix(at, "b.vote=0") || strings.Contains(at, "a.vote") ||
		strings.Contains(at, "proximity") {
		t.Errorf("the address names what is as usual, or not what differs: %s", at)
	}
	wants(t, page, "A: Search", "B: Search", "usual ranking", "2 changed weights")
	bad := b.open(playgroundPath + "?q=backup&a.vote=lots&a.model=nobody")
	wants(t, bad, "a.vote", "must be a number from 0 to 5", "is no model of this server", "Make a backup")
	res := b.send(playgroundPath+"/try", url.Values{"token": {b.token(bad)}, "q": {"x"}, "a.vote": {"-1"}})
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong weight: %d", res.StatusCode)
	}
}

// Asking goes the way of readers, and is marked; the answer, what was found for it and why, and what the model was told
// are shown, at an address that another person can open.
func TestThePlaygroundAsksAsReadersDo(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("vera", api.RoleViewer))
	_, at := b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}, "page": {"/restore"}, "groups": {"staff"}})
	page := b.until(at, "badge ok\">answered")
	wants(t, page, "acme backup", "Timings", "Searched the documentation", "What the model makes of it",
		"quoted", "Words in this section", "As a conversation")
	ask := r.asked[0]
	if ask.Channel != api.ChannelPlayground || !strings.HasPrefix(ask.Caller, "console:") || ask.Project.ID != "acme" ||
		ask.Query.CurrentPath != "/restore" || ask.Query.Filter.Groups[0] != "staff" || ask.Model != "" ||
		ask.Query.Weights != nil {
		t.Errorf("asked %+v", ask)
	}
	colleague := h.as(h.person("rita", api.RoleViewer))
	wants(t, colleague.open(at), "acme backup")

	if got := b.open(strings.Replace(at, "as=answer", "as=answer&b.thread=thr_", 1)); !strings.Contains(got, "acme backup") {
		t.Error("a thread that is none")
	}
	gone := strings.Replace(at, threadInAddress.FindStringSubmatch(at)[1], "thr_0123456789abcdefghjkmnpqrs", 1)
	if page := b.open(gone); !strings.Contains(page, "removed") && !strings.Contains(page, "Nothing was sent") {
		t.Errorf("a thread that is gone: %s", page)
	}

	page, at = b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"preview"}, "a.model": {"gpt"}})
	wants(t, page, "Nothing was sent", "You answer questions of readers", "gpt-x", "[1] in the prompt", "&#34;max_tokens&#34;")
	if strings.Contains(page, endpointSecret) || strings.Contains(at, "token") {
		t.Errorf("a secret is shown at %s", at)
	}
	if len(r.asked) != 1 {
		t.Errorf("%d questions were asked", len(r.asked))
	}
	r.fail = &api.LimitError{RetryAfter: time.Minute}
	res := b.send(playgroundPath+"/try", url.Values{"token": {b.token(page)}, "q": {"why"}, "do": {"ask"}})
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), "role=\"alert\"") {
		t.Errorf("beyond the quota: %d %s", res.StatusCode, body)
	}
}

// The first question of the setup waits in the queue of readers and counts against their quotas.
func TestTheFirstQuestionGoesTheWayOfReaders(t *testing.T) {
	t.Parallel()
	const path, ask = "/console/setup/acme/question", "/console/setup/acme/ask"
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.visitor("operator")
	form := url.Values{"question": {"How do I make a backup?"}, "token": {b.token(b.open(path))}}
	if res := b.send(ask, form); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("asked: %d %s", res.StatusCode, bodyOf(t, res))
	}
	if q := r.asked[0]; q.Channel != api.ChannelPlayground || !strings.HasPrefix(q.Caller, "console:") {
		t.Errorf("asked %+v", q)
	}
	wants(t, b.until(path, "<h3>Sources</h3>"), "acme backup")

	r.fail = &api.LimitError{RetryAfter: time.Minute}
	if res := b.send(ask, form); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("beyond the quota: %d", res.StatusCode)
	}
}

// Who may only look may ask what readers may ask; models that readers do not have are for editors.
func TestOnlyEditorsAskOtherModels(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	viewer, editor := h.as(h.person("vera", api.RoleViewer)), h.as(h.person("edda", api.RoleEditor))
	form := url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}, "a.model": {"gpt"}}
	form.Set("token", viewer.token(viewer.open(playgroundPath)))
	if res := viewer.send(playgroundPath+"/try", form); res.StatusCode != http.StatusForbidden || len(r.asked) != 0 {
		t.Errorf("a viewer asks another model: %d", res.StatusCode)
	}
	_, at := editor.try(form)
	page := editor.until(at, "could not be asked, so the built-in one has answered") // nothing listens there
	if r.asked[0].Model != "gpt" || strings.Contains(page, endpointSecret) {
		t.Errorf("asked %+v", r.asked[0])
	}
}

// The answer is seen as it is written, can be stopped, and runs nothing that it holds.
func TestAnAnswerOfThePlaygroundIsLiveAndCanBeStopped(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("edda", api.RoleEditor))
	page, at := b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}, "a.model": {"slow"}})
	m := threadInAddress.FindStringSubmatch(at)
	if m == nil {
		t.Fatalf("no thread in %s", at)
	}
	answer := playgroundPath + "/answers/" + m[1]
	wants(t, page, "being written", `sse-connect="`+answer+`"`, `sse-close="end"`, "Stop")
	r.goOn <- struct{}{}
	live := b.do(http.MethodGet, answer, nil, "Accept", "text/event-stream")
	lines := bufio.NewScanner(live.Body)
	seen := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", text, lines.Err())
	}
	seen("word0** &lt;script&gt;")
	r.goOn <- struct{}{}
	seen("word1")
	res := b.send(answer+"/stop", url.Values{"token": {b.token(page)}}, "HX-Request", "true")
	part, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 {
		t.Fatalf("%d: %s", res.StatusCode, part)
	}
	wants(t, string(part), "The answer was stopped.", "<strong>word1</strong>")
	seen("The answer was stopped.")
	for _, html := range []string{string(part), b.open(at)} {
		if strings.Contains(html, "<script>alert") {
			t.Errorf("a script of the model gets through: %s", html)
		}
	}
	again := b.send(answer+"/stop", url.Values{"token": {b.token(page)}})
	if again.StatusCode != http.StatusSeeOther {
		t.Errorf("stopping what is stopped: %d", again.StatusCode)
	}
}

// Nothing that a page of the documentation or a question holds runs or leads anywhere else.
func TestThePlaygroundRunsNothingOfWhatItShows(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("edda", api.RoleEditor))
	hostile := `zebra "><script>alert(6)</script><img src=x onerror=alert(7)>`
	for _, as := range []string{"search", "answer"} {
		q := url.Values{"q": {hostile}, "as": {as}, "expect": {`"><script>alert(8)</script>`}, "groups": {"<script>"},
			"version": {"'><script>"}, "both": {"1"}, "b.model": {"gpt"}, "page": {"javascript:alert(9)"}}
		page, res := b.text(200, playgroundPath+"?"+q.Encode())
		for _, bad := range []string{"<script>", "<img src=x", "onerror=alert(2)>", `href="javascript:`} {
			if strings.Contains(page, bad) {
				t.Errorf("as %s the page holds %s", as, bad)
			}
		}
		if res.Header.Get("Content-Security-Policy") == "" || strings.Contains(page, " style=") ||
			strings.Contains(page, " onclick=") {
			t.Error("inline code or style")
		}
	}
	q := url.Values{"q": {"zebra"}}
	page, _ := b.text(200, playgroundPath+"?"+q.Encode())
	wants(t, page, "&lt;script&gt;alert(3)")
}

// The playground is the organization's own, and shows no answers but its own.
func TestThePlaygroundIsTheOrganizationsOwn(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("vera", api.RoleViewer))
	for _, path := range []string{playgroundPath, playgroundPath + "/answers/thr_x"} {
		if res := h.browser().do(http.MethodGet, path, nil); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s without a session: %d", path, res.StatusCode)
		}
	}
	b.text(404, "/console/org-b/docs.other.example/playground")
	p, err := h.catalog.Project(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	id := api.ThreadID(r.ids.New(api.ThreadPrefix, time.Now()))
	turn, err := r.Threads.Ask(t.Context(), id, thread.Ask{Project: p, New: true, Turn: "turn_reader", Caller: "ann",
		Channel: api.ChannelWeb, Text: "How do I make a backup?"})
	if err != nil {
		t.Fatal(err)
	}
	<-turn.Log.Done()
	b.text(404, playgroundPath+"/answers/"+string(id))
	if res := b.send(playgroundPath+"/try", url.Values{"token": {b.token(b.open(playgroundPath))}, "q": {"and then?"},
		"do": {"follow"}, "a.thread": {string(id)}}); res.StatusCode != http.StatusNotFound || len(r.asked) != 0 {
		t.Errorf("a reader's conversation is gone on with: %d", res.StatusCode)
	}
	if res := b.send(playgroundPath+"/answers/"+string(id)+"/stop",
		url.Values{"token": {b.token(b.open(playgroundPath))}}); res.StatusCode != http.StatusNotFound {
		t.Errorf("stopping a reader's answer: %d", res.StatusCode)
	}
}

// What was found when a question was asked is known also when the documentation has changed since.
func TestAnAnswerIsShownWithWhatWasFoundForItThen(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	b := h.as(h.person("vera", api.RoleViewer))
	_, at := b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}})
	b.until(at, "badge ok\">answered")
	if page := b.open(at); strings.Contains(page, "has changed since") {
		t.Errorf("nothing has changed: %s", page)
	}
	changed := acmeTree{"restore.md": acmePages["restore.md"], "copies.md": "---\ntitle: Copies\n---\n\nMake a backup by copying.\n"}
	if _, err := r.documents.Update(t.Context(), api.Project{ID: "acme"}, changed, nil); err != nil {
		t.Fatal(err)
	}
	page := b.open(at)
	wants(t, page, "has changed since the question was asked", "Passages retrieved", "backups.md#make-a-backup",
		"no longer there", "Copies", "acme backup")
}

// A follow-up is read with what was asked before, and only who asked may put it.
func TestThePlaygroundAsksFollowUps(t *testing.T) {
	t.Parallel()
	r := &readers{}
	h := build(t, withReaders(t, r))
	vera := h.person("vera", api.RoleViewer)
	b := h.as(vera)
	_, at := b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}})
	b.until(at, "badge ok\">answered")
	thr := threadInAddress.FindStringSubmatch(at)[1]
	wants(t, b.open(at), "Ask as a follow-up")
	if page := h.as(h.person("rita", api.RoleViewer)).open(at); strings.Contains(page, "Ask as a follow-up") {
		t.Error("somebody else may go on")
	}
	_, next := b.try(url.Values{"q": {"Is it safe while the server runs?"}, "do": {"follow"}, "a.thread": {thr}})
	page := b.until(next, "badge ok\">answered")
	wants(t, page, "Asked before in this conversation", "How do I make a backup?", "Read as")
	if len(r.asked) != 2 || threadInAddress.FindStringSubmatch(next)[1] != thr {
		t.Errorf("asked %+v at %s", r.asked, next)
	}
	conversation, _ := b.text(200, "/console/org-a/docs.acme.example/conversations/"+thr)
	wants(t, conversation, "tried in the playground", "Retrieval and timings", "Waited in the queue", "page cited",
		"playground?as=answer")
	wants(t, b.open(at), "to make a backup of the server") // the first answer is at its address as before
}

// elsewhere are readers of which one thread is run by another node, as this one finds out when it asks there.
type elsewhere struct {
	*readers
	thread api.ThreadID
}

func (e *elsewhere) Put(ctx context.Context, client netip.Addr, id api.ThreadID, ask thread.Ask) (thread.Turn, error) {
	if id != "" && id == e.thread {
		met := &cluster.ElsewhereError{Name: thread.Stream(id), Node: cluster.Node{ID: "b", Name: "b"}}
		cluster.Note(ctx, met)
		return thread.Turn{}, met
	}
	return e.readers.Put(ctx, client, id, ask)
}

// Two answers that are compared may belong to different nodes. A follow-up asks each of them once: the browser sends the
// form again for the second, which its node asks alone.
func TestAFollowUpOfAComparisonIsAskedOnceOnEachNode(t *testing.T) {
	t.Parallel()
	r := &elsewhere{readers: &readers{}}
	with := withReaders(t, r.readers)
	h := build(t, func(d *web.Deps) {
		with(d)
		d.Readers = r
	})
	b := h.as(h.person("vera", api.RoleViewer))
	_, at := b.try(url.Values{"q": {"How do I make a backup?"}, "do": {"ask"}, "both": {"1"}})
	b.until(at, "badge ok\">answered")
	first := threadInAddress.FindStringSubmatch(at)[1]
	second := regexp.MustCompile(`b\.thread=(thr_[0-9A-Za-z]+)`).FindStringSubmatch(at)[1]

	form := url.Values{"q": {"Is it safe while the server runs?"}, "do": {"follow"}, "both": {"1"}, "a.thread": {first},
		"b.thread": {second}, "token": {b.token(b.open(playgroundPath))}}
	inThread := func(id string) (n int) {
		c, err := r.Read(t.Context(), api.ThreadID(id), thread.Read{Project: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Turns {
			if e.Question == form.Get("q") {
				n++
			}
		}
		return n
	}
	r.thread = api.ThreadID(second)
	res := b.send(playgroundPath+"/try", form)
	next := res.Header.Get("Location")
	if res.StatusCode != http.StatusTemporaryRedirect || next != playgroundPath+"/try?asked="+first {
		t.Fatalf("%d to %q", res.StatusCode, next)
	}
	if a, b := inThread(first), inThread(second); a != 1 || b != 0 {
		t.Errorf("asked %d and %d times before the second step", a, b)
	}
	r.thread = api.ThreadID(first) // the second step is forwarded to the other node
	res = b.send(next, form)
	if at = res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || !strings.Contains(at, "a.thread="+first) ||
		!strings.Contains(at, "b.thread="+second) {
		t.Errorf("%d to %q", res.StatusCode, at)
	}
	if a, b := inThread(first), inThread(second); a != 1 || b != 1 {
		t.Errorf("asked %d and %d times", a, b)
	}

	// What cannot be gone on with is found before anything is asked.
	r.thread = ""
	form.Set("q", "And on Sundays?")
	form.Set("b.thread", api.NewID(api.ThreadPrefix, time.Now()))
	if res := b.send(playgroundPath+"/try", form); res.StatusCode != http.StatusNotFound || inThread(first) != 0 {
		t.Errorf("%d, asked %d times", res.StatusCode, inThread(first))
	}
}
