// Package gzipped implements compressed responses: which clients accept them, and files that are compressed once for all.
package gzipped

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

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
