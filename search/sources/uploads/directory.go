package uploads

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
)

// maxDirectory is how many bytes of a zip are read to find and read its directory.
const maxDirectory = 64 << 20

// readTwice is how many entries may be read once more, since the end of a zip is searched for what it says.
const readTwice = 2 * (66 << 10) / 46

// openZip opens a zip and reads its directory, once it is known to hold no more than most entries: archive/zip makes a
// value of some hundred bytes for each, however many the zip's end says that there are.
func openZip(name string, most int) (z *zip.Reader, file *os.File, err error) {
	if file, err = os.Open(name); err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		z, err = readZip(file, info.Size(), most)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return z, file, nil
}

func readZip(r io.ReaderAt, size int64, most int) (*zip.Reader, error) {
	if said := saidEntries(r, size); said > uint64(most) {
		return nil, bad("holds %d entries, more than %d", said, most)
	}
	d := &directoryReader{r: r, entries: most + readTwice, bytes: maxDirectory}
	z, err := zip.NewReader(d, size)
	if d.refused != nil {
		return nil, d.refused
	}
	d.all = true
	return z, err
}

// saidEntries is how many entries a zip's last end record says that it holds, or that of a large zip beside it.
func saidEntries(r io.ReaderAt, size int64) uint64 {
	tail := make([]byte, min(size, 65<<10))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return 0 // archive/zip says what is wrong
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || at+20 > len(tail) {
		return 0
	}
	end := tail[at:]
	said := uint64(binary.LittleEndian.Uint16(end[10:]))
	// The forms in which archive/zip looks for the other one.
	large := said == 0xffff || binary.LittleEndian.Uint32(end[12:]) == 0xffff || binary.LittleEndian.Uint32(end[16:]) == 0xffffffff
	if at := bytes.LastIndex(tail, []byte("PK\x06\x06")); large && at >= 0 && at+40 <= len(tail) {
		said = binary.LittleEndian.Uint64(tail[at+32:])
	}
	return said
}

// A directoryReader hands on no more entries of a zip's directory than it may: what the zip's end says need not be true.
// Each entry begins with four bytes that are counted as they are read.
type directoryReader struct {
	r       io.ReaderAt
	entries int
	bytes   int
	last    [3]byte // before what is read next
	next    int64
	refused error
	all     bool // the directory was read
}

var entryMark = []byte("PK\x01\x02")

func (d *directoryReader) ReadAt(p []byte, at int64) (int, error) {
	if d.all {
		return d.r.ReadAt(p, at)
	}
	if d.refused != nil {
		return 0, d.refused
	}
	n, err := d.r.ReadAt(p, at)
	seen := p[:n]
	if at == d.next { // it goes on where it ended
		seen = append(d.last[:len(d.last):len(d.last)], p[:n]...)
	}
	d.entries -= bytes.Count(seen, entryMark)
	d.bytes -= n
	d.next = at + int64(n)
	d.last = [3]byte{}
	copy(d.last[max(0, 3-len(seen)):], seen[max(0, len(seen)-3):])
	if d.entries < 0 || d.bytes < 0 {
		d.refused = bad("holds more entries than are read of one zip")
		return 0, d.refused
	}
	return n, err
}
