package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docent/actors"
	"docent/actors/job"
	"docent/actors/persistent"
	"docent/actors/reports"
	"docent/actors/thread"
	"docent/api"
	"docent/forge"
	"docent/internal/outbound"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/cluster"
	"docent/persistence/journal"
)

// A post is a sender whose receivers answer what a test says.
type post struct {
	mu     sync.Mutex
	sent   []outbound.Message
	took   map[string][]string // ids, by address
	answer func(m outbound.Message) (outbound.Answer, error)
}

func (p *post) CheckURL(address string) string {
	return outbound.Policy{}.CheckURL(address)
}

func (p *post) Send(ctx context.Context, m outbound.Message) (outbound.Answer, error) {
	p.mu.Lock()
	p.sent = append(p.sent, m)
	answer := p.answer
	p.mu.Unlock()
	a, err := outbound.Answer{Code: 204}, error(nil)
	if answer != nil {
		a, err = answer(m)
	}
	if ctx.Err() != nil {
		return outbound.Answer{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if p.took == nil {
			p.took = map[string][]string{}
		}
		p.took[m.URL] = append(p.took[m.URL], m.ID)
	}
	return a, err
}

func (p *post) says(answer func(m outbound.Message) (outbound.Answer, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *post) messages() []outbound.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// taken are the kinds and times of what a receiver took, in order.
func (p *post) taken(url string) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.took[url])
}

var errDown = errors.New("the receiver answered 503 Service Unavailable")

func down(outbound.Message) (outbound.Answer, error) { return outbound.Answer{Code: 503}, errDown }

type vault struct {
	mu  sync.Mutex
	all map[string]string
	n   int
}

func (v *vault) Keep(project api.ProjectID, text string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n++
	name := fmt.Sprintf("%s.%d", project, v.n)
	v.all[name] = text
	return name, nil
}

func (v *vault) Read(name string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if text, ok := v.all[name]; ok {
		return text, nil
	}
	return "", errors.New("missing")
}

func (v *vault) Drop(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, name)
	return nil
}

// A house is a server with its stores, of which a test writes the journal.
type house struct {
	t       *testing.T
	dir     string
	dsn     string // of the catalog
	journal *journal.Journal
	catalog *catalog.Catalog
	post    *post
	vault   *vault
	hooks   *Hooks
	stop    func()
	broken  *broken
	tracker *tracker
	late    bool // events are made when the test says so
}

// broken is a catalog that fails to store attempts as often as a test says.
type broken struct {
	*catalog.Catalog
	mu   sync.Mutex
	fail int
}

func (b *broken) SaveAttempt(ctx context.Context, s api.WebhookState, d *api.WebhookDelivery) error {
	b.mu.Lock()
	fails := b.fail > 0
	b.fail--
	b.mu.Unlock()
	if fails {
		return errors.New("the disk is full")
	}
	return b.Catalog.SaveAttempt(ctx, s, d)
}

