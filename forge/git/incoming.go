package git

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// ReadPack stores a pack that comes from elsewhere, once it was read to its end and found sound.
func (s *Store) ReadPack(r io.Reader) error { return s.Receive(r, func() error { return nil }) }

// Receive is ReadPack for a pack whose objects must fit to what is here: whole is called when they can be read, and
// with its error they are gone again. They are here all at once, as a pack; a process that ends before leaves nothing.
func (s *Store) Receive(r io.Reader, whole func() error) error {
	f, err := s.disk.createTemp(s.packs(), "tmp_pack_")
	if err != nil {
		return err
	}
	defer s.disk.remove(f.Name())
	defer f.Close()
	n, err := io.Copy(diskWriter{s.disk, f}, io.LimitReader(r, s.disk.maxBytes+1))
	if err != nil {
		return fmt.Errorf("receive objects: %w", err)
	}
	if n > s.disk.maxBytes {
		return s.tooManyBytes()
	}
	in := &incoming{store: s, file: f, end: n - sha1.Size, onOffset: map[int64][]int{}, onHash: map[plumbing.Hash][]int{}}
	if err := in.read(); err != nil {
		return fmt.Errorf("index objects: %w", err)
	}
	if len(in.objects) == 0 {
		return whole()
	}
	name, fresh, err := in.install()
	if err != nil {
		return err
	}
	if err := whole(); err != nil {
		if fresh {
			err = errors.Join(err, s.removePack(name))
			s.cache.Clear() // what was read of it is no longer here
		}
		return err
	}
	return nil
}

// install makes the pack one of the repository's, and says whether it was none before. Git refuses a pack in which an
// object stands twice: that one is written again, with each object once.
func (in *incoming) install() (name string, fresh bool, err error) {
	var once []int
	seen := make(map[plumbing.Hash]bool, len(in.objects))
	for i, o := range in.objects {
		if !seen[o.hash] {
			seen[o.hash] = true
			once = append(once, i)
		}
	}
	if len(once) < len(in.objects) {
		sum, err := in.store.writePack(len(once), func(i int) (Object, error) {
			data, kind, err := in.object(once[i])
			return Object{kind: kind, Hash: in.objects[once[i]].hash, data: data}, err
		}, func() error { return nil })
		return sum.String(), true, err
	}
	var index idxfile.Writer
	if err := index.OnHeader(uint32(len(in.objects))); err != nil {
		return "", false, err
	}
	for _, o := range in.objects {
		index.Add(o.hash, uint64(o.at), o.crc)
	}
	if err := index.OnFooter(in.sum); err != nil {
		return "", false, err
	}
	name = in.sum.String()
	fresh = !in.store.hasPack(name)
	return name, fresh, in.store.installPack(in.file, in.sum, &index)
}

func (s *Store) tooManyBytes() error {
	return s.tooMuch("what is fetched at a time has more than %d bytes", s.disk.maxBytes)
}

// An incoming pack is read before it is believed. Its objects are inflated one after the other to learn their names and
// where the next one begins; none is held in memory but what is changed by a delta, and that only up to a size.
type incoming struct {
	store *Store
	file  *os.File
	end   int64 // of the objects; the pack's checksum follows
	sum   plumbing.Hash

	objects  []incomingObject
	total    int64           // bytes of all objects, inflated
	work     int64           // bytes that putting together the deltas has taken
	onOffset map[int64][]int // deltas, by the offset of the object that they change
	onHash   map[plumbing.Hash][]int
	bases    *cache.BufferLRU
}

type incomingObject struct {
	packedObject
	at   int64
	base int // the object that this one is a delta against, once that has its name; -1 if it is none
	kind plumbing.ObjectType
	hash plumbing.Hash // zero while it is not known
	crc  uint32
}

// basesKept is how much of the objects that others are deltas against stays in memory.
const basesKept = 64 << 20

func (in *incoming) read() error {
	in.bases = cache.NewBufferLRU(basesKept)
	if in.end < 12 {
		return errMalformed
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.NewSectionReader(in.file, 0, in.end)); err != nil {
		return err
	}
	if _, err := in.file.ReadAt(in.sum[:], in.end); err != nil {
		return err
	}
	if in.sum != plumbing.Hash(sum.Sum(nil)) {
		return errors.New("the pack does not match its checksum")
	}
	r := &offsetReader{r: bufio.NewReaderSize(io.NewSectionReader(in.file, 0, in.end), 64<<10)}
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if v := binary.BigEndian.Uint32(head[4:]); string(head[:4]) != "PACK" || v != 2 && v != 3 {
		return errMalformed
	}
	count := binary.BigEndian.Uint32(head[8:])
	if most := objectsPerFile * in.store.disk.maxFiles; int64(count) > int64(most) {
		return in.store.tooMuch("what is fetched at a time has %d objects, more than %d", count, most)
	}
	for range count {
		if err := in.next(r); err != nil {
			return err
		}
	}
	if r.n != in.end {
		return errMalformed
	}
	return in.resolve()
}

// objectsPerFile is how many objects a fetch may have for each file that a commit may have: its history comes along.
const objectsPerFile = 5

