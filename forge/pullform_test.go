package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// dco is what the DCO app has against a commit that is not its owner's: the rules of lib/dco.js of github.com/dcoapp/app.
func dco(name, email, message string) error {
	signed := regexp.MustCompile(`(?im)^Signed-off-by: (.*) <(.*)>$`).FindAllStringSubmatch(message, -1)
	if len(signed) == 0 {
		return errors.New("the sign-off is missing")
	}
	// As email-validator has it, which that app uses.
	valid := regexp.MustCompile("^[-!#$%&'*+/0-9=?A-Z^_a-z`{|}~](\\.?[-!#$%&'*+/0-9=?A-Z^_a-z`{|}~])*@[a-zA-Z0-9](-*\\.?[a-zA-Z0-9])*\\.[a-zA-Z](-?[a-zA-Z0-9])+$")
	if !valid.MatchString(email) {
		return fmt.Errorf("%s is not a valid email address", email)
	}
	for _, s := range signed {
		if strings.EqualFold(s[1], name) && strings.EqualFold(s[2], email) {
			return nil
		}
	}
	return fmt.Errorf("expected %q, but got %q", name+" <"+email+">", signed)
}

// cla are whom checks of contributor license agreements ask to have signed for a commit, by what they read of it: cla-assistant
// (getPRCommitters of github.com/cla-assistant/cla-assistant) the account of the author's address and, where that has none, the
// committer's; EasyCLA (github_models.py of github.com/communitybridge/easycla) the author's and the co-authors'. Which
// account an address belongs to, and whether it has signed, is known to the host and to the check alone.
func cla(t *testing.T, s *forgetest.StandIn, commit string) (assistant, easy []string) {
	t.Helper()
	of := func(format string) []string {
		return slices.DeleteFunc(strings.Split(s.Git(t, "log", "-1", "--format="+format, commit), "\n"), func(l string) bool { return l == "" })
	}
	author := of("%an <%ae>")
	return append(author, of("%cn <%ce>")...), append(slices.Clone(author), of("%(trailers:key=Co-authored-by,valueonly)")...)
}

// Each commit of a pull request passes the check of the DCO, and its sign-off is a trailer as git reads it: also beside
// that of who asked for it, after a crash between commit and push, and in a follow-up. Checks of a CLA find the project's
// author alone, and EasyCLA the person that an API key names.
func TestCommitsPassTheDCO(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		p := s.Project(kindOf(t), "DOCENT_TEST_TOKEN")
		o := quick
		o.CoAuthor = func(_ context.Context, id api.KeyID) (string, error) {
			return map[api.KeyID]string{"key_ann": "Ann Example <ann@example.org>"}[id], nil
		}
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, o)
		for i, asker := range []api.KeyID{"key_ann", "key_ci", ""} {
			pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), fmt.Sprintf("# Set up\n\n%d\n", i))
			pub.Asker, pub.Author, pub.SignOff = asker, "Docs Bot <docs@acme.example>", true
			pub.Message = "docs: explain the setup\n\n- on one page\n\nJob: job_1\n"
			failing(s, forgetest.Fault{Act: true, Drop: true}, pushes)
			if _, err := r.Publish(t.Context(), pub); err != nil {
				t.Fatal(err)
			}
		}
		commits := s.Commits(t, "docent/job_1")
		if len(commits) != 4 {
			t.Fatalf("%d commits", len(commits))
		}
		const bot = "Docs Bot <docs@acme.example>"
		for i, c := range commits[:3] { // the newest first
			wanted := []string{bot}
			if i == 2 {
				wanted = append(wanted, "Ann Example <ann@example.org>")
			}
			if assistant, easy := cla(t, s, c); !slices.Equal(assistant, []string{bot, bot}) || !slices.Equal(easy, wanted) {
				t.Errorf("the CLA is asked of %q and of %q", assistant, easy)
			}
			name, email := s.Git(t, "log", "-1", "--format=%an", c), s.Git(t, "log", "-1", "--format=%ae", c)
			if err := dco(name, email, s.Git(t, "log", "-1", "--format=%B", c)); err != nil || name != "Docs Bot" {
				t.Errorf("%s <%s>: %v", name, email, err)
			}
			if got := s.Git(t, "log", "-1", "--format=%(trailers:key=Signed-off-by,valueonly)", c); got != bot {
				t.Errorf("git reads the trailer %q", got)
			}
		}
	})
}

// The commits of a GitHub App are by its account, with the address by which GitHub knows it.
func TestCommitsOfAnAppAreByItsAccount(t *testing.T) {
	s, p := standIn(t, api.HostGitHub)
	t.Setenv("DOCENT_TEST_TOKEN", appKey(t))
	s.Tokens = nil
	s.App = &forgetest.StandInApp{ID: 17, Installation: 4711, Slug: "acme-docs", Lifetime: time.Hour, Now: time.Now,
		Verify: func(string) error { return nil }}
	p.AppID = 17
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
	want := regexp.MustCompile(`^acme-docs\[bot\] <[0-9]+\+acme-docs\[bot\]@users\.noreply\.127\.0\.0\.1:[0-9]+>$`)
	if got := r.tip(t, "docent/job_1").Author; !want.MatchString(got) {
		t.Errorf("the author is %q", got)
	}
	failing(s, forgetest.Fault{Status: http.StatusNotFound, Body: `{"message":"Not Found"}`}, func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/users/")
	})
	r = open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
	if got := r.tip(t, "docent/job_1").Author; got != "" {
		t.Errorf("the author of an account that is not told is %q", got)
	}
	p.Pulls.Author = "Docs <docs@acme.example>"
	r.project = p
	if got := r.tip(t, "docent/job_1").Author; got != p.Pulls.Author {
		t.Errorf("the author is %q", got)
	}
}

