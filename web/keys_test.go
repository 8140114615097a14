package web_test

import (
	"errors"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/web/projects"
)

const keysPage = "/console/org-a/docs.acme.example/keys"

// allowances are the same for every key.
type allowances struct{}

func (allowances) OfProject(api.Project) []projects.Allowance {
	return []projects.Allowance{{Of: "the agent's instructions this hour", Limit: 100, Left: 97}}
}

func (allowances) OfKey(_ api.Project, k api.Key) []projects.Allowance {
	if k.Kind == api.AdminKey {
		return nil
	}
	return []projects.Allowance{{Of: "questions this month", Limit: 10_000, Left: 0, Reset: time.Hour}}
}

var shownSecret = regexp.MustCompile(`dct_(adm|pub)_[0-9A-Za-z]{49}`)

func TestAnOwnerRotatesAKey(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	first := shownSecret.FindString(b.post(http.StatusOK, keysPage+"/create", "kind", "assistant", "name", "site", "origins", "https://www.example.com"))
	byHash := func(secret string) api.Key {
		t.Helper()
		key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(secret))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	second := shownSecret.FindString(b.post(http.StatusOK, keysPage+"/rotate", "key", string(byHash(first).ID)))
	if old, next := byHash(first), byHash(second); next.ID == old.ID || next.Name != "site" || len(next.Origins) != 1 || next.ExpiresAt != nil ||
		old.ExpiresAt == nil || !old.ExpiresAt.Equal(h.clock.Now().Add(24*time.Hour).Truncate(time.Millisecond)) {
		t.Errorf("rotated: %+v became %+v", old, next)
	}
	page := b.open(keysPage)
	if strings.Contains(page, second) {
		t.Error("the secret is shown twice")
	}
	if strings.Count(page, `aria-label="Rotate site"`) != 1 || !strings.Contains(page, string(byHash(second).ID)+"</span></div>") {
		t.Errorf("a key that was rotated is offered to be rotated:\n%s", page)
	}
	if said := b.post(http.StatusConflict, keysPage+"/rotate", "key", string(byHash(first).ID)); !strings.Contains(said, string(byHash(second).ID)) {
		t.Errorf("rotated again: %s", said)
	}
	b.post(http.StatusOK, keysPage+"/rotate", "key", string(byHash(second).ID), "now", "yes")
	if old := byHash(second); old.ExpiresAt == nil || h.clock.Now().Before(old.ExpiresAt.Truncate(time.Millisecond)) {
		t.Errorf("a key that has leaked ends %v", old.ExpiresAt)
	}
	b.post(http.StatusNotFound, keysPage+"/rotate", "key", "key_of_nobody")
	// One form makes one successor, however often it is sent.
	third := shownSecret.FindString(b.post(http.StatusOK, keysPage+"/create", "kind", "assistant", "name", "twice"))
	form := regexp.MustCompile(`name="next" value="(key_\w+)"`).FindStringSubmatch(b.open(keysPage))[1]
	for range 2 {
		b.post(http.StatusSeeOther, keysPage+"/rotate", "key", string(byHash(third).ID), "next", form)
	}
	if got := byHash(third).RotatedTo; string(got) != form {
		t.Errorf("its successor is %s, and not that of its form %s", got, form)
	}
	if page := b.open(keysPage); !strings.Contains(page, "its successor is "+form) {
		t.Errorf("nothing is said of the second sending:\n%s", page)
	}
	h.visitor("viewer").post(http.StatusForbidden, keysPage+"/rotate", "key", string(byHash(first).ID))
}

