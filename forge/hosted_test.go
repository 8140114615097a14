package forge_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

// hostKinds are the code hosts that keep pull requests; one of them unless everything runs.
func hostKinds() []api.HostKind {
	if !need.All {
		return []api.HostKind{api.HostGitHub}
	}
	return []api.HostKind{api.HostGitHub, api.HostGitLab, api.HostGitea}
}

const hostToken = "hst_TheTokenThatNobodyMaySee"

// onHosts runs a test on each kind of code host.
func onHosts(t *testing.T, run func(t *testing.T, s *forgetest.StandIn, r *rig)) {
	for _, kind := range hostKinds() {
		t.Run(string(kind), func(t *testing.T) {
			s, p := standIn(t, kind)
			run(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
		})
	}
}

func standIn(t *testing.T, kind api.HostKind) (*forgetest.StandIn, api.Project) {
	t.Helper()
	s := forgetest.NewStandIn(t)
	s.Tokens = []string{hostToken}
	t.Setenv("DOCENT_TEST_TOKEN", hostToken)
	return s, s.Project(kind, "DOCENT_TEST_TOKEN")
}

var quick = forge.Options{WriteGap: time.Nanosecond}

func TestCodeHostsKeepTheContract(t *testing.T) {
	for _, kind := range hostKinds() {
		t.Run(string(kind), func(t *testing.T) {
			forgetest.Test(t, func(t *testing.T) forgetest.Host {
				s, p := standIn(t, kind)
				r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
				t.Cleanup(func() {
					s.Fsck(t)
					if !t.Skipped() {
						fsck(t, r.repository())
					}
				})
				return s.Host(r.Hub, p)
			})
		})
	}
}

// failing lets the next request that matches fail; later ones pass.
func failing(s *forgetest.StandIn, f forgetest.Fault, match func(*http.Request) bool) *atomic.Int32 {
	var met atomic.Int32
	s.Do(func() {
		s.Fault = func(r *http.Request) forgetest.Fault {
			if match(r) && met.Add(1) == 1 {
				return f
			}
			return forgetest.Fault{}
		}
	})
	return &met
}

func creates(r *http.Request) bool {
	return r.Method == http.MethodPost &&
		(strings.HasSuffix(r.URL.Path, "/pulls") || strings.HasSuffix(r.URL.Path, "/merge_requests"))
}

func pushes(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-receive-pack") }

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/")
}

func TestLostAnswersMakeNoSecondPullRequest(t *testing.T) {
	faults := map[string]forgetest.Fault{
		"acted, then dropped": {Act: true, Drop: true},
		"acted, then 500":     {Act: true, Status: 500, Body: `{"message":"Server Error"}`},
		"acted, then 502":     {Act: true, Status: 502, Body: `<html>Bad gateway</html>`},
		"dropped":             {Drop: true},
		"500":                 {Status: 500, Body: `{"message":"Server Error"}`},
	}
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		n := 0
		for name, f := range faults {
			for what, match := range map[string]func(*http.Request) bool{"create": creates, "push": pushes} {
				n++
				branch := fmt.Sprintf("docent/job_%d", n)
				p := forgetest.Publication(r.project, r.tip(t, branch), "# Set up\n\n"+name+" at "+what+".\n")
				met := failing(s, f, match)
				done, err := r.Publish(t.Context(), p)
				if err != nil && !errors.Is(err, forge.ErrTemporary) {
					t.Errorf("%s at %s: %v", name, what, err)
				}
				if met.Load() == 0 {
					t.Fatalf("%s at %s: no request was met", name, what)
				}
				if f.Act && err != nil {
					t.Errorf("%s at %s took effect, but: %v", name, what, err)
				}
				again, err := r.Publish(t.Context(), p)
				if err != nil || done.Commit != "" && (again.Commit != done.Commit || again.Link != done.Link) {
					t.Errorf("%s at %s, repeated: %+v, %v; at first %+v", name, what, again, err, done)
				}
				if got := s.Pulls(branch); len(got) != 1 || got[0].Commit != "" || got[0].Number != again.Number {
					t.Errorf("%s at %s: pull requests %+v", name, what, got)
				}
				if got := s.Commits(t, branch); len(got) != 2 || got[0] != again.Commit {
					t.Errorf("%s at %s: the branch has %v", name, what, got)
				}
			}
		}
	})
}

