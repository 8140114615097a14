package uploads

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docent/api"
	"docent/search/sources"
)

func zipped(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		e, err := w.Create(f[0])
		if err == nil {
			_, err = e.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// headed is a zip whose entries have headers of their own making.
func headed(t *testing.T, text string, headers ...*zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, h := range headers {
		h.Method = zip.Deflate
		e, err := w.CreateHeader(h)
		if err == nil {
			_, err = e.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const upload = "abcdefghijklmnopqrstuvwxyz"

func keep(t *testing.T, s *Store, dir string, raw []byte) (bool, error) {
	t.Helper()
	in, err := s.Read(upload, bytes.NewReader(raw))
	if err != nil {
		return false, err
	}
	return in.Keep(t.Context(), dir)
}

func collect(t *testing.T, dir string) sources.Collected {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, sources.PagesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := Zips{}.Collect(t.Context(), api.Project{}, dir, func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	pages := os.DirFS(filepath.Join(dir, sources.PagesDir))
	err := fs.WalkDir(pages, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(pages, p)
		out[p] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnUploadReplacesTheOneBeforeWhole(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	dir := filepath.Join(s.Dir, "docs@blog")
	first := zipped(t, [2]string{"blog-main/a.md", "# A"}, [2]string{"blog-main/2026/b.md", "# B"},
		[2]string{"__MACOSX/._a.md", "x"})
	if changed, err := keep(t, s, dir, first); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	if c := collect(t, dir); c.Pages != 2 || c.Changed != 2 {
		t.Errorf("collected %+v", c)
	}
	if got := files(t, dir); len(got) != 2 || got["2026/b.md"] != "# B" {
		t.Errorf("unpacked %v", got)
	}
	if changed, err := keep(t, s, dir, first); err != nil || changed {
		t.Errorf("the same zip again: %v, %v", changed, err)
	}
	if c := collect(t, dir); c.Pages != 2 || c.Changed != 0 {
		t.Errorf("collected again %+v", c)
	}
	if _, err := keep(t, s, dir, []byte("no zip")); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("what is no zip: %v", err)
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("a refused upload has changed the pages: %v", got)
	}
	if _, err := keep(t, s, dir, zipped(t, [2]string{"c.md", "# C"}, [2]string{"d/e.md", "# E"})); err != nil {
		t.Fatal(err)
	}
	collect(t, dir)
	if got := files(t, dir); len(got) != 2 || got["c.md"] != "# C" || got["d/e.md"] != "# E" {
		t.Errorf("unpacked %v", got)
	}
	if left, _ := os.ReadDir(filepath.Join(s.Dir, incoming)); len(left) != 0 {
		t.Errorf("%d uploads are left on their way", len(left))
	}
}

// A process that dies between any two steps leaves what the next one makes the same pages of.
func TestAnUploadThatWasAcknowledgedIsUnpackedAfterACrash(t *testing.T) {
	for name, crash := range map[string]func(dir string) error{
		"before unpacking": func(dir string) error { return os.RemoveAll(filepath.Join(dir, sources.PagesDir)) },
		"while unpacking": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, sources.PagesDir)),
				os.MkdirAll(filepath.Join(dir, "next", "half"), 0o700))
		},
		"between the renames": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, sources.PagesDir), filepath.Join(dir, "old")),
				os.Remove(filepath.Join(dir, unpacked)))
		},
		"before it was noted": func(dir string) error { return os.Remove(filepath.Join(dir, unpacked)) },
	} {
		s := &Store{Dir: t.TempDir()}
		dir := filepath.Join(s.Dir, "docs@blog")
		if _, err := keep(t, s, dir, zipped(t, [2]string{"a.md", "# A"}, [2]string{"b/c.md", "# C"})); err != nil {
			t.Fatal(err)
		}
		collect(t, dir)
		if err := crash(dir); err != nil {
			t.Fatal(name, err)
		}
		collect(t, dir)
		if got := files(t, dir); len(got) != 2 || got["b/c.md"] != "# C" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHarmfulZipsAreRefused(t *testing.T) {
	link := &zip.FileHeader{Name: "link.md"}
	link.SetMode(fs.ModeSymlink | 0o777)
	encrypted := &zip.FileHeader{Name: "secret.md", Flags: 1}
	many := make([][2]string, 30)
	for i := range many {
		many[i] = [2]string{strings.Repeat("d/", i) + "f.md", "x"}
	}
	small := Limits{Packed: 1 << 20, Files: 20, Unpacked: 3 << 20, File: 2 << 20, Ratio: 10}
	zeros := strings.Repeat("\x00", 2<<20)
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"slip":            {zipped(t, [2]string{"../../etc/passwd", "x"}), "leads out"},
		"slip behind":     {zipped(t, [2]string{"a/../../b", "x"}), "leads out"},
		"absolute":        {zipped(t, [2]string{"/etc/passwd", "x"}), "leads out"},
		"drive":           {zipped(t, [2]string{`C:\windows\x`, "x"}), "leads out"},
		"backslashes":     {zipped(t, [2]string{`..\..\x`, "x"}), "leads out"},
		"git":             {zipped(t, [2]string{"a/.git/config", "x"}), "git's own"},
		"hidden":          {zipped(t, [2]string{"a\u202emd.exe", "x"}), "hidden"},
		"encrypted":       {headed(t, "x", encrypted), "encrypted"},
		"only links":      {headed(t, "/etc/passwd", link), "holds no file"},
		"many":            {zipped(t, many...), "more than 20"},
		"ratio":           {zipped(t, [2]string{"bomb.md", zeros}), "fill the disk"},
		"sum":             {zipped(t, [2]string{"a", zeros}, [2]string{"b", zeros}), "unpacks to more"},
		"twice":           {zipped(t, [2]string{"a.md", "1"}, [2]string{"a.md", "2"}), "twice"},
		"file and folder": {zipped(t, [2]string{"a", "1"}, [2]string{"a/b", "2"}), "both as a file"},
		"empty":           {zipped(t), "holds no file"},
		"cut":             {zipped(t, [2]string{"a.md", "text"})[:40], "no zip"},
		"large":           {bytes.Repeat([]byte{1}, 2<<20), "more than 1048576"},
	} {
		s := &Store{Dir: t.TempDir(), Limits: small}
		dir := filepath.Join(s.Dir, "docs@blog")
		_, err := keep(t, s, dir, c.raw)
		if !errors.Is(err, api.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, kept)); err == nil {
			t.Errorf("%s: it was kept", name)
		}
	}
}

