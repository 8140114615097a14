// Package shared provides the nodes of a cluster with what only one of them has of the sources of documentation, and
// lets them follow the same commits.
//
// What was uploaded, and what was collected of web sites and issues, lies in the nodes' database; a node's folder is a
// copy of it, of the version in the folder's file. One node collects a source at a time.
package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"docent/api"
	"docent/internal/background"
	"docent/internal/disk"
	"docent/persistence/catalog/nodes"
	"docent/persistence/cluster"
	"docent/persistence/datadir"
	"docent/search/sources"
)

const (
	uploads    = "upload/"    // zips as they were uploaded, by source
	collected  = "collected/" // folders of collectors, by source
	collecting = "collect/"   // leases, by source
	// versionFile, in a source's folder, has the version that it is a copy of.
	versionFile = ".version"
	lookEvery   = time.Second // between two looks at whether sources have changed
	leftYoung   = time.Hour   // what is this young may be a source's that is about to be added
)

// Sources are those of a cluster, as one node has them.
type Sources struct {
	db      Database
	members atomic.Pointer[Members]
}

var _ sources.Nodes = (*Sources)(nil)

// New keeps in db what nodes share. Without members it is the only node.
func New(db Database) *Sources { return &Sources{db: db} }

// Among says which nodes there are. What is known of others is forgotten.
func (s *Sources) Among(ctx context.Context, m Members) error {
	s.members.Store(&m)
	there := []string{m.Self().ID}
	for _, n := range others(m) {
		there = append(there, n.ID)
	}
	return s.db.ForgetNodes(ctx, there)
}

// others are those that take requests: one that leaves is not waited for.
func others(m Members) []cluster.Node {
	self := m.Self().ID
	return slices.DeleteFunc(m.Nodes(), func(n cluster.Node) bool { return n.ID == self || n.Leaving })
}

// blobOf names the blob that keeps a source's files.
func blobOf(p api.Project) string {
	if p.Kind == api.SourceZip {
		return uploads + string(p.ID)
	}
	return collected + string(p.ID)
}

// Upload stores the zip of a source, which every node takes from there. It is in the database when this returns.
func (s *Sources) Upload(ctx context.Context, source api.ProjectID, zip io.Reader) error {
	_, err := s.db.Put(ctx, uploads+string(source), zip, nil)
	return err
}

// Take implements sources.Nodes.
func (s *Sources) Take(ctx context.Context, p api.Project, dir string) (changed bool, err error) {
	now, err := s.db.Blob(ctx, blobOf(p))
	if errors.Is(err, api.ErrNotFound) {
		return false, nil
	}
	if err != nil || now.Version == versionOf(dir) {
		return false, err
	}
	if p.Kind == api.SourceZip {
		err = s.takeZip(ctx, p, dir, now)
	} else {
		err = s.takeFolder(ctx, p, dir)
	}
	if err != nil {
		return false, fmt.Errorf("take what another node has of %s: %w", p.ID, err)
	}
	return true, nil
}

// takeZip puts the last upload where uploads are kept.
func (s *Sources) takeZip(ctx context.Context, p api.Project, dir string, now nodes.Blob) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	kept := filepath.Join(dir, datadir.Upload)
	if hash, err := datadir.HashOf(kept); err == nil && hash == now.Hash { // uploaded here
		return keepVersion(dir, now.Version)
	}
	next, err := os.OpenFile(kept+".next", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	got, err := s.db.Get(ctx, blobOf(p), next)
	if err = errors.Join(err, next.Close()); err != nil {
		return errors.Join(err, os.Remove(kept+".next"))
	}
	if err := disk.Rename(kept+".next", kept); err != nil {
		return err
	}
	return keepVersion(dir, got.Version)
}

// takeFolder puts what another node has collected in the place of the folder. Between the two renames there is none,
// and it is taken again.
func (s *Sources) takeFolder(ctx context.Context, p api.Project, dir string) error {
	next, old := dir+".next", dir+".old"
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(old), os.MkdirAll(next, 0o700)); err != nil {
		return err
	}
	in, out := io.Pipe()
	unpacked := make(chan error, 1)
	background.Go("search/sources/shared.takeFolder", func() {
		err := background.Guard(func() error { return unpack(in, next) })
		in.CloseWithError(err)
		unpacked <- err
	})
	got, err := s.db.Get(ctx, blobOf(p), out)
	out.CloseWithError(err) // the end, if it is nil
	err = errors.Join(err, <-unpacked, os.MkdirAll(filepath.Join(next, sources.PagesDir), 0o700), keepVersion(next, got.Version))
	if err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	if err := disk.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(disk.Rename(next, dir), os.RemoveAll(old))
}

