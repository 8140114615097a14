// Package secrets keeps what people enter on a page and only the server may use: the token of a code host, the secret of
// a webhook. Each lies in a file of its own, which only the owner of the data directory can read, under a name that says
// nothing of it. Its users get the name; the text itself is in no database, log, listing or backup. Nodes
// that share a database keep them there, encrypted with a key that the database does not have.
//
// A secret is never changed: a new one gets a new name, so that its users change over at the moment at which
// the reference is stored, and the old one is there until then.
package secrets

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"docent/api"
	"docent/internal/disk"
	"docent/persistence/datadir"
)

// Most is how many bytes a secret may have: a private key has few thousand.
const Most = 64 << 10

// ErrMissing says that a secret is not there: the data directory was restored from a backup, which has none.
var ErrMissing = errors.New("the stored secret is not there")

// A Store is a folder of secrets. It is made when the first one is kept.
type Store struct {
	dir   string
	vault *vault // in place of the folder; nil if a node is alone
}

// Open is the store in a folder.
func Open(dir string) *Store { return &Store{dir: dir} }

// Check says what is wrong with a text as a secret, in words for the field it was entered in; empty if nothing is. The
// words do not repeat it.
func Check(text string) string {
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "is empty"
	case len(text) > Most:
		return "is too long to be a token or a key"
	case strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\r' }):
		return "has characters that no token or key has: paste it again"
	}
	return ""
}

// Keep stores a secret of a project and says under which name. It is on disk when Keep returns.
func (s *Store) Keep(project api.ProjectID, text string) (name string, err error) {
	if problem := Check(text); problem != "" {
		return "", errors.New("the secret " + problem)
	}
	name = string(project) + "." + strings.ToLower(rand.Text()[:16])
	if !api.ValidSecretFile(name) {
		return "", fmt.Errorf("keep a secret of %q: that is no project's name", project)
	}
	text = strings.TrimSpace(text)
	if s.vault != nil {
		return name, s.vault.put(name, text)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of secrets: %w", err)
	}
	if err := datadir.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("store a secret: %w", err)
	}
	return name, disk.SyncFolder(s.dir)
}

// Read is the secret of a name, or ErrMissing.
func (s *Store) Read(name string) (string, error) {
	if !api.ValidSecretFile(name) {
		return "", ErrMissing
	}
	if s.vault != nil {
		return s.vault.get(name)
	}
	return s.file(name)
}

// file is the secret of a file.
func (s *Store) file(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrMissing
	case err != nil:
		return "", fmt.Errorf("read a stored secret: %w", err)
	case len(text) == 0 || len(text) > Most:
		return "", fmt.Errorf("%w: its file is not one that was written here", ErrMissing)
	}
	return string(text), nil
}

// Drop removes a secret; one that is not there is removed already, and so is one without a name.
func (s *Store) Drop(name string) error {
	if !api.ValidSecretFile(name) {
		return nil
	}
	if s.vault != nil {
		if err := s.vault.remove(name); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stored secret: %w", err)
	}
	return nil
}

// Sweep removes what nobody refers to: a crash between storing a secret and storing its name leaves one.
func (s *Store) Sweep(used func(name string) bool) error {
	if s.vault != nil {
		if err := s.vault.sweep(used); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && !used(e.Name()) {
			errs = append(errs, os.Remove(filepath.Join(s.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
