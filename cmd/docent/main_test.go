package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"docent/api"
	"docent/api/client"
	"docent/bench/lab"
	"docent/cmd/docent/cli"
	"docent/cmd/docent/commands"
	"docent/cmd/docent/config"
	"docent/cmd/docent/operator"
	"docent/persistence/datadir"
)

// runAsDocent makes the test binary the program itself: tests start it, kill it and start it again.
const runAsDocent = "DOCENT_TEST_RUN_MAIN"

// raceOptions is the variable that the race detector takes its options from.
const raceOptions = "GORACE"

func TestMain(m *testing.M) {
	// A command that a test runs in its own process starts its workers from the test binary.
	if worker := len(os.Args) > 1 && os.Args[1] == "cell"; worker || os.Getenv(runAsDocent) != "" {
		var prog cli.Program
		if file := os.Getenv(clockFile); file != "" {
			prog.Now = settableClock(file)
		}
		if os.Getenv(crashOnMark) != "" {
			prog.BeforeIndexing = crashWhereMarked
		}
		commands.Main(prog) // what it starts runs as the program too
		return
	}
	if os.Getenv(runAsProvider) != "" {
		playProvider()
		return
	}
	if os.Getenv(raceOptions) == "" {
		// A program that was built with the race detector waits a second at its end by default.
		_ = os.Setenv(raceOptions, "atexit_sleep_ms=10")
	}
	programs := map[string]func(){"docent": func() { commands.Main(cli.Program{}) }, "model-provider": playProvider, "call": call}
	if _, script := programs[filepath.Base(os.Args[0])]; !script { // else the flags and the settings are the program's
		for _, pair := range os.Environ() { // a developer may have settings in it
			name, _, _ := strings.Cut(pair, "=")
			if strings.HasPrefix(name, config.EnvPrefix) && !strings.HasPrefix(name, config.EnvPrefix+"TEST_") {
				_ = os.Unsetenv(name)
			}
		}
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		if !given {
			// The tests mostly wait: for servers that start, for answers that come at a given speed, for other processes.
			_ = flag.Set("test.parallel", strconv.Itoa(max(serversAtOnce, runtime.GOMAXPROCS(0))))
		}
	}
	testscript.Main(m, programs)
}

// serversAtOnce bounds how many tests with a server run at the same time: more than there are processors, and few
// enough for each to get its share of a small machine.
const serversAtOnce = 6

// clockFile names a file that says by how much the program's clock is wrong.
const clockFile = "CLOCK_OF_DOCENT_TEST"

// settableClock is the time as the file has it, the last one that it had where it is being written. Like the time of a
// clock that is set, and unlike time.Now's, its differences show that it was.
func settableClock(file string) func() time.Time {
	var wrong atomic.Int64
	return func() time.Time {
		if text, err := os.ReadFile(file); err == nil {
			if d, err := time.ParseDuration(string(text)); err == nil {
				wrong.Store(int64(d))
			}
		}
		return time.Now().Add(time.Duration(wrong.Load())).Round(0)
	}
}

