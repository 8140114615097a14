package search

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

	"github.com/fxamacker/cbor/v2"

	"docent/site"
)

// The index of a project is a generation: a folder that nobody changes once it is complete.
//
//	PROJECT/CURRENT            name of the generation that is served
//	PROJECT/gen-N/manifest     commit, versions, and size and checksum of every other file
//	PROJECT/gen-N/index/       Bleve: the postings
//	PROJECT/gen-N/pages        what is known of each file
//	PROJECT/gen-N/text         the files' contents
//
// An update makes the next generation beside the served one (Bleve's segments, which never change, by hard link) and then
// replaces CURRENT. So a query sees one generation whole, a crash leaves the one or the other, and what is on disk can be
// checked against the manifest before it is used.

// schemaVersion names the form of a generation and of the documents in it.
const schemaVersion = 5

type manifest struct {
	Schema   int            `json:"schema"`
	Analysis int            `json:"analysis"`
	Commit   string         `json:"commit"`
	DocsDir  string         `json:"docsDir"`
	SiteURL  string         `json:"siteUrl"`
	Site     siteLabel      `json:"site"`
	Language string         `json:"language"` // the site's default, where something says it
	NextUID  uint32         `json:"nextUid"`
	Pages    int            `json:"pages"`
	Sections int            `json:"sections"`
	Dead     int            `json:"dead"` // sections deleted from Bleve whose postings are still in its segments
	Files    []manifestFile `json:"files"`
}

type manifestFile struct {
	Name string `json:"name"` // slash-separated, relative to the generation
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

// A record is what the index knows of one file.
type record struct {
	_           struct{} `cbor:",toarray"`
	UID         uint32   // names the file's sections in Bleve, for as long as the path exists
	Path        string   // relative to the documentation folder
	Hash        string
	Kind        kind
	Offset      int64 // of the content in the text file
	Size        int64
	CRC         uint32
	Body        int64 // offset in the content of what follows the front matter
	Title       string
	Titles      []string // other names of the page: in navigation, in the sidebar
	Description string
	Version     string   // of the front matter
	Language    string   // of the front matter
	Versions    []string // names of the version that it belongs to, the one that is shown first; of all that share it
	Current     bool     // found by readers who name no version
	Locale      string   // its language; empty for the site's default where nothing names that
	Docs        string   // which docs of the site it belongs to, where several have versions of their own
	Same        string   // names the page in all versions and languages
	Tags        []string
	Keywords    []string
	Groups      []string
	Slug        string   // last part of the page's address, or all of it, where the front matter sets it
	ID          string   // the same by Docusaurus's older rule
	Address     string   // the whole address where the front matter sets that
	Aliases     []string // earlier addresses
	Renders     string   // the operation of an API that the page shows, by its front matter: "GET /pets"
	Shown       string   // path of the page on the site, by the rule of its generator
	Crumbs      []string // titles of the groups or folders above it
	Hidden      bool     // found by its path, not by searching
	Front       site.Front
	Boost       float32
	Links       []link   // to other pages, in the order of the text
	Imports     []string // files whose text a reader sees in this page
	Derived     uint64   // digest of what other files contributed to the documents of this one
	TitleWords  wordList
	TitleLen    uint16
	PageLen     [pageFields]uint16 // lengths of the fields that the page's first document holds
	Sections    []sectionRecord
}

type kind uint8

const (
	kindPage       kind = iota + 1
	kindNavigation      // names and orders pages
	kindPart            // seen only within the pages that import it
	kindIgnored         // read and found to be nothing to index
	kindLeftOut         // could be a page, and the site does not show it
)

type link struct {
	_    struct{} `cbor:",toarray"`
	To   string   // path as far as it can be told from the link alone, without extension
	Text string
}

type sectionRecord struct {
	_       struct{} `cbor:",toarray"`
	Anchor  string
	Heading string
	Level   int
	Trail   []string
	Start   int64 // of the content
	End     int64
	Len     [sectionFields]uint16
	Head    wordList // of the heading
	Body    wordList // of heading and body, for proximity
}

// A wordList holds the hashes of the stemmed words of a text in their order, four bytes each, and after them, where the
// text is a title or heading, the names that cover several of them.
type wordList struct {
	_     struct{} `cbor:",toarray"`
	Words []byte   // 4 bytes a word, little-endian
	Names []name
}

type name struct {
	_    struct{} `cbor:",toarray"`
	Hash uint32
	At   uint16
	N    uint16
}

func (w wordList) len() int         { return len(w.Words) / 4 }
func (w wordList) at(i int) uint32  { return binary.LittleEndian.Uint32(w.Words[4*i:]) }
func (w *wordList) add(hash uint32) { w.Words = binary.LittleEndian.AppendUint32(w.Words, hash) }

// ErrNotIndexed says that a project has no index that can be used: none was made yet, or the one on disk is damaged or of
// another version. Update makes one.
var ErrNotIndexed = errors.New("the documentation is not indexed yet")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeManifest completes a generation: it measures every file, and is on disk when it returns.
func writeManifest(dir string, m manifest) (manifest, error) {
	m.Files = nil
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, "manifest") {
			return err
		}
		size, sum, err := checksum(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, manifestFile{filepath.ToSlash(rel), size, sum})
		return nil
	})
	if err != nil {
		return m, fmt.Errorf("measure %s: %w", dir, err)
	}
	return m, saveManifest(dir, m)
}

