package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docent/api"
	"docent/api/client"
	"docent/docs"
	"docent/internal/testing/need"
)

const (
	domain  = "docs.example.com"
	project = "docs"
	config  = "/etc/docent/docent.toml"
)

// An operator installs the package on this machine, uses it, upgrades it while it is used, removes and purges it. dpkg
// runs the maintainer scripts; what they ask of systemd, the test's manager does, with the service under all the
// restrictions of its unit.
func TestThePackageIsInstalledUsedUpgradedAndRemoved(t *testing.T) {
	if os.Getenv("DOCENT_TEST_INSTALL") == "" {
		t.Skip("it installs a package on this machine: DOCENT_TEST_INSTALL=1 lets it, for root on Debian; CI does in a step of its own")
	}
	need.Peer(t, "the packages", nfpmNeeds, "dpkg", "bwrap", "setpriv", "unshare", "systemd-analyze")
	alone(t)
	first, second := buildPackage(t, "deb", "0.0.1"), buildPackage(t, "deb", "0.0.2")
	source := documentation(t)
	m := newManager(t, service, writeBack(t, source))
	t.Cleanup(func() { cleanUp(t, m) })

	m.dpkg("--install", first)
	if asked := m.orderedNow(); !slices.Contains(asked, "start docent.socket docent.service") {
		t.Fatalf("the installation asked systemd for %q", asked)
	}
	if m.running == nil {
		t.Fatal("the service does not run once it is installed")
	}
	t.Run("restrictions hold", func(t *testing.T) { restrictionsHold(t, m) })
	run(t, command(t, "chown", "-R", "docent:", source)) // as the documentation has it for folders that are written to
	keys := setUp(t, source)
	if !t.Run("the demo's steps", func(t *testing.T) { demo(t, m, keys, source) }) {
		return
	}
	if err := m.wait("WATCHDOG=1", 3, m.running); err != nil {
		t.Error(err)
	}
	if !t.Run("upgrade under load", func(t *testing.T) { upgrade(t, m, keys, second) }) {
		return
	}

	m.dpkg("--remove", "docent")
	if asked := m.orderedNow(); m.running != nil || !slices.Contains(asked, "stop docent.socket docent.service") {
		t.Errorf("the removal asked systemd for %q", asked)
	}
	for path, there := range map[string]bool{
		"/usr/bin/docent": false, "/usr/lib/systemd/system/docent.service": false, "/usr/lib/systemd/system/docent.socket": false,
		"/etc/systemd/system/multi-user.target.wants/docent.service": false,
		config: true, "/etc/docent/docent.env": true, "/var/lib/docent/journal.db": true, "/var/lib/docent-backups": true,
	} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("after the removal: %s is there: %v", path, err == nil)
		}
	}
	m.dpkg("--purge", "docent")
	for _, path := range []string{"/etc/docent", "/var/lib/docent", "/var/lib/docent-backups"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there after the purge", path)
		}
	}
}

// alone lets one such test at a time work on this machine, and none if Docent is installed for somebody.
func alone(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		leaveOut(t, "only root installs packages")
	}
	lock, err := os.Create(filepath.Join(os.TempDir(), "docent-install-test.lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/var/lib/dpkg/info/docent.list"); err == nil {
		t.Fatal("a package docent is on this machine: purge it first")
	}
}