// docent runs one command and returns what it printed. It fails the test where the command fails.
func docent(t testing.TB, args ...string) string {
	t.Helper()
	out, err := tryDocent(t, args...)
	if err != nil {
		t.Fatalf("docent %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func tryDocent(t testing.TB, args ...string) (string, error) {
	t.Helper()
	// Later than any command takes on a machine that stands still now and then: it is there for one that hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	var err error
	if commandsHere[args[0]] && !hasEnvironment(t) {
		command := commands.New(cli.Program{})
		command.SetArgs(args)
		command.SetOut(&stdout)
		command.SetErr(&stderr)
		if err = command.ExecuteContext(ctx); err != nil {
			fmt.Fprintln(&stderr, "docent:", err)
		}
	} else {
		cmd := exec.CommandContext(ctx, self(t), args...)
		cmd.Env = docentEnvironment(t)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return stdout.String(), nil
}

// commandsHere are the commands that the tests run in their own process, which is quicker. The others serve, or start
// what does.
var commandsHere = map[string]bool{
	"project": true, "key": true, "index": true, "eval": true, "pull": true, "automation": true, "status": true,
	"thread": true,
	"backup": true, "journal": true, "catalog": true, "ask": true, "job": true, "config": true, "version": true,
	"doctor": true,
}

// docentEnvironment is this process's without the settings that a developer may have in it, and with what the test has
// set.
func docentEnvironment(t testing.TB) []string {
	env := []string{runAsDocent + "=1"}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, config.EnvPrefix) {
			env = append(env, pair)
		}
	}
	for _, own := range ownEnvironments(t) {
		for key, value := range own {
			env = append(env, key+"="+value)
		}
	}
	return env
}

// ownEnvironments are the variables that a test and those around it have set.
func ownEnvironments(t testing.TB) (list []map[string]string) {
	for name := t.Name(); ; {
		if own, ok := environments.Load(name); ok {
			list = append(list, own.(map[string]string))
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return list
		}
		name = name[:cut]
	}
}

func hasEnvironment(t testing.TB) bool { return len(ownEnvironments(t)) > 0 }

// environments are the variables of tests by their names.
var environments sync.Map

// setenv sets a variable for the programs that a test and its subtests start. Unlike t.Setenv it lets others run
// beside it.
func setenv(t testing.TB, key, value string) {
	t.Helper()
	own := map[string]string{}
	if before, ok := environments.Load(t.Name()); ok {
		maps.Copy(own, before.(map[string]string))
	} else {
		t.Cleanup(func() { environments.Delete(t.Name()) })
	}
	own[key] = value
	environments.Store(t.Name(), own)
}

// servers counts the addresses that were given out.
var servers atomic.Uint32

// ownAddress is a loopback address for a server that is stopped and started again. Where the system has more than one,
// each server gets one for itself: nobody else can take its port while it is down. The port is below those that the system
// gives out by itself, which somebody may take on all addresses, and above the last that browsers refuse, 10080
// (https://fetch.spec.whatwg.org/#port-blocking).
func ownAddress() (string, error) {
	if runtime.GOOS == "linux" {
		n, pid := servers.Add(1), os.Getpid()
		own := net.IPv4(127, byte(1+pid%250), byte(1+n/250%250), byte(1+n%250))
		if listener, err := net.Listen("tcp", net.JoinHostPort(own.String(), fmt.Sprint(10_100+n%10_000))); err == nil {
			defer listener.Close()
			return listener.Addr().String(), nil
		}
	}
	return lab.FreeAddress()
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A testServer is the program serving, as a process of its own.
type testServer struct {
	t      testing.TB
	data   string
	listen string
	flags  []string
	url    string
	cmd    *exec.Cmd
	log    *lockedBuffer
	ended  chan struct{} // closed when the process has ended

	via []string // a command that runs the program, with the program and its arguments behind it
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// leftOutWhenShort leaves a test out that starts servers: with -short three stories show that a server works.
func leftOutWhenShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers; left out with -short")
	}
}

// newTestServer starts a server on a data directory and waits until it is ready.
func newTestServer(t testing.TB, data string, flags ...string) *testServer {
	t.Helper()
	leftOutWhenShort(t)
	address, err := ownAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, data: data, listen: address, flags: flags, url: "http://" + address, log: new(lockedBuffer)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	if err := s.tryStart(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testServer) tryStart() error {
	if err := s.launch(); err != nil {
		return err
	}
	return s.awaitReady()
}

// launch starts the process and does not wait until it is ready.
func (s *testServer) launch() error {
	args := slices.Concat(s.via, []string{self(s.t), datadir.Server, "--data", s.data, "--listen", s.listen}, s.flags)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = docentEnvironment(s.t)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(s.cmd)
	return nil
}

func (s *testServer) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err := lab.Get(ctx, s.url+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended (%v):\n%s", s.cmd.ProcessState, s.log)
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready:\n%s", s.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kill ends the server as a loss of power would, as far as a process can tell.
func (s *testServer) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// stop ends the server gently.
func (s *testServer) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		s.t.Fatalf("the server does not stop:\n%s", s.log)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server ended with status %d:\n%s", code, s.log)
	}
}

// A testProject is one documentation set with its keys.
type testProject struct{ id, domain, admin, assistant string }

func newTestProject(t testing.TB, data, id, source string, flags ...string) testProject {
	t.Helper()
	leftOutWhenShort(t)
	p := testProject{id: id, domain: id + ".example.com"}
	docent(t, append([]string{"project", "add", "--data", data, "--id", id, "--domain", p.domain, "--source", source,
		"--json"}, flags...)...)
	p.admin = newTestKey(t, data, id, "admin")
	p.assistant = newTestKey(t, data, id, "assistant")
	return p
}

func newTestKey(t testing.TB, data, project, kind string, flags ...string) string {
	t.Helper()
	var made operator.KeyMade
	out := docent(t, append([]string{"key", "create", "--data", data, "--project", project, "--kind", kind, "--json"},
		flags...)...)
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return made.Key
}

// writeFiles writes a small documentation folder and returns its path.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (s *testServer) client(key string) *client.Client {
	return &client.Client{Base: s.url, Key: key, HTTP: &http.Client{Timeout: 5 * time.Minute, Transport: patient{}}}
}

// patient comes back where the server has no room for a request, as it says: on a busy machine it turns some away.
type patient struct{}

func (patient) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(text))
		if !bytes.Contains(text, []byte(api.ErrOverloaded.Error())) {
			return resp, nil // it is unavailable for another reason, or may have begun
		}
		wait, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		if err != nil {
			return resp, nil
		}
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(wait):
		}
		if req = req.Clone(req.Context()); req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}
