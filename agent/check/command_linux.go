package check

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisorName is the program's name where it runs as the supervisor of a check: it starts the command, and when that
// ends, or when it is told to, it ends all that the command has started. A process that leaves the command's group and
// session is still the supervisor's child: it is the subreaper (prctl(2)) of its descendants, as an init process is of
// all.
const supervisorName = "docent-check-supervisor"

func init() {
	if len(os.Args) > 2 && os.Args[0] == supervisorName {
		os.Exit(supervise(os.Args[1], os.Args[2:]))
	}
}

// alone has a command run under a supervisor, as another user where one is given. It ends when the service does.
func alone(cmd *exec.Cmd, user int) {
	cmd.Args = append([]string{supervisorName, strconv.Itoa(user), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
}

// supervise runs a command and returns its exit status; that of a command that a signal ended is 128 and the signal, as
// in a shell.
func supervise(user string, args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return statusNotRun
	}
	uid, err := strconv.Atoi(user)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		return fail(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its status is in cmd.ProcessState
	}()
	select {
	case <-ended:
	case <-stop:
		_ = cmd.Process.Kill()
		<-ended
	}
	endChildren()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// endChildren ends what has become this process's child until there is nothing left: what a child leaves behind comes
// next.
func endChildren() {
	for {
		for _, pid := range childrenOf(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return // ECHILD: none is left
		}
	}
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat") // pid (name) state parent …
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			out = append(out, child)
		}
	}
	return out
}

// killGroup has nothing to do: the supervisor ends after all that it started.
func killGroup(*exec.Cmd) {}