func cleanUp(t *testing.T, m *manager) {
	m.kill()
	_ = exec.Command("dpkg", "--purge", "docent").Run()
	_ = exec.Command("userdel", "docent").Run()
	_ = exec.Command("groupdel", "docent").Run()
	for _, dir := range []string{"/var/lib/docent", "/var/lib/docent-backups", "/etc/docent"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
	_ = os.Remove("/run/lock/docent-test-launcher")
}

// documentation is a folder of pages as an operator has it, elsewhere than the service's data.
func documentation(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "docent-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source := filepath.Join(dir, "pages")
	if err := os.CopyFS(source, docs.Files); err != nil {
		t.Fatal(err)
	}
	pdf, err := os.ReadFile(filepath.Join(top, "search", "sources", "pdf", "testdata", "printed.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "printed.pdf"), pdf, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, command(t, "chmod", "-R", "a+rX", dir))
	return source
}

// writeBack is the drop-in of the documentation for a folder that merges are written back to.
func writeBack(t *testing.T, source string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(top, "docs", "deploy", "install.mdx"))
	if err != nil {
		t.Fatal(err)
	}
	const begins, folder = "```ini\n[Service]\nReadWritePaths=", "/srv/docs\n"
	if !strings.Contains(string(page), begins+folder) {
		t.Fatalf("docs/deploy/install.mdx has no drop-in with ReadWritePaths=%s", folder)
	}
	file := filepath.Join(t.TempDir(), "override.conf")
	if err := os.WriteFile(file, []byte(strings.TrimPrefix(begins, "```ini\n")+source+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// restrictionsHold tries, as the service, what the unit forbids and what it must not.
func restrictionsHold(t *testing.T, m *manager) {
	s := translate(t, readUnit(t, m.units...))
	s.launch.Probe = true
	var stdout, stderr bytes.Buffer
	cmd := s.command(t)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var said map[string]string
	if err := errors.Join(cmd.Run(), json.Unmarshal(stdout.Bytes(), &said)); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	if len(said) < 20 {
		t.Errorf("only %d things were tried", len(said))
	}
	for what, problem := range said {
		if what, may := strings.CutPrefix(what, "+"); may && problem != "" {
			t.Errorf("the service may not %s: %s", what, problem)
		} else if !may && problem == "" {
			t.Errorf("the service may %s", what)
		}
	}
}

// asUser runs a command of the operator's as the service's user.
func asUser(t *testing.T, args ...string) string {
	t.Helper()
	cmd := command(t, "setpriv", append([]string{"--reuid", "docent", "--regid", "docent", "--init-groups", "/usr/bin/docent"},
		args...)...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Dir = &stderr, "/"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docent %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

type keyring struct{ admin, readers string }

func setUp(t *testing.T, source string) keyring {
	t.Helper()
	const data = "/var/lib/docent"
	asUser(t, "project", "add", project, "--data", data, "--domain", domain, "--source", source)
	return keyring{
		admin:   asUser(t, "key", "create", "--data", data, "--project", project, "--kind", "admin"),
		readers: asUser(t, "key", "create", "--data", data, "--project", project, "--kind", "assistant"),
	}
}

// demo is what `docent demo` shows: questions with sources in a stream, a job with its pull request, a follow-up; then
// the merge is written back to the folder, and a PDF file is found, which a process of its own has read.
func demo(t *testing.T, m *manager, keys keyring, source string) {
	reader := client.Client{Base: m.url(), Key: keys.readers}
	a, err := reader.Ask(t.Context(), client.Question{Domain: domain, Text: "What happens to a job when the server is killed?"}, io.Discard)
	if err != nil || len(a.Sources) == 0 {
		t.Fatalf("the answer %q has %d sources: %v", a.Text, len(a.Sources), err)
	}
	if a, err = reader.Ask(t.Context(), client.Question{Domain: domain, Thread: a.ThreadID, Text: "How do I make a backup?"},
		io.Discard); err != nil || len(a.Sources) == 0 {
		t.Fatalf("the second answer %q has %d sources: %v", a.Text, len(a.Sources), err)
	}
	maintainer := client.Client{Base: m.url(), Key: keys.admin}
	prompt := func(ask func() (client.Job, error)) client.Job {
		t.Helper()
		j, err := ask()
		if err == nil {
			j, err = maintainer.WaitForJob(t.Context(), project, string(j.ID))
		}
		if err != nil || j.Status != api.JobCompleted || j.PRLink == nil {
			t.Fatalf("the job ended with %+v: %v\n%s", j, err, m.running.log.String())
		}
		return j
	}
	j := prompt(func() (client.Job, error) {
		return maintainer.CreateJob(t.Context(), project,
			client.CreateJob{Prompt: `rename "Docent" to "Docent Server" in quickstart.mdx`})
	})
	prompt(func() (client.Job, error) {
		return maintainer.FollowUp(t.Context(), project, string(j.ID), `set the description of quickstart.mdx to "Five minutes."`)
	})
	if diff := get(t, *j.PRLink+".diff"); !strings.Contains(diff, "+description: \"Five minutes.\"") ||
		!strings.Contains(diff, "Docent Server") {
		t.Errorf("the pull request shows\n%s", diff)
	}
	pull := (*j.PRLink)[strings.LastIndexByte(*j.PRLink, '/')+1:]
	asUser(t, "pull", "merge", pull, "--data", "/var/lib/docent")
	merged, err := os.ReadFile(filepath.Join(source, "quickstart.mdx"))
	if err != nil || !strings.Contains(string(merged), "Five minutes.") {
		t.Errorf("the merge is not in the folder: %v\n%s", err, m.running.log.String())
	}
	if checked := asUser(t, "project", "check", project, "--data", "/var/lib/docent"); !strings.Contains(checked, "printed.pdf") {
		t.Errorf("the PDF file is not among the pages:\n%s", checked)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
	return string(body)
}

// slow is a model whose answers take seconds, and limits that the load keeps below.
const slow = `
[models.slow]
provider = "scripted"
first_delay = "100ms"
rate = 20
parts = 60

[limits]
project_hour = -1
ip_day = -1
`

// upgrade installs the next version while readers and maintainers are at work. No connection is refused, no request is,
// no stream breaks, and every job that was accepted comes to its end.
func upgrade(t *testing.T, m *manager, keys keyring, deb string) {
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	mine := append(text, slow...) // the operator's own
	if err := os.WriteFile(config, mine, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.restart(); err != nil {
		t.Fatal(err)
	}
	asUser(t, "project", "set", project, "--data", "/var/lib/docent", "--model", "slow")
	l := newLoad(m.url(), keys)
	l.begin(t)
	l.until(t, "load before the upgrade", func() bool { return l.open.Load() >= 4 && l.streams.Load() >= 4 && l.jobs.Load() >= 4 })
	m.orderedNow()
	m.dpkg("--install", deb)
	if asked := m.orderedNow(); !slices.Contains(asked, "restart docent.service") {
		t.Errorf("the upgrade asked systemd for %q", asked)
	}
	streams, jobs := l.streams.Load(), l.jobs.Load()
	l.until(t, "load after the upgrade", func() bool { return l.streams.Load() >= streams+8 && l.jobs.Load() >= jobs+8 })
	l.end(t)
	t.Logf("%d short requests on connections of their own, %d on kept ones, %d streams, %d jobs; the longest request took %v",
		l.fresh.Load(), l.kept.Load(), l.streams.Load(), l.jobs.Load(), time.Duration(l.longest.Load()))
	if said := get(t, m.url()+"/healthz"); !strings.Contains(said, "0.0.2") {
		t.Errorf("after the upgrade the server is %s", said)
	}
	if kept, err := os.ReadFile(config); err != nil || !bytes.Equal(kept, mine) {
		t.Errorf("the operator's configuration was changed: %v", err)
	}
	if err := m.wait("WATCHDOG=1", 1, m.running); err != nil {
		t.Error(err)
	}
}

// A load is what readers and maintainers ask at the same time.
type load struct {
	url     string
	keys    keyring
	kind    http.Transport
	stop    context.CancelFunc
	working sync.WaitGroup

	open, fresh, kept, streams, jobs, longest atomic.Int64

	mu       sync.Mutex
	problems []string
	made     []string // ids of jobs that were accepted
	moved    chan struct{}
}

func newLoad(url string, keys keyring) *load {
	return &load{url: url, keys: keys, moved: make(chan struct{}, 1)}
}

func (l *load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *load) done(count *atomic.Int64) {
	count.Add(1)
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

// RoundTrip lets nothing through unseen: clients try again what failed.
func (l *load) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := l.kind.RoundTrip(req)
	if err != nil {
		if req.Context().Err() == nil {
			l.problem("%s %s: %v", req.Method, req.URL.Path, err)
		}
		return nil, err
	}
	if took := int64(time.Since(began)); took > l.longest.Load() {
		l.longest.Store(took)
	}
	if resp.StatusCode >= 300 {
		l.problem("%s %s: %s", req.Method, req.URL.Path, resp.Status)
	}
	resp.Body = &watchedBody{resp.Body, l, req}
	return resp, nil
}

type watchedBody struct {
	io.ReadCloser
	load *load
	req  *http.Request
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.req.Context().Err() == nil {
		b.load.problem("%s %s broke off: %v", b.req.Method, b.req.URL.Path, err)
	}
	return n, err
}

func (l *load) begin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	t.Cleanup(cancel)
	repeat := func(pause time.Duration, f func(n int)) {
		l.working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f(n)
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	l.kind.MaxIdleConnsPerHost = 20
	over := &http.Client{Transport: l}
	for range 4 {
		repeat(5*time.Millisecond, func(int) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+"/healthz", nil)
			if err != nil {
				l.problem("%v", err)
				return
			}
			req.Close = true
			if resp, err := over.Do(req); err == nil { // else it is noted
				if _, err := io.Copy(io.Discard, resp.Body); err == nil {
					l.done(&l.fresh)
				}
				resp.Body.Close()
			}
		})
		repeat(5*time.Millisecond, func(int) {
			c := client.Client{Base: l.url, Key: l.keys.admin, HTTP: over}
			if _, err := c.ListJobs(t.Context(), project, client.JobFilter{Limit: 3}); err == nil {
				l.done(&l.kept)
			}
		})
	}
	for range 6 {
		repeat(0, func(int) {
			l.open.Add(1)
			defer l.open.Add(-1)
			c := client.Client{Base: l.url, Key: l.keys.readers, HTTP: over}
			var text strings.Builder
			if _, err := c.Ask(t.Context(), client.Question{Domain: domain, Text: "How do I make a backup?"}, &text); err != nil {
				l.problem("an answer: %v", err)
				return
			}
			l.done(&l.streams)
		})
	}
	repeat(150*time.Millisecond, func(n int) {
		c := client.Client{Base: l.url, Key: l.keys.admin, HTTP: over}
		j, err := c.CreateJob(t.Context(), project, client.CreateJob{
			Prompt: fmt.Sprintf(`create page load-%d.md titled "Page %d" with content: It was made during an upgrade.`, n, n),
		})
		if err != nil {
			l.problem("a job: %v", err)
			return
		}
		l.mu.Lock()
		l.made = append(l.made, string(j.ID))
		l.mu.Unlock()
		l.done(&l.jobs)
	})
}

func (l *load) until(t *testing.T, what string, enough func() bool) {
	t.Helper()
	for deadline := time.After(2 * time.Minute); !enough(); {
		select {
		case <-l.moved:
		case <-deadline:
			t.Fatalf("there is no %s: %d answers, %d jobs; %q", what, l.streams.Load(), l.jobs.Load(), l.problems)
		}
	}
}

// end stops the load and says what went wrong; every job that was accepted has to have its pull request.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.working.Wait()
	c := client.Client{Base: l.url, Key: l.keys.admin}
	for _, id := range l.made {
		j, err := c.WaitForJob(t.Context(), project, id)
		if err != nil || j.Status != api.JobCompleted || j.PRLink == nil {
			l.problem("the job %s ended with %+v: %v", id, j, err)
		}
	}
	if len(l.problems) > 0 {
		t.Errorf("%d things went wrong, first:\n%s", len(l.problems), strings.Join(l.problems[:min(10, len(l.problems))], "\n"))
	}
}
