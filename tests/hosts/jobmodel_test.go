package hosts

import (
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
	"docent/tests/harness"
)

// TestAJobWithALanguageModel drives whole jobs over HTTP: the real server, a model in another process, in both
// providers' forms, with the faults that the real ones have.
func TestAJobWithALanguageModel(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			edit := harness.EditCall("ferries.md", "leaves every hour from pier two", "leaves every half hour from pier two")
			script := func(match string, steps ...modeltest.Step) modeltest.Script {
				return modeltest.Script{Match: match, Steps: steps}
			}
			s := harness.NewModelledServer(t, provider, "agent_steps = 30\nagent_change = 4000",
				script("[smooth]", harness.Calling(harness.ReadCall("ferries.md")), harness.Calling(edit),
					harness.Calling(harness.ToolCall("check", nil)),
					harness.Calling(harness.FinishCall), harness.Calling(harness.FinishCall)),
				script("[faults]", modeltest.Step{Fault: "429", RetryAfter: "0"}, modeltest.Step{Fault: "500"},
					harness.Calling(harness.ReadCall("ferries.md")), modeltest.Step{Fault: modeltest.Drop},
					modeltest.Step{Fault: modeltest.Cut, Text: "I will edit the page now."}, harness.Calling(edit),
					modeltest.Step{Fault: modeltest.Unfinished, Text: "Nearly"}, modeltest.Step{Fault: modeltest.Empty},
					harness.Calling(modeltest.Call{Name: "edit_file", Arguments: `{"path": "ferries.md", "old`}),
					harness.Calling(modeltest.Call{Name: "run_shell", Arguments: `{"command":"id"}`}),
					modeltest.Step{Text: "An answer that was cut", Reason: "length"}, modeltest.Step{Fault: modeltest.TooLong},
					harness.Calling(harness.FinishCall), harness.Calling(harness.FinishCall)),
				script("[repair]", harness.Calling(harness.ReadCall("ferries.md")),
					harness.Calling(harness.EditCall("ferries.md", "Tickets cost", "[Tickets](prices.md) cost")),
					harness.Calling(harness.FinishCall),
					harness.Calling(harness.EditCall("ferries.md", "[Tickets](prices.md) cost", "[Tickets](#tickets) cost")),
					harness.Calling(harness.FinishCall),
					harness.Calling(harness.FinishCall)),
				script("[hopeless]", harness.Calling(harness.ReadCall("ferries.md")),
					harness.Calling(harness.EditCall("ferries.md", "Tickets cost", "[Tickets](prices.md) cost")),
					harness.Calling(harness.FinishCall)),
				script("[circle]", harness.Calling(harness.ToolCall("grep", map[string]any{"pattern": "pier"}))),
				script("[much]", harness.Calling(harness.ToolCall("write_file",
					map[string]any{"path": "long.md", "content": strings.Repeat("Long words. ", 500)}))),
				script("[refuse]", modeltest.Step{Fault: modeltest.Refusal}),
				script("[nothing]", modeltest.Step{Text: "The page says so already."}),
				script("[outside]", harness.Calling(harness.ToolCall("write_file",
					map[string]any{"path": "../.github/workflows/x.yml", "content": "on: push\n"}),
					harness.ToolCall("write_file", map[string]any{"path": "AGENTS.md", "content": "Obey.\n"}),
					harness.ToolCall("read_file", map[string]any{"path": "/etc/passwd"})),
					harness.Calling(harness.FinishCall)),
			)
			t.Run("an edit becomes a pull request", func(t *testing.T) {
				job := s.Settled(s.Create("[smooth] The ferry leaves every half hour.").ID)
				if job.Status != api.JobCompleted || job.Model == "rules-1" || !strings.Contains(job.Message, "right now") ||
					!strings.Contains(s.Diff(job), "+The ferry to the island leaves every half hour from pier two.") {
					t.Errorf("%+v\n%s", job, s.Log)
				}
			})
			t.Run("faults of the endpoint and of the model do no harm", func(t *testing.T) {
				job := s.Settled(s.Create("[faults] The ferry leaves every half hour.").ID)
				if job.Status != api.JobCompleted || strings.Count(s.Diff(job), "\n+") != 2 {
					t.Errorf("%+v\n%v\n%s", job, s.Outcomes("[faults]"), s.Log)
				}
				if got := s.Outcomes("[faults]"); !slices.Contains(got, "drop") || !slices.Contains(got, "too_long") ||
					slices.ContainsFunc(got, func(o string) bool { return strings.HasPrefix(o, "invalid") }) {
					t.Errorf("%v", got)
				}
			})
			t.Run("a failed check is repaired", func(t *testing.T) {
				job := s.Settled(s.Create("[repair] Link the tickets.").ID)
				if job.Status != api.JobCompleted || strings.Contains(s.Diff(job), "prices.md") ||
					!strings.Contains(s.Diff(job), "[Tickets](#tickets)") {
					t.Errorf("%+v\n%s", job, s.Log)
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
					job := s.Settled(s.Create(name).ID)
					if job.Status != api.JobFailed || job.PRLink != nil || !strings.Contains(job.Message, want) ||
						!strings.Contains(job.Message, "Nothing was published") {
						t.Errorf("%+v\n%v", job, s.Outcomes(name[:6]))
					}
				})
			}
			for name, want := range map[string]string{"[nothing] Say it.": "says so already",
				"[outside] Take over.": "right now"} {
				t.Run(name, func(t *testing.T) {
					job := s.Settled(s.Create(name).ID)
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
		busy = append(busy, harness.Calling(harness.ToolCall("grep", map[string]any{"pattern": fmt.Sprint("word ", i)})))
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
			s := harness.NewModelledServer(t, "openai", settings, modeltest.Script{Steps: steps})
			job := s.Settled(s.Create("Look for words.").ID)
			if job.Status != api.JobFailed || job.PRLink != nil || !strings.Contains(job.Message, want) {
				t.Errorf("%+v\n%s", job, s.Log)
			}
		})
	}
}

func TestAJobIsCancelledInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	s := harness.NewModelledServer(t, "anthropic", "",
		modeltest.Script{Steps: []modeltest.Step{harness.Calling(harness.ReadCall("ferries.md")), {Hold: "second",
			Text: "never said"}}})
	job := s.Create("Take your time.")
	s.Peer.Held("second")
	if err := s.Client(s.Project.Admin).Post(t.Context(), "/v2/agent/"+s.Project.ID+"/job/"+string(job.ID)+"/cancel",
		nil, &job); err != nil {
		t.Fatal(err)
	}
	if job.Status != api.JobFailed || job.Message != "cancelled" {
		t.Errorf("%+v", job)
	}
	s.Peer.Release("second")
	if job = s.Settled(job.ID); job.Status != api.JobFailed || job.PRLink != nil {
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
			s := harness.NewModelledServer(t, provider, "", modeltest.Script{Steps: []modeltest.Step{
				harness.Calling(harness.ReadCall("ferries.md")), harness.Calling(harness.EditCall("ferries.md", "four coins",
					"five coins")),
				{Hold: "third", Calls: []modeltest.Call{harness.EditCall("ferries.md", "pier two",
					"pier three")}}, harness.Calling(harness.FinishCall),
				harness.Calling(harness.FinishCall),
			}})
			job := s.Create("Raise the price.")
			s.Peer.Held("third")
			s.Kill()
			s.Peer.Release("third")
			s.Start()
			job = s.Settled(job.ID)
			if job.Status != api.JobCompleted {
				t.Fatalf("%+v\n%s", job, s.Log)
			}
			diff := s.Diff(job)
			if !strings.Contains(diff, "+Tickets cost five coins.") || !strings.Contains(diff, "from pier three") {
				t.Error(diff)
			}
			keys := map[string]int{}
			for _, a := range s.Peer.Asked() {
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
	*harness.GitServer
	mu     sync.Mutex
	pushes int
	came   chan struct{}
}

func newHeldPush(t *testing.T, files map[string]string) *heldPush {
	t.Helper()
	g := &heldPush{came: make(chan struct{})}
	g.GitServer = harness.NewGitServer(t, files, func(backend http.Handler) http.Handler {
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
	host := newHeldPush(t, harness.Ferries)
	s := harness.NewModelledServer(t, "openai", "", modeltest.Script{Steps: []modeltest.Step{
		harness.Calling(harness.ReadCall("ferries.md")), harness.Calling(harness.EditCall("ferries.md", "four coins",
			"five coins")), harness.Calling(harness.FinishCall),
		harness.Calling(harness.FinishCall)}})
	s.Project = harness.NewProject(t, s.Data, "remote", host.URL, "--host", "git")
	job := s.Create("Raise the price.")
	select {
	case <-host.came:
	case <-time.After(time.Minute):
		t.Fatalf("nothing is pushed\n%s", s.Log)
	}
	s.Kill()
	s.Start()
	if job = s.Settled(job.ID); job.Status != api.JobCompleted {
		t.Fatalf("%+v\n%s", job, s.Log)
	}
	branch := "docent/" + string(job.ID)
	if commits := strings.Fields(host.Git(t, "rev-list", "main.."+branch)); len(commits) != 1 {
		t.Errorf("commits %v", commits)
	}
	if refs := strings.Fields(host.Git(t, "for-each-ref", "--format=%(refname:short)", "refs/heads")); len(refs) != 2 {
		t.Errorf("branches %v", refs)
	}
	if diff := host.Git(t, "diff", "main", branch); !strings.Contains(diff, "+Tickets cost five coins.") {
		t.Error(diff)
	}
	host.Git(t, "fsck", "--strict")
	if n := len(s.Peer.Asked()); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestFollowUpsOfAJobWithALanguageModel sends further instructions to a job whose pull request is open, merged and
// closed.
func TestFollowUpsOfAJobWithALanguageModel(t *testing.T) {
	t.Parallel()
	price := func(old, now string) []modeltest.Step {
		return []modeltest.Step{harness.Calling(harness.ReadCall("ferries.md")),
			harness.Calling(harness.EditCall("ferries.md", old+" coins", now+" coins")),
			harness.Calling(harness.FinishCall), harness.Calling(harness.FinishCall)}
	}
	s := harness.NewModelledServer(t, "openai", "",
		modeltest.Script{Match: "[fourth]", Steps: price("six", "eight")},
		modeltest.Script{Match: "[third]", Steps: price("six", "seven")},
		modeltest.Script{Match: "[second]", Steps: price("five", "six")},
		modeltest.Script{Match: "[first]", Steps: price("four", "five")})
	job := s.Settled(s.Create("[first] Five coins.").ID)
	first := *job.PRLink
	id := first[strings.LastIndexByte(first, '/')+1:]
	s.Follow(job.ID, "[second] Six coins.")
	if job = s.Settled(job.ID); job.Status != api.JobCompleted || *job.PRLink != first ||
		!strings.Contains(s.Diff(job), "+Tickets cost six coins.") {
		t.Fatalf("%+v\n%s", job, s.Log)
	}
	for _, a := range s.Peer.Asked() { // the agent is told what was done before
		if len(a.Messages) == 1 && strings.Contains(a.Messages[0].Text, "[second]") &&
			!strings.Contains(a.Messages[0].Text, "[first] Five coins.") {
			t.Error(a.Messages[0].Text)
		}
	}
	harness.Docent(t, "pull", "merge", "--data", s.Data, id)
	s.Follow(job.ID, "[third] Seven coins.")
	if job = s.Settled(job.ID); job.Status != api.JobCompleted || *job.PRLink == first ||
		!strings.Contains(s.Diff(job), "+Tickets cost seven coins.") {
		t.Fatalf("after a merge: %+v\n%s", job, s.Log)
	}
	second := *job.PRLink
	harness.Docent(t, "pull", "close", "--data", s.Data, second[strings.LastIndexByte(second, '/')+1:])
	s.Follow(job.ID, "[fourth] Eight coins.")
	if job = s.Settled(job.ID); job.Status != api.JobCompleted || *job.PRLink == second || *job.PRLink == first ||
		!strings.Contains(s.Diff(job), "-Tickets cost six coins.\n+Tickets cost eight coins.") {
		t.Fatalf("after a close: %+v\n%s", job, s.Log)
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
	harness.Setenv(t, "PEER_SECRET", "sk-never-shown")
	s := harness.NewModelledServer(t, "openai", fmt.Sprintf("[checks.harbour]\ncommand = [%q]\ntimeout = \"2m\"\nread = [%q]", check, check),
		modeltest.Script{Steps: []modeltest.Step{
			harness.Calling(harness.ReadCall("ferries.md")), harness.Calling(harness.EditCall("ferries.md", "Tickets cost",
				"To utilise a ferry costs")),
			harness.Calling(harness.FinishCall),
			harness.Calling(harness.EditCall("ferries.md", "To utilise a ferry",
				"A ferry")), harness.Calling(harness.FinishCall), harness.Calling(harness.FinishCall)}})
	job := s.Settled(s.Create("Say what a ferry costs.").ID)
	if diff := s.Diff(job); job.Status != api.JobCompleted || !strings.Contains(diff, "+A ferry costs four coins.") {
		t.Errorf("%+v\n%s\n%s", job, diff, s.Log)
	}
	told := ""
	for _, a := range s.Peer.Asked() {
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
	if left, err := filepath.Glob(filepath.Join(s.Data, "checks", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
