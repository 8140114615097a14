package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"docent/api"
)

// plant gives a browser a cookie, as somebody on the way to it could.
func (b *browser) plant(name, value string) {
	u, _ := url.Parse(b.url)
	b.client.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

func (b *browser) signedIn() bool {
	b.t.Helper()
	return b.do(http.MethodGet, "/console", nil).StatusCode == http.StatusOK
}

// Whoever knew or planted the cookie from before the sign-in has nothing by it afterwards.
func TestASignInMakesATokenThatNobodyHad(t *testing.T) {
	h := build(t)
	b := h.browser()
	const planted = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	b.plant("docent_session", planted)
	b.signIn(h.admin, "/console")
	first := b.cookie("docent_session")
	if first == "" || first == planted || !b.signedIn() {
		t.Fatalf("after the sign-in the cookie is %q", first)
	}
	thief := h.browser()
	thief.plant("docent_session", planted)
	if thief.signedIn() {
		t.Error("the planted token is signed in")
	}
	b.send("/login", url.Values{"key": {h.admin}, "token": {b.token(b.open("/console"))}})
	if second := b.cookie("docent_session"); second == first || second == "" {
		t.Errorf("signing in again keeps the token")
	}
	thief.plant("docent_session", first)
	if thief.signedIn() {
		t.Error("the token before the second sign-in is still good")
	}
}

func TestASessionThatEndedCannotBePlayedAgain(t *testing.T) {
	h := build(t)
	b, thief := h.browser(), h.browser()
	b.signIn(h.admin, "/console")
	thief.plant("docent_session", b.cookie("docent_session"))
	if !thief.signedIn() {
		t.Fatal("the stolen token is not good while the session goes on: this test sees nothing")
	}
	b.send("/logout", url.Values{"token": {b.token(b.open("/console"))}})
	if thief.signedIn() {
		t.Error("after the sign-out the token is still good")
	}
}

func TestARevokedKeysSessionIsOutAtOnce(t *testing.T) {
	h := build(t)
	b := h.browser()
	b.signIn(h.admin, "/console")
	if !b.signedIn() {
		t.Fatal("not signed in")
	}
	key, err := h.catalog.KeyByHash(t.Context(), api.HashSecret(h.admin))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.catalog.RevokeKey(t.Context(), key.ID, h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if b.signedIn() {
		t.Error("the key is revoked, and the session goes on")
	}
}
