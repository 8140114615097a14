package config

import (
	"cmp"
	"os"
	"path/filepath"

	"docent/agent/check"
	"docent/agent/check/sandbox"
	"docent/api"
)

// nobody is the user without rights, by its number on every system.
const nobody = 65534

// sandboxAuto is the setting check_sandbox where a sandbox is found.
const sandboxAuto = "auto"

// CheckCommands are the commands as the configuration has them. They have their files in a folder of the server's, or of
// the system's where the server is root.
func (c Config) CheckCommands(folder string) *check.Commands {
	commands := &check.Commands{Projects: map[api.ProjectID]check.Command{}, Folder: folder}
	if os.Geteuid() == 0 {
		commands.User, commands.Folder = nobody, "" // who also cannot reach into the data directory
	}
	if c.CheckSandbox != sandboxAuto {
		commands.Sandbox = sandbox.Kind(c.CheckSandbox)
	}
	for _, p := range []string{c.Data, cmp.Or(c.BackupDir, filepath.Clean(c.Data)+"-backups"), c.TLSKey} {
		if abs, err := filepath.Abs(p); err == nil && p != "" {
			commands.Hidden = append(commands.Hidden, abs)
		}
	}
	for name, set := range c.Checks {
		commands.Projects[api.ProjectID(name)] = check.Command{
			Args: set.Command, Folder: set.Folder, Timeout: set.Timeout.Duration, Memory: set.Memory, Path: set.Path,
			Read: set.Read, Network: set.Network}
	}
	return commands
}