func newHouse(t *testing.T, late bool) *house {
	h := &house{t: t, dir: t.TempDir(), dsn: catalogtest.SQLite(t), post: &post{}, vault: &vault{all: map[string]string{}}, tracker: &tracker{}, late: late}
	h.open()
	if _, err := h.catalog.AddProject(t.Context(), api.Project{ID: "docs", Domain: "docs.example.com", Source: "/src"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func (h *house) open() {
	h.t.Helper()
	log := slog.New(slog.NewTextHandler(h.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if h.journal, err = journal.Open(filepath.Join(h.dir, "journal"), journal.Options{Log: log}); err != nil {
		h.t.Fatal(err)
	}
	if h.catalog, err = catalog.Open(context.Background(), h.dsn, catalog.Options{Log: log}); err != nil {
		h.t.Fatal(err)
	}
	events, err := h.journal.Follow(catalog.WebhookFollower)
	if err != nil {
		h.t.Fatal(err)
	}
	h.broken = &broken{Catalog: h.catalog}
	runtime := startTasks(h.t, log)
	h.hooks, err = New(Deps{Tasks: runtime.Tasks(), Manager: Manager{Catalog: h.broken, Sender: h.post, Secrets: h.vault, Tracker: h.tracker, Now: time.Now, Log: log},
		Streams: h.journal, Events: events, PublicURL: "https://docent.example.com/"})
	if err != nil {
		h.t.Fatal(err)
	}
	if !h.late {
		h.hooks.Wake()
	}
	h.stop = sync.OnceFunc(func() {
		if err := runtime.Stop(context.Background()); err != nil {
			h.t.Error(err)
		}
		time.Sleep(2 * time.Millisecond) // the runtime counts dead letters for so long
		events.Close()
		if err := errors.Join(h.catalog.Close(), h.journal.Close()); err != nil {
			h.t.Error(err)
		}
	})
}

// startTasks starts the actors, of which there are none but tasks.
func startTasks(t *testing.T, log *slog.Logger) *actors.System {
	t.Helper()
	s, err := actors.Start(context.Background(), actors.Deps{Journal: noStreams{}, Projects: struct{ persistent.Projects }{},
		Editor: struct{ job.Editor }{}, Forge: struct{ job.Forge }{}, Searcher: struct{ thread.Searcher }{},
		Model: struct{ thread.Model }{}, Place: cluster.Single{}, Log: log, RunningJobs: 1, OpenJobs: 1, RunningTurns: 1, Shards: 1, Idle: 24 * time.Hour,
		RunLimit: time.Hour, TurnLimit: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type noStreams struct{ actors.Journal }

func (noStreams) Pending(func(string) bool) error { return nil }

func (h *house) close() { h.stop() }

// restart is another process on the same data directory.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.open()
}

func (h *house) add(url string, kinds ...api.EventKind) (api.Webhook, string) {
	h.t.Helper()
	w, secret, err := h.hooks.Add(h.t.Context(), "docs", url, kinds, h.journal.Position())
	if err != nil {
		h.t.Fatal(err)
	}
	return w, secret
}

func (h *house) status(id string) api.WebhookStatus {
	h.t.Helper()
	w, err := h.catalog.Webhook(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// happens journals events of a job.
func (h *house) happens(id api.JobID, events ...job.Event) {
	h.t.Helper()
	var stored []journal.Event
	for _, ev := range events {
		e, err := job.Encode(ev)
		if err != nil {
			h.t.Fatal(err)
		}
		stored = append(stored, e)
	}
	h.append(job.Stream(id), stored)
}

// said journals events of a thread.
func (h *house) said(id api.ThreadID, events ...thread.Event) {
	h.t.Helper()
	var stored []journal.Event
	for _, ev := range events {
		e, err := thread.Encode(ev)
		if err != nil {
			h.t.Fatal(err)
		}
		stored = append(stored, e)
	}
	h.append(thread.Stream(id), stored)
}

func (h *house) append(stream string, events []journal.Event) {
	h.t.Helper()
	rec, err := h.journal.Load(stream)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.journal.Append(context.Background(), journal.Append{Stream: stream, After: rec.Seq, Events: events}); err != nil {
		h.t.Fatal(err)
	}
}

// ends journals a job that is created and ends.
func (h *house) ends(n int) api.JobID {
	h.t.Helper()
	id := api.JobID(fmt.Sprintf("job_%030d", n))
	now := time.Now()
	h.happens(id, job.Created{Project: "docs", Job: id, At: now}, job.Prompted{ID: string(id), Prompt: "do it", At: now},
		job.Finished{Message: fmt.Sprint("done ", n), At: now, Outcome: api.OutcomeChanged, Ended: job.Ended{Instruction: string(id)}})
	return id
}

// settle lets all that can happen now happen.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func inBubble(t *testing.T, test func(t *testing.T, h *house)) { inHouse(t, false, test) }

func inHouse(t *testing.T, late bool, test func(t *testing.T, h *house)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, late)
		defer h.close()
		test(t, h)
	})
}

const url1, url2 = "https://one.example.com/hook", "https://two.example.com/hook"

// payloads are what was sent, without what changes from run to run.
func payloads(t *testing.T, messages []outbound.Message) []string {
	t.Helper()
	var out []string
	for _, m := range messages {
		var p Payload
		if err := json.Unmarshal(m.Body, &p); err != nil {
			t.Fatal(err)
		}
		if p.Version != 1 || p.Timestamp.IsZero() || p.Data.Project != (Project{"docs", "docs.example.com"}) {
			t.Errorf("payload %s", m.Body)
		}
		text := string(p.Type)
		if j := p.Data.Job; j != nil {
			text += fmt.Sprintf(" %s %q %s %s %q waiting %d", j.Link, j.Title, j.Status, j.Outcome, j.Message, j.Waiting)
		}
		if r := p.Data.PullRequest; r != nil {
			text += fmt.Sprintf(" pull %s %s %s", r.Link, r.Branch, r.State)
		}
		if q := p.Data.Question; q != nil {
			text += fmt.Sprintf(" %s %q on %s by %s of %s", q.ID, q.Text, q.Page, q.Channel, q.Link)
		}
		if r := p.Data.Rating; r != nil {
			text += fmt.Sprintf(" because %q", r.Comment)
		}
		out = append(out, text)
	}
	return out
}

func TestEventsAreMadeOfWhatIsJournaled(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.ends(1) // before there was a webhook
		settle()
		h.add(url1)
		now := time.Now()
		h.happens("job_a", job.Created{Project: "docs", Job: "job_a", At: now}, job.Prompted{ID: "i1", Prompt: "Rename a", At: now},
			job.Prompted{ID: "i2", Prompt: "Rename b", At: now},
			job.Edited{Branch: "docent/job_a", At: now}, job.Published{Result: forge.Published{Link: "/pulls/pr_1"}, At: now, Opened: true},
			job.Finished{Message: "Renamed.", At: now, Outcome: api.OutcomeChanged,
				Ended: job.Ended{Instruction: "i1", Link: "/pulls/pr_1", Waiting: 1}},
			job.Published{Result: forge.Published{Link: "/pulls/pr_1"}, At: now},
			job.Failed{Reason: api.HaltInterrupted, Message: "cancelled", At: now, Ended: job.Ended{Instruction: "i2"}},
			job.PullChanged{Branch: "docent/job_a", Link: "/pulls/pr_1", State: api.PullClosed, At: now},
			job.PullChanged{Branch: "docent/job_a", Link: "/pulls/pr_1", State: api.PullOpen, At: now},
			job.PullChanged{Branch: "docent/job_a", Link: "/pulls/pr_1", State: api.PullMerged, At: now},
			job.Failed{Reason: api.HaltError, Message: strings.Repeat("x", 3000), At: now})
		h.said("thr_a", thread.Opened{Project: "docs", At: now},
			thread.Asked{Exchange: thread.Exchange{Turn: "msg_1", Question: "How?", Asked: now, Page: "/a", Channel: api.ChannelWeb}},
			thread.Answered{Turn: "msg_1", At: now, Channel: api.ChannelWeb},
			thread.Asked{Exchange: thread.Exchange{Turn: "msg_2", Question: "Why?", Asked: now, Channel: api.ChannelAPI}},
			thread.Answered{Turn: "msg_2", Answered: true, At: now, Channel: api.ChannelAPI},
			thread.Rated{Turn: "msg_2", Feedback: thread.Feedback{Rating: api.RatedUp, At: now}},
			thread.Rated{Turn: "msg_2", Feedback: thread.Feedback{Rating: api.RatedDown, Comment: "no", At: now}},
			thread.Asked{Exchange: thread.Exchange{Turn: "msg_3", Question: "Try?", Asked: now, Channel: api.ChannelPlayground}},
			thread.Answered{Turn: "msg_3", At: now, Channel: api.ChannelPlayground},
			thread.Rated{Turn: "msg_3", Feedback: thread.Feedback{Rating: api.RatedDown, At: now}, Channel: api.ChannelPlayground})
		settle()
		const page = "https://docent.example.com/console/default/docs.example.com/"
		pull := "pull https://docent.example.com/pulls/pr_1 "
		j := page + `jobs/job_a "Rename a" `
		want := []string{
			"pull_request.opened " + j + ` "" waiting 0 ` + pull + "docent/job_a open",
			"job.ended " + j + `completed changed "Renamed." waiting 1 ` + pull + " ",
			"job.ended " + j + `cancelled  "cancelled" waiting 0`,
			"pull_request.closed " + j + ` "" waiting 0 ` + pull + "docent/job_a closed",
			"pull_request.merged " + j + ` "" waiting 0 ` + pull + "docent/job_a merged",
			"job.ended " + j + `failed  "` + strings.Repeat("x", maxText) + `…" waiting 0`,
			`question.unanswered msg_1 "How?" on /a by web of ` + page + "conversations/thr_a",
			`answer.rated_down msg_2 "Why?" on  by api of ` + page + `conversations/thr_a because "no"`,
		}
		got := payloads(t, h.post.messages())
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], "  \"\" waiting", ` "" waiting`)
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || strings.ReplaceAll(got[i], "  ", " ") != strings.ReplaceAll(want[i], "  ", " ") {
				t.Fatalf("%d events, want %d; the first that differs:\n%s\nwant\n%s", len(got), len(want), slices.Concat(got, []string{"none"})[i:i+1],
					slices.Concat(want, []string{"none"})[i:i+1])
			}
		}
		ids := h.post.taken(url1)
		if slices.Sort(ids); len(slices.Compact(ids)) != len(want) {
			t.Errorf("ids %v are not one for each event", ids)
		}
	})
}

// The process ends after the receiver has taken an event, and before that is stored: it is sent again, and has the id that
// the receiver knows. Events that nobody has made yet are made after the restart, in their order.
// A weekly report is journaled as receivers get it.
func TestAWeeklyReportIsAnEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.add(url1)
		h.add(url2, api.EventJobEnded)
		body := fmt.Sprintf(`{"type":"report.weekly","version":1,"timestamp":%q,"data":{"project":"docs","week":"2026-W47"}}`,
			time.Now().UTC().Format(time.RFC3339))
		h.post.says(down)
		h.append(reports.Stream("docs"), []journal.Event{{Type: reports.EventType, Data: []byte(body)}})
		h.append(reports.Stream("blog"), []journal.Event{{Type: reports.EventType, Data: []byte(body)}}) // which has no webhook
		settle()
		h.restart()
		h.post.says(nil)
		time.Sleep(time.Minute)
		got := h.post.messages()
		if len(got) != 2 || got[0].ID != "rpt_docs_2026-W47" || got[1].ID != got[0].ID || got[1].URL != url1 || string(got[1].Body) != body {
			t.Errorf("sent are %+v", got)
		}
	})
}

