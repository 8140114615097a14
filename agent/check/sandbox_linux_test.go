package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"docent/agent/check"
	"docent/agent/check/sandbox"
	"docent/api"
	"docent/internal/race"
	"docent/internal/testing/need"
)

// attackName is the argument with which this test binary plays code that somebody got into a repository.
const attackName = "attack-the-server"

// What an attack tries: the server, what is the user's, or the machine as well, which is for sandboxes alone.
const (
	attackServer  = "server"
	attackMachine = "machine"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == attackName {
		var v victim
		if err := json.Unmarshal([]byte(os.Args[3]), &v); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		attack(os.Args[2], v)
		os.Exit(1) // so that what it printed is told
	}
	os.Exit(m.Run())
}

// A victim is a server with what it has and its user may do.
type victim struct {
	Data     string // its data directory, with secrets/token and another project
	PID      int
	Control  string // a socket by path
	Abstract string // and by name
	Datagram string
	TCP      string
	Outside  string // a folder of the same user's
}

// openDir is a folder that every user reaches: what keeps them out is the sandbox. It is none that a sandbox has of its own.
func openDir(t *testing.T) string {
	t.Helper()
	parent := "/opt"
	if os.Geteuid() != 0 {
		var err error
		if parent, err = os.Getwd(); err != nil {
			t.Fatal(err)
		}
	}
	return openDirIn(t, parent)
}

