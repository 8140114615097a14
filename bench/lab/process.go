package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"docent/internal/background"
)

// The project that a server of the lab has.
const (
	ProjectID = "handbook"
	Domain    = "handbook.example.com"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second
)

// A Process runs this binary as a server, in a directory of its own. It is not for use by several goroutines.
type Process struct {
	Dir       string     // temporary: the data directory, the log, and what else the measurement keeps
	Config    string     // configuration file; none if empty
	Partition *Partition // the processors it may use; all if nil
	Env       []string   // of the server and of the commands; this process's if nil

	URL     string
	Admin   string // the project's secret key
	Readers string // its public key

	server *exec.Cmd
	ended  chan struct{} // closed when the server process has ended
}

// A Project is what adding one tells of it.
type Project struct {
	ID              string
	Pages, Sections int
}

// NewProcess makes the directory.
func NewProcess(name string) (*Process, error) {
	dir, err := os.MkdirTemp("", "docent-"+name+"-")
	return &Process{Dir: dir}, err
}

// Data is the data directory.
func (p *Process) Data() string { return filepath.Join(p.Dir, "data") }

// Ended is closed when the server process that was started last has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Serve runs this binary as the server and waits until it is ready. The port may be 0.
func (p *Process) Serve(ctx context.Context, listen string) error {
	if strings.HasSuffix(listen, ":0") {
		var err error
		if listen, err = FreeAddress(); err != nil {
			return err
		}
	}
	return p.launch(ctx, listen, "serve", "--data", p.Data(), "--listen", listen, "--config", p.Config)
}

// Restart kills the server and starts it again at the same address.
func (p *Process) Restart(ctx context.Context) error {
	p.Kill()
	return p.Serve(ctx, strings.TrimPrefix(p.URL, "http://"))
}

// launch runs this binary with some arguments and waits until it serves at the address.
func (p *Process) launch(ctx context.Context, listen string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	server := exec.Command(self, args...)
	server.Stdout, server.Stderr, server.Env = log, log, p.Env
	if err := p.Partition.start(server); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	ended := make(chan struct{})
	background.Go("bench/lab.launch", func() {
		_ = server.Wait()
		close(ended)
	})
	p.server, p.ended, p.URL = server, ended, "http://"+listen
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	for {
		if _, err := Get(ctx, p.URL+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return errors.New("the server did not start; its log:\n" + p.Log())
		case <-deadline.C:
			return fmt.Errorf("the server was not ready within %v; its log:\n%s", startTimeout, p.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Run runs one of the binary's own commands and reads its JSON into result.
func (p *Process) Run(ctx context.Context, result any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var stderr strings.Builder
	cmd.Stderr, cmd.Env = &stderr, p.Env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("docent %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return json.Unmarshal(out, result)
}

// MakeProject adds the one project and makes its keys.
func (p *Process) MakeProject(ctx context.Context, source string, flags ...string) (project Project, err error) {
	add := []string{"project", "add", "--data", p.Data(), "--config", p.Config, "--id", ProjectID, "--domain", Domain,
		"--source", source, "--site-url", "https://" + Domain, "--json"}
	if err := p.Run(ctx, &project, append(add, flags...)...); err != nil {
		return project, err
	}
	for kind, secret := range map[string]*string{"admin": &p.Admin, "assistant": &p.Readers} {
		var made struct{ Key string }
		err := p.Run(ctx, &made, "key", "create", "--data", p.Data(), "--config", p.Config, "--project", ProjectID,
			"--kind", kind, "--json")
		if err != nil {
			return project, err
		}
		*secret = made.Key
	}
	return project, nil
}

// Stop ends the server process and leaves its data.
func (p *Process) Stop() {
	if p.server == nil {
		return
	}
	_ = p.server.Process.Signal(os.Interrupt)
	select {
	case <-p.ended:
		p.server = nil
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// Kill ends the server process with SIGKILL.
func (p *Process) Kill() {
	if p.server != nil {
		_ = p.server.Process.Kill()
		<-p.ended
		p.server = nil
	}
}

// Close ends the server and removes the directory.
func (p *Process) Close() {
	p.Stop()
	os.RemoveAll(p.Dir)
}

func (p *Process) logFile() string { return filepath.Join(p.Dir, "server.log") }

// Log is what the server has logged.
func (p *Process) Log() string {
	text, _ := os.ReadFile(p.logFile())
	return string(text)
}

// Get reads a page that needs no key.
func Get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return string(text), err
}

// FreeAddress finds a loopback port that nobody listens on.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
