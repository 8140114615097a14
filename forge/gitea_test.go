package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/forge/forgetest/giteatest"
)

// A realGitea is a repository on a real server, as a project with the token that the documentation asks for.
type realGitea struct {
	*giteatest.Repository
	*rig
	ann, bob, eve *giteatest.Person // who may write, read, and neither
}

// onGitea makes a repository of a bot's own on the server. Docent's token is the bot's.
func onGitea(t *testing.T, s *giteatest.Server, name string, o forge.Options) *realGitea {
	t.Helper()
	bot := s.Person(t, "docent-bot")
	g := &realGitea{Repository: s.Repository(t, bot, name, forgetest.Files), ann: s.Person(t, "ann"),
		bob: s.Person(t, "bob"), eve: s.Person(t, "eve")}
	g.Let(t, g.ann, "write")
	g.Let(t, g.bob, "read")
	t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, bot))
	g.rig = open(t, t.TempDir(), g.Repository.Project("DOCENT_TEST_TOKEN"), &forgetest.Pulls{}, o)
	return g
}

func TestARealGiteaKeepsTheContract(t *testing.T) {
	s := giteatest.Start(t)
	n := 0
	forgetest.Test(t, func(t *testing.T) forgetest.Host {
		n++
		g := onGitea(t, s, fmt.Sprintf("docs-%d", n), quick)
		return g.Host(g.Hub, g.rig.project, func(t *testing.T) {
			t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, g.Owner, "read:repository", "read:issue"))
		})
	})
}

func TestARealGiteaShowsDraftsLabelsAndReports(t *testing.T) {
	g := onGitea(t, giteatest.Start(t), "docs", quick)
	for _, l := range []string{"docs", "by agent"} {
		if status := g.Call(t, g.Owner.Token, http.MethodPost, g.Path("/labels"), map[string]string{"name": l,
			"color": "#00aabb"}, nil); status != http.StatusCreated {
			t.Fatalf("label: status %d", status)
		}
	}
	p := g.rig.project
	p.Labels = "docs, by agent"
	pub := forgetest.Publication(p, g.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	pub.Draft, pub.Body = true, "The setup is explained: *grüße* 👩‍💻."
	done, err := g.Hub.Publish(t.Context(), pub)
	if err != nil {
		t.Fatal(err)
	}
	got := g.Pulls(t, pub.Branch)
	if len(got) != 1 || !got[0].Draft || len(got[0].Labels) != 2 || !strings.Contains(got[0].Body, pub.Body) {
		t.Fatalf("pull requests %+v", got)
	}
	if want := fmt.Sprintf("%s/docent-bot/docs/pulls/%d", g.URL, got[0].Number); done.Link != want {
		t.Errorf("the link is %s, want %s", done.Link, want)
	}
	next := forgetest.Publication(p, g.tip(t, pub.Branch), "# Set up\n\nNewer.\n")
	next.Body = "Explained better."
	if _, err := g.Hub.Publish(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got = g.Pulls(t, pub.Branch); len(got) != 1 || !strings.Contains(got[0].Body, "Explained better.") ||
		strings.Contains(got[0].Body, "grüße") {
		t.Errorf("after a follow-up: %+v", got)
	}
	// A label that is not there is a warning; the pull request stays.
	p.Labels = "docs, nobody made this"
	other := forgetest.Publication(p, g.tip(t, "docent/job_2"), "# Set up\n\nOther.\n")
	if _, err := g.Hub.Publish(t.Context(), other); err != nil || len(g.Pulls(t, other.Branch)) != 1 {
		t.Errorf("with a label that is not there: %v, %+v", err, g.Pulls(t, other.Branch))
	}
}

// Who is asked to review is asked once by a real server too; strangers, and the bot itself, cost nobody the question.
func TestARealGiteaIsAskedForReviews(t *testing.T) {
	g := onGitea(t, giteatest.Start(t), "docs", quick)
	p := g.rig.project
	p.Pulls.Reviewers = "ann, nobody-of-that-name, docent-bot, docent-bot/no-team"
	pub := forgetest.Publication(p, g.tip(t, "docent/job_1"), "# Set up\n\nNew.\n")
	for range 2 {
		if _, err := g.Hub.Publish(t.Context(), pub); err != nil {
			t.Fatal(err)
		}
	}
	asked := func() (names []string) {
		var list []struct {
			State string
			User  struct{ Login string }
		}
		g.Call(t, g.Owner.Token, http.MethodGet, g.Path("/pulls/1/reviews"), nil, &list)
		for _, r := range list {
			names = append(names, r.State+" "+r.User.Login)
		}
		return names
	}
	if got := asked(); !slices.Equal(got, []string{"REQUEST_REVIEW ann"}) {
		t.Errorf("reviews: %q", got)
	}
	g.Review(t, g.ann, 1, false, "Fine.", giteatest.LineComment{Path: "guide/setup.md", Line: 1, Body: "Fine."})
	reviewed := asked()
	next := forgetest.Publication(p, g.tip(t, pub.Branch), "# Set up\n\nNewer.\n")
	next.Reviewers = []string{"ann"}
	if _, err := g.Hub.Publish(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := asked(); !slices.Equal(got, reviewed) {
		t.Errorf("reviews: %q, before %q", got, reviewed)
	}
	account, err := g.Hub.Authors(t.Context(), p, []forge.Commit{{Hash: g.Commits(t, "main")[0], Author: "Somebody"}})
	if err != nil || len(account) != 0 {
		t.Errorf("the author of a commit whom the server does not know: %q, %v", account, err)
	}
}

func TestARealGiteaRefusesInPlainWords(t *testing.T) {
	s := giteatest.Start(t)
	g := onGitea(t, s, "docs", quick)
	p := g.rig.project
	says := func(doing string, err error, words ...string) {
		t.Helper()
		var host *forge.HostError
		if !errors.As(err, &host) || !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("%s: %v", doing, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(host.Say, w) {
				t.Errorf("%s says %q without %q", doing, host.Say, w)
			}
		}
	}
	if err := g.Access(t.Context(), p); err != nil {
		t.Errorf("access: %v", err)
	}
	t.Setenv("DOCENT_TEST_TOKEN", "wrong")
	says("a wrong token", g.Access(t.Context(), p), "does not accept", "DOCENT_TEST_TOKEN")
	t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, g.bob))
	says("somebody who may only read", g.Access(t.Context(), p), "not write")
	t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, g.Owner, "read:repository"))
	says("a token that may only read", g.Access(t.Context(), p), "not write")
	t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, g.Owner))
	gone := p
	gone.Repository, gone.Source = "docent-bot/gone", g.URL+"/docent-bot/gone.git"
	says("no repository", g.Access(t.Context(), gone), "docent-bot/gone")
	g.Call(t, g.Owner.Token, http.MethodPatch, g.Path(""), map[string]bool{"archived": true}, nil)
	says("an archived repository", g.Access(t.Context(), p), "archived")
}

