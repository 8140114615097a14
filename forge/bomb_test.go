package forge_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/api"
	"docent/forge"
	"docent/forge/forgetest"
	"docent/internal/testing/need"
)

// A hostile repository is made here, not kept: it is small and stands for very much.

// hostile is a bare repository. Its objects are added by hand, since git would hold them in memory.
type hostile struct {
	t   *testing.T
	dir string
}

func newHostile(t *testing.T) *hostile {
	h := &hostile{t: t, dir: filepath.Join(t.TempDir(), "hostile.git")}
	git(t, t.TempDir(), "init", "-q", "--bare", "-b", "main", h.dir)
	return h
}

func (h *hostile) add(kind string, size int64, content io.Reader) string {
	h.t.Helper()
	var b bytes.Buffer
	sum := sha1.New()
	z := zlib.NewWriter(&b)
	w := io.MultiWriter(sum, z)
	fmt.Fprintf(w, "%s %d\x00", kind, size)
	if n, err := io.Copy(w, content); err != nil || n != size {
		h.t.Fatal(n, err)
	}
	if err := z.Close(); err != nil {
		h.t.Fatal(err)
	}
	id := fmt.Sprintf("%x", sum.Sum(nil))
	name := filepath.Join(h.dir, "objects", id[:2], id[2:])
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b.Bytes(), 0o600)); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *hostile) blob(content string) string {
	return h.add("blob", int64(len(content)), strings.NewReader(content))
}

// tree holds the same object under many names.
func (h *hostile) tree(mode string, id string, names ...string) string {
	var b bytes.Buffer
	raw := plumbing.NewHash(id)
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s\x00", mode, name)
		b.Write(raw[:])
	}
	return h.add("tree", int64(b.Len()), &b)
}

func (h *hostile) commit(tree string, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, p := range parents {
		text += "parent " + p + "\n"
	}
	text += "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nbomb\n"
	id := h.add("commit", int64(len(text)), strings.NewReader(text))
	git(h.t, h.dir, "update-ref", "refs/heads/main", id)
	return id
}

func numbered(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("n%03d", i))
	}
	return list
}

// manyNames has 10^6 names in a few objects.
func manyNames(t *testing.T) *hostile {
	h := newHostile(t)
	id := h.tree("100644", h.blob("# Page\n"), numbered(10)...)
	for range 5 {
		id = h.tree("40000", id, numbered(10)...)
	}
	h.commit(id)
	return h
}

// onSecondProject is a project that nobody means any harm.
func onSecondProject(t *testing.T) *rig {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	return open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{})
}

// refusal checks that an error names the limit and the project, is for somebody to mend, and is no damage.
func refusal(t *testing.T, r *rig, err error, limit string) {
	t.Helper()
	var said *forge.HostError
	if !errors.Is(err, forge.ErrMisconfigured) || !errors.As(err, &said) ||
		!strings.Contains(said.Say, string(r.project.ID)) || !strings.Contains(said.Say, limit) {
		t.Errorf("the refusal is %v, want one that names %s and %s", err, r.project.ID, limit)
	}
	if list := r.asides(t); len(list) > 0 {
		t.Errorf("put aside: %v", list)
	}
}

// listing reads the names of all files.
func listing(t *testing.T, r *rig, commit string) error {
	t.Helper()
	tree, err := r.Tree(t.Context(), r.project, commit)
	if err != nil {
		return err
	}
	_, err = tree.Files(t.Context())
	return err
}

func TestAMillionNamesInAFewObjectsAreRefused(t *testing.T) {
	for _, kind := range []string{"names", "folders", "depth", "long paths", "one tree"} {
		t.Run(kind, func(t *testing.T) {
			if !need.All && kind != "names" {
				t.Skip("one of each kind takes seconds")
			}
			limit := "200000 files"
			h := newHostile(t)
			switch kind {
			case "names":
				h = manyNames(t)
			case "folders": // that hold nothing
				id := h.add("tree", 0, strings.NewReader(""))
				for range 6 {
					id = h.tree("40000", id, numbered(10)...)
				}
				h.commit(id)
			case "depth":
				limit = "4096 bytes"
				id := h.tree("100644", h.blob("# Page\n"), "page.md")
				for range 2100 {
					id = h.tree("40000", id, "d")
				}
				h.commit(id)
			case "long paths":
				limit = "268435456 bytes"
				id := h.tree("100644", h.blob("# Page\n"), numbered(1000)...)
				id = h.tree("40000", id, numbered(100)...)
				for range 15 {
					id = h.tree("40000", id, strings.Repeat("d", 250))
				}
				h.commit(id)
			case "one tree":
				names := make([]string, 0, 400_001)
				for i := range cap(names) {
					names = append(names, fmt.Sprintf("n%06d", i))
				}
				h.commit(h.tree("100644", h.blob("# Page\n"), names...))
			}
			r := open(t, t.TempDir(), project(h.dir), &forgetest.Pulls{}, forge.Options{})
			tip, _, err := r.Sync(t.Context(), r.project, nil)
			if err == nil {
				err = listing(t, r, tip.Commit)
			}
			refusal(t, r, err, limit)
			if _, held := forge.Inflated(r.Hub); held > 96<<20 {
				t.Errorf("%d bytes were held in memory", held)
			}
		})
	}
}

