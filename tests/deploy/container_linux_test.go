package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"docent/api/client"
	"docent/bench/corpora"
	"docent/internal/testing/need"
	"docent/tests/harness"
)

// A containerImage is the image as an engine keeps it: its layers, one over the other, and its configuration.
type containerImage struct {
	dir    string // of the archives
	root   string
	config struct {
		User        string
		Entrypoint  []string
		Cmd         []string
		Env         []string
		Volumes     map[string]struct{}
		Labels      map[string]string
		StopSignal  string
		Healthcheck struct{ Test []string }
	}
}

// imageUser is whom the image's program runs as.
const imageUser = 65532

// openFolder is a folder that other users may reach, unlike t.TempDir's.
func openFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "docent-image-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// builtImage builds the image and unpacks it with the owners that its files have.
func builtImage(t *testing.T) *containerImage {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the image is not unpacked and run: that needs root, for the owners of its files")
	}
	need.Peer(t, "the container image", "scripts/install-test-needs", "bwrap", "git")
	deployTool(t, "image")
	i := &containerImage{dir: openFolder(t)}
	i.root = filepath.Join(i.dir, "root")
	build := exec.CommandContext(t.Context(), "../../scripts/build-image", i.dir)
	build.Env = append(os.Environ(), "PLATFORMS=linux/"+runtime.GOARCH, "VERSION=9.8.7",
		"SOURCE_URL=https://git.example.com/docent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(i.dir, "docent_9.8.7_image_linux_*.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v: %v", archives, err)
	}
	files := readArchive(t, archives[0])
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if tags := manifest[0].RepoTags; !slices.Equal(tags, []string{"docent:9.8.7"}) {
		t.Errorf("the image is called %v", tags)
	}
	if err := json.Unmarshal(files[manifest[0].Config], &struct{ Config any }{&i.config}); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest[0].Layers {
		unpackLayer(t, i.root, files[layer])
	}
	for _, dir := range []string{"proc", "dev", "sys"} { // an engine makes what it mounts on
		if err := os.MkdirAll(filepath.Join(i.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func readArchive(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(file); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err == nil {
			files[head.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackLayer(t *testing.T, root string, packed []byte) {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unpacked); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, content, 0o644)
			}
		}
		if err := errors.Join(err, os.Lchown(to, head.Uid, head.Gid), os.Chmod(to, head.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}

// A container runs the image as an engine does that is told to be strict: as the image's user, without capabilities, with
// a root that nobody can write to, in namespaces of its own but for the network.
type container struct {
	t      *testing.T
	image  *containerImage
	mounts []string // of bubblewrap
	env    map[string]string
	group  string // of control, where there is a limit
	listen string
	under  []string // what starts bubblewrap; as the image's user if empty

	cmd   *exec.Cmd
	pid   int // of the program, as it is outside
	log   *harness.LockedBuffer
	ended chan struct{}
}

func (i *containerImage) container(t *testing.T) *container {
	t.Helper()
	address := harness.OwnAddress(t)
	c := &container{t: t, image: i, listen: address, log: new(harness.LockedBuffer), env: map[string]string{"DOCENT_LISTEN": address}}
	c.mount("--bind", c.volume(), "/data")
	return c
}

// volume is a folder that the image's user can write to.
func (c *container) volume() string {
	c.t.Helper()
	dir := filepath.Join(openFolder(c.t), "volume")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, imageUser, imageUser)); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

// mount shows a folder or a file in the container. What it is mounted on is made in the image's root, as engines do.
func (c *container) mount(how, from, at string) {
	c.t.Helper()
	on := filepath.Join(c.image.root, at)
	info, err := os.Stat(from)
	switch {
	case err != nil:
	case info.IsDir():
		err = os.MkdirAll(on, 0o755)
	default:
		var made *os.File
		if err = os.MkdirAll(filepath.Dir(on), 0o755); err == nil {
			if made, err = os.OpenFile(on, os.O_CREATE, 0o644); err == nil {
				err = made.Close()
			}
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.mounts = append(c.mounts, how, from, at)
}

// command is the image's program with arguments, and the pipes by which bubblewrap tells its process's id and waits to
// be let go on.
func (c *container) command(ctx context.Context, args ...string) (cmd *exec.Cmd, told, goOn *os.File) {
	c.t.Helper()
	told, tell, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	wait, goOn, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	line := []string{"--unshare-all", "--share-net", "--as-pid-1", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--json-status-fd", "3", "--block-fd", "4", "--ro-bind", c.image.root, "/", "--proc", "/proc", "--dev", "/dev"}
	line = append(line, c.mounts...)
	if c.group != "" {
		line = append(line, "--tmpfs", "/sys", "--dir", "/sys/fs/cgroup/memory", "--ro-bind", c.group, "/sys/fs/cgroup/memory")
	}
	env := map[string]string{}
	for _, pair := range c.image.config.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	maps.Copy(env, c.env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		line = append(line, "--setenv", name, env[name])
	}
	line = append(append(append(line, "--chdir", "/", "--"), c.image.config.Entrypoint...), args...)
	line = append(append(slices.Clone(c.under), "bwrap"), line...)
	cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.ExtraFiles = []*os.File{tell, wait}
	if len(c.under) == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	}
	c.t.Cleanup(func() { told.Close(); goOn.Close() })
	return cmd, told, goOn
}

// begin starts a command in the container's control group and returns the id that its process has outside.
func (c *container) begin(cmd *exec.Cmd, told, goOn *os.File) (pid int, err error) {
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return 0, err
	}
	var status struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(told).Decode(&status); err != nil {
		return 0, fmt.Errorf("bubblewrap does not start: %w", err)
	}
	if c.group != "" {
		if err := os.WriteFile(filepath.Join(c.group, "cgroup.procs"), []byte(strconv.Itoa(status.PID)), 0o644); err != nil {
			return 0, err
		}
	}
	_, err = goOn.Write([]byte{0})
	return status.PID, errors.Join(err, goOn.Close())
}

// run has a command of docent's end in the container: what `docker exec` and `docker run` do.
func (c *container) run(args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Minute)
	defer cancel()
	cmd, told, goOn := c.command(ctx, args...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	_, err := c.begin(cmd, told, goOn)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return out.String(), fmt.Errorf("docent %s: %w: %s%s", strings.Join(args, " "), err, out.String(), problem.String())
	}
	return out.String(), nil
}

func (c *container) docent(args ...string) string {
	c.t.Helper()
	out, err := c.run(args...)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.log)
	}
	return out
}

// start runs the image's own command, and waits until its own health check says that it is well.
func (c *container) start() {
	c.t.Helper()
	cmd, told, goOn := c.command(context.WithoutCancel(c.t.Context()), c.image.config.Cmd...)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	pid, err := c.begin(cmd, told, goOn)
	if err != nil {
		c.t.Fatalf("%v: %s", err, c.log)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	c.cmd, c.pid, c.ended = cmd, pid, ended
	c.t.Cleanup(c.kill)
	harness.Until(c.t, "the container is healthy", func() bool {
		select {
		case <-ended:
			c.t.Fatalf("the container has ended (%v):\n%s", cmd.ProcessState, c.log)
		default:
		}
		return c.health() == nil
	})
}

// health runs the image's own health check.
func (c *container) health() error {
	check := c.image.config.Healthcheck.Test
	if len(check) < 2 || check[0] != "CMD" || !slices.Equal(check[1:2], c.image.config.Entrypoint) {
		c.t.Fatalf("the health check is %v", check)
	}
	_, err := c.run(check[2:]...)
	return err
}

func (c *container) kill() {
	select {
	case <-c.ended:
	default:
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
		<-c.ended
	}
}

// stop ends the container as an engine does.
func (c *container) stop() {
	c.t.Helper()
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		c.t.Fatalf("the container does not stop:\n%s", c.log)
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		c.t.Errorf("the container ended with status %d:\n%s", code, c.log)
	}
}

// project adds the documentation at /docs, makes its keys, and returns a client for each.
func (c *container) project(flags ...string) (p harness.Project, assistant, admin *client.Client) {
	c.t.Helper()
	p = harness.Project{ID: "docs", Domain: "docs.example.com"}
	c.docent(append([]string{"project", "add", p.ID, "--domain", p.Domain, "--source", "/docs"}, flags...)...)
	p.Assistant = strings.TrimSpace(c.docent("key", "create", "--project", p.ID, "--kind", "assistant"))
	p.Admin = strings.TrimSpace(c.docent("key", "create", "--project", p.ID, "--kind", "admin"))
	server := &harness.Server{URL: "http://" + c.listen}
	return p, server.Client(p.Assistant), server.Client(p.Admin)
}

// works asks a question, which begins a conversation or goes on with one, and has a page made.
func (c *container) works(p harness.Project, assistant, admin *client.Client, thread, question, want,
	page string) string {
	c.t.Helper()
	q, err := harness.Ask(c.t.Context(), assistant, p, thread, question)
	if err != nil || !strings.Contains(q.Answer, want) {
		c.t.Fatalf("%q is answered %q: %v\n%s", question, q.Answer, err, c.log)
	}
	job, err := admin.CreateJob(c.t.Context(), p.ID, client.CreateJob{
		Prompt: fmt.Sprintf("create page %s.md titled %q with content: The agent made this page.", page, page)})
	if err == nil {
		job, err = admin.WaitForJob(c.t.Context(), p.ID, string(job.ID))
	}
	if err != nil || job.PRLink == nil || !strings.Contains(*job.PRLink, "/pulls/pr_") {
		c.t.Fatalf("%v: %+v\n%s", err, job, c.log)
	}
	return string(q.Thread)
}

// The image is built without an engine, says what it is, and its program works as a user without any rights, with
// nothing writable but its volume, as the first process of its container.
func TestTheContainerImage(t *testing.T) {
	t.Parallel()
	harness.SkipShort(t)
	image := builtImage(t)
	t.Run("what it says", func(t *testing.T) { checkImage(t, image) })
	t.Run("a life in it", func(t *testing.T) {
		c := image.container(t)
		docs := openFolder(t)
		pdf, err := os.ReadFile("../../search/sources/pdf/testdata/printed.pdf")
		if err := errors.Join(err, os.CopyFS(filepath.Join(docs, "docs"), os.DirFS("../testdata/tidepool/docs")),
			os.WriteFile(filepath.Join(docs, "docs", "printed.pdf"), pdf, 0o644)); err != nil {
			t.Fatal(err)
		}
		c.mount("--ro-bind", filepath.Join(docs, "docs"), "/docs")
		c.mount("--bind", c.volume(), "/backup")
		if err := c.health(); err == nil || !strings.Contains(err.Error(), "no server has the data directory /data") {
			t.Errorf("of a container that was not started, its check says %v", err)
		}
		c.start()
		p, assistant, admin := c.project()
		thread := c.works(p, assistant, admin, "", "How do I restore a backup?", "tidepool restore", "first")
		c.docent("backup", "/backup/one") // which SQLite copies: it wants no folder for temporary files either
		c.confined()
		c.kill()
		if c.health() == nil {
			t.Error("a container that was killed is healthy")
		}
		c.start()
		// from the PDF file, which a process of its own has read
		c.works(p, assistant, admin, thread, "On which port does the widget server accept connections?", "7443", "second")
		c.stop()
		for line := range strings.Lines(c.log.String()) {
			if strings.Contains(line, "read-only file system") || strings.Contains(line, "level=ERROR") ||
				strings.Contains(line, "permission denied") {
				t.Errorf("the log has %q", line)
			}
		}
	})
	t.Run("compose.yaml", func(t *testing.T) { checkComposed(t, image) })
	t.Run("256 MB", func(t *testing.T) { checkSmallMemory(t, image) })
}

// checkImage looks at what engines and registries read of an image.
func checkImage(t *testing.T, i *containerImage) {
	head, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	labels := i.config.Labels
	if labels["org.opencontainers.image.version"] != "9.8.7" ||
		labels["org.opencontainers.image.revision"] != strings.TrimSpace(string(head)) ||
		labels["org.opencontainers.image.source"] != "https://git.example.com/docent" ||
		labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
		t.Errorf("its labels are %v", labels)
	}
	if _, volume := i.config.Volumes["/data"]; !volume || i.config.User != "65532:65532" || i.config.StopSignal != "SIGTERM" {
		t.Errorf("it is %+v", i.config)
	}
	roots, err := os.ReadFile(filepath.Join(i.root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(roots, []byte("BEGIN CERTIFICATE")); n < 50 || !x509.NewCertPool().AppendCertsFromPEM(roots) {
		t.Errorf("%d certificates of authorities", n)
	}
	var programs []string
	err = filepath.WalkDir(i.root, func(path string, d fs.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			programs = append(programs, strings.TrimPrefix(path, i.root))
		}
		return err
	})
	if err != nil || !slices.Equal(programs, []string{"/usr/bin/docent"}) {
		t.Errorf("its programs are %v: %v", programs, err)
	}
	// The same binary makes the same bits, and what is no program for an empty image is refused.
	again, created := openFolder(t), labels["org.opencontainers.image.created"]
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		t.Fatal(err)
	}
	build := func(into, binary string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "../../bin/docent-image", "--version", "9.8.7", "--revision",
			strings.TrimSpace(string(head)), "--source", "https://git.example.com/docent", "--created",
			strconv.FormatInt(at.Unix(), 10), "--out", into, binary).CombinedOutput()
		return string(out), err
	}
	if out, err := build(again, filepath.Join(i.root, "usr/bin/docent")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"docent_9.8.7_image.oci.tar", "docent_9.8.7_image.oci.tar.digest"} {
		one, err := os.ReadFile(filepath.Join(i.dir, name))
		two, errTwo := os.ReadFile(filepath.Join(again, name))
		if err := errors.Join(err, errTwo); err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s is not the same twice: %v", name, err)
		}
	}
	for binary, why := range map[string]string{"/bin/sh": "dynamic loader", "container_linux_test.go": "no program for Linux",
		"../../bin/docent-image": "not docent"} {
		if out, err := build(again, binary); err == nil || !strings.Contains(out, why) {
			t.Errorf("an image is made of %s: %v: %s", binary, err, out)
		}
	}
}

