package console

import (
	"bufio"
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
)

// serve serves one live part, with the text of a message, and returns its address.
func serve(t *testing.T, s *Server, need Need, message func() string) string {
	t.Helper()
	s.Handle([]Route{Get("/live", need, func(v *Visit) error {
		return s.Watch(v, "error.part", "", Every(10*time.Millisecond), func(context.Context) (any, error) {
			return errorView{Message: message()}, nil
		})
	})})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := s.ServePage(w, req, netip.MustParseAddr("127.0.0.1"), false); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(func() { s.Leave(); server.Close() })
	return server.URL + "/live"
}

// look opens a live part and reads until it has a text.
func look(t *testing.T, address, cookie, until string) (rest *bufio.Scanner, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), until) {
			return lines, cancel
		}
	}
	t.Fatalf("the part ended before %q", until)
	return nil, nil
}

// A part that nobody looks at any more is made no more, and the next viewer gets it fresh.
func TestALivePartEndsWithItsLastViewer(t *testing.T) {
	t.Parallel()
	var message atomic.Value
	message.Store("first")
	s := NewServer(Deps{})
	address := serve(t, s, Anybody, func() string { return message.Load().(string) })
	looked := func() (shared, open int) {
		s.feeds.mu.Lock()
		defer s.feeds.mu.Unlock()
		return len(s.feeds.shared), s.feeds.all
	}
	_, one := look(t, address, "", "first")
	_, two := look(t, address, "", "first")
	if shared, open := looked(); shared != 1 || open != 2 {
		t.Errorf("%d parts, %d viewers", shared, open)
	}
	one()
	two()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if shared, open := looked(); shared == 0 && open == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("both have left, and the part is still made")
		}
	}
	message.Store("again")
	look(t, address, "", "again")
}

// A session is one that an operator's link has begun, until it ends.
type session struct {
	Catalog
	ended atomic.Bool
}

func (s *session) SessionByHash(context.Context, [32]byte) (api.SignIn, error) {
	if s.ended.Load() {
		return api.SignIn{}, api.ErrNotFound
	}
	now := time.Now()
	return api.SignIn{ID: "ses_1", Kind: api.SessionOfLink, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour),
		Idle: time.Hour}, nil
}

func (s *session) TouchSession(api.SignIn, time.Time) {}

// What a live part of a page shows ends with the session of who looks at it.
func TestALivePartEndsWithTheSession(t *testing.T) {
	t.Parallel()
	in := &session{}
	s := NewServer(Deps{Catalog: in, Secret: make([]byte, 32)})
	s.beat = 10 * time.Millisecond
	address := serve(t, s, Operator, func() string { return "the same" })
	rest, _ := look(t, address, "docent_session="+rand.Text(), "the same")
	in.ended.Store(true)
	for rest.Scan() { // until the server ends it
	}
	if err := rest.Err(); err != nil {
		t.Errorf("the session has ended, and its browser is still told: %v", err)
	}
}
