package harness

import (
	"context"
	"crypto/rand"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/cmd/docent/server"
	"docent/search/sources"
)

// OnePage is a documentation of one page.
var OnePage = map[string]string{"index.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"}

// TextOf is what was answered; nothing of a stream, which does not end.
func TextOf(t testing.TB, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return ""
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A Console is the whole program in the test's process, so that a test may sign in as anybody.
type Console struct {
	T    *testing.T
	App  *server.Server
	URL  string
	Data string
	Log  *LockedBuffer
}

// A Visitor is a browser of somebody who is signed in.
type Visitor struct {
	*Console
	Client *http.Client
}

// As is a browser of somebody with that role in the default organization; of the operator where it is empty.
func (h *Console) As(role api.Role) *Visitor {
	h.T.Helper()
	if role == "" {
		return h.browse(api.SignIn{Kind: api.SessionOfLink, How: "link"})
	}
	return h.AsIn(api.DefaultOrg, role)
}

// AsIn is a browser of somebody with that role in an organization.
func (h *Console) AsIn(org api.OrgID, role api.Role) *Visitor {
	h.T.Helper()
	p, err := h.App.Stores.Catalog.AddPerson(h.T.Context(), api.Person{Name: string(role),
		Email: rand.Text() + "@example.com", Roles: map[api.OrgID]api.Role{org: role}}, "")
	if err != nil {
		h.T.Fatal(err)
	}
	return h.browse(api.SignIn{Kind: api.SessionOfPerson, Person: p.ID, How: "link"})
}

// browse is a browser with a session.
func (h *Console) browse(in api.SignIn) *Visitor {
	h.T.Helper()
	now := time.Now()
	in.CreatedAt, in.SeenAt, in.ExpiresAt, in.Idle = now, now, now.Add(time.Hour), time.Hour
	token := rand.Text()
	if _, err := h.App.Stores.Catalog.AddSession(h.T.Context(), in, api.HashSecret(token)); err != nil {
		h.T.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	u, _ := url.Parse(h.URL)
	jar.SetCookies(u, []*http.Cookie{{Name: "docent_session", Value: token, Path: "/"}})
	return h.visitor(jar)
}

// visitor has connections of its own: a server that another test closes would close the idle ones of all.
func (h *Console) visitor(jar http.CookieJar) *Visitor {
	transport := &http.Transport{}
	h.T.Cleanup(transport.CloseIdleConnections)
	return &Visitor{h, &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// SignedIn is a browser of somebody who has signed in with an admin key.
func (h *Console) SignedIn(key string) *Visitor {
	h.T.Helper()
	jar, _ := cookiejar.New(nil)
	b := h.visitor(jar)
	if status, page, _ := b.Send("/login", "/login", url.Values{"key": {key}}); status != http.StatusSeeOther {
		h.T.Fatalf("sign in: %d\n%s", status, page)
	}
	return b
}

// Do sends a request, and gives its status, its text and where it leads.
func (b *Visitor) Do(method, path string, form url.Values) (int, string, string) {
	b.T.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.T.Context(), method, b.URL+path, body)
	if err != nil {
		b.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
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

// Open gets a page, following where it leads.
func (b *Visitor) Open(path string) string {
	b.T.Helper()
	for range 5 {
		status, text, to := b.Do(http.MethodGet, path, nil)
		if status == http.StatusSeeOther {
			path = to
			continue
		}
		if status != http.StatusOK {
			b.T.Fatalf("GET %s: %d\n%s\n%s", path, status, text, b.Log)
		}
		return text
	}
	b.T.Fatalf("%s leads round and round", path)
	return ""
}

// FormToken finds the token of a form.
var FormToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// Send sends a form of a page, and gives the status, the page and where it leads. Where it leads to a task that takes longer
// than a page waits, as on a slow machine, that has ended afterwards. One that failed has changed nothing: the form is sent
// again, since only its own page says what is wrong with it.
func (b *Visitor) Send(from, path string, form url.Values) (status int, page, to string) {
	b.T.Helper()
	if form == nil {
		form = url.Values{}
	}
	Until(b.T, path+" is answered", func() bool {
		m := FormToken.FindStringSubmatch(b.Open(from))
		if m == nil {
			b.T.Fatalf("%s has no form", from)
		}
		form.Set("token", html.UnescapeString(m[1]))
		status, page, to = b.Do(http.MethodPost, path, form)
		_, task, waits := strings.Cut(to, "/sources/task/")
		return !waits || !b.Ended(task).Failed()
	})
	return status, page, to
}

// Ended waits until a task has ended, and gives it as it is then.
func (h *Console) Ended(id string) (task sources.Task) {
	h.T.Helper()
	Until(h.T, "the task has ended", func() bool {
		var err error
		if task, err = h.App.Tasks.Task(id); err != nil {
			h.T.Fatal(err)
		}
		return !task.Running()
	})
	return task
}

// Await opens a page until it has a text.
func (b *Visitor) Await(path, text string) string {
	b.T.Helper()
	page := ""
	ctx, cancel := context.WithTimeout(b.T.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if page = b.Open(path); strings.Contains(page, text) {
			return page
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.T.Fatalf("%s does not come to say %q:\n%s", path, text, page)
	return ""
}
