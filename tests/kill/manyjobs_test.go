package kill

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/api/stream"
	"docent/internal/race"
	"docent/internal/testing/need"
	"docent/model/modeltest"
	"docent/tests/harness"
)

// TestTwoHundredJobsAtOnce gives a server 200 jobs of 20 steps each, with a model that takes 50 ms a step, while
// readers ask the assistant. Every job must end with its own pull request; what it takes is told. There are 20 jobs
// unless DOCENT_TEST_ALL is set, and under the race detector, whose own memory and time would be measured.
// DOCENT_TEST_JOBS_SOURCE names another folder of documentation, DOCENT_TEST_JOBS_SETTINGS more settings.
func TestTwoHundredJobsAtOnce(t *testing.T) {
	t.Parallel()
	jobs := 200
	if !need.All {
		jobs = 20
	}
	scripts := make([]modeltest.Script, jobs)
	for n := range scripts { // each job's own change: equal ones share a pull request
		steps := []modeltest.Step{harness.Calling(harness.ReadCall("work/page.md"))}
		for i := range 8 {
			steps = append(steps, harness.Calling(harness.ToolCall("grep", map[string]any{"pattern": fmt.Sprint("line ", i)})),
				harness.Calling(harness.EditCall("work/page.md", fmt.Sprintf("Line %d says little.", i),
					fmt.Sprintf("Line %d says %d.", i, n))))
		}
		steps = append(steps, harness.Calling(harness.ToolCall("check", nil)), harness.Calling(harness.FinishCall),
			harness.Calling(harness.FinishCall))
		if len(steps) != 20 {
			t.Fatalf("%d steps", len(steps))
		}
		for i := range steps {
			steps[i].Delay = 50 * time.Millisecond
		}
		scripts[n] = modeltest.Script{Match: fmt.Sprintf("Job %d: say more.", n), Steps: steps}
	}
	peer := harness.NewProvider(t, scripts)
	dir := t.TempDir()
	source := os.Getenv("DOCENT_TEST_JOBS_SOURCE")
	if source == "" {
		source = filepath.Join("..", "..", "docs")
	}
	files := map[string]string{}
	err := filepath.WalkDir(source, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(source, p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Work\n\n")
	for i := range 8 {
		fmt.Fprintf(&page, "Line %d says little.\n\n", i)
	}
	files["work/page.md"] = page.String()
	config := filepath.Join(dir, "docent.toml")
	settings := strings.ReplaceAll(os.Getenv("DOCENT_TEST_JOBS_SETTINGS"), ";", "\n")
	if err := os.WriteFile(config, []byte(settings+"\n"+peer.Config("peer", "openai")), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	project := harness.NewProject(t, data, "docs", harness.WriteFiles(t, files), "--limit-project-hour", "-1",
		"--limit-ip-day", "-1", "--limit-key-month", "-1")
	harness.Setenv(t, "GOMAXPROCS", "2")
	server := harness.NewServer(t, data, "--config", config)
	s := &harness.ModelledServer{Server: server, Peer: peer, Project: project}

	idle := readersDuring(t, s, func() { time.Sleep(3 * time.Second) })
	before := residentBytes(t, server.Cmd.Process.Pid)
	most, stop := int64(0), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				most = max(most, residentBytes(t, server.Cmd.Process.Pid))
			}
		}
	})
	var took time.Duration
	processor := processorTime(t, server.Cmd.Process.Pid)
	ended := make([]api.Job, jobs)
	busy := readersDuring(t, s, func() {
		began := time.Now()
		var wait sync.WaitGroup
		for i := range jobs {
			wait.Go(func() {
				var made api.Job
				body := map[string]string{"prompt": fmt.Sprintf("Job %d: say more.", i), "model": "peer"}
				if err := s.Client(project.Admin).Post(t.Context(), "/v2/agent/"+project.ID+"/job", body, &made); err != nil {
					t.Errorf("job %d: %v", i, err)
					return
				}
				ended[i] = s.AwaitJob(t.Context(), made.ID)
			})
		}
		wait.Wait()
		took = time.Since(began)
	})
	processor = processorTime(t, server.Cmd.Process.Pid) - processor
	close(stop)
	watching.Wait()
	links := map[string]bool{}
	for i, job := range ended {
		if job.Status != api.JobCompleted || job.PRLink == nil || links[*job.PRLink] {
			t.Fatalf("job %d: %+v\n%.4000s", i, job, s.Log.String())
		}
		links[*job.PRLink] = true
	}
	if n := len(peer.Asked()); n != jobs*20 {
		t.Errorf("the model was asked %d times", n)
	}
	if !race.Enabled && most > before+512<<20 {
		t.Errorf("the server grew from %d to %d bytes", before, most)
	}
	t.Logf("%d jobs of 20 steps in %.1f s (%.2f cores); the server had %d MB before and %d MB at most", jobs,
		took.Seconds(), processor.Seconds()/took.Seconds(), before>>20, most>>20)
	t.Logf("an answer's first event: idle p50 %v p99 %v (%d asked), with the jobs p50 %v p99 %v (%d asked)",
		firstEventAt(idle, 50), firstEventAt(idle, 99), len(idle), firstEventAt(busy, 50), firstEventAt(busy, 99), len(busy))
}

func firstEventAt(list []time.Duration, n int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)*n/100, len(list)-1)].Round(100 * time.Microsecond)
}

// readersDuring asks the assistant ten times a second while something goes on, and gives how long each answer's first
// event took.
func readersDuring(t *testing.T, s *harness.ModelledServer, do func()) []time.Duration {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	var mu sync.Mutex
	var times []time.Duration
	var readers sync.WaitGroup
	defer readers.Wait()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			readers.Wait()
			return times
		case <-tick.C:
			readers.Go(func() {
				began := time.Now()
				body := map[string]any{"fp": "anonymous",
					"messages": []any{map[string]any{"role": "user", "content": "How is the index rebuilt?"}}}
				resp, err := s.Client(s.Project.Assistant).Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+
					s.Project.Domain+"/message", body)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
				if _, err := decoder.Next(); err != nil {
					t.Error(err)
					return
				}
				first := time.Since(began)
				mu.Lock()
				times = append(times, first)
				mu.Unlock()
				for {
					if part, err := decoder.Next(); err != nil || part.Kind == stream.Finish {
						return
					}
				}
			})
		}
	}
}

// residentBytes is the memory of a process; zero if the system does not tell.
func residentBytes(t testing.TB, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Error(err)
	}
	return pages * int64(os.Getpagesize())
}

// processorTime is what a process has used of the processor.
func processorTime(t testing.TB, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		t.Error(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