func saveManifest(dir string, m manifest) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	line := fmt.Appendf(nil, "%08x\n", crc32.Checksum(body, castagnoli))
	return replaceFile(filepath.Join(dir, "manifest"), append(line, body...))
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	raw, err := os.ReadFile(filepath.Join(dir, "manifest"))
	if err != nil {
		return m, err
	}
	line, body, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || string(line) != fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) {
		return m, errors.New("manifest is damaged")
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("decode manifest: %w", err)
	}
	if m.Schema != schemaVersion || m.Analysis != analysisVersion {
		return m, fmt.Errorf("made by version %d.%d, this is %d.%d", m.Schema, m.Analysis, schemaVersion, analysisVersion)
	}
	return m, nil
}

// verify compares every file with the manifest. It reads them all: what is not read cannot be trusted, and it is the
// same bytes that the first queries need.
func verify(dir string, m manifest) error {
	for _, f := range m.Files {
		size, sum, err := checksum(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		if size != f.Size || sum != f.CRC {
			return fmt.Errorf("%s is damaged", f.Name)
		}
	}
	return nil
}

func checksum(path string) (int64, uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<18)
	var size int64
	var sum uint32
	for {
		n, err := f.Read(buf)
		size += int64(n)
		sum = crc32.Update(sum, castagnoli, buf[:n])
		if err == io.EOF {
			return size, sum, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// create makes a file that nobody but its owner may read, as all of an index is.
func create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// replaceFile writes a file so that a crash leaves the old content or the new.
func replaceFile(path string, content []byte) error {
	tmp := path + ".new"
	f, err := create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// A recordWriter writes the pages file, one record after the other in any order.
type recordWriter struct {
	file *os.File
	buf  *bufio.Writer
}

func createRecords(path string) (*recordWriter, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	return &recordWriter{f, bufio.NewWriterSize(f, 1<<18)}, nil
}

func (w *recordWriter) add(r *record) error {
	raw, err := cbor.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", r.Path, err)
	}
	var length [binary.MaxVarintLen64]byte
	if _, err := w.buf.Write(length[:binary.PutUvarint(length[:], uint64(len(raw)))]); err != nil {
		return err
	}
	_, err = w.buf.Write(raw)
	return err
}

// finish makes sure that the file is on disk.
func (w *recordWriter) finish() error {
	return cmp.Or(w.buf.Flush(), w.file.Sync())
}

func (w *recordWriter) close() error { return w.file.Close() }

// readRecords reads the pages file, in the order of the paths.
func readRecords(path string) ([]*record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<18)
	var out []*record
	var raw []byte
	for {
		n, err := binary.ReadUvarint(in)
		if err == io.EOF {
			break
		}
		if err != nil || n > uint64(info.Size()) {
			return nil, errors.New("pages file is cut short")
		}
		raw = slices.Grow(raw[:0], int(n))[:n]
		if _, err := io.ReadFull(in, raw); err != nil {
			return nil, errors.New("pages file is cut short")
		}
		r := new(record)
		if err := cbor.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("decode page: %w", err)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *record) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// generations lists the complete-looking and abandoned generations of a project.
func generations(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "gen-") {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}
