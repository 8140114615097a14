package forge_test

import (
	"bytes"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"docent/forge"
	"docent/forge/forgetest"
)

// Whatever a remote sends as a pack ends nothing, and inflates to no more than the limit allows.
func FuzzReadPack(f *testing.F) {
	var p packing
	p.Write(make([]byte, 12))
	at := p.object(plumbing.BlobObject, 7, nil, bytes.NewReader([]byte("# Page\n")))
	d := copies(7, 21)
	p.object(plumbing.OFSDeltaObject, int64(len(d)), offset(p.Len()-at), bytes.NewReader(d))
	hash := plumbing.ComputeHash(plumbing.BlobObject, []byte("# Page\n"))
	p.object(plumbing.REFDeltaObject, int64(len(d)), hash[:], bytes.NewReader(d))
	p.Next(12)
	f.Add(p.Bytes(), uint32(3))
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{0x30 | 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, uint32(1))
	folder := f.TempDir()
	hub, err := forge.Open(f.TempDir(), &forgetest.Pulls{}, forge.Options{MaxBytes: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	p1 := project(folder)
	if _, _, err := hub.Sync(f.Context(), p1, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, count uint32) {
		in := packing{count: count}
		in.Write(body)
		before, _ := forge.Inflated(hub)
		_ = forge.ReadPack(hub, p1.ID, in.whole())
		if after, _ := forge.Inflated(hub); after-before > 16<<20 {
			t.Errorf("%d bytes were inflated", after-before)
		}
	})
}
