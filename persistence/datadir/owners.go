package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ownersOnly removes the rights of group and others from what Docent made in the data directory: earlier versions made
// folders that others could read. The mode of the directory itself is not changed.
//
// A folder is walked only if its own mode is wrong, and its mode is set last: a folder with the right mode is done.
func ownersOnly(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !docentMade(e.Name()) || info.Mode().Type() != 0 && !info.IsDir() || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := ownersOnlyBelow(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("take the rights of others away from %s: %w", e.Name(), err)
		}
	}
	return nil
}

// docentMade tells what Docent makes in its data directory. What else lies there is somebody else's.
func docentMade(name string) bool {
	switch name {
	case Repos, Index, Checks, SetAside, Reading, Secrets, Certs, Sources, lock, formatFile, OldControl, Backup, Backups:
		return true
	}
	for _, start := range []string{Catalog, Journal, "crash."} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}

func ownersOnlyBelow(name string) error {
	type found struct {
		path string
		mode fs.FileMode
	}
	var list []found
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			list = append(list, found{path, info.Mode().Perm() &^ 0o077})
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(list) {
		if err := os.Chmod(f.path, f.mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
