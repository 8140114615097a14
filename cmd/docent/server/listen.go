package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"docent/cmd/docent/config"
	"docent/internal/background"
	"docent/internal/backoff"
	"docent/internal/systemd"
)

// passedSockets are those on which the service manager listens for this process.
var passedSockets = sync.OnceValues(systemd.Sockets)

// redirectSocket is the name of a passed socket that only redirects to the server's own address.
const redirectSocket = "redirect"

// listen makes the server's listener: the socket that the service manager listens on where there is one, whatever its
// name, and otherwise one of its own at the configured address.
func listen(c config.Config) (net.Listener, error) {
	return listenOn(c.Listen, func(name string) bool { return name != redirectSocket })
}

// listenOn takes the passed socket whose name fits, and makes one at the address where none does.
func listenOn(address string, fits func(name string) bool) (net.Listener, error) {
	sockets, err := passedSockets()
	if err != nil {
		return nil, err
	}
	var passed net.Listener
	for _, s := range sockets {
		switch {
		case !fits(s.Name):
		case passed != nil:
			return nil, fmt.Errorf("the service manager passed more than one socket such as %s: one ListenStream= is served", s.Name)
		case s.Addr().Network() != "tcp":
			return nil, fmt.Errorf("the service manager passed %s, a socket of the kind %s: ListenStream= has to be HOST:PORT",
				s.Name, s.Addr().Network())
		default:
			passed = s.Listener
		}
	}
	if passed != nil {
		return passed, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%s is taken by %s: use --listen %s, or stop that one: %w",
				address, cmp.Or(holder(address), "another program, perhaps by another `docent serve`"), freeBeside(address), err)
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// socketActivated tells whether connections that come while no server is there wait for the next one: the service
// manager listens.
func socketActivated() bool {
	sockets, err := passedSockets()
	return err == nil && len(sockets) > 0
}

// drain ends the edge: no new work, and streams may finish until ctx ends.
//
// Where the service manager listens, new connections are the next process's from the beginning, and no request is
// refused: those that come on open connections, until lastRequests after the last stream has ended, are answered, and
// their connections closed (see closing). Otherwise connections go on being accepted while streams drain, and new work is refused with 503 and
// Retry-After: a closed port says less.
func (a *Server) drain(ctx context.Context, server *http.Server, listener net.Listener) {
	shut := make(chan error, 1)
	shutdown := func() { shut <- server.Shutdown(ctx) } // which closes idle connections at once
	kept := socketActivated()
	a.Pages.Leave()
	if kept {
		_ = listener.Close() // only this process's copy
		settling, cancel := context.WithTimeout(ctx, a.config.DrainTimeout.Duration/2)
		_ = a.Edge.Settle(settling) // the answers that were begun before do not say that their connections will be closed
		cancel()
		_ = backoff.Sleep(ctx, lastRequests)
		background.Go("cmd/docent/server.drain", shutdown)
	}
	if err := a.Edge.Drain(ctx); err != nil {
		a.Log.Warn("streams were cut off", "error", err)
	}
	if !kept {
		shutdown()
	}
	if <-shut != nil {
		server.Close()
	}
}

// lastRequests is how long requests are still taken on open connections when the server stops. A client that uses its
// connection within this time learns from an answer that it is closed; closed under a request that is on its way, the
// client could not tell whether that was carried out.
const lastRequests = time.Second

// closing ends each connection with its answer once the server stops.
func (a *Server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.stops.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// stopSlack is how long a stop may take after the streams have drained.
const stopSlack = 30 * time.Second

// announce tells the service manager that requests are taken, and pings its watchdog until the returned function is
// called.
func (a *Server) announce() (stop func()) {
	a.manager.Ready(a.serving())
	ctx, cancel := context.WithCancel(context.Background())
	var watching background.Work
	watching.Go("cmd/docent/server.announce", func() { a.manager.Watch(ctx, a.watched) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// leaving tells the service manager that the server stops, and how long that may take.
func (a *Server) leaving() {
	a.stops.Store(true)
	a.manager.Stopping(a.config.DrainTimeout.Duration+stopSlack, "Stopping: open streams may finish")
}

// watched is what the service manager's watchdog asks of a serving process: that a request over the network is
// answered, and that the journal moves. Both are things that a restart cures. A full disk, a database that is away or
// a model that fails is none: readers are served meanwhile.
//
// While it stops, the manager bounds the time by itself.
func (a *Server) watched(ctx context.Context) (string, error) {
	if a.stops.Load() {
		return "Stopping", nil
	}
	if err := a.Journal.Moves(ctx); err != nil {
		return "", err
	}
	if err := probe(ctx, a.address+"/healthz", hostOf(a.config.PublicURL)); err != nil {
		return "", err
	}
	return a.serving(), nil
}

// serving says in one line what the process does.
func (a *Server) serving() string {
	st := a.System.Stats()
	return fmt.Sprintf("Serving %s; answers being written: %d, jobs worked on: %d", a.config.PublicURL, st.RunningTurns,
		st.RunningJobs)
}

// hostOf is the name that clients call the server by.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// probe asks this process for its health over a connection of its own. Whether a certificate is in order is not asked,
// nor whether there is one yet: a restart would not bring it.
func probe(ctx context.Context, address, host string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{ServerName: host, InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "remote error" {
		return nil // the server's own TLS has answered
	}
	if err != nil {
		return fmt.Errorf("its own health cannot be asked for: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("its own health cannot be read: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("its own health is " + resp.Status)
	}
	return nil
}

// freeBeside is an address with the next port that nobody listens on.
func freeBeside(address string) string {
	host, text, err := net.SplitHostPort(address)
	port, numberErr := strconv.Atoi(text)
	if err != nil || numberErr != nil {
		return "HOST:PORT"
	}
	for next := port + 1; next <= port+20; next++ {
		at := net.JoinHostPort(host, strconv.Itoa(next))
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			return at
		}
	}
	return "HOST:PORT"
}
