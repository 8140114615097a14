package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"docent/api"
	"docent/api/client"
	"docent/internal/budget"
	"docent/internal/inprocess"
	"docent/internal/tracing"
)

const (
	// idle is how long a session is kept that is not used.
	idle = 10 * time.Minute
	// replayBytes bounds what is kept of answers for clients that come back after their connection broke.
	replayBytes = 16 << 20
	// maxMessage is how large one message of a client may be.
	maxMessage = 1 << 20

	// clientHeader carries the client's address from the request to the tool. What a client sends under this name is
	// overwritten.
	clientHeader = "Docent-Client-Address"

	// readerHeader carries the token that says who the reader is, to the API as it came.
	readerHeader = "X-Docent-Reader"
)

// Deps is what the servers work with.
type Deps struct {
	Pages   Pages
	Log     *slog.Logger
	Tracer  *tracing.Tracer // nil if nothing is traced
	Version string

	// Secret seals the names of sessions, so that they outlive a restart: it is kept, and the same on all nodes. If it
	// is empty, they end with this process.
	Secret []byte

	// MaxSessions is how many sessions there may be, DefaultMaxSessions if 0. ClientShare is how many percent of what is
	// left one client may have; Unlimited are those that it does not hold, none if nil.
	MaxSessions, ClientShare int
	Unlimited                func(netip.Addr) bool

	// Node is the id of this one of several nodes, which stands in the names of its sessions. Elsewhere says whether a
	// node keeps a session that a request names; the request is sent there then. Both are empty if this server is
	// alone.
	Node      string
	Elsewhere func(ctx context.Context, node string) bool
}

// Servers are the MCP servers of all projects.
type Servers struct {
	Deps
	api  http.Handler               // our own, in this process
	http *mcp.StreamableHTTPHandler // for the revisions of the protocol that have sessions
	// Of the revisions without sessions: each request is answered by itself.
	stateless *mcp.StreamableHTTPHandler

	sessions sessions
	resuming sync.Mutex    // while a session is taken up again
	naming   sync.Mutex    // from the request that begins a session until the library asks for its name
	named    func() string // answers it

	mu      sync.Mutex
	servers map[kind]*mcp.Server
}

// A kind tells the servers apart: for the readers of a project, or for its jobs.
type kind struct {
	project api.ProjectID
	domain  string // of the project
	agent   bool
}

// ownCache says of a result that no cache may give it to anybody else: what is read may be for the groups of one reader.
var ownCache = mcp.Cacheable{CacheScope: "private"}

// New makes the servers. The API comes with Over.
func New(deps Deps) *Servers {
	s := &Servers{Deps: deps, servers: map[kind]*mcp.Server{}}
	if len(s.Secret) == 0 {
		s.Secret = []byte(rand.Text())
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.sessions.all, s.sessions.end = map[string]*session{}, s.close
	s.sessions.budgets = budget.New(cmp.Or(deps.ClientShare, 100),
		map[budget.Kind]budget.Pool{budget.Sessions: {Max: cmp.Or(deps.MaxSessions, DefaultMaxSessions)}})
	replay := mcp.NewMemoryEventStore(nil)
	replay.SetMaxBytes(replayBytes)
	server := func(req *http.Request) *mcp.Server { return req.Context().Value(serving{}).(*mcp.Server) }
	// A proxy on this machine sends the name that readers use: the edge says which origins may come.
	s.http = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{SessionTimeout: idle, EventStore: replay,
		MaxRequestBodyBytes: maxMessage, DisableLocalhostProtection: true})
	s.stateless = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true,
		MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true, DisableLocalhostProtection: true})
	return s
}

// Over says which API the tools use: it knows that they do. It is called once, before the first client comes.
func (s *Servers) Over(api http.Handler) { s.api = api }

// serving is the name of the context's value that says which server answers.
type serving struct{}

// ServeReaders answers a request of a client that reads a project's documentation. Who may was found out before.
func (s *Servers) ServeReaders(w http.ResponseWriter, req *http.Request, p api.Project, from netip.Addr) {
	s.serve(w, req, kind{project: p.ID, domain: p.Domain}, from)
}

// ServeAgent answers a request of a client that works with a project's jobs. Who may was found out before.
func (s *Servers) ServeAgent(w http.ResponseWriter, req *http.Request, p api.Project, from netip.Addr) {
	s.serve(w, req, kind{project: p.ID, domain: p.Domain, agent: true}, from)
}

// sessionless is the first revision of the protocol without sessions.
const sessionless = "2026-07-28"