func TestCrashBetweenPushAndPullRequest(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		crash := errors.New("the process ends")
		for _, step := range []string{"objects", "pushed", "branch", "created", "pull"} {
			dir := t.TempDir()
			p := s.Project(kindOf(t), "DOCENT_TEST_TOKEN")
			r := open(t, dir, p, &forgetest.Pulls{}, forge.Failing(quick, func(at string) error {
				if at == step {
					return crash
				}
				return nil
			}))
			pub := forgetest.Publication(p, r.tip(t, "docent/at_"+step), "# Set up\n\nCrash at "+step+".\n")
			if _, err := r.Publish(t.Context(), pub); !errors.Is(err, crash) {
				t.Fatalf("%s: %v", step, err)
			}
			r = open(t, dir, p, &forgetest.Pulls{}, quick)
			done, err := r.Publish(t.Context(), pub)
			if err != nil {
				t.Fatalf("%s, after the restart: %v", step, err)
			}
			if got := s.Pulls(pub.Branch); len(got) != 1 || got[0].Number != done.Number {
				t.Errorf("%s: pull requests %+v, published %+v", step, got, done)
			}
			if got := s.Commits(t, pub.Branch); len(got) != 2 || got[0] != done.Commit {
				t.Errorf("%s: the branch has %v", step, got)
			}
		}
	})
}

// TestAnotherNodeFindsWhatADeadOneHasPushed has a second node, with a clone of its own, publish again what the first one
// pushed before it died: it builds on a commit that only the first one has.
func TestAnotherNodeFindsWhatADeadOneHasPushed(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		other := open(t, t.TempDir(), r.project, &forgetest.Pulls{}, quick)
		other.sync(t)
		const branch = "docent/job_1"
		first := r.publish(t, branch, put("one.md", "# One\n"))
		p := forgetest.Publication(r.project, r.tip(t, branch), "")
		p.Changes = []forge.Change{put("one.md", "# One\n\nMore.\n")}
		done, err := r.Publish(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := other.Publish(t.Context(), p)
		if err != nil || again.Commit != done.Commit || again.Link != first.Link {
			t.Errorf("published again: %+v, %v; at first %+v", again, err, done)
		}
		if got := s.Pulls(branch); len(got) != 1 {
			t.Errorf("pull requests: %+v", got)
		}
	})
}

// kindOf is the code host that a part of a test is named after.
func kindOf(t *testing.T) api.HostKind {
	_, name, _ := strings.Cut(t.Name(), "/")
	return api.HostKind(name)
}

func TestRefusalsOfHostsArePlainAndFinal(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		p := forgetest.Publication(r.project, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		says := func(doing string, err error, words ...string) {
			t.Helper()
			var host *forge.HostError
			if !errors.As(err, &host) || !errors.Is(err, forge.ErrMisconfigured) || errors.Is(err, forge.ErrTemporary) {
				t.Errorf("%s: %v", doing, err)
				return
			}
			for _, w := range words {
				if !strings.Contains(host.Say, w) {
					t.Errorf("%s says %q without %q", doing, host.Say, w)
				}
			}
		}
		if err := r.Access(t.Context(), r.project); err != nil {
			t.Errorf("access: %v", err)
		}
		s.Do(func() { s.Archived = true })
		says("access to an archived repository", r.Access(t.Context(), r.project), "archived")
		_, err := r.Publish(t.Context(), p)
		says("publishing to an archived repository", err, "archived")
		s.Do(func() { s.Archived, s.Tokens, s.ReadOnly = false, nil, []string{hostToken} })
		says("access with a reading token", r.Access(t.Context(), r.project), "DOCENT_TEST_TOKEN", "not write")
		_, err = r.Publish(t.Context(), p)
		says("publishing with a reading token", err, "not write")
		s.Do(func() { s.ReadOnly = nil })
		says("access with a wrong token", r.Access(t.Context(), r.project), "does not accept", "DOCENT_TEST_TOKEN")
		_, err = r.Publish(t.Context(), p)
		says("publishing with a wrong token", err, "does not accept")
		s.Do(func() { s.Tokens = []string{hostToken} })
		gone := r.project
		gone.Repository = "acme/gone"
		says("access to no repository", r.Access(t.Context(), gone), "acme/gone")
		t.Setenv("DOCENT_TEST_TOKEN", "")
		says("access without a token", r.Access(t.Context(), r.project), "DOCENT_TEST_TOKEN", "empty")
		t.Setenv("DOCENT_TEST_TOKEN", hostToken)
		elsewhere := r.project
		elsewhere.HostURL += "/acme"
		says("a wrong address", r.Access(t.Context(), elsewhere))
		if got := s.Pulls(""); len(got) != 0 {
			t.Errorf("pull requests %+v", got)
		}
		s.Protect(t, p.Branch)
		_, err = r.Publish(t.Context(), p)
		says("publishing to a protected branch", err, "refuses the push", p.Branch)
	})
}

