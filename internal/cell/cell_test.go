package cell

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The kinds of these tests do what a parser must not do.
var kinds = []Kind{
	{Name: "echo", Time: time.Minute, MaxInput: 1 << 20, MaxOutput: 1 << 20, Read: func(in []byte) ([]byte, error) { return in, nil }},
	{Name: "who", Time: time.Minute, MaxInput: 10, MaxOutput: 100, Read: func([]byte) ([]byte, error) {
		return strconv.AppendInt(nil, int64(os.Getpid()), 10), nil
	}},
	{Name: "refuse", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) {
		return nil, errors.New("no heading")
	}},
	{Name: "panic", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) { panic("odd") }},
	{Name: "deep", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) {
		var down func(n int) int
		down = func(n int) int { return down(n+1) + n }
		return []byte{byte(down(0))}, nil
	}},
	{Name: "loop", Time: 50 * time.Millisecond, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) {
		for n := 0; ; n++ {
		}
	}},
	{Name: "stand", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) { select {} }},
	{Name: "grow", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) {
		for all := []byte("x"); ; all = append(all, all...) {
		}
	}},
	{Name: "at once", Time: time.Minute, MaxInput: 10, MaxOutput: 10, Read: func([]byte) ([]byte, error) {
		return bytes.Repeat([]byte("x"), 8<<30)[:1], nil
	}},
	{Name: "write", Time: time.Minute, MaxInput: 10, MaxOutput: 100, Read: func([]byte) ([]byte, error) {
		return bytes.Repeat([]byte("x"), 101), nil
	}},
	{Name: "open", Time: time.Minute, MaxInput: 1000, MaxOutput: 1000, Read: func(in []byte) ([]byte, error) {
		return os.ReadFile(string(in))
	}},
	{Name: "add", Time: time.Minute, MaxInput: 1000, MaxOutput: 1000, Read: Values(func(in []int) (sum int, err error) {
		for _, n := range in {
			sum += n
		}
		return sum, nil
	})},
}

const testMemory = 64 << 20

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		memory, _ := strconv.ParseInt(os.Args[2], 10, 64)
		out := os.Stdout
		os.Stdout = os.Stderr
		if err := Serve(os.Stdin, out, memory, kinds...); err != nil {
			os.Exit(1)
		}
		return
	}
	m.Run()
}

func newPool(t *testing.T, workers int) *Pool {
	t.Helper()
	p, _ := watched(t, workers)
	return p
}

// watched is a pool, and receives when a worker is started.
func watched(t *testing.T, workers int) (*Pool, <-chan bool) {
	t.Helper()
	started := make(chan bool, 100)
	p := New(Options{Kinds: kinds, Workers: workers, Memory: testMemory, Idle: time.Hour, Log: slog.New(slog.DiscardHandler),
		Command: func() (*exec.Cmd, error) {
			started <- true
			return exec.Command(os.Args[0], "worker"), nil
		}})
	t.Cleanup(func() { _ = p.Close() })
	return p, started
}

func do(t *testing.T, f Func, kind, input string) string {
	t.Helper()
	out, err := f(t.Context(), kind, []byte(input))
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return string(out)
}

// unreadable is why there is nothing of an input.
func unreadable(t *testing.T, f Func, kind, input string) *UnreadableError {
	t.Helper()
	out, err := f(t.Context(), kind, []byte(input))
	var u *UnreadableError
	if !errors.As(err, &u) || out != nil {
		t.Fatalf("%s: %.100q, %v", kind, out, err)
	}
	return u
}

func TestAWorkerServesManyInputs(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2)
	first := do(t, p.Do, "who", "")
	for range 20 {
		if text := strings.Repeat("text", 1000); do(t, p.Do, "echo", text) != text {
			t.Fatal("another text came back")
		}
	}
	if why := unreadable(t, p.Do, "refuse", ""); why.Why != "no heading" || why.Broke {
		t.Errorf("%+v", why)
	}
	if sum, err := Call[int](t.Context(), p.Do, "add", []int{1, 2, 3}); err != nil || sum != 6 {
		t.Errorf("%d, %v", sum, err)
	}
	if again := do(t, p.Do, "who", ""); again != first {
		t.Errorf("worker %s, then %s", first, again)
	}
}

func TestAnInputThatBreaksItsParserCostsNobodyElse(t *testing.T) {
	t.Parallel()
	p := newPool(t, 2)
	for kind, why := range map[string]string{"panic": whyBroke, "deep": whyBroke, "loop": whyTime, "grow": whyMemory, "at once": "",
		"write": "what is made of it has more than 100 bytes"} {
		got := unreadable(t, p.Do, kind, "")
		if why == "" { // the system or the watch is first
			why = got.Why
		}
		if got.Why != why || !got.Broke {
			t.Errorf("%s: %+v", kind, got)
		}
		if do(t, p.Do, "echo", "x") != "x" {
			t.Errorf("%s: the next input is not read", kind)
		}
	}
	if got := unreadable(t, p.Do, "echo", strings.Repeat("x", 1<<20+1)); got.Why != "it has more than 1048576 bytes" {
		t.Errorf("%+v", got)
	}
}

func TestAWorkerThatEndedWhileItWasIdleIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1)
	pid, _ := strconv.Atoi(do(t, p.Do, "who", ""))
	w := p.idle[0]
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = w.out.Read(make([]byte, 1)) // until it is gone
	if again := do(t, p.Do, "who", ""); again == strconv.Itoa(pid) {
		t.Error("a dead worker answered")
	}
}

func TestTheEndOfTheCallerEndsTheWork(t *testing.T) {
	t.Parallel()
	p, started := watched(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := p.Do(ctx, "stand", nil)
		failed <- err
	}()
	<-started
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	do(t, p.Do, "echo", "") // its place is free
}

func TestOneOwnerNeverTakesAllWorkers(t *testing.T) {
	t.Parallel()
	p, started := watched(t, 2)
	ctx, cancel := context.WithCancel(WithOwner(t.Context(), "hostile"))
	defer cancel()
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := p.Do(ctx, "stand", nil)
			ended <- err
		}()
	}
	<-started
	if out, err := p.Do(WithOwner(t.Context(), "other"), "echo", []byte("x")); err != nil || string(out) != "x" {
		t.Errorf("%q, %v", out, err)
	}
	cancel()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestIdleWorkersEnd(t *testing.T) {
	t.Parallel()
	p := newPool(t, 1)
	do(t, p.Do, "echo", "")
	w := p.idle[0]
	w.since = time.Now().Add(-2 * time.Hour)
	p.sweep()
	if len(p.idle)+len(p.live) != 0 || w.cmd.ProcessState == nil {
		t.Error("it goes on")
	}
	do(t, p.Do, "echo", "")
	w = p.idle[0]
	if err := p.Close(); err != nil || w.cmd.ProcessState == nil {
		t.Errorf("it goes on after Close: %v", err)
	}
	if _, err := p.Do(t.Context(), "echo", nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestInProcessHasTheSameBoundsOnBytes(t *testing.T) {
	t.Parallel()
	here := InProcess(kinds...)
	if do(t, here, "echo", "x") != "x" {
		t.Error("another text came back")
	}
	for _, kind := range []string{"panic", "write", "refuse"} {
		unreadable(t, here, kind, "")
	}
	unreadable(t, here, "echo", strings.Repeat("x", 1<<20+1))
}
