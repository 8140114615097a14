package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"docent/datadir"
	"docent/persistence"
)

type (
	backupParams struct {
		Dir string `json:"dir"`
	}
	// A backupReport says what a backup holds. It stands in the backup as well.
	backupReport struct {
		Version      string    `json:"version"`
		Began        time.Time `json:"beganAt"` // everything acknowledged before is in it
		Position     uint64    `json:"journalPosition"`
		JournalBytes int64     `json:"journalBytes"`
		CatalogBytes int64     `json:"catalogBytes"` // 0 where the catalogue is on PostgreSQL
		Repositories int       `json:"repositories"`
		Files        int       `json:"repositoryFiles"`
		Notes        []string  `json:"notes"`
	}
)

// backup copies the data directory to dir, which must not be there.
func (o *operations) backup(ctx context.Context, dir string, progress Progress) (report backupReport, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return report, err
	}
	data, err := filepath.Abs(o.stores.config.Data)
	if err != nil {
		return report, err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return report, errors.Join(fmt.Errorf("%s is there already: a backup goes to a new directory", dir), err)
	}
	if rel, err := filepath.Rel(data, dir); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return report, fmt.Errorf("%s is inside the data directory", dir)
	}
	part := dir + partSuffix
	if err := removeKilledBackups(filepath.Dir(dir)); err != nil {
		return report, fmt.Errorf("clear what an earlier backup left: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
		return report, err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return report, fmt.Errorf("another backup is on its way to %s, or an earlier version of docent left %s, which can be removed: %w", dir, part, err)
	}
	defer os.RemoveAll(part) // gone by its name when all went well
	marker, err := markBackup(part)
	if err != nil {
		return report, err
	}
	defer marker.Close()
	report = backupReport{Version: buildVersion().Version, Began: time.Now().UTC(), Notes: []string{"the search indexes are not in the backup: they are built again from the repositories"}}

	// The journal, the pull requests and the references are taken as they stand at one moment, between two publications:
	// a branch that were ahead of the journal would be written to a second time. Objects, which are only added meanwhile, and
	// most of the journal are copied after that.
	defer o.stores.hub.Hold()() // what is listed is there until it is copied
	journal := o.startJournalCopy(ctx, filepath.Join(part, datadir.Journal))
	var repositories []*repositoryCopy
	err = o.stores.hub.Still(func() error {
		progress("copying the journal", 0, 0)
		if err := journal.begin(); err != nil {
			return err
		}
		if dsn := o.stores.config.CatalogDSN; dsn == "" || strings.HasPrefix(dsn, "sqlite:") {
			progress("copying the catalogue", 0, 0)
			path := filepath.Join(part, "catalog.db")
			if err := o.stores.catalog.Backup(ctx, path); err != nil {
				return err
			}
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			report.CatalogBytes = st.Size()
		} else {
			report.Notes = append(report.Notes, "the catalogue is on PostgreSQL and not in the backup: run pg_dump now, after this")
		}
		var err error
		repositories, err = readRepositories(filepath.Join(data, "repos"), filepath.Join(part, "repos"))
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
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return report, err
	}
	if err := datadir.WriteFile(filepath.Join(part, datadir.Backup), append(text, '\n'), 0o600); err != nil {
		return report, err
	}
	if err := datadir.SyncFolder(part); err != nil {
		return report, err
	}
	if err := os.Rename(part, dir); err != nil {
		return report, err
	}
	// Not before: without it, what a kill leaves would stay.
	if err := os.Remove(filepath.Join(dir, partMarker)); err != nil {
		return report, err
	}
	return report, errors.Join(datadir.SyncFolder(dir), datadir.SyncFolder(filepath.Dir(dir)))
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
	if err := unix.Flock(int(marker.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", marker.Name(), err), marker.Close())
	}
	return marker, nil
}

// removeKilledBackups removes what backups left in a folder whose processes died. Those that are on their way are locked, and
// folders that no backup has marked are somebody else's.
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
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(part), marker.Close()); err != nil {
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

func (o *operations) startJournalCopy(ctx context.Context, path string) *journalCopy {
	return &journalCopy{path: path, begun: make(chan struct{}), ended: make(chan error, 1), start: func(w io.Writer) error {
		return o.withJournal(ctx, func(j *persistence.Journal) error { return j.Backup(w) })
	}}
}

// begin returns when it is settled what the copy will hold.
func (c *journalCopy) begin() (err error) {
	if c.file, err = os.OpenFile(c.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		c.file = nil
		return err
	}
	go func() { c.ended <- c.start(c) }()
	select {
	case <-c.begun:
	case err := <-c.ended:
		c.ended <- err
	}
	return nil
}

// Write is where the copy begins to be written, and so has been begun.
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
	in, err := persistence.InspectJournal(c.path) // walks its pages as well
	if err != nil {
		return fmt.Errorf("look at the copy: %w", err)
	}
	stats, err := in.Stats()
	c.position, c.size = stats.Position, stats.FileBytes
	return errors.Join(err, in.Close())
}

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
	group, ctx := errgroup.WithContext(stopped)
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
	group, ctx = errgroup.WithContext(stopped)
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
		if err := datadir.SyncFolder(folder); err != nil {
			return files, err
		}
	}
	return files, nil
}

// eachFile walks below root, with names relative to it; the root itself is ".". What vanishes meanwhile is left out. A
// folder is entered where visit says so.
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

// settle puts right, before anything works on it, what a data directory lacks that was put back from a backup. Listings are
// made anew, since they were copied after the journal and may tell of what is no longer to come; and indexes that are not
// there are built, or the questions that wait would find nothing.
func (a *app) settle(ctx context.Context) error {
	restored, err := datadir.Has(a.config.Data, datadir.Backup)
	if err != nil {
		return err
	}
	if restored {
		for _, p := range a.listings {
			if err := p.Rebuild(ctx); err != nil {
				return fmt.Errorf("make the listings of a restored backup anew: %w", err)
			}
		}
	}
	projects, err := a.stores.catalog.Projects(ctx)
	if err != nil {
		return err
	}
	folders, err := os.ReadDir(a.dir.File(datadir.Index))
	if err != nil {
		return err
	}
	if !restored && len(folders) >= len(projects) {
		return nil // without opening all of them
	}
	var missing sync.WaitGroup
	for _, p := range projects {
		if a.stores.library.Commit(p.ID) != "" {
			continue
		}
		missing.Go(func() {
			_, err := a.stores.source.Refresh(ctx, p, func(string, int, int) {})
			a.stores.source.Report(p.ID, err) // the others can be served
		})
	}
	if missing.Wait(); !restored {
		return nil
	}
	a.log.Info("a restored backup is put to use", "position", a.journal.Position())
	return os.Remove(a.dir.File(datadir.Backup))
}

func newBackupCommand() *cobra.Command {
	o := new(operator)
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Copy the data directory to a new directory; the server may run", Args: cobra.ExactArgs(1),
		Long: "Copy the data directory to a new directory, consistent in itself, while the server runs or not. Everything that was\n" +
			"acknowledged before the command began is in the copy. Search indexes are left out: they are built again.\n\n" +
			"To restore, put the copy where the data directory was and start the server.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			var r backupReport
			if err := o.run(cmd, opBackup, backupParams{dir}, &r); err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s: journal up to position %d (%d bytes), catalogue (%d bytes), %d repositories (%d files)\n",
				dir, r.Position, r.JournalBytes, r.CatalogBytes, r.Repositories, r.Files)
			for _, note := range r.Notes {
				fmt.Fprintln(out, note)
			}
			return nil
		},
	}
	operatorFlags(cmd, o)
	return cmd
}
