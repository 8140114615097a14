package backup

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"docent/persistence/datadir"
)

// The console's button makes one backup at a time, beside the data directory, and what is known of the last ones
// survives the process.
func TestTheKeeperMakesOneBackupAtATimeAndKnowsOfTheLast(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan error)
		deps := KeeperDeps{Data: data, Log: slog.New(slog.DiscardHandler)}
		deps.Make = func(ctx context.Context, dir string, progress func(string, int, int)) (Report, error) {
			return Noted(dir, data, func() (Report, error) {
				progress("copying the repositories", 1, 3)
				select {
				case err := <-goOn:
					return Report{Position: 7, JournalBytes: 10, CatalogBytes: 5}, err
				case <-ctx.Done():
					return Report{}, ctx.Err()
				}
			})
		}
		k := NewKeeper(deps)
		if s := k.Status(); s.Made != nil || s.Failed != nil || s.Running != nil || s.Folder != data+"-backups" {
			t.Errorf("before the first: %+v", s)
		}
		dir, err := k.Start()
		if err != nil || filepath.Dir(dir) != data+"-backups" {
			t.Fatal(dir, err)
		}
		synctest.Wait()
		if _, err := k.Start(); !errors.Is(err, ErrRunning) {
			t.Errorf("a second one beside it: %v", err)
		}
		if r := k.Status().Running; r == nil || r.Text != "copying the repositories" || r.Done != 1 || r.Total != 3 {
			t.Errorf("on its way: %+v", r)
		}
		goOn <- nil
		synctest.Wait()
		s := k.Status()
		if s.Running != nil || s.Made == nil || s.Made.Dir != dir || s.Made.Position != 7 || s.Made.Bytes != 15 {
			t.Errorf("made: %+v", s.Made)
		}
		time.Sleep(time.Minute)
		if _, err = k.Start(); err != nil {
			t.Fatal(err)
		}
		goOn <- errors.New("the disk is full")
		synctest.Wait()
		if s = k.Status(); s.Made == nil || s.Made.Dir != dir || s.Failed == nil || s.Failed.Error != "the disk is full" {
			t.Errorf("failed: %+v", s)
		}
		if _, err = k.Start(); err != nil {
			t.Fatal(err)
		}
		k.Close() // breaks off what runs
		if _, err := k.Start(); err == nil {
			t.Error("one begins after the close")
		}
		again := NewKeeper(deps)
		if s := again.Status(); s.Made == nil || s.Made.Dir != dir || s.Failed == nil {
			t.Errorf("after a restart: %+v", s)
		}
		again.Close()
	})
	if err := os.WriteFile(filepath.Join(data, datadir.Backups), []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := NewKeeper(KeeperDeps{Data: data, Folder: "/elsewhere"})
	defer k.Close()
	if s := k.Status(); s.Made != nil || s.Folder != "/elsewhere" {
		t.Errorf("with a note that is cut off: %+v", s)
	}
}

// A backup that the disk has no room for is refused before it fills it.
func TestABackupThatWouldFillTheDiskIsRefused(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(data, datadir.Journal))
	if err == nil {
		err = errors.Join(f.Truncate(1<<42), f.Close()) // with holes: it takes nothing
	}
	if err != nil {
		t.Skip("no file of that size: ", err)
	}
	k := NewKeeper(KeeperDeps{Data: data, Log: slog.New(slog.DiscardHandler),
		Make: func(context.Context, string, func(string, int, int)) (Report, error) {
			t.Error("it is begun")
			return Report{}, nil
		}})
	defer k.Close()
	var full *SpaceError
	if _, err := k.Start(); !errors.As(err, &full) || full.Need < 1<<42 {
		t.Errorf("%v", err)
	}
}
