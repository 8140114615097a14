package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// onPulls runs a test on a pull request of each kind of code host, where ann may write, lea is a maintainer, bob may
// only read, and others are strangers. The host's clock stands still unless it is moved.
func onPulls(t *testing.T, run func(t *testing.T, h *commented)) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) { run(t, comment(t, s, r)) })
}

// A commented is a pull request with a conversation.
type commented struct {
	*forgetest.StandIn
	*rig
	number int
	hour   time.Time // of the host's clock

	mu  sync.Mutex
	now time.Time
}

func comment(t *testing.T, s *forgetest.StandIn, r *rig) *commented {
	t.Helper()
	done, err := r.Publish(t.Context(), forgetest.Publication(r.project, r.tip(t, "docent/job_1"), "# Set up\n\nNew.\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := &commented{StandIn: s, rig: r, number: done.Number, hour: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	h.now = h.hour
	s.Do(func() {
		s.People = map[string]string{"ann": "write", "lea": "admin", "bob": "read", "old-hand": "blocked", "helper": "bot"}
		s.Clock = func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now }
	})
	return h
}

func (h *commented) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *commented) read(t *testing.T, since time.Time) []forge.Comment {
	t.Helper()
	list, err := h.Hub.Comments(t.Context(), h.rig.project, h.number, since)
	if err != nil {
		t.Fatalf("comments: %v", err)
	}
	return list
}

func (h *commented) one(t *testing.T, body string) forge.Comment {
	t.Helper()
	for _, c := range h.read(t, time.Time{}) {
		if c.Body == body {
			return c
		}
	}
	t.Fatalf("there is no comment %q", body)
	return forge.Comment{}
}

func bodies(list []forge.Comment) (out []string) {
	for _, c := range list {
		out = append(out, c.Body)
	}
	return out
}

const hunk = "@@ -1,3 +1,3 @@\n # Set up\n \n-Run it.\n+New."

func TestCommentsAreReadWithWhoMayWriteAndWhere(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "ann", "One: *grüße* 👩‍💻 \u202eعربى")
		h.pass(time.Second)
		h.Say(h.number, "bob", "Two")
		h.Say(h.number, "stranger", "Three")
		h.Say(h.number, "old-hand", "Four")
		h.pass(time.Second)
		h.Say(h.number, "helper", "A bot says something")
		h.SaySystem(h.number, "added 1 commit")
		first := h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "lea", Path: "guide/setup.md", Line: 3, Hunk: hunk,
			Body: "Five"})
		h.pass(time.Second)
		h.SayOn(forgetest.StandInComment{Root: first, Author: "ann", Body: "Six"})
		h.pass(time.Second)
		h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "ann", Path: "guide/setup.md", Line: 3, Old: true,
			Hunk: "@@ -1,3 +1,3 @@\n # Set up\n \n-Run it.", Body: "Seven"})
		h.pass(time.Second)
		h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "ann", Path: "docs.json", Body: "Eight"}) // a whole file

		list := h.read(t, time.Time{})
		if h.rig.project.Host == api.HostGitHub { // it keeps what it notes itself elsewhere
			list = slices.DeleteFunc(list, func(c forge.Comment) bool { return c.Body == "added 1 commit" })
		}
		if h.rig.project.Host == api.HostGitea { // it does not say which accounts are bots; they are let in like others
			list = slices.DeleteFunc(list, func(c forge.Comment) bool { return c.Author == "helper" && !c.MayWrite })
		}
		want := []string{"One: *grüße* 👩‍💻 \u202eعربى", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight"}
		if got := bodies(list); !slices.Equal(got, want) {
			t.Fatalf("comments %q, want %q", got, want)
		}
		ids := map[string]bool{}
		for i, c := range list {
			if may := i == 0 || i > 3; c.MayWrite != may || c.Own {
				t.Errorf("%q of %s: may write %v, own %v", c.Body, c.Author, c.MayWrite, c.Own)
			}
			if ids[c.ID] || c.ID == "" || c.At.Before(h.hour) || !strings.HasPrefix(c.Link, h.StandIn.URL) {
				t.Errorf("%q: id %q, at %v, link %q", c.Body, c.ID, c.At, c.Link)
			}
			ids[c.ID] = true
			if (c.Path != "") != (i > 3) {
				t.Errorf("%q is about %q", c.Body, c.Path)
			}
		}
		five, six, seven, eight := list[4], list[5], list[6], list[7]
		if five.Path != "guide/setup.md" || five.Line != 3 || five.Old || six.Line != 3 || six.Thread != five.Thread ||
			five.Thread == "" {
			t.Errorf("on a line: %+v, answered by %+v", five, six)
		}
		if !seven.Old || seven.Line != 3 || seven.Thread == five.Thread || eight.Path != "docs.json" || eight.Line != 0 {
			t.Errorf("on an old line: %+v; on a file: %+v", seven, eight)
		}
		if h.rig.project.Host != api.HostGitLab && (five.Quote != "New." || seven.Quote != "Run it.") {
			t.Errorf("quotes %q and %q", five.Quote, seven.Quote)
		}
		if got := bodies(h.read(t, six.At)); !slices.Equal(got, want[5:]) {
			t.Errorf("since the sixth: %q", got)
		}
		h.Unsay(first)
		if got := bodies(h.read(t, time.Time{})); slices.Contains(got, "Five") {
			t.Errorf("after one was deleted: %q", got)
		}
	})
}

