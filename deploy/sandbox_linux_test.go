package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	checks "docent/agent/check/sandbox"
)

// launchEnv has this test binary become a service: it takes on what only a process itself can, and then executes the
// program.
const launchEnv = "DOCENT_TEST_LAUNCH"

// findEnv has this test binary look for a sandbox of checks, with its files in that folder.
const findEnv = "DOCENT_TEST_FIND"

// A launch is what remains to be done for a process in its sandbox.
type launch struct {
	Args    []string
	Env     []string
	Notify  string // the manager's socket
	Sockets int
	Umask   int
	Filter  []unix.SockFilter
	Probe   bool // say what is possible here, in place of executing the program
}

func TestMain(m *testing.M) {
	if text := os.Getenv(launchEnv); text != "" {
		var l launch
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			fail(err)
		}
		if err := l.run(); err != nil {
			fail(err)
		}
		os.Exit(0)
	}
	if folder := os.Getenv(findEnv); folder != "" {
		kind, err := checks.Find(folder, 0)
		fmt.Println(kind, err)
		os.Exit(0)
	}
	if os.Getenv(systemctlEnv) != "" {
		os.Exit(systemctl(os.Args[1:]))
	}
	status := m.Run()
	os.RemoveAll(binaries.dir)
	os.Exit(status)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(200)
}

func (l *launch) run() error {
	runtime.LockOSThread()
	unix.Umask(l.Umask)
	env := append(l.Env, "WATCHDOG_PID="+strconv.Itoa(os.Getpid()))
	if l.Sockets > 0 {
		env = append(env, "LISTEN_PID="+strconv.Itoa(os.Getpid()), "LISTEN_FDS="+strconv.Itoa(l.Sockets))
	}
	if l.Notify != "" {
		conn, err := net.Dial("unixgram", l.Notify)
		if err != nil {
			return err
		}
		fmt.Fprintf(conn, "MAINPID=%d", os.Getpid())
		conn.Close()
	}
	if len(l.Filter) > 0 {
		program := unix.SockFprog{Len: uint16(len(l.Filter)), Filter: &l.Filter[0]}
		// SECCOMP_FILTER_FLAG_TSYNC: all threads of this process
		if _, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
			uintptr(unsafe.Pointer(&program))); no != 0 {
			return fmt.Errorf("SystemCallFilter: %w", no)
		}
	}
	if l.Probe {
		return json.NewEncoder(os.Stdout).Encode(probe())
	}
	return unix.Exec(l.Args[0], l.Args, env)
}

// A sandbox is what a unit asks of systemd, as a command line for bubblewrap and setpriv.
type sandbox struct {
	mounts []string
	privs  []string
	launch launch
	before string // what a shell does in the mount namespace first
}

// ignored are the settings that say when and how often systemd starts the service and how it ends it, which the test's
// own manager does, or that have no counterpart in a process that is about to be replaced.
var ignored = map[string]bool{
	"Type": true, "NotifyAccess": true, "ExecStart": true, "Restart": true, "RestartSec": true, "TimeoutStartSec": true,
	"TimeoutStopSec": true, "WatchdogSec": true, "KillMode": true, "OOMPolicy": true, "StateDirectoryMode": true,
	"RemoveIPC": true, "SystemCallErrorNumber": true, "SystemCallArchitectures": true, "AmbientCapabilities": true,
	"Group": true,
}

