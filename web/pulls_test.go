package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/web"
	"docent/web/assets"
)

// pull adds a pull request of project "acme".
func (h *fixture) pull() string {
	id := api.NewID(api.PullPrefix, h.clock.Now())
	h.pulls.all[id] = api.PullRequest{ID: id, Project: "acme", Number: 7, Job: "job_1", Head: "docent/job_1",
		Base: "main", State: api.PullOpen,
		Title: `Rename <b>"A"</b>`, CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now(),
		Body: "Was asked: *rename*.\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) ![i](https://evil.example/i.png)\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\ndiff --git is in the text\n"}
	h.pulls.diffs[id] = forge.Diff{Added: 3, Deleted: 2, Files: []forge.FileDiff{
		{Path: "docs/a.md", Status: "modified", Added: 1, Deleted: 1,
			Unified: "@@ -10,3 +10,3 @@ Title\n same <i>\n-old A\n+new <B>\n after\n"},
		{Path: "docs/new é.md", Status: "added", Added: 2,
			Unified: "@@ -0,0 +1,2 @@\n+# New\n+text\n\\ No newline at end of file\n"},
		{Path: "docs/gone.md", Status: "deleted", Deleted: 1, Unified: "@@ -1 +0,0 @@\n-bye\n"},
		{Path: "docs/to.md", From: "docs/from.md", Status: "moved"},
		{Path: "logo.png", Status: "modified", Binary: true},
	}}
	return id
}

func TestThePullRequestPage(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	page, res := h.browser().text(200, "/pulls/"+id)
	header(t, res, "Content-Type", "text/html; charset=utf-8")
	for _, want := range []string{
		`Rename &lt;b&gt;&#34;A&#34;&lt;/b&gt; <span class="dim">#7</span>`, `<span class="state open">open</span>`,
		`<em>rename</em>`, `<td align="center">2</td>`,
		"5 files changed", `<strong>acme</strong>: <code>docent/job_1</code> into`, `docs/a.md`,
		`docs/from.md → docs/to.md`, `A binary file.`,
		`<tr class="same"><td class="no">10</td><td class="no">10</td><td class="mark"></td><td>same &lt;i&gt;</td></tr>`,
		`<tr class="del"><td class="no">11</td><td class="no"></td><td class="mark">−</td><td>old A</td></tr>`,
		`<tr class="add"><td class="no"></td><td class="no">11</td><td class="mark">+</td><td>new &lt;B&gt;</td></tr>`,
		`<tr class="same"><td class="no">12</td><td class="no">12</td>`,
		`width=device-width`, `href="/login?next=%2fpulls%2f` + id,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"alert(1)</script", "javascript:", "Merge</button>"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'",
		"base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(res.Header.Get("Content-Security-Policy"), directive) {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	if strings.Contains(page, "style=") {
		t.Error("an inline style, which the policy refuses")
	}

	gone := api.NewID(api.PullPrefix, time.Now())
	page, res = h.browser().text(404, "/pulls/"+gone)
	if !strings.Contains(page, "there is no such pull request") || res.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s", page)
	}
	h.browser().text(404, "/pulls/..%2Fx")
}

func TestADiffTooLargeForAPageIsLeftToItsText(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	many := strings.Repeat("+line\n", 30_000)
	h.pulls.diffs[id] = forge.Diff{Files: []forge.FileDiff{{Path: "big.md", Status: "added",
		Unified: "@@ -0,0 +1,30000 @@\n" + many},
		{Path: "small.md", Status: "added", Unified: "@@ -0,0 +1 @@\n+small\n"}}}
	page, _ := h.browser().text(200, "/pulls/"+id)
	if len(page) > 100_000 || !strings.Contains(page, "too many for a page") || !strings.Contains(page, "<td>small</td>") {
		t.Errorf("a page of %d bytes", len(page))
	}
	if text, _ := h.browser().text(200, "/pulls/"+id+".diff"); !strings.Contains(text, many) {
		t.Error("the text lacks lines")
	}
}

