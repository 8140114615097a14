package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The names of this program when it is its own helper.
const (
	// supervisorName starts all else, and ends all that was started when the command ends or when it is told to. What
	// leaves the command's group and session is still its child: it is the subreaper (prctl(2)) of its descendants.
	supervisorName = "docent-check-supervisor"
	// firstName is the first process of new namespaces, which end with it.
	firstName = "docent-check-first"
	// commandName gives up its rights and becomes the command.
	commandName = "docent-check-command"
)

func init() {
	if len(os.Args) < 2 {
		return
	}
	stage, ok := map[string]func(order) int{supervisorName: supervise, firstName: first, commandName: become}[os.Args[0]]
	if !ok {
		return
	}
	runtime.LockOSThread() // the parent that a child's end is tied to, and what is taken from it, is a thread
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		os.Exit(notRun(err))
	}
	o.args = os.Args[2:]
	os.Exit(stage(o))
}

// An order is what one stage tells the next.
type order struct {
	Box    Box
	Probe  bool // do all but run the command
	Server int  // who asked for it
	Beside int  // threads that the command's user has elsewhere: the kernel counts them with the command's
	args   []string
}

func notRun(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return StatusNotRun
}

// next is the command that the next stage is started with.
func (o order) next(name string) *exec.Cmd {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has strings and numbers
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{name, string(text)}, o.args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Command is a program in the box, which begins with the environment that it is given. When its context ends, all that
// was started does.
func (b Box) Command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	return order{Box: b, args: args}.supervised(ctx, env)
}

func (o order) supervised(ctx context.Context, env []string) *exec.Cmd {
	next := o.next(supervisorName)
	cmd := exec.CommandContext(ctx, next.Path)
	cmd.Args, cmd.Env = next.Args, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// supervise starts the command, or the first process of its namespaces.
func supervise(o order) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return notRun(err)
	}
	// When memory is short, this goes before the server does. Without /proc, it does not.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	user := o.Box.User
	if os.Geteuid() != 0 {
		user = 0
	}
	o.Server, o.Beside = os.Getppid(), tasksOf(cmp.Or(user, os.Geteuid()))
	if o.Box.Kind != Namespaces {
		cmd := o.next(commandName)
		cmd.SysProcAttr.Setsid = true
		if user > 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		}
		return o.attend(cmd, true)
	}
	cmd := o.next(firstName)
	uid, gid := os.Geteuid(), os.Getegid()
	if user > 0 {
		uid, gid = user, user
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS
	if !o.Box.Network {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN} // of the namespaces alone
	return o.attend(cmd, false)
}

// first makes the view of the machine that the command has, and starts it there.
func first(o order) int {
	// The command may neither look into this process nor stop it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return notRun(err)
	}
	if err := o.Box.furnish(); err != nil {
		return notRun(err)
	}
	cmd := o.next(commandName)
	cmd.SysProcAttr.Setsid = true
	return o.attend(cmd, true)
}