// confined holds the running program to what the container promises.
func (c *container) confined() {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		c.t.Fatal(err)
	}
	is := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		is[name] = strings.Join(strings.Fields(value), " ")
	}
	user := strconv.Itoa(imageUser)
	if is["Uid"] != strings.Join([]string{user, user, user, user}, " ") || is["CapEff"] != "0000000000000000" ||
		is["CapBnd"] != "0000000000000000" || is["NoNewPrivs"] != "1" || !strings.HasSuffix(is["NSpid"], " 1") {
		c.t.Errorf("it runs with Uid %s, CapEff %s, CapBnd %s, NoNewPrivs %s, NSpid %s", is["Uid"], is["CapEff"], is["CapBnd"],
			is["NoNewPrivs"], is["NSpid"])
	}
	// The first process of a container inherits what others leave behind: nothing may have been left but parsers that wait
	// for work.
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.pid))
	if err != nil || len(threads) == 0 {
		c.t.Fatalf("%v: %v", threads, err)
	}
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // a thread may have ended
		for child := range strings.FieldsSeq(string(children)) {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline")) // empty for one that nobody has waited for
			if args := strings.Split(string(line), "\x00"); err == nil && (len(args) < 2 || args[1] != "cell") {
				c.t.Errorf("it has the child %s: %q", child, args)
			}
		}
	}
}

