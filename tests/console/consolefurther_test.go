package console

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/cmd/docent/stores"
	"docent/internal/cell"
	website "docent/search/sources/crawl"
	"docent/search/sources/uploads"
	"docent/tests/harness"
)

// Private addresses are the operator's to allow, by command: no form of the console and no request to the API gives
// them to a source, takes them away, or moves where they lead.
func TestPrivateAddressesAreAllowedByCommandAlone(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	site := harness.Site(t)
	ops := h.App.Operator
	allowed := api.Collect{Web: api.WebOptions{AllowPrivate: true}}
	if _, err := ops.AddProject(t.Context(), api.Project{ID: "wiki", Domain: "wiki.example.com", Kind: api.SourceWeb,
		Source: site + "/docs/", Collect: allowed}, func(string, int, int) {}); err != nil {
		t.Fatal(err)
	}
	base := "/console/" + string(api.DefaultOrg) + "/wiki.example.com"
	if _, err := ops.AddSource(t.Context(), operator.SourceParams{ID: "wiki", Source: api.Source{Label: "inner", Kind: api.SourceWeb,
		Address: site + "/docs/", Collect: allowed}}, func(string, int, int) {}); err != nil {
		t.Fatal(err)
	}
	b := h.As("")
	refused := func(name, page, form, want string, values url.Values) {
		t.Helper()
		if status, text, _ := b.Send(base+page, base+form, values); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d, without %q\n%s", name, status, want, text)
		}
	}
	for _, field := range []string{"allowPrivate", "collect.web.allowPrivate", "allow-private", "ALLOWPRIVATE"} {
		on := func(more url.Values) url.Values { more.Set(field, "on"); return more }
		refused("a new source", "/sources", "/sources/further", "command line", on(url.Values{"label": {"new"}, "kind": {"web"},
			"address": {site + "/docs/"}}))
		refused("a source", "/sources", "/sources/further/inner/set", "command line", on(url.Values{"weight": {"2"}}))
		refused("the settings", "/settings", "/settings/change", "command line", on(url.Values{"name": {"Wiki"}}))
		if status, text, _ := b.Send("/console/setup", "/console/setup/source", on(url.Values{"source": {t.TempDir()}})); status != 400 ||
			!strings.Contains(text, "command line") {
			t.Errorf("a new project: %d", status)
		}
	}
	refused("another address", "/settings", "/settings/change", "source-fault", url.Values{"source": {"http://169.254.169.254/"}})
	if status, text, _ := b.Send(base+"/sources", base+"/sources/further", url.Values{"label": {"new"}, "kind": {"web"},
		"address": {site + "/docs/"}}); status != http.StatusBadRequest || !strings.Contains(text, "private") {
		t.Errorf("a new source at a private address: %d\n%s", status, text)
	}
	// What the API takes has no such thing in it, and changes none.
	admin := client.Client{Base: h.URL, Key: newKeyOf(t, h, "wiki")}
	for _, path := range []string{"/v1/project/update/wiki", "/v1/project/wiki", "/v1/project/wiki/sources"} {
		resp, err := admin.Do(t.Context(), http.MethodPost, path, map[string]any{"source": "http://10.0.0.1/", "allowPrivate": false,
			"collect": map[string]any{"web": map[string]any{"allowPrivate": false}}, "sources": []any{}})
		if err == nil {
			resp.Body.Close()
		}
	}
	// A form that is the visitor's to send leaves it as it is.
	if status, _, _ := b.Send(base+"/sources", base+"/sources/further/inner/set", url.Values{"weight": {"2"}}); status != http.StatusSeeOther {
		t.Errorf("a weight: %d", status)
	}
	if status, text, _ := b.Send(base+"/settings", base+"/settings/change", url.Values{"name": {"Wiki"}}); status != http.StatusSeeOther {
		t.Errorf("a name: %d\n%s", status, text)
	}
	p, err := h.App.Stores.Catalog.Project(t.Context(), "wiki")
	if err != nil || len(p.Sources) != 1 || !p.Collect.Web.AllowPrivate || p.Source != site+"/docs/" ||
		!p.Sources[0].Collect.Web.AllowPrivate || p.Sources[0].Weight != 2 || p.Name != "Wiki" {
		t.Errorf("%+v, %v", p, err)
	}
}

// reachesHere lets the crawler of the server reach the sites of tests.
func reachesHere(h *harness.Console) {
	sites := stores.WebSites{Crawler: website.New(website.Options{Pause: -1, Cell: cell.InProcess(website.Kinds()...),
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})}
	h.App.Stores.Sites, h.App.Stores.Source.Collectors[api.SourceWeb] = sites, sites
}