func TestARealGiteasCommentsAreReadAndAnswered(t *testing.T) {
	s := giteatest.Start(t)
	g := onGitea(t, s, "docs", quick)
	p := g.rig.project
	done, err := g.Hub.Publish(t.Context(), forgetest.Publication(p, g.tip(t, "docent/job_1"), "# Set up\n\nNew.\n"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(since time.Time) []forge.Comment {
		t.Helper()
		list, err := g.Hub.Comments(t.Context(), p, done.Number, since)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	g.Say(t, g.ann, done.Number, "One: *grüße* 👩‍💻")
	g.Say(t, g.bob, done.Number, "Two")
	three := g.Say(t, g.eve, done.Number, "Three")
	g.Review(t, g.ann, done.Number, false, "In all, fine.",
		giteatest.LineComment{Path: "guide/setup.md", Line: 3, Body: "Four"},
		giteatest.LineComment{Path: "guide/setup.md", Old: 3, Body: "Five"})
	draft := g.Review(t, g.ann, done.Number, true, "A draft.",
		giteatest.LineComment{Path: "guide/setup.md", Line: 3, Body: "Six, later"})
	g.Review(t, g.eve, done.Number, false, "A stranger's review.",
		giteatest.LineComment{Path: "guide/setup.md", Line: 3, Body: "Seven"})

	by := map[string]forge.Comment{}
	for _, c := range read(time.Time{}) {
		by[c.Body] = c
		if c.Own || !strings.HasPrefix(c.Link, g.URL+"/docent-bot/docs/pulls/") || c.At.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	want := map[string]bool{"One: *grüße* 👩‍💻": true, "Two": false, "Three": false, "In all, fine.": true, "Four": true,
		"Five": true, "A stranger's review.": false, "Seven": false}
	for body, may := range want {
		if c, ok := by[body]; !ok || c.MayWrite != may {
			t.Errorf("%q: read %v, %+v", body, ok, c)
		}
	}
	if len(by) != len(want) {
		t.Errorf("comments %+v", by)
	}
	if c := by["Four"]; c.Path != "guide/setup.md" || c.Line != 3 || c.Old || c.Quote != "New." || c.Thread == "" {
		t.Errorf("on a line: %+v", c)
	}
	if c := by["Five"]; c.Path != "guide/setup.md" || c.Line != 3 || !c.Old || c.Quote != "Run it." ||
		c.Thread == by["Four"].Thread {
		t.Errorf("on an old line: %+v", c)
	}
	g.Unsay(t, three.ID)
	g.Submit(t, g.ann, done.Number, draft, "No draft any more.")
	var got []string
	for _, c := range read(by["Four"].At) {
		got = append(got, c.Body)
	}
	if slices.Contains(got, "Three") || !slices.Contains(got, "Six, later") {
		t.Errorf("after one was deleted and a draft was handed in: %q", got)
	}

	for body, c := range by {
		for range 2 {
			if err := g.Hub.Reply(t.Context(), p, done.Number, c, "to-"+c.ID, "Done: *grüße*"); err != nil {
				t.Errorf("a reply to %q: %v", body, err)
			}
		}
	}
	replies := 0
	for _, c := range read(time.Time{}) {
		if strings.Contains(c.Body, "Done: *grüße*") {
			replies++
			if !c.Own || c.Author != "docent-bot" {
				t.Errorf("the reply reads as %+v", c)
			}
		}
	}
	if replies != len(by) {
		t.Errorf("%d replies to %d comments", replies, len(by))
	}
	// Who has lost the right, or whose account was closed, has no say any more.
	lea := s.Person(t, "lea")
	g.Let(t, lea, "write")
	g.Say(t, lea, done.Number, "From Lea")
	may := func(author string) bool {
		t.Helper()
		list, err := open(t, t.TempDir(), p, &forgetest.Pulls{}, quick).Comments(t.Context(), p, done.Number, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.Author == author {
				return c.MayWrite
			}
		}
		t.Fatalf("no comment of %s", author)
		return false
	}
	if !may("ann") || !may("lea") {
		t.Error("who may write is taken for somebody who may not")
	}
	g.Forbid(t, g.ann)
	s.Suspend(t, lea)
	if may("ann") || may("lea") {
		t.Errorf("shut out, they may write: ann %v, lea %v", may("ann"), may("lea"))
	}
	if state, err := g.Hub.PullState(t.Context(), p, done.Number); err != nil || state != api.PullOpen {
		t.Errorf("state %q, %v", state, err)
	}
	g.Merge(t, "docent/job_1")
	if state, err := g.Hub.PullState(t.Context(), p, done.Number); err != nil || state != api.PullMerged {
		t.Errorf("state %q, %v", state, err)
	}
}

// The server tells only administrators of a repository who may write to it. Without that nobody gives instructions, and
// the operator hears why.
func TestARealGiteaTellsOnlyAdministratorsWhoMayWrite(t *testing.T) {
	s := giteatest.Start(t)
	g := onGitea(t, s, "docs", quick)
	p := g.rig.project
	done, err := g.Hub.Publish(t.Context(), forgetest.Publication(p, g.tip(t, "docent/job_1"), "# Set up\n\nNew.\n"))
	if err != nil {
		t.Fatal(err)
	}
	g.Say(t, g.ann, done.Number, "Do it.")
	cat := s.Person(t, "cat")
	g.Let(t, cat, "write")
	t.Setenv("DOCENT_TEST_TOKEN", s.Token(t, cat))
	_, err = g.Hub.Comments(t.Context(), p, done.Number, time.Time{})
	if !errors.Is(err, forge.ErrMisconfigured) || !strings.Contains(err.Error(), "Administrator") {
		t.Errorf("with a token that may only write: %v", err)
	}
	g.Let(t, cat, "admin")
	list, err := g.Hub.Comments(t.Context(), p, done.Number, time.Time{})
	if err != nil || len(list) != 1 || !list[0].MayWrite {
		t.Errorf("with an administrator's: %+v, %v", list, err)
	}
}

// Changes go to the documentation's branch directly, until the server protects it: then they wait in a pull request.
func TestARealGiteaProtectsItsBranches(t *testing.T) {
	g := onGitea(t, giteatest.Start(t), "docs", quick)
	p := g.rig.project
	p.Direct = true
	done, err := g.Hub.Publish(t.Context(), forgetest.Publication(p, g.tip(t, "docent/job_1"), "# Set up\n\nNew.\n"))
	if err != nil || done.Link != "" || g.Commits(t, "main")[0] != done.Commit {
		t.Fatalf("directly: %+v, %v", done, err)
	}
	if status := g.Call(t, g.Owner.Token, http.MethodPost, g.Path("/branch_protections"),
		map[string]any{"rule_name": "main", "enable_push": false}, nil); status != http.StatusCreated {
		t.Fatalf("protecting main: status %d", status)
	}
	before := g.Commits(t, "main")
	pub := forgetest.Publication(p, g.tip(t, "docent/job_2"), "# Set up\n\nNewer.\n")
	for range 2 {
		if done, err = g.Hub.Publish(t.Context(), pub); err != nil {
			t.Fatal(err)
		}
	}
	if now := g.Commits(t, "main"); !slices.Equal(now, before) || len(g.Pulls(t, pub.Branch)) != 1 || done.Link == "" {
		t.Errorf("main has %v, was %v; pull requests %+v", now, before, g.Pulls(t, pub.Branch))
	}
	// A squashed merge removes the branch; the pull request counts as merged all the same.
	if status := g.Call(t, g.Owner.Token, http.MethodDelete, g.Path("/branch_protections/main"), nil, nil); status >= 300 {
		t.Fatalf("status %d", status)
	}
	g.Squash(t, pub.Branch)
	if tip := g.tip(t, pub.Branch); tip.Pull != api.PullMerged {
		t.Errorf("after a squashed merge: %+v", tip)
	}
	if again, err := g.Hub.Publish(t.Context(), pub); err != nil || again.Number != done.Number || again.New {
		t.Errorf("repeated after it: %+v, %v", again, err)
	}
}