// A page with hundreds of changed files is small: most files' changes are fetched when they are opened, each by its
// own address.
func TestAPageOfManyFilesLoadsThemAsTheyAreOpened(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	var d forge.Diff
	for i := range 217 {
		d.Files = append(d.Files, forge.FileDiff{Path: fmt.Sprintf("docs/page & %d.md", i), Status: "modified", Added: 12,
			Deleted: 12,
			Unified: "@@ -1,12 +1,12 @@\n" + strings.Repeat("-"+strings.Repeat("old ", 20)+"\n", 12) +
				strings.Repeat(fmt.Sprintf("+new %d ", i)+strings.Repeat("new ", 20)+"\n", 12)})
	}
	h.pulls.diffs[id] = d
	page, _ := h.browser().text(200, "/pulls/"+id)
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if n := strings.Count(page, `<details class="file"`); n != 217 {
		t.Errorf("%d files are listed", n)
	}
	link := regexp.MustCompile(
		`<a href="(/pulls/[^"]*)">Show the changes of docs/page &amp; 216.md</a>`).FindStringSubmatch(page)
	if link == nil || strings.Contains(page, "+new 216") {
		t.Fatal("the last file is not left for later")
	}
	one, _ := h.browser().text(200, html.UnescapeString(link[1]))
	if n := strings.Count(one, "<td>new 216 new"); n != 12 || strings.Count(one, "<details") != 1 {
		t.Errorf("its own page has %d of its lines", n)
	}
	if page, _ := h.browser().text(404, "/pulls/"+id+"?file=nope.md", "Accept",
		"text/html"); !strings.Contains(page, "no such file nope.md") {
		t.Errorf("a file that was not changed: %s", page)
	}
}