func TestLimitsOfHostsAreObeyed(t *testing.T) {
	clock := time.Now()
	reset := func(after time.Duration) []string { return []string{fmt.Sprint(clock.Add(after).Unix())} }
	date := []string{clock.UTC().Format(http.TimeFormat)}
	limits := map[string]struct {
		fault    forgetest.Fault
		min, max time.Duration
	}{
		"429 with a time": {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"90"}}}, 89 * time.Second,
			91 * time.Second},
		"429 without": {forgetest.Fault{Status: 429, Body: `{"message":"Too many"}`}, 59 * time.Second,
			61 * time.Second},
		"a primary limit": {forgetest.Fault{Status: 403,
			Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": reset(10 * time.Minute), "Date": date},
			Body:   `{"message":"API rate limit exceeded"}`}, 9 * time.Minute, 11 * time.Minute},
		"a secondary limit": {forgetest.Fault{Status: 403,
			Body: `{"message":"You have exceeded a secondary rate limit."}`}, 59 * time.Second, 61 * time.Second},
		"a secondary with time": {forgetest.Fault{Status: 403, Header: http.Header{"Retry-After": {"30"}},
			Body: `{"message":"You have exceeded a secondary rate limit."}`}, 29 * time.Second, 31 * time.Second},
		"a limit of GitLab's": {forgetest.Fault{Status: 429,
			Header: http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": reset(2 * time.Minute), "Date": date}},
			time.Minute, 3 * time.Minute},
		"down for a time": {forgetest.Fault{Status: 503, Header: http.Header{"Retry-After": {"20"}}}, 19 * time.Second,
			21 * time.Second},
	}
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		for name, limit := range limits {
			now := clock
			var mu sync.Mutex
			o := quick
			o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
			r := open(t, t.TempDir(), s.Project(kindOf(t), "DOCENT_TEST_TOKEN"), &forgetest.Pulls{}, o)
			met := failing(s, limit.fault, reads)
			for try := range 3 { // the first is answered so; the others are not even sent
				err := r.Access(t.Context(), r.project)
				var host *forge.HostError
				if !errors.Is(err, forge.ErrTemporary) || !errors.As(err, &host) || host.After < limit.min ||
					host.After > limit.max {
					t.Errorf("%s, try %d: %v (%+v)", name, try, err, host)
				}
			}
			if met.Load() != 1 {
				t.Errorf("%s: %d requests reached the host", name, met.Load())
			}
			mu.Lock()
			now = now.Add(limit.max)
			mu.Unlock()
			if err := r.Access(t.Context(), r.project); err != nil {
				t.Errorf("%s, afterwards: %v", name, err)
			}
		}
	})
}

