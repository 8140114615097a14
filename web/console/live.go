package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"docent/api"
	"docent/internal/background"
)

const (
	livePace      = 500 * time.Millisecond // least time between two states that browsers are sent
	keepAlive     = 15 * time.Second       // after which a silent connection is shown to be alive
	liveOfSession = 24                     // live parts that one session may look at at once
	liveOfServer  = 1000                   // that all may
)

// Live sends a part of a page as it is now, and again after each change, as server-sent events: htmx puts each in the
// place of the one before (https://html.spec.whatwg.org/multipage/server-sent-events.html). Changed yields a value when
// there may be something new. When it is closed, the browser is sent the event "end", for which the part has
// sse-close="end". What has not changed is not sent.
//
// A part that looks the same to all who may see it is for watch, which makes it once for all of them.
func (s *Server) Live(v *Visit, name string, changed <-chan struct{}, view func(context.Context) (any, error)) error {
	if v.SignedIn {
		v.formToken() // made once: the part and the visit are two goroutines' from here on
	}
	return s.follow(v, func() *feed {
		return s.newFeed(changed, func() {}, func(ctx context.Context) (string, error) { return s.fragment(ctx, v, name, view) })
	})
}

// Watch is Live for a part that many look at: it is made once for all whose topic is the same and who have the same
// role in the same project, at most twice a second. The part has no forms with tokens: a button in it names a form
// outside of it. Begin starts whatever tells of changes, until stop.
func (s *Server) Watch(v *Visit, name, topic string, begin func() (changed <-chan struct{}, stop func()),
	view func(context.Context) (any, error)) error {
	role := v.Who.Role(v.Org)
	anyone := &Visit{Req: v.Req, server: s, Org: v.Org, Project: v.Project,
		Who: Visitor{Rights: api.Rights{Operator: v.Who.Rights.Operator, Roles: map[api.OrgID]api.Role{v.Org: role},
			Key: v.Who.Rights.Key}}}
	key := strings.Join([]string{name, topic, string(v.Org), string(v.Project.ID), string(role),
		fmt.Sprint(v.Who.Rights.Operator, v.Who.Rights.Key != nil)}, "\x00")
	return s.follow(v, func() *feed {
		return s.feeds.join(key, func() *feed {
			changed, stop := begin()
			return s.newFeed(changed, stop, func(ctx context.Context) (string, error) { return s.fragment(ctx, anyone, name, view) })
		})
	})
}

// fragment renders a part of a page.
func (s *Server) fragment(ctx context.Context, v *Visit, name string, view func(context.Context) (any, error)) (string,
	error) {
	data, err := view(ctx)
	if err != nil {
		return "", err
	}
	text, err := Execute(name, s.page(v, name, "", data))
	return string(text), err
}

// Every tells that there may be something new, again and again.
func Every(pause time.Duration) func() (changed <-chan struct{}, stop func()) {
	return func() (<-chan struct{}, func()) {
		changed, done := make(chan struct{}, 1), make(chan struct{})
		ticker := time.NewTicker(pause)
		background.Go("web.every", func() {
			for {
				select {
				case <-done:
					return
				case <-ticker.C:
					select {
					case changed <- struct{}{}:
					default: // nobody has looked since the last time
					}
				}
			}
		})
		return changed, sync.OnceFunc(func() {
			ticker.Stop()
			close(done)
		})
	}
}

// A feed is one part of a page as it changes, for everybody who looks at it.
type feed struct {
	cancel context.CancelFunc
	feeds  *feeds // nil if one looks at it
	key    string

	mu      sync.Mutex
	viewers int
	state   feedState
	next    chan struct{} // closed at the next change of the state
}

// feedState is what a feed shows now.
type feedState struct {
	event []byte // nil before the first
	ended bool
	err   error // why it has
}

// newFeed begins a feed. Stop is called at its end.
func (s *Server) newFeed(changed <-chan struct{}, stop func(), fragment func(context.Context) (string, error)) *feed {
	ctx, cancel := context.WithCancel(s.leaving)
	f := &feed{cancel: cancel, viewers: 1, next: make(chan struct{})}
	background.Go("web.newFeed", func() {
		defer stop()
		err := background.Guard(func() error { return f.run(ctx, changed, fragment) })
		f.set(func(st *feedState) { st.ended, st.err = true, err })
	})
	return f
}

// run renders the part again after each change.
func (f *feed) run(ctx context.Context, changed <-chan struct{}, fragment func(context.Context) (string, error)) error {
	var last string
	pace := time.NewTimer(0)
	defer pace.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pace.C:
		}
		if !first {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case _, ok := <-changed:
				if !ok {
					return nil
				}
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := fragment(ctx)
		if err != nil {
			return err
		}
		if text != last || first {
			last = text
			event := encodeEvent(text)
			f.set(func(st *feedState) { st.event = event })
		}
		pace.Reset(livePace)
	}
}