func TestACrashRepeatsEventsAndLosesNone(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, _ := h.add(url1)
		h.broken.fail = 1000 // until the process ends
		h.ends(1)
		settle()
		h.restart()
		h.ends(2)
		h.stop() // at once: nothing is made of it yet, and what was sent before may have been sent once more
		h.open()
		h.ends(3)
		settle()
		h.restart()
		settle()
		got := h.post.taken(url1)
		if len(got) < 4 || len(got) > 5 || got[0] != got[1] || len(slices.Compact(slices.Clone(got))) != 3 {
			t.Errorf("taken are %v", got)
		}
		if s := h.status(w.ID).State; s.Position != h.journal.Position() || s.Error != "" {
			t.Errorf("its state is %+v, the journal's end %d", s, h.journal.Position())
		}
	})
}

func TestAWebhookMayBeThereBeforeTheFirstEventsAreMade(t *testing.T) {
	inHouse(t, true, func(t *testing.T, h *house) {
		h.ends(1)
		h.add(url1)
		h.ends(2)
		h.add(url2)
		h.ends(3)
		h.hooks.Wake()
		settle()
		if first, second := h.post.taken(url1), h.post.taken(url2); len(first) != 2 || len(second) != 1 || second[0] != first[1] {
			t.Errorf("taken are %v and %v", first, second)
		}
	})
}

