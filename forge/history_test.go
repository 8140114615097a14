package forge_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
)

// longHistory is a bare repository of 7,000 commits and about 100 MB that hardly shrink, 3,000 files of them at the
// end.
func longHistory(tb testing.TB) string {
	tb.Helper()
	gitPath := forgetest.GitPath(tb)
	bare := filepath.Join(tb.TempDir(), "docs.git")
	if out, err := exec.Command(gitPath, "init", "-q", "--bare", "-b", "main", bare).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(gitPath, "-C", bare, "fast-import", "--quiet", "--depth=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(in, 1<<20)
	words := rand.NewChaCha8([32]byte{1})
	raw := make([]byte, 14_000)
	for i := range 7000 {
		words.Read(raw)
		page := fmt.Sprintf("# Page %d\n\n%s\n", i, base64.StdEncoding.EncodeToString(raw))
		fmt.Fprintf(w, "commit refs/heads/main\ncommitter A Person <person@example.org> %d +0000\ndata 8\nCommit.\n",
			1_700_000_000+i)
		fmt.Fprintf(w, "M 100644 inline docs/part%d/page%d.md\ndata %d\n%s\n", i%3000/100, i%3000, len(page), page)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		tb.Fatal(err)
	}
	return bare
}

// resident is what the process takes of memory now, and took at most, in bytes; it is Linux that tells.
func resident(tb testing.TB) (now, most int64) {
	tb.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("this system does not tell how much memory a process takes")
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			most = n << 10
		}
	}
	return now, most
}

// A measure is what one process found out about a repository with a long history.
type measure struct {
	Idle, Cloned, Most        int64 // bytes of memory: before, at most while cloning, at most overall
	Clone, Publish, Following time.Duration
}

const measureSource = "DOCENT_TEST_MEASURE"

// TestMeasureLongHistory runs in a process of its own, which the benchmark starts: its memory is then that of the work.
func TestMeasureLongHistory(t *testing.T) {
	source := os.Getenv(measureSource)
	if source == "" {
		t.Skip("the benchmark of long histories runs this")
	}
	p := project(source)
	p.Host, p.TokenEnv = api.HostGit, "DOCENT_TEST_TOKEN"
	r := open(t, t.TempDir(), p, &forgetest.Pulls{}, forge.Options{})
	var m measure
	m.Idle, _ = resident(t)
	begin := time.Now()
	r.tip(t, "docent/job_1")
	m.Clone = time.Since(begin)
	_, m.Cloned = resident(t)
	publish := func(branch string) time.Duration {
		tip := r.tip(t, branch)
		pub := forgetest.Publication(p, tip, "")
		pub.Changes = nil
		for i := range 5 {
			pub.Changes = append(pub.Changes, put(fmt.Sprintf("docs/part%d/page%d.md", i, i*100), "# "+branch+"\n"))
		}
		begin := time.Now()
		if _, err := r.Publish(t.Context(), pub); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	m.Publish, m.Following = publish("docent/job_1"), publish("docent/job_1-2")
	_, m.Most = resident(t)
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nmeasured %s\n", out)
}

// What a repository with 7,000 commits and 100 MB costs over git's own server and http: the first clone, five edits to
// a pushed commit, and the memory that a process takes for it beyond being idle.
func BenchmarkLongHistory(b *testing.B) {
	bare := longHistory(b)
	server := serveGit(b, filepath.Dir(bare), nil)
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var last measure
	for b.Loop() {
		for _, branch := range []string{"docent/job_1", "docent/job_1-2"} {
			if out, err := exec.Command(forgetest.GitPath(b), "-C", bare, "update-ref", "-d",
				"refs/heads/"+branch).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
		cmd := exec.Command(exe, "-test.run=^TestMeasureLongHistory$", "-test.v")
		cmd.Env = append(os.Environ(), measureSource+"="+server.URL+"/docs.git", "DOCENT_TEST_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		_, rest, ok := strings.Cut(string(out), "\nmeasured ")
		if err != nil || !ok {
			b.Fatalf("%v: %s", err, out)
		}
		line, _, _ := strings.Cut(rest, "\n")
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			b.Fatal(err)
		}
	}
	const mb = 1e6
	b.ReportMetric(last.Clone.Seconds()*1000, "ms/clone")
	b.ReportMetric(last.Publish.Seconds()*1000, "ms/publish")
	b.ReportMetric(float64(last.Cloned-last.Idle)/mb, "MB/clone")
	b.ReportMetric(float64(last.Most-last.Idle)/mb, "MB/all")
}