// translate makes a sandbox of the section [Service]. A setting that it does not know fails the test.
func translate(t testing.TB, u unit) *sandbox {
	t.Helper()
	s := &sandbox{mounts: []string{"--bind", "/", "/"}}
	user := u.one(t, "Service.User")
	s.launch.Args = strings.Fields(u.one(t, "Service.ExecStart"))
	s.launch.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG=C.UTF-8", "USER=" + user,
		"LOGNAME=" + user, "HOME=/var/lib/docent", "SHELL=/usr/sbin/nologin"}
	s.privs = []string{"--reuid", user, "--regid", u.one(t, "Service.Group"), "--init-groups"}
	s.launch.Umask = 0o022
	names := map[string][]string{}
	for name, values := range u {
		if section, setting, _ := strings.Cut(name, "."); section == "Service" {
			names[setting] = values
		}
	}
	// those that make others' exceptions come first
	if take(names, "ProtectSystem") == "strict" {
		s.mounts = []string{"--ro-bind", "/", "/", "--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"}
	}
	if home := take(names, "ProtectHome"); home == "yes" || home == "tmpfs" {
		s.hide(home == "yes", "/home", "/root", "/run/user")
	}
	if take(names, "PrivateTmp") == "yes" {
		s.mounts = append(s.mounts, "--perms", "1777", "--tmpfs", "/tmp", "--perms", "1777", "--tmpfs", "/var/tmp")
	}
	if take(names, "PrivateDevices") == "yes" {
		s.mounts = append(s.mounts, "--dev", "/dev")
	}
	if take(names, "ProtectKernelModules") == "yes" {
		s.hide(true, "/usr/lib/modules")
	}
	for name, values := range names {
		switch name {
		case "User":
		case "EnvironmentFile":
			for _, v := range values {
				s.launch.Env = append(s.launch.Env, environment(t, v)...)
			}
		case "StateDirectory":
			for dir := range strings.FieldsSeq(values[0]) {
				dir = filepath.Join("/var/lib", dir)
				run(t, command(t, "install", "-d", "-m", u.one(t, "Service.StateDirectoryMode"), "-o", user, "-g", user, dir))
				s.mounts = append(s.mounts, "--bind", dir, dir)
			}
		case "ConfigurationDirectory":
			s.launch.Env = append(s.launch.Env, "CONFIGURATION_DIRECTORY=/etc/"+values[0])
		case "ReadWritePaths":
			for _, v := range values {
				s.mounts = append(s.mounts, "--bind", v, v)
			}
		case "BindReadOnlyPaths":
			for _, v := range values {
				s.mounts = append(s.mounts, "--ro-bind", v, v)
			}
		case "ProtectProc":
			s.before += "mount -t proc -o hidepid=" + values[0] + " proc /proc && "
		case "ProtectKernelTunables":
			s.mounts = append(s.mounts, "--ro-bind", "/proc/sys", "/proc/sys", "--ro-bind", "/sys", "/sys")
		case "ProtectControlGroups":
			s.mounts = append(s.mounts, "--ro-bind-try", "/sys/fs/cgroup", "/sys/fs/cgroup")
		case "ProtectHostname":
			s.mounts = append(s.mounts, "--unshare-uts")
		case "ProtectKernelLogs", "ProtectClock": // its devices are not there, and the filter has no calls for it
		case "NoNewPrivileges":
			s.privs = append(s.privs, "--no-new-privs")
		case "CapabilityBoundingSet":
			if values[0] != "" {
				t.Fatalf("%s=%s is not known to the sandbox", name, values[0])
			}
			s.privs = append(s.privs, "--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all")
		case "LimitNOFILE":
			// a container may have a lower limit, which its root cannot raise
			s.before += "{ ulimit -n " + values[0] + " 2>/dev/null || ulimit -n $(ulimit -H -n); } && "
		case "UMask":
			mask, err := strconv.ParseUint(values[0], 8, 16)
			if err != nil {
				t.Fatal(err)
			}
			s.launch.Umask = int(mask)
		case "SystemCallFilter", "MemoryDenyWriteExecute", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime",
			"RestrictSUIDSGID", "LockPersonality":
		default:
			if !ignored[name] {
				t.Fatalf("the sandbox does not know %s: teach it, or the test of the package proves less than it says", name)
			}
		}
	}
	s.launch.Filter = filter(t, u)
	return s
}

// take returns a setting's last value and takes it out.
func take(names map[string][]string, name string) string {
	values := names[name]
	delete(names, name)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// hide puts empty folders over others.
func (s *sandbox) hide(unreadable bool, paths ...string) {
	mode := "0755"
	if unreadable {
		mode = "0000"
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			s.mounts = append(s.mounts, "--perms", mode, "--tmpfs", path)
		}
	}
}

// environment reads a file of NAME=value lines; one with a dash before it need not be there.
func environment(t testing.TB, file string) (list []string) {
	t.Helper()
	path, optional := strings.CutPrefix(file, "-")
	text, err := os.ReadFile(path)
	if err != nil && !optional {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// command is the service's process in its sandbox. files are the sockets that it gets.
func (s *sandbox) command(t testing.TB, files ...*os.File) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := s.launch
	l.Sockets = len(files)
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	const inside = "/run/lock/docent-test-launcher"
	if err := os.WriteFile(inside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "--propagation", "private", "sh", "-c", s.before + `exec "$@"`, "sh", "bwrap"}
	args = append(args, s.mounts...)
	args = append(args, "--ro-bind", self, inside, "--chdir", "/", "--die-with-parent", "--", "setpriv")
	args = append(args, s.privs...)
	args = append(args, inside)
	cmd := exec.Command("unshare", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), launchEnv + "=" + string(text)}
	cmd.ExtraFiles = files
	return cmd
}

