package harness

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A GitServer is a bare repository behind git over HTTP, which may be pushed to.
type GitServer struct{ URL, bare string }

// NewGitServer serves a repository with one commit. Around, where it is given, stands before git's own program.
func NewGitServer(t *testing.T, files map[string]string, around func(http.Handler) http.Handler) *GitServer {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(path,
			append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"},
				args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := os.Stat(filepath.Join(run(t.TempDir(), "--exec-path"), "git-http-backend")); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	work, root := WriteFiles(t, files), t.TempDir()
	g := &GitServer{bare: filepath.Join(root, "docs.git")}
	run(work, "init", "-q")
	run(work, "add", "-A")
	run(work, "commit", "-q", "-m", "import")
	run(work, "clone", "-q", "--bare", ".", g.bare)
	var handler http.Handler = &cgi.Handler{Path: path, Args: []string{"http-backend"}, Stderr: io.Discard, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=docent",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=http.receivepack",
		"GIT_CONFIG_VALUE_1=true",
	}}
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	g.URL = server.URL + "/docs.git"
	return g
}

// Git runs a command on the repository where it lies.
func (g *GitServer) Git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"--git-dir", g.bare}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