// checkSmallMemory has the quickstart's steps on a real documentation set in a container of 256 MB.
func checkSmallMemory(t *testing.T, i *containerImage) {
	const memory = "/sys/fs/cgroup/memory"
	docs := filepath.Join(openFolder(t), "docs")
	if err := corpora.Site(t, "mintlify").Write(docs); err != nil {
		t.Fatal(err)
	}
	c := i.container(t)
	c.group = filepath.Join(memory, "docent-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(c.group, 0o755); err != nil {
		t.Skipf("memory is not limited: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(c.group) })
	if err := os.WriteFile(filepath.Join(c.group, "memory.limit_in_bytes"), []byte("256M"), 0o644); err != nil {
		t.Skipf("memory is not limited: %v", err)
	}
	c.mount("--ro-bind", docs, "/docs")
	c.start()
	p, assistant, admin := c.project("--include", "**") // the copy lacks files of its navigation
	c.works(p, assistant, admin, "", "How do I add a custom domain?", "domain", "trying-docent")
	// A check gives up after some seconds, even if the machine stood still for them: the next one tells.
	harness.Until(t, "the container is healthy after its work", func() bool { return c.health() == nil })
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmHWM:") {
			t.Logf("the server's memory at its highest: %s", strings.TrimSpace(strings.TrimPrefix(line, "VmHWM:")))
		}
	}
	for _, name := range []string{"memory.failcnt", "memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(c.group, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", name, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", "))
		if name == "memory.oom_control" && !strings.Contains(string(text), "oom_kill 0\n") {
			t.Error("a process was ended for want of memory")
		}
	}
	c.stop()
}