// filter is the unit's seccomp program: what SystemCallFilter= lets through, and the settings that look at the
// arguments of calls, as systemd's src/shared/seccomp-util.c has them.
func filter(t testing.TB, u unit) []unix.SockFilter {
	t.Helper()
	numbers := callNumbers(t)
	b := &program{t: t, numbers: numbers}
	b.load(4) // the architecture
	b.jump(unix.BPF_JEQ, auditArch(t), 1, 0)
	b.result(unix.SECCOMP_RET_KILL_PROCESS)
	b.load(0) // the number
	on := func(name string) bool { return len(u["Service."+name]) > 0 && u["Service."+name][0] == "yes" }
	if families := u["Service.RestrictAddressFamilies"]; len(families) > 0 {
		known := map[string]uint32{"AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_UNIX": unix.AF_UNIX}
		var allowed []uint32
		for name := range strings.FieldsSeq(families[0]) {
			n, ok := known[name]
			if !ok {
				t.Fatalf("the sandbox does not know the address family %s", name)
			}
			allowed = append(allowed, n)
		}
		b.only("socket", 0, unix.EAFNOSUPPORT, allowed...)
	}
	if on("MemoryDenyWriteExecute") {
		b.without("mmap", 2, unix.PROT_WRITE|unix.PROT_EXEC, unix.EPERM)
		b.without("mprotect", 2, unix.PROT_EXEC, unix.EPERM)
		b.without("pkey_mprotect", 2, unix.PROT_EXEC, unix.EPERM)
	}
	if on("RestrictNamespaces") {
		for _, flag := range []uint32{unix.CLONE_NEWNS, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER,
			unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWCGROUP} {
			b.without("clone", 0, flag, unix.EPERM)
		}
		b.refuse("unshare", unix.EPERM)
		b.refuse("setns", unix.EPERM)
		b.refuse("clone3", unix.ENOSYS)
	}
	if on("RestrictRealtime") {
		b.only("sched_setscheduler", 1, unix.EPERM, 0, 3, 5) // other, batch, idle
	}
	if on("RestrictSUIDSGID") {
		for call, arg := range map[string]int{"chmod": 1, "fchmod": 1, "fchmodat": 2} {
			if _, there := numbers[call]; there {
				b.without(call, arg, unix.S_ISUID, unix.EPERM)
				b.without(call, arg, unix.S_ISGID, unix.EPERM)
			}
		}
	}
	if on("LockPersonality") {
		b.only("personality", 0, unix.EPERM, 0, 0xffffffff)
	}
	allowed := map[string]bool{}
	for _, value := range u["Service.SystemCallFilter"] {
		value, denied := strings.CutPrefix(value, "~")
		for name := range strings.FieldsSeq(value) {
			for _, call := range members(t, name) {
				allowed[call] = !denied
			}
		}
	}
	for name, ok := range allowed {
		if n, there := numbers[name]; ok && there {
			b.jump(unix.BPF_JEQ, n, 0, 1)
			b.result(unix.SECCOMP_RET_ALLOW)
		}
	}
	b.result(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	return b.code
}

// A program is a seccomp filter that is being written. The number of the call is loaded between any two rules.
type program struct {
	t       testing.TB
	numbers map[string]uint32
	code    []unix.SockFilter
}

func (b *program) add(code uint16, k uint32, yes, no uint8) {
	b.code = append(b.code, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}
func (b *program) load(at uint32) { b.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (b *program) jump(how uint16, k uint32, yes, no uint8) {
	b.add(unix.BPF_JMP|unix.BPF_K|how, k, yes, no)
}
func (b *program) result(k uint32) { b.add(unix.BPF_RET|unix.BPF_K, k, 0, 0) }

func (b *program) number(call string) uint32 {
	n, ok := b.numbers[call]
	if !ok {
		b.t.Fatalf("this machine has no system call %s", call)
	}
	return n
}

func argument(i int) uint32 { return uint32(16 + 8*i) } // its low half, of struct seccomp_data

func (b *program) refuse(call string, err unix.Errno) {
	b.jump(unix.BPF_JEQ, b.number(call), 0, 1)
	b.result(unix.SECCOMP_RET_ERRNO | uint32(err))
}

// only lets a call through with these values of an argument, as far as the rules after it do.
func (b *program) only(call string, arg int, err unix.Errno, values ...uint32) {
	b.jump(unix.BPF_JEQ, b.number(call), 0, uint8(len(values)+3))
	b.load(argument(arg))
	for i, v := range values {
		b.jump(unix.BPF_JEQ, v, uint8(len(values)-i), 0)
	}
	b.result(unix.SECCOMP_RET_ERRNO | uint32(err))
	b.load(0)
}

// without refuses a call whose argument has all of these bits.
func (b *program) without(call string, arg int, bits uint32, err unix.Errno) {
	b.jump(unix.BPF_JEQ, b.number(call), 0, 5)
	b.load(argument(arg))
	b.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, bits, 0, 0)
	b.jump(unix.BPF_JEQ, bits, 0, 1)
	b.result(unix.SECCOMP_RET_ERRNO | uint32(err))
	b.load(0)
}

// members are the system calls of a set such as @system-service, as systemd itself has them.
func members(t testing.TB, name string) []string {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	var list []string
	for line := range strings.Lines(run(t, command(t, "systemd-analyze", "syscall-filter", name))) {
		line = strings.TrimSpace(line)
		if line == name || line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		list = append(list, members(t, line)...)
	}
	if len(list) == 0 {
		t.Fatalf("systemd has no system calls in %s", name)
	}
	return list
}

var definition = regexp.MustCompile(`(?m)^#define __NR_(\w+)\s+(\d+)`)

// callNumbers reads the numbers of the system calls from the kernel's headers.
func callNumbers(t testing.TB) map[string]uint32 {
	t.Helper()
	files := map[string]string{
		"amd64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "arm64": "/usr/include/asm-generic/unistd.h",
	}
	text, err := os.ReadFile(files[runtime.GOARCH])
	if err != nil {
		leaveOut(t, "the numbers of the system calls are not here: scripts/install-nfpm installs the kernel's headers")
	}
	numbers := map[string]uint32{}
	for _, m := range definition.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseUint(string(bytes.TrimSpace(m[2])), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		numbers[string(m[1])] = uint32(n)
	}
	return numbers
}

func auditArch(t testing.TB) uint32 {
	t.Helper()
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	t.Fatalf("the sandbox does not know the machine %s", runtime.GOARCH)
	return 0
}

// probe tries what the unit refuses and says what came of it: "" where it was possible.
func probe() map[string]string {
	said := map[string]string{}
	try := func(what string, f func() error) {
		if err := f(); err != nil {
			said[what] = err.Error()
		} else {
			said[what] = ""
		}
	}
	write := func(path string) func() error {
		return func() error { return os.WriteFile(path, nil, 0o600) }
	}
	try("write to /usr", write("/usr/docent-probe"))
	try("write to /etc/docent", write("/etc/docent/probe"))
	try("write to /var/log", write("/var/log/docent-probe"))
	try("write to /proc/sys", write("/proc/sys/kernel/hostname"))
	try("list /root", func() error { _, err := os.ReadDir("/root"); return err })
	try("read docent.env", func() error { _, err := os.ReadFile("/etc/docent/docent.env"); return err })
	try("see process 1", func() error { _, err := os.Stat("/proc/1"); return err })
	try("see the machine's temporary files", func() error {
		list, err := os.ReadDir("/tmp")
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("there are none")
		}
		return err
	})
	try("open a disk", func() error {
		list, err := filepath.Glob("/dev/[sv]d[a-z]*")
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	try("have capabilities", func() error {
		text, err := os.ReadFile("/proc/self/status")
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if err == nil && !bytes.Contains(text, []byte(set+":\t0000000000000000\n")) {
				return nil
			}
		}
		return fmt.Errorf("there are none: %v", err)
	})
	try("be root", func() error { return unix.Setuid(0) })
	try("gain privileges", func() error {
		if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); on == 1 {
			return fmt.Errorf("never: %v", err)
		}
		return nil
	})
	try("open a netlink socket", func() error { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return err })
	try("write and execute memory", func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	})
	try("make a namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) })
	try("mount", func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") })
	try("set the clock", func() error { return unix.Settimeofday(&unix.Timeval{Sec: 1}) })
	try("trace a process", func() error { return unix.PtraceAttach(os.Getppid()) })

	// and what it may
	try("+write to its data", write("/var/lib/docent/probe"))
	try("+make temporary files", write("/tmp/probe"))
	try("+run a program within limits", func() error {
		return exec.Command("/bin/sh", "-c", "ulimit -d 1000000 && ulimit -t 10 && ulimit -f 1000 && exec true").Run()
	})
	try("+keep a check apart", func() error { _, err := checks.Find("/var/lib/docent", 0); return err })
	try("+listen", func() error { l, err := net.Listen("tcp", "127.0.0.1:0"); _ = l; return err })
	_ = os.Remove("/var/lib/docent/probe")
	return said
}
