//go:build unix

package deploy

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"docent/cmd/docent/cli"
	"docent/tests/harness"
)

// unhealthy runs a health check that has to fail with status 1, and returns what it says.
func unhealthy(t *testing.T, args ...string) string {
	t.Helper()
	out, err := harness.TryDocent(t, append([]string{"health"}, args...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed {
		t.Fatalf("docent health %v: %v\n%s", args, err, out)
	}
	return out + err.Error()
}

func TestAHealthCheckEndsAsTheServerFares(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if said := unhealthy(t, "--data", data); !strings.Contains(said, "no server has the data directory "+data) {
		t.Errorf("without a server: %s", said)
	}
	server := harness.NewServer(t, data, "--log-level", "debug")
	// Where the server has to be well the check waits for long: without being told it gives up after five seconds, for which a
	// machine may stand still.
	if out := harness.Docent(t, "health", "--data", data, "--timeout", "1m"); out != server.URL+": healthy\n" {
		t.Errorf("it says %q", out)
	}
	if out := harness.Docent(t, "health", "--data", data, "--live", "--timeout", "1m"); out != server.URL+": healthy\n" {
		t.Errorf("it says %q", out)
	}
	for line := range strings.Lines(server.Log.String()) { // a check every few seconds does not fill the log
		if strings.Contains(line, "command=address") && !strings.Contains(line, "level=DEBUG") {
			t.Errorf("the log has %q", line)
		}
	}

	// A process that is there and does not answer.
	if err := server.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if said := unhealthy(t, "--data", data, "--timeout", "300ms"); !strings.Contains(said, "no answer within 300ms") {
		t.Errorf("of a server that is stopped: %s", said)
	}
	if err := server.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.Docent(t, "health", "--data", data, "--timeout", "1m")
	server.Kill()
	if said := unhealthy(t, "--data", data); !strings.Contains(said, "no server") {
		t.Errorf("after a kill: %s", said)
	}
	if _, err := harness.TryDocent(t, "health", "--timeout", "0s"); err == nil {
		t.Error("no time at all is taken")
	}
}
