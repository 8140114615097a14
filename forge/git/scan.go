package git

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// EachObject reads a pack of whole objects, as PackTo writes them, and checks it. Each is called for each object, in
// their order, with its name, its size, and how many bytes of the pack it takes. The first ones stand behind PackHead
// bytes.
func EachObject(pack io.Reader, each func(name plumbing.Hash, size, length int64) error) error {
	sum := sha1.New()
	r := &recorder{r: bufio.NewReaderSize(pack, 64<<10)}
	var head [PackHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != 2 {
		return errMalformed
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		sum.Write(r.read.Bytes())
		r.read.Reset()
		o, err := readPacked(r)
		if err != nil {
			return err
		}
		if o.isDelta() {
			return errors.New("the pack holds differences between objects")
		}
		h := sha1.New()
		h.Write(objectHeader(o.kind, o.size))
		if err := new(Disk).inflate(r, func(z io.Reader) error {
			if _, err := io.CopyN(h, z, o.size); err != nil {
				return err
			}
			return atEnd(z)
		}); err != nil {
			return err
		}
		if err := each(plumbing.Hash(h.Sum(nil)), o.size, int64(r.read.Len())); err != nil {
			return err
		}
	}
	sum.Write(r.read.Bytes())
	var tail [sha1.Size]byte
	if _, err := io.ReadFull(r.r, tail[:]); err != nil {
		return err
	}
	if !bytes.Equal(tail[:], sum.Sum(nil)) {
		return errors.New("the pack does not match its checksum")
	}
	return nil
}

// PackHead is how many bytes stand before the first object of a pack.
const PackHead = 12

// A recorder keeps what was read of it.
type recorder struct {
	r    *bufio.Reader
	read bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.read.Write(b[:n])
	return n, err
}

func (r *recorder) ReadByte() (byte, error) {
	c, err := r.r.ReadByte()
	if err == nil {
		r.read.WriteByte(c)
	}
	return c, err
}