func TestMomentaryTroubleOfAHostIsSatOut(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		for _, f := range []forgetest.Fault{{Status: 500, Body: "panic"}, {Drop: true}} {
			met := failing(s, f, reads)
			want := int64(2)
			if r.project.Host == api.HostGitLab {
				want = 3 // it is asked about the token, too
			}
			if err := r.Access(t.Context(), r.project); err != nil || int64(met.Load()) != want {
				t.Errorf("%+v: %v after %d requests", f, err, met.Load())
			}
		}
		s.Do(func() { s.Fault = func(r *http.Request) forgetest.Fault { return forgetest.Fault{Status: 500} } })
		if err := r.Access(t.Context(), r.project); !errors.Is(err, forge.ErrTemporary) {
			t.Errorf("trouble that stays: %v", err)
		}
		s.Do(func() {
			s.Fault = func(r *http.Request) forgetest.Fault { return forgetest.Fault{Status: 200, Body: "<html>"} }
		})
		if err := r.Access(t.Context(), r.project); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("a page instead of the API: %v", err)
		}
		stalling := open(t, t.TempDir(), r.project, &forgetest.Pulls{}, forge.Options{Timeout: 50 * time.Millisecond})
		s.Do(func() { s.Fault = func(r *http.Request) forgetest.Fault { return forgetest.Fault{Stall: true} } })
		if err := stalling.Access(t.Context(), r.project); !errors.Is(err, forge.ErrTemporary) {
			t.Errorf("a host that stalls: %v", err)
		}
	})
}

func TestHostsTokenShowsNowhere(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		var logged bytes.Buffer
		o := quick
		o.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		p := s.Project(kindOf(t), "DOCENT_TEST_TOKEN")
		p.Labels = "docs"
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
		var inURL atomic.Int32
		s.Do(func() {
			s.Seen = func(r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(r.URL.String(), hostToken) || bytes.Contains(body, []byte(hostToken)) {
					inURL.Add(1)
				}
			}
		})
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		done, err := r.Publish(t.Context(), pub)
		if err != nil {
			t.Fatal(err)
		}
		shown := []string{fmt.Sprintf("%+v %+v", done, s.Pulls(""))}
		for _, status := range []int{400, 401, 403, 404, 409, 422, 429, 500} { // the host says it all back
			s.Do(func() {
				s.Fault = func(*http.Request) forgetest.Fault {
					return forgetest.Fault{Status: status, Body: `{"message":"with ` + hostToken + ` no","errors":[{"message":"` +
						hostToken + `"}]}`}
				}
			})
			_, err := r.Publish(t.Context(), pub)
			if err == nil {
				t.Errorf("status %d is no error", status)
			}
			var host *forge.HostError
			if errors.As(err, &host) {
				shown = append(shown, host.Say)
			}
			shown = append(shown, fmt.Sprint(err))
			shown = append(shown, fmt.Sprint(r.Access(t.Context(), p)))
		}
		for _, text := range append(shown, logged.String()) {
			if strings.Contains(text, hostToken) {
				t.Errorf("the token shows: %s", text)
			}
		}
		for name, text := range contents(t, r.dir) {
			if strings.Contains(text, hostToken) {
				t.Errorf("%s holds the token", name)
			}
		}
		if inURL.Load() > 0 {
			t.Error("the token was in an address or a body")
		}
	})
}

