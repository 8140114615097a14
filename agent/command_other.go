//go:build !unix

package agent

import "os/exec"

func alone(*exec.Cmd, int) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
