package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"docent/api"
)

// crashOnMark has the program crash where it reads a folder that holds markOfCrash, as hostile content would have it
// crash.
const (
	crashOnMark = "CRASH_OF_DOCENT_TEST"
	markOfCrash = "crash.txt"
)

func crashWhereMarked(p api.Project) {
	if _, err := os.Stat(filepath.Join(p.Source, markOfCrash)); err == nil {
		ended := make(chan struct{})
		go func() { defer close(ended); panic("hostile content") }() // where nobody recovers
		<-ended
		select {}
	}
}

// A project whose content crashes the server is left out after the second time; the others are served all the while,
// and it is read again once its source has changed.
func TestAProjectThatCrashesTheServerIsLeftOutUntilItsSourceChanges(t *testing.T) {
	t.Parallel()
	setenv(t, crashOnMark, "1")
	data := filepath.Join(t.TempDir(), "data")
	folder := writeFiles(t, map[string]string{"index.md": "# Tea\n\nGreen tea is brewed at eighty degrees.\n"})
	good := newTestProject(t, data, "harbour", writeFiles(t, harbour))
	newTestProject(t, data, "hostile", folder)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(markOfCrash, "x")
	write("index.md", "# Tea\n\nHostile.\n")

	address, err := ownAddress()
	if err != nil {
		t.Fatal(err)
	}
	server := &testServer{t: t, data: data, listen: address, url: "http://" + address, log: new(lockedBuffer)}
	t.Cleanup(func() { server.kill() })
	for range 2 {
		if err := server.launch(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-server.ended:
		case <-time.After(time.Minute):
			t.Fatalf("the server lives on:\n%s", server.log)
		}
	}
	server.start()
	until(t, "the project is left out", func() bool { return len(serverStatusOf(t, data).LeftOut) == 1 })
	if why := serverStatusOf(t, data).LeftOut[0]; !strings.Contains(why,
		"project hostile is left out: the server ended 2 times while it read commit") {
		t.Errorf("it says %q", why)
	}
	server.printed(regexp.MustCompile("the server before this one crashed"))
	server.printed(regexp.MustCompile("hostile content"))
	if q, err := ask(t.Context(), server.client(good.assistant), good, "", "What do tickets cost?"); err != nil ||
		!strings.Contains(q.answer, "four coins") {
		t.Errorf("%v: %q", err, q.answer)
	}
	if err := os.Remove(filepath.Join(folder, markOfCrash)); err != nil {
		t.Fatal(err)
	}
	write("index.md", "# Tea\n\nHarmless again.\n")
	docent(t, "index", "--data", data, "--project", "harbour") // the other project can be read while this one is left out
	until(t, "the changed project is read", func() bool { return len(serverStatusOf(t, data).LeftOut) == 0 })
}
