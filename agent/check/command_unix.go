//go:build unix && !linux

package check

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"docent/agent/check/sandbox"
)

// command is the program with the bounds that a shell can set. It has a process group of its own, which ends as one, and
// another user if one is given. The shell becomes the command: its words are arguments, never text of a script.
func command(ctx context.Context, box sandbox.Box, env, args []string) *exec.Cmd {
	script := fmt.Sprintf("ulimit -c 0; ulimit -d %d && ulimit -t %d && ulimit -f %d || exit %d; exec \"$@\"",
		box.Memory>>10, int64(box.Time/time.Second)+1, box.File>>9, sandbox.StatusNotRun)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, "check"}, args...)...)
	cmd.Dir, cmd.Env = box.Dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if box.User > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(box.User), Gid: uint32(box.User)}
	}
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	return cmd
}

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
