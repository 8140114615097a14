package forgetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

var gitPath, gitErr = exec.LookPath("git") // once: a test may take the search path away

// GitPath is the path of the system's git. Without it the test is skipped.
func GitPath(t testing.TB) string {
	t.Helper()
	if gitErr != nil {
		t.Skip("git is not installed: nobody to make, serve or judge a repository")
	}
	return gitPath
}

// Git runs the system's git, the judge over what was written. Without it there is no verdict, and the test is skipped.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(string(Raw(t, dir, args...)))
}

// Raw is Git with its output as it is.
func Raw(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(GitPath(t), append([]string{
		"-c", "user.name=A Person", "-c", "user.email=person@example.org", "-c", "init.defaultBranch=main", "-c",
		"safe.directory=*",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Fsck lets git check a repository, and clone it over git's protocol; a dangling object is no fault.
func Fsck(t testing.TB, dir string) {
	t.Helper()
	FsckOnly(t, dir)
	clone, err := os.MkdirTemp("", "docent-clone-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(clone)
	Git(t, clone, "clone", "-q", "--mirror", "file://"+dir, "docs.git")
}

// FsckOnly is Fsck without the clone, for tests that check thousands.
func FsckOnly(t testing.TB, dir string) {
	t.Helper()
	out := Git(t, dir, "fsck", "--strict", "--no-dangling")
	out, _, _ = strings.Cut(out, "notice: HEAD points to an unborn branch")
	if out != "" {
		t.Errorf("git fsck of %s: %s", filepath.Base(dir), out)
	}
}

// Write writes files below a folder.
func Write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

var bare struct {
	sync.Mutex
	made map[string]fs.FS
}

// Bare makes a bare repository with one commit on main for each set of files. One of the same content is made once, and
// copied from then on.
func Bare(t testing.TB, dir string, commits ...map[string]string) {
	t.Helper()
	GitPath(t)
	bare.Lock()
	defer bare.Unlock()
	key := fmt.Sprint(commits)
	if bare.made[key] == nil {
		work, first := t.TempDir(), filepath.Join(t.TempDir(), "docs.git")
		Git(t, work, "init", "-q", "-b", "main")
		for i, files := range commits {
			Write(t, work, files)
			Git(t, work, "add", "-A")
			Git(t, work, "commit", "-q", "-m", fmt.Sprint("Version ", i+1))
		}
		Git(t, work, "clone", "-q", "--bare", "--template=", ".", first)
		Git(t, first, "config", "receive.fsckObjects", "true")
		err := os.Mkdir(filepath.Join(first, "hooks"), 0o755)
		whole, readErr := inMemory(os.DirFS(first))
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if bare.made == nil {
			bare.made = map[string]fs.FS{}
		}
		bare.made[key] = whole
	}
	if err := os.CopyFS(dir, bare.made[key]); err != nil {
		t.Fatal(err)
	}
}

func inMemory(from fs.FS) (fs.FS, error) {
	out := fstest.MapFS{}
	return out, fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := &fstest.MapFile{Mode: info.Mode()}
		if !d.IsDir() {
			f.Data, err = fs.ReadFile(from, path)
		}
		out[path] = f
		return err
	})
}
