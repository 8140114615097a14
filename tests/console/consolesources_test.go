package console

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"docent/api"
	"docent/cmd/docent/operator"
	"docent/forge/forgetest"
	"docent/tests/harness"
)

// withProject adds a project of a folder, and gives the address of its overview.
func withProject(h *harness.Console, id string, files map[string]string) (base, source string) {
	h.T.Helper()
	source = harness.WriteFiles(h.T, files)
	p := api.Project{ID: api.ProjectID(id), Domain: id + ".example.com", Source: source}
	if _, err := h.App.Operator.AddProject(h.T.Context(), p, func(string, int, int) {}); err != nil {
		h.T.Fatal(err)
	}
	return "/console/" + string(api.DefaultOrg) + "/" + p.Domain, source
}

// TestSourcesShowWhatWasReadOfEachPage checks all pages, filters them, has the documentation read again after a change,
// and looks at what has changed.
func TestSourcesShowWhatWasReadOfEachPage(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	base, source := withProject(h,
		"tea",
		map[string]string{"index.md": "# Tea\n\nGreen.\n\n## Black\n\nStrong. [x](/gone)\n",
			"oolong.md": "# Oolong\n\nBlue.\n", "_hidden.md": "# Hidden\n"},
	)
	b := h.As(api.RoleEditor)
	page := b.Open(base + "/sources")
	wants(t, page, source, "Run a check to see which pages are public", "Set up a webhook", "unknown: sources")
	if status, _, to := b.Send(base+"/sources", base+"/sources/check", nil); status != http.StatusSeeOther {
		t.Errorf("%d, %s", status, to)
	}
	page = b.Await(base+"/sources", "2 pages")
	wants(t, page, "Oolong", "oolong.md", "1 left out", "1 dead link", "Import from folder")
	wants(t, b.Open(base+"/sources?show=left"), "_hidden.md", "left out")
	wants(t, b.Open(base+"/sources?show=links"), "/gone")
	wants(t, b.Open(base+"/sources?show=warnings"), "without a warning")
	if page = b.Open(
		base + "/sources?q=oolong",
	); strings.Contains(page, "<code>index.md</code>") ||
		!strings.Contains(page, "1 page") {
		t.Errorf("the filter:\n%s", page)
	}
	wants(t, b.Open(base+"/sources?state=unlisted"), "No matching pages")
	wants(t, b.Open(base+"/sources?q="+url.QueryEscape(`"><script>alert(1)</script>`)), "&lt;script&gt;")

	if err := os.WriteFile(filepath.Join(source, "white.md"), []byte("# White\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, to := b.Send(base+"/sources", base+"/sources/reindex", nil)
	if status != http.StatusSeeOther || !strings.Contains(to, "/sources/updates/upd_") {
		t.Fatalf("%d, %s", status, to)
	}
	page = b.Await(to, "success")
	wants(t, page, "white.md", "1 added")
	wants(t, b.Open(base+"/sources"), "Answers come from a newer commit", "success")
	if err := os.Rename(source, source+".away"); err != nil {
		t.Fatal(err)
	}
	_, _, to = b.Send(base+"/sources", base+"/sources/reindex", nil)
	b.Await(to, "not set up correctly")
	wants(t, b.Await(base+"/sources", "The source could not be read"), "Answers come from the last index", "no such file")
	if status, _, _ := b.Do(http.MethodGet, base+"/sources/task/another", nil); status != http.StatusNotFound {
		t.Errorf("a task that does not exist: %d", status)
	}
}

// TestLongListsOfPagesAreGoneThroughByTheirLastRow reads a list of several pages to its end.
func TestLongListsOfPagesAreGoneThroughByTheirLastRow(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	files := map[string]string{}
	for i := range 250 {
		files["p"+string(rune('a'+i/26))+string(rune('a'+i%26))+".md"] = "# P\n"
	}
	base, _ := withProject(h, "many", files)
	b := h.As(api.RoleEditor)
	b.Send(base+"/sources", base+"/sources/check", nil)
	b.Await(base+"/sources", "250 pages")
	seen := map[string]bool{}
	next := regexp.MustCompile(`<a class="button" href="([^"]+)#pages">Next`)
	for at, rounds := base+"/sources", 0; at != "" && rounds < 5; rounds++ {
		page := b.Open(at)
		for _, m := range regexp.MustCompile(`<code>(p\w+\.md)</code>`).FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Errorf("%s comes twice", m[1])
			}
			seen[m[1]] = true
		}
		at = ""
		if m := next.FindStringSubmatch(page); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 250 {
		t.Errorf("%d pages are shown", len(seen))
	}
}

// TestAWebhookIsSetUpAndTried makes a secret on the page, tries it, and looks at real deliveries and refused ones.
func TestAWebhookIsSetUpAndTried(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	base, _ := withProject(h, "tea", map[string]string{"index.md": "# Tea\n"})
	b := h.As(api.RoleOwner)
	at := base + "/sources/webhook"
	wants(t, b.Open(at), h.URL+"/v1/webhook/tea/push", "There is no secret", "GitHub", "Forgejo")
	if status, page, _ := b.Send(
		at,
		at+"/test",
		nil,
	); status != http.StatusConflict ||
		!strings.Contains(page, "make one first") {
		t.Errorf("a test without a secret: %d", status)
	}
	status, _, to := b.Send(at, at+"/new", nil)
	if status != http.StatusSeeOther {
		t.Fatal(status)
	}
	page := b.Open(to)
	secret := regexp.MustCompile(`whsec_\w+`).FindString(page)
	if secret == "" {
		t.Fatal(page)
	}
	if strings.Contains(b.Open(at), secret) {
		t.Error("the secret is shown twice")
	}
	if status, page, _ = b.Send(at, at+"/test", nil); status != http.StatusOK {
		t.Errorf("%d", status)
	}
	wants(t, page, "taken in", `<span class="badge ok">202</span>`, "No push has been delivered yet")
	if strings.Contains(page, secret) {
		t.Error("the test shows the secret")
	}
	push := func(secret string) {
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			h.URL+"/v1/webhook/tea/push",
			strings.NewReader(
				`{"ref":"refs/heads/main","after":"`+strings.Repeat(
					"a",
					40,
				)+`","repository":{"full_name":"acme/<b>tea","default_branch":"main"}}`,
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitlab-Event", "Push Hook")
		req.Header.Set("X-Gitlab-Token", secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	push(secret)
	wants(t, b.Open(at), "from Gitlab", "acme/&lt;b&gt;tea")
	push("another")
	wants(t, b.Open(at), "The last request was refused", "not signed")
	b.Send(at, at+"/remove", nil)
	wants(t, b.Open(at), "There is no secret")
	if strings.Contains(h.Log.String(), secret) || len(harness.Holders(t, h.Data, secret)) > 0 {
		t.Error("the secret is in the log or on the disk")
	}
}

// TestSettingsAreChangedWhereTheyMayBe changes settings, gets them wrong, and removes the project.
func TestSettingsAreChangedWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	base, source := withProject(h, "tea", map[string]string{"index.md": "# Tea\n", "extra/x.md": "# X\n"})
	b := h.As(api.RoleOwner)
	at := base + "/settings"
	page := b.Open(at)
	wants(t, page, source, "the server&#39;s default", "docent project set tea", `name="projectHour"`)
	status, page, _ := b.Send(
		at,
		at+"/change",
		url.Values{"domain": {"Not A Domain"}, "siteUrl": {"ftp://x"}, "projectHour": {"many"},
			"deflection": {"nobody"}, "pulls.title": {"docs"}, "pulls.signOff": {"on"}},
	)
	if status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
	wants(
		t,
		page,
		"must be a domain or one part of it",
		"must be an http or https URL",
		"must be a whole number",
		"email address",
		`value="many"`,
		`id="pulls.title-fault"`,
		"needs an author who signs",
	)
	status, page, _ = b.Send(at, at+"/change", url.Values{"docsDir": {"nowhere"}})
	if status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
	wants(t, page, "holds no page", `id="docsDir-fault"`)

	status, _, to := b.Send(
		at,
		at+"/change",
		url.Values{"siteUrl": {"https://tea.example.com"}, "exclude": {"extra/\n"},
			"suggestions": {"on"}, "projectHour": {"7"}, "deflection": {"help@example.com"}, "pulls.author": {"Tea Bot <bot@tea.example>"},
			"pulls.signOff": {"on"}, "pulls.title": {"docs({scope}): {title}"}, "pulls.body": {"For #1\r\n\r\n{report}\r\n"},
			"pulls.reviewers": {"ann, codeowners"}, "pulls.draft": {"on"}, "pulls.most": {"3"}},
	)
	if status != http.StatusSeeOther {
		t.Fatalf("%d", status)
	}
	b.Open(to)
	b.Await(at, `value="7"`)
	p, err := h.App.Stores.Catalog.Project(t.Context(), "tea")
	if err != nil || p.SiteURL != "https://tea.example.com" || len(p.Exclude) != 1 || !p.Options.Suggestions ||
		p.Limits.ProjectHour != 7 || p.Deflection != "help@example.com" || p.Source != source || p.Domain != "tea.example.com" {
		t.Errorf("%+v, %v", p, err)
	}
	if want := (api.PullForm{Author: "Tea Bot <bot@tea.example>", SignOff: true, Title: "docs({scope}): {title}", Draft: true,
		Body: "For #1\n\n{report}", Reviewers: "ann, codeowners", Most: 3}); p.Pulls != want {
		t.Errorf("%+v", p.Pulls)
	}
	wants(t, b.Open(at), "--pull-title", "--sign-off", "Tea Bot &lt;bot@tea.example&gt;")
	status, page, _ = b.Send(at, at+"/remove", url.Values{"confirm": {"coffee"}})
	if status != http.StatusBadRequest || !strings.Contains(page, "Type tea to remove") {
		t.Errorf("another name: %d", status)
	}
	if status, _, to = b.Send(
		at,
		at+"/remove",
		url.Values{"confirm": {"tea"}},
	); status != http.StatusSeeOther ||
		to != "/console" {
		t.Errorf("%d, %s", status, to)
	}
	if _, err := h.App.Stores.Catalog.Project(t.Context(), "tea"); err == nil {
		t.Error("the project is still there")
	}
}

// TestSourcesAndSettingsKeepToTheirRoles tries every action as those who may not do it, and as an owner of another
// organization what only an operator may change.
func TestSourcesAndSettingsKeepToTheirRoles(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	base, source := withProject(h, "tea", map[string]string{"index.md": "# Tea\n"})
	viewer, editor := h.As(api.RoleViewer), h.As(api.RoleEditor)
	for _, c := range []struct {
		who    *harness.Visitor
		path   string
		status int
	}{
		{viewer, "/sources/reindex", 403}, {viewer, "/sources/check", 403}, {viewer, "/sources/token", 403},
		{viewer, "/sources/webhook/new", 403}, {viewer, "/sources/webhook/test", 403}, {viewer, "/settings/change", 403},
		{viewer, "/settings/remove", 403},
		{editor, "/sources/token", 403}, {editor, "/sources/webhook/new", 403}, {editor, "/sources/webhook/remove", 403},
		{editor, "/settings/change", 403}, {editor, "/settings/remove", 403},
	} {
		form := url.Values{"confirm": {"tea"}, "secret": {"x"}, "token": {html.UnescapeString(
			harness.FormToken.FindStringSubmatch(c.who.Open("/console"))[1])}}
		if status, _, _ := c.who.Do(http.MethodPost, base+c.path, form); status != c.status {
			t.Errorf("%s: %d, want %d", c.path, status, c.status)
		}
	}
	for _, page := range []string{"/sources", "/sources/webhook", "/settings"} {
		text := viewer.Open(base + page)
		if regexp.MustCompile(`action="[^"]*(sources|settings)/(?:\w)[^"]*"`).MatchString(text) && page != "/settings" {
			t.Errorf("%s offers a viewer what they may not do", page)
		}
		if !strings.Contains(text, "<fieldset disabled>") && page == "/settings" {
			t.Errorf("a viewer may fill in the settings:\n%s", text)
		}
	}
	// An owner who does not run the server changes neither the source nor where tokens go.
	if err := h.App.Stores.Catalog.AddOrganization(t.Context(), "acme", "Acme"); err != nil {
		t.Fatal(err)
	}
	p := api.Project{ID: "acme", Org: "acme", Domain: "docs.acme.example", Source: source}
	if _, err := h.App.Operator.AddProject(t.Context(), p, func(string, int, int) {}); err != nil {
		t.Fatal(err)
	}
	stranger := h.AsIn("acme", api.RoleOwner)
	at := "/console/acme/docs.acme.example/settings"
	if page := stranger.Open(at); strings.Contains(page, `name="source"`) || strings.Contains(page, `name="hostUrl"`) {
		t.Error("the source is asked for")
	}
	if status, _, _ := stranger.Send(
		at,
		at+"/change",
		url.Values{"source": {"/etc"}, "hostUrl": {"https://evil.example"},
			"tokenEnv": {"DOCENT_MODEL_API_KEY"}, "name": {"Acme"}},
	); status != http.StatusSeeOther {
		t.Errorf("%d", status)
	}
	if got, err := h.App.Stores.Catalog.Project(
		t.Context(),
		"acme",
	); err != nil || got.Source != source || got.HostURL != "" ||
		got.TokenEnv != "" ||
		got.Name != "Acme" {
		t.Errorf("%+v, %v", got, err)
	}
	if status, _, _ := stranger.Do(http.MethodGet, base+"/sources", nil); status != http.StatusNotFound {
		t.Errorf("another organization's sources: %d", status)
	}
}

func newKeyOf(t *testing.T, h *harness.Console, project api.ProjectID) string {
	t.Helper()
	made, err := h.App.Operator.
		CreateKey(t.Context(), operator.KeyParams{Project: project, Kind: api.AdminKey, Name: "owner"})
	if err != nil {
		t.Fatal(err)
	}
	return made.Key
}

// TestATokenThatIsPastedIsSeenByNobody sets up a project of a code host with its token, and replaces it.
func TestATokenThatIsPastedIsSeenByNobody(t *testing.T) {
	t.Parallel()
	const secret, wrong = "tok_PastedIntoTheWizard", "tok_ThatTheHostRefuses"
	host := forgetest.NewStandIn(t)
	host.Do(func() { host.Tokens, host.Prune = []string{secret}, true })
	h := newConsoleHouse(t)
	b := h.As("")
	var seen strings.Builder
	_, page, to := b.Send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {host.URL + "/acme/docs?private_token=" + wrong}, "kind": {"gitea"},
			"secret": {wrong}},
	)
	if to == "" {
		t.Fatal(page)
	}
	page = b.Await(to, "Can't read")
	wants(t, page, "does not accept the stored token")
	seen.WriteString(page)
	_, page, to = b.Send(
		"/console/setup",
		"/console/setup/source",
		url.Values{"source": {host.URL + "/acme/docs"}, "kind": {"gitea"},
			"secret": {secret}},
	)
	if to == "" {
		t.Fatal(page)
	}
	page = b.Await(to, "Review “")
	wants(t, page, "acme/docs", "pull requests are opened there")
	seen.WriteString(page)
	_, page, next := b.Send(to, to+"/add", url.Values{"domain": {"docs.acme.example"}})
	seen.WriteString(page)
	seen.WriteString(b.Await(next, "is indexed"))
	base := "/console/" + string(api.DefaultOrg) + "/docs.acme.example"
	page = b.Open(base + "/sources")
	wants(t, page, "a token that is stored here")
	seen.WriteString(page)
	status, page, _ := b.Send(base+"/sources", base+"/sources/token", url.Values{"secret": {wrong}})
	if status != http.StatusBadRequest {
		t.Errorf("a token that the host refuses: %d", status)
	}
	wants(t, page, "does not accept")
	seen.WriteString(page + b.Open(base+"/settings"))
	// Nor by who runs the server and names another host.
	met := make(chan string, 100)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, password, _ := req.BasicAuth()
		met <- req.Header.Get("Authorization") + " " + password
		http.NotFound(w, req)
	}))
	defer evil.Close()
	for field, value := range map[string]string{"hostUrl": evil.URL, "source": evil.URL + "/acme/docs.git"} {
		status, page, _ = b.Send(base+"/settings", base+"/settings/change", url.Values{field: {value}})
		if status != http.StatusBadRequest {
			t.Errorf("another %s: %d", field, status)
		}
		wants(t, page, "the stored token was not entered for this host")
	}
	evil.Close()
	close(met)
	for said := range met {
		t.Errorf("another host is told %q", said)
	}
	for _, text := range []string{secret, wrong} {
		if strings.Contains(seen.String(), text) || strings.Contains(h.Log.String(), text) {
			t.Errorf("%s is on a page or in the log", text)
		}
	}
	if list := harness.Holders(t, h.Data, secret); len(list) != 1 || !strings.HasPrefix(list[0], "secrets/") {
		t.Errorf("the token is in %q", list)
	}
	if list := harness.Holders(t, h.Data, wrong); len(list) > 0 {
		t.Errorf("the refused token is in %q", list)
	}
}
