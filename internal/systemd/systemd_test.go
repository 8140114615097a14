package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A record is what a manager was told.
type record struct {
	mu   sync.Mutex
	said []string
}

func (r *record) send(state string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, state)
	return nil
}

// take returns what was told since the last time.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.said = nil }()
	return r.said
}

// recorded is a Notifier whose messages are kept.
func recorded(watchdog time.Duration) (*Notifier, *record) {
	r := new(record)
	return &Notifier{log: silent(), watchdog: watchdog, used: func() time.Duration { return 0 }, send: r.send}, r
}

// The watchdog is pinged while the server is healthy and only then: one that hangs, or that says it is not well, is
// ended within the time that the manager waits, and one that recovers earlier goes on.
func TestPingsAreOfAHealthyServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, said := recorded(40 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var state atomic.Pointer[func(context.Context) (string, error)]
		be := func(healthy func(context.Context) (string, error)) { state.Store(&healthy) }
		well := func(context.Context) (string, error) { return "Serving\nwell", nil }
		be(well)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			n.Watch(ctx, func(ctx context.Context) (string, error) { return (*state.Load())(ctx) })
		}()
		var told []string
		pings := func(during time.Duration) (count int) {
			time.Sleep(during)
			synctest.Wait()
			told = said.take()
			for _, state := range told {
				if strings.HasPrefix(state, "WATCHDOG=1\nSTATUS=Serving well") {
					count++
				}
			}
			return count
		}
		if got := pings(59 * time.Second); got != 6 { // at once, and after each ten seconds
			t.Errorf("a healthy server pinged %d times in a minute", got)
		}
		be(func(context.Context) (string, error) { return "", errors.New("the journal\ndoes not move") })
		if got := pings(time.Minute); got != 0 {
			t.Errorf("one that is not well pinged %d times", got)
		}
		if all := strings.Join(told, "|"); !strings.Contains(all, "STATUS=Not healthy: the journal does not move") {
			t.Errorf("the manager is told %q", all)
		}
		be(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		if got := pings(time.Minute); got != 0 {
			t.Errorf("one that hangs pinged %d times", got)
		}
		be(well)
		if got := pings(20 * time.Second); got == 0 {
			t.Error("one that is well again does not ping")
		}
		cancel()
		<-ended
	})
}

// If no watchdog is set, nothing is looked at.
func TestWithoutAWatchdogNothingIsLookedAt(t *testing.T) {
	t.Parallel()
	n, said := recorded(0)
	n.Watch(t.Context(), func(context.Context) (string, error) { panic("looked at") })
	if told := said.take(); len(told) > 0 {
		t.Errorf("the manager is told %q", told)
	}
}

// A start that works gets more time, however long it takes, and one that hangs does not.
func TestAStartThatWorksGetsMoreTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, said := recorded(0)
		var used atomic.Int64
		n.used = func() time.Duration { return time.Duration(used.Load()) }
		done := n.Starting("Opening")
		time.Sleep(time.Second)
		for range 12 {
			used.Add(int64(time.Second))
			time.Sleep(10 * time.Second)
		}
		extended := 0
		told := said.take()
		for _, state := range told {
			if state == "EXTEND_TIMEOUT_USEC=60000000" {
				extended++
			}
		}
		if extended != 12 {
			t.Errorf("a start of two minutes of work was extended %d times: %q", extended, told)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if told := said.take(); len(told) > 0 {
			t.Errorf("a start that hangs is extended: %q", told)
		}
		done()
		done()
	})
}

// What is told arrives at the manager's socket as it is written in sd_notify(3).
func TestTheManagerIsToldOverItsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("this system has no such sockets: %v", err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	n := New(silent())
	if n.watchdog != 30*time.Second || os.Getenv("WATCHDOG_USEC") != "" {
		t.Errorf("the watchdog waits for %v, and children see WATCHDOG_USEC=%q", n.watchdog, os.Getenv("WATCHDOG_USEC"))
	}
	n.Ready("Serving")
	n.Stopping(90*time.Second, "Stopping")
	for _, want := range []string{"READY=1\nSTATUS=Serving", "STOPPING=1\nEXTEND_TIMEOUT_USEC=90000000\nSTATUS=Stopping"} {
		got := make([]byte, 200)
		size, err := socket.Read(got)
		if err != nil || string(got[:size]) != want {
			t.Errorf("the manager hears %q (%v), not %q", got[:size], err, want)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	New(silent()).Ready("nobody listens")
}

// The process that the test starts takes the sockets that it was passed and says their names and addresses, twice.
func TestMain(m *testing.M) {
	if os.Getenv("SYSTEMD_TEST_SOCKETS") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("LISTEN_PID") == "" { // only the process itself knows its id before it begins
		os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	}
	for range 2 {
		list, err := Sockets()
		os.Stdout.WriteString("sockets:")
		for _, s := range list {
			os.Stdout.WriteString(" " + s.Name + "=" + s.Addr().String())
		}
		if err != nil {
			os.Stdout.WriteString(" " + err.Error())
		}
		os.Stdout.WriteString(os.Getenv("LISTEN_FDS") + "\n")
	}
	os.Exit(0)
}

// Sockets come in with their names, once; those for another process are left alone, and what is no listener is an error
// that names it.
func TestSocketsArePassedOnce(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows passes no sockets")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	run := func(files []*os.File, env ...string) string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.ExtraFiles = files
		cmd.Env = append(os.Environ(), append(env, "SYSTEMD_TEST_SOCKETS=1")...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	address := listener.Addr().String()
	got := run([]*os.File{file, file}, "LISTEN_FDS=2", "LISTEN_FDNAMES=docent:redirect")
	if want := "sockets: docent=" + address + " redirect=" + address + "\nsockets:\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := run([]*os.File{file}, "LISTEN_FDS=1", "LISTEN_PID=1"); got != "sockets:\nsockets:\n" {
		t.Errorf("another process's sockets are taken: %q", got)
	}
	if got := run([]*os.File{file, plain}, "LISTEN_FDS=2", "LISTEN_FDNAMES=docent:odd"); !strings.Contains(got, "the socket odd") {
		t.Errorf("a file that is no socket: %q", got)
	}
}
