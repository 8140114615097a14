package uploads

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"docent/api"
	"docent/internal/testing/need"
)

// directoryOf is a zip of nothing but a directory with so many entries, whose end says that there are others.
func directoryOf(entries int, said uint16) []byte {
	var b bytes.Buffer
	entry := make([]byte, 46)
	copy(entry, entryMark)
	binary.LittleEndian.PutUint16(entry[28:], 1)
	for range entries {
		b.Write(entry)
		b.WriteByte('a')
	}
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], said)
	binary.LittleEndian.PutUint16(end[10:], said)
	binary.LittleEndian.PutUint32(end[12:], uint32(b.Len()))
	b.Write(end)
	return b.Bytes()
}

// The memory is counted that reading takes, whatever the zip says of itself.
func TestAZipsDirectoryIsNotReadBeyondWhatAZipMayHold(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	for _, said := range []uint16{0, 100, 1_000_000 % 65536, 65535} {
		packed := directoryOf(1_000_000, said)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		z, err := readZip(bytes.NewReader(packed), int64(len(packed)), 1000)
		runtime.ReadMemStats(&after)
		if z != nil || err == nil {
			t.Fatalf("it says %d entries: %v", said, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("it says %d entries: %d bytes were taken to refuse it", said, took)
		}
	}
	packed := directoryOf(1_000_000, 1_000_000%65536)
	if _, err := readZip(bytes.NewReader(packed), int64(len(packed)), 1000); !errors.Is(err, api.ErrInvalid) {
		t.Error(err)
	}
}

func zipOf(t testing.TB, files int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range files {
		f, err := w.Create(fmt.Sprintf("docs/%d.md", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "# Page\n\nPK\x01\x02 is how an entry begins."); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAZipOfAsManyFilesAsItMayHoldIsRead(t *testing.T) {
	need.NoRace(t, "one goroutine computes for long")
	t.Parallel()
	packed := zipOf(t, 5000)
	z, err := readZip(bytes.NewReader(packed), int64(len(packed)), 5000)
	if err != nil || len(z.File) != 5000 {
		t.Fatalf("%v", err)
	}
	if _, err := readZip(bytes.NewReader(packed), int64(len(packed)), 4999); !errors.Is(err, api.ErrInvalid) {
		t.Error(err)
	}
	r, err := z.File[4999].Open()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || len(text) == 0 {
		t.Errorf("%q, %v", text, err)
	}
}

// FuzzReadZip counts the entries that are made of a zip.
func FuzzReadZip(f *testing.F) {
	f.Add(zipOf(f, 3), uint16(1))
	f.Add(directoryOf(30, 0), uint16(40))
	f.Add(directoryOf(2, 65535), uint16(40))
	f.Fuzz(func(t *testing.T, packed []byte, times uint16) {
		for range times % 8 {
			packed = append(packed, packed[:min(len(packed), 1<<20)]...)
		}
		z, err := readZip(bytes.NewReader(packed), int64(len(packed)), 10)
		if err == nil && len(z.File) > 10+readTwice {
			t.Errorf("%d entries", len(z.File))
		}
	})
}
