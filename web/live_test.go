package web_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An events is a browser's connection to a live part of a page.
type events struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// listen opens a live part.
func (b *browser) listen(path string) *events {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return &events{b.t, res, lines, cancel}
}

// next is the data of the next event; io.EOF at the end of the stream.
func (e *events) next() (string, error) {
	var data []string
	for e.lines.Scan() {
		text, isData := strings.CutPrefix(e.lines.Text(), "data: ")
		switch {
		case isData:
			data = append(data, text)
		case e.lines.Text() == "" && len(data) > 0:
			return strings.Join(data, "\n"), nil
		}
	}
	if err := e.lines.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// until reads events up to one that has a text.
func (e *events) until(text string) {
	e.t.Helper()
	for {
		got, err := e.next()
		if err != nil {
			e.t.Fatalf("before %q: %v", text, err)
		}
		if strings.Contains(got, text) {
			return
		}
	}
}

// Many who look at the same live part cost one look at the figures each time, not one each.
func TestALivePartIsMadeOnceForAllWhoLookAtIt(t *testing.T) {
	t.Parallel()
	h := build(t)
	const viewers = 12
	// atMost is how often the figures may be looked at since a time: every two seconds, and a few times more. If each
	// viewer costs a look of its own there are twice as many from the start.
	atMost := func(since time.Time) int { return viewers/2 + int(time.Since(since)/(2*time.Second)) }
	began := time.Now()
	var all []*events
	for range 3 {
		b := h.visitor("operator")
		for range viewers / 3 {
			all = append(all, b.listen("/console/system/live"))
		}
	}
	for _, e := range all {
		e.until("Streams open")
	}
	h.system.mu.Lock()
	first, allowed := h.system.asked, atMost(began)
	changed := time.Now()
	h.system.status.Version = "changed"
	h.system.mu.Unlock()
	for _, e := range all {
		e.until("changed")
	}
	h.system.mu.Lock()
	defer h.system.mu.Unlock()
	if first > allowed || h.system.asked-first > atMost(changed) {
		t.Errorf("the figures were looked at %d times, and then %d times more", first, h.system.asked-first)
	}
}

func TestTheLogIsFollowed(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	log := h.system.log()
	e, warnings := b.listen("/console/system/log"), b.listen("/console/system/log?level=warn")
	e.until("Nothing of this level")
	warnings.until("Nothing of this level")
	log.Info("a first line")
	e.until("a first line")
	log.Warn("a warning <script>")
	e.until("a warning &lt;script&gt;")
	warnings.until("a warning")
	if e.res.Header.Get("Content-Type") != "text/event-stream" || e.res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", e.res.Header)
	}
}

// A person who is signed out, or loses the right to see it, sees nothing more of it.
func TestALivePartEndsWithTheRightToSeeIt(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	e := b.listen("/console/system/log")
	e.until("Nothing of this level")
	if res := b.send("/logout", map[string][]string{"token": {b.token(b.open("/console/system"))}}); res.StatusCode != 303 {
		t.Fatal(res.StatusCode)
	}
	h.system.log().Info("after the sign-out")
	if got, err := e.next(); err == nil {
		t.Errorf("after the sign-out it shows %s", got)
	}
}

func TestLivePartsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	e := b.listen("/console/system/live")
	e.until("Streams open")
	h.server.Leave()
	for {
		if _, err := e.next(); err != nil {
			break
		}
	}
	if res := b.do(http.MethodGet, "/console/system/live", nil); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one that comes during the stop is answered %d", res.StatusCode)
	}
}

// A page that opens live parts without end, as one with a mistake in its script does, is refused more of them; others
// are not.
func TestASessionHasAtMostSomeLiveParts(t *testing.T) {
	t.Parallel()
	h := build(t)
	b, other := h.visitor("operator"), h.visitor("operator")
	refused := 0
	for range 40 {
		if e := b.listen("/console/system/live"); e.res.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 16 {
		t.Errorf("of 40, %d are refused", refused)
	}
	other.listen("/console/system/live").until("Streams open")
	if res := b.do(http.MethodHead, "/console/system/live", nil); res.StatusCode != 200 {
		t.Errorf("HEAD is answered %d", res.StatusCode) // and at once: it does not go on
	}
}