// What was drafted before the last look, and handed in after it, is no old news.
func TestADraftedReviewAppearsWhenItIsHandedIn(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		review := h.Draft(h.number, "lea", "In all, fine.", forgetest.StandInComment{Path: "guide/setup.md", Line: 3,
			Hunk: hunk, Body: "Say more here."})
		h.pass(time.Hour)
		h.Say(h.number, "ann", "Meanwhile")
		list := h.read(t, time.Time{})
		if got := bodies(list); !slices.Equal(got, []string{"Meanwhile"}) {
			t.Fatalf("before: %q", got)
		}
		seen := list[0].At
		h.pass(time.Hour)
		h.Submit(review)
		got := bodies(h.read(t, seen.Add(time.Second)))
		slices.Sort(got)
		want := []string{"In all, fine.", "Say more here."}
		if h.rig.project.Host == api.HostGitLab {
			want = want[1:] // there the text is a note of its own
		}
		if !slices.Equal(got, want) {
			t.Errorf("afterwards: %q", got)
		}
	})
}

func TestAnEditedCommentIsTheSameComment(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		id := h.Say(h.number, "ann", "@docent do it")
		before := h.one(t, "@docent do it")
		h.pass(time.Hour)
		h.Edit(id, "@docent do something else")
		if got := h.read(t, before.At.Add(time.Second)); len(got) != 0 {
			t.Errorf("an old comment is news again: %+v", got)
		}
		if after := h.one(t, "@docent do something else"); after.ID != before.ID || !after.At.Equal(before.At) {
			t.Errorf("it was %+v, and is %+v", before, after)
		}
	})
}

func repliesTo(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/comments") ||
		strings.HasSuffix(r.URL.Path, "/replies") || strings.HasSuffix(r.URL.Path, "/notes"))
}

func TestAReplyIsPostedOnceWhateverBecomesOfItsAnswer(t *testing.T) {
	faults := map[string]forgetest.Fault{
		"acted, then dropped": {Act: true, Drop: true},
		"acted, then 502":     {Act: true, Status: 502, Body: `<html>Bad gateway</html>`},
		"dropped":             {Drop: true},
		"500":                 {Status: 500, Body: `{"message":"Server Error"}`},
		"a limit":             {Status: 429, Header: http.Header{"Retry-After": {"1"}}, Body: `{"message":"slow down"}`},
	}
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "ann", "in the conversation")
		h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "lea", Path: "guide/setup.md", Line: 3, Hunk: hunk,
			Body: "on a line"})
		h.pass(time.Minute)
		n := 0
		for name, f := range faults {
			for _, what := range []string{"in the conversation", "on a line"} {
				n++
				key := fmt.Sprintf("ask-%d", n)
				to := h.one(t, what)
				r := open(t, t.TempDir(), h.rig.project, &forgetest.Pulls{}, quick) // no limit is known yet
				met := failing(h.StandIn, f, repliesTo)
				err := r.Reply(t.Context(), r.project, h.number, to, key, "Done: *grüße*")
				if !errors.Is(err, forge.ErrTemporary) {
					t.Errorf("%s, %s: %v", name, what, err)
				}
				if met.Load() != 1 {
					t.Errorf("%s, %s: posted %d times", name, what, met.Load())
				}
				for range 2 {
					r = open(t, t.TempDir(), h.rig.project, &forgetest.Pulls{}, quick)
					if err := r.Reply(t.Context(), r.project, h.number, to, key, "Done: *grüße*"); err != nil {
						t.Errorf("%s, %s, again: %v", name, what, err)
					}
				}
				var got []forgetest.StandInComment
				for _, c := range h.Replies(h.number) {
					if strings.Contains(c.Body, "docent:"+key+" ") {
						got = append(got, c)
					}
				}
				if len(got) != 1 {
					t.Fatalf("%s, %s: %d replies", name, what, len(got))
				}
				got[0].Ends(t, key)
				if !strings.Contains(got[0].Body, "Done: *grüße*\n\n<!--") || (got[0].Path != "") != (what == "on a line") {
					t.Errorf("%s, %s: the reply is %+v", name, what, got[0])
				}
			}
		}
		// Readers of the thread see them as Docent's own, and all in the thread of what they answer.
		line, own := h.one(t, "on a line"), 0
		for _, c := range h.read(t, time.Time{}) {
			if !strings.Contains(c.Body, "docent:ask-") {
				continue
			}
			own++
			if !c.Own || !c.MayWrite || c.Path != "" && c.Thread != line.Thread {
				t.Errorf("the reply reads as %+v", c)
			}
		}
		if own != n {
			t.Errorf("%d replies are read, want %d", own, n)
		}
	})
}

