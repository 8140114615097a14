package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docent/agent/check/sandbox"
	"docent/agent/say"
	"docent/agent/workspace"
	"docent/api"
)

// A Command is a program of the operator's that looks at a result: the site's build, or a prose linter. It is content
// when it ends with status 0; with another one, what it printed is the complaint.
type Command struct {
	Args    []string
	Folder  string        // of the repository, that it runs in; the root if empty
	Timeout time.Duration // 5 min
	Memory  int64         // bytes that it and what it starts may hold together; 2 GiB
	Tasks   int           // threads of all its processes at once; 1024
	Path    string        // PATH: where it and what it starts are looked for
	Read    []string      // folders and files of the machine that it may read beyond the system's programs
	Network bool          // it may reach what the machine reaches
}

const (
	defaultPath    = "/usr/local/bin:/usr/bin:/bin"
	maxComplaint   = 64 << 10
	maxScratch     = 1 << 30 // bytes of a checkout, and of any file that a command writes
	maxDisk        = 4 << 30 // bytes that may go from the disk while a command runs
	checksAtATime  = 2
	checkLeftovers = 5 * time.Second // that ending a command, and what it left behind, may take
)

// Commands are the commands of projects. Each run has a folder of its own with nothing but the repository's files, an
// environment with nothing of the service's, a sandbox that shows it the system's programs besides, and an end: its
// time, memory, processes, disk and output are bounded, and what it has started is killed with it.
type Commands struct {
	Folder   string // for scratch folders; default the system's for temporary files
	User     int    // id of the user that commands run as, if the service runs as root; its own if zero
	Projects map[api.ProjectID]Command
	Hidden   []string     // files and folders that no command may see
	Sandbox  sandbox.Kind // that they run in; the first that can be had if empty

	once  sync.Once
	turns chan struct{}
	mu    sync.Mutex
	found sandbox.Kind
}

var _ Checks = (*Commands)(nil)

// Check writes the files into a folder and runs the project's command in it.
func (c *Commands) Check(ctx context.Context, project api.Project, files Files) (string, bool, error) {
	cmd, ok := c.Projects[project.ID]
	if !ok || len(cmd.Args) == 0 {
		return "", false, nil
	}
	c.once.Do(func() { c.turns = make(chan struct{}, checksAtATime) })
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return "", true, ctx.Err()
	}
	if c.Folder != "" {
		if err := os.MkdirAll(c.Folder, 0o700); err != nil {
			return "", true, fmt.Errorf("make the folder of checks: %w", err)
		}
	}
	kind, err := c.Kind()
	if err != nil {
		return "", true, fmt.Errorf("%w. The server's operator can mend that, or set check_sandbox = \"none\"", err)
	}
	scratch, err := os.MkdirTemp(c.Folder, "docent-check-")
	if err != nil {
		return "", true, fmt.Errorf("make a scratch folder: %w", err)
	}
	defer removeAll(scratch)
	for _, d := range append(sandbox.Folders(), "repository") {
		if err := os.Mkdir(filepath.Join(scratch, d), 0o700); err != nil {
			return "", true, fmt.Errorf("make a scratch folder: %w", err)
		}
	}
	if err := checkout(ctx, filepath.Join(scratch, "repository"), files); err != nil {
		return "", true, fmt.Errorf("write the files to a scratch folder: %w", err)
	}
	if c.User > 0 {
		if err := give(scratch, c.User); err != nil {
			return "", true, fmt.Errorf("give the scratch folder to user %d: %w", c.User, err)
		}
	}
	complaint, err := cmd.run(ctx, sandbox.Box{Kind: kind, Work: scratch, User: c.User, Hidden: c.Hidden})
	return strings.ReplaceAll(complaint, filepath.Join(scratch, "repository")+"/", ""), true, err
}

// Kind is the sandbox that commands run in, or why they are not run. That there is none is found out again each time: it
// may have been mended.
func (c *Commands) Kind() (sandbox.Kind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = cmp.Or(c.found, c.Sandbox)
	if c.found != "" {
		return c.found, nil
	}
	if c.Folder != "" {
		if err := os.MkdirAll(c.Folder, 0o700); err != nil {
			return "", fmt.Errorf("make the folder of checks: %w", err)
		}
	}
	found, err := sandbox.Find(c.Folder, c.User)
	if err != nil {
		return "", err
	}
	c.found = found
	return found, nil
}

// Blind says what a project's command needs and would not see, or must not see; nil if nothing is known to be wrong.
func (c *Commands) Blind(project api.ProjectID) error {
	cmd := c.Projects[project]
	box := sandbox.Box{Kind: c.Sandbox, Hidden: c.Hidden, Read: cmd.Read, Network: cmd.Network}
	if err := box.Problem(); err != nil || c.Sandbox == sandbox.None {
		return err
	}
	if program := cmd.Args[0]; filepath.IsAbs(program) && !box.Sees(program) {
		return fmt.Errorf("the sandbox does not show %s", program)
	}
	for _, dir := range filepath.SplitList(cmd.Path) {
		if !box.Sees(dir) {
			return fmt.Errorf("the sandbox does not show %s, which is in path", dir)
		}
	}
	return nil
}

// give makes all of a folder a user's own.
func give(dir string, user int) error {
	return filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, user, user)
	})
}

