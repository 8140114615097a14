package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docent/api"
	"docent/api/client"
	"docent/bench/lab"
	"docent/persistence/datadir"
)

// servers counts the addresses that were given out.
var servers atomic.Uint32

// OwnAddress is a loopback address for a server that is stopped and started again. Where the system has more than one,
// each server gets one for itself: nobody else can take its port while it is down. The port is below those that the system
// gives out by itself, which somebody may take on all addresses, and above the last that browsers refuse, 10080
// (https://fetch.spec.whatwg.org/#port-blocking).
func OwnAddress(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "linux" {
		n, pid := servers.Add(1), os.Getpid()
		own := net.IPv4(127, byte(1+pid%250), byte(1+pid/250%250), byte(1+n%250))
		if listener, err := net.Listen("tcp", net.JoinHostPort(own.String(), fmt.Sprint(10_100+n%10_000))); err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	address, err := lab.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// A Server is the program serving, as a process of its own.
type Server struct {
	T      testing.TB
	Data   string
	Listen string
	Flags  []string
	URL    string
	Cmd    *exec.Cmd
	Log    *LockedBuffer
	Ended  chan struct{} // closed when the process has ended

	Via []string // a command that runs the program, with the program and its arguments behind it
}

// A LockedBuffer is a log that is read while a process writes it.
type LockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *LockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *LockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// SkipShort leaves a test out that starts servers: with -short three stories show that a server works.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers; left out with -short")
	}
}

// NewServer starts a server on a data directory and waits until it is ready.
func NewServer(t testing.TB, data string, flags ...string) *Server {
	t.Helper()
	SkipShort(t)
	address := OwnAddress(t)
	s := &Server{T: t, Data: data, Listen: address, Flags: flags, URL: "http://" + address, Log: new(LockedBuffer)}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// Start starts it again and waits until it is ready.
func (s *Server) Start() {
	s.T.Helper()
	if err := s.TryStart(); err != nil {
		s.T.Fatal(err)
	}
}

// TryStart is Start for a server that may not come up.
func (s *Server) TryStart() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitReady()
}

// Launch starts the process and does not wait until it is ready.
func (s *Server) Launch() error {
	args := slices.Concat(s.Via, []string{Self(s.T), datadir.Server, "--data", s.Data, "--listen", s.Listen}, s.Flags)
	s.Cmd = exec.Command(args[0], args[1:]...)
	s.Cmd.Env = Environment(s.T)
	s.Cmd.Stdout, s.Cmd.Stderr = s.Log, s.Log
	if err := s.Cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.Ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(s.Cmd)
	return nil
}

// AwaitReady waits until the server takes requests.
func (s *Server) AwaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err := lab.Get(ctx, s.URL+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-s.Ended:
			return fmt.Errorf("the server ended (%v):\n%s", s.Cmd.ProcessState, s.Log)
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready:\n%s", s.Log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the server as a loss of power would, as far as a process can tell.
func (s *Server) Kill() {
	_ = s.Cmd.Process.Kill()
	<-s.Ended
}

// Stop ends the server gently.
func (s *Server) Stop() {
	s.T.Helper()
	_ = s.Cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.Ended:
	case <-time.After(time.Minute):
		s.T.Fatalf("the server does not stop:\n%s", s.Log)
	}
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
		s.T.Errorf("the server ended with status %d:\n%s", code, s.Log)
	}
}

// Client is a client with a key, which comes back if the server is busy.
func (s *Server) Client(key string) *client.Client {
	return &client.Client{Base: s.URL, Key: key, HTTP: &http.Client{Timeout: 5 * time.Minute, Transport: Patient{}}}
}

// Patient comes back where the server has no room for a request, as it says: on a busy machine it turns some away.
type Patient struct{}

func (Patient) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(text))
		if !bytes.Contains(text, []byte(api.ErrOverloaded.Error())) {
			return resp, nil // it is unavailable for another reason, or may have begun
		}
		wait, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		if err != nil {
			return resp, nil
		}
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(wait):
		}
		if req = req.Clone(req.Context()); req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// Printed is what the server says that has that form. What it wrote before it was ready may come through the pipe later.
func (s *Server) Printed(form *regexp.Regexp) string {
	s.T.Helper()
	deadline := time.After(time.Minute)
	for {
		if found := form.FindString(s.Log.String()); found != "" {
			return found
		}
		select {
		case <-s.Ended:
			s.T.Fatalf("the server ended and has not said %s:\n%s", form, s.Log)
		case <-deadline:
			s.T.Fatalf("the server has not said %s:\n%s", form, s.Log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
