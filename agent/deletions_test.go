package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"docent/agent"
	"docent/api"
)

// many is a site with pages enough to lose.
func many() map[string]string {
	files := map[string]string{"index.md": "# Home\n\nWelcome, teh reader.\n",
		"getting-started.md": "---\ntitle: Getting started\n---\n\nBegin here.\n"}
	for i := range 8 {
		files[fmt.Sprintf("old/p%d.md", i)] = fmt.Sprintf("# Old %d\n\nText %d of the old site.\n", i, i)
	}
	return files
}

// deleteAll is a model that deletes every page and calls it something else.
func deleteAll(files map[string]string) []any {
	var say []any
	for p := range files {
		say = append(say, one("delete_file", args{"path": p, "unlink": true}))
	}
	end := one("finish", args{"summary": "Fixed a typo.", "title": "fix a typo"})
	return append(say, end, end, end, end, end, end)
}

func deleted(res agent.Result) (n int) {
	for _, c := range res.Changes {
		if c.Delete {
			n++
		}
	}
	return n
}

func TestAModelThatDeletesEverythingAsATypoIsStopped(t *testing.T) {
	for _, prompt := range []string{"fix a typo", "Fix the typo in old/p1.md.", `Remove the extra comma in old/p1.md`,
		"Remove old/p1.md from the navigation.", `Delete the section "Old 1" from old/p1.md.`,
		"Make the pages better. Do not delete anything.", "Never delete pages in old/.", "Remove page numbers.",
		"Remove everything about cookies from the docs.", "Move the pages of old/ to archive/."} {
		j := newLoop(t, many(), deleteAll(many())...)
		j.task.Prompt = prompt
		res := j.must()
		if len(res.Changes) > 0 ||
			!strings.Contains(res.Message, "The model wanted to delete 10 files, which the instruction does not ask for") ||
			!strings.Contains(res.Message, "delete page getting-started.md") {
			t.Errorf("%q: %d changes: %s", prompt, len(res.Changes), res.Message)
		}
		if res.Outcome != api.OutcomeNeedsDetail {
			t.Errorf("%q: the outcome is %q", prompt, res.Outcome)
		}
		if !strings.Contains(j.model.shown(1), "does not ask for ") {
			t.Errorf("%q: the model was told %q", prompt, j.model.shown(1))
		}
	}
}

func TestAModelDeletesWhatTheInstructionNames(t *testing.T) {
	for _, c := range []struct {
		prompt string
		pages  []string // of old/, by number
		review bool
	}{
		{"Delete old/p1.md.", []string{"1"}, false},
		{"Please get rid of old/p1.md and old/p2.md, and fix the typo on the home page.", []string{"1", "2"}, false},
		{"Delete the pages old/p1, /old/p2 and `old/p3.md`", []string{"1", "2", "3"}, false},
		{"Remove the page titled \"Old 4\"", []string{"4"}, false},
		{"The old 5 page is obsolete: delete the old 5 page.", []string{"5"}, false},
		{"Delete old/p1.md, old/p2.md, old/p3.md and old/p4.md.", []string{"1", "2", "3", "4"}, true},
		{"Delete these pages:\n- old/p1.md\n- old/p2.md\n", []string{"1", "2"}, false},
		{"Delete all pages in old/ except old/p0.md.", []string{"1", "2", "3", "4", "5", "6", "7"}, true},
		{"old/p6.md can be removed.", []string{"6"}, false},
		{"Look at old/p7.md. If nothing is right in it, delete it.", []string{"7"}, true},
		{"Delete the pages about the old site.", []string{"1", "2", "3", "4", "5"}, true},
		{"Delete the page that nobody reads", []string{"2"}, true},
		{"Merge old/p1.md and old/p2.md into getting-started.md", []string{"1", "2"}, true},
		{"drop old/p[12].md", []string{"1", "2"}, false},
		{"Delete the folder old", []string{"0", "1", "2", "3", "4", "5", "6", "7"}, true},
	} {
		var say []any
		for _, n := range c.pages {
			say = append(say, one("delete_file", args{"path": "old/p" + n + ".md"}))
		}
		j := newLoop(t, many(), append(say, finish, finish)...)
		j.task.Prompt = c.prompt
		res := j.must()
		if deleted(res) != len(c.pages) || res.Review != c.review || res.Outcome != api.OutcomeChanged {
			t.Errorf("%q: %d of %d deleted, review %v, %s: %s", c.prompt, deleted(res), len(c.pages), res.Review, res.Outcome,
				res.Message)
		}
		if !strings.Contains(res.Body, "deleted") {
			t.Errorf("%q: the pull request does not say that its deletions were asked for:\n%s", c.prompt, res.Body)
		}
	}
}

