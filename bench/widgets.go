package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"docent/internal/background"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Widgets is readers who open the widget on their pages at one moment, each in a browser of its own: with its requests,
// in its order, with its headers. Each reader searches while typing, asks, and reads the answer to its end; who is told
// to wait waits, as the widget does.
type Widgets struct {
	URL, Domain, Key string
	Number           int
	Origin           string // of the site
	Questions        []string
}

// WidgetFigures say how readers fared. A latency is from the moment when all open it.
type WidgetFigures struct {
	Readers  int     `json:"readers"`
	Answered int     `json:"answered"`
	Waited   int64   `json:"waited"` // times that somebody was told to come back, and did
	Requests int64   `json:"requests"`
	Bytes    int64   `json:"bytes"`   // of answers, as they were sent
	Dialog   Latency `json:"dialog"`  // until the dialog can be shown
	Results  Latency `json:"results"` // until the last search has its results
	Text     Latency `json:"text"`    // from asking until the first text
	Whole    Latency `json:"whole"`   // from asking until the end of the answer
	// Failures are some of those that there were.
	Failures []string `json:"failures,omitempty"`
}

// Bounds of a reader's patience, as the widget has them.
const (
	widgetTries = 40
	widgetWait  = time.Minute // longer than this, nobody waits
)

type widgetRun struct {
	Widgets
	requests, bytes, waited          atomic.Int64
	dialog, results, text, wholeText recorder
}

// Run has all of them open it at once. It fails only where the load could not run at all.
func (w Widgets) Run(ctx context.Context) (WidgetFigures, error) {
	if w.Number < 1 || len(w.Questions) == 0 {
		return WidgetFigures{}, errors.New("there must be a reader, and a question")
	}
	run := &widgetRun{Widgets: w}
	figures := WidgetFigures{Readers: w.Number}
	var (
		mu    sync.Mutex
		group background.Work
		begin = make(chan struct{})
	)
	for n := range w.Number {
		group.Go("bench.Run", func() {
			transport := &http.Transport{MaxConnsPerHost: 6, DisableCompression: true} // of a browser
			defer transport.CloseIdleConnections()
			r := &widgetReader{widgetRun: run, n: n, client: &http.Client{Transport: transport}}
			<-begin
			err := r.read(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				figures.Answered++
			} else if len(figures.Failures) < 10 {
				figures.Failures = append(figures.Failures, err.Error())
			}
		})
	}
	close(begin)
	group.Wait()
	figures.Waited, figures.Requests, figures.Bytes = run.waited.Load(), run.requests.Load(), run.bytes.Load()
	figures.Dialog, figures.Results = run.dialog.latency(), run.results.latency()
	figures.Text, figures.Whole = run.text.latency(), run.wholeText.latency()
	return figures, ctx.Err()
}

// A widgetReader is one of them.
type widgetReader struct {
	*widgetRun
	n      int
	client *http.Client
}

var widgetFile = regexp.MustCompile(`(?:panel|strings-de)\.[0-9a-f]{12}\.js`)