func TestDraftsLabelsTemplateAndCoAuthor(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		kind := kindOf(t)
		place := map[api.HostKind]string{api.HostGitHub: ".github/PULL_REQUEST_TEMPLATE.md",
			api.HostGitLab: ".gitlab/merge_request_templates/Default.md", api.HostGitea: ".gitea/pull_request_template.md"}[kind]
		s.Push(t, "main", place,
			"<!-- Thank you! -->\n## What does this change?\n\n<!-- Describe it -->\n\n## Checklist\n\n- [ ] I have read the guide\n")
		p := s.Project(kind, "DOCENT_TEST_TOKEN")
		p.Labels = "docs, by agent"
		o := quick
		o.CoAuthor = func(_ context.Context, id api.KeyID) (string, error) {
			return map[api.KeyID]string{"key_ann": "Ann Example <ann@example.org>", "key_ci": "the CI job"}[id], nil
		}
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		pub.Draft, pub.Asker, pub.Body = true, "key_ann", "The setup is explained."
		done, err := r.Publish(t.Context(), pub)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Pulls(pub.Branch)[0]
		if !got.Draft || !slices.Equal(got.Labels, []string{"docs", "by agent"}) ||
			!strings.Contains(done.Link, "/"+fmt.Sprint(got.Number)) {
			t.Errorf("pull request %+v, published %+v", got, done)
		}
		plain := regexp.MustCompile(`<!--.*?-->\n?`).ReplaceAllString(got.Body, "")
		if want := "## What does this change?\n\nThe setup is explained.\n\n## Checklist\n\n- [ ] I have read the guide"; plain != want {
			t.Errorf("the body is %q, want %q", plain, want)
		}
		if m := s.Git(t, "log", "-1", "--format=%B",
			pub.Branch); m != "docs: explain the setup\n\nCo-authored-by: Ann Example <ann@example.org>" {
			t.Errorf("the commit says %q", m)
		}
		// People tick a box and write around the report; a follow-up changes the report alone.
		edited := strings.Replace(got.Body, "- [ ]", "- [x]", 1) + "\n\nLooks good to me."
		s.Describe(got.Number, edited)
		next := forgetest.Publication(p, r.tip(t, pub.Branch), "# Set up\n\nNewer.\n")
		next.Asker, next.Body = "key_ci", "The setup is explained better."
		if _, err := r.Publish(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		got = s.Pulls(pub.Branch)[0]
		if want := strings.Replace(edited, "explained.", "explained better.", 1); got.Body != want {
			t.Errorf("the body is %q, want %q", got.Body, want)
		}
		if m := s.Git(t, "log", "-1", "--format=%B", pub.Branch); strings.Contains(m, "Co-authored") {
			t.Errorf("the commit says %q", m)
		}
		// A body that somebody has rewritten stays theirs.
		s.Describe(got.Number, "My own words.")
		last := forgetest.Publication(p, r.tip(t, pub.Branch), "# Set up\n\nNewest.\n")
		if _, err := r.Publish(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		if got = s.Pulls(pub.Branch)[0]; got.Body != "My own words." {
			t.Errorf("the body is %q", got.Body)
		}
	})
}

