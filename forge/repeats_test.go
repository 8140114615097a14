package forge_test

import (
	"bytes"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"docent/forge"
	"docent/forge/forgetest"
)

// repeating is a pack in which an object stands twice, with the index that versions before made of it.
func repeating(t *testing.T) (pack, index []byte, name string) {
	t.Helper()
	var p packing
	var at []int
	texts := []string{"# One\n", "# Two\n", "# One\n"}
	for _, text := range texts {
		at = append(at, p.object(plumbing.BlobObject, int64(len(text)), nil, strings.NewReader(text)))
	}
	at = append(at, p.Len())
	body := bytes.Clone(p.Bytes())
	pack, err := io.ReadAll(p.whole())
	if err != nil {
		t.Fatal(err)
	}
	var w idxfile.Writer
	if err := w.OnHeader(uint32(len(texts))); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		w.Add(plumbing.ComputeHash(plumbing.BlobObject, []byte(text)), uint64(12+at[i]), crc32.ChecksumIEEE(body[at[i]:at[i+1]]))
	}
	sum := plumbing.Hash(pack[len(pack)-20:])
	if err := w.OnFooter(sum); err != nil {
		t.Fatal(err)
	}
	made, err := w.Index()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := idxfile.NewEncoder(&b).Encode(made); err != nil {
		t.Fatal(err)
	}
	return pack, b.Bytes(), "pack-" + sum.String()
}

func TestAPackWithRepeatsIsStoredWithoutThem(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, quick)
	r.sync(t)
	pack, _, _ := repeating(t)
	if err := forge.ReadPack(r.Hub, r.project.ID, bytes.NewReader(pack)); err != nil {
		t.Fatal(err)
	}
	fsck(t, r.repository())
	for _, text := range []string{"# One\n", "# Two\n"} {
		hash := plumbing.ComputeHash(plumbing.BlobObject, []byte(text)).String()
		if got := string(forgetest.Raw(t, r.repository(), "cat-file", "blob", hash)); got != text {
			t.Errorf("%s is %q", hash, got)
		}
	}
}

// Versions before joined packs so; what they left is mended when the repository is first read.
func TestAPackWithRepeatsThatIsThereIsMended(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, forgetest.Files)
	r := open(t, t.TempDir(), project(folder), &forgetest.Pulls{}, quick)
	r.publish(t, "docent/job_0", put("page-0.md", "# Page 0\n"))
	pack, index, name := repeating(t)
	packs := filepath.Join(r.repository(), "objects", "pack")
	write(t, packs, map[string]string{name + ".pack": string(pack), name + ".idx": string(index)})
	if err := os.Remove(filepath.Join(r.repository(), "docent-verified")); err != nil {
		t.Fatal(err)
	}
	r = open(t, r.dir, r.project, r.pulls, quick)
	r.sync(t)
	if _, err := os.Stat(filepath.Join(packs, name+".pack")); err == nil {
		t.Error("the pack is still there")
	}
	fsck(t, r.repository())
	r.complete(t, 1)
	hash := plumbing.ComputeHash(plumbing.BlobObject, []byte("# Two\n")).String()
	if got := string(forgetest.Raw(t, r.repository(), "cat-file", "blob", hash)); got != "# Two\n" {
		t.Errorf("%s is %q", hash, got)
	}
}
