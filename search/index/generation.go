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
	"math"
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
//	PROJECT/gen-N/pages        what is known of each file, a record for each; of several for one path the last counts
//	PROJECT/gen-N/text         the files' contents
//
// An update makes the next generation beside the served one and then replaces CURRENT. So a query sees one generation
// whole, a crash leaves the one or the other, and what is on disk can be checked against the manifest before it is used.
// What has not changed is taken over by hard link: Bleve's segments, which never change, and the files pages and text,
// which are logs: the next generation goes on behind the end that the manifest of the one before names. What stands
// behind the end of a generation is not its own.

// schemaVersion names the form of a generation and of the documents in it.
const schemaVersion = 16

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
	Lost     string         `json:"lost,omitempty"`   // the rule that leaves out a large part of all pages
	Dead     int            `json:"dead"`             // sections deleted from Bleve whose postings are still in its segments
	Stale    int            `json:"stale"`            // records in the file pages that are no longer the last of their path
	Listed   []uint32       `json:"listed,omitempty"` // UIDs of the pages of the navigation in its order
	About    string         `json:"about,omitempty"`  // what the site's configuration says of it
	Files    []ManifestFile `json:"files"`
}

// Places are the places of pages in the navigation, from 1, by their UIDs.
func (m *Manifest) Places() map[uint32]int {
	places := make(map[uint32]int, len(m.Listed))
	for i, uid := range m.Listed {
		places[uid] = i + 1
	}
	return places
}

// Description is what a page says of itself, or where the site begins, what the site does.
func (m *Manifest) Description(r *page.Record) string {
	if r.Description == "" && strings.Trim(r.Shown, "/") == "" {
		return m.About
	}
	return r.Description
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

// file is what the manifest says of a file.
func (m *Manifest) file(name string) (ManifestFile, bool) {
	i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { return f.Name == name })
	if i < 0 {
		return ManifestFile{}, false
	}
	return m.Files[i], true
}

// writeManifest completes a generation: it measures every file that is not measured yet, and is on disk when it returns.
// Files that the old generation has too, by hard link, are as they were measured there.
func writeManifest(dir string, m Manifest, measured []ManifestFile, old *Generation) (Manifest, error) {
	m.Files = measured
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, "manifest") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if _, known := m.file(name); known {
			return nil
		}
		if old != nil && filepath.Ext(path) == ".zap" {
			before, known := old.Manifest.file(name)
			was, err1 := os.Stat(filepath.Join(old.Dir, rel))
			is, err2 := d.Info()
			if known && err1 == nil && err2 == nil && os.SameFile(was, is) {
				m.Files = append(m.Files, before)
				return nil
			}
		}
		size, sum, err := checksum(path, math.MaxInt64)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, ManifestFile{name, size, sum})
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
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		size, sum, err := checksum(path, f.Size)
		if err != nil {
			return err
		}
		if info, err := os.Stat(path); err != nil || size != f.Size || sum != f.CRC ||
			info.Size() != size && f.Name != "pages" && f.Name != "text" {
			return fmt.Errorf("%s is damaged", f.Name)
		}
	}
	return nil
}

// checksum reads a file, but no more of it than so many bytes.
func checksum(path string, most int64) (int64, uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	size, err := io.CopyBuffer(h, io.LimitReader(f, most), make([]byte, 1<<18))
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

// A logWriter writes a log, and measures it.
type logWriter struct {
	file    *os.File
	buf     *bufio.Writer
	written ManifestFile
}

func createLog(dir, name string) (*logWriter, error) {
	f, err := create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return &logWriter{f, bufio.NewWriterSize(f, 1<<18), ManifestFile{Name: name}}, nil
}

// continueLog goes on behind the end of a generation's log.
func continueLog(old *Generation, dir, name string) (*logWriter, error) {
	end, ok := old.Manifest.file(name)
	if !ok {
		return nil, fmt.Errorf("the index that is served has no file %s", name)
	}
	from, to := filepath.Join(old.Dir, name), filepath.Join(dir, name)
	if os.Link(from, to) != nil { // a file system without links
		if err := copyFile(from, to); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &logWriter{f, bufio.NewWriterSize(io.NewOffsetWriter(f, end.Size), 1<<18), end}, nil
}

func (w *logWriter) Write(p []byte) (int, error) {
	n, err := w.buf.Write(p)
	w.written.Size += int64(n)
	w.written.CRC = crc32.Update(w.written.CRC, castagnoli, p[:n])
	return n, err
}

// add writes a record. They come in any order.
func (w *logWriter) add(r *page.Record) error {
	raw, err := cbor.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", r.Path, err)
	}
	var length [binary.MaxVarintLen64]byte
	if _, err := w.Write(length[:binary.PutUvarint(length[:], uint64(len(raw)))]); err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

// finish makes sure that the file is on disk.
func (w *logWriter) finish() error {
	return cmp.Or(w.buf.Flush(), w.file.Sync())
}

func (w *logWriter) close() error { return w.file.Close() }

// readRecords reads a stretch of the pages file, in the order in which it was written.
func readRecords(path string, from, to int64) ([]*page.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 1<<18)
	var out []*page.Record
	var raw []byte
	for {
		n, err := binary.ReadUvarint(in)
		if err == io.EOF {
			break
		}
		if err != nil || n > uint64(to-from) {
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
	return out, nil
}

// later are the records that were known, which are in the order of their paths, with those that were written since in
// their places.
func later(known, written []*page.Record) []*page.Record {
	slices.SortStableFunc(written, func(a, b *page.Record) int { return strings.Compare(a.Path, b.Path) })
	out := make([]*page.Record, 0, len(known)+len(written))
	for i, r := range written {
		if i+1 < len(written) && written[i+1].Path == r.Path {
			continue
		}
		n, there := slices.BinarySearchFunc(known, r.Path, func(r *page.Record, p string) int { return strings.Compare(r.Path, p) })
		out, known = append(out, known[:n]...), known[n:]
		if there {
			known = known[1:]
		}
		if r.Kind != page.KindGone {
			out = append(out, r)
		}
	}
	return append(out, known...)
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
	Segments int       // of Bleve's index, as far as they are known
	standing *standing // nil if another process made it
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
	if err := g.open(nil, 0); err != nil {
		return nil, err
	}
	return g, nil
}

// open opens the files of a generation. The records that lie in its log from there on are read, those before are known.
func (g *Generation) open(known []*page.Record, from int64) error {
	log, ok := g.Manifest.file("pages")
	if !ok {
		return errors.New("the file pages is not in the manifest")
	}
	written, err := readRecords(filepath.Join(g.Dir, "pages"), from, log.Size)
	if err != nil {
		return err
	}
	g.Records = later(known, written)
	g.Text, err = os.Open(filepath.Join(g.Dir, "text"))
	return err
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