func openDirIn(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newVictim(t *testing.T) victim {
	t.Helper()
	dir := openDir(t)
	v := victim{Data: filepath.Join(dir, "data"), PID: os.Getpid(), Outside: filepath.Join(dir, "outside"),
		Abstract: fmt.Sprintf("docent-test-%d-%s", os.Getpid(), filepath.Base(dir))}
	for _, d := range []string{"data/secrets", "data/projects/other", "data/checks", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"secrets/token", "projects/other/page.md", "journal.db"} {
		if err := os.WriteFile(filepath.Join(v.Data, f), []byte("hunter2"), 0o644); err != nil { // readable: what holds is the sandbox
			t.Fatal(err)
		}
	}
	short := openDirIn(t, "") // sockets' paths have room for some hundred bytes
	v.Control, v.Datagram = filepath.Join(short, "control.sock"), filepath.Join(short, "notify.sock")
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	listen("unix", v.Control)
	listen("unix", "@"+v.Abstract)
	v.TCP = listen("tcp", "127.0.0.1:0")
	d, err := net.ListenPacket("unixgram", v.Datagram)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	for _, p := range []string{v.Control, v.Datagram} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// attack does what a hostile build does, and prints what it got.
func attack(how string, v victim) {
	switch how {
	case "eat":
		hold := make([]byte, 64<<20)
		for i := range hold {
			hold[i] = byte(i)
		}
		if len(os.Args) > 4 {
			time.Sleep(time.Hour)
		}
		for range 8 {
			c := exec.Command(os.Args[0], append(os.Args[1:], "child")...)
			if err := c.Start(); err != nil {
				fmt.Println(err)
			}
		}
		time.Sleep(time.Hour)
	case "threads":
		for {
			if err := exec.Command("sleep", "3600").Start(); err != nil {
				time.Sleep(time.Millisecond) // it tries again
			}
		}
	}
	try := func(name string, f func() error) {
		if err := f(); err == nil {
			fmt.Println("GOT", name)
		} else {
			fmt.Println("not", name, err)
		}
	}
	read := func(name string) {
		try("read "+name, func() error { _, err := os.ReadFile(name); return err })
	}
	read(v.Data + "/secrets/token")
	read(v.Data + "/projects/other/page.md")
	try("list the data directory", func() error { // the folders that lead to the command's own may be there
		list, err := os.ReadDir(v.Data)
		if err == nil && !slices.ContainsFunc(list, func(e os.DirEntry) bool { return e.Name() == "secrets" }) {
			return errors.New("it is empty")
		}
		return err
	})
	read(fmt.Sprintf("/proc/%d/environ", v.PID))
	read(fmt.Sprintf("/proc/%d/maps", v.PID))
	try("the memory of the server", func() error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", v.PID))
		if err == nil {
			f.Close()
		}
		return err
	})
	try("list the server's files", func() error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.PID)); return err })
	read("/etc/shadow")
	for _, a := range [][2]string{{"unix", v.Control}, {"unix", "@" + v.Abstract}, {"tcp", v.TCP}, {"unixgram", v.Datagram}} {
		try("dial "+a[0]+" "+a[1], func() error {
			c, err := net.Dial(a[0], a[1])
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	try("send to a socket of another's", func() error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(pair[0], []byte("READY=1"), 0, &unix.SockaddrUnix{Name: v.Datagram})
	})
	try("a signal", func() error { return syscall.Kill(v.PID, syscall.SIGCONT) })
	try("a signal to its supervisor", func() error { // as the first process of its namespaces, it has no other
		if os.Getppid() == 0 || os.Getppid() == 1 {
			return errors.New("it is in namespaces")
		}
		return syscall.Kill(os.Getppid(), syscall.SIGCONT)
	})
	try("limits of the server", func() error {
		return unix.Prlimit(v.PID, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 10}, nil)
	})
	try("write to the data directory", func() error { return os.WriteFile(v.Data+"/new", nil, 0o600) })
	try("write to a file of the data directory", func() error { return os.WriteFile(v.Data+"/journal.db", nil, 0o600) })
	try("write to the user's folder", func() error { return os.WriteFile(v.Outside+"/new", nil, 0o600) })
	try("truncate", func() error { return os.Truncate(v.Data+"/journal.db", 0) })
	if how != attackMachine {
		return
	}
	try("write to /usr", func() error { return os.WriteFile("/usr/docent-test", nil, 0o600) })
	try("namespaces", func() error { return unix.Unshare(unix.CLONE_NEWUSER) })
	try("mount", func() error { return unix.Mount("none", "docs", "tmpfs", 0, "") })
	try("packets", func() error { _, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); return err })
	try("rings", func() error {
		var params [30]uint32
		_, _, no := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		if no != 0 {
			return no
		}
		return nil
	})
	// The last ones may say that they did: the test looks.
	_ = os.Chmod(v.Data+"/journal.db", 0)
	_ = os.Chmod(v.Data, 0)
	_ = os.Chtimes(v.Data+"/journal.db", time.Unix(1, 0), time.Unix(1, 0))
	_ = unix.Setxattr(v.Data+"/journal.db", "user.docent", []byte("x"), 0)

	// And what it needs.
	need := func(name string, f func() error) {
		if err := f(); err != nil {
			fmt.Println("LACKS", name, err)
		}
	}
	need("its files", func() error { _, err := os.ReadFile("docs/a.md"); return err })
	need("its folder", func() error { return os.WriteFile("docs/b.md", []byte("x"), 0o600) })
	need("to move between folders", func() error {
		if err := os.MkdirAll("site/x", 0o755); err != nil {
			return err
		}
		return os.Rename("docs/b.md", "site/x/b.md")
	})
	need("rights of its own", func() error { return os.Chmod("site/x/b.md", 0o644) })
	need("temporary files", func() error { _, err := os.CreateTemp("", "x"); return err })
	need("a home", func() error { return os.WriteFile(os.Getenv("HOME")+"/.x", nil, 0o600) })
	need("/dev/null", func() error { return os.WriteFile("/dev/null", []byte("x"), 0o600) })
	need("/dev/urandom", func() error {
		f, err := os.Open("/dev/urandom")
		if err != nil {
			return err
		}
		_, err = io.ReadFull(f, make([]byte, 8))
		return err
	})
	need("programs", func() error {
		out, err := exec.Command("sh", "-c", "exec 3</dev/null; echo hello | cat; ls /usr >/dev/null").CombinedOutput()
		if err != nil || string(out) != "hello\n" {
			return fmt.Errorf("%q, %v", out, err)
		}
		return nil
	})
	need("pairs of sockets", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err })
	need("a signal to a child", func() error {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			return err
		}
		defer c.Wait()
		return c.Process.Kill()
	})
}

