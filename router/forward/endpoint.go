package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"docent/persistence/cluster"
)

// entryProbe is the entry under which a node says who it is.
const entryProbe = "probe"

// maxNodeID is how much of an answer to a probe is read.
const maxNodeID = 256

// An Endpoint is a node's listener for other nodes, and its way to theirs. It is there before the node joins: it says who
// it is, by which the others find out whether they reach it. Requests are another node's until a Forwarder takes them.
type Endpoint struct {
	id      string
	client  *http.Transport
	server  *http.Server
	handler atomic.Pointer[http.Handler]
}

// NewEndpoint makes the endpoint of the node with an id. Of the secrets of the cluster, two while it is replaced, the first
// is shown, and all are taken.
func NewEndpoint(id string, secrets []string, log *slog.Logger) (*Endpoint, error) {
	keys, err := newIdentity(secrets)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{id: id, client: newTransport(keys)}
	e.server = newServer(keys, http.HandlerFunc(e.take), slog.NewLogLogger(log.Handler(), slog.LevelDebug))
	return e, nil
}

// Serve takes what other nodes send until Shutdown or Close.
func (e *Endpoint) Serve(l net.Listener) error {
	err := e.server.ServeTLS(l, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve other nodes: %w", err)
}

// Shutdown takes no more requests of other nodes, and waits for those in hand until ctx ends.
func (e *Endpoint) Shutdown(ctx context.Context) error { return e.server.Shutdown(ctx) }

// Close breaks off what goes on.
func (e *Endpoint) Close() {
	e.server.Close()
	e.client.CloseIdleConnections()
}

func (e *Endpoint) take(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get(entryHeader) == entryProbe {
		_, _ = io.WriteString(w, e.id)
		return
	}
	if h := e.handler.Load(); h != nil {
		(*h).ServeHTTP(w, req)
		return
	}
	notOwner(w) // it runs nothing yet
}

// Probe asks who answers at a node's address, over the connection that requests take: the other end has proven there that
// it has the secret. A node of a version that does not know probes says so, and has no id.
func (e *Endpoint) Probe(ctx context.Context, n cluster.Node) (id string, err error) {
	to := url.URL{Scheme: "https", Host: n.Address, Path: "/"}
	req := (&http.Request{Method: http.MethodGet, URL: &to, Host: nodeName, Header: http.Header{}}).WithContext(ctx)
	req.Header.Set(entryHeader, entryProbe)
	res, err := e.client.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxNodeID))
	switch {
	case err != nil:
		return "", err
	case res.StatusCode == http.StatusNotImplemented:
		return "", nil
	case res.StatusCode != http.StatusOK:
		return "", fmt.Errorf("it answers a probe with status %d", res.StatusCode)
	}
	return string(body), nil
}
