package router_test

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// What stands there for long is not sent twice, to a client that knows it, and is sent compressed.
func TestTextsAreSentOnceAndCompressed(t *testing.T) {
	h := build(t)
	for path, key := range map[string]string{
		"/widget/v1.js": "", "/widget/settings/docs.acme.example": "", "/openapi.json": "", "/openapi.yaml": "",
		"/llms/docs.acme.example/llms.txt": h.assistant, "/llms/docs.acme.example/llms-full.txt": h.assistant,
		"/llms/docs.acme.example/guide/start.md": h.assistant,
	} {
		plain, res := h.text(200, "GET", path, key, "", "Accept-Encoding", "identity")
		tag := res.Header.Get("ETag")
		for _, known := range []string{tag, "W/" + tag, "*", `"other", W/` + tag} {
			if body, res := h.text(304, "GET", path, key, "", "If-None-Match", known); body != "" || res.Header.Get("ETag") != tag {
				t.Errorf("%s with If-None-Match %s: %q, ETag %q", path, known, body, res.Header.Get("ETag"))
			}
		}
		h.text(200, "GET", path, key, "", "If-None-Match", `"other"`)
		packed, res := h.text(200, "GET", path, key, "", "Accept-Encoding", "gzip")
		if res.Header.Get("Content-Encoding") != "gzip" {
			if len(plain) > 1024 || strings.Contains(path, "full") {
				t.Errorf("%s is not compressed", path)
			}
			continue
		}
		header(t, res, "ETag", "W/"+tag)
		if !strings.Contains(strings.Join(res.Header.Values("Vary"), ", "), "Accept-Encoding") {
			t.Errorf("%s varies by %q", path, res.Header.Values("Vary"))
		}
		unpacked, err := gzip.NewReader(strings.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(unpacked); err != nil || string(text) != plain {
			t.Errorf("%s is another text when it is compressed: %v", path, err)
		}
	}
}

func TestJSONIsCompressed(t *testing.T) {
	h := build(t)
	body := `{"prompt":"` + strings.Repeat("words ", 1000) + `"}`
	h.json(201, "POST", "/v2/agent/acme/job", h.admin, body)
	_, res := h.text(404, "GET", "/v2/agent/acme/job/job_1", h.admin, "", "Accept-Encoding", "gzip")
	header(t, res, "Content-Encoding", "")
	for range 30 {
		h.create()
	}
	_, res = h.text(200, "GET", "/v2/agent/acme/jobs", h.admin, "", "Accept-Encoding", "gzip")
	header(t, res, "Content-Encoding", "gzip")
}

// A prompt is counted in characters, however they are written.
func TestAPromptOfEscapesIsAsLongAsItsCharacters(t *testing.T) {
	h := build(t)
	emoji := func(n int) string { return `{"prompt":"` + strings.Repeat(`\ud83d\ude00`, n) + `"}` }
	h.json(201, "POST", "/v2/agent/acme/job", h.admin, emoji(100_000))
	h.json(400, "POST", "/v2/agent/acme/job", h.admin, emoji(100_001))
}

// A reader of a page is told whom to tell; a program is told what to send.
func TestARefusedKeyIsSaidToWhomItConcerns(t *testing.T) {
	h := build(t)
	for _, path := range []string{"/discovery/v1/search/docs.acme.example", v2} {
		for _, key := range []string{"", "dct_pub_nonsense"} {
			program := h.json(401, "POST", path, key, `{"query":"q"}`)["error"].(string)
			page := h.json(401, "POST", path, key, `{"query":"q"}`, "Origin", "https://docs.acme.example")["error"].(string)
			if strings.Contains(program, "page") || !strings.Contains(program, "API key") {
				t.Errorf("%s: a program is told %q", path, program)
			}
			if !strings.Contains(page, "tell those who run this site") {
				t.Errorf("%s: a reader is told %q", path, page)
			}
		}
	}
}
