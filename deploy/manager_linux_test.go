package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A manager is systemd as far as one service and its socket need it, on a machine whose first process is another one. It
// holds the socket over restarts, starts the process under the unit's restrictions, hears what the process tells, and
// does what maintainer scripts ask of systemctl.
type manager struct {
	t        testing.TB
	units    []string // files
	listener *net.TCPListener
	passed   *os.File
	notify   *net.UnixConn
	address  string // of notify
	orders   net.Listener
	patience time.Duration

	mu      sync.Mutex
	told    []string // by the process that runs
	changed chan struct{}
	running *process
	asked   []string // of systemctl
}

type process struct {
	cmd   *exec.Cmd
	log   lockedBuffer
	ended chan struct{}
	err   error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// watchdog is what the manager sets in place of the unit's, so that pings come often.
const watchdog = 4 * time.Second

func newManager(t testing.TB, units ...string) *manager {
	t.Helper()
	m := &manager{t: t, units: units, changed: make(chan struct{}, 1), patience: time.Minute}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.listener = listener.(*net.TCPListener)
	if m.passed, err = m.listener.File(); err != nil {
		t.Fatal(err)
	}
	m.address = fmt.Sprintf("@docent-test-%d", os.Getpid())
	if m.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.address, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	if m.orders, err = net.Listen("unix", filepath.Join(t.TempDir(), "orders")); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(m.hear)
	serving.Go(m.obey)
	t.Cleanup(func() {
		m.kill()
		m.notify.Close()
		m.orders.Close()
		m.passed.Close()
		m.listener.Close()
		serving.Wait()
	})
	return m
}

func (m *manager) url() string { return "http://" + m.listener.Addr().String() }

func (m *manager) hear() {
	buffer := make([]byte, 8<<10)
	for {
		n, err := m.notify.Read(buffer)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.told = append(m.told, strings.Split(string(buffer[:n]), "\n")...)
		m.mu.Unlock()
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// wait waits until the process has told something n times.
func (m *manager) wait(what string, n int, p *process) error {
	deadline := time.After(m.patience)
	for {
		m.mu.Lock()
		told := slices.Clone(m.told)
		m.mu.Unlock()
		count := 0
		for _, line := range told {
			if strings.HasPrefix(line, what) {
				count++
			}
		}
		if count >= n {
			return nil
		}
		select {
		case <-m.changed:
		case <-p.ended:
			return fmt.Errorf("the process ended before it told %s: %v\n%s", what, p.err, p.log.String())
		case <-deadline:
			return fmt.Errorf("the process has not told %s, only %q\n%s", what, told, p.log.String())
		}
	}
}

// mainPID is the process that the service is: bubblewrap stands between.
func (m *manager) mainPID() (pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.told {
		_, _ = fmt.Sscanf(line, "MAINPID=%d", &pid)
	}
	return pid
}

func (m *manager) start() error {
	if m.running != nil {
		return nil
	}
	s := translate(m.t, readUnit(m.t, m.units...))
	s.launch.Notify = m.address
	s.launch.Env = append(s.launch.Env, "NOTIFY_SOCKET="+m.address, "LISTEN_FDNAMES=docent",
		fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
	p := &process{cmd: s.command(m.t, m.passed), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	m.mu.Lock()
	m.told = nil
	m.mu.Unlock()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	m.running = p
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := m.wait("READY=1", 1, p); err != nil {
		m.kill()
		return err
	}
	return nil
}

func (m *manager) stop() error {
	p := m.running
	if p == nil {
		return nil
	}
	m.running = nil
	if err := syscall.Kill(m.mainPID(), syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the process: %w\n%s", err, p.log.String())
	}
	select {
	case <-p.ended:
	case <-time.After(m.patience):
		_ = syscall.Kill(m.mainPID(), syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("the process does not stop\n%s", p.log.String())
	}
	if p.err != nil {
		return fmt.Errorf("the process ended with %w\n%s", p.err, p.log.String())
	}
	return nil
}

func (m *manager) kill() {
	if p := m.running; p != nil {
		if pid := m.mainPID(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		} else {
			_ = p.cmd.Process.Kill()
		}
		<-p.ended
		m.running = nil
	}
}

func (m *manager) restart() error {
	if err := m.stop(); err != nil {
		return err
	}
	return m.start()
}

// systemctlEnv has this test binary be systemctl: it passes on what it is asked to the manager behind this socket.
const systemctlEnv = "DOCENT_TEST_SYSTEMCTL"

func systemctl(args []string) int {
	conn, err := net.Dial("unix", os.Getenv(systemctlEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer conn.Close()
	var reply struct {
		Status int
		Text   string
	}
	if err := json.NewEncoder(conn).Encode(args); err != nil {
		return 1
	}
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return 1
	}
	fmt.Print(reply.Text)
	return reply.Status
}

func (m *manager) obey() {
	for {
		conn, err := m.orders.Accept()
		if err != nil {
			return
		}
		var args []string
		if err := json.NewDecoder(conn).Decode(&args); err == nil {
			status, text := m.order(args)
			_ = json.NewEncoder(conn).Encode(map[string]any{"Status": status, "Text": text})
		}
		conn.Close()
	}
}

// order does what systemctl is asked for, as far as maintainer scripts ask.
func (m *manager) order(args []string) (status int, text string) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	if len(args) == 0 {
		return 1, ""
	}
	m.mu.Lock()
	m.asked = append(m.asked, strings.Join(args, " "))
	m.mu.Unlock()
	verb, units := args[0], args[1:]
	forService := slices.Contains(units, "docent.service")
	var err error
	switch verb {
	case "daemon-reload":
	case "is-enabled", "preset", "enable", "disable", "mask", "unmask": // which only concern files
		real := exec.Command("/usr/bin/systemctl", args...)
		real.Env = append(os.Environ(), "SYSTEMD_OFFLINE=1")
		out, err := real.Output()
		if err != nil {
			return 1, string(out)
		}
		return 0, string(out)
	case "is-active":
		if forService && m.running == nil {
			return 3, "inactive\n"
		}
		return 0, "active\n"
	case "start":
		if forService {
			err = m.start()
		}
	case "restart":
		if forService {
			err = m.restart()
		}
	case "stop":
		if forService {
			err = m.stop()
		}
	default:
		err = fmt.Errorf("systemctl %s is not known to the test", strings.Join(args, " "))
	}
	if err != nil {
		m.t.Error(err)
		return 1, err.Error()
	}
	return 0, ""
}

// dpkg runs dpkg with maintainer scripts that find a running systemd: this manager.
func (m *manager) dpkg(args ...string) {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	dir := m.t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec env %s='%s' '%s' \"$@\"\n", systemctlEnv, m.orders.Addr(), self)
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
		m.t.Fatal(err)
	}
	free := filepath.Join(dir, "no-policy") // containers have one that lets nothing start
	if err := os.WriteFile(free, nil, 0o644); err != nil {
		m.t.Fatal(err)
	}
	cmd := command(m.t, "unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c",
		`mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system &&
		if [ -e /usr/sbin/policy-rc.d ]; then mount --bind ` + free + ` /usr/sbin/policy-rc.d; fi && exec "$@"`, "sh",
		"dpkg"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"DEBIAN_FRONTEND=noninteractive")
	m.t.Logf("dpkg %s\n%s", strings.Join(args, " "), run(m.t, cmd))
}

// orders that were given since the last time.
func (m *manager) orderedNow() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.asked = nil }()
	return m.asked
}