// What a zip says of its sizes is not believed: this entry says that it has 10 bytes.
func TestAnEntryThatSaysLessThanItHoldsIsRefused(t *testing.T) {
	raw := zipped(t, [2]string{"a.md", strings.Repeat("text ", 1000)})
	at := bytes.LastIndex(raw, []byte("PK\x01\x02")) + 24
	binary.LittleEndian.PutUint32(raw[at:], 10)
	s := &Store{Dir: t.TempDir()}
	if _, err := keep(t, s, filepath.Join(s.Dir, "x"), raw); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestADamagedEntryIsRefusedBeforeItReplacesAnything(t *testing.T) {
	raw := zipped(t, [2]string{"a.md", "one"}, [2]string{"b.md", strings.Repeat("two", 100)})
	at := bytes.Index(raw, []byte("b.md")) + 8
	raw[at] ^= 0xff
	s := &Store{Dir: t.TempDir()}
	if _, err := keep(t, s, filepath.Join(s.Dir, "x"), raw); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestLinksAndLargeFilesAreLeftOutAndSaidSo(t *testing.T) {
	link := &zip.FileHeader{Name: "link.md"}
	link.SetMode(fs.ModeSymlink | 0o777)
	s := &Store{Dir: t.TempDir()}
	dir := filepath.Join(s.Dir, "x")
	if _, err := keep(t, s, dir, headed(t, "/etc/passwd", link, &zip.FileHeader{Name: "a.md"})); err != nil {
		t.Fatal(err)
	}
	c := collect(t, dir)
	if c.Pages != 1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "link.md") {
		t.Errorf("%+v", c)
	}
	if _, err := os.Lstat(filepath.Join(dir, sources.PagesDir, "link.md")); err == nil {
		t.Error("the link was made")
	}
}

func TestNamesInOtherCharacterSets(t *testing.T) {
	dos := "gr\x81n.md" // in code page 437
	extra := binary.LittleEndian.AppendUint16(nil, 0x7075)
	name := "日本語.md"
	extra = binary.LittleEndian.AppendUint16(extra, uint16(5+len(name)))
	extra = append(extra, 1)
	extra = binary.LittleEndian.AppendUint32(extra, crc32.ChecksumIEEE([]byte("\x93\xfa.md")))
	extra = append(extra, name...)
	raw := headed(t, "x", &zip.FileHeader{Name: dos, NonUTF8: true},
		&zip.FileHeader{Name: "\x93\xfa.md", NonUTF8: true, Extra: extra}, &zip.FileHeader{Name: "été.md"},
		&zip.FileHeader{Name: `sub\folder\page.md`})
	s := &Store{Dir: t.TempDir()}
	dir := filepath.Join(s.Dir, "x")
	if _, err := keep(t, s, dir, raw); err != nil {
		t.Fatal(err)
	}
	collect(t, dir)
	got := files(t, dir)
	for _, want := range []string{"grün.md", "日本語.md", "été.md", "sub/folder/page.md"} {
		if _, ok := got[want]; !ok {
			t.Errorf("%s is not among %v", want, got)
		}
	}
}

func TestPiecesMakeAnUpload(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	raw := zipped(t, [2]string{"a.md", "# A"})
	var in Incoming
	for len(raw) > 0 {
		n := min(len(raw), 50)
		var err error
		if in, err = s.Take(upload, raw[:n]); err != nil {
			t.Fatal(err)
		}
		raw = raw[n:]
	}
	if changed, err := in.Keep(t.Context(), filepath.Join(s.Dir, "x")); err != nil || !changed {
		t.Errorf("%v, %v", changed, err)
	}
	if _, err := s.Take("../../escape-from-here-now", nil); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}
