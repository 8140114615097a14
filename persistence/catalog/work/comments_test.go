package work_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/listing"
	"docent/persistence/catalog/work"
)

func TestCommentsAreSentTogetherAndOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		clock := catalogtest.NewClock()
		c := p.Open(catalog.Options{Now: clock.Now})
		ctx := t.Context()
		add := func(author, text string) api.Comment {
			t.Helper()
			clock.Add(time.Millisecond)
			return catalogtest.Must(c.AddComment(ctx, api.Comment{Pull: "pr_1", Project: "docs", Path: "a\x00.md", Line: 3, Quote: "old",
				Text: text, Author: author, By: "Maria"}))(t)
		}
		first, second := add("u1", "say  it\r\nshorter"), add("u1", "and this")
		other := add("u2", "not yet")
		if first.State != api.CommentDraft || first.Text != "say  it\nshorter" || !api.ValidID(api.CommentPrefix, first.ID) {
			t.Errorf("%+v", first)
		}
		ids := func(list []api.Comment) string {
			var out []string
			for _, n := range list {
				text := strings.ReplaceAll(n.Text, "\n", " ")
				out = append(out, fmt.Sprintf("%s %s %s", text, n.State, n.Message))
			}
			return strings.Join(out, ", ")
		}
		taken := catalogtest.Must(c.TakeComments(ctx, "pr_1", "u1", "msg_1"))(t)
		if got := ids(taken); got != "say  it shorter sending msg_1, and this sending msg_1" {
			t.Errorf("taken: %s", got)
		}
		// Its answer is lost: what is asked again under another id is the same message.
		add("u1", "a later one")
		if got := ids(catalogtest.Must(c.TakeComments(ctx, "pr_1", "u1", "msg_2"))(t)); got != ids(taken) {
			t.Errorf("taken again: %s", got)
		}
		if err := c.SettleComments(ctx, "pr_1", "msg_1", true); err != nil {
			t.Fatal(err)
		}
		if got := ids(catalogtest.Must(c.TakeComments(ctx, "pr_1", "u1", "msg_3"))(t)); got != "a later one sending msg_3" {
			t.Errorf("the next ones: %s", got)
		}
		if err := c.SettleComments(ctx, "pr_1", "msg_3", false); err != nil { // the job has refused it
			t.Fatal(err)
		}
		all := catalogtest.Must(c.Comments(ctx, "pr_1"))(t)
		if got := ids(all); got !=
			"say  it shorter sent msg_1, and this sent msg_1, not yet draft , a later one draft " {
			t.Errorf("in the end: %s", got)
		}
		if all[0].SentAt == nil || all[3].SentAt != nil || all[0].Path != "a\x00.md" || all[0].By != "Maria" {
			t.Errorf("%+v", all[0])
		}
		for what, err := range map[string]error{
			"another's draft":  c.RemoveComment(ctx, "pr_1", "u1", other.ID),
			"one that is sent": c.RemoveComment(ctx, "pr_1", "u1", second.ID),
			"another pull":     c.RemoveComment(ctx, "pr_2", "u2", other.ID),
		} {
			if !errors.Is(err, api.ErrNotFound) {
				t.Errorf("%s is removed: %v", what, err)
			}
		}
		if err := c.RemoveComment(ctx, "pr_1", "u2", other.ID); err != nil {
			t.Error(err)
		}
		for range api.MaxDrafts {
			add("u3", "x")
		}
		if _, err := c.AddComment(ctx, api.Comment{Pull: "pr_1", Path: "a", Line: 1, Text: "x",
			Author: "u3"}); !errors.Is(err, api.ErrConflict) {
			t.Errorf("too many: %v", err)
		}
		var invalid *api.InvalidError
		if _, err := c.AddComment(ctx, api.Comment{Pull: "pr_1", Text: " \n", Author: "u3"}); !errors.As(err, &invalid) ||
			len(invalid.Problems) != 3 {
			t.Errorf("an empty one: %v", err)
		}
	})
}

