package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"docent/persistence/datadir"
)

// TestNobodyElseAnswersTheOperator kills a server and lets another process wait where commands were sent to by earlier
// versions: no command goes there, and each does its work.
func TestNobodyElseAnswersTheOperator(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := newTestProject(t, data, "harbour", writeFiles(t, harbour))
	server := newTestServer(t, data)
	info, err := os.Lstat(filepath.Join(data, datadir.Socket))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the operator's socket: %v, %v", info, err)
	}
	keys := docent(t, "key", "list", "--data", data, "--project", p.id, "--json")
	server.kill()

	var asked atomic.Int32
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stranger := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			_, _ = w.Write([]byte(`{"result":[]}` + "\n"))
		})}
	go func() { _ = stranger.Serve(thief) }()
	defer stranger.Close()
	text := `{"address":"` + thief.Addr().String() + `","secret":"X"}`
	if err := os.WriteFile(filepath.Join(data, datadir.OldControl), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := docent(t, "key", "list", "--data", data, "--project", p.id, "--json"); after != keys || asked.Load() != 0 {
		t.Errorf("%d commands went to a stranger, who told\n%s", asked.Load(), after)
	}
	server.start()
	if _, err := os.Stat(filepath.Join(data, datadir.OldControl)); err == nil {
		t.Error("the address of an earlier version is still there")
	}
	if s := serverStatusOf(t, data); s.PID != server.cmd.Process.Pid {
		t.Errorf("the status is of process %d", s.PID)
	}
}
