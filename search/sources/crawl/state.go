package crawl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"docent/internal/disk"
)

const stateFile = "crawl.jsonl"

// format is how pages are written. What was written in an older one is read again, whatever servers say of it.
const format = 4

// A kind is what an address is to the crawl.
type kind string

const (
	isPage      kind = "page"
	isDuplicate kind = "duplicate" // another name of the page Of
	isRedirect  kind = "redirect"  // to Of
	isLeftOut   kind = "left out"
	isGone      kind = "gone"
	isFailed    kind = "failed" // and was never a page
	isList      kind = "list"   // of pages
)

// A record is what is known of an address.
type record struct {
	URL      string    `json:"url"`
	Kind     kind      `json:"kind"`
	Round    int       `json:"round"`           // of the crawl that asked for it last
	Changed  int       `json:"changed"`         // the round in which its file was written last
	Since    int       `json:"since"`           // the round in which it became a page
	File     string    `json:"file,omitempty"`  // of the page, below the folder of pages
	Hash     string    `json:"hash,omitempty"`  // of the file
	Text     string    `json:"text,omitempty"`  // hash of the page's text
	Fetch    string    `json:"fetch,omitempty"` // the list that it came with
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"modified,omitempty"` // Last-Modified
	LastMod  string    `json:"lastmod,omitempty"`  // of the sitemap, when it was read last
	Checked  time.Time `json:"checked,omitzero"`   // when the server was asked last and answered
	Of       string    `json:"of,omitempty"`
	Same     bool      `json:"same,omitempty"` // it is a duplicate since its text is the same
	Own      bool      `json:"own,omitempty"`  // its canonical address leads nowhere
	Why      string    `json:"why,omitempty"`  // it is left out, or why asking for it failed
	Failures int       `json:"failures,omitempty"`
	Title    string    `json:"title,omitempty"`
	Words    int       `json:"words,omitempty"`
	Trail    []string  `json:"trail,omitempty"`
	By       string    `json:"by,omitempty"`
	Edit     string    `json:"edit,omitempty"` // where its link for editors leads
	Depth    int       `json:"depth,omitempty"`
	Links    []string  `json:"links,omitempty"`
	Gone     bool      `json:"forgotten,omitempty"` // the record itself is no more
}

// header is the first line of a state, and each later one that stands for it.
type header struct {
	Format      int       `json:"format"`
	Round       int       `json:"round"`
	Began       time.Time `json:"began"`
	Done        bool      `json:"done"`
	Sitemap     bool      `json:"sitemap,omitempty"` // the last crawl read sitemaps or llms.txt
	Description string    `json:"description,omitempty"`
	Language    string    `json:"language,omitempty"`
}

type line struct {
	Header *header `json:"header,omitempty"`
	Record *record `json:"record,omitempty"`
}

// A state is what a crawl knows, in a file that only grows while it goes on: what was written before a program ended is
// there for the next one.
type state struct {
	path    string
	file    *os.File
	head    header
	records map[string]*record
}

func openState(path string) (*state, error) {
	s := &state{path: path, records: map[string]*record{}}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read what is known of the site: %w", err)
	}
	for text := range bytes.Lines(raw) {
		var l line
		if json.Unmarshal(text, &l) != nil {
			continue // a line that was being written when the program ended: its page is asked for again
		}
		switch {
		case l.Header != nil:
			s.head = *l.Header
		case l.Record == nil:
		case l.Record.Gone:
			delete(s.records, l.Record.URL)
		default:
			s.records[l.Record.URL] = l.Record
		}
	}
	if err := s.compact(); err != nil {
		return nil, err
	}
	return s, nil
}

// compact rewrites the file with only the lines that count.
func (s *state) compact() error {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	next := s.path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	errs := []error{enc.Encode(line{Header: &s.head})}
	for _, r := range s.all() {
		errs = append(errs, enc.Encode(line{Record: r}))
	}
	errs = append(errs, w.Flush(), f.Sync(), f.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write what is known of the site: %w", err)
	}
	if err := disk.Rename(next, s.path); err != nil {
		return err
	}
	s.file, err = os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

func (s *state) Close() {
	if s.file != nil {
		s.file.Close()
	}
}

func (s *state) append(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(raw, '\n'))
	return err
}

func (s *state) put(r *record) error {
	s.records[r.URL] = r
	return s.append(line{Record: r})
}

func (s *state) forget(url string) error {
	delete(s.records, url)
	return s.append(line{Record: &record{URL: url, Gone: true}})
}

func (s *state) setHead(h header) error {
	s.head = h
	return s.append(line{Header: &h})
}

// all are the records in the order of their addresses.
func (s *state) all() []*record {
	out := make([]*record, 0, len(s.records))
	for _, r := range s.records {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *record) int { return bytes.Compare([]byte(a.URL), []byte(b.URL)) })
	return out
}
