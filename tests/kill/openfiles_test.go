package kill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/tests/harness"
)

// A server that is short of file descriptors once took its repositories for damaged, put them aside, and lost the
// branches of all open pull requests.
func TestPullRequestsOutliveALackOfFileDescriptors(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell to set a limit with")
	}
	const open, more = 40, 40
	files := map[string]string{}
	for i := range 300 { // each job looks at all of them
		files[fmt.Sprintf("guide/page-%03d.md", i)] = fmt.Sprintf("# Page %d\n\nThe word number%d stands here.\n", i, i)
	}
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "docs", harness.WriteFiles(t, files), "--limit-project-hour", "-1", "--limit-ip-day",
		"-1", "--limit-key-month", "-1")
	server := harness.NewServer(t, data)

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	create := func(i int) (api.Job, error) {
		in := client.CreateJob{Prompt: fmt.Sprintf(`replace "number%d" with "changed%d" in guide/page-%03d.md`, i, i, i)}
		for {
			made, err := server.Client(p.Admin).CreateJob(ctx, "docs", in, client.IdempotencyKey(fmt.Sprint("job-", i)))
			if err == nil || ctx.Err() != nil {
				return made, err
			}
			time.Sleep(50 * time.Millisecond) // a connection that was not accepted, or an answer that was not given
		}
	}
	await := func(id api.JobID) (job api.Job) {
		for job.Status != api.JobCompleted && job.Status != api.JobFailed && ctx.Err() == nil {
			job, _ = server.Client(p.Admin).ReadJob(ctx, "docs", string(id))
			time.Sleep(50 * time.Millisecond)
		}
		return job
	}
	together := func(from, to int, each func(i int)) {
		var wait sync.WaitGroup
		slots := make(chan struct{}, 8)
		for i := from; i < to; i++ {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				each(i)
			})
		}
		wait.Wait()
	}
	made := open + more
	links := make([]string, len(files))
	job := func(i int) {
		made, err := create(i)
		if err != nil {
			t.Errorf("job %d: %v", i, err)
			return
		}
		switch done := await(made.ID); {
		case done.Status == api.JobCompleted && done.PRLink != nil:
			links[i] = *done.PRLink
		case i < open, !strings.Contains(done.Message, "again later"):
			t.Errorf("job %d ended as %+v", i, done)
		}
	}
	// shown asks for a pull request's diff. What cannot be answered for the moment is asked for again; what is gone is
	// gone.
	shown := func(i int) {
		if links[i] == "" {
			return
		}
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, links[i]+".diff", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := http.DefaultClient.Do(req)
			var text []byte
			status := 0
			if err == nil {
				status = resp.StatusCode
				text, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			switch {
			case err == nil && status == http.StatusOK &&
				strings.Contains(string(text), fmt.Sprintf("+The word changed%d stands here.", i)):
				return
			case err != nil, status >= 500:
				time.Sleep(50 * time.Millisecond)
			default:
				t.Errorf("pull request %d: %d: %s", i, status, text)
				return
			}
		}
		t.Errorf("pull request %d was not shown", i)
	}

	together(0, open, job)
	if t.Failed() {
		t.Fatal("the pull requests could not be made")
	}
	server.Stop()
	server.Via = []string{"/bin/sh", "-c", `ulimit -n 256 && exec "$0" "$@"`}
	server.Start()

	// Connections that nobody uses take what descriptors there are, until the jobs have met that.
	busy, release := context.WithCancel(ctx)
	var idle sync.WaitGroup
	for range 300 {
		idle.Go(func() {
			for busy.Err() == nil {
				c, err := (&net.Dialer{}).DialContext(busy, "tcp", server.Listen)
				if err != nil {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				stop := context.AfterFunc(busy, func() { c.Close() })
				_, _ = c.Read(make([]byte, 1)) // until the server ends it
				stop()
				c.Close()
			}
		})
	}
	var looking sync.WaitGroup
	looking.Go(func() { together(0, open, shown) })
	looking.Go(func() {
		defer release()
		for ctx.Err() == nil && !met(server.Log.String()) {
			time.Sleep(20 * time.Millisecond)
		}
	})
	together(open, made, job)
	for ; !met(server.Log.String()) && made+more <= len(files) && ctx.Err() == nil; made += more { // those were too quick for it
		together(made, made+more, job)
	}
	if !met(server.Log.String()) {
		t.Error("no job was short of descriptors")
	}
	looking.Wait()
	idle.Wait()

	check := func(when string) {
		t.Helper()
		together(0, made, shown)
		aside, err := filepath.Glob(filepath.Join(data, "repos", "*.damaged-*"))
		if err != nil || len(aside) > 0 {
			t.Errorf("%s: put aside: %v, %v", when, aside, err)
		}
		if t.Failed() {
			t.Fatalf("%s, with this log:\n%s", when, server.Log)
		}
	}
	check("afterwards")
	server.Stop()
	server.Start()
	check("after a restart")
	server.Stop()
	server.Via = nil
	server.Start()
	check("with enough descriptors")
	if _, err := os.Lstat(filepath.Join(data, "repos", "docs.git", "docent-lost")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was noted as lost: %v", err)
	}
}

// met reports whether a job was short of file descriptors, and waited.
func met(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "trying again") && strings.Contains(line, "too many open files") {
			return true
		}
	}
	return false
}
