package router_test

import (
	"regexp"
	"strings"
	"testing"
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
