// Package index makes the index of a project's documentation, generation by generation: it reads what has changed of a
// tree, decides by the site's rules which files are pages, and writes their records, their texts and Bleve's postings.
package index

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

	"docent/api"
	"docent/internal/disk"
	"docent/search/analysis"
	"docent/search/page"
	"docent/site"
	"docent/site/markup"
)

// The index of a project is a generation: a folder that nobody changes once it is complete.
//
//	PROJECT/CURRENT            name of the generation that is served
//	PROJECT/gen-N/manifest     commit, versions, and size and checksum of every other file
//	PROJECT/gen-N/index/       Bleve: the postings
//	PROJECT/gen-N/pages        what is known of each file
//	PROJECT/gen-N/text         the files' contents
//
// An update makes the next generation beside the served one (Bleve's segments, which never change, by hard link) and
// then replaces CURRENT. So a query sees one generation whole, a crash leaves the one or the other, and what is on disk
// can be checked against the manifest before it is used.

// schemaVersion names the form of a generation and of the documents in it.
const schemaVersion = 9

// Format names the index format that this version writes and reads. Indexes of other formats are rebuilt.
func Format() string { return fmt.Sprintf("%d.%d", schemaVersion, analysis.Version) }

type Manifest struct {
	Schema   int            `json:"schema"`
	Analysis int            `json:"analysis"`
	Commit   string         `json:"commit"`
	DocsDir  string         `json:"docsDir"`
	SiteURL  string         `json:"siteUrl"`
	Site     SiteLabel      `json:"site"`
	Language string         `json:"language"` // the site's default, if something says it
	NextUID  uint32         `json:"nextUid"`
	Pages    int            `json:"pages"`
	Sections int            `json:"sections"`
	Lost     string         `json:"lost,omitempty"` // the rule that leaves out a large part of all pages
	Dead     int            `json:"dead"`           // sections deleted from Bleve whose postings are still in its segments
	Files    []ManifestFile `json:"files"`
}

type ManifestFile struct {
	Name string `json:"name"` // slash-separated, relative to the generation
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

// A SiteLabel is what decides where the links of a site lead.
type SiteLabel struct {
	Kind     api.SiteKind `json:"kind,omitempty"`
	Base     string       `json:"base,omitempty"` // path of the site's root, without slashes at its ends
	AddsBase bool         `json:"addsBase,omitempty"`
	// The templates that the generator knows.
	Templates markup.Templates `json:"templates,omitempty"`
}

func labelOf(where *site.Site) SiteLabel {
	l := SiteLabel{Kind: where.Kind, Templates: where.Templates()}
	l.Base, l.AddsBase = where.LinkBase()
	return l
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeManifest completes a generation: it measures every file, and is on disk when it returns.
func writeManifest(dir string, m Manifest) (Manifest, error) {
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
		m.Files = append(m.Files, ManifestFile{filepath.ToSlash(rel), size, sum})
		return nil
	})
	if err != nil {
		return m, fmt.Errorf("measure %s: %w", dir, err)
	}
	return m, SaveManifest(dir, m)
}

func SaveManifest(dir string, m Manifest) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	line := fmt.Appendf(nil, "%08x\n", crc32.Checksum(body, castagnoli))
	return ReplaceFile(filepath.Join(dir, "manifest"), append(line, body...))
}

func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
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
	if m.Schema != schemaVersion || m.Analysis != analysis.Version {
		return m, fmt.Errorf("made by version %d.%d, this is %s", m.Schema, m.Analysis, Format())
	}
	return m, nil
}

// verify compares every file with the manifest. It reads them all: what is not read cannot be trusted, and it is the
// same bytes that the first queries need.
func verify(dir string, m Manifest) error {
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
	h := crc32.New(castagnoli)
	size, err := io.Copy(h, f)
	return size, h.Sum32(), err
}

// create makes a file that nobody but its owner may read, as all of an index is.
func create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// ReplaceFile writes a file so that a crash leaves the old content or the new.
func ReplaceFile(path string, content []byte) error {
	tmp := path + ".new"
	f, err := create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = cmp.Or(err, f.Sync(), f.Close()); err == nil {
		err = disk.Rename(tmp, path)
	}
	if err == nil {
		err = disk.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
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

func (w *recordWriter) add(r *page.Record) error {
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
func readRecords(path string) ([]*page.Record, error) {
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
	var out []*page.Record
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
		r := new(page.Record)
		if err := recordMode.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("decode page: %w", err)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *page.Record) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// List lists the complete-looking and abandoned List of a project.
func List(dir string) []string {
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

// recordMode reads what this program wrote, under a checksum: a page may have as many sections as its size allows.
var recordMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{MaxArrayElements: 2 * maxFileSize, MaxMapPairs: 2 * maxFileSize}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return mode
}()

// A Generation is one that is complete, as it lies on disk.
type Generation struct {
	Dir      string
	Manifest Manifest
	Records  []*page.Record // in the order of their paths
	Text     *os.File
	Segments int // of Bleve's index, as far as they are known
}

// Open reads a generation after checking all its files. Bleve's own are left to the caller.
func Open(dir string) (*Generation, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := verify(dir, m); err != nil {
		return nil, err
	}
	g := &Generation{Dir: dir, Manifest: m}
	if g.Records, err = readRecords(filepath.Join(dir, "pages")); err != nil {
		return nil, err
	}
	g.Text, err = os.Open(filepath.Join(dir, "text"))
	return g, err
}

// Content reads a file's text, and makes sure that it is the text that was indexed.
func (g *Generation) Content(r *page.Record) ([]byte, error) { return readContent(g.Text, r) }

func readContent(text io.ReaderAt, r *page.Record) ([]byte, error) {
	buf := make([]byte, r.Size)
	if _, err := text.ReadAt(buf, r.Offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.Path, err)
	}
	if crc32.Checksum(buf, castagnoli) != r.CRC {
		return nil, fmt.Errorf("read %s: the stored text is damaged", r.Path)
	}
	return buf, nil
}
