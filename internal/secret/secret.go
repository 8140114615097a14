// Package secret reads the secrets that an operator gives the process under a name: in the environment variable NAME, in
// the file that NAME_FILE names (as containers have them), or in a credential of systemd's called NAME (LoadCredential=,
// https://systemd.io/CREDENTIALS). The first that is there and not empty counts.
//
// A secret is read each time that it is needed, so that a file can be changed while the server runs.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Most is how many bytes a secret may have: a private key has few thousand.
const Most = 64 << 10

// FileSuffix ends the name of the variable that names the file of a secret.
const FileSuffix = "_FILE"

// ErrMissing says that nothing is given under a name.
var ErrMissing = errors.New("is empty or not set")

// An Environ looks a variable up, as os.LookupEnv does.
type Environ func(name string) (string, bool)

// Read is the secret of a name, without white space around it. Its errors name the variable, and never what it holds.
func Read(name string, environ Environ) (string, error) {
	value := func(name string) string {
		if text, ok := environ(name); ok {
			return strings.TrimSpace(text)
		}
		return ""
	}
	if text := value(name); text != "" {
		return text, nil
	}
	if path := value(name + FileSuffix); path != "" {
		text, err := readFile(path)
		if err != nil {
			return "", fmt.Errorf("the file that %s%s names %w", name, FileSuffix, err)
		}
		return text, nil
	}
	if folder := value("CREDENTIALS_DIRECTORY"); folder != "" && filepath.IsLocal(name) {
		text, err := readFile(filepath.Join(folder, name))
		if !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return "", fmt.Errorf("the credential %s of systemd's %w", name, err)
			}
			return text, nil
		}
	}
	return "", fmt.Errorf("the environment variable %s %w", name, ErrMissing)
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", withoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, Most+1))
	switch text := strings.TrimSpace(string(data)); {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", withoutPath(err))
	case len(data) > Most:
		return "", errors.New("is too large to be a token or a key")
	case text == "":
		return "", errors.New("is empty")
	default:
		return text, nil
	}
}

// withoutPath is an error of a file without its path: the operator knows the variable, and readers of errors are not to
// know the machine.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// A Secret is read again whenever it is needed. While its file is being replaced, what it held before counts.
type Secret struct {
	name    string
	environ Environ

	mu   sync.Mutex
	last string
}

// New is the secret of a name, and what is wrong with it now; it can be used then as well, and may be mended later.
func New(name string, environ Environ) (*Secret, error) {
	s := &Secret{name: name, environ: environ}
	text, err := Read(name, environ)
	s.last = text
	return s, err
}

// Entered is a secret that is not given under a name.
func Entered(text string) *Secret {
	return &Secret{last: text, environ: func(string) (string, bool) { return "", false }}
}

// Value is the secret as it is given now, or as it was when it could be read last; empty if there is none, as for a
// nil Secret.
func (s *Secret) Value() string {
	if s == nil {
		return ""
	}
	text, err := Read(s.name, s.environ)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = text
	}
	return s.last
}
