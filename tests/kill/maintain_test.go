package kill

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"docent/actors/thread"
	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/operator"
	"docent/internal/health"
	"docent/persistence/backup"
	"docent/persistence/datadir"
	"docent/tests/harness"
)

// TestBackupUnderLoadIsWhole backs up a server that clients press, and serves the copy. Everything that was
// acknowledged before the backup began must be in it, done once, and work must go on.
func TestBackupUnderLoadIsWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("puts load on a server; left out with -short")
	}
	data, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour), harness.Unlimited...)
	server := harness.NewServer(t, data)
	told := new(tally)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			told.createJobs(ctx, server.Client(p.Admin), p, i, rand.New(rand.NewPCG(3, uint64(i))))
		})
		clients.Go(func() {
			told.askQuestions(ctx, server.Client(p.Assistant), p, rand.New(rand.NewPCG(4, uint64(i))))
		})
	}
	harness.Until(t, "20 jobs and 20 questions are accepted", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		return len(told.jobs) >= 20 && len(told.questions) >= 20
	})
	told.mu.Lock()
	var jobs []*acceptedJob
	for _, j := range told.jobs {
		was := *j
		jobs = append(jobs, &was)
	}
	questions := slices.Clone(told.questions)
	told.mu.Unlock()

	report := harness.DecodeOutput[backup.Report](t, harness.Docent(t, "backup", "--data", data, "--json", copied))
	if report.Position == 0 || report.Repositories != 1 || report.CatalogBytes == 0 {
		t.Errorf("%+v", report)
	}
	if _, err := harness.TryDocent(t, "backup", "--data", data, copied); err == nil {
		t.Error("a second backup went over the first")
	}
	if _, err := harness.TryDocent(t, "backup", "--data", data, filepath.Join(data, "inside")); err == nil {
		t.Error("a backup went into the data directory")
	}
	cancel()
	clients.Wait()
	server.Kill()

	if out, err := harness.TryDocent(t, "journal", "check", "--data", copied); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	restored := harness.NewServer(t, copied)
	if _, err := os.Stat(filepath.Join(copied, datadir.Backup)); err == nil {
		t.Error("the restored directory still calls itself a backup")
	}
	awaitJobs(t, restored, p, jobs)
	checkListing(t, restored, p, jobs)
	cl := restored.Client(p.Admin)
	var more api.Job
	if err := cl.Post(t.Context(), "/v2/agent/"+p.ID+"/job",
		map[string]string{"prompt": `create page after.md titled "After" with content: "made after"`}, &more); err != nil {
		t.Fatal(err)
	}
	awaitJobs(t, restored, p, []*acceptedJob{{id: more.ID}})
	restored.Stop()
	if out, err := harness.TryDocent(t, "journal", "check", "--data", copied); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkRepository(t, copied, p, jobs)
	checkThreads(t, copied, "", p, questions)
	t.Logf("%d jobs and %d questions before the backup, %d and %d in all", len(jobs), len(questions), len(told.jobs),
		len(told.questions))
}

