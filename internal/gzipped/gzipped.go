// Package gzipped implements compressed responses: which clients accept them, and files that are compressed once for all.
package gzipped

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// A File is one that is compressed once for all.
type File struct {
	Content []byte
	Gzip    []byte // nil if that is not smaller
	Tag     string // changes with the content
}

// NewFile compresses a file and names its content.
func NewFile(content []byte) File {
	return File{Content: content, Gzip: Smallest(content), Tag: Tag(content)}
}

// Tag is the entity tag of a content.
func Tag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// Smallest is what a file becomes on the wire: as small as gzip can make it. It is nil if that is not smaller.
func Smallest(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // of a level that there is
	}
	w.Write(content) // into memory
	w.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// Taken reports whether the client accepts gzip (RFC 9110, section 12.5.3).
func Taken(req *http.Request) bool {
	for _, accepted := range req.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(accepted, ",") {
			coding, weight, weighted := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			_, weight, _ = strings.Cut(weight, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !weighted || err == nil && q > 0
		}
	}
	return false
}

// Known reports whether If-None-Match names the tag, by weak comparison (RFC 9110, 13.1.2).
func Known(headers []string, tag string) bool {
	for _, h := range headers {
		for part := range strings.SplitSeq(h, ",") {
			part = strings.TrimSpace(part)
			if part == "*" || strings.TrimPrefix(part, "W/") == tag {
				return true
			}
		}
	}
	return false
}
