package kill

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestReviewCommentsSurviveKills kills the real server at random moments while people comment on its pull request, the
// code host loses answers and refuses, and its webhook delivers each event several times. Every comment of somebody who
// may write has to come to one commit and one answer, in the order in which they were made; those of others to nothing.
func TestReviewCommentsSurviveKills(t *testing.T) {
	harness.SkipShort(t)
	comments, kills := 3, 2
	if need.All {
		comments, kills = 6, 4
	}
	for _, kind := range []api.HostKind{api.HostGitHub, api.HostGitLab, api.HostGitea} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			c := newCommented(t, kind, rand.New(rand.NewPCG(seed, 1)))
			job := c.Settled(c.Create(`replace "Run it." with "Word 0." in guide/setup.md`).ID)
			pulls := c.host.Pulls("")
			if job.Status != api.JobCompleted || len(pulls) != 1 {
				t.Fatalf("job %+v, pull requests %+v", job, pulls)
			}
			number, branch := pulls[0].Number, pulls[0].Head
			c.host.Say(number, "eve", `@docent replace "Word 0." with "Eve was here." in guide/setup.md`)
			c.host.Say(number, "maria", "> @docent replace \"Word 0.\" with \"Quoted.\" in guide/setup.md\n\nWho asked for that?")
			for n := range comments {
				text := fmt.Sprintf(`@docent replace "Word %d." with "Word %d."`, n, n+1)
				if n%2 == 0 {
					c.host.SayOn(forgetest.StandInComment{Pull: number, Author: "maria", Body: text, Path: "guide/setup.md", Line: 3,
						Hunk: "@@ -1,3 +1,3 @@\n # Set up\n \n-Run it.\n+Word 0."})
				} else {
					c.host.Say(number, "maria", text+" in guide/setup.md")
				}
				c.answered(number, n+1, kills)
			}
			c.host.Do(func() { c.host.Fault = nil })
			c.deliver(number)
			c.deliver(number)
			c.Settled(job.ID)

			replies := c.host.Replies(number)
			if len(replies) != comments {
				t.Errorf("%d answers: %+v", len(replies), replies)
			}
			commits := c.host.Commits(t, branch)
			for i, r := range replies {
				if !slices.ContainsFunc(commits, func(hash string) bool { return strings.Contains(r.Body, "Done in "+hash) }) {
					t.Errorf("answer %d names no commit of the branch: %q", i, r.Body)
				}
			}
			if len(commits) != comments+2 { // of the documentation's branch, of the job, and of each comment
				t.Errorf("the branch has %d commits: %v", len(commits), commits)
			}
			if got, want := c.host.Git(t, "show", branch+":guide/setup.md"), fmt.Sprintf("Word %d.", comments); !strings.Contains(got, want) {
				t.Errorf("in the end the page says %q", got)
			}
			if len(c.host.Pulls("")) != 1 {
				t.Errorf("pull requests %+v", c.host.Pulls(""))
			}
			c.host.Fsck(t)
			c.Stop()
			if log := c.Log.String(); !strings.Contains(log, "a comment was taken as an instruction") || strings.Contains(log, reviewSecret) {
				t.Error("the log lacks the comments, or has the webhook's secret")
			}
		})
	}
}

const reviewSecret = "the-secret-of-the-webhook"

// A commented is a server whose jobs' pull requests people comment on.
type commented struct {
	*harness.ModelledServer
	host   *forgetest.StandIn
	kind   api.HostKind
	mu     sync.Mutex
	random *rand.Rand
}

func newCommented(t *testing.T, kind api.HostKind, random *rand.Rand) *commented {
	t.Helper()
	host := forgetest.NewStandIn(t)
	host.Do(func() {
		host.Tokens = []string{"a-token"}
		host.People = map[string]string{"maria": "write", "eve": "read"}
	})
	harness.Setenv(t, "COMMENTED_TOKEN", "a-token")
	harness.Setenv(t, "COMMENTED_WEBHOOK", reviewSecret)
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", "", "--host", string(kind), "--host-url", host.URL, "--repository",
		"acme/docs", "--token-env", "COMMENTED_TOKEN", "--webhook-env", "COMMENTED_WEBHOOK")
	c := &commented{ModelledServer: &harness.ModelledServer{Server: harness.NewServer(t, data), Project: p}, host: host,
		kind: kind, random: random}
	host.Do(func() { host.Fault = c.fault })
	return c
}

func (c *commented) chance(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// fault loses every eighth answer, of what has acted as well, and refuses for a moment now and then.
func (c *commented) fault(*http.Request) forgetest.Fault {
	switch c.chance(24) {
	case 0:
		return forgetest.Fault{Act: true, Drop: true}
	case 1:
		return forgetest.Fault{Drop: true}
	case 2:
		return forgetest.Fault{Status: http.StatusBadGateway, Body: "bad gateway"}
	}
	return forgetest.Fault{}
}

// answered delivers the webhook and kills the server, until a pull request has so many answers.
func (c *commented) answered(number, want, kills int) {
	c.T.Helper()
	for end := time.Now().Add(5 * time.Minute); len(c.host.Replies(number)) < want; {
		if time.Now().After(end) {
			c.T.Fatalf("%d answers, want %d: %+v\n%s", len(c.host.Replies(number)), want, c.host.Said(number), c.Log)
		}
		c.deliver(number)
		if kills > 0 {
			kills--
			<-time.After(time.Duration(c.chance(600)) * time.Millisecond) // the moment of the kill
			c.Kill()
			c.Start()
			c.deliver(number)
		}
		<-time.After(100 * time.Millisecond) // polls
	}
}

// deliver says twice, as the host's webhook, that there is a comment. What a server that is down misses is lost.
func (c *commented) deliver(number int) {
	c.T.Helper()
	repository := map[string]any{"full_name": "acme/docs"}
	body, event := map[string]any{"action": "created", "issue": map[string]any{"number": number}, "repository": repository}, "issue_comment"
	if c.kind == api.HostGitLab {
		event, body = "Note Hook", map[string]any{"object_kind": "note", "merge_request": map[string]any{"iid": number},
			"project": map[string]any{"path_with_namespace": "acme/docs"}}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		c.T.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(reviewSecret))
	mac.Write(raw)
	for range 2 {
		req, err := http.NewRequestWithContext(c.T.Context(), http.MethodPost, c.URL+"/v1/webhook/"+c.Project.ID+"/push",
			bytes.NewReader(raw))
		if err != nil {
			c.T.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		switch c.kind {
		case api.HostGitHub:
			req.Header.Set("X-GitHub-Event", event)
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		case api.HostGitLab:
			req.Header.Set("X-Gitlab-Event", event)
			req.Header.Set("X-Gitlab-Token", reviewSecret)
		default:
			req.Header.Set("X-Gitea-Event", event)
			req.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode != http.StatusNoContent {
				c.T.Errorf("a delivery was answered %s", res.Status)
			}
		}
	}
}