func (r *widgetReader) read(ctx context.Context) error {
	began := time.Now()
	loader, err := r.file(ctx, "v1.js")
	if err != nil {
		return err
	}
	settings, err := r.file(ctx, "settings/"+url.PathEscape(r.Domain))
	if err != nil {
		return err
	}
	if bytes.Contains(settings, []byte(`"proof"`)) {
		return errors.New("the project asks for a proof of work, which would be measured in place of the server")
	}
	panel := widgetFile.Find(loader)
	if panel == nil {
		return errors.New("v1.js names no file of the dialog")
	}
	dialog, err := r.file(ctx, string(panel))
	if err != nil {
		return err
	}
	if r.n%2 == 1 { // who reads in another language
		strings := widgetFile.Find(dialog)
		if strings == nil {
			return errors.New("the dialog names no language")
		}
		if _, err := r.file(ctx, string(strings)); err != nil {
			return err
		}
	}
	r.dialog.record(r.n, time.Since(began))
	question := r.Questions[r.n%len(r.Questions)]
	search := "/discovery/v1/search/" + url.PathEscape(r.Domain)
	if err := r.preflight(ctx, search); err != nil {
		return err
	}
	words := strings.Fields(question)
	for _, part := range []int{1, (len(words) + 1) / 2, len(words)} {
		body, err := json.Marshal(map[string]any{"query": strings.Join(words[:min(part, len(words))], " "), "pageSize": 8,
			"currentPath": "/guides/start"})
		if err != nil {
			return err
		}
		resp, err := r.patiently(ctx, search, body)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		_, err = r.whole(resp)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	r.results.record(r.n, time.Since(began))
	return r.ask(ctx, question)
}

// ask asks, and reads the answer's events to the last.
func (r *widgetReader) ask(ctx context.Context, question string) error {
	path := "/discovery/v2/assistant/" + url.PathEscape(r.Domain) + "/message"
	if err := r.preflight(ctx, path); err != nil {
		return err
	}
	id := fmt.Sprintf("widget-%d-%d", time.Now().UnixNano(), r.n)
	body, err := json.Marshal(map[string]any{"id": id, "fp": "anonymous", "currentPath": "/guides/start", "messages": []any{
		map[string]any{"id": id + "-1", "role": "user", "parts": []any{map[string]string{"type": "text", "text": question}}}}})
	if err != nil {
		return err
	}
	asked := time.Now()
	resp, err := r.patiently(ctx, path, body)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	defer resp.Body.Close()
	seen := false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		r.bytes.Add(int64(len(lines.Bytes()) + 1))
		event, ok := strings.CutPrefix(lines.Text(), "data: {")
		if !ok {
			continue
		}
		switch {
		case strings.HasPrefix(event, `"type":"text-delta"`) && !seen:
			seen = true
			r.text.record(r.n, time.Since(asked))
		case strings.HasPrefix(event, `"type":"error"`):
			return fmt.Errorf("question: it failed: {%s", event)
		case strings.HasPrefix(event, `"type":"finish"`):
			if !seen {
				return errors.New("question: the answer has no text")
			}
			r.wholeText.record(r.n, time.Since(asked))
			return nil
		}
	}
	return errors.New("question: the answer broke off")
}

// patiently posts, and again where it is told to wait.
func (r *widgetReader) patiently(ctx context.Context, path string, body []byte) (*http.Response, error) {
	for tries := 0; ; tries++ {
		resp, err := r.send(ctx, http.MethodPost, path, body, "Authorization", "Bearer "+r.Key, "Content-Type", "application/json")
		if err != nil || resp.StatusCode == http.StatusOK {
			return resp, err
		}
		text, err := r.whole(resp)
		if err != nil {
			return nil, err
		}
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		after := time.Duration(max(seconds, 1)) * time.Second
		told := resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests && seconds > 0
		if !told || after > widgetWait || tries == widgetTries {
			return nil, fmt.Errorf("%s: %.200s", resp.Status, text)
		}
		r.waited.Add(1)
		if err := wait(ctx, time.Now().Add(after)); err != nil {
			return nil, err
		}
	}
}

// preflight is what a browser asks before it sends a key to another origin.
func (r *widgetReader) preflight(ctx context.Context, path string) error {
	resp, err := r.send(ctx, http.MethodOptions, path, nil, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type")
	if err != nil {
		return err
	}
	if _, err = r.whole(resp); err == nil && resp.StatusCode != http.StatusNoContent {
		err = errors.New("preflight: " + resp.Status)
	}
	return err
}

// file gets one of the widget's files.
func (r *widgetReader) file(ctx context.Context, name string) ([]byte, error) {
	resp, err := r.send(ctx, http.MethodGet, "/widget/"+name, nil)
	if err != nil {
		return nil, err
	}
	body, err := r.whole(resp)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", name, resp.Status)
	}
	if err == nil && resp.Header.Get("Content-Encoding") == "gzip" {
		var unpacked *gzip.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unpacked)
		}
	}
	return body, err
}

func (r *widgetReader) send(ctx context.Context, method, path string, body []byte, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Accept": "*/*", "Accept-Encoding": "gzip, deflate, br, zstd",
		"Accept-Language": "en-US,en;q=0.9", "Origin": r.Origin, "Referer": r.Origin + "/", "Sec-Fetch-Dest": "empty",
		"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site", "User-Agent": "Mozilla/5.0 (docent bench widgets)"} {
		req.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	r.requests.Add(1)
	return r.client.Do(req)
}

// whole reads an answer to its end.
func (r *widgetReader) whole(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r.bytes.Add(int64(len(body)))
	return body, err
}