func TestAReceiverThatIsDownForThreeDays(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, _ := h.add(url1)
		h.post.says(func(m outbound.Message) (outbound.Answer, error) {
			if m.URL == url1 {
				return down(m)
			}
			return outbound.Answer{Code: 200}, nil
		})
		h.add(url2)
		began := time.Now()
		for n := range 5 {
			h.ends(n)
		}
		settle()
		if got := h.post.taken(url2); len(got) != 5 {
			t.Fatalf("the other receiver took %d of 5", len(got))
		}
		time.Sleep(tryFor - time.Hour)
		first := h.post.taken(url2)[0]
		var times []time.Duration
		for _, m := range h.post.messages() {
			if m.URL == url1 {
				if m.ID != first {
					t.Fatalf("%s is sent before %s is taken or given up", m.ID, first)
				}
				times = append(times, m.At.Sub(began))
			}
		}
		if len(times) < 70 || len(times) > 90 {
			t.Errorf("%d attempts in three days", len(times))
		}
		for i := 1; i < len(times); i++ {
			if pause, atLeast := times[i]-times[i-1], pauses[min(i, len(pauses))-1]; pause < atLeast || pause > atLeast+tick {
				t.Errorf("attempt %d comes after %v, want %v", i+1, pause, atLeast)
			}
		}
		if s := h.status(w.ID); s.State.Failing != nil || s.Condition() != "retrying" {
			t.Errorf("within three days it is %s", s.Condition())
		}
		late := h.ends(99) // young when the old ones are given up
		time.Sleep(7 * time.Hour)
		s := h.status(w.ID)
		if s.Condition() != "failing" || s.State.Missed != 5 || !strings.Contains(s.State.Error, "503") {
			t.Fatalf("after three days it is %s: %+v", s.Condition(), s.State)
		}
		list, err := h.catalog.Deliveries(t.Context(), w.ID, 100)
		if err != nil || len(list) != 6 {
			t.Fatalf("%d deliveries, %v", len(list), err)
		}
		for i, d := range list {
			if want := map[bool]api.DeliveryStatus{true: api.DeliveryWaiting, false: api.DeliveryGivenUp}[i == 0]; d.Status != want || d.Attempts < 1 {
				t.Errorf("delivery %d: %+v, want %s", i, d, want)
			}
		}
		h.post.says(nil)
		time.Sleep(2 * time.Hour)
		if s = h.status(w.ID); s.Condition() != "ok" || s.State.Missed != 0 || s.State.Reached == nil {
			t.Errorf("with the receiver there again: %+v", s.State)
		}
		var last Payload
		messages := h.post.messages()
		if err := json.Unmarshal(messages[len(messages)-1].Body, &last); err != nil || last.Data.Job.ID != late ||
			len(h.post.taken(url1)) != 1 {
			t.Errorf("taken in the end are %v", h.post.taken(url1))
		}
		// What was given up comes when it is asked for, in order, and what came since comes again with it.
		n, err := h.hooks.ReplaySince(t.Context(), w.ID, began.Add(-time.Minute))
		h.hooks.Wake()
		settle()
		if want := append(h.post.taken(url1)[:1], h.post.taken(url2)...); err != nil || n != 6 || !slices.Equal(h.post.taken(url1), want) {
			t.Errorf("%d are sent again, %v: taken\n%v, want\n%v", n, err, h.post.taken(url1), want)
		}
	})
}

