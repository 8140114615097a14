package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/doctor"
	"docent/tests/harness"
)

// inOwnMounts runs the test that calls it once more, in a process whose mounts are its own and end with it, and says
// whether this is that process. Where the system does not allow that the test is skipped.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	const inside = "DOCENT_TEST_OWN_MOUNTS"
	if os.Getenv(inside) != "" {
		return true
	}
	if err := exec.CommandContext(t.Context(), "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs",
		t.TempDir()).Run(); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.timeout=10m")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Error(err)
	}
	return false
}

// A ballast fills a file system to the last block.
type ballast struct {
	t    *testing.T
	path string
}

func (b ballast) fill() {
	b.t.Helper()
	f, err := os.Create(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) >= 4096; {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b ballast) drop() {
	if err := os.Remove(b.path); err != nil {
		b.t.Fatal(err)
	}
}

// TestADiskThatFillsUpUnderLoad gives the server a small disk of its own, for the journal, the catalog, the indexes
// and the repositories, and fills it to the last block, again and again, while clients create jobs, follow up and ask.
func TestADiskThatFillsUpUnderLoad(t *testing.T) {
	harness.SkipShort(t)
	if !inOwnMounts(t) {
		return
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	data := filepath.Join(disk, "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server := harness.NewServer(t, data)
	admin, reader := server.Client(p.Admin), server.Client(p.Assistant)
	known := new(tally)
	known.jobs = append(known.jobs, &acceptedJob{page: "made/first.md"})
	var first api.Job
	if err := admin.Post(t.Context(), "/v2/agent/"+p.ID+"/job",
		map[string]string{"prompt": `create page made/first.md titled "Page" with content: "made by job"`},
		&first); err != nil {
		t.Fatal(err)
	}
	known.jobs[0].id = first.ID
	awaitJobs(t, server, p, known.jobs)

	load, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for w := range 4 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for n := 0; load.Err() == nil; n++ {
				if w%2 == 0 {
					known.createJobs(load, server.Client(p.Admin), p, 1000*(w+1)+n, random)
				} else {
					known.askQuestions(load, server.Client(p.Assistant), p, random)
				}
				select { // refused: a client that comes again some time later
				case <-load.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	weight := ballast{t, filepath.Join(disk, "ballast")}
	for range 3 {
		accepted := known.count()
		harness.Until(t, "work is accepted", func() bool { return known.count() > accepted+5 })
		weight.fill()
		harness.Until(t, "the server says that it cannot write", func() bool {
			_, err := os.Stat(data) // and the disk stays full
			return err == nil && harness.ServerStatusOf(t, data).Journal.Unavailable
		})
		refusals, reads := 0, 0
		harness.Until(t, "writes are refused, and reads go on", func() bool {
			_, resp, err := postPrompt(t, server, p, "append \"x\" to made/first.md")
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
				refusals++
			case resp.StatusCode >= 300:
				t.Fatalf("a write to the full disk is answered %s", resp.Status)
			}
			var j api.Job
			if err := admin.Get(t.Context(), "/v2/agent/"+p.ID+"/job/"+string(first.ID), &j); err != nil ||
				j.Status != api.JobCompleted {
				t.Fatalf("a job cannot be read: %v, %+v", err, j)
			}
			var found any
			if err := reader.Post(t.Context(), "/discovery/v1/search/"+p.Domain, map[string]any{"query": "tickets"},
				&found); err != nil {
				t.Fatalf("documents cannot be searched: %v", err)
			}
			reads++
			return refusals >= 20
		})
		weight.drop()
		harness.Until(t, "the server takes work again by itself", func() bool {
			return !harness.ServerStatusOf(t,
				data).Journal.Unavailable
		})
	}
	accepted := known.count()
	harness.Until(t, "work is accepted afterwards", func() bool { return known.count() > accepted+5 })
	end()
	clients.Wait()

	// What ran into the full disk may have failed, but has ended; what completed is there once.
	var completed []*acceptedJob
	for _, accepted := range known.jobs {
		var j api.Job
		harness.Until(t, "job "+string(accepted.id)+" ends", func() bool {
			if err := admin.Get(t.Context(), "/v2/agent/"+p.ID+"/job/"+string(accepted.id), &j); err != nil {
				t.Fatalf("acknowledged job %s: %v", accepted.id, err)
			}
			return j.Status != api.JobActive
		})
		if j.Status == api.JobCompleted {
			completed = append(completed, accepted)
		} else {
			t.Logf("job %s: %s", j.ID, j.Message)
		}
	}
	t.Logf("%d of %d jobs completed, %d questions", len(completed), len(known.jobs), len(known.questions))
	checkListing(t, server, p, known.jobs)
	server.Stop()
	checkRepository(t, data, p, completed)
	checkThreads(t, data, "", p, known.questions)
	if out, err := harness.TryDocent(t, "journal", "check", "--data", data); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAServerStartsOnAFullDisk stops and kills a server on a disk that is full to the last block, and starts it there:
// it serves what can be read, refuses writes with 503, and takes work by itself once there is room.
func TestAServerStartsOnAFullDisk(t *testing.T) {
	harness.SkipShort(t)
	if !inOwnMounts(t) {
		return
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	data := filepath.Join(disk, "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server := harness.NewServer(t, data)
	first, _, err := postPrompt(t, server, p, `create page made/first.md titled "Page" with content: "made"`)
	if err != nil {
		t.Fatal(err)
	}
	jobs := []*acceptedJob{{id: first.ID}}
	awaitJobs(t, server, p, jobs)
	weight := ballast{t, filepath.Join(disk, "ballast")}
	for _, end := range []struct {
		name        string
		first, then func()
	}{
		{"stopped, then full", server.Stop, weight.fill},
		{"killed, then full", server.Kill, weight.fill},
		{"full, then killed", weight.fill, server.Kill},
		{"full, then stopped", weight.fill, server.Stop},
	} {
		checkListing(t, server, p, jobs)       // which waits until the listing has followed the journal
		harness.NewKey(t, data, p.ID, "admin") // of which the journal may not have heard
		end.first()
		end.then()
		server.Start()
		admin, reader := server.Client(p.Admin), server.Client(p.Assistant)
		var j api.Job
		if err := admin.Get(t.Context(), "/v2/agent/"+p.ID+"/job/"+string(first.ID), &j); err != nil ||
			j.Status != api.JobCompleted {
			t.Errorf("%s: a job cannot be read: %v, %+v", end.name, err, j)
		}
		var found json.RawMessage
		if err := reader.Post(t.Context(), "/discovery/v1/search/"+p.Domain, map[string]any{"query": "tickets"},
			&found); err != nil || !bytes.Contains(found, []byte("coins")) {
			t.Errorf("%s: documents cannot be searched: %v, %s", end.name, err, found)
		}
		refused := false
		for range 200 { // there may be free pages in the journal's file
			made, resp, err := postPrompt(t, server, p, `create page made/more.md titled "Page" with content: "made"`)
			if err != nil {
				t.Fatal(err)
			}
			if refused = resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != ""; refused {
				break
			}
			jobs = append(jobs, &acceptedJob{id: made.ID})
		}
		if !refused {
			t.Errorf("%s: writes are not refused", end.name)
		}
		harness.Until(t, end.name+": the status says that the disk is full", func() bool {
			if harness.ServerStatusOf(t, data).Journal.Unavailable {
				return true
			}
			// What one of the jobs has written since may have found a free page: there is one less now.
			if made, resp, err := postPrompt(t, server, p, `create page made/more.md titled "Page" with content: "made"`); err == nil && resp.StatusCode < 300 {
				jobs = append(jobs, &acceptedJob{id: made.ID})
			}
			return false
		})
		weight.drop()
		harness.Until(t, "the server takes work again by itself", func() bool {
			made, resp, err := postPrompt(t, server, p, `create page made/after.md titled "Page" with content: "made"`)
			if err == nil && resp.StatusCode < 300 {
				jobs = append(jobs, &acceptedJob{id: made.ID})
			}
			return err == nil && resp.StatusCode < 300
		})
	}
	checkListing(t, server, p, jobs)
}

// count is how much was accepted so far.
func (c *tally) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.jobs) + len(c.questions)
}

// postPrompt asks for a job and returns it, where it was created, and the response, its body read.
func postPrompt(t *testing.T, server *harness.Server, p harness.Project, prompt string) (made api.Job,
	resp *http.Response, err error) {
	body := strings.NewReader(fmt.Sprintf(`{"prompt":%q}`, prompt))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v2/agent/"+p.ID+"/job", body)
	if err != nil {
		return made, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.Admin)
	req.Header.Set("Content-Type", "application/json")
	if resp, err = server.Client(p.Admin).HTTP.Do(req); err != nil {
		return made, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 {
		err = json.Unmarshal(text, &made)
	}
	return made, resp, err
}

// TestAFullDiskRefusesWritesAndPasses takes from the server the right to write beyond the first block of any file, as
// a full disk does, and gives it back.
func TestAFullDiskRefusesWritesAndPasses(t *testing.T) {
	harness.SkipShort(t)
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	server := harness.NewServer(t, data)
	admin, reader := server.Client(p.Admin), server.Client(p.Assistant)
	create := func(n int) (api.Job, *http.Response, error) {
		return postPrompt(t, server, p, fmt.Sprintf("create page made/%d.md titled \"Page\" with content: \"made\"", n))
	}
	first, _, err := create(0)
	if err != nil {
		t.Fatal(err)
	}
	awaitJobs(t, server, p, []*acceptedJob{{id: first.ID}})
	listed := func() {
		t.Helper()
		if out := harness.Docent(t, "job", "list", "--url", server.URL, "--project", p.ID, "--key", p.Admin,
			"--json"); strings.Count(out, "\n") != 1 {
			t.Errorf("jobs cannot be listed: %s", out)
		}
	}
	listed() // which waits until the listing has followed the journal: on a full disk it cannot

	limit := func(bytes uint64) {
		t.Helper()
		var old unix.Rlimit
		pid := server.Cmd.Process.Pid
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &old); err != nil {
			t.Skipf("the server's limits cannot be changed here: %v", err)
		}
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, old.Max), Max: old.Max},
			nil); err != nil {
			t.Skipf("the server's limits cannot be changed here: %v", err)
		}
	}
	limit(4096)
	for n := range 3 {
		_, resp, err := create(1 + n)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("a write to the full disk: %v, %v", err, resp)
		}
	}
	if _, err := harness.Ask(t.Context(), reader, p, "", "What do tickets cost?"); err == nil {
		t.Error("a question was taken that cannot be stored")
	} else if refused := new(client.Error); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("a question: %v", err)
	}
	if !harness.ServerStatusOf(t, data).Journal.Unavailable {
		t.Error("the status does not say that the disk is full")
	}
	var j api.Job
	if err := admin.Get(t.Context(), "/v2/agent/"+p.ID+"/job/"+string(first.ID), &j); err != nil ||
		j.Status != api.JobCompleted {
		t.Errorf("a job cannot be read: %v, %+v", err, j)
	}
	listed()
	var found json.RawMessage
	if err := reader.Post(t.Context(), "/discovery/v1/search/"+p.Domain, map[string]any{"query": "tickets"},
		&found); err != nil || !bytes.Contains(found, []byte("coins")) {
		t.Errorf("documents cannot be searched: %v, %s", err, found)
	}

	limit(unix.RLIM_INFINITY)
	var second api.Job
	harness.Until(t, "the server takes work again by itself", func() bool {
		made, resp, err := create(9)
		second = made
		return err == nil && resp.StatusCode < 300
	})
	awaitJobs(t, server, p, []*acceptedJob{{id: second.ID}})
	if _, err := harness.Ask(t.Context(), reader, p, "", "What do tickets cost?"); err != nil {
		t.Errorf("a question afterwards: %v", err)
	}
	server.Stop()
	if out, err := harness.TryDocent(t, "journal", "check", "--data", data); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTheDoctorSeesAFullDisk runs the doctor on a data directory whose disk is full, and on one that is in memory.
func TestTheDoctorSeesAFullDisk(t *testing.T) {
	harness.SkipShort(t)
	if !inOwnMounts(t) {
		return
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	data := filepath.Join(disk, "data")
	harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	ballast{t, filepath.Join(disk, "ballast")}.fill()
	r, out, err := harness.Examine(t, "--data", data, "--offline")
	if err == nil {
		t.Errorf("the exit status is 0: %s", out)
	}
	harness.Says(t, r, "disk", doctor.Problem, "free of 64.0 MiB")
	harness.Says(t, r, "file system", doctor.Warning, "in memory (tmpfs)")
	harness.Says(t, r, "sync", doctor.Problem, "make room")
}
