package forge_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// busyHost is a code host in Gitea's dialect on which many jobs have left branches and pull requests.
func busyHost(b *testing.B, branches int) (*forge.Hub, api.Project, *forgetest.StandIn) {
	b.Helper()
	s := forgetest.NewStandIn(b)
	const variable = "TOKEN_OF_BUSY_HOST"
	b.Setenv(variable, "secret")
	s.Do(func() { s.Tokens = []string{"secret"} })
	p := s.Project(api.HostGitea, variable)
	commit := s.Git(b, "commit-tree", "main^{tree}", "-p", "main", "-m", "a job")
	for n := range branches {
		branch := fmt.Sprintf("docent/old-%d", n)
		s.Git(b, "update-ref", "refs/heads/"+branch, commit)
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL+"/api/v1/repos/acme/docs/pulls",
			strings.NewReader(fmt.Sprintf(`{"title":"Old","head":%q,"base":"main"}`, branch)))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "token secret")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			b.Fatal(resp.Status)
		}
	}
	hub, err := forge.Open(b.TempDir(), &forgetest.Pulls{Known: map[api.ProjectID]api.Project{p.ID: p}}, forge.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := hub.Sync(b.Context(), p, nil); err != nil {
		b.Fatal(err)
	}
	return hub, p, s
}

func busyJob(b *testing.B, hub *forge.Hub, p api.Project, job string) (tip, publish time.Duration) {
	at := time.Now()
	branch := "docent/" + job
	t, err := hub.Tip(b.Context(), p, branch)
	if err != nil {
		b.Error(err)
		return
	}
	tip = time.Since(at)
	at = time.Now()
	_, err = hub.Publish(b.Context(),
		forge.Publication{Project: p, Job: api.JobID(job), Branch: branch, Base: t.Base, Parent: t.Commit,
			Changes: []forge.Change{{Path: "made/" + job + ".md", Content: []byte("# " + job + "\n")}}, Message: "Make " + job,
			At: time.Unix(1e9, 0), Title: job, Body: strings.Repeat("body ", 20)})
	if err != nil {
		b.Error(err)
	}
	return tip, time.Since(at)
}

// What a job costs on the built-in host after 2,000 others, as a backlog of 16 at a time.
func BenchmarkJobsOnTheBuiltInHost(b *testing.B) {
	hub, p, _ := benchHub(b, mintlify(b))
	for n := range 2000 {
		busyJob(b, hub, p, fmt.Sprintf("old-%d", n))
	}
	n := 0
	for b.Loop() {
		var jobs sync.WaitGroup
		for range 16 {
			n++
			job := fmt.Sprintf("job-%d", n)
			jobs.Go(func() { busyJob(b, hub, p, job) })
		}
		jobs.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/job")
}

// What a job costs on a code host with 600 open pull requests: a job's state, and its commit with a pull request; one
// after the other, and as a backlog of 16 at a time.
func BenchmarkJobsOnABusyHost(b *testing.B) {
	for _, at := range []int{1, 16} {
		b.Run(fmt.Sprint(at), func(b *testing.B) {
			hub, p, s := busyHost(b, 600)
			var git, asked atomic.Int64
			s.Do(func() {
				s.Seen = func(r *http.Request) {
					if strings.Contains(r.URL.Path, "/api/") {
						asked.Add(1)
					} else {
						git.Add(1)
					}
				}
			})
			var mu sync.Mutex
			var tips, publishes time.Duration
			n := 0
			for b.Loop() {
				var jobs sync.WaitGroup
				for range at {
					n++
					job := fmt.Sprintf("job-%d", n)
					jobs.Go(func() {
						tip, publish := busyJob(b, hub, p, job)
						mu.Lock()
						defer mu.Unlock()
						tips, publishes = tips+tip, publishes+publish
					})
				}
				jobs.Wait()
			}
			b.ReportMetric(float64(tips.Milliseconds())/float64(n), "ms/tip")
			b.ReportMetric(float64(publishes.Milliseconds())/float64(n), "ms/publish")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(n), "ms/job")
			b.ReportMetric(float64(git.Load())/float64(n), "git-requests/job")
			b.ReportMetric(float64(asked.Load())/float64(n), "api-requests/job")
		})
	}
}