// One event that a receiver does not take for three days holds up the later ones so long, and is the only one that is lost.
func TestAnEventThatIsNeverTakenIsGivenUpAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, _ := h.add(url1)
		poison := ""
		h.post.says(func(m outbound.Message) (outbound.Answer, error) {
			if poison == "" {
				poison = m.ID
			}
			if m.ID == poison {
				return down(m)
			}
			return outbound.Answer{Code: 200}, nil
		})
		for n := range 4 {
			h.ends(n)
		}
		time.Sleep(tryFor + 2*time.Hour)
		if got := h.post.taken(url1); len(got) != 3 || h.status(w.ID).Condition() != "ok" {
			t.Errorf("%d are taken, it is %s", len(got), h.status(w.ID).Condition())
		}
		if d, err := h.hooks.Replay(t.Context(), w.ID, poison); err != nil || d.Status != api.DeliveryFailed || d.Code != 503 {
			t.Errorf("sent again: %+v, %v", d, err)
		}
		h.post.says(nil)
		if d, err := h.hooks.Replay(t.Context(), w.ID, poison); err != nil || d.Status != api.DeliveryDelivered {
			t.Errorf("sent again: %+v, %v", d, err)
		}
		if _, err := h.hooks.Replay(t.Context(), w.ID, "evt_none"); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("an event that does not exist: %v", err)
		}
	})
}

func TestAReceiverThatIsGoneIsTurnedOffAndOneThatStallsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		gone, _ := h.add(url1)
		h.add(url2)
		stalled, _ := h.add("https://stalls.example.com/")
		hang := make(chan struct{})
		h.post.says(func(m outbound.Message) (outbound.Answer, error) {
			switch m.URL {
			case url1:
				return outbound.Answer{Code: 410}, errors.New("the receiver answered 410 Gone")
			case url2:
				return outbound.Answer{Code: 200}, nil
			}
			<-hang
			return outbound.Answer{}, errors.New("the receiver did not answer in time")
		})
		for n := range 3 {
			h.ends(n)
			settle()
		}
		if got := h.post.taken(url2); len(got) != 3 {
			t.Errorf("beside one that stalls, %d of 3 are taken", len(got))
		}
		close(hang)
		time.Sleep(48 * time.Hour)
		w := h.status(gone.ID)
		n := 0
		for _, m := range h.post.messages() {
			if m.URL == url1 {
				n++
			}
		}
		if !w.Off || !strings.Contains(w.OffReason, "410") || n != 1 {
			t.Errorf("after %d requests: %+v", n, w)
		}
		h.post.says(nil)
		for _, id := range []string{gone.ID, stalled.ID} {
			if _, err := h.hooks.Pause(t.Context(), id, false); err != nil {
				t.Fatal(err)
			}
		}
		h.hooks.Wake()
		settle()
		if a, b := h.post.taken(url1), h.post.taken(url2); !slices.Equal(a, b) || h.status(stalled.ID).Condition() != "ok" {
			t.Errorf("resumed, it took %v, want %v", a, b)
		}
	})
}