// kinds runs a test in each sandbox that can be had here.
func kinds(t *testing.T, f func(t *testing.T, kind sandbox.Kind)) {
	for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Landlock} {
		t.Run(string(kind), func(t *testing.T) {
			if err := sandbox.Try(kind, "", nobodyIfRoot()); err != nil {
				t.Skip(err)
			}
			f(t, kind)
		})
	}
}

func nobodyIfRoot() int {
	if os.Geteuid() == 0 {
		return 65534
	}
	return 0
}

// attacker is a command that attacks, and what the sandbox has to show it.
func attacker(t *testing.T, how string, v victim) check.Command {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(openDir(t), "build")
	if err := os.WriteFile(bin, self, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return check.Command{Args: []string{bin, attackName, how, string(text)}, Read: []string{bin}}
}

func TestACheckReachesNothingOfTheServer(t *testing.T) {
	kinds(t, func(t *testing.T, kind sandbox.Kind) {
		v := newVictim(t)
		before, err := os.Stat(v.Data + "/journal.db")
		if err != nil {
			t.Fatal(err)
		}
		checks := &check.Commands{Sandbox: kind, User: nobodyIfRoot(), Hidden: []string{v.Data},
			Projects: map[api.ProjectID]check.Command{"p": attacker(t, attackMachine, v)}}
		if os.Geteuid() != 0 {
			checks.Folder = filepath.Join(v.Data, "checks")
		}
		says, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{"docs/a.md": "hello\n"})
		if err != nil || !strings.Contains(says, "not list the data directory") {
			t.Fatalf("%s, %v", says, err)
		}
		for line := range strings.Lines(says) {
			if strings.HasPrefix(line, "GOT") || strings.HasPrefix(line, "LACKS") {
				t.Error(strings.TrimSpace(line))
			}
		}
		after, err := os.Stat(v.Data + "/journal.db")
		if err != nil || after.Mode() != before.Mode() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("the journal was %v and is %v, %v", before, after, err)
		}
		if n, err := unix.Getxattr(v.Data+"/journal.db", "user.docent", nil); err == nil {
			t.Errorf("an attribute of %d bytes", n)
		}
		if left, err := os.ReadDir(v.Outside); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	})
}

// What the tests above look for is there without a sandbox: they would see it.
func TestACheckWithoutASandboxReachesTheServer(t *testing.T) {
	v := newVictim(t)
	checks := &check.Commands{Sandbox: sandbox.None, User: nobodyIfRoot(),
		Projects: map[api.ProjectID]check.Command{"p": attacker(t, attackServer, v)}}
	says, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{"docs/a.md": "hello\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read " + v.Data + "/secrets/token", "dial unix " + v.Control, "dial unix @" + v.Abstract, "dial tcp"} {
		if !strings.Contains(says, "GOT "+name) {
			t.Errorf("it has not %s:\n%s", name, says)
		}
	}
}

func TestACheckHasTheNetworkWhereItsSettingSaysSo(t *testing.T) {
	kinds(t, func(t *testing.T, kind sandbox.Kind) {
		v := newVictim(t)
		c := attacker(t, attackMachine, v)
		c.Network = true
		checks := &check.Commands{Sandbox: kind, User: nobodyIfRoot(), Projects: map[api.ProjectID]check.Command{"p": c}}
		says, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{"docs/a.md": "hello\n"})
		if err != nil || !strings.Contains(says, "GOT dial tcp") {
			t.Fatalf("%s, %v", says, err)
		}
		for line := range strings.Lines(says) {
			if strings.HasPrefix(line, "GOT") && !strings.HasPrefix(line, "GOT dial tcp") || strings.HasPrefix(line, "LACKS") {
				t.Error(strings.TrimSpace(line))
			}
		}
	})
}

