package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	livePace  = 500 * time.Millisecond // least time between two states that a browser is sent
	keepAlive = 15 * time.Second       // after which a silent connection is shown to be alive
)

// live sends a part of a page as it is now, and again after each change, as server-sent events: htmx puts each in the
// place of the one before (https://html.spec.whatwg.org/multipage/server-sent-events.html). Changed yields a value when
// there may be something new; it ends the stream when it is closed. What has not changed is not sent.
func (s *Server) live(v *visit, name string, changed <-chan struct{}, view func(context.Context) (any, error)) error {
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	out := http.NewResponseController(v)
	began := false
	var last string
	show := func() error {
		if began && !s.still(v) {
			cancel()
			return errors.New("who looks at it may not any more")
		}
		data, err := view(ctx)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, name, s.page(v, name, "", data)); err != nil {
			return fmt.Errorf("render the part %s: %w", name, err)
		}
		text := b.String()
		if text == last {
			return nil
		}
		last = text
		return v.event(out, &began, text)
	}
	if err := show(); err != nil {
		if began {
			return nil // the browser has gone
		}
		return err
	}
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if v.comment(out) != nil {
				return nil
			}
			continue
		case _, ok := <-changed:
			if !ok {
				return nil
			}
		}
		if err := show(); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("a live part of a page ended", "part", name, "error", err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(livePace):
		}
	}
}

// event sends one event. A browser that does not take it in within the time to write is gone.
func (v *visit) event(out *http.ResponseController, began *bool, text string) error {
	var b strings.Builder
	if !*began {
		*began = true
		h := v.Header()
		protect(h)
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx: pass on at once
		b.WriteString("retry: 2000\n\n")
	}
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("data: " + strings.ReplaceAll(line, "\r", "") + "\n")
	}
	b.WriteString("\n")
	out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := v.Write([]byte(b.String())); err != nil {
		return err
	}
	return out.Flush()
}

func (v *visit) comment(out *http.ResponseController) error {
	out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := v.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return out.Flush()
}
