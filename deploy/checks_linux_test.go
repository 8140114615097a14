package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	checks "docent/agent/check/sandbox"
	"docent/internal/testing/need"
)

// The unit keeps the service from making namespaces: the sandbox of its checks is made of Landlock.
func TestTheServiceKeepsItsChecksApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it becomes another user")
	}
	need.Peer(t, "the packages", nfpmNeeds, "systemd-analyze")
	need.Peer(t, "the packages", nfpmNeeds, "setpriv")
	dir, err := os.MkdirTemp("/var/tmp", "checks")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checks.Try(checks.Landlock, dir, 65533); err != nil {
		t.Skip(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "deploy.test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65533, 65533); err != nil {
		t.Fatal(err)
	}
	l := launch{Args: []string{program}, Env: []string{findEnv + "=" + dir}, Umask: 0o077, Filter: filter(t, readUnit(t, service))}
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", "--no-new-privs", "--bounding-set", "-all",
		"--inh-caps", "-all", program)
	cmd.Env = append(os.Environ(), launchEnv+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), string(checks.Landlock)+" <nil>") {
		t.Errorf("%s, %v", out, err)
	}
}