func (s *Servers) serve(w http.ResponseWriter, req *http.Request, k kind, from netip.Addr) {
	version := req.Header.Get(versionHeader)
	id := req.Header.Get(sessionHeader)
	if version >= sessionless {
		id = ""
	}
	if node := nodeOf(id); node != s.Node && node != "" && s.Elsewhere != nil && s.Elsewhere(req.Context(), node) {
		http.Error(w, "another node keeps this session", http.StatusMisdirectedRequest) // nobody reads it
		return
	}
	if id != "" && !s.begunAt(k, id) {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	req = req.Clone(context.WithValue(req.Context(), serving{}, s.server(k)))
	req.Header.Set(clientHeader, from.String())
	req.Header.Set(traceHeader, tracing.Carried(req.Context()))
	var message []byte
	if req.Method == http.MethodPost {
		var err error
		if message, err = io.ReadAll(http.MaxBytesReader(w, req.Body, maxMessage)); err != nil {
			http.Error(w, "the message is too large or did not arrive", http.StatusRequestEntityTooLarge)
			return
		}
	}
	repeat := func() { req.Body = io.NopCloser(bytes.NewReader(message)) }
	repeat()
	held := &refusals{ResponseWriter: w}
	switch {
	case version >= sessionless:
		s.stateless.ServeHTTP(held, req)
	case id != "" || req.Method != http.MethodPost:
		lasting := id != "" && req.Method != http.MethodDelete
		lost := lasting && !s.sessions.has(id) // or another request is taking it up, and nothing is asked of it before that is done
		if !lost {
			s.continued(held, req, id)
			lost = lasting && held.status == http.StatusNotFound
		}
		if lost {
			if own, ok := s.resume(req, k, id, from); !ok {
				refuseSession(w, own)
				return
			}
			held = &refusals{ResponseWriter: w}
			repeat()
			s.continued(held, req, id)
		}
	default:
		account, own, ok := s.sessions.room(from, s.Unlimited == nil || !s.Unlimited(from))
		if !ok {
			refuseSession(w, own)
			return
		}
		name := s.session(k)
		s.sessions.begun(name, k, account) // before the client can know its name
		defer s.sessions.use(name, false)()
		if s.begin(held, req, name); w.Header().Get(sessionHeader) == "" {
			s.sessions.forget(name)
		}
	}
	held.answer(message)
}

// continued serves a request of a session that has begun.
func (s *Servers) continued(w http.ResponseWriter, req *http.Request, id string) {
	defer s.sessions.use(id, req.Method == http.MethodDelete)()
	s.http.ServeHTTP(w, req)
}

// session names a new session of a kind. A session belongs to the server that it began at: its name says so, and nobody
// can make one up. Nothing of worth is in it, so that a name is all it takes to go on: after a restart, after a long
// rest, and at another node.
func (s *Servers) session(k kind) string {
	id := rand.Text()
	name := id + "-" + s.seal(k, id)
	if s.Node != "" {
		name += "-" + s.Node
	}
	return name
}

// nodeOf is the node that keeps a session of that name, if it is there; nothing if it names none.
func nodeOf(name string) string {
	parts := strings.SplitN(name, "-", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// begunAt reports whether a session of that name has begun at that server.
func (s *Servers) begunAt(k kind, name string) bool {
	id, seal, _ := strings.Cut(name, "-")
	seal, _, _ = strings.Cut(seal, "-")
	return hmac.Equal([]byte(seal), []byte(s.seal(k, id)))
}

func (s *Servers) seal(k kind, id string) string {
	return hex.EncodeToString(api.Sign(s.Secret, "mcp session", fmt.Appendf(nil, "%q %q %t %q", k.project, k.domain, k.agent, id))[:16])
}

// Run serves one client over standard input and output until it leaves or ctx ends. The client has that key.
func (s *Servers) Run(ctx context.Context, p api.Project, key string) error {
	return s.build(kind{project: p.ID, domain: p.Domain}, key).Run(ctx, &mcp.StdioTransport{})
}

// server is the one of a kind, made when it is first asked for.
func (s *Servers) server(k kind) *mcp.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	server, ok := s.servers[k]
	if !ok {
		server = s.build(k, "")
		s.servers[k] = server
	}
	return server
}

// Close ends all sessions.
func (s *Servers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		for session := range server.Sessions() {
			session.Close()
		}
	}
}

func (s *Servers) build(k kind, key string) *mcp.Server {
	t := tools{kind: k, key: key, servers: s}
	about := &mcp.Implementation{Name: "docent", Title: "Documentation of " + k.domain, Version: s.Version}
	options := &mcp.ServerOptions{Logger: s.Log, Capabilities: &mcp.ServerCapabilities{}, PageSize: pageSize,
		GetSessionID: func() string { return s.named() }, SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { *c = ownCache }}
	if k.agent {
		about.Title = "Agent for the documentation of " + k.domain
		options.Instructions = agentInstructions
	} else {
		options.Instructions = readerInstructions
	}
	server := mcp.NewServer(about, options)
	server.AddReceivingMiddleware(s.traced)
	if k.agent {
		t.addAgent(server)
	} else {
		t.addReader(server)
	}
	return server
}

// tools do for one client what its calls ask for, through the API.
type tools struct {
	kind
	key     string // the client's, if it does not come with each request
	servers *Servers
}

// client speaks to the API as the sender of the request.
func (t tools) client(extra *mcp.RequestExtra) *client.Client {
	c := &client.Client{Base: "http://docent.internal", Key: t.key, NoProof: true} // the work would be this server's
	as := &acting{next: inprocess.Transport{Handler: t.servers.api}, from: "127.0.0.1"}
	if extra != nil && extra.Header != nil {
		as.authorization = extra.Header.Get("Authorization")
		as.reader = extra.Header.Values(readerHeader)
		as.from = extra.Header.Get(clientHeader)
		as.trace = extra.Header.Get("X-Request-Id")
	}
	c.HTTP = &http.Client{Transport: as}
	return c
}

// acting sends requests in the name of another one.
type acting struct {
	next                       http.RoundTripper
	authorization, from, trace string
	reader                     []string // the reader token, as it was sent
}

func (a *acting) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.RemoteAddr = net.JoinHostPort(a.from, "0")
	if a.authorization != "" {
		req.Header.Set("Authorization", a.authorization)
	}
	if len(a.reader) > 0 {
		req.Header[readerHeader] = a.reader
	}
	if a.trace != "" {
		req.Header.Set("X-Request-Id", a.trace)
	}
	req.Header.Set("User-Agent", "docent-mcp")
	return a.next.RoundTrip(req)
}

// failed is an error of the API as the model that called a tool reads it.
func failed(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		text := refused.Message
		for _, d := range refused.Details {
			text += "\n" + d.Field + ": " + d.Message
		}
		return errors.New(text)
	}
	return err
}
