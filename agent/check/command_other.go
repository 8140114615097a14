//go:build !unix

package check

import "os/exec"

func alone(*exec.Cmd, int) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
