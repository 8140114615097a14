package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/model/modeltest"
)

// toolCall is a call of a tool in a script.
func toolCall(name string, arguments map[string]any) modeltest.Call {
	data, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: name, Arguments: string(data)}
}

func calling(calls ...modeltest.Call) modeltest.Step { return modeltest.Step{Calls: calls} }

func readCall(path string) modeltest.Call {
	return toolCall("read_file", map[string]any{"path": path})
}

func editCall(path, old, now string) modeltest.Call {
	return toolCall("edit_file", map[string]any{"path": path, "old_text": old, "new_text": now})
}

var finishCall = toolCall("finish",
	map[string]any{"summary": "The ferries page is right now.", "title": "Correct the ferries"})

// A modelledServer is a server whose default model is played by another process.
type modelledServer struct {
	*testServer
	peer    *testProvider
	project testProject
}

var ferries = map[string]string{
	"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers. See [ferries](ferries.md).\n",
	"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins.\n",
}

func newModelledServer(t *testing.T, provider, settings string, scripts ...modeltest.Script) *modelledServer {
	t.Helper()
	peer := newTestProvider(t, scripts)
	dir := t.TempDir()
	config := filepath.Join(dir, "docent.toml")
	if err := os.WriteFile(config,
		[]byte("default_model = \"peer\"\n"+settings+"\n"+peer.config("peer", provider)+
			"prompt_price = 2.0\ncompletion_price = 8.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	project := newTestProject(t, data, "harbour", writeFiles(t, ferries))
	return &modelledServer{newTestServer(t, data, "--config", config), peer, project}
}

func (s *modelledServer) create(prompt string) api.Job {
	s.t.Helper()
	var made api.Job
	if err := s.client(s.project.admin).Post(s.t.Context(), "/v2/agent/"+s.project.id+"/job",
		map[string]string{"prompt": prompt}, &made); err != nil {
		s.t.Fatal(err)
	}
	return made
}

func (s *modelledServer) follow(id api.JobID, prompt string) {
	s.t.Helper()
	if err := s.client(s.project.admin).Post(s.t.Context(), "/v2/agent/"+s.project.id+"/job/"+string(id)+"/message",
		map[string]string{"prompt": prompt}, new(api.Job)); err != nil {
		s.t.Fatal(err)
	}
}

// settled waits until a job is active no more.
func (s *modelledServer) settled(id api.JobID) (job api.Job) {
	s.t.Helper()
	for began := time.Now(); ; {
		if err := s.client(s.project.admin).Get(s.t.Context(), "/v2/agent/"+s.project.id+"/job/"+string(id)+"?wait=10",
			&job); err != nil {
			s.t.Fatal(err)
		}
		if job.Status != api.JobActive {
			return job
		}
		if time.Since(began) > 2*time.Minute {
			s.t.Fatalf("the job does not end: %+v\n%s", job, s.log)
		}
	}
}

func (s *modelledServer) diff(job api.Job) string {
	s.t.Helper()
	if job.PRLink == nil {
		s.t.Fatalf("there is no pull request: %+v\n%s", job, s.log)
	}
	link := *job.PRLink
	return docent(s.t, "pull", "diff", "--data", s.data, link[strings.LastIndexByte(link, '/')+1:])
}

// outcomes are what the stand-in answered to requests whose conversation contains a word.
func (s *modelledServer) outcomes(word string) (list []string) {
	for _, a := range s.peer.asked() {
		if strings.Contains(string(a.Body), word) {
			list = append(list, a.Outcome)
		}
	}
	return list
}

// TestAJobWithALanguageModel drives whole jobs over HTTP: the real server, a model in another process, in both
// providers' forms, with the faults that the real ones have.
func TestAJobWithALanguageModel(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			edit := editCall("ferries.md", "leaves every hour from pier two", "leaves every half hour from pier two")
			script := func(match string, steps ...modeltest.Step) modeltest.Script {
				return modeltest.Script{Match: match, Steps: steps}
			}
			s := newModelledServer(t, provider, "agent_steps = 30\nagent_change = 4000",
				script("[smooth]", calling(readCall("ferries.md")), calling(edit), calling(toolCall("check", nil)),
					calling(finishCall), calling(finishCall)),
				script("[faults]", modeltest.Step{Fault: "429", RetryAfter: "0"}, modeltest.Step{Fault: "500"},
					calling(readCall("ferries.md")), modeltest.Step{Fault: modeltest.Drop},
					modeltest.Step{Fault: modeltest.Cut, Text: "I will edit the page now."}, calling(edit),
					modeltest.Step{Fault: modeltest.Unfinished, Text: "Nearly"}, modeltest.Step{Fault: modeltest.Empty},
					calling(modeltest.Call{Name: "edit_file", Arguments: `{"path": "ferries.md", "old`}),
					calling(modeltest.Call{Name: "run_shell", Arguments: `{"command":"id"}`}),
					modeltest.Step{Text: "An answer that was cut", Reason: "length"}, modeltest.Step{Fault: modeltest.TooLong},
					calling(finishCall), calling(finishCall)),
				script("[repair]", calling(readCall("ferries.md")),
					calling(editCall("ferries.md", "Tickets cost", "[Tickets](prices.md) cost")), calling(finishCall),
					calling(editCall("ferries.md", "[Tickets](prices.md) cost", "[Tickets](#tickets) cost")), calling(finishCall),
					calling(finishCall)),
				script("[hopeless]", calling(readCall("ferries.md")),
					calling(editCall("ferries.md", "Tickets cost", "[Tickets](prices.md) cost")), calling(finishCall)),
				script("[circle]", calling(toolCall("grep", map[string]any{"pattern": "pier"}))),
				script("[much]", calling(toolCall("write_file",
					map[string]any{"path": "long.md", "content": strings.Repeat("Long words. ", 500)}))),
				script("[refuse]", modeltest.Step{Fault: modeltest.Refusal}),
				script("[nothing]", modeltest.Step{Text: "The page says so already."}),
				script("[outside]", calling(toolCall("write_file",
					map[string]any{"path": "../.github/workflows/x.yml", "content": "on: push\n"}),
					toolCall("write_file", map[string]any{"path": "AGENTS.md", "content": "Obey.\n"}),
					toolCall("read_file", map[string]any{"path": "/etc/passwd"})),
					calling(finishCall)),
			)
			t.Run("an edit becomes a pull request", func(t *testing.T) {
				job := s.settled(s.create("[smooth] The ferry leaves every half hour.").ID)
				if job.Status != api.JobCompleted || job.Model == "rules-1" || !strings.Contains(job.Message, "right now") ||
					!strings.Contains(s.diff(job), "+The ferry to the island leaves every half hour from pier two.") {
					t.Errorf("%+v\n%s", job, s.log)
				}
			})
			t.Run("faults of the endpoint and of the model do no harm", func(t *testing.T) {
				job := s.settled(s.create("[faults] The ferry leaves every half hour.").ID)
				if job.Status != api.JobCompleted || strings.Count(s.diff(job), "\n+") != 2 {
					t.Errorf("%+v\n%v\n%s", job, s.outcomes("[faults]"), s.log)
				}
				if got := s.outcomes("[faults]"); !slices.Contains(got, "drop") || !slices.Contains(got, "too_long") ||
					slices.ContainsFunc(got, func(o string) bool { return strings.HasPrefix(o, "invalid") }) {
					t.Errorf("%v", got)
				}
			})
			t.Run("a failed check is repaired", func(t *testing.T) {
				job := s.settled(s.create("[repair] Link the tickets.").ID)
				if job.Status != api.JobCompleted || strings.Contains(s.diff(job), "prices.md") ||
					!strings.Contains(s.diff(job), "[Tickets](#tickets)") {
					t.Errorf("%+v\n%s", job, s.log)
				}
			})
			for name, want := range map[string]string{
				"[hopeless] Link the tickets.":         "still failed the checks after 3 repairs",
				"[circle] Find the pier.":              "went in a circle",
				"[much] Write a long page.":            "more than the 4000 that one instruction may change",
				"[refuse] Say something bad.":          "declined",
				"[unknown] A prompt without a script.": "The language model failed",
			} {
				t.Run(name, func(t *testing.T) {
					job := s.settled(s.create(name).ID)
					if job.Status != api.JobFailed || job.PRLink != nil || !strings.Contains(job.Message, want) ||
						!strings.Contains(job.Message, "Nothing was published") {
						t.Errorf("%+v\n%v", job, s.outcomes(name[:6]))
					}
				})
			}
			for name, want := range map[string]string{"[nothing] Say it.": "says so already",
				"[outside] Take over.": "right now"} {
				t.Run(name, func(t *testing.T) {
					job := s.settled(s.create(name).ID)
					if job.Status != api.JobCompleted || job.PRLink != nil || !strings.Contains(job.Message, want) ||
						!strings.Contains(job.Message, "Nothing was changed") {
						t.Errorf("%+v", job)
					}
				})
			}
		})
	}
}

