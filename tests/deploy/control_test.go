package deploy

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"docent/persistence/datadir"
	"docent/tests/harness"
)

// TestNobodyElseAnswersTheOperator kills a server and lets another process wait where commands were sent to by earlier
// versions: no command goes there, and each does its work.
func TestNobodyElseAnswersTheOperator(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	server := harness.NewServer(t, data)
	info, err := os.Lstat(filepath.Join(data, datadir.Socket))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the operator's socket: %v, %v", info, err)
	}
	keys := harness.Docent(t, "key", "list", "--data", data, "--project", p.ID, "--json")
	server.Kill()

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
	if after := harness.Docent(t, "key", "list", "--data", data, "--project", p.ID, "--json"); after != keys ||
		asked.Load() != 0 {
		t.Errorf("%d commands went to a stranger, who told\n%s", asked.Load(), after)
	}
	server.Start()
	if _, err := os.Stat(filepath.Join(data, datadir.OldControl)); err == nil {
		t.Error("the address of an earlier version is still there")
	}
	if s := harness.ServerStatusOf(t, data); s.PID != server.Cmd.Process.Pid {
		t.Errorf("the status is of process %d", s.PID)
	}
}
