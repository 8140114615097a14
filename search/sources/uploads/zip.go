package uploads

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"docent/api"
)

// Limits of what a zip may hold.
type Limits struct {
	Packed   int64 // bytes of the zip
	Files    int
	Unpacked int64 // bytes of all files together
	File     int64 // bytes of one; a larger one is left out
	Ratio    int64 // times that a file may be larger than it is packed, beyond the first mebibyte
}

// DefaultLimits hold for what people write; what is larger is no documentation.
var DefaultLimits = Limits{Packed: 256 << 20, Files: 50_000, Unpacked: 1 << 30, File: 16 << 20, Ratio: 200}

const (
	longestName = 1000
	longestPart = 255
	ratioFrom   = 1 << 20
	notesMost   = 20
)

// A plan says which entries of a zip become which files.
type plan struct {
	files []planned
	notes []string
	left  int // entries that are left out
}

type planned struct {
	path  string // relative, with slashes, of names that every system has
	entry *zip.File
}

// bad refuses a zip.
func bad(format string, args ...any) error {
	return &api.InvalidError{Problems: []api.Problem{{Field: "zip", Message: fmt.Sprintf(format, args...)}}}
}

// planOf reads a zip's directory. Nothing is unpacked yet.
func planOf(z *zip.Reader, l Limits) (*plan, error) {
	if len(z.File) > l.Files {
		return nil, bad("holds %d entries, more than %d", len(z.File), l.Files)
	}
	p := &plan{}
	seen := make(map[string]bool, len(z.File))
	folders := map[string]bool{}
	var total uint64
	for _, f := range z.File {
		name, err := nameOf(f)
		if err != nil {
			return nil, err
		}
		switch {
		case f.Flags&1 != 0:
			return nil, bad("is encrypted (%.100q): upload one without a password", name)
		case f.FileInfo().IsDir() || strings.HasSuffix(name, "/") || name == "" || clutter(name):
			continue
		case !f.Mode().IsRegular():
			p.leave("%.200q is a link or another special file", name)
			continue
		case f.UncompressedSize64 > uint64(l.File):
			p.leave("%.200q has %d bytes, more than %d", name, f.UncompressedSize64, l.File)
			continue
		case seen[name]:
			return nil, bad("holds %.100q twice", name)
		}
		if total += f.UncompressedSize64; total > uint64(l.Unpacked) {
			return nil, bad("unpacks to more than %d bytes", l.Unpacked)
		}
		seen[name] = true
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
		p.files = append(p.files, planned{name, f})
	}
	for _, f := range p.files {
		if folders[f.path] {
			return nil, bad("holds %.100q both as a file and as a folder", f.path)
		}
	}
	if len(p.files) == 0 {
		return nil, bad("holds no file")
	}
	p.strip()
	slices.SortFunc(p.files, func(a, b planned) int { return strings.Compare(a.path, b.path) })
	return p, nil
}

func (p *plan) leave(format string, args ...any) {
	if p.left++; len(p.notes) < notesMost {
		p.notes = append(p.notes, "left out: "+fmt.Sprintf(format, args...))
	}
}

// strip takes away the one folder that everything lies in, as in the zips that code hosts make of a branch.
func (p *plan) strip() {
	top, _, inside := strings.Cut(p.files[0].path, "/")
	if !inside {
		return
	}
	for _, f := range p.files {
		if !strings.HasPrefix(f.path, top+"/") {
			return
		}
	}
	for i := range p.files {
		p.files[i].path = p.files[i].path[len(top)+1:]
	}
}

// clutter is what systems put into zips beside what people wrote.
func clutter(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(name, "__MACOSX/") || base == ".DS_Store" || base == "Thumbs.db" || base == "desktop.ini"
}

// nameOf is the path of an entry with slashes. One that leads out of the folder is refused with the whole zip: its
// author meant harm, or its pages are not what they seem.
func nameOf(f *zip.File) (string, error) {
	name := strings.ReplaceAll(decodedName(f), `\`, "/")
	trimmed := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	switch {
	case trimmed == "" || trimmed == ".":
		return "", nil
	case strings.HasPrefix(name, "/"), len(name) > 1 && name[1] == ':', !filepath.IsLocal(filepath.FromSlash(trimmed)):
		return "", bad("holds %.200q, which leads out of its folder", name)
	case len(trimmed) > longestName:
		return "", bad("holds a name of %d bytes", len(trimmed))
	case strings.ContainsFunc(trimmed, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }):
		return "", bad("holds %.200q, a name with hidden characters", name)
	}
	for part := range strings.SplitSeq(trimmed, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return "", bad("holds %.200q, which is no plain path", name)
		case len(part) > longestPart:
			return "", bad("holds a name with a part of %d bytes", len(part))
		case strings.EqualFold(part, ".git"):
			return "", bad("holds git's own files (%.200q): upload the pages alone", name)
		}
	}
	if strings.HasSuffix(name, "/") {
		return trimmed + "/", nil
	}
	return trimmed, nil
}

// decodedName is an entry's name in UTF-8: as it says that it is, as Info-ZIP's field has it, or in the zip's own
// character set.
func decodedName(f *zip.File) string {
	if !f.NonUTF8 && utf8.ValidString(f.Name) {
		return f.Name
	}
	if name, ok := unicodeName(f); ok {
		return name
	}
	if utf8.ValidString(f.Name) {
		return f.Name
	}
	name, err := charmap.CodePage437.NewDecoder().String(f.Name)
	if err != nil {
		return strings.ToValidUTF8(f.Name, "_")
	}
	return name
}

// unicodeName reads the field 0x7075, which counts if it is of the name that stands there.
func unicodeName(f *zip.File) (string, bool) {
	for extra := f.Extra; len(extra) >= 4; {
		tag, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; size > len(extra) {
			return "", false
		}
		if field := extra[:size]; tag == 0x7075 && size > 5 && field[0] == 1 &&
			binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(f.Name)) && utf8.Valid(field[5:]) {
			return string(field[5:]), true
		}
		extra = extra[size:]
	}
	return "", false
}

// unpack inflates all files of a plan. What a zip says of itself is not trusted: what comes is counted. to is where a
// file goes; if it is nil, they are only read.
func (p *plan) unpack(l Limits, to func(name string) (io.WriteCloser, error), progress func(done, total int)) error {
	left := l.Unpacked
	for i, f := range p.files {
		if i%100 == 0 {
			progress(i, len(p.files))
		}
		var w io.WriteCloser = discard{io.Discard}
		if to != nil {
			var err error
			if w, err = to(f.path); err != nil {
				return err
			}
		}
		n, err := f.inflate(w, min(l.File, left), l.Ratio)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

func (f *planned) inflate(w io.Writer, most, ratio int64) (int64, error) {
	r, err := f.entry.Open()
	if err != nil {
		return 0, bad("%.200q cannot be unpacked: %v", f.path, err)
	}
	defer r.Close()
	if packed := int64(min(f.entry.CompressedSize64, 1<<40)); most > ratioFrom {
		most = min(most, max(ratioFrom, packed*ratio))
	}
	n, err := io.Copy(w, io.LimitReader(r, most+1))
	switch {
	case n > most:
		return n, bad("%.200q unpacks to more than it may: the zip is not what it says, or is made to fill the disk", f.path)
	case isWrite(err):
		return n, err
	case err != nil:
		return n, bad("%.200q is damaged: %v", f.path, err)
	}
	return n, nil
}

// isWrite tells the disk's trouble from the zip's.
func isWrite(err error) bool {
	var p *os.PathError
	return errors.As(err, &p)
}