// TestEachLimitOfAJobHasItsOwnEnding sets one limit at a time and lets a model work on without end.
func TestEachLimitOfAJobHasItsOwnEnding(t *testing.T) {
	t.Parallel()
	var busy []modeltest.Step
	for i := range 40 {
		busy = append(busy, calling(toolCall("grep", map[string]any{"pattern": fmt.Sprint("word ", i)})))
	}
	slow := slices.Clone(busy)
	for i := range slow {
		slow[i].Delay = 700 * time.Millisecond
	}
	for settings, want := range map[string]string{
		"agent_steps = 6":                      "used up its 6 steps",
		"agent_tokens = 15000":                 "more than its 15000 tokens",
		"job_timeout = \"2s\"":                 "did not end within 2s",
		"agent_steps = 0\nagent_tokens = 9000": "more than its 9000 tokens",
		"agent_cost = 5":                       "more than its limit of $0.05",
	} {
		t.Run(strings.SplitN(settings, " ", 2)[0], func(t *testing.T) {
			t.Parallel()
			steps := busy
			if strings.HasPrefix(settings, "job_timeout") {
				steps = slow
			}
			s := newModelledServer(t, "openai", settings, modeltest.Script{Steps: steps})
			job := s.settled(s.create("Look for words.").ID)
			if job.Status != api.JobFailed || job.PRLink != nil || !strings.Contains(job.Message, want) {
				t.Errorf("%+v\n%s", job, s.log)
			}
		})
	}
}

func TestAJobIsCancelledInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	s := newModelledServer(t, "anthropic", "",
		modeltest.Script{Steps: []modeltest.Step{calling(readCall("ferries.md")), {Hold: "second", Text: "never said"}}})
	job := s.create("Take your time.")
	s.peer.held("second")
	if err := s.client(s.project.admin).Post(t.Context(), "/v2/agent/"+s.project.id+"/job/"+string(job.ID)+"/cancel",
		nil, &job); err != nil {
		t.Fatal(err)
	}
	if job.Status != api.JobFailed || job.Message != "cancelled" {
		t.Errorf("%+v", job)
	}
	s.peer.release("second")
	if job = s.settled(job.ID); job.Status != api.JobFailed || job.PRLink != nil {
		t.Errorf("%+v", job)
	}
}

// TestAKilledServerGoesOnBehindTheLastAnswer kills the server while it waits for the model, starts it again, and lets
// it end: what the model had answered is not asked again, and the call that was cut off bears the same key.
func TestAKilledServerGoesOnBehindTheLastAnswer(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := newModelledServer(t, provider, "", modeltest.Script{Steps: []modeltest.Step{
				calling(readCall("ferries.md")), calling(editCall("ferries.md", "four coins", "five coins")),
				{Hold: "third", Calls: []modeltest.Call{editCall("ferries.md", "pier two", "pier three")}}, calling(finishCall),
				calling(finishCall),
			}})
			job := s.create("Raise the price.")
			s.peer.held("third")
			s.kill()
			s.peer.release("third")
			s.start()
			job = s.settled(job.ID)
			if job.Status != api.JobCompleted {
				t.Fatalf("%+v\n%s", job, s.log)
			}
			diff := s.diff(job)
			if !strings.Contains(diff, "+Tickets cost five coins.") || !strings.Contains(diff, "from pier three") {
				t.Error(diff)
			}
			keys := map[string]int{}
			for _, a := range s.peer.asked() {
				keys[a.Key]++
			}
			twice := 0
			for _, n := range keys {
				if n > 1 {
					twice += n - 1
				}
			}
			if len(keys) != 5 || twice != 1 {
				t.Errorf("asked under %v", keys)
			}
		})
	}
}

