package git

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/klauspost/compress/zlib"
)

// A packer writes a pack of whole objects: no deltas, so it needs no memory beyond the object in hand.
type packer struct {
	w      *bufio.Writer
	sum    hash.Hash
	crc    hash.Hash32
	offset uint64
	z      *zlib.Writer
	index  idxfile.Writer
}

func newPacker(w io.Writer, count int) (*packer, error) {
	p := &packer{w: bufio.NewWriterSize(w, 64<<10), sum: sha1.New(), crc: crc32.NewIEEE()}
	p.z = deflaters.Get().(*zlib.Writer)
	if err := p.index.OnHeader(uint32(count)); err != nil {
		return nil, err
	}
	header := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count))
	_, err := p.Write(header)
	return p, err
}

func (p *packer) Write(b []byte) (int, error) {
	p.sum.Write(b)
	p.crc.Write(b)
	p.offset += uint64(len(b))
	return p.w.Write(b)
}

func (p *packer) add(o Object) error {
	start := p.offset
	p.crc.Reset()
	size := uint64(len(o.data))
	c := byte(o.kind)<<4 | byte(size&0x0f)
	size >>= 4
	var header []byte
	for size > 0 {
		header = append(header, c|0x80)
		c = byte(size & 0x7f)
		size >>= 7
	}
	if _, err := p.Write(append(header, c)); err != nil {
		return err
	}
	p.z.Reset(p)
	if _, err := p.z.Write(o.data); err != nil {
		return err
	}
	if err := p.z.Close(); err != nil {
		return err
	}
	p.index.Add(o.Hash, start, p.crc.Sum32())
	return nil
}

func (p *packer) close() (plumbing.Hash, error) {
	deflaters.Put(p.z)
	p.z = nil
	sum := plumbing.Hash(p.sum.Sum(nil))
	if _, err := p.w.Write(sum[:]); err != nil {
		return sum, err
	}
	if err := p.index.OnFooter(sum); err != nil {
		return sum, err
	}
	return sum, p.w.Flush()
}

// encodePack writes a pack of so many objects, each of which is asked for when it is its turn.
func encodePack(w io.Writer, count int, object func(i int) (Object, error)) (plumbing.Hash, *idxfile.Writer, error) {
	p, err := newPacker(w, count)
	for i := 0; err == nil && i < count; i++ {
		var o Object
		if o, err = object(i); err == nil {
			err = p.add(o)
		}
	}
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	sum, err := p.close()
	return sum, &p.index, err
}

// writePack stores objects as one pack that is whole and on disk when it gets its name. Written is called before that.
func (s *Store) writePack(count int, object func(i int) (Object, error), written func() error) (plumbing.Hash, error) {
	f, err := s.disk.createTemp(s.packs(), "tmp_pack_")
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer s.disk.remove(f.Name()) // already gone if all went well
	defer f.Close()
	sum, index, err := encodePack(diskWriter{s.disk, f}, count, object)
	if err == nil {
		err = written()
	}
	if err == nil {
		err = s.installPack(f, sum, index)
	}
	return sum, err
}

// installPack gives a written pack its name. The index comes first: a reader lists packs and expects an index for each.
func (s *Store) installPack(f *os.File, sum plumbing.Hash, w *idxfile.Writer) error {
	index, err := w.Index()
	if err != nil {
		return fmt.Errorf("index objects: %w", err)
	}
	var b bytes.Buffer
	if _, err := idxfile.NewEncoder(&b).Encode(index); err != nil {
		return fmt.Errorf("index objects: %w", err)
	}
	if err := s.disk.finish(f, 0o400); err != nil {
		return err
	}
	name := filepath.Join(s.packs(), "pack-"+sum.String())
	tmp := f.Name() + ".idx"
	defer s.disk.remove(tmp)
	if err := s.disk.writeFile(tmp, b.Bytes(), 0o400); err != nil {
		return err
	}
	if err := s.disk.Rename(tmp, name+".idx"); err != nil {
		return err
	}
	if err := s.disk.Rename(f.Name(), name+".pack"); err != nil {
		return err
	}
	if err := s.disk.SyncFolder(s.packs()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexed == nil {
		return nil
	}
	for _, p := range s.indexed {
		if p.name == sum.String() { // it was here before
			return nil
		}
	}
	s.indexed = append(s.indexed, s.newPack(sum.String(), index))
	if n, err := index.Count(); err == nil && n <= looseLimit {
		s.few.Add(1)
	}
	return nil
}
