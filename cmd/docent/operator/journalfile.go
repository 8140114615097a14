package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"docent/cmd/docent/config"
	"docent/cmd/docent/stores"
	"docent/internal/disk"
	"docent/persistence"
	"docent/persistence/catalog"
	"docent/persistence/datadir"
	"docent/persistence/journal"
)

// JournalDropped says what was taken out of a journal.
type JournalDropped struct {
	Kept    string            `json:"kept,omitempty"` // the file that holds what was taken out
	Dropped []journal.Dropped `json:"dropped"`
}

// hasJournal says that a data directory has none.
func hasJournal(data string) error {
	if ok, err := datadir.Has(data, datadir.Journal); err != nil || !ok {
		return errors.Join(fmt.Errorf("there is no journal in %s", data), err)
	}
	return nil
}

// openStopped opens the data directory of a server that is stopped.
func openStopped(c config.Config, command string) (*datadir.Dir, error) {
	dir, err := datadir.OpenUsed(c.Data, command, 10*time.Second)
	if _, ok := errors.AsType[*datadir.LockedError](err); ok {
		return nil, fmt.Errorf("%w: stop the server first", err)
	}
	return dir, err
}

// JournalCompacted is the size of a journal before and after.
type JournalCompacted struct {
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
}

// CompactJournal gives the free space of a journal's file back to the disk. The server must be stopped.
func CompactJournal(c config.Config) (done JournalCompacted, err error) {
	if c.Shared() {
		return done, stores.InFile("compact it", "PostgreSQL gives space free again by itself (autovacuum)")
	}
	dir, err := openStopped(c, "journal compact")
	if err != nil {
		return done, err
	}
	defer dir.Close()
	if err := hasJournal(dir.Path); err != nil {
		return done, err
	}
	done.Before, done.After, err = journal.Compact(dir.File(datadir.Journal),
		journal.Options{Log: slog.New(slog.DiscardHandler)})
	return done, err
}

// DropStreams takes jobs and threads out of a journal's file, damaged or not. The server must be stopped. Unless yes is set, it
// changes nothing and only says what would be dropped.
func DropStreams(c config.Config, streams []string, yes bool) (done JournalDropped, err error) {
	if c.Shared() {
		return done, stores.InFile("drop a stream of it", "put the database back from its own backup or replica")
	}
	dir, err := openStopped(c, "journal drop")
	if err != nil {
		return done, err
	}
	defer dir.Close()
	if err := hasJournal(dir.Path); err != nil {
		return done, err
	}
	path := dir.File(datadir.Journal)
	if !yes {
		return done, fmt.Errorf("nothing was changed; make a copy of %s and run this again with --yes to drop %s", path,
			strings.Join(streams, ", "))
	}
	j, err := journal.Open(path, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, journal.ErrCorrupt) {
		return done, fmt.Errorf("%w: restore a backup", err)
	}
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	keep := &keeper{folder: dir.File(datadir.SetAside), name: "journal"}
	dropped, err := j.Drop(streams, keep.add, keep.close)
	if err != nil {
		return done, errors.Join(err, keep.discard())
	}
	return JournalDropped{keep.path, dropped}, nil
}

// A keeper writes records that are taken out to a file, as they stand.
type keeper struct {
	folder string
	name   string // what the file's name begins with
	path   string
	file   *os.File
	buffer *bufio.Writer
}

func (k *keeper) add(r journal.Record) error {
	line := map[string]any{"bucket": r.Bucket, "key": r.Key, "value": r.Value} // the bytes in base64
	for name, v := range map[string]string{"stream": r.Stream, "type": r.Event.Type} {
		if v != "" {
			line[name] = v
		}
	}
	for name, n := range map[string]uint64{"sequence": r.Seq, "position": r.Position} {
		if n != 0 {
			line[name] = n
		}
	}
	if r.Err != nil {
		line["problem"] = r.Err.Error()
	}
	return k.line(line)
}

