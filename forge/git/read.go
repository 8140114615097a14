package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Reading of git's objects and references. go-git's own storage leaves files open until the garbage collector runs,
// inflates an object whole whatever its size, and turns errors of the operating system into text, so that a lack of
// file descriptors looks like damage. Here a file is closed when its object is read, sizes are looked at before
// anything is inflated, and an error is damage only if what was read is not what it should be.

// A loose object's header is its kind and its size.
func looseHeader(r io.Reader) (plumbing.ObjectType, int64, error) {
	head := make([]byte, 0, 32)
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, one); err != nil {
			return 0, 0, err
		}
		if one[0] == 0 {
			break
		}
		if head = append(head, one[0]); len(head) == cap(head) {
			return 0, 0, errMalformed
		}
	}
	word, number, _ := strings.Cut(string(head), " ")
	kind, err := plumbing.ParseObjectType(word)
	if err != nil {
		return 0, 0, errMalformed
	}
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 {
		return 0, 0, errMalformed
	}
	return kind, size, nil
}

// A location is where an object is: in a pack, or in a file of its own.
type location struct {
	pack   *pack
	offset int64
}

// A pack's index is in memory while the repository is open.
type pack struct {
	name   string // its hash
	index  *idxfile.MemoryIndex
	number int64            // among the packs of the repository
	bases  *cache.BufferLRU // of all of them
}

// find looks an object up; false if it is in no file. Called under the lock.
func (s *Store) find(hash plumbing.Hash) (location, bool, error) {
	name := s.loosePath(hash)
	switch info, err := os.Lstat(name); {
	case err == nil && info.Mode().IsRegular():
		return location{}, true, nil
	case err != nil && !missing(err):
		return location{}, false, Passing(err)
	}
	if err := s.loadPacks(); err != nil {
		return location{}, false, err
	}
	for _, p := range s.indexed {
		offset, err := p.index.FindOffset(hash)
		if err == nil {
			return location{p, offset}, true, nil
		}
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return location{}, false, fmt.Errorf("%w: index of pack %s: %w", ErrDamaged, p.name, err)
		}
	}
	return location{}, false, nil
}

// loadPacks reads the indexes of all packs, once. Called under the lock.
func (s *Store) loadPacks() error {
	if s.indexed != nil {
		return nil
	}
	entries, err := os.ReadDir(s.packs())
	if err != nil && !(s.damaged && missing(err)) {
		return sorted(err)
	}
	list := []*pack{}
	few := int64(0)
	for _, e := range entries {
		name, isPack := strings.CutSuffix(strings.TrimPrefix(e.Name(), "pack-"), ".pack")
		if !isPack || !plumbing.IsHash(name) {
			continue
		}
		index, err := s.disk.readIndex(s.packPath(name, ".idx"))
		if err == nil && plumbing.Hash(index.PackfileChecksum).String() != name {
			err = fmt.Errorf("%w: it is that of another", ErrDamaged)
		}
		if s.damaged && errors.Is(err, ErrDamaged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("index of pack %s: %w", name, err)
		}
		if n, err := index.Count(); err == nil && n <= looseLimit {
			few++
		}
		list = append(list, s.newPack(name, index))
	}
	s.indexed = list
	s.few.Store(few)
	return nil
}

// newPack is called under the lock.
func (s *Store) newPack(name string, index *idxfile.MemoryIndex) *pack {
	if s.bases == nil {
		s.bases = cache.NewBufferLRU(objectCache)
	}
	s.numbered++
	return &pack{name, index, s.numbered, s.bases}
}

// readIndex reads a pack's index. The decoder looks at the file's size before it believes what the file says of itself.
func (d *Disk) readIndex(name string) (*idxfile.MemoryIndex, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, sorted(err)
	}
	defer f.Close()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(struct {
		*bufio.Reader
		stater
	}{bufio.NewReader(f), f.File}).Decode(index); err != nil {
		return nil, f.fault(err)
	}
	return index, nil
}

type stater interface{ Stat() (fs.FileInfo, error) }

// Has reports whether an object is there, whole or not.
func (s *Store) Has(hash plumbing.Hash) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok, err := s.find(hash)
	if err != nil {
		return false, fmt.Errorf("look for object %s: %w", hash, err)
	}
	return ok, nil
}

