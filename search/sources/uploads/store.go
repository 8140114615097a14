package uploads

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

	"docent/api"
	"docent/internal/disk"
	"docent/persistence/datadir"
	"docent/search/sources"
)

const (
	kept     = datadir.Upload
	unpacked = "unpacked"  // the hash of the zip that the pages are of
	incoming = ".incoming" // folder of what is on its way
	staleIn  = 24 * time.Hour
)

// A Store takes uploads into a folder of the data directory.
type Store struct {
	Dir    string
	Limits Limits // DefaultLimits if zero
	// Share stores an upload to a source's folder where other nodes find it, before it is kept; nil on a node that is
	// alone.
	Share func(ctx context.Context, dir string, zip io.Reader) error

	mu sync.Mutex
}

func (s *Store) limits() Limits {
	if s.Limits == (Limits{}) {
		return DefaultLimits
	}
	return s.Limits
}

// An Incoming is an upload that is on its way, or has come whole.
type Incoming struct {
	path   string
	limits Limits
	share  func(ctx context.Context, dir string, zip io.Reader) error
}

// Take adds the next piece of an upload, which its sender names by chance. Uploads that broke off long ago are removed.
func (s *Store) Take(name string, piece []byte) (Incoming, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(name) < 20 || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return Incoming{}, bad("an upload needs a name of 20 to 40 letters and digits")
	}
	in, file, err := s.open(name)
	if err != nil {
		return Incoming{}, err
	}
	info, err := file.Stat()
	if err == nil && info.Size()+int64(len(piece)) > in.limits.Packed {
		err = bad("has more than %d bytes", in.limits.Packed)
	}
	if err == nil {
		_, err = file.Write(piece)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(in.path)
	}
	return in, err
}

// Read takes an upload whole.
func (s *Store) Read(name string, from io.Reader) (Incoming, error) {
	in, file, err := s.open(name)
	if err != nil {
		return Incoming{}, err
	}
	n, err := io.Copy(file, io.LimitReader(from, in.limits.Packed+1))
	if err == nil && n > in.limits.Packed {
		err = bad("has more than %d bytes", in.limits.Packed)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(in.path)
	}
	return in, err
}

