package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Questions are about Docent's own documentation, for a server that serves it.
var Questions = []string{
	"What happens to a job when the server is killed?",
	"How do I make a backup of the data directory?",
	"Which settings can I change with environment variables?",
	"How do I create an assistant key?",
	"Can I use a language model that runs on my own machine?",
	"How does the assistant cite its sources?",
	"What is the limit on assistant messages in an hour?",
	"How do I put Docent behind a reverse proxy?",
	"How can a client resume a stream after a page reload?",
	"Which code hosts can the agent open pull requests on?",
	"What does the agent do with a follow-up message?",
	"How do I see whether the server is ready?",
	"How long are conversations kept?",
	"How do I use PostgreSQL in place of SQLite?",
	"What does the error code rate_limited mean?",
	"How do I filter answers by version or language?",
}

// Warm makes a server do what it does on first use, so that it is not measured as the cost of a load: each question is
// searched for, some of them again, and where asking is set also asked, in a thread of its own.
func Warm(ctx context.Context, t Target, questions []string, asking bool) error {
	c, err := newClient(t.URL)
	if err != nil {
		return err
	}
	defer c.close()
	const least, most, rate = 50, 500, 50
	questions = questions[:min(len(questions), most)]
	for i := range max(len(questions), least) {
		body, err := json.Marshal(map[string]any{"query": questions[i%len(questions)]})
		if err != nil {
			return err
		}
		status, answer, err := c.whole(ctx,
			c.request(http.MethodPost, "/discovery/v1/search/"+url.PathEscape(t.Domain), t.Key, body))
		if err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		if status != http.StatusOK {
			return fmt.Errorf("warm up: status %d: %s", status, bytes.TrimSpace(answer))
		}
	}
	if !asking {
		return nil
	}
	r, err := Streams{Target: t, Questions: questions, Rate: rate,
		For: time.Second * time.Duration(len(questions)) / rate}.Run(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("warm up: %w", err)
	case r.Completed == 0:
		return fmt.Errorf("warm up: no question was answered: %v", r.Failures)
	}
	return nil
}

// whole sends a request and reads its whole answer.
func (c *client) whole(ctx context.Context, request []byte) (status int, body []byte, err error) {
	status, _, body, err = c.answer(ctx, request)
	return status, body, err
}

// answer is whole with the response's header.
func (c *client) answer(ctx context.Context, request []byte) (status int, header http.Header, body []byte, err error) {
	conn, resp, stop, err := c.do(ctx, request)
	if err != nil {
		return 0, nil, nil, err
	}
	body, err = io.ReadAll(resp.Body)
	if !stop() || err != nil || resp.Close {
		conn.Close()
	} else {
		c.keep(conn)
	}
	return resp.StatusCode, resp.Header, body, err
}

// Settle waits until a server has done what it does after its start: until it uses hardly any processor time, for two minutes
// at most.
func Settle(ctx context.Context, url string) error {
	const quiet, every, most = 0.05, time.Second, 2 * time.Minute
	end := time.Now().Add(most)
	for calm := 0; calm < 3 && time.Now().Before(end); {
		before, err := ServerUsage(ctx, url)
		if err != nil {
			return err
		}
		if err := wait(ctx, time.Now().Add(every)); err != nil {
			return err
		}
		after, err := ServerUsage(ctx, url)
		if err != nil {
			return err
		}
		if calm++; after.CPU-before.CPU > quiet*every.Seconds() {
			calm = 0
		}
	}
	return nil
}
