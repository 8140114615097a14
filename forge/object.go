package forge

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"docent/forge/failure"
)

// Git's objects in the little that is needed of them, read strictly: what does not follow the form is damage.

// An object is one that is to be written. Its content is data.
type object struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
	data []byte
}

func newObject(kind plumbing.ObjectType, data []byte) object {
	return object{kind: kind, hash: hashObject(kind, data), data: data}
}

// hashObject names content as git does. The hash is a name here, not a proof against forgers: all content comes from the
// operator's own sources.
func hashObject(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	h := sha1.New()
	h.Write(objectHeader(kind, int64(len(data))))
	h.Write(data)
	return plumbing.Hash(h.Sum(nil))
}

func objectHeader(kind plumbing.ObjectType, size int64) []byte {
	return append(strconv.AppendInt(append(kind.Bytes(), ' '), size, 10), 0)
}

// An entry is one line of a tree.
type entry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

func (e entry) isDir() bool  { return e.mode == filemode.Dir }
func (e entry) isFile() bool { return e.mode.IsFile() && e.mode != filemode.Symlink }

// order is git's: a directory sorts as if its name ended in a slash.
func (e entry) order() string {
	if e.isDir() {
		return e.name + "/"
	}
	return e.name
}

func encodeTree(entries []entry) []byte {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.order(), b.order()) })
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.mode), e.name)
		b.Write(e.hash[:])
	}
	return b.Bytes()
}

var errMalformed = errors.New("malformed object")

func decodeTree(data []byte) ([]entry, error) {
	var out []entry
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 || space > 7 {
			return nil, errMalformed
		}
		mode, err := filemode.New(string(data[:space]))
		if err != nil {
			return nil, errMalformed
		}
		zero := bytes.IndexByte(data, 0)
		if zero < space+2 || len(data) < zero+21 {
			return nil, errMalformed
		}
		out = append(out, entry{name: string(data[space+1 : zero]), mode: mode, hash: plumbing.Hash(data[zero+1 : zero+21])})
		data = data[zero+21:]
	}
	return out, nil
}

// A commit is what is needed of one.
type commit struct {
	hash    plumbing.Hash
	tree    plumbing.Hash
	parents []plumbing.Hash
	author  string // name and address
	when    time.Time
	message string
}

func (c commit) subject() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.message), "\n")
	return line
}

func decodeCommit(hash plumbing.Hash, data []byte) (commit, error) {
	c := commit{hash: hash}
	for {
		line, rest, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			break
		}
		data = rest
		if len(line) == 0 {
			break
		}
		key, value, _ := strings.Cut(string(line), " ")
		switch key {
		case "tree":
			c.tree = plumbing.NewHash(value)
		case "parent":
			c.parents = append(c.parents, plumbing.NewHash(value))
		case "author":
			c.author, _ = signature(value)
		case "committer":
			_, c.when = signature(value)
		}
	}
	if c.tree.IsZero() {
		return commit{}, errMalformed
	}
	c.message = string(data)
	return c, nil
}

func signature(s string) (who string, when time.Time) {
	end := strings.LastIndexByte(s, '>')
	if end < 0 {
		return s, time.Time{}
	}
	fields := strings.Fields(s[end+1:])
	if len(fields) == 0 {
		return s[:end+1], time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return s[:end+1], time.Time{}
	}
	return s[:end+1], time.Unix(seconds, 0).UTC()
}

// encodeCommit is the same bytes for the same values, always.
func encodeCommit(tree plumbing.Hash, parents []plumbing.Hash, who string, when time.Time, message string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n", who, when.Unix(), who, when.Unix())
	b.WriteString(strings.TrimRight(failure.Text(message), "\n"))
	b.WriteByte('\n')
	return b.Bytes()
}
