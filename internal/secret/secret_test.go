package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/internal/secret"
)

func environ(pairs map[string]string) secret.Environ {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func file(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASecretIsInAVariableAFileOrACredential(t *testing.T) {
	folder := t.TempDir()
	path := file(t, folder, "token.txt", "of a file\n")
	file(t, folder, "TOKEN", "of systemd\n")
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"a variable", map[string]string{"TOKEN": " of a variable ", "TOKEN_FILE": path}, "of a variable"},
		{"a file", map[string]string{"TOKEN": "", "TOKEN_FILE": path, "CREDENTIALS_DIRECTORY": folder}, "of a file"},
		{"a credential", map[string]string{"CREDENTIALS_DIRECTORY": folder}, "of systemd"},
	} {
		if got, err := secret.Read("TOKEN", environ(c.env)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestWhatIsWrongNamesTheVariableAndNoPath(t *testing.T) {
	folder := t.TempDir()
	for want, path := range map[string]string{
		"TOKEN_FILE names is empty":             file(t, folder, "empty", " \n"),
		"TOKEN_FILE names cannot be read":       filepath.Join(folder, "nothing"),
		"TOKEN_FILE names is too large":         file(t, folder, "large", strings.Repeat("x", secret.Most+1)),
		"TOKEN_FILE names cannot be read: is a": folder,
	} {
		_, err := secret.Read("TOKEN", environ(map[string]string{"TOKEN_FILE": path}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), folder) {
			t.Errorf("%v, wanted %s", err, want)
		}
	}
	if _, err := secret.Read("TOKEN", environ(nil)); !errors.Is(err, secret.ErrMissing) || !strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("nothing is given: %v", err)
	}
	// A name that leads out of the folder of credentials names none.
	out := file(t, filepath.Dir(folder), "outside", "secret")
	defer os.Remove(out)
	if got, err := secret.Read("../outside", environ(map[string]string{"CREDENTIALS_DIRECTORY": folder})); err == nil {
		t.Errorf("read %q from outside of the folder of credentials", got)
	}
}

func TestASecretIsTheNewestThatCouldBeRead(t *testing.T) {
	path := file(t, t.TempDir(), "token", "first")
	s, err := secret.New("TOKEN", environ(map[string]string{"TOKEN_FILE": path}))
	if err != nil || s.Value() != "first" {
		t.Fatalf("%q, %v", s.Value(), err)
	}
	for _, step := range []struct{ text, want string }{{"", "first"}, {"second\n", "second"}} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.Value(); got != step.want {
			t.Errorf("with %q in the file it is %q, wanted %q", step.text, got, step.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := s.Value(); got != "second" {
		t.Errorf("without its file it is %q", got)
	}
	if got := (*secret.Secret)(nil).Value(); got != "" {
		t.Errorf("no secret is %q", got)
	}
}
