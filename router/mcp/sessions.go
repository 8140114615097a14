package mcp

import (
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"docent/internal/budget"
)

// DefaultMaxSessions is how many sessions there may be: each holds memory and goroutines until it has not been used for
// ten minutes.
const DefaultMaxSessions = 4096

// sessions knows which client has which session. If a client has as many as it may, or all clients together, a new
// session takes the place of the one that was not used for longest; a client begins one by itself when its session is
// gone.
type sessions struct {
	budgets *budget.Table
	end     func(*session) // closes one; it is called without the lock

	mu   sync.Mutex
	all  map[string]*session
	idle list.List // of *session that no request is with, that which was not used for longest first
}

type session struct {
	name    string
	kind    kind
	account *budget.Account // of its client; nil if that is not bounded
	using   int             // requests
	used    time.Time
	at      *list.Element // in idle; nil while a request is with it
}

// room takes a place for a session of a client, and closes another one for it if there is none. It is false if
// all that could be closed are in use; own is whether those are the client's.
func (s *sessions) room(client netip.Addr, bounded bool) (account *budget.Account, own, ok bool) {
	if bounded {
		account = s.budgets.Client(client)
	}
	s.expire()
	for {
		v := s.budgets.Take(budget.Sessions, 1, account)
		if v == budget.Taken {
			return account, false, true
		}
		last := s.oldest(account, v == budget.Used)
		if last == nil {
			account.Done()
			return nil, v == budget.Used, false
		}
		s.end(last)
	}
}

// oldest takes out the session that was not used for longest, of one client alone or of all.
func (s *sessions) oldest(account *budget.Account, own bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.idle.Front(); e != nil; e = e.Next() {
		if have := e.Value.(*session); !own || have.account == account {
			s.drop(have)
			return have
		}
	}
	return nil
}

// expire forgets the sessions that have ended since nobody used them.
func (s *sessions) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.idle.Front(); e != nil && time.Since(e.Value.(*session).used) > idle; e = s.idle.Front() {
		s.drop(e.Value.(*session))
	}
}

// drop forgets a session and gives its place back. It is called with the lock held.
func (s *sessions) drop(have *session) {
	if s.all[have.name] != have {
		return
	}
	delete(s.all, have.name)
	if have.at != nil {
		s.idle.Remove(have.at)
		have.at = nil
	}
	s.budgets.Give(budget.Sessions, 1, have.account)
	have.account.Done()
}

// has reports whether a session has begun here and is not forgotten.
func (s *sessions) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[name] != nil
}

// forget drops a session that has ended by itself.
func (s *sessions) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.all[name]; have != nil {
		s.drop(have)
	}
}

// begun notes a session that has begun, or gives its place back if none has.
func (s *sessions) begun(name string, k kind, account *budget.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.all[name] != nil {
		s.budgets.Give(budget.Sessions, 1, account)
		account.Done()
		return
	}
	have := &session{name: name, kind: k, account: account, used: time.Now()}
	have.at = s.idle.PushBack(have)
	s.all[name] = have
}

// use says that a request is with a session, until done is called. ends is whether the request ends it.
func (s *sessions) use(name string, ends bool) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.all[name]
	if have == nil {
		return func() {}
	}
	if have.using++; have.at != nil {
		s.idle.Remove(have.at)
		have.at = nil
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if have.using--; ends {
			s.drop(have)
		} else if have.using == 0 && s.all[name] == have {
			have.used = time.Now()
			have.at = s.idle.PushBack(have)
		}
	}
}

// close ends a session as its client would.
func (s *Servers) close(have *session) {
	ctx := context.WithValue(context.Background(), serving{}, s.server(have.kind))
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://docent.internal/mcp", http.NoBody)
	if err != nil {
		return // it is always the same
	}
	req.Header.Set(sessionHeader, have.name)
	s.http.ServeHTTP(discarded{http.Header{}}, req)
}

// begin has the library begin a session of that name. The library asks for a name without saying for which request: no
// other one comes between.
func (s *Servers) begin(w http.ResponseWriter, req *http.Request, name string) {
	s.naming.Lock()
	given := sync.OnceFunc(s.naming.Unlock)
	defer given()
	s.named = func() string {
		defer given()
		return name
	}
	s.http.ServeHTTP(w, req)
}

// resume takes up a session that its client has, and this process has not. It is false if there is no room for it; own
// is whether that is the client's.
func (s *Servers) resume(req *http.Request, k kind, name string, from netip.Addr) (own, ok bool) {
	s.resuming.Lock()
	defer s.resuming.Unlock()
	version := cmp.Or(req.Header.Get(versionHeader), oldest)
	tell := func(serve func(http.ResponseWriter, *http.Request), name, message string) int {
		w := &refusals{ResponseWriter: discarded{http.Header{}}}
		again, err := http.NewRequestWithContext(req.Context(), http.MethodPost, "http://docent.internal/mcp", strings.NewReader(message))
		if err != nil {
			return http.StatusInternalServerError // it is always the same
		}
		again.Header.Set("Content-Type", "application/json")
		again.Header.Set("Accept", "application/json, text/event-stream")
		again.Header.Set(versionHeader, version)
		if name != "" {
			again.Header.Set(sessionHeader, name)
		}
		serve(w, again)
		return w.status
	}
	const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	if tell(s.http.ServeHTTP, name, ready) != http.StatusNotFound {
		return false, true // another request has done it
	}
	s.sessions.forget(name) // as the library has
	account, own, ok := s.sessions.room(from, s.Unlimited == nil || !s.Unlimited(from))
	if !ok {
		return own, false
	}
	initialize, _ := json.Marshal(version) // a string: cannot fail
	tell(func(w http.ResponseWriter, req *http.Request) { s.begin(w, req, name) }, "",
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"resumed","version":""},"protocolVersion":`+
			string(initialize)+`}}`)
	tell(s.http.ServeHTTP, name, ready)
	s.sessions.begun(name, k, account)
	return false, true
}

// discarded is a response that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header       { return d.header }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}

const (
	// sessionHeader names the session of a request, and of the answer to the one that begins it.
	sessionHeader = "Mcp-Session-Id"
	// versionHeader is the revision of the protocol that a request keeps to.
	versionHeader = "Mcp-Protocol-Version"
	// oldest is the revision of a client that does not say.
	oldest = "2025-03-26"
)

// refuseSession answers a client that may begin no session now.
func refuseSession(w http.ResponseWriter, own bool) {
	w.Header().Set("Retry-After", "10")
	if own {
		http.Error(w, "there are too many MCP sessions in use from your network: close some, then try again",
			http.StatusTooManyRequests)
		return
	}
	http.Error(w, "the service is busy: it has as many MCP sessions in use as it takes; try again shortly",
		http.StatusServiceUnavailable)
}
