package automation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/actors/job"
	"docent/api"
	"docent/forge"
	"docent/forge/host"
)

// diffOf changes one line of code.
func diffOf(minus, plus string) string {
	return fmt.Sprintf("diff --git a/serve.go b/serve.go\n--- a/serve.go\n+++ b/serve.go\n@@ -4 +4 @@\n-%s\n+%s\n", minus, plus)
}

func TestACheckNamesPagesInOneCommentAndStartsNoJob(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	ctx := t.Context()
	c.files["cli.md"] = "# Flags\n\n`--max-berths` is 12.\n"
	if _, err := c.catalog.ChangeProject(ctx, "p", func(p api.Project) (api.Project, error) { p.Host, p.TokenEnv = api.HostGitHub, "T"; return p, nil }); err != nil {
		t.Fatal(err)
	}
	a := c.add(api.Automation{Check: true, Repository: "acme/api", Branch: "main"})
	changed := change{host.Pull{Number: 7, State: api.PullOpen, Base: "main", Head: "berths", Commit: strings.Repeat("a", 40)},
		diffOf(`flags.Int("max-berths", 12, "")`, `flags.Int("max-berths", 20, "")`)}
	c.changes[7] = changed
	hint := func(event string, number int) bool {
		t.Helper()
		ours, err := c.Pull(ctx, "p", api.PullHint{Repository: "Acme/API", Number: number, Event: event})
		if err != nil {
			t.Fatal(err)
		}
		return ours
	}
	if hint("issue_comment", 7) {
		t.Error("a comment starts a check")
	}
	for range 3 { // told several times before it is carried out
		if !hint("pull_request", 7) {
			t.Error("nothing is checked")
		}
	}
	c.restart()
	c.refuse = []error{fmt.Errorf("x: %w", forge.ErrTemporary)}
	c.pending()
	where := "acme/api#7 check-" + string(a.ID)
	if got := c.said[where]; len(c.said) != 1 || !strings.Contains(got, "**`cli.md`**") || !strings.Contains(got, "was `12` and is now `20`") {
		t.Fatalf("%q", c.said)
	}
	if v := c.view(a.ID); v.Last.Status != api.RunChecked || v.Last.Reason != "#7 at aaaaaaaaaaaa: 1 pages named" || v.Job != "" || len(c.asked) != 0 {
		t.Errorf("%+v, %q", v.Last, c.asked)
	}
	if runs, err := c.catalog.Runs(ctx, a.ID, 10); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	// The next push takes it back: the comment says so, and no other one is written.
	changed.diff = diffOf("\tx := 1", "\tx := 2")
	c.changes[7] = changed
	hint("pull_request", 7)
	c.pending()
	if got := c.said[where]; len(c.said) != 1 || !strings.Contains(got, "nothing to change was found") {
		t.Errorf("%q", c.said)
	}
	// What concerns no page from the start, what is over and what is for another branch gets no comment.
	c.changes[8] = change{host.Pull{Number: 8, State: api.PullOpen, Base: "main"}, changed.diff}
	c.changes[9] = change{host.Pull{Number: 9, State: api.PullMerged, Base: "main"}, diffOf(`"max-berths"`, "")}
	c.changes[10] = change{host.Pull{Number: 10, State: api.PullOpen, Base: "next"}, diffOf(`"max-berths"`, "")}
	for _, n := range []int{8, 9, 10} {
		hint("pull_request", n)
		c.pending()
	}
	if len(c.said) != 1 {
		t.Errorf("%q", c.said)
	}
	// What is removed in one place and stands elsewhere in the code is not outdated.
	if err := c.source(api.Source{Label: "code", Kind: api.SourceCode, Address: "/code", Host: api.HostGitHub, Repository: "acme/api"}); err != nil {
		t.Fatal(err)
	}
	for n, elsewhere := range map[int]string{11: "", 12: "max-berths"} {
		c.files["/code/code.go"] = elsewhere
		c.changes[n] = change{host.Pull{Number: n, State: api.PullOpen, Base: "main"}, diffOf(`flags.Int("max-berths", 12, "")`, "")}
		hint("pull_request", n)
		c.pending()
		said := c.said[fmt.Sprintf("acme/api#%d check-%s", n, a.ID)]
		if outdated := strings.Contains(said, "These pages still say"); outdated != (elsewhere == "") {
			t.Errorf("with %q elsewhere: %s", elsewhere, said)
		}
		delete(c.said, fmt.Sprintf("acme/api#%d check-%s", n, a.ID))
	}
	// A push to the repository is none of its business.
	if _, err := c.Push(ctx, "p", api.Push{Repository: "acme/api", Branch: "main", Default: true, Commit: strings.Repeat("b", 40)}); err != nil {
		t.Fatal(err)
	}
	c.pending()
	if len(c.asked) != 0 {
		t.Errorf("%q", c.asked)
	}
}