func TestAModelDeletesNothingBesideWhatIsNamed(t *testing.T) {
	for _, prompt := range []string{"Delete old/p1.md.", "Delete all pages in old/ except old/p2.md.",
		"Delete old/p1.md. Remove the page footer.", `Remove the page titled "Old 1"`, "Delete the old 1 page.",
		"Keep old/p2.md and delete old/p1.md."} {
		j := newLoop(t, many(), one("delete_file", args{"path": "old/p1.md"}), one("delete_file", args{"path": "old/p2.md"}),
			one("delete_file", args{"path": "index.md"}), finish, finish)
		j.task.Prompt = prompt
		res := j.must()
		if deleted(res) != 1 || !strings.Contains(res.Message, "wanted to delete 2 files") ||
			!strings.Contains(res.Message, "index.md, old/p2.md") {
			t.Errorf("%q: %d deleted: %s", prompt, deleted(res), res.Message)
		}
	}
}

func TestDeletingCountsItsBytes(t *testing.T) {
	files := map[string]string{"index.md": "# Home\n\nx\n", "old/a.md": "# A\n\n" + strings.Repeat("word ", 300),
		"old/b.md": "# B\n\n" + strings.Repeat("word ", 300)}
	j := newLoop(t, files, one("delete_file", args{"path": "old/a.md"}), one("delete_file", args{"path": "old/b.md"}),
		finish, finish)
	j.task.Prompt = "delete all pages in old/"
	j.opts.Loop.Bytes = 2000
	if m := j.ends(); !strings.Contains(m, "changed or deleted 3010 bytes, more than the 2000") {
		t.Error(m)
	}
	// A move costs what is different, not the page.
	j = newLoop(t, files, one("move_file", args{"from": "old/a.md", "to": "new/a.md"}),
		one("move_file", args{"from": "old/b.md", "to": "new/b.md"}), finish, finish)
	j.opts.Loop.Bytes = 100
	if res := j.must(); len(res.Changes) != 4 || res.Review {
		t.Errorf("%d changes, review %v: %s", len(res.Changes), res.Review, res.Message)
	}
	// The same holds for the instructions of fixed forms.
	res, err := agent.New(agent.Options{MaxChange: 2000}).Edit(t.Context(),
		agent.Task{Prompt: "delete page old/a.md. Delete page old/b.md.", Tree: tree(files)}, nil)
	if err != nil || len(res.Changes) > 0 || !strings.Contains(res.Message, "changed and deleted files have 3010 bytes") {
		t.Errorf("%v: %s", err, res.Message)
	}
}

func TestAPageThatIsLeftWithoutContentIsDeleted(t *testing.T) {
	empty := map[string]string{"nothing": "", "blanks": "\n\n \n", "front matter": "---\ntitle: X\n---\n",
		"a heading": "# Old 1\n", "a comment": "<!-- gone -->\n"}
	for name, content := range empty {
		say := []any{read("old/p1.md"), one("write_file", args{"path": "old/p1.md", "content": content, "overwrite": true}),
			finish, finish, finish, finish}
		j := newLoop(t, many(), say...)
		j.task.Prompt = "Fix a typo."
		if m := j.ends(); !strings.Contains(m, "old/p1.md") || !strings.Contains(m, "without content") ||
			!strings.Contains(m, "does not ask for that") {
			t.Errorf("%s: %s", name, m)
		}
		j = newLoop(t, many(), say...)
		j.task.Prompt = "Remove all text from old/p1.md"
		if res := j.must(); len(res.Changes) != 1 || res.Review {
			t.Errorf("%s, asked for: %s", name, res.Message)
		}
	}
	k := newLoop(t, map[string]string{"a.mdx": "# A\n\nText.\n", "b.mdx": "# B\n"}, read("a.mdx"),
		one("write_file", args{"path": "a.mdx", "content": "# A\n\n{/* gone */}\n", "overwrite": true}), finish, finish,
		finish, finish)
	if m := k.ends(); !strings.Contains(m, "without content") {
		t.Error(m)
	}
	// Moved first, and emptied then.
	j := newLoop(t, many(), one("move_file", args{"from": "old/p1.md", "to": "p1.md"}), read("p1.md"),
		one("write_file", args{"path": "p1.md", "content": "# Old 1\n", "overwrite": true}), finish, finish, finish, finish)
	j.task.Prompt = "Move old/p1.md to the top."
	if m := j.ends(); !strings.Contains(m, "without content") {
		t.Error(m)
	}
	// By an instruction of a fixed form.
	f := newJob(t, map[string]string{"a.md": "# A\n\nfoo\n", "b.md": "# B\n\nfoo bar\n"})
	if res := f.do(`replace "foo" with "<!-- foo -->" in a.md`); len(res.Changes) > 0 ||
		!strings.Contains(res.Message, "1 page would be left without content (a.md)") ||
		!strings.Contains(res.Message, "delete page a.md") {
		t.Errorf("%d changes: %s", len(res.Changes), res.Message)
	}
}