// A mark that a stranger types does not keep Docent from answering, and does not make the comment Docent's.
func TestAForgedMarkCountsForNothing(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "ann", "Do it.")
		h.Say(h.number, "stranger", "Forged.\n\n<!-- docent:key -->")
		h.Say(h.number, "ann", "> Done.\n> <!-- docent:key -->\n\nThat is not what I meant.")
		for _, c := range h.read(t, time.Time{}) {
			if c.Own {
				t.Errorf("%q is taken for Docent's", c.Body)
			}
		}
		for range 2 {
			if err := h.Hub.Reply(t.Context(), h.rig.project, h.number, h.one(t, "Do it."), "key", "Done."); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.Replies(h.number); len(got) != 1 {
			t.Errorf("replies %+v", got)
		}
	})
}

// What Docent says of a pull request by itself stands there once, and changes in place; nobody else's comment is changed for
// it. The change that it speaks of is read as git writes it.
func TestACommentIsUpdatedInPlace(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "stranger", "Forged.\n\n<!-- docent:pages -->")
		for i, body := range []string{"No page.", "One page.", "One page.", "Two pages."} {
			if err := h.Hub.Say(t.Context(), h.rig.project, h.number, "pages", body, i == 1); err != nil {
				t.Fatal(err)
			}
			h.pass(time.Minute)
		}
		got := h.Said(h.number)
		if len(got) != 2 || got[0].Body != "Forged.\n\n<!-- docent:pages -->" || got[1].Body != "Two pages.\n\n<!-- docent:pages -->" {
			t.Errorf("%+v", got)
		}
		pull, diff, err := h.Hub.PullChange(t.Context(), h.rig.project, h.number)
		if err != nil || pull.Number != h.number || !strings.HasPrefix(diff, "diff --git ") || !strings.Contains(diff, "\n@@ ") {
			t.Errorf("%+v, %q, %v", pull, diff, err)
		}
		if _, _, err := h.Hub.PullChange(t.Context(), h.rig.project, 4711); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("a pull request that does not exist: %v", err)
		}
	})
}

// A loss of the right to write takes effect within a minute; while the host does not say who has it, nothing is
// read.
func TestWhoMayWriteIsAskedOfTheHostAgainAndAgain(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, _ *rig) {
		var mu sync.Mutex
		now := time.Now()
		o := quick
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		h := comment(t, s, open(t, t.TempDir(), s.Project(kindOf(t), "DOCENT_TEST_TOKEN"), &forgetest.Pulls{}, o))
		asks := func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/permission") || strings.Contains(r.URL.Path, "/members/all/")
		}
		var asked atomic.Int32
		s.Do(func() {
			s.Seen = func(r *http.Request) {
				if asks(r) {
					asked.Add(1)
				}
			}
		})
		for i := range 5 {
			h.Say(h.number, "ann", fmt.Sprint("number ", i))
		}
		for range 3 {
			if list := h.read(t, time.Time{}); len(list) != 5 || !list[0].MayWrite || !list[4].MayWrite {
				t.Fatalf("%+v", list)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("the host was asked %d times within a minute", asked.Load())
		}
		s.Do(func() { s.People["ann"] = "read" })
		mu.Lock()
		now = now.Add(time.Minute)
		mu.Unlock()
		if list := h.read(t, time.Time{}); list[0].MayWrite {
			t.Error("after a minute, somebody who was shut out may still write")
		}
		mu.Lock()
		now = now.Add(time.Minute)
		mu.Unlock()
		s.Do(func() {
			s.Fault = func(r *http.Request) forgetest.Fault {
				if asks(r) {
					return forgetest.Fault{Status: 500, Body: `{"message":"Server Error"}`}
				}
				return forgetest.Fault{}
			}
		})
		list, err := h.Hub.Comments(t.Context(), h.rig.project, h.number, time.Time{})
		if !errors.Is(err, forge.ErrTemporary) || list != nil {
			t.Errorf("without an answer: %v, %v", list, err)
		}
		s.Do(func() {
			s.Fault = func(r *http.Request) forgetest.Fault {
				if asks(r) {
					return forgetest.Fault{Status: 403, Body: `{"message":"Forbidden"}`}
				}
				return forgetest.Fault{}
			}
		})
		list, err = h.Hub.Comments(t.Context(), h.rig.project, h.number, time.Time{})
		if !errors.Is(err, forge.ErrMisconfigured) || list != nil {
			t.Errorf("with an answer refused: %v, %v", list, err)
		}
	})
}