// Text is read at 4.5:1 and more (WCAG 2.2, 1.4.3), in light and in dark.
func TestColorsOfPagesHaveEnoughContrast(t *testing.T) {
	t.Parallel()
	h := build(t)
	page, _ := h.browser().text(200, assets.Path("docent.css"))
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(page, -1)
	if len(blocks) != 4 {
		t.Fatalf("%d sets of colors", len(blocks))
	}
	for i, scheme := range []string{"light", "dark"} {
		color := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+)`).FindAllStringSubmatch(blocks[i][1], -1) {
			color[m[1]] = m[2]
		}
		for _, pair := range [][2]string{
			{"ink", "paper"}, {"ink", "soft"}, {"ink", "add"}, {"ink", "del"}, {"dim", "paper"}, {"dim", "soft"},
			{"link", "paper"}, {"link", "soft"},
			{"no", "paper"}, {"no", "add-n"}, {"no", "del-n"}, {"open", "paper"}, {"open", "soft"}, {"closed", "paper"},
			{"closed", "soft"},
			{"on-accent", "accent-strong"}, {"open", "ok-soft"}, {"warn", "warn-soft"}, {"closed", "bad-soft"}, {"info", "info-soft"},
			{"on-state", "open"}, {"on-state", "merged"}, {"on-state", "closed"}, {"on-accent", "accent"},
			{"ink", "ok-soft"}, {"ink", "warn-soft"}, {"ink", "bad-soft"}, {"link", "accent-soft"},
		} {
			if got := contrast(t, color[pair[0]], color[pair[1]]); got < 4.5 {
				t.Errorf("%s: %s on %s is %.2f:1", scheme, pair[0], pair[1], got)
			}
		}
		if got := contrast(t, color["field"], color["paper"]); got < 3 { // the edge of what is filled in (1.4.11)
			t.Errorf("%s: field on paper is %.2f:1", scheme, got)
		}
	}
}

// contrast is the ratio of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(s string) float64 {
		if len(s) == 4 {
			s = "#" + strings.Repeat(s[1:2], 2) + strings.Repeat(s[2:3], 2) + strings.Repeat(s[3:4], 2)
		}
		var c [3]int
		if _, err := fmt.Sscanf(s, "#%02x%02x%02x", &c[0], &c[1], &c[2]); err != nil {
			t.Fatalf("color %q: %v", s, err)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(c[i]) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestPagesHaveAnIcon(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, path := range []string{"/favicon.svg", "/favicon.ico"} {
		icon, res := h.browser().text(200, path)
		header(t, res, "Content-Type", "image/svg+xml")
		if !strings.HasPrefix(icon, "<svg") {
			t.Errorf("%s is %q", path, icon)
		}
	}
}

func TestGitTakesTheTextForms(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	h := build(t)
	id := h.pull()
	d := h.pulls.diffs[id]
	d.Files = d.Files[:4] // git cannot apply a binary file that it is only told of
	h.pulls.diffs[id] = d
	for _, form := range []string{".diff", ".patch"} {
		text, res := h.browser().text(200, "/pulls/"+id+form)
		header(t, res, "Content-Type", "text/plain; charset=utf-8")
		dir := t.TempDir()
		run := func(stdin string, args ...string) {
			t.Helper()
			cmd := exec.Command(git, args...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %s: %v: %s\n%s", args[0], err, out, text)
			}
		}
		write := func(name, content string) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("docs/a.md", strings.Repeat("x\n", 9)+"same <i>\nold A\nafter\n")
		write("docs/gone.md", "bye\n")
		write("docs/from.md", "moved\n")
		run("", "init", "-q")
		run("", "add", "-A")
		run("", "commit", "-qm", "base")
		if form == ".diff" {
			run(text, "apply", "-")
		} else {
			run(text, "am", "-q")
		}
		for name, want := range map[string]string{"docs/a.md": strings.Repeat("x\n", 9) + "same <i>\nnew <B>\nafter\n",
			"docs/new é.md": "# New\ntext", "docs/to.md": "moved\n"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %s: %q, %v", form, name, got, err)
			}
		}
		for _, name := range []string{"docs/gone.md", "docs/from.md"} {
			if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s is still there", form, name)
			}
		}
	}
}

// The text of an instruction stands in the patch's message; git looks for signs in it.
func TestAPatchIsOneCommitWhateverItsMessageSays(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	h := build(t)
	for _, body := range []string{
		"Asked:\n\nFrom 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Eve <eve@evil.example>\nSubject: [PATCH] other\n\nand on\n",
		"From: Eve <eve@evil.example>\nDate: Mon, 17 Sep 2001 00:00:00 +0000\n\nand on\n",
		"\nSubject: other\n\nand on\n",
		"[PATCH] other\n\nand on\n",
		">From a@b Mon Sep 17 00:00:00 2001\nand on\n",
		"a\n---\nand on\n", "a\n---\t\nand on\n", "a\n---  \nand on\n", "a\n--- a/x\n+++ b/x\nand on\n",
		"a\ndiff --git a/x b/x\nand on\n", "a\nIndex: x\nand on\n",
		"a\r\nFrom 1 Mon Sep 17 00:00:00 2001\r\nand on\r\n",
	} {
		id := h.pull()
		p, d := h.pulls.all[id], h.pulls.diffs[id]
		p.Title, p.Body, d.Files = "Add a page", body, d.Files[1:2]
		h.pulls.all[id], h.pulls.diffs[id] = p, d
		text, _ := h.browser().text(200, "/pulls/"+id+".patch")
		dir := t.TempDir()
		run := func(stdin string, args ...string) string {
			t.Helper()
			cmd := exec.Command(git, args...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%q: git %s: %v: %s\n%s", body, args[0], err, out, text)
			}
			return string(out)
		}
		run("", "init", "-q")
		run("", "commit", "-q", "--allow-empty", "-m", "base")
		run(text, "am", "-q")
		if got := run("", "log", "--format=%an <%ae> %s"); got != "Docent <docent@localhost> Add a page\na <a@b> base\n" {
			t.Errorf("%q became\n%s", body, got)
		}
		message := run("", "log", "-1", "--format=%b")
		for l := range strings.Lines(strings.ReplaceAll(body, "\r", "")) {
			if !strings.Contains(message, strings.TrimSpace(l)) {
				t.Errorf("%q lacks %q in\n%s", body, l, message)
			}
		}
	}
}

func TestAPullRequestWhoseCommitsAreGoneSaysSo(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	h.pulls.failDiff = &api.StateError{Kind: api.ErrNotFound,
		Reason: `the branch "docent/<i>" of this pull request is gone`}
	page, _ := h.browser().text(200, "/pulls/"+id)
	for _, want := range []string{"the branch &#34;docent/&lt;i&gt;&#34; of this pull request is gone.",
		"<em>rename</em>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if text, _ := h.browser().text(404, "/pulls/"+id+".diff"); !strings.Contains(text,
		"of this pull request is gone") {
		t.Errorf("the diff says %q", text)
	}
}

func TestAPullRequestOutlivesItsProject(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	if err := h.catalog.RemoveProject(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if page, _ := h.browser().text(200, "/pulls/"+id); !strings.Contains(page, "<strong>acme</strong>") {
		t.Errorf("the page does not name its project: %s", page)
	}
}

func TestAnAdminSignsInMergesAndSignsOut(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	b := h.browser()
	res := b.signIn(h.admin, "/pulls/"+id)
	if res.StatusCode != 303 || res.Header.Get("Location") != "/pulls/"+id {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	for _, c := range res.Cookies() {
		if c.Name == "docent_session" && (!c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 7200 || c.Secure) {
			t.Errorf("cookie %v", c)
		}
		if strings.Contains(c.Value, h.admin) {
			t.Error("the cookie holds the key")
		}
	}
	page := b.open("/pulls/" + id)
	if !strings.Contains(page, "Merge</button>") {
		t.Fatal("no button to merge")
	}
	token := b.token(page)
	for name, res := range map[string]*http.Response{
		"no token":      b.send("/pulls/"+id+"/merge", nil),
		"a wrong token": b.send("/pulls/"+id+"/merge", url.Values{"token": {"x"}}),
		"another site":  b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}, "Sec-Fetch-Site", "cross-site"),
		"another host":  b.send("/pulls/"+id+"/close", url.Values{"token": {token}}, "Origin", "https://evil.example"),
	} {
		if res.StatusCode != 403 {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	res = b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}, "Content-Type", "application/json")
	if res.StatusCode != 400 {
		t.Errorf("a form as JSON: %d", res.StatusCode)
	}
	if h.pulls.all[id].State != api.PullOpen {
		t.Fatal("merged without leave")
	}
	h.pulls.fail = fmt.Errorf("merge: %w", forge.ErrMergeConflict)
	if res := b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}); res.StatusCode != 409 {
		t.Errorf("a conflict: %d", res.StatusCode)
	}
	h.pulls.fail = nil
	if res := b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}); res.StatusCode != 303 ||
		h.pulls.all[id].State != api.PullMerged {
		t.Errorf("merge: %d, %s", res.StatusCode, h.pulls.all[id].State)
	}
	if res := b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}); res.StatusCode != 409 {
		t.Errorf("merge again: %d", res.StatusCode)
	}
	id2 := h.pull()
	if res := b.send("/pulls/"+id2+"/close", url.Values{"token": {token}}); res.StatusCode != 303 ||
		h.pulls.all[id2].State != api.PullClosed {
		t.Errorf("close: %d, %s", res.StatusCode, h.pulls.all[id2].State)
	}
	if res := b.send("/logout", url.Values{"token": {token}}); res.StatusCode != 303 {
		t.Errorf("sign out: %d", res.StatusCode)
	}
	id3 := h.pull()
	if res := b.send("/pulls/"+id3+"/merge", url.Values{"token": {token}}); res.StatusCode != 303 ||
		!strings.HasPrefix(res.Header.Get("Location"), "/login?next=") {
		t.Errorf("merge when signed out: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
}

// A merged pull request is reverted by a job of the built-in agent, which one form starts once, and leads to the gap that its job
// was begun for.
func TestAMergedPullRequestIsRevertedAndLeadsToItsGap(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	gap, err := h.catalog.KeepGap(t.Context(), api.Gap{Project: "acme", State: api.GapMerged, Anchor: "turn_1", Question: "How do I rotate <keys>?",
		Terms: map[string]float64{"rotate": 1}, Job: "job_1"})
	if err != nil {
		t.Fatal(err)
	}
	b := h.visitor("editor")
	b.post(http.StatusConflict, "/pulls/"+id+"/revert")
	p := h.pulls.all[id]
	p.State, p.MergedAs = api.PullMerged, strings.Repeat("ab", 20)
	h.pulls.all[id] = p
	page := b.open("/pulls/" + id)
	if !strings.Contains(page, `/gaps/`+string(gap.ID)+`">How do I rotate &lt;keys&gt;?`) || !strings.Contains(page, ">Revert</button>") {
		t.Errorf("the page lacks its gap or the button:\n%s", page)
	}
	for range 2 {
		if res := b.send("/pulls/"+id+"/revert", url.Values{"token": {b.token(page)}, "key": {"once"}}); res.StatusCode != http.StatusSeeOther {
			t.Errorf("reverting it: %d", res.StatusCode)
		}
	}
	if len(h.jobs.all) != 1 {
		t.Errorf("%d jobs revert it", len(h.jobs.all))
	}
	for _, row := range h.jobs.all {
		if want := "revert commit " + p.MergedAs; row.Job.Title != want {
			t.Errorf("the job is told %q", row.Job.Title)
		}
	}
	if page := h.visitor("viewer").open("/pulls/" + id); strings.Contains(page, "Revert") {
		t.Error("a viewer may revert it")
	}
	h.visitor("viewer").post(http.StatusForbidden, "/pulls/"+id+"/revert")
}

