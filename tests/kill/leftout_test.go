package kill

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/tests/harness"
)

// A project whose content crashes the server is left out after the second time; the others are served all the while,
// and it is read again once its source has changed.
func TestAProjectThatCrashesTheServerIsLeftOutUntilItsSourceChanges(t *testing.T) {
	t.Parallel()
	harness.Setenv(t, harness.CrashOnMark, "1")
	data := filepath.Join(t.TempDir(), "data")
	folder := harness.WriteFiles(t, map[string]string{"index.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"})
	good := harness.NewProject(t, data, "harbour", harness.WriteFiles(t, harness.Harbour))
	harness.NewProject(t, data, "hostile", folder)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(harness.MarkOfCrash, "x")
	write("index.md", "# Tea\n\nHostile.\n")

	address := harness.OwnAddress(t)
	server := &harness.Server{T: t, Data: data, Listen: address, URL: "http://" + address, Log: new(harness.LockedBuffer)}
	t.Cleanup(func() { server.Kill() })
	for range 2 {
		if err := server.Launch(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-server.Ended:
		case <-time.After(time.Minute):
			t.Fatalf("the server lives on:\n%s", server.Log)
		}
	}
	server.Start()
	harness.Until(t, "the project is left out", func() bool { return len(harness.ServerStatusOf(t, data).LeftOut) == 1 })
	if why := harness.ServerStatusOf(t, data).LeftOut[0]; !strings.Contains(why,
		"project hostile is left out: the server ended 2 times while it read commit") {
		t.Errorf("it says %q", why)
	}
	server.Printed(regexp.MustCompile("the previous server crashed"))
	server.Printed(regexp.MustCompile("hostile content"))
	if q, err := harness.Ask(t.Context(), server.Client(good.Assistant), good, "", "What do tickets cost?"); err != nil ||
		!strings.Contains(q.Answer, "four coins") {
		t.Errorf("%v: %q", err, q.Answer)
	}
	if err := os.Remove(filepath.Join(folder, harness.MarkOfCrash)); err != nil {
		t.Fatal(err)
	}
	write("index.md", "# Tea\n\nHarmless again.\n")
	harness.Docent(t, "index", "--data", data, "--project",
		"harbour") // the other project can be read while this one is left out
	harness.Until(t, "the changed project is read", func() bool {
		return len(harness.ServerStatusOf(t,
			data).LeftOut) == 0
	})
}
