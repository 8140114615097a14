package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/client"
)

// What a client reads of the operations beside jobs and messages: no more of each answer than a test needs.
type (
	updateStatus struct {
		Status  api.UpdateStatus `json:"status"`
		Summary string           `json:"summary"`
		Logs    []string         `json:"logs"`
		Commit  *struct {
			SHA     string `json:"sha"`
			Ref     string `json:"ref"`
			Message string `json:"message"`
			Files   struct {
				Added    []string `json:"added"`
				Modified []string `json:"modified"`
				Removed  []string `json:"removed"`
			} `json:"filesChanged"`
		} `json:"commit"`
	}
)

// startUpdate asks for an update and gives its id.
func startUpdate(t testing.TB, s *testServer, p testProject) string {
	t.Helper()
	var made struct {
		StatusID string `json:"statusId"`
	}
	if err := s.client(p.admin).Post(t.Context(), "/v1/project/update/"+p.id, nil, &made); err != nil {
		t.Fatal(err)
	}
	return made.StatusID
}

// awaitUpdate polls an update until it has ended.
func awaitUpdate(t testing.TB, s *testServer, p testProject, id string) (u updateStatus) {
	t.Helper()
	until(t, "the update ends", func() bool {
		u = updateStatus{}
		if err := s.client(p.admin).Get(t.Context(), "/v1/project/update-status/"+id, &u); err != nil {
			t.Fatal(err)
		}
		return u.Status == api.UpdateSuccess || u.Status == api.UpdateFailure
	})
	return u
}

func askAs(t testing.TB, s *testServer, p testProject, fp, question string) client.Answer {
	t.Helper()
	return decodeOutput[client.Answer](t,
		docent(t, "ask", "--url", s.url, "--domain", p.domain, "--key", p.assistant, "--fp", fp, "--json", question))
}

// TestAcceptedUpdateEndsWhateverHappens kills the server at random moments after it has accepted an update.
func TestAcceptedUpdateEndsWhateverHappens(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := writeFiles(t, harbour)
	p := newTestProject(t, data, "harbour", source)
	server := newTestServer(t, data)
	var accepted []string
	const kills = 3
	for n := range kills {
		for i := range 300 {
			text := fmt.Sprintf("# Berth %d\n\nShip %d lies at berth %d.\n", i, n, i)
			if err := os.WriteFile(filepath.Join(source, fmt.Sprintf("berth%d.md", i)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		id := startUpdate(t, server, p)
		accepted = append(accepted, id)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // the moment is what is random here
		server.kill()
		server.start()
	}
	for _, id := range slices.Compact(accepted) {
		if u := awaitUpdate(t, server, p, id); u.Status != api.UpdateSuccess {
			t.Errorf("update %s ended as %+v", id, u)
		}
	}
	if a := askAs(t, server, p, "ann", "Which ship lies at berth 17?"); !strings.Contains(a.Text,
		fmt.Sprintf("Ship %d", kills-1)) {
		t.Errorf("after the updates the answer is %q", a.Text)
	}
}
