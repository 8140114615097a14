package harness

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/model/modeltest"
)

// CreateWith is Create with a model that the job names.
func (s *ModelledServer) CreateWith(prompt, model string) api.Job {
	s.T.Helper()
	var made api.Job
	if err := s.Client(s.Project.Admin).Post(s.T.Context(), "/v2/agent/"+s.Project.ID+"/job",
		map[string]string{"prompt": prompt, "model": model}, &made); err != nil {
		s.T.Fatal(err)
	}
	return made
}

// ToolCall is a call of a tool in a script.
func ToolCall(name string, arguments map[string]any) modeltest.Call {
	data, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: name, Arguments: string(data)}
}

// Calling is a step in which the model calls tools.
func Calling(calls ...modeltest.Call) modeltest.Step { return modeltest.Step{Calls: calls} }

// ReadCall has the agent read a page.
func ReadCall(path string) modeltest.Call {
	return ToolCall("read_file", map[string]any{"path": path})
}

// EditCall has the agent replace a text.
func EditCall(path, old, now string) modeltest.Call {
	return ToolCall("edit_file", map[string]any{"path": path, "old_text": old, "new_text": now})
}

// FinishCall ends the agent's work.
var FinishCall = ToolCall("finish",
	map[string]any{"summary": "The ferries page is right now.", "title": "Correct the ferries"})

// A ModelledServer is a server whose default model is played by another process.
type ModelledServer struct {
	*Server
	Peer    *Provider
	Project Project
}

// Ferries are the pages that the scripted model edits.
var Ferries = map[string]string{
	"index.md":   "---\ntitle: Home\n---\n\nThe harbour has three piers. See [ferries](ferries.md).\n",
	"ferries.md": "---\ntitle: Ferries\n---\n\n# Ferries\n\nThe ferry to the island leaves every hour from pier two.\n\n## Tickets\n\nTickets cost four coins.\n",
}

// NewModelledServer starts one on Ferries.
func NewModelledServer(t *testing.T, provider, settings string, scripts ...modeltest.Script) *ModelledServer {
	t.Helper()
	peer := NewProvider(t, scripts)
	dir := t.TempDir()
	config := filepath.Join(dir, "docent.toml")
	if err := os.WriteFile(config,
		[]byte("default_model = \"peer\"\n"+settings+"\n"+peer.Config("peer", provider)+
			"prompt_price = 2.0\ncompletion_price = 8.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	project := NewProject(t, data, "harbour", WriteFiles(t, Ferries))
	return &ModelledServer{NewServer(t, data, "--config", config), peer, project}
}

// Create makes a job.
func (s *ModelledServer) Create(prompt string) api.Job {
	s.T.Helper()
	var made api.Job
	if err := s.Client(s.Project.Admin).Post(s.T.Context(), "/v2/agent/"+s.Project.ID+"/job",
		map[string]string{"prompt": prompt}, &made); err != nil {
		s.T.Fatal(err)
	}
	return made
}

// Follow sends a job one more instruction.
func (s *ModelledServer) Follow(id api.JobID, prompt string) {
	s.T.Helper()
	if err := s.Client(s.Project.Admin).Post(s.T.Context(), "/v2/agent/"+s.Project.ID+"/job/"+string(id)+"/message",
		map[string]string{"prompt": prompt}, new(api.Job)); err != nil {
		s.T.Fatal(err)
	}
}

// Settled waits until a job is active no more.
func (s *ModelledServer) Settled(id api.JobID) (job api.Job) {
	s.T.Helper()
	for began := time.Now(); ; {
		if err := s.Client(s.Project.Admin).Get(s.T.Context(), "/v2/agent/"+s.Project.ID+"/job/"+string(id)+"?wait=10",
			&job); err != nil {
			s.T.Fatal(err)
		}
		if job.Status != api.JobActive {
			return job
		}
		if time.Since(began) > 2*time.Minute {
			s.T.Fatalf("the job does not end: %+v\n%s", job, s.Log)
		}
	}
}

// Diff is what a job changed.
func (s *ModelledServer) Diff(job api.Job) string {
	s.T.Helper()
	if job.PRLink == nil {
		s.T.Fatalf("there is no pull request: %+v\n%s", job, s.Log)
	}
	link := *job.PRLink
	return Docent(s.T, "pull", "diff", "--data", s.Data, link[strings.LastIndexByte(link, '/')+1:])
}

// Outcomes are what the stand-in answered to requests whose conversation contains a word.
func (s *ModelledServer) Outcomes(word string) (list []string) {
	for _, a := range s.Peer.Asked() {
		if strings.Contains(string(a.Body), word) {
			list = append(list, a.Outcome)
		}
	}
	return list
}

// AwaitJob waits until a job is active no more.
func (s *ModelledServer) AwaitJob(ctx context.Context, id api.JobID) api.Job {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	job, err := s.Client(s.Project.Admin).WaitForJob(ctx, s.Project.ID, string(id))
	if err != nil {
		s.T.Errorf("job %s: %v", id, err)
	}
	return job
}