func TestASessionIsOnlyAsGoodAsItsKey(t *testing.T) {
	t.Parallel()
	h := build(t)
	id := h.pull()
	merge := func(b *browser, token string) int {
		return b.send("/pulls/"+id+"/merge", url.Values{"token": {token}}).StatusCode
	}
	b := h.browser()
	b.signIn(h.admin, "/")
	token := b.token(b.open("/pulls/" + id))
	key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(h.admin))
	if err == nil {
		err = h.catalog.RevokeKey(t.Context(), key.ID, h.clock.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := merge(b, token); got != 303 || h.pulls.all[id].State != api.PullOpen { // to the sign-in form
		t.Errorf("with a revoked key: %d, %s", got, h.pulls.all[id].State)
	}
	b = h.browser()
	b.signIn(h.key(api.Key{Kind: api.AdminKey, Org: "org-a"}), "/")
	h.clock.advance(3 * time.Hour)
	if strings.Contains(b.open("/pulls/"+id), "Merge</button>") {
		t.Error("a session outlives its hours")
	}
	for name, k := range map[string]api.Key{
		"an assistant key":           {Kind: api.AssistantKey, Org: "org-a", Project: "acme"},
		"a key from another address": {Kind: api.AdminKey, Org: "org-a", AllowIP: []string{"192.0.2.0/24"}},
	} {
		if res := h.browser().signIn(h.key(k), "/"); res.StatusCode != 401 {
			t.Errorf("%s signs in: %d", name, res.StatusCode)
		}
	}
	for name, c := range map[string]struct {
		key  api.Key
		want int
	}{
		"a key that may not write":        {api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeRead}}, 403},
		"a key of another organization":   {api.Key{Kind: api.AdminKey, Org: "org-b"}, 404},
		"a key of the project, which may": {api.Key{Kind: api.AdminKey, Org: "org-a", Scopes: []string{api.ScopeWrite}}, 303},
	} {
		b := h.browser()
		if res := b.signIn(h.key(c.key), "/"); res.StatusCode != 303 {
			t.Fatalf("%s does not sign in: %d", name, res.StatusCode)
		}
		if got := merge(b, b.token(b.open("/login"))); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		h.pulls.set(id, api.PullOpen)
	}
}

