package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/client"
)

// What a client reads of the operations beside jobs and messages: no more of each answer than a test needs.
type (
	updateStatus struct {
		Status  api.UpdateStatus `json:"status"`
		Summary string           `json:"summary"`
		Logs    []string         `json:"logs"`
		Commit  *struct {
			SHA     string `json:"sha"`
			Ref     string `json:"ref"`
			Message string `json:"message"`
			Files   struct {
				Added    []string `json:"added"`
				Modified []string `json:"modified"`
				Removed  []string `json:"removed"`
			} `json:"filesChanged"`
		} `json:"commit"`
	}
	analyticsRead struct {
		Conversations map[string]any
		Thread        map[string]any
		Callers       map[string]any
		Searches      map[string]any
		Feedback      map[string]any
		Pages         map[string]any
	}
)

// startUpdate asks for an update and gives its id.
func startUpdate(t testing.TB, s *testServer, p testProject) string {
	t.Helper()
	var made struct {
		StatusID string `json:"statusId"`
	}
	if err := s.client(p.admin).Post(t.Context(), "/v1/project/update/"+p.id, nil, &made); err != nil {
		t.Fatal(err)
	}
	return made.StatusID
}

// awaitUpdate polls an update until it has ended.
func awaitUpdate(t testing.TB, s *testServer, p testProject, id string) (u updateStatus) {
	t.Helper()
	until(t, "the update ends", func() bool {
		u = updateStatus{}
		if err := s.client(p.admin).Get(t.Context(), "/v1/project/update-status/"+id, &u); err != nil {
			t.Fatal(err)
		}
		return u.Status == api.UpdateSuccess || u.Status == api.UpdateFailure
	})
	return u
}

func askAs(t testing.TB, s *testServer, p testProject, fp, question string) client.Answer {
	t.Helper()
	return decodeOutput[client.Answer](t, docent(t, "ask", "--url", s.url, "--domain", p.domain, "--key", p.assistant, "--fp", fp, "--json", question))
}

func rateAnswer(t testing.TB, s *testServer, p testProject, a client.Answer, rating, comment string) {
	t.Helper()
	resp, err := s.client(p.assistant).Do(t.Context(), http.MethodPost, "/discovery/v1/feedback/"+p.domain,
		map[string]any{"threadId": a.ThreadID, "messageId": a.MessageID, "rating": rating, "comment": comment})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("a rating is answered %s", resp.Status)
	}
}

func analyticsOf(t testing.TB, s *testServer, p testProject, threadID string) (read analyticsRead) {
	t.Helper()
	base := "/v1/analytics/" + p.id + "/"
	for path, out := range map[string]*map[string]any{
		"assistant": &read.Conversations, "assistant/threads/" + threadID: &read.Thread, "assistant/caller-stats": &read.Callers,
		"searches": &read.Searches, "feedback": &read.Feedback, "feedback/by-page": &read.Pages,
	} {
		if err := s.client(p.admin).Get(t.Context(), base+path, out); err != nil {
			t.Fatal(err)
		}
	}
	return read
}