func TestACheckIsEndedThatTakesTooMuch(t *testing.T) {
	kinds(t, func(t *testing.T, kind sandbox.Kind) {
		for how, want := range map[string]string{"eat": "bytes of memory", "threads": "threads and processes at once"} {
			t.Run(how, func(t *testing.T) {
				if how == "eat" && race.Enabled {
					t.Skip("the race detector takes more memory than the check may have, and ends it first")
				}
				c := attacker(t, how, victim{})
				if how == "eat" {
					c.Memory = 300 << 20
				} else {
					c.Tasks = 64
				}
				checks := &check.Commands{Sandbox: kind, User: nobodyIfRoot(), Projects: map[api.ProjectID]check.Command{"p": c}}
				says, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{"docs/a.md": "hello\n"})
				if err != nil || !strings.Contains(says, want) {
					t.Errorf("%s, %v", says, err)
				}
				if left := processesWith(t, c.Args[0]); len(left) > 0 {
					t.Errorf("still running: %v", left)
				}
			})
		}
	})
}

func TestACheckIsRefusedWhatItMustNotSee(t *testing.T) {
	data := t.TempDir()
	for name, c := range map[string]struct {
		read  string
		fails string
	}{
		"the data directory": {data, "a check would see " + data},
		"what it lies in":    {filepath.Dir(data), "a check would see " + data},
		"what lies in it":    {data, "a check would see"},
		"all":                {"/", "no path from the root"},
		"relative":           {"tools", "no path from the root"},
		"missing":            {"/nope", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			checks := &check.Commands{Sandbox: sandbox.Landlock, Hidden: []string{data},
				Projects: map[api.ProjectID]check.Command{"p": {Args: []string{"true"}, Read: []string{c.read}}}}
			if _, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{}); err == nil ||
				!strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
		})
	}
}

// processesWith lists the processes with a word in their command lines.
func processesWith(t *testing.T, word string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), word) {
			found = append(found, name)
		}
	}
	return found
}

// What a command starts ends with it, also what has left its process group and session, and whose parent is gone.
func TestNothingThatACommandStartedOutlivesIt(t *testing.T) {
	need.NoRace(t, "other processes do the work")
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("sessions are made with setsid")
	}
	word := fmt.Sprintf("6000.%d", os.Getpid()) // by which its processes are known on the whole machine
	for name, c := range map[string]struct {
		script  string
		timeout time.Duration
	}{
		"it ended": {script: `setsid sh -c 'touch began; exec sleep "$0"' WORD & while [ ! -e began ]; do :; done`},
		"twice removed": {script: `setsid sh -c '(setsid sh -c "touch began; sleep WORD; :" &)'
			while [ ! -e began ]; do :; done`},
		"its time was over": {script: `setsid sh -c 'touch began; exec sleep "$0"' WORD & sleep WORD`, timeout: time.Second},
	} {
		for _, kind := range []sandbox.Kind{sandbox.Namespaces, sandbox.Landlock, sandbox.None} {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				if err := sandbox.Try(kind, "", nobodyIfRoot()); err != nil {
					t.Skip(err)
				}
				checks := &check.Commands{Sandbox: kind, User: nobodyIfRoot(), Projects: map[api.ProjectID]check.Command{
					"p": {Args: []string{"sh", "-c", strings.ReplaceAll(c.script, "WORD", word)}, Timeout: c.timeout}}}
				if says, _, err := checks.Check(t.Context(), api.Project{ID: "p"}, fileSet{"a.md": "x"}); err != nil ||
					(says != "") != (c.timeout > 0) {
					t.Fatalf("%q, %v", says, err)
				}
				if left := processesWith(t, word); len(left) > 0 {
					t.Errorf("still running: %v", left)
				}
			})
		}
	}
}

// As a package, in a container and in Kubernetes, the server is no root.
func TestAServerThatIsNotRootKeepsChecksApart(t *testing.T) {
	need.NoRace(t, "other processes do the work")
	if os.Geteuid() != 0 {
		t.Skip("the other tests are run so")
	}
	dir := openDir(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "check.test")
	if err := os.WriteFile(bin, self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65533, 65533); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.run", "TestACheckReachesNothingOfTheServer|TestACheckHasTheNetwork", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestACheckReachesNothingOfTheServer") {
		t.Errorf("%v\n%s", err, out)
	}
}
