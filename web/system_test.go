package web_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"docent/api"
	"docent/internal/health"
)

// system stands in for the running server.
type system struct {
	health.Tail
	mu      sync.Mutex
	asked   int // how often the figures were
	status  health.Status
	retried []string
	again   error // of a retry
	backups int
	full    error // of a backup
}

func (s *system) Status() (health.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.status, nil
}

func (s *system) Log(n int, level slog.Level) []health.Record { return s.Newest(n, level) }
func (s *system) FollowLog() (<-chan struct{}, func())        { return s.Follow() }

func (s *system) Retry(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retried = append(s.retried, id)
	return s.again
}

func (s *system) BackUp() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backups++
	return "/backups/one", s.full
}

func (s *system) set(change func(*health.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

func (s *system) log() *slog.Logger { return slog.New(s.Handler(slog.LevelInfo)) }

func TestTheSystemPageShowsWhatNeedsAttentionAndTheFigures(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	h.system.set(func(st *health.Status) {
		st.Backup.Made = &health.Copy{Dir: "/b", Began: h.clock.Now().Add(-time.Hour)}
	})
	page, _ := b.text(200, "/console/system")
	if !strings.Contains(page, "Nothing needs attention") || strings.Contains(page, "In quarantine") {
		t.Errorf("a server that is well: %s", page)
	}
	h.system.set(func(st *health.Status) {
		*st = health.Status{Version: "v9.9", Data: "/data/docent", Uptime: 93784, Disk: health.Disk{Total: 100 << 30, Free: 512 << 20},
			Journal: health.Journal{ID: "jrn_1", Bytes: 5 << 20, FreeBytes: 1 << 20, Unavailable: true, Position: 20_001},
			Edge:    health.Edge{Queue: 1.5, Waiting: 7, Refused: map[string]int{"queue": 3}},
			LeftOut: []string{"project bad is left out"},
			Actors: health.Actors{Quarantined: []health.Quarantined{{Kind: "job", ID: "job_1", Reason: `<b>"unreadable"`,
				At: h.clock.Now()}}},
			Models: []health.Model{{Name: "large", State: "open", Again: 2, CostCents: 123}},
			Backup: health.Backup{Folder: "/data/docent-backups", Failed: &health.Copy{Error: "no space"}}}
	})
	page, _ = b.text(200, "/console/system")
	for _, want := range []string{
		"The journal can&#39;t be written", "1 job or thread in quarantine", "The model large is failing", "512.0 MiB free of 100.0 GiB",
		"project bad is left out", "Requests wait for 1.5s", "20001 events behind", "The last backup failed: no space",
		"26h3m", "7 waiting", "queue 3", "$1.23", "/data/docent-backups", "v9.9", "&lt;b&gt;&#34;unreadable&#34;",
		`form="retry" name="id" value="job_1"`, "docent status",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Index(page, "can&#39;t be written") > strings.Index(page, "events behind") {
		t.Error("a note stands before a problem")
	}
}

func TestTheSystemPageShowsTheNodes(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	well := health.Cluster{Acts: true, Nodes: []health.Node{{Name: "docent-1", State: "ready", Shards: 128, Self: true, Version: "v9",
		Address: "10.0.0.11:8093"}, {Name: "docent-2", State: "ready", Shards: 128, Version: "v9"}}}
	h.system.set(func(st *health.Status) { *st = health.Status{Cluster: &well} })
	page, _ := b.text(200, "/console/system")
	for _, want := range []string{"Nothing needs attention", "docent-1", "docent-2", "this one", "10.0.0.11:8093",
		"the database's own backups"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of several nodes lacks %q", want)
		}
	}
	if strings.Contains(page, "Back up now") || strings.Contains(page, "No backups yet") {
		t.Error("the page offers a backup that is refused")
	}
	h.system.set(func(st *health.Status) {
		ill := well
		ill.Acts, ill.LastBeat, ill.Without = false, 4, 3
		ill.Nodes = []health.Node{well.Nodes[0], {Name: "docent-2", State: "silent"},
			{Name: "docent-3", State: "isolated", Reason: "docent-1 does not reach it: refused"}}
		st.Cluster = &ill
	})
	page, _ = b.text(200, "/console/system")
	for _, want := range []string{"The node docent-2 shows no life", "3 shards",
		"The node docent-3 and the others do not reach each other: it runs nothing. docent-1 does not reach it: refused", "has not reached the database for 4s"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of nodes that are ill lacks %q", want)
		}
	}
}

func TestAnOperatorRetriesAndBacksUp(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	token := url.Values{"token": {b.token(b.open("/console/system"))}}
	with := func(pairs ...string) url.Values {
		v := url.Values{"token": token["token"]}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	res := b.send("/console/system/retry", with("id", "job_7"))
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/console/system" ||
		len(h.system.retried) != 1 || h.system.retried[0] != "job_7" {
		t.Errorf("%d, retried %v", res.StatusCode, h.system.retried)
	}
	if page, _ := b.text(200, "/console/system"); !strings.Contains(page, "job_7 is recovered") {
		t.Error("the page does not say what was done")
	}
	h.system.again = errors.New("sequence 3 is damaged")
	if res := b.send("/console/system/retry", with("id", "job_7")); res.StatusCode != http.StatusConflict ||
		!strings.Contains(bodyOf(t, res), "it failed again: sequence 3 is damaged") {
		t.Errorf("a retry that fails: %d", res.StatusCode)
	}
	h.system.again = api.ErrNotFound
	if res := b.send("/console/system/retry", with("id", "job_7")); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a retry of what another has retried: %d", res.StatusCode)
	}
	if res := b.send("/console/system/backup", with()); res.StatusCode != http.StatusSeeOther || h.system.backups != 1 {
		t.Errorf("a backup: %d", res.StatusCode)
	}
	h.system.full = errors.New("the disk has no room")
	if res := b.send("/console/system/backup", with()); res.StatusCode != http.StatusConflict ||
		!strings.Contains(bodyOf(t, res), "no backup is begun: the disk has no room") {
		t.Errorf("a backup without room: %d", res.StatusCode)
	}
}

func TestTheLogIsShownFromALevelOn(t *testing.T) {
	t.Parallel()
	h := build(t)
	b := h.visitor("operator")
	log := h.system.log()
	log.Info("a request", "status", 200)
	log.Warn("the disk is slow", "took", "2s")
	all, _ := b.text(200, "/console/system")
	some, _ := b.text(200, "/console/system?level=warn")
	if !strings.Contains(all, "a request") || !strings.Contains(all, "status=200") || strings.Contains(some, "a request") ||
		!strings.Contains(some, "the disk is slow") {
		t.Error("the levels are mixed up")
	}
	if strings.Index(all, "the disk is slow") > strings.Index(all, "a request") {
		t.Error("the newest is not first")
	}
	b.text(400, "/console/system?level=loud")
}
