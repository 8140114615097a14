package router_test

import (
	"regexp"
	"strings"
	"testing"

	"docent/api"
)

func TestTheWidgetIsForPagesOfAnySite(t *testing.T) {
	h := build(t)
	loader, res := h.text(200, "GET", "/widget/v1.js", "", "", "Origin", "https://docs.acme.example")
	header(t, res, "Access-Control-Allow-Origin", "*")
	header(t, res, "Cross-Origin-Resource-Policy", "cross-origin")
	header(t, res, "Content-Type", "text/javascript; charset=utf-8")
	header(t, res, "Cache-Control", "public, max-age=300, stale-while-revalidate=86400")
	h.text(304, "GET", "/widget/v1.js", "", "", "If-None-Match", res.Header.Get("ETag"))
	panel := regexp.MustCompile(`panel\.[0-9a-f]{12}\.js`).FindString(loader)
	rest, res := h.text(200, "GET", "/widget/"+panel, "", "")
	header(t, res, "Cache-Control", "public, max-age=31536000, immutable")
	for _, never := range []string{"eval(", "new Function", "document.cookie"} {
		if strings.Contains(loader+rest, never) {
			t.Errorf("the widget has %s", never)
		}
	}
	packed, res := h.text(200, "GET", "/widget/"+panel, "", "", "Accept-Encoding", "gzip")
	header(t, res, "Content-Encoding", "gzip")
	if len(packed) >= len(rest)/2 {
		t.Errorf("compressed it has %d bytes of %d", len(packed), len(rest))
	}
	h.text(200, "HEAD", "/widget/v1.js", "", "")
	h.json(404, "GET", "/widget/v2.js", "", "")
}

func TestTheWidgetIsToldHowItLooks(t *testing.T) {
	h := build(t)
	const at = "/widget/settings/docs.acme.example"
	if got, _ := h.text(200, "GET", at, "", ""); got != "{}" {
		t.Errorf("where nothing is stored: %s", got)
	}
	if got, _ := h.text(200, "GET", "/widget/settings/nobodys.example", "", ""); got != "{}" {
		t.Errorf("where nobody is: %s", got)
	}
	p := h.catalog.projects["acme"]
	p.Widget = api.Widget{Accent: "#1f6f5c", Button: "start", Label: "<b>Ask</b>", Suggestions: []string{"One?", "Two?"}, Contact: "form", ContactIssues: true, Logo: "/logo.svg", OpenIn: []string{"claude", "chatgpt"}}
	p.Options.ProofOfWork = 1000
	p.Deflection, p.TokenEnv, p.Source = "mail@acme.example", "SECRET_ENV", "/srv/docs"
	h.catalog.projects["acme"] = p
	got, res := h.text(200, "GET", at, "", "", "Origin", "https://docs.acme.example")
	if want := `{"accent":"#1f6f5c","accentDark":"#5b9688","button":"start","contact":"form","contactIssues":"","label":"<b>Ask</b>","logo":"/logo.svg","openIn":"claude chatgpt","proof":"","suggestions":"One?\nTwo?"}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	header(t, res, "Access-Control-Allow-Origin", "*")
	header(t, res, "Content-Type", "application/json")
	h.text(200, "HEAD", at, "", "")
	h.text(304, "GET", at, "", "", "If-None-Match", res.Header.Get("ETag"))
}
