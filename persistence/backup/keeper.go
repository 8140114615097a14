package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"docent/internal/background"
	"docent/internal/health"
	"docent/persistence/datadir"
)

// known is what the data directory says of its last backups.
type known struct {
	Made   *health.Copy `json:"made,omitempty"`
	Failed *health.Copy `json:"failed,omitempty"` // after it
}

func readKnown(data string) (k known) {
	text, err := os.ReadFile(filepath.Join(data, datadir.Backups))
	if err == nil {
		_ = json.Unmarshal(text, &k) // half written: nothing is known
	}
	return k
}

// Noted makes a backup and writes down in the data directory when that was, where it is, or why it failed. One whose
// note cannot be written is made all the same.
func Noted(dir, data string, make func() (Report, error)) (Report, error) {
	began := time.Now()
	report, err := make()
	k := readKnown(data)
	c := &health.Copy{Dir: dir, Began: began.UTC(), Seconds: time.Since(began).Seconds()}
	if err != nil {
		c.Error = err.Error()
		k.Failed = c
	} else {
		c.Position, c.Bytes = report.Position, report.JournalBytes+report.CatalogBytes
		k = known{Made: c}
	}
	if text, err := json.Marshal(k); err == nil {
		_ = datadir.WriteFile(filepath.Join(data, datadir.Backups), append(text, '\n'), 0o600)
	}
	return report, err
}

// KeeperDeps is what a Keeper needs.
type KeeperDeps struct {
	Data   string // the data directory
	Folder string // in which the backups are; empty for one beside the data directory
	Make   func(ctx context.Context, dir string, progress func(text string, done, total int)) (Report, error)
	Now    func() time.Time // time.Now
	Log    *slog.Logger
}

// A Keeper makes backups while the server runs, one at a time, and knows of the last ones.
type Keeper struct {
	KeeperDeps
	ctx    context.Context
	cancel context.CancelFunc
	work   background.Work

	mu      sync.Mutex
	running *health.Running
}

// NewKeeper makes a Keeper. It is closed before the stores are.
func NewKeeper(deps KeeperDeps) *Keeper {
	k := &Keeper{KeeperDeps: deps}
	if k.Now == nil {
		k.Now = time.Now
	}
	k.Folder = cmp.Or(k.Folder, filepath.Clean(k.Data)+"-backups")
	if whole, err := filepath.Abs(k.Folder); err == nil {
		k.Folder = whole
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// ErrRunning says that a backup is being made.
var ErrRunning = errors.New("a backup is being made")

// A SpaceError says that the disk has no room for another copy.
type SpaceError struct {
	Folder     string
	Need, Free uint64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the disk of %s has %d bytes free, and a backup needs about %d: remove old backups, or name another folder by backup_dir",
		e.Folder, e.Free, e.Need)
}

// Start begins a backup in a new folder, in the background.
func (k *Keeper) Start() (dir string, err error) {
	now := k.Now().UTC()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.running != nil:
		return "", ErrRunning
	case k.ctx.Err() != nil:
		return "", errors.New("the server is stopping")
	}
	if err := k.room(); err != nil {
		return "", err
	}
	dir = filepath.Join(k.Folder, now.Format("20060102T150405Z"))
	k.running = &health.Running{Dir: dir, Began: now, Text: "begins"}
	k.work.Go("persistence/backup.Start", func() {
		_, err := k.Make(k.ctx, dir, func(text string, done, total int) {
			k.mu.Lock()
			k.running.Text, k.running.Done, k.running.Total = text, done, total
			k.mu.Unlock()
		})
		if err != nil {
			k.Log.Error("backup failed", "dir", dir, "error", err)
		} else {
			k.Log.Info("backup completed", "dir", dir, "seconds", k.Now().Sub(now).Seconds())
		}
		k.mu.Lock()
		k.running = nil
		k.mu.Unlock()
	})
	return dir, nil
}

// room refuses a backup that would fill the disk. If the system does not say what is free, the backup is tried.
func (k *Keeper) room() error {
	if err := os.MkdirAll(k.Folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of backups: %w", err)
	}
	disk, err := health.DiskOf(k.Folder)
	if err != nil {
		return nil // not every system says
	}
	var need uint64
	for _, name := range []string{datadir.Journal, datadir.Catalog, datadir.Repos} {
		_ = filepath.WalkDir(filepath.Join(k.Data, name), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					need += uint64(info.Size())
				}
			}
			return nil // what goes away meanwhile needs no room
		})
	}
	if need += need / 10; need > disk.Free {
		return &SpaceError{Folder: k.Folder, Need: need, Free: disk.Free}
	}
	return nil
}

// Status says when the data directory was last copied, and what is being copied now.
func (k *Keeper) Status() health.Backup {
	last := readKnown(k.Data)
	s := health.Backup{Made: last.Made, Failed: last.Failed, Folder: k.Folder}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running != nil {
		now := *k.running
		s.Running = &now
	}
	return s
}

// Close breaks off the backup that is being made, and waits for its end.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.work.Wait()
}
