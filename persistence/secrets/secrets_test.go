package secrets_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"docent/persistence/secrets"
)

// TestASecretIsKeptForItsOwnerAlone keeps, reads and removes one, and looks at what lies on the disk.
func TestASecretIsKeptForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	s := secrets.Open(dir)
	if err := s.Sweep(func(string) bool { return false }); err != nil {
		t.Errorf("a folder that is not there yet: %v", err)
	}
	name, err := s.Keep("docs", " ghp_abc\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(name, "ghp") || !strings.HasPrefix(name, "docs.") {
		t.Errorf("the name is %q", name)
	}
	if got, err := s.Read(name); got != "ghp_abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, name): 0o600} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err) // Windows has no modes: its rights are the folder's
		}
	}
	second, err := s.Keep("docs", "-----BEGIN KEY-----\nabc\n-----END KEY-----")
	if err != nil || second == name {
		t.Fatalf("%q, %v", second, err)
	}
	if err := s.Sweep(func(n string) bool { return n == second }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(name); !errors.Is(err, secrets.ErrMissing) {
		t.Errorf("what nobody refers to: %v", err)
	}
	if err := errors.Join(s.Drop(second), s.Drop(second), s.Drop("")); err != nil {
		t.Error(err)
	}
	if _, err := s.Read(second); !errors.Is(err, secrets.ErrMissing) {
		t.Errorf("what was removed: %v", err)
	}
}

// TestNamesOfSecretsLeadNowhereElse asks for files beside the store, and keeps what is no secret.
func TestNamesOfSecretsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	outside := filepath.Join(data, "catalog.db")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := secrets.Open(filepath.Join(data, "secrets"))
	if _, err := s.Keep("docs", "x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../catalog.db", "..", ".", "", "/etc/passwd", "a/b", `..\catalog.db`, "a\x00b"} {
		if got, err := s.Read(name); !errors.Is(err, secrets.ErrMissing) {
			t.Errorf("%q gives %q, %v", name, got, err)
		}
		if err := s.Drop(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", " \n", "a\x00b", "a\x1bb", strings.Repeat("x", secrets.Most+1)} {
		if _, err := s.Keep("docs", text); err == nil || text != "" && strings.Contains(err.Error(), text[:1]+"\x00") {
			t.Errorf("%.5q: %v", text, err)
		}
	}
	if _, err := s.Keep("../docs", "x"); err == nil {
		t.Error("a project's name that leads elsewhere is taken")
	}
}
