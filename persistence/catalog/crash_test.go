package catalog_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
	"docent/persistence/catalog/people"
)

const crashDSN = "DOCENT_TEST_CATALOG_WRITER"

// TestCatalogWriter is no test of its own: it is the process that TestAcknowledgedWritesSurviveAKill kills.
func TestCatalogWriter(t *testing.T) {
	dsn := os.Getenv(crashDSN)
	if dsn == "" {
		t.Skip("it only runs as the process that another test kills")
	}
	c, err := catalog.Open(t.Context(), dsn, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("p%d-%d", os.Getpid(), i)
		project, err := c.AddProject(t.Context(), catalogtest.Project(id))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked project %s\n", project.ID)
		key, err := c.AddKey(t.Context(), api.Key{Kind: api.AssistantKey, Project: project.ID}, api.HashSecret(id))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked key %s\n", key.ID)
		pull, err := c.AddPull(t.Context(), catalogtest.Pull("docs", id))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked pull %s\n", pull.ID)
	}
}

func TestAcknowledgedWritesSurviveAKill(t *testing.T) {
	catalogtest.EachPlace(t, func(t *testing.T, p catalogtest.Place) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		acked := map[string][]string{}
		const kills = 8
		for range kills {
			cmd := exec.Command(self, "-test.run=^TestCatalogWriter$")
			cmd.Env = append(os.Environ(), crashDSN+"="+p.DSN)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for left := 1 + rand.IntN(40); left > 0 && lines.Scan(); left-- {
				if what, ok := strings.CutPrefix(lines.Text(), "acked "); ok {
					kind, id, _ := strings.Cut(what, " ")
					acked[kind] = append(acked[kind], id)
				} else {
					t.Fatalf("the writer says %q", lines.Text())
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, out)
			cmd.Wait() // killed
		}
		c := p.Open(catalog.Options{})
		stored := map[string]bool{}
		for _, project := range catalogtest.Must(c.Projects(t.Context()))(t) {
			stored["project "+string(project.ID)] = true
		}
		for _, key := range catalogtest.Must(c.Keys(t.Context(), people.KeyQuery{}))(t) {
			stored["key "+string(key.ID)] = true
		}
		pulls := catalogtest.Must(c.Pulls(t.Context(), "docs", ""))(t)
		for i, pull := range pulls {
			stored["pull "+pull.ID] = true
			if want := len(pulls) - i; pull.Number != want {
				t.Errorf("pull request %d has the number %d: there is a gap", want, pull.Number)
			}
		}
		if len(acked["project"]) < kills {
			t.Errorf("only %d projects were acknowledged in %d runs", len(acked["project"]), kills)
		}
		for kind, ids := range acked {
			for _, id := range ids {
				if !stored[kind+" "+id] {
					t.Errorf("%s %s was acknowledged and is gone", kind, id)
				}
			}
		}
	})
}