func TestJobsAreFoundByTheirPullRequestAndWhoAsked(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c, l := p.Open(catalog.Options{}), catalogtest.NewLog()
		projector, stop := catalogtest.RunProjector(t, c, l)
		link := "/pulls/pr_1"
		for n, change := range []func(*api.JobRow){
			func(r *api.JobRow) { r.Job.Title, r.User = "Rename 100% of Ärger_s", "key_1" },
			func(r *api.JobRow) { r.Job.Title, r.User, r.Job.PRLink = "Fix typos", "key_2", &link },
			func(r *api.JobRow) { r.Job.Title, r.User, r.Job.Outcome = "fix links", "key_1", api.OutcomeNothingToDo },
			func(r *api.JobRow) { r.Project, r.Job.Title, r.User = "blog", "fix all", "key_3" },
		} {
			l.Change(catalogtest.JobStream(n), func(r *api.JobRow) { r.Project, r.Job.Status = "docs", api.JobCompleted; change(r) })
		}
		catalogtest.Reach(t, projector)
		check := func() {
			t.Helper()
			for _, want := range []struct {
				q    listing.JobQuery
				jobs string
			}{
				{listing.JobQuery{}, "fix links, Fix typos, Rename 100% of Ärger_s"},
				{listing.JobQuery{Text: "FIX"}, "fix links, Fix typos"},
				{listing.JobQuery{Text: "rger"}, "Rename 100% of Ärger_s"},
				{listing.JobQuery{Text: "100%"}, "Rename 100% of Ärger_s"},
				{listing.JobQuery{Text: "g%r"}, ""}, {listing.JobQuery{Text: "F_x"}, ""}, {listing.JobQuery{Text: `\`}, ""}, {listing.JobQuery{Text: "'; --"}, ""},
				{listing.JobQuery{By: "key_1"}, "fix links, Rename 100% of Ärger_s"},
				{listing.JobQuery{By: "key_1", Text: "link", Status: api.JobCompleted, Outcome: api.OutcomeNothingToDo}, "fix links"},
				{listing.JobQuery{Linked: true}, "Fix typos"},
			} {
				want.q.Project = "docs"
				var got []string
				for _, r := range catalogtest.Must(c.Jobs(t.Context(), want.q))(t) {
					got = append(got, r.Job.Title)
				}
				if strings.Join(got, ", ") != want.jobs {
					t.Errorf("%+v finds %q, want %q", want.q, got, want.jobs)
				}
			}
			if got := catalogtest.Must(c.Askers(t.Context(), "docs"))(t); strings.Join(got, " ") != "key_1 key_2" {
				t.Errorf("created by %q", got)
			}
			if got := catalogtest.Must(c.Askers(t.Context(), "none"))(t); len(got) != 0 {
				t.Errorf("created by %q", got)
			}
		}
		check()
		stop()
		// Rows of before the columns get them from what they hold.
		statements := append(catalogtest.Undo(t, "20261123000003"), "DROP TABLE comments",
			"DELETE FROM bun_migrations WHERE name = '20261123000004'")
		for _, s := range statements {
			if strings.Contains(s, "INDEX") && !strings.Contains(s, "jobs_") && !strings.Contains(s, "pulls_state") ||
				strings.Contains(s, "TABLE") && !strings.Contains(s, "comments") && !strings.Contains(s, "TABLE jobs") {
				continue
			}
			if _, err := c.Write.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		c.Close()
		c = p.Open(catalog.Options{})
		check()
	})
}

func TestPullRequestsPageByTheirNumbers(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		for n := range 5 {
			pull := catalogtest.Must(c.AddPull(t.Context(), catalogtest.Pull("docs", fmt.Sprint("docent/", n))))(t)
			if n%2 == 0 {
				pull.State = api.PullMerged
				catalogtest.Must(c.UpdatePull(t.Context(), pull))(t)
			}
		}
		catalogtest.Must(c.AddPull(t.Context(), catalogtest.Pull("blog", "docent/x")))(t)
		for _, want := range []struct {
			q       work.PullQuery
			numbers string
		}{
			{work.PullQuery{Limit: 2}, "[5 4]"}, {work.PullQuery{Limit: 2, Before: 4}, "[3 2]"}, {work.PullQuery{Limit: 9, Before: 2}, "[1]"},
			{work.PullQuery{Limit: 2, State: api.PullMerged}, "[5 3]"}, {work.PullQuery{Limit: 2, State: api.PullMerged, Before: 3}, "[1]"},
			{work.PullQuery{Limit: 2, State: api.PullClosed}, "[]"},
		} {
			want.q.Project = "docs"
			numbers := []int{}
			for _, pull := range catalogtest.Must(c.PullsPage(t.Context(), want.q))(t) {
				numbers = append(numbers, pull.Number)
			}
			if fmt.Sprint(numbers) != want.numbers {
				t.Errorf("%+v finds %v, want %s", want.q, numbers, want.numbers)
			}
		}
	})
}

func TestWhatBecameOfCommentsIsStoredOnce(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		c := p.Open(catalog.Options{})
		ctx := t.Context()
		for _, text := range []string{"one", "two"} {
			catalogtest.Must(c.AddComment(ctx, api.Comment{Pull: "pr_1", Project: "docs", Job: "job_1", Path: "a.md", Line: 3, Text: text,
				Author: "u1", By: "Maria"}))(t)
		}
		catalogtest.Must(c.TakeComments(ctx, "pr_1", "u1", "msg_1"))(t)
		if list := catalogtest.Must(c.SentComments(ctx, 10))(t); len(list) != 0 {
			t.Errorf("sent before they are: %+v", list)
		}
		if err := c.SettleComments(ctx, "pr_1", "msg_1", true); err != nil {
			t.Fatal(err)
		}
		if list := catalogtest.Must(c.SentComments(ctx, 10))(t); len(list) != 2 || list[0].Text != "one" || list[0].Job != "job_1" {
			t.Errorf("sent are %+v", list)
		}
		for _, answer := range []string{"Done.", "another"} {
			err := c.AnswerComments(ctx, "pr_1", "msg_1", func(n *api.Comment) {
				n.Answer, n.Outcome, n.AnswerCommit = answer, api.OutcomeChanged, "c1"
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if list := catalogtest.Must(c.SentComments(ctx, 10))(t); len(list) != 0 {
			t.Errorf("still without an answer: %+v", list)
		}
		catalogtest.Must(c.AddComment(ctx, api.Comment{Pull: "pr_1", Project: "docs", Path: "a.md", Line: 3, Text: "three", Author: "u1"}))(t)
		if taken := catalogtest.Must(c.TakeComments(ctx, "pr_1", "u1", "msg_2"))(t); len(taken) != 1 || taken[0].Text != "three" {
			t.Errorf("taken are %+v", taken)
		}
		for _, n := range catalogtest.Must(c.Comments(ctx, "pr_1"))(t)[:2] {
			if n.State != api.CommentAnswered || n.Answer != "Done." || n.AnswerCommit != "c1" || n.Outcome != api.OutcomeChanged {
				t.Errorf("%+v", n)
			}
		}
	})
}
