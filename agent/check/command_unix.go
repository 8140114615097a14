//go:build unix && !linux

package check

import (
	"os/exec"
	"syscall"
)

// alone gives a command a process group of its own, which ends as one, and another user where one is given.
func alone(cmd *exec.Cmd, user int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if user > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	cmd.Cancel = func() error { killGroup(cmd); return nil }
}

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