// Reviewers are asked once, whatever becomes of an answer: when the pull request is opened, and later only who follows
// from the change. Whom the host refuses costs nobody else the question.
func TestReviewersAreAskedOnce(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		kind := kindOf(t)
		s.People = map[string]string{"ann": "write", "lea": "write", "max": "write"}
		s.Teams = []string{"writers"}
		s.Push(t, "main", "CODEOWNERS", "* @max\n/guide/ @lea @stranger docs@acme.example\n/guide/api.md\n")
		p := s.Project(kind, "DOCENT_TEST_TOKEN")
		p.Pulls.Reviewers = "@ann, acme/writers, codeowners, docent-bot, code-authors"
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
		want := map[api.HostKind][]string{api.HostGitHub: {"ann", "acme/writers", "lea"}, api.HostGitLab: {"ann", "lea"},
			api.HostGitea: {"ann", "acme/writers"}}[kind] // Gitea reads CODEOWNERS itself
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		var met int
		s.Do(func() {
			s.Fault = func(r *http.Request) forgetest.Fault {
				if !asks(r) || met == 4 {
					return forgetest.Fault{}
				}
				met++
				return forgetest.Fault{Act: true, Drop: true}
			}
		})
		var err error
		for range 8 { // the answers are lost, and at last it crashes behind one that came
			if _, err = r.Publish(t.Context(), pub); err != nil && !errors.Is(err, forge.ErrTemporary) {
				t.Fatal(err)
			}
		}
		if met < 2 || err != nil {
			t.Fatalf("%d answers were lost, %v", met, err)
		}
		s.Do(func() { s.Fault = nil })
		got := s.Pulls(pub.Branch)[0]
		slices.Sort(got.Reviewers)
		slices.Sort(want)
		if !slices.Equal(got.Reviewers, want) || got.Asked != len(want) {
			t.Errorf("%d were asked: %v, want %v", got.Asked, got.Reviewers, want)
		}
		// One has reviewed it; a follow-up asks the author of what it follows alone.
		s.Submit(s.Draft(got.Number, "ann", "Fine.", forgetest.StandInComment{Path: "guide/setup.md", Line: 1, Body: "Fine."}))
		next := forgetest.Publication(p, r.tip(t, pub.Branch), "# Set up\n\nNewer.\n")
		next.Reviewers = []string{"max", "Ann"}
		for range 2 {
			if _, err := r.Publish(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		}
		got = s.Pulls(pub.Branch)[0]
		if !slices.Contains(got.Reviewers, "max") || len(got.Reviewers) != len(want)+1 || got.Asked != len(want)+1 {
			t.Errorf("%d were asked: %v", got.Asked, got.Reviewers)
		}
	})
}

func asks(r *http.Request) bool {
	return r.Method != http.MethodGet && (strings.HasSuffix(r.URL.Path, "/requested_reviewers") ||
		r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/merge_requests/"))
}

// A project's own text takes the place of the repository's template.
func TestAProjectsOwnTextOfPullRequests(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		s.Push(t, "main", "PULL_REQUEST_TEMPLATE.md", "## What\n")
		p := s.Project(kindOf(t), "DOCENT_TEST_TOKEN")
		p.Pulls.Body = "Part of #12.\n\n{report}\n\n- [ ] read"
		r := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick)
		pub := forgetest.Publication(p, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
		if _, err := r.Publish(t.Context(), pub); err != nil {
			t.Fatal(err)
		}
		plain := regexp.MustCompile(`<!--.*?-->\n?`).ReplaceAllString(s.Pulls(pub.Branch)[0].Body, "")
		if want := "Part of #12.\n\nWhat was asked.\n\n- [ ] read"; plain != want {
			t.Errorf("the body is %q, want %q", plain, want)
		}
	})
}

// The accounts of those who wrote commits are the host's word, each asked for once.
func TestAuthorsOfCommits(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		s.People = map[string]string{"ann": "write"}
		s.Push(t, "main", "flags.go", "package flags\n")
		p := s.Project(kindOf(t), "DOCENT_TEST_TOKEN")
		head := s.Commits(t, "main")[0]
		tree := s.Git(t, "rev-parse", "main^{tree}")
		by := func(address string) forge.Commit {
			hash := s.Git(t, "-c", "user.name=Somebody", "-c", "user.email="+address, "commit-tree", tree, "-p", head, "-m", "x")
			s.Git(t, "update-ref", "refs/heads/by-"+strings.ReplaceAll(address, "@", "-"), hash)
			return forge.Commit{Hash: hash, Author: "Somebody <" + address + ">"}
		}
		commits := []forge.Commit{by("ann@example.org"), by("unknown@example.org")}
		var asked atomic.Int32
		s.Do(func() { s.Seen = func(*http.Request) { asked.Add(1) } })
		got, err := r.Authors(t.Context(), p, append(commits, commits...))
		if err != nil || !slices.Equal(got, []string{"ann"}) || asked.Load() != 2 {
			t.Errorf("%v after %d requests, %v", got, asked.Load(), err)
		}
	})
}
