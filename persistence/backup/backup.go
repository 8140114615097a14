// Package backup copies a data directory while it is in use: everything that was acknowledged before is in the copy.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"docent/internal/background"
	"docent/internal/disk"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// A Report says what a backup holds. It is in the backup as well.
type Report struct {
	Version      string    `json:"version"`
	Began        time.Time `json:"beganAt"` // everything acknowledged before is in it
	Position     uint64    `json:"journalPosition"`
	JournalBytes int64     `json:"journalBytes"`
	CatalogBytes int64     `json:"catalogBytes"` // 0 if the catalog is on PostgreSQL
	Repositories int       `json:"repositories"`
	Files        int       `json:"repositoryFiles"`
	Uploads      int       `json:"uploads,omitempty"` // zips of sources; what is collected elsewhere is collected again
	Notes        []string  `json:"notes"`
}

// A Source is what is copied.
type Source struct {
	Data         string // the data directory
	Version      string // of the program
	Repositories Repositories
	Journal      func(ctx context.Context, w io.Writer) error // writes the journal as it is at the first write
	Catalog      func(ctx context.Context, path string) error // copies the catalog; nil if it is on PostgreSQL
	Notes        []string                                     // what else to know when restoring it
}

// Repositories are those of a data directory, in use.
type Repositories interface {
	Pin() (release func())        // no object is removed until it is called
	Quiesce(f func() error) error // no reference changes while f runs
}

// paths are the absolute paths of a new backup and of the data directory, which may not hold it.
func paths(to, from string) (dir, data string, err error) {
	if dir, err = filepath.Abs(to); err != nil {
		return "", "", err
	}
	if data, err = filepath.Abs(from); err != nil {
		return "", "", err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return "", "", errors.Join(fmt.Errorf("%s is there already: a backup goes to a new directory", dir), err)
	}
	if rel, err := filepath.Rel(data, dir); err == nil && filepath.IsLocal(rel) {
		return "", "", fmt.Errorf("%s is inside the data directory", dir)
	}
	return dir, data, nil
}

// Make copies a data directory to dir, which must not exist.
func Make(
	ctx context.Context, dir string, from Source, progress func(text string, done, total int),
) (report Report, err error) {
	dir, data, err := paths(dir, from.Data)
	if err != nil {
		return report, err
	}
	part := dir + partSuffix
	if err := removeKilledBackups(filepath.Dir(dir)); err != nil {
		return report, fmt.Errorf("clear what an earlier backup left: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		return report, err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return report, fmt.Errorf(
			"another backup is on its way to %s, or an earlier version of docent left %s, which can be removed: %w", dir,
			part, err)
	}
	defer os.RemoveAll(part) // gone by its name when all went well
	marker, err := markBackup(part)
	if err != nil {
		return report, err
	}
	defer marker.Close()
	report = Report{Version: from.Version, Began: time.Now().UTC(),
		Notes: []string{"the search indexes are not in the backup: they are built again from the repositories"}}
	report.Notes = append(report.Notes, from.Notes...)

	// The journal, the pull requests and the references are copied as of one moment, between two publications: a branch
	// ahead of the journal would be written to a second time. Objects, which are only added, and most of the journal are
	// copied after that moment.
	defer from.Repositories.Pin()() // what is listed is there until it is copied
	journal := startJournalCopy(filepath.Join(part, datadir.Journal),
		func(w io.Writer) error { return from.Journal(ctx, w) })
	var repositories []*repositoryCopy
	err = from.Repositories.Quiesce(func() error {
		progress("copying the journal", 0, 0)
		if err := journal.begin(); err != nil {
			return err
		}
		if from.Catalog != nil {
			progress("copying the catalog", 0, 0)
			path := filepath.Join(part, datadir.Catalog)
			if err := from.Catalog(ctx, path); err != nil {
				return err
			}
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			report.CatalogBytes = st.Size()
		} else {
			report.Notes = append(report.Notes,
				"the catalog is on PostgreSQL and not in the backup: run pg_dump now, after this")
		}
		var err error
		repositories, err = readRepositories(filepath.Join(data, datadir.Repos), filepath.Join(part, datadir.Repos))
		return err
	})
	if err := errors.Join(err, journal.end()); err != nil {
		return report, err
	}
	report.Position, report.JournalBytes = journal.position, journal.size
	for i, r := range repositories {
		progress("copying the repositories", i, len(repositories))
		n, err := r.copy(ctx)
		if err != nil {
			return report, fmt.Errorf("copy the repository %s: %w", filepath.Base(r.from), err)
		}
		report.Repositories++
		report.Files += n
	}
	if report.Uploads, err = copyUploads(filepath.Join(data, datadir.Sources), filepath.Join(part, datadir.Sources)); err != nil {
		return report, fmt.Errorf("copy the uploads: %w", err)
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return report, err
	}
	if err := datadir.WriteFile(filepath.Join(part, datadir.Backup), append(text, '\n'), 0o600); err != nil {
		return report, err
	}
	if err := datadir.Mark(part, from.Version); err != nil { // which brings the names to the disk as well
		return report, err
	}
	if disk.OpenFilesPin {
		marker.Close()
	}
	if err := disk.Rename(part, dir); err != nil {
		return report, err
	}
	// Not before: without it, what a kill leaves would stay.
	if err := os.Remove(filepath.Join(dir, partMarker)); err != nil {
		return report, err
	}
	return report, errors.Join(disk.SyncFolder(dir), disk.SyncFolder(filepath.Dir(dir)))
}