// TestReadersAreHeardAndTheDocumentationIsReadAnew asks, rates, searches and updates over HTTP, and reads what analytics
// say of it: at once, after a kill, and from listings that were made anew.
func TestReadersAreHeardAndTheDocumentationIsReadAnew(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, harbour)
	p := newTestProject(t, data, "harbour", source)
	server := newTestServer(t, data)

	first := awaitUpdate(t, server, p, startUpdate(t, server, p))
	if first.Status != api.UpdateSuccess || first.Commit == nil || first.Commit.SHA == "" || first.Commit.Ref == "" || len(first.Logs) == 0 {
		t.Fatalf("the first update is %+v", first)
	}
	for name, text := range map[string]string{"ferries.md": "# Ferries\n\nThe ferry to the island leaves every half hour from pier nine.\n", "whales.md": "# Whales\n\nWhales are seen from pier one in June.\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	second := awaitUpdate(t, server, p, startUpdate(t, server, p))
	if second.Status != api.UpdateSuccess || second.Commit.SHA == first.Commit.SHA || !slices.Equal(second.Commit.Files.Added, []string{"whales.md"}) ||
		!slices.Equal(second.Commit.Files.Modified, []string{"ferries.md"}) || len(second.Commit.Files.Removed) != 0 {
		t.Fatalf("the second update is %+v", second)
	}

	good := askAs(t, server, p, "ann", "When are whales seen?")
	if !strings.Contains(good.Text, "June") {
		t.Errorf("the new page is not answered from: %q", good.Text)
	}
	bad := askAs(t, server, p, "bob", "From which pier does the ferry leave?")
	none := askAs(t, server, p, "bob", "How is plutonium enriched?")
	rateAnswer(t, server, p, good, "down", "typo")
	rateAnswer(t, server, p, good, "up", "")
	rateAnswer(t, server, p, bad, "down", "which island?")
	if err := server.client(p.assistant).Post(t.Context(), "/discovery/v1/feedback/"+p.domain,
		map[string]any{"threadId": good.ThreadID, "messageId": bad.MessageID, "rating": "up"}, nil); !notFound(err) {
		t.Errorf("a message of another thread is rated: %v", err)
	}
	for _, q := range []string{"whales", "Tickets", "submarine"} {
		var hits []any
		if err := server.client(p.assistant).Post(t.Context(), "/discovery/v1/search/"+p.domain, map[string]any{"query": q}, &hits); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the searches are counted", func() bool {
		return analyticsOf(t, server, p, good.ThreadID).Searches["totalSearches"] == 3.0
	})
	read := analyticsOf(t, server, p, good.ThreadID)

	wantTotals := map[string]any{"threads": 3.0, "callers": 2.0, "questions": 3.0, "answered": 2.0, "unanswered": 1.0, "failed": 0.0, "thumbsUp": 1.0, "thumbsDown": 1.0}
	if !reflect.DeepEqual(read.Conversations["totals"], wantTotals) {
		t.Errorf("the totals are %v", read.Conversations["totals"])
	}
	conversations := read.Conversations["conversations"].([]any)
	for i, want := range []struct {
		of       client.Answer
		caller   string
		answered string
		rating   any
	}{{none, "bob", "unanswered", nil}, {bad, "bob", "answered", "down"}, {good, "ann", "answered", "up"}} {
		c := conversations[i].(map[string]any)
		if c["id"] != want.of.ThreadID || c["messageId"] != want.of.MessageID || c["response"] != want.of.Text || c["caller"] != want.caller ||
			c["resolutionStatus"] != want.answered || c["rating"] != want.rating || len(c["sources"].([]any)) != len(want.of.Sources) || c["channel"] != "api" {
			t.Errorf("conversation %d is\n%v\nof\n%+v", i, c, want)
		}
	}
	if messages := read.Thread["messages"].([]any); len(messages) != 2 || messages[1].(map[string]any)["feedback"].(map[string]any)["rating"] != "up" {
		t.Errorf("the thread is %v", read.Thread)
	}
	if read.Callers["api"] != 3.0 || read.Callers["total"] != 3.0 || read.Callers["callers"].([]any)[0].(map[string]any)["caller"] != "bob" {
		t.Errorf("the callers are %v", read.Callers)
	}
	found := map[string]any{}
	for _, s := range read.Searches["searches"].([]any) {
		found[s.(map[string]any)["searchQuery"].(string)] = s.(map[string]any)["results"]
	}
	if len(found) != 3 || found["submarine"] != 0.0 || found["whales"] == 0.0 {
		t.Errorf("the searches are %v", found)
	}
	feedback := read.Feedback["feedback"].([]any)
	if len(feedback) != 2 || feedback[0].(map[string]any)["comment"] != "which island?" || feedback[0].(map[string]any)["id"] != bad.MessageID || feedback[1].(map[string]any)["comment"] != nil {
		t.Errorf("the feedback is %v", feedback)
	}
	pages := map[string]string{}
	for _, f := range read.Pages["feedback"].([]any) {
		f := f.(map[string]any)
		pages[f["path"].(string)] = fmt.Sprint(f["thumbsUp"], f["thumbsDown"])
	}
	if pages["/whales"] != "1 0" || pages["/ferries"] == "" {
		t.Errorf("the pages are %v", pages)
	}

	server.kill()
	server.start()
	if again := analyticsOf(t, server, p, good.ThreadID); !reflect.DeepEqual(again, read) {
		t.Errorf("after a kill\n%v\nbefore\n%v", again, read)
	}
	docent(t, "catalog", "rebuild", "--data", data)
	if again := analyticsOf(t, server, p, good.ThreadID); !reflect.DeepEqual(again, read) {
		t.Errorf("made anew\n%v\nbefore\n%v", again, read)
	}
	docent(t, "thread", "delete", "--data", data, "--project", p.id, "--fp", "bob")
	var left struct {
		Totals struct{ Questions, Callers, ThumbsDown int }
	}
	if err := server.client(p.admin).Get(t.Context(), "/v1/analytics/"+p.id+"/assistant", &left); err != nil || left.Totals.Questions != 1 || left.Totals.Callers != 1 || left.Totals.ThumbsDown != 0 {
		t.Errorf("after bob's threads were removed: %+v, %v", left, err)
	}
}

func notFound(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

func TestUpdateOfASourceThatIsGoneFails(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, harbour)
	p := newTestProject(t, data, "harbour", source)
	server := newTestServer(t, data)
	away := source + ".away"
	if err := os.Rename(source, away); err != nil {
		t.Fatal(err)
	}
	failed := awaitUpdate(t, server, p, startUpdate(t, server, p))
	if failed.Status != api.UpdateFailure || !strings.HasPrefix(failed.Summary, "failed: ") || strings.Contains(failed.Summary, source) || !slices.Contains(failed.Logs, failed.Summary) || failed.Commit != nil {
		t.Errorf("without its source the update is %+v", failed)
	}
	if err := os.Rename(away, source); err != nil {
		t.Fatal(err)
	}
	if again := awaitUpdate(t, server, p, startUpdate(t, server, p)); again.Status != api.UpdateSuccess {
		t.Errorf("with its source the update is %+v", again)
	}
}

// TestAcceptedUpdateEndsWhateverHappens kills the server at random moments after it has accepted an update.
func TestAcceptedUpdateEndsWhateverHappens(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, harbour)
	p := newTestProject(t, data, "harbour", source)
	server := newTestServer(t, data)
	var accepted []string
	const kills = 5
	for n := range kills {
		for i := range 300 {
			text := fmt.Sprintf("# Berth %d\n\nShip %d lies at berth %d.\n", i, n, i)
			if err := os.WriteFile(filepath.Join(source, fmt.Sprintf("berth%d.md", i)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		id := startUpdate(t, server, p)
		accepted = append(accepted, id)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // the moment is what is random here
		server.kill()
		server.start()
	}
	for _, id := range slices.Compact(accepted) {
		if u := awaitUpdate(t, server, p, id); u.Status != api.UpdateSuccess {
			t.Errorf("update %s ended as %+v", id, u)
		}
	}
	if a := askAs(t, server, p, "ann", "Which ship lies at berth 17?"); !strings.Contains(a.Text, fmt.Sprintf("Ship %d", kills-1)) {
		t.Errorf("after the updates the answer is %q", a.Text)
	}
}