func TestACheckIsOfACodeHostAndHasNoPrompt(t *testing.T) {
	t.Parallel()
	for _, bad := range []api.Automation{{Check: true}, {Check: true, Repository: "acme/api", Prompt: "x.md"},
		{Check: true, Repository: "acme/api", Cron: "@daily"}, {Check: true, Repository: "acme/api", OnPush: true}} {
		bad.Project, bad.Name, bad.DailyCap = "p", "pages", 5
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	good := api.Automation{Project: "p", Name: "pages", DailyCap: 5, Check: true, Repository: "acme/api"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := Check(t.Context(), nil, api.Project{ID: "p", Host: api.HostBuiltin}, good, time.Time{}); err == nil {
		t.Error("the built-in host has no such pull requests")
	}
	p := api.Project{ID: "p", Host: api.HostBuiltin, Sources: []api.Source{{Label: "code", Host: api.HostGitLab, Repository: "acme/api", TokenEnv: "T"}}}
	if got, readable := codeOf(p, "Acme/API"); !readable || got.Host != api.HostGitLab || got.TokenEnv != "T" {
		t.Errorf("%+v", got)
	}
}

// A sibling of C48: what was removed from the code is told too, with the pages that still name it.
func TestAPushThatRemovesSomethingNamesThePagesThatSayIt(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	c.files["cli.md"] = "# Flags\n\nSet `--quay-depth` to 9.\n"
	c.files["follow.md"] = "{{pages}}\n\n{{diff}}\n"
	c.add(api.Automation{Repository: "acme/api", Prompt: "follow.md"})
	if err := c.source(api.Source{Label: "code", Kind: api.SourceCode, Address: "/code", Repository: "acme/api"}); err != nil {
		t.Fatal(err)
	}
	c.changes[0] = change{diff: diffOf(`flags.Int("quay-depth", 9, "")`, `flags.Int("berth-depth", 9, "")`)}
	for _, commit := range []string{"a", "b"} {
		if _, err := c.Push(t.Context(), "p", api.Push{Repository: "acme/api", Branch: "main", Default: true, Commit: strings.Repeat(commit, 40)}); err != nil {
			t.Fatal(err)
		}
		c.pending()
	}
	if len(c.asked) == 0 || !strings.Contains(c.asked[0], "cli.md:3") || !strings.Contains(c.asked[0], "> -flags.Int(\"quay-depth\"") {
		t.Errorf("%q", c.asked)
	}
}

// The words for a change are what was pushed since the last run; where they ask for pages and there are none, no job begins.
func TestAPushIsHeldAgainstThePages(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	ctx := t.Context()
	c.files["cli.md"] = "# Flags\n\n`--max-berths` is 12.\n"
	c.files["follow.md"] = "Keep these right:\n{{pages}}\n\n{{commits}}\n{{diff}}\n"
	a := c.add(api.Automation{Repository: "acme/api", Prompt: "follow.md"})
	push := func(commit string) {
		t.Helper()
		if _, err := c.Push(ctx, "p", api.Push{Repository: "acme/api", Branch: "main", Default: true, Commit: strings.Repeat(commit, 40)}); err != nil {
			t.Fatal(err)
		}
		c.pending()
	}
	push("a")
	if last := c.view(a.ID).Last; last.Status != api.RunFailed || !strings.Contains(last.Reason, "--kind code") {
		t.Errorf("%+v", last)
	}
	if err := c.source(api.Source{Label: "code", Kind: api.SourceCode, Address: "/code", Repository: "acme/api"}); err != nil {
		t.Fatal(err)
	}
	c.changes[0] = change{diff: diffOf("\tx := 1", "\tx := 2")}
	push("b")
	if last := c.view(a.ID).Last; last.Status != api.RunChecked || len(c.asked) != 0 || !strings.Contains(last.Reason, "no page") {
		t.Errorf("%+v, %q", last, c.asked)
	}
	c.changes[0] = change{diff: diffOf(`flags.Int("max-berths", 12, "")`, `flags.Int("max-berths", 20, "")`)}
	push("c")
	if len(c.asked) != 1 || !strings.Contains(c.asked[0], "> cli.md:3: outdated: `max-berths` was `12` and is now `20`") ||
		!strings.Contains(c.asked[0], "> cccccccccccc feat: more") || !strings.Contains(c.asked[0], "> +flags.Int(") {
		t.Errorf("%q", c.asked)
	}
	if !slices.Equal(c.follows[0].Pages, []string{"cli.md"}) || c.follows[0].Authors != nil {
		t.Errorf("%+v", c.follows)
	}
	// Those who changed the code are asked to review what comes of it, if the project says so, also of a follow-up.
	p, err := c.catalog.Project(ctx, "p")
	if err != nil {
		t.Fatal(err)
	}
	p.Pulls.Reviewers = "ann, code-authors"
	if _, err := c.catalog.UpdateProject(ctx, p); err != nil {
		t.Fatal(err)
	}
	push("d")
	b := c.add(api.Automation{Name: "other", Repository: "acme/api", Prompt: "fresh.md"}) // whose prompt asks for nothing of the change
	push("e")
	if len(c.follows) != 4 || !strings.HasPrefix(c.asked[1], "message: ") || fmt.Sprint(c.follows[1]) != "{[ann of acme/api] [cli.md]}" ||
		!slices.ContainsFunc(c.follows[2:], func(f job.Follows) bool { return fmt.Sprint(f) == "{[ann of acme/api] []}" }) {
		t.Errorf("%s: %+v", b.ID, c.follows)
	}
	c.compared = c.compared[:2]
	want := []string{".." + strings.Repeat("b", 40), strings.Repeat("b", 40) + ".." + strings.Repeat("c", 40)}
	if !slices.Equal(c.compared, want) {
		t.Errorf("%q, want %q", c.compared, want)
	}
}

func TestPushesWithinAWindowAreOneRun(t *testing.T) {
	t.Parallel()
	c := startClockwork(t)
	a := c.add(api.Automation{Repository: "acme/api", Window: "30m"})
	c.files["fresh.md"] = "About {{commit}}"
	for i, commit := range []string{"a", "b", "c"} {
		c.tick(c.at.Add(10 * time.Minute))
		if _, err := c.Push(t.Context(), "p", api.Push{Repository: "acme/api", Branch: "main", Default: true,
			Commit: strings.Repeat(commit, 40)}); err != nil {
			t.Fatal(err)
		}
		if c.pending(); len(c.asked) != 0 {
			t.Fatalf("push %d: %q", i, c.asked)
		}
	}
	if n := c.tick(c.at.Add(10 * time.Minute)); n != 1 || c.asked[0] != "create: About "+strings.Repeat("c", 40) {
		t.Errorf("%d runs: %q", n, c.asked)
	}
	runs, err := c.catalog.Runs(t.Context(), a.ID, 10)
	if err != nil || len(runs) != 3 || runs[0].Status != api.RunStarted || runs[1].Status != api.RunSkipped ||
		!strings.Contains(runs[2].Reason, "one run with it: bbbb") {
		t.Errorf("%+v, %v", runs, err)
	}
	if n := c.tick(c.at.Add(time.Hour)); n != 0 {
		t.Errorf("%d more", n)
	}
	for _, bad := range []string{"soon", "-5m", "25h"} {
		if (api.Automation{Project: "p", Name: "x", Prompt: "x.md", Repository: "acme/api", DailyCap: 5, Window: bad}).Validate() == nil {
			t.Errorf("a window of %s is taken", bad)
		}
	}
}

// source gives the project a further source.
func (c *clockwork) source(s api.Source) error {
	_, err := c.catalog.ChangeProject(c.t.Context(), "p", func(p api.Project) (api.Project, error) {
		p.Sources = append(p.Sources, s)
		return p, nil
	})
	return err
}