func TestLongConversationsAreReadWholeAndRepeatedPagesEnd(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		const n = 170
		for i := range n {
			h.pass(time.Second)
			if i%2 == 0 {
				h.Say(h.number, "ann", fmt.Sprint("number ", i))
			} else {
				h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "ann", Path: "guide/setup.md", Line: 3, Hunk: hunk,
					Body: fmt.Sprint("number ", i)})
			}
		}
		list := h.read(t, time.Time{})
		if len(list) != n {
			t.Fatalf("%d comments, want %d", len(list), n)
		}
		for i, c := range list {
			if c.Body != fmt.Sprint("number ", i) {
				t.Fatalf("at %d there is %q", i, c.Body)
			}
		}
		var requests atomic.Int32
		h.Do(func() { h.StandIn.SamePage, h.StandIn.Seen = true, func(*http.Request) { requests.Add(1) } })
		again := h.read(t, time.Time{})
		ids := map[string]bool{}
		for _, c := range again {
			if ids[c.ID] {
				t.Errorf("%s twice", c.ID)
			}
			ids[c.ID] = true
		}
		if len(again) == 0 || requests.Load() > 100 {
			t.Errorf("%d comments in %d requests", len(again), requests.Load())
		}
	})
}

func TestTroubleWithCommentsIsSaidInPlainWords(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "ann", "Do it.")
		to := h.one(t, "Do it.")
		plain := h.rig.project
		plain.Host = api.HostGit
		for name, err := range map[string]error{
			"reading": func() error { _, err := h.Hub.Comments(t.Context(), plain, 1, time.Time{}); return err }(),
			"reply":   h.Hub.Reply(t.Context(), plain, 1, to, "k", "x"),
		} {
			if !errors.Is(err, forge.ErrMisconfigured) || !strings.Contains(err.Error(), "GitHub, GitLab, Gitea") {
				t.Errorf("%s on a plain git host: %v", name, err)
			}
		}
		if _, err := h.Hub.Comments(t.Context(), h.rig.project, 4711, time.Time{}); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("a pull request that is not there: %v", err)
		}
		h.Do(func() { h.StandIn.Tokens, h.StandIn.ReadOnly = nil, []string{hostToken} })
		if err := h.Hub.Reply(t.Context(), h.rig.project, h.number, to, "k", "x"); !errors.Is(err, forge.ErrMisconfigured) {
			t.Errorf("with a token that may only read: %v", err)
		}
		if got, err := h.Hub.PullState(t.Context(), h.rig.project, h.number); err != nil || got != api.PullOpen {
			t.Errorf("state %q, %v", got, err)
		}
		h.StandIn.Merge(t, "docent/job_1")
		if got, err := h.Hub.PullState(t.Context(), h.rig.project, h.number); err != nil || got != api.PullMerged {
			t.Errorf("state %q, %v", got, err)
		}
	})
}

func TestARenamedRepositoryIsAnsweredTo(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		h.Say(h.number, "ann", "Do it.")
		h.StandIn.Rename("newco", "manual")
		to := h.one(t, "Do it.")
		for range 2 {
			if err := h.Hub.Reply(t.Context(), h.rig.project, h.number, to, "key", "Done."); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.Replies(h.number); len(got) != 1 {
			t.Errorf("replies %+v", got)
		}
	})
}

