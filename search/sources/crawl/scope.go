package crawl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"docent/internal/glob"
)

// A scope says which addresses belong to what is read.
type scope struct {
	start            *url.URL
	origin           string // scheme and host
	prefix           string // of paths
	include, exclude glob.List
}

func newScope(s Settings) (*scope, error) {
	u, err := url.Parse(strings.TrimSpace(s.Start))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, fmt.Errorf("the address must be one of the web, such as https://docs.example.com")
	}
	sc := &scope{start: normal(u), include: glob.NewList(s.Include...), exclude: glob.NewList(s.Exclude...)}
	sc.origin = sc.start.Scheme + "://" + sc.start.Host
	sc.prefix = folderOf(sc.start.Path)
	if s.Prefix != "" {
		p, err := sc.start.Parse(s.Prefix)
		if err != nil || p.Host != sc.start.Host {
			return nil, fmt.Errorf("the prefix must be a path such as /docs/, or an address on %s", sc.start.Host)
		}
		sc.prefix = normal(p).Path
	}
	return sc, nil
}

// folderOf is what the paths of a site begin with that is read from one of its pages on: a file's folder, and an address
// that may be a folder itself.
func folderOf(p string) string {
	if base := path.Base(p); strings.Contains(base, ".") && !strings.HasSuffix(p, "/") {
		if ext := path.Ext(base); ext == ".html" || ext == ".htm" || ext == ".php" || ext == ".aspx" || ext == ".md" ||
			ext == ".txt" || ext == ".xml" {
			return strings.TrimSuffix(p, base)
		}
	}
	return p
}

// tracking are parameters of addresses that say where a reader came from, and nothing of the page.
var tracking = []string{"gclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "ref", "ref_src", "_hsenc", "_hsmi", "_ga", "igshid"}

// normal is an address as addresses are compared: without fragment, default port, what only tracks readers, and parts
// that lead up.
func normal(u *url.URL) *url.URL {
	n := *u
	n.Fragment, n.RawFragment, n.User = "", "", nil
	n.Scheme, n.Host = strings.ToLower(n.Scheme), strings.ToLower(n.Host)
	if n.Scheme == "http" {
		n.Host = strings.TrimSuffix(n.Host, ":80")
	} else {
		n.Host = strings.TrimSuffix(n.Host, ":443")
	}
	slash := strings.HasSuffix(n.Path, "/")
	if n.Path = path.Clean("/" + n.Path); slash && n.Path != "/" {
		n.Path += "/"
	}
	n.RawPath = ""
	if n.RawQuery != "" {
		q := n.Query()
		for key := range q {
			if low := strings.ToLower(key); strings.HasPrefix(low, "utm_") || slices.Contains(tracking, low) {
				q.Del(key)
			}
		}
		n.RawQuery = q.Encode()
	}
	n.ForceQuery = false
	return &n
}

// parse is an address in the form that it is compared in, on the site's own origin if it names the same host by
// another scheme or with www before it; nil if it is none.
func (s *scope) parse(address string) *url.URL {
	u, err := s.start.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(address) > 2000 {
		return nil
	}
	u = normal(u)
	if www(u.Host) == www(s.start.Host) {
		u.Scheme, u.Host = s.start.Scheme, s.start.Host
	}
	return u
}

func www(host string) string { return strings.TrimPrefix(host, "www.") }

// below reports whether an address lies within the prefix.
func (s *scope) below(u *url.URL) bool {
	if u.Scheme+"://"+u.Host != s.origin {
		return false
	}
	p := s.prefix
	return strings.HasPrefix(u.Path, p) && (strings.HasSuffix(p, "/") || len(u.Path) == len(p) || u.Path[len(p)] == '/') ||
		u.Path+"/" == p
}

// assets are the ends of files that hold nothing to read.
var assets = map[string]bool{}

func init() {
	for _, ext := range strings.Fields(`.png .jpg .jpeg .gif .svg .webp .avif .ico .bmp .tif .tiff .css .js .mjs .map .json .xml .rss
		.atom .yaml .yml .toml .csv .zip .gz .tgz .bz2 .xz .7z .rar .tar .dmg .exe .msi .deb .rpm .apk .jar .war .whl .iso
		.mp3 .mp4 .webm .ogg .wav .mov .avi .woff .woff2 .ttf .eot .otf .wasm .doc .docx .xls .xlsx .ppt .pptx .epub .bin
		.sh .ps1 .py .go .rs .java .c .h .cpp .rb .ics .asc .sig .sha256 .torrent .webmanifest .inv`) {
		assets[ext] = true
	}
}

// outside says why an address is not read; empty if it is.
func (s *scope) outside(u *url.URL) string {
	switch {
	case !s.below(u):
		return "lies outside of " + s.origin + s.prefix
	case assets[strings.ToLower(path.Ext(u.Path))]:
		return "is no page"
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) > maxSegments {
		return fmt.Sprintf("has a path of more than %d parts", maxSegments)
	}
	times := map[string]int{}
	for _, part := range parts {
		if times[part]++; times[part] > maxRepeats {
			return "has a path that goes round in circles"
		}
	}
	rel := cmp.Or(strings.Trim(u.Path, "/"), "index")
	if by := s.exclude.LastAsGit(rel); by != nil && !by.Keep {
		return "--exclude " + by.Text
	}
	if len(s.include) > 0 {
		if by := s.include.LastAsGit(rel); by == nil || by.Keep {
			return "no pattern of --include matches"
		}
	}
	return ""
}

// sameKey is what addresses of one page have in common whose servers know it by several.
func sameKey(u *url.URL) string {
	p := strings.ToLower(u.Path)
	for _, ext := range []string{".html", ".htm"} {
		p = strings.TrimSuffix(p, ext)
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(p, "/"), "/index"), "/")
}

// neverNames are names that folders of documentation are read without.
var neverNames = []string{"node_modules", "bower_components", "__pycache__", "_site", "thumbs.db"}

// fileOf is the path of the file of a page: that of its address, in names that every file system has.
func fileOf(u *url.URL, ext string) string {
	p := strings.TrimPrefix(u.Path, "/")
	if p == "" || strings.HasSuffix(p, "/") {
		p += "index"
	}
	for _, known := range []string{".html", ".htm", ".md", ".markdown", ".txt", ".pdf"} {
		p = strings.TrimSuffix(p, known)
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		part = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_.+=@,", r) {
				return r
			}
			return '-'
		}, strings.ToValidUTF8(part, "-"))
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") || part == "" ||
			slices.Contains(neverNames, strings.ToLower(part)) {
			part = "~" + part
		}
		part = strings.TrimRight(part, ".")
		if len(part) > 120 {
			part = strings.ToValidUTF8(part[:100], "") + "~" + short(part)
		}
		parts[i] = part
	}
	p = strings.Join(parts, "/")
	if len(p) > 800 {
		p = "~long/" + short(p)
	}
	if u.RawQuery != "" {
		p += "~" + short(u.RawQuery)
	}
	return p + ext
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
