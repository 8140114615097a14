package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"docent/web/assets"
)

// fetchRaw gets a page as it is on the wire.
func (h *fixture) fetchRaw(path, encodings string) (*http.Response, []byte) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encodings) // else the client would undo the compression by itself
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res, body
}

func TestPagesAndAssetsAreSentCompressedToBrowsersThatReadIt(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, path := range []string{"/login", assets.Path("docent.css"), assets.Path("htmx.min.js")} {
		plain, whole := h.fetchRaw(path, "identity")
		if got := plain.Header.Get("Content-Encoding"); got != "" {
			t.Errorf("%s has the encoding %q for a browser that reads none", path, got)
		}
		for _, none := range []string{"gzip;q=0", "gzip; q=0.0", "br"} {
			if res, _ := h.fetchRaw(path, none); res.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s is compressed for %q", path, none)
			}
		}
		for _, some := range []string{"gzip", "br;q=1.0, GZIP;q=0.8", "deflate, gzip"} {
			res, body := h.fetchRaw(path, some)
			if res.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(res.Header.Values("Vary"), ","),
				"Accept-Encoding") {
				t.Fatalf("%s for %q: %v", path, some, res.Header)
			}
			unpacked, err := gzip.NewReader(strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(unpacked)
			if err != nil || len(text) == 0 || len(body) >= len(text) {
				t.Errorf("%s: %d bytes of %d, %v", path, len(body), len(text), err)
			}
			if strings.HasPrefix(path, "/assets/") && string(text) != string(whole) {
				t.Errorf("%s is another file when it is compressed", path)
			}
		}
	}
}

// Compressed pages would give away a token that stays the same.
func TestAFormsTokenLooksDifferentInEachAnswer(t *testing.T) {
	t.Parallel()
	b := build(t).browser()
	if one, two := b.token(b.open("/login")), b.token(b.open("/login")); one == two {
		t.Errorf("both are %s", one)
	}
}
