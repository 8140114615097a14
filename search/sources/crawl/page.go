package crawl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"docent/internal/disk"
	"docent/persistence/datadir"
	"docent/search/sources/crawl/article"
)

// A text is a page as it was read, before it is written.
type text = article.Article

var (
	frontMatter = regexp.MustCompile(`(?s)\A---\r?\n(.*?)\r?\n---\r?\n`)
	frontLine   = regexp.MustCompile(`(?m)^(title|description):[ \t]*(.+?)[ \t]*\r?$`)
	firstTitle  = regexp.MustCompile(`\A\s*# +(.+?)[ #]*(?:\r?\n|\z)`)
	indexNote   = regexp.MustCompile(`\A\s*(?:>[^\n]*\n)*>[^\n]*llms\.txt[^\n]*\n(?:>[^\n]*\n)*`)
)

// readMarkdown reads a page that is Markdown already.
func readMarkdown(raw []byte) text {
	t := text{By: "Markdown"}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if m := frontMatter.FindSubmatch(raw); m != nil {
		for _, l := range frontLine.FindAllSubmatch(m[1], -1) {
			value := strings.Trim(string(l[2]), `"'`)
			if string(l[1]) == "title" {
				t.Title = value
			} else {
				t.Description = value
			}
		}
		raw = raw[len(m[0]):]
	}
	raw = indexNote.ReplaceAll(raw, nil) // how programs find the other pages
	if m := firstTitle.FindSubmatch(raw); m != nil {
		if t.Title == "" || t.Title == string(m[1]) {
			t.Title, raw = string(m[1]), raw[len(m[0]):]
		}
	}
	t.Markdown = append(bytes.TrimSpace(raw), '\n')
	t.Words = len(bytes.Fields(raw))
	return t
}

// readPlain reads a page that is only text.
func readPlain(u *url.URL, raw []byte) text {
	title := path.Base(u.Path)
	return text{Title: title, Markdown: append(bytes.TrimSpace(raw), '\n'), Words: len(bytes.Fields(raw)), By: "plain text"}
}

// versions are the parts of a path that name a version of what is documented.
var versions = regexp.MustCompile(`^(?:v?\d+(?:\.(?:\d+|x))*|v\d[\w.-]*|\d+\.\d+[\w.-]*|latest|stable|next|dev|nightly|canary|edge|main|master|current)$`)

// years begin the dates in the addresses of blogs.
var years = regexp.MustCompile(`^(?:19|20)\d\d$`)

// versionOf is the version that the address of a page names: in one of the first parts of its path, above the page. A
// date is none, and neither is the version of an API.
func versionOf(u *url.URL) string {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	parts = parts[:len(parts)-1] // /latest/ may be the site's only home
	for i, part := range parts[:min(len(parts), 4)] {
		if !versions.MatchString(strings.ToLower(part)) {
			continue
		}
		if years.MatchString(part) || i > 0 && (parts[i-1] == "api" || parts[i-1] == "rest") {
			return ""
		}
		return part
	}
	return ""
}

// quote writes a value of the front matter.
func quote(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can be encoded
	return strings.TrimSpace(b.String())
}

// fileText is a page as it is written.
func fileText(t *text, u *url.URL) []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, f := range [][2]string{{"title", t.Title}, {"description", t.Description}, {"url", u.String()},
		{"language", t.Language}, {"version", versionOf(u)}} {
		if f[1] != "" {
			b.WriteString(f[0] + ": " + quote(f[1]) + "\n")
		}
	}
	b.WriteString("---\n\n")
	b.Write(t.Markdown)
	return b.Bytes()
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// intact reports whether the file of a page is as it was written.
func (r *run) intact(rec *record) bool {
	if rec.File == "" {
		return rec.Kind != isPage
	}
	content, err := os.ReadFile(filepath.Join(r.at.Pages, filepath.FromSlash(rec.File)))
	return err == nil && hashOf(content) == rec.Hash
}

// write writes the file of a page. What is there is whole at any time.
func (r *run) write(name string, content []byte) error {
	to := filepath.Join(r.at.Pages, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	next := filepath.Join(r.at.State, "page.new")
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return disk.Rename(next, to)
}

// remove removes the file of a page, and folders that are empty then.
func (r *run) remove(name string) {
	if name == "" {
		return
	}
	to := filepath.Join(r.at.Pages, filepath.FromSlash(name))
	_ = os.Remove(to) // what is not there need not be removed
	for dir := filepath.Dir(to); dir != r.at.Pages && len(dir) > len(r.at.Pages); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// fileFor is the path of a page's file: one that no other page has.
func (r *run) fileFor(u *url.URL, ext string) string {
	name := fileOf(u, ext)
	if owner, taken := r.files[strings.ToLower(name)]; taken && owner != u.String() {
		name = strings.TrimSuffix(name, ext) + "~" + short(u.String()) + ext
	}
	r.files[strings.ToLower(name)] = u.String()
	return name
}

// writeCollected says what the pages have in common.
func (r *run) writeCollected() error {
	c := collected{Address: r.scope.origin, Language: r.state.head.Language, Trails: map[string][]string{},
		Addresses: map[string]string{}, Edits: map[string]string{}}
	for _, rec := range r.state.records {
		if rec.Kind != isPage {
			continue
		}
		if len(rec.Trail) > 0 {
			c.Trails[rec.File] = rec.Trail
		}
		c.Addresses[rec.File] = rec.URL
		if rec.Edit != "" {
			c.Edits[rec.File] = rec.Edit
		}
	}
	raw, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	name := filepath.Join(r.at.Pages, collectedFile)
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, raw) {
		return nil
	}
	return datadir.WriteFile(name, raw, 0o600)
}
