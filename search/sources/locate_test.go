package sources

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"docent/api"
	"docent/internal/outbound"
)

// TestLocateKnowsWhatSomebodyHasPasted goes through what people have at hand: paths, clone addresses, addresses from
// the browser's bar.
func TestLocateKnowsWhatSomebodyHasPasted(t *testing.T) {
	t.Parallel()
	type want struct {
		kind                                         PlaceKind
		host                                         api.HostKind
		source, hostURL, repository, branch, docsDir string
	}
	const github = "https://github.com/acme/docs.git"
	for text, w := range map[string]want{
		"/srv/docs/":                       {kind: PlaceFolder, host: "builtin", source: "/srv/docs"},
		"/srv/my docs; rm -rf":             {kind: PlaceFolder, host: "builtin", source: "/srv/my docs; rm -rf"},
		"file:///srv/docs.git":             {kind: PlaceFolder, host: "builtin", source: "/srv/docs.git"},
		" https://github.com/acme/docs ":   {kind: PlaceHosted, host: "github", source: github, repository: "acme/docs"},
		"github.com/acme/docs":             {kind: PlaceHosted, host: "github", source: github, repository: "acme/docs"},
		"https://github.com/acme/docs.git": {kind: PlaceHosted, host: "github", source: github, repository: "acme/docs"},
		"https://github.com/acme/docs/tree/next/site/en": {kind: PlaceHosted, host: "github", source: github,
			repository: "acme/docs", branch: "next", docsDir: "site/en"},
		"https://github.com/acme/docs/blob/main/guide/start.md": {kind: PlaceHosted, host: "github", source: github,
			repository: "acme/docs", branch: "main", docsDir: "guide"},
		"https://github.com/acme/docs/issues?q=x": {kind: PlaceHosted, host: "github", source: github, repository: "acme/docs"},
		"git@github.com:acme/docs.git": {kind: PlaceHosted, host: "github", source: "git@github.com:acme/docs.git",
			repository: "acme/docs"},
		"ssh://git@gitlab.example.com/a/b/docs.git": {kind: PlaceHosted, host: "gitlab", hostURL: "https://gitlab.example.com",
			source: "ssh://git@gitlab.example.com/a/b/docs.git", repository: "a/b/docs"},
		"https://gitlab.com/a/b/docs/-/tree/main/guide": {kind: PlaceHosted, host: "gitlab",
			source: "https://gitlab.com/a/b/docs.git", repository: "a/b/docs", branch: "main", docsDir: "guide"},
		"https://codeberg.org/acme/docs/src/branch/main/docs": {kind: PlaceHosted, host: "gitea",
			hostURL: "https://codeberg.org", source: "https://codeberg.org/acme/docs.git", repository: "acme/docs",
			branch: "main", docsDir: "docs"},
		"https://git.example.com/team/docs.git": {kind: PlaceGit, host: "builtin", source: "https://git.example.com/team/docs.git"},
		"me@git.example.com:team/docs":          {kind: PlaceGit, host: "builtin", source: "me@git.example.com:team/docs"},
		"https://docs.example.com/start":        {kind: PlaceUnknown},
		"docs.example.com":                      {kind: PlaceUnknown},
		"https://github.com/acme":               {kind: PlaceUnknown},
		"https://acme.github.io/docs/":          {kind: PlaceUnknown},
	} {
		got, err := Locate(text)
		p := got.Project
		if is := (want{got.Kind, p.Host, p.Source, p.HostURL, p.Repository, p.Branch, p.DocsDir}); err != nil ||
			is != w {
			t.Errorf("%q:\n%+v, %v, want\n%+v", text, is, err, w)
		}
	}
}