func TestDeliveriesAreSignedWithBothSecretsDuringARotation(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, first := h.add(url1)
		secretsOf := func() []string {
			t.Helper()
			h.ends(len(h.post.messages()))
			settle()
			messages := h.post.messages()
			return messages[len(messages)-1].Secrets
		}
		if got := secretsOf(); !slices.Equal(got, []string{first}) {
			t.Errorf("signed with %v", got)
		}
		_, second, err := h.hooks.Rotate(t.Context(), w.ID, Overlap)
		if err != nil || !strings.HasPrefix(second, "whsec_") {
			t.Fatal(second, err)
		}
		if got := secretsOf(); !slices.Equal(got, []string{second, first}) {
			t.Errorf("during the rotation signed with %v", got)
		}
		time.Sleep(Overlap)
		if got := secretsOf(); !slices.Equal(got, []string{second}) {
			t.Errorf("after it signed with %v", got)
		}
		if len(h.vault.all) != 1 {
			t.Errorf("%d secrets are kept", len(h.vault.all))
		}
		if _, third, err := h.hooks.Rotate(t.Context(), w.ID, 0); err != nil || !slices.Equal(secretsOf(), []string{third}) || len(h.vault.all) != 1 {
			t.Errorf("without overlap: %v", err)
		}
		if err := h.hooks.Remove(t.Context(), w.ID); err != nil || len(h.vault.all) != 0 {
			t.Errorf("removed: %d secrets are left, %v", len(h.vault.all), err)
		}
	})
}

// A thread that is removed before its event was taken takes the event with it.
func TestWhatWasErasedIsNotTold(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, _ := h.add(url1)
		h.post.says(down)
		now := time.Now()
		h.said("thr_a", thread.Opened{Project: "docs", At: now},
			thread.Asked{Exchange: thread.Exchange{Turn: "msg_1", Question: "my secret", Asked: now}}, thread.Answered{Turn: "msg_1", At: now})
		settle()
		if err := h.journal.Delete(thread.Stream("thr_a")); err != nil {
			t.Fatal(err)
		}
		h.ends(1)
		settle()
		h.post.says(nil)
		time.Sleep(time.Hour)
		if got := h.post.taken(url1); len(got) != 1 || h.status(w.ID).Condition() != "ok" {
			t.Errorf("taken are %v", got)
		}
		if ev, err := h.catalog.NextEvent(t.Context(), "docs", api.EventKinds, 0); err != nil || strings.Contains(string(ev.Payload), "secret") {
			t.Errorf("kept is %s, %v", ev.Payload, err)
		}
	})
}

func TestWhatIsAskedForIsChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		for name, c := range map[string]struct {
			project api.ProjectID
			url     string
			kinds   []api.EventKind
			want    error
		}{
			"an address of this machine": {"docs", "http://127.0.0.1/", nil, api.ErrInvalid},
			"an unknown event":           {"docs", url1, []api.EventKind{"job.began"}, api.ErrInvalid},
			"a test":                     {"docs", url1, []api.EventKind{api.EventTest}, api.ErrInvalid},
			"an unknown project":         {"nobody", url1, nil, api.ErrNotFound},
		} {
			if _, _, err := h.hooks.Add(t.Context(), c.project, c.url, c.kinds, 0); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(h.vault.all) != 0 {
			t.Errorf("secrets are kept for nothing: %v", h.vault.all)
		}
		w, _ := h.add(url1, api.EventPullMerged, api.EventJobEnded, api.EventJobEnded)
		if !reflect.DeepEqual(w.Events, []api.EventKind{api.EventJobEnded, api.EventPullMerged}) {
			t.Errorf("its events are %v", w.Events)
		}
		d, err := h.hooks.Test(t.Context(), w.ID)
		if err != nil || d.Status != api.DeliveryDelivered || d.Kind != api.EventTest {
			t.Errorf("a test: %+v, %v", d, err)
		}
		if _, err := h.hooks.ReplaySince(t.Context(), w.ID, time.Now().Add(-31*24*time.Hour)); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("a replay of before the events: %v", err)
		}
		if _, _, err := h.hooks.Rotate(t.Context(), w.ID, 169*time.Hour); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("a long rotation: %v", err)
		}
	})
}
