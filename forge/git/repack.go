package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge/failure"
)

// Every publication leaves some objects in files of their own. Once there are many, they are put into a pack, beside
// the work: nothing waits for it. A pack has its name only when it is whole and on disk, and what it holds is removed
// from elsewhere after that; a crash in between leaves objects in two places, and the next packing takes up what it
// left.
//
// Packs that were made so, and small ones that came from elsewhere, are put together as they grow in number, so that
// there are only about as many as the number of objects has digits. Large ones that came from elsewhere stay as they
// are: they hold deltas, and would grow.

// looseObjects lists the objects that are in files of their own.
func (s *Store) looseObjects() ([]plumbing.Hash, error) {
	var list []plumbing.Hash
	for n := range 256 {
		dir := fmt.Sprintf("%02x", n)
		entries, err := os.ReadDir(filepath.Join(s.dir, "objects", dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name := dir + e.Name(); plumbing.IsHash(name) {
				list = append(list, plumbing.NewHash(name))
			}
		}
	}
	return list, nil
}

func (s *Store) loosePath(hash plumbing.Hash) string {
	hex := hash.String()
	return filepath.Join(s.dir, "objects", hex[:2], hex[2:])
}

// An ownPack is a pack that packing has made before, or a small one, with what it holds.
type ownPack struct {
	name    string
	objects []plumbing.Hash
}

// made lists the packs that packing has made, and small ones, the smallest first.
func (s *Store) made() ([]ownPack, error) {
	text, err := s.note(ownPacks)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, name := range strings.Fields(string(text)) {
		own[name] = true
	}
	s.mu.Lock()
	err = s.loadPacks()
	packs := slices.Clone(s.indexed)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var list []ownPack
	for _, pack := range packs {
		count, err := pack.index.Count()
		if err != nil {
			return nil, err
		}
		if !own[pack.name] && count > looseLimit {
			continue
		}
		p := ownPack{name: pack.name}
		entries, err := pack.index.Entries()
		if err != nil {
			return nil, err
		}
		for {
			e, err := entries.Next()
			if err != nil {
				break // there is no other error than the end
			}
			p.objects = append(p.objects, e.Hash)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b ownPack) int { return len(a.objects) - len(b.objects) })
	return list, nil
}

// hasPack reports whether a pack and its index are there.
func (s *Store) hasPack(name string) bool {
	for _, ext := range []string{".idx", ".pack"} {
		if _, err := os.Lstat(s.packPath(name, ext)); err != nil {
			return false
		}
	}
	return true
}

func (s *Store) packPath(name, ext string) string {
	return filepath.Join(s.packs(), "pack-"+name+ext)
}

// Pack puts the loose objects into one pack, together with the packs of before that are not much larger. At is called at
// each step, and ends the work there with an error. Remove says whether anything may be removed now.
func (s *Store) Pack(ctx context.Context, at func(step string) error, remove func(func() error) error) error {
	defer func() { s.left.Store(s.loose.Load()) }()
	loose, err := s.looseObjects()
	if err != nil {
		return err
	}
	made, err := s.made()
	if err != nil {
		return err
	}
	objects := slices.Clone(loose)
	old := 0
	for old < len(made) && (len(made[old].objects) <= looseLimit || len(made[old].objects) < 2*len(objects)) {
		objects = append(objects, made[old].objects...)
		old++
	}
	slices.SortFunc(objects, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	objects = slices.Compact(objects)
	name, kept, err := s.packObjects(ctx, objects, at)
	if err != nil || name == "" {
		return err
	}
	s.few.Store(0)
	if err := at("pack installed"); err != nil {
		return err
	}
	names := []string{name}
	for _, p := range made {
		if p.name != name && len(p.objects) > looseLimit {
			names = append(names, p.name)
		}
	}
	if err := s.disk.replaceFile(filepath.Join(s.dir, ownPacks), []byte(strings.Join(names, "\n")+"\n")); err != nil {
		return err
	}
	if err := at("pack noted"); err != nil {
		return err
	}
	return remove(func() error {
		for i, hash := range loose {
			if kept[hash] {
				continue
			}
			if err := s.disk.remove(s.loosePath(hash)); err != nil {
				return err
			}
			s.loose.Add(-1)
			if i == len(loose)/2 {
				if err := at("half of the loose objects removed"); err != nil {
					return err
				}
			}
		}
		for _, p := range made[:old] {
			if p.name == name || slices.ContainsFunc(p.objects, func(h plumbing.Hash) bool { return kept[h] }) {
				continue // it is the new one, or holds what could not be read from it
			}
			if err := s.removePack(p.name); err != nil {
				return err
			}
			if err := at("an old pack removed"); err != nil {
				return err
			}
		}
		return nil
	})
}

// packObjects writes a pack of objects, each checked on the way. Those that are damaged are left out: they are kept, as
// they are, where they are. The name is empty if there is nothing to pack.
func (s *Store) packObjects(
	ctx context.Context, objects []plumbing.Hash, at func(string) error,
) (name string, kept map[plumbing.Hash]bool, err error) {
	kept = map[plumbing.Hash]bool{}
	for {
		if len(objects) == 0 {
			return "", kept, nil
		}
		name, bad, err := s.packAll(ctx, objects, at)
		if bad.IsZero() || errors.Is(err, failure.ErrTemporary) {
			return name, kept, err
		}
		kept[bad] = true // how many there are stands at a pack's beginning: once more, without it
		objects = slices.DeleteFunc(objects, func(h plumbing.Hash) bool { return h == bad })
		if len(kept) > 10 {
			return "", kept, err
		}
	}
}

// packAll packs objects. Bad is the one that could not be read, if that is why it fails.
func (s *Store) packAll(
	ctx context.Context, objects []plumbing.Hash, at func(string) error,
) (name string, bad plumbing.Hash, err error) {
	sum, err := s.writePack(len(objects), func(i int) (Object, error) {
		if err := ctx.Err(); err != nil {
			return Object{}, err
		}
		data, kind, err := s.load(objects[i])
		if err != nil {
			bad = objects[i]
		}
		return Object{kind: kind, Hash: objects[i], data: data}, err
	}, func() error { return at("pack written") })
	if err != nil {
		return "", bad, err
	}
	return sum.String(), bad, nil
}

// removePack removes a pack whose objects are in another one. The pack goes first: an index without its pack is cleared
// away at the next opening.
func (s *Store) removePack(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ext := range []string{".pack", ".idx"} {
		if err := s.disk.remove(s.packPath(name, ext)); err != nil {
			return err
		}
	}
	s.forget()
	return nil
}

// MendPacks writes packs again in which objects stand twice: versions of Docent before made such of packs that they
// joined, and git cannot read them. Remove says whether anything may be removed now.
func (s *Store) MendPacks(ctx context.Context, remove func(func() error) error) error {
	s.mu.Lock()
	err := s.loadPacks()
	packs := slices.Clone(s.indexed)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range packs {
		indexed, err := p.index.Count()
		if err != nil {
			return err
		}
		if held, err := s.held(p.name); err != nil {
			return err
		} else if held == indexed {
			continue
		}
		var objects []plumbing.Hash
		entries, err := p.index.Entries()
		if err != nil {
			return err
		}
		for {
			e, err := entries.Next()
			if err != nil {
				break // there is no other error than the end
			}
			objects = append(objects, e.Hash)
		}
		if _, _, err := s.packAll(ctx, objects, func(string) error { return nil }); err != nil {
			return err
		}
		if err := remove(func() error { return s.removePack(p.name) }); err != nil {
			return err
		}
	}
	return nil
}

// held is how many objects a pack says that it has.
func (s *Store) held(name string) (int64, error) {
	f, err := s.disk.open(s.packPath(name, ".pack"))
	if err != nil {
		return 0, sorted(err)
	}
	defer f.Close()
	var head [12]byte
	_, err = io.ReadFull(f, head[:])
	return int64(binary.BigEndian.Uint32(head[8:])), f.fault(err)
}

// ownPacks names the packs that packing has made, one in a line.
const ownPacks = "objects/info/docent-packs"