// A thread that is gone, and a host that has none, get the answer in the conversation: with a link and the beginning of
// what it answers, which notifies nobody and shows as it was typed.
func TestAnAnswerWithoutAThreadSaysWhatItAnswers(t *testing.T) {
	onPulls(t, func(t *testing.T, h *commented) {
		id := h.SayOn(forgetest.StandInComment{Pull: h.number, Author: "lea", Path: "guide/setup.md", Line: 3, Hunk: hunk,
			Body: "@docent [x](javascript:alert(1)) #12 @acme/all\n\nand more"})
		to := h.read(t, time.Time{})[0]
		if h.rig.project.Host == api.HostGitea {
			h.Do(func() { h.StandIn.NoReplies = true })
		} else {
			h.Unsay(id)
		}
		for range 2 {
			if err := h.Hub.Reply(t.Context(), h.rig.project, h.number, to, "key", "Done.\n"); err != nil {
				t.Fatal(err)
			}
		}
		got := h.Replies(h.number)
		if len(got) != 1 {
			t.Fatalf("replies %+v", got)
		}
		body := got[0].Body
		got[0].Ends(t, "key")
		begins := "In answer to [the comment of lea](" + to.Link + ") on guide/setup\\.md, line 3:\n> "
		if got[0].Path != "" || !strings.HasPrefix(body, begins) ||
			!strings.Contains(body, "\n\nDone.\n\n<!--") {
			t.Errorf("the answer is\n%s", body)
		}
		for _, live := range []string{"@docent", "@acme", "](javascript:", " #12"} {
			if strings.Contains(body, live) {
				t.Errorf("the answer has a live %q:\n%s", live, body)
			}
		}
	})
}

// Gitea tells only administrators of a repository who may write to it.
func TestGiteaWithoutTheRightToAskSaysSo(t *testing.T) {
	s, p := standIn(t, api.HostGitea)
	h := comment(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
	s.Do(func() { s.NoAdmin = true })
	h.Say(h.number, "ann", "Do it.")
	_, err := h.Hub.Comments(t.Context(), p, h.number, time.Time{})
	if !errors.Is(err, forge.ErrMisconfigured) || !strings.Contains(err.Error(), "Administrator") ||
		!strings.Contains(err.Error(), "DOCENT_TEST_TOKEN") {
		t.Errorf("comments: %v", err)
	}
}

func TestAGitHubAppKnowsItsOwnComments(t *testing.T) {
	s, p := standIn(t, api.HostGitHub)
	s.Tokens = nil
	s.App = &forgetest.StandInApp{ID: 17, Installation: 4711, Slug: "acme-docs", Lifetime: time.Hour, Now: time.Now,
		Verify: func(string) error { return nil }}
	p.AppID = 17
	t.Setenv("DOCENT_TEST_TOKEN", appKey(t))
	h := comment(t, s, open(t, t.TempDir(), p, &forgetest.Pulls{}, quick))
	h.Say(h.number, "ann", "Do it.")
	h.Say(h.number, "other[bot]", "A bot's.\n\n<!-- docent:key -->")
	h.Say(h.number, "acme-docs[bot]", "Somebody else's program under the same app.")
	for range 2 {
		if err := h.Hub.Reply(t.Context(), p, h.number, h.one(t, "Do it."), "key", "Done."); err != nil {
			t.Fatal(err)
		}
	}
	list := h.read(t, time.Time{})
	if len(list) != 2 || list[0].Own || !list[1].Own || list[1].Author != "acme-docs[bot]" {
		t.Errorf("comments %+v", list)
	}
}

func TestAnIssueIsOpenedOnceForAKey(t *testing.T) {
	onHosts(t, func(t *testing.T, s *forgetest.StandIn, r *rig) {
		now := time.Now()
		met := failing(s, forgetest.Fault{Act: true, Drop: true}, func(req *http.Request) bool {
			return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/issues")
		})
		if _, err := r.OpenIssue(t.Context(), r.project, "evt_1", "Help", "Please.", now); !errors.Is(err, forge.ErrTemporary) || met.Load() != 1 {
			t.Errorf("its answer was lost: %v", err)
		}
		for _, key := range []string{"evt_1", "evt_2", "evt_1"} {
			if link, err := r.OpenIssue(t.Context(), r.project, key, "Help", "Please.", now); err != nil || !strings.HasPrefix(link, s.URL) {
				t.Errorf("%s: %q, %v", key, link, err)
			}
		}
		if len(s.Issues) != 2 || s.Issues[0].Title != "Help" || !strings.HasPrefix(s.Issues[0].Body, "Please.\n") {
			t.Errorf("the issues are %+v", s.Issues)
		}
	})
}
