package api

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"docent/internal/testing/need"
	"docent/tests/harness"
)

// TestGeneratedClientsCompile makes clients from the description that a server gives out, by the generators for Go that
// people use, with their default settings. openapi-typescript's is the TypeScript client. scripts/install-clients installs
// the generators and what their code imports: nothing is downloaded here.
func TestGeneratedClientsCompile(t *testing.T) {
	t.Parallel()
	tools, err := filepath.Abs(harness.ClientsDir + "/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	need.Installed(t, "generators of clients", "scripts/install-clients", tools+"/oapi-codegen", tools+"/ogen")
	server, _, _, _ := harness.NewChatServer(t, 40, 60)
	dir := t.TempDir()
	resp, err := http.Get(server.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	description, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("openapi.json", description)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(harness.ClientsDir, "generated-go", name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, text)
	}
	if err := os.Mkdir(filepath.Join(dir, "oapi"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, command := range [][]string{
		{tools + "/oapi-codegen", "-package", "oapi", "-o", "oapi/client.go", "openapi.json"},
		{tools + "/ogen", "--target", "ogen", "--package", "ogen", "openapi.json"},
		{"go", "build", "./..."},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(command[0]), err, out[max(0, len(out)-4000):])
		}
	}
}
