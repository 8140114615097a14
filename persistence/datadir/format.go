package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"docent/internal/disk"
)

// Format is the number of the form in which this version keeps a data directory: the journal's events, the catalog, the
// repositories and what was collected. A release that writes something which the one before would misread raises it; see
// docs/operate/upgrade.mdx. Version 2 has reader secrets, which version 1 would remove; version 3 has weekly reports as
// events of webhooks, and no tables of their own, which version 2 would read; version 4 has conversations that were handed
// over to people, which version 3 cannot read.
const Format = 4

// formatFile says which format a directory has. One that was made before there were numbers has none.
const formatFile = "format.json"

// Written is the format that a data directory has, and the version of Docent that brought it there.
type Written struct {
	Format  int    `json:"format"`
	Version string `json:"version"`
}

// A NewerError says that a data directory was written by a version that this one cannot follow.
type NewerError struct {
	Path string
	Written
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the data directory %s has format %d, which Docent %s brought, and this version knows formats up to %d: "+
		"nothing was changed. Use version %[3]s or a newer one, or restore the backup that was made before the upgrade",
		e.Path, e.Format, e.Version, Format)
}

// ReadFormat is the format of a data directory; of one that has no number the zero value.
func ReadFormat(path string) (w Written, err error) {
	text, err := os.ReadFile(filepath.Join(path, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return w, fmt.Errorf("read the format of the data directory %s from %s: %w", path, formatFile, err)
	}
	return w, nil
}

// known fails with a *NewerError if a newer version has written to the directory.
func known(path string) error {
	w, err := ReadFormat(path)
	if err == nil && w.Format > Format {
		err = &NewerError{Path: path, Written: w}
	}
	return err
}

// Mark notes that this version writes to the directory: from then on, older ones that could not read that refuse it.
func Mark(path, version string) error {
	w, err := ReadFormat(path)
	if err != nil || w.Format == Format {
		return err
	}
	text, err := json.Marshal(Written{Format, version})
	if err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(path, formatFile), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("note the format of the data directory %s: %w", path, err)
	}
	return disk.SyncFolder(path)
}
