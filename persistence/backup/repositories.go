package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"docent/internal/background"
	"docent/internal/disk"
)

// A repositoryCopy is a copy of a bare repository that is in use. Objects are only added while the
// hub holds them, and before the references that name them: so references are read first, and are in the copy last.
type repositoryCopy struct {
	from, to string
	small    []smallFile
}

type smallFile struct {
	name string
	text []byte
	mode fs.FileMode
}

// write writes the file to a copy that nobody uses yet, and syncs it.
func (f smallFile) write(path string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode|0o200)
	if err != nil {
		return err
	}
	_, err = out.Write(f.text)
	return errors.Join(err, out.Sync(), out.Close())
}

// readRepositories reads all but the objects of the bare repositories.
func readRepositories(from, to string) (list []*repositoryCopy, err error) {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") { // one that is being made
			continue
		}
		r := &repositoryCopy{from: filepath.Join(from, e.Name()), to: filepath.Join(to, e.Name())}
		err := eachFile(r.from, func(name string, mode fs.FileMode) (bool, error) {
			switch {
			case name == "objects" || strings.HasSuffix(name, ".lock"):
				return false, nil
			case mode.IsDir():
				return true, os.MkdirAll(filepath.Join(r.to, name), 0o700)
			}
			text, err := os.ReadFile(filepath.Join(r.from, name))
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			r.small = append(r.small, smallFile{name, text, mode.Perm()})
			return false, err
		})
		if err != nil {
			return nil, fmt.Errorf("read the references of %s: %w", e.Name(), err)
		}
		list = append(list, r)
	}
	return list, err
}

// filesAtOnce is how many files of a repository are copied at the same time: each is synced.
const filesAtOnce = 8

func (r *repositoryCopy) copy(stopped context.Context) (files int, err error) {
	group, ctx := background.WithContext(stopped)
	group.SetLimit(filesAtOnce)
	folders := []string{filepath.Dir(r.to), r.to}
	err = eachFile(filepath.Join(r.from, "objects"), func(name string, mode fs.FileMode) (bool, error) {
		target := filepath.Join(r.to, "objects", name)
		if mode.IsDir() {
			folders = append(folders, target)
			return true, os.MkdirAll(target, 0o700)
		}
		files++
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := copyFile(filepath.Join(r.from, "objects", name), target, mode.Perm())
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a temporary file that has its name by now, or is given up
			}
			return err
		})
		return false, nil
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return files, err
	}
	group, ctx = background.WithContext(stopped)
	group.SetLimit(filesAtOnce)
	for _, f := range r.small { // there may be thousands of branches
		path := filepath.Join(r.to, f.name)
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f.write(path)
		})
		folders = append(folders, filepath.Dir(path))
		files++
	}
	if err := group.Wait(); err != nil {
		return files, err
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if err := disk.SyncFolder(folder); err != nil {
			return files, err
		}
	}
	return files, nil
}

// eachFile walks below root, with names relative to it; the root itself is ".". What vanishes meanwhile is left out. A
// folder is entered if visit says so.
func eachFile(root string, visit func(name string, mode fs.FileMode) (enter bool, err error)) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !d.IsDir() && !info.Mode().IsRegular() {
			return nil
		}
		enter, err := visit(name, info.Mode())
		if err == nil && d.IsDir() && !enter {
			return filepath.SkipDir
		}
		return err
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