// attend runs the next stage to its end, and what it left behind. It returns its exit status; that of a command that a
// signal ended is 128 and the signal, as in a shell.
func (o order) attend(cmd *exec.Cmd, measures bool) int {
	stop, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(child, syscall.SIGCHLD)
	meter := newMeter(o.Box)
	if err := cmd.Start(); err != nil {
		return notRun(fmt.Errorf("start the next stage of the sandbox: %w", err))
	}
	pid := cmd.Process.Pid
	tick := time.NewTicker(meterInterval)
	defer tick.Stop()
	for {
		select {
		case <-child:
			status, ended := reap(pid)
			if !ended {
				continue
			}
			endChildren()
			if status.Signaled() {
				return 128 + int(status.Signal())
			}
			return status.ExitStatus()
		case <-stop:
			_ = syscall.Kill(pid, syscall.SIGKILL)
			stop = nil
		case <-tick.C:
			if !measures {
				continue
			}
			if excess := meter.excess(); excess != "" {
				fmt.Fprintf(os.Stderr, "\n(%s)\n", excess)
				measures = false
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// reap takes in the children that have ended, and reports whether that one is among them, and how.
func reap(pid int) (status syscall.WaitStatus, ended bool) {
	for {
		var s syscall.WaitStatus
		n, err := syscall.Wait4(-1, &s, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || n <= 0:
			return status, ended
		case n == pid:
			status, ended = s, true
		}
	}
}

// endChildren ends what has become this process's child until there is nothing left: what a child leaves behind comes
// next.
func endChildren() {
	if os.Getpid() == 1 {
		return // all that is in its namespaces ends with it
	}
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for how := 0; ; how = syscall.WNOHANG { // one at least, and all that have ended by then
			pid, err := syscall.Wait4(-1, nil, how, nil)
			if errors.Is(err, syscall.ECHILD) {
				return
			}
			if err == nil && pid == 0 {
				break
			}
		}
	}
}

// become gives up what the command shall not have, and becomes it.
func become(o order) int {
	b := o.Box
	if err := os.Chdir(b.Dir); err != nil {
		return notRun(err)
	}
	if b.Kind != None {
		if err := b.confine(); err != nil {
			return notRun(err)
		}
	}
	path := ""
	if !o.Probe {
		var err error
		if path, err = exec.LookPath(o.args[0]); err != nil && !errors.Is(err, exec.ErrDot) {
			fmt.Fprintln(os.Stderr, err)
			return StatusNotRun + 2
		}
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 10) // readers come first
	if err := o.limit(); err != nil {
		return notRun(err)
	}
	if b.Kind != None {
		n := 0
		if b.Kind == Landlock {
			n, _ = abi()
		}
		code, err := filterFor(b, n, os.Getppid(), o.Server)
		if err != nil {
			return notRun(err)
		}
		if err := install(code); err != nil {
			return notRun(err)
		}
	}
	if o.Probe {
		return 0
	}
	err := syscall.Exec(path, o.args, os.Environ())
	fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
	return StatusNotRun + 1
}

// confine takes this thread's rights, and with Landlock the paths that the box does not show.
func (b Box) confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Without namespaces there are no ambient rights, and old kernels do not know of them.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil || has != none { // a service's own filter may refuse what is not needed
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
	if b.Kind != Landlock {
		return nil
	}
	n, err := abi()
	if err != nil {
		return err
	}
	return landlock(b, n)
}

// limit sets what each process may use.
func (o order) limit() error {
	b := o.Box
	// More than it is ended for, with the threads of the helpers: at the limit itself it would only wait.
	tasks := b.Tasks + b.Tasks/8 + 64 + o.Beside
	seconds := uint64(b.Time/time.Second) + 1
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
	}{
		{"core", unix.RLIMIT_CORE, 0}, {"time", unix.RLIMIT_CPU, seconds}, {"file size", unix.RLIMIT_FSIZE, uint64(b.File)},
		{"processes", unix.RLIMIT_NPROC, uint64(tasks)}, {"memory", unix.RLIMIT_DATA, uint64(b.Memory)},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("the limit of %s: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("the limit of %s: %w", l.name, err)
		}
	}
	return nil
}

// Find reports how programs can be kept apart here, by doing so in a folder of its own below one that is given, as user
// if the caller is root. A kind that needs less of the machine is tried if another one cannot be had.
func Find(folder string, user int) (Kind, error) { return find(folder, user, Try) }

func find(folder string, user int, try func(Kind, string, int) error) (Kind, error) {
	probe, err := os.MkdirTemp(folder, "docent-check-")
	if err != nil {
		return "", fmt.Errorf("make a folder for a sandbox: %w", err)
	}
	_ = os.Remove(probe)
	var missing MissingError
	for _, kind := range []Kind{Namespaces, Landlock} {
		err := try(kind, folder, user)
		if err == nil {
			return kind, nil
		}
		missing.Why = append(missing.Why, fmt.Sprintf("%s: %v", kind, err))
	}
	return "", &missing
}

// Try keeps nothing apart in a box of a kind.
func Try(kind Kind, folder string, user int) error {
	work, err := os.MkdirTemp(folder, "docent-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if os.Geteuid() == 0 && user > 0 {
		if err := os.Chown(work, user, user); err != nil {
			return err
		}
	}
	for _, name := range Folders() {
		path := filepath.Join(work, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if os.Geteuid() == 0 && user > 0 {
			if err := os.Chown(path, user, user); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := Box{Kind: kind, Work: work, Dir: work, User: user, Memory: 1 << 30, Tasks: 1 << 10, Time: time.Minute, File: 1 << 20,
		Disk: 1 << 40}
	out, err := order{Box: b, Probe: true}.supervised(ctx, []string{"LANG=C.UTF-8"}).CombinedOutput()
	if err != nil && len(out) > 0 {
		err = errors.New(string(out[:min(len(out), 500)]))
	}
	return err
}
