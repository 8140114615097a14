package cell

import (
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkDo is the way of a short text to a worker and back.
func BenchmarkDo(b *testing.B) {
	p := New(Options{Kinds: kinds, Workers: 1, Memory: testMemory, Idle: time.Hour, Log: slog.New(slog.DiscardHandler),
		Command: func() (*exec.Cmd, error) { return exec.Command(os.Args[0], "worker"), nil }})
	defer p.Close()
	text := make([]byte, 4<<10)
	for b.Loop() {
		if _, err := p.Do(b.Context(), "echo", text); err != nil {
			b.Fatal(err)
		}
	}
}
