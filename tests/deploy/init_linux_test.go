package deploy

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"docent/docs"
	"docent/internal/race"
	"docent/tests/harness"
)

// atTerminal runs a command at a terminal of its own, types the answers, and returns what was shown.
func atTerminal(t *testing.T, cmd *exec.Cmd, answers ...string) (string, error) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	var shown bytes.Buffer
	buffer := make([]byte, 4096)
	asked := 0
	for {
		read, err := master.Read(buffer)
		shown.Write(buffer[:read])
		// A question ends with a colon, and nothing follows until it is answered.
		if asked < len(answers) && strings.HasSuffix(shown.String(), ": ") {
			if _, err := master.WriteString(answers[asked] + "\n"); err != nil {
				t.Fatal(err)
			}
			asked++
		}
		if err != nil { // the other end is closed
			break
		}
	}
	err = cmd.Wait()
	if asked != len(answers) {
		t.Errorf("%d of %d answers were asked for:\n%s", asked, len(answers), &shown)
	}
	return shown.String(), err
}

func initAtTerminal(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), harness.Self(t), append([]string{"init"}, args...)...)
	cmd.Env = harness.Environment(t)
	return cmd
}

// small is how much memory a small machine has for everything.
const small = 256 << 20

// TestFromTheBinaryToTheFirstAnswer answers the questions of `docent init` at a terminal, starts the server as it says,
// makes a key and asks: Docent's own documentation, on what a machine of 256 MB has.
func TestFromTheBinaryToTheFirstAnswer(t *testing.T) {
	harness.SkipShort(t)
	dir := t.TempDir()
	source, config, data := filepath.Join(dir, "docs"), filepath.Join(dir, "docent.toml"), filepath.Join(dir, "data")
	if err := os.CopyFS(source, docs.Files); err != nil {
		t.Fatal(err)
	}
	harness.Setenv(t, "GOMEMLIMIT", "192MiB") // three quarters of 256 MB, as a server sets it by itself there
	harness.Setenv(t, "OLLAMA_HOST", "127.0.0.1:1")
	address := harness.OwnAddress(t)
	began := time.Now()
	cmd := initAtTerminal(t, "--config", config, "--data", data)
	shown, err := atTerminal(t, cmd, source, "docs.example.com", address, "", "")
	if err != nil || !strings.Contains(shown, "docent serve --config "+config) || !strings.Contains(shown, "nothing is wrong") {
		t.Fatalf("%v\n%s", err, shown)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the memory of the command is not known")
	}
	set := time.Since(began)
	server := &harness.Server{T: t, Data: data, Listen: address, Flags: []string{"--config", config}, URL: "http://" + address, Log: new(harness.LockedBuffer)}
	server.Start()
	t.Cleanup(server.Kill)
	key := strings.TrimSpace(harness.Docent(t, "key", "create", "--config", config, "--project", "docs", "--kind",
		"assistant"))
	ask := exec.CommandContext(t.Context(), harness.Self(t), "ask", "--url", server.URL, "--domain", "docs.example.com", "How do I make a backup?")
	ask.Env = append(harness.Environment(t), "DOCENT_KEY="+key)
	out, err := ask.CombinedOutput()
	took := time.Since(began)
	if err != nil || !strings.Contains(string(out), "docent backup") {
		t.Errorf("%v\n%s", err, out)
	}
	if took > time.Minute {
		t.Errorf("the first answer came after %s", took)
	}
	peak := peakOf(t, server.Cmd.Process.Pid)
	t.Logf("init took %s with %d MB at most; the first answer came after %s, and the server had %d MB at most", set.Round(time.Millisecond),
		usage.Maxrss>>10, took.Round(time.Millisecond), peak>>20)
	if !race.Enabled && (peak > small || usage.Maxrss<<10 > small) {
		t.Errorf("that is more than a small machine has")
	}
}

// peakOf is the most memory that a process had.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("the system does not say")
	return 0
}

// An Ollama that runs here is offered; a key that is typed is neither shown nor in the configuration.
func TestInitOffersTheModelThatRunsHere(t *testing.T) {
	t.Parallel()
	ollama := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			_, _ = w.Write([]byte(`{"models":[{"name":"llama3.2:3b"}]}`))
		}
	}))
	defer ollama.Close()
	harness.Setenv(t, "OLLAMA_HOST", ollama.URL)
	dir := t.TempDir()
	source := harness.WriteFiles(t, harness.Harbour)
	config := filepath.Join(dir, "docent.toml")
	shown, err := atTerminal(t, initAtTerminal(t, "--config", config, "--data", filepath.Join(dir, "data"), "--source", source, "--listen", "127.0.0.1:8089"),
		"", "", "ollama", "")
	text, _ := os.ReadFile(config)
	if err != nil || !strings.Contains(shown, "it runs here, with llama3.2:3b") || !strings.Contains(string(text), `model = "llama3.2:3b"`) ||
		!strings.Contains(string(text), ollama.URL+"/v1") {
		t.Errorf("%v\n%s\n%s", err, shown, text)
	}
	const key = "sk-TypedAtATerminal"
	config = filepath.Join(dir, "other.toml")
	shown, err = atTerminal(t, initAtTerminal(t, "--config", config, "--data", filepath.Join(dir, "data2"), "--source", source, "--listen", "127.0.0.1:8089",
		"--domain", "d.example.com", "--public-url", ""), "openai", "http://127.0.0.1:1/v1", "small", key)
	text, _ = os.ReadFile(config)
	secrets, _ := os.ReadFile(filepath.Join(dir, "other.env"))
	if err != nil || strings.Contains(shown+string(text), key) || !strings.Contains(string(secrets), "MODEL_KEY="+key) ||
		!strings.Contains(shown, "set -a; . "+filepath.Join(dir, "other.env")) {
		t.Errorf("%v\n%s\n%s", err, shown, secrets)
	}
}