const (
	// partSuffix ends the name of a backup on its way.
	partSuffix = ".part"
	// partMarker is a file in it that is locked as long as the process lives.
	partMarker = "backup.running"
)

// markBackup marks a folder as a backup that this process makes.
func markBackup(part string) (*os.File, error) {
	marker, err := os.OpenFile(filepath.Join(part, partMarker), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := disk.TryLock(marker); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", marker.Name(), err), marker.Close())
	}
	return marker, nil
}

// removeKilledBackups removes what backups left in a folder whose processes died. Those that are on their way are
// locked, and folders that no backup has marked are somebody else's.
func removeKilledBackups(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasSuffix(e.Name(), partSuffix) {
			continue
		}
		part := filepath.Join(folder, e.Name())
		if _, err := os.Lstat(filepath.Join(part, partMarker)); err != nil {
			continue
		}
		marker, err := markBackup(part)
		if errors.Is(err, disk.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		if disk.OpenFilesPin {
			marker.Close()
		}
		err = os.RemoveAll(part)
		marker.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// A journalCopy is a copy of the journal that is being made.
type journalCopy struct {
	path     string
	start    func(w io.Writer) error // copies the journal as it stands at the first write
	begun    chan struct{}
	once     sync.Once
	ended    chan error
	file     *os.File
	position uint64
	size     int64
}

func startJournalCopy(path string, start func(w io.Writer) error) *journalCopy {
	return &journalCopy{path: path, start: start, begun: make(chan struct{}), ended: make(chan error, 1)}
}

// begin returns when it is settled what the copy will hold.
func (c *journalCopy) begin() (err error) {
	if c.file, err = os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		c.file = nil
		return err
	}
	background.Go("persistence/backup.begin", func() {
		c.ended <- background.Guard(func() error { return c.start(c) })
	})
	select {
	case <-c.begun:
	case err := <-c.ended:
		c.ended <- err
	}
	return nil
}

// Write starts writing the copy, which marks it as begun.
func (c *journalCopy) Write(b []byte) (int, error) {
	c.once.Do(func() { close(c.begun) })
	return c.file.Write(b)
}

// end waits for the copy, and looks at it.
func (c *journalCopy) end() error {
	if c.file == nil {
		return nil
	}
	if err := errors.Join(<-c.ended, c.file.Sync(), c.file.Close()); err != nil {
		return err
	}
	in, err := journal.Inspect(c.path) // walks its pages as well
	if err != nil {
		return fmt.Errorf("look at the copy: %w", err)
	}
	stats, err := in.Stats()
	c.position, c.size = stats.Position, stats.FileBytes
	return errors.Join(err, in.Close())
}
