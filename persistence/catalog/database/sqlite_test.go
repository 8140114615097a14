package database_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docent/api"
	"docent/persistence/catalog"
	"docent/persistence/catalog/catalogtest"
)

func TestDamagedFileIsNamed(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "whole.db")
	c := catalogtest.Place{T: t, DSN: "sqlite:" + whole}.Open(catalog.Options{})
	for i := range 50 {
		catalogtest.AddProject(t, c, fmt.Sprintf("docs%d", i))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string][]byte{
		"no database":       []byte("this is a text file, which is longer than a header"),
		"a few bytes":       []byte("SQLite"),
		"cut off":           good[:len(good)/2/4096*4096+100],
		"a page of zeroes":  append(append(bytes.Clone(good[:8192]), make([]byte, 4096)...), good[12288:]...),
		"a schema of noise": append(append(bytes.Clone(good[:100]), bytes.Repeat([]byte{0xa5}, 3996)...), good[4096:]...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "damaged.db")
			if err := os.WriteFile(path, bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := catalog.Open(t.Context(), "sqlite:"+path, catalog.Options{})
			if !errors.Is(err, catalog.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the file and wraps ErrCorrupt", err)
			}
			left, readErr := os.ReadFile(path)
			if readErr != nil || string(left) != string(bytes) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

func TestLockedFileIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	dsn := "sqlite:" + path
	c := catalogtest.Place{T: t, DSN: dsn}.Open(catalog.Options{LockWait: 10 * time.Millisecond})
	catalogtest.AddProject(t, c, "docs")
	other, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddProject(t.Context(), catalogtest.Project("blog")); !errors.Is(err, api.ErrUnavailable) ||
		!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("writing: error %v, want one that says that the file is locked", err)
	}
	catalogtest.Must(c.Project(t.Context(), "docs"))(t)                                      // reading goes on
	catalogtest.Place{T: t, DSN: dsn}.Open(catalog.Options{LockWait: 10 * time.Millisecond}) // and so does opening
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	catalogtest.AddProject(t, c, "blog")

	fresh := filepath.Join(t.TempDir(), "fresh.db")
	holder, err := sql.Open("sqlite", fresh+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	tx, err = holder.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, err = catalog.Open(t.Context(), "sqlite:"+fresh, catalog.Options{LockWait: 10 * time.Millisecond})
	if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), fresh) {
		t.Errorf("opening a file that another process is making: error %v", err)
	}
}

func TestPathThatCannotBeOpenedIsNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "missing", "catalog.db")} {
		if _, err := catalog.Open(t.Context(), "sqlite:"+path, catalog.Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	for _, dsn := range []string{"", "sqlite:", "sqlite::memory:", "catalog.db"} {
		if _, err := catalog.Open(t.Context(), dsn, catalog.Options{}); err == nil {
			t.Errorf("%q was opened", dsn)
		}
	}
}

func TestOddPathsWork(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c=d&e#f%20g%.db")
	c := catalogtest.Place{T: t, DSN: "sqlite:" + path}.Open(catalog.Options{})
	catalogtest.AddProject(t, c, "docs")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v: others can read it", info.Mode())
	}
	for _, more := range []string{"-wal", "-shm"} {
		if info, err := os.Stat(path + more); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", more, info, err)
		}
	}
}

func TestAcknowledgedWritesAreSynced(t *testing.T) {
	t.Parallel()
	c := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
		var got string
		if err := c.Write.NewRaw("PRAGMA "+pragma).Scan(t.Context(), &got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", pragma, got, err, want)
		}
	}
	if _, err := c.Read.Exec("DELETE FROM projects"); err == nil {
		t.Error("a reading connection can write")
	}
}

func TestFullDiskRefusesWritesAndServesReads(t *testing.T) {
	t.Parallel()
	c := catalogtest.Place{T: t, DSN: "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")}.Open(catalog.Options{})
	catalogtest.AddProject(t, c, "docs")
	var pages int
	if err := c.Write.NewRaw("PRAGMA page_count").Scan(t.Context(), &pages); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write.Exec("PRAGMA max_page_count = ?", pages); err != nil {
		t.Fatal(err)
	}
	var full error
	added := 0
	for ; full == nil; added++ {
		_, full = c.AddProject(t.Context(), catalogtest.Project(fmt.Sprintf("more%d", added)))
	}
	if !errors.Is(full, api.ErrUnavailable) {
		t.Errorf("writing: error %v, want one that says to try again later", full)
	}
	if got := catalogtest.Must(c.Projects(t.Context()))(t); len(got) != added { // docs, and all but the last
		t.Errorf("%d projects, want %d", len(got), added)
	}
	if _, err := c.Write.Exec("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	catalogtest.AddProject(t, c, "room-again")
}
