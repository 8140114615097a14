package workspace

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/agent/say"
	"docent/site/links"
	"docent/site/markup"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// IsPage tells a page of Markdown, MDX, reStructuredText or AsciiDoc by its name.
func IsPage(p string) bool { return markup.IsPage(p) }

// IsIndex tells the page of a folder itself by its name.
func IsIndex(p string) bool { return links.IsIndex(p) }

// Globbed reports whether a name fits a pattern, in which ** stands for any folders.
func Globbed(pattern, name string) bool {
	ok, err := doublestar.Match(pattern, name)
	return err == nil && ok
}

// Stem is a path without its extension.
func Stem(p string) string { return strings.TrimSuffix(p, path.Ext(p)) }

var TextExts = map[string]bool{
	".md": true, ".mdx": true, ".markdown": true, ".txt": true, ".json": true, ".yml": true, ".yaml": true, ".toml": true,
	".rst": true, ".adoc": true, ".asciidoc": true,
	".html": true, ".htm": true, ".csv": true, ".xml": true, ".js": true, ".ts": true, ".jsx": true, ".tsx": true,
	".vue": true, ".css": true, ".svg": true,
}

// PathLike reports whether a word can only be meant as a path.
func PathLike(s string) bool {
	if s == "" || strings.ContainsAny(s, "\n\"") || strings.Contains(s, "://") ||
		strings.Contains(s, " ") && !TextExts[strings.ToLower(path.Ext(s))] {
		return false
	}
	if TextExts[strings.ToLower(path.Ext(s))] {
		return true
	}
	return strings.Contains(s, "/") && s != "/" && !strings.HasPrefix(s, "</") || strings.Contains(s, "**")
}

// Private tells names that may hold what is nobody's business.
func Private(p string) bool {
	for _, seg := range strings.Split(p, "/") {
		if strings.HasPrefix(seg, ".") || strings.EqualFold(seg, "node_modules") {
			return true
		}
	}
	return false
}

func cleanDir(d string) string {
	d = strings.Trim(path.Clean("/"+strings.ReplaceAll(d, "\\", "/")), "/")
	return d
}

// folded is a name as file systems compare it that do not tell case or the forms of Unicode apart.
func folded(p string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(p))) }

var agentFiles = map[string]bool{
	"agents.md": true, "agent.md": true, "claude.md": true, "claude.local.md": true, "gemini.md": true, "codeowners": true,
	"warp.md": true, "conventions.md": true, "llms.txt": false,
}

var lockFiles = map[string]bool{
	"package-lock.json": true, "npm-shrinkwrap.json": true, "yarn.lock": true, "pnpm-lock.yaml": true, "bun.lockb": true,
	"go.sum": true, "go.work.sum": true, "packages.lock.json": true,
}

// protected tells why a path may not be edited by an agent, or says nothing.
func protected(p string) string {
	for _, seg := range strings.Split(p, "/") {
		if strings.HasPrefix(seg, ".") {
			return "names that begin with a dot are not edited"
		}
		if strings.EqualFold(seg, "node_modules") {
			return "installed packages are not edited"
		}
	}
	base := strings.ToLower(path.Base(p))
	switch {
	case agentFiles[base]:
		return "files that steer agents or reviews are not edited"
	case lockFiles[base] || strings.HasSuffix(base, ".lock"):
		return "lock files are not edited"
	}
	return ""
}

var gitNames = regexp.MustCompile(`(?i)^(?:\.?git|git~[0-9]+)$`)

var deviceNames = regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)`)

// CleanPath checks the form of a path from outside, relative to the repository's root.
func CleanPath(p string) error {
	if p == "" || p == "." {
		return say.Refuse("a path is empty")
	}
	if len(p) > 512 || !utf8.ValidString(p) {
		return say.Refuse("the path %s is too long or not valid UTF-8", say.Quote(p))
	}
	for _, r := range p {
		if unicode.IsControl(r) || say.Hidden(r) || r == 0xFFFD || strings.ContainsRune(`\:*?"<>|`, r) {
			return say.Refuse("the path %s holds a character that no path of a page may have", say.Quote(p))
		}
	}
	if strings.HasPrefix(p, "/") || path.Clean(p) != p {
		return say.Refuse("the path %s is not a clean relative path", say.Quote(p))
	}
	for _, seg := range strings.Split(p, "/") {
		bare := strings.TrimRight(seg, ". ")
		switch {
		case seg == ".." || bare == "":
			return say.Refuse("the path %s leaves its folder", say.Quote(p))
		case gitNames.MatchString(bare):
			return say.Refuse("the path %s belongs to git", say.Quote(p))
		case bare != seg || strings.TrimLeft(seg, " ") != seg || deviceNames.MatchString(seg) || len(seg) > 200:
			return say.Refuse("the path %s is no path on every system", say.Quote(p))
		}
	}
	return nil
}

// IsText reports whether a content can be edited as text.
func IsText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

// NotExist tells that there is no such file.
func NotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