// Size is an object's size, which is read without the object.
func (s *Store) Size(hash plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	err := s.visit(hash, func(_ plumbing.ObjectType, size int64, _ io.Reader) error {
		n = size
		return nil
	}, func(at location) (err error) {
		n, err = s.packedSize(at)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("size of object %s: %w", hash, err)
	}
	return n, nil
}

// load returns an object's content, checked against its name.
func (s *Store) load(hash plumbing.Hash) ([]byte, plumbing.ObjectType, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.cached(hash); ok {
		return bytes.Clone(o.data), o.kind, nil // the reader may change it
	}
	data, kind, err := s.loadFrom(hash)
	if err == nil && hashObject(kind, data) != hash {
		err = fmt.Errorf("%w: it has other content", ErrDamaged)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read object %s: %w", hash, err)
	}
	s.keep(Object{kind: kind, Hash: hash, data: data})
	return data, kind, nil
}

func (s *Store) loadFrom(hash plumbing.Hash) (data []byte, kind plumbing.ObjectType, err error) {
	err = s.visit(hash, func(k plumbing.ObjectType, size int64, r io.Reader) (err error) {
		if kind = k; size > MaxObject {
			return s.tooLarge(size)
		}
		data, err = s.disk.exactly(r, size)
		return err
	}, func(at location) (err error) {
		data, kind, err = s.loadPacked(at)
		return err
	})
	return data, kind, err
}

// visit reads an object where it is: in a file of its own, or in a pack. Called under the lock, which those who put
// loose objects into packs do not hold while they remove the files: one that is gone is looked for once more.
func (s *Store) visit(hash plumbing.Hash, loose looseReader, packed func(location) error) error {
	for again := false; ; again = true {
		at, ok, err := s.find(hash)
		switch {
		case err != nil:
			return err
		case !ok:
			return errMissing
		case at.pack != nil:
			return packed(at)
		}
		f, err := s.disk.open(s.loosePath(hash))
		switch {
		case missing(err) && !again:
		case err != nil:
			return sorted(err)
		default:
			defer f.Close()
			return f.fault(s.readLoose(f, loose))
		}
	}
}

func (s *Store) tooLarge(size int64) error {
	return s.tooMuch("an object of %d bytes is more than the %d that are read of one", size, int64(MaxObject))
}

// A looseReader takes an object's content as it is inflated.
type looseReader func(kind plumbing.ObjectType, size int64, r io.Reader) error

func (s *Store) readLoose(f *diskFile, use looseReader) error {
	return s.disk.inflate(f, func(r io.Reader) error {
		kind, size, err := looseHeader(r)
		if err != nil {
			return err
		}
		return use(kind, size, r)
	})
}

// A packedObject is what stands before an object in a pack.
type packedObject struct {
	kind plumbing.ObjectType // or a kind of delta against another object
	size int64               // of what follows, inflated
	back int64               // how far before this one the other stands
	ref  plumbing.Hash       // or its name
}

func (p packedObject) isDelta() bool {
	return p.kind == plumbing.OFSDeltaObject || p.kind == plumbing.REFDeltaObject
}

// readPacked reads what stands before an object.
func readPacked(r interface {
	io.Reader
	io.ByteReader
}) (p packedObject, err error) {
	c, err := r.ReadByte()
	if err != nil {
		return p, err
	}
	p.kind, p.size = plumbing.ObjectType(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if shift > 53 {
			return p, errMalformed
		}
		if c, err = r.ReadByte(); err != nil {
			return p, err
		}
		p.size |= int64(c&0x7f) << shift
	}
	switch p.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.REFDeltaObject:
		_, err = io.ReadFull(r, p.ref[:])
	case plumbing.OFSDeltaObject:
		if c, err = r.ReadByte(); err != nil {
			return p, err
		}
		p.back = int64(c & 0x7f)
		for c&0x80 != 0 {
			if p.back > 1<<55 {
				return p, errMalformed
			}
			if c, err = r.ReadByte(); err != nil {
				return p, err
			}
			p.back = (p.back+1)<<7 | int64(c&0x7f)
		}
	default:
		return p, errMalformed
	}
	return p, err
}

// deltaSize is the size of what a delta leads to; it stands at its beginning, after the size of what it changes.
func deltaSize(r io.Reader) (int64, error) {
	var b bufio.Reader
	b.Reset(io.LimitReader(r, 20))
	var size int64
	for range 2 {
		size = 0
		for shift := 0; ; shift += 7 {
			c, err := b.ReadByte()
			if err != nil {
				return 0, err
			}
			if shift > 56 {
				return 0, errMalformed
			}
			size |= int64(c&0x7f) << shift
			if c&0x80 == 0 {
				break
			}
		}
	}
	return size, nil
}

// maxChain is how many deltas may lie between an object and one that is there whole; git makes at most 4,095.
const maxChain = 4096

// An openPack is a pack while an object of it is read.
type openPack struct {
	*diskFile
	limit func(size int64) error
}

// header goes to an object and reads what stands before it.
func (f openPack) header(offset int64) (packedObject, *bufio.Reader, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f.diskFile, offset, 1<<62-offset), 4096)
	p, err := readPacked(r)
	return p, r, err
}

// content reads what follows an object's header; it is looked at before whether that is too large.
func (f openPack) content(p packedObject, r io.Reader) (data []byte, err error) {
	if p.size > MaxObject {
		return nil, f.limit(p.size)
	}
	err = f.disk.inflate(r, func(r io.Reader) error {
		data, err = f.disk.exactly(r, p.size)
		return err
	})
	return data, err
}