func TestTheNavigationIsNotDeletedOnTheWay(t *testing.T) {
	for _, prompt := range []string{"Fix a typo.", "Delete all pages.", "Delete guides/one.mdx."} {
		j := newLoop(t, mintSite(), one("delete_file", args{"path": "docs.json"}), finish, finish)
		j.task.Prompt = prompt
		if res := j.must(); len(res.Changes) > 0 || !strings.Contains(res.Message, "docs.json") {
			t.Errorf("%q: %d changes: %s", prompt, len(res.Changes), res.Message)
		}
	}
	j := newLoop(t, mintSite(), read("docs.json"),
		one("write_file", args{"path": "docs.json", "content": "{}\n", "overwrite": true}), finish, finish, finish, finish)
	if m := j.ends(); !strings.Contains(m, "the navigation would lose") {
		t.Error(m)
	}
}

func TestAMoveIsNoWayToDelete(t *testing.T) {
	j := newLoop(t, many(), one("move_file", args{"from": "old/p1.md", "to": "x.md"}),
		one("delete_file", args{"path": "x.md"}), finish, finish)
	j.task.Prompt = "Fix a typo."
	if res := j.must(); deleted(res) != 1 || res.Changes[1].From != "old/p1.md" ||
		!strings.Contains(res.Message, "wanted to delete 1 file") {
		t.Errorf("%d changes: %s", len(res.Changes), res.Message)
	}
	// Put over another page's content, the page is gone as well.
	j = newLoop(t, many(), read("old/p1.md"),
		one("write_file", args{"path": "old/p1.md", "content": "---\ntitle: x\n---\n", "overwrite": true}),
		one("move_file", args{"from": "old/p1.md", "to": "x.md"}), finish, finish, finish, finish)
	j.task.Prompt = "Move old/p1.md to x.md."
	if m := j.ends(); !strings.Contains(m, "without content") {
		t.Error(m)
	}
}

func TestAMovedPageIsNotADeletedOne(t *testing.T) {
	files := many()
	var say []any
	for i := range 8 {
		say = append(say, one("move_file",
			args{"from": fmt.Sprintf("old/p%d.md", i), "to": fmt.Sprintf("archive/p%d.md", i)}))
	}
	j := newLoop(t, files, append(say, finish, finish)...)
	j.task.Prompt = "Put the pages of old/ into archive/."
	if res := j.must(); len(res.Changes) != 16 || res.Review {
		t.Errorf("%d changes, review %v: %s", len(res.Changes), res.Review, res.Message)
	}
}

func TestInstructionsOfFixedFormsDeleteAFewPagesAndMoreOnlyWithAReview(t *testing.T) {
	j := newJob(t, many())
	if res := j.must("delete page old/p0.md. Delete page old/p1.md and then delete old/p2.md."); res.Review ||
		deleted(res) != 3 {
		t.Errorf("review %v, %d deleted", res.Review, deleted(res))
	}
	j = newJob(t, many())
	j.project.Direct = true
	res := j.must("delete page old/p0.md. Delete page old/p1.md. Delete page old/p2.md. Delete page old/p3.md.")
	if !res.Review || deleted(res) != 4 ||
		!strings.Contains(res.Message, "4 files are deleted, so the change waits for a review") {
		t.Errorf("review %v, %d deleted: %s", res.Review, deleted(res), res.Message)
	}
	j = newJob(t, many())
	j.must(`create page new/a.md titled "A"`)
	if res := j.must("undo that"); res.Review {
		t.Error("a page that the job made itself is taken back only with a review")
	}
}

// A prompt that tries to make the reading of its words of deletion long is read all the same.
func TestHostileWordsOfDeletionAreReadInBoundedTime(t *testing.T) {
	for _, unit := range []string{"delete a.md ", "delete ", "delete the page and the page in ", "merge a.md ",
		"delete it ", "delete a.md, b.md and\n- ", "be deleted ", "do not delete a.md "} {
		j := newLoop(t, many(), one("delete_file", args{"path": "old/p1.md"}), finish, finish)
		j.task.Prompt = strings.Repeat(unit, 99_000/len(unit))
		j.model.window = 1_000_000
		j.must()
	}
}
