package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"docent/internal/disk"
)

// Backup writes a consistent copy of a SQLite catalog to a new file at path, while others read and write. The file is
// there in full or not at all.
func (c *Catalog) Backup(ctx context.Context, path string) error {
	if c.Path == "" {
		return errors.New("the catalog is on PostgreSQL: back it up with pg_dump")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up %s: %s is there already", c.Name, path)
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up %s: %w", c.Name, err)
	}
	// SQLite writes into an empty file, and the copy must not be readable for others while it grows.
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("back up %s: %w", c.Name, err)
	}
	defer os.Remove(part) // gone by its name when all went well
	defer f.Close()
	if err := c.copyTo(ctx, part); err != nil {
		return c.Fail("back up", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("back up %s: %w", c.Name, err)
	}
	if err := disk.Rename(part, path); err != nil {
		return fmt.Errorf("back up %s: %w", c.Name, err)
	}
	return disk.SyncFolder(filepath.Dir(path))
}

// copyTo runs on a connection of its own: the reading ones may not write, and the writing one stays free.
func (c *Catalog) copyTo(ctx context.Context, path string) error {
	conn, err := c.Read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only(0)"); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", path)
	if _, back := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only(1)"); err == nil {
		err = back
	}
	return err
}
