package git

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"docent/forge/failure"
	"docent/internal/brief"
)

// CheckPath refuses what is no plain path below the root: git itself, its disguises on other file systems, ways out.
func CheckPath(p string) error {
	refuse := func(why string) error { return fmt.Errorf("%w: the path %q %s", failure.ErrRefused, p, why) }
	switch {
	case p == "":
		return refuse("is empty")
	case len(p) > 4096:
		return fmt.Errorf("%w: a path of %d bytes is too long", failure.ErrRefused, len(p))
	case !utf8.ValidString(p):
		return refuse("is not UTF-8")
	case strings.HasPrefix(p, "/") || path.Clean(p) != p:
		return refuse("is not plain and relative")
	}
	for _, r := range p {
		if unicode.IsControl(r) || r == '\\' || unicode.Is(unicode.Cf, r) {
			return refuse("holds a control character, a backslash or a hidden character")
		}
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." {
			return refuse("leads elsewhere")
		}
		if len(part) > 255 {
			return refuse("has a part that is too long")
		}
		if isGitDir(part) {
			return refuse("names git's own files")
		}
	}
	return nil
}

// isGitDir knows ".git" under the names that Windows and macOS take for the same.
func isGitDir(name string) bool {
	name, _, _ = strings.Cut(name, ":") // an alternate stream on NTFS
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || strings.HasPrefix(name, "git~")
}

// Fold is the name under which file systems that ignore case keep it.
func Fold(name string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, name)
}

// CheckBranch holds to git's rules for branch names, and is stricter about characters.
func CheckBranch(name string) error {
	bad := name == "" || len(name) > 200 || name == "HEAD" || name == "@" || !utf8.ValidString(name) ||
		strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "//") || strings.Contains(name, "@{") ||
		strings.ContainsAny(name, " ~^:?*[\\") ||
		strings.ContainsFunc(name,
			func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) })
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return fmt.Errorf("%w: %q cannot name a branch", failure.ErrRefused, brief.Bytes(name, 80, "…"))
	}
	return nil
}