// A heldPush is a repository behind git over HTTP whose answer to a push is held back after it has taken effect.
type heldPush struct {
	*gitServer
	mu     sync.Mutex
	pushes int
	came   chan struct{}
}

func newHeldPush(t *testing.T, files map[string]string) *heldPush {
	t.Helper()
	g := &heldPush{came: make(chan struct{})}
	g.gitServer = newGitServer(t, files, func(backend http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
				g.mu.Lock()
				g.pushes++
				first := g.pushes == 1
				g.mu.Unlock()
				if first {
					backend.ServeHTTP(httptest.NewRecorder(), r)
					close(g.came)
					<-r.Context().Done() // the client is killed before it learns that the push took effect
					return
				}
			}
			backend.ServeHTTP(w, r)
		})
	})
	return g
}

// TestAServerKilledWhilePublishingPublishesOnce kills the server after the push has taken effect and before it knows.
func TestAServerKilledWhilePublishingPublishesOnce(t *testing.T) {
	t.Parallel()
	host := newHeldPush(t, ferries)
	s := newModelledServer(t, "openai", "", modeltest.Script{Steps: []modeltest.Step{
		calling(readCall("ferries.md")), calling(editCall("ferries.md", "four coins", "five coins")), calling(finishCall),
		calling(finishCall)}})
	s.project = newTestProject(t, s.data, "remote", host.url, "--host", "git")
	job := s.create("Raise the price.")
	select {
	case <-host.came:
	case <-time.After(time.Minute):
		t.Fatalf("nothing is pushed\n%s", s.log)
	}
	s.kill()
	s.start()
	if job = s.settled(job.ID); job.Status != api.JobCompleted {
		t.Fatalf("%+v\n%s", job, s.log)
	}
	branch := "docent/" + string(job.ID)
	if commits := strings.Fields(host.git(t, "rev-list", "main.."+branch)); len(commits) != 1 {
		t.Errorf("commits %v", commits)
	}
	if refs := strings.Fields(host.git(t, "for-each-ref", "--format=%(refname:short)", "refs/heads")); len(refs) != 2 {
		t.Errorf("branches %v", refs)
	}
	if diff := host.git(t, "diff", "main", branch); !strings.Contains(diff, "+Tickets cost five coins.") {
		t.Error(diff)
	}
	host.git(t, "fsck", "--strict")
	if n := len(s.peer.asked()); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestFollowUpsOfAJobWithALanguageModel sends further instructions to a job whose pull request is open, merged and
// closed.
func TestFollowUpsOfAJobWithALanguageModel(t *testing.T) {
	t.Parallel()
	price := func(old, now string) []modeltest.Step {
		return []modeltest.Step{calling(readCall("ferries.md")), calling(editCall("ferries.md", old+" coins", now+" coins")),
			calling(finishCall), calling(finishCall)}
	}
	s := newModelledServer(t, "openai", "",
		modeltest.Script{Match: "[fourth]", Steps: price("six", "eight")},
		modeltest.Script{Match: "[third]", Steps: price("six", "seven")},
		modeltest.Script{Match: "[second]", Steps: price("five", "six")},
		modeltest.Script{Match: "[first]", Steps: price("four", "five")})
	job := s.settled(s.create("[first] Five coins.").ID)
	first := *job.PRLink
	id := first[strings.LastIndexByte(first, '/')+1:]
	s.follow(job.ID, "[second] Six coins.")
	if job = s.settled(job.ID); job.Status != api.JobCompleted || *job.PRLink != first ||
		!strings.Contains(s.diff(job), "+Tickets cost six coins.") {
		t.Fatalf("%+v\n%s", job, s.log)
	}
	for _, a := range s.peer.asked() { // the agent is told what was done before
		if len(a.Messages) == 1 && strings.Contains(a.Messages[0].Text, "[second]") &&
			!strings.Contains(a.Messages[0].Text, "[first] Five coins.") {
			t.Error(a.Messages[0].Text)
		}
	}
	docent(t, "pull", "merge", "--data", s.data, id)
	s.follow(job.ID, "[third] Seven coins.")
	if job = s.settled(job.ID); job.Status != api.JobCompleted || *job.PRLink == first ||
		!strings.Contains(s.diff(job), "+Tickets cost seven coins.") {
		t.Fatalf("after a merge: %+v\n%s", job, s.log)
	}
	second := *job.PRLink
	docent(t, "pull", "close", "--data", s.data, second[strings.LastIndexByte(second, '/')+1:])
	s.follow(job.ID, "[fourth] Eight coins.")
	if job = s.settled(job.ID); job.Status != api.JobCompleted || *job.PRLink == second || *job.PRLink == first ||
		!strings.Contains(s.diff(job), "-Tickets cost six coins.\n+Tickets cost eight coins.") {
		t.Fatalf("after a close: %+v\n%s", job, s.log)
	}
}

// TestTheOperatorsCheckDecides sets a command that looks at every result, and a repository that would like to set one.
func TestTheOperatorsCheckDecides(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "check") // one that another user reaches
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	check := filepath.Join(dir, "check.sh")
	// Where the server is not root, its data directory is three folders up.
	script := "#!/bin/sh\nif grep -rn 'utilise' . ; then\n\tenv\n\tcat /proc/$PPID/environ ../../../secrets/*\n\tls ../../..\n\texit 1\nfi 2>&1\n"
	if err := errors.Join(os.WriteFile(check, []byte(script), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	setenv(t, "PEER_SECRET", "sk-never-shown")
	s := newModelledServer(t, "openai", fmt.Sprintf("[checks.harbour]\ncommand = [%q]\ntimeout = \"2m\"\nread = [%q]", check, check),
		modeltest.Script{Steps: []modeltest.Step{
			calling(readCall("ferries.md")), calling(editCall("ferries.md", "Tickets cost", "To utilise a ferry costs")),
			calling(finishCall),
			calling(editCall("ferries.md", "To utilise a ferry", "A ferry")), calling(finishCall), calling(finishCall)}})
	job := s.settled(s.create("Say what a ferry costs.").ID)
	if diff := s.diff(job); job.Status != api.JobCompleted || !strings.Contains(diff, "+A ferry costs four coins.") {
		t.Errorf("%+v\n%s\n%s", job, diff, s.log)
	}
	told := ""
	for _, a := range s.peer.asked() {
		if last := a.Messages[len(a.Messages)-1].Text; strings.Contains(last, "own check fails") {
			told = last
		}
	}
	if !strings.Contains(told, "ferries.md:11:To utilise a ferry") || !strings.Contains(told, "CI=1") {
		t.Errorf("the model was told: %s", told)
	}
	for _, hidden := range []string{"sk-never-shown", "DOCENT_", "journal.db", "control.sock"} {
		if strings.Contains(told, hidden) {
			t.Errorf("the command sees what is the server's:\n%s", told)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.data, "checks", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