func TestAnOwnerMakesAndRevokesAKey(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	page := b.post(http.StatusOK, keysPage+"/create", "kind", "assistant", "name", "<script>alert(1)</script>",
		"expires", "2027-01-31", "origins", "https://www.example.com\r\nhttps://docs.example.com", "allowIp", "203.0.113.0/24")
	secret := shownSecret.FindString(page)
	key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(secret))
	if err != nil {
		t.Fatalf("the key shown is not there: %v in %s", err, page)
	}
	want := "2027-02-01T00:00:00Z"
	if key.Kind != api.AssistantKey || key.Project != "acme" || key.Org != "org-a" || len(key.Origins) != 2 ||
		len(key.AllowIP) != 1 || key.ExpiresAt == nil || key.ExpiresAt.Format(time.RFC3339) != want {
		t.Errorf("the key is %+v", key)
	}
	for _, part := range []string{"useChat", "curl -N", "/discovery/v2/assistant/docs.acme.example/message", "shown once"} {
		if !strings.Contains(html.UnescapeString(page), part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	again := b.open(keysPage)
	if n := strings.Count(again, string(key.ID)); n != 4 { // its name, the hint over it, and the forms to rotate and to revoke it
		t.Errorf("the key is there %d times", n)
	}
	if strings.Contains(again, secret) || !strings.Contains(again, key.Hint) || strings.Contains(again, "<script>alert") {
		t.Errorf("the page after it:\n%s", again)
	}
	if !strings.Contains(again, "0 <span class=\"dim\">of 10000; free again in 1h0m0s") || !strings.Contains(again, "97") {
		t.Error("what is left of quotas is not shown")
	}
	b.post(http.StatusSeeOther, keysPage+"/revoke", "key", string(key.ID))
	if key, err = h.catalog.KeyByHash(t.Context(), api.HashSecret(secret)); err != nil || key.RevokedAt == nil {
		t.Errorf("the key is not revoked: %+v, %v", key, err)
	}
	if page := b.open(keysPage); !strings.Contains(page, "1 inactive key") {
		t.Error("the key that is revoked is not listed apart")
	}
	log, err := h.catalog.AuditLog(t.Context(), api.AuditQuery{Org: "org-a", Limit: 10})
	if err != nil || len(log) != 2 || log[0].Action != "key.revoke" || log[1].Action != "key.create" ||
		log[1].Object != string(key.ID) {
		t.Errorf("the audit log has %+v, %v", log, err)
	}
	for _, e := range log {
		if shownSecret.MatchString(e.Detail + e.Object) {
			t.Error("the audit log has the secret")
		}
	}
}

func TestAnAdminKeyMayBeForReadingAlone(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	page := b.post(http.StatusOK, keysPage+"/create", "kind", "admin", "name", "ci", "read", "yes")
	key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(shownSecret.FindString(page)))
	if err != nil || len(key.Scopes) != 1 || key.Scopes[0] != api.ScopeRead || key.Origins != nil {
		t.Errorf("%+v, %v", key, err)
	}
	if !strings.Contains(page, "/v2/agent/acme/job") {
		t.Error("there is no snippet for the agent")
	}
}

func TestAKeyThatCannotBeMadeSaysWhyAndKeepsTheForm(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("owner")
	before := len(keysThere(t, h))
	for _, test := range []struct{ name, value, says string }{
		{"origins", "https://a.example\nnonsense\"><b>", "entry 2 must be an origin"},
		{"allowIp", "0.0.0.0/0", "lets in every address"},
		{"expires", "2020-01-01", "must lie in the future"},
		{"expires", "tomorrow", "must be a day"},
		{"kind", "root", "must be"},
		{"name", strings.Repeat("x", 101), "100"},
	} {
		form := map[string]string{"kind": "assistant", "name": "my site"}
		form[test.name] = test.value
		var pairs []string
		for name, value := range form {
			pairs = append(pairs, name, value)
		}
		page := b.post(http.StatusBadRequest, keysPage+"/create", pairs...)
		if !strings.Contains(page, test.says) || strings.Contains(page, "<b>") {
			t.Errorf("%s %q: the page does not say %q", test.name, test.value, test.says)
		}
		if test.name != "name" && !strings.Contains(page, `value="my site"`) {
			t.Errorf("%s: what was filled in is gone", test.name)
		}
	}
	b.post(http.StatusBadRequest, keysPage+"/create", "kind", "admin", "name", "neither reads nor writes")
	if after := len(keysThere(t, h)); after != before {
		t.Errorf("%d keys were made", after-before)
	}
}

func keysThere(t *testing.T, h *fixture) []api.Key {
	t.Helper()
	keys, err := h.catalog.Keys(t.Context(), catalog.KeyQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestKeysOfOthersAreNeitherShownNorRevoked(t *testing.T) {
	t.Parallel()
	h := build(t)
	elsewhere := h.key(api.Key{Kind: api.AssistantKey, Org: "org-b", Project: "other", Name: "theirs"})
	beside := h.key(api.Key{Kind: api.AssistantKey, Org: "org-a", Project: "acme-two", Name: "of the other site"})
	b := h.visitor("owner")
	page := b.open(keysPage)
	for _, secret := range []string{elsewhere, beside} {
		key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(secret))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page, string(key.ID)) || strings.Contains(page, key.Name) {
			t.Errorf("%s is shown", key.Name)
		}
		b.post(http.StatusNotFound, keysPage+"/revoke", "key", string(key.ID))
		if key, err = h.catalog.KeyByHash(t.Context(), api.HashSecret(secret)); err != nil || key.RevokedAt != nil {
			t.Errorf("%s is revoked: %v", key.Name, err)
		}
	}
}

func TestAViewerSeesKeysAndMakesNone(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, who := range []string{"viewer", "editor"} {
		b := h.visitor(who)
		page := b.open(keysPage)
		if !strings.Contains(page, "dct_adm_…") || strings.Contains(page, "/keys/create") || strings.Contains(page, "/keys/revoke") {
			t.Errorf("the page for a %s:\n%s", who, page)
		}
		before := len(keysThere(t, h))
		b.post(http.StatusForbidden, keysPage+"/create", "kind", "assistant")
		b.post(http.StatusForbidden, keysPage+"/revoke", "key", string(keysThere(t, h)[0].ID))
		key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(h.admin))
		if len(keysThere(t, h)) != before || err != nil || key.RevokedAt != nil {
			t.Errorf("a %s changes keys: %v", who, errors.Join(err))
		}
	}
}