// What a pull request changes is compared with what was there: both may be bombs.
func TestAMillionChangedNamesAreRefused(t *testing.T) {
	h := newHostile(t)
	ids := [2]string{h.tree("100644", h.blob("# Page\n"), numbered(10)...),
		h.tree("100644", h.blob("# Other\n"), numbered(10)...)}
	for range 5 {
		for i := range ids {
			ids[i] = h.tree("40000", ids[i], numbered(10)...)
		}
	}
	page := h.tree("100644", h.blob("# Page\n"), "page.md")
	first := h.commit(page)
	bombs := [2]string{h.commit(ids[0], first), h.commit(ids[1], first)}
	git(t, h.dir, "update-ref", "refs/heads/main", bombs[0])
	git(t, h.dir, "update-ref", "refs/heads/other", bombs[1])
	r := open(t, t.TempDir(), project(h.dir), &forgetest.Pulls{}, forge.Options{})
	r.sync(t)
	git(t, r.repository(), "fetch", "-q", "--unshallow", h.dir, "main:main", "other:other")
	r = open(t, r.dir, r.project, r.pulls, forge.Options{})
	pull, err := r.pulls.AddPull(t.Context(),
		api.PullRequest{ID: api.NewID(api.PullPrefix, time.Now()), Project: r.project.ID, Head: "other", Base: "main",
			State: api.PullOpen})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Diff(t.Context(), pull.ID)
	refusal(t, r, err, "200000 files")
	_, err = r.Merge(t.Context(), pull.ID)
	if err == nil || !strings.Contains(err.Error(), "200000 files") {
		t.Errorf("a merge says %v", err)
	}
}

// A file that is sent in some kilobytes and is hundreds of megabytes is kept, and never held in memory. The limit of
// what is read is for it too.
func TestZerosBeyondTheLimitAreNotHeldInMemory(t *testing.T) {
	need.Everything(t, "inflates hundreds of megabytes")
	const size = 256 << 20 // four times what is read of one object
	h := newHostile(t)
	zeros := h.add("blob", size, io.LimitReader(zero{}, size))
	page := h.blob("# Page\n")
	var b bytes.Buffer
	for _, e := range []struct{ name, id string }{{"page.md", page}, {"zeros.md", zeros}} {
		raw := plumbing.NewHash(e.id)
		fmt.Fprintf(&b, "100644 %s\x00", e.name)
		b.Write(raw[:])
	}
	h.commit(h.add("tree", int64(b.Len()), &b))
	r := open(t, t.TempDir(), project(h.dir), &forgetest.Pulls{}, forge.Options{})
	tip, _ := r.sync(t)
	tree, err := r.Tree(t.Context(), r.project, tip.Commit)
	if err != nil {
		t.Fatal(err)
	}
	files, err := tree.Files(t.Context())
	if err != nil || len(files) != 2 || files[1].Size != size {
		t.Errorf("the files are %v, %v", files, err)
	}
	if text, err := tree.Read(t.Context(), "page.md"); err != nil || string(text) != "# Page\n" {
		t.Errorf("the page reads %q, %v", text, err)
	}
	if _, err := tree.Read(t.Context(), "zeros.md"); err == nil || !strings.Contains(err.Error(), "more than the limit") {
		t.Errorf("the zeros: %v", err)
	}
	// It is published beside, and the repository is packed and damaged: all that reads it too.
	r.publish(t, "docent/job_1", put("new.md", "# New\n"))
	if err := forge.Pack(t.Context(), r.Hub, r.project.ID); err != nil {
		t.Fatal(err)
	}
	if all, held := forge.Inflated(r.Hub); held > 1<<20 || all > size+8<<20 {
		t.Errorf("%d bytes were inflated, %d held in memory", all, held)
	}
}

type zero struct{}

func (zero) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A packing writes packs as others send them.
type packing struct {
	bytes.Buffer
	count uint32
}

func (p *packing) object(kind plumbing.ObjectType, size int64, extra []byte, content io.Reader) int {
	at := p.Len()
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	p.WriteByte(c)
	p.Write(extra)
	z := zlib.NewWriter(p)
	io.Copy(z, content)
	z.Close()
	p.count++
	return at
}

func (p *packing) whole() io.Reader {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.count)
	body := append(head, p.Bytes()...)
	sum := sha1.Sum(body)
	return bytes.NewReader(append(body, sum[:]...))
}

