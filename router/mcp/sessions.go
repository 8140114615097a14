package mcp

import (
	"container/list"
	"context"
	"net/http"
	"net/netip"
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

// discarded is a response that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header       { return d.header }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}

// sessionHeader names the session of a request, and of the answer to the one that begins it.
const sessionHeader = "Mcp-Session-Id"

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