// removeAll removes a folder, even if a command has taken its own rights to it.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// checkout writes files below a folder, and nowhere else whatever they are called.
func checkout(ctx context.Context, dir string, files Files) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var size int64
	for _, f := range files.List() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if workspace.CleanPath(f.Path) != nil {
			continue // no path of this system, or git's own
		}
		if size += f.Size; size > maxScratch {
			return fmt.Errorf("the repository has more than %d bytes", maxScratch)
		}
		content, err := files.Read(f.Path)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(f.Path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs the command in its scratch folder.
func (c Command) run(ctx context.Context, box sandbox.Box) (string, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Minute
	}
	memory := c.Memory
	if memory <= 0 {
		memory = 2 << 30
	}
	tasks := c.Tasks
	if tasks <= 0 {
		tasks = 1024
	}
	where := cmp.Or(c.Path, defaultPath)
	dir := filepath.Join(box.Work, "repository")
	if c.Folder != "" {
		if workspace.CleanPath(c.Folder) != nil {
			return "", fmt.Errorf("the folder %s of the check is no path within the repository", say.Quote(c.Folder))
		}
		dir = filepath.Join(dir, filepath.FromSlash(c.Folder))
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("the folder of the check: %w", err)
		}
	}
	box.Dir, box.Read, box.Network = dir, c.Read, c.Network
	box.Memory, box.Tasks, box.Time, box.File, box.Disk = memory, tasks, timeout, maxScratch, maxDisk
	if err := box.Problem(); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := command(limited, box, []string{
		"PATH=" + where, "HOME=" + filepath.Join(box.Work, "home"), "TMPDIR=" + filepath.Join(box.Work, "tmp"), "PWD=" + dir,
		"LANG=C.UTF-8", "CI=1", "NO_COLOR=1", "GIT_CONFIG_NOSYSTEM=1", // which may hold tokens
	}, c.Args)
	var out capped
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = checkLeftovers
	err := cmd.Run()
	if cmd.Process != nil {
		killGroup(cmd) // what it left running
	}
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return fmt.Sprintf("%s\n(it did not end within %v)", out.String(), timeout), nil
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return "", nil
	case errors.As(err, &status) && status.ExitCode() > 128: // as a shell says it of a command that a signal ended
		return fmt.Sprintf("%s\n(it was ended: signal %d)", out.String(), status.ExitCode()-128), nil
	case errors.As(err, &status) && status.ExitCode() < 0:
		return fmt.Sprintf("%s\n(it was ended: %v)", out.String(), status), nil
	case errors.As(err, &status) && (status.ExitCode() < sandbox.StatusNotRun || status.ExitCode() == 128):
		return fmt.Sprintf("%s\n(%v)", out.String(), status), nil
	}
	return "", &NotRunError{Program: c.Args[0], Output: out.String(), Err: err}
}

// A NotRunError says that a command could not be started, or that it says so of itself.
type NotRunError struct {
	Program string
	Output  string // which may be the command's own
	Err     error
}

func (e *NotRunError) Error() string {
	return fmt.Sprintf("start %s: %v: %s", say.Quote(e.Program), e.Err, say.OneLine(e.Output, 300))
}

func (e *NotRunError) Unwrap() error { return e.Err }

// Fails says of a project's own check that it does; what it printed comes after.
const Fails = "the project's own check fails"

// capped keeps the beginning and the end of what is written.
type capped struct {
	mu   sync.Mutex
	head bytes.Buffer
	tail []byte
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if room := maxComplaint/2 - c.head.Len(); room > 0 {
		k := min(room, len(p))
		c.head.Write(p[:k])
		p = p[k:]
	}
	c.tail = append(c.tail, p...)
	if over := len(c.tail) - maxComplaint/2; over > 0 {
		c.left += over
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	return n, nil
}

func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.head.String()
	if c.left > 0 {
		s += fmt.Sprintf("\n[%d bytes left out]\n", c.left)
	}
	return strings.ToValidUTF8(s+string(c.tail), "�")
}

// Checks runs the command that a project's operator has set to look at a result, on all files of the repository.
type Checks interface {
	// Check gives what the command says against the files; "" if it is content. It is not there (nil error, ok false)
	// for projects without one. An error means that it could not be run.
	Check(ctx context.Context, project api.Project, files Files) (complaint string, ok bool, err error)
}

// Files are the files of a repository, to be written to where a command can see them.
type Files interface {
	List() []api.File
	Read(path string) ([]byte, error)
}

// overlaid is the repository with the edits.
type overlaid struct{ ws *workspace.Workspace }

func (o overlaid) List() []api.File {
	var out []api.File
	for _, p := range o.ws.List() {
		out = append(out, api.File{Path: p, Size: o.ws.Size(p)})
	}
	return out
}

func (o overlaid) Read(p string) ([]byte, error) { return o.ws.Raw(p) }

// RunChecks runs the operator's command. What it says against the pages as they were before is no fault of the edits.
func RunChecks(ctx context.Context, checks Checks, project api.Project, ws *workspace.Workspace) (complaint,
	passed string, err error) {
	says, ok, err := checks.Check(ctx, project, overlaid{ws})
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil:
		return "", "", fmt.Errorf("run the project's check: %w", err)
	case !ok:
		return "", "", nil
	case says == "":
		return "", "the project's own check has passed", nil
	}
	if before, _, err := checks.Check(ctx, project, overlaid{ws.Unedited()}); err == nil && before != "" {
		return "", "the project's own check fails, and failed before the change as well", nil
	}
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	return Fails + ":\n" + say.Fenced(say.Middle(say.Visible(says), 6000)), "", nil
}
