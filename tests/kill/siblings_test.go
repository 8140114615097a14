package kill

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
	"docent/api/client"
	"docent/tests/harness"
)

// startUpdate asks for an update and gives its id.
func startUpdate(t testing.TB, s *harness.Server, p harness.Project) string {
	t.Helper()
	id, err := s.Client(p.Admin).StartUpdate(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// awaitUpdate waits until an update has ended.
func awaitUpdate(t testing.TB, s *harness.Server, p harness.Project, id string) client.Update {
	t.Helper()
	u, err := s.Client(p.Admin).WaitForUpdate(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func askAs(t testing.TB, s *harness.Server, p harness.Project, fp, question string) client.Answer {
	t.Helper()
	return harness.DecodeOutput[client.Answer](t,
		harness.Docent(t, "ask", "--url", s.URL, "--domain", p.Domain, "--key", p.Assistant, "--fp", fp, "--json", question))
}

// TestAcceptedUpdateEndsWhateverHappens kills the server at random moments after it has accepted an update.
func TestAcceptedUpdateEndsWhateverHappens(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	source := harness.WriteFiles(t, harness.Harbour)
	p := harness.NewProject(t, data, "harbour", source)
	server := harness.NewServer(t, data)
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
		server.Kill()
		server.Start()
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
