package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"docent/api/client"
	"docent/tests/harness"
)

const acmeConsole = "/console/org-a/docs.acme.example"

var madeSecret = regexp.MustCompile(`dct_(?:adm|pub)_[0-9A-Za-z]{49}`)

// form sends a form of the console's pages and expects a status.
func (g *guest) form(status int, path string, pairs ...string) string {
	g.T.Helper()
	form := url.Values{"token": {g.token}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	res := g.do(http.MethodPost, acmeConsole+path, form, "Sec-Fetch-Site", "same-origin")
	if status == http.StatusOK && res.StatusCode == http.StatusSeeOther {
		res = g.do(http.MethodGet, res.Header.Get("Location"), nil)
	}
	text := harness.TextOf(g.T, res)
	if res.StatusCode != status {
		g.T.Fatalf("POST %s: %d, want %d: %s", path, res.StatusCode, status, text)
	}
	return text
}

// page gets a page of the console.
func (g *guest) page(path string) string {
	g.T.Helper()
	return harness.TextOf(g.T, g.do(http.MethodGet, acmeConsole+path, nil))
}

// ask asks as a reader's browser does, and gives the status and the thread.
func (h *guarded) ask(key, caller, question string) (int, string) {
	h.T.Helper()
	body := fmt.Sprintf(`{"fp": %q, "messages": [{"role": "user", "parts": [{"type": "text", "text": %q}]}]}`, caller, question)
	req, err := http.NewRequestWithContext(h.T.Context(), http.MethodPost,
		h.URL+"/discovery/v2/assistant/docs.acme.example/message", strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil { // to the end of the answer
		h.T.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("X-Thread-Id")
}

// events follows a live part until it shows a text.
func (g *guest) events(path string) (until func(text string)) {
	g.T.Helper()
	ctx, cancel := context.WithTimeout(g.T.Context(), time.Minute)
	g.T.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+acmeConsole+path, nil)
	if err != nil {
		g.T.Fatal(err)
	}
	res, err := g.client.Do(req)
	if err != nil {
		g.T.Fatal(err)
	}
	g.T.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func(text string) {
		g.T.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		g.T.Fatalf("%s ends before it shows %q: %v", path, text, lines.Err())
	}
}

// A key of the page works at once, what is asked with it appears on an open page by itself, and once the key is revoked
// the next request is refused.
func TestAKeyOfTheConsoleWorksUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	owner, viewer := h.guest("owner"), h.guest("viewer")
	key := madeSecret.FindString(owner.form(http.StatusOK, "/keys/create", "kind", "assistant", "name", "site"))
	until := viewer.events("/conversations/live")
	until("No questions yet")
	status, thread := h.ask(key, "ada", "How is green tea brewed?")
	if status != http.StatusOK || thread == "" {
		t.Fatalf("a question with the new key is answered %d", status)
	}
	until(thread)
	if page := viewer.page("/conversations/" + thread); !strings.Contains(page, "How is green tea brewed?") ||
		!strings.Contains(page, "eighty degrees") || !strings.Contains(page, "Retrieval and timings") {
		t.Errorf("the conversation is shown as\n%s", page)
	}
	if page := viewer.page("/conversations?q=eighty"); !strings.Contains(page, thread) {
		t.Error("the conversation is not found by a word of its answer")
	}
	if page := viewer.page("/keys"); !strings.Contains(page, "9999 <span class=\"dim\">of 10000") {
		t.Errorf("the use does not count:\n%s", page)
	}
	id := regexp.MustCompile(`name="key" value="(key_[^"]+)"`).FindStringSubmatch(owner.page("/keys"))
	if id == nil {
		t.Fatal("there is no form to revoke the key")
	}
	owner.form(http.StatusSeeOther, "/keys/revoke", "key", id[1])
	if status, _ := h.ask(key, "ada", "And black tea?"); status != http.StatusUnauthorized {
		t.Errorf("the revoked key is answered %d", status)
	}
}

// Everything of one person is deleted from the stores, with what is listed of it, and nothing of anybody else.
func TestAPersonsDataIsDeletedFromTheConsole(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	owner := h.guest("owner")
	key := madeSecret.FindString(owner.form(http.StatusOK, "/keys/create", "kind", "assistant"))
	var gone []string
	for n := range 5 {
		_, thread := h.ask(key, "ada@example.com", fmt.Sprintf("How is tea number %d brewed?", n))
		gone = append(gone, thread)
	}
	_, kept := h.ask(key, "bob", "How is green tea brewed?")
	if page := owner.page("/conversations/forget?caller=ada%40example.com"); !strings.Contains(page, "5 conversations") {
		t.Errorf("the preview says\n%s", page)
	}
	owner.form(http.StatusSeeOther, "/conversations/forget/begin", "caller", "ada@example.com", "again", "ada@example.com")
	owner.events("/conversations/forget/live?caller=ada%40example.com")("are deleted")
	for _, thread := range gone {
		if page := owner.page("/conversations/" + thread); !strings.Contains(page, "there is no such conversation") {
			t.Errorf("%s is still there", thread)
		}
	}
	if page := owner.page("/conversations"); !strings.Contains(page, kept) || strings.Contains(page, gone[0]) {
		t.Errorf("the list shows\n%s", page)
	}
	if page := owner.page("/conversations?q=brewed"); !strings.Contains(page, kept) || strings.Contains(page, gone[0]) {
		t.Error("what is deleted is found by its words, or the others are not")
	}
	for _, action := range []string{"person-data.delete", "person-data.deleted"} { // of which the second is written at the very end
		harness.Until(t, "the audit log has "+action, func() bool {
			return strings.Contains(harness.TextOf(t, owner.do(http.MethodGet, "/console/org-a/audit", nil)), "<code>"+action+
				"</code>")
		})
	}
}

// What signs readers is made in the console by owners alone, works at once, and ends at once.
func TestOwnersSignReadersInTheConsole(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, harness.OnePage)
	owner, editor := h.guest("owner"), h.guest("editor")
	page := owner.form(http.StatusOK, "/keys/create", "kind", "server", "name", "backend", "groups", "staff")
	key := regexp.MustCompile(`dct_srv_[0-9A-Za-z]{49}`).FindString(page)
	if status, thread := h.ask(key, "ada", "How is green tea brewed?"); status != http.StatusOK || thread == "" {
		t.Errorf("a question with the server key is answered %d", status)
	}
	if strings.Contains(page, "useChat") {
		t.Error("the page shows a secret key in code for pages")
	}
	if page := owner.page("/keys"); !strings.Contains(page, "group staff") || strings.Contains(page, key) {
		t.Errorf("the list shows\n%s", page)
	}
	editor.form(http.StatusForbidden, "/keys/reader-secret")
	made := regexp.MustCompile(`dct_rds_[0-9A-Z]{52}`)
	secret := made.FindString(owner.form(http.StatusOK, "/keys/reader-secret"))
	assistant := madeSecret.FindString(owner.form(http.StatusOK, "/keys/create", "kind", "assistant"))
	asks := func() error {
		c := &client.Client{Base: h.URL, Key: assistant, ReaderToken: func(context.Context, bool) (string, error) {
			return harness.SignReader(t, secret, jwt.MapClaims{"sub": "ada", "aud": "docs.acme.example", "exp": time.Now().Add(time.Hour).Unix()}), nil
		}}
		_, err := c.Search(t.Context(), "docs.acme.example", client.Search{Query: "tea"})
		return err
	}
	if err := asks(); err != nil {
		t.Error(err)
	}
	if page := editor.page("/keys"); made.MatchString(page) || strings.Contains(page, "/keys/reader-secret") {
		t.Errorf("an editor sees\n%s", page)
	}
	id := regexp.MustCompile(`name="secret" value="(rds_[^"]+)"`).FindStringSubmatch(owner.page("/keys"))
	if id == nil {
		t.Fatal("there is no form to retire the secret")
	}
	owner.form(http.StatusSeeOther, "/keys/reader-secret/retire", "secret", id[1])
	if err := asks(); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a token of the retired secret: %v", err)
	}
}
