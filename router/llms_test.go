package router_test

import (
	"strings"
	"testing"

	"docent/api"
)

func TestPagesAreReadAsMarkdown(t *testing.T) {
	h := build(t)
	const at = "/llms/docs.acme.example/"
	index, res := h.text(200, "GET", at+"llms.txt", h.assistant, "")
	header(t, res, "Content-Type", "text/markdown; charset=utf-8")
	for _, want := range []string{"# docs.acme.example\n", "## guide\n",
		`- [Start \[here\]](` + h.url + at + "guide/start.md): How it begins.\n",
		"## Optional\n\n- [Start](" + h.url + at + "v1/start.md) (version 1)\n"} {
		if !strings.Contains(index, want) {
			t.Errorf("llms.txt lacks %q:\n%s", want, index)
		}
	}
	full, res := h.text(200, "GET", at+"llms-full.txt", h.assistant, "")
	if strings.Count(full, "# Start") != 1 || !strings.Contains(full, "Run `a <b> && c`.") {
		t.Errorf("llms-full.txt is\n%s", full)
	}
	tag := res.Header.Get("ETag")
	if body, _ := h.text(304, "GET", at+"llms-full.txt", h.assistant, "", "If-None-Match", tag); body != "" {
		t.Errorf("an unchanged text is sent again: %s", body)
	}
	page, _ := h.text(200, "GET", at+"guide/start.md", h.assistant, "")
	if !strings.HasPrefix(page, "# Start\n") {
		t.Errorf("a page is\n%s", page)
	}
	h.json(404, "GET", at+"nowhere.md", h.assistant, "")
	h.json(404, "GET", at+"start.mdx", h.assistant, "")

	h.json(200, "POST", "/discovery/v1/page/docs.acme.example", h.assistant, `{"path":"guide/start"}`)
	h.text(200, "GET", at+"guide/start", h.assistant, "", "Accept", "text/markdown")
	if got, want := strings.Join(h.stats.read, ", "), "acme markdown llms.txt, acme markdown llms-full.txt, acme markdown guide/start.mdx, "+
		"acme tools guide/start.mdx, acme markdown guide/start.mdx"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	h.json(401, "GET", at+"llms.txt", "", "")
	h.json(404, "GET", "/llms/two.acme.example/llms.txt", h.assistant, "")
	h.json(401, "GET", "/llms/nowhere.example/llms.txt", "", "")
	h.catalog.mu.Lock()
	p := h.catalog.projects["acme"]
	p.Options = api.Options{Public: true, PublicOrigins: "https://app.acme.example"}
	h.catalog.projects["acme"] = p
	h.catalog.mu.Unlock()
	h.text(200, "GET", at+"llms.txt", "", "")
	h.text(200, "HEAD", at+"llms.txt", "", "")
	for origin, status := range map[string]int{h.url: 200, "https://docs.acme.example": 200, "https://app.acme.example": 200,
		"https://evil.example": 403, "null": 403, "http://docs.acme.example": 403} {
		h.text(status, "GET", at+"llms.txt", "", "", "Origin", origin)
	}
	h.text(200, "GET", at+"llms.txt", h.assistant, "", "Origin", "https://evil.example")
	h.text(204, "OPTIONS", at+"llms.txt", "", "")
	h.json(401, "POST", "/discovery/v1/search/docs.acme.example", "", `{"query":"x"}`)
}
