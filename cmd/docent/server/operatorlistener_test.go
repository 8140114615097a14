package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/cmd/docent/config"
)

// A logged keeps what is written to a log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fetched asks a server and gives the status and the body.
func fetched(t testing.TB, client *http.Client, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A listener that others reach is warned of; what it says while the server starts and when it has stopped.
func TestTheOperatorsListenerOverALife(t *testing.T) {
	t.Parallel()
	var log logged
	w, err := watch(config.Config{OperatorListen: "0.0.0.0:0"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if !strings.Contains(log.String(), "requires no key") {
		t.Errorf("nobody is warned of 0.0.0.0: %s", &log)
	}
	path := filepath.Join(t.TempDir(), "operator.sock")
	quiet := slog.New(slog.NewTextHandler(&log, nil))
	if w, err = watch(config.Config{OperatorListen: "unix:" + path}, quiet); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v: %v", info.Mode(), err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 503, "/debug/pprof/": 200} {
		if status, body := fetched(t, client, "http://operator"+path); status != want {
			t.Errorf("%s while the server starts: %d %.100q", path, status, body)
		}
	}
	if _, err := watch(config.Config{OperatorListen: "unix:" + path}, quiet); err == nil ||
		!strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("two processes listen on one socket: %v", err)
	}
	w.close()
	// One that was killed leaves its socket.
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	if w, err = watch(config.Config{OperatorListen: "unix:" + path}, quiet); err != nil {
		t.Fatalf("the socket that a killed server left: %v", err)
	}
	w.close()
	file := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := watch(config.Config{OperatorListen: "unix:" + file}, quiet); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file that is no socket: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q: %v", text, err)
	}
}