// next reads one object's header, and what follows up to its end.
func (in *incoming) next(r *offsetReader) error {
	o := incomingObject{at: r.n, base: -1}
	var err error
	if o.packedObject, err = readPacked(r); err != nil {
		return err
	}
	o.kind = o.packedObject.kind
	size := o.size
	if (o.isDelta() || o.kind != plumbing.BlobObject) && size > MaxObject {
		return in.store.tooLarge(size)
	}
	err = in.store.disk.inflate(r, func(z io.Reader) error {
		if !o.isDelta() {
			if in.total += size; in.total > in.store.disk.maxBytes {
				return in.store.tooManyBytes()
			}
			h := sha1.New()
			h.Write(objectHeader(o.kind, size))
			if _, err := io.CopyN(h, z, size); err != nil {
				return err
			}
			o.hash = plumbing.Hash(h.Sum(nil))
			return atEnd(z)
		}
		c := &counter{next: z}
		size, err := deltaSize(c)
		if err != nil {
			return err
		}
		if size > MaxObject {
			return in.store.tooLarge(size)
		}
		if in.total += size; in.total > in.store.disk.maxBytes {
			return in.store.tooManyBytes()
		}
		if _, err := io.CopyN(io.Discard, z, o.size-c.n); err != nil {
			return err
		}
		return atEnd(z)
	})
	if err != nil {
		return err
	}
	crc := crc32.NewIEEE()
	if _, err := io.Copy(crc, io.NewSectionReader(in.file, o.at, r.n-o.at)); err != nil {
		return err
	}
	o.crc = crc.Sum32()
	i := len(in.objects)
	in.objects = append(in.objects, o)
	switch o.packedObject.kind {
	case plumbing.OFSDeltaObject:
		if o.back <= 0 || o.back > o.at {
			return errMalformed
		}
		in.onOffset[o.at-o.back] = append(in.onOffset[o.at-o.back], i)
	case plumbing.REFDeltaObject:
		in.onHash[o.ref] = append(in.onHash[o.ref], i)
	}
	return nil
}

// resolve gives the deltas their names, each after what it is a delta against.
func (in *incoming) resolve() error {
	var ready []int // deltas whose base has its name
	follow := func(i int) {
		o := in.objects[i]
		for _, waiting := range [][]int{in.onOffset[o.at], in.onHash[o.hash]} {
			for _, d := range waiting {
				if in.objects[d].hash.IsZero() && in.objects[d].base < 0 {
					in.objects[d].base = i
					ready = append(ready, d)
				}
			}
		}
	}
	for first := range in.objects {
		if in.objects[first].isDelta() {
			continue
		}
		follow(first)
		for len(ready) > 0 {
			d := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			data, kind, err := in.object(d)
			if err != nil {
				return err
			}
			o := &in.objects[d]
			o.kind, o.hash = kind, hashObject(kind, data)
			follow(d)
		}
	}
	for _, o := range in.objects {
		if o.hash.IsZero() {
			return errors.New("an object is a difference to one that is not in the pack")
		}
	}
	return nil
}

// object puts together an object whose bases have their names.
func (in *incoming) object(i int) ([]byte, plumbing.ObjectType, error) {
	var steps []int
	var data []byte
	at := i
	for {
		o := in.objects[at]
		if kept, ok := in.bases.Get(int64(at)); ok {
			data = kept
			break
		}
		if !o.isDelta() {
			var err error
			if data, err = in.content(at); err != nil {
				return nil, 0, err
			}
			in.bases.Put(int64(at), data)
			break
		}
		if steps = append(steps, at); len(steps) > maxChain {
			return nil, 0, errMalformed
		}
		at = o.base
	}
	kind := in.objects[at].kind
	for len(steps) > 0 {
		at = steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		delta, err := in.content(at)
		if err != nil {
			return nil, 0, err
		}
		if data, err = in.store.disk.patch(data, delta, in.store.tooLarge); err != nil {
			return nil, 0, err
		}
		if in.work += int64(len(data)); in.work > workPerByte*in.store.disk.maxBytes {
			return nil, 0, in.store.tooManyBytes()
		}
		in.bases.Put(int64(at), data)
	}
	return data, kind, nil
}

// workPerByte bounds how often objects are put together again because they did not stay in memory.
const workPerByte = 4

// content inflates what the pack holds of an object.
func (in *incoming) content(i int) (data []byte, err error) {
	o := in.objects[i]
	if o.size > MaxObject {
		return nil, in.store.tooLarge(o.size)
	}
	r := bufio.NewReader(io.NewSectionReader(in.file, o.at, in.end-o.at))
	if _, err := readPacked(r); err != nil {
		return nil, err
	}
	err = in.store.disk.inflate(r, func(z io.Reader) error {
		data, err = in.store.disk.exactly(z, o.size)
		return err
	})
	return data, err
}

// An offsetReader knows how far it has come, to the byte.
type offsetReader struct {
	r *bufio.Reader
	n int64
}

func (o *offsetReader) Read(b []byte) (int, error) {
	n, err := o.r.Read(b)
	o.n += int64(n)
	return n, err
}

func (o *offsetReader) ReadByte() (byte, error) {
	c, err := o.r.ReadByte()
	if err == nil {
		o.n++
	}
	return c, err
}
