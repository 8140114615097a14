package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"docent/actors/webhooks"
	"docent/api"
)

// AllowLoopback is a configuration with which webhooks may be sent to this machine.
func AllowLoopback(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "docent.toml")
	if err := os.WriteFile(config, []byte("webhook_allow = [\"127.0.0.0/8\"]\nlog_level = \"warn\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// AddTestWebhook adds a webhook by command, and gives its id and secret.
func AddTestWebhook(t *testing.T, data, config, project, url string, flags ...string) (id, secret string) {
	t.Helper()
	out := Docent(t, append([]string{"webhook", "add", url, "--data", data, "--config", config, "--project", project}, flags...)...)
	id, secret, ok := strings.Cut(strings.TrimSpace(out), "\n")
	if !ok || !strings.HasPrefix(id, api.WebhookPrefix) || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("a webhook was added: %q", out)
	}
	return id, secret
}

// A Delivered is an event as a receiver got it.
type Delivered struct {
	ID    string
	Key   string // the fact that it tells of, from its payload alone
	Taken bool   // the receiver said so, and the answer was on its way
}

// FactKey names a fact by what its payload says.
func FactKey(kind api.EventKind, subject, detail string, at time.Time) string {
	return fmt.Sprintf("%s %s %s %d", kind, subject, detail, at.UTC().UnixNano())
}

// A HookReceiver gets events, and has faults.
type HookReceiver struct {
	*httptest.Server
	t      *testing.T
	Secret string
	faulty *atomic.Bool // nil for one that has no faults
	mu     sync.Mutex
	random *rand.Rand
	got    []Delivered
	faults int
}

// NewHookReceiver starts one.
func NewHookReceiver(t *testing.T, faulty *atomic.Bool, seed uint64) *HookReceiver {
	r := &HookReceiver{t: t, faulty: faulty, random: rand.New(rand.NewPCG(seed, 9))}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *HookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	fault := 100
	if r.faulty != nil && r.faulty.Load() {
		fault = r.random.IntN(100)
	}
	secret := r.Secret
	r.mu.Unlock()
	if fault < 40 {
		r.mu.Lock()
		r.faults++
		r.mu.Unlock()
	}
	switch {
	case fault < 10:
		panic(http.ErrAbortHandler) // it breaks off, and has taken nothing
	case fault < 20:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case fault < 25:
		select { // it stalls
		case <-req.Context().Done():
		case <-time.After(2 * time.Second):
		}
		panic(http.ErrAbortHandler)
	}
	if wh, err := standardwebhooks.NewWebhook(secret); err != nil || wh.Verify(body, req.Header) != nil {
		r.t.Errorf("an event that does not verify: %v %s", req.Header, body)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var p webhooks.Payload
	if err := json.Unmarshal(body, &p); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	d := Delivered{ID: req.Header.Get("webhook-id"), Taken: fault >= 40}
	switch {
	case p.Data.PullRequest != nil && p.Type != api.EventJobEnded:
		d.Key = FactKey(p.Type, string(p.Data.Job.ID), p.Data.PullRequest.Link, p.Timestamp)
	case p.Data.Job != nil:
		d.Key = FactKey(p.Type, string(p.Data.Job.ID), p.Data.Job.Instruction+" "+p.Data.Job.Status, p.Timestamp)
	case p.Data.Question != nil:
		d.Key = FactKey(p.Type, string(p.Data.Question.ThreadID), string(p.Data.Question.ID), p.Timestamp)
	}
	r.mu.Lock()
	r.got = append(r.got, d)
	r.mu.Unlock()
	if !d.Taken {
		panic(http.ErrAbortHandler) // it has it, and the answer is lost
	}
	w.WriteHeader(http.StatusNoContent)
}

// All are the deliveries until now.
func (r *HookReceiver) All() []Delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Met is how many deliveries met a fault.
func (r *HookReceiver) Met() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults
}
