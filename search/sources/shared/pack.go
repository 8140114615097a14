package shared

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// pack writes the files of a folder.
func pack(dir string, to io.Writer) error {
	zipped, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zipped)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || name == versionFile {
			return err
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600}); err != nil {
			return err
		}
		_, err = io.Copy(out, io.LimitReader(file, info.Size()))
		return err
	})
	return errors.Join(err, out.Close(), zipped.Close())
}

// unpack makes the files of what pack has written, in a folder that is empty. Nothing is written elsewhere.
func unpack(from io.Reader, dir string) error {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for in := tar.NewReader(zipped); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, zipped) // whose checksum is behind
			return err
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(head.Name)
		if head.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || strings.HasPrefix(head.Name, "/") {
			return fmt.Errorf("%q is no file of a source", head.Name)
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, in)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}