func (f *feed) set(change func(*feedState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.state)
	close(f.next)
	f.next = make(chan struct{})
}

func (f *feed) now() (feedState, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.next
}

// leave ends a feed that nobody looks at any more.
func (f *feed) leave() {
	if f.feeds != nil {
		f.feeds.mu.Lock()
		defer f.feeds.mu.Unlock()
	}
	if f.viewers--; f.viewers > 0 {
		return
	}
	f.cancel()
	if f.feeds != nil && f.feeds.shared[f.key] == f {
		delete(f.feeds.shared, f.key)
	}
}

// feeds are those that several look at, and how many live parts each session has open.
type feeds struct {
	mu     sync.Mutex
	shared map[string]*feed
	open   map[string]int // by session
	all    int
}

func newFeeds() *feeds { return &feeds{shared: map[string]*feed{}, open: map[string]int{}} }

// join is the feed of a key, with one viewer more. One that has ended is replaced.
func (fs *feeds) join(key string, begin func() *feed) *feed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.shared[key]; f != nil {
		if st, _ := f.now(); !st.ended {
			f.viewers++
			return f
		}
	}
	f := begin()
	f.feeds, f.key = fs, key
	fs.shared[key] = f
	return f
}

// enter counts one more live part of a session, or refuses it.
func (fs *feeds) enter(session string) (leave func(), err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.open[session] >= liveOfSession || fs.all >= liveOfServer {
		return nil, &api.BusyError{Kind: api.ErrOverloaded, RetryAfter: 10 * time.Second}
	}
	fs.open[session]++
	fs.all++
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.all--
		if fs.open[session]--; fs.open[session] == 0 {
			delete(fs.open, session)
		}
	}, nil
}

// follow sends a feed to one browser until either ends.
func (s *Server) follow(v *Visit, join func() *feed) error {
	if v.Req.Method == http.MethodHead {
		v.beginEvents()
		v.WriteHeader(http.StatusOK)
		return nil
	}
	leave, err := s.feeds.enter(cmp.Or(v.Who.session, v.Client.String()))
	if err != nil {
		return err
	}
	defer leave()
	f := join()
	defer f.leave()
	if x, ok := v.ResponseWriter.(interface{ Stream() }); ok {
		x.Stream() // it is no request that is worked on, and keeps none of them out
	}
	out := http.NewResponseController(v)
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for began, sent := false, []byte(nil); ; {
		st, next := f.now()
		switch {
		case st.ended && !began && st.err != nil && !errors.Is(st.err, context.Canceled):
			return st.err
		case st.event != nil && (sent == nil || &sent[0] != &st.event[0]):
			if began && !s.still(v) {
				return nil
			}
			if !began {
				began = true
				v.beginEvents()
				fmt.Fprintf(v, "retry: %d\n\n", 2000+rand.IntN(1000)) // not all at once after a restart
			}
			if v.push(out, st.event) != nil {
				return nil // the browser has gone
			}
			sent = st.event
		}
		if st.ended {
			s.lastEvent(v, out, st.err, began)
			return nil
		}
		select {
		case <-v.Context().Done():
			return nil
		case <-next:
		case <-beat.C:
			// Even if nothing changes, a session that has ended sees it at once.
			if began && (!s.still(v) || v.push(out, []byte(":\n\n")) != nil) {
				return nil
			}
		}
	}
}

// lastEvent tells a browser that there is nothing more to come. One that is cut off by a stop comes again by itself.
func (s *Server) lastEvent(v *Visit, out *http.ResponseController, err error, began bool) {
	switch {
	case errors.Is(err, context.Canceled):
		if !began { // the server stops
			v.Header().Set("Retry-After", "5")
			v.WriteHeader(http.StatusServiceUnavailable)
		}
	case err != nil:
		s.Log.Warn("a live part of a page ended", "address", v.Req.URL.Path, "error", err)
	default:
		v.push(out, []byte("retry: 60000\nevent: end\ndata:\n\n"))
	}
}

// beginEvents writes the head of a stream of events.
func (v *Visit) beginEvents() {
	h := v.Header()
	protect(h)
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx: pass on at once
}

// encodeEvent is a part of a page as an event.
func encodeEvent(text string) []byte {
	var b bytes.Buffer
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("data: " + strings.ReplaceAll(line, "\r", "") + "\n")
	}
	b.WriteString("\n")
	return b.Bytes()
}

// push sends bytes at once. A browser that does not take them in within the time to write is gone.
func (v *Visit) push(out *http.ResponseController, b []byte) error {
	out.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := v.Write(b); err != nil {
		return err
	}
	return out.Flush()
}
