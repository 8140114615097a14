package kill

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/config"
	"docent/cmd/docent/server"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// TestAClockThatJumpsBreaksNothing sets the running server's clock back an hour and forward a day, and back again over
// a restart: quotas are kept, listings and threads keep their order, times do not run backwards, and keys find what
// they made.
func TestAClockThatJumpsBreaksNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "clock")
	// The hour in which quotas are counted began ten minutes ago, and does not end in the middle of the test.
	inTheHour := time.Until(time.Now().Truncate(time.Hour).Add(10 * time.Minute))
	set := func(wrong time.Duration) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte((inTheHour + wrong).String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	harness.Setenv(t, harness.ClockFile, file)
	data := filepath.Join(t.TempDir(), "data")
	running := harness.NewServer(t, data)
	source := harness.WriteFiles(t,
		map[string]string{"ferries.md": "# Ferries\n\nThe ferry leaves from pier two.\n\n## Tickets\n\nTickets cost four coins.\n"})
	p := harness.NewProject(t, data, "harbour", source, "--limit-project-hour", "3")
	admin := running.Client(p.Admin)
	base := "/v2/agent/" + p.ID + "/job"

	var made []api.JobID
	create := func(key string) (j api.Job, resp *http.Response, err error) {
		t.Helper()
		var once []client.Option
		if key != "" {
			once = append(once, client.IdempotencyKey(key))
		}
		page := "p" + strconv.Itoa(len(made))
		if key != "" {
			page = "p0" // with its key it is the same request
		}
		resp, err = admin.Do(t.Context(), http.MethodPost, base,
			map[string]string{"prompt": "create page " + page + ".md titled \"P\" with content: \"x\""}, once...)
		if err != nil {
			return j, nil, err
		}
		defer resp.Body.Close()
		return j, resp, json.NewDecoder(resp.Body).Decode(&j)
	}
	keyed := map[string]api.JobID{}
	accepted := func(what, key string, left int) api.Job {
		t.Helper()
		j, resp, err := create(key)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := resp.Header.Get("RateLimit"); !strings.HasPrefix(got, `"project-hour";r=`+strconv.Itoa(left)+";") {
			t.Errorf("%s: %s is left, want %d", what, got, left)
		}
		made = append(made, j.ID)
		if key != "" {
			keyed[key] = j.ID
		}
		return j
	}
	limited := func(what string) {
		t.Helper()
		_, _, err := create("")
		if refused := new(client.Error); !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests {
			t.Errorf("%s: %v, want the limit to hold", what, err)
		}
	}
	listed := func(what string) {
		t.Helper()
		var ids []api.JobID
		for j, err := range admin.Jobs(t.Context(), p.ID, client.JobFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, j.ID)
			if j.UpdatedAt.Before(j.CreatedAt) {
				t.Errorf("%s: job %s was made at %v and changed at %v", what, j.ID, j.CreatedAt, j.UpdatedAt)
			}
		}
		slices.Reverse(ids)
		if !slices.Equal(ids, made) {
			t.Errorf("%s: the listing has, oldest first, %v; made were %v", what, ids, made)
		}
	}
	conversation := ""
	question := func(text string) {
		t.Helper()
		q, err := harness.Ask(t.Context(), running.Client(p.Assistant), p, conversation, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		conversation = string(q.Thread)
	}

	question("What do tickets cost?")
	first, _, err := create("the-first")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, first.ID)
	keyed["the-first"] = first.ID
	awaitJobs(t, running, p, []*acceptedJob{{id: first.ID}})

	set(-time.Hour)
	again, _, err := create("the-first")
	if err != nil || again.ID != first.ID {
		t.Errorf("a key used before the clock was set back: %s, %v, want job %s", again.ID, err, first.ID)
	}
	second := accepted("an hour back", "while-it-was-back", 1)
	if _, err := admin.FollowUp(t.Context(), p.ID, string(first.ID), `append "more" to p0.md`); err != nil {
		t.Fatal(err)
	}
	awaitJobs(t, running, p, []*acceptedJob{{id: first.ID}, {id: second.ID}})
	limited("an hour back, three uses")
	listed("an hour back")
	question("And from where does it leave?")

	set(24 * time.Hour)
	third := accepted("a day forward", "while-it-was-ahead", 2)
	awaitJobs(t, running, p, []*acceptedJob{{id: third.ID}})
	listed("a day forward")
	question("Who sells tickets?")

	set(0)
	limited("back again, four uses")
	for key, id := range keyed {
		if again, _, err := create(key); err != nil || again.ID != id {
			t.Errorf("the key %q after the clock was back: %s, %v, want job %s", key, again.ID, err, id)
		}
	}
	question("What do tickets cost, once more?")
	running.Kill()
	running.Start()
	limited("back again, after a restart")
	for key, id := range keyed {
		if again, _, err := create(key); err != nil || again.ID != id {
			t.Errorf("the key %q after a restart: %s, %v, want job %s", key, again.ID, err, id)
		}
	}
	harness.Docent(t, "project", "set", "--data", data, "--id", p.ID, "--limit-project-hour", "9")
	fourth := accepted("after a restart", "", 4)
	awaitJobs(t, running, p, []*acceptedJob{{id: fourth.ID}})
	listed("after a restart")
	running.Stop()

	dir, err := datadir.Open(data, datadir.Server, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := config.Default()
	c.Data = data
	a, err := server.New(t.Context(), server.Deps{Dir: dir, Config: c, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		a.CancelWork()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	read, err := a.System.Threads().Read(t.Context(), api.ThreadID(conversation),
		thread.Read{Project: api.ProjectID(p.ID)})
	if err != nil {
		t.Fatal(err)
	}
	var questions []string
	var last time.Time
	for _, e := range read.Turns {
		questions = append(questions, e.Question)
		if e.Asked.Before(last) || e.Ended.Before(e.Asked) || !e.Done || e.Error != "" {
			t.Errorf("%q was asked at %v and ended at %v (%s), after %v", e.Question, e.Asked, e.Ended, e.Error, last)
		}
		last = e.Ended
	}
	if want := []string{"What do tickets cost?", "And from where does it leave?", "Who sells tickets?",
		"What do tickets cost, once more?"}; !slices.Equal(questions, want) {
		t.Errorf("the thread has %q, want %q", questions, want)
	}
}