// TestDamageIsNamedAndRepaired damages one thread's record. The server serves the rest, the check names the record,
// and after the repair nothing is damaged.
func TestDamageIsNamedAndRepaired(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	server := harness.NewServer(t, data)
	good, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, "", "What do tickets cost?")
	if err != nil {
		t.Fatal(err)
	}
	bad, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, "", "Where does the ferry leave?")
	if err != nil {
		t.Fatal(err)
	}
	shown := harness.Docent(t, "journal", "show", "--data", data, string(bad.Thread))
	for _, want := range []string{`"type":"thread.opened.1"`, `"type":"thread.asked.1"`, "Where does the ferry leave?",
		`"type":"thread.answered.1"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the running server's journal does not show %s:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "KeyHash") {
		t.Error("it shows the hash of a thread's secret")
	}
	if out, err := harness.TryDocent(t, "journal", "check", "--data", data); err != nil ||
		!strings.Contains(out, "nothing is wrong") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := harness.TryDocent(t, "journal", "drop", "--data", data, "--yes", string(bad.Thread)); err == nil ||
		!strings.Contains(err.Error(), "stop the server") {
		t.Errorf("a repair beside a running server: %v", err)
	}
	if _, err := harness.TryDocent(t, "journal", "compact", "--data", data); err == nil ||
		!strings.Contains(err.Error(), "stop the server") {
		t.Errorf("a compaction beside a running server: %v", err)
	}
	server.Kill() // so that the events are still in the log
	damageThread(t, data, bad.Thread)

	out, err := harness.TryDocent(t, "journal", "check", "--data", data)
	if err == nil || !strings.Contains(out, "stream thread/"+string(bad.Thread)+", sequence 3") ||
		!strings.Contains(out, datadir.Journal) {
		t.Fatalf("%v\n%s", err, out)
	}
	server.Start()
	awaitQuarantined := func() []health.Quarantined {
		body := map[string]any{"fp": "anonymous", "threadId": bad.Thread,
			"messages": []any{map[string]any{"role": "user", "content": "And now?"}}}
		var refused *client.Error
		if _, err := server.Client(p.Assistant).Do(t.Context(), http.MethodPost, "/discovery/v2/assistant/"+p.Domain+
			"/message", body); !errors.As(err, &refused) || refused.Status != http.StatusInternalServerError {
			t.Errorf("the damaged thread answers %v", err)
		}
		return harness.ServerStatusOf(t, data).Actors.Quarantined
	}
	if got := awaitQuarantined(); len(got) != 1 || got[0].ID != string(bad.Thread) ||
		!strings.Contains(got[0].Reason, datadir.Journal) || !strings.Contains(got[0].Reason, "sequence 3") {
		t.Errorf("quarantined: %+v", got)
	}
	if _, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, string(good.Thread),
		"And the lighthouse?"); err != nil {
		t.Errorf("another thread: %v", err)
	}
	if out, err := harness.TryDocent(t, "actor", "retry", "--data", data, "--all"); err == nil ||
		!strings.Contains(out, string(bad.Thread)) || !strings.Contains(out, "sequence 3") {
		t.Errorf("a retry of what is still damaged: %v\n%s", err, out)
	}
	if out, err := harness.TryDocent(t, "actor", "retry", "--data", data, string(good.Thread)); err == nil {
		t.Errorf("a retry of a thread that is well: %s", out)
	}
	if got := harness.ServerStatusOf(t, data).Actors.Quarantined; len(got) != 1 || got[0].At.IsZero() {
		t.Errorf("after the retry: %+v", got)
	}
	server.Stop()

	if _, err := harness.TryDocent(t, "journal", "drop", "--data", data, string(bad.Thread)); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without --yes: %v", err)
	}
	done := harness.DecodeOutput[operator.JournalDropped](t, harness.Docent(t, "journal", "drop", "--data", data, "--yes", "--json", string(bad.Thread)))
	if len(done.Dropped) != 1 || done.Dropped[0].Why == "" || done.Dropped[0].Stream != "thread/"+string(bad.Thread) {
		t.Errorf("%+v", done)
	}
	kept, err := os.ReadFile(done.Kept)
	if err != nil || bytes.Count(kept, []byte("\n")) != done.Dropped[0].Records ||
		!bytes.Contains(kept, []byte(bad.Thread)) {
		t.Errorf("%v: kept %s", err, kept)
	}
	if out, err := harness.TryDocent(t, "journal", "check", "--data", data); err != nil {
		t.Errorf("after the drop: %v\n%s", err, out)
	}
	small := harness.DecodeOutput[operator.JournalCompacted](t, harness.Docent(t, "journal", "compact", "--data", data,
		"--json"))
	if st, err := os.Stat(filepath.Join(data, datadir.Journal)); err != nil || st.Size() != small.After ||
		small.After > small.Before {
		t.Errorf("%+v, %v", small, err)
	}
	server.Start()
	if _, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, string(good.Thread),
		"And pier two?"); err != nil {
		t.Errorf("another thread after the drop: %v", err)
	}
}

// TestADamagedRowOfTheCatalogIsNamed changes a key and a pull request behind the program's back: both are refused, the
// others work, the check names them, and what is accepted works again.
func TestADamagedRowOfTheCatalogIsNamed(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	other := harness.NewKey(t, data, p.ID, "assistant")
	db, err := sql.Open("sqlite", filepath.Join(data, "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	var key string
	err = db.QueryRow(`UPDATE keys SET body = replace(body, 'assistant', 'assistent') WHERE id = (SELECT MIN(id) FROM keys WHERE body LIKE '%assistant%') RETURNING id`).Scan(&key)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	named := func(what string) {
		t.Helper()
		out, err := harness.TryDocent(t, "catalog", "check", "--data", data)
		if err == nil || !strings.Contains(out, `row "`+key+`" of table keys`) ||
			!strings.Contains(out, "docent catalog accept keys "+key) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	named("without a server")
	server := harness.NewServer(t, data)
	named("beside a server")
	p.Assistant, other = other, p.Assistant
	if _, err := harness.Ask(t.Context(), server.Client(p.Assistant), p, "", "What do tickets cost?"); err != nil {
		t.Errorf("the other key: %v", err)
	}
	p.Assistant = other
	refused := new(client.Error)
	if _, err := harness.Ask(t.Context(), server.Client(other), p, "", "What do tickets cost?"); !errors.As(err,
		&refused) || refused.Status != http.StatusInternalServerError {
		t.Errorf("the damaged key: %v", err)
	}
	harness.Docent(t, "catalog", "accept", "--data", data, "keys", key)
	if out, err := harness.TryDocent(t, "catalog", "check", "--data", data); err != nil ||
		!strings.Contains(out, "nothing is wrong") {
		t.Errorf("%v\n%s", err, out)
	}
}

// damageThread flips a bit in a thread's last event.
func damageThread(t *testing.T, data string, id api.ThreadID) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(data, datadir.Journal), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		var key, value []byte
		b := tx.Bucket([]byte("events"))
		if err := b.ForEach(func(k, v []byte) error {
			if bytes.Contains(v, []byte(thread.Stream(id))) {
				key, value = bytes.Clone(k), bytes.Clone(v)
			}
			return nil
		}); err != nil {
			return err
		}
		if value == nil {
			return fmt.Errorf("there is no event of %s", id)
		}
		value[len(value)-1] ^= 1
		return b.Put(key, value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAReadOnlyDataDirectoryIsSaidPlainly starts the program in a mount namespace of its own, in which the data
// directory is mounted read-only: also root cannot write there.
func TestAReadOnlyDataDirectoryIsSaidPlainly(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	script := `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec "$2" serve --data "$1" --listen 127.0.0.1:0`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", script, "sh", data, harness.Self(t))
	cmd.Env = harness.Environment(t)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() == 77 || strings.HasPrefix(string(out), "unshare:") {
		t.Skipf("nothing can be mounted here: %v, %s", err, out)
	}
	if want := "the data directory " + data + " is on a read-only file system: mount it writable"; ended.ExitCode() != 1 ||
		!strings.Contains(string(out), want) {
		t.Errorf("status %d, %s; want %q", ended.ExitCode(), out, want)
	}
	harness.NewServer(t, data).Stop() // writable again, it serves
}