func TestSigningInIsForThisSiteAndNotForGuessing(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.browser()
	for _, next := range []string{"https://evil.example/pulls/", "//evil.example/pulls/x", "/\\evil.example", "/login",
		"/pulls/x\r\nSet-Cookie: a=b", "javascript:alert(1)"} {
		if res := b.signIn(h.admin, next); res.StatusCode != 303 || res.Header.Get("Location") != "/console" {
			t.Errorf("next %q leads to %q", next, res.Header.Get("Location"))
		}
		b = h.browser()
	}
	if res := b.send("/login", url.Values{"key": {h.admin}, "token": {"made up"}}); res.StatusCode != 403 {
		t.Errorf("sign-in from a form of another site: %d", res.StatusCode)
	}
	statuses := map[int]int{}
	for range 15 {
		statuses[b.signIn("dct_adm_wrong", "/").StatusCode]++
	}
	if statuses[401] != 10 || statuses[429] != 5 {
		t.Errorf("answers to guesses: %v", statuses)
	}
	if res := b.signIn(h.admin, "/"); res.StatusCode != 429 {
		t.Errorf("after guesses: %d", res.StatusCode)
	}
	h.clock.advance(11 * time.Minute)
	if res := b.signIn(h.admin, "/"); res.StatusCode != 303 {
		t.Errorf("later: %d", res.StatusCode)
	}
	if page := b.open("/login"); !strings.Contains(page, "Signed in") || !strings.Contains(page, "ci") {
		t.Errorf("%s", page)
	}
	// A cookie that was changed, or signed by somebody else, is none.
	other := build(t, func(d *web.Deps) { d.Secret = bytes.Repeat([]byte{8}, 32) })
	id := other.pull()
	for _, c := range []string{b.cookie("docent_session"), "", "x", strings.Repeat("A", 118), strings.Repeat("A", 10_000)} {
		page, _ := other.browser().text(200, "/pulls/"+id, "Cookie", "docent_session="+c)
		if strings.Contains(page, "Sign out") {
			t.Errorf("the cookie %.20q signs in", c)
		}
	}
}

// BenchmarkPullOfManyFiles is the first view of a pull request that changes 217 files.
func BenchmarkPullOfManyFiles(b *testing.B) {
	h := build(b)
	id := h.pull()
	var d forge.Diff
	for i := range 217 {
		d.Files = append(d.Files, forge.FileDiff{Path: fmt.Sprintf("docs/guides/page-%d.md", i), Status: "modified", Added: 12,
			Deleted: 12, Unified: "@@ -1,12 +1,12 @@\n" + strings.Repeat("-"+strings.Repeat("old words ", 10)+"\n", 12) +
				strings.Repeat(fmt.Sprintf("+new %d ", i)+strings.Repeat("old words ", 10)+"\n", 12)})
	}
	h.pulls.diffs[id] = d
	visitor := h.visitor("editor")
	for b.Loop() {
		page := visitor.open("/pulls/" + id)
		b.ReportMetric(float64(len(page)), "bytes")
	}
}