// line writes one line, to a file that the first one makes.
func (k *keeper) line(line map[string]any) error {
	if k.file == nil {
		if err := os.MkdirAll(k.folder, 0o700); err != nil {
			return err
		}
		var err error
		k.path = filepath.Join(k.folder, k.name+"-"+time.Now().UTC().Format("20060102T150405.000Z")+".jsonl")
		if k.file, err = os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		k.buffer = bufio.NewWriter(k.file)
	}
	encoder := json.NewEncoder(k.buffer)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// close brings the file to the disk, before what it holds leaves the journal.
func (k *keeper) close() error {
	if k.file == nil {
		return nil
	}
	return errors.Join(k.buffer.Flush(), k.file.Sync(), k.file.Close(), disk.SyncFolder(k.folder))
}

// discard removes the file of a drop that did not take place.
func (k *keeper) discard() error {
	if k.file == nil {
		return nil
	}
	k.file.Close()
	return os.Remove(k.path)
}

// An Adoption says what is wrong with two stores, and what is given up when they are used together all the same.
type Adoption struct {
	Reason  string `json:"reason,omitempty"`
	Listed  int    `json:"listedOnly"`     // rows of the listings of which the journal knows nothing
	Kept    string `json:"kept,omitempty"` // the file that holds these
	Adopted bool   `json:"adopted"`
}

// Adopt has a journal and a catalog that do not belong together used together. Unless yes is set, it changes nothing and
// only says what is wrong.
func Adopt(ctx context.Context, c config.Config, yes bool) (done Adoption, err error) {
	if _, err := os.Stat(c.Data); err != nil {
		return done, fmt.Errorf("there is no data directory: %w", err)
	}
	dir, err := openStopped(c, "journal adopt")
	if err != nil {
		return done, err
	}
	defer dir.Close()
	if !yes { // what is missing is not made yet
		for _, missing := range []struct {
			path string
			what string
		}{{dir.File(datadir.Journal), "the journal"}, {stores.CatalogFile(stores.CatalogDSN(dir, c)), "the catalog"}} {
			if missing.path == "" {
				continue
			}
			size, err := stores.FileSize(missing.path)
			if err != nil {
				return done, err
			}
			if size == 0 {
				done.Reason = fmt.Sprintf("%s %s is missing or empty: a new one would be made", missing.what, missing.path)
			}
		}
		if done.Reason != "" {
			return done, nil
		}
	}
	log := slog.New(slog.DiscardHandler)
	cat, err := catalog.Open(ctx, stores.CatalogDSN(dir, c), stores.CatalogOptions(c, log))
	if err != nil {
		return done, fmt.Errorf("open the catalog: %w", err)
	}
	defer func() { err = errors.Join(err, cat.Close()) }()
	j, err := journal.Open(dir.File(datadir.Journal), journal.Options{Log: log})
	if err != nil {
		return done, fmt.Errorf("open the journal: %w; `docent journal check` says more", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if done.Reason, err = persistence.Disagreement(ctx, j, cat); err != nil || done.Reason == "" {
		return done, err
	}
	keep := &keeper{folder: dir.File(datadir.SetAside), name: "listings"}
	known := func(stream string) bool {
		rec, err := j.Load(stream)
		return err != nil || rec.Seq > 0 // a damaged stream is one that the journal knows
	}
	err = cat.ListedOnly(ctx, known, func(table, id string, body json.RawMessage) error {
		done.Listed++
		if !yes {
			return nil
		}
		return keep.line(map[string]any{"table": table, "id": id, "row": body})
	})
	if err != nil || !yes {
		return done, errors.Join(err, keep.discard())
	}
	if err := keep.close(); err != nil {
		return done, err
	}
	done.Kept = keep.path
	if err := persistence.Adopt(ctx, j, cat); err != nil {
		return done, err
	}
	if err := os.Remove(dir.File(datadir.Backup)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	done.Adopted = true
	return done, nil
}