// TestLocateRefusesWhatIsDangerousAndDoesNotRepeatIt holds options and programs to git, credentials in addresses and
// other schemes against it.
func TestLocateRefusesWhatIsDangerousAndDoesNotRepeatIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "-oProxyCommand=touch /tmp/x", "--upload-pack=touch", "ssh://-oProxyCommand=touch/x", "ext::sh -c touch",
		"https://user:hunter2@example.com/docs.git", "https://hunter2@github.com/acme/docs", "ssh://git:hunter2@example.com/x",
		"javascript:alert(1)//hunter2://", "ftp://example.com/hunter2", "gopher://169.254.169.254/hunter2", "data:text/html,hunter2://",
		"file://example.com/etc/hunter2", "docs\x00hunter2", "https:///hunter2", "docs/hunter2", "../hunter2", `C:\hunter2`,
		`\\server\hunter2`, strings.Repeat("x", 3000), "https://[::1%25hunter2/",
	} {
		got, err := Locate(text)
		var invalid *api.InvalidError
		if !errors.As(err, &invalid) || invalid.Problems[0].Field != "source" {
			t.Errorf("%.60q is taken as %+v, %v", text, got, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60q is repeated: %v", text, err)
		}
	}
	for text, want := range map[string]string{"/srv/My Docs!": "my-docs", "/": "docs", "/srv/..": "docs",
		"git@git.example.com:docs.git": "docs", "https://x.example.com/a/Site_2.git": "site-2"} {
		if got := ProposeID(api.Project{Source: text}); got != want {
			t.Errorf("the name for %q is %q, want %q", text, got, want)
		}
	}
}

// TestASiteTellsWhereItsSourcesAre reads pages as generators make them.
func TestASiteTellsWhereItsSourcesAre(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"/": `<nav><a href="https://github.com/acme/app">GitHub</a><a href="https://github.com/acme/app">Stars</a></nav>
			<main><a class="edit" href="https://github.com/acme/docs/edit/main/guide/start.md"><svg/>Edit this page</a>
			<a href="https://github.com/acme">acme</a><a href="javascript:alert(1)">x</a><a href="/local">y</a></main>`,
		"/none":               `<a href="https://example.com">x</a> <script>"https://github.com/a/b"</script>`,
		"/evil":               `<a href="https://github.com/--upload-pack=x/docs">Edit</a><a href="https://tok@github.com/a/b">Edit</a>`,
		"/docs.git/info/refs": "git",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/docs.git/info/refs" {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		}
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	w := Website{Policy: outbound.Policy{Loopback: true}}
	_, list, err := w.Find(t.Context(), server.URL+"/")
	if err != nil || len(list) != 2 || !list[0].Edit || list[1].Edit {
		t.Fatalf("%+v, %v", list, err)
	}
	if p := list[0].Place.Project; p.Repository != "acme/docs" || p.Branch != "main" || p.DocsDir != "guide" {
		t.Errorf("%+v", p)
	}
	if p := list[1].Place.Project; p.Repository != "acme/app" || p.DocsDir != "" {
		t.Errorf("%+v", p)
	}
	if _, list, err := w.Find(t.Context(), server.URL+"/none"); err != nil || len(list) > 0 {
		t.Errorf("a site without a link: %+v, %v", list, err)
	}
	if _, list, err := w.Find(t.Context(), server.URL+"/evil"); err != nil || len(list) > 1 ||
		len(list) == 1 && strings.HasPrefix(list[0].Place.Project.Source, "-") {
		t.Errorf("hostile links: %+v, %v", list, err)
	}
	if git, _, err := w.Find(t.Context(), server.URL+"/docs.git"); err != nil || git.Kind != PlaceGit {
		t.Errorf("a repository: %+v, %v", git, err)
	}
	if _, _, err := w.Find(t.Context(), server.URL+"/missing"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a page that is not there: %v", err)
	}
}

// TestASiteIsNoWayIntoTheServersNetwork asks for addresses of the machine and its network, directly, by name and by a
// redirect.
func TestASiteIsNoWayIntoTheServersNetwork(t *testing.T) {
	t.Parallel()
	asked := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inside.Close()
	for _, address := range []string{
		inside.URL, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1), strings.Replace(inside.URL, "127.0.0.1", "0.0.0.0", 1),
		strings.Replace(inside.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), "http://169.254.169.254/latest/meta-data/",
		"http://[fe80::1]/", "http://10.0.0.1/", "http://[fd00::1]/", "http://[64:ff9b::a9fe:a9fe]/",
	} {
		if _, _, err := (Website{}).Find(t.Context(), address); !errors.Is(err, api.ErrInvalid) ||
			!strings.Contains(err.Error(), "private network") && !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "http://user@example.com/"} {
		if _, _, err := (Website{}).Find(t.Context(), address); err == nil {
			t.Errorf("%s is looked at", address)
		}
	}
	// A page of the public internet that leads into the network: the first address is let through, the second is not.
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(inside.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusFound)
	}))
	defer outside.Close()
	w := Website{Policy: outbound.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}
	if _, _, err := w.Find(t.Context(), outside.URL); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Errorf("a redirect: %v", err)
	}
	if asked {
		t.Error("the server's own network was asked")
	}
}
