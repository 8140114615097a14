package console

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/tests/harness"
)

// A reviewer is somebody with a browser that runs no scripts, signed in with an admin key.
type reviewer struct {
	t      *testing.T
	url    string
	client *http.Client
}

func newReviewer(t *testing.T, server *harness.Server, admin string) *reviewer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &reviewer{t, server.URL, &http.Client{Jar: jar}}
	_, login := r.open("/login")
	r.send("/login", url.Values{"key": {admin}, "token": {r.field(login, "token")}})
	return r
}

// open gets a page, and tells where it is.
func (r *reviewer) open(path string) (at, page string) {
	r.t.Helper()
	return r.read(r.client.Get(r.url + path))
}

// send sends a form, and tells what page that leads to.
func (r *reviewer) send(path string, form url.Values) (at, page string) {
	r.t.Helper()
	return r.read(r.client.PostForm(r.url+path, form))
}

func (r *reviewer) read(res *http.Response, err error) (at, page string) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		r.t.Fatalf("%s %s: %d %s, %v", res.Request.Method, res.Request.URL, res.StatusCode, body, err)
	}
	return res.Request.URL.Path, string(body)
}

// field is the value of a hidden field of a page's form.
func (r *reviewer) field(page, name string) string {
	r.t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		r.t.Fatalf("there is no field %s in %s", name, page)
	}
	return html.UnescapeString(m[1])
}

// until opens a page again and again until it has a text.
func (r *reviewer) until(path, text string) string {
	r.t.Helper()
	for {
		_, page := r.open(path)
		if strings.Contains(page, text) {
			return page
		}
		select {
		case <-r.t.Context().Done():
			r.t.Fatalf("%s never said %q: %s", path, text, page)
		case <-time.After(50 * time.Millisecond): // polls
		}
	}
}

// A person starts a job on the console, tries it first, comments on a line of its pull request, sees what became of
// that, and merges: on the real server, with the built-in agent and a folder.
func TestAJobIsStartedReviewedAndMergedOnTheConsole(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t, map[string]string{"guides/tea.md": "# Tea\n\nPlease log in to see the tea.\n\nAlways stir it.\n",
		"index.md": "# Home\n\nAlways log in.\n"})
	p := harness.NewProject(t, data, "tea", source)
	server := harness.NewServer(t, data)
	r := newReviewer(t, server, p.Admin)
	console := "/console/org_default/" + p.Domain
	if at, _ := r.open("/console"); strings.Count(at, "/") == 3 {
		console = at
	}

	// A dry run, and then for real.
	_, form := r.open(console + "/jobs/new")
	at, _ := r.send(console+"/jobs/create", url.Values{"token": {r.field(form, "token")}, "key": {r.field(form, "key")},
		"prompt": {`replace "log in" with "sign in" everywhere`}, "dry": {"yes"}})
	page := r.until(at, "Create pull request")
	for _, want := range []string{"dry run", "What would change", "<del>log</del>", "<ins>sign</ins>", "guides/tea.md"} {
		if !strings.Contains(page, want) {
			t.Errorf("the dry run lacks %q", want)
		}
	}
	again, _ := r.send(console+"/jobs/create", url.Values{"token": {r.field(form, "token")}, "key": {r.field(form, "key")},
		"prompt": {`replace "log in" with "sign in" everywhere`}, "dry": {"yes"}})
	if again != at {
		t.Errorf("the form sent twice made the jobs %s and %s", at, again)
	}
	at, _ = r.send(at+"/carry-out", url.Values{"token": {r.field(page, "token")}})
	page = r.until(at, ">Pull request</a>")
	pull := regexp.MustCompile(`href="[^"]*(/pulls/pr_[^"]+)">Pull request</a>`).FindStringSubmatch(page)
	if pull == nil {
		t.Fatalf("no link to the pull request: %s", page)
	}

	// Two comments on lines go to the job as one message.
	_, page = r.open(pull[1] + "?f=1&at=n3")
	if !strings.Contains(page, "guides/tea.md") || !strings.Contains(page, "instructions of fixed forms") {
		t.Fatalf("the form for a comment: %s", page)
	}
	comment := func(at, text string) {
		t.Helper()
		r.send(pull[1]+"/comment", url.Values{"token": {r.field(page, "token")}, "f": {"1"}, "path": {"guides/tea.md"},
			"at": {at}, "text": {text}})
	}
	comment("n3", `replace "Please sign in" with "Sign in"`)
	comment("n5", `replace "stir" with "shake"`)
	_, page = r.open(pull[1])
	for _, want := range []string{"2 comments to send", "In guides/tea.md, replace &#34;Please sign in&#34;"} {
		if !strings.Contains(page, want) {
			t.Errorf("before they are sent the page lacks %q", want)
		}
	}
	r.send(pull[1]+"/send", url.Values{"token": {r.field(page, "token")}})
	r.send(pull[1]+"/send", url.Values{"token": {r.field(page, "token")}})
	page = r.until(pull[1], `<span class="badge ok">changed</span>`)
	for _, want := range []string{"2 comments</strong> on lines", "Commit <a href=\"" + pull[1] + ".diff?commit=", "<ins>shake</ins>"} {
		if !strings.Contains(page, want) {
			t.Errorf("afterwards the page lacks %q", want)
		}
	}
	commit := regexp.MustCompile(`href="(/pulls/[^"]+\.diff\?commit=[^"]+)"`).FindStringSubmatch(page)
	if commit == nil {
		t.Fatal("no comment links to its commit")
	}
	if _, text := r.open(commit[1]); !strings.Contains(text, "+Always shake it.") || !strings.Contains(text, "-Please sign in") ||
		strings.Contains(text, "index.md") { // which the job's first commit changed
		t.Errorf("the commit that carried the comments out is\n%s", text)
	}
	_, job := r.open(at)
	if n := strings.Count(job, "<strong>Instruction</strong>"); n != 2 {
		t.Errorf("the job has %d instructions", n)
	}

	// The page as readers see it, both versions side by side, and the merge.
	_, page = r.open(pull[1] + "?f=1&tab=page")
	for _, want := range []string{"<p>Please log in to see the tea.</p>", "<p>Sign in to see the tea.</p>", "block-changed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page as readers see it lacks %q", want)
		}
	}
	_, page = r.open(pull[1] + "?view=split")
	if !strings.Contains(page, "split-diff") {
		t.Error("the versions are not side by side")
	}
	r.send(pull[1]+"/merge", url.Values{"token": {r.field(page, "token")}})
	got, err := os.ReadFile(filepath.Join(source, "guides/tea.md"))
	if err != nil || string(got) != "# Tea\n\nSign in to see the tea.\n\nAlways shake it.\n" {
		t.Errorf("after the merge the page is %q, %v", got, err)
	}
	if _, page = r.open(console + "/pulls?state=merged"); !strings.Contains(page, ">merged</span>") {
		t.Errorf("the merged one is not listed: %s", page)
	}
}
