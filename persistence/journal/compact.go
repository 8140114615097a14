package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"docent/internal/disk"

	"go.etcd.io/bbolt"
)

// compactSuffix names the copy until it takes the journal's place.
const compactSuffix = ".compact"

// Compact copies the journal in the file path into a new file without the pages that are free, and puts that in its
// place; it returns how large the file was and is. Nothing else may use the journal meanwhile. A journal that is
// damaged as a whole is refused; a damaged record is copied as it stands.
//
// The copy is on disk, and was opened and counted like any journal, before it replaces the file by renaming: whenever
// this breaks off, there is the old journal or the new one. It needs room for both.
func Compact(path string, o Options) (before, after int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("compact journal %s: %w", path, err)
		}
	}()
	st, err := os.Stat(path) // Open would make one
	if err != nil {
		return 0, 0, err
	}
	was, err := reopened(path, o)
	if err != nil {
		return 0, 0, err
	}
	copied := path + compactSuffix
	if err := os.Remove(copied); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that broke off
		return 0, 0, err
	}
	if err := compactInto(copied, path, o.LockTimeout); err != nil {
		return 0, 0, errors.Join(err, os.Remove(copied))
	}
	is, err := reopened(copied, o)
	if err == nil && is != was {
		err = fmt.Errorf("the copy differs from it: %+v, not %+v", is, was)
	}
	if err != nil {
		return 0, 0, errors.Join(err, os.Remove(copied))
	}
	if err := disk.Rename(copied, path); err != nil {
		return 0, 0, errors.Join(err, os.Remove(copied))
	}
	if err := disk.SyncFolder(filepath.Dir(path)); err != nil {
		return 0, 0, err
	}
	now, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return st.Size(), now.Size(), nil
}

// reopened opens a journal, with everything that opening checks, closes it and returns how it stands.
func reopened(path string, o Options) (fileState, error) {
	j, err := Open(path, o)
	if err != nil {
		return fileState{}, err
	}
	// Close may commit; the committer has ended once it returns.
	if err := j.Close(); err != nil {
		return fileState{}, err
	}
	return j.state, nil
}

func compactInto(to, from string, patience time.Duration) error {
	if patience <= 0 {
		patience = defaultLockTimeout
	}
	return guard(func() (err error) {
		src, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true, Timeout: patience})
		if err != nil {
			return lockError(err)
		}
		defer func() { err = errors.Join(err, src.Close()) }()
		// Not synced before the end, since nobody uses it before.
		dst, err := bbolt.Open(to, 0o600, &bbolt.Options{
			NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType, Timeout: patience,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dst.Close()) }()
		if err := bbolt.Compact(dst, src, 16<<20); err != nil {
			return err
		}
		return dst.Sync()
	})
}
