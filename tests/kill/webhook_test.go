package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/persistence/datadir"
	"docent/persistence/journal"
	"docent/tests/harness"
)

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
		facts = append(facts, fact{kind, harness.FactKey(kind, subject, detail, at)})
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
			case thread.HandedOver:
				add("contact.requested", name, string(ev.Turn), ev.Contact.At)
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
func checkDeliveries(facts []fact, got []harness.Delivered) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	place := map[string]int{}
	for i, f := range facts {
		place[f.key] = i
	}
	taken, first := map[string]bool{}, map[string]bool{}
	idOf, keyOf := map[string]string{}, map[string]string{}
	last := -1
	for _, d := range got {
		at, known := place[d.Key]
		if !known {
			wrong("%s was delivered, and the journal does not hold it: %s", d.ID, d.Key)
			continue
		}
		if other, seen := keyOf[d.ID]; seen && other != d.Key {
			wrong("the id %s stands for %s and for %s", d.ID, other, d.Key)
		}
		if other, seen := idOf[d.Key]; seen && other != d.ID {
			wrong("%s was delivered as %s and as %s", d.Key, other, d.ID)
		}
		keyOf[d.ID], idOf[d.Key] = d.Key, d.ID
		if !first[d.Key] {
			if at < last {
				wrong("%s came after a later event", d.Key)
			}
			last = max(last, at)
			first[d.Key] = true
		}
		taken[d.Key] = taken[d.Key] || d.Taken
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
	got := func(id, key string, taken bool) harness.Delivered {
		return harness.Delivered{ID: id, Key: key, Taken: taken}
	}
	good := []harness.Delivered{got("1", "a", false), got("1", "a", true), got("2", "b", true), got("1", "a", true), got("2", "b", false), got("3", "c", true)}
	if problems := checkDeliveries(facts, good); len(problems) > 0 {
		t.Errorf("in a good run: %q", problems)
	}
	for defect, c := range map[string]struct {
		got  []harness.Delivered
		says string
	}{
		"one is lost":               {good[:5], "never delivered"},
		"one is never taken":        {append(slices.Clone(good[:5]), got("3", "c", false)), "never delivered"},
		"one is invented":           {append(slices.Clone(good), got("4", "d", true)), "does not hold it"},
		"they change places":        {[]harness.Delivered{good[1], good[5], good[2]}, "after a later event"},
		"one has two ids":           {append(slices.Clone(good), got("9", "a", true)), "as 1 and as 9"},
		"an id stands for two":      {append(slices.Clone(good), got("1", "c", true)), "stands for"},
		"a first failure is passed": {[]harness.Delivered{good[0], good[2], good[5]}, "never delivered"},
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
	server *harness.Server
	p      harness.Project
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
	cl := &client.Client{Base: u.server.URL, Key: key, HTTP: http.DefaultClient}
	return cl.Post(ctx, path, body, out) == nil
}

func (u *hookUser) makeJob(ctx context.Context, n int) {
	prompt := fmt.Sprintf(`create page made/u%d-%d.md titled "Page" with content: "made by job"`, u.number, n)
	if u.random.IntN(4) == 0 {
		prompt = "sing a song"
	}
	var j api.Job
	jobs := "/v2/agent/" + u.p.ID + "/job"
	if !u.post(ctx, u.p.Admin, jobs, map[string]string{"prompt": prompt, "model": "builtin"}, &j) {
		return
	}
	switch u.random.IntN(4) {
	case 0:
		u.post(ctx, u.p.Admin, jobs+"/"+string(j.ID)+"/message",
			map[string]string{"prompt": fmt.Sprintf(`append "more" to made/u%d-%d.md`, u.number, n)}, nil)
	case 1:
		u.post(ctx, u.p.Admin, jobs+"/"+string(j.ID)+"/cancel", nil, nil)
	}
}

func (u *hookUser) ask(ctx context.Context, question string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cl := &client.Client{Base: u.server.URL, Key: u.p.Assistant, HTTP: http.DefaultClient}
	a, err := cl.Ask(ctx, client.Question{Domain: u.p.Domain, Caller: "ann", Text: question}, io.Discard)
	if err != nil || a.MessageID == "" {
		return
	}
	if u.random.IntN(2) == 0 {
		rating := []string{"up", "down", "down"}[u.random.IntN(3)]
		u.post(ctx, u.p.Assistant, "/discovery/v1/feedback/"+u.p.Domain,
			map[string]string{"threadId": a.ThreadID, "messageId": a.MessageID, "rating": rating, "comment": "because"}, nil)
	}
	if u.random.IntN(4) == 0 {
		u.post(ctx, u.p.Assistant, "/discovery/v1/contact/"+u.p.Domain,
			map[string]string{"threadId": a.ThreadID, "messageId": a.MessageID, "message": "Please call."}, nil)
	}
}

// settlePulls merges and closes pull requests by command.
func settlePulls(ctx context.Context, t *testing.T, data string, p harness.Project, random *rand.Rand) {
	for ctx.Err() == nil {
		out, err := harness.TryDocent(t, "pull", "list", "--data", data, "--project", p.ID, "--state", "open", "--json")
		for line := range strings.Lines(out) {
			var pull api.PullRequest
			if err == nil && json.Unmarshal([]byte(line), &pull) == nil && random.IntN(3) > 0 {
				// What a kill cuts off fails here, and is told later or done again.
				_, _ = harness.TryDocent(t, "pull", []string{"merge", "close"}[random.IntN(2)], pull.ID, "--data", data)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // a person takes a moment
		}
	}
}

// TestWebhooksSurviveKills kills the real server at random moments while jobs run, pull requests are merged and closed, questions
// go unanswered, answers are rated, and conversations are handed over, and while receivers fail, stall and break off. A person is impatient and has things sent again.
// In the end each receiver that is there has got all that the journal holds, and nothing else, in order.
func TestWebhooksSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the server many times; left out with -short")
	}
	t.Parallel()
	o := tortureFromEnvironment(t)
	t.Logf("seed %d: set DOCENT_TEST_SEED to run these moments again", o.seed)
	random := rand.New(rand.NewPCG(o.seed, 21))
	data, config := filepath.Join(t.TempDir(), "data"), harness.AllowLoopback(t)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, map[string]string{
		"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers and a lighthouse.\n",
		"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n",
	}), "--limit-key-month", harness.Plentiful, "--limit-org-hour", harness.Plentiful, "--limit-ip-day", harness.Plentiful, "--limit-project-hour", harness.Plentiful,
		"--file", harness.SettingsFile(t, `{"widget": {"contact": "form"}}`))
	holdJournal(t, data)
	server := harness.NewServer(t, data, "--config", config)
	// A weekly report takes a week: TestTasksSurviveKills has one that is due.
	happening := slices.DeleteFunc(slices.Clone(api.EventKinds), func(k api.EventKind) bool { return k == api.EventReportWeekly })

	faulty := new(atomic.Bool)
	steady, moody, choosy := harness.NewHookReceiver(t, nil, o.seed), harness.NewHookReceiver(t, faulty, o.seed), harness.NewHookReceiver(t, faulty, o.seed+1)
	dead := harness.NewHookReceiver(t, nil, o.seed)
	dead.Close()
	ids := map[*harness.HookReceiver]string{}
	chosen := []api.EventKind{api.EventPullOpened, api.EventPullMerged, api.EventPullClosed, api.EventAnswerRatedDown}
	for _, r := range []*harness.HookReceiver{steady, moody, choosy, dead} {
		var flags []string
		if r == choosy {
			for _, k := range chosen {
				flags = append(flags, "--event", string(k))
			}
		}
		ids[r], r.Secret = harness.AddTestWebhook(t, data, config, p.ID, r.URL, flags...)
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
			for _, r := range []*harness.HookReceiver{moody, choosy} {
				args := []string{"webhook", "resume", ids[r], "--data", data, "--config", config}
				if patience.IntN(4) == 0 {
					args = []string{"webhook", "replay", ids[r], "--since", "5s", "--data", data, "--config", config}
				}
				_, _ = harness.TryDocent(t, args...) // a kill may cut it off
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond): // so impatient
			}
		}
	})
	for range o.kills {
		time.Sleep(o.gap/4 + time.Duration(random.Int64N(int64(o.gap)))) // the moment is random
		server.Kill()
		server.Start()
	}
	// On a machine that stands still little may have happened before the kills were over.
	harness.Until(t, "something of each kind has happened, and a delivery met a fault", func() bool {
		came := map[string]bool{}
		for _, d := range steady.All() {
			kind, _, _ := strings.Cut(d.Key, " ")
			came[kind] = true
		}
		return !slices.ContainsFunc(happening, func(k api.EventKind) bool { return !came[string(k)] }) && moody.Met() > 0
	})
	leave()
	users.Wait()
	faulty.Store(false)
	moodyFaults := moody.Met()

	awaitIdle(t, server, p)
	awaitDelivered(t, data, config, ids[steady], ids[moody], ids[choosy])
	server.Stop()
	facts := journaledFacts(t, data, server.URL)
	kinds := map[api.EventKind]int{}
	for _, f := range facts {
		kinds[f.kind]++
	}
	for _, k := range happening {
		if kinds[k] == 0 {
			t.Errorf("no %s happened: the test does not show what it should", k)
		}
	}
	if moodyFaults == 0 {
		t.Error("no delivery met a fault")
	}
	for name, c := range map[string]struct {
		r     *harness.HookReceiver
		facts []fact
	}{
		"steady": {steady, facts}, "moody": {moody, facts},
		"choosy": {choosy, slices.DeleteFunc(slices.Clone(facts), func(f fact) bool { return !slices.Contains(chosen, f.kind) })},
	} {
		problems := checkDeliveries(c.facts, c.r.All())
		for _, p := range problems[:min(len(problems), 10)] {
			t.Errorf("%s: %s", name, p)
		}
	}
	t.Logf("%d events, %v; %d, %d and %d deliveries; %d faults", len(facts), kinds, len(steady.All()), len(moody.All()), len(choosy.All()), moodyFaults)
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
func awaitIdle(t *testing.T, server *harness.Server, p harness.Project) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out := harness.Docent(t, "job", "list", "--url", server.URL, "--project", p.ID, "--key", p.Admin, "--limit", "0",
			"--json")
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
		for line := range strings.Lines(harness.Docent(t, "webhook", "list", "--data", data, "--json")) {
			var w api.WebhookStatus
			if err := json.Unmarshal([]byte(line), &w); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(ids, w.ID) {
				fmt.Fprintln(&now, w.ID, w.State.Position, w.State.Error)
				if w.State.Error != "" {
					harness.Docent(t, "webhook", "resume", w.ID, "--data", data, "--config", config)
					calm = 0
				}
			}
		}
		if now.String() != last {
			last, calm = now.String(), 0
		}
	}
}