// An owner looks at how a web site would be read, adds it, and sees its status.
func TestAWebSiteIsPreviewedAndAddedOnItsPage(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	reachesHere(h)
	site, change := harness.ChangingSite(t)
	base, _ := withProject(h, "tea", harness.OnePage)
	b := h.As(api.RoleOwner)
	form := func(more ...string) url.Values {
		f := url.Values{"address": {site + "/docs/"}, "label": {"manual"}, "maxPages": {"20"}, "every": {"24h"}, "groups": {"staff"}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	status, page, _ := b.Send(base+"/sources", base+"/sources/preview", form("label", ""))
	if status != http.StatusOK {
		t.Fatalf("the preview: %d\n%s", status, page)
	}
	wants(t, page, "following links", "Pumps", site+"/docs/pumps", "Left out", "/docs/hidden", "noindex", "docent crawl preview",
		"--kind web --address", `value="24h"`)
	for name, c := range map[string]struct {
		form url.Values
		want string
	}{
		"prefix":   {form("prefix", "https://user:secret@x.example/"), "prefix-fault"},
		"sitemap":  {form("sitemap", `"><script>alert(1)</script>`), "sitemap-fault"},
		"maxPages": {form("maxPages", "many"), "maxPages-fault"},
		"most":     {form("maxPages", "60000"), "maxPages-fault"},
		"every":    {form("every", "1s"), "every-fault"},
		"label":    {form("label", "../../etc"), "label-fault"},
		"script":   {form("label", "<script>alert(1)</script>"), "label-fault"},
		"address":  {form("address", "ftp://x.example/"), "address-fault"},
		"none":     {form("address", ""), "address-fault"},
		"folder":   {form("address", "file:///etc/passwd"), "address-fault"},
		"clouds":   {form("address", "http://169.254.169.254/"), "private"},
	} {
		for _, way := range []string{"/sources/site", "/sources/preview"} {
			if status, page, _ := b.Send(base+"/sources", base+way, c.form); status != http.StatusBadRequest || !strings.Contains(page, c.want) ||
				strings.Contains(page, "<script>alert") {
				t.Errorf("%s of %s: %d, without %q\n%s", name, way, status, c.want, page)
			}
		}
	}
	if p, err := h.App.Stores.Catalog.Project(t.Context(), "tea"); err != nil || len(p.Sources) > 0 {
		t.Errorf("looking and mistakes leave %+v, %v", p.Sources, err)
	}
	status, page, to := b.Send(base+"/sources", base+"/sources/site", form())
	if status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", status, page)
	}
	b.Open(to)
	page = b.Await(base+"/sources", "2 new, 0 changed, 0 gone")
	wants(t, page, "manual", "staff", "1 left out, 0 failed", "/docs/hidden: ", "again <time")
	state, err := h.App.Status()
	if err != nil || len(state.Sources) != 1 || state.Sources[0].Label != "manual" || state.Sources[0].Failed ||
		!strings.Contains(state.Sources[0].State, "2 new, 0 changed, 0 gone, 1 left out, 0 failed; again ") {
		t.Errorf("the status has %+v, %v", state.Sources, err)
	}
	p, err := h.App.Stores.Catalog.Project(t.Context(), "tea")
	if err != nil || len(p.Sources) != 1 || p.Sources[0].Every != "24h" || p.Sources[0].Collect.Web.MaxPages != 20 ||
		p.Sources[0].Groups[0] != "staff" || p.Sources[0].Collect.Web.AllowPrivate {
		t.Errorf("%+v, %v", p.Sources, err)
	}
	if status, page, _ := b.Send(base+"/sources", base+"/sources/site", form()); status != http.StatusBadRequest ||
		!strings.Contains(page, "label-fault") {
		t.Errorf("the same label again: %d", status)
	}
	change()
	b.Send(base+"/sources", base+"/sources/further/manual/read", nil)
	b.Await(base+"/sources", "0 new, 1 changed, 0 gone")
	editor := h.As(api.RoleEditor)
	for _, way := range []string{"/sources/site", "/sources/preview"} {
		f := form()
		f.Set("token", html.UnescapeString(harness.FormToken.FindStringSubmatch(editor.Open("/console"))[1]))
		if status, _, _ := editor.Do(http.MethodPost, base+way, f); status != http.StatusForbidden {
			t.Errorf("an editor's %s: %d", way, status)
		}
	}
	if strings.Contains(editor.Open(base+"/sources"), "Add a web site") {
		t.Error("an editor is offered what owners do")
	}
}

// uploadOf sends the form of an upload, with the fields before the file.
func uploadOf(b *harness.Visitor, base string, fields url.Values, file io.Reader) (int, string, string) {
	b.T.Helper()
	if m := harness.FormToken.FindStringSubmatch(b.Open("/console")); m != nil && !fields.Has("token") {
		fields.Set("token", html.UnescapeString(m[1]))
	}
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	for name := range fields {
		if err := form.WriteField(name, fields.Get(name)); err != nil {
			b.T.Fatal(err)
		}
	}
	body := io.Reader(&head)
	if file != nil {
		if _, err := form.CreateFormFile("zip", `../../<b>"name.zip`); err != nil {
			b.T.Fatal(err)
		}
		body = io.MultiReader(&head, file, strings.NewReader("\r\n--"+form.Boundary()+"--\r\n"))
	} else if err := form.Close(); err != nil {
		b.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.T.Context(), http.MethodPost, b.URL+base+"/sources/upload", body)
	if err != nil {
		b.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := b.Client.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header.Get("Location")
}

// An owner uploads the pages of a source, and again; what is no zip, too large or from another place changes nothing.
func TestAZipIsUploadedOnItsPage(t *testing.T) {
	t.Parallel()
	h := newConsoleHouse(t)
	limits := uploads.DefaultLimits
	limits.Packed = 64 << 10
	h.App.Stores.Uploads.Limits = limits
	base, _ := withProject(h, "tea", harness.OnePage)
	b := h.As(api.RoleOwner)
	zipped := func(files map[string]string) io.Reader {
		raw, err := os.ReadFile(harness.ZipOf(t, files))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(raw)
	}
	apples := map[string]string{"apples.md": "# Apples\n\nApples are green.\n"}
	form := func(label string) url.Values { return url.Values{"zipLabel": {label}, "zipGroups": {"staff"}} }
	nothing := func(name string, status int, want string, fields url.Values, file io.Reader, who *harness.Visitor) {
		t.Helper()
		got, page, to := uploadOf(who, base, fields, file)
		if _, task, waits := strings.Cut(to, "/task/"); waits { // a slow machine: the page of the task says it
			if h.Ended(task).Failed() {
				got, page = status, want
			}
		}
		if got != status || !strings.Contains(page, want) || strings.Contains(page, "<b>") {
			t.Errorf("%s: %d without %q\n%s", name, got, want, page)
		}
		p, err := h.App.Stores.Catalog.Project(t.Context(), "tea")
		if err != nil || len(p.Sources) > 0 {
			t.Errorf("%s: the sources are %+v, %v", name, p.Sources, err)
		}
		left, _ := filepath.Glob(filepath.Join(h.Data, "sources", ".incoming", "*"))
		if kept, _ := filepath.Glob(filepath.Join(h.Data, "sources", "tea*")); len(left)+len(kept) > 0 {
			t.Errorf("%s leaves %v, %v", name, left, kept)
		}
	}
	nothing("no zip", 400, "zip-fault", form("manual"), strings.NewReader("<b>this is no zip"), b)
	nothing("an empty one", 400, "zip-fault", form("manual"), strings.NewReader(""), b)
	nothing("one that climbs", 400, "zip-fault", form("manual"), zipped(map[string]string{"../../up.md": "# Up\n"}), b)
	nothing("too large", 400, "zip-fault", form("manual"), bytes.NewReader(make([]byte, 65<<10)), b)
	nothing("no file", 400, "zip-fault", form("manual"), nil, b)
	for _, label := range []string{"../../etc", "<b>", "", strings.Repeat("a", 40)} {
		nothing("the label "+label, 400, "zipLabel-fault", form(label), zipped(apples), b)
	}
	nothing("the project's own folder", 409, "of the kind zip", form("docs"), zipped(apples), b)
	nothing("private addresses", 400, "command line", url.Values{"zipLabel": {"manual"}, "allowPrivate": {"on"}}, zipped(apples), b)
	nothing("a form without a token", 403, "reload the page", url.Values{"zipLabel": {"manual"}, "token": {""}}, zipped(apples), b)
	nothing("an editor", 403, "this needs the role", form("manual"), zipped(apples), h.As(api.RoleEditor))
	nothing("many fields", 400, "larger than a form", url.Values{"zipLabel": {strings.Repeat("a", 300<<10)}}, zipped(apples), b)

	for _, text := range []string{"green", "red"} {
		status, page, to := uploadOf(b, base, form("manual"), zipped(map[string]string{"apples.md": "# Apples\n\nApples are " + text + ".\n"}))
		if status != http.StatusSeeOther {
			t.Fatalf("%d\n%s", status, page)
		}
		b.Open(to)
		b.Await(base+"/sources", "staff")
		if task, ok := h.App.Tasks.Newest("tea"); ok {
			h.Ended(task.ID)
		}
		raw, err := os.ReadFile(filepath.Join(h.Data, "sources", "tea@manual", "pages", "apples.md"))
		if err != nil || !strings.Contains(string(raw), text) {
			t.Errorf("%s: %s, %v", text, raw, err)
		}
	}
	list, err := h.App.Stores.Source.Sources(t.Context(), "tea")
	if err != nil || len(list) != 2 || list[1].Pages != 1 || list[1].Groups[0] != "staff" {
		t.Errorf("%+v, %v", list, err)
	}
}
