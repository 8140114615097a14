// Command image makes Docent's container image of binaries that are built: from scratch, for each platform that there
// is a binary for, without a container engine. The same binaries and the same flags make the same bits.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "version of the release")
	flag.StringVar(&r.revision, "revision", "", "commit that the binaries are built from")
	flag.StringVar(&r.source, "source", "", "address of the source code")
	flag.StringVar(&r.name, "name", "docent", "name that the image gets when an archive is loaded, without the version")
	created := flag.Int64("created", 0, "time of the commit in seconds since 1970, which all in the image bears")
	out := flag.String("out", "", "folder to write to")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: image --version VERSION --out FOLDER BINARY…\n\nMakes archives of the image in FOLDER.")
		flag.PrintDefaults()
	}
	flag.Parse()
	r.created = time.Unix(*created, 0).UTC()
	if r.version == "" || *out == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := build(r, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// build writes an archive of the image for each binary, and one of all of them together.
func build(r release, out string, binaries []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	base, err := baseLayer(r.created)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.OCIImageIndex)
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	seen := map[string]bool{}
	for _, path := range binaries {
		platform, err := platformOf(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if seen[platform.String()] {
			return fmt.Errorf("%s: there is another binary for %s", path, platform)
		}
		seen[platform.String()] = true
		image, err := r.image(platform, base, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		archive := filepath.Join(out, fmt.Sprintf("docent_%s_image_%s_%s.tar", r.version, platform.OS, platform.Architecture))
		if err := writeForEngines(archive, r.name+":"+r.version, image); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		oci := mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		oci = mutate.Annotations(oci, r.labels()).(v1.Image)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: oci, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	archive := filepath.Join(out, fmt.Sprintf("docent_%s_image.oci.tar", r.version))
	if err := writeForRegistries(archive, r, index); err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s %s\n", digest, archive)
	return errors.Join(err, os.WriteFile(archive+".digest", []byte(digest.String()+"\n"), 0o644))
}
