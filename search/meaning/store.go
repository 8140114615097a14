package meaning

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"docent/internal/disk"
)

// The vectors of a project lie in a folder beside its index, a file for each model:
//
//	ID.vectors   a line of JSON, after its checksum, that names the model and the number of dimensions;
//	             then records of one length: key, row, checksum
//
// Records are appended. One that is damaged, or that a crash cut off, is passed over: its section is asked for again.
// Vectors that no section needs any more go when they are many (Collect).

// A Store is the file of one model, open.
type Store struct {
	model  Model
	path   string
	file   *os.File
	shape  *Field // of the numbers that the file has; nil while it has none
	rows   map[Key]int64
	end    int64 // of the last record that is whole
	wasted int   // records that are damaged
}

type header struct {
	Model   Model `json:"model"`
	Numbers int   `json:"numbers"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const suffix = ".vectors"

// maxDimensions bounds what an endpoint can make this process hold.
const maxDimensions = 1 << 14

// OpenStore opens the vectors that a model made for the project in a folder. A file that cannot be read as such is
// removed, and its vectors are computed again.
func OpenStore(dir string, m Model) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the vectors: %w", err)
	}
	s := &Store{model: m, path: filepath.Join(dir, m.ID()+suffix), rows: map[Key]int64{}}
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the vectors: %w", err)
	}
	s.file = file
	if err = s.read(); err == nil {
		err = file.Truncate(s.end)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("read the vectors: %w", err)
	}
	return s, nil
}

// Load is the vectors of sections as a Store's Field, while another may be writing.
func Load(dir string, m Model, keys []Key) (*Field, error) {
	s := &Store{model: m, path: filepath.Join(dir, m.ID()+suffix), rows: map[Key]int64{}}
	var err error
	if s.file, err = os.Open(s.path); err != nil {
		return nil, fmt.Errorf("open the vectors: %w", err)
	}
	defer s.Close()
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("read the vectors: %w", err)
	}
	return s.Field(keys)
}

// read finds the records that are whole. There are none if the file does not begin with the model's header.
func (s *Store) read() error {
	in := bufio.NewReaderSize(s.file, 1<<18)
	h, length, ok := readHeader(in)
	if !ok || h.Model.ID() != s.model.ID() {
		return nil
	}
	s.shape, s.end = newField(h.Numbers, 0), int64(length)
	record := make([]byte, s.recordBytes())
	for {
		if _, err := io.ReadFull(in, record); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return err
		}
		body := record[:len(record)-4]
		if crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(record[len(body):]) {
			s.rows[Key(body)] = s.end
		} else {
			s.wasted++
		}
		s.end += int64(len(record))
	}
	return nil
}

func readHeader(in *bufio.Reader) (h header, length int, ok bool) {
	const longest = 1 << 16
	var line []byte
	for len(line) < longest && !bytes.HasSuffix(line, []byte("\n")) {
		c, err := in.ReadByte()
		if err != nil {
			return h, 0, false
		}
		line = append(line, c)
	}
	sum, text, cut := bytes.Cut(line, []byte(" "))
	if !cut || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) || json.Unmarshal(text, &h) != nil {
		return h, 0, false
	}
	return h, len(line), h.Numbers > 0 && h.Numbers <= maxDimensions
}

func (s *Store) recordBytes() int { return len(Key{}) + s.shape.rowBytes() + 4 }

// Len is how many vectors there are, those of texts that the endpoint refused included.
func (s *Store) Len() int { return len(s.rows) }

// Has reports whether a section has been asked for.
func (s *Store) Has(k Key) bool {
	_, ok := s.rows[k]
	return ok
}

// Add keeps the vectors of sections. One that is empty says that the endpoint refused the text: it is not asked again.
func (s *Store) Add(keys []Key, vectors [][]float32) error {
	var out []byte
	at := s.end
	placed := make([]int64, len(keys))
	for _, v := range vectors {
		if len(v) > 0 && s.shape == nil {
			if len(v) > maxDimensions {
				return fmt.Errorf("a vector of %d dimensions: at most %d can be kept", len(v), maxDimensions)
			}
			s.shape = newField(len(v), 0)
			text, err := json.Marshal(header{s.model, len(v)})
			if err != nil {
				return err
			}
			text = append(text, '\n')
			out = fmt.Appendf(out, "%08x %s", crc32.Checksum(text, castagnoli), text)
		}
		if s.shape != nil && len(v) > 0 && len(v) != s.shape.turn.numbers {
			return fmt.Errorf("a vector of %d dimensions where others have %d", len(v), s.shape.turn.numbers)
		}
	}
	if s.shape == nil {
		return nil // nothing but refusals, and no vector yet: they are asked for again another time
	}
	for i, v := range vectors {
		placed[i] = at + int64(len(out))
		begin := len(out)
		out = append(out, keys[i][:]...)
		if len(v) > 0 {
			out = s.shape.encoded(out, v)
		} else {
			out = append(out, make([]byte, s.shape.rowBytes())...)
		}
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[begin:], castagnoli))
	}
	if _, err := s.file.WriteAt(out, at); err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	s.end = at + int64(len(out))
	for i, k := range keys {
		s.rows[k] = placed[i]
	}
	return nil
}

// Field is the vectors of sections, by their numbers in the list; a zero key is no section that is found. It is nil
// if none has a vector.
func (s *Store) Field(keys []Key) (*Field, error) {
	if s.shape == nil {
		return nil, nil
	}
	n := 0
	for _, k := range keys {
		if s.Has(k) {
			n++
		}
	}
	f := newField(s.shape.turn.numbers, n)
	row := make([]byte, f.rowBytes())
	for section, k := range keys {
		at, ok := s.rows[k]
		if !ok {
			continue
		}
		if _, err := s.file.ReadAt(row, at+int64(len(k))); err != nil {
			return nil, fmt.Errorf("read vectors: %w", err)
		}
		if binary.LittleEndian.Uint32(row) != 0 { // not refused
			f.add(uint32(section), row)
		}
	}
	if f.Len() == 0 {
		return nil, nil
	}
	return f, nil
}

// keepGone is how many vectors of sections that are gone may stay: they may come back, with a revert.
const keepGone = 256

// Collect removes the vectors of sections that are gone, once they are more than a quarter of all.
func (s *Store) Collect(live map[Key]bool) error {
	var keep []Key
	for k := range s.rows {
		if live[k] {
			keep = append(keep, k)
		}
	}
	gone := len(s.rows) - len(keep) + s.wasted
	if gone <= max(keepGone, len(keep)/3) {
		return nil
	}
	slices.SortFunc(keep, func(a, b Key) int { return cmp.Compare(s.rows[a], s.rows[b]) })
	next := s.path + ".new"
	file, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("collect vectors: %w", err)
	}
	rows, end, err := s.copyTo(file, keep)
	if err = cmp.Or(err, file.Sync(), file.Close()); err != nil {
		os.Remove(next)
		return fmt.Errorf("collect vectors: %w", err)
	}
	s.file.Close() // Windows replaces no file that is open
	if err = disk.Rename(next, s.path); err == nil {
		s.rows, s.end, s.wasted = rows, end, 0
	} else {
		os.Remove(next)
	}
	file, again := os.OpenFile(s.path, os.O_RDWR, 0o600)
	s.file = file
	if err = errors.Join(err, again); err != nil {
		return fmt.Errorf("collect vectors: %w", err)
	}
	return nil
}

func (s *Store) copyTo(file *os.File, keep []Key) (rows map[Key]int64, end int64, err error) {
	out := bufio.NewWriterSize(file, 1<<18)
	_, length, ok := readHeader(bufio.NewReader(io.NewSectionReader(s.file, 0, s.end)))
	if !ok {
		return nil, 0, errors.New("the file has lost its header")
	}
	copied, err := io.CopyN(out, io.NewSectionReader(s.file, 0, s.end), int64(length))
	if err != nil {
		return nil, 0, err
	}
	rows, end = make(map[Key]int64, len(keep)), copied
	record := make([]byte, s.recordBytes())
	for _, k := range keep {
		if _, err := s.file.ReadAt(record, s.rows[k]); err != nil {
			return nil, 0, err
		}
		if _, err := out.Write(record); err != nil {
			return nil, 0, err
		}
		rows[k] = end
		end += int64(len(record))
	}
	return rows, end, out.Flush()
}

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

// Models lists the models that have vectors in a folder.
func Models(dir string) ([]Model, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Model
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return out, err
		}
		h, _, ok := readHeader(bufio.NewReader(f))
		f.Close()
		if ok && h.Model.ID()+suffix == e.Name() {
			out = append(out, h.Model)
		}
	}
	return out, err
}

// Drop removes the vectors of a model from a folder.
func Drop(dir string, m Model) error {
	return os.Remove(filepath.Join(dir, m.ID()+suffix))
}
