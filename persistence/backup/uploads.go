package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"docent/internal/disk"
	"docent/persistence/datadir"
)

// copyUploads copies the zips that sources are made of. Each is replaced as a whole while the server runs, so that the
// one that was opened stays as it was.
func copyUploads(from, to string) (n int, err error) {
	folders, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, f := range folders {
		in, err := os.Open(filepath.Join(from, f.Name(), datadir.Upload))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return n, err
		}
		err = copyUpload(in, filepath.Join(to, f.Name()))
		if err = errors.Join(err, in.Close()); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func copyUpload(in io.Reader, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(folder, datadir.Upload), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close(), disk.SyncFolder(folder))
}