// base is the location of the object that a delta is against.
func (p packedObject) base(offset int64, index *idxfile.MemoryIndex) (int64, error) {
	if p.kind == plumbing.REFDeltaObject {
		return index.FindOffset(p.ref)
	}
	if p.back <= 0 || p.back >= offset {
		return 0, errMalformed
	}
	return offset - p.back, nil
}

func (s *Store) packedSize(at location) (n int64, err error) {
	file, err := s.disk.open(s.packPath(at.pack.name, ".pack"))
	if err != nil {
		return 0, sorted(err)
	}
	defer file.Close()
	f := openPack{diskFile: file, limit: s.tooLarge}
	p, r, err := f.header(at.offset)
	if n = p.size; err == nil && p.isDelta() {
		err = s.disk.inflate(r, func(r io.Reader) error {
			n, err = deltaSize(r)
			return err
		})
	}
	return n, f.fault(err)
}

func (s *Store) loadPacked(at location) ([]byte, plumbing.ObjectType, error) {
	file, err := s.disk.open(s.packPath(at.pack.name, ".pack"))
	if err != nil {
		return nil, 0, sorted(err)
	}
	defer file.Close()
	f := openPack{diskFile: file, limit: s.tooLarge}
	data, kind, err := f.object(at.offset, at.pack)
	if err = f.fault(err); err != nil {
		err = fmt.Errorf("at %d of pack %s: %w", at.offset, at.pack.name, err)
	}
	return data, kind, err
}

// object puts an object together from the one that is there whole and the deltas against it.
func (f openPack) object(offset int64, in *pack) ([]byte, plumbing.ObjectType, error) {
	type step struct {
		at    int64
		delta []byte
	}
	var steps []step
	var data []byte
	var kind plumbing.ObjectType
	for total := int64(0); ; {
		var ok bool
		if data, kind, ok = in.base(offset); ok {
			if len(steps) == 0 {
				data = bytes.Clone(data) // the reader may change it
			}
			break
		}
		p, r, err := f.header(offset)
		if err != nil {
			return nil, 0, err
		}
		if data, err = f.content(p, r); err != nil {
			return nil, 0, err
		}
		if kind = p.kind; !p.isDelta() {
			if len(steps) > 0 {
				in.keepBase(offset, kind, data)
			}
			break
		}
		steps = append(steps, step{offset, data})
		if total += p.size; total > MaxObject {
			return nil, 0, f.limit(total)
		}
		if len(steps) > maxChain {
			return nil, 0, errMalformed
		}
		if offset, err = p.base(offset, in.index); err != nil {
			return nil, 0, err
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		var err error
		if data, err = f.disk.patch(data, steps[i].delta, f.limit); err != nil {
			return nil, 0, err
		}
		in.keepBase(steps[i].at, kind, data)
	}
	return data, kind, nil
}

// base is an object that others are deltas against, as it was met before.
func (p *pack) base(offset int64) ([]byte, plumbing.ObjectType, bool) {
	b, ok := p.bases.Get(p.number<<40 | offset)
	if !ok {
		return nil, 0, false
	}
	return b[1:], plumbing.ObjectType(b[0]), true
}

func (p *pack) keepBase(offset int64, kind plumbing.ObjectType, data []byte) {
	if len(data) <= keptBase && offset < 1<<40 {
		p.bases.Put(p.number<<40|offset, append([]byte{byte(kind)}, data...))
	}
}

// keptBase is the largest object that is kept for those that are deltas against it.
const keptBase = 1 << 20

// patch makes an object from another and the delta against it.
func (d *Disk) patch(base, delta []byte, limit func(int64) error) ([]byte, error) {
	size, err := deltaSize(bytes.NewReader(delta))
	if err != nil {
		return nil, err
	}
	if size > MaxObject {
		return nil, limit(size)
	}
	d.inflated.Add(size)
	d.held.Add(size)
	return packfile.PatchDelta(base, delta)
}

// forget makes the next lookup list the packs again. Called under the lock.
func (s *Store) forget() { s.indexed = nil }

// Trees and commits are read again and again; of files only small ones are kept.
const keptObject = 256 << 10

func (s *Store) cached(hash plumbing.Hash) (Object, bool) {
	o, ok := s.cache.Get(hash)
	if !ok {
		return Object{}, false
	}
	return o.(*cachedObject).object, true
}

func (s *Store) keep(o Object) {
	if len(o.data) <= keptObject {
		o.data = bytes.Clone(o.data)
		s.cache.Put(&cachedObject{object: o})
	}
}

// A cachedObject is an object in the form that the cache takes.
type cachedObject struct {
	plumbing.MemoryObject
	object Object
}

func (o *cachedObject) Hash() plumbing.Hash { return o.object.Hash }
func (o *cachedObject) Size() int64         { return int64(len(o.object.data)) }
