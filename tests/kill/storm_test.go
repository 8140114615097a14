package kill

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/api/stream"
	"docent/tests/harness"
)

// TestEveryAcceptedTurnOfAStormIsComplete opens a thousand streams at once. A tenth of the readers stall, a tenth
// leave in the middle, and the server is killed while all of them are open. After the restart every accepted turn must
// be complete in its thread, once.
func TestEveryAcceptedTurnOfAStormIsComplete(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("opens a thousand streams; left out with -short")
	}
	streams := 1000
	if text := os.Getenv("DOCENT_TEST_STREAMS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("DOCENT_TEST_STREAMS: %v", err)
		}
		streams = n
	}
	config := filepath.Join(t.TempDir(), "docent.toml")
	text := "log_level = \"warn\"\n[limits]\nkey_month = -1\norg_hour = -1\nip_day = -1\n[models.slow]\nprovider = \"scripted\"\nrate = 10\nparts = 60\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	server := harness.NewServer(t, data, "--config", config)
	source := harness.WriteFiles(t, map[string]string{"tea.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"})
	p := harness.NewProject(t, data, "tea", source, "--model", "slow")

	told := new(tally)
	var open atomic.Int64
	allOpen, killed := make(chan struct{}), make(chan struct{})
	var clients sync.WaitGroup
	for n := range streams {
		random := rand.New(rand.NewPCG(7, uint64(n)))
		clients.Go(func() {
			told.joinStorm(t.Context(), server.Client(p.Assistant), p, n, random, killed, func() {
				if open.Add(1) == int64(streams) {
					close(allOpen)
				}
			})
		})
	}
	select {
	case <-allOpen:
	case <-time.After(10 * time.Minute):
		t.Fatalf("only %d of %d streams opened:\n%s", open.Load(), streams, server.Log)
	}
	server.Kill()
	close(killed)
	clients.Wait()
	server.Start()
	server.Stop() // gently: turns that are taken up again may be cut short once more
	if len(told.questions) != streams {
		t.Fatalf("%d of %d questions were accepted", len(told.questions), streams)
	}
	checkThreads(t, data, config, p, told.questions)
}

// joinStorm asks one question, and comes back where it is refused: a thousand at once are more than most machines
// carry. Of ten readers one stalls after the first part, one leaves after it, and eight read on until the server dies.
func (c *tally) joinStorm(ctx context.Context, cl *client.Client, p harness.Project, n int, random *rand.Rand,
	killed <-chan struct{}, opened func()) {
	q := harness.AcceptedQuestion{Text: "Question " + strconv.Itoa(n)}
	var resp *http.Response
	var err error
	for refused := new(client.Error); ; {
		resp, err = cl.Do(ctx, http.MethodPost, "/discovery/v2/assistant/"+p.Domain+"/message",
			map[string]any{"fp": "anonymous", "messages": []any{map[string]any{"role": "user", "content": q.Text}}})
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second + time.Duration(random.Int64N(int64(time.Second)))):
		}
	}
	if err != nil {
		return // the count of opened streams shows it
	}
	defer resp.Body.Close()
	q.Thread = api.ThreadID(resp.Header.Get("X-Thread-Id"))
	c.mu.Lock()
	c.questions = append(c.questions, q)
	c.mu.Unlock()
	decoder := stream.NewDecoder(stream.UIMessages, resp.Body)
	_, err = decoder.Next()
	opened()
	switch {
	case err != nil:
	case n%10 == 0: // stalls: the connection stays, nothing is read
		<-killed
	case n%10 == 1: // leaves
		for range random.IntN(3) {
			_, _ = decoder.Next()
		}
	default: // reads on; the kill ends it
		for err == nil {
			_, err = decoder.Next()
		}
	}
}