// Collect implements sources.Nodes.
func (s *Sources) Collect(ctx context.Context, p api.Project, dir string, f func(context.Context) error) error {
	if p.Kind == api.SourceZip {
		return f(ctx)
	}
	_, err := s.db.Alone(ctx, collecting+string(p.ID), true, func(ctx context.Context, held *nodes.Lease) error {
		err := f(ctx)
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		return errors.Join(err, s.give(ctx, p, dir, held))
	})
	return err
}

// give stores a source's folder for all nodes.
func (s *Sources) give(ctx context.Context, p api.Project, dir string, held *nodes.Lease) error {
	in, out := io.Pipe()
	background.Go("search/sources/shared.give", func() {
		out.CloseWithError(background.Guard(func() error { return pack(dir, out) }))
	})
	put, err := s.db.Put(ctx, blobOf(p), in, held)
	in.CloseWithError(err)
	if err != nil {
		return fmt.Errorf("give other nodes what was collected of %s: %w", p.ID, err)
	}
	return keepVersion(dir, put.Version)
}

// TakeOver gives the nodes what lies in this node's folder of sources and is not shared yet: its data directory was that
// of a server that was alone. What no project has any more is removed.
func (s *Sources) TakeOver(ctx context.Context, parts []api.Project, folder string) error {
	there := map[string]bool{}
	used := map[string]bool{}
	for _, p := range parts {
		used[blobOf(p)] = true
	}
	for _, prefix := range []string{uploads, collected} {
		list, err := s.db.Blobs(ctx, prefix)
		if err != nil {
			return err
		}
		for _, b := range list {
			if there[b.Name] = true; !used[b.Name] && b.Age > leftYoung {
				if err := s.db.Remove(ctx, b.Name); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range parts {
		dir := filepath.Join(folder, string(p.ID))
		if !p.Kind.Collected() || there[blobOf(p)] {
			continue
		}
		if err := s.takeOver(ctx, p, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Sources) takeOver(ctx context.Context, p api.Project, dir string) error {
	if p.Kind != api.SourceZip {
		if _, err := os.Stat(filepath.Join(dir, sources.PagesDir)); err != nil {
			return err
		}
		return s.give(ctx, p, dir, nil)
	}
	zip, err := os.Open(filepath.Join(dir, datadir.Upload))
	if err != nil {
		return err
	}
	defer zip.Close()
	return s.Upload(ctx, p.ID, zip)
}

// Forget implements sources.Nodes.
func (s *Sources) Forget(ctx context.Context, id api.ProjectID) error {
	return errors.Join(s.db.Remove(ctx, uploads+string(id)), s.db.Remove(ctx, collected+string(id)), s.db.ForgetSource(ctx, id))
}

// Heads implements sources.Nodes.
func (s *Sources) Heads(ctx context.Context) (map[api.ProjectID]nodes.Head, error) {
	return s.db.Heads(ctx)
}

// Follow implements sources.Nodes.
func (s *Sources) Follow(ctx context.Context, read <-chan struct{}, look func(context.Context) bool) {
	seen := [2]int64{-1} // sources may have been removed while this node was away
	for {
		if now, err := s.db.HeadsNow(ctx); (err != nil || now != seen) && look(ctx) {
			seen = now
		}
		select {
		case <-ctx.Done():
			return
		case <-read:
		case <-s.db.Turned():
		case <-time.After(lookEvery):
		}
	}
}

// Turn implements sources.Nodes.
func (s *Sources) Turn(ctx context.Context, id api.ProjectID, commit string) (int64, error) {
	return s.db.Turn(ctx, id, commit)
}

// Serves implements sources.Nodes.
func (s *Sources) Serves(ctx context.Context, id api.ProjectID, number int64) error {
	m := s.members.Load()
	if m == nil {
		return nil
	}
	return s.db.Serves(ctx, (*m).Self().ID, id, number)
}

// Behind implements sources.Nodes.
func (s *Sources) Behind(ctx context.Context, id api.ProjectID, number int64) ([]string, error) {
	m := s.members.Load()
	if m == nil {
		return nil, nil
	}
	others := others(*m)
	if len(others) == 0 {
		return nil, nil
	}
	serving, err := s.db.Serving(ctx, id, number)
	var behind []string
	for _, n := range others {
		if !slices.Contains(serving, n.ID) {
			behind = append(behind, n.Name)
		}
	}
	slices.Sort(behind)
	return behind, err
}

// versionOf is the version that a folder is a copy of; 0 if that is not known.
func versionOf(dir string) int64 {
	text, _ := os.ReadFile(filepath.Join(dir, versionFile))
	version, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return version
}

func keepVersion(dir string, version int64) error {
	return datadir.WriteFile(filepath.Join(dir, versionFile), strconv.AppendInt(nil, version, 10), 0o600)
}
