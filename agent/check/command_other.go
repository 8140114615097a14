//go:build !unix

package check

import (
	"context"
	"os/exec"

	"docent/agent/check/sandbox"
)

// command is the program, of which the time alone is bounded.
func command(ctx context.Context, box sandbox.Box, env, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = box.Dir, env
	return cmd
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