// copies is a difference that repeats its base so often that it becomes size bytes.
func copies(base, size int) []byte {
	number := func(n int) (b []byte) {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	d := append(number(base), number(size)...)
	for left := size; left > 0; left -= min(left, base) {
		n := min(left, base)
		d = append(d, 0xf0, byte(n), byte(n>>8), byte(n>>16)) // from the beginning
	}
	return d
}

func TestPacksBeyondALimitAreRefusedBeforeTheyAreInflated(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	const kilo, mega = 1 << 10, 1 << 20
	for _, c := range []struct {
		name  string
		make  func(p *packing)
		limit string
		held  int64
	}{
		{"a tree of a gigabyte", func(p *packing) {
			p.object(plumbing.TreeObject, 1<<30, nil, io.LimitReader(zero{}, mega)) // there is no more of it
		}, "67108864", kilo},
		{"more than is said to come", func(p *packing) {
			for range 9 {
				p.object(plumbing.BlobObject, 8*mega, nil, io.LimitReader(zero{}, 8*mega))
			}
		}, "67108864 bytes", kilo},
		{"a difference of a gigabyte", func(p *packing) {
			at := p.object(plumbing.BlobObject, mega, nil, io.LimitReader(zero{}, mega))
			d := copies(mega, 1<<30)
			p.object(plumbing.OFSDeltaObject, int64(len(d)), offset(p.Len()-at), bytes.NewReader(d))
		}, "67108864", kilo},
		{"differences to differences", func(p *packing) {
			at := p.object(plumbing.BlobObject, mega, nil, io.LimitReader(zero{}, mega))
			for n := mega; n < 64*mega; n *= 2 {
				d := copies(n, 2*n)
				next := p.Len()
				p.object(plumbing.OFSDeltaObject, int64(len(d)), offset(next-at), bytes.NewReader(d))
				at = next
			}
		}, "67108864 bytes", kilo},
		{"many objects", func(p *packing) { p.count = 3_000_000 }, "1000000", kilo},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, forgetest.Files)
			r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, forge.Options{MaxBytes: 64 * mega})
			r.sync(t)
			_, before := forge.Inflated(r.Hub)
			var p packing
			p.Grow(mega)
			p.Write(make([]byte, 12)) // so that places are those in the pack
			c.make(&p)
			p.Next(12)
			refusal(t, r, forge.ReadPack(r.Hub, r.project.ID, p.whole()), c.limit)
			if _, held := forge.Inflated(r.Hub); held-before > c.held {
				t.Errorf("%d bytes were held in memory", held-before)
			}
			if left, _ := filepath.Glob(filepath.Join(r.repository(), "objects/pack/*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// offset is how far back a difference's base stands, as packs write it.
func offset(n int) []byte {
	b := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		b = append([]byte{byte(n&0x7f) | 0x80}, b...)
	}
	return b
}

func TestASecondProjectAnswersBesideAHostileOne(t *testing.T) {
	good := onSecondProject(t)
	bad := manyNames(t)
	p := project(bad.dir)
	p.ID = "hostile"
	good.pulls.Known[p.ID] = p
	r := &rig{Hub: good.Hub, dir: good.dir, project: p, pulls: good.pulls}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { done <- n }()
		for ; ; n++ {
			tip, _, err := r.Sync(t.Context(), p, nil)
			if err == nil {
				err = listing(t, r, tip.Commit)
			}
			if !errors.Is(err, forge.ErrMisconfigured) {
				t.Errorf("the hostile project: %v", err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for i := range 20 {
		good.publish(t, fmt.Sprintf("docent/job_%d", i), put(fmt.Sprintf("page-%d.md", i), fmt.Sprintf("# Page %d\n", i)))
		good.complete(t, i+1)
	}
	close(stop)
	if n := <-done; t.Failed() || n < 0 {
		t.Errorf("after %d readings of the hostile project", n)
	}
	if list := good.asides(t); len(list) > 0 {
		t.Errorf("put aside: %v", list)
	}
}

// A folder, a work tree and what is fetched have the same limit.
func TestEverySourceHasTheLimitOfFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("page-%d.md", i)] = "# Page\n"
	}
	for _, kind := range []string{"folder", "work tree", "repository"} {
		t.Run(kind, func(t *testing.T) {
			source := t.TempDir()
			write(t, source, files)
			if kind != "folder" {
				git(t, source, "init", "-q")
				git(t, source, "add", "-A")
				git(t, source, "commit", "-q", "-m", "one")
			}
			if kind == "repository" {
				source = "file://" + source
			}
			r := open(t, t.TempDir(), project(source), &forgetest.Pulls{}, forge.Options{MaxFiles: 10})
			tip, _, err := r.Sync(t.Context(), r.project, nil)
			if err == nil {
				err = listing(t, r, tip.Commit)
			}
			refusal(t, r, err, "10 files")
			r = open(t, t.TempDir(), project(source), &forgetest.Pulls{}, forge.Options{MaxFiles: 12})
			tip, _ = r.sync(t)
			if err := listing(t, r, tip.Commit); err != nil {
				t.Error(err)
			}
		})
	}
}
