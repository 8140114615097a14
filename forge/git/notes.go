package git

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge/failure"
)

// note reads a small file of the repository whole; nil if there is none.
func (s *Store) note(name string) ([]byte, error) {
	text, err := s.disk.readFile(filepath.Join(s.dir, filepath.FromSlash(name)))
	switch {
	case missing(err):
		return nil, nil
	case err != nil:
		return nil, Passing(err)
	}
	return text, nil
}

// Notes are the small files of a repository that belong to its references: which branch is the default one, where its
// history ends, what a salvage could not keep, and a write-back that is under way.
var Notes = []string{"HEAD", shallowFile, lostFile, intentFile}

// Note is one of Notes; empty if it does not exist.
func (s *Store) Note(name string) (string, error) {
	text, err := s.note(name)
	return string(text), err
}

// SetNote replaces one of Notes; with an empty text it is removed.
func (s *Store) SetNote(name, text string) error {
	have, err := s.note(name)
	switch {
	case err != nil || string(have) == text:
		return err
	case text != "":
		return s.disk.replaceFile(filepath.Join(s.dir, name), []byte(text))
	}
	return s.disk.remove(filepath.Join(s.dir, name))
}

const shallowFile = "shallow"

// copyFile says which version of a repository that several nodes have this one is a copy of.
const copyFile = "docent-copy"

// CopyOf is what SetCopyOf noted; empty if it was never called.
func (s *Store) CopyOf() (string, error) { return s.Note(copyFile) }

// SetCopyOf notes what this repository is a copy of. It is not synced: after a crash it may be empty, and then all is
// copied again.
func (s *Store) SetCopyOf(version string) error {
	name := filepath.Join(s.dir, copyFile)
	if err := s.disk.at("write", name); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", []byte(version), 0o600); err != nil {
		return unwritten(err)
	}
	return unwritten(s.disk.Rename(name+".new", name))
}

// lostFile names the references that a salvage could not keep, one in a line, with what there is to say.
const lostFile = "docent-lost"

// Lost are the references that salvages could not keep.
func (s *Store) Lost() (map[string]string, error) {
	text, err := s.note(lostFile)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, why, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = why
		}
	}
	return out, nil
}

// Found strikes a reference off the list of those that were lost.
func (s *Store) Found(name string) error {
	lost, err := s.Lost()
	if err != nil || lost[name] == "" {
		return err
	}
	delete(lost, name)
	if len(lost) == 0 {
		return s.disk.remove(filepath.Join(s.dir, lostFile))
	}
	return s.setLost(lost)
}

func (s *Store) setLost(lost map[string]string) error {
	if len(lost) == 0 {
		return nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		b.WriteString(name + " " + lost[name] + "\n")
	}
	return s.disk.replaceFile(filepath.Join(s.dir, lostFile), []byte(b.String()))
}

// damageFile says what damage was met. It is gone with the repository, or once the damage was looked for and not found.
const damageFile = "docent-damaged"

// NoteDamage notes in the repository of a folder that it is damaged.
func NoteDamage(dir string, why error, on *Disk) error {
	if _, err := os.Lstat(dir); err != nil {
		return nil // it is not there, which says enough
	}
	return on.replaceFile(filepath.Join(dir, damageFile), []byte(failure.Line(why.Error(), 2000)+"\n"))
}

// Damage is what NoteDamage noted; empty if there was none.
func (s *Store) Damage() (string, error) {
	text, err := s.Note(damageFile)
	return strings.TrimSpace(text), err
}

// NoDamage strikes out what NoteDamage noted.
func (s *Store) NoDamage() error { return s.disk.remove(s.file(damageFile)) }

// A merge reaches a source folder after the branch has moved. The intent is on disk before: were it lost in between,
// the next import would take the folder's old files for new edits and undo the merge.
const intentFile = "docent-writeback"

// Intent reads what is still to be written back; zero if nothing is.
func (s *Store) Intent() (from, to plumbing.Hash, err error) {
	b, err := s.note(intentFile)
	if b == nil {
		return from, to, err
	}
	a, z, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if !plumbing.IsHash(a) || !plumbing.IsHash(z) {
		return from, to, fmt.Errorf("%w: %s is not understood", ErrDamaged, intentFile)
	}
	return plumbing.NewHash(a), plumbing.NewHash(z), nil
}

// DropIntent says that the write-back is done, or not to be.
func (s *Store) DropIntent() error {
	if err := s.disk.remove(filepath.Join(s.dir, intentFile)); err != nil {
		return err
	}
	return s.disk.SyncFolder(s.dir)
}

// Intend notes what is to be written back.
func (s *Store) Intend(from, to plumbing.Hash) error {
	return s.disk.replaceFile(filepath.Join(s.dir, intentFile), []byte(from.String()+" "+to.String()+"\n"))
}