func TestDirectModeFallsBackToAPullRequest(t *testing.T) {
	for _, kind := range append([]api.HostKind{api.HostGit}, hostKinds()...) {
		t.Run(string(kind), func(t *testing.T) {
			s, p := standIn(t, kind)
			p.Direct = true
			if kind == api.HostGit {
				p.HostURL = ""
			}
			var merged atomic.Int32
			o := quick
			o.Merged = func(api.ProjectID) { merged.Add(1) }
			r := open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
			first := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
			stale := forgetest.Publication(p, r.tip(t, "docent/job_2"), "# Set up\n\nStale.\n")
			met := failing(s, forgetest.Fault{Act: true, Drop: true}, pushes)
			merged.Store(0) // what the first reading told
			done, err := r.Publish(t.Context(), first)
			if err != nil || met.Load() == 0 {
				t.Fatal(err)
			}
			if got := s.Commits(t, "main"); len(got) != 2 || got[0] != done.Commit || done.Link != "" ||
				!strings.Contains(done.Text, "main") || merged.Load() != 1 {
				t.Errorf("main has %v, published %+v", got, done)
			}
			if s.Commits(t, first.Branch) != nil || len(s.Pulls("")) != 0 {
				t.Error("a branch or a pull request beside it")
			}
			s.Push(t, "main", "index.md", "# By hand\n")
			if again, err := r.Publish(t.Context(), first); err != nil || again.Commit != done.Commit {
				t.Errorf("repeated: %+v, %v", again, err)
			}
			if _, err := r.Publish(t.Context(), stale); !errors.Is(err, forge.ErrMoved) {
				t.Errorf("on a base that moved: %v", err)
			}
			s.Protect(t, "main")
			before := s.Commits(t, "main")
			next := forgetest.Publication(p, r.tip(t, "docent/job_3"), "# Set up\n\nProtected.\n")
			for range 2 {
				done, err = r.Publish(t.Context(), next)
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Commits(t, next.Branch); len(got) != 4 || got[0] != done.Commit {
				t.Errorf("the branch has %v", got)
			}
			if kind != api.HostGit && (len(s.Pulls(next.Branch)) != 1 || done.Link == "") {
				t.Errorf("pull requests %+v, published %+v", s.Pulls(next.Branch), done)
			}
			if got := s.Commits(t, "main"); !slices.Equal(got, before) {
				t.Error("main moved")
			}
			s.Fsck(t)
		})
	}
}

// A change that a person is to look at first leaves the documentation's branch alone, even if changes go there
// directly.
func TestAChangeForReviewIsNotCommittedDirectly(t *testing.T) {
	for _, kind := range append([]api.HostKind{api.HostGit}, hostKinds()...) {
		t.Run(string(kind), func(t *testing.T) {
			s, p := standIn(t, kind)
			p.Direct = true
			if kind == api.HostGit {
				p.HostURL = ""
			}
			r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
			before := s.Commits(t, "main")
			pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
			pub.Review = true
			var done forge.Published
			for range 2 {
				var err error
				if done, err = r.Publish(t.Context(), pub); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Commits(t, "main"); !slices.Equal(got, before) {
				t.Errorf("main has %v", got)
			}
			if got := s.Commits(t, pub.Branch); len(got) != 2 || got[0] != done.Commit {
				t.Errorf("the branch has %v", got)
			}
			if kind != api.HostGit && (len(s.Pulls(pub.Branch)) != 1 || done.Link == "") {
				t.Errorf("pull requests %+v, published %+v", s.Pulls(pub.Branch), done)
			}
		})
	}
}

func TestBranchThatIsGoneWithItsMerge(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		p := forgetest.Publication(r.project, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		done, err := r.Publish(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		s.Squash(t, p.Branch)
		if again, err := r.Publish(t.Context(), p); err != nil || again.Link != done.Link || again.New {
			t.Errorf("repeated after the merge: %+v, %v", again, err)
		}
		if s.Commits(t, p.Branch) != nil || len(s.Pulls(p.Branch)) != 1 {
			t.Error("the branch is back, or has a second pull request")
		}
		tip := r.tip(t, p.Branch)
		if tip.Pull != api.PullMerged || tip.Commit != s.Commits(t, "main")[0] {
			t.Errorf("tip = %+v", tip)
		}
		onTop := forgetest.Publication(r.project, tip, "# Set up\n\nNewer.\n")
		if _, err := r.Publish(t.Context(), onTop); !errors.Is(err, forge.ErrMoved) {
			t.Errorf("publishing to a merged pull request: %v", err)
		}
	})
}

func TestWhatIsPublishedIsWhatWasReported(t *testing.T) {
	for _, kind := range append([]api.HostKind{api.HostGit}, hostKinds()...) {
		t.Run(string(kind), func(t *testing.T) {
			s, p := standIn(t, kind)
			if kind == api.HostGit {
				p.HostURL = ""
			}
			r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
			pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\nAnd more.\n")
			pub.Changes = append(pub.Changes, put("guide/new.md", "# New page\n"),
				forge.Change{Path: "guide/use.md", Delete: true})
			done, err := r.Publish(t.Context(), pub)
			if err != nil {
				t.Fatal(err)
			}
			s.Fsck(t)
			if got, want := s.Git(t, "diff", "--numstat", "main", done.Commit),
				"1\t0\tguide/new.md\n2\t1\tguide/setup.md\n0\t3\tguide/use.md"; got != want {
				t.Errorf("the diff is\n%s\nwant\n%s", got, want)
			}
			for _, c := range pub.Changes {
				if !c.Delete && s.Git(t, "show", done.Commit+":"+c.Path) != strings.TrimSpace(string(c.Content)) {
					t.Errorf("%s is not what was reported", c.Path)
				}
			}
			if got := s.Git(t, "log", "-1", "--format=%an|%s|%P", pub.Branch); got != "Docent agent|docs: explain the setup|"+
				pub.Parent {
				t.Errorf("log says %s", got)
			}
		})
	}
}

func TestGitHubAppPublishes(t *testing.T) {
	s, p := standIn(t, api.HostGitHub)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "app.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	now := time.Now()
	o := quick
	o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s.Tokens = nil
	s.App = &forgetest.StandInApp{ID: 17, Installation: 4711, Lifetime: time.Hour, Now: o.Now,
		Verify: func(jwt string) error {
			mu.Lock()
			defer mu.Unlock()
			return verifyJWT(jwt, &key.PublicKey, "17", now)
		}}
	p.AppID = 17
	t.Setenv("DOCENT_TEST_TOKEN", "")
	t.Setenv("DOCENT_TEST_TOKEN_FILE", file)
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
	if err := r.Access(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	publish := func(branch string) {
		t.Helper()
		if _, err := r.Publish(t.Context(),
			forgetest.Publication(p, r.tip(t, branch), "# Set up\n\n"+branch+"\n")); err != nil {
			t.Fatal(err)
		}
		if len(s.Pulls(branch)) != 1 {
			t.Errorf("%s has %d pull requests", branch, len(s.Pulls(branch)))
		}
	}
	publish("docent/job_1")
	if s.App.Made != 1 {
		t.Errorf("%d tokens were made for one hour", s.App.Made)
	}
	mu.Lock()
	now = now.Add(56 * time.Minute) // less than five minutes are left
	mu.Unlock()
	publish("docent/job_2")
	if s.App.Made != 2 {
		t.Errorf("%d tokens were made, want a second", s.App.Made)
	}
	s.Do(func() { s.Tokens = nil }) // revoked
	if err := r.Access(t.Context(), p); err != nil {
		t.Errorf("with a token that was revoked: %v", err)
	}
	if s.App.Made != 3 {
		t.Errorf("%d tokens were made, want a third", s.App.Made)
	}
	t.Setenv("DOCENT_TEST_TOKEN", strings.ReplaceAll(string(text), "\n", `\n`)) // as in files of variables
	publish("docent/job_3")
	r = open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
	t.Setenv("DOCENT_TEST_TOKEN", "no key at all")
	if err := r.Access(t.Context(), p); !errors.Is(err, forge.ErrMisconfigured) ||
		strings.Contains(err.Error(), "no key at all") {
		t.Errorf("a key that is none: %v", err)
	}
	t.Setenv("DOCENT_TEST_TOKEN", string(text))
	s.Do(func() { s.App = nil })
	if err := r.Access(t.Context(), p); !errors.Is(err, forge.ErrMisconfigured) ||
		!strings.Contains(err.Error(), "not installed") {
		t.Errorf("an app that is not installed: %v", err)
	}
}

func verifyJWT(jwt string, key *rsa.PublicKey, issuer string, now time.Time) error {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return errors.New("not three parts")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	var claims struct {
		Issuer string `json:"iss"`
		At     int64  `json:"iat"`
		Until  int64  `json:"exp"`
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(data, &claims)
	}
	switch {
	case err != nil:
		return err
	case claims.Issuer != issuer || claims.At > now.Unix() || claims.Until <= now.Unix() || claims.Until-claims.At > 600:
		return fmt.Errorf("claims %+v", claims)
	}
	return nil
}

func TestRedirectOfAHostsAPIKeepsTheToken(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer other.Close()
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		s.Do(func() {
			s.Fault = func(q *http.Request) forgetest.Fault {
				return forgetest.Fault{Status: 301, Header: http.Header{"Location": {other.URL + q.URL.RequestURI()}}}
			}
		})
		if err := r.Access(t.Context(), r.project); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("access = %v", err)
		}
	})
	if leaked.Load() {
		t.Error("the other host was asked")
	}
}

// What a token's scopes leave out is refused before the first job; what a host does not tell of a token is said.
func TestATokenThatMayNotOpenPullRequestsIsRefusedOrItIsSaidThatNobodyKnows(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		open, err := r.Rights(t.Context(), r.project)
		if err != nil || !strings.Contains(open, "DOCENT_TEST_TOKEN") {
			t.Errorf("without scopes: %q, %v", open, err)
		}
		if r.project.Host == api.HostGitea {
			return // it never tells
		}
		for scopes, allowed := range map[string]bool{"api": r.project.Host == api.HostGitLab,
			"repo": r.project.Host == api.HostGitHub, "read:user, write_repository": false} {
			s.Do(func() { s.Scopes = strings.Split(scopes, ", ") })
			switch open, err := r.Rights(t.Context(), r.project); {
			case allowed && (err != nil || open != ""):
				t.Errorf("%s: %q, %v", scopes, open, err)
			case !allowed && (!errors.Is(err, forge.ErrMisconfigured) || !strings.Contains(err.Error(), "pull requests")):
				t.Errorf("%s: %q, %v", scopes, open, err)
			}
		}
	})
}
