package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"docent/cmd/docent/config"
	"docent/internal/background"
)

// A watched server shows its operator its status, on listeners of their own. They are there before the server takes
// requests and until after it has stopped, so that a start that takes long and a stop that hangs can be looked into.
type watched struct {
	app     atomic.Pointer[Server] // nil while the server starts and when it has stopped
	log     *slog.Logger
	servers []*http.Server
}

// watch listens where the settings say.
func watch(c config.Config, log *slog.Logger) (_ *watched, err error) {
	w := &watched{log: log}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if c.OperatorListen != "" {
		if err := w.serve("operator_listen", c.OperatorListen, w.operator()); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *watched) serve(setting, address string, handler http.Handler) error {
	listener, err := listenFor(address)
	if err != nil {
		return fmt.Errorf("setting %s: listen on %s: %w", setting, address, err)
	}
	// No time limit for an answer: a profile takes as long as its caller asks for.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelDebug)}
	w.servers = append(w.servers, server)
	background.Essential("serve the operator", func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.log.Error("the operator listener failed", "setting", setting, "error", err)
		}
	})
	w.log.Info("listening for the operator", "setting", setting, "address", listener.Addr().String())
	if reachable(listener.Addr()) {
		w.log.Warn("the operator listener requires no key and exposes the server's memory: "+
			"let it listen on this machine or in a private network only", "setting", setting,
			"address", listener.Addr().String())
	}
	return nil
}

// listenFor listens on HOST:PORT, or on a Unix socket that only its owner can open.
func listenFor(address string) (net.Listener, error) {
	path, is := strings.CutPrefix(address, config.UnixScheme)
	if !is {
		return net.Listen("tcp", address)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type()&fs.ModeSocket == 0:
		return nil, errors.New("there is a file that is no socket: name another path")
	default: // of a server that was killed, or of one that runs
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			conn.Close()
			return nil, errors.New("another process listens there")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// reachable is whether others than this machine and its private networks may reach an address.
func reachable(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	ip = ip.Unmap()
	return !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
}

// operatorPage is what the operator's listener shows at its root.
const operatorPage = `Docent, for its operator. Nothing here asks for a key: keep this listener to those who run the server.

/metrics        metrics for Prometheus
/healthz        the process lives
/readyz         the server takes requests
/debug/pprof/   profiles of Go: heap, profile?seconds=30 (processors), goroutine?debug=2, mutex, block, trace?seconds=5
/debug/build    how this binary was built, and of which modules
`

// operator is all that the operator's listener serves.
func (w *watched) operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) { plain(rw, http.StatusOK, operatorPage) })
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { plain(rw, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, req *http.Request) {
		if err := w.ready(req.Context()); err != nil {
			plain(rw, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
		plain(rw, http.StatusOK, "ready\n")
	})
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, req *http.Request) {
		if a := w.app.Load(); a != nil {
			a.Edge.ShowMetrics(rw, req)
			return
		}
		plain(rw, http.StatusServiceUnavailable, errNotServing.Error()+"\n")
	})
	mux.HandleFunc("GET /debug/build", func(rw http.ResponseWriter, _ *http.Request) {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			plain(rw, http.StatusNotFound, "this binary does not know how it was built\n")
			return
		}
		plain(rw, http.StatusOK, info.String())
	})
	profiles(mux)
	return mux
}

// plain answers with a text. One that cannot be written has no reader.
func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// profiles serves Go's profiles, but for the command line: a flag may hold the password of a database.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

var errNotServing = errors.New("the server starts or stops")

func (w *watched) ready(ctx context.Context) error {
	a := w.app.Load()
	if a == nil {
		return errNotServing
	}
	return a.Edge.Serving(ctx)
}

// shows has a server watched until it closes.
func (w *watched) shows(a *Server) {
	w.app.Store(a)
	a.closers = append(a.closers, func() error { w.app.Store(nil); return nil })
}

// close ends the listeners. Who still reads a profile is cut off.
func (w *watched) close() {
	for _, server := range w.servers {
		server.Close()
	}
}
