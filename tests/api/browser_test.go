package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"docent/tests/harness"
)

// TestExamplePagesInABrowser opens the example pages in Chromium, from another origin than the server's, and uses them
// as a reader would. What the browser asks by itself, the preflights, is seen by a proxy between them.
func TestExamplePagesInABrowser(t *testing.T) {
	t.Parallel()
	const plain = "../../examples/plain-chat"
	chromium := harness.NeedsBrowser(t)
	harness.BuildReactPage(t)
	for _, page := range []string{"React", "plain"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel() // each has a server of its own, which it restarts
			server, data, harbour, slow := harness.NewChatServer(t, 30, 100)
			endless := harness.NewEndlessProject(t, data)

			files := http.NewServeMux()
			files.Handle("/react/", http.StripPrefix("/react", http.FileServer(http.Dir(filepath.Join(harness.ReactDir,
				"dist")))))
			files.Handle("/plain/", http.StripPrefix("/plain", http.FileServer(http.Dir(plain))))
			pages := httptest.NewServer(files)
			defer pages.Close()
			// Another port and another name of this machine: another origin, and another site too.
			origin := strings.Replace(pages.URL, "127.0.0.1", "localhost", 1)

			recorder := newRecorder(t, server.URL)
			control := harness.NewControl(server)
			control.HandleFunc("GET /requests", func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(recorder.requests())
			})
			control.HandleFunc("POST /hold", func(http.ResponseWriter, *http.Request) { recorder.hold() })
			controls := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if control.ServeHTTP(w, req); req.URL.Path == "/restart" {
					recorder.cut() // what a server had not handed over is lost with it
				}
			}))
			defer controls.Close()

			settings, err := json.Marshal(map[string]any{
				"page": page, "chromium": chromium, "pages": origin, "server": recorder.url, "control": controls.URL,
				"harbour": map[string]string{"domain": harbour.Domain,
					"key": harness.NewKey(t, data, harbour.ID, "assistant", "--origin", origin)},
				"slow": map[string]string{"domain": slow.Domain,
					"key": harness.NewKey(t, data, slow.ID, "assistant", "--origin", origin)},
				"endless": map[string]string{"domain": endless.Domain,
					"key": harness.NewKey(t, data, endless.ID, "assistant", "--origin", origin)},
				"foreign": map[string]string{"domain": harbour.Domain,
					"key": harness.NewKey(t, data, harbour.ID, "assistant", "--origin", "https://www.example.com")},
			})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", "--test-reporter=tap", "browser.mjs")
			cmd.Dir = harness.ClientsDir
			cmd.Env = append(os.Environ(), "DOCENT_BROWSER="+string(settings))
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("browser.mjs: %v\nthe server's log:\n%s", err, server.Log)
			}
		})
	}
}

// TestPagesInABrowser uses the server's own pages as a maintainer does, with a pull request of many files.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	chromium := harness.NeedsBrowser(t)
	files := map[string]string{}
	for i := range 150 {
		files[fmt.Sprintf("guides/page-%d.md", i)] = fmt.Sprintf("# Page %d\n\n%s", i,
			strings.Repeat("The Harbour is open. See the long line about `code` in the Harbour.\n\n", 8))
	}
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data)
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, files))
	out := harness.Docent(t, "job", "create", "--url", server.URL, "--project", p.ID, "--key", p.Admin, "--wait",
		"Rename \"Harbour\" to \"Port\" everywhere.")
	pull := regexp.MustCompile(regexp.QuoteMeta(server.URL) + `/pulls/\w+`).FindString(out)
	if pull == "" {
		t.Fatalf("no pull request in %s", out)
	}
	settings, err := json.Marshal(map[string]string{"server": server.URL, "pull": pull, "key": p.Admin,
		"chromium": chromium})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "pages.mjs")
	cmd.Dir = harness.ClientsDir
	cmd.Env = append(os.Environ(), "DOCENT_PAGES="+string(settings))
	var problems, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &problems, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("pages.mjs: %v\n%s", err, wrong.String())
	}
	if problems.Len() > 0 {
		t.Errorf("the pages are not as they should be:\n%s", problems.String())
	}
}

// A seenRequest is a request that went to the server, and what became of it.
type seenRequest struct {
	Method  string      `json:"method"`
	Path    string      `json:"path"`
	Headers http.Header `json:"headers"`
	Status  int         `json:"status"`
}

// A recorder is a proxy that notes what passes.
type recorder struct {
	url  string
	mu   sync.Mutex
	seen []seenRequest
	next *heldAnswer // what becomes of the next answer to a question, nil if it passes
	last *heldAnswer
}

// hold has the next answer pass no further than to its midst, however fast the server writes it, and however slowly the
// page takes it in.
func (r *recorder) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = &heldAnswer{cut: make(chan struct{})}
}

// cut breaks off the answer that is held.
func (r *recorder) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		close(r.last.cut)
		r.last = nil
	}
}

// A heldAnswer is the body of an answer that is read up to its midst, and no further until its reader has gone or it is
// cut.
type heldAnswer struct {
	io.ReadCloser
	ctx  context.Context // of its reader
	cut  chan struct{}
	rest []byte // may be read
	seen []byte
	full bool // the midst is reached
}

// midst is a piece of the slow model's answer. A server that was late has others after it in the same event.
const midst = "part-9 "

func (h *heldAnswer) Read(p []byte) (int, error) {
	for len(h.rest) == 0 {
		if h.full {
			select {
			case <-h.ctx.Done():
			case <-h.cut:
			}
			return 0, io.ErrUnexpectedEOF
		}
		piece := make([]byte, len(p))
		n, err := h.ReadCloser.Read(piece)
		if n == 0 && err != nil {
			return 0, err
		}
		before := len(h.seen)
		h.seen = append(h.seen, piece[:n]...)
		if at := bytes.Index(h.seen, []byte(midst)); at >= 0 {
			h.full = true
			h.seen = append(h.seen[:at+len(midst)], "\"}\n\n"...) // the event ends here
		}
		h.rest = h.seen[before:]
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

func newRecorder(t *testing.T, server string) *recorder {
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	r := new(recorder)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen = append(r.seen, seenRequest{res.Request.Method, res.Request.URL.Path, res.Request.Header, res.StatusCode})
			if h := r.next; h != nil && res.Request.Method == http.MethodPost {
				h.ReadCloser, h.ctx = res.Body, res.Request.Context()
				res.Body, r.next, r.last = h, nil, h
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // the server is killed while it answers
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// Read first: where the answer begins before the proxy's transport has looked for the end of the body, net/http
		// closes the body under it, and the transport breaks off the answer with "invalid Read on closed Body".
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *recorder) requests() []seenRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]seenRequest{}, r.seen...)
}
