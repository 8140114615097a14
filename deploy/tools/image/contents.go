package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is whom the program runs as: no user of the host, and the one that other images without root take.
const user = 65532

// What an image has.
const (
	program      = "usr/bin/docent"
	certificates = "etc/ssl/certs/ca-certificates.crt"
	data         = "data" // the one folder that is written to
	port         = "8080"
)

// A release is what is said of all images of one version.
type release struct {
	name, version, revision, source string

	created time.Time
}

// labels are those of the Open Container Initiative that are known.
func (r release) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "Docent",
		"org.opencontainers.image.description": "An agent and an assistant for your documentation, in one binary",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.revision,
		"org.opencontainers.image.source":      r.source,
		"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
	}
	for name, value := range labels {
		if value == "" {
			delete(labels, name)
		}
	}
	return labels
}

// image is one platform's.
func (r release) image(platform v1.Platform, base v1.Layer, path string) (v1.Image, error) {
	own, err := programLayer(path, r.created)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(empty.Image,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "certificates, user and folders"}},
		mutate.Addendum{Layer: own, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "docent " + r.version}})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: r.created}
	file.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/" + program},
		Cmd:          []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "DOCENT_DATA=/" + data, "DOCENT_LISTEN=:" + port},
		WorkingDir:   "/",
		Volumes:      map[string]struct{}{"/" + data: {}},
		ExposedPorts: map[string]struct{}{port + "/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels:       r.labels(),
		// The start of a large journal takes a while; a check that succeeds ends the waiting.
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/" + program, "health"}, Interval: 30 * time.Second,
			Timeout: 10 * time.Second, StartPeriod: 2 * time.Minute, Retries: 3},
	}
	return mutate.ConfigFile(image, file)
}

// platformOf is what a binary is built for. One that would not run in an empty image is refused.
func platformOf(path string) (v1.Platform, error) {
	file, err := elf.Open(path)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("no program for Linux: %w", err)
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return v1.Platform{}, errors.New("it needs a dynamic loader, which the image does not have: build it with CGO_ENABLED=0")
		}
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return v1.Platform{}, err
	}
	if !strings.HasSuffix(info.Path, "/cmd/docent") { // of whatever module a fork makes of it
		return v1.Platform{}, fmt.Errorf("it is %s, not docent", info.Path)
	}
	switch file.Machine {
	case elf.EM_X86_64:
		return v1.Platform{OS: "linux", Architecture: "amd64"}, nil
	case elf.EM_AARCH64:
		return v1.Platform{OS: "linux", Architecture: "arm64"}, nil
	}
	return v1.Platform{}, fmt.Errorf("it is for %v: images are made for amd64 and arm64", file.Machine)
}

// An entry is a file or a folder of a layer.
type entry struct {
	name    string
	mode    int64
	owner   int
	content []byte // nil for a folder
}

// baseLayer is what the program finds around it. It stays the same from version to version, unless certificates do not.
func baseLayer(at time.Time) (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // trusted under conditions that such a file cannot say
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return layer(at, []entry{
		{name: "data/", mode: 0o700, owner: user},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte(fmt.Sprintf("root:x:0:\ndocent:x:%d:\n", user))},
		{name: "etc/passwd", mode: 0o644, content: []byte(fmt.Sprintf(
			"root:x:0:0:root:/:/nonexistent\ndocent:x:%d:%d:Docent:/%s:/nonexistent\n", user, user, data))},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates, mode: 0o644, content: roots.Bytes()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
	})
}

// programLayer is the binary.
func programLayer(path string, at time.Time) (v1.Layer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return layer(at, []entry{{name: program, mode: 0o755, content: content}})
}

func layer(at time.Time, entries []entry) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		head := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.content == nil {
			head.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithCompressedCaching)
}