func (s *Store) open(name string) (Incoming, *os.File, error) {
	dir := filepath.Join(s.Dir, incoming)
	in := Incoming{path: filepath.Join(dir, name), limits: s.limits(), share: s.Share}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return in, nil, fmt.Errorf("take an upload: %w", err)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleIn {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	file, err := os.OpenFile(in.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return in, nil, fmt.Errorf("take an upload: %w", err)
	}
	return in, file, nil
}

// Keep checks an upload to its last byte and makes it the one of a source's folder. It is on the disk when this returns.
// changed is false if the folder has the same one already. The incoming file is gone in any case.
func (in Incoming) Keep(ctx context.Context, dir string) (changed bool, err error) {
	defer os.Remove(in.path)
	if err := in.check(); err != nil {
		return false, err
	}
	if in.share != nil { // also the same one again: another node may have another one since
		file, err := os.Open(in.path)
		if err != nil {
			return false, fmt.Errorf("keep an upload: %w", err)
		}
		if err := errors.Join(in.share(ctx, dir, file), file.Close()); err != nil {
			return false, fmt.Errorf("keep an upload: %w", err)
		}
	}
	hash, err := datadir.HashOf(in.path)
	if err != nil {
		return false, err
	}
	if had, err := datadir.HashOf(filepath.Join(dir, kept)); err == nil && had == hash {
		return false, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("keep an upload: %w", err)
	}
	if err := syncFile(in.path); err != nil {
		return false, fmt.Errorf("keep an upload: %w", err)
	}
	if err := disk.Rename(in.path, filepath.Join(dir, kept)); err != nil {
		return false, fmt.Errorf("keep an upload: %w", err)
	}
	return true, errors.Join(disk.SyncFolder(dir), disk.SyncFolder(filepath.Dir(dir)))
}

// Drop forgets an upload. Nothing is done if it was kept.
func (in Incoming) Drop() { os.Remove(in.path) }

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (in Incoming) check() error {
	z, file, err := openZip(in.path, in.limits.Files)
	if err != nil {
		return notZip(err)
	}
	defer file.Close()
	p, err := planOf(z, in.limits)
	if err != nil {
		return err
	}
	return p.unpack(in.limits, nil, func(int, int) {})
}

func notZip(err error) error {
	if errors.Is(err, api.ErrInvalid) || isWrite(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return bad("is no zip that can be read: %v", err)
}

// Zips unpack what was uploaded to a source.
type Zips struct{ Limits Limits }

var _ sources.Collector = Zips{}

// A content is what a source's pages were made of.
type content struct {
	Hash  string   `json:"hash"`
	Files int      `json:"files"`
	Notes []string `json:"notes,omitempty"`
}

// Collect makes the pages those of the zip that was uploaded last. If they are already, nothing is touched.
func (z Zips) Collect(ctx context.Context, p api.Project, dir string, progress sources.Progress) (sources.Collected,
	error) {
	hash, err := datadir.HashOf(filepath.Join(dir, kept))
	if errors.Is(err, fs.ErrNotExist) {
		return sources.Collected{Notes: []string{"nothing was uploaded yet"}}, nil
	}
	if err != nil {
		return sources.Collected{}, fmt.Errorf("read the upload: %w", err)
	}
	state := filepath.Join(dir, unpacked)
	if now, err := readContent(state); err == nil && now.Hash == hash {
		if filled(filepath.Join(dir, sources.PagesDir)) {
			return sources.Collected{Pages: now.Files, Notes: now.Notes}, nil
		}
	}
	limits := z.Limits
	if limits == (Limits{}) {
		limits = DefaultLimits
	}
	plan, err := z.replace(ctx, dir, limits, progress)
	if err != nil {
		return sources.Collected{}, err
	}
	now := content{Hash: hash, Files: len(plan.files), Notes: plan.notes}
	if err := writeContent(state, now); err != nil {
		return sources.Collected{}, err
	}
	return sources.Collected{Pages: now.Files, Changed: now.Files, Notes: now.Notes}, nil
}

// replace unpacks the upload beside the pages and then puts it in their place. Between the two renames there are no
// pages and no content that says whose they are: they are unpacked again then.
func (z Zips) replace(ctx context.Context, dir string, limits Limits, progress sources.Progress) (*plan, error) {
	packed, file, err := openZip(filepath.Join(dir, kept), limits.Files)
	if err != nil {
		return nil, notZip(err)
	}
	defer file.Close()
	plan, err := planOf(packed, limits)
	if err != nil {
		return nil, err
	}
	pages, next, old := filepath.Join(dir, sources.PagesDir), filepath.Join(dir, "next"), filepath.Join(dir, "old")
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(old), os.Mkdir(next, 0o700)); err != nil {
		return nil, fmt.Errorf("unpack the upload: %w", err)
	}
	root, err := os.OpenRoot(next) // nothing is written elsewhere, whatever a name says
	if err != nil {
		return nil, fmt.Errorf("unpack the upload: %w", err)
	}
	create := func(name string) (io.WriteCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if dir := filepath.Dir(filepath.FromSlash(name)); dir != "." {
			if err := root.MkdirAll(dir, 0o700); err != nil {
				return nil, err
			}
		}
		return root.OpenFile(filepath.FromSlash(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	err = plan.unpack(limits, create, func(done, total int) { progress("unpacking the upload", done, total) })
	root.Close() // Windows renames no folder that is open
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(next))
	}
	if err := os.Remove(filepath.Join(dir, unpacked)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("unpack the upload: %w", err)
	}
	if err := disk.Rename(pages, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace the pages: %w", err)
	}
	if err := disk.Rename(next, pages); err != nil {
		return nil, fmt.Errorf("replace the pages: %w", err)
	}
	return plan, os.RemoveAll(old)
}

// filled reports whether there is anything in a folder.
func filled(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

func readContent(name string) (content, error) {
	var c content
	raw, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}

func writeContent(name string, c content) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return datadir.WriteFile(name, raw, 0o600)
}
